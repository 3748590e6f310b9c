"""Bounded sums over rows: what one row adds, how large that is at most, and its exact total in whole
steps of a dyadic grid.

Each question is one function that returns a `Sum`: its bound stands beside the arithmetic that it
bounds, so a reader checks both at once. Compiled loops touch features (`kernels`); all else is
NumPy on the few numbers of a row, in one fixed order, so totals repeat to the bit.

Guarantees (tests/core/test_sums.py; enumerated neighbours under every relation)
    1. No neighbour moves a total further than `bound.sensitivity(relation)`, and no row adds more
       than `bound.norm`; of a person with at most k rows: all of them together.
    2. With sensitive features alone protected the same holds of `public_scales`, whose maxima run
       over the public rows and over all pairs of *listed* groups, observed or not; of a gradient of
       each part of `parted_question`.
    3. A sum whose `reads` has no "sensitive" is moved by no change of groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from . import checks
from .bound import OUTWARDS, Bound, of_gram, of_histogram, of_person, of_signed, on_grid
from .errors import PrivacyError, need
from .kernels import (
    FARTHEST,
    TINY,
    Array,
    Floats,
    add_by_person,
    add_gradient,
    descend,
    descend_panel,
    exp_into,
    grams,
    log_into,
    scores_into,
    sigmoid_into,
    softmax_into,
)
from .layout import Cells, RowLayout
from .questions import (
    FEATURES,
    LABEL,
    SENSITIVE,
    Facts,
    Kind,
    Linear,
    Question,
    Scale,
    Sum,
    cell_count,
    checked_group,
    classes_of,
    floats_of,
    no_clip,
)

GRID_BITS, EXACT_BITS = 30, 44
SLACK = 2.0**-52
ROUNDING = 2.0**-40  # of a probability: far above what a few operations lose
FORGOTTEN = 1e-120  # times `ROUNDING` above residuals so small that their squares are lost
RUN, LEAST_RUN = 1 << 14, 1 << 8  # rows at a time, of one model and of many
# models: from here rows are read once for all side by side. To set up a row for many models takes
# as long as 8 models with a hundred numbers, and as 32 with few numbers and codes
PANEL_FROM, PANEL_FROM_FEW, FEW_NUMBERS = 8, 32, 16
LANES, PANEL = 8, 128  # models that the processor does at once; side by side more leave the cache
EMPTY: Floats = np.empty(0)
NOTHING: Array = np.zeros((1, 0), np.int64)
LOSSES = {"log": 0, "squared": 1, "none": 2}


class Run:
    """Rows a to b of a block, with scores found once for all sums that ask about one model."""

    def __init__(self, block: Any, offsets: Array, a: int, b: int) -> None:
        self.block, self.a, self.n, self.width = block, a, b - a, 1 + block.layout.width
        self.offsets = offsets
        self.features = block.arrays(offsets)
        self.weights: Any = block.weights[a:b] if len(block.weights) else 1.0
        self.known: dict[Any, Any] = {}

    @cached_property
    def labels(self) -> Array:
        """The labels, as they are: codes of classes, or numbers."""
        return np.asarray(self.block.labels[self.a : self.a + self.n])

    def cells(self, cells: Cells | None, labels: int = 1) -> Array:
        """The cells of each row, (cells a row, rows), or with `labels` the lines of a table (cells
        x labels)."""
        key = ("c", cells, labels)
        if key not in self.known:
            lines = self.block.cells(cells)[:, self.a : self.a + self.n].astype(np.int64)
            own = self.labels.astype(np.int64) if labels > 1 else 0
            self.known[key] = lines * labels + own
        lines_: Array = self.known[key]
        return lines_

    def scores(self, w: Floats, *, apart: bool) -> tuple[Floats, Floats]:
        """Scores (lines of w, rows) and |row|^2, from weights (lines, 1 + width). `apart`: each line
        is a model of its own."""
        key = ("z", w.ctypes.data, w.shape)
        if key not in self.known:
            s2 = np.empty(self.n)
            z = np.empty((len(w), self.n))
            scores_into(self.features, w, self.a, self.n, z, s2)
            self.known[key] = z, s2, w  # kept, so that no other array lies there
        z, s2, _ = self.known[key]
        return z, s2

    def soft(self, w: Floats, sharpness: float, *, apart: bool) -> Floats:
        """Probabilities (lines, rows): `apart`, of each score's second class, else of classes."""
        key = ("p", w.ctypes.data, w.shape, sharpness)
        if key not in self.known:
            z, _ = self.scores(w, apart=apart)
            p = np.empty_like(z)
            if apart:
                a, b = np.empty((2, z.size))
                sigmoid_into(z.ravel(), sharpness, p.ravel(), a, b, z.size)
            else:
                a, b, c, d = np.empty((4, self.n))
                softmax_into(z, sharpness, p, a, b, c, d, self.n)
            self.known[key] = p
        found: Floats = self.known[key]
        return found


def panel_from(layout: RowLayout, *, sparse: bool) -> int:
    """From how many models on rows are read once for all of them side by side."""
    return PANEL_FROM_FEW if layout.numbers <= FEW_NUMBERS and not sparse else PANEL_FROM


def gridded(one: Sum, most: int, bits: int = GRID_BITS, *, whole: bool = False) -> Sum:
    """The sum on the grid on which one row's norm is below 2^bits steps (`whole`: of steps 1); its
    bound is enlarged by the rounding, and is of a person with at most so many rows."""
    if one.limits is None:
        return one
    bound, exponent = one.limits, one.exponent
    if not whole:
        exponent = bits - math.frexp(max(bound.norm, math.ldexp(1.0, -900)))[1]
        bound = on_grid(bound, math.ldexp(1.0, -exponent), one.coordinates)
    slack = (bound.diameter - one.limits.diameter) / bound.norm
    return replace(one, limits=of_person(bound, most), exponent=exponent, slack=slack)


def _weights(facts: Facts, model: Any, *, of_number: bool = False) -> tuple[Floats, float]:
    """A `Linear`'s weights (models, outputs, 1 + width), which fit the rows: one output for two
    classes or a number, else one a class; and its sharpness. Weights alone have sharpness 1."""
    linear = model if isinstance(model, Linear) else Linear(model)
    classes = 1 if of_number else classes_of(facts.layout, "a question about classes")
    shape = (1 if classes <= 2 else classes, 1 + facts.layout.width)
    got, fix = linear.array.shape[1:], "The intercept comes first."
    need(got == shape, f"finite weights of shape {shape}", of="weights", got=got, fix=fix)
    return linear.array, linear.sharpness


def added(lines: Array, values: Floats, buckets: int) -> Array:
    """Sums of whole numbers `values` (columns, rows) by line of a table, (buckets, columns): each
    row adds to one line in each of `lines`. Exact: below 2^53, or as integers."""
    out = np.zeros((buckets, len(values)), np.int64)
    if not values.size:
        return out
    small = float(np.abs(values).max()) * values.shape[1] < 2.0**53
    for line in lines:
        for k, column in enumerate(values):
            if small:
                out[:, k] += np.bincount(line, column, buckets).astype(np.int64)
            else:
                np.add.at(out[:, k], line, column.astype(np.int64))
    return out


