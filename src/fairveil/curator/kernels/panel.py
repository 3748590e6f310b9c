"""The passes of `kernels` for many binary models at once: the same sequence of operations a row,
models side by side.

A row is read once for all models, and the loops run over models, which the processor does several
at a time. Each model's integers equal those of `kernels.descend` for that model alone, bit for bit
(tests/curator/test_curator_kernels.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array, Floats, Integers, Numbers
from ...core.kernels import FARTHEST, MAGIC, exp_into, jit, sigmoid_into
from .tiles import HARD, LOG_LOSS, NO_LOSS, SQUARED_LOSS, ZERO_ONE_LOSS, cell_of, log_into

# Sums of integers are kept in float64, exactly, for `chunk` rows (a power of two; 2^52 over the
# largest row), then moved to 64-bit integers.
TOGETHER = 16  # rows whose probabilities are computed in one go


@jit
def row_scores(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    coef: Floats,
    i: int,
    z: Floats,
) -> Any:
    """z[m] = score of row i under model m; returns |row|^2. `coef` is (1 + width, models).

    Terms are added one after the other, in order; several to a loop only to save loads and stores.
    """
    M = z.shape[0]
    s2 = 1.0 + codes.shape[0]
    first = coef[0]
    for m in range(M):
        z[m] = first[m]
    if indptr.shape[0] > 0:
        for e in range(indptr[i], indptr[i + 1]):
            x = np.float64(numbers[0, e])
            s2 = s2 + x * x
            w = coef[1 + indices[e]]
            for m in range(M):
                z[m] = z[m] + w[m] * x
    else:
        n = numbers.shape[0]
        for j in range(0, n - 1, 2):
            x, y = np.float64(numbers[j, i]), np.float64(numbers[j + 1, i])
            s2 = (s2 + x * x) + y * y
            w, v = coef[1 + j], coef[2 + j]
            for m in range(M):
                z[m] = (z[m] + w[m] * x) + v[m] * y
        if n % 2 == 1:
            x = np.float64(numbers[n - 1, i])
            s2 = s2 + x * x
            w = coef[n]
            for m in range(M):
                z[m] = z[m] + w[m] * x
    q = codes.shape[0]
    for c in range(0, q - 3, 4):
        w, v = coef[offsets[c] + codes[c, i]], coef[offsets[c + 1] + codes[c + 1, i]]
        t, s = coef[offsets[c + 2] + codes[c + 2, i]], coef[offsets[c + 3] + codes[c + 3, i]]
        for m in range(M):
            z[m] = (((z[m] + w[m]) + v[m]) + t[m]) + s[m]
    for c in range(q - q % 4, q):
        w = coef[offsets[c] + codes[c, i]]
        for m in range(M):
            z[m] = z[m] + w[m]
    return s2


@jit
def add_gradients(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    r: Floats,
    lo: int,
    rows: int,
    out: Array,
) -> None:
    """out[coordinate, m] += round(r[t, m] x coordinate of row lo + t), t < rows.

    `out` holds exact integers in float64, so terms may be added in any order: four rows to a loop
    where that saves loads and stores. r is spoilt.
    """
    M = r.shape[1]
    # (v + MAGIC) - MAGIC is v rounded to a whole number of units, ties to even.
    if indptr.shape[0] > 0:
        for t in range(rows):
            r_t = r[t]
            for e in range(indptr[lo + t], indptr[lo + t + 1]):
                x = np.float64(numbers[0, e])
                to = out[1 + indices[e]]
                for m in range(M):
                    to[m] += (r_t[m] * x + MAGIC) - MAGIC
    else:
        for t in range(0, rows - rows % 4, 4):
            a, b, c, d = r[t], r[t + 1], r[t + 2], r[t + 3]
            for j in range(numbers.shape[0]):
                column = numbers[j, lo + t : lo + t + 4]
                w, x, y, z = (
                    np.float64(column[0]),
                    np.float64(column[1]),
                    np.float64(column[2]),
                    np.float64(column[3]),
                )
                to = out[1 + j]
                for m in range(M):
                    to[m] += (((a[m] * w + MAGIC) - MAGIC) + ((b[m] * x + MAGIC) - MAGIC)) + (
                        ((c[m] * y + MAGIC) - MAGIC) + ((d[m] * z + MAGIC) - MAGIC)
                    )
        for t in range(rows - rows % 4, rows):
            a = r[t]
            for j in range(numbers.shape[0]):
                x = np.float64(numbers[j, lo + t])
                to = out[1 + j]
                for m in range(M):
                    to[m] += (a[m] * x + MAGIC) - MAGIC
    # The coordinate of the intercept and of each code is 1: r is rounded once for all of them.
    intercept = out[0]
    q = codes.shape[0]
    for t in range(rows):
        a = r[t]
        for m in range(M):
            a[m] = (a[m] + MAGIC) - MAGIC
            intercept[m] += a[m]
        for c in range(0, q - 1, 2):
            to, too = out[offsets[c] + codes[c, lo + t]], out[offsets[c + 1] + codes[c + 1, lo + t]]
            for m in range(M):
                to[m] += a[m]
                too[m] += a[m]
        if q % 2 == 1:
            to = out[offsets[q - 1] + codes[q - 1, lo + t]]
            for m in range(M):
                to[m] += a[m]


@jit
def flush(sums: Floats, out: Array) -> None:
    """out += sums, which go back to zero: from exact integers in float64 to 64-bit integers."""
    for j in range(out.shape[0]):
        for m in range(out.shape[1]):
            out[j, m] += np.int64(sums[j, m])
            sums[j, m] = 0.0


@jit
def row_residuals(loss: int, weight: Floats, label: float, p: Floats, z: Floats, u: Floats) -> None:
    """u[m] = weight[m] x d loss / d score."""
    M = z.shape[0]
    if loss == NO_LOSS:
        for m in range(M):
            u[m] = 0.0
    elif loss == SQUARED_LOSS:
        for m in range(M):
            u[m] = weight[m] * (z[m] - np.float64(label))
    else:
        y = 1.0 if label == 1 else 0.0
        for m in range(M):
            u[m] = weight[m] * (p[m] - y)


@jit
def row_weigh_by_cell(
    cell_weights: Floats, cells: Integers, i: int, u: Floats, total: Floats
) -> None:
    """u[m] <- u[m] x the sum of the weights of row i's cells under model m. `cell_weights` is
    (cells, models)."""
    M = u.shape[0]
    for m in range(M):
        total[m] = 0.0
    for line in range(cells.shape[0]):
        w = cell_weights[np.int64(cells[line, i])]
        for m in range(M):
            total[m] = total[m] + w[m]
    for m in range(M):
        u[m] = u[m] * total[m]


@jit
def row_clip(u: Floats, s2: float, clip: float, weight: float, scale: Floats) -> None:
    """u[m] <- weight x (u[m] cut at clip / |row|) x scale; zero where that is not finite."""
    limit = clip / np.sqrt(s2) if clip < np.inf else np.inf
    # NaN, of a row that is not finite, becomes 0.
    limit = limit if limit >= 0.0 else 0.0
    for m in range(u.shape[0]):
        r = limit if u[m] > limit else u[m]
        r = -limit if r < -limit else r
        r = r * weight * scale[m]
        u[m] = r if abs(r) < np.inf else 0.0


@jit
def row_histogram(
    kind: int, z: Floats, p: Floats, weight: float, scale: Floats, work: Floats, to: Floats
) -> None:
    """to[m] += round(weight x prediction[m] x scale), integers in float64."""
    M = z.shape[0]
    if kind == HARD:
        for m in range(M):
            work[m] = (1.0 if z[m] > 0.0 else 0.0) * weight * scale[m]
    else:
        for m in range(M):
            work[m] = p[m] * weight * scale[m]
    for m in range(M):
        v = work[m]
        to[m] += ((v if abs(v) < np.inf else 0.0) + MAGIC) - MAGIC


@jit
def descend_panel(
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
    loss_weight: Floats,
    cell_weights: Floats,
    sharpness: float,
    costs: Floats,
    cost_labels: int,
    clip: float,
    scale: Floats,
    gradient: Array,
    kind: int,
    hist_labels: int,
    hist_scale: Floats,
    histogram: Array,
    chunk: int,
) -> None:
    """`kernels.descend` for many binary models. coef and gradient (1 + width, M); costs and
    histogram (cells x labels, M); cell weights (cells, M)."""
    M = coef.shape[1]
    z, p, soft = np.empty(TOGETHER * M), np.empty(TOGETHER * M), np.empty(TOGETHER * M)
    a, b, work = np.empty(TOGETHER * M), np.empty(TOGETHER * M), np.empty(M)
    residuals = np.empty((TOGETHER, M))
    s2 = np.empty(TOGETHER)
    wants_gradient = gradient.shape[0] > 0
    wants_costs = costs.shape[0] > 0
    wants_histogram = histogram.shape[0] > 0
    needs_soft = wants_costs or (wants_histogram and kind != HARD)
    same = sharpness == 1.0
    smooth = p if same else soft
    gradient_sums = np.zeros(gradient.shape)
    histogram_sums = np.zeros(histogram.shape)
    for lo in range(start, stop, TOGETHER):
        rows = min(TOGETHER, stop - lo)
        for t in range(rows):
            s2[t] = row_scores(
                numbers, indptr, indices, codes, offsets, coef, lo + t, z[t * M : (t + 1) * M]
            )
        if (wants_gradient and loss == LOG_LOSS) or (same and needs_soft):
            sigmoid_into(z, 1.0, p, a, b, rows * M)
        if not same and needs_soft:
            sigmoid_into(z, sharpness, soft, a, b, rows * M)
        for t in range(rows):
            i = lo + t
            weight = weights[i] if weights.shape[0] > 0 else 1.0
            z_i, p_i, smooth_i = (
                z[t * M : (t + 1) * M],
                p[t * M : (t + 1) * M],
                smooth[t * M : (t + 1) * M],
            )
            if wants_gradient:
                u = residuals[t]
                row_residuals(loss, loss_weight, labels[i], p_i, z_i, u)
                if cell_weights.shape[0] > 0:
                    row_weigh_by_cell(cell_weights, cells, i, u, work)
                if wants_costs:
                    for line in range(cells.shape[0]):
                        index = cell_of(cells, line, labels, cost_labels, i)
                        k = costs[index]
                        for m in range(M):
                            u[m] = u[m] + smooth_i[m] * (1.0 - smooth_i[m]) * sharpness * k[m]
                row_clip(u, s2[t], clip, weight, scale)
            if wants_histogram:
                for line in range(cells.shape[0]):
                    index = cell_of(cells, line, labels, hist_labels, i)
                    row_histogram(
                        kind, z_i, smooth_i, weight, hist_scale, work, histogram_sums[index]
                    )
        if wants_gradient:
            add_gradients(
                numbers, indptr, indices, codes, offsets, residuals, lo, rows, gradient_sums
            )
        # Before a sum of whole numbers could pass 2^53, where float64 no longer has each of them.
        if (lo + TOGETHER - start) % max(chunk, TOGETHER) == 0:
            flush(gradient_sums, gradient)
            flush(histogram_sums, histogram)
    flush(gradient_sums, gradient)
    flush(histogram_sums, histogram)


@jit
def row_losses(loss: int, label: float, z: Floats, out: Array, a: Floats, b: Floats) -> None:
    """out[m] = loss of score z[m] against the label: log(1 + exp(-margin)), squared error, or
    whether the sign is wrong."""
    M = z.shape[0]
    if loss == ZERO_ONE_LOSS:
        y = label == 1
        for m in range(M):
            out[m] = 0.0 if (z[m] > 0.0) == y else 1.0
    elif loss == SQUARED_LOSS:
        for m in range(M):
            e = z[m] - np.float64(label)
            out[m] = e * e
    else:
        for m in range(M):
            y = abs(z[m])
            a[m] = -(y if y < FARTHEST else FARTHEST)
        exp_into(a, out, b, M)
        for m in range(M):
            a[m] = 1.0 + out[m]
        log_into(a, out, b, M)
        # log(1 + exp(-margin)) = log(1 + exp(-|z|)) + max(0, -margin): no exponential is above 1.
        sign = 1.0 if label == 1 else -1.0
        for m in range(M):
            margin = sign * z[m]
            out[m] = out[m] + (-margin if margin < 0.0 else 0.0)


@jit
def losses_panel(
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
    clip: float,
    scale: Floats,
    out: Array,
    chunk: int,
) -> None:
    """out[cell, m] += round(weight x min(loss, clip) x scale) over rows: many candidates' group
    losses in one pass."""
    M = coef.shape[1]
    z, v, a, b = np.empty(M), np.empty(M), np.empty(M), np.empty(M)
    sums = np.zeros(out.shape)
    for i in range(start, stop):
        row_scores(numbers, indptr, indices, codes, offsets, coef, i, z)
        weight = weights[i] if weights.shape[0] > 0 else 1.0
        row_losses(loss, labels[i], z, v, a, b)
        for m in range(M):
            y = v[m] if v[m] < clip else clip
            r = y * weight * scale[m]
            v[m] = ((r if 0.0 <= r < np.inf else 0.0) + MAGIC) - MAGIC
        for line in range(cells.shape[0]):
            to = sums[np.int64(cells[line, i])]
            for m in range(M):
                to[m] += v[m]
        if (i + 1 - start) % chunk == 0:
            flush(sums, out)
    flush(sums, out)
