"""Fused passes over a block of coded rows, with sums that are exact.

Every row's arithmetic is one fixed sequence of IEEE double operations (additions in the order
intercept, numbers, codes; an `exp` and a `log` of our own; no fused multiply-add, no fast-math), so
a row contributes the same bits alone or among millions, for one model or for sixty. A contribution
v is put on the grid by r = v * scale + MAGIC, whose bit pattern is the integer round(v * scale)
above a constant; patterns are added as 64-bit integers, which no order can change (theory.md#sums).

Guarantees (tests/curator/test_curator_kernels.py):
1. The integers returned do not depend on the order of rows, the range they are cut into, or the
   number of models in a pass.
2. |sum of one row's coordinates on the grid|_2 <= clip * scale + sqrt(nonzero coordinates) / 2, for
   any finite input.
3. A row of finite numbers whose residual is not finite contributes zero. (`rows` lets no other
   numbers in.)
"""

from __future__ import annotations

import numpy as np

from ..._types import Array, Floats, Integers, Numbers
from ...core.kernels import (
    MAGIC,
    MAGIC_BITS,
    TILE,
    add_gradient,
    jit,
    scores_into,
    sigmoid_into,
    softmax_into,
)
from .tiles import (
    LOG_LOSS,
    SOFT,
    add_costs,
    cell_index_into,
    clip_into,
    residuals_into,
    weigh_by_cell,
)


@jit
def add_histogram(
    kind: int,
    z: Floats,
    p: Floats,
    index: Integers,
    weights: Floats,
    scale: float,
    lo: int,
    m: int,
    work: Floats,
    out: Array,
) -> None:
    """out[index[t], k] += round(weight x prediction[k, t] x scale); soft: probabilities, hard: the
    first largest score."""
    K = z.shape[0]
    bits = work.view(np.int64)
    for k in range(K):
        if kind == SOFT:
            for t in range(m):
                work[t] = p[k, t]
        elif K == 1:
            for t in range(m):
                # A score of 0 is a decision for the first class; of several equal scores the first
                # is the largest.
                work[t] = 1.0 if z[0, t] > 0.0 else 0.0
        else:
            for t in range(m):
                best = 0
                for j in range(1, K):
                    best = j if z[j, t] > z[best, t] else best
                work[t] = 1.0 if best == k else 0.0
        if weights.shape[0] > 0:
            for t in range(m):
                work[t] = work[t] * weights[lo + t]
        for t in range(m):
            v = work[t] * scale
            work[t] = (v if abs(v) < np.inf else 0.0) + MAGIC
        for t in range(m):
            out[index[t], k] += bits[t] - MAGIC_BITS


@jit
def descend(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    labels: Array,
    cells: Integers,
    weights: Floats,
    coef: Floats,
    start: int,
    stop: int,
    loss: int,
    loss_weight: float,
    cell_weights: Floats,
    sharpness: float,
    costs: Floats,
    cost_labels: int,
    clip: float,
    scale: float,
    gradient: Array,
    kind: int,
    hist_labels: int,
    hist_scale: float,
    histogram: Array,
    sizes: Floats,
) -> None:
    """One fused pass for one model: its clipped gradient sum and its histogram of predictions, in
    grid units.

    The histogram and the costs see softmax(sharpness x score), the loss softmax(score). `costs`
    (cells x labels, classes), `cell_weights` (cells,) and `histogram` are skipped when empty; so is
    `gradient`. `sizes`: |row|^2 of each row where it is known, else empty.
    """
    K = coef.shape[0]
    z = np.empty((K, TILE))
    p = np.empty((K, TILE))
    soft = np.empty((K, TILE))
    u = np.empty((K, TILE))
    s2, a, b, c, d = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    index = np.empty(TILE, np.int64)
    wants_gradient = gradient.shape[1] > 0
    wants_costs = costs.shape[0] > 0
    wants_histogram = histogram.shape[0] > 0
    # Loss and costs then see the same probabilities, which are found once.
    same = sharpness == 1.0
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        scores_into(numbers, indptr, indices, codes, offsets, coef, lo, m, z, s2)
        for t in range(min(m, sizes.shape[0])):
            s2[t] = sizes[lo + t]
        if (wants_gradient and loss == LOG_LOSS) or (
            same and (wants_costs or (wants_histogram and kind == SOFT))
        ):
            if K == 1:
                sigmoid_into(z[0], 1.0, p[0], a, b, m)
            else:
                softmax_into(z, 1.0, p, a, b, c, d, m)
        if not same and (wants_costs or (wants_histogram and kind == SOFT)):
            if K == 1:
                sigmoid_into(z[0], sharpness, soft[0], a, b, m)
            else:
                softmax_into(z, sharpness, soft, a, b, c, d, m)
        smooth = p if same else soft
        if wants_gradient:
            residuals_into(loss, loss_weight, p, z, labels, lo, m, u)
            if cell_weights.shape[0] > 0:
                weigh_by_cell(cell_weights, cells, lo, m, u, a)
            if wants_costs:
                for line in range(cells.shape[0]):
                    cell_index_into(cells, line, labels, cost_labels, lo, m, index)
                    add_costs(costs, index, smooth, sharpness, m, u, a)
            # After the loss, the weight of the cell and the costs: all that depends on the row is
            # inside of the clip (docs/theory/mechanisms.md).
            clip_into(u, s2, clip, weights, scale, lo, m, a)
            add_gradient(numbers, indptr, indices, codes, offsets, u, lo, m, a, gradient)
        if wants_histogram:
            for line in range(cells.shape[0]):
                cell_index_into(cells, line, labels, hist_labels, lo, m, index)
                add_histogram(kind, z, smooth, index, weights, hist_scale, lo, m, a, histogram)


