"""The final model: a program over what was measured of a model, of a free one, and of
constants."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from fairveil._verdicts import deviations
from fairveil.methods import comparison as program
from fairveil.methods.comparison import WORTH, Comparison, DecisionTable, Free, Limits
from fairveil.methods.likely import likely

ROWS = 1000.0


def table(error: float, noise: float = 0.0, positives: float = 400.0) -> DecisionTable:
    """Two classes; wrong decisions are shared by the labels in proportion."""
    sizes = np.array([ROWS - positives, positives])
    wrong = sizes * error
    return DecisionTable(
        np.array([[sizes[0] - wrong[0], wrong[0]], [wrong[1], sizes[1] - wrong[1]]]),
        np.full((2, 2), noise),
    )


def found(
    error, values, free_error, free_values, bounds=(0.1,), spread=0.0, noise=0.0, constants=None
) -> Comparison:
    values, bounds, free_values = (
        np.array(numbers, float) for numbers in (values, bounds, free_values)
    )
    if constants is None:
        constants = np.zeros((2, len(values)))
    limits = Limits(values, bounds, np.full(len(values), spread), np.asarray(constants, float))
    free = Free(
        np.ones((1, 2)),
        table(free_error, noise),
        free_values,
        np.full(len(values), spread),
        np.full(len(values), 0.01),
    )
    return Comparison(table(error, noise), ROWS, limits, free)


def merit(compared: Comparison, shares: np.ndarray) -> float:
    errors = np.array(
        [compared.error, compared.free.table.total(compared.table.errors) / ROWS, 0.4, 0.6]
    )
    values = np.stack([compared.limits.values, compared.free.values, *compared.limits.constants])
    return float(
        shares @ errors + WORTH * max(0.0, np.max(shares @ values - compared.limits.bounds))
    )


def shares_of(choice: program.Choice) -> np.ndarray:
    return np.array([choice.model, choice.free, *choice.constants])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("randomised", [True, False])
def test_guarantee_2_nothing_on_a_grid_of_mixtures_is_better_by_more_than_enough(
    seed, randomised
) -> None:
    rng = np.random.default_rng(seed)
    constants = rng.uniform(-0.3, 0.3, (2, 3)) if seed % 2 else np.zeros((2, 3))
    values, others, bounds = (
        rng.uniform(0, 0.3, 3),
        rng.uniform(0, 0.5, 3),
        rng.uniform(0.02, 0.2, 3),
    )
    compared = found(
        rng.uniform(0.15, 0.5), values, rng.uniform(0.1, 0.3), others, bounds, constants=constants
    )
    choice = shares_of(program.chosen(compared, randomised=randomised))
    assert choice.sum() == pytest.approx(1.0)
    if not randomised:
        assert sorted(choice.tolist()) == [0.0, 0.0, 0.0, 1.0]
    steps = range(11) if randomised else (0, 10)
    grid = [np.array(c) / 10 for c in itertools.product(steps, repeat=4) if sum(c) == 10]
    assert (
        merit(compared, choice)
        <= min(merit(compared, shares) for shares in grid) + program.ENOUGH + 1e-9
    )


def test_a_model_that_keeps_its_bounds_and_beats_its_baselines_is_returned() -> None:
    assert program.chosen(found(0.2, [0.05], 0.19, [0.4])).is_model


def test_a_model_above_the_line_of_mixing_is_given_up() -> None:
    # half of the free model and half of no: .30 at .10
    choice = program.chosen(found(0.38, [0.1], 0.2, [0.2]))
    assert choice.model == 0.0
    assert shares_of(choice).tolist() == pytest.approx([0.0, 0.5, 0.5, 0.0])


def test_a_model_that_breaks_its_bound_beyond_noise_is_mixed_down_to_it() -> None:
    choice = program.chosen(found(0.2, [0.2], 0.19, [0.6]))
    assert shares_of(choice).tolist() == pytest.approx([0.5, 0.0, 0.5, 0.0])
    alone = program.chosen(found(0.2, [0.4], 0.19, [0.9]), randomised=False)
    assert shares_of(alone).tolist() == [0.0, 0.0, 1.0, 0.0]


def test_excess_that_noise_hides_is_left_alone() -> None:
    assert program.chosen(found(0.2, [0.2], 0.19, [0.6], spread=0.07)).is_model
    assert not program.chosen(found(0.2, [0.2], 0.19, [0.6], spread=0.02)).is_model
    sampling = np.array([0.15])
    assert program.chosen(found(0.2, [0.2], 0.19, [0.6], spread=0.02), sampling=sampling).is_model
    # exact: what is, is
    assert not program.chosen(found(0.2, [0.2], 0.19, [0.6]), sampling=sampling).is_model


def test_nothing_is_returned_that_is_known_to_break_a_bound_which_the_model_may_keep() -> None:
    """The mixture is known better than the model: what hides in the noise of one is told of the
    other."""
    compared = found(0.38, [0.12], 0.2, [0.3], spread=0.035)
    limits = compared.limits
    sharp = Free(
        compared.free.weights, compared.free.table, compared.free.values, np.array([0.001])
    )
    told = Comparison(compared.table, ROWS, limits, sharp)
    # as far above as the model is
    assert program.chosen(compared).free == pytest.approx(0.12 / 0.3)
    assert program.chosen(told).free == pytest.approx(0.1 / 0.3)  # down to the bound


def test_guarantee_3_what_noise_explains_is_no_reason() -> None:
    """The free model errs a point less and keeps the bound; mixing down to where the model is errs
    more."""
    assert program.chosen(found(0.30, [0.05], 0.29, [0.09])).free == 1.0
    assert program.chosen(found(0.30, [0.05], 0.29, [0.09], noise=30.0)).is_model


def test_guarantee_4_mixing_is_the_floor_unless_noise_explains_what_it_gains() -> None:
    for noise in (0.0, 5.0):
        choice = program.chosen(found(0.33, [0.1], 0.2, [0.2], noise=noise))
        # .30 at the same gap
        assert shares_of(choice).tolist() == pytest.approx([0.0, 0.5, 0.5, 0.0])
    assert program.chosen(found(0.33, [0.1], 0.2, [0.2], noise=30.0)).is_model
    alone = program.chosen(found(0.42, [0.1], 0.2, [0.3], noise=5.0), randomised=False)
    assert shares_of(alone).tolist() == [0.0, 0.0, 1.0, 0.0]
    assert program.chosen(found(0.42, [0.1], 0.2, [0.3], noise=30.0), randomised=False).is_model


def test_of_two_like_errors_that_noise_hides_the_model_is_kept() -> None:
    """Noise of two points tells nothing of half a point: the lesser of two errors is the worse
    model's in 4 of 10."""
    rng, kept = np.random.default_rng(0), 0
    for _ in range(200):
        # mixing: half of .2 and .4
        error, other = np.array([0.295, 0.2]) + rng.normal(size=2) * 0.02
        kept += program.chosen(found(error, [0.1], other, [0.2], noise=20.0)).is_model
    assert kept > 140


