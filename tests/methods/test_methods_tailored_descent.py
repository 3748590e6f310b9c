"""Private descent whose budget is shared among groups: the guarantees of
`methods/tailoring.py`.

Neighbours of what is asked are those of tests/curator (test_curator_tailored.py); here whole runs
are held against people at the end of every clip.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import group_samples as s
import numpy as np
import pytest
import tailored_samples as t
from scipy import optimize
from sklearn.linear_model import LogisticRegression

from covering import pairs
from fairveil.core import cost as accounting
from fairveil.core.cost import gaussian_mu
from fairveil.core.events import Gaussian, PoissonSampled, compose, spelled_out
from fairveil.curator import Rows
from fairveil.errors import InputError, PrivacyError
from fairveil.fairness.objectives import GroupLoss, LargestGroupLoss
from fairveil.methods.allocation import ALLOCATIONS, Allocation
from fairveil.methods.least_squares import Ended
from fairveil.methods.tailoring import TailoredDescent, plan_tailored_descent
from fairveil.privacy import Promise
from group_prices import by_group

SIZES = (300, 120, 40)
X, Y, A = t.sample(SIZES)
LABELS = (Y + 0.3 * np.random.default_rng(2).normal(size=len(Y)) > 0).astype(int)
GIVEN = np.array([1.0, 2.0, 5.0])
RULES: list[Any] = [*ALLOCATIONS, GIVEN]
NAMES = [*ALLOCATIONS, "given"]
TWO = (2, 3)
LOSSES = ["squared", "log"]
LONG = 200  # rounds, until nothing moves


def rows_of(
    x: Any, target: Any, groups: Any, sizes: tuple[int, ...] = (3,), weights: Any = None
) -> Rows:
    """Without the target among the numbers. Whole numbers are labels."""
    columns = list(groups) if len(sizes) > 1 else [groups] if sizes else []
    facts: dict[str, Any] = {"groups": [tuple(range(size)) for size in sizes]}
    facts["sensitive_names"] = [f"s{j}" for j in range(len(sizes))]
    if weights is not None:
        facts |= {"sample_weight": weights, "max_sample_weight": 1.5}
    if np.issubdtype(np.asarray(target).dtype, np.integer):
        return Rows.from_arrays(
            x, target, columns, classes=range(max(2, int(target.max()) + 1)), **facts
        )
    return Rows.from_arrays(x, target, columns, regression=True, **facts)


ROWS = {"squared": rows_of(X, Y, A), "log": rows_of(X, LABELS, A)}


def planned(
    task: Any, rule: Any = "least-noise", loss: str = "squared", rounds: int = 3, **options: Any
) -> TailoredDescent:
    limits = {name: options.pop(name) for name in ("spend", "least", "most") if name in options}
    return plan_tailored_descent(
        task, Allocation(rule, **limits), loss=loss, rounds=rounds, **options
    )


# ---- guarantee 1: plan, log and price
# ------------------------------------------------------------------------------------

WORLDS: list[Any] = [
    ("person", "product", False, False, None),
    ("person", "marginal", True, False, 0.3),
    ("total", "product", False, True, 0.3),
]


@pytest.mark.parametrize(
    ("loss", "rule", "relation"),
    pairs(LOSSES, RULES, list(t.PROMISES)),
)
def test_guarantee_1_the_log_is_the_plan_or_finer_and_the_plan_costs_the_promise(
    relation: str, rule: Any, loss: str
) -> None:
    promise = t.PROMISES[relation]
    for spend, mode, weights, people, bound in WORLDS:
        marginal = mode == "marginal"
        groups = np.array([np.arange(len(Y)) % 2, A]) if marginal else A
        given = np.full(len(Y), 0.7) if weights else None
        rows = rows_of(
            X, Y if loss == "squared" else LABELS, groups, TWO if marginal else (3,), given
        )
        bounds = [LargestGroupLoss().at_most(bound)] if bound else []
        task = t.task_of(rows, promise, TWO if marginal else (3,), mode, bounds, people=people)
        shares = np.array([1.0, 2.0, 1.0, 2.0, 5.0]) if marginal and rule is GIVEN else rule
        plan = planned(task, shares, loss, spend=spend)
        outcome, found, curator = t.ran(plan, rows)
        curator.log.reconcile([plan.plan], promise.neighbours)
        price = accounting.epsilon(plan.plan, 1e-6, promise.neighbours)
        done = accounting.epsilon(curator.log.events, 1e-6, promise.neighbours)
        assert done <= price + 1e-9
        assert price <= promise.epsilon
        if spend == "person":
            # the worst person's
            assert done >= (0.999 if bound is None or plan.is_fixed else 0.9) * promise.epsilon
        columns = [slice(0, 2), slice(2, 5)] if marginal else [slice(0, 3)]
        assert [found.shares[column].sum() for column in columns] == pytest.approx(
            [1.0] * len(columns)
        )
        assert np.isfinite(outcome.coefficients).all()
        assert len(outcome.names) == (len(found.shares) if bound else 0)
        with pytest.raises(PrivacyError):
            curator.answer(plan._sized())


@pytest.mark.parametrize("relation", list(t.PROMISES))
def test_guarantee_1_numbers_may_be_scaled_by_released_moments_first(relation: str) -> None:
    promise = t.PROMISES[relation]
    for rule, loss in zip(("least-noise", "standard-error"), LOSSES, strict=True):
        plan = planned(t.task_of(ROWS[loss], promise), rule, loss, scales=True)
        _, _, curator = t.ran(plan, ROWS[loss])
        curator.log.reconcile([plan.plan], promise.neighbours)
        done = accounting.epsilon(curator.log.events, 1e-6, promise.neighbours)
        assert 0.999 * promise.epsilon <= done <= promise.epsilon


@pytest.mark.parametrize("relation", list(t.PROMISES))
def test_guarantee_1_a_plan_is_made_of_public_values_alone(relation: str) -> None:
    for rule, loss in itertools.product(ALLOCATIONS, LOSSES):
        plans = []
        for seed in (0, 1):
            x, y, a = t.sample((30, 20, 10), seed=seed)
            rows = rows_of(x, y if loss == "squared" else (y > 0).astype(int), a)
            plans.append(
                planned(t.task_of(rows, t.PROMISES[relation], public_rows=60), rule, loss).plan
            )
        assert plans[0] == plans[1]


# ---- guarantee 1: what each group spends
# -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_guarantee_1_a_group_spends_what_one_over_squared_noise_adds_up_to(
    rule: Any, loss: str
) -> None:
    """With shares that were made of answers: what all share, and what her group's rounds cost, at
    half of delta each."""
    for bound in (None, 0.3):
        bounds = [LargestGroupLoss().at_most(bound)] if bound else []
        plan = planned(t.task_of(ROWS[loss], t.ADDED, bounds=bounds), rule, loss)
        _, shares, curator = t.ran(plan, ROWS[loss])
        told = by_group(curator.log.events, 1e-6, "add-remove", 3, fixed=shares.fixed)
        common = t.common_square(curator.log.events)
        own = np.array([t.own_square(curator.log.events, k) for k in range(3)])
        for k in range(3):
            if shares.fixed:
                pays = accounting.epsilon(Gaussian((common + own[k]) ** -0.5), 1e-6, "add-remove")
            else:
                pays = sum(
                    accounting.epsilon(Gaussian(one**-0.5), 5e-7, "add-remove")
                    for one in (common, own[k])
                )
            assert told[k] == pytest.approx(pays)
        if own.any():
            assert own / own.max() == pytest.approx(shares.shares / shares.shares.max(), rel=1e-5)
            assert own.max() == pytest.approx(plan.last_part / plan.z**2, rel=1e-5)


@pytest.mark.parametrize(
    ("bound", "rule", "relation"),
    pairs([None, 0.3], ["least-noise", "standard-error", "given"], list(t.PROMISES)),
)
def test_guarantee_1_people_at_the_end_of_every_clip_spend_what_their_group_is_told(
    relation: str, rule: str, bound: float | None
) -> None:
    """A whole run's squared distance between two tables, over all releases in deviations of their
    noise, for a far row in each group: below what the log says of that group, and near it
    (replace-one and groups: of the worst other group)."""
    promise = t.PROMISES[relation]
    weighted = relation == "add"  # and the person counts as much as a row may
    x, a = X[:150], A[:150]
    labels = LABELS[:150]
    far = {0: [1e3, 0.0], 1: [0.0, -1e3], 2: [-1e3, 1e3]}

    def table(*extra: tuple[int, int]) -> Rows:
        """Rows beside a person: what she is like, and her group."""
        more = np.array([far[who] for who, _ in extra]).reshape(-1, 2)
        weights = np.append(np.ones(150), [1.5] * len(extra)) if weighted else None
        group = np.append(a, [k for _, k in extra]).astype(int)
        return rows_of(
            np.vstack([x, more]),
            np.append(labels, [1] * len(extra)).astype(int),
            group,
            weights=weights,
        )

    ratios = []
    for k in range(3):
        other = (k + 1) % 3
        here, there = (
            {"add": (), "replace": ((other, other),), "groups": ((k, other),)}[relation],
            (k, k),
        )
        one, two = table(*here), table(there)
        bounds = [LargestGroupLoss().at_most(bound)] if bound else []
        plan = planned(
            t.task_of(one, promise, bounds=bounds),
            GIVEN if rule == "given" else rule,
            "log",
            rounds=8,
        )
        curator = t.ran(plan, one, 3, s.Recorded)[2]
        distance = s.moved(curator.tape, one, two, promise)
        told = by_group(curator.log.events, 1e-6, promise.neighbours, 3)[k]
        assert distance <= gaussian_mu(told, 1e-6) ** 2 * (1 + 1e-6)
        ratios.append(distance / gaussian_mu(told, 1e-6) ** 2)
    assert max(ratios) > (0.7 if relation == "add" else 0.2)


def test_limits_by_group_are_kept_over_the_whole_run() -> None:
    least, most = gaussian_mu(1.5, 1e-6) ** 2, gaussian_mu(2.5, 1e-6) ** 2
    limits = {"least": np.full(3, least), "most": np.array([math.inf, most, most])}
    for rule, loss, bound in itertools.product(ALLOCATIONS, LOSSES, (None, 0.3)):
        bounds = [LargestGroupLoss().at_most(bound)] if bound else []
        plan = planned(t.task_of(ROWS[loss], t.ADDED, bounds=bounds), rule, loss, **limits)
        curator = t.ran(plan, ROWS[loss])[2]
        paid = [
            t.common_square(curator.log.events) + t.own_square(curator.log.events, k)
            for k in range(3)
        ]
        assert min(paid) >= least * (1 - 1e-9)
        assert max(paid[1:]) <= most * (1 + 1e-9)
        assert max(paid[1:]) == pytest.approx(most)
        assert paid[0] <= gaussian_mu(4.0, 1e-6) ** 2 * (1 + 1e-9)


def test_with_hardly_any_left_limits_are_refused() -> None:
    with pytest.raises(InputError, match="max_epsilon"):
        planned(
            t.task_of(ROWS["log"], t.ADDED),
            "equal",
            "log",
            most=np.full(3, gaussian_mu(0.1, 1e-6) ** 2),
        )
    with pytest.raises(InputError, match="limits by group"):
        planned(
            t.task_of(ROWS["log"], t.ADDED),
            "equal",
            "log",
            least=np.full(3, gaussian_mu(4.5, 1e-6) ** 2),
        )


# ---- guarantee 2
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("relation", list(t.PROMISES))
def test_guarantee_2_shares_and_weights_follow_from_what_was_answered(
    relation: str, loss: str
) -> None:
    """Every answer is told again, by somebody who holds no rows: the same shares and outcome to the
    bit."""
    rows = ROWS[loss]
    bounds = [LargestGroupLoss().at_most(0.1)]
    for rule, asked, scales in itertools.product(
        ("least-noise", "standard-error"), ((), bounds), (False, True)
    ):
        plan = planned(
            t.task_of(rows, t.PROMISES[relation], bounds=asked), rule, loss, rounds=4, scales=scales
        )
        outcome, shares, curator = t.ran(plan, rows, 4, s.Recorded)
        teller: Any = t.Teller(plan.task.promise, curator.told)
        again, same = plan.run(teller)
        assert not teller.told
        assert teller.closed
        assert again.coefficients.tolist() == outcome.coefficients.tolist()
        assert again.losses.tolist() == outcome.losses.tolist()
        assert same.shares.tolist() == shares.shares.tolist()
        assert same.paid.tolist() == shares.paid.tolist()
        assert t.ran(plan, rows, 5)[0].coefficients.tolist() != outcome.coefficients.tolist()


def test_guarantee_2_rows_in_another_order_have_the_same_answers_shares_and_weights() -> None:
    order = np.random.default_rng(0).permutation(len(Y))
    turned = rows_of(X[order], LABELS[order], A[order])
    for rule in ("least-noise", "standard-error"):
        plan = planned(t.task_of(ROWS["log"], t.ADDED), rule, "log")
        one, other = t.ran(plan, ROWS["log"]), t.ran(plan, turned)
        assert one[0].coefficients.tolist() == other[0].coefficients.tolist()
        assert one[1].shares.tolist() == other[1].shares.tolist()


# ---- guarantee 3
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["least-noise", "standard-error"])
def test_guarantee_3_without_noise_squared_loss_is_weighted_least_squares(rule: str) -> None:
    weights = np.random.default_rng(0).random(len(Y))
    for given, people in ((None, False), (weights, False), (weights, True)):
        rows = rows_of(X, Y, A, weights=given)
        outcome, shares, _ = t.ran(
            planned(t.task_of(rows, t.EXACT, people=people), rule, rounds=LONG), rows
        )
        assert outcome.coefficients == pytest.approx(
            t.weighted_squares(X, Y, A, 3, given, alike=not people), abs=1e-5
        )
        if given is None:
            assert shares.counts == pytest.approx(SIZES)


@pytest.mark.parametrize("people", [False, True])
def test_guarantee_3_without_noise_log_loss_is_logistic_regression(people: bool) -> None:
    given = np.random.default_rng(0).random(len(Y)) + 0.1
    for weights in (None, given) if not people else (given,):
        rows = rows_of(X, LABELS, A, weights=weights)
        outcome, _, _ = t.ran(
            planned(t.task_of(rows, t.EXACT, people=people), loss="log", rounds=LONG), rows
        )
        each = np.ones(len(Y)) if weights is None else weights
        sizes = np.array([each[k == A].sum() for k in range(3)])
        counted = each if people else each / (3 * sizes[A])
        wanted = LogisticRegression(C=1e8, tol=1e-10, max_iter=2000).fit(
            X, LABELS, sample_weight=counted * len(Y)
        )
        assert outcome.coefficients == pytest.approx(
            np.append(wanted.intercept_, wanted.coef_), abs=0.02
        )
        best, reached = (
            log_losses(v, counted)
            for v in (np.append(wanted.intercept_, wanted.coef_), outcome.coefficients)
        )
        assert reached <= best * (1 + 1e-4)


def log_losses(v: Any, counted: Any) -> float:
    logits = np.column_stack([np.ones(len(X)), X]) @ v
    return float(
        (counted * np.logaddexp(0.0, np.where(LABELS == 1, -logits, logits))).sum() / counted.sum()
    )


def group_log_losses(v: Any) -> Any:
    return np.array([log_losses(v, (k == A).astype(float)) for k in range(3)])


def test_guarantee_3_three_classes_are_multinomial_regression() -> None:
    labels = LABELS + (X[:, 1] > 0.3)
    rows = rows_of(X, labels, A)
    outcome, _, _ = t.ran(
        planned(t.task_of(rows, t.EXACT, people=True), loss="log", rounds=LONG), rows
    )
    best = LogisticRegression(C=1e8, tol=1e-8, max_iter=2000).fit(X, labels)
    scores = np.column_stack([np.ones(len(X)), X]) @ outcome.coefficients.T
    found = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    true = best.predict_log_proba(X)
    rows_at = np.arange(len(X))
    assert -found[rows_at, labels].mean() <= -true[rows_at, labels].mean() * 1.01


@pytest.mark.parametrize("loss", LOSSES)
def test_guarantee_3_a_bound_on_losses_is_solved_as_by_scipy(loss: str) -> None:
    """Half way between the third group's loss without a bound and its least; SLSQP on the same
    losses. The descent's mean of late rounds swings around the optimum: within 2 %."""
    of = group_log_losses if loss == "log" else (lambda c: t.group_errors(c, X, Y, A, 3) / 4)
    free = optimize.minimize(lambda c: of(c).mean(), np.zeros(3), method="SLSQP").x
    alone = optimize.minimize(lambda c: of(c)[2], np.zeros(3), method="SLSQP").x
    bound = float(of(free)[2] + of(alone)[2]) / 2
    found = optimize.minimize(
        lambda c: of(c).mean(),
        alone,
        constraints={"type": "ineq", "fun": lambda c: bound - of(c)[2]},
        method="SLSQP",
    )
    assert found.success
    asked = [GroupLoss(2).at_most(bound)]
    outcome, _, _ = t.ran(
        planned(t.task_of(ROWS[loss], t.EXACT, bounds=asked), loss=loss, rounds=LONG), ROWS[loss]
    )
    assert of(outcome.coefficients)[2] <= bound * 1.02
    assert of(outcome.coefficients).mean() == pytest.approx(found.fun, rel=0.02)
    assert of(outcome.coefficients)[2] < (of(free)[2] + bound) / 2
    assert outcome.losses == pytest.approx(of(outcome.coefficients), rel=1e-6)


