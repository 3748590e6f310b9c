"""Bounds when the rows are public: sensitive features alone protected (theory.md#public), or no
privacy at all.

Then the maxima run over the actual rows, for every row over all pairs of *listed* groups, and no
clip is needed. A person may change all her sensitive columns at once; with marginal groups she is
in one cell of each column, and the columns' moves add.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._types import Floats
from ...core.bound import OUTWARDS, Bound
from ...core.rows import Block, Rows
from ...core.threads import in_pieces
from ...errors import InputError
from ..question import GRID_BITS, Question, Scale, gridded
from ..questions import cell_weights
from ..questions.by_cell import ByCell, Weighed, inner_of
from ..questions.cell_weights import columns_of as columns_of
from ..questions.gradients import GradientSum
from ..questions.histograms import PredictionHistogram
from ..questions.of_models import GroupLosses
from ..questions.of_rows import FeatureSums, GramMatrices, NumberMoments
from ..sharded import ShardedRows
from . import reference
from .reach import ROUNDING, reach_of, rounding_of

EXACT_BITS = 44
_NO_WEIGHTS = np.empty(0)


def needs_rows(question: Question) -> bool:
    """Whether its bound with public rows is a maximum over them; the others' bounds are constants
    anyway."""
    question = inner_of(question)
    soft = isinstance(question, PredictionHistogram) and question.decisions == "soft"
    return soft or isinstance(
        question, GradientSum | FeatureSums | GramMatrices | NumberMoments | GroupLosses
    )


def of(
    question: Question,
    rows: Rows,
    order: int = 2,
    *,
    exact: bool = False,
    threads: int | None = None,
    factor: float = 1.0,
) -> list[Scale]:
    """For each model: its grid, the largest contribution of one row, and how far other sensitive
    values alone move the total.

    `exact`: no noise will be added, so the grid is as fine as the integers allow. Predictions are
    the kernels' own; what is computed from them here may be off by rounding, for which `ROUNDING`
    is added to every size and move. `factor`: of every row's contribution.
    """
    if isinstance(question, ByCell):
        inner = of(question.inner, rows, order, exact=exact, threads=threads)
        return [question.across(scale, alone=True) for scale in inner]
    if isinstance(question, Weighed):
        inner = of(
            question.inner, rows, order, exact=exact, threads=threads, factor=question.cap(None)
        )
        return [question.weighing(scale, rows.layout, alone=True) for scale in inner]
    if isinstance(rows, ShardedRows) and not _is_by_longest_row(question, exact):
        maxima = rows.largest(question, order, exact)
    else:
        maxima = found(question, rows, order, exact=exact, threads=threads)
    return of_maxima(question, rows, order, maxima, exact=exact, factor=factor)


def of_maxima(
    question: Question,
    rows: Rows,
    order: int,
    maxima: tuple[Floats, Floats],
    *,
    exact: bool = False,
    factor: float = 1.0,
) -> list[Scale]:
    """The scales that `of` gives, from the largest contribution and the largest move of each model:
    see `found`."""
    norms, spreads = maxima
    # a projection: it never expands a difference
    if isinstance(question, GradientSum) and question.clip is not None:
        limit = question.limit(rows.layout) * (rows.max_sample_weight if rows.weighted else 1.0)
        # After the clip no row is longer than it, and no two are further apart than twice it.
        norms, spreads = np.minimum(norms, limit), np.minimum(spreads, 2.0 * limit)
    if "sensitive" not in question.reads:
        # No listed group changes what a row adds to a sum that does not read groups.
        spreads[:] = 0.0
    # Without noise the grid is as fine as 62 bits allow for this many rows. The number is public
    # here.
    bits = min(EXACT_BITS, 62 - rows.exact_count.bit_length()) if exact else GRID_BITS
    coordinates = _coordinates(question, rows)
    pairs = zip(
        (norms * factor * OUTWARDS).tolist(), (spreads * factor * OUTWARDS).tolist(), strict=True
    )
    return [gridded(Bound(norm, diameter, order), coordinates, bits) for norm, diameter in pairs]


def found(
    question: Question, rows: Rows, order: int, *, exact: bool, threads: int | None
) -> tuple[Floats, Floats]:
    """For each model the largest contribution of one of these rows, and its largest move, before
    any clip."""
    norms, spreads = np.zeros(question.models), np.zeros(question.models)
    if isinstance(question, GradientSum):
        bounded = _is_by_longest_row(question, exact)
        norms, spreads = (
            _of_any_row(question, rows) if bounded else _largest(question, rows, threads)
        )
    for block in () if isinstance(question, GradientSum) else rows.blocks():
        w = reference.row_weights(block)
        for m in range(question.models):
            with np.errstate(over="ignore", invalid="ignore"):
                sizes, moves, slack = _sizes_and_moves(question, block, rows, m, order)
                sizes, moves = (
                    # A row of weight 0 adds nothing, also where its numbers overflow.
                    np.where(w > 0, w * (values + slack), 0.0)
                    for values in (sizes, moves)
                )
            _need_finite(sizes, moves, question)
            norms[m] = max(norms[m], float(sizes.max(initial=0.0)))
            spreads[m] = max(spreads[m], float(moves.max(initial=0.0)))
    return norms, spreads


def _is_by_longest_row(question: Question, exact: bool) -> bool:
    """Whether the bound follows from the longest row, which is found once."""
    return exact and isinstance(question, GradientSum) and question.loss != "squared"


def _need_finite(sizes: Floats, moves: Floats, question: Question) -> None:
    """Features, labels and listed groups are public here, so this error shows nothing."""
    if not (np.isfinite(sizes).all() and np.isfinite(moves).all()):
        raise InputError.expected(
            "rows and weights whose contributions are finite numbers",
            of=question.name,
            got="some that overflow",
            remedy="Scale the features (a schema's bounds do), or pass a clip.",
        )


def shared(scales: list[Scale], question: Question, rows: Rows) -> Scale:
    """One grid and bound for all models, for scores that are compared."""
    norm = max(scale.bound.norm for scale in scales)
    diameter = max(scale.bound.diameter for scale in scales)
    return gridded(Bound(norm, diameter, scales[0].bound.order), _coordinates(question, rows))


def _coordinates(question: Question, rows: Rows) -> int:
    layout = rows.layout
    row = 1 + layout.numbers + len(layout.code_sizes)
    if isinstance(question, GradientSum):
        return question.coordinates(layout)
    if isinstance(question, PredictionHistogram):
        return question.per_row * question.model.outputs
    if isinstance(question, GramMatrices):
        return question.per_row * (row + question.with_target) ** 2
    if isinstance(question, NumberMoments):
        return 2 * layout.numbers
    return question.per_row * (
        question.coordinates(layout) if isinstance(question, FeatureSums) else 1
    )


def _sizes_and_moves(
    question: Question, block: Block, rows: Rows, m: int, order: int
) -> tuple[Floats, Floats, Floats]:
    """For each row: the norm of its contribution, of its largest change by other sensitive values,
    and what rounding adds."""
    slack = np.zeros(block.rows)
    if isinstance(question, PredictionHistogram):
        _, p, _ = _predict(question.model.array[m], question.model.sharpness, block, rows)
        sizes, slack = np.linalg.norm(p, ord=order, axis=0), slack + len(p) * ROUNDING
    elif isinstance(question, GroupLosses):
        sizes, slack = _losses(question, block, rows, m)
    elif isinstance(question, NumberMoments):
        squares = reference.number_columns(block) ** 2
        lengths = np.sqrt(
            np.asarray((squares + squares**2).sum(axis=0), np.float64).reshape(block.rows)
        )
        sizes = np.minimum(lengths, np.inf if question.clip is None else question.clip)
    elif isinstance(question, FeatureSums):
        sizes = (
            np.sqrt(_squares(block, rows))
            if question.basis is None
            else _along(question, block, rows)
        )
        sizes = np.minimum(sizes, np.inf if question.clip is None else question.clip)
    elif isinstance(question, GramMatrices):
        squares = _squares(block, rows)
        squares = squares + (block.labels.astype(np.float64) ** 2 if question.with_target else 0.0)
        sizes = np.minimum(squares, np.inf if question.clip is None else question.clip**2)
    else:
        raise TypeError(f"no public bound for {type(question).__name__}")
    factors = _factors(question, order)
    return sizes * factors[0], sizes * factors[1], slack * factors[1]


def _factors(question: Question, order: int) -> tuple[float, float]:
    """Norm and move of a row that adds a number of size 1 to each of its cells."""
    if order == 1:
        return question.per_row, 2 * question.per_row
    return math.sqrt(question.per_row), math.sqrt(2 * question.per_row)


def of_probability(question: PredictionHistogram, largest: float) -> tuple[Floats, Floats]:
    """What `found` finds of soft decisions of one model of two classes, whose largest probability
    this is, in the L2 norm."""
    size, (once, moved) = math.sqrt(largest * largest), _factors(question, 2)
    return np.array([size * once + ROUNDING * moved]), np.array([size * moved + ROUNDING * moved])


def _predict(
    coef: Floats, sharpness: float, block: Block, rows: Rows
) -> tuple[Floats, Floats, Floats]:
    """Scores and probabilities (outputs, rows) and |row|^2 (rows,), as the kernels compute them."""
    from ..kernels import linear as kernels

    z, p, s2 = (
        np.empty((len(coef), block.rows)),
        np.empty((len(coef), block.rows)),
        np.empty(block.rows),
    )
    coef = np.ascontiguousarray(coef)
    parts = block.arrays(rows.offsets)
    kernels.predict(*parts, coef, sharpness, z, p, s2)
    return z, p, s2


def _squares(block: Block, rows: Rows) -> Floats:
    """|row|^2, the intercept's 1 included."""
    return _predict(np.zeros((1, 1 + rows.layout.width)), 1.0, block, rows)[2]


