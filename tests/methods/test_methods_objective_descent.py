"""Group objectives of log losses by private descent: neighbours one by one, for any weights, and how
good it is.

Neighbours of what is asked are those of tests/curator: gradients with weights by cell, and cut
losses by group.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairveil.core.events import spelled_out
from fairveil.core.mechanisms import inventory
from fairveil.core.passes import public_scales, totals
from fairveil.core.pricing import constant_scale, noise_scale
from fairveil.core.promise import Promise
from fairveil.core.rows import FULL
from fairveil.core.sums import parted_question
from fairveil.curator import GradientSum, Rows, describe
from fairveil.errors import InputError, PrivacyError
from fairveil.fairness import BoundedGroupLoss
from fairveil.fairness.objectives import LargestGroupLoss
from fairveil.methods.descent import Reason
from fairveil.methods.objective_descent import MOST, LossDescent, plan_descent
from fairveil.methods.objectives import Found
from fairveil.privacy import epsilon as price

LARGEST = "largest_group_loss"
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


def a_descent(
    rows: Any, promise: Promise, objective: Any = "error", constraint: Any = None, **options: Any
) -> LossDescent:
    mode, stated = options.pop("mode", "product"), options.pop("stated", None)
    return plan_descent(
        s.problem_of(rows, promise, objective, constraint, mode, stated, loss="log"), **options
    )


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
        curator = s.curator_for(descent, rows)
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


def test_a_descent_that_is_interrupted_leaves_a_beginning_of_its_plan_and_a_closed_curator() -> (
    None
):
    rows = g.rows_from(*g.sample(1, 80))
    descent = a_descent(rows, g.REPLACE, LARGEST, rounds=6)
    curator = s.curator_for(descent, rows)

    def watch(done: int, most: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        descent.run(curator, watch)
    whole = s.curator_for(descent, rows)
    descent.run(whole)
    assert curator.log.events == whole.log.events[: len(curator.log.events)]
    assert 0 < len(curator.log.events) < len(whole.log.events)
    with pytest.raises(PrivacyError):
        curator.answer([(descent.problem.ground.counts, 5.0)])


@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_guarantees_1_and_2_for_made_up_and_for_repeated_answers(relation: str) -> None:
    """The plan is the trace of a run, whatever is answered; and answers that are told again, by
    somebody who holds no rows, make the same model to the bit."""
    rows = g.rows_from(*g.sample(1, 200, groups=(2, 2)), groups=(2, 2))
    promise = g.PROMISES[relation]
    for mode in ("product", "marginal"):
        asked = bounded(0.5, mode)
        descent = a_descent(rows, promise, LARGEST, asked, mode=mode, stated=200, rounds=6)
        for seed in (0, 1):
            rng = np.random.default_rng(seed)
            trace = descent.ground.trace(lambda shape, _, r=rng: r.normal(50.0, 100.0, shape))
            descent.run(trace)
            assert trace.plan is not None
            assert list(spelled_out(trace.plan)) == list(spelled_out(descent.plan))
        curator = s.curator_for(descent, rows, 5, s.Recorded)
        found = descent.run(curator)
        teller: Any = s.Teller(promise, curator.told)
        assert s.same(found, descent.run(teller))
        assert not teller.told
        assert not s.same(found, descent.run(s.curator_for(descent, rows, 6)))


def test_without_privacy_the_error_is_that_of_logistic_regression() -> None:
    X, y, A = unlike()
    rows = g.rows_from(X, y, A)
    found = a_descent(rows, g.EXACT).run(s.curator_for(a_descent(rows, g.EXACT), rows))
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
        found = descent.run(s.curator_for(descent, rows))
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
    most = by_group(model_of(free.run(s.curator_for(free, rows))), X, y, A).max()
    bound = (most + optimum(X, y, A)) / 2
    descent = a_descent(rows, g.EXACT, "error", bounded(bound))
    found = descent.run(s.curator_for(descent, rows))
    assert by_group(model_of(found), X, y, A).max() <= bound + 0.01
    # a descent ends a little above or below its bound
    assert (found.values - found.bounds).max() <= 0.01
    assert found.bounds == pytest.approx([bound, bound])
    assert found.duals.max() > 0.0


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
        found = [model_of(descent.run(s.curator_for(descent, rows, seed))) for seed in range(2)]
        each = [log_losses(v, X, y) for v in found]
        worst[objective] = np.mean(
            [max(one[A[0] == k].mean() for k in np.flatnonzero(large)) for one in each]
        )
    assert worst[LARGEST] < worst["error"] + 0.03
    assert worst[LARGEST] < 0.7 * math.log(2.0)


@pytest.mark.parametrize(
    "constraint", ["gini:0.1", ["gini:0.1", "largest_group_loss:0.5"]], ids=str
)
def test_a_function_that_falls_where_a_loss_grows_is_refused(constraint: Any) -> None:
    """Losses are convex in the model's weights; such a function of them is not."""
    rows = g.rows_from(*g.sample(1, 80))
    for promise in (g.EXACT, g.RECORDS):
        with pytest.raises(InputError, match="grows with every loss"):
            a_descent(rows, promise, "error", constraint)


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_without_delta_noise_cannot_be_gaussian(protects: str) -> None:
    with pytest.raises(InputError, match="delta"):
        a_descent(g.rows_from(*g.sample(1, 80)), Promise(2.0, 0.0, protects), LARGEST)


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


def moves(measurement: Any, rows: Rows, promise: Any) -> Any:
    """Squared distances, in the noise, of totals that differ in one person: (people and groups, the
    same), or one each."""
    question = measurement.question
    if promise.features_are_public:
        question = parted_question(question)[1] if question.kind is GradientSum else question
        scale = public_scales(question, rows)[0]
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
    descent = a_descent(rows, promise, "error", bounded(0.5, mode), mode=mode, rounds=3)
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
    descent = a_descent(rows, promise, "error", bounded(0.6))
    reached = []
    for seed in range(2):
        curator = s.curator_for(descent, rows, seed)
        reached.append(by_group(model_of(descent.run(curator)), X, y, A)[1])
    assert max(reached) < 0.6 + 0.03
    assert min(reached) > 0.54  # and pressed no harder than that