@pytest.mark.parametrize("region", ["ball", "box"])
@pytest.mark.parametrize("step_size", ["steady", "decaying"])
def test_a_bounded_region_is_kept_and_its_best_is_found(step_size: str, region: str) -> None:
    radius, wide = 0.05, 2.0
    size = (lambda v: np.linalg.norm(v)) if region == "ball" else (lambda v: np.abs(v).max())
    options = {"region": region, "step_size": step_size, "rounds": LONG}
    rows = ROWS["squared"]
    narrow, _, _ = t.ran(planned(t.task_of(rows, t.EXACT), radius=radius, **options), rows)
    assert size(narrow.coefficients) == pytest.approx(
        radius, rel=1e-3 if step_size == "steady" else 0.05
    )
    for promise, iterate in itertools.product(t.PROMISES.values(), ("average", "last")):
        plan = planned(
            t.task_of(rows, promise), radius=radius, iterate=iterate, **{**options, "rounds": 3}
        )
        assert size(t.ran(plan, rows)[0].coefficients) <= radius * (1 + 1e-12)
    free, _, _ = t.ran(planned(t.task_of(rows, t.EXACT), radius=wide, **options), rows)
    wanted = t.group_errors(t.weighted_squares(X, Y, A, 3), X, Y, A, 3).mean()
    assert t.group_errors(free.coefficients, X, Y, A, 3).mean() <= wanted * (
        1.0001 if step_size == "steady" else 1.2
    )


