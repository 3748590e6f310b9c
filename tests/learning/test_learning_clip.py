"""The clip of a linear descent: it follows from public facts and from the released number of rows,
and from nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil import DemographicParity, EqualizedOdds, Promise, RateConstrainedClassifier
from fairveil.curator import Curator, GradientSum, Linear, Measurement, Rows
from fairveil.errors import InputError
from fairveil.learning import Settings
from fairveil.learning.lagrangian import plan as plans
from fairveil.learning.lagrangian import planning
from fairveil.learning.lagrangian.batches import LOSS_CLIP
from fairveil.models import LinearModel

INF = math.inf
PARITY, ODDS = (DemographicParity(0.1),), (EqualizedOdds(0.1),)


def rows_of(n: int = 400, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    X, a = np.clip(rng.normal(scale=0.5, size=(n, 3)), -1, 1), rng.integers(0, 2, n)
    y = (X[:, 0] + 0.5 * a + rng.normal(scale=0.3, size=n) > 0.2).astype(int)
    return Rows.from_arrays(X, y, [a], classes=(0, 1), groups=[(0, 1)])


def plan(
    epsilon: float = 1.0, protects: str = "records", notions=ODDS, public=None, **given
) -> plans.Plan:
    rows = rows_of()
    return planning.make(
        Promise(epsilon, 1e-6, protects),
        rows.layout,
        rows.cells(),
        notions,
        Settings(**given),
        public_rows=public,
        companion=True,
    )


def test_it_grows_with_what_noise_leaves_and_no_further() -> None:
    planned = plan()
    clips = [planned.clip_at(float(n)) for n in (1, 3_000, 30_000, 100_000, 10**9)]
    assert clips == sorted(clips)
    assert clips[0] == planned.clip == 2.0
    assert clips[-1] == pytest.approx(planned.settings.clip_growth * 3.0)
    assert len(set(clips)) >= 3
    by_epsilon = [
        plan(epsilon, public=30_000).clip_at(30_000.0) for epsilon in (0.1, 1.0, 3.0, 1e4)
    ]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[-1] == pytest.approx(48.0)


def test_the_step_follows_the_clip_so_that_a_run_has_the_same_noise() -> None:
    """The noise that a run leaves is steps x clip: where the clip grew, steps are shorter."""
    free, fixed = plan(public=30_000), plan(public=30_000, clip=3.0)
    rows = np.array([30_000.0])
    grown = free.clip_at(30_000.0)
    assert grown > 3.3
    assert float(free.rate(rows)[0]) * grown == pytest.approx(
        min(float(fixed.rate(rows)[0]) * 3.0, grown), rel=1e-9
    )


def test_a_clip_that_was_passed_stays() -> None:
    planned = plan(clip=2.5)
    assert planned.clip_at(1e9) == planned.clip_at(1.0) == planned.clip == 2.5
    assert not planned.clips_late


def test_two_groups_have_a_short_clip_until_there_is_much_room() -> None:
    two, four = plan(notions=PARITY, public=3_000), plan(public=3_000)
    assert two.clip_at(3_000.0) == 2.0 < four.clip_at(3_000.0)
    assert plan(1e4, notions=PARITY, public=30_000).clip_at(30_000.0) == pytest.approx(32.0)


def test_without_constraints_it_stays_short() -> None:
    planned = plan(1e4, notions=(), public=30_000)
    assert planned.clip_at(30_000.0) == planned.clip == 2.0


def test_prices_do_not_depend_on_it() -> None:
    one, other = plan(clip=1.0), plan()
    assert one.events(None) == other.events(None)


def test_a_growth_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="clip_growth"):
        Settings(clip_growth=0.5)


@pytest.mark.parametrize("notions", [(), PARITY])
def test_with_public_features_the_exact_loss_of_a_row_is_clipped(notions) -> None:
    """The curator's own sum is compared with one made by hand."""
    rows = rows_of()
    planned = plan(protects="sensitive_features", notions=notions, public=400)
    assert planned.loss_clip == LOSS_CLIP
    weights = np.array([[5.0, -40.0, 30.0, 10.0]])
    shortened = GradientSum(Linear(weights), None, loss_clip=0.7)
    curator = Curator(rows, Promise(1.0, 1e-6, "sensitive_features"), noise=None)
    (answer,) = curator.answer([Measurement(shortened, 1.0)])
    (block,) = rows.blocks()
    X = np.column_stack([np.ones(block.rows), block.numbers.T])
    residual = 1 / (1 + np.exp(-(X @ weights[0]))) - block.labels
    gradients = residual[:, None] * X
    sizes = np.linalg.norm(gradients, axis=1)
    by_hand = (gradients * np.minimum(1.0, 0.7 / np.maximum(sizes, 1e-300))[:, None]).sum(axis=0)
    assert (sizes > 0.7).any()
    assert answer[0] == pytest.approx(by_hand, abs=1e-6)


