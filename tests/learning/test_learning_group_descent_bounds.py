"""Log losses under bounds by group: the clip follows the weights, enumerated neighbours, and bounds
are kept despite noise."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest

from fairveil.core.inventory import inventory
from fairveil.core.rows import FULL
from fairveil.curator import Curator, Rows, describe
from fairveil.curator.pricing import constant_scale, noise_scale
from fairveil.curator.totals import public_scale
from fairveil.curator.totals.passes import totals
from fairveil.fairness import BoundedGroupLoss
from fairveil.learning.group_objective.descent import MOST, LossDescent, plan_descent
from fairveil.learning.lagrangian.duals import ExponentiatedGradientState
from fairveil.privacy import NoiseSource

GROUPS = ((0, 1), (0, 1, 2))
COMBINATIONS = list(itertools.product(*GROUPS))
WEIGHTS = {
    "product": [
        [1.0] * 6,
        [1, 1, 1, 1, 1, 500.0],
        [0, 0, 3, 0, 0, 1e-9],
        [0.0] * 6,
        [2, 7, 1, 8, 2, 8],
    ],
    "marginal": [[1.0] * 5, [0.5, 60, 0.5, 0.5, 400.0], [0, 0, 0, 0, 1e-7], [3, 1, 4, 1, 5]],
}


def universe() -> Rows:
    """Rows far beyond any clip, opposite and near ones; each with every label, under every
    combination of groups."""
    X = np.concatenate(
        [
            1e6 * np.eye(2),
            -1e6 * np.eye(2),
            np.random.default_rng(0).normal(size=(3, 2)),
            np.zeros((1, 2)),
        ]
    )
    n, many = len(X), len(COMBINATIONS)
    A = np.array(COMBINATIONS * (2 * n)).T
    X, y = np.repeat(X, 2 * many, axis=0), np.tile(np.repeat([0, 1], many), n)
    return Rows.from_arrays(X, y, list(A), classes=(0, 1), groups=GROUPS)


def a_descent(
    rows: Rows, promise: Any, bound: float, mode: str = "product", **options: Any
) -> LossDescent:
    asked = BoundedGroupLoss(bound, loss="log", groups=mode)  # type: ignore[arg-type]
    return plan_descent(s.problem_of(rows, promise, "error", asked, mode, loss="log"), **options)


def moves(measurement: Any, rows: Rows, promise: Any) -> Any:
    """Squared distances, in the noise, of totals that differ in one person: (people and groups, the
    same), or one each."""
    question = measurement.question
    if promise.features_are_public:
        question = question.parted()[1] if hasattr(question, "parted") else question
        scale = public_scale.of(question, rows)[0]
    else:
        scale = constant_scale(question, rows.layout, promise, None)
    (whole,) = rows.blocks()
    each = [
        totals([(question, [scale])], rows, [whole.take(np.array([i]))])[0].ravel()
        for i in range(whole.rows)
    ]
    noise = float(
        noise_scale(
            replace(measurement, question=question),
            scale,
            promise,
            FULL,
            question.shape(rows.layout),
        )
    )
    v = np.array(each, np.float64) / noise
    if promise.neighbours == "add-remove":
        return (v**2).sum(axis=1)
    squares = (v**2).sum(axis=1)
    apart = np.maximum(squares[:, np.newaxis] + squares - 2.0 * v @ v.T, 0.0)
    person = np.arange(len(v)) // len(COMBINATIONS)
    return (
        np.where(person[:, np.newaxis] == person, apart, 0.0)
        if promise.features_are_public
        else apart
    )


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_guarantee_3_no_neighbour_is_further_away_than_the_event_says_whatever_the_weights(
    relation: str, mode: str
) -> None:
    rows, promise = universe(), g.PROMISES[relation]
    descent = a_descent(rows, promise, 0.5, mode, rounds=3)
    events = set()
    for given, v in itertools.product(
        WEIGHTS[mode], (np.zeros((1, 3)), np.array([[0.3, -2.0, 5.0]]))
    ):
        measurements = descent._measurements(v, np.array(given, np.float64))
        event = describe(measurements, rows.layout, promise)
        events.add(event)
        found = [moves(measurement, rows, promise) for measurement in measurements]
        for measurement, each in zip(measurements, found, strict=True):
            assert each.max() <= float(measurement.multiplier) ** -2 * (1 + 1e-9)
        assert (found[0] + found[1]).max() <= inventory(event, promise.neighbours).gaussian * (
            1 + 1e-9
        )
        # and the noise is not larger than it need be: someone is as far away
        if np.ptp(given) > 1.0 and not v.any():
            assert found[0].max() >= 0.99 * float(measurements[0].multiplier) ** -2
    assert len(events) == 1  # one price, whatever the weights


@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_what_weighs_most_is_clipped_to_the_clip_before_it_is_weighed(relation: str) -> None:
    """Of the weighed group's rows the total is weight x clip, however large the weight: the old
    clip left it at the clip."""
    promise = g.PROMISES[relation]
    rows = universe()
    descent = a_descent(rows, promise, 0.5, rounds=3, clip=1.5)
    for heavy in (10.0, 1000.0):
        weights = np.array([1.0, 1, 1, 1, 1, heavy])
        question = descent._measurements(np.zeros((1, 3)), weights)[0].question
        room = (heavy - 1.0) / 2.0 if promise.features_are_public else heavy
        assert question.clip == pytest.approx(1.5 * room)


def unlike(n: int) -> tuple[Any, Any, Any]:
    """Two groups whose lines differ, the second a fifth of all rows: what is best for everyone is
    bad for it."""
    rng = np.random.default_rng(3)
    second = (rng.random(n) < 0.2).astype(int)
    X = rng.uniform(-1, 1, size=(n, 2))
    slopes = np.where(second[:, None] == 1, [-1.0, 4.0], [3.0, 1.0])
    y = ((X * slopes).sum(axis=1) + rng.logistic(size=n) > 0).astype(int)
    return X, y, [second]


def second_groups_loss(found: Any, X: Any, y: Any, A: Any) -> float:
    (rule,) = found.rules
    logits = np.column_stack([np.ones(len(X)), X]) @ rule.weights[0]
    return float(np.logaddexp(0.0, np.where(y == 1, -logits, logits))[A[0] == 1].mean())


@pytest.mark.parametrize(
    ("relation", "epsilon"),
    [("add", 5.0), ("add", 1000.0), ("replace", 1000.0), ("groups", 1000.0)],
    ids=str,
)
def test_a_bound_is_kept_at_finite_epsilons(relation: str, epsilon: float) -> None:
    """Without a bound the second group's loss is .72, at the least .56; asked .60 it was .69 (.67
    with public features)."""
    X, y, A = unlike(4000)
    rows, promise = g.rows_from(X, y, A), replace(g.PROMISES[relation], epsilon=epsilon)
    descent = a_descent(rows, promise, 0.6)
    reached = []
    for seed in range(2):
        stated = descent.problem.ground.public_rows if not promise.rows_are_public else None
        curator = Curator(
            rows, promise, plan=descent.plan, noise=NoiseSource.seeded(seed), public_rows=stated
        )
        reached.append(second_groups_loss(descent.run(curator), X, y, A))
    assert max(reached) < 0.6 + 0.03
    assert min(reached) > 0.54  # and pressed no harder than that


def test_an_excess_inside_its_noise_presses_nothing_and_a_clear_one_does() -> None:
    X, y, A = unlike(2000)
    descent = a_descent(g.rows_from(X, y, A), g.RECORDS, 0.6)
    idle = descent.auditor.duals(ExponentiatedGradientState(np.zeros(2), 1.0))
    noise = np.array([0.1, 2.0])
    within = descent._final_duals(
        ExponentiatedGradientState(np.array([0.9, 19.0]), 1.0), noise, 100
    )
    assert within == pytest.approx(idle)
    told = descent._final_duals(ExponentiatedGradientState(np.array([3.0, 19.0]), 1.0), noise, 100)
    assert told[0] > 2.0 * told[1]
    exact = descent._final_duals(
        ExponentiatedGradientState(np.array([0.9, 19.0]), 1.0), np.zeros(2), 100
    )
    assert exact == pytest.approx(
        descent.auditor.duals(ExponentiatedGradientState(np.array([0.9, 19.0]), 1.0))
    )


def test_the_noise_of_an_excess_is_that_of_its_losses_over_the_groups_share() -> None:
    X, y, A = unlike(2000)
    rows = g.rows_from(X, y, A)
    descent = a_descent(rows, g.REPLACE, 0.6)
    posed = descent.problem.pose(
        np.array([[1600.0], [400.0]]), descent.counts_multiplier, descent.penalty
    )
    noise = descent._noise_of_excesses(posed, posed.shares[:, 0])
    assert noise == pytest.approx(
        descent.losses_multiplier * np.sqrt(2.0) * MOST / np.array([1600.0, 400.0]), rel=1e-6
    )
    assert not a_descent(rows, g.EXACT, 0.6)._noise_of_excesses(posed, posed.shares[:, 0]).any()
