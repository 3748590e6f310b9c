"""The same totals in plain NumPy: what every kernel computes, to be read beside it and tested
against it.

No grid, no integers, no fixed order: these agree with the kernels to a stated tolerance (about 1e-6
of the clip a row), and nothing is ever released from here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairveil._types import Floats
from fairveil.core.questions import Question
from fairveil.core.rows import Block
from fairveil.core.sums import (
    CellCounts,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    NumberMoments,
    PredictionHistogram,
    RowCount,
    ScoreHistogram,
)


def dense(block: Block) -> Floats:
    """Rows (1, numbers, indicators), one-hot: for small blocks only."""
    out = np.zeros((block.rows, 1 + block.layout.width))
    out[:, 0] = 1.0
    if block.is_sparse:
        import scipy.sparse

        parts = (block.numbers[0], block.indices, block.indptr)
        out[:, 1 : 1 + block.layout.numbers] = scipy.sparse.csr_array(
            parts, shape=(block.rows, block.layout.numbers)
        ).toarray()
    else:
        out[:, 1 : 1 + block.layout.numbers] = block.numbers.T
    first = 1 + block.layout.numbers
    for line, size in zip(block.codes, block.layout.code_sizes, strict=True):
        # a narrow code plus an offset would wrap
        out[np.arange(block.rows), first + line.astype(np.intp)] = 1.0
        first += size
    return out


def number_columns(block: Block) -> Any:
    """The numbers alone, (numbers, rows), float64: a CSC array where the block is sparse."""
    if not block.is_sparse:
        return block.numbers.astype(np.float64)
    import scipy.sparse

    parts = (block.numbers[0].astype(np.float64), block.indices, block.indptr)
    return scipy.sparse.csr_array(parts, shape=(block.rows, block.layout.numbers)).T


def row_weights(block: Block) -> Floats:
    """Sample weights, ones when there are none."""
    return block.weights if len(block.weights) else np.ones(block.rows)


def probabilities(scores: Floats, sharpness: float) -> Floats:
    """softmax(sharpness x score); with one score a row, the second class's sigmoid."""
    with np.errstate(over="ignore"):
        if scores.shape[1] == 1:
            return np.asarray(1.0 / (1.0 + np.exp(-sharpness * scores)))
        e = np.exp(sharpness * (scores - scores.max(axis=1, keepdims=True)))
        return np.asarray(e / e.sum(axis=1, keepdims=True))


def predictions(question: Question, block: Block, m: int) -> Floats:
    """Rows of soft or hard decisions of model m."""
    scores = dense(block) @ question.model.array[m].T
    if question.decisions == "soft":
        return probabilities(scores, question.model.sharpness)
    if scores.shape[1] == 1:
        return np.asarray((scores > 0).astype(np.float64))
    return np.asarray(np.eye(scores.shape[1])[scores.argmax(axis=1)])


def residuals(question: Question, block: Block, m: int) -> Floats:
    """d (loss + costs) / d score of model m, a row each."""
    model = question.model
    weight = np.broadcast_to(question.loss_weight, (question.models,))[m]
    scores = dense(block) @ model.array[m].T
    u: Floats = np.zeros_like(scores)
    if question.loss == "squared":
        u = weight * (scores - block.labels[:, np.newaxis])
    elif question.loss == "log":
        wanted = np.arange(scores.shape[1]) if scores.shape[1] > 1 else np.ones(1)
        u = weight * (probabilities(scores, 1.0) - (block.labels[:, np.newaxis] == wanted))
    if question.cell_weights is not None:
        weights = np.broadcast_to(
            question.cell_weights, (question.models, question.cell_weights.shape[-1])
        )[m]
        u = u * weights[block.cells(question.cells).astype(np.int64)].sum(axis=0)[:, np.newaxis]
    if question.cell_costs is not None:
        u = u + cost_residuals(question, block, m, _own_costs(question, block, m))
    return u


def _own_costs(question: Question, block: Block, m: int) -> Floats:
    """What each row's own cells cost it, summed over its cells."""
    costs, told = costs_of(question, m)
    labels = block.labels if told > 1 else 0
    index = block.cells(question.cells).astype(np.int64) * told + labels
    return np.asarray(costs[index].sum(axis=0))


def costs_of(question: Question, m: int) -> tuple[Floats, int]:
    """Costs of model m, (cells x labels, outputs), of two classes the second's less the first's;
    and how many labels they tell apart."""
    given = question.cell_costs
    given = given[m] if given.ndim == 4 else given
    if question.model.outputs == 1:
        given = given[..., 1:] - given[..., :1]
    return given.reshape(-1, given.shape[-1]), given.shape[1]


