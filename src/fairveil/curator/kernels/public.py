"""Largest contributions and moves over public rows: the bounds of `public_scale` in one pass over a
block.

Guarantees (tests/curator/test_curator_steps.py):
1. What is returned is the largest over the rows of `public_scale`'s formulas, its slack for
   rounding included, to within that slack; a row that overflows is told, whatever the others are.
2. It does not depend on the order of rows or on the range they are cut into: the scores and
   probabilities are those of `kernels`, one fixed sequence a row, and a maximum has no order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array, Floats, Integers, Numbers
from ...core.kernels import TILE, jit, scores_into, sigmoid_into, softmax_into
from .tiles import LOG_LOSS, NO_LOSS, residuals_into


@jit
def through_into(soft: Floats, costs: Floats, sharpness: float, t: int, out: Array) -> None:
    """out = J' costs in row t: sharpness x p_k (costs_k - sum_j p_j costs_j)."""
    mean = 0.0
    for k in range(soft.shape[0]):
        mean = mean + soft[k, t] * costs[k]
    for k in range(soft.shape[0]):
        out[k] = sharpness * soft[k, t] * (costs[k] - mean)


@jit
def ranges_into(
    u: float,
    cell_weights: Floats,
    gain: float,
    costs: Floats,
    cost_labels: int,
    label: int,
    columns: Integers,
) -> Any:
    """Of one score, summed over sensitive columns: the largest |weight of a cell x u + gain x its
    cost|, and its range.

    NaN where some cell's is not finite.
    """
    size, move, spoilt = 0.0, 0.0, 0.0
    for column in range(columns.shape[0] - 1):
        low, high = np.inf, -np.inf
        for a in range(columns[column], columns[column + 1]):
            value = cell_weights[a] * u + gain * costs[a * cost_labels + label, 0]
            # 0 x infinity is NaN, and stays so; a comparison would pass over it.
            spoilt = spoilt + 0.0 * value
            low = value if value < low else low
            high = value if value > high else high
        # A row is in one cell of each column, and a neighbour may be in any other of each: the
        # moves of the columns add up (docs/theory/sensitivities.md, several sensitive columns).
        size, move = size + max(abs(low), abs(high)), move + (high - low)
    return size + spoilt, move + spoilt


@jit
def pairs_into(
    soft: Floats,
    u: Floats,
    cell_weights: Floats,
    costs: Floats,
    cost_labels: int,
    label: int,
    columns: Integers,
    sharpness: float,
    t: int,
    each: Floats,
) -> Any:
    """Summed over sensitive columns: the largest |J' costs of a cell|, and |J'(costs of a cell - of
    another)|.

    Where the loss weighs by cell, a cell's weight x u is added to its J' costs.
    """
    K = soft.shape[0]
    size, move, spoilt = 0.0, 0.0, 0.0
    for column in range(columns.shape[0] - 1):
        first, last = columns[column], columns[column + 1]
        largest, widest = 0.0, 0.0
        for a in range(first, last):
            through_into(soft, costs[a * cost_labels + label], sharpness, t, each[a])
            if cell_weights.shape[0] > 0:
                for k in range(K):
                    each[a, k] = each[a, k] + cell_weights[a] * u[k, t]
            total = 0.0
            for k in range(K):
                total = total + each[a, k] * each[a, k]
            spoilt = spoilt + 0.0 * total
            largest = total if not total <= largest else largest
            # All pairs of listed cells: a maximum over the cells that occur would depend on private
            # groups.
            for b in range(first, a):
                total = 0.0
                for k in range(K):
                    total = total + (each[a, k] - each[b, k]) * (each[a, k] - each[b, k])
                widest = total if not total <= widest else widest
        size, move = size + np.sqrt(largest), move + np.sqrt(widest)
    return size + spoilt, move + spoilt


