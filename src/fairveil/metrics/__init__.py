"""Ring 1: what finished decisions do to groups. Exact gaps, group tables, intervals; undefined is
undefined, never 0."""

from .measures import Audit as Audit
from .measures import audit as audit
from .measures import demographic_parity_gap as demographic_parity_gap
from .measures import equal_opportunity_gap as equal_opportunity_gap
from .measures import equalized_odds_gap as equalized_odds_gap
from .measures import error_rate_gap as error_rate_gap
from .measures import false_positive_rate_gap as false_positive_rate_gap
from .scores import ScoreRow as ScoreRow
from .scores import ScoreTable as ScoreTable
from .tables import Estimate as Estimate
from .tables import GroupRow as GroupRow
from .tables import GroupTable as GroupTable
from .tables import group_table as group_table
