"""The largest group's log loss by weights and clips that follow released losses: guarantees of
`worst_group.py`."""

from __future__ import annotations

import itertools
import math
from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest

from fairveil.curator import Curator, GradientSum, Rows
from fairveil.curator.totals import reference
from fairveil.errors import InputError, PrivacyError
from fairveil.learning.descent import Reason
from fairveil.learning.group_objective.descent import LossDescent, plan_descent
from fairveil.learning.group_objective.descent_state import GroupDescentState
from fairveil.learning.group_objective.worst_group import WorstGroupDescent, plan_worst_group
from fairveil.privacy import NoiseSource
from fairveil.privacy import epsilon as price
from fairveil.privacy.promise import Promise

LARGEST = "largest_group_loss"


def a_descent(
    rows: Any, promise: Promise, mode: str = "product", stated: int | None = None, **options: Any
) -> WorstGroupDescent:
    return plan_worst_group(
        s.problem_of(rows, promise, LARGEST, None, mode, stated, loss="log"), **options
    )


def curator_for(descent: LossDescent, rows: Any, seed: int = 0, of: type[Curator] = Curator) -> Any:
    promise = descent.problem.ground.promise
    stated = (
        descent.problem.ground.public_rows
        if promise.is_private and not promise.rows_are_public
        else None
    )
    return of(rows, promise, plan=descent.plan, noise=NoiseSource.seeded(seed), public_rows=stated)


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("relation", list(g.PROMISES))
@pytest.mark.parametrize("stated", [None, 90])
def test_guarantee_1_the_log_is_the_plan_and_costs_the_promise(
    relation: str, mode: str, stated: int | None
) -> None:
    promise = g.PROMISES[relation]
    rows = g.rows_from(*g.sample(1, 90, 3, (2, 2)), 3, (2, 2))
    descent = a_descent(rows, promise, mode, stated, rounds=4)
    curator = curator_for(descent, rows)
    found = descent.run(curator)
    curator.log.reconcile([descent.plan])
    spent = price(curator.log.events, 1e-5, promise.neighbours)
    assert 0.98 * promise.epsilon <= spent <= promise.epsilon * (1 + 1e-12)
    assert (found.reason, found.rounds) == (Reason.ROUNDS, 4)
    with pytest.raises(PrivacyError):
        curator.answer([(descent.problem.ground.counts, 5.0)])


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_guarantee_2_weights_and_model_follow_from_what_was_answered(
    relation: str, mode: str
) -> None:
    """Every answer is told again, by somebody who holds no rows: the same states and result to the
    bit."""
    rows = g.rows_from(*g.sample(1, 400, groups=(2, 2)), groups=(2, 2))
    descent = a_descent(rows, Promise(30.0, 1e-5, **vars_of(relation)), mode, rounds=6)

    def states(curator: Any) -> list[GroupDescentState]:
        found = [descent.init(curator)]
        while descent.stop(found[-1]) is None:
            found.append(descent.step(curator, found[-1]))
        return found

    curator = curator_for(descent, rows, 5, s.Recorded)
    first = states(curator)
    result = descent.finish(curator, first[-1], Reason.ROUNDS)
    teller: Any = s.Teller(descent.problem.ground.promise, curator.told)
    again = states(teller)
    assert s.same(result, descent.finish(teller, again[-1], Reason.ROUNDS))
    assert not teller.told
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one.weights, other.weights)
        assert np.array_equal(one.walk.weights, other.walk.weights)
    assert not np.array_equal(first[0].weights, first[-1].weights)


def vars_of(relation: str) -> dict[str, Any]:
    promise = g.PROMISES[relation]
    return {"protects": promise.protects, "neighbours": promise.neighbours}


WEIGHTS = ([1.0, 1.0, 1.0], [0.5, 0.1, 40.0], [300.0, 1e-4, 1.0])


def enumerated(weights: Any, clip: float) -> tuple[Rows, Any, GradientSum]:
    """Rows near and far in every group, and what each of them adds to one round's gradient."""
    points = [*itertools.product((-1.0, 0.0, 1.0), repeat=2), (30.0, -30.0)]
    listed = [(x, y, group) for x in points for y in (0, 1) for group in (0, 1, 2)]
    X, y, groups = (np.array([row[j] for row in listed]) for j in range(3))
    rows = Rows.from_arrays(
        X, y, [np.array(["a", "b", "c"])[groups]], classes=[0, 1], groups=[["a", "b", "c"]]
    )
    descent = a_descent(rows, Promise(1.0, 1e-6), clip=clip, rounds=3)
    measurements = descent._measurements(np.array([[0.3, -1.0, 2.0]]), np.array(weights))
    question: Any = measurements[0].question
    (block,) = rows.blocks()
    each = np.array(
        [
            reference.total(question, block.take(np.array([i])), 0).ravel()
            for i in range(len(listed))
        ]
    )
    return rows, each, question


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("clip", [0.05, 2.0])
def test_guarantee_3_no_neighbour_moves_a_gradient_further_than_its_event_says(
    weights: Any, clip: float
) -> None:
    """All rows of three groups; a person who comes, goes, or is replaced by any other, of whatever
    group."""
    rows, each, question = enumerated(weights, clip)
    bound = question.scale(rows.layout, None).bound
    norms = np.linalg.norm(each, axis=1)
    replaced = np.linalg.norm(each[:, np.newaxis] - each, axis=2)
    assert norms.max() <= clip * (1 + 1e-12) <= bound.sensitivity("add-remove") * (1 + 1e-9)
    assert replaced.max() <= bound.sensitivity("replace-one")
    assert norms.max() > 0.99 * clip  # reached
    # of two models' gradients the longest are opposite where all are clipped
    assert replaced.max() > 1.9 * clip or clip > 1.0
    assert bound.sensitivity("add-remove") < 1.01 * clip  # whatever the largest weight is