@jit
def descend_chosen(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    labels: Array,
    cells: Integers,
    weights: Floats,
    chosen: Integers,
    coef: Floats,
    loss: int,
    loss_weight: float,
    cell_weights: Floats,
    sharpness: float,
    costs: Floats,
    cost_labels: int,
    clip: float,
    scale: float,
    gradient: Array,
    kind: int,
    hist_labels: int,
    hist_scale: float,
    histogram: Array,
) -> None:
    """`descend` over the rows of dense numbers whose places are listed: a batch, gathered a few
    tiles at a time."""
    # Small enough to stay in the processor's cache. Sums of integers do not notice where rows are
    # cut.
    most = min(chosen.shape[0], 2 * TILE)
    some_numbers = np.empty((numbers.shape[0], most), numbers.dtype)
    some_codes = np.empty((codes.shape[0], most), codes.dtype)
    some_cells = np.empty((cells.shape[0], most), cells.dtype)
    some_labels = np.empty(most if labels.shape[0] > 0 else 0, labels.dtype)
    some_weights = np.empty(most if weights.shape[0] > 0 else 0)
    unknown = np.empty(0)
    for start in range(0, chosen.shape[0], 2 * TILE):
        m = min(2 * TILE, chosen.shape[0] - start)
        at = chosen[start : start + m]
        for j in range(numbers.shape[0]):
            for t in range(m):
                some_numbers[j, t] = numbers[j, at[t]]
        for j in range(codes.shape[0]):
            for t in range(m):
                some_codes[j, t] = codes[j, at[t]]
        for j in range(cells.shape[0]):
            for t in range(m):
                some_cells[j, t] = cells[j, at[t]]
        for t in range(min(m, some_labels.shape[0])):
            some_labels[t] = labels[at[t]]
        for t in range(min(m, some_weights.shape[0])):
            some_weights[t] = weights[at[t]]
        # fmt: off
        descend(
            some_numbers, indptr, indices, some_codes, offsets, some_labels, some_cells, some_weights, coef, 0, m, loss,
            loss_weight, cell_weights, sharpness, costs, cost_labels, clip, scale, gradient, kind, hist_labels, hist_scale,
            histogram, unknown,
        )


@jit
def predict(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    coef: Floats,
    sharpness: float,
    z: Floats,
    p: Floats,
    s2: Floats,
) -> None:
    """Scores z and probabilities p (outputs, rows) and |row|^2 (rows,) of a block, as the passes
    above compute them.

    For public maxima, when the rows are public.
    """
    K = coef.shape[0]
    tile, soft = np.empty((K, TILE)), np.empty((K, TILE))
    squares, a, b, c, d = (
        np.empty(TILE),
        np.empty(TILE),
        np.empty(TILE),
        np.empty(TILE),
        np.empty(TILE),
    )
    for lo in range(0, s2.shape[0], TILE):
        m = min(TILE, s2.shape[0] - lo)
        scores_into(numbers, indptr, indices, codes, offsets, coef, lo, m, tile, squares)
        if K == 1:
            sigmoid_into(tile[0], sharpness, soft[0], a, b, m)
        else:
            softmax_into(tile, sharpness, soft, a, b, c, d, m)
        for t in range(m):
            s2[lo + t] = squares[t]
            for k in range(K):
                z[k, lo + t] = tile[k, t]
                p[k, lo + t] = soft[k, t]