def whole_steps(values: Any, weights: Any, unit: Any) -> Floats:
    """values x weights x unit, rounded to whole numbers, ties to even; zero where not finite."""
    steps = values * weights * unit
    return np.where(np.isfinite(steps), np.rint(steps), 0.0)


def factors_of(per_row: int, order: int) -> tuple[float, float]:
    """Norm and move of a row that adds a number of size 1 to each of its cells."""
    if order == 1:
        return float(per_row), 2.0 * per_row
    return math.sqrt(per_row), math.sqrt(2 * per_row)


Values = Callable[[Run], Any]
Sizes = Callable[[Run], tuple[Floats, Any]]


def _maxima(sizes: Sizes, per_row: int, order: int, run: Run) -> tuple[Floats, Floats]:
    """The largest norm and move of public rows that add numbers of these sizes (models, rows) to
    their cells; what rounding adds to each is the second."""
    norm, move = factors_of(per_row, order)
    size, slack = sizes(run)
    size, w = np.atleast_2d(size), np.broadcast_to(run.weights, run.n)
    slack = slack * move
    # A row of weight 0 adds nothing, also where its numbers overflow.
    found = [np.where(w > 0, w * (size * far + slack), 0.0) for far in (norm, move)]
    return found[0].max(1, initial=0.0), found[1].max(1, initial=0.0)


def histogram(
    facts: Facts,
    name: str,
    cells: Cells | None,
    by_label: bool,
    width: int | None,
    reads: Iterable[str],
    *,
    values: Values | None = None,
    codes: Values | None = None,
    whole: bool,
    limit: float | None = 1.0,
    lone: bool = False,
    coordinates: int = 1,
    models: int = 1,
    group: int | None = None,
    is_own: bool = False,
) -> Sum:
    """A histogram by cell (and label). A row adds `values(run)` (models, width, rows), points of a
    simplex of size `limit`, to its cells (one, or one of each column of marginal groups), or one
    for `codes(run)`, (models, rows) or (rows,). No `width`: one number, and no axis for it.

    L1 and L2 are 1 and 1 (add-remove), 2 and sqrt 2 in each of its cells. `lone`: one number that
    only comes or goes. `group`: that one cell alone, of product cells. With sensitive features
    alone protected L1 and L2 are then 1, for a row keeps its place and only comes or goes
    (theory.md#post-processing), so long as what it adds does: that is not read from the sensitive
    columns, or all of them make the cells, and within the group they are fixed.
    """
    per_row, count = (cells.per_row, cells.count) if cells is not None else (1, 1)
    labels, bound, group = _labels(facts, by_label), None, checked_group(cells, group)
    if limit is not None:
        bound = of_histogram((facts.cap or 1.0) * limit, per_row, facts.order)
        if lone and cells is None and not by_label:
            bound = comes_or_goes(bound)
    each, numbers = () if width is None else (width,), width or 1
    shape = (count if group is None else 1, *((labels,) if by_label else ()), *each)
    own = slice(None) if group is None else slice(group * labels, (group + 1) * labels)

    def total(run: Run, units: Any) -> Array:
        steps, lines = np.broadcast_to(np.atleast_1d(units), models), run.cells(cells, labels)
        if values is not None:
            found, buckets = values(run), count * labels
            tables = [
                added(lines, whole_steps(v, run.weights, u), buckets)
                for v, u in zip(found, steps, strict=True)
            ]
        else:
            assert codes is not None
            ones, buckets = np.ones((1, run.n)), count * labels * numbers
            tables = [
                added(lines * numbers + code, whole_steps(ones, run.weights, u), buckets)
                for code, u in zip(np.atleast_2d(codes(run)), steps, strict=True)
            ]
        table = np.stack(tables).reshape(models, count * labels, numbers)[:, own]
        return table.reshape(models, *shape)

    within = 1.0 if numbers == 1 and not by_label and not is_own else math.sqrt(2)
    apart, read = cells if per_row == 1 and group is None else None, _reads(reads, cells, by_label)
    head = (name, shape, read, bound, 0, total, within, 0.0, apart, False, models)
    one = Sum(*head, coordinates=per_row * coordinates, is_own=is_own)
    one = gridded(one, facts.promise.rows_per_unit, whole=whole and facts.cap is None)
    if cells is not None and group is not None:
        made_of_all = set(cells.names) == set(facts.layout.sensitive_names)
        stays = facts.alone and (SENSITIVE not in reads or made_of_all)
        if stays or (lone and not by_label):
            return replace(one, limits=comes_or_goes(one.bound))
    return one


def _reads(columns: Iterable[str], cells: Cells | None, by_label: bool) -> frozenset[str]:
    groups, label = {SENSITIVE} if cells is not None else set(), {LABEL} if by_label else set()
    return frozenset(columns) | groups | label


def _labels(facts: Facts, by_label: bool) -> int:
    return classes_of(facts.layout, "counts by label") if by_label else 1


def counts(
    facts: Facts,
    cells: Cells | None = None,
    by_label: bool = False,
    copies: int | None = None,
    group: int | None = None,
) -> Sum:
    """How many rows each cell (and label) holds: shape (cells[, labels]).

    L2 sensitivity 1 (add-remove), sqrt 2 (replace-one and sensitive features alone):
    theory.md#counts. `copies`: that many releases of the same counts, each with noise of its own,
    for models that stand side by side; a leading axis in the answer. `group`: that one cell alone,
    of product cells, shape (1,) or (1, labels): sensitive features alone then move it by 1, for a
    row keeps its label and only comes or goes; without labels another record moves it by 1 too. Of
    nothing told apart it is the number of rows, which replace-one does not change.
    """
    models = copies or 1

    def ones(run: Run) -> Floats:
        return np.ones((1, 1, run.n))

    how: dict[str, Any] = {"values": ones, "whole": True, "lone": True, "group": group}
    one = histogram(facts, "cell counts", cells, by_label, None, (), **how)
    of_one = one.total

    def total(run: Run, units: Any) -> Array:
        return np.repeat(of_one(run, np.atleast_1d(units)[:1]), models, axis=0)

    one = replace(one, total=total, models=models)
    if cells is None and not by_label and facts.cap is None and facts.promise.rows_per_unit == 1:
        # a replaced row counts as another does
        return replace(one, limits=Bound(1.0, 0.0, facts.order))
    return one


CellCounts = Kind("cell counts", counts, "a row counts once in each of its cells", reads=())


def row_count(facts: Facts, copies: int | None = None) -> Sum:
    """How many rows there are (the sum of weights). Reads nothing but membership, which replace-one
    does not change. `copies`: see `counts`."""
    return replace(counts(facts, copies=copies), name="row count")


RowCount = Kind("row count", row_count, "a row counts once", reads=())


def comes_or_goes(bound: Bound) -> Bound:
    """Where a row's contribution is one that is fixed, or none: a change moves the total no further
    than one contribution."""
    return Bound(bound.norm, min(bound.diameter, bound.norm), bound.order)


DECISIONS = ("hard", "soft")


