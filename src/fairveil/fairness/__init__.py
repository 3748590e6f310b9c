"""Ring 1: what is asked of a model. Notions of fairness, constraints on prediction rates,
objectives of group losses.

Holds no data, reads no table and knows nothing of privacy: everything here is a public description.
What measures finished decisions is in `fairveil.metrics`.
"""

from . import losses, notions, objectives, sampling
from .grouping import COMPARISONS, Grouping
from .losses import LossBounds, resolve_losses
from .notions import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    FalseNegativeRate,
    FalsePositiveRateParity,
    SelectionRateRatio,
)
from .rates import ErrorRate, Event, Notion, PredictionRate, Rate, RateConstraint
from .resolution import resolve
from .systems import ConstraintSystem, combine

__all__ = [
    "COMPARISONS",
    "BoundedGroupLoss",
    "ConstraintSystem",
    "DemographicParity",
    "EqualOpportunity",
    "EqualizedOdds",
    "ErrorRate",
    "ErrorRateParity",
    "Event",
    "FalseNegativeRate",
    "FalsePositiveRateParity",
    "Grouping",
    "LossBounds",
    "Notion",
    "PredictionRate",
    "Rate",
    "RateConstraint",
    "SelectionRateRatio",
    "combine",
    "losses",
    "notions",
    "objectives",
    "resolve",
    "resolve_losses",
    "sampling",
]
