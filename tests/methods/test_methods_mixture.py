"""The best mixture of a finite list: the guarantee of `methods/mixture.py`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairveil.methods.mixture import best_mixture


@pytest.mark.parametrize("seed", range(6))
def test_guarantee_1_no_mixture_of_few_candidates_is_better(seed: int) -> None:
    """The judge is a grid over all mixtures of four candidates, in steps of 1/20."""
    rng = np.random.default_rng(seed)
    errors, values, worth = rng.random(4), rng.normal(size=(4, 3)), (0.1, 100.0)[seed % 2]
    bounds = rng.normal(scale=0.3, size=3)

    def price(shares: np.ndarray) -> float:
        return float(shares @ errors + worth * max(0.0, float((shares @ values - bounds).max())))

    shares, duals = best_mixture(errors, values, bounds, worth=worth)
    assert shares.min() >= 0.0
    assert shares.sum() == pytest.approx(1.0)
    grid = [np.array(q) / 20 for q in itertools.product(range(21), repeat=4) if sum(q) == 20]
    assert price(shares) <= min(map(price, grid)) + 1e-9
    # Duals are prices: at these the candidates that are mixed are the cheapest (strong duality).
    priced = errors + values @ duals
    assert (priced[shares > 1e-9] <= priced.min() + 1e-9).all()
    assert price(shares) == pytest.approx(priced.min() - duals @ bounds)


def test_what_is_not_known_or_not_bounded_takes_no_part() -> None:
    errors, values = np.array([0.1, 0.2]), np.array([[np.nan, 5.0], [0.0, 5.0]])
    shares, duals = best_mixture(errors, values, np.array([0.0, np.inf]), worth=10.0)
    assert shares.tolist() == [1.0, 0.0]
    assert duals.tolist() == [0.0, 0.0]
