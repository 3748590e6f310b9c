"""Bounds when the rows are public: sensitive features alone protected (PRIVACY 0 (iii), 9), or no privacy at all.

Then the maxima run over the actual rows, for every row over all pairs of *listed* groups, and no clip is needed. A person may
change all her sensitive columns at once; with marginal groups she is in one cell of each column, and the columns' moves add.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..errors import InputError, complaint
from ..facts import Cells
from ..privacy.sensitivity import OUTWARDS, Bound
from . import reference
from .block import Block
from .model_questions import GradientSum, GroupLosses, PredictionHistogram
from .question import GRID_BITS, Question, Scale, gridded
from .row_questions import FeatureSums, GramMatrices
from .rows import Rows

Floats = npt.NDArray[np.float64]
EXACT_BITS = 44
ROUNDING = 2.0**-40  # of a probability, and of a loss relative to its score: far above what a few operations lose


def needs_rows(question: Question) -> bool:
    """Whether its bound with public rows is a maximum over them; the others' bounds are constants anyway."""
    soft = isinstance(question, PredictionHistogram) and question.decisions == "soft"
    return soft or isinstance(question, GradientSum | FeatureSums | GramMatrices | GroupLosses)


def of(question: Question, rows: Rows, order: int = 2, *, exact: bool = False) -> list[Scale]:
    """For each model: its grid, the largest contribution of one row, and how far other sensitive values alone move the total.

    `exact`: no noise will be added, so the grid is as fine as the integers allow. Predictions are the kernels' own; what is
    computed from them here may be off by rounding, for which `ROUNDING` is added to every size and move.
    """
    norms, spreads = np.zeros(question.models), np.zeros(question.models)
    for block in rows.blocks():
        w = reference.row_weights(block)
        for m in range(question.models):
            with np.errstate(over="ignore", invalid="ignore"):
                sizes, moves, slack = _sizes_and_moves(question, block, rows, m, order)
                sizes, moves = (np.where(w > 0, w * (values + slack), 0.0) for values in (sizes, moves))
            _need_finite(sizes, moves, question)
            norms[m] = max(norms[m], float(sizes.max(initial=0.0)))
            spreads[m] = max(spreads[m], float(moves.max(initial=0.0)))
    if "sensitive" not in question.reads:
        spreads[:] = 0.0
    bits = min(EXACT_BITS, 62 - rows.exact_count.bit_length()) if exact else GRID_BITS
    coordinates = _coordinates(question, rows)
    pairs = zip((norms * OUTWARDS).tolist(), (spreads * OUTWARDS).tolist(), strict=True)
    return [gridded(Bound(norm, spread, order), coordinates, bits) for norm, spread in pairs]


def _need_finite(sizes: Floats, moves: Floats, question: Question) -> None:
    """Features, labels and listed groups are public here, so this error shows nothing."""
    if not (np.isfinite(sizes).all() and np.isfinite(moves).all()):
        raise InputError(
            complaint(
                expected="rows and weights whose contributions are finite numbers",
                of=question.name,
                got="some that overflow",
                remedy="Scale the features (a schema's bounds do), or pass a clip.",
            )
        )


def shared(scales: list[Scale], question: Question, rows: Rows) -> Scale:
    """One grid and bound for all models, for scores that are compared."""
    norm, spread = (max(getattr(scale.bound, name) for scale in scales) for name in ("norm", "spread"))
    return gridded(Bound(norm, spread, scales[0].bound.order), _coordinates(question, rows))


def _coordinates(question: Question, rows: Rows) -> int:
    layout = rows.layout
    row = 1 + layout.numbers + len(layout.code_sizes)
    if isinstance(question, GradientSum):
        return question.coordinates(layout)
    if isinstance(question, PredictionHistogram):
        return question.per_row * question.model.outputs
    if isinstance(question, GramMatrices):
        return question.per_row * (row + question.with_target) ** 2
    return question.per_row * (row if isinstance(question, FeatureSums) else 1)


