"""Gradients that are added person by person, and only then clipped (theory.md#units).

A row's gradient is what `kernels.descend` makes of it: clipped by itself and put on the grid. A
person's are added there as integers, which no order of their rows can change; then the sum is
clipped, and put on the grid again.

Guarantees (tests/curator/test_curator_persons.py):
1. A person adds at most `clip` x the largest weight x `reach` to the sum, and half a step of the
   grid in each coordinate, whatever the rows hold and however many there are.
2. The integers depend neither on the order of persons or rows nor on where runs of rows are cut.
"""

from __future__ import annotations

import numpy as np

from ..._types import Array, Floats, Integers, Numbers
from ...core.kernels import (
    TILE,
    add_row,
    close_person,
    jit,
    scores_into,
    sigmoid_into,
    softmax_into,
)
from .tiles import LOG_LOSS, add_costs, cell_index_into, clip_into, residuals_into, weigh_by_cell


@jit
def person_gradients(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    labels: Array,
    cells: Integers,
    weights: Floats,
    persons: Integers,
    reach: Floats,
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
    limit: float,
    scale: float,
    gradient: Array,
) -> None:
    """The sum of persons' clipped gradients, for one model, of rows start to stop, which hold whole
    persons.

    `clip`: of one row's gradient before its weight. `limit`: of a person's sum, in grid steps,
    times `reach` of their rows, which is the same in all of them.
    """
    K = coef.shape[0]
    z = np.empty((K, TILE))
    p = np.empty((K, TILE))
    soft = np.empty((K, TILE))
    u = np.empty((K, TILE))
    s2, a, b, c, d = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    index = np.empty(TILE, np.int64)
    person = np.zeros((K, gradient.shape[1]), np.int64)
    wants_costs = costs.shape[0] > 0
    same = sharpness == 1.0
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        scores_into(numbers, indptr, indices, codes, offsets, coef, lo, m, z, s2)
        if loss == LOG_LOSS or (same and wants_costs):
            if K == 1:
                sigmoid_into(z[0], 1.0, p[0], a, b, m)
            else:
                softmax_into(z, 1.0, p, a, b, c, d, m)
        if not same and wants_costs:
            if K == 1:
                sigmoid_into(z[0], sharpness, soft[0], a, b, m)
            else:
                softmax_into(z, sharpness, soft, a, b, c, d, m)
        smooth = p if same else soft
        residuals_into(loss, loss_weight, p, z, labels, lo, m, u)
        if cell_weights.shape[0] > 0:
            weigh_by_cell(cell_weights, cells, lo, m, u, a)
        if wants_costs:
            for line in range(cells.shape[0]):
                cell_index_into(cells, line, labels, cost_labels, lo, m, index)
                add_costs(costs, index, smooth, sharpness, m, u, a)
        clip_into(u, s2, clip, weights, scale, lo, m, a)
        for t in range(m):
            i = lo + t
            add_row(numbers, indptr, indices, codes, offsets, u, t, i, person)
            # Rows of a person stand together, and no run of rows cuts a person in two.
            if i + 1 == stop or persons[i + 1] != persons[i]:
                close_person(person, limit if reach.shape[0] == 0 else limit * reach[i], gradient)