@pytest.mark.parametrize("seed", range(12))
def test_guarantee_4_no_mixture_of_free_and_constants_is_below_the_final_model(seed) -> None:
    rng = np.random.default_rng(seed)
    values, others, bounds = rng.uniform(0, 0.3, 3), rng.uniform(0, 0.5, 3), np.full(3, 0.05)
    compared = found(
        rng.uniform(0.15, 0.5),
        values,
        rng.uniform(0.1, 0.3),
        others,
        bounds,
        spread=0.05,
        noise=20.0,
    )
    shares = shares_of(program.chosen(compared))
    errors = np.array(
        [compared.error, compared.free.table.total(compared.table.errors) / ROWS, 0.4, 0.6]
    )
    told = [
        likely(one, np.full(3, np.hypot(0.05, drawn)))
        for one, drawn in ((values, 0.0), (others, 0.01))
    ]
    told = np.stack([*told, np.zeros(3), np.zeros(3)])
    most = (shares @ told).max() + 1e-6
    for share in np.linspace(0.0, 1.0, 201):
        mixed = np.array([0.0, 1.0 - share, share, 0.0])
        if (mixed @ told).max() <= most - 1e-3:
            noise = program._noise_of_gain(compared, mixed - shares + np.eye(4)[0])
            assert shares @ errors <= mixed @ errors + program.CLEARLY * noise + 1e-9


