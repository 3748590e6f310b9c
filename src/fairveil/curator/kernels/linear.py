"""Fused passes over a block of coded rows, with sums that are exact.

Every row's arithmetic is one fixed sequence of IEEE double operations (additions in the order intercept, numbers, codes; an
`exp` and a `log` of our own; no fused multiply-add, no fast-math), so a row contributes the same bits alone or among millions,
for one model or for sixty. A contribution v is put on the grid by r = v * scale + MAGIC, whose bit pattern is the integer
round(v * scale) above a constant; patterns are added as 64-bit integers, which no order can change (theory.md#sums).

Guarantees (tests/curator/test_curator_kernels.py):
1. The integers returned do not depend on the order of rows, the range they are cut into, or the number of models in a pass.
2. |sum of one row's coordinates on the grid|_2 <= clip * scale + sqrt(nonzero coordinates) / 2, for any finite input.
3. A row of finite numbers whose residual is not finite contributes zero. (`rows` lets no other numbers in.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

TILE = 512
MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to the nearest integer, ties to even
MAGIC_BITS = np.int64(np.float64(MAGIC).view(np.int64))
LOG2E = 1.4426950408889634
LN2_HIGH = 0.693147180369123816490  # the upper 33 bits of ln 2, so that n * LN2_HIGH is exact
LN2_LOW = 1.90821492927058770002e-10
TINY = 1e-140
FARTHEST = 700.0  # beyond this, exp is 0 or saturates: a probability's last bit is long decided

LOG_LOSS, SQUARED_LOSS, ZERO_ONE_LOSS, NO_LOSS = 0, 1, 2, 3
SOFT, HARD = 0, 1

Kernel = Callable[..., Any]


def jit(function: Kernel) -> Kernel:
    """Compiled, cached on disk, without fast-math and without the interpreter's lock.

    Division by zero gives inf or NaN, as IEEE says, not an exception: a check at each division would keep loops scalar.
    """
    compiled: Kernel = njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


@jit
def exp_into(x: Any, out: Any, work: Any, m: int) -> None:
    """out = exp(x) for |x| <= FARTHEST: 2^n times a Taylor polynomial of degree 13 on |r| <= ln(2)/2."""
    bits = work.view(np.int64)
    for t in range(m):
        work[t] = x[t] * LOG2E + MAGIC
    for t in range(m):
        n = work[t] - MAGIC
        r = (x[t] - n * LN2_HIGH) - n * LN2_LOW
        s = 1.6059043836821613e-10
        s = s * r + 2.08767569878681e-09
        s = s * r + 2.505210838544172e-08
        s = s * r + 2.755731922398589e-07
        s = s * r + 2.7557319223985893e-06
        s = s * r + 2.48015873015873e-05
        s = s * r + 0.0001984126984126984
        s = s * r + 0.001388888888888889
        s = s * r + 0.008333333333333333
        s = s * r + 0.041666666666666664
        s = s * r + 0.16666666666666666
        s = s * r + 0.5
        s = s * r + 1.0
        out[t] = s * r + 1.0
    for t in range(m):
        bits[t] = (bits[t] + 1023) << 52
    for t in range(m):
        out[t] = out[t] * work[t]


@jit
def log_into(x: Any, out: Any, work: Any, m: int) -> None:
    """out = log(x) for normal x > 0: exponent times ln 2 plus 2 atanh((f - 1)/(f + 1)), f in [1, 2)."""
    bits = work.view(np.int64)
    for t in range(m):
        work[t] = x[t]
    for t in range(m):
        out[t] = float((bits[t] >> 52) - 1023)
        bits[t] = (bits[t] & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000
    for t in range(m):
        s = (work[t] - 1.0) / (work[t] + 1.0)
        q = s * s
        a = 1.0 / 35.0
        for k in range(33, 0, -2):
            a = a * q + 1.0 / k
        out[t] = out[t] * 0.6931471805599453 + 2.0 * s * a


@jit
def sigmoid_into(z: Any, sharpness: float, p: Any, a: Any, b: Any, m: int) -> None:
    """p = 1 / (1 + exp(-sharpness z)), by exp of a non-positive number."""
    for t in range(m):
        y = abs(z[t] * sharpness)
        a[t] = -(y if y < FARTHEST else FARTHEST)
    exp_into(a, p, b, m)
    for t in range(m):
        e = p[t]
        p[t] = (1.0 if z[t] >= 0.0 else e) / (1.0 + e)


@jit
def softmax_into(z: Any, sharpness: float, p: Any, top: Any, total: Any, a: Any, b: Any, m: int) -> None:
    """p[k] = exp(sharpness (z[k] - max z)) / sum, classes in order."""
    K = z.shape[0]
    for t in range(m):
        top[t] = z[0, t]
        total[t] = 0.0
    for k in range(1, K):
        for t in range(m):
            top[t] = z[k, t] if z[k, t] > top[t] else top[t]
    for k in range(K):
        for t in range(m):
            y = (z[k, t] - top[t]) * sharpness
            a[t] = y if y > -FARTHEST else -FARTHEST
        exp_into(a, p[k], b, m)
        for t in range(m):
            total[t] = total[t] + p[k, t]
    for k in range(K):
        for t in range(m):
            p[k, t] = p[k, t] / total[t]


@jit
def scores_into(
    numbers: Any, indptr: Any, indices: Any, codes: Any, offsets: Any, coef: Any, lo: int, m: int, z: Any, s2: Any
) -> None:
    """z[k, t] = coef[k] . row and s2[t] = |row|^2 with the intercept's 1, for rows lo .. lo + m.

    `numbers` is (columns, rows), or, when `indptr` is not empty, the data of a CSR array.
    """
    K = z.shape[0]
    for t in range(m):
        s2[t] = 1.0 + codes.shape[0]
    for k in range(K):
        for t in range(m):
            z[k, t] = coef[k, 0]
    if indptr.shape[0] > 0:
        data = numbers[0]
        for t in range(m):
            for e in range(indptr[lo + t], indptr[lo + t + 1]):
                x = np.float64(data[e])
                s2[t] = s2[t] + x * x
                for k in range(K):
                    z[k, t] = z[k, t] + coef[k, 1 + indices[e]] * x
    else:
        for j in range(numbers.shape[0]):
            column = numbers[j, lo : lo + m]
            for t in range(m):
                x = np.float64(column[t])
                s2[t] = s2[t] + x * x
            for k in range(K):
                w = coef[k, 1 + j]
                for t in range(m):
                    z[k, t] = z[k, t] + w * np.float64(column[t])
    q = codes.shape[0]
    for c in range(0, q - 3, 4):  # four terms to a loop save loads and stores; they are added in order all the same
        line, also = codes[c, lo : lo + m], codes[c + 1, lo : lo + m]
        third, last = codes[c + 2, lo : lo + m], codes[c + 3, lo : lo + m]
        i, j, v, n = offsets[c], offsets[c + 1], offsets[c + 2], offsets[c + 3]
        for k in range(K):
            w = coef[k]
            for t in range(m):
                z[k, t] = (((z[k, t] + w[i + line[t]]) + w[j + also[t]]) + w[v + third[t]]) + w[n + last[t]]
    for c in range(q - q % 4, q):
        line = codes[c, lo : lo + m]
        first = offsets[c]
        for k in range(K):
            for t in range(m):
                z[k, t] = z[k, t] + coef[k, first + line[t]]


@jit
def residuals_into(loss: int, weight: float, p: Any, z: Any, labels: Any, lo: int, m: int, u: Any) -> None:
    """u = weight x d loss / d score: p - indicator(label) (log loss), or score - target (squared loss)."""
    K = z.shape[0]
    for k in range(K):
        for t in range(m):
            u[k, t] = 0.0
    if loss == NO_LOSS:
        return
    for k in range(K):
        if loss == SQUARED_LOSS:
            for t in range(m):
                u[k, t] = weight * (z[k, t] - np.float64(labels[lo + t]))
        else:
            wanted = 1 if K == 1 else k
            for t in range(m):
                u[k, t] = weight * (p[k, t] - (1.0 if labels[lo + t] == wanted else 0.0))


@jit
def cell_of(cells: Any, line: int, labels: Any, n_labels: int, i: int) -> Any:
    """Which (cell, label) of a flattened table row i falls in; the cell alone when n_labels is 1."""
    index = np.int64(cells[line, i])
    return index * n_labels + np.int64(labels[i]) if n_labels > 1 else index


@jit
def cell_index_into(cells: Any, line: int, labels: Any, n_labels: int, lo: int, m: int, index: Any) -> None:
    """Which (cell, label) of a flattened table a row falls in; the cell alone when n_labels is 1."""
    for t in range(m):
        index[t] = np.int64(cells[line, lo + t])
    if n_labels > 1:
        for t in range(m):
            index[t] = index[t] * n_labels + np.int64(labels[lo + t])


@jit
def weigh_by_cell(cell_weights: Any, cells: Any, lo: int, m: int, u: Any, total: Any) -> None:
    """u <- u x the sum of the weights of a row's cells, cells in order."""
    for t in range(m):
        total[t] = 0.0
    for line in range(cells.shape[0]):
        for t in range(m):
            total[t] = total[t] + cell_weights[np.int64(cells[line, lo + t])]
    for k in range(u.shape[0]):
        for t in range(m):
            u[k, t] = u[k, t] * total[t]


