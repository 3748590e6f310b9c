"""Group objectives of log losses by private descent: guarantees of
`learning/group_objective/descent.py`, and how good it is.

Neighbours of what is asked are those of tests/curator: gradients with weights by cell, and cut
losses by group.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairveil.core.events import NonPrivate
from fairveil.core.promise import Promise
from fairveil.curator import Curator
from fairveil.errors import InputError, PrivacyError
from fairveil.fairness import BoundedGroupLoss
from fairveil.fairness.objectives import LargestGroupLoss
from fairveil.learning.descent import Reason
from fairveil.learning.group_objective.descent import MOST, LossDescent, plan_descent
from fairveil.learning.group_objective.descent_state import GroupDescentState
from fairveil.learning.group_objective.found import Found
from fairveil.privacy import NoiseSource
from fairveil.privacy import epsilon as price

LARGEST = "largest_group_loss"


def a_descent(
    rows: Any, promise: Promise, objective: Any = "error", constraint: Any = None, **options: Any
) -> LossDescent:
    mode, stated = options.pop("mode", "product"), options.pop("stated", None)
    return plan_descent(
        s.problem_of(rows, promise, objective, constraint, mode, stated, loss="log"), **options
    )


def curator_for(descent: LossDescent, rows: Any, seed: int = 0, of: type[Curator] = Curator) -> Any:
    promise = descent.problem.ground.promise
    stated = (
        descent.problem.ground.public_rows
        if promise.is_private and not promise.rows_are_public
        else None
    )
    return of(rows, promise, plan=descent.plan, noise=NoiseSource.seeded(seed), public_rows=stated)


def bounded(most: float, mode: str = "product") -> BoundedGroupLoss:
    return BoundedGroupLoss(most, loss="log", groups=mode)


def unlike(n: int = 600) -> tuple[Any, Any, Any]:
    """Two groups whose lines differ, the second a fifth of all rows: what is best for everyone is
    bad for it."""
    rng = np.random.default_rng(3)
    second = (rng.random(n) < 0.2).astype(int)
    X = rng.uniform(-1, 1, size=(n, 2))
    slopes = np.where(second[:, None] == 1, [-1.0, 4.0], [3.0, 1.0])
    y = ((X * slopes).sum(axis=1) + rng.logistic(size=n) > 0).astype(int)
    return X, y, [second]


def log_losses(v: Any, X: Any, y: Any) -> Any:
    """Of every row, by a model of two classes."""
    logits = np.column_stack([np.ones(len(X)), X]) @ v
    return np.logaddexp(0.0, np.where(y == 1, -logits, logits))


def by_group(v: Any, X: Any, y: Any, A: Any) -> Any:
    each = log_losses(v, X, y)
    return np.array([each[A[0] == k].mean() for k in range(2)])


def model_of(found: Found) -> Any:
    (rule,) = found.rules
    return rule.weights[0]


# ---- guarantee 1
# --------------------------------------------------------------------------------------------------

WORLDS = [
    ("add", 2, (2,), "product", None, False),
    ("add", 3, (2, 2), "marginal", 80, True),
    ("replace", 3, (2,), "product", 80, False),
    ("replace", 2, (2, 2), "marginal", None, True),
    ("groups", 2, (2, 2), "marginal", None, False),
    ("groups", 3, (2,), "product", None, True),
]


@pytest.mark.parametrize(("relation", "classes", "groups", "mode", "stated", "weights"), WORLDS)
def test_guarantee_1_the_log_is_the_plan_event_for_event_and_costs_the_promise(
    relation: str,
    classes: int,
    groups: tuple[int, ...],
    mode: str,
    stated: int | None,
    weights: bool,
) -> None:
    promise = g.PROMISES[relation]
    data = g.sample(1, 80, classes, groups)
    rows = g.rows_from(
        *data, classes, groups, np.random.default_rng(0).random(80) if weights else None
    )
    asked = bounded(0.6, mode)
    for objective, constraint in (
        ("error", asked),
        (LARGEST, None),
        (LARGEST, [asked, LargestGroupLoss().at_most(0.7)]),
    ):
        descent = a_descent(
            rows, promise, objective, constraint, mode=mode, stated=stated, rounds=4
        )
        curator = curator_for(descent, rows)
        found = descent.run(curator)
        curator.log.reconcile([descent.plan])
        spent = price(curator.log.events, 1e-5, promise.neighbours)
        assert 0.98 * promise.epsilon <= spent <= promise.epsilon * (1 + 1e-12)
        assert (found.reason, found.rounds) == (Reason.ROUNDS, 4)
        compared = sum(groups) if mode == "marginal" else math.prod(groups)
        assert len(found.names) == compared * (
            0 if constraint is None else len(constraint) if objective == LARGEST else 1
        )
        with pytest.raises(PrivacyError):
            curator.answer([(descent.problem.ground.counts, 5.0)])


@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_guarantee_1_without_groups_everyone_is_one(relation: str) -> None:
    X, y, _ = g.sample(1, 80)
    rows = g.rows_from(X, y, [np.zeros(80, int)], groups=(2,))
    descent = a_descent(rows, g.PROMISES[relation], rounds=3)
    curator = curator_for(descent, rows)
    found = descent.run(curator)
    curator.log.reconcile([descent.plan])
    assert bool(len(curator.log.events)) == (relation != "groups")
    assert found.names == ()


def test_guarantee_1_without_privacy_nothing_is_planned() -> None:
    rows = g.rows_from(*g.sample(1, 80))
    descent = a_descent(rows, g.EXACT, LARGEST, rounds=3)
    assert descent.plan is None
    curator = curator_for(descent, rows)
    assert descent.run(curator).objective_noise == 0.0
    assert all(isinstance(event, NonPrivate) for event in curator.log.events)


@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_guarantee_1_a_plan_is_made_of_public_values_alone(relation: str) -> None:
    plans = [
        a_descent(
            g.rows_from(*g.sample(seed, 90)),
            g.PROMISES[relation],
            LARGEST,
            bounded(0.6),
            stated=100,
        ).plan
        for seed in (0, 1)
    ]
    assert plans[0] == plans[1]


def test_a_descent_that_is_interrupted_leaves_a_beginning_of_its_plan_and_a_closed_curator() -> (
    None
):
    rows = g.rows_from(*g.sample(1, 80))
    descent = a_descent(rows, g.REPLACE, LARGEST, rounds=6)
    curator = curator_for(descent, rows)

    def watch(done: int, most: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        descent.run(curator, watch)
    whole = curator_for(descent, rows)
    descent.run(whole)
    assert curator.log.events == whole.log.events[: len(curator.log.events)]
    assert 0 < len(curator.log.events) < len(whole.log.events)
    with pytest.raises(PrivacyError):
        curator.answer([(descent.problem.ground.counts, 5.0)])


# ---- guarantee 2
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_guarantee_2_weights_and_model_follow_from_what_was_answered(
    relation: str, mode: str
) -> None:
    """Every answer is told again, by somebody who holds no rows: the same states and result to the
    bit."""
    rows = g.rows_from(*g.sample(1, 200, groups=(2, 2)), groups=(2, 2))
    descent = a_descent(
        rows, g.PROMISES[relation], LARGEST, bounded(0.5, mode), mode=mode, rounds=6
    )

    def states(curator: Any) -> list[GroupDescentState]:
        found = [descent.init(curator)]
        while descent.stop(found[-1]) is None:
            found.append(descent.step(curator, found[-1]))
        return found

    curator = curator_for(descent, rows, 5, s.Recorded)
    first = states(curator)
    result = descent.finish(curator, first[-1], Reason.ROUNDS)
    teller: Any = s.Teller(g.PROMISES[relation], curator.told)
    again = states(teller)
    assert s.same(result, descent.finish(teller, again[-1], Reason.ROUNDS))
    assert not teller.told
    for one, other in zip(first, again, strict=True):
        for name in ("weights", "duals", "mean"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert np.array_equal(one.walk.weights, other.walk.weights)
    assert not np.array_equal(first[1].weights, first[-1].weights)
    assert not s.same(result, descent.run(curator_for(descent, rows, 6)))


# ---- how good it is
# --------------------------------------------------------------------------------------------------


def test_without_privacy_the_error_is_that_of_logistic_regression() -> None:
    X, y, A = unlike()
    rows = g.rows_from(X, y, A)
    found = a_descent(rows, g.EXACT).run(curator_for(a_descent(rows, g.EXACT), rows))
    best = LogisticRegression(C=1e8, tol=1e-10, max_iter=1000).fit(X, y)
    least = log_losses(np.append(best.intercept_, best.coef_), X, y).mean()
    reached = log_losses(model_of(found), X, y).mean()
    assert least - 1e-9 <= reached <= least + 1e-3
    assert least < 0.9 * math.log(2.0)
    assert found.objective == pytest.approx(
        np.minimum(log_losses(model_of(found), X, y), MOST).mean(), abs=1e-9
    )


def test_without_privacy_the_largest_group_loss_falls() -> None:
    X, y, A = unlike()
    rows = g.rows_from(X, y, A)
    worst = []
    for objective in ("error", LARGEST):
        descent = a_descent(rows, g.EXACT, objective)
        found = descent.run(curator_for(descent, rows))
        worst.append(by_group(model_of(found), X, y, A).max())
    assert worst[1] < 0.8 * worst[0]
    assert worst[1] < optimum(X, y, A) + 0.02


def optimum(X: Any, y: Any, A: Any) -> float:
    """The least that the largest group's mean log loss can be: weighted logistic regressions' best,
    by duality, from below."""
    return max(_least(X, y, A, share) for share in np.linspace(0.1, 0.9, 17))


def _least(X: Any, y: Any, A: Any, share: float) -> float:
    second = A[0] == 1
    weights = np.where(second, share / second.sum(), (1.0 - share) / (~second).sum())
    fit = LogisticRegression(C=1e8, tol=1e-10, max_iter=1000).fit(
        X, y, sample_weight=weights * len(y)
    )
    return float((weights * log_losses(np.append(fit.intercept_, fit.coef_), X, y)).sum())


def test_a_bound_on_log_losses_is_met_without_privacy() -> None:
    X, y, A = unlike()
    rows = g.rows_from(X, y, A)
    free = a_descent(rows, g.EXACT)
    most = by_group(model_of(free.run(curator_for(free, rows))), X, y, A).max()
    bound = (most + optimum(X, y, A)) / 2
    descent = a_descent(rows, g.EXACT, "error", bounded(bound))
    found = descent.run(curator_for(descent, rows))
    assert by_group(model_of(found), X, y, A).max() <= bound + 0.01
    # a descent ends a little above or below its bound
    assert (found.values - found.bounds).max() <= 0.01
    assert found.bounds == pytest.approx([bound, bound])
    assert found.duals.max() > 0.0


@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_with_noise_it_is_better_than_chance(relation: str) -> None:
    """The worse group's loss, of 2000 rows at epsilon 2: the worse of two seeds."""
    X, y, A = unlike(2000)
    rows = g.rows_from(X, y, A)
    descent = a_descent(rows, g.PROMISES[relation], LARGEST)
    worst = [
        by_group(model_of(descent.run(curator_for(descent, rows, seed))), X, y, A).max()
        for seed in range(2)
    ]
    assert max(worst) < 0.95 * math.log(2.0)


