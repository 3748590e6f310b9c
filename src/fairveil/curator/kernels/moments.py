"""Passes that need no model, and the losses of several-class ones: counts, feature sums, Gram
matrices, class losses.

The same rules as in `kernels`: one fixed sequence of operations a row, contributions rounded to the
grid, integer sums.
"""

from __future__ import annotations

import numpy as np

from ..._types import Array, Floats, Integers, Numbers
from ...core.kernels import TILE, jit, project, row_into, scores_into
from .tiles import cell_index_into, cell_of


@jit
def count(
    labels: Array,
    cells: Integers,
    weights: Floats,
    start: int,
    stop: int,
    n_labels: int,
    scale: float,
    out: Array,
) -> None:
    """out[cell x labels] += round(weight x scale)."""
    index = np.empty(TILE, np.int64)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        for line in range(cells.shape[0]):
            cell_index_into(cells, line, labels, n_labels, lo, m, index)
            for t in range(m):
                w = weights[lo + t] if weights.shape[0] > 0 else 1.0
                out[index[t]] += np.int64(np.rint(w * scale))


@jit
def scatter(
    values: Floats,
    labels: Array,
    cells: Integers,
    weights: Floats,
    start: int,
    stop: int,
    n_labels: int,
    hard: bool,
    scale: float,
    out: Array,
) -> None:
    """out[cell x labels, k] += round(value[k] x weight x scale); hard: of an indicator, of the
    first largest value.

    `values` (rows, columns) are those of rows start to stop.
    """
    K = values.shape[1]
    for i in range(start, stop):
        weight = weights[i] if weights.shape[0] > 0 else 1.0
        best = 0
        if hard:
            for k in range(1, K):
                best = k if values[i - start, k] > values[i - start, best] else best
        for line in range(cells.shape[0]):
            index = cell_of(cells, line, labels, n_labels, i)
            if hard:
                out[index, best] += np.int64(np.rint(weight * scale))
            else:
                for k in range(K):
                    out[index, k] += np.int64(np.rint(values[i - start, k] * weight * scale))


@jit
def score_bins(
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
    edges: Floats,
    n_labels: int,
    scale: float,
    out: Array,
) -> None:
    """out[cell x labels, bin] += round(weight x scale), where bin is the number of edges that the
    score is above.

    Found by halving, all rows of a tile at once and without a branch: edges are filled up to 2^k -
    1 with infinite ones. Places are unsigned, so that none is counted from the end.
    """
    z, s2 = np.empty((1, TILE)), np.empty(TILE)
    index, above = np.empty(TILE, np.int64), np.empty(TILE, np.uint64)
    half = 1
    while 2 * half <= edges.shape[0]:
        half *= 2
    # No score is above an infinite edge, so the filling makes no bin. NaN is above none: bin 0.
    filled = np.full(2 * half - 1, np.inf)
    filled[: edges.shape[0]] = edges
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        scores_into(numbers, indptr, indices, codes, offsets, coef, lo, m, z, s2)
        for t in range(m):
            above[t] = 0
        step = half
        while step > 0:
            # `above` edges are known to lie below the score. The step is taken if its last edge
            # does, too.
            up, next_up = np.uint64(step), np.uint64(step - 1)
            for t in range(m):
                above[t] = above[t] + up * np.uint64(z[0, t] > filled[above[t] + next_up])
            step //= 2
        for line in range(cells.shape[0]):
            cell_index_into(cells, line, labels, n_labels, lo, m, index)
            for t in range(m):
                w = weights[lo + t] if weights.shape[0] > 0 else 1.0
                out[index[t], above[t]] += np.int64(np.rint(w * scale))


