"""A private table's rates for true groups, where recorded ones were flipped with known rates:
post-processing."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from ...facts.reports import Reports
from ...learning.private_tables.true_groups import TrueRate, true_rate
from ...tables import keys
from .private_table_contents import Gap, PrivateTableContents

NOT_SHOWN = (
    "the groups were drawn from distributions over groups: rates are those of the proxy, which "
    "need not be those of true groups"
)


@dataclass(frozen=True)
class TrueGroups:
    """Rates and gaps of true groups, estimated from a private table of recorded groups.

    `PrivateTable.true_groups` makes it.

    Attributes
    ----------
    reports : Reports
        How recorded groups come from true ones.
    confidence : float
        Confidence of each interval, over people, flips and noise.
    rates : dict
        For each rate's name, the `TrueRate` of each true group.
    apart : dict
        The same with intervals that hold for all groups of a rate together.
    """

    reports: Reports
    confidence: float
    rates: dict[str, dict[Hashable, TrueRate]]
    apart: dict[str, dict[Hashable, TrueRate]]

    def difference(self, rate: str) -> Gap:
        """Widest difference of a rate among true groups.

        If its upper end is below a bound, the bound is certified with this confidence.

        Parameters
        ----------
        rate : str
            Name of the rate.

        Returns
        -------
        Gap
            The estimate, its interval and its pair of groups.
        """
        found, apart = self.rates[rate], self.apart[rate]
        known = {group: one.value for group, one in found.items() if one.value is not None}
        undefined = tuple(group for group in found if group not in known)
        groups = list(apart)
        pairs = [(a, b) for a in groups for b in groups if a != b]
        low = max(0.0, max(apart[a].low - apart[b].high for a, b in pairs))
        high = max(apart[a].high - apart[b].low for a, b in pairs)
        if undefined:
            return Gap(rate, None, low, None, None, None, (), undefined)
        top, last = (
            max(groups, key=lambda group: known[group]),
            min(groups, key=lambda group: known[group]),
        )
        value = known[top] - known[last]
        return Gap(rate, value, min(low, value), max(high, value), (top, last), None, (), ())

    def __str__(self) -> str:
        lines = []
        for name, found in self.rates.items():
            for group, one in found.items():
                value = "undefined" if one.value is None else f"{one.value:.4f}"
                lines.append(
                    f"{name} of {keys.shown(group)}: {value} ({one.low:.4f} to {one.high:.4f})"
                )
            gap = self.difference(name)
            ends = (
                "undefined"
                if gap.value is None
                else f"{gap.value:.4f} ({gap.low:.4f} to {gap.high:.4f})"
            )
            lines.append(f"{name}, widest difference: {ends}")
        return "\n".join([*lines, *([f"not shown: {NOT_SHOWN}"] if self.reports.drawn else [])])


def true_groups(table: PrivateTableContents, reports: Reports) -> TrueGroups:
    """The main rates of a table, for the groups whose recorded values these reports are."""
    layout, noise = table.layout, table.noise
    known = reports.in_order(layout.cells.keys)
    counts = np.asarray(table.counts, np.float64).reshape(layout.cells.count, layout.kinds)
    miss = 1.0 - table.confidence
    rates: dict[str, dict[Hashable, TrueRate]] = {}
    apart: dict[str, dict[Hashable, TrueRate]] = {}
    for name in layout.main:
        share = layout.shares[name]
        if (share.low, share.high) != (0.0, 1.0):
            continue  # a metric of other bounds, which is a coin
        hits, rests = counts[:, share.hits].sum(axis=1), counts[:, share.rest].sum(axis=1)
        noises = (int(share.hits.sum()), int(share.rest.sum()))
        for into, each in ((rates, miss), (apart, miss / layout.cells.count)):
            into[name] = {
                group: true_rate(hits, rests, line, noise, noises, each)
                for group, line in zip(known.groups, known.undone, strict=True)
            }
    return TrueGroups(known, table.confidence, rates, apart)