@jit
def add_costs(costs: Any, index: Any, p: Any, sharpness: float, m: int, u: Any, mean: Any) -> None:
    """u += J' costs: the derivative, in the scores, of sum_k p_k costs_k, with p = softmax(sharpness z)."""
    K = p.shape[0]
    if K == 1:
        for t in range(m):
            u[0, t] = u[0, t] + p[0, t] * (1.0 - p[0, t]) * sharpness * costs[index[t], 0]
        return
    for t in range(m):
        mean[t] = 0.0
    for k in range(K):
        for t in range(m):
            mean[t] = mean[t] + p[k, t] * costs[index[t], k]
    for k in range(K):
        for t in range(m):
            u[k, t] = u[k, t] + p[k, t] * (costs[index[t], k] - mean[t]) * sharpness


@jit
def clip_into(u: Any, s2: Any, clip: float, weights: Any, scale: float, lo: int, m: int, work: Any) -> None:
    """u <- weight x u x min(1, clip / (|u| |row|)) x scale; zero where that is not finite.

    With one score a row, |u| is cut at clip / |row|; with several the vector u is shortened.
    """
    K = u.shape[0]
    if clip < np.inf:
        for t in range(m):
            limit = clip / np.sqrt(s2[t])
            work[t] = limit if limit >= 0.0 else 0.0
        if K == 1:
            for t in range(m):
                r = work[t] if u[0, t] > work[t] else u[0, t]
                u[0, t] = -work[t] if r < -work[t] else r
            for t in range(m):
                work[t] = 1.0
        else:
            for t in range(m):
                total = 0.0
                for k in range(K):
                    total = total + u[k, t] * u[k, t]
                size = np.sqrt(total)
                if size < TINY:  # its square may have been lost: such a residual counts as zero, however long the row
                    work[t] = 0.0
                elif not size <= work[t]:  # NaN goes on to become zero
                    work[t] = work[t] / size
                else:
                    work[t] = 1.0
    else:
        for t in range(m):
            work[t] = 1.0
    if weights.shape[0] > 0:
        for t in range(m):
            work[t] = work[t] * weights[lo + t]
    for k in range(K):
        for t in range(m):
            r = u[k, t] * work[t] * scale
            u[k, t] = r if abs(r) < np.inf else 0.0