# ---- stage one
# --------------------------------------------------------------------------------------------------


def test_with_hardly_any_noise_released_standard_errors_are_true_ones() -> None:
    _, shares, _ = t.ran(
        planned(t.task_of(ROWS["squared"], t.PLENTY), "standard-error"), ROWS["squared"]
    )
    squares = t.group_errors(t.weighted_squares(X, Y, A, 3, alike=False), X, Y, A, 3)
    assert shares.errors == pytest.approx(np.sqrt(squares), rel=1e-2)
    assert shares.shares == pytest.approx(squares / squares.sum(), rel=2e-2)
    assert shares.counts == pytest.approx(SIZES, abs=0.1)
    _, shares, _ = t.ran(
        planned(t.task_of(ROWS["log"], t.PLENTY), "standard-error", "log"), ROWS["log"]
    )
    pooled = LogisticRegression(C=1e8).fit(X, LABELS)
    means = group_log_losses(np.append(pooled.intercept_, pooled.coef_))
    # a few rounds: near the optimum
    assert shares.errors == pytest.approx(np.sqrt(means), rel=0.05)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_sum_of_losses_that_is_lost_in_noise_makes_shares_equal(loss: str) -> None:
    """So small an epsilon that half of the sums are negative: of three groups all are positive in
    one of eight runs."""
    fallen = 0
    for seed in range(6):
        plan = planned(t.task_of(ROWS[loss], Promise(0.01, 1e-6)), "standard-error", loss)
        outcome, shares, curator = t.ran(plan, ROWS[loss], seed)
        assert np.isfinite(outcome.coefficients).all()
        if "no information" in shares.why:
            fallen += 1
            assert shares.shares == pytest.approx(np.full(3, 1 / 3))
            assert np.isnan(shares.errors).any()
        assert accounting.epsilon(curator.log.events, 1e-6, "add-remove") <= 0.01
    assert fallen >= 2  # a chance of 1 in 2000 otherwise, were half of the sums negative


