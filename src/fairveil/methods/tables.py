"""Tables of rates by group, from one release of counts: every rate and count of every group with its
interval, and the widest gaps between groups. Post-processing.

One histogram over the finest groups (all combinations of the sensitive columns) serves the whole
hierarchy: everyone, one column, two, and so on. A coarser group is the sum of m finest ones: m
times the variance of the noise, and m times the people of the average part. Levels with budgets of
their own would share epsilon, and every one of the finest groups would have noise as many times
larger as there are levels (theory.md#hierarchy).

A rate's interval is about the population that the rows were drawn from: the exact tails of
`counts`, sampling and noise together. A count's interval is about the rows: the noise alone. Each
holds with the confidence by itself, or all of the table hold together: then each has the confidence
1 - alpha / K, K of them (Bonferroni; a rate and its complement are one). Values are consistent
counts; intervals are made of the released ones, and widened where a value lies outside.

Upper ends of the widest difference need no correction for the number of pairs: the widest pair is
one pair, and its bound fails as rarely as any (Berger 1982). Lower ends, and which pairs may be the
widest, use an interval for each group, all of which hold together. A pair cannot be the widest if
its upper bound is below some other pair's lower bound. `named_with` is the largest confidence, of a
list fixed in advance, at which, as at all smaller ones, one pair alone is left. It is read as a
p-value is: for each alpha a wrong pair is named with confidence 1 - alpha or more with probability
at most alpha (theory.md#worst-pair).

Guarantees (tests/methods/test_methods_tables.py):
1. A row is in one part, so one person moves the counts as far as in any histogram. The groups of
   each level are disjoint, and together are everyone.
2. An interval misses with probability at most 1 - confidence, that of the population's widest
   difference (smallest ratio) too; with `together` that any of the table does has that probability.
3. Values fit together: groups of a level add up to everyone, labels to people; nothing is negative,
   no rate above 1.
4. A wrong pair is named with a confidence c or more with probability at most 1 - c.
5. A group that may have nobody of an event has no rate: None, never 0; and no gap that it is in has
   a value or an upper end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from .._types import Floats
from ..facts import Cells
from ..tables.keys import shown
from .certificate import shares
from .counts import (
    EXACT,
    CountedRate,
    CountNoise,
    Pair,
    consistent_counts,
    distribution_of_sum,
    fewest_people,
    upper_bounds,
)

Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.intp]
EVERYONE: tuple[int, ...] = ()
MISSES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
"""The permitted misses at which a pair may be named."""
MOST_TAILS = 400
"""Above so many values of a noise each count has an interval of its own: exact convolutions would
take seconds."""

# -- what is counted -------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableGroup:
    """A group of the hierarchy: the columns that make it, its key (None: everyone), and its finest
    cells."""

    columns: tuple[int, ...]
    key: Hashable
    cells: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TableLayout:
    """What is counted. A row's kind is (label, decision); without labels there is one label."""

    cells: Cells
    classes: tuple[Hashable, ...]
    labelled: bool
    depth: int = 1

    @property
    def kinds_shape(self) -> tuple[int, int]:
        """(labels, decisions)."""
        return (len(self.classes) if self.labelled else 1, len(self.classes))

    @property
    def kinds(self) -> int:
        """How many kinds of rows there are in a group."""
        return int(np.prod(self.kinds_shape))

    @property
    def parts(self) -> int:
        """How many counts are released."""
        return self.cells.count * self.kinds

    def part_of(self, ids: Codes, labels: Codes, decisions: Codes) -> Codes:
        """The part of each row."""
        label = labels if self.labelled else 0
        part = (ids * self.kinds_shape[0] + label) * len(self.classes) + decisions
        return np.asarray(part, np.intp)

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The columns of each level, without that of everyone; a single group is no level."""
        columns = range(len(self.cells.columns)) if self.cells.count > 1 else ()
        sizes = range(1, min(self.depth, len(columns)) + 1)
        return tuple(level for size in sizes for level in itertools.combinations(columns, size))

    @cached_property
    def groups(self) -> tuple[TableGroup, ...]:
        """Everyone, then each column's groups, then those of two columns, up to `depth`."""
        sizes = self.cells.sizes
        grid = np.indices(sizes).reshape(len(sizes), -1)
        out = [TableGroup(EVERYONE, None, tuple(range(self.cells.count)))]
        for level in self.levels:
            for values in itertools.product(*(range(sizes[j]) for j in level)):
                places = np.array(values)[:, np.newaxis]
                inside = np.flatnonzero((grid[list(level)] == places).all(axis=0))
                out.append(TableGroup(level, self._key(level, values), tuple(map(int, inside))))
        return tuple(out)

    def _key(self, level: tuple[int, ...], values: tuple[int, ...]) -> Hashable:
        found: tuple[Hashable, ...] = tuple(
            self.cells.columns[j][value] for j, value in zip(level, values, strict=True)
        )
        if len(level) < len(self.cells.columns):
            found = tuple(zip((self.cells.names[j] for j in level), found, strict=True))
        return found[0] if len(found) == 1 else found

    @cached_property
    def shares(self) -> dict[str, CountedRate]:
        """Every rate of the table by name, of kinds of rows, in the order of an exact group
        table."""
        label, decision = np.indices(self.kinds_shape).reshape(2, -1)
        everything, found = np.ones(self.kinds, bool), dict[str, CountedRate]()

        def add(name: str, event: Bools, hit: Bools) -> None:
            kinds = (np.flatnonzero(one).tolist() for one in (event & hit, event & ~hit))
            found[name] = CountedRate(name, *map(tuple, kinds))

        for k, name in enumerate(map(shown, self.classes)):
            chosen = decision == k
            add(f"selection_rate[{name}]", everything, chosen)
            if self.labelled:
                add(f"true_positive_rate[{name}]", label == k, chosen)
                add(f"false_negative_rate[{name}]", label == k, ~chosen)
                add(f"false_positive_rate[{name}]", label != k, chosen)
        if self.labelled:
            add("error", everything, label != decision)
            add("accuracy", everything, label == decision)
        return found

    @cached_property
    def main(self) -> tuple[str, ...]:
        """The rates that are shown, and whose gaps are: of the second of two classes, of every
        class of more; then the error."""
        of_labels = ["true_positive_rate", "false_positive_rate"] if self.labelled else []
        if len(self.classes) == 2:
            second = shown(self.classes[1])
            out = [f"{name}[{second}]" for name in ("selection_rate", *of_labels)]
        else:
            out = [f"selection_rate[{shown(k)}]" for k in self.classes]
        return (*out, *(["error"] if self.labelled else []))


