"""The group table: counts beside rates, an interval for each rate, small groups flagged, undefined
stays undefined; how far apart groups are in each rate, and whether decisions are better than one
answer for everybody.

    gap of a rate = largest difference of two groups' rates

The interval of a difference is Newcombe's, of two Wilson intervals; those of the m pairs of groups
are made at level 1 - (1 - confidence) / m each (Bonferroni), so that the largest difference lies
between the largest lower and the largest upper end.

The best constant is compared row by row: of n rows, b are wrong by the model alone and a by the
constant alone,

    d = (b - a) / n,  with Bonett and Price's interval of a difference of paired proportions (2012),
    one row added to each.

`a` and `b` are made of the table's own rates: a constant k errs where the label is not k.

A constraint on rates is any sum of rates of separate groups, such as a difference p - q. Newcombe's
interval of it adds the squared distances to the ends of Wilson's that lie on the same side; of m
constraints each is covered at level 1 - (1 - confidence) / m (Bonferroni; one and its negative
count once), so the largest lies between the largest lower and the largest upper end.

Guarantees (tests/metrics/test_metrics_compared.py):
1. Intervals cover at their level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import ColumnsLike, Floats
from .._verdicts import UNCLEAR
from ..errors import InputError
from ..facts import Cells
from ..fairness.notions import Outcome, positive_class
from ..fairness.systems import ConstraintSystem
from ..show.charts import Axis, Row, Rows
from ..show.numbers import percent, printable
from ..show.parts import Column, Note, Part, Shown, Table
from ..show.pictures import draw_on
from ..tables import keys
from ..tables.frames import pandas_for
from .histograms import cell_counts
from .inputs import Decisions, read_decisions
from .measures import outcome_rate, tally

MOST_DRAWN, MOST_PICTURES = 40, 3
"""Of more groups a picture shows those with the most rows; the table has all."""
KINDS = ("selection_rate", "true_positive_rate", "false_positive_rate", "error")
MOST_GROUPS = 60
"""Of more groups those with the smallest and the largest rates are compared, at the level of all
pairs."""

SAME = "the same"
Metric = Callable[[Any, Any], float]


@dataclass(frozen=True)
class Estimate:
    """A rate out of `size` rows, with its interval; all NaN when there are no rows."""

    value: float
    low: float
    high: float
    size: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; undefined is null."""
        defined = not math.isnan(self.value)
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {name: number if defined else None for name, number in numbers.items()} | {
            "size": self.size
        }


@dataclass(frozen=True)
class GroupRow:
    """One group. `group` is its key (None for everyone), `rows` how many, `weight` their total
    weight, `labels` how many of each class, `rates` its rates by name, `small` whether it has too
    few rows for its rates to mean much. Metrics of the user's are among the rates, without an
    interval."""

    group: Hashable
    rows: int
    weight: float
    labels: tuple[int, ...]
    rates: dict[str, Estimate]
    small: bool

    @property
    def name(self) -> str:
        """The group as a reader wants it."""
        return "everyone" if self.group is None else printable(keys.shown(self.group))


