"""Measures of scores by group, from one histogram of people by group, label and bin of the score:
AUC, Kolmogorov-Smirnov distance, standardised mean difference, approval and scoring rates, and their
impact ratios, for groups of every set of columns.

Each distribution has a band: with C_k noisy people up to bin k of N, w a bound on all partial sums of
the noise, and Massart's constant in the inequality of Dvoretzky, Kiefer and Wolfowitz,

    F(k)  in  C_k / N  +-  (w / N + sqrt(log(2 / a) / (2 (N - w)))),

because the people up to k are at least C_k - w, and the others at most N - C_k + w. All that is told
is monotone in these distributions, so its ends are found at the ends of bands, and whatever is chosen
by looking (the best group, the median) holds too.

Guarantees (tests/metrics/test_metrics_scores.py):
1. All bands, and so all intervals of a table, hold together with its confidence.
2. Measures are those of scores moved to the middle of their bins; exact counts give them exactly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._types import Floats
from ..facts import Cells
from ..show.numbers import percent, printable
from ..show.parts import Column, Note, Part, Shown, Table
from ..tables import keys
from .tables import Estimate

UNITS = {
    "auc": "decimals",
    "ks_distance": "decimals",
    "standardised_mean_difference": "decimals",
    "approval_rate": "percent",
    "approval_impact_ratio": "decimals",
    "scoring_rate": "percent",
    "scoring_impact_ratio": "decimals",
}
"""Measures, and how they are shown. `scoring_rate`: above the edge that is nearest to
the median of everyone."""


UNKNOWN = Estimate(math.nan, math.nan, math.nan, 0.0)


class Noise(Protocol):
    """The law of each count's noise."""

    def walk_tail(self, length: int, walks: int, probability: float) -> float:
        """What the partial sums of so many noises exceed with at most this probability."""


class Band(NamedTuple):
    """A distribution function at the upper edge of each bin, and between which it lies."""

    value: Floats
    low: Floats
    high: Floats


def band(counts: Floats, noise: Noise, miss: float) -> Band:
    """Of counts (parts, bins), parts added up; it fails with probability at most `miss`."""
    sums = np.cumsum(counts.sum(axis=0))
    whole = float(sums[-1])
    w = noise.walk_tail(counts.size, 1, miss / 2.0)
    left = miss if w == 0.0 else miss / 2.0
    ends = np.zeros(len(sums)), np.ones(len(sums))
    if whole - w >= 1.0:
        away = w / whole + math.sqrt(math.log(2.0 / left) / (2.0 * (whole - w)))
        low = np.maximum.accumulate(np.clip(sums / whole - away, 0.0, 1.0))
        high = np.minimum.accumulate(np.clip(sums / whole + away, 0.0, 1.0)[::-1])[::-1]
        ends = low, high
    ends[0][-1] = ends[1][-1] = 1.0
    value = np.clip(sums / whole, 0.0, 1.0) if whole > 0 else np.full(len(sums), math.nan)
    return Band(np.maximum.accumulate(value), *ends)


def _means(one: Floats, of: Floats) -> float:
    """The mean of `of` under a distribution function."""
    return float(np.diff(one, prepend=0.0) @ of)


def _auc(negative: Floats, positive: Floats) -> float:
    """P(a positive has the higher score), ties half."""
    return _means(positive, (negative + np.concatenate([[0.0], negative[:-1]])) / 2.0)


def auc(negative: Band, positive: Band, size: float) -> Estimate:
    """Of two distributions: it grows with the first function, and falls with the second."""
    ends = _auc(negative.low, positive.high), _auc(negative.high, positive.low)
    return Estimate(_auc(negative.value, positive.value), *ends, size)


def ks_distance(one: Band, other: Band, size: float) -> Estimate:
    """The largest difference of two distribution functions."""
    low = max(0.0, float((one.low - other.high).max()), float((other.low - one.high).max()))
    high = max(float((one.high - other.low).max()), float((other.high - one.low).max()))
    return Estimate(float(np.abs(one.value - other.value).max()), low, high, size)


def mean_difference(one: Band, other: Band, everyone: Band, size: float) -> Estimate:
    """The difference of two means in standard deviations of everyone's scores, in whatever unit."""
    at = np.arange(len(one.value), dtype=np.float64)

    def deviation(first: Floats, second: Floats) -> float:
        return math.sqrt(max(0.0, _means(first, at**2) - _means(second, at) ** 2))

    sds = deviation(everyone.high, everyone.low), deviation(everyone.low, everyone.high)
    low = _means(one.high, at) - _means(other.low, at)
    high = _means(one.low, at) - _means(other.high, at)
    sd = deviation(everyone.value, everyone.value)
    value = (_means(one.value, at) - _means(other.value, at)) / sd if sd > 0 else math.nan

    def over(end: float, outward: bool) -> float:
        by = sds[0] if outward else sds[1]
        return end / by if by > 0.0 else math.copysign(math.inf, end)

    return Estimate(value, over(low, low < 0.0), over(high, high > 0.0), size)


def _above(one: Band, at: int, size: float) -> Estimate:
    """P(score beyond bin `at`)."""
    if at < 0:
        return Estimate(1.0, 1.0, 1.0, size)
    value, low, high = (float(1.0 - end[at]) for end in (one.value, one.high, one.low))
    return Estimate(value, low, high, size)


