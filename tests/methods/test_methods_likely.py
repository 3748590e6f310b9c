"""Noisy numbers of one kind, moved towards each other: the guarantees of `methods/likely.py`."""

from __future__ import annotations

import numpy as np
import pytest

from fairveil.methods.likely import likely, unheard


def test_guarantee_1_exact_numbers_stay_and_others_move_towards_a_centre() -> None:
    values = np.array([0.3, -0.1, 0.5])
    assert (likely(values, np.zeros(3)) == values).all()
    assert (likely(values[:1], np.array([0.2])) == values[:1]).all()
    deviations = np.array([0.01, 0.1, 0.6])
    weights = deviations**-2.0
    centre = (weights @ values) / weights.sum()
    moved = likely(values, deviations)
    assert ((moved - values) * (moved - centre) <= 0).all()
    assert abs(moved[0] - values[0]) < 0.01 < abs(moved[2] - values[2])


@pytest.mark.parametrize(("apart", "most"), [(0.02, 0.25), (0.1, 0.6), (2.0, 1.02)])
def test_guarantee_2_the_squared_error_is_smaller_and_never_much_larger(
    apart: float, most: float
) -> None:
    """8 numbers, 4,000 draws, noise .1 to .4: shares of the raw squared error (standard errors
    below .01)."""
    rng = np.random.default_rng(0)
    deviations = np.linspace(0.1, 0.4, 8)[:, np.newaxis] * np.ones(4_000)
    true = apart * rng.normal(size=(8, 4_000))
    noisy = true + deviations * rng.normal(size=true.shape)
    moved = likely(noisy, deviations)
    assert ((moved - true) ** 2).mean() <= most * ((noisy - true) ** 2).mean()


def test_guarantee_3_the_largest_is_not_mostly_noise() -> None:
    rng = np.random.default_rng(1)
    deviations = np.repeat([0.02, 0.3], 4)[:, np.newaxis] * np.ones(4_000)
    true = np.repeat([[0.1], [0.0]], 4, axis=0) * np.ones(4_000)
    noisy = true + deviations * rng.normal(size=true.shape)
    raw, moved = (one.max(axis=0).mean() - 0.1 for one in (noisy, likely(noisy, deviations)))
    assert moved < 0.4 * raw


def test_numbers_are_unheard_where_all_of_them_are_noise() -> None:
    assert unheard(np.full(3, 0.2))
    assert not unheard(np.array([0.2, 0.1]))
    assert not unheard(np.zeros(2))
    assert not unheard(np.zeros(0))