# ---- edges
# --------------------------------------------------------------------------------------------------

EDGES: dict[str, Any] = {
    "a group of one row": (X, np.where(np.arange(len(Y)) == 0, 2, A % 2)),
    "an empty listed group": (X, A % 2),
    "a constant feature": (np.column_stack([X[:, 0], np.full(len(Y), 0.5)]), A),
    "a column twice": (np.column_stack([X[:, 0], X[:, 0]]), A),
    "a column of zeros": (np.column_stack([X[:, 0], np.zeros(len(Y))]), A),
}


@pytest.mark.parametrize("edge", list(EDGES))
@pytest.mark.parametrize("relation", [*t.PROMISES, "none"])
def test_at_the_edges_there_is_an_answer(relation: str, edge: str) -> None:
    x, a = EDGES[edge]
    promise = t.PROMISES.get(relation, t.EXACT)
    for loss, rule in zip(LOSSES, ("least-noise", "standard-error"), strict=True):
        rows = rows_of(x, Y if loss == "squared" else LABELS, a)
        plan = planned(t.task_of(rows, promise), rule, loss)
        outcome, shares, curator = t.ran(plan, rows)
        assert np.isfinite(outcome.coefficients).all()
        assert np.isfinite(outcome.losses).all()
        assert shares.shares.sum() == pytest.approx(1.0)
        if promise.is_private:
            assert (
                accounting.epsilon(curator.log.events, 1e-6, promise.neighbours) <= promise.epsilon
            )