def decisions(
    facts: Facts,
    model: Any,
    cells: Cells | None = None,
    decisions: str = "hard",
    by_label: bool = False,
) -> Sum:
    """How the predictions of linear models fall in each cell (and label): shape (cells[, labels],
    outputs).

    `decisions="hard"`: one for the predicted class; `"soft"`: softmax(sharpness x score). Two
    classes have one output, the second's. theory.md#counts: the row of one person has L2 norm at
    most 1; it moves by at most sqrt 2.
    """
    weights, sharpness = _weights(facts, model)
    models, outputs, width = weights.shape
    hard = checks.one_of(DECISIONS, decisions=decisions) == "hard"
    lines = [weights.reshape(-1, width)] if outputs == 1 else list(weights)

    def values(run: Run) -> Any:
        found: Any
        if not hard:
            found = np.stack([run.soft(w, sharpness, apart=outputs == 1) for w in lines])
        elif outputs == 1:
            found = np.asarray((run.scores(lines[0], apart=True)[0] > 0) * 1.0)
        else:  # of equal scores the first is the largest
            best = np.stack([run.scores(w, apart=False)[0].argmax(0) for w in lines])[:, None]
            found = (best == np.arange(outputs)[:, None]) * 1.0
        return found.reshape(models, outputs, run.n)

    def sizes(run: Run) -> tuple[Floats, float]:
        p = values(run)
        return np.linalg.norm(p, ord=facts.order, axis=1), outputs * ROUNDING

    how: dict[str, Any] = {"whole": hard, "lone": outputs == 1, "coordinates": outputs}
    head = (facts, "prediction histogram", cells, by_label, outputs, (FEATURES,))
    one = histogram(*head, values=values, **how, models=models)
    per_row = 1 if cells is None else cells.per_row
    maxima = None if hard else partial(_maxima, sizes, per_row, facts.order)
    fused = None
    if outputs == 1:
        fused = _Fused(weights, cells, sharpness, False, hard, _labels(facts, by_label))
    return replace(one, maxima=maxima, fused=fused)


SIMPLEX = "a row's prediction is a point of the simplex"
PredictionHistogram = Kind("prediction histogram", decisions, SIMPLEX)


def score_bins(
    facts: Facts,
    model: Any,
    edges: Sequence[float],
    cells: Cells | None = None,
    by_label: bool = False,
) -> Sum:
    """How many scores of each cell (and label) fall between given edges: shape (cells[, labels], 1
    + edges). Two classes.

    The sums of bins from the right are the numbers of decisions for the second class at every edge
    as a threshold, from one release: a row is in one bin, so the bound is that of a histogram. A
    score that is no number counts as below all edges.
    """
    (weights, _), cuts = _weights(facts, model), floats_of(edges)
    fix = "Several classes have no threshold: ask for a PredictionHistogram."
    need(weights.shape[1] == 1, "two classes", of="edges", got=weights.shape[1], fix=fix)
    rising = cuts.ndim == 1 and cuts.size > 0 and bool((np.diff(cuts) > 0).all())
    got, fix = cuts.tolist(), "Pass (-1.0, 0.0, 1.0), for example."
    need(rising, "rising finite numbers", of="edges", got=got, fix=fix)
    lines, count = weights.reshape(-1, weights.shape[2]), 1 + len(cuts)

    def bins(run: Run) -> Array:
        z = run.scores(lines, apart=True)[0]
        return np.where(np.isnan(z), 0, np.searchsorted(cuts, z))

    head = (facts, "score histogram", cells, by_label, count, (FEATURES,))
    return histogram(*head, codes=bins, whole=True, models=len(weights))


ScoreHistogram = Kind(
    "score histogram", score_bins, "a row's score is in one bin", by_value=["edges"]
)


def losses(
    facts: Facts,
    model: Any,
    cells: Cells | None = None,
    loss: str = "zero-one",
    clip: float | None = None,
) -> Sum:
    """The sum of losses, each cut at `clip`, in each cell: shape (cells,). Many candidates at once:
    the model's leading axis.

    `loss`: "zero-one" (hard decision against label), "log" (the score's own log loss) or "squared".
    Losses are not negative.
    """
    wrong = checks.one_of(("zero-one", "squared", "log"), loss=loss) == "zero-one"
    weights, _ = _weights(facts, model, of_number=loss == "squared")
    models, outputs, width = weights.shape
    if clip is not None:
        checks.positive(clip=clip)
    limit = (1.0 if clip is None else min(1.0, clip)) if wrong else clip
    most = math.inf if limit is None else limit
    lines = [weights.reshape(-1, width)] if outputs == 1 else list(weights)

    def raw(run: Run) -> Floats:
        if outputs == 1:
            return _loss_of_scores(loss, run.scores(lines[0], apart=True)[0], run.labels)
        return np.stack([_loss_of_classes(loss, run, w) for w in lines])

    def values(run: Run) -> Any:
        y = raw(run)
        y = np.where(y < most, y, most)  # NaN counts as the clip
        return np.where(y >= 0.0, y, 0.0)[:, None]

    def sizes(run: Run) -> tuple[Floats, Any]:
        if wrong:  # a score near 0 may fall on either side
            return np.full((models, run.n), most), 0.0
        z = np.stack([run.scores(w, apart=outputs == 1)[0] for w in lines])
        if loss == "squared":
            return np.minimum((z[0] - run.labels) ** 2, most), 0.0
        if outputs == 1:
            y = np.logaddexp(0.0, np.where(run.labels == 1, -z[0], z[0]))
            return np.minimum(y, most), ROUNDING * (1.0 + np.abs(z[0]))
        labels = run.labels.astype(np.int64)
        y = np.logaddexp.reduce(z, axis=1) - z[:, labels, np.arange(run.n)]
        return np.minimum(y, most), ROUNDING * (1.0 + np.abs(z).max(axis=1, initial=0.0))

    how: dict[str, Any] = {"whole": wrong and limit == 1.0, "limit": limit, "lone": True}
    head = (facts, "group losses", cells, False, None, (FEATURES, LABEL))
    one = histogram(*head, values=values, **how, models=models)
    per_row = 1 if cells is None else cells.per_row
    return replace(one, maxima=partial(_maxima, sizes, per_row, facts.order))


def _cut_at(question: Question) -> str:
    clip, wrong = question.clip, question.loss == "zero-one"
    limit = clip if not wrong else 1.0 if clip is None else min(1.0, clip)
    return f"losses are cut at {limit:g}"


GroupLosses = Kind("group losses", losses, _cut_at, reads=(FEATURES, LABEL))


def _loss_of_scores(loss: str, z: Floats, labels: Array) -> Floats:
    """Losses (models, rows) of scores for the second class, or of numbers."""
    if loss == "zero-one":
        return np.asarray(((z > 0) != (labels == 1)) * 1.0)
    if loss == "squared":
        return np.asarray((z - labels) ** 2)
    # log(1 + exp(-margin)) = log(1 + exp(-|z|)) + max(0, -margin): no exponential is above 1.
    a, work = -np.minimum(np.abs(z), FARTHEST).ravel(), np.empty(z.size)
    e, out = np.empty(z.size), np.empty_like(z)
    exp_into(a, e, work, z.size)
    log_into(1.0 + e, out.ravel(), work, z.size)
    margin = np.where(labels == 1, z, -z)
    return np.asarray(out + np.where(margin < 0.0, -margin, 0.0))


