"""The widest difference and the smallest ratio of one rate among the groups of a level, and which
pair of groups it is.

Upper ends need no correction for the number of pairs: the widest pair is one pair, and its bound
fails as rarely as any (Berger 1982). Lower ends, and which pairs may be the widest, use an interval
for each group, all of which hold together. A pair cannot be the widest if its upper bound is below
some other pair's lower bound. `named_with` is the largest confidence, of a list fixed in advance,
at which, as at all smaller ones, one pair alone is left. It is read as a p-value is: for each alpha
a wrong pair is named with confidence 1 - alpha or more with probability at most alpha
(theory.md#worst-pair).

Guarantees (tests/learning/test_learning_table_gaps.py):
1. The interval misses the population's widest difference (smallest ratio) with probability at most
   1 - confidence.
2. A wrong pair is named with a confidence c or more with probability at most 1 - c.
3. Where a group may have nobody, there is no value and no upper end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ..certificates.levels import shares
from .rates import TableEvidence

MISSES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
"""The permitted misses at which a pair may be named."""


@dataclass(frozen=True)
class TableGap:
    """The widest difference (or smallest ratio) of groups: as released, between which ends the
    population's lies, and the pair (larger rate, smaller rate) that has it in the table. `others`:
    further pairs that may be the widest, at this confidence. `named_with`: the confidence with
    which the pair is the widest; None: not even with one half. `undefined`: groups without a
    rate."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    pair: tuple[int, int] | None
    others: tuple[tuple[int, int], ...]
    named_with: float | None
    undefined: tuple[int, ...]


def difference(found: TableEvidence, groups: Sequence[int], name: str) -> TableGap:
    """The widest difference of one rate, in the rate's own unit."""
    gap = _Widest(found, groups, name, lambda a, b: a - b)
    low, high = gap.least, gap.most
    return gap.told(gap.value, None if low is None else max(low, 0.0), high)


def ratio(found: TableEvidence, groups: Sequence[int], name: str) -> TableGap:
    """The smallest ratio of one rate: the smaller over the larger, of numbers that are not
    negative."""

    def below(a: Floats, b: Floats) -> Floats:
        """Minus the ratio, which grows with the first and falls with the second."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.where(a > 0, b / a, np.inf))

    gap = _Widest(found, groups, name, below)
    value = None if gap.value is None or math.isinf(gap.value) else min(-gap.value, 1.0)
    low = None if gap.most is None else min(max(-gap.most, 0.0), 1.0)
    return gap.told(value, low, None if gap.least is None else min(-gap.least, 1.0))


class _Widest:
    """The largest of f(p_a, p_b) over ordered pairs of groups; f grows with the first rate and
    falls with the second."""

    def __init__(
        self,
        found: TableEvidence,
        groups: Sequence[int],
        name: str,
        f: Callable[[Floats, Floats], Floats],
    ) -> None:
        self.found, self.name, self.f = found, name, f
        values = [found.value(group, name) for group in groups]
        self.groups = [
            group for group, value in zip(groups, values, strict=True) if value is not None
        ]
        self.undefined = tuple(
            group for group, value in zip(groups, values, strict=True) if value is None
        )
        self.rates = np.array([value for value in values if value is not None], np.float64)

    @property
    def compared(self) -> bool:
        """Whether there are two groups."""
        return len(self.groups) > 1

    @property
    def value(self) -> float | None:
        """As released; None where a group has no rate."""
        if self.undefined or not self.compared:
            return None
        return float(self._pairs(self.rates, self.rates).max())

    @property
    def most(self) -> float | None:
        """An upper bound; None where a group has no rate. Beside a whole table that holds together,
        by its intervals."""
        if self.undefined or not self.compared:
            return None
        if self.found.together:
            highs, lows = self._ends((self.found.level / 2.0,))
            return float(self._pairs(highs[0], lows[0]).max())
        steps = shares(2, True, self.found.alpha / 2.0)
        levels = sorted({level for step in steps for level in step})
        highs, lows = self._ends(levels)
        return max(
            float(self._pairs(highs[levels.index(a)], lows[levels.index(b)]).max())
            for a, b in steps
        )

    @property
    def least(self) -> float | None:
        """A lower bound, of the groups that have a rate."""
        if not self.compared:
            return None
        level = (
            self.found.level / 2.0
            if self.found.together
            else self.found.alpha / (4.0 * len(self.groups))
        )
        highs, lows = self._ends((level,))
        return float(self._pairs(lows[0], highs[0]).max())

    def told(self, value: float | None, low: float | None, high: float | None) -> TableGap:
        """With the pair, and how sure it is. The ends are moved to the value where rounding of
        counts put it outside."""
        low = low if low is None or value is None else min(low, value)
        high = high if high is None or value is None else max(high, value)
        pair = self._pair() if self.compared else None
        kept = self._kept(self.found.alpha) if self.compared else ()
        named = None
        if pair is not None and not self.undefined:
            for miss in MISSES:  # at all larger ones, too: so none need be nested in another
                if self._kept(miss) != (pair,):
                    break
                named = 1.0 - miss
        others = tuple(one for one in kept if one != pair)
        return TableGap(self.name, value, low, high, pair, others, named, self.undefined)

    def _kept(self, miss: float) -> tuple[tuple[int, int], ...]:
        """The pairs that may be the widest: no other's lower bound is above their upper one."""
        highs, lows = self._ends((miss / (2.0 * len(self.groups)),))
        over = self._pairs(highs[0], lows[0]) >= self._pairs(lows[0], highs[0]).max()
        return tuple((self.groups[a], self.groups[b]) for a, b in np.argwhere(over))

    def _pair(self) -> tuple[int, int]:
        table = self._pairs(self.rates, self.rates)
        a, b = np.unravel_index(int(np.argmax(table)), table.shape)
        return self.groups[a], self.groups[b]

    def _pairs(self, first: Floats, second: Floats) -> Floats:
        table = np.array(self.f(first[:, np.newaxis], second[np.newaxis, :]))
        np.fill_diagonal(table, -np.inf)
        return table

    def _ends(self, levels: Sequence[float]) -> tuple[Floats, Floats]:
        """Upper and lower bounds (levels, groups), each failing with at most its level."""
        highs = np.stack(
            [self.found.highs(group, self.name, levels) for group in self.groups], axis=1
        )
        lows = np.stack(
            [self.found.lows(group, self.name, levels) for group in self.groups], axis=1
        )
        return highs, lows
