"""Max players: constraints' duals and the matrix of a mutual information, as pure functions of
released histograms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fairveil import DemographicParity, EqualizedOdds, FalseNegativeRate, Promise
from fairveil.facts import Cells
from fairveil.fairness import resolve
from fairveil.fairness.dependence import Dependence
from fairveil.learning import Constraints, Penalty, ProjectedAscent
from fairveil.learning.lagrangian import fermi
from fairveil.learning.lagrangian.duals import TELLABLE, AscentState, weights_of
from fairveil.learning.lagrangian.noise import usual_clip

FLOOR = 3.0
CELLS = Cells((("f", "m", "x"),))


def released(
    seed: int, models: int, labels: int, classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noisy counts, noisy histograms, and the number of rows: one line a model."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(200, 400, (models, 3, labels)) + rng.normal(
        scale=5, size=(models, 3, labels)
    )
    histogram = counts[..., np.newaxis] * rng.dirichlet(np.ones(classes), (models, 3, labels))
    return counts, histogram + rng.normal(scale=5, size=histogram.shape), counts.sum(axis=(1, 2))


def constraints(labels: int = 2, classes: int = 2, models: int = 2, **more) -> Constraints:
    notions = (
        [EqualizedOdds(0.02), FalseNegativeRate(0.1, positive=1)]
        if labels > 1
        else [DemographicParity(0.02)]
    )
    system = resolve(notions, CELLS, tuple(range(classes)))
    system = system if labels > 1 else system.without_labels()
    bounds = np.stack([system.bounds * (1 + m) for m in range(models)])
    return Constraints(system, bounds, ProjectedAscent(20), FLOOR, 2.0, 0.5, **more)


def penalty(
    strengths=(1.0, 10.0), labels: int = 2, classes: int = 2, radius: float = 1e6, **more
) -> Penalty:
    dependence = Dependence.of(CELLS, tuple(range(labels)))
    return Penalty(
        dependence,
        np.array(strengths),
        radius,
        FLOOR,
        classes,
        **{"pace": 0.1, "loss_scale": 0.25, **more},
    )


# ---- constraints
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("labels", "classes"), [(1, 2), (2, 2), (3, 3)])
def test_constraints_cost_what_their_lagrangian_does_in_units_of_the_eased_loss(
    labels, classes
) -> None:
    player = constraints(labels, classes)
    counts, histogram, rows = released(0, 2, labels, classes)
    state = player.begin(counts, rows)
    assert not player.costs(state)[0].any()
    assert player.costs(state)[1].tolist() == [1.0, 1.0]
    for round in range(6):
        state = player.step(state, histogram, round)
    duals = player.duals(state, len(player.system))
    assert duals.any()
    costs, loss_scale = player.costs(state)
    assert loss_scale == pytest.approx(1 / (1 + 0.5 * duals.sum(axis=1)))
    for m in range(2):
        right = player.system.cell_costs(duals[m], counts[m], FLOOR) * rows[m] * loss_scale[m]
        assert costs[m] == pytest.approx(right, rel=1e-12)


def test_duals_are_those_of_the_ascent_on_the_systems_own_excess_and_begin_late() -> None:
    player = constraints()
    counts, histogram, rows = released(1, 2, 2, 2)
    state, pressure = player.begin(counts, rows), player.begin(counts, rows).pressure
    for round in range(8):
        state = player.step(state, histogram, round)
        if round >= 2:
            values = player.system.exact_values(histogram, counts, FLOOR)
            pressure = player.ascent.step(pressure, values - player.bounds)
        assert player.duals(state, len(player.system)) == pytest.approx(pressure.duals, rel=1e-9)
        assert bool(pressure.duals.any()) == (round >= 2)


def test_excesses_are_followed_by_their_precision() -> None:
    """Two cells of few rows: what is said of them is followed less, and nothing else is changed."""
    exact, blurred = constraints(1), constraints(1, blur=30.0)
    counts, histogram, rows = released(0, 2, 1, 2)
    counts[:, 2] = 20.0  # the others have ten times as many
    histogram[:, 2] = [[[2.0, 18.0]], [[2.0, 18.0]]]
    trust = blurred.begin(counts, rows).trust
    about = np.array(["group x" in name for name in blurred.system.names])
    assert (trust[:, about] < 0.2).all()
    assert (trust[:, ~about] > 3 * trust[:, about].max()).all()
    assert exact.begin(counts, rows).trust == 1.0
    system = blurred.system
    slopes = np.array([[30.0 / counts[0, a, 0] ** 1.0 for a in range(3)]])
    pair = system.names.index(
        next(name for name in system.names if "group f" in name and "group m" in name)
    )
    spread = math.hypot(slopes[0, 0], slopes[0, 1]) / math.sqrt(20)
    assert trust[0, pair] == pytest.approx(TELLABLE**2 / (TELLABLE**2 + spread**2), rel=1e-9)
    state = blurred.begin(counts, rows)
    for round in range(6):
        state = blurred.step(state, histogram, round)
    by_hand = exact.begin(counts, rows).pressure
    for _ in range(4):  # the first two rounds are before the start
        by_hand = exact.ascent.step(by_hand, state.fixed.values(histogram) - blurred.bounds, trust)
    assert np.array_equal(state.pressure.duals, by_hand.duals)


def test_where_all_excesses_are_noise_nothing_is_pressed() -> None:
    """The unit of the ascent is not of its own noise: 200 rounds of nothing but noise leave duals
    near zero."""
    ascent, rng = ProjectedAscent(200), np.random.default_rng(0)
    for noise, most in ((0.001, 3.0), (1.0, 0.2), (10.0, 0.05)):
        trust = np.full((1, 4), weights_of(np.array(noise / math.sqrt(20))))
        pressure = AscentState.begin(1, 4)
        for _ in range(200):
            pressure = ascent.step(pressure, rng.normal(scale=noise, size=(1, 4)), trust)
        assert pressure.duals.max() < most
    broken = AscentState.begin(1, 4)
    for _ in range(200):
        broken = ascent.step(
            broken,
            0.1 + rng.normal(scale=0.05, size=(1, 4)),
            np.full((1, 4), weights_of(np.array(0.011))),
        )
    assert broken.duals.min() > 1.0


def test_constraints_rest_when_all_hold_or_time_is_up() -> None:
    player = constraints()
    counts, histogram, rows = released(2, 2, 2, 2)
    start = player.begin(counts, rows)
    pressed = player.step(start, histogram, 5)
    assert pressed.pressure.duals.any(axis=1).all()
    # no gap, hardly a miss
    even = np.broadcast_to(counts[..., np.newaxis] * np.array([0.02, 0.98]), histogram.shape)
    even = np.where(
        np.arange(2)[:, np.newaxis] == 0, counts[..., np.newaxis] * np.array([0.98, 0.02]), even
    )
    assert player.rests(start, start, even, 5, 1e-6).all()  # nothing presses, all hold
    assert not player.rests(start, start, histogram, 5, 1e-6).any()
    assert not player.rests(pressed, pressed, even, 5, 1e-6).any()  # all hold, but duals still fall
    assert player.rests(pressed, pressed, even, player.ascent.rounds + 1, 1e-6).all()


# ---- the penalty
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("labels", "classes"), [(1, 2), (2, 2), (1, 4), (4, 4)])
def test_the_penalty_costs_strength_times_psi_in_units_of_the_eased_loss(labels, classes) -> None:
    player = penalty(labels=labels, classes=classes)
    counts, histogram, rows = released(3, 2, labels, classes)
    state = player.begin(counts, rows)
    assert not state.w.any()
    assert not player.costs(state)[0].any()  # W begins at 0, where no prediction costs anything
    state = player.step(state, histogram, 0)
    costs, loss_scale = player.costs(state)
    assert loss_scale == pytest.approx(1 / (1 + 0.25 * np.array([1.0, 10.0])))
    for m, strength in enumerate((1.0, 10.0)):
        right = strength * loss_scale[m] * player.dependence.costs(state.w[m], counts[m])
        assert costs[m] == pytest.approx(right, rel=1e-12)
    assert not player.duals(state, 5).any()
    assert player.duals(state, 5).shape == (2, 5)


@pytest.mark.parametrize(("labels", "classes"), [(1, 2), (2, 2), (1, 4), (4, 4)])
@pytest.mark.parametrize("pace", [0.1, 0.7])
def test_a_step_of_w_is_the_gradient_over_its_own_curvature(labels, classes, pace) -> None:
    """Lemma D.1's gradient times the strength, divided by 2 strength H[j] / rows; so it points
    uphill."""
    player = penalty(labels=labels, classes=classes, pace=pace)
    counts, histogram, rows = released(4, 2, labels, classes)
    histogram = np.maximum(histogram, 0.1)
    rng = np.random.default_rng(0)
    state = replace(player.begin(counts, rows), w=rng.normal(size=histogram.shape))
    moved = player.step(state, histogram, 0).w - state.w
    gradient = player.dependence.gradient(state.w, histogram, counts)
    assert ((moved * gradient).sum(axis=(1, 2, 3)) > 0).all()
    of_class = histogram.sum(axis=1, keepdims=True)
    assert of_class.min() > FLOOR
    curvature = 2 * of_class / counts.sum(axis=(1, 2)).reshape(-1, 1, 1, 1)
    assert moved == pytest.approx(pace * gradient / curvature, rel=1e-9, abs=1e-12)
    before, after = (
        player.dependence.value(w, histogram, counts) for w in (state.w, state.w + moved)
    )
    assert (after > before).all()


def test_many_steps_reach_the_best_w_within_the_ball() -> None:
    counts, histogram, rows = released(5, 2, 2, 3)
    histogram = np.maximum(histogram, 1.0)
    free, held = penalty(classes=3), penalty(classes=3, radius=0.5)
    ends = []
    for player in (free, held):
        state = player.begin(counts, rows)
        for round in range(300):
            after = player.step(state, histogram, round)
            assert (np.sqrt((after.w**2).sum(axis=(1, 3))) <= player.radius * (1 + 1e-12)).all()
            resting = player.rests(state, after, histogram, round, 1e-9)
            state = after
        assert resting.all()
        ends.append(state.w)
    assert ends[0] == pytest.approx(free.dependence.best(histogram, counts), abs=1e-9)
    assert np.sqrt((ends[1] ** 2).sum(axis=(1, 3))) == pytest.approx(0.5)


def test_h2_the_noise_of_ws_gradient_is_multiplied_by_the_strength_as_the_gradient_is() -> None:
    """theory.md#fermi, H2: the paper adds noise of one size to strength x gradient, so a strength
    above 1 spends more than is said. Here the noise is the released histogram's, which no strength
    changes, and the step is a function of that alone: the gradient that a step implies, strength x
    (...), has at strength 10 ten times the noise that it has at strength 1.
    """
    counts, histogram, rows = (values[:1] for values in released(6, 1, 2, 3))
    histogram = np.maximum(histogram, 20.0)
    noise = np.random.default_rng(1).normal(scale=4.0, size=histogram.shape)
    w = np.random.default_rng(2).normal(size=histogram.shape)

    def implied(strength: float, heard: np.ndarray) -> np.ndarray:
        """(W' - W) x curvature / pace: the gradient of strength x value that the player acted
        upon."""
        player = penalty((strength,), classes=3)
        state = replace(player.begin(counts, rows), w=w)
        step = player.step(state, heard, 0).w - w
        curvature = 2 * strength * heard.sum(axis=1, keepdims=True) / counts.sum()
        gradient = step * curvature / player.pace
        right = strength * player.dependence.gradient(w, heard, counts)
        assert gradient == pytest.approx(right, rel=1e-9, abs=1e-12)
        return np.asarray(gradient)

    noises = [
        implied(strength, histogram + noise) - implied(strength, histogram)
        for strength in (1.0, 10.0)
    ]
    assert np.abs(noises[0]).max() > 1e-3
    assert noises[1] == pytest.approx(10.0 * noises[0], rel=1e-9, abs=1e-11)
    # And what reaches the model: the noise of costs, before the division that eases the whole
    # Lagrangian.
    player = penalty((1.0, 10.0), classes=3)
    state = replace(player.begin(np.repeat(counts, 2, 0), np.repeat(rows, 2)), w=np.repeat(w, 2, 0))
    eased = []
    for heard in (histogram, histogram + noise):
        costs, loss_scale = player.costs(player.step(state, np.repeat(heard, 2, 0), 0))
        eased.append(costs / loss_scale[:, np.newaxis, np.newaxis, np.newaxis])
    moved = eased[1] - eased[0]
    assert moved[1] == pytest.approx(10.0 * moved[0], rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_h2_no_strength_changes_the_multipliers_of_a_plan(protects) -> None:
    """The other half: the histogram is released at a price that does not know the strength."""
    from fairveil.curator import Rows

    rng = np.random.default_rng(0)
    rows = Rows.from_arrays(
        rng.normal(size=(50, 2)),
        rng.integers(0, 2, 50),
        [rng.integers(0, 2, 50)],
        classes=(0, 1),
        groups=[(0, 1)],
    )
    promise, notion = Promise(1.0, 1e-6, protects), fermi.notion_of("equalized_odds")
    made = [
        fermi.make(promise, rows.layout, rows.cells(), notion, [s], public_rows=50)
        for s in (0.01, 1.0, 100.0)
    ]
    plans = [search.planned for search in made]
    for name in (
        "counts_multiplier",
        "report_multiplier",
        "histogram_multiplier",
        "gradient_multiplier",
        "clip",
    ):
        assert len({getattr(plan, name) for plan in plans}) == 1
        assert getattr(plans[0], name) > 0
    assert plans[0].clip <= usual_clip(promise)
    assert made[0].plan == made[1].plan == made[2].plan


# ---- both
# --------------------------------------------------------------------------------------------------

PLAYERS = [(constraints(), 2), (constraints(1), 1), (penalty(), 2), (penalty(labels=1), 1)]


@pytest.mark.parametrize(("player", "labels"), PLAYERS)
def test_models_that_stopped_keep_their_play(player, labels) -> None:
    counts, histogram, rows = released(8, 2, labels, 2)
    before = player.step(player.begin(counts, rows), histogram, 3)
    after = player.step(before, histogram * 1.1, 4)
    kept = player.keep(before, after, np.array([True, False]))
    for of_kept, of_before, of_after in zip(
        player.costs(kept), player.costs(before), player.costs(after), strict=True
    ):
        assert np.array_equal(of_kept[0], of_before[0])
        assert np.array_equal(of_kept[1], of_after[1])
    assert not np.array_equal(player.costs(before)[0], player.costs(after)[0])


@pytest.mark.parametrize(("player", "labels"), PLAYERS)
def test_a_model_alone_has_the_bits_that_it_has_beside_another(player, labels) -> None:
    counts, histogram, rows = released(9, 2, labels, 2)

    def end(who, lines):
        state = who.begin(counts[lines], rows[lines])
        for round in range(6):
            state = who.step(state, histogram[lines] * (1 + round / 10), round)
        return who.costs(state)

    both = end(player, slice(0, 2))
    assert player.models == 2
    for m in range(2):
        line = slice(m, m + 1)
        field = (
            {"bounds": player.bounds[line]}
            if isinstance(player, Constraints)
            else {"strengths": player.strengths[line]}
        )
        alone = end(replace(player, **field), line)
        for one, other in zip(both, alone, strict=True):
            assert np.array_equal(one[line], other)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"radius": 0.0}, "radius"),
        ({"radius": -1.0}, "radius"),
        ({"radius": math.inf}, "radius"),
        ({"least_share": 0.0}, "least_share"),
        ({"least_share": 0.6}, "least_share"),
        ({"pace": 0.0}, "pace"),
        ({"loss_scale": -0.1}, "loss_scale"),
        ({"loss_scale": math.nan}, "loss_scale"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, name) -> None:
    from fairveil.errors import InputError

    with pytest.raises(InputError, match=name):
        fermi.PenaltySettings(**given)


def test_in_units_of_a_length_many_equal_excesses_press_together_as_much_as_one() -> None:
    """Of k constraints that are broken alike each dual is 1 / sqrt(k) of one's; in units of the
    largest all are as large."""
    for unit, share in (("length", 0.5), ("largest", 1.0)):
        ascent = ProjectedAscent(100, unit=unit)
        one, four = (ascent.step(AscentState.begin(1, k), np.full((1, k), 0.2)) for k in (1, 4))
        assert four.duals[0] == pytest.approx(share * one.duals[0, 0])