def many(n: int = 8000, seed: int = 0) -> tuple[Any, Any, Any]:
    """Ten groups alike but for how much of their labels is chance; six of them are rows by the
    tens."""
    rng = np.random.default_rng(seed)
    group = rng.choice(10, n, p=[0.5, 0.3, 0.1, 0.06, *[0.04 / 6] * 6])
    X = rng.uniform(-1, 1, size=(n, 4))
    steep = np.linspace(3.0, 6.0, 10)[group]
    y = (steep * X.sum(axis=1) + rng.logistic(size=n) > 0).astype(int)
    return X, y, [group]


def test_many_small_groups_cost_the_largest_group_next_to_nothing() -> None:
    """Each weight is 1 / share: followed all the way, noise in the smallest group made every
    group's loss twice what it is."""
    X, y, A = many()
    rows = g.rows_from(X, y, A, groups=(10,))
    large = np.bincount(A[0]) >= 400
    worst = {}
    for objective in ("error", LARGEST):
        descent = a_descent(rows, Promise(1.0, 1e-6), objective)
        found = [model_of(descent.run(curator_for(descent, rows, seed))) for seed in range(2)]
        each = [log_losses(v, X, y) for v in found]
        worst[objective] = np.mean(
            [max(one[A[0] == k].mean() for k in np.flatnonzero(large)) for one in each]
        )
    assert worst[LARGEST] < worst["error"] + 0.03
    assert worst[LARGEST] < 0.7 * math.log(2.0)