@pytest.mark.parametrize("relation", list(t.PROMISES))
def test_with_one_group_there_is_nothing_to_share(relation: str) -> None:
    rows = rows_of(X, LABELS, np.zeros(len(Y), int), (1,))
    for rule in ("least-noise", "standard-error", "equal"):
        plan = planned(t.task_of(rows, t.PROMISES[relation], (1,)), rule, "log")
        _, shares, curator = t.ran(plan, rows)
        assert shares.fixed
        assert shares.shares.tolist() == [1.0]
        assert accounting.epsilon(curator.log.events, 1e-6, t.PROMISES[relation].neighbours) <= 4.0
    alone = rows_of(X, LABELS, [], ())
    plan = planned(t.task_of(alone, t.PROMISES[relation], (), people=True), loss="log")
    _, _, curator = t.ran(plan, alone)
    curator.log.reconcile([plan.plan], t.PROMISES[relation].neighbours)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_cannot_be_told_from_none_leave_a_model_where_it_is(loss: str) -> None:
    few = rows_of(X[:10], (Y if loss == "squared" else LABELS)[:10], A[:10])
    for promise, rule in itertools.product(
        (t.ADDED, t.REPLACED), ("least-noise", "standard-error")
    ):
        plan = planned(t.task_of(few, promise, public_rows=None), rule, loss)
        outcome, _, curator = t.ran(plan, few)
        assert not outcome.coefficients.any()
        assert outcome.reason == Ended.NOTHING.value
        curator.log.reconcile([plan.plan], promise.neighbours)
        stated = planned(t.task_of(few, promise, public_rows=10), rule, loss)
        assert t.ran(stated, few)[0].coefficients.any()


