"""Players of a Lagrangian, as pure functions of released values: the ascent of duals, the walk of a
model, and their compiled steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil import DemographicParity, EqualizedOdds, FalseNegativeRate
from fairveil.facts import Cells
from fairveil.fairness import resolve
from fairveil.methods import AscentState, Constraints, PrimalState, ProjectedAscent, kernels
from fairveil.methods.duals import TELLABLE, weights_of

FLOOR = 3.0
CELLS = Cells((("f", "m", "x"),))


def released(seed: int, labels: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy counts, and a noisy histogram."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(200, 400, (3, labels)) + rng.normal(scale=5, size=(3, labels))
    histogram = counts[..., np.newaxis] * rng.dirichlet(np.ones(classes), (3, labels))
    return counts, histogram + rng.normal(scale=5, size=histogram.shape)


def constraints(counts, classes: int = 2, **more) -> Constraints:
    labels = counts.shape[1]
    notions = (
        [EqualizedOdds(0.02), FalseNegativeRate(0.1, positive=1)]
        if labels > 1
        else [DemographicParity(0.02)]
    )
    system = resolve(notions, CELLS, tuple(range(classes)))
    system = system if labels > 1 else system.without_labels()
    known = (system, system.bounds, ProjectedAscent(20), counts, float(counts.sum()), FLOOR, 2.0)
    return Constraints(*known, **more)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 127, 128, 129, 136, 1_000])
def test_guarantee_1_terms_are_added_in_numpys_order(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        terms = rng.normal(size=n) * 10.0 ** rng.integers(-6, 6, n)
        assert kernels.total_of(terms) == np.add.reduce(terms)


def ascent(state, e, trust, rounds, fading, pace, kp, ema_nu, bound, least, largest):
    """The rule of `ProjectedAscent`, an array at a time."""
    pressed, integral, smooth, squares = state
    e = np.nan_to_num(e, nan=0.0, posinf=1.0, neginf=-1.0)
    broken = trust * e * e * ((e > 0) | (pressed > 0))
    squares = squares + (broken.max() if largest else np.add.reduce(broken))
    e = trust * e
    unit = fading * (squares > 0) / np.maximum(np.sqrt(squares / rounds), least)
    integral = np.clip(integral + pace * unit * e, 0.0, bound)
    smooth = ema_nu * smooth + (1.0 - ema_nu) * e
    return np.clip(integral + kp * unit * smooth, 0.0, bound), integral, smooth, squares


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("count", [1, 9, 40])
def test_guarantee_1_of_duals(count: int, largest: bool) -> None:
    rng = np.random.default_rng(count)
    ours = theirs = (*(np.zeros(count) for _ in range(3)), 0.0)
    for round in range(1, 30):
        e, trust = rng.normal(size=count) * 0.1, rng.random(count)
        if round == 11:
            e[0], e[-1] = np.nan, np.inf
        if round == 12:
            e[0] = -np.inf
        if round < 3:
            e = -abs(e)  # no constraint is broken, none pressed: the unit of excesses is 0
        how = (round, 1.0 - round / 40, 0.1, 0.4, 0.9, 1.5, 1e-9, largest)
        theirs, ours = ascent(theirs, e, trust, *how), kernels.pressed(e, trust, *ours, *how)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
    assert ours[0].any()
    assert (ours[0] <= 1.5).all()


def test_guarantee_1_of_excesses_costs_and_the_walk() -> None:
    rng, count, places = np.random.default_rng(0), 5, 24
    pull, pressed = rng.normal(size=(count, places)), rng.random(count)
    histogram, bounds = rng.random(places), pressed / 9
    found = np.add.reduce(pull * histogram, axis=-1) - bounds
    np.testing.assert_array_equal(kernels.excesses(pull, histogram, bounds), found)

    costs, loss = kernels.costs_of(pull, pressed, 900.0, 0.35)
    wanted = 1.0 / (1.0 + 0.35 * np.add.reduce(pressed))
    assert loss == wanted
    flat = np.add.reduce(pull * pressed[:, np.newaxis], axis=0)
    np.testing.assert_array_equal(costs, flat * (900.0 * wanted))

    weights, velocity, total, answer = rng.normal(size=(4, 3, 17))
    now = PrimalState(weights, velocity, total)
    for count_it in (True, False):
        ours = now.along(answer, 700.0, 0.3, 0.9, count=count_it)
        theirs = now.step(answer / 700.0, 0.3, 0.9, count=count_it)
        for name in ("weights", "velocity", "total", "counted"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_the_walk_is_nesterovs_and_averages_what_it_counts() -> None:
    walk, x, v = PrimalState.at(np.zeros((1, 2))), np.zeros(2), np.zeros(2)
    seen = []
    for t in range(5):
        g = np.array([1.0, -2.0]) * (t + 1)
        assert np.allclose(walk.weights[0], x + 0.9 * v)
        v = 0.9 * v - 0.1 * g
        x = x + v
        walk = walk.step(g.reshape(1, 2), 0.1, 0.9, count=t >= 3)
        if t >= 3:
            seen.append(walk.weights[0])
    assert np.allclose(walk.average[0], np.mean(seen, axis=0))


def test_pressure_follows_broken_constraints_within_its_bounds_in_units_of_the_run() -> None:
    up = ProjectedAscent(rounds=20, bound=1.5)
    state, sizes = AscentState.begin(2), []
    for _ in range(60):
        state = up.step(state, np.array([0.1, -0.1]))
        sizes.append(state.duals[0])
    assert np.all(np.diff(sizes) >= 0)
    assert sizes[-1] == 1.5
    assert state.duals[1] == 0.0
    for _ in range(60):
        state = up.step(state, np.array([-0.1, -0.1]))
    assert np.all(state.duals == 0.0)
    small, large = AscentState.begin(1), AscentState.begin(1)
    for excess in (0.2, 0.1, -0.05, 0.02, -0.01):
        small = up.step(small, np.array([excess / 64]))
        large = up.step(large, np.array([excess]))
    assert np.allclose(small.duals, large.duals)
    state = up.step(AscentState.begin(2), np.array([math.nan, 0.1]))
    assert state.duals[0] == 0.0 < state.duals[1]


@pytest.mark.parametrize(("labels", "classes"), [(1, 2), (2, 2), (3, 3)])
def test_constraints_cost_what_their_lagrangian_does_in_units_of_the_eased_loss(
    labels, classes
) -> None:
    counts, histogram = released(0, labels, classes)
    player = constraints(counts, classes)
    state, pressure = player.begin(), player.begin()
    assert not player.costs(state)[0].any()
    assert player.costs(state)[1] == 1.0
    for round in range(6):
        state = player.step(state, histogram, round)
        if round >= 2:
            values = player.system.exact_values(histogram, counts, FLOOR)
            pressure = player.ascent.step(pressure, values - player.bounds)
        assert player.duals(state) == pytest.approx(pressure.duals, rel=1e-9)
        assert bool(pressure.duals.any()) == (round >= 2)
    costs, loss_scale = player.costs(state)
    assert loss_scale == pytest.approx(1 / (1 + 0.5 * state.duals.sum()))
    right = player.system.cell_costs(state.duals, counts, FLOOR) * counts.sum() * loss_scale
    assert costs == pytest.approx(right, rel=1e-12)


def test_excesses_are_followed_by_their_precision() -> None:
    """A cell of few rows: what is said of it is followed less, and nothing else is changed."""
    counts, histogram = released(0, 1, 2)
    counts[2] = 20.0  # the others have ten times as many
    histogram[2] = [[2.0, 18.0]]
    exact, blurred = constraints(counts), constraints(counts, blur=30.0)
    names = np.array(blurred.system.names)
    slopes = 30.0 / counts[:, 0]
    trust = np.ones(len(names))
    for j, name in enumerate(names):
        pair = [a for a, key in enumerate("fmx") if f"group {key}" in name]
        spread = math.hypot(*slopes[pair]) / math.sqrt(20)
        trust[j] = TELLABLE**2 / (TELLABLE**2 + spread**2)
    assert trust.min() < 0.2 < 3 * 0.2 < trust.max()
    state, by_hand = blurred.begin(), exact.begin()
    for round in range(6):
        state = blurred.step(state, histogram, round)
        if round >= 2:  # the first two rounds are before the start
            values = exact.system.exact_values(histogram, counts, FLOOR)
            by_hand = exact.ascent.step(by_hand, values - exact.bounds, trust)
    assert state.duals == pytest.approx(by_hand.duals, rel=1e-9)
    assert exact.hears
    assert not constraints(counts, blur=1e4).hears


def test_where_all_excesses_are_noise_nothing_is_pressed() -> None:
    """The unit of the ascent is not of its own noise: 200 rounds of nothing but noise leave duals
    near zero."""
    up, rng = ProjectedAscent(200), np.random.default_rng(0)
    for noise, most in ((0.001, 3.0), (1.0, 0.2), (10.0, 0.05)):
        trust = np.full(4, weights_of(np.array(noise / math.sqrt(20))))
        state = AscentState.begin(4)
        for _ in range(200):
            state = up.step(state, rng.normal(scale=noise, size=4), trust)
        assert state.duals.max() < most
    broken, trust = AscentState.begin(4), np.full(4, weights_of(np.array(0.011)))
    for _ in range(200):
        broken = up.step(broken, 0.1 + rng.normal(scale=0.05, size=4), trust)
    assert broken.duals.min() > 1.0


def test_constraints_rest_when_all_hold_or_time_is_up() -> None:
    counts, histogram = released(2, 2, 2)
    player = constraints(counts)
    start = player.begin()
    pressed = player.step(start, histogram, 5)
    assert pressed.duals.any()
    shares = np.array([[0.98, 0.02], [0.02, 0.98]])  # no gap, hardly a miss
    even = counts[..., np.newaxis] * shares
    assert player.rests(start, start, even, 5, 1e-6)  # nothing presses, all hold
    assert not player.rests(start, start, histogram, 5, 1e-6)
    assert not player.rests(pressed, pressed, even, 5, 1e-6)  # all hold, but duals still fall
    assert player.rests(pressed, pressed, even, player.ascent.rounds + 1, 1e-6)