def _along(question: FeatureSums, block: Block, rows: Rows) -> Floats:
    """|basis @ (1, row)|."""
    from ..kernels import moments as kernels_moments

    out, longest = np.empty(block.rows), 1 + rows.layout.numbers + len(rows.layout.code_sizes)
    head = block.arrays(rows.offsets)
    kernels_moments.basis_sizes(*head, longest, np.ascontiguousarray(question.basis.T), out)
    return out


def _losses(question: GroupLosses, block: Block, rows: Rows, m: int) -> tuple[Floats, Floats]:
    """Cut losses and their rounding. A zero-one loss counts as 1: a score near 0 may fall on either
    side."""
    if question.loss == "zero-one":
        return np.full(block.rows, question.limit), np.zeros(block.rows)
    z, _, _ = _predict(question.model.array[m], 1.0, block, rows)
    limit = np.inf if question.clip is None else question.limit
    labels = block.labels
    if question.loss == "squared":
        return np.minimum((z[0] - labels) ** 2, limit), np.zeros(block.rows)
    if len(z) == 1:
        raw = np.logaddexp(0.0, np.where(labels == 1, -z[0], z[0]))
    else:
        raw = np.logaddexp.reduce(z, axis=0) - z[labels, np.arange(block.rows)]
    return np.minimum(raw, limit), ROUNDING * (1.0 + np.abs(z).max(axis=0, initial=0.0))