# -- rates and counts ------------------------------------------------------------------------------


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
    """Released counts (cells x kinds), their noise, and what is `known` of them: the number of
    rows, or how many there are of each kind."""

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
        self.consistent = consistent_counts(self.released, known)

    @cached_property
    def intervals(self) -> int:
        """How many different intervals the table has."""
        rates = len({frozenset((one.hits, one.rest)) for one in self.layout.shares.values()})
        labels = self.layout.kinds_shape[0] if self.layout.labelled else 0
        return len(self.layout.groups) * (rates + 1 + labels)

    @property
    def level(self) -> float:
        """With which probability one interval may miss."""
        return self.alpha / self.intervals if self.together else self.alpha

    def counted(self, group: int, name: str) -> Pair:
        """The released counts of a share in a group."""
        return self.layout.shares[name].counted(*self._kinds(group))

    def highs(self, group: int, name: str, levels: Sequence[float]) -> Floats:
        """Upper bounds of a share, one for each level."""
        return _upper_bounds(self.counted(group, name), self.noise, tuple(levels))

    def lows(self, group: int, name: str, levels: Sequence[float]) -> Floats:
        """Lower bounds of a share, one for each level."""
        return 1.0 - _upper_bounds(self.counted(group, name).turned, self.noise, tuple(levels))

    def value(self, group: int, name: str) -> float | None:
        """A share of the consistent counts; None where there may be nobody."""
        return self._value(group, name)[0]

    def rate(self, group: int, name: str) -> TableRate:
        """One number of the table."""
        value, people, fewest = self._value(group, name)
        if value is None:
            return TableRate(None, None, None, people, fewest)
        half = [self.level / 2.0]
        low, high = (float(find(group, name, half)[0]) for find in (self.lows, self.highs))
        return TableRate(value, min(low, value), max(high, value), people, fewest)

    def line(self, group: int, small_below: int) -> TableLine:
        """All of a group."""
        everything, label = np.ones(self.layout.kinds, bool), np.indices(self.layout.kinds_shape)[0]
        labels = range(self.layout.kinds_shape[0]) if self.layout.labelled else ()
        people = self._count(group, everything)
        return TableLine(
            people,
            tuple(self._count(group, label.ravel() == y) for y in labels),
            {name: self.rate(group, name) for name in self.layout.shares},
            people.low < small_below,
        )

    def _kinds(self, group: int) -> tuple[Floats, int]:
        """A group's released sums by kind, and of how many noises each is the sum. Sums that are
        public have none."""
        one = self.layout.groups[group]
        if one.columns == EVERYONE and self.known is not None and np.ndim(self.known) == 1:
            return self.known, 0
        return np.asarray(self.released[list(one.cells)].sum(axis=0)), len(one.cells)

    def _value(self, group: int, name: str) -> tuple[float | None, float, int]:
        """A share, the people of its event, and what they fall below with at most half of the
        permitted miss."""
        fewest = fewest_people(self.counted(group, name), self.noise, self.level / 2.0)
        sums = self.consistent[list(self.layout.groups[group].cells)].sum(axis=0)
        one = self.layout.shares[name].counted(sums, 0)
        people = one.selected + one.others
        return one.selected / people if people > 0 and fewest else None, people, fewest

    def _count(self, group: int, kinds: Bools) -> TableCount:
        sums, noises = self._kinds(group)
        everyone = self.layout.groups[group].columns == EVERYONE
        if everyone and self.known is not None and np.ndim(self.known) == 0 and kinds.all():
            return TableCount(*(float(self.known),) * 3)
        away = distribution_of_sum(self.noise, noises * int(kinds.sum())).radius(self.level)
        seen = float(sums[kinds].sum())
        value = float(self.consistent[list(self.layout.groups[group].cells)][:, kinds].sum())
        return TableCount(value, min(max(seen - away, 0.0), value), max(seen + away, value))


