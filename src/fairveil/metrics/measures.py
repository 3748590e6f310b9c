"""Exact measures of decisions: gaps between groups, and audits of a notion. Undefined is NaN, never
0.

`prediction` holds decisions (one class a row), or probabilities of shape (rows, classes) in the
order of `classes`: the rates are then the expected ones of a randomised model. Several sensitive
columns make product or marginal groups.

A gap is the largest difference over outcomes and pairs of groups, or of a group against the rest
(`compare=`). Compared are the groups that the data hold (all declared ones, when `groups` is
`Cells`) and the labels that occur. When a rate that should be compared is undefined, because a
group has no row with that label, the gap is NaN: it is not known. `undefined="skip"` leaves such
rates out instead. One group alone has no gap: NaN.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np

from .. import _checks
from .._types import ColumnsLike, Floats
from ..errors import InputError
from ..facts import Cells
from ..fairness.notions import (
    COMPARISONS,
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    FalsePositiveRateParity,
    GapNotion,
    Grouping,
    Notion,
    Outcome,
)
from ..fairness.systems import resolve
from ..tables.columns import read_numbers, read_weights, same_length
from .histograms import cell_counts, hard_histogram, soft_histogram
from .inputs import Decisions, read_decisions, read_groups


class Options(TypedDict, total=False):
    """How a gap is measured; see the module. `missing` is the group that rows with a missing value
    are counted in."""

    groups: Cells | str
    compare: str
    classes: Sequence[Hashable] | None
    sample_weight: Any
    missing: Hashable
    undefined: str


def demographic_parity_gap(
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    **options: Unpack[Options],
) -> float:
    """Largest difference between two groups' rates of one class, on these rows, exactly.

    max over classes k and groups of |P(prediction = k | a) - P(prediction = k | b)|, a share of 1.
    `y` may be None.

    Parameters
    ----------
    y : array
        Labels.
    prediction : array
        Decisions, one class a row, or probabilities of shape (rows, classes): rates are then
        expected ones.
    sensitive_features : array or table
        Groups: one column or several.
    **options
        ``groups``, ``compare``, ``classes``, ``sample_weight``, ``missing`` and ``undefined``; see
        `fairveil.fairness`.

    Returns
    -------
    float
        The gap; NaN where a rate that should be compared is undefined.

    See Also
    --------
    DemographicParity : The constraint.

    Examples
    --------
    >>> demographic_parity_gap([0, 1, 0, 1], [1, 1, 0, 1], ["f", "f", "m", "m"])
    0.5
    """
    return _gap(DemographicParity(None), y, prediction, sensitive_features, options)


def equalized_odds_gap(
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    **options: Unpack[Options],
) -> float:
    """Largest difference between two groups' rates of one class given the label, exactly.

    max over labels, classes k and groups of |P(prediction = k | label, a) - P(prediction = k |
    label, b)|, a share of 1.

    Parameters
    ----------
    y : array
        Labels.
    prediction : array
        Decisions, one class a row, or probabilities of shape (rows, classes): rates are then
        expected ones.
    sensitive_features : array or table
        Groups: one column or several.
    **options
        ``groups``, ``compare``, ``classes``, ``sample_weight``, ``missing`` and ``undefined``; see
        `fairveil.fairness`.

    Returns
    -------
    float
        The gap; NaN where a rate that should be compared is undefined.

    See Also
    --------
    EqualizedOdds : The constraint.

    Examples
    --------
    >>> equalized_odds_gap([0, 1, 0, 1], [0, 1, 1, 1], ["f", "f", "m", "m"])
    1.0
    """
    return _gap(EqualizedOdds(None), y, prediction, sensitive_features, options)


def equal_opportunity_gap(
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    *,
    positive: Hashable = None,
    **options: Unpack[Options],
) -> float:
    """The largest difference of true positive rates. `positive` is needed for more than two
    classes, else the second."""
    notion = EqualOpportunity(None, positive=positive)
    return _gap(notion, y, prediction, sensitive_features, options)


def false_positive_rate_gap(
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    *,
    positive: Hashable = None,
    **options: Unpack[Options],
) -> float:
    """The largest difference of false positive rates. `positive` as for `equal_opportunity_gap`."""
    notion = FalsePositiveRateParity(None, positive=positive)
    return _gap(notion, y, prediction, sensitive_features, options)


def error_rate_gap(
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    **options: Unpack[Options],
) -> float:
    """The largest difference of error rates."""
    return _gap(ErrorRateParity(None), y, prediction, sensitive_features, options)


@dataclass(frozen=True)
class Audit:
    """Each constraint of a notion on given predictions: its name, value (NaN: undefined), bound and
    whether it holds."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    bounds: tuple[float, ...]
    tolerance: float

    @property
    def satisfied(self) -> tuple[bool | None, ...]:
        """True, False, or None where the value is undefined."""
        checked = zip(self.values, self.bounds, strict=True)
        within = self.tolerance
        return tuple(None if math.isnan(v) else v <= bound + within for v, bound in checked)

    @property
    def holds(self) -> bool | None:
        """Whether all hold: False if one is broken, else None if one is undefined, else True."""
        found = self.satisfied
        return False if False in found else None if None in found else True

    @property
    def worst(self) -> int | None:
        """Which constraint exceeds its bound most; None if none is defined."""
        defined = [j for j, value in enumerate(self.values) if not math.isnan(value)]
        return max(defined, key=lambda j: self.values[j] - self.bounds[j]) if defined else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; undefined is null."""
        values = [None if math.isnan(value) else value for value in self.values]
        names = ("name", "value", "bound", "satisfied")
        lines = zip(self.names, values, self.bounds, self.satisfied, strict=True)
        constraints = [dict(zip(names, line, strict=True)) for line in lines]
        return {"holds": self.holds, "constraints": constraints}


def audit(
    notion: Notion | Sequence[Notion],
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    *,
    groups: Cells | None = None,
    classes: Sequence[Hashable] | None = None,
    sample_weight: ColumnsLike = None,
    missing: Hashable = None,
    tolerance: float = 1e-9,
) -> Audit:
    """Measure one notion or several on predictions. Groups are the notion's own; `groups` declares
    which exist. Of a squared loss one column of numbers is a regression's prediction."""
    tolerance = _checks.non_negative(tolerance=tolerance)
    loss = notion.loss if isinstance(notion, BoundedGroupLoss) else "zero_one"
    declared: Any = {"groups": groups or "product", "missing": missing}
    if loss == "squared" and np.ndim(prediction) == 1:  # type: ignore[arg-type]
        numbers, predicted = read_numbers(y, "y"), read_numbers(prediction, "prediction")
        cells, codes = read_groups(sensitive_features, len(predicted), **declared)
        weights = read_weights(sample_weight, len(predicted))
        same_length({"y": len(numbers), "prediction": len(predicted)})
        losses, ids = (numbers - predicted) ** 2, cells.ids(codes)
    else:
        read = read_decisions(
            y,
            prediction,
            sensitive_features,
            classes=classes,
            sample_weight=sample_weight,
            **declared,
        )
        if loss == "zero_one":
            system = resolve(notion, read.cells, read.classes)
            system = system if read.labels is not None else system.without_labels()
            counts, histogram = tally(read)
            values = system.exact_values(histogram, counts)
            bounds = tuple(system.bounds.tolist())
            return Audit(system.names, tuple(values.tolist()), bounds, tolerance)
        cells, ids, weights = read.cells, read.cell_ids, read.weights
        losses = _losses(loss, read)
    assert isinstance(notion, BoundedGroupLoss)
    grouping, shape = Grouping.of(cells, notion.groups), (cells.count, 1, 1)
    bound = math.inf if notion.max_loss is None else notion.max_loss
    totals = cell_counts(None, ids, shape, weights)[:, 0]
    sums = cell_counts(None, ids, shape, losses if weights is None else losses * weights)[:, 0]
    with np.errstate(invalid="ignore"):  # a group without rows has no mean
        values = (grouping.members @ sums) / (grouping.members @ totals)
    keys = range(len(grouping.keys))
    names = [f"mean {loss} loss of group {grouping.shown(g)} <= {bound:g}" for g in keys]
    return Audit(tuple(names), tuple(values.tolist()), (bound,) * len(names), tolerance)