def test_a_run_that_is_interrupted_leaves_a_beginning_of_its_plan_and_a_closed_curator() -> None:
    plan = planned(t.task_of(ROWS["log"], t.REPLACED), "standard-error", "log", rounds=6)
    curator = t.curator_for(plan, ROWS["log"])

    def watch(done: int, most: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan.run(curator, watch)
    whole = t.ran(plan, ROWS["log"])[2]
    assert curator.log.events == whole.log.events[: len(curator.log.events)]
    assert 0 < len(curator.log.events) < len(whole.log.events)
    with pytest.raises(PrivacyError):
        curator.answer(plan._sized())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"region": "sphere"}, "region"),
        ({"step_size": "small"}, "step_size"),
        ({"iterate": "best"}, "iterate"),
        ({"step_size": "decaying"}, "radius"),
        ({"clip": 0.0}, "clip"),
        ({"radius": -1.0}, "radius"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"sampling_rate": 0.5, "least": np.zeros(3)}, "all rows in every round"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        planned(t.task_of(ROWS["log"], t.ADDED), "equal", "log", **options)


def test_without_delta_noise_cannot_be_gaussian() -> None:
    for promise in (Promise(2.0, 0.0), Promise(2.0, 0.0, "sensitive_features")):
        with pytest.raises(InputError, match="delta"):
            planned(t.task_of(ROWS["log"], promise), loss="log")