@dataclass(frozen=True)
class GroupTable(Shown):
    """Exact counts and rates by group. Computed from the rows given: publishing it is not private.

    Rates: `selection_rate[k]` = P(prediction = k), `true_positive_rate[k]` = P(prediction = k |
    label = k), `false_positive_rate[k]` = P(prediction = k | label not k), `false_negative_rate[k]`
    = 1 - true_positive_rate[k], `accuracy` and `error`. Intervals are Wilson's at level
    `confidence`, each on its own (with weights, for Kish's effective number of rows; for
    probabilities conservative).
    """

    rows: tuple[GroupRow, ...]
    overall: GroupRow
    classes: tuple[Hashable, ...]
    positive: Hashable
    confidence: float
    small_below: int
    metrics: tuple[str, ...] = ()

    def __getitem__(self, group: Hashable) -> GroupRow:
        for row in self.rows:
            if row.group == group:
                return row
        known = [row.group for row in self.rows]
        raise InputError.expected(
            "a known group", of="group", got=group, remedy=f"Known groups: {known}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; undefined is null."""
        return {
            "classes": [keys.to_json(k, of="classes") for k in self.classes],
            "confidence": self.confidence,
            "small_below": self.small_below,
            "overall": self._row(self.overall),
            "groups": [self._row(row) for row in self.rows],
        }

    def to_frame(self) -> Any:
        """A pandas frame: one line a group, values only."""
        named = [f"label[{keys.shown(k)}]" for k in self.classes]
        lines = [
            {"group": row.group, "rows": row.rows, "small": row.small}
            | dict(zip(named, row.labels, strict=True))
            | {name: estimate.value for name, estimate in row.rates.items()}
            for row in self.rows
        ]
        return pandas_for("to_frame").DataFrame(lines)

    def gaps(self, required: Collection[str] = ()) -> tuple[OtherGap, ...]:
        """How far apart groups are in each rate, the largest gap first.

        Parameters
        ----------
        required : collection of str, default=()
            Kinds of rates that were bounded, such as ``"selection_rate"``.

        Returns
        -------
        tuple of OtherGap
            A gap a rate, with its interval; none where fewer than two groups have one.
        """
        return gaps_of(self, required)

    def against_constant(self) -> AgainstConstant | None:
        """Compare with the one answer that is wrong least often on these very rows.

        Returns
        -------
        AgainstConstant or None
            The difference of errors, with its interval; None with weights, or without rows.
        """
        return against_constant(self)

    @property
    def main(self) -> tuple[str, ...]:
        """The rates that are shown: of the positive class where there is one, else every class's
        selection rate; then the error."""
        if self.positive is None:
            return (*(f"selection_rate[{keys.shown(k)}]" for k in self.classes), "error")
        of = keys.shown(self.positive)
        kinds = ("selection_rate", "true_positive_rate", "false_positive_rate")
        return (*(f"{kind}[{of}]" for kind in kinds), "error")

    def parts(self) -> Iterator[Part]:
        """Counts beside rates, a line a group, the last one everyone's; a picture a rate."""
        rows = (*self.rows, self.overall)
        columns = [
            Column("group", tuple(row.name + " *" * row.small for row in rows)),
            Column("rows", tuple(row.rows for row in rows), "count"),
        ]
        columns += [
            Column(
                f"label {printable(keys.shown(k))}", tuple(row.labels[at] for row in rows), "count"
            )
            for at, k in enumerate(self.classes)
        ]
        for name in self.main:
            found = [row.rates[name] for row in rows]
            values, low, high = (
                tuple(getattr(one, end) for one in found) for end in ("value", "low", "high")
            )
            columns.append(Column(rate_words(name).lower(), values, "percent", low, high, "-"))
        for name in self.metrics:
            values = tuple(row.rates[name].value for row in rows)
            columns.append(Column(name, values, "weight", missing="-"))
        yield Table(tuple(columns), tail=True)
        few = f" *: fewer than {self.small_below} rows." if any(row.small for row in rows) else ""
        yield Note(f"{percent(self.confidence)} intervals (Wilson). -: undefined, no rows.{few}")
        yield from map(self.chart, self._drawn)

    def chart(self, rate: str) -> Rows:
        """The picture of one rate.

        Parameters
        ----------
        rate : str
            Name of the rate, such as ``"error"`` or ``"selection_rate[yes]"``.

        Returns
        -------
        Rows
            A row a group, the last one everyone's; of many groups those with the most rows.
        """
        if rate not in self.overall.rates:
            known = tuple(self.overall.rates)
            raise InputError.expected(
                "a rate of this table",
                of="rate",
                got=rate,
                remedy=f"Known: {', '.join(known)}.",
                among=known,
            )
        largest = sorted(self.rows, key=lambda row: -row.rows)[:MOST_DRAWN]
        rows = (*(row for row in self.rows if row in largest), self.overall)
        drawn = tuple(Row(row.name, *_ends(row.rates[rate]), hollow=row.small) for row in rows)
        name = rate_words(rate)
        title = f"{name} by group" + (
            f", the {MOST_DRAWN} largest" if len(largest) < len(self.rows) else ""
        )
        return Rows(title, Axis(name, "percent"), drawn, confidence=self.confidence, half=True)

    def plot(self, ax: object = None, rate: str | None = None) -> Any:
        """Draw a rate of each group with its interval; marks of small groups are hollow.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.
        rate : str, default=None
            Such as ``"error"`` or ``"selection_rate[yes]"``. None: the selection rate of the
            positive class.

        Returns
        -------
        matplotlib axes
            The axes.
        """
        return draw_on(self.chart(self.main[0] if rate is None else rate), ax)

    @property
    def _drawn(self) -> tuple[str, ...]:
        """The rates that have a picture: of more than two classes the selection rates in which groups
        differ most."""

        def spread(name: str) -> float:
            values = [row.rates[name].value for row in self.rows]
            known = [value for value in values if not math.isnan(value)]
            return max(known) - min(known) if known else 0.0

        *rates, last = self.main
        if self.positive is None:
            rates = sorted(rates, key=spread, reverse=True)[:MOST_PICTURES]
        return (*rates, last)

    def _row(self, row: GroupRow) -> dict[str, Any]:
        return {
            "group": keys.to_json(row.group, of="group"),
            "rows": row.rows,
            "weight": row.weight,
            "labels": list(row.labels),
            "small": row.small,
            "rates": {name: estimate.to_dict() for name, estimate in row.rates.items()},
        }


def group_table(
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    *,
    groups: Cells | str = "product",
    classes: Sequence[Hashable] | None = None,
    positive: Hashable = None,
    sample_weight: ColumnsLike = None,
    missing: Hashable = None,
    confidence: float = 0.95,
    small_below: int = 30,
    metrics: Mapping[str, Metric] | None = None,
) -> GroupTable:
    """Exact counts and rates of decisions in every group and in all.

    It reads rows without noise: no guarantee covers it. Groups without a row are listed only when
    declared (`groups=Cells(...)`).

    Parameters
    ----------
    y : array
        Labels.
    prediction : array
        Decisions, one class a row, or probabilities of shape (rows, classes): rates are then
        expected ones.
    sensitive_features : array or table
        Groups: one column or several.
    groups : {"product", "marginal"} or Cells, default="product"
        How several sensitive columns make groups, or the declared groups.
    classes : sequence, default=None
        Classes, in their order. None: those that occur.
    positive : label, default=None
        Class that the printed table shows. None: the second of two.
    sample_weight : array, default=None
        Weight of each row. None: 1.
    missing : label, default=None
        Group that rows with a missing value are counted in. None: a missing value is an error.
    confidence : float, default=0.95
        Confidence of the intervals.
    small_below : int, default=30
        Groups with fewer rows are flagged.

    metrics : dict of str to function, default=None
        Further columns: each function takes the labels and the predictions of a group's rows, as
        scikit-learn's metrics do, and returns a number. They see no weights.

    Returns
    -------
    GroupTable
        One line a group, by key; print it.

    See Also
    --------
    private_audit : The same with privacy.

    Examples
    --------
    >>> table = group_table([0, 1, 0, 1], [1, 1, 0, 1], ["f", "f", "m", "m"], small_below=1)
    >>> table["m"].rows, table["m"].rates["selection_rate[1]"].value
    (2, 0.5)
    """
    if y is None:
        raise InputError.expected("labels", of="y", got=None, remedy="Pass one label a row.")
    read = read_decisions(
        y,
        prediction,
        sensitive_features,
        classes=classes,
        groups=groups,
        missing=missing,
        sample_weight=sample_weight,
    )
    confidence = _checks.fraction(confidence=confidence, low_open=True, high_open=True)
    small, asked = _checks.whole(small_below=small_below), dict(metrics or {})
    chosen = None
    if positive is not None or len(read.classes) == 2:
        chosen = positive_class(positive, read.classes)
    counts, histogram = tally(read)
    rows = squares = counts
    if read.weights is not None:
        where = (read.labels, read.cell_ids, (*counts.shape, 1))
        rows, squares = cell_counts(*where), cell_counts(*where, read.weights**2)
    sums = (counts, histogram, rows, squares)
    first = slice(0, read.cells.sizes[0]) if read.cells.mode == "marginal" else slice(None)

    def line(key: Hashable, totals: Sequence[Floats], group: int | None) -> GroupRow:
        found = _rates(read.classes, totals, confidence)
        for name, metric in asked.items():
            found[name] = _measured(metric, read, group)
        number, weight = int(totals[2].sum()), float(totals[0].sum())
        labels = tuple(int(n) for n in totals[2])
        return GroupRow(key, number, weight, labels, found, number < small)

    lines = tuple(
        line(key, [array[g] for array in sums], g)
        for g, key in enumerate(read.cells.keys)
        if rows[g].sum() > 0 or isinstance(groups, Cells)
    )
    overall = line(None, [array[first].sum(axis=0) for array in sums], None)
    return GroupTable(lines, overall, read.classes, chosen, confidence, small, tuple(asked))


def wilson(value: float, size: float, confidence: float) -> tuple[float, float]:
    """Wilson's score interval of a proportion seen in `size` independent rows; NaN for none.

    >>> low, high = wilson(0.5, 100, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.4038, 0.5962)
    """
    if math.isnan(value) or size <= 0:
        return math.nan, math.nan
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    centre = (value + z * z / (2 * size)) / (1 + z * z / size)
    half = (
        z
        / (1 + z * z / size)
        * math.sqrt(max(value * (1 - value), 0.0) / size + z * z / (4 * size * size))
    )
    return max(0.0, min(centre - half, value)), min(1.0, max(centre + half, value))


def _rates(
    classes: tuple[Hashable, ...], totals: Sequence[Floats], confidence: float
) -> dict[str, Estimate]:
    counts, histogram, rows, squares = totals

    def estimate(outcome: Outcome) -> Estimate:
        labels = outcome.labels
        given = slice(None) if labels is None else [classes.index(y) for y in labels]
        weight, square = float(counts[given].sum()), float(squares[given].sum())
        effective = weight * weight / square if square > 0 else 0.0
        value = float(outcome_rate(outcome, classes, counts, histogram))
        return Estimate(value, *wilson(value, effective, confidence), float(rows[given].sum()))

    rates = {}
    for k in classes:
        others, shown = tuple(y for y in classes if y != k), f"[{keys.shown(k)}]"
        rates[f"selection_rate{shown}"] = estimate(Outcome(k))
        right = rates[f"true_positive_rate{shown}"] = estimate(Outcome(k, (k,)))
        rates[f"false_negative_rate{shown}"] = _complement(right)
        if others:
            rates[f"false_positive_rate{shown}"] = estimate(Outcome(k, others))
    wrong = rates["error"] = estimate(Outcome(wrong=True))
    rates["accuracy"] = _complement(wrong)
    return rates


def _measured(metric: Metric, read: Decisions, group: int | None) -> Estimate:
    """A metric of the user's on the rows of a group; None: of everyone."""
    inside = np.ones(read.cell_ids.shape[1], bool)
    if group is not None:
        inside = (read.cell_ids == group).any(axis=0)
    classes, size = np.array(read.classes), float(inside.sum())
    assert read.labels is not None
    if not size:
        return Estimate(math.nan, math.nan, math.nan, 0.0)
    given = read.probabilities if read.decisions is None else classes[read.decisions]
    assert given is not None
    value = float(metric(classes[read.labels[inside]], given[inside]))
    return Estimate(value, math.nan, math.nan, size)


def _complement(rate: Estimate) -> Estimate:
    return Estimate(1 - rate.value, 1 - rate.high, 1 - rate.low, rate.size)


def rate_words(rate: str) -> str:
    """
    >>> rate_words("selection_rate[>50K]"), rate_words("error")
    ('Selection rate of >50K', 'Error')
    """
    name, bracket, rest = rate.partition("[")
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:] + (f" of {printable(rest[:-1])}" if bracket else "")


