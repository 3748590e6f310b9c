"""A private table from released counts: every rate and count of every group, with its interval.
Post-processing.

A rate's interval is about the population that the rows were drawn from: the exact tails of
`certificate_tails`, sampling and noise together. A count's interval is about the rows: the noise
alone. Each holds with the confidence by itself, or all of the table hold together: then each has
the confidence 1 - alpha / K, K of them (Bonferroni; a rate and its complement are one).

Values are those of `consistent_counts`; intervals are made of the released counts, and widened
where a value lies outside.

Guarantees (tests/learning/test_learning_table_rates.py):
1. An interval misses with probability at most 1 - confidence; with `together` that any of the table
   does has that probability.
2. Values fit together: groups of a level add up to everyone, labels to people; nothing is negative,
   no rate above 1.
3. A group that may have nobody of an event has no rate: None, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from ..._types import Floats
from ..certificates.tails import Counted, fewest_people, upper_bounds
from ..counts.consistent import consistent
from ..counts.distributions import distribution_of_sum
from ..counts.noise import CountNoise
from .layout import EVERYONE, TableLayout, counted

MOST_TAILS = 400
"""Above so many values of a noise each count has an interval of its own: exact convolutions would
take seconds."""


@dataclass(frozen=True)
class TableCount:
    """How many rows, and between which numbers the true one lies."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class TableRate:
    """A rate: as released and made consistent, and between which ends the
    population's lies. None where there may be nobody. `people`: of its event; `fewest`: there are
    at least so many."""

    value: float | None
    low: float | None
    high: float | None
    people: float
    fewest: int


@dataclass(frozen=True)
class TableLine:
    """One group: people, people of each label, rates by name. `small`: it may have fewer people
    than were asked for."""

    people: TableCount
    labels: tuple[TableCount, ...]
    rates: dict[str, TableRate]
    small: bool


class TableEvidence:
    """Released counts (cells x kinds), their noise, and what is public of them."""

    def __init__(
        self,
        layout: TableLayout,
        counts: Floats,
        noise: CountNoise,
        confidence: float,
        *,
        known: Floats | None = None,
        together: bool = False,
    ) -> None:
        self.layout, self.noise, self.known = layout, noise, known
        self.alpha, self.together = 1.0 - confidence, together
        self.released = np.asarray(counts, np.float64).reshape(layout.cells.count, layout.kinds)
        self.consistent = consistent(self.released, known)

    @cached_property
    def intervals(self) -> int:
        """How many different intervals the table has."""
        rates = len({share.together for share in self.layout.shares.values()})
        labels = self.layout.kinds_shape[0] if self.layout.labelled else 0
        return len(self.layout.groups) * (rates + 1 + labels)

    @property
    def level(self) -> float:
        """With which probability one interval may miss."""
        return self.alpha / self.intervals if self.together else self.alpha

    def kinds(self, group: int) -> tuple[Floats, int]:
        """A group's released sums by kind, and of how many noises each is the sum. Sums that are
        public have none."""
        one = self.layout.groups[group]
        if one.columns == EVERYONE and self.known is not None and np.ndim(self.known) == 1:
            return self.known, 0
        return np.asarray(self.released[list(one.cells)].sum(axis=0)), len(one.cells)

    def counted(self, group: int, name: str) -> Counted:
        """The released counts of a share in a group."""
        return counted(self.layout.shares[name], *self.kinds(group))

    def fewest(self, one: Counted) -> int:
        """A number that the people of an event fall below with at most half of the permitted
        miss."""
        return fewest_people(one, self.noise, self.level / 2.0)

    def highs(self, group: int, name: str, levels: Sequence[float]) -> Floats:
        """Upper bounds of a share, one for each level."""
        return self._upper(self.counted(group, name), levels)

    def lows(self, group: int, name: str, levels: Sequence[float]) -> Floats:
        """Lower bounds of a share, one for each level."""
        return 1.0 - self._upper(self.counted(group, name).turned, levels)

    def value(self, group: int, name: str) -> float | None:
        """A share of the consistent counts; None where there may be nobody."""
        one, whole = self._consistent(group, name)
        return one / whole if whole > 0 and self.fewest(self.counted(group, name)) else None

    def rate(self, group: int, name: str) -> TableRate:
        """One number of the table."""
        _, whole = self._consistent(group, name)
        fewest = self.fewest(self.counted(group, name))
        value = self.value(group, name)
        if value is None:
            return TableRate(None, None, None, whole, fewest)
        ends = [self.lows, self.highs]
        low, high = (float(find(group, name, [self.level / 2.0])[0]) for find in ends)
        return TableRate(value, min(low, value), max(high, value), whole, fewest)

    def line(self, group: int, small_below: int) -> TableLine:
        """All of a group."""
        layout = self.layout
        labels = range(layout.kinds_shape[0]) if layout.labelled else ()
        people = self._count(group, np.ones(layout.kinds, bool))
        rates = {name: self.rate(group, name) for name in layout.shares}
        return TableLine(
            people,
            tuple(self._count(group, layout.of_label(y)) for y in labels),
            rates,
            people.low < small_below,
        )

    def _count(self, group: int, kinds: npt.NDArray[np.bool_]) -> TableCount:
        sums, noises = self.kinds(group)
        everyone = self.layout.groups[group].columns == EVERYONE
        if everyone and self.known is not None and np.ndim(self.known) == 0 and kinds.all():
            return TableCount(*(float(self.known),) * 3)
        away = distribution_of_sum(self.noise, noises * int(kinds.sum())).radius(self.level)
        seen = float(sums[kinds].sum())
        value = float(self.consistent[list(self.layout.groups[group].cells)][:, kinds].sum())
        return TableCount(value, min(max(seen - away, 0.0), value), max(seen + away, value))

    def _consistent(self, group: int, name: str) -> tuple[float, float]:
        share, cells = self.layout.shares[name], list(self.layout.groups[group].cells)
        sums = self.consistent[cells].sum(axis=0)
        hits = float(sums[share.hits].sum())
        return hits, hits + float(sums[share.rest].sum())

    def _upper(self, one: Counted, levels: Sequence[float]) -> Floats:
        return _upper_bounds(one, self.noise, tuple(levels))


@lru_cache(maxsize=1 << 14)  # released counts alone are kept
def _upper_bounds(one: Counted, noise: CountNoise, levels: tuple[float, ...]) -> Floats:
    """`upper_bounds`; where noise is so large that its tables would be, the bound of Clopper and
    Pearson at the worst counts.

    Each count is within its radius but for 1 % of the level; P(p > bound) <= level - 2 x 1 % + 2 x
    1 %.
    """
    laws = [distribution_of_sum(noise, count) for count in (one.selected_noises, one.others_noises)]
    if max(len(law.weights) for law in laws) <= MOST_TAILS:
        return upper_bounds(one, noise, levels)
    out = []
    for level in levels:
        away = [law.radius(0.01 * level) for law in laws]
        widest = Counted(max(one.selected + away[0], 0.0), max(one.others - away[1], 0.0))
        out.append(float(upper_bounds(widest, CountNoise("none", 0.0), [0.98 * level])[0]))
    return np.array(out)