@jit
def largest_moves(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    labels: Array,
    weights: Floats,
    coef: Floats,
    start: int,
    stop: int,
    loss: int,
    loss_weight: float,
    cell_weights: Floats,
    weight_reach: Floats,
    sharpness: float,
    costs: Floats,
    cost_labels: int,
    columns: Integers,
    reach: Floats,
    slack: float,
    out: Array,
) -> None:
    """out: the largest norm and the largest move of one row's gradient, and how many rows are not
    finite.

    A row: weight x |row| x (|residual| + sum over columns of max |J' costs| + slack), and the same
    of moves (theory.md#public: over all pairs of *listed* cells). `columns`: where each sensitive
    column's cells begin, and the end; empty without costs.
    With one score a row J' is a number, so `reach` (2, labels) has the columns' sums of largest
    |costs| and of ranges. Where the loss weighs by cell, it moves too: `weight_reach` has the
    columns' sums of largest |weights| and of ranges, and what rounding adds, all in units of the
    residual. With costs beside it the two are added cell by cell.
    """
    K = coef.shape[0]
    z, p, soft, u = (
        np.empty((K, TILE)),
        np.empty((K, TILE)),
        np.empty((K, TILE)),
        np.empty((K, TILE)),
    )
    s2, a, b, c, d = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    each = np.empty((costs.shape[0] // cost_labels, K))
    wants_costs, wants_weights = columns.shape[0] > 0, cell_weights.shape[0] > 0
    largest, widest, bad = 0.0, 0.0, 0
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        scores_into(numbers, indptr, indices, codes, offsets, coef, lo, m, z, s2)
        if loss == LOG_LOSS:
            if K == 1:
                sigmoid_into(z[0], 1.0, p[0], a, b, m)
            else:
                softmax_into(z, 1.0, p, a, b, c, d, m)
        if loss != NO_LOSS:
            residuals_into(loss, loss_weight, p, z, labels, lo, m, u)
        for t in range(m):
            total = 0.0
            if loss != NO_LOSS:
                for k in range(K):
                    total = total + u[k, t] * u[k, t]
            a[t] = total
        for t in range(m):
            c[t] = np.sqrt(a[t])
            # The residual of the loss does not read the group: without weights by cell it does not
            # move.
            d[t] = 0.0
        if wants_weights:
            for t in range(m):
                size = c[t]
                c[t] = size * (
                    weight_reach[2] if wants_costs else weight_reach[0] + weight_reach[2]
                )
                d[t] = size * (
                    weight_reach[2] if wants_costs else weight_reach[1] + weight_reach[2]
                )
        if wants_costs and wants_weights and K == 1:
            sigmoid_into(z[0], sharpness, soft[0], a, b, m)
            for t in range(m):
                label = np.int64(labels[lo + t]) if cost_labels > 1 else 0
                gain = sharpness * soft[0, t] * (1.0 - soft[0, t])
                size, move = ranges_into(
                    u[0, t], cell_weights, gain, costs, cost_labels, label, columns
                )
                c[t] = c[t] + size
                d[t] = d[t] + move
        elif wants_costs and K == 1:
            sigmoid_into(z[0], sharpness, soft[0], a, b, m)
            for t in range(m):
                label = np.int64(labels[lo + t]) if cost_labels > 1 else 0
                gain = sharpness * soft[0, t] * (1.0 - soft[0, t])
                c[t] = c[t] + gain * reach[0, label]
                d[t] = gain * reach[1, label]
        elif wants_costs:
            softmax_into(z, sharpness, soft, a, b, p[0], p[1], m)
            for t in range(m):
                label = np.int64(labels[lo + t]) if cost_labels > 1 else 0
                size, move = pairs_into(
                    soft, u, cell_weights, costs, cost_labels, label, columns, sharpness, t, each
                )
                c[t] = c[t] + size
                d[t] = d[t] + move
        for t in range(m):
            w = weights[lo + t] if weights.shape[0] > 0 else 1.0
            # The gradient is one vector of scores times the row, so norms and moves are those of
            # the scores times |row|.
            row = np.sqrt(s2[t]) * w
            size, move = (c[t] + slack) * row, (d[t] + slack) * row
            if w > 0.0:
                bad += 0 if size < np.inf and move < np.inf else 1
                largest = size if size > largest else largest
                widest = move if move > widest else widest
    out[0], out[1], out[2] = largest, widest, bad


@jit
def largest_row(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    weights: Floats,
    start: int,
    stop: int,
) -> Any:
    """The largest weight x |row|."""
    z, s2 = np.zeros((0, TILE)), np.empty(TILE)
    coef = np.zeros((0, 1))
    largest = 0.0
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        scores_into(numbers, indptr, indices, codes, offsets, coef, lo, m, z, s2)
        for t in range(m):
            size = np.sqrt(s2[t]) * (weights[lo + t] if weights.shape[0] > 0 else 1.0)
            # NaN is not at most anything: written so, an overflow is told.
            largest = size if not size <= largest else largest
    return largest