def _largest(question: GradientSum, rows: Rows, threads: int | None) -> tuple[Floats, Floats]:
    """For each model the largest |residual| |row| under any listed cell, and |row| times the
    largest |residual of one cell - of another| by costs and by weights of the loss, with the
    rounding of both. Over listed cells, never over the row's own: even the grid must not depend on
    a sensitive value."""
    from ..kernels import public as kernels_public
    from .descent_pass import LOSS_CODES

    model, labels = question.model, question.cost_labels
    columns = ends_of(question)
    costs = np.zeros((question.models, 1, model.outputs))
    columns, costs = (
        (columns[:0], costs)
        if question.cell_costs is None
        else (columns, question.costs(rows.layout))
    )
    parts, spans = _NO_WEIGHTS, np.zeros((question.models, 3))
    if question.cell_weights is not None:
        parts = cell_weights.by_model(question.cell_weights, question.models)
        spans[:, :2] = cell_weights.reach(parts, question.cells)
        # What a rounding of the residual may add, whatever the weight of the cell.
        spans[:, 2] = ROUNDING * spans[:, 0]
    found = np.zeros((question.models, 3))
    for block in rows.blocks():
        head = (*block.arrays(rows.offsets), block.labels)
        for m in range(question.models):
            by_cell = (parts[m] if len(parts) else parts, spans[m])
            loss = (
                LOSS_CODES[question.loss],
                float(question.loss_weights[m]),
                *by_cell,
                model.sharpness,
            )
            end = (
                costs[m],
                labels,
                columns,
                reach_of(costs[m], labels, columns),
                rounding_of(question, costs[m], loss[1]),
            )

            def job(
                a: int,
                b: int,
                m: int = m,
                fixed: Any = (*head, block.weights),
                end: Any = (loss, end),
            ) -> Floats:
                out = np.empty(3)
                kernels_public.largest_moves(*fixed, model.array[m], a, b, *end[0], *end[1], out)
                return out

            found[m] = np.max([found[m], *in_pieces(job, block.rows, threads)], axis=0)
    _need_finite(np.where(found[:, 2] > 0, np.inf, found[:, 0]), found[:, 1], question)
    return found[:, 0], found[:, 1]


