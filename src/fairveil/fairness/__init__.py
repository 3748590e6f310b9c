"""Ring 1: what is asked of a model. Notions of fairness, constraints on prediction rates, exact measures.

Holds no data and knows nothing of privacy: everything here is a public description, or post-processing of numbers handed in.
"""

from . import histograms, losses, measures, notions, objectives, sampling
from .grouping import COMPARISONS, Grouping
from .losses import LossBounds, resolve_losses
from .measures import (
    Audit,
    audit,
    demographic_parity_gap,
    equal_opportunity_gap,
    equalized_odds_gap,
    error_rate_gap,
    false_positive_rate_gap,
)
from .notions import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    FalseNegativeRate,
    FalsePositiveRateParity,
)
from .rates import ErrorRate, Event, Notion, PredictionRate, Rate, RateConstraint
from .ratios import SelectionRateRatio
from .resolution import resolve
from .systems import ConstraintSystem, combine
from .tables import Estimate, GroupRow, GroupTable, group_table

__all__ = [
    "COMPARISONS",
    "Audit",
    "BoundedGroupLoss",
    "ConstraintSystem",
    "DemographicParity",
    "EqualOpportunity",
    "EqualizedOdds",
    "ErrorRate",
    "ErrorRateParity",
    "Estimate",
    "Event",
    "FalseNegativeRate",
    "FalsePositiveRateParity",
    "GroupRow",
    "GroupTable",
    "Grouping",
    "LossBounds",
    "Notion",
    "PredictionRate",
    "Rate",
    "RateConstraint",
    "SelectionRateRatio",
    "audit",
    "combine",
    "demographic_parity_gap",
    "equal_opportunity_gap",
    "equalized_odds_gap",
    "error_rate_gap",
    "false_positive_rate_gap",
    "group_table",
    "histograms",
    "losses",
    "measures",
    "notions",
    "objectives",
    "resolve",
    "resolve_losses",
    "sampling",
]
