"""Sums of losses of models of several classes, by cell."""

from __future__ import annotations

import numpy as np

from ..._types import Array, Floats, Integers, Numbers
from ...core.kernels import MAGIC, MAGIC_BITS, TILE, jit, scores_into, softmax_into
from .tiles import ZERO_ONE_LOSS, log_into


@jit
def class_losses(
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
    scale: float,
    out: Array,
) -> None:
    """out[cell] += round(weight x min(loss, clip) x scale) for one softmax model: zero-one or log
    loss."""
    K = coef.shape[0]
    z, p = np.empty((K, TILE)), np.empty((K, TILE))
    s2, top, total, a, b = (
        np.empty(TILE),
        np.empty(TILE),
        np.empty(TILE),
        np.empty(TILE),
        np.empty(TILE),
    )
    bits = b.view(np.int64)
    for lo in range(start, stop, TILE):
        m = min(TILE, stop - lo)
        scores_into(numbers, indptr, indices, codes, offsets, coef, lo, m, z, s2)
        if loss == ZERO_ONE_LOSS:
            for t in range(m):
                best = 0
                for k in range(1, K):
                    best = k if z[k, t] > z[best, t] else best
                a[t] = 0.0 if best == labels[lo + t] else 1.0
        else:
            softmax_into(z, 1.0, p, top, total, a, b, m)
            log_into(total, a, b, m)
            for t in range(m):
                # log sum exp(z) less the label's score: `total` is of exp(z - top), which does not
                # overflow.
                a[t] = a[t] + (top[t] - z[labels[lo + t], t])
        for t in range(m):
            # NaN is not below the clip: a loss that is no number counts as the clip.
            y = a[t] if a[t] < clip else clip
            v = y * (weights[lo + t] if weights.shape[0] > 0 else 1.0) * scale
            b[t] = (v if 0.0 <= v < np.inf else 0.0) + MAGIC
        for line in range(cells.shape[0]):
            for t in range(m):
                out[np.int64(cells[line, lo + t])] += bits[t] - MAGIC_BITS
