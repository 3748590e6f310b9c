"""Pools of rows near, far and extremely far beyond any bound, each under every combination of
sensitive values, and the most that one person of a pool moves a total: all neighbours,
enumerated."""

from __future__ import annotations

import itertools

import numpy as np

from fairveil.core.passes import totals
from fairveil.curator import Rows

SIZES, GROUPS = (4, 3), (("a", "b", "c"), ("x", "y"))
COMBINATIONS = list(itertools.product(range(3), range(2)))
WIDTH = 1 + 3 + 7


def pool(classes=2, *, regression=False, weights=False, dtype=np.float64, far=True, sparse=False):
    """Rows of every size and label, each under every combination of sensitive values (rows are the
    slow index)."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(14, 3)), np.eye(3), -np.eye(3), np.zeros((1, 3))])
    if far:
        top = 1e30 if dtype == np.float32 else 1e300
        X = np.concatenate(
            [
                X,
                1e5 * np.eye(3),
                -1e5 * np.eye(3),
                top * np.eye(3),
                np.full((1, 3), -top),
                1e-300 * np.eye(3),
            ]
        )
    X = X.astype(dtype)
    n = len(X)
    codes = np.stack([rng.integers(0, size, n) for size in SIZES], axis=1).astype(np.uint8)
    y = rng.normal(size=n) * 3 if regression else rng.integers(0, classes, n)
    w = np.where(rng.random(n) < 0.3, 0.0, rng.random(n)) if weights else None
    if weights:
        w[::3] = 2.0
    repeat = np.repeat(np.arange(n), len(COMBINATIONS))
    codes_of = np.array(COMBINATIONS * n)
    X = X[repeat]
    if sparse:
        import scipy.sparse

        X = scipy.sparse.csr_array(X)
    return Rows.from_arrays(
        X,
        y[repeat],
        [np.array(values)[codes_of[:, j]] for j, values in enumerate(GROUPS)],
        codes=codes[repeat],
        code_sizes=SIZES,
        classes=None if regression else list(range(classes)),
        groups=GROUPS,
        regression=regression,
        sample_weight=None if w is None else w[repeat],
        max_sample_weight=1.5,
    )


def contributions(question, scale, rows):
    """One row's integers, every row: (rows, coordinates) for the first model."""
    (whole,) = rows.blocks()
    out = [
        totals([(question, [scale])], rows, [whole.take(np.array([i]))])[0][-1].ravel()
        for i in range(whole.rows)
    ]
    return np.array(out, dtype=np.float64)


def norms(vectors, order):
    return np.linalg.norm(vectors, ord=order, axis=-1)


def largest_moves(question, scale, rows):
    """The most that one person moves the total, in grid units: added or removed, and replaced by
    another."""
    v = np.unique(contributions(question, scale, rows), axis=0)  # many persons add the same
    order = scale.bound.order
    replaced = max(norms(v - row, order).max() for row in v)
    return norms(v, order).max(), replaced


def attribute_move(question, scale, rows):
    """The most that a change of one row's sensitive values alone moves the total."""
    v = contributions(question, scale, rows)
    by_person = v.reshape(-1, len(COMBINATIONS), v.shape[1])
    pairs = itertools.combinations(range(len(COMBINATIONS)), 2)
    return max(norms(by_person[:, a] - by_person[:, b], scale.bound.order).max() for a, b in pairs)