@pytest.mark.parametrize("weights", WEIGHTS)
def test_guarantee_3_another_group_moves_what_is_private_by_twice_the_clip(weights: Any) -> None:
    """Where features are public: every row, every pair of groups that it may have; the other part
    is the same under all."""
    rows, _, question = enumerated(weights, 0.5)
    (block,) = rows.blocks()
    common, rest = question.parted()
    parts = [
        np.array(
            [reference.total(one, block.take(np.array([i])), 0).ravel() for i in range(block.rows)]
        )
        for one in (common, rest)
    ]
    # the group is the fastest index
    by_group = [part.reshape(-1, 3, part.shape[1]) for part in parts]
    assert np.abs(np.ptp(by_group[0], axis=1)).max() == 0.0
    moved = max(
        np.linalg.norm(by_group[1][:, a] - by_group[1][:, b], axis=1).max()
        for a, b in itertools.combinations(range(3), 2)
    )
    assert moved <= 2 * 0.5 * (1 + 1e-12)
    assert moved > 0.99 if max(weights) > 1.0 else moved == 0.0


def test_clips_by_group_are_one_bound_over_their_weights() -> None:
    """What ASC chooses: a row of a group that weighs w is clipped at C / w before it is weighed."""
    weights = [0.5, 0.1, 40.0]
    _, each, question = enumerated(weights, 2.0)
    _, plain, _ = enumerated([1.0, 1.0, 1.0], 1e9)
    for place, (got, gradient) in enumerate(zip(each, plain, strict=True)):
        weight = weights[place % 3]
        kept = min(1.0, 2.0 / weight / max(np.linalg.norm(gradient), 1e-300))
        assert got == pytest.approx(weight * kept * gradient, rel=1e-9, abs=1e-12)
    assert question.clip == 2.0


def test_weights_are_one_in_the_mean_and_larger_where_the_loss_is() -> None:
    rng = np.random.default_rng(3)
    second = (rng.random(3000) < 0.2).astype(int)
    X = rng.uniform(-1, 1, size=(3000, 2))
    slopes = np.where(second[:, None] == 1, [-1.0, 4.0], [3.0, 1.0])
    y = ((X * slopes).sum(axis=1) + rng.logistic(size=3000) > 0).astype(int)
    rows = g.rows_from(X, y, [second])
    worst = []
    for promise in (g.EXACT, Promise(5.0, 1e-6)):
        descent = a_descent(rows, promise)
        plain = plan_descent(s.problem_of(rows, promise, "error", None, loss="log"))
        curator, state = curator_for(descent, rows, 1), None
        state = descent.init(curator)
        while descent.stop(state) is None:
            assert float(state.weights @ state.posed.shares[:, 0]) == pytest.approx(1.0)
            state = descent.step(curator, state)
        assert state.weights[1] > 2.0 * state.weights[0]
        (rule,) = descent.finish(curator, state, Reason.ROUNDS).rules
        (other,) = plain.run(curator_for(plain, rows, 1)).rules
        losses = []
        for v in (rule.weights[0], other.weights[0]):
            each = np.logaddexp(0.0, -(2 * y - 1) * (np.column_stack([np.ones(len(X)), X]) @ v))
            losses.append(max(each[second == k].mean() for k in range(2)))
        worst.append(losses)
    assert worst[0][0] < 0.8 * worst[0][1]
    assert worst[1][0] < 0.9 * worst[1][1]  # seeded


def test_a_group_that_noise_hides_counts_as_everybody_does() -> None:
    rng = np.random.default_rng(0)
    few = (np.arange(4000) < 12).astype(int)
    X = rng.uniform(-1, 1, size=(4000, 2))
    rows = g.rows_from(X, (X[:, 0] > 0).astype(int), [few])
    descent = a_descent(rows, Promise(0.5, 1e-6), rounds=20)
    curator = curator_for(descent, rows, 2)
    state = descent.init(curator)
    while descent.stop(state) is None:
        state = descent.step(curator, state)
    ratio = state.weights[1] / state.weights[0]
    assert state.noise[1] / math.sqrt(20) > 0.05  # noise of its mean loss
    assert ratio == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    "asked",
    [("error", None), ("mean_group_loss", None), (LARGEST, "bounded_group_loss:0.5,loss=log")],
)
def test_what_is_no_largest_group_loss_alone_is_refused(asked: tuple[str, Any]) -> None:
    rows = g.rows_from(*g.sample(1, 80))
    with pytest.raises(InputError, match="worst-group"):
        plan_worst_group(s.problem_of(rows, g.REPLACE, asked[0], asked[1], loss="log"))