# ---- networks
# --------------------------------------------------------------------------------------------------


def skeleton() -> Any:
    torch = pytest.importorskip("torch")
    from fairveil.models import Skeleton

    torch.manual_seed(3)
    return Skeleton.of(
        torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2)), 2, 2
    )


@pytest.mark.parametrize(
    ("relation", "rule", "rate"),
    [
        ("add", "least-noise", 0.2),
        ("replace", "given", 0.2),
        ("add", "standard-error", 1.0),
        ("replace", "least-noise", 1.0),
        ("groups", "least-noise", 1.0),
        ("groups", "given", 1.0),
    ],
)
def test_a_network_keeps_its_plan_in_secret_batches_too(
    relation: str, rule: str, rate: float
) -> None:
    promise, net = t.PROMISES[relation], skeleton()
    task = t.task_of(ROWS["log"], promise)
    given = GIVEN if rule == "given" else rule
    plan = planned(task, given, "log", rounds=2, skeleton=net, sampling_rate=rate, clip=1.0)
    outcome, shares, curator = t.ran(plan, ROWS["log"])
    curator.log.reconcile([plan.plan], promise.neighbours)
    price = accounting.epsilon(plan.plan, 1e-6, promise.neighbours)
    assert 0.99 * promise.epsilon <= price <= promise.epsilon
    assert accounting.epsilon(curator.log.events, 1e-6, promise.neighbours) <= price * (1 + 1e-9)
    assert outcome.coefficients.shape == net.start.shape
    sampled = [
        one for one in spelled_out(compose(curator.log.events)) if isinstance(one, PoissonSampled)
    ]
    assert len(sampled) == (2 if rate < 1 else 0)
    if shares.fixed:
        told = by_group(curator.log.events, 1e-6, promise.neighbours, 3)
        assert max(told) <= promise.epsilon * (1 + 1e-9)


def test_a_network_reports_the_errors_of_its_decisions() -> None:
    net = skeleton()
    plan = planned(
        t.task_of(ROWS["log"], t.EXACT),
        loss="log",
        skeleton=net,
        clip=1.0,
        rounds=10,
        iterate="last",
    )
    outcome, _, _ = t.ran(plan, ROWS["log"])
    assert (outcome.coefficients != net.start).any()
    from fairveil.models import NetworkModel

    model = NetworkModel(net, outcome.coefficients, classes=(0, 1), layout=ROWS["log"].layout)
    wrong = model.predict(X) != LABELS
    assert outcome.losses == pytest.approx([wrong[k == A].mean() for k in range(3)], abs=1e-6)
