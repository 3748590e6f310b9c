"""What is known of a tile of rows before it is added to a sum, compiled: scores, residuals, costs,
cells and the clip."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array, Floats, Integers
from ...core.kernels import TINY, jit

LOG_LOSS, SQUARED_LOSS, ZERO_ONE_LOSS, NO_LOSS = 0, 1, 2, 3


SOFT, HARD = 0, 1


@jit
def log_into(x: Floats, out: Array, work: Floats, m: int) -> None:
    """out = log(x) for normal x > 0: exponent times ln 2 plus 2 atanh((f - 1)/(f + 1)), f in [1,
    2)."""
    bits = work.view(np.int64)
    for t in range(m):
        work[t] = x[t]
    for t in range(m):
        # x = 2^e f: the exponent as a number, and f with the exponent of 1.
        out[t] = float((bits[t] >> 52) - 1023)
        bits[t] = (bits[t] & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000
    for t in range(m):
        s = (work[t] - 1.0) / (work[t] + 1.0)
        # s is at most 1/3: the terms s^k / k that are left out are below 2^-62 together.
        q = s * s
        a = 1.0 / 35.0
        for k in range(33, 0, -2):
            a = a * q + 1.0 / k
        out[t] = out[t] * 0.6931471805599453 + 2.0 * s * a


@jit
def residuals_into(
    loss: int, weight: float, p: Floats, z: Floats, labels: Array, lo: int, m: int, u: Floats
) -> None:
    """u = weight x d loss / d score: p - indicator(label) (log loss), or score - target (squared
    loss)."""
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
            # One score is that of the second class; of several, score k is that of class k.
            wanted = 1 if K == 1 else k
            for t in range(m):
                u[k, t] = weight * (p[k, t] - (1.0 if labels[lo + t] == wanted else 0.0))


@jit
def cell_of(cells: Integers, line: int, labels: Array, n_labels: int, i: int) -> Any:
    """Which (cell, label) of a flattened table row i falls in; the cell alone when n_labels is
    1."""
    index = np.int64(cells[line, i])
    return index * n_labels + np.int64(labels[i]) if n_labels > 1 else index


@jit
def cell_index_into(
    cells: Integers, line: int, labels: Array, n_labels: int, lo: int, m: int, index: Integers
) -> None:
    """Which (cell, label) of a flattened table a row falls in; the cell alone when n_labels is
    1."""
    for t in range(m):
        index[t] = np.int64(cells[line, lo + t])
    if n_labels > 1:
        for t in range(m):
            index[t] = index[t] * n_labels + np.int64(labels[lo + t])


@jit
def weigh_by_cell(
    cell_weights: Floats, cells: Integers, lo: int, m: int, u: Floats, total: Floats
) -> None:
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
def add_costs(
    costs: Floats, index: Integers, p: Floats, sharpness: float, m: int, u: Floats, mean: Floats
) -> None:
    """u += J' costs: the derivative, in the scores, of sum_k p_k costs_k, with p =
    softmax(sharpness z)."""
    K = p.shape[0]
    if K == 1:
        for t in range(m):
            # dp/dz = sharpness p (1 - p). The costs are those of the second class less those of the
            # first.
            u[0, t] = u[0, t] + p[0, t] * (1.0 - p[0, t]) * sharpness * costs[index[t], 0]
        return
    for t in range(m):
        mean[t] = 0.0
    for k in range(K):
        for t in range(m):
            # The slope of softmax takes the mean away, so a cost that all classes share moves
            # nothing.
            mean[t] = mean[t] + p[k, t] * costs[index[t], k]
    for k in range(K):
        for t in range(m):
            u[k, t] = u[k, t] + p[k, t] * (costs[index[t], k] - mean[t]) * sharpness


@jit
def clip_into(
    u: Floats, s2: Floats, clip: float, weights: Floats, scale: float, lo: int, m: int, work: Floats
) -> None:
    """u <- weight x u x min(1, clip / (|u| |row|)) x scale; zero where that is not finite.

    With one score a row, |u| is cut at clip / |row|; with several the vector u is clipped.
    """
    K = u.shape[0]
    if clip < np.inf:
        for t in range(m):
            # A row's gradient is u times the row: its norm is at most clip if |u| is at most clip /
            # |row|. An infinite |row| gives a limit of 0.
            limit = clip / np.sqrt(s2[t])
            work[t] = limit if limit >= 0.0 else 0.0
        if K == 1:
            for t in range(m):
                # NaN is neither above nor below: it passes, and is made zero at the end.
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
                # its square may have been lost: such a residual counts as zero, however long the
                # row
                if size < TINY:
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
            # After the clip: a row moves the sum by at most clip times the largest weight
            # (docs/theory/sensitivities.md).
            work[t] = work[t] * weights[lo + t]
    for k in range(K):
        for t in range(m):
            r = u[k, t] * work[t] * scale
            # One row that is not finite would make the whole sum so, and show that it is there.
            u[k, t] = r if abs(r) < np.inf else 0.0
