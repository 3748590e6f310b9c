"""A round's compiled post-processing gives the bits of the formulas, written in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from fairveil.learning.lagrangian import kernels


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 127, 128, 129, 136, 1_000])
def test_guarantee_1_terms_are_added_in_numpys_order(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        terms = rng.normal(size=n) * 10.0 ** rng.integers(-6, 6, n)
        assert kernels.total_of(terms) == np.add.reduce(terms)


def ascent(state, e, trust, rounds, fading, pace, kp, ema_nu, bound, least, largest):
    """The rule of `ProjectedAscent`, an array at a time."""
    duals, integral, smooth, squares = state
    e = np.nan_to_num(e, nan=0.0, posinf=1.0, neginf=-1.0)
    broken = trust * e * e * ((e > 0) | (duals > 0))
    squares = squares + (broken.max(axis=-1) if largest else np.add.reduce(broken, axis=-1))
    e = trust * e
    unit = (fading * (squares > 0) / np.maximum(np.sqrt(squares / rounds), least))[:, np.newaxis]
    integral = np.clip(integral + pace * unit * e, 0.0, bound)
    smooth = ema_nu * smooth + (1.0 - ema_nu) * e
    return np.clip(integral + kp * unit * smooth, 0.0, bound), integral, smooth, squares


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("models", "constraints"), [(1, 1), (2, 9), (3, 40)])
def test_guarantee_1_of_duals(models, constraints, largest):
    rng, shape = np.random.default_rng(constraints), (models, constraints)
    ours = theirs = (*(np.zeros(shape) for _ in range(3)), np.zeros(models))
    for round in range(1, 30):
        e, trust = rng.normal(size=shape) * 0.1, rng.random(shape)
        if round == 11:
            e[0, 0], e[-1, -1] = np.nan, np.inf
        if round == 12:
            e[0, 0] = -np.inf
        if round < 3:
            e = -abs(e)  # no constraint is broken, none pressed: the unit of excesses is 0
        how = (round, 1.0 - round / 40, 0.1, 0.4, 0.9, 1.5, 1e-9, largest)
        theirs = ascent(theirs, e, trust, *how)
        ours = kernels.pressed(e, trust, *ours, *how)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
    assert ours[0].any()
    assert (ours[0] <= 1.5).all()


def test_guarantee_1_of_excesses_costs_and_the_walk():
    rng, models, constraints, places = np.random.default_rng(0), 2, 5, 24
    pull, duals = rng.normal(size=(models, constraints, places)), rng.random((models, constraints))
    histogram, bounds, rows = rng.random((models, places)), duals / 9, np.array([900.0, 31.0])
    found = np.add.reduce(pull * histogram[:, np.newaxis], axis=-1) - bounds
    np.testing.assert_array_equal(kernels.excesses(pull, histogram, bounds), found)

    costs, loss = kernels.costs_of(pull, duals, rows, 0.35)
    wanted = 1.0 / (1.0 + 0.35 * np.add.reduce(duals, axis=1))
    np.testing.assert_array_equal(loss, wanted)
    flat = np.add.reduce(pull * duals[..., np.newaxis], axis=-2)
    np.testing.assert_array_equal(costs, flat * (rows * wanted)[:, np.newaxis])

    weights, velocity, total, answer = rng.normal(size=(4, models, 3, 17))
    share, rate = np.array([0.3, 700.0]), np.array([2.0, 0.1])
    push = rate[:, None, None] * (answer / share[:, None, None])
    moved = 0.9 * velocity - push
    after = weights + 0.9 * moved - push
    for count in (True, False):
        now = kernels.walked(weights, velocity, total, answer, share, rate, 0.9, count)
        kept = total + after if count else total
        for one, other in zip(now, (after, moved, kept), strict=True):
            np.testing.assert_array_equal(one, other)