def test_the_largest_of_many_noisy_values_chooses_nothing() -> None:
    """Twelve values that are noise alone, of a free model that errs less: as released it is .5
    above the bound."""
    noise = 0.3 * np.random.default_rng(0).normal(size=12)
    compared = found(0.25, np.full(12, 0.02), 0.2, noise, np.full(12, 0.1), spread=0.3)
    assert noise.max() > 0.35
    assert program.chosen(compared).free > 0.9


@pytest.mark.parametrize("shared", [0.0, 0.5, 0.9, 1.0])
def test_two_looks_cover_what_the_values_chose_however_noise_is_shared(shared: float) -> None:
    """Of all mixtures of two noisy values the one that is most deviations off is above the quantile
    of 2 looks in 5 % of cases at most: 200,000 draws on a grid of shares (standard error 0.05 %).
    As if noise were independent, it would not do."""
    z = deviations(1.0 - 0.05 / program.LOOKS)
    common, own = np.random.default_rng(0).normal(size=(2, 200_000, 2))
    e = math.sqrt(shared) * common[:, :1] + math.sqrt(1.0 - shared) * own
    worst, as_if = np.full((2, 200_000), -np.inf)
    for share in np.linspace(0.0, 1.0, 41):
        choice = program.Choice(float(share), float(1.0 - share), np.zeros(2))
        limits = program.comparison_of(found(0.3, [0.1], 0.2, [0.1], spread=1.0), choice, None)[
            0
        ].limits
        off = e @ [share, 1.0 - share]
        worst = np.maximum(worst, off / limits.spread[0])
        as_if = np.maximum(as_if, off / math.hypot(share, 1.0 - share))
    assert 0.024 <= (worst > z).mean() <= 0.0515
    if shared > 0.4:
        assert (as_if > z).mean() > 0.055


def test_a_mixture_has_the_noise_of_its_constants_too() -> None:
    """Where errors are compared, a constant's value is a share of labels, known with noise: a sum,
    as of the other parts."""
    limits = Limits(
        np.array([0.2]),
        np.array([0.1]),
        np.array([0.03]),
        np.zeros((2, 1)),
        np.array([[0.05], [0.0]]),
        np.full((2, 1), 0.01),
    )
    compared = replace(found(0.3, [0.2], 0.2, [0.4], spread=0.02), limits=limits)
    mixed, drawn = program.comparison_of(
        compared, program.Choice(0.5, 0.1, np.array([0.3, 0.1])), np.array([0.04])
    )
    assert mixed.limits.spread == pytest.approx(0.5 * 0.03 + 0.1 * 0.02 + 0.3 * 0.05)
    assert drawn == pytest.approx(0.5 * 0.04 + 0.1 * 0.01 + 0.4 * 0.01)
    assert program.looks_at(compared) == 3
    assert program.looks_at(found(0.3, [0.2], 0.2, [0.4])) == program.LOOKS == 2


def test_what_mixing_costs_moves_with_the_noise_of_the_constant() -> None:
    """The share that is needed is (free - bound) / (free - constant): here .6; the constant's noise
    moves it by 1.2 of it."""
    compared = found(0.3, [0.1], 0.2, [0.4], constants=[[-0.1], [-0.1]])
    doubtful = replace(compared, limits=replace(compared.limits, doubts=np.full((2, 1), 0.05)))
    exact, noisy = compared.within(), doubtful.within()
    assert exact.share == noisy.share == pytest.approx(0.6)
    assert exact.noise == 0.0
    assert noisy.noise == pytest.approx(1.2 * 0.05 * (0.4 - 0.2))


def test_without_a_constraint_a_constant_is_taken_where_it_errs_less() -> None:
    alone = Comparison(table(0.45), ROWS)
    assert shares_of(program.chosen(alone)).tolist() == [0.0, 0.0, 1.0, 0.0]
    assert program.chosen(Comparison(table(0.39), ROWS)).is_model


