"""The loops that touch features: scores, outer products and Gram matrices, the elementary functions
of their tiles, the fused loop of descent, and scores and outer products of many models side by side.
All else about a row is arithmetic on its few numbers (`sums`).

Every row's arithmetic is one fixed sequence of IEEE double operations (additions in the order
intercept, numbers, codes; an `exp` of our own; no fused multiply-add, no fast-math), so
a row contributes the same bits alone or among millions, on every processor. A contribution v is put
on the grid by r = v * scale + MAGIC, whose bit pattern is the integer round(v * scale) above a
constant; patterns are added as 64-bit integers, which no order can change (theory.md#sums).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
Integers = npt.NDArray[np.integer[Any]]
Numbers = npt.NDArray[np.floating[Any]]
Kernel = Callable[..., Any]
Features = tuple[Numbers, Integers, Integers, Integers, Integers]
"""Numbers (columns, rows), or the stored values of CSR beside its row bounds and columns; codes; where
coefficients of each coded feature begin."""
Told = tuple[Array, Integers, Floats]
"""Labels, cells (a line for each that a row is in), weights, none where each row counts once."""

TILE = 512
SIDE = 16  # rows of many models side by side
MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to the nearest integer, ties to even
MAGIC_BITS = np.int64(np.float64(MAGIC).view(np.int64))
LOG2E = 1.4426950408889634
LN2_HIGH = 0.693147180369123816490  # the upper 33 bits of ln 2, so that n * LN2_HIGH is exact
LN2_LOW = 1.90821492927058770002e-10
# A norm below this may have lost squares of its parts: a float64 keeps all its digits down to
# 2e-308.
TINY = 1e-140
FARTHEST = 700.0  # beyond this, exp is 0 or saturates: a probability's last bit is long decided


def jit(function: Kernel) -> Kernel:
    """Compiled, cached on disk, without fast-math and without the interpreter's lock.

    Division by zero gives inf or NaN, as IEEE says, not an exception: a check at each division
    would keep loops scalar.
    """
    compiled: Kernel = njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


@jit
def exp_into(x: Floats, out: Array, work: Floats, m: int) -> None:
    """out = exp(x) for |x| <= FARTHEST: 2^n times a Taylor polynomial of degree 13 on |r| <=
    ln(2)/2."""
    bits = work.view(np.int64)
    for t in range(m):
        # n = round(x / ln 2) stands in the lowest bits now, where MAGIC's own are zero.
        work[t] = x[t] * LOG2E + MAGIC
    for t in range(m):
        n = work[t] - MAGIC
        # ln 2 in two parts (Cody and Waite): the first product and difference are exact, so r keeps
        # its digits although x and n ln 2 nearly cancel.
        r = (x[t] - n * LN2_HIGH) - n * LN2_LOW
        # 1/13!, 1/12!, ... in Horner's order. What the series leaves out is below 2^-57 of the
        # result.
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
        # The shift drops all but n plus the bias of exponents: the pattern of 2^n. |n| <= 1010, so
        # it is neither subnormal nor infinite.
        bits[t] = (bits[t] + 1023) << 52
    for t in range(m):
        out[t] = out[t] * work[t]


@jit
def sigmoid_into(z: Floats, sharpness: float, p: Floats, a: Floats, b: Floats, m: int) -> None:
    """p = 1 / (1 + exp(-sharpness z)), by exp of a non-positive number."""
    for t in range(m):
        # Of minus the size: exp is at most 1, and 1 + e loses nothing at either end.
        y = abs(z[t] * sharpness)
        a[t] = -(y if y < FARTHEST else FARTHEST)
    exp_into(a, p, b, m)
    for t in range(m):
        e = p[t]
        p[t] = (1.0 if z[t] >= 0.0 else e) / (1.0 + e)


@jit
def softmax_into(
    z: Floats, sharpness: float, p: Floats, top: Floats, total: Floats, a: Floats, b: Floats, m: int
) -> None:
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
            # Without the largest score no exponential is above 1, and their sum lies between 1 and
            # K.
            y = (z[k, t] - top[t]) * sharpness
            a[t] = y if y > -FARTHEST else -FARTHEST
        exp_into(a, p[k], b, m)
        for t in range(m):
            total[t] = total[t] + p[k, t]
    for k in range(K):
        for t in range(m):
            p[k, t] = p[k, t] / total[t]


@jit
def codes_into(
    codes: Integers, offsets: Integers, coef: Floats, lo: int, m: int, z: Floats
) -> None:
    """z[k, t] += the weights of the codes of row t, in order."""
    K = z.shape[0]
    q = codes.shape[0]
    # four terms to a loop save loads and stores; they are added in order all the same
    for c in range(0, q - 3, 4):
        line, also = codes[c, lo : lo + m], codes[c + 1, lo : lo + m]
        third, last = codes[c + 2, lo : lo + m], codes[c + 3, lo : lo + m]
        i, j, v, n = offsets[c], offsets[c + 1], offsets[c + 2], offsets[c + 3]
        for k in range(K):
            w = coef[k]
            for t in range(m):
                z[k, t] = (((z[k, t] + w[i + line[t]]) + w[j + also[t]]) + w[v + third[t]]) + w[
                    n + last[t]
                ]
    for c in range(q - q % 4, q):
        line = codes[c, lo : lo + m]
        first = offsets[c]
        for k in range(K):
            for t in range(m):
                z[k, t] = z[k, t] + coef[k, first + line[t]]


@jit
def scores_into(features: Features, coef: Floats, lo: int, m: int, z: Floats, s2: Floats) -> None:
    """z[k, t] = coef[k] . row and s2[t] = |row|^2 with the intercept's 1, for rows lo .. lo + m.

    `numbers` is (columns, rows), or, when `indptr` is not empty, the data of a CSR array.
    """
    numbers, indptr, indices, codes, offsets = features
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
    # Last, as in every pass: one order of additions gives one score, to the bit.
    codes_into(codes, offsets, coef, lo, m, z)


@jit
def add_gradient(features: Features, r: Floats, lo: int, m: int, work: Floats, out: Array) -> None:
    """out[...] += round(r[t] x row[t]) for every coordinate, exactly. r is already in grid
    units."""
    numbers, indptr, indices, codes, offsets = features
    bits = work.view(np.int64)
    for k in range(r.shape[0]):
        if indptr.shape[0] > 0:
            data, line_of_sums = numbers[0], out[k]
            for t in range(m):
                u = r[k, t]
                for e in range(indptr[lo + t], indptr[lo + t + 1]):
                    # rint and MAGIC round alike, ties to even: a sparse row adds the integers of
                    # the same row stored densely.
                    line_of_sums[np.uint64(indices[e]) + np.uint64(1)] += np.int64(
                        np.rint(u * np.float64(data[e]))
                    )
        else:
            for j in range(numbers.shape[0]):
                column = numbers[j, lo : lo + m]
                for t in range(m):
                    work[t] = r[k, t] * np.float64(column[t]) + MAGIC
                # Patterns are added with MAGIC's own bits in them, which are taken away once for
                # all rows: 64-bit sums wrap around, so nothing is lost on the way.
                total = np.int64(0)
                for t in range(m):
                    total += bits[t]
                out[k, 1 + j] += total - m * MAGIC_BITS
        for t in range(m):
            # The coordinate of the intercept and of each code is 1: r is rounded once for all of
            # them.
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
def row_into(features: Features, i: int, where: Integers, value: Floats) -> int:
    """The nonzero coordinates of (1, row i), in order: places into `where`, values into `value`;
    returns how many."""
    numbers, indptr, indices, codes, offsets = features
    where[0] = 0
    value[0] = 1.0
    n = 1
    if indptr.shape[0] > 0:
        for e in range(indptr[i], indptr[i + 1]):
            where[n] = 1 + indices[e]
            value[n] = np.float64(numbers[0, e])
            n += 1
    else:
        for j in range(numbers.shape[0]):
            where[n] = 1 + j
            value[n] = np.float64(numbers[j, i])
            n += 1
    for c in range(codes.shape[0]):
        where[n] = offsets[c] + codes[c, i]
        value[n] = 1.0
        n += 1
    return n


@jit
def project(value: Floats, n: int, clip: float) -> None:
    """The first n values onto the ball of radius `clip`; to zero where they are not finite."""
    s2 = 0.0
    for a in range(n):
        s2 = s2 + value[a] * value[a]
    size = np.sqrt(s2)
    # A projection onto the ball, not a division by the norm, which could move two rows further
    # apart (docs/theory/sensitivities.md).
    if size <= clip:
        return
    factor = clip / size if size < np.inf else 0.0
    for a in range(n):
        v = value[a] * factor
        value[a] = v if abs(v) < np.inf else 0.0


@jit
def grams(
    features: Features,
    rows: Told,
    start: int,
    stop: int,
    longest: int,
    with_target: bool,
    clip: float,
    scale: float,
    out: Array,
) -> None:
    """out[cell, a, b] += round(weight x r_a r_b x scale) for places a <= b, r = clipped (1, row[,
    target])."""
    (_, indptr, _, codes, _), (labels, cells, weights) = features, rows
    where = np.empty(longest + 1, np.int64)
    value = np.empty(longest + 1)
    work = np.empty(longest + 1)
    bits = work.view(np.int64)
    for i in range(start, stop):
        n = row_into(features, i, where, value)
        if with_target:
            # The target is the last coordinate: one matrix then holds X'X, X'y and y'y.
            where[n] = out.shape[1] - 1
            value[n] = np.float64(labels[i])
            n += 1
        project(value, n, clip)
        weight = (weights[i] if weights.shape[0] > 0 else 1.0) * scale
        dense = n - codes.shape[0] - (1 if with_target else 0) if indptr.shape[0] == 0 else 1
        for line in range(cells.shape[0]):
            to = out[np.int64(cells[line, i])]
            for a in range(n):
                va = value[a] * weight
                # Places a <= b alone: the others are their mirror image.
                for b in range(a, n):
                    work[b] = va * value[b] + MAGIC
                at = to[where[a]]
                first = a
                if a < dense:  # these places are consecutive, so this loop runs without look-ups
                    for b in range(a, dense):
                        at[b] += bits[b] - MAGIC_BITS
                    first = dense
                for b in range(first, n):
                    at[where[b]] += bits[b] - MAGIC_BITS


@jit
def close_person(person: Integers, limit: float, out: Array) -> None:
    """out += the person's sum, clipped to norm `limit` in grid steps; the person is then zero
    again."""
    total = 0.0
    for k in range(person.shape[0]):
        for j in range(person.shape[1]):
            v = np.float64(person[k, j])
            total = total + v * v
    size = np.sqrt(total)
    # Once a person, after the sum: however many rows she has, she moves the total by `limit` at
    # most (docs/theory/units.md, sums over rows).
    factor = limit / size if size > limit else 1.0
    for k in range(person.shape[0]):
        for j in range(person.shape[1]):
            v = person[k, j]
            if v != 0:
                out[k, j] += np.int64(np.rint(np.float64(v) * factor)) if factor < 1.0 else v
                person[k, j] = 0


@jit
def add_by_person(
    features: Features,
    r: Floats,
    persons: Integers,
    reach: Floats,
    lo: int,
    m: int,
    limit: float,
    out: Array,
) -> None:
    """`add_gradient`, in which each person's rows, which stand together, are added first, and then
    clipped to norm `limit` in grid steps, times the `reach` of her rows where it is not empty."""
    person, work = np.zeros(out.shape, np.int64), np.empty(1)
    for t in range(m):
        i = lo + t
        add_gradient(features, r[:, t : t + 1], i, 1, work, person)
        if t + 1 == m or persons[i + 1] != persons[i]:
            close_person(person, limit * reach[i] if reach.shape[0] > 0 else limit, out)


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
def cell_of(cells: Integers, line: int, labels: Array, n_labels: int, i: int) -> Any:
    """Which (cell, label) of a flattened table row i falls in; the cell alone of one label."""
    index = np.int64(cells[line, i])
    return index * n_labels + np.int64(labels[i]) if n_labels > 1 else index


@jit
def descend(
    features: Features, rows: Told, coef: Floats, start: int, stop: int, asked: Any, counted: Any
) -> None:
    """The fused loop for one score: the clipped gradient sum and the histogram of predictions of
    one model in one pass, the same integers as `sums` adds by itself (tests/core).

    `loss`: 0 log, 1 squared, 2 none. `costs`, `cell_weights`, `gradient` and `histogram` are
    skipped where they are empty.
    """
    labels, cells, weights = rows
    loss, pull, cell_weights, sharpness, costs, cost_labels, clip, scale, gradient = asked
    is_hard, hist_labels, hist_scale, histogram = counted
    z, u, probabilities = np.empty((1, TILE)), np.empty((1, TILE)), np.empty((2, TILE))
    s2, a, b = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    r, bits, p = u[0], a.view(np.int64), probabilities[0]
    wants_gradient, wants_histogram = gradient.shape[1] > 0, histogram.shape[0] > 0
    wants_soft = costs.shape[0] > 0 or (wants_histogram and not is_hard)
    same = sharpness == 1.0  # loss and costs then see the same probabilities, found once
    wants_plain = (wants_gradient and loss == 0) or (same and wants_soft)
    smooth = probabilities[0 if same else 1]
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        scores_into(features, coef, lo, m, z, s2)
        for k in range(2):  # one call, which is compiled once
            if wants_plain if k == 0 else (wants_soft and not same):
                sigmoid_into(z[0], 1.0 if k == 0 else sharpness, probabilities[k], a, b, m)
        if wants_gradient:
            if loss == 0:
                for t in range(m):
                    r[t] = pull * (p[t] - (1.0 if labels[lo + t] == 1 else 0.0))
            elif loss == 1:
                for t in range(m):
                    r[t] = pull * (z[0, t] - np.float64(labels[lo + t]))
            else:
                for t in range(m):
                    r[t] = 0.0
            if cell_weights.shape[0] > 0:
                for t in range(m):
                    a[t] = 0.0
                for line in range(cells.shape[0]):
                    for t in range(m):
                        a[t] = a[t] + cell_weights[np.int64(cells[line, lo + t])]
                for t in range(m):
                    r[t] = r[t] * a[t]
            if costs.shape[0] > 0:
                for line in range(cells.shape[0]):
                    for t in range(m):
                        a[t] = costs[cell_of(cells, line, labels, cost_labels, lo + t)]
                    for t in range(m):
                        # dp/dz = sharpness p (1 - p); costs of the second class less the first's
                        r[t] = r[t] + smooth[t] * (1.0 - smooth[t]) * sharpness * a[t]
            # A row's gradient is r times the row: its norm is at most clip if |r| is at most clip /
            # |row|. After all that depends on the row; its weight alone is outside.
            if clip < np.inf:
                for t in range(m):
                    limit = clip / np.sqrt(s2[t])
                    a[t] = limit if limit >= 0.0 else 0.0
                for t in range(m):
                    y = a[t] if r[t] > a[t] else r[t]
                    r[t] = -a[t] if y < -a[t] else y
            if weights.shape[0] > 0:
                for t in range(m):
                    r[t] = r[t] * weights[lo + t]
            for t in range(m):
                y = r[t] * scale
                # One row that is not finite would make the whole sum so, and show that it is there.
                r[t] = y if abs(y) < np.inf else 0.0
            add_gradient(features, u, lo, m, a, gradient)
        if wants_histogram:
            if is_hard:
                for t in range(m):
                    # A score of 0 is a decision for the first class.
                    a[t] = 1.0 if z[0, t] > 0.0 else 0.0
            else:
                for t in range(m):
                    a[t] = smooth[t]
            if weights.shape[0] > 0:
                for t in range(m):
                    a[t] = a[t] * weights[lo + t]
            for t in range(m):
                y = a[t] * hist_scale
                a[t] = (y if abs(y) < np.inf else 0.0) + MAGIC
            for line in range(cells.shape[0]):
                for t in range(m):
                    at = cell_of(cells, line, labels, hist_labels, lo + t)
                    histogram[at] += bits[t] - MAGIC_BITS


@jit
def panel_scores(features: Features, coef: Floats, lo: int, z: Floats, s2: Floats) -> None:
    """`scores_into` of many models side by side: z[t, m], coef (1 + width, models). A row is read
    once for all of them; terms are added in the same order, several to a loop to save loads."""
    numbers, indptr, indices, codes, offsets = features
    M = coef.shape[1]
    q = codes.shape[0]
    for t in range(z.shape[0]):
        i, line = lo + t, z[t]
        size = 1.0 + q
        for m in range(M):
            line[m] = coef[0, m]
        if indptr.shape[0] > 0:
            for e in range(indptr[i], indptr[i + 1]):
                x = np.float64(numbers[0, e])
                size = size + x * x
                w = coef[1 + indices[e]]
                for m in range(M):
                    line[m] = line[m] + w[m] * x
        else:
            n = numbers.shape[0]
            for j in range(0, n - 1, 2):
                x, y = np.float64(numbers[j, i]), np.float64(numbers[j + 1, i])
                size = (size + x * x) + y * y
                w, v = coef[1 + j], coef[2 + j]
                for m in range(M):
                    line[m] = (line[m] + w[m] * x) + v[m] * y
            if n % 2 == 1:
                x = np.float64(numbers[n - 1, i])
                size = size + x * x
                w = coef[n]
                for m in range(M):
                    line[m] = line[m] + w[m] * x
        for c in range(0, q - 1, 2):
            w, v = coef[offsets[c] + codes[c, i]], coef[offsets[c + 1] + codes[c + 1, i]]
            for m in range(M):
                line[m] = (line[m] + w[m]) + v[m]
        if q % 2 == 1:
            w = coef[offsets[q - 1] + codes[q - 1, i]]
            for m in range(M):
                line[m] = line[m] + w[m]
        s2[t] = size


@jit
def panel_gradient(features: Features, r: Floats, lo: int, out: Floats) -> None:
    """`add_gradient` of many models side by side: out[coordinate, m] += round(r[t, m] x coordinate
    of row lo + t). `out` holds whole numbers, exactly while they are below 2^53; r is spoilt."""
    numbers, indptr, indices, codes, offsets = features
    M, q = r.shape[1], codes.shape[0]
    # (v + MAGIC) - MAGIC is v rounded to a whole number of units, ties to even.
    for t in range(r.shape[0]):
        i, a = lo + t, r[t]
        if indptr.shape[0] > 0:
            for e in range(indptr[i], indptr[i + 1]):
                x = np.float64(numbers[0, e])
                to = out[1 + indices[e]]
                for m in range(M):
                    to[m] += (a[m] * x + MAGIC) - MAGIC
        else:
            for j in range(numbers.shape[0]):
                x = np.float64(numbers[j, i])
                to = out[1 + j]
                for m in range(M):
                    to[m] += (a[m] * x + MAGIC) - MAGIC
        first = out[0]
        for m in range(M):
            a[m] = (a[m] + MAGIC) - MAGIC
            first[m] += a[m]
        for c in range(0, q - 1, 2):
            to, too = out[offsets[c] + codes[c, i]], out[offsets[c + 1] + codes[c + 1, i]]
            for m in range(M):
                to[m] += a[m]
                too[m] += a[m]
        if q % 2 == 1:
            to = out[offsets[q - 1] + codes[q - 1, i]]
            for m in range(M):
                to[m] += a[m]


@jit
def map_into(
    numbers: Numbers, a: int, b: int, scale: Floats, shift: Floats, most: float, out: Numbers
) -> None:
    """out[j, a:b] = scale[j] x numbers[j, a:b] + shift[j], cut at the largest of out's type."""
    for j in range(numbers.shape[0]):
        line, to, by, add = numbers[j, a:b], out[j, a:b], scale[j], shift[j]
        for t in range(b - a):
            x = line[t] * by + add
            x = most if x > most else x
            to[t] = -most if x < -most else x