@lru_cache(maxsize=1 << 14)  # released counts alone are kept
def _upper_bounds(one: Pair, noise: CountNoise, levels: tuple[float, ...]) -> Floats:
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
        widest = Pair(max(one.selected + away[0], 0.0), max(one.others - away[1], 0.0))
        out.append(float(upper_bounds(widest, EXACT, [0.98 * level])[0]))
    return np.array(out)


# -- gaps between groups ---------------------------------------------------------------------------


Keys = tuple[Hashable, ...]


@dataclass(frozen=True)
class Gap:
    """The widest difference, or the smallest ratio, of one rate among groups.

    `value`: as released; `low` and `high`: between them lies the population's. `pair`: the group
    with the larger rate and that with the smaller one. `named_with`: the confidence with which this
    pair is the widest in the population; None: less than one half. `others`: pairs that may be it
    instead, at the table's confidence. `undefined`: groups without a rate; then there is no value,
    and no upper end.
    """

    rate: str
    value: float | None
    low: float | None
    high: float | None
    pair: Keys | None
    named_with: float | None
    others: tuple[Keys, ...]
    undefined: Keys

    def __str__(self) -> str:
        if self.value is None:
            absent = ", ".join(map(shown, self.undefined))
            return f"{self.rate}: undefined{f' (perhaps nobody: {absent})' if absent else ''}"
        ends = f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"
        if self.pair is None:
            return f"{self.rate}: {ends}"
        sure = (
            f"the widest pair with {self.named_with:.4g} confidence"
            if self.named_with
            else "which pair is the widest is unclear"
        )
        return f"{self.rate}: {ends}, {shown(self.pair[0])} above {shown(self.pair[1])}: {sure}"


def difference(found: TableEvidence, groups: Sequence[int], name: str) -> Gap:
    """The widest difference of one rate, in the rate's own unit."""
    widest = _Widest(found, groups, name, lambda a, b: a - b)
    low = None if widest.least is None else max(widest.least, 0.0)
    return widest.told(widest.value, low, widest.most)