def test_the_model_that_weighs_everybody_alike_is_returned_where_its_losses_are_less() -> None:
    """By what late rounds released, and as likely as their noise makes them; each of two courses
    once."""
    X, y, A = unlike()
    rows = g.rows_from(X, y, A)
    descent = a_descent(rows, g.EXACT, LARGEST, rounds=200)
    curator = curator_for(descent, rows)
    state = descent.init(curator)
    while descent.stop(state) is None:
        state = descent.step(curator, state)
    assert state.alike is not None
    apart = state.walk.average[0]
    assert np.array_equal(descent._chosen(state), apart)
    worse = replace(state, late=replace(state.late, losses=state.alike.losses * 1.01))
    assert np.array_equal(descent._chosen(worse), state.alike.weights)
    assert not np.array_equal(apart, state.alike.weights)


@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_weights_above_what_noise_lets_a_step_follow_are_everybodys(mode: str) -> None:
    """The pull as a whole stays what it is, no group's weight is above the limit by more than
    everybody's part, and without noise nothing is changed."""
    rows = g.rows_from(*g.sample(1, 400, groups=(2, 2)), groups=(2, 2))
    for promise, changed in ((Promise(0.5, 1e-6), True), (g.EXACT, False)):
        descent = a_descent(rows, promise, LARGEST, bounded(0.6, mode), mode=mode)
        posed = descent.init(curator_for(descent, rows)).posed
        wanted = np.zeros(len(posed.shares))
        wanted[-1] = 1.0 / posed.shares[-1, 0]
        followed = descent._followed(posed, wanted)
        assert np.array_equal(followed, wanted) != changed
        total = posed.shares[:, 0].sum() / descent.problem.cells.per_row
        assert followed @ posed.shares[:, 0] == pytest.approx(
            1.0 + (total - 1.0) * followed[0] / descent._alike[0], abs=1e-9
        )
        assert followed.max() <= wanted.max()