@jit
def flush(sums: Floats, out: Array) -> None:
    """out += sums, which go back to zero: from exact integers in float64 to 64-bit integers."""
    for j in range(out.shape[0]):
        for m in range(out.shape[1]):
            out[j, m] += np.int64(sums[j, m])
            sums[j, m] = 0.0


@jit
def descend_panel(
    features: Features, rows: Told, coef: Floats, start: int, stop: int, asked: Any, counted: Any
) -> None:
    """`descend` of many models of one score, side by side: the models are the last axis of all."""
    labels, cells, weights = rows
    loss, pull, cell_weights, sharpness, costs, cost_labels, clip, scale, gradient = asked
    is_hard, hist_labels, hist_scale, histogram = counted
    M = coef.shape[1]
    flat, p_flat, soft_flat = np.empty(SIDE * M), np.empty(SIDE * M), np.empty(SIDE * M)
    a, b, work, s2 = np.empty(SIDE * M), np.empty(SIDE * M), np.empty(M), np.empty(SIDE)
    z, p, soft = flat.reshape(SIDE, M), p_flat.reshape(SIDE, M), soft_flat.reshape(SIDE, M)
    r = np.empty((SIDE, M))
    wants_gradient, wants_histogram = gradient.shape[0] > 0, histogram.shape[0] > 0
    wants_soft = costs.shape[0] > 0 or (wants_histogram and not is_hard)
    same = sharpness == 1.0
    smooth = p if same else soft
    sums, counts = np.zeros(gradient.shape), np.zeros(histogram.shape)
    for lo in range(start, stop, SIDE):
        n = min(SIDE, stop - lo)
        panel_scores(features, coef, lo, z[:n], s2)
        if (wants_gradient and loss == 0) or (same and wants_soft):
            sigmoid_into(flat, 1.0, p_flat, a, b, n * M)
        if wants_soft and not same:
            sigmoid_into(flat, sharpness, soft_flat, a, b, n * M)
        for t in range(n):
            i = lo + t
            u, z_t, p_t, smooth_t = r[t], z[t], p[t], smooth[t]
            weight = weights[i] if weights.shape[0] > 0 else 1.0
            if wants_gradient:
                y = 1.0 if labels[i] == 1 else 0.0
                for m in range(M):
                    if loss == 0:
                        u[m] = pull[m] * (p_t[m] - y)
                    elif loss == 1:
                        u[m] = pull[m] * (z_t[m] - np.float64(labels[i]))
                    else:
                        u[m] = 0.0
                if cell_weights.shape[0] > 0:
                    for m in range(M):
                        work[m] = 0.0
                    for line in range(cells.shape[0]):
                        w = cell_weights[np.int64(cells[line, i])]
                        for m in range(M):
                            work[m] = work[m] + w[m]
                    for m in range(M):
                        u[m] = u[m] * work[m]
                if costs.shape[0] > 0:
                    for line in range(cells.shape[0]):
                        c = costs[cell_of(cells, line, labels, cost_labels, i)]
                        for m in range(M):
                            u[m] = u[m] + smooth_t[m] * (1.0 - smooth_t[m]) * sharpness * c[m]
                limit = clip / np.sqrt(s2[t]) if clip < np.inf else np.inf
                limit = limit if limit >= 0.0 else 0.0
                for m in range(M):
                    x = limit if u[m] > limit else u[m]
                    x = -limit if x < -limit else x
                    x = x * weight * scale[m]
                    u[m] = x if abs(x) < np.inf else 0.0
            if wants_histogram:
                for m in range(M):
                    x = (1.0 if z_t[m] > 0.0 else 0.0) if is_hard else smooth_t[m]
                    x = x * weight * hist_scale[m]
                    work[m] = ((x if abs(x) < np.inf else 0.0) + MAGIC) - MAGIC
                for line in range(cells.shape[0]):
                    to = counts[cell_of(cells, line, labels, hist_labels, i)]
                    for m in range(M):
                        to[m] += work[m]
        if wants_gradient:
            panel_gradient(features, r[:n], lo, sums)
        # Before a sum of whole numbers could pass 2^53, where float64 no longer has each of them.
        if (lo + SIDE - start) % 256 == 0 or lo + SIDE >= stop:
            flush(sums, gradient)
            flush(counts, histogram)
