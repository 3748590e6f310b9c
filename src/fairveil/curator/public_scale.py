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

from ..facts import Cells
from ..privacy.sensitivity import OUTWARDS, Bound
from . import reference
from .questions import (
    GRID_BITS,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    PredictionHistogram,
    Question,
    Scale,
    gridded,
)
from .rows import Block, Rows

Floats = npt.NDArray[np.float64]
EXACT_BITS = 44


def needs_rows(question: Question) -> bool:
    """Whether its bound with public rows is a maximum over them; the others' bounds are constants anyway."""
    soft = isinstance(question, PredictionHistogram) and question.decisions == "soft"
    return soft or isinstance(question, GradientSum | FeatureSums | GramMatrices | GroupLosses)


def of(question: Question, rows: Rows, order: int = 2, *, exact: bool = False) -> list[Scale]:
    """For each model: its grid, the largest contribution of one row, and how far other sensitive values alone move the total.

    `exact`: no noise will be added, so the grid is as fine as the integers allow.
    """
    norms, spreads = np.zeros(question.models), np.zeros(question.models)
    for block in rows.blocks():
        w = reference.row_weights(block)
        for m in range(question.models):
            sizes, moves = _sizes_and_moves(question, block, rows, m, order)
            norms[m] = max(norms[m], float((w * sizes).max(initial=0.0)))
            spreads[m] = max(spreads[m], float((w * moves).max(initial=0.0)))
    if "sensitive" not in question.reads:
        spreads[:] = 0.0
    bits = min(EXACT_BITS, 62 - rows.exact_count.bit_length()) if exact else GRID_BITS
    coordinates = _coordinates(question, rows)
    pairs = zip((norms * OUTWARDS).tolist(), (spreads * OUTWARDS).tolist(), strict=True)
    return [gridded(Bound(norm, spread, order), coordinates, bits) for norm, spread in pairs]


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


def _sizes_and_moves(question: Question, block: Block, rows: Rows, m: int, order: int) -> tuple[Floats, Floats]:
    """For each row: the norm of its contribution, and of its largest change by other sensitive values."""
    if isinstance(question, GradientSum):
        return _gradient(question, block, rows, m)
    if isinstance(question, PredictionHistogram):
        z, _ = _scores(question.model.array[m], block, rows)
        p = reference.probabilities(z.T, question.model.sharpness)
        sizes = np.linalg.norm(p, ord=order, axis=1)
    elif isinstance(question, GroupLosses):
        limit = np.inf if question.clip is None and question.loss != "zero-one" else question.limit
        sizes = reference.losses(question, block, m, limit)
    elif isinstance(question, FeatureSums):
        sizes = np.sqrt(_scores(np.zeros((1, 1 + rows.layout.width)), block, rows)[1])
        sizes = np.minimum(sizes, np.inf if question.clip is None else question.clip)
    elif isinstance(question, GramMatrices):
        squares = _scores(np.zeros((1, 1 + rows.layout.width)), block, rows)[1]
        squares = squares + (block.labels.astype(np.float64) ** 2 if question.with_target else 0.0)
        sizes = np.minimum(squares, np.inf if question.clip is None else question.clip**2)
    else:
        raise TypeError(f"no public bound for {type(question).__name__}")
    moved = question.per_row * (2 if order == 1 else 1)
    factors = (question.per_row, moved) if order == 1 else (math.sqrt(question.per_row), math.sqrt(2 * question.per_row))
    return sizes * factors[0], sizes * factors[1]


def _scores(coef: Floats, block: Block, rows: Rows) -> tuple[Floats, Floats]:
    from . import kernels

    z, s2 = np.empty((coef.shape[0], block.rows)), np.empty(block.rows)
    coef = np.ascontiguousarray(coef)
    kernels.scores(block.numbers, block.indptr, block.indices, block.codes, rows.offsets, coef, z, s2)
    return z, s2


def _gradient(question: GradientSum, block: Block, rows: Rows, m: int) -> tuple[Floats, Floats]:
    """The largest |residual| |row| under any listed cell, and |row| times the largest |J'(costs of one cell - of another)|."""
    z, s2 = _scores(question.model.array[m], block, rows)
    u = np.zeros_like(z)
    if question.loss == "squared":
        u = question.loss_weight * (z - block.labels)
    elif question.loss == "log":
        wanted = np.arange(len(z)) if len(z) > 1 else np.ones(1)
        u = question.loss_weight * (reference.probabilities(z.T, 1.0).T - (block.labels == wanted[:, np.newaxis]))
    sizes, moves = np.linalg.norm(u, axis=0), np.zeros(block.rows)
    if question.cell_costs is not None:
        p = reference.probabilities(z.T, question.model.sharpness)
        costs = question.costs(rows.layout)[m].reshape(-1, question.cost_labels, p.shape[1])
        labels = block.labels if question.cost_labels > 1 else np.zeros(block.rows, np.int64)
        for members in _columns(question.cells):
            # Over listed cells, never over the row's own: even the grid must not depend on a sensitive value.
            each = [_through(p, costs[a, labels], question.model.sharpness) for a in members]
            sizes = sizes + np.max([np.linalg.norm(change, axis=1) for change in each], axis=0)
            pairs = [np.linalg.norm(a - b, axis=1) for a, b in itertools.combinations(each, 2)]
            moves = moves + np.max(pairs, axis=0, initial=0.0)
    row = np.sqrt(s2)
    return sizes * row, moves * row


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