def _loss_of_classes(loss: str, run: Run, w: Floats) -> Floats:
    """Losses (rows,) of a model with a score for each class."""
    z, labels = run.scores(w, apart=False)[0], run.labels.astype(np.int64)
    if loss == "zero-one":
        return np.asarray((z.argmax(0) != labels) * 1.0)
    p, (top, total, a, b) = np.empty_like(z), np.empty((4, run.n))
    softmax_into(z, 1.0, p, top, total, a, b, run.n)
    # log sum exp(z) less the label's score: `total` is of exp(z - top), which does not overflow
    log_into(total, a, b, run.n)
    return np.asarray(a + (top - z[labels, np.arange(run.n)]))


@dataclass(frozen=True, eq=False)
class _Fused:
    """What the fused loop is told of a gradient sum, or of a histogram, of models of one score."""

    weights: Floats
    cells: Cells | None
    sharpness: float
    is_gradient: bool
    is_hard: bool = True
    labels: int = 1  # of the histogram, or of the costs
    loss: int = 2
    pull: Any = None
    cell_weights: Floats | None = None
    costs: Floats | None = None
    clip: float = math.inf

    def is_beside(self, other: _Fused) -> bool:
        """Whether a histogram falls in the cells of this gradient, of the same models."""
        reads = self.costs is not None or self.cell_weights is not None
        same = self.weights is other.weights and self.sharpness == other.sharpness
        kinds = self.is_gradient and not other.is_gradient
        return kinds and same and (not reads or self.cells == other.cells)


def beside(ones: Sequence[Sum]) -> list[tuple[int | None, int | None]]:
    """Which of these sums the fused loops add together, a gradient and a histogram each; none where
    they do not take all of them: they are for models of one score each."""
    left = list(range(len(ones)))
    if any(one.fused is None for one in ones):
        return []
    out: list[tuple[int | None, int | None]] = []
    for i in range(len(ones)):
        if i in left and ones[i].fused.is_gradient:
            j = next((j for j in left if ones[i].fused.is_beside(ones[j].fused)), None)
            left = [k for k in left if k not in (i, j)]
            out.append((i, j))
    return out + [(None, j) for j in left]


def totals_of(ones: Sequence[Sum], units: Sequence[Any], run: Run) -> list[Array]:
    """The totals of some sums over a run, in one pass where the fused loops take them."""
    pairs = beside(ones)
    if not pairs:
        return [one.total(run, unit) for one, unit in zip(ones, units, strict=True)]
    out: list[Any] = [None] * len(ones)
    for i, j in pairs:
        one, g = (None, 1.0) if i is None else (ones[i], units[i])
        other, h = (None, 1.0) if j is None else (ones[j], units[j])
        for at, found in zip((i, j), fused(one, other, run, g, h), strict=True):
            if at is not None:
                out[at] = found
    return out


