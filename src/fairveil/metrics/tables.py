"""The group table: counts beside rates, an interval for each rate, small groups flagged, undefined
stays undefined."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from .. import _checks, _html
from .._aligned import aligned
from .._types import ColumnsLike, Floats
from ..errors import InputError
from ..facts import Cells
from ..fairness.gap_notion import Outcome, positive_class
from ..tables import keys
from ..tables.frames import pandas_for
from .histograms import cell_counts
from .inputs import Decisions, read_decisions
from .measures import outcome_rate, tally


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
    few rows for its rates to mean much."""

    group: Hashable
    rows: int
    weight: float
    labels: tuple[int, ...]
    rates: dict[str, Estimate]
    small: bool


@dataclass(frozen=True)
class GroupTable:
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

    def to_json(self) -> str:
        """The table as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_pandas(self) -> Any:
        """A pandas frame: one line a group, values only."""
        pd = pandas_for("to_pandas")
        lines = []
        for row in self.rows:
            counts = {
                f"label[{keys.shown(k)}]": n for k, n in zip(self.classes, row.labels, strict=True)
            }
            values = {name: estimate.value for name, estimate in row.rates.items()}
            lines.append(
                {"group": row.group, "rows": row.rows, "small": row.small} | counts | values
            )
        return pd.DataFrame(lines)

    def _lines(self) -> list[list[str]]:
        """The head and a line a group, in words."""
        if self.positive is None:
            shown = [f"selection_rate[{keys.shown(k)}]" for k in self.classes] + ["accuracy"]
        else:
            named = ("selection_rate", "true_positive_rate", "false_positive_rate")
            shown = [f"{name}[{keys.shown(self.positive)}]" for name in named] + ["accuracy"]
        head = [
            "group",
            "rows",
            *(f"label {keys.shown(k)}" for k in self.classes),
            *(name.replace("_", " ") for name in shown),
        ]
        lines = [head]
        for row in (*self.rows, self.overall):
            title = ("everyone" if row is self.overall else keys.shown(row.group)) + (
                " *" if row.small else ""
            )
            lines.append(
                [
                    title,
                    str(row.rows),
                    *map(str, row.labels),
                    *(_percent(row.rates[name]) for name in shown),
                ]
            )
        return lines

    def _notes(self) -> list[str]:
        notes = [f"Intervals: {self.confidence:.0%}, Wilson. '-': undefined, no rows."]
        if any(row.small for row in self.rows):
            notes.append(f"*: fewer than {self.small_below} rows.")
        return notes

    def _repr_html_(self) -> str:
        head, *lines = self._lines()
        return _html.table(head, lines) + "".join(map(_html.paragraph, self._notes()))

    def __str__(self) -> str:
        return "\n".join([*aligned(self._lines(), right_from=1), *self._notes()])

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
    small = _checks.whole(small_below=small_below)
    chosen = (
        positive_class(positive, read.classes)
        if positive is not None or len(read.classes) == 2
        else None
    )
    counts, histogram = tally(read)
    rows, squares = _plain_and_squared(read, counts)
    first = slice(0, read.cells.sizes[0]) if read.cells.mode == "marginal" else slice(None)
    everyone = tuple(array[first].sum(axis=0) for array in (counts, histogram, rows, squares))
    lines = [
        _line(key, read.classes, (counts[g], histogram[g], rows[g], squares[g]), confidence, small)
        for g, key in enumerate(read.cells.keys)
        if rows[g].sum() > 0 or isinstance(groups, Cells)
    ]
    overall = _line(None, read.classes, everyone, confidence, small)
    return GroupTable(tuple(lines), overall, read.classes, chosen, confidence, small)


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


def _plain_and_squared(read: Decisions, counts: Floats) -> tuple[Floats, Floats]:
    """How many rows, and the sum of squared weights, by cell and label."""
    if read.weights is None:
        return counts, counts
    shape = (*counts.shape, 1)
    return cell_counts(read.labels, read.cell_ids, shape), cell_counts(
        read.labels, read.cell_ids, shape, read.weights**2
    )


def _line(
    key: Hashable,
    classes: tuple[Hashable, ...],
    totals: tuple[Floats, ...],
    confidence: float,
    small: int,
) -> GroupRow:
    counts, histogram, rows, squares = totals

    def estimate(outcome: Outcome) -> Estimate:
        given = (
            slice(None) if outcome.labels is None else [classes.index(y) for y in outcome.labels]
        )
        weight, square = float(counts[given].sum()), float(squares[given].sum())
        effective = weight * weight / square if square > 0 else 0.0
        value = float(outcome_rate(outcome, classes, counts, histogram))
        return Estimate(value, *wilson(value, effective, confidence), float(rows[given].sum()))

    rates = {}
    for k in classes:
        others = tuple(y for y in classes if y != k)
        rates[f"selection_rate[{keys.shown(k)}]"] = estimate(Outcome(k))
        right = estimate(Outcome(k, (k,)))
        rates[f"true_positive_rate[{keys.shown(k)}]"] = right
        rates[f"false_negative_rate[{keys.shown(k)}]"] = _complement(right)
        if others:
            rates[f"false_positive_rate[{keys.shown(k)}]"] = estimate(Outcome(k, others))
    wrong = estimate(Outcome(wrong=True))
    rates["error"], rates["accuracy"] = wrong, _complement(wrong)
    number = int(rows.sum())
    return GroupRow(
        key, number, float(counts.sum()), tuple(int(n) for n in rows), rates, number < small
    )


def _complement(rate: Estimate) -> Estimate:
    return Estimate(1 - rate.value, 1 - rate.high, 1 - rate.low, rate.size)


def _percent(rate: Estimate) -> str:
    if math.isnan(rate.value):
        return "-"
    return f"{100 * rate.value:.1f}% ({100 * rate.low:.1f}-{100 * rate.high:.1f})"