@jit
def add_gradient(
    numbers: Any, indptr: Any, indices: Any, codes: Any, offsets: Any, r: Any, lo: int, m: int, work: Any, out: Any
) -> None:
    """out[...] += round(r[t] x row[t]) for every coordinate, exactly. r is already in grid units."""
    bits = work.view(np.int64)
    for k in range(r.shape[0]):
        if indptr.shape[0] > 0:
            data = numbers[0]
            for t in range(m):
                for e in range(indptr[lo + t], indptr[lo + t + 1]):
                    out[k, 1 + indices[e]] += np.int64(np.rint(r[k, t] * np.float64(data[e])))
        else:
            for j in range(numbers.shape[0]):
                column = numbers[j, lo : lo + m]
                for t in range(m):
                    work[t] = r[k, t] * np.float64(column[t]) + MAGIC
                total = np.int64(0)
                for t in range(m):
                    total += bits[t]
                out[k, 1 + j] += total - m * MAGIC_BITS
        for t in range(m):
            work[t] = r[k, t] + MAGIC
        for t in range(m):
            bits[t] = bits[t] - MAGIC_BITS
        total = np.int64(0)
        for t in range(m):
            total += bits[t]
        out[k, 0] += total
        grad = out[k]
        q = codes.shape[0]
        for c in range(0, q - 3, 4):
            line, also = codes[c, lo : lo + m], codes[c + 1, lo : lo + m]
            third, last = codes[c + 2, lo : lo + m], codes[c + 3, lo : lo + m]
            i, j, v, n = offsets[c], offsets[c + 1], offsets[c + 2], offsets[c + 3]
            for t in range(m):
                b = bits[t]
                grad[i + line[t]] += b
                grad[j + also[t]] += b
                grad[v + third[t]] += b
                grad[n + last[t]] += b
        for c in range(q - q % 4, q):
            line = codes[c, lo : lo + m]
            first = offsets[c]
            for t in range(m):
                grad[first + line[t]] += bits[t]