# ---- what is refused
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "constraint", ["gini:0.1", ["gini:0.1", "largest_group_loss:0.5"]], ids=str
)
def test_a_function_that_falls_where_a_loss_grows_is_refused(constraint: Any) -> None:
    """Losses are convex in the model's weights; such a function of them is not."""
    rows = g.rows_from(*g.sample(1, 80))
    for promise in (g.EXACT, g.RECORDS):
        with pytest.raises(InputError, match="grows with every loss"):
            a_descent(rows, promise, "error", constraint)


@pytest.mark.parametrize(
    "constraint",
    [
        BoundedGroupLoss(0.3),
        BoundedGroupLoss(0.3, loss="squared"),
        [bounded(0.5), BoundedGroupLoss(0.3)],
        "equalized_odds:0.1",
    ],
    ids=str,
)
def test_a_bound_on_another_loss_is_refused(constraint: Any) -> None:
    with pytest.raises(InputError, match="bounds on the log loss"):
        a_descent(g.rows_from(*g.sample(1, 80)), g.RECORDS, "error", constraint)


def test_groups_that_are_needed_must_be_there() -> None:
    with pytest.raises(InputError, match="sensitive_features"):
        a_descent(g.rows_from(*g.sample(1, 80)[:2], [], groups=()), g.RECORDS, LARGEST)


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_without_delta_noise_cannot_be_gaussian(protects: str) -> None:
    with pytest.raises(InputError, match="delta"):
        a_descent(g.rows_from(*g.sample(1, 80)), Promise(2.0, 0.0, protects), LARGEST)
