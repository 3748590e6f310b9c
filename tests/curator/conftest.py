"""Small tables for the curator's tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fairveil.curator import Rows

SIZES = (4, 3)
GROUPS = (("a", "b", "c"), ("x", "y"))


def make_rows(
    seed: int = 0,
    n: int = 700,
    classes: int = 2,
    *,
    regression: bool = False,
    weights: bool = False,
    sparse: bool = False,
    dtype: type = np.float64,
    order: np.ndarray | None = None,
    far: bool = True,
) -> Rows:
    """A table of 3 numbers, 2 codes, a label and 2 sensitive columns; some rows lie far outside any
    bound."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(dtype)
    X[rng.random(n) < 0.05] *= 1e6 if far else 1.0
    X[rng.random((n, 3)) < 0.2] = 0.0
    codes = np.stack([rng.integers(0, size, n) for size in SIZES], axis=1).astype(np.uint8)
    y = rng.normal(size=n) if regression else rng.integers(0, classes, n)
    A = [rng.choice(values, n) for values in GROUPS]
    w = rng.random(n) if weights else None
    order = np.arange(n) if order is None else order
    if sparse:
        import scipy.sparse

        X = scipy.sparse.csr_array(X)
    return Rows.from_arrays(
        X[order],
        y[order],
        [a[order] for a in A],
        codes=codes[order],
        code_sizes=SIZES,
        classes=None if regression else list(range(classes)),
        groups=GROUPS,
        regression=regression,
        sample_weight=None if w is None else w[order],
    )


@pytest.fixture
def rows_of() -> Callable[..., Rows]:
    """`make_rows`, as a fixture."""
    return make_rows