def _losses(loss: str, read: Decisions) -> Floats:
    """Each row's loss from probabilities: -log p[label], or half the Brier sum (for two classes
    (label - p)^2)."""
    if read.probabilities is None or read.labels is None:
        remedy = "Pass labels, and probabilities of shape (rows, classes)."
        raise InputError.expected("probabilities", of="prediction", got="decisions", remedy=remedy)
    if loss == "log":
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(read.probabilities[np.arange(len(read.labels)), read.labels]))
    off = read.probabilities - np.eye(len(read.classes))[read.labels]
    return np.asarray((off**2).sum(axis=1) / 2)


def tally(read: Decisions) -> tuple[Floats, Floats]:
    """Exact counts (cells, labels) and histogram (cells, labels, classes); one label when none are
    given."""
    shape = (read.cells.count, 1 if read.labels is None else len(read.classes), len(read.classes))
    rows = (read.labels, read.cell_ids, shape, read.weights)
    if read.decisions is not None:
        return cell_counts(*rows), hard_histogram(read.decisions, *rows)
    assert read.probabilities is not None
    return cell_counts(*rows), soft_histogram(read.probabilities, *rows)


def outcome_rate(
    outcome: Outcome, classes: Sequence[Hashable], counts: Floats, histogram: Floats
) -> Floats:
    """The rate of an outcome for each line of (..., labels) counts and (..., labels, classes)
    histogram; NaN if undefined."""
    known = list(classes)
    given = slice(None) if outcome.labels is None else [known.index(y) for y in outcome.labels]
    sizes = counts[..., given].sum(axis=-1)
    if outcome.wrong:
        hits = histogram.sum(axis=(-1, -2)) - np.trace(histogram, axis1=-2, axis2=-1)
    else:
        hits = histogram[..., given, known.index(outcome.prediction)].sum(axis=-1)
    return np.where(sizes > 0, hits, np.nan) / np.where(sizes > 0, sizes, 1.0)