def test_beside_costs_that_read_groups_the_two_parts_are_clipped_apart() -> None:
    rows, promise = rows_of(), Promise(1e12, 1e-6, "sensitive_features")
    weights = np.array([[5.0, -40.0, 30.0, 10.0]])
    costs = np.array([[[0.0, 1.0]], [[0.0, -2.0]]])
    asked = {"clip": 0.5, "cells": rows.cells(), "cell_costs": costs}

    def answer(question: GradientSum) -> np.ndarray:
        from fairveil.privacy import NoiseSource

        curator = Curator(rows, promise, noise=NoiseSource.seeded(0))
        return curator.answer([Measurement(question, 1e-4)])[0]

    together = answer(GradientSum(Linear(weights), loss_clip=0.7, **asked))
    of_costs = answer(GradientSum(Linear(weights), loss="none", **asked))
    of_loss = answer(GradientSum(Linear(weights), None, loss_clip=0.7))
    assert together == pytest.approx(of_costs + of_loss, abs=1e-2)
    assert together != pytest.approx(answer(GradientSum(Linear(weights), **asked)), abs=1.0)


def test_without_privacy_nothing_is_clipped() -> None:
    assert plan(INF, "sensitive_features", public=400).loss_clip is None
    rows = rows_of()
    weights = np.array([[5.0, -40.0, 30.0, 10.0]])
    curator = Curator(rows, Promise(INF, 1e-6))
    asked = [GradientSum(Linear(weights), clip, loss_clip=clip) for clip in (0.7, None)]
    one, other = (curator.answer([Measurement(question, 0.0)])[0] for question in asked)
    assert np.array_equal(one, other)


def test_a_clip_that_is_no_length_is_refused() -> None:
    with pytest.raises(InputError, match="loss_clip"):
        GradientSum(Linear(np.zeros((1, 4))), loss_clip=-1.0)


def test_momentum_falls_where_noise_is_next_to_nothing_and_is_what_it_was_elsewhere() -> None:
    planned = plan()
    momenta = [planned.momentum_at(clip) for clip in (1.0, 2.0, 8.0, 16.0, 32.0, 48.0)]
    assert momenta[:3] == [0.9, 0.9, 0.9]
    assert momenta[3] == pytest.approx(0.8)
    assert momenta[4] == momenta[5] == pytest.approx(0.7)
    for other in (plan(notions=()), plan(clip=2.5)):
        assert other.momentum_at(48.0) == 0.9
    assert plan(momentum=0.5).momentum_at(48.0) == 0.5


def five_groups(seed: int, n: int = 8_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Five groups whose merit goes from high to low, and the least of them 4 % of all."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(7)
    group = rng.choice(5, n, p=[0.4, 0.25, 0.2, 0.11, 0.04])
    away, weights = fixed.normal(size=(5, 12)) / math.sqrt(12), fixed.normal(size=12)
    weights /= np.linalg.norm(weights)
    merit = 0.8 * np.linspace(0.5, -0.5, 5)
    X = rng.normal(size=(n, 12)) + 0.5 * away[group] + merit[group, np.newaxis] * weights
    y = (2.0 * X @ weights - 0.7 + rng.logistic(size=n) > 0).astype(int)
    return np.clip(X, -4, 4) / 4, y, group


@pytest.mark.parametrize("seed", [0, 1])
def test_with_next_to_no_noise_five_groups_have_the_exact_solutions_error(seed: int) -> None:
    """Duals that swing end above what holds the bound, and the last step then mixes the model with
    constants."""
    X, y, group = five_groups(seed)
    errors = []
    for epsilon in (1e4, INF):
        fitted = RateConstrainedClassifier(
            DemographicParity(0.02), epsilon=epsilon, random_state=seed
        )
        fitted.fit(X, y, sensitive_features=group)
        assert isinstance(fitted.model_, LinearModel)
        errors.append(float((fitted.predict(X) != y).mean()))
    assert errors[0] < errors[1] + 0.005