def _sizes_and_moves(question: Question, block: Block, rows: Rows, m: int, order: int) -> tuple[Floats, Floats, Floats]:
    """For each row: the norm of its contribution, of its largest change by other sensitive values, and what rounding adds."""
    if isinstance(question, GradientSum):
        return _gradient(question, block, rows, m)
    slack = np.zeros(block.rows)
    if isinstance(question, PredictionHistogram):
        _, p, _ = _predict(question.model.array[m], question.model.sharpness, block, rows)
        sizes, slack = np.linalg.norm(p, ord=order, axis=0), slack + len(p) * ROUNDING
    elif isinstance(question, GroupLosses):
        sizes, slack = _losses(question, block, rows, m)
    elif isinstance(question, FeatureSums):
        sizes = np.sqrt(_squares(block, rows))
        sizes = np.minimum(sizes, np.inf if question.clip is None else question.clip)
    elif isinstance(question, GramMatrices):
        squares = _squares(block, rows)
        squares = squares + (block.labels.astype(np.float64) ** 2 if question.with_target else 0.0)
        sizes = np.minimum(squares, np.inf if question.clip is None else question.clip**2)
    else:
        raise TypeError(f"no public bound for {type(question).__name__}")
    moved = question.per_row * (2 if order == 1 else 1)
    factors = (question.per_row, moved) if order == 1 else (math.sqrt(question.per_row), math.sqrt(2 * question.per_row))
    return sizes * factors[0], sizes * factors[1], slack * factors[1]


def _predict(coef: Floats, sharpness: float, block: Block, rows: Rows) -> tuple[Floats, Floats, Floats]:
    """Scores and probabilities (outputs, rows) and |row|^2 (rows,), as the kernels compute them."""
    from . import kernels

    z, p, s2 = np.empty((len(coef), block.rows)), np.empty((len(coef), block.rows)), np.empty(block.rows)
    coef = np.ascontiguousarray(coef)
    parts = (block.numbers, block.indptr, block.indices, block.codes, rows.offsets)
    kernels.predict(*parts, coef, sharpness, z, p, s2)
    return z, p, s2


def _squares(block: Block, rows: Rows) -> Floats:
    """|row|^2, the intercept's 1 included."""
    return _predict(np.zeros((1, 1 + rows.layout.width)), 1.0, block, rows)[2]


def _losses(question: GroupLosses, block: Block, rows: Rows, m: int) -> tuple[Floats, Floats]:
    """Cut losses and their rounding. A zero-one loss counts as 1: a score near 0 may fall on either side."""
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


def _gradient(question: GradientSum, block: Block, rows: Rows, m: int) -> tuple[Floats, Floats, Floats]:
    """The largest |residual| |row| under any listed cell, |row| times the largest |J'(costs of one cell - of another)|, and
    the rounding of both."""
    z, p, s2 = _predict(question.model.array[m], 1.0, block, rows)
    u = np.zeros_like(z)
    if question.loss == "squared":
        u = question.loss_weight * (z - block.labels)
    elif question.loss == "log":
        wanted = np.arange(len(z)) if len(z) > 1 else np.ones(1)
        u = question.loss_weight * (p - (block.labels == wanted[:, np.newaxis]))
    sizes, moves, terms = np.linalg.norm(u, axis=0), np.zeros(block.rows), question.loss_weight
    if question.cell_costs is not None:
        sharpness = question.model.sharpness
        soft = _predict(question.model.array[m], sharpness, block, rows)[1].T
        costs = question.costs(rows.layout)[m].reshape(-1, question.cost_labels, soft.shape[1])
        labels = block.labels if question.cost_labels > 1 else np.zeros(block.rows, np.int64)
        terms += (
            sharpness
            * len(z)
            * float(np.abs(costs).max(initial=0.0))
            * (1 if question.cells is None else question.cells.per_row)
        )
        for members in _columns(question.cells):
            # Over listed cells, never over the row's own: even the grid must not depend on a sensitive value.
            each = [_through(soft, costs[a, labels], sharpness) for a in members]
            sizes = sizes + np.max([np.linalg.norm(change, axis=1) for change in each], axis=0)
            pairs = [np.linalg.norm(a - b, axis=1) for a, b in itertools.combinations(each, 2)]
            moves = moves + np.max(pairs, axis=0, initial=0.0)
    row = np.sqrt(s2)
    return sizes * row, moves * row, ROUNDING * terms * row


def _through(p: Floats, costs: Floats, sharpness: float) -> Floats:
    """J' costs, a row each."""
    if p.shape[1] == 1:
        return np.asarray(sharpness * p * (1 - p) * costs)
    return np.asarray(sharpness * p * (costs - (p * costs).sum(axis=1, keepdims=True)))


def _columns(cells: Cells | None) -> Iterator[range]:
    """The cells that one line of cell ids can name: all of them, or one sensitive column's with marginal groups."""
    if cells is None or cells.mode == "product":
        yield range(1 if cells is None else cells.count)
        return
    start = 0
    for size in cells.sizes:
        yield range(start, start + size)
        start += size