def _impact(rates: Sequence[Estimate], compared: Sequence[bool], own: int | None) -> list[Estimate]:
    """Each rate over the largest of those compared, or over that of the group `own`."""
    among = [rate for at, rate in enumerate(rates) if (compared[at] if own is None else at == own)]
    value, most, least = (
        max((getattr(one, end) for one in among), default=0.0) for end in ("value", "high", "low")
    )
    top = 1.0 if own is None else math.inf

    def of(rate: Estimate) -> Estimate:
        ratio = rate.value / value if value > 0.0 else math.nan
        low = rate.low / most if most > 0.0 else 0.0
        return Estimate(ratio, low, min(top, rate.high / least) if least > 0.0 else top, rate.size)

    return [of(rate) if kept else UNKNOWN for rate, kept in zip(rates, compared, strict=True)]


@dataclass(frozen=True)
class ScoreRow:
    """One group of one set of columns. `size`: people as counted; `compared`: whether it has at
    least the smallest share of people; `measures`: by name, NaN where undefined."""

    columns: tuple[str, ...]
    group: Hashable
    size: float
    compared: bool
    measures: dict[str, Estimate]


@dataclass(frozen=True)
class ScoreTable(Shown):
    """Measures of scores by group, with intervals that hold together. `privacy_`: the statement of
    the count. Made by `score_audit`."""

    rows: tuple[ScoreRow, ...]
    confidence: float
    cut: float | None
    privacy_: Any = None

    def parts(self) -> Iterator[Part]:
        """A table for each set of columns."""
        for columns, rows in itertools.groupby(self.rows, key=lambda row: row.columns):
            found = list(rows)
            names = [
                printable("everyone" if one.group is None else keys.shown(one.group))
                for one in found
            ]
            shown = (
                name + " *" * (not one.compared) for name, one in zip(names, found, strict=True)
            )
            people = Column("people", tuple(one.size for one in found), "count")
            listed = [Column("group", tuple(shown)), people]
            for name, unit in UNITS.items():
                ends = [one.measures[name] for one in found if name in one.measures]
                value, low, high = (
                    tuple(getattr(e, at) for e in ends) for at in ("value", "low", "high")
                )
                listed += [Column(name, value, unit, low, high, "-")] if ends else []
            yield Table(tuple(listed), " x ".join(columns) or "Everyone")
        yield Note(f"All intervals hold together with {percent(self.confidence)} confidence.")
        if not all(row.compared for row in self.rows):
            yield Note("*: too small a share of people, not compared.")


def _key(cells: Cells, level: Sequence[int], at: Sequence[int]) -> Hashable:
    found = tuple(cells.columns[j][k] for j, k in zip(level, at, strict=True))
    return found[0] if len(found) == 1 else found


def score_rows(
    counts: Floats,
    cells: Cells,
    cut: int | None,
    noise: Noise,
    miss: float,
    *,
    reference: Hashable = None,
    smallest: float = 0.0,
) -> tuple[ScoreRow, ...]:
    """Of counts (cells, labels, bins), the favourable label last; of one label no AUC. `cut`: the
    first bin that is approved."""
    columns = range(len(cells.columns))
    places = np.stack(np.unravel_index(np.arange(cells.count), cells.sizes), axis=1)
    groups = [
        (level, key, (places[:, list(level)] == key).all(axis=1))
        for n in range(len(columns) + 1)
        for level in itertools.combinations(columns, n)
        for key in itertools.product(*(range(cells.sizes[j]) for j in level))
    ]
    bands, sizes = list[list[Band]](), [float(counts[inside].sum()) for _, _, inside in groups]
    for _, _, inside in groups:  # of all people of the group, and of each label
        parts = [counts[inside].reshape(-1, counts.shape[-1]), *np.moveaxis(counts[inside], 1, 0)]
        bands.append([band(part, noise, miss / (3 * len(groups))) for part in parts])
    everyone, out = bands[0][0], list[ScoreRow]()
    median = int(np.argmin(np.abs(everyone.value[:-1] - 0.5)))
    steps = np.arange(counts.shape[-1], dtype=np.float64)
    for level, of_level in itertools.groupby(range(len(groups)), key=lambda i: groups[i][0]):
        own, names = list(of_level), tuple(cells.names[j] for j in level)
        shown = [_key(cells, level, groups[i][1]) for i in own]
        kept = [sizes[i] >= smallest * sizes[0] for i in own]
        by = shown.index(reference) if level and reference in shown else None
        best = max(range(len(own)), key=lambda n: (kept[n], _means(bands[own[n]][0].value, steps)))
        against = bands[own[best if by is None else by]][0]
        rates = {"scoring": [_above(bands[i][0], median, sizes[i]) for i in own]}
        if cut is not None:
            rates["approval"] = [_above(bands[i][0], cut - 1, sizes[i]) for i in own]
        ratios = {name: _impact(found, kept, by) for name, found in rates.items()}
        for n, i in enumerate(own):
            all_of_it, *by_label = bands[i]
            measures = {f"{name}_rate": found[n] for name, found in rates.items()}
            if len(by_label) == 2:
                measures["auc"] = auc(by_label[0], by_label[1], sizes[i])
                measures["ks_distance"] = ks_distance(by_label[0], by_label[1], sizes[i])
            if level:
                apart = mean_difference(all_of_it, against, everyone, sizes[i])
                measures["standardised_mean_difference"] = apart
                measures |= {f"{name}_impact_ratio": found[n] for name, found in ratios.items()}
            out.append(ScoreRow(names, shown[n] if level else None, sizes[i], kept[n], measures))
    return tuple(out)
