"""Where a threshold is put, against the rows themselves; and the whole search where no direction
but the threshold is fair."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil import DemographicParity, FalseNegativeRate, Promise
from fairveil.curator import Curator, Rows
from fairveil.learning import LinearDescent, Settings, descend
from fairveil.learning.lagrangian import planning, threshold
from fairveil.privacy import NoiseSource

EDGES = (-2.0, -1.0, 0.0, 1.0, 2.0)


def table(seed: int = 0, n: int = 4000):
    rng = np.random.default_rng(seed)
    score, group, label = rng.normal(size=n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    return score + 0.8 * group, group, label


def released(score, group, label):
    bins = (score[:, None] > np.array(EDGES)).sum(axis=1)
    scores = np.zeros((2, 2, len(EDGES) + 1))
    np.add.at(scores, (group, label, bins), 1.0)
    return np.array([[(score[group == g] > 0).sum()] for g in (0, 1)], float), scores


def gaps(counts):
    def values_of(decisions):
        rates = decisions[..., 0] / counts
        return np.stack([rates[:, 0] - rates[:, 1], rates[:, 1] - rates[:, 0]], axis=1)

    return values_of


def exact(bound: float, data):
    score, group, label = data
    counts = np.bincount(group)
    decisions, scores = released(score, group, label)
    no_noise = lambda bins: np.zeros(2)  # noqa: E731
    return threshold.choose(
        EDGES, decisions, scores, gaps(counts), np.full(2, bound), no_noise, 0.0, float(len(score))
    )


def test_values_are_those_of_the_rows_decided_anew_at_the_chosen_edge() -> None:
    score, group, _ = data = table()
    found = exact(0.15, data)
    decided = score > found.at
    gap = decided[group == 1].mean() - decided[group == 0].mean()
    assert found.at != 0.0
    assert np.isclose(found.values[1], gap)
    assert found.bins == abs(EDGES.index(found.at) - EDGES.index(0.0))


def test_it_is_the_edge_with_the_least_error_and_excess() -> None:
    score, group, label = data = table(3)
    found = exact(0.15, data)

    def cost(at):
        decided = score > at
        gap = abs(decided[group == 1].mean() - decided[group == 0].mean())
        return (decided != label).mean() + threshold.WORTH * max(gap - 0.15, 0.0)

    assert found.at == min(EDGES, key=cost)


def test_a_constraint_that_holds_leaves_the_threshold_alone() -> None:
    assert exact(0.5, table()).at == 0.0


def test_a_far_threshold_is_not_taken_for_its_luck() -> None:
    """What is known worse the further it is moved stays where it is, though the same numbers
    without noise would move."""
    score, group, label = table()
    decisions, scores = released(score, group, label)
    known = (EDGES, decisions, scores, gaps(np.bincount(group)), np.full(2, 0.1))
    assert threshold.choose(*known, lambda bins: np.full(2, 0.05), 0.0, 4000.0).at != 0.0
    assert (
        threshold.choose(*known, lambda bins: np.full(2, 0.05 + 0.4 * bins), 0.0, 4000.0).at == 0.0
    )
    assert threshold.choose(*known, lambda bins: np.full(2, 0.05), 4000.0, 4000.0).at == 0.0


def fit(X, y, a, epsilon: float, notion, protects: str = "records", seed: int = 0):
    rows = Rows.from_arrays(X, y, [a], classes=(0, 1), groups=[(0, 1)])
    promise = Promise(epsilon, 1e-5, protects)
    public = len(y) if promise.rows_are_public or not promise.is_private else None
    plan = planning.make(
        promise, rows.layout, rows.cells(), [notion], Settings(), public_rows=public
    )
    search = LinearDescent(plan, plan.system.bounds[np.newaxis])
    curator = Curator(
        rows, promise, plan=search.plan, noise=NoiseSource.seeded(seed), public_rows=public
    )
    (outcome,) = descend(curator, search)
    return outcome, X @ outcome.weights[0, 1:] + outcome.weights[0, 0] > 0


@pytest.mark.parametrize("epsilon", [2.0, math.inf])
@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize("bound", [0.2, 0.05])
def test_what_was_asked_is_met_where_every_feature_goes_with_the_group(
    epsilon, protects, bound
) -> None:
    """No direction is fair: only thresholds far out are. Without moving them the search ends at
    gaps of 0.4 and more.

    One table may end a little above its bound, and then says so; three do not on average.
    """
    gaps = []
    for table_seed in (1, 2, 3):
        rng = np.random.default_rng(table_seed)
        a = rng.integers(0, 2, 8000)
        X = rng.normal(size=(8000, 3)) + 0.8 * (a - 0.5)[:, None]
        y = (X.sum(axis=1) + rng.normal(size=8000) > 0).astype(int)
        outcome, decided = fit(X, y, a, epsilon, DemographicParity(bound), protects)
        gaps.append(abs(decided[a == 1].mean() - decided[a == 0].mean()))
        if math.isinf(epsilon):
            assert bool(outcome.broken) == (gaps[-1] > bound)
    assert np.mean(gaps) <= bound
    assert max(gaps) <= bound + 0.03


def test_a_reported_value_is_that_of_the_final_model_within_its_noise() -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 6000)
    X = rng.normal(size=(6000, 2)) + 0.6 * (a - 0.5)[:, None]
    y = (X.sum(axis=1) + rng.normal(size=6000) > 0).astype(int)
    for notion in (DemographicParity(0.1), FalseNegativeRate(0.1)):
        outcome, decided = fit(X, y, a, 1.0, notion)
        if isinstance(notion, DemographicParity):
            truth = decided[a == 0].mean() - decided[a == 1].mean()
        else:
            truth = (~decided)[y == 1].mean()
        # counts that divide are noisy too
        assert abs(outcome.values[0] - truth) <= 5 * outcome.spread[0] + 0.01


@pytest.mark.parametrize("groups", [2, 8])
def test_the_stated_noise_is_that_of_the_reported_values(groups: int) -> None:
    """A model that decides alike for everybody has gaps of exactly 0: what is reported is noise
    alone, of decisions and of the counts that divide. 100 runs: a ratio of deviations beyond 1.25
    or below 0.75 has less than 1 chance in 1,000."""
    rng = np.random.default_rng(0)
    X, y, a = rng.normal(size=(3000, 1)), np.ones(3000, int), np.arange(3000) % groups
    y[:30] = 0
    rows = Rows.from_arrays(X, y, [a], classes=(0, 1), groups=[tuple(range(groups))])
    promise = Promise(1.0, 1e-5)
    plan = planning.make(
        promise,
        rows.layout,
        rows.cells(),
        [DemographicParity(0.5)],
        Settings(rounds=3, rate_most=1e-3),
    )
    search = LinearDescent(plan, plan.system.bounds[np.newaxis])
    ratios, broken = [], 0
    for seed in range(100):
        (outcome,) = descend(
            Curator(rows, promise, plan=search.plan, noise=NoiseSource.seeded(seed)), search
        )
        ratios.append(outcome.values / outcome.spread)
        broken += bool(outcome.broken)
    assert 0.75 < np.std(ratios) < 1.25
    assert broken == 0


def test_free_rounds_ask_all_rows_whatever_the_batch() -> None:
    """The largest curvature, and with it the step, does not depend on the sampling rate."""
    rng = np.random.default_rng(0)
    X, y, a = rng.normal(size=(3000, 2)), rng.integers(0, 2, 3000), rng.integers(0, 2, 3000)
    rows = Rows.from_arrays(X, y, [a], classes=(0, 1), groups=[(0, 1)])
    rates = []
    for sampling_rate in (None, 0.1):
        promise = Promise(1.0, 1e-5, "sensitive_features")
        settings = Settings(rounds=2, sampling_rate=sampling_rate)
        plan = planning.make(
            promise, rows.layout, rows.cells(), [DemographicParity(0.1)], settings, public_rows=3000
        )
        search = LinearDescent(plan, plan.system.bounds[np.newaxis])
        curator = Curator(
            rows, promise, plan=search.plan, noise=NoiseSource.seeded(0), public_rows=3000
        )
        state = search.init(curator.answer(search.first()))
        while state.probe is not None:
            state = search.step(
                state, curator.answer(search.measurements(state), search.batch_for(state))
            )
        rates.append(float(state.rate[0]))
    assert rates[0] == rates[1]
