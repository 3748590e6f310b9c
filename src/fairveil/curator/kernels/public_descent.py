"""One pass over public rows for a round of descent: largest moves, exact and protected sums, scores
computed once.

Guarantees (tests/curator/test_curator_public_pass.py):
1. Sums and maxima are those of `linear.descend` and `public.largest_moves`, to the bit: the same
   operations on each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array, Floats, Integers, Numbers
from ...core.kernels import MAGIC, MAGIC_BITS, TILE, add_gradient, jit, scores_into, sigmoid_into
from .linear import add_histogram
from .tiles import LOG_LOSS, SOFT, add_costs, cell_index_into, clip_into, residuals_into


@jit
def add_pair(
    numbers: Numbers,
    codes: Integers,
    offsets: Integers,
    r: Floats,
    lo: int,
    m: int,
    work: Floats,
    more: Floats,
    out: Array,
) -> None:
    """out[..., k] += round(r[k, t] x row[t]) for k = 0 and 1 of dense rows: each code is read once
    for both."""
    first_bits, second_bits = work.view(np.int64), more.view(np.int64)
    for j in range(numbers.shape[0]):
        column = numbers[j, lo : lo + m]
        for t in range(m):
            work[t] = r[0, t] * np.float64(column[t]) + MAGIC
            more[t] = r[1, t] * np.float64(column[t]) + MAGIC
        one, two = np.int64(0), np.int64(0)
        for t in range(m):
            one += first_bits[t]
            two += second_bits[t]
        out[1 + j, 0] += one - m * MAGIC_BITS
        out[1 + j, 1] += two - m * MAGIC_BITS
    for t in range(m):
        work[t] = r[0, t] + MAGIC
        more[t] = r[1, t] + MAGIC
    one, two = np.int64(0), np.int64(0)
    for t in range(m):
        first_bits[t] = first_bits[t] - MAGIC_BITS
        second_bits[t] = second_bits[t] - MAGIC_BITS
    for t in range(m):
        one += first_bits[t]
        two += second_bits[t]
    out[0, 0] += one
    out[0, 1] += two
    q = codes.shape[0]
    for c in range(0, q - 1, 2):
        line, also = codes[c, lo : lo + m], codes[c + 1, lo : lo + m]
        i, j = offsets[c], offsets[c + 1]
        for t in range(m):
            b, d = first_bits[t], second_bits[t]
            x, y = i + line[t], j + also[t]
            out[x, 0] += b
            out[x, 1] += d
            out[y, 0] += b
            out[y, 1] += d
    for c in range(q - q % 2, q):
        line, first = codes[c, lo : lo + m], offsets[c]
        for t in range(m):
            x = first + line[t]
            out[x, 0] += first_bits[t]
            out[x, 1] += second_bits[t]


@jit
def largest_of(values: Floats, m: int) -> Any:
    """The largest of the first m values, none of them negative; the array is used up."""
    for t in range(m, values.shape[0]):
        values[t] = 0.0
    # By halves, which the processor does several at a time; TILE is a power of two.
    half = values.shape[0] // 2
    while half > 0:
        for t in range(half):
            other = values[half + t]
            values[t] = other if other > values[t] else values[t]
        half //= 2
    return values[0]


@jit
def descend_public(
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
    loss_weight: float,
    loss_clip: float,
    loss_scale: float,
    sharpness: float,
    costs: Floats,
    cost_labels: int,
    clip: float,
    scale: float,
    reach: Floats,
    slack: float,
    kind: int,
    hist_labels: int,
    hist_scale: float,
    histogram: Array,
    total_labels: int,
    total_scale: float,
    total: Floats,
    gradients: Array,
    found: Floats,
    sizes: Floats,
) -> None:
    """Of one model of two classes, log loss with costs; rows with weights where predictions are hard:

    `gradients` (1 + width, 2): the clipped gradient sums of loss and of costs; `histogram` by cell,
    and `total` of everybody, of predictions, each skipped when empty; `found`: the largest norm and
    move of the costs' gradient, rows that are not finite, and the largest probability. `sizes`: |row|^2 of
    each row where it is known, else empty.
    """
    z, p, soft, u = (
        np.empty((1, TILE)),
        np.empty((1, TILE)),
        np.empty((1, TILE)),
        np.empty((2, TILE)),
    )
    s2, a, b, c = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    index = np.empty(TILE, np.int64)
    apart = np.zeros((2, gradients.shape[0] if indptr.shape[0] > 0 else 0), np.int64)
    same, wants_total, wants_histogram = (
        sharpness == 1.0,
        total.shape[0] > 0,
        histogram.shape[0] > 0,
    )
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        scores_into(numbers, indptr, indices, codes, offsets, coef, lo, m, z, s2)
        for t in range(min(m, sizes.shape[0])):
            s2[t] = sizes[lo + t]
        sigmoid_into(z[0], 1.0, p[0], a, b, m)
        if not same:
            sigmoid_into(z[0], sharpness, soft[0], a, b, m)
        smooth = p if same else soft
        bad = 0
        for t in range(m):
            # The slope of a probability in its score: how far one unit of cost moves the residual.
            b[t] = sharpness * smooth[0, t] * (1.0 - smooth[0, t])
        if cost_labels > 1:
            for t in range(m):
                label = np.int64(labels[lo + t])
                a[t] = b[t] * reach[0, label]
                b[t] = b[t] * reach[1, label]
        else:
            for t in range(m):
                a[t] = b[t] * reach[0, 0]
                b[t] = b[t] * reach[1, 0]
        for t in range(m):
            row = np.sqrt(s2[t]) * (weights[lo + t] if weights.shape[0] > 0 else 1.0)
            # Of the costs alone: the loss reads no group, so that its sum is exact and public
            # (docs/theory/sensitivities.md, public rows).
            a[t] = (a[t] + slack) * row
            b[t] = (b[t] + slack) * row
        for t in range(m):
            bad += 0 if a[t] < np.inf and b[t] < np.inf else 1
        largest, widest = largest_of(a, m), largest_of(b, m)
        found[0] = largest if largest > found[0] else found[0]
        found[1] = widest if widest > found[1] else found[1]
        found[2] += bad
        if kind == SOFT:
            for t in range(m):
                a[t] = smooth[0, t]
            most = largest_of(a, m)
            found[3] = most if most > found[3] else found[3]
        one, two = u[:1], u[1:]
        residuals_into(LOG_LOSS, loss_weight, p, z, labels, lo, m, one)
        clip_into(one, s2, loss_clip, weights, loss_scale, lo, m, a)
        for t in range(m):
            u[1, t] = 0.0
        for line in range(cells.shape[0]):
            cell_index_into(cells, line, labels, cost_labels, lo, m, index)
            add_costs(costs, index, smooth, sharpness, m, two, a)
        clip_into(two, s2, clip, weights, scale, lo, m, a)
        if indptr.shape[0] > 0:
            add_gradient(numbers, indptr, indices, codes, offsets, u, lo, m, a, apart)
        else:
            add_pair(numbers, codes, offsets, u, lo, m, a, c, gradients)
        if wants_histogram:
            for line in range(cells.shape[0]):
                cell_index_into(cells, line, labels, hist_labels, lo, m, index)
                add_histogram(kind, z, smooth, index, weights, hist_scale, lo, m, a, histogram)
        if wants_total:
            for t in range(m):
                index[t] = np.int64(labels[lo + t]) if total_labels > 1 else 0
            add_histogram(kind, z, smooth, index, weights, total_scale, lo, m, a, total)
    for x in range(apart.shape[1]):
        gradients[x, 0] += apart[0, x]
        gradients[x, 1] += apart[1, x]