def test_values_that_nobody_knows_are_not_bounded_and_models_without_them_not_mixed() -> None:
    undefined = found(0.2, [0.05, math.nan], 0.19, [0.4, 0.0], bounds=(0.1, 0.1))
    assert program.chosen(undefined).is_model
    unknown = found(0.38, [0.1], 0.2, [math.nan])
    assert program.chosen(unknown).is_model
    measured = found(0.2, [0.5], 0.199, [0.6], bounds=(math.inf,))
    assert program.chosen(measured).is_model


def test_the_mixture_has_the_values_and_the_error_of_its_parts() -> None:
    compared = found(0.3, [0.12], 0.2, [0.3], spread=0.01, noise=3.0)
    choice = program.Choice(0.5, 0.3, np.array([0.2, 0.0]))
    mixture, drawn = program.comparison_of(compared, choice, np.array([0.02]))
    assert mixture.error == pytest.approx(0.5 * 0.3 + 0.3 * 0.2 + 0.2 * 0.4)
    assert mixture.limits.values == pytest.approx([0.5 * 0.12 + 0.3 * 0.3])
    assert mixture.limits.spread == pytest.approx([0.005 + 0.003])
    assert mixture.table.counts.sum(axis=1) == pytest.approx([600, 400])
    assert drawn == pytest.approx([0.5 * 0.02 + 0.3 * 0.01])
    assert mixture.mixing().difference == pytest.approx(mixture.error - mixture.mixing().error)


def test_a_mixture_of_steps_gives_way_where_noise_hides_all_or_the_free_model_does() -> None:
    """The free model is a point better or worse, within the noise of three points."""
    hidden = found(0.30, [0.4], 0.31, [0.5], spread=0.3, noise=30.0)
    kept = found(0.30, [0.05], 0.31, [0.06], spread=0.01, noise=30.0)
    for compared in (hidden, kept):
        assert program.chosen(compared).is_model  # a model that was averaged over its rounds
        assert program.chosen(compared, of_steps=True).free == 1.0
    heard = found(0.30, [0.1], 0.25, [0.25], spread=0.02, noise=5.0)
    better = found(0.20, [0.05], 0.31, [0.06], spread=0.01, noise=5.0)
    exact = found(0.20, [0.05], 0.31, [0.06])
    assert all(program.chosen(one, of_steps=True).is_model for one in (heard, better, exact))


def test_a_mixture_that_may_be_told_to_keep_its_bound_is_kept() -> None:
    """The free model keeps the bound of 10 points up to noise alone: that is enough only where the
    noise of the mixture is as large as the bound."""
    told = found(0.30, [0.01], 0.31, [0.09], spread=0.04, noise=15.0)
    assert program.chosen(told, of_steps=True).is_model
    beyond = found(0.30, [0.01], 0.31, [0.02], spread=0.04, noise=30.0)
    assert program.chosen(beyond, of_steps=True).free == 1.0
    not_told = found(0.30, [0.01], 0.31, [0.12], spread=0.12, noise=30.0)
    assert program.chosen(not_told, of_steps=True).free == 1.0


def test_a_mixture_of_steps_gives_way_where_the_free_model_is_close_to_constants() -> None:
    """The free model errs nine points less than the best constant, which errs 40 per cent: with
    noise of six points in errors no mixture can show that it wins anything."""
    close = found(0.30, [0.01], 0.31, [0.5], spread=0.04, noise=30.0)
    assert program.chosen(close).is_model
    choice = program.chosen(close, of_steps=True)
    assert choice.model == 0.0
    assert choice.free * 0.5 <= 0.1 + 1e-6  # the bound
    missed = [[0.9], [0.0]]  # the constant that errs less breaks the bound
    broken = found(0.30, [0.01], 0.31, [0.5], spread=0.04, noise=30.0, constants=missed)
    assert program.chosen(broken, of_steps=True).is_model
    clear = found(0.30, [0.01], 0.31, [0.5], spread=0.04, noise=15.0)
    assert program.chosen(clear, of_steps=True).is_model
