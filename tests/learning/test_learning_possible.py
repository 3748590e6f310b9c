"""Possible counts near noisy ones."""

from __future__ import annotations

import numpy as np
import pytest

from fairveil.learning.counts import possible


@pytest.mark.parametrize("seed", range(6))
def test_guarantee_1_and_2_nothing_is_negative_and_numbers_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.poisson(rng.uniform(0.05, 30.0, size=(3, 2, 1)), size=(3, 2, 24)).astype(float)
    raw = truth + np.rint(rng.normal(0, 4, size=truth.shape))
    alone = possible.counts(raw, None)
    assert (alone >= 0).all()
    assert np.allclose(alone.sum(axis=2), np.maximum(raw.sum(axis=2), 0.0))
    # what the bounds on errors of decisions need
    assert np.abs(alone - truth).sum() <= np.abs(raw - truth).sum() + 1e-9
    totals = truth.sum(axis=0)
    both = possible.counts(raw, totals)
    assert (both >= 0).all()
    assert np.allclose(both.sum(axis=0), totals)
    numbers = possible.onto_totals(raw.sum(axis=2), totals.sum(axis=1))
    assert np.abs(both.sum(axis=2) - numbers).max() < 0.05 * numbers.max() + 1.0


def test_guarantee_2_zeros_do_not_add_up() -> None:
    """A group with one row in 64 bins: the mean of its number over releases is that of the truth,
    not 26 times the noise."""
    rng = np.random.default_rng(0)
    truth = np.zeros((1, 1, 64))
    truth[0, 0, 10] = 100.0
    raw = truth + rng.normal(0, 5, size=(300, 1, 64))[:, :, np.newaxis].reshape(300, 1, 64)
    kept = [float(possible.counts(one[np.newaxis], None).sum()) for one in raw]
    clipped = [float(np.maximum(one, 0.0).sum()) for one in raw]
    # 40 rows of noise each: four standard errors of the mean are 9
    assert abs(np.mean(kept) - 100.0) < 12.0
    assert np.mean(clipped) > 200.0


def test_nothing_released_is_nothing() -> None:
    assert (possible.counts(np.full((2, 2, 5), -3.0), None) == 0).all()
