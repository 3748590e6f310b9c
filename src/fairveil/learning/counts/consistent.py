"""Counts that fit together, made of released ones: nothing is negative, and sums are sums.
Post-processing, for reading alone.

Noise may make a count negative. The nearest table without negative counts and with the same sum is

    x = max(s - theta, 0),    sum x = T,

the projection of the released s onto a simplex, rounded to whole numbers by largest remainders. T
is the released sum, or the number of people where that is public; where features and labels are
public, each combination of them has its known T.

Intervals are never made from these counts: a projection has no known distribution. They are made
from the released ones.

Guarantees (tests/learning/test_learning_consistent_counts.py):
1. No count is negative, all are whole numbers, and they add up to T.
2. A table that is consistent already is not changed; no other consistent table is nearer, up to the
   rounding.
"""

from __future__ import annotations

import numpy as np

from ..._types import Floats


def consistent(released: Floats, known: Floats | None) -> Floats:
    """Whole counts (cells, kinds) near the released ones. `known`: the public sum of all (a
    number), or of each kind (kinds,).

    >>> consistent(np.array([[-2.0, 5.0], [4.0, 1.0]]), None)
    array([[0., 5.],
           [3., 0.]])
    """
    if known is None or np.ndim(known) == 0:
        total = max(0.0, float(released.sum())) if known is None else float(known)
        return _projected(released.ravel(), total).reshape(released.shape)
    columns = [
        _projected(column, float(total))
        for column, total in zip(released.T, np.ravel(known), strict=True)
    ]
    return np.stack(columns, axis=1)


def _projected(values: Floats, total: float) -> Floats:
    """The nearest point without negative numbers whose sum is `total`, rounded with its sum
    kept."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    theta = over[np.flatnonzero(falling > over)[-1]] if (falling > over).any() else over[0]
    exact = np.maximum(values - theta, 0.0)
    whole = np.floor(exact + 1e-9)
    lacking = round(total - whole.sum())
    left = np.round(exact - whole, 9)  # ties in order, whatever the last digits are
    whole[np.argsort(-left, kind="stable")[:lacking]] += 1.0
    return np.asarray(whole)