def ends_of(question: GradientSum) -> npt.NDArray[np.int64]:
    """Where each sensitive column's cells begin, and the end."""
    return np.array([0, *(column.stop for column in columns_of(question.cells))])


def _of_any_row(question: GradientSum, rows: Rows) -> tuple[Floats, Floats]:
    """A norm that no row's gradient exceeds, whatever the weights; for grids of exact answers,
    which need no closer one.

    |residual of log loss| is at most 1, with several classes sqrt 2; |J' costs| at most sharpness x range / 2, since
    sum_k p_k (c_k - mean)^2 is a variance (with one score: sharpness / 4 x the difference of the costs).
    """
    longest = longest_row(rows)
    model, residual = question.model, 0.0 if question.loss == "none" else 1.0
    residual *= 1.0 if model.outputs == 1 else math.sqrt(2.0)
    norms = residual * question.loss_weights
    if question.cell_weights is not None:
        with np.errstate(over="ignore"):
            norms = norms * cell_weights.reach(question.cell_weights, question.cells)[..., 0]
    if question.cell_costs is not None:
        costs = question.costs(rows.layout)
        ranges = np.abs(costs[..., 0]) / 2 if model.outputs == 1 else np.ptp(costs, axis=-1)
        per_row = 1 if question.cells is None else question.cells.per_row
        norms += model.sharpness / 2 * per_row * ranges.max(axis=1, initial=0.0)
    norms *= longest
    _need_finite(norms, norms, question)
    return norms, 2.0 * norms


def longest_row(rows: Rows, *, weighed: bool = True) -> float:
    """The largest weight x |row|, found once; not `weighed`: |row|."""
    from ..kernels import public as kernels_public

    weighed = weighed or not rows.weighted
    if weighed and rows.largest_row is not None:
        return rows.largest_row
    largest = 0.0
    for block in () if isinstance(rows, ShardedRows) else rows.blocks():
        head = (*block.arrays(rows.offsets), block.weights if weighed else _NO_WEIGHTS)
        largest = max(largest, float(kernels_public.largest_row(*head, 0, block.rows)))
    if isinstance(rows, ShardedRows):
        largest = rows.longest
    if weighed:
        rows.largest_row = largest
    return largest