def _ends(rate: Estimate) -> tuple[float | None, float | None, float | None]:
    if math.isnan(rate.value):
        return None, None, None
    return rate.value, rate.low, rate.high


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

    def words(self, *, short: bool = False) -> str:
        """The rate in words; `short`: without the class that it is of."""
        return rate_words(self.rate.partition("[")[0] if short else self.rate)


def gaps_of(table: GroupTable, required: Collection[str] = ()) -> tuple[OtherGap, ...]:
    """The gap of every rate that two groups or more have, the largest first. `required`: kinds of
    rates that were bounded.

    Of two classes the positive one's rates, of more every class's. Small groups count: their
    intervals say how little is known.
    """
    classes = table.classes if table.positive is None else (table.positive,)
    names = [f"{kind}[{keys.shown(k)}]" for kind in KINDS[:3] for k in classes] + ["error"]
    found = [_gap(table, name, name.partition("[")[0] in required) for name in names]
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
    ends = {id(row): _newcombe(row.rates[name], confidence) for row in ordered}
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


def _newcombe(rate: Estimate, confidence: float) -> tuple[float, float]:
    return wilson(rate.value, rate.size, confidence)


@dataclass(frozen=True)
class AgainstConstant:
    """A model and the best constant on the same rows: `answer`, its `error`, and the model's error
    minus that, with its interval. `verdict`: "better", "worse", "inconclusive", or "the same": it
    decides every row as the constant does."""

    answer: str
    error: float
    difference: float
    low: float
    high: float
    verdict: str