def cost_residuals(question: Question, block: Block, m: int, costs: Floats) -> Floats:
    """J' costs a row: the derivative in the scores of sum_k softmax(sharpness x score)_k
    costs_k."""
    p = probabilities(dense(block) @ question.model.array[m].T, question.model.sharpness)
    if p.shape[1] == 1:
        return np.asarray(question.model.sharpness * p * (1 - p) * costs)
    return np.asarray(
        question.model.sharpness * p * (costs - (p * costs).sum(axis=1, keepdims=True))
    )


def losses(question: Question, block: Block, m: int, limit: float) -> Floats:
    """Cut losses of model m, a row each."""
    scores = dense(block) @ question.model.array[m].T
    labels = block.labels
    if question.loss == "squared":
        raw = (scores[:, 0] - labels) ** 2
    elif question.loss == "zero-one":
        decided = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        raw = (decided != labels).astype(np.float64)
    elif scores.shape[1] == 1:
        raw = np.logaddexp(0.0, np.where(labels == 1, -scores[:, 0], scores[:, 0]))
    else:
        raw = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(labels)), labels]
    return np.asarray(np.minimum(raw, limit))


def shortened(rows: Floats, clip: float | None) -> Floats:
    """Rows onto the ball of radius clip."""
    if clip is None:
        return rows
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, clip / np.maximum(sizes, 1e-300)))


def _scatter(question: Any, block: Block, rows: Floats, by_label: bool) -> Floats:
    """Sum rows by cell (and label)."""
    labels = len(block.layout.classes or ()) if by_label else 1
    count = 1 if question.cells is None else question.cells.count
    out = np.zeros((count * labels, *rows.shape[1:]))
    for line in block.cells(question.cells):
        np.add.at(out, line.astype(np.int64) * labels + (block.labels if by_label else 0), rows)
    return out.reshape(count, *((labels,) if by_label else ()), *rows.shape[1:])


def total(question: Question, block: Block, m: int = 0) -> Floats:
    """One model's total over a block."""
    w = row_weights(block)
    if question.kind is RowCount:
        return np.array([w.sum()])
    if question.kind is CellCounts:
        counts = _scatter(question, block, w, question.by_label)
        return counts if question.group is None else counts[question.group : question.group + 1]
    if question.kind is PredictionHistogram:
        return _scatter(
            question, block, w[:, np.newaxis] * predictions(question, block, m), question.by_label
        )
    if question.kind is ScoreHistogram:
        scores = dense(block) @ question.model.array[m, 0]
        bins = np.eye(1 + len(question.edges))[
            (scores[:, np.newaxis] > np.array(question.edges)).sum(axis=1)
        ]
        return _scatter(question, block, w[:, np.newaxis] * bins, question.by_label)
    if question.kind is GradientSum:
        X = dense(block)
        gradients = residuals(question, block, m)[:, :, np.newaxis] * X[:, np.newaxis, :]
        flat = shortened(gradients.reshape(block.rows, -1), question.clip)
        return np.asarray((w @ flat).reshape(gradients.shape[1:]))
    if question.kind is NumberMoments:
        x = dense(block)[:, 1 : 1 + block.layout.numbers]
        return np.asarray((w @ shortened(np.hstack([x, x**2]), question.clip)).reshape(2, -1))
    if question.kind is FeatureSums:
        r = dense(block) if question.basis is None else dense(block) @ question.basis.T
        return _scatter(
            question, block, w[:, np.newaxis] * shortened(r, question.clip), question.by_label
        )
    if question.kind is GramMatrices:
        r = shortened(gram_rows(question, block), question.clip)
        return _scatter(
            question,
            block,
            w[:, np.newaxis, np.newaxis] * r[:, :, np.newaxis] * r[:, np.newaxis, :],
            False,
        )
    if question.kind is GroupLosses:
        limit = np.inf if question.clip is None else question.clip
        limit = min(1.0, limit) if question.loss == "zero-one" else limit
        return _scatter(question, block, w * losses(question, block, m, limit), False)
    raise TypeError(f"no reference for {question.name}")


def gram_rows(question: Question, block: Block) -> Floats:
    """(1, features[, target]), a row each."""
    X = dense(block)
    return np.column_stack([X, block.labels]) if question.with_target else X