@jit
def number_moments(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    weights: Floats,
    start: int,
    stop: int,
    clip: float,
    scale: float,
    out: Array,
) -> None:
    """out[0, j] += round(weight x number_j x shrink x scale), out[1, j] the same of its square;
    rows not finite count zero."""
    p = numbers.shape[0]
    sparse = indptr.shape[0] > 0
    for i in range(start, stop):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]) if sparse else range(p):
            x = np.float64(numbers[0, e] if sparse else numbers[e, i])
            # Numbers and their squares are clipped together, as one vector of (x, x^2) over all
            # columns.
            total = total + (x * x + (x * x) * (x * x))
        size = np.sqrt(total)
        # Infinity and NaN both fail this comparison: such a row adds nothing.
        if not size < np.inf:
            continue
        factor = (
            (clip / size if size > clip else 1.0)
            * scale
            * (weights[i] if weights.shape[0] > 0 else 1.0)
        )
        for e in range(indptr[i], indptr[i + 1]) if sparse else range(p):
            x = np.float64(numbers[0, e] if sparse else numbers[e, i])
            j = indices[e] if sparse else e
            out[0, j] += np.int64(np.rint(x * factor))
            out[1, j] += np.int64(np.rint((x * x) * factor))


@jit
def feature_sums(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    labels: Array,
    cells: Integers,
    weights: Floats,
    start: int,
    stop: int,
    longest: int,
    n_labels: int,
    clip: float,
    scale: float,
    out: Array,
) -> None:
    """out[cell x labels, coordinate] += round(weight x clipped (1, row) x scale)."""
    where = np.empty(longest, np.int64)
    value = np.empty(longest)
    for i in range(start, stop):
        n = row_into(numbers, indptr, indices, codes, offsets, i, where, value)
        project(value, n, clip)
        weight = (weights[i] if weights.shape[0] > 0 else 1.0) * scale
        for line in range(cells.shape[0]):
            index = cell_of(cells, line, labels, n_labels, i)
            for a in range(n):
                out[index, where[a]] += np.int64(np.rint(value[a] * weight))


@jit
def along(basis: Floats, where: Integers, value: Floats, n: int, r: Floats) -> None:
    """r = basis' (row), the row's nonzero coordinates in order; `basis` (1 + width, k)."""
    for j in range(r.shape[0]):
        r[j] = 0.0
    for a in range(n):
        line = basis[where[a]]
        x = value[a]
        for j in range(r.shape[0]):
            r[j] = r[j] + line[j] * x


@jit
def basis_sums(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    labels: Array,
    cells: Integers,
    weights: Floats,
    start: int,
    stop: int,
    longest: int,
    n_labels: int,
    basis: Floats,
    clip: float,
    scale: float,
    out: Array,
) -> None:
    """out[cell x labels, j] += round(weight x clipped (basis' (1, row))_j x scale)."""
    where = np.empty(longest, np.int64)
    value = np.empty(longest)
    r = np.empty(basis.shape[1])
    for i in range(start, stop):
        n = row_into(numbers, indptr, indices, codes, offsets, i, where, value)
        along(basis, where, value, n, r)
        project(r, r.shape[0], clip)
        weight = (weights[i] if weights.shape[0] > 0 else 1.0) * scale
        for line in range(cells.shape[0]):
            index = cell_of(cells, line, labels, n_labels, i)
            for j in range(r.shape[0]):
                out[index, j] += np.int64(np.rint(r[j] * weight))


@jit
def basis_sizes(
    numbers: Numbers,
    indptr: Integers,
    indices: Integers,
    codes: Integers,
    offsets: Integers,
    longest: int,
    basis: Floats,
    out: Array,
) -> None:
    """out[i] = |basis' (1, row i)|, of the very numbers that `basis_sums` adds."""
    where = np.empty(longest, np.int64)
    value = np.empty(longest)
    r = np.empty(basis.shape[1])
    for i in range(out.shape[0]):
        n = row_into(numbers, indptr, indices, codes, offsets, i, where, value)
        along(basis, where, value, n, r)
        total = 0.0
        for j in range(r.shape[0]):
            total = total + r[j] * r[j]
        out[i] = np.sqrt(total)