def against_constant(table: GroupTable) -> AgainstConstant | None:
    """Held against the constant that errs least on these very rows; None where rows have weights,
    or there are none."""
    everyone = table.overall
    rows = everyone.rows
    error = everyone.rates["error"].value
    if not rows or math.isnan(error) or abs(everyone.weight - rows) > 1e-9 * rows:
        return None
    best = max(range(len(table.classes)), key=lambda at: everyone.labels[at])
    right = [
        0.0 if not count else count * everyone.rates[_right(table, at)].value
        for at, count in enumerate(everyone.labels)
    ]
    alone = everyone.labels[best] - right[best]  # wrong by the model alone
    saved = sum(right) - right[best]  # wrong by the constant alone
    constant = 1.0 - everyone.labels[best] / rows
    answer = printable(keys.shown(table.classes[best]))
    if alone + saved < 1e-9 * rows:
        return AgainstConstant(answer, constant, 0.0, 0.0, 0.0, SAME)
    low, high = _paired(alone, saved, rows, table.confidence)
    difference = (alone - saved) / rows
    verdict = "worse" if low > 0 else "better" if high < 0 else UNCLEAR
    return AgainstConstant(answer, constant, difference, low, high, verdict)


def _right(table: GroupTable, at: int) -> str:
    return f"true_positive_rate[{keys.shown(table.classes[at])}]"


