"""Ring 1: what finished decisions do to groups. Exact gaps, group tables, intervals; undefined is
undefined, never 0."""

from . import histograms, measures
from .measures import (
    Audit,
    audit,
    demographic_parity_gap,
    equal_opportunity_gap,
    equalized_odds_gap,
    error_rate_gap,
    false_positive_rate_gap,
)
from .tables import Estimate, GroupRow, GroupTable, group_table

__all__ = [
    "Audit",
    "Estimate",
    "GroupRow",
    "GroupTable",
    "audit",
    "demographic_parity_gap",
    "equal_opportunity_gap",
    "equalized_odds_gap",
    "error_rate_gap",
    "false_positive_rate_gap",
    "group_table",
    "histograms",
    "measures",
]
