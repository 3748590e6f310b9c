"""Rows of numbers with targets in [-1, 1] and groups, for the tests of regressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairveil.curator import Rows
from fairveil.facts import Cells
from fairveil.methods.least_squares import GroupQuadratics


def sample(
    groups: int = 2, numbers: int = 3, rows: int = 4000, seed: int = 0
) -> tuple[Any, Any, Any]:
    """X in [-1, 1], y in [-1, 1], and the groups, the first of them the largest; each has
    coefficients of its own."""
    rng = np.random.default_rng(seed)
    A = np.minimum(rng.geometric(0.6, size=rows) - 1, groups - 1)
    X = np.clip(rng.normal(size=(rows, numbers)) * 0.4, -1, 1)
    lines = rng.normal(size=(groups, numbers)) * 0.5 / np.sqrt(numbers)
    y = (X * lines[A]).sum(axis=1) + 0.1 * A / groups + 0.05 * (1 + A) * rng.normal(size=rows)
    return X, np.clip(y, -1, 1), A


def grams(X: Any, y: Any, A: Any, groups: int) -> Any:
    r = np.column_stack([np.ones(len(y)), X, y])
    return np.stack([r[k == A].T @ r[k == A] for k in range(groups)])


def cells_of(groups: int) -> Cells:
    return Cells((tuple(range(groups)),), names=("group",))


def quadratics(
    groups: int = 2, numbers: int = 3, seed: int = 0, **options: Any
) -> tuple[GroupQuadratics, Any]:
    """Exact losses, and the rows that they are of."""
    X, y, A = sample(groups, numbers, seed=seed)
    return GroupQuadratics.of(
        grams(X, y, A, groups), noise=0.0, cells=cells_of(groups), **options
    ), (X, y, A)


def rows_of(X: Any, y: Any, A: Any, groups: int) -> Rows:
    """The target as the last number."""
    whole = np.column_stack([X, y])
    return Rows.from_arrays(
        whole, y, [A], groups=[list(range(groups))], sensitive_names=["group"], regression=True
    )