def _paired(alone: float, saved: float, rows: int, confidence: float) -> tuple[float, float]:
    """The interval of (alone - saved) / rows."""
    p, q, size = (alone + 1) / (rows + 2), (saved + 1) / (rows + 2), rows + 2
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(
        max(p + q - (p - q) ** 2, 0.0) / size
    )
    return max(-1.0, p - q - reach), min(1.0, p - q + reach)


def largest(
    system: ConstraintSystem,
    counts: npt.ArrayLike,
    histogram: npt.ArrayLike,
    confidence: float,
    *,
    chosen: npt.NDArray[np.bool_] | None = None,
) -> tuple[float, float, float]:
    """(value, low, high) of the largest of the constraints, or of the `chosen` ones; not below 0,
    NaN where one is undefined.

    `counts` (cells, labels) and `histogram` (cells, labels, decisions) are exact numbers of
    independent rows.
    """
    sizes = (system.members @ np.ravel(counts))[system.event_of]
    hits = system.numerators @ np.ravel(histogram)
    rates = np.where(sizes > 0, hits, np.nan) / np.where(sizes > 0, sizes, 1.0)
    rows = system.coefficients.toarray()
    rows = rows if chosen is None else rows[chosen]
    # one constraint and its negative are the same
    apart = len({max(row.tobytes(), (0.0 - row).tobytes()) for row in rows + 0.0})
    level = 1.0 - (1.0 - confidence) / max(1, apart)
    ends = np.array([wilson(rate, size, level) for rate, size in zip(rates, sizes, strict=True)])
    found = [_combined(row, rates, ends) for row in rows]
    if not found or any(math.isnan(value) for value, _, _ in found):
        return math.nan, math.nan, math.nan
    value, low, high = (float(max(max(one[at] for one in found), 0.0)) for at in range(3))
    return value, low, high


def _combined(row: Floats, rates: Floats, ends: Floats) -> tuple[float, float, float]:
    """Value and interval of sum coefficient x rate: the squared distances to the ends that lie on
    the same side add up."""
    value = low = high = 0.0
    for at in np.flatnonzero(row):
        coefficient, rate, (below, above) = row[at], rates[at], ends[at]
        value += coefficient * rate
        down, up = coefficient * (rate - below), coefficient * (above - rate)
        low, high = (
            low + (down if coefficient > 0 else up) ** 2,
            high + (up if coefficient > 0 else down) ** 2,
        )
    return value, value - math.sqrt(low), value + math.sqrt(high)