@jit
def add_histogram(
    kind: int, z: Any, p: Any, index: Any, weights: Any, scale: float, lo: int, m: int, work: Any, out: Any
) -> None:
    """out[index[t], k] += round(weight x prediction[k, t] x scale); soft: probabilities, hard: the first largest score."""
    K = z.shape[0]
    bits = work.view(np.int64)
    for k in range(K):
        if kind == SOFT:
            for t in range(m):
                work[t] = p[k, t]
        elif K == 1:
            for t in range(m):
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
    numbers: Any,
    indptr: Any,
    indices: Any,
    codes: Any,
    offsets: Any,
    labels: Any,
    cells: Any,
    weights: Any,
    coef: Any,
    start: int,
    stop: int,
    loss: int,
    loss_weight: float,
    cell_weights: Any,
    sharpness: float,
    costs: Any,
    cost_labels: int,
    clip: float,
    scale: float,
    gradient: Any,
    kind: int,
    hist_labels: int,
    hist_scale: float,
    histogram: Any,
) -> None:
    """One fused pass for one model: its clipped gradient sum and its histogram of predictions, in grid units.

    The histogram and the costs see softmax(sharpness x score), the loss softmax(score). `costs` (cells x labels, classes),
    `cell_weights` (cells,) and `histogram` are skipped when empty; so is `gradient`.
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
    same = sharpness == 1.0
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        scores_into(numbers, indptr, indices, codes, offsets, coef, lo, m, z, s2)
        if (wants_gradient and loss == LOG_LOSS) or (same and (wants_costs or (wants_histogram and kind == SOFT))):
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
            clip_into(u, s2, clip, weights, scale, lo, m, a)
            add_gradient(numbers, indptr, indices, codes, offsets, u, lo, m, a, gradient)
        if wants_histogram:
            for line in range(cells.shape[0]):
                cell_index_into(cells, line, labels, hist_labels, lo, m, index)
                add_histogram(kind, z, smooth, index, weights, hist_scale, lo, m, a, histogram)


@jit
def descend_chosen(
    numbers: Any,
    indptr: Any,
    indices: Any,
    codes: Any,
    offsets: Any,
    labels: Any,
    cells: Any,
    weights: Any,
    chosen: Any,
    coef: Any,
    loss: int,
    loss_weight: float,
    cell_weights: Any,
    sharpness: float,
    costs: Any,
    cost_labels: int,
    clip: float,
    scale: float,
    gradient: Any,
    kind: int,
    hist_labels: int,
    hist_scale: float,
    histogram: Any,
) -> None:
    """`descend` over the rows of dense numbers whose places are listed: a batch, gathered a few tiles at a time."""
    most = min(chosen.shape[0], 2 * TILE)
    some_numbers = np.empty((numbers.shape[0], most), numbers.dtype)
    some_codes = np.empty((codes.shape[0], most), codes.dtype)
    some_cells = np.empty((cells.shape[0], most), cells.dtype)
    some_labels = np.empty(most if labels.shape[0] > 0 else 0, labels.dtype)
    some_weights = np.empty(most if weights.shape[0] > 0 else 0)
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
            histogram,
        )
        # fmt: on


@jit
def predict(
    numbers: Any, indptr: Any, indices: Any, codes: Any, offsets: Any, coef: Any, sharpness: float, z: Any, p: Any, s2: Any
) -> None:
    """Scores z and probabilities p (outputs, rows) and |row|^2 (rows,) of a block, as the passes above compute them.

    For public maxima, when the rows are public.
    """
    K = coef.shape[0]
    tile, soft = np.empty((K, TILE)), np.empty((K, TILE))
    squares, a, b, c, d = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
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