def _gap(
    notion: GapNotion,
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    options: Options,
) -> float:
    known = set(Options.__annotations__)
    if not set(options) <= known:
        raise InputError.expected(
            f"options out of {sorted(known)}",
            of="options",
            got=sorted(options),
            remedy="See docs/fairness.md.",
        )
    compare = _checks.one_of(COMPARISONS, compare=options.get("compare", "pairs"))
    skipped = _checks.one_of(("nan", "skip"), undefined=options.get("undefined", "nan")) == "skip"
    if y is None and not isinstance(notion, DemographicParity):
        remedy = "Only demographic parity does without."
        raise InputError.expected("labels", of="y", got=None, remedy=remedy)
    how: Any = {name: one for name, one in options.items() if name not in ("compare", "undefined")}
    read = read_decisions(y, prediction, sensitive_features, **how)
    counts, histogram = tally(read)
    occurring = set(read.classes)
    if read.labels is not None:
        occurring = {read.classes[k] for k in np.unique(read.labels)}
    found: list[float] = []
    for block in Grouping.of(read.cells, read.cells.mode).blocks():
        if not isinstance(options.get("groups"), Cells):
            block = [g for g in block if counts[g].sum() > 0]
        for outcome in notion.outcomes(read.classes):
            if len(block) > 1 and (outcome.labels is None or set(outcome.labels) & occurring):
                here = (outcome, read.classes, counts[block], histogram[block])
                found += _differences(*here, compare=compare)
    defined = [gap for gap in found if not math.isnan(gap)]
    unknown = len(defined) < len(found) and not skipped
    return math.nan if unknown or not defined else max(defined)


def _differences(
    outcome: Outcome,
    classes: Sequence[Hashable],
    counts: Floats,
    histogram: Floats,
    *,
    compare: str,
) -> list[float]:
    """The differences of one outcome's rate within one block of groups; NaN for each that is
    undefined."""
    rates = outcome_rate(outcome, classes, counts, histogram)
    if compare == "rest":
        others = counts.sum(axis=0) - counts, histogram.sum(axis=0) - histogram
        rest = outcome_rate(outcome, classes, *others)
        return [float(gap) for gap in np.abs(rates - rest)]
    defined = rates[~np.isnan(rates)]
    largest = [float(defined.max() - defined.min())] if len(defined) > 1 else []
    return largest + [math.nan] * (len(rates) - len(defined))
