"""Consistent counts: whole, not negative, of the right sum, and the nearest such table, against a
solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from fairveil.learning.counts.consistent import consistent


@pytest.mark.parametrize("seed", range(20))
def test_counts_are_whole_not_negative_and_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    released = rng.integers(-20, 40, size=(4, 6)).astype(float)
    for known in (None, np.array(77.0), rng.integers(0, 90, size=6).astype(float)):
        found = consistent(released, known)
        assert (found >= 0).all()
        assert (found == np.rint(found)).all()
        wanted = max(released.sum(), 0.0) if known is None else known.sum()
        assert found.sum() == wanted
        if known is not None and known.ndim:
            assert (found.sum(axis=0) == known).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_consistent_table_is_nearer_up_to_rounding(seed: int) -> None:
    released = np.random.default_rng(seed).integers(-10, 15, size=6).astype(float)
    total = max(released.sum(), 0.0)
    least = optimize.minimize(
        lambda x: ((x - released) ** 2).sum(),
        np.full(6, total / 6),
        jac=lambda x: 2 * (x - released),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": lambda x: np.ones(6)},
        method="SLSQP",
    )
    assert np.abs(consistent(released[np.newaxis], None)[0] - least.x).max() < 1.0 + 1e-4


def test_what_is_consistent_already_is_not_changed() -> None:
    released = np.array([[3.0, 0.0], [5.0, 2.0]])
    assert (consistent(released, None) == released).all()
    assert (consistent(released, np.array(10.0)) == released).all()
    assert (consistent(released, np.array([8.0, 2.0])) == released).all()


def test_everything_below_zero_is_nobody() -> None:
    assert consistent(np.array([[-3.0, -1.0]]), None).tolist() == [[0.0, 0.0]]
