"""Ring 1: what is asked of a model. Notions of fairness, constraints on prediction rates,
objectives of group losses.

Holds no data, reads no table and knows nothing of privacy: everything here is a public description.
What measures finished decisions is in `fairveil.metrics`.
"""

from . import notions, objectives
from .notions import (
    COMPARISONS,
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRate,
    ErrorRateParity,
    Event,
    FalseNegativeRate,
    FalsePositiveRateParity,
    Grouping,
    Notion,
    PredictionRate,
    Rate,
    RateConstraint,
    SelectionRateRatio,
)
from .systems import (
    ConstraintSystem,
    deviations,
    resolve,
)

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
    "Notion",
    "PredictionRate",
    "Rate",
    "RateConstraint",
    "SelectionRateRatio",
    "deviations",
    "notions",
    "objectives",
    "resolve",
]