def ratio(found: TableEvidence, groups: Sequence[int], name: str) -> Gap:
    """The smallest ratio of one rate: the smaller over the larger, of numbers that are not
    negative."""

    def below(a: Floats, b: Floats) -> Floats:
        """Minus the ratio, which grows with the first and falls with the second."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.where(a > 0, b / a, np.inf))

    widest = _Widest(found, groups, name, below)
    value = widest.value
    value = None if value is None or math.isinf(value) else min(-value, 1.0)
    low = None if widest.most is None else min(max(-widest.most, 0.0), 1.0)
    return widest.told(value, low, None if widest.least is None else min(-widest.least, 1.0))


class _Widest:
    """The largest of f(p_a, p_b) over ordered pairs of groups; f grows with the first rate and
    falls with the second. `value` as released, and its bounds: None where a group has no rate (the
    lower one is then of those that have), or none is compared."""

    def __init__(
        self,
        found: TableEvidence,
        groups: Sequence[int],
        name: str,
        f: Callable[[Floats, Floats], Floats],
    ) -> None:
        self.found, self.name, self.f = found, name, f
        values = {group: found.value(group, name) for group in groups}
        self.undefined = tuple(group for group in groups if values[group] is None)
        self.groups = [group for group in groups if values[group] is not None]
        self.rates = np.array([values[group] for group in self.groups], np.float64)
        self.value = self.most = self.least = None
        if len(self.groups) < 2:
            return
        # Beside a whole table that holds together, by its intervals.
        half = found.level / 2.0 if found.together else found.alpha / (4.0 * len(self.groups))
        highs, lows = self._ends([half])
        self.least = float(self._pairs(lows[0], highs[0]).max())
        if not self.undefined:
            self.value = float(self._pairs(self.rates, self.rates).max())
            steps = ((half, half),) if found.together else shares(2, True, found.alpha / 2.0)
            levels = sorted({level for step in steps for level in step})
            highs, lows = self._ends(levels)
            self.most = max(
                float(self._pairs(highs[levels.index(a)], lows[levels.index(b)]).max())
                for a, b in steps
            )

    def told(self, value: float | None, low: float | None, high: float | None) -> Gap:
        """With the pair, and how sure it is. The ends are moved to the value where rounding of
        counts put it outside."""
        low = low if low is None or value is None else min(low, value)
        high = high if high is None or value is None else max(high, value)
        undefined, found = self._keys(self.undefined), (self.name, value, low, high)
        if len(self.groups) < 2:
            return Gap(*found, None, None, (), undefined)
        table = self._pairs(self.rates, self.rates)
        a, b = np.unravel_index(int(np.argmax(table)), table.shape)
        pair, named = (self.groups[a], self.groups[b]), None
        for miss in () if self.undefined else MISSES:
            # at all larger ones, too: so none need be nested in another
            if self._kept(miss) != (pair,):
                break
            named = 1.0 - miss
        others = [self._keys(one) for one in self._kept(self.found.alpha) if one != pair]
        return Gap(*found, self._keys(pair), named, tuple(others), undefined)

    def _keys(self, groups: Sequence[int]) -> Keys:
        return tuple(self.found.layout.groups[at].key for at in groups)

    def _kept(self, miss: float) -> tuple[tuple[int, int], ...]:
        """The pairs that may be the widest: no other's lower bound is above their upper one."""
        highs, lows = self._ends([miss / (2.0 * len(self.groups))])
        over = self._pairs(highs[0], lows[0]) >= self._pairs(lows[0], highs[0]).max()
        return tuple((self.groups[a], self.groups[b]) for a, b in np.argwhere(over))

    def _pairs(self, first: Floats, second: Floats) -> Floats:
        table = np.array(self.f(first[:, np.newaxis], second[np.newaxis, :]))
        np.fill_diagonal(table, -np.inf)
        return table

    def _ends(self, levels: Sequence[float]) -> tuple[Floats, Floats]:
        """Upper and lower bounds (levels, groups), each failing with at most its level."""
        highs = [self.found.highs(group, self.name, levels) for group in self.groups]
        lows = [self.found.lows(group, self.name, levels) for group in self.groups]
        return np.stack(highs, axis=1), np.stack(lows, axis=1)