def fused(
    gradient: Sum | None, histogram: Sum | None, run: Run, g_units: Any, h_units: Any
) -> tuple[Array, Array]:
    """The totals of a gradient sum, of a histogram, or of both of the same models in one pass."""
    pair: list[Any] = [None if one is None else one.fused for one in (gradient, histogram)]
    one: _Fused = pair[1] or pair[0]
    models, block = len(one.weights), run.block
    nothing = _Fused(one.weights, one.cells, one.sharpness, True, pull=np.zeros(models))
    g, h = (found or nothing for found in pair)
    rows = (block.labels, block.cells(one.cells), block.weights)
    width, count = 0 if gradient is None else run.width, cell_count(one.cells)
    buckets, shape = (0, (0,)) if histogram is None else (count * h.labels, histogram.shape)
    g_unit, h_unit = (np.broadcast_to(np.atleast_1d(u), models) for u in (g_units, h_units))
    told, by_cell = (h.is_hard, h.labels), g.cell_weights
    loss, labels, clip, pull = g.loss, g.labels, g.clip, g.pull
    costs = None if g.costs is None else g.costs[:, :, 0]
    where = (run.a, run.a + run.n)
    G, H = np.zeros((models, 1, width), np.int64), np.zeros((models, buckets), np.int64)
    if models < panel_from(block.layout, sparse=len(run.features[1]) > 0):
        for m in range(models):
            weighed = (EMPTY if by_cell is None else by_cell[m], one.sharpness)
            paid = EMPTY if costs is None else np.ascontiguousarray(costs[m])
            asked = (loss, float(pull[m]), *weighed, paid, labels, clip, float(g_unit[m]), G[m])
            end = (*told, float(h_unit[m]), H[m])
            descend(run.features, rows, one.weights[m], *where, asked, end)
        return G, H.reshape(models, *shape)
    for lo in range(0, models, PANEL):
        own = slice(lo, min(models, lo + PANEL))
        most = own.stop - lo
        gs, hs = (np.zeros((n, -(-most // LANES) * LANES), np.int64) for n in (width, buckets))
        weights = _side(one.weights[own, 0])
        each = (_side(by_cell, own), one.sharpness, _side(costs, own), labels, clip)
        many = (loss, _side(pull[own]), *each, _side(g_unit[own]), gs)
        last = (*told, _side(h_unit[own]), hs)
        descend_panel(run.features, rows, weights, *where, many, last)
        G[own, 0], H[own] = gs[:, :most].T, hs[:, :most].T
    return G, H.reshape(models, *shape)


def _side(values: Any, own: slice = slice(None)) -> Floats:
    """Of many models (models, ...) these, the models last, filled up with zeros to a multiple of
    LANES: loops then have no remainder."""
    if values is None:
        return np.zeros((0, LANES))
    taken = values[own]
    out = np.zeros((*taken.shape[1:], -(-len(taken) // LANES) * LANES))
    out[..., : len(taken)] = taken.T
    return out


def gradient(
    facts: Facts,
    model: Any,
    clip: float | None = None,
    cells: Cells | None = None,
    cell_costs: Any = None,
    loss: str = "log",
    loss_weight: Any = 1.0,
    cell_weights: Any = None,
    loss_clip: float | None = None,
) -> Sum:
    """The sum over rows of gradients of loss and prediction costs, each clipped to norm `clip`: shape
    (outputs, 1 + width).

    A row's objective is loss_weight x loss + sum_k cell_costs[cell, label, k] x softmax(sharpness x
    score)_k. A linear model's gradient in one row is residual x row, so its norm is |residual|
    |row|, and no gradient of a row is ever built. `loss`: "log" (the score's own log loss),
    "squared" (half the squared error, so that the residual is score - target: `losses` has the
    whole square) or "none". `cell_costs`: (cells, labels or 1, classes), with a leading model axis
    where they differ by model; what a Lagrangian of prediction rates costs one row in that cell
    with that label. `loss_weight`: a number, or one a model. `cell_weights`: (cells,) or (models,
    cells), of any sign: a row's loss counts loss_weight x the sum of its cells' weights.

    `clip` bounds the norm of one row's whole gradient, costs included. Where rows are public
    (`parted_question`) it may be None, and it clips the part that reads groups alone: the loss is exact
    there, and its rows' gradients are clipped to `loss_clip`, if at all.
    """
    weights, sharpness = _weights(facts, model, of_number=loss == "squared")
    (models, outputs, width), alone = weights.shape, facts.alone
    facts.need_order_two("gradient sum")
    if clip is not None:
        checks.positive(clip=clip)
    if loss_clip is not None:
        checks.positive(loss_clip=loss_clip)
    pulls = floats_of(loss_weight)
    good = pulls.shape in ((), (models,)) and bool((pulls >= 0).all() and np.isfinite(pulls).all())
    words, fix = f"{models} numbers of at least 0", "Give one weight of the loss for each model."
    need(good, words, of="loss_weight", got=loss_weight, fix=fix)
    pulls = np.broadcast_to(pulls, (models,))
    code = LOSSES[checks.one_of(LOSSES, loss=loss)]
    if clip is None and facts.promise.is_private and not alone:
        raise no_clip("gradient sum")
    table, labels = _table(facts, cell_costs, cells, outputs, models)
    apart = loss != "squared" or table is None
    words, fix = "log loss, or none, beside costs of predictions", "Ask twice."
    need(apart, words, of="loss", got="both", fix=fix)
    count = 1 if cells is None else cells.count
    by_cell = None
    if cell_weights is not None:
        by_cell, fix = _weights_of_cells(cell_weights, models, count), 'Ask for one: loss="log".'
        need(loss != "none", "a loss to weigh", of="cell_weights", got='loss="none"', fix=fix)
    by_person = facts.promise.rows_per_unit > 1 and clip is not None
    fix = "Protect records, or rows."
    good = not (by_person and alone)
    need(good, "rows", of="promise", got=facts.promise, fix=fix, error=PrivacyError)
    lines = [weights.reshape(-1, width)] if outputs == 1 else list(weights)
    most = math.inf if clip is None else clip

    def residuals(run: Run, at: int) -> tuple[Floats, Floats]:
        """Of all models of one score, or of one of several: before the clip."""
        each, own = lines[at], slice(None) if outputs == 1 else slice(at, at + 1)
        u, s2 = _of_loss(run, each, code, pulls[own, None], apart=outputs == 1)
        if by_cell is not None:
            total: Any = 0.0
            for line in run.cells(cells):
                total = total + by_cell[own].T.take(line, 0).T
            u = u * total
        if table is not None:
            p = run.soft(each, sharpness, apart=outputs == 1)
            for line in run.cells(cells, labels):
                if outputs == 1:  # dp/dz = sharpness p (1 - p)
                    slope = 1.0 - p
                    slope *= p
                    slope *= sharpness
                    slope *= table[:, :, 0].T.take(line, 0).T
                    u += slope
                else:  # a cost that all classes share moves nothing
                    c, mean = table[at].take(line, 0).T, np.zeros(run.n)
                    for k in range(outputs):
                        mean = mean + p[k] * c[k]
                    u = u + p * (c - mean) * sharpness
        return u, s2

    def total(run: Run, units: Any) -> Array:
        out = np.zeros((models, outputs, width), np.int64)
        steps = np.broadcast_to(np.atleast_1d(units), models)
        for at in range(len(lines)):
            own = slice(None) if outputs == 1 else slice(at, at + 1)
            # After all that depends on the row: weights of rows alone are outside of the clip.
            u, s2 = residuals(run, at)
            r = _clipped(u, s2, most, run.weights, apart=outputs == 1)
            r *= steps[own, None]
            # One row that is not finite would make the whole sum so, and show that it is there.
            np.copyto(r, 0.0, where=~np.isfinite(r))
            if by_person:
                limit = most * (facts.cap or 1.0) * steps
                whose = (run.block.persons, run.block.reach, run.a, run.n)
                for k in range(models) if outputs == 1 else (at,):
                    line = r[k : k + 1] if outputs == 1 else r
                    line = np.ascontiguousarray(line)
                    add_by_person(run.features, line, *whose, float(limit[k]), out[k])
            else:
                to = out[:, 0] if outputs == 1 else out[at]
                r = np.ascontiguousarray(r)
                add_gradient(run.features, r, run.a, run.n, np.empty(run.n), to)
        return out

    reads = _gradient_reads(cells, table, by_cell, loss, labels)
    shape, coordinates, bound = (outputs, width), outputs * facts.coordinates, None
    if clip is not None:
        bound = of_signed(_limit(facts, clip), facts.cap or 1.0)
    if by_person:  # her rows are added, and once more clipped to the norm of one (theory.md#units)
        coordinates = math.prod(shape)
        bound = of_signed(most * (facts.cap or 1.0) * (1.0 + (coordinates + 64) * SLACK))
    told = None
    if outputs == 1 and not by_person:
        said = (labels, code, pulls, by_cell, table, most)
        told = _Fused(weights, cells, sharpness, True, True, *said)
    reach = _Reach(facts, cells, labels, table, by_cell, pulls, sharpness, outputs, code)
    return gridded(
        Sum(
            "gradient sum",
            shape,
            reads,
            bound,
            0,
            total,
            models=models,
            coordinates=coordinates,
            clip=_limit(facts, most) * (facts.cap or 1.0),
            maxima=partial(reach.maxima, lines),
            longest=None if code == 1 else reach.longest,
            fused=told,
        ),
        1,
    )


def _of_loss(run: Run, each: Floats, code: int, pull: Any, *, apart: bool) -> tuple[Floats, Floats]:
    """Residuals (lines, rows) of the loss alone, times `pull`, and |row|^2."""
    z, s2 = run.scores(each, apart=apart)
    if code == LOSSES["log"]:
        wanted = 1 if apart else np.arange(len(each))[:, None]
        return pull * (run.soft(each, 1.0, apart=apart) - (run.labels == wanted)), s2
    return pull * (z - run.labels) if code == LOSSES["squared"] else np.zeros_like(z), s2


def _gradient_reads(
    cells: Cells | None, costs: Any, by_cell: Any, loss: str, labels: int
) -> frozenset[str]:
    grouped = cells is not None and (costs is not None or by_cell is not None)
    return _reads((FEATURES,), cells if grouped else None, loss != "none" or labels > 1)


def reads_of_gradient(question: Question) -> frozenset[str]:
    """What a gradient reads: groups only where costs or weights differ by cell."""
    costs = question.cell_costs
    labels = 1 if costs is None else int(np.shape(costs)[-2])
    return _gradient_reads(question.cells, costs, question.cell_weights, question.loss, labels)


CLIPPED = "gradients are clipped to norm {clip:g}"
GradientSum = Kind(
    "gradient sum", gradient, CLIPPED, reads=reads_of_gradient, apart=False, is_gradient=True
)


def parted_question(question: Question) -> tuple[Question, Question]:
    """Of a gradient where rows are public: two questions whose answers add up to its own, what no
    change of groups moves, and the rest."""
    # The clip of the whole would hang on the group: the part that reads none has one of its own,
    # or none.
    common = question.but(cells=None, cell_costs=None, cell_weights=None, clip=question.loss_clip)
    if question.cell_weights is None:
        return common, question.but(loss="none")
    shared, rest = parted(question.cell_weights, question.cells)
    return common.but(cell_weights=shared), question.but(cell_weights=rest)


def _weights_of_cells(given: Any, models: int, count: int) -> Floats:
    """Weights of the loss by cell, (models, cells)."""
    weights = floats_of(given)
    fits = weights.shape in ((count,), (models, count))
    with np.errstate(over="ignore"):
        finite = fits and bool(np.isfinite(np.abs(weights).sum(axis=-1)).all())
    words = f"finite numbers of shape ({count},), or ({models}, {count}), whose sum is finite too"
    got, fix = "too large ones" if fits else weights.shape, "One weight of the loss for each cell."
    need(finite, words, of="cell_weights", got=got, fix=fix)
    return np.array(np.broadcast_to(weights, (models, count)))


def _table(
    facts: Facts, costs: Any, cells: Cells | None, outputs: int, models: int
) -> tuple[Any, int]:
    """Costs as they are added: (models, cells x labels, outputs), of two classes the second's less
    the first's; and how many labels they tell apart."""
    if costs is None:
        return None, 1
    given = floats_of(costs)
    count, classes = cell_count(cells), classes_of(facts.layout, "costs of classes")
    labels = given.shape[-2] if given.ndim >= 2 else 0
    fits = given.shape[-3:] == (count, labels, classes) and labels in (1, classes)
    fits = fits and given.ndim in (3, 4) and (given.ndim == 3 or len(given) == models)
    good = fits and np.isfinite(given).all()
    wanted = f"finite costs {(count, classes, classes)}"
    need(good, wanted, of="cell_costs", got=given.shape, fix="One a cell, label (or 1) and class.")
    given = np.broadcast_to(given, (models, *given.shape[-3:]))
    if outputs == 1:
        given = given[..., 1:2] - given[..., 0:1]
    return np.ascontiguousarray(given.reshape(models, -1, outputs)), labels


def columns_of(cells: Cells | None) -> list[range]:
    """The cells that one line of cell ids can name: all of them, or one sensitive column's with
    marginal groups."""
    if cells is None or cells.mode == "product":
        return [range(1 if cells is None else cells.count)]
    return [range(a, b) for a, b in pairwise((0, *accumulate(cells.sizes)))]


def parted(weights: Floats, cells: Cells | None) -> tuple[Floats, Floats]:
    """Of weights of the loss (..., cells): what every row's weighs whatever its groups, (..., 1),
    the midpoints of each column's cells, and what is left for the cells (theory.md#public)."""
    common, rest = np.zeros((*weights.shape[:-1], 1)), np.array(weights)
    for column in columns_of(cells):
        part = rest[..., column.start : column.stop]
        middle = part.min(axis=-1, keepdims=True) / 2 + part.max(axis=-1, keepdims=True) / 2
        common += middle
        part -= middle
    return common, rest


def weights_reach(weights: Floats, cells: Cells | None) -> Floats:
    """(..., 2): how much a row's cells can weigh at most, in size, and how far other cells can
    change that."""
    out = np.zeros((*weights.shape[:-1], 2))
    for column in columns_of(cells):
        part = weights[..., column.start : column.stop]
        out[..., 0] += np.abs(part).max(axis=-1)
        out[..., 1] += np.ptp(part, axis=-1)
    return out


def _limit(facts: Facts, clip: float) -> float:
    """The clip, and what rounding of |row| and of the products may add to it, far above."""
    return clip * (1.0 + (facts.layout.width + 32) * SLACK)


def _clipped(u: Floats, s2: Floats, clip: float, weights: Any, *, apart: bool) -> Floats:
    """Weights times residuals u such that no |u| |row| is above the clip. `apart`: each line is a
    model of one score; else all are one model's."""
    if clip == math.inf:
        return np.asarray(u * weights)
    limit = clip / np.sqrt(s2)
    if apart:
        r = np.minimum(u, limit)
        np.maximum(r, -limit, out=r)
        r *= weights
        return r
    size = np.sqrt(_squares(u))
    cut = np.where(size < TINY, 0.0, np.where(size <= limit, 1.0, limit / size))
    return np.asarray(u * (cut * weights))


@dataclass(frozen=True, eq=False)
class _Reach:
    """How far a row's gradient reaches over all pairs of *listed* cells, where rows are public.

    Never over the row's own cell: even the grid must not depend on a sensitive value. A row is in
    one cell of each column, and a neighbour may be in any other of each: the moves of the columns
    add up (theory.md#public).
    """

    facts: Facts
    cells: Cells | None
    labels: int
    table: Any
    by_cell: Any
    pulls: Floats
    sharpness: float
    outputs: int
    code: int

    def slack(self, m: int) -> float:
        """What rounding adds, in units of |row|; of weights by cell, its own is in units of the
        residual."""
        terms = float(self.pulls[m])
        if self.by_cell is not None:
            terms = FORGOTTEN * (1.0 + float(weights_reach(self.by_cell, self.cells)[..., 0].max()))
        if self.table is not None:
            largest = float(np.abs(self.table[m]).max(initial=0.0))
            per_row = 1 if self.cells is None else self.cells.per_row
            terms += self.sharpness * self.outputs * largest * per_row
        return ROUNDING * terms

    def maxima(self, lines: Sequence[Floats], run: Run) -> tuple[Floats, Floats]:
        """The largest norm and move of one of these rows, a model each."""
        out = np.zeros((2, len(self.pulls)))
        w = np.broadcast_to(run.weights, run.n)
        for m in range(len(self.pulls)):
            each = lines[0][m : m + 1] if self.outputs == 1 else lines[m]
            c, d, s2 = self._of_row(run, each, m)
            row, slack = np.sqrt(s2) * w, self.slack(m)
            for i, far in enumerate((c, d)):
                found = np.where(w > 0.0, (far + slack) * row, 0.0)
                out[i, m] = found.max(initial=0.0) if not np.isnan(found).any() else math.inf
        return out[0], out[1]

    def _of_row(self, run: Run, each: Floats, m: int) -> tuple[Floats, Floats, Floats]:
        """Norm and move of the residuals of each row, in units of |row|, and |row|^2."""
        apart = self.outputs == 1
        u, s2 = _of_loss(run, each, self.code, float(self.pulls[m]), apart=apart)
        c, d = np.sqrt(_squares(u)), np.zeros(run.n)
        costs = None if self.table is None else self.table[m]
        if self.by_cell is not None:
            reach = weights_reach(self.by_cell[m], self.cells)
            rounding = ROUNDING * reach[0]
            d = c * (rounding if costs is not None else reach[1] + rounding)
            c = c * (rounding if costs is not None else reach[0] + rounding)
        if costs is None:
            return c, d, s2
        label = run.labels.astype(np.int64) if self.labels > 1 else np.zeros(run.n, np.int64)
        p = run.soft(each, self.sharpness, apart=apart)
        if apart and self.by_cell is None:
            gain = self.sharpness * p[0] * (1.0 - p[0])
            reach = self._costs_reach(costs)
            return c + gain * reach[0, label], gain * reach[1, label], s2
        size, move = self._pairs(costs, m, label, p, u)
        return c + size, d + move, s2

    def _costs_reach(self, costs: Floats) -> Floats:
        """Of one score's costs, for each label: sums over columns of the largest |cost|, and of
        the range of costs."""
        out, table = np.zeros((2, self.labels)), costs[:, 0].reshape(-1, self.labels)
        for column in columns_of(self.cells):
            out[0] += np.abs(table[column.start : column.stop]).max(axis=0)
            out[1] += np.ptp(table[column.start : column.stop], axis=0)
        return out

    def _pairs(
        self, costs: Floats, m: int, label: Array, p: Floats, u: Floats
    ) -> tuple[Floats, Floats]:
        """Summed over columns: the largest |residual of a cell|, and |that of a cell - of
        another|."""
        size, move = np.zeros(len(label)), np.zeros(len(label))
        for column in columns_of(self.cells):
            each = [self._of_cell(a, costs[a * self.labels + label], m, p, u) for a in column]
            if self.outputs == 1:
                stack = np.stack([one[0] for one in each])
                low, high = stack.min(0), stack.max(0)
                size, move = size + np.maximum(np.abs(low), np.abs(high)), move + (high - low)
                continue
            largest = np.stack([_squares(one) for one in each]).max(0)
            widest = np.zeros(len(label))
            for a, one in enumerate(each):
                for other in each[:a]:
                    widest = np.maximum(widest, _squares(one - other))
            size, move = size + np.sqrt(largest), move + np.sqrt(widest)
        return size, move

    def _of_cell(self, a: int, costs: Floats, m: int, p: Floats, u: Floats) -> Floats:
        """J' costs of a cell, and its weight x the loss's residual."""
        if self.outputs == 1:
            gain = self.sharpness * p * (1.0 - p)
            moved = gain * costs[:, 0]
            return np.asarray(moved if self.by_cell is None else self.by_cell[m, a] * u + moved)
        mean = np.zeros(p.shape[1])
        for k in range(self.outputs):
            mean = mean + p[k] * costs[:, k]
        moved = self.sharpness * p * (costs.T - mean)
        return np.asarray(moved if self.by_cell is None else moved + self.by_cell[m, a] * u)

    def longest(self, row: float) -> Floats:
        """A norm that no row's gradient exceeds, whatever the weights, from the longest row; for
        grids of exact answers, which need no closer one.

        |residual of log loss| is at most 1, with several classes sqrt 2; |J' costs| at most
        sharpness x range / 2, since sum_k p_k (c_k - mean)^2 is a variance.
        """
        residual = 0.0 if self.code == 2 else 1.0
        residual *= 1.0 if self.outputs == 1 else math.sqrt(2.0)
        norms = residual * np.array(self.pulls)
        if self.by_cell is not None:
            norms = norms * weights_reach(self.by_cell, self.cells)[..., 0]
        if self.table is not None:
            far = np.abs(self.table[..., 0]) / 2
            ranges = far if self.outputs == 1 else np.ptp(self.table, axis=-1)
            per_row = 1 if self.cells is None else self.cells.per_row
            norms = norms + self.sharpness / 2 * per_row * ranges.max(axis=1, initial=0.0)
        return np.asarray(norms * row)


def _squares(lines: Floats) -> Floats:
    """The sum of squares of lines, in their order."""
    total = np.zeros(lines.shape[1])
    for line in lines:
        total = total + line * line
    return total


def public_scales(
    one: Sum,
    norms: Floats,
    moves: Floats,
    rows: int,
    *,
    exact: bool,
    order: int = 2,
    factor: float = 1.0,
) -> list[Sum]:
    """The sum with the bound that was found over public rows, one for each model; `exact`: on a
    grid as fine as 62 bits allow for so many rows, for no noise will be added. `factor`: of what
    every row adds."""
    # a projection expands no difference: after the clip no row is longer than it, and no two are
    # further apart than twice it
    norms, moves = np.minimum(norms, one.clip), np.minimum(moves, 2.0 * one.clip)
    if SENSITIVE not in one.reads:  # no listed group changes what a row adds
        moves = np.zeros_like(moves)
    finite, fix = bool(np.isfinite(norms + moves).all()), "Scale the features, or pass a clip."
    expected = "rows and weights whose contributions are finite numbers"
    need(finite, expected, of=one.name, got="some that overflow", fix=fix)
    bits = min(EXACT_BITS, 62 - rows.bit_length()) if exact else GRID_BITS
    norms, moves = norms * factor * OUTWARDS, moves * factor * OUTWARDS
    pairs = zip(norms.tolist(), moves.tolist(), strict=True)
    out = [replace(one, limits=Bound(norm, move, order)) for norm, move in pairs]
    return [gridded(each, 1, bits) for each in out]


def on_one_grid(one: Sum, bound: Bound) -> Scale:
    """The grid of a bound that many models share."""
    return gridded(replace(one, limits=bound, exponent=0), 1).scale


def _columns(run: Run) -> Iterator[tuple[Any, Any, Any]]:
    """The coordinates of (1, row) of a run, in the order in which they are added: places, values,
    and of which rows."""
    numbers, indptr, indices, codes, offsets = run.features
    a, b, everybody = run.a, run.a + run.n, slice(None)
    yield 0, np.ones(run.n), everybody
    if len(indptr):
        stored = slice(int(indptr[a]), int(indptr[b]))
        rows = np.repeat(np.arange(run.n), np.diff(indptr[a : b + 1]))
        yield 1 + indices[stored].astype(np.int64), numbers[0, stored].astype(np.float64), rows
    else:
        for j, column in enumerate(numbers[:, a:b]):
            yield 1 + j, column.astype(np.float64), everybody
    for offset, line in zip(offsets, codes[:, a:b], strict=True):
        yield int(offset) + line.astype(np.int64), np.ones(run.n), everybody


def _length(lines: Iterable[tuple[Any, Any]], rows: int) -> Floats:
    """The root of the sum of squares of each row's coordinates, in their order."""
    total = np.zeros(rows)
    for x, where in lines:
        if isinstance(where, slice):
            total += x * x
        else:
            np.add.at(total, where, x * x)  # one after another
    return np.sqrt(total)


def _cut(size: Floats, clip: float) -> Floats:
    """The factors of a projection onto the ball of radius `clip`; 0 for rows that are not finite.
    Not a division by the norm, which could move two rows further apart."""
    factor = np.where(size < math.inf, clip / np.where(size > 0, size, 1.0), 0.0)
    return np.where(size <= clip, 1.0, factor)


def _along(run: Run, basis: Floats) -> Floats:
    """basis @ (1, row), (lines of the basis, rows), the row's coordinates in their order."""
    r = np.zeros((len(basis), run.n))
    for place, x, rows in _columns(run):
        terms = basis[:, place] * x if np.ndim(place) else basis[:, place, None] * x
        if isinstance(rows, slice):
            r += terms
        else:
            for line, term in zip(r, terms, strict=True):
                np.add.at(line, rows, term)
    return r


ROWS_CLIPPED = "rows are clipped to norm {clip:g}"


def feature_sums(
    facts: Facts,
    cells: Cells | None = None,
    clip: float | None = None,
    by_label: bool = False,
    basis: Any = None,
) -> Sum:
    """The sum of clipped rows (1, features) in each cell (and label): shape (cells[, labels], 1 +
    width).

    Within a cell x -> -x moves a sum by 2 R, so replace-one costs 2 R, not sqrt(2) R
    (theory.md#feature-sums). `basis` (k, 1 + width), of public or released numbers: a row then adds
    basis @ (1, features), clipped to norm `clip`: shape (cells[, labels], k). Fewer coordinates get
    noise, and a row's size is measured along them: on whitened or rotated features, for example.
    """
    facts.need_order_two("feature sums")
    if basis is not None:
        basis, wide = floats_of(basis), 1 + facts.layout.width
        fits = basis.ndim == 2 and len(basis) and basis.shape[1] == wide
        fix = "One line a coordinate: the intercept's factor, the numbers', then the categories'."
        need(fits, f"finite numbers (k, {wide})", of="basis", got=basis.shape, fix=fix)
    per_row, count = (cells.per_row, cells.count) if cells is not None else (1, 1)
    labels, most = _labels(facts, by_label), math.inf if clip is None else clip
    width = 1 + facts.layout.width if basis is None else len(basis)
    longest = facts.coordinates if basis is None else len(basis)
    shape, buckets = (count, *((labels,) if by_label else ()), width), count * labels

    def total(run: Run, units: Any) -> Array:
        step, lines = run.weights * float(np.atleast_1d(units)[0]), run.cells(cells, labels)
        if basis is not None:
            r = _along(run, basis)
            size = _length(((line, slice(None)) for line in r), run.n)
            steps = whole_steps(r * _cut(size, most), 1.0, step)
            return added(lines, steps, buckets).reshape(1, *shape)
        out = np.zeros(buckets * width, np.int64)
        size = _length(((x, rows) for _, x, rows in _columns(run)), run.n)
        factor, step = _cut(size, most), np.broadcast_to(step, run.n)
        for place, x, rows in _columns(run):
            steps = whole_steps(x * factor[rows], 1.0, step[rows])[None]
            out += added(lines[:, rows] * width + place, steps, buckets * width)[:, 0]
        return out.reshape(1, *shape)

    def sizes(run: Run) -> tuple[Floats, float]:
        lines = () if basis is None else _along(run, basis)
        along = _length(((line, slice(None)) for line in lines), run.n)
        return np.minimum(np.sqrt(_square(run)) if basis is None else along, most), 0.0

    bound = None
    if clip is not None:
        radius = checks.positive(clip=clip)
        radius = radius * (1.0 + (facts.layout.width + longest + 32) * SLACK)
        bound = of_signed(radius, facts.cap or 1.0, per_row)
    reads, apart = _reads((FEATURES,), cells, by_label), cells if per_row == 1 else None
    head = ("feature sums", shape, reads, bound, 0, total, 2.0, 0.0, apart)
    maxima = partial(_maxima, sizes, per_row, 2)
    one = Sum(*head, coordinates=per_row * longest, maxima=maxima)
    return gridded(one, facts.promise.rows_per_unit)


FeatureSums = Kind("feature sums", feature_sums, ROWS_CLIPPED)


def _square(run: Run) -> Floats:
    """|row|^2, the intercept's 1 included."""
    s2 = np.empty(run.n)
    scores_into(run.features, np.empty((0, 1)), run.a, run.n, np.empty((0, run.n)), s2)
    return s2


def longest_row(run: Run) -> float:
    """The largest weight x |row| of these rows."""
    return float((np.sqrt(_square(run)) * run.weights).max(initial=0.0))


def number_moments(facts: Facts, clip: float | None = None) -> Sum:
    """The sums over rows of each number and of its square: shape (2, numbers). For scaling numbers
    by what was released.

    A row contributes (x, x^2), clipped to norm `clip`: sqrt(2 numbers) clips nothing where numbers
    are within [-1, 1], as a schema's encoder makes them.
    """
    facts.need_order_two("number moments")
    count, most = facts.layout.numbers, math.inf if clip is None else clip

    def numbers(run: Run) -> list[tuple[Any, Any, Any]]:
        return list(_columns(run))[1 : None if not len(run.features[3]) else -len(run.features[3])]

    def lengths(run: Run) -> Floats:
        total = np.zeros(run.n)
        for _, x, rows in numbers(run):
            square = x * x
            if isinstance(rows, slice):
                total += square + square * square
            else:
                np.add.at(total, rows, square + square * square)
        return np.sqrt(total)

    def total(run: Run, units: Any) -> Array:
        unit, out, size = (
            float(np.atleast_1d(units)[0]),
            np.zeros((2, count), np.int64),
            lengths(run),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(size > most, most / size, 1.0) * unit * run.weights
        factor = np.where(size < math.inf, factor, 0.0)
        for place, x, rows in numbers(run):
            at = np.broadcast_to(np.asarray(place) - 1, x.shape)[None]
            out[0] += added(at, whole_steps(x, factor[rows], 1.0)[None], count)[:, 0]
            out[1] += added(at, whole_steps(x * x, factor[rows], 1.0)[None], count)[:, 0]
        return out[None]

    def sizes(run: Run) -> tuple[Floats, float]:
        return np.minimum(lengths(run), most), 0.0

    bound = None
    if clip is not None:
        radius = checks.positive(clip=clip) * (1.0 + (count + 32) * SLACK)
        bound = of_signed(radius, facts.cap or 1.0)
    head = ("number moments", (2, count), frozenset({FEATURES}), bound, 0, total)
    one = Sum(*head, coordinates=2 * count, maxima=partial(_maxima, sizes, 1, 2))
    return gridded(one, facts.promise.rows_per_unit)


NUMBERS_CLIPPED = "numbers and their squares are clipped to norm {clip:g}"
NumberMoments = Kind("number moments", number_moments, NUMBERS_CLIPPED)


def gram_matrices(
    facts: Facts, cells: Cells | None = None, clip: float | None = None, with_target: bool = False
) -> Sum:
    """The sum of r r' in each cell, r = clipped (1, features[, target]): shape (cells, d, d),
    symmetric (theory.md#gram).

    Noise is symmetric too: variance s^2 on the diagonal and s^2/2 beside it, which is what the
    Frobenius norm asks for.
    """
    facts.need_order_two("gram matrices")
    width, longest = 1 + facts.layout.width + with_target, facts.coordinates
    per_row, count = (cells.per_row, cells.count) if cells is not None else (1, 1)
    most, bound = math.inf if clip is None else clip, None
    if clip is not None:
        radius = checks.positive(clip=clip) * (1.0 + (facts.layout.width + longest + 32) * SLACK)
        bound = of_gram(radius, facts.cap or 1.0, per_row)

    def total(run: Run, units: Any) -> Array:
        out, block = np.zeros((count, width, width), np.int64), run.block
        rows, where = (block.labels, block.cells(cells), block.weights), (run.a, run.a + run.n)
        unit = float(np.atleast_1d(units)[0])
        grams(run.features, rows, *where, longest, with_target, most, unit, out)
        out += np.triu(out, 1).swapaxes(-1, -2)
        return out[None]

    def sizes(run: Run) -> tuple[Floats, float]:
        square = _square(run) + (run.labels.astype(np.float64) ** 2 if with_target else 0.0)
        return np.minimum(square, most**2), 0.0

    reads, apart = _reads((FEATURES,), cells, with_target), cells if per_row == 1 else None
    head = ("gram matrices", (count, width, width), reads, bound, 0, total)
    one = Sum(*head, math.sqrt(2), 0.0, apart, True, maxima=partial(_maxima, sizes, per_row, 2))
    one = replace(one, coordinates=per_row * (longest + with_target) ** 2)
    return gridded(one, facts.promise.rows_per_unit)


GramMatrices = Kind("gram matrices", gram_matrices, ROWS_CLIPPED)
