"""The gaps that nobody asked for: how far apart groups are in every rate of a group table, with
intervals.

    gap of a rate = largest difference of two groups' rates

The interval of a difference is Newcombe's, of two Wilson intervals; those of the m pairs of groups
are made at level 1 - (1 - confidence) / m each (Bonferroni), so that the largest difference lies
between the largest lower and the largest upper end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

from ..figures import GapFigure
from ..metrics import GroupRow, GroupTable
from ..metrics.tables import Estimate, wilson
from ..tables.keys import shown

KINDS = ("selection_rate", "true_positive_rate", "false_positive_rate", "error")
ASKED: dict[str, tuple[str, ...]] = {
    "demographic parity": ("selection_rate",),
    "equal opportunity": ("true_positive_rate",),
    "equalized odds": ("true_positive_rate", "false_positive_rate"),
    "false positive rate parity": ("false_positive_rate",),
    "error rate parity": ("error",),
}
MOST_GROUPS = 60
"""Of more groups those with the smallest and the largest rates are compared, at the level of all
pairs."""


@dataclass(frozen=True)
class OtherGap:
    """One rate's gap. `most` and `least`: the groups with the largest and the smallest rate;
    `required`: it was bounded."""

    rate: str
    gap: float
    low: float
    high: float
    most: GroupRow
    least: GroupRow
    required: bool


def gaps_of(table: GroupTable, required: tuple[GapFigure, ...] = ()) -> tuple[OtherGap, ...]:
    """The gap of every rate that two groups or more have, the largest first.

    Of two classes the positive one's rates, of more every class's. Small groups count: their
    intervals say how little is known.
    """
    kinds = {
        kind
        for figure in required
        if figure.target is not None
        for kind in ASKED.get(figure.notion, ())
    }
    classes = table.classes if table.positive is None else (table.positive,)
    names = [f"{kind}[{shown(k)}]" for kind in KINDS[:3] for k in classes] + ["error"]
    found = [_gap(table, name, name.partition("[")[0] in kinds) for name in names]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: -one.gap))


def _gap(table: GroupTable, name: str, required: bool) -> OtherGap | None:
    known = [
        row for row in table.rows if name in row.rates and not math.isnan(row.rates[name].value)
    ]
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda row: row.rates[name].value)
    least, most = ordered[0], ordered[-1]
    gap = most.rates[name].value - least.rates[name].value
    confidence = 1.0 - (1.0 - table.confidence) / math.comb(len(ordered), 2)
    if len(ordered) > MOST_GROUPS:
        ordered = ordered[: MOST_GROUPS // 2] + ordered[-MOST_GROUPS // 2 :]
    pairs = list(combinations(ordered, 2))
    ends = {id(row): _ends(row.rates[name], confidence) for row in ordered}
    low, high = 0.0, gap
    for lower, upper in pairs:  # the rate of `upper` is at least that of `lower`
        difference = upper.rates[name].value - lower.rates[name].value
        (below, above), (under, over) = ends[id(upper)], ends[id(lower)]
        value, other = upper.rates[name].value, lower.rates[name].value
        low = max(low, difference - math.hypot(value - below, over - other))
        # Either sign of the difference may be the largest in the population.
        high = max(high, difference + math.hypot(above - value, other - under))
        high = max(high, -difference + math.hypot(value - below, over - other))
    return OtherGap(name, gap, low, min(1.0, high), most, least, required)


def _ends(rate: Estimate, confidence: float) -> tuple[float, float]:
    return wilson(rate.value, rate.size, confidence)
