"""Least squares with a budget shared among groups: plan and log, what each group spends, noise as
stated, exact without noise.

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

from fairveil.core import cost as accounting
from fairveil.core.cost import gaussian_mu
from fairveil.core.events import Gaussian
from fairveil.errors import InputError, PrivacyError
from fairveil.fairness.objectives import GroupLoss, LargestGroupLoss
from fairveil.methods.allocation import ALLOCATIONS, Allocation
from fairveil.methods.least_squares import Ended, RegressionTask
from fairveil.methods.tailoring import (
    TailoredRegression,
    plan_tailored_descent,
    plan_tailored_regression,
)
from fairveil.privacy import Promise
from group_prices import by_group

SIZES = (700, 250, 50)
X, Y, A = t.sample(SIZES)
ROWS = t.rows_of(X, Y, A)
GIVEN = np.array([1.0, 2.0, 5.0])
RULES: list[Any] = [*ALLOCATIONS, GIVEN]
TWO = (2, 3)


def planned(task: RegressionTask, rule: Any = "least-noise", **options: Any) -> TailoredRegression:
    limits = {name: options.pop(name) for name in ("spend", "least", "most") if name in options}
    return plan_tailored_regression(task, Allocation(rule, **limits), **options)


def two_columns(weights: bool = False) -> Any:
    """Rows in two sensitive columns, whose groups overlap."""
    rng = np.random.default_rng(1)
    other = np.array([rng.integers(2, size=len(Y)), A])
    return t.rows_of(X, Y, other, TWO, rng.random(len(Y)) if weights else None)


# ---- guarantee 1: plan, log and price
# ------------------------------------------------------------------------------------

WORLDS: list[Any] = [
    ("person", "product", False, True, False),
    ("total", "product", True, False, False),
    ("person", "marginal", False, True, False),
    ("total", "marginal", True, True, True),
    ("person", "product", True, False, True),
]


@pytest.mark.parametrize("rule", RULES, ids=[*ALLOCATIONS, "given"])
@pytest.mark.parametrize("relation", list(t.PROMISES))
def test_guarantee_1_the_log_is_the_plan_or_finer_and_the_plan_costs_the_promise(
    relation: str, rule: Any
) -> None:
    promise = t.PROMISES[relation]
    for spend, mode, weights, scales, people in WORLDS:
        marginal = mode == "marginal"
        rows = (
            two_columns(weights)
            if marginal
            else t.rows_of(X, Y, A, weights=np.full(len(Y), 0.7) if weights else None)
        )
        shares = np.array([1.0, 2.0, 1.0, 2.0, 5.0]) if marginal and rule is GIVEN else rule
        task = t.task_of(rows, promise, TWO if marginal else (3,), mode, people=people)
        plan = planned(task, shares, spend=spend, scales=scales)
        outcome, found, curator = t.ran(plan, rows)
        curator.log.reconcile([plan.plan], promise.neighbours)
        price = accounting.epsilon(plan.plan, 1e-6, promise.neighbours)
        done = accounting.epsilon(curator.log.events, 1e-6, promise.neighbours)
        assert done <= price + 1e-9
        assert price <= promise.epsilon
        if spend == "person" or not plan.is_fixed:
            assert price >= 0.999 * promise.epsilon
        if spend == "person":
            assert done >= 0.999 * promise.epsilon  # the worst person's is all spent
        assert np.isfinite(outcome.coefficients).all()
        columns = [slice(0, 2), slice(2, 5)] if marginal else [slice(0, 3)]
        assert [found.shares[column].sum() for column in columns] == pytest.approx(
            [1.0] * len(columns)
        )
        with pytest.raises(PrivacyError):
            curator.answer(plan._counts())


@pytest.mark.parametrize("relation", list(t.PROMISES))
def test_guarantee_1_a_plan_is_made_of_public_values_alone(relation: str) -> None:
    promise = t.PROMISES[relation]
    for rule in ALLOCATIONS:
        plans = []
        for seed in (0, 1):
            rows = t.rows_of(*t.sample((30, 20, 10), seed=seed))
            plans.append(planned(t.task_of(rows, promise, public_rows=60), rule, scales=True).plan)
        assert plans[0] == plans[1]


def test_guarantee_1_without_privacy_nothing_is_planned() -> None:
    assert planned(t.task_of(ROWS, t.EXACT)).plan is None


# ---- guarantee 1: what each group spends
# -----------------------------------------------------------------------------------


def test_guarantee_1_with_fixed_shares_a_group_spends_what_one_over_squared_noise_adds_up_to() -> (
    None
):
    for rule, spend in itertools.product(("equal", GIVEN), ("person", "total")):
        plan = planned(t.task_of(ROWS, t.ADDED), rule, spend=spend, scales=True)
        _, shares, curator = t.ran(plan, ROWS)
        told = by_group(curator.log.events, 1e-6, "add-remove", 3)
        common = t.common_square(curator.log.events)
        own = np.array([t.own_square(curator.log.events, k) for k in range(3)])
        for k in range(3):
            assert told[k] == pytest.approx(
                accounting.epsilon(Gaussian((common + own[k]) ** -0.5), 1e-6, "add-remove")
            )
        assert shares.fixed
        assert own / own.sum() == pytest.approx(shares.shares)
        assert (own.max() if spend == "person" else own.sum()) == pytest.approx(
            plan.last_part / plan.z**2
        )


@pytest.mark.parametrize("rule", ["standard-error", "size"])
def test_guarantee_1_with_shares_of_answers_a_group_spends_both_halves(rule: str) -> None:
    """The sum of what all share and of what her group's matrices cost, at half of delta each
    (statement/groups.py)."""
    plan = planned(t.task_of(ROWS, t.ADDED), rule, scales=True)
    _, shares, curator = t.ran(plan, ROWS)
    assert not shares.fixed
    told = by_group(curator.log.events, 1e-6, "add-remove", 3, fixed=False)
    common = accounting.epsilon(
        Gaussian(t.common_square(curator.log.events) ** -0.5), 5e-7, "add-remove"
    )
    for k in range(3):
        own = t.own_square(curator.log.events, k) ** -0.5
        assert told[k] == pytest.approx(
            common + accounting.epsilon(Gaussian(own), 5e-7, "add-remove")
        )
    # the smallest group has the largest share, and the weakest guarantee
    assert told[0] < told[1] < told[2]


@pytest.mark.parametrize("rule", [*ALLOCATIONS, "given"])
@pytest.mark.parametrize("relation", list(t.PROMISES))
def test_guarantee_1_people_at_the_end_of_every_clip_spend_what_their_group_is_told(
    relation: str, rule: str
) -> None:
    """A whole run's squared distance between two tables, over all releases in deviations of their
    noise, for the worst row of each group: below what the log says of that group, and near it
    (replace-one and groups: of the worst other group)."""
    promise = t.PROMISES[relation]
    x, y, a = t.sample((120, 60, 20))
    weighted = relation == "add"  # and the person counts as much as a row may

    def table(*extra: tuple[Any, float, int]) -> Any:
        more = [np.array(part) for part in zip(*extra, strict=True)] or [
            np.zeros((0, 2)),
            np.zeros(0),
            np.zeros(0, int),
        ]
        weights = np.append(np.ones(len(y)), [1.5] * len(extra)) if weighted else None
        return t.rows_of(
            np.vstack([x, more[0]]), np.append(y, more[1]), np.append(a, more[2]), weights=weights
        )

    far = {0: np.array([1e3, 0.0]), 1: np.array([0.0, -1e3]), 2: np.array([-1e3, 1e3])}
    ratios = []
    for k in range(3):
        if relation == "add":
            here, there = table(), table((far[k], 1.0, k))
        elif relation == "replace":
            here, there = table((far[(k + 1) % 3], 1.0, (k + 1) % 3)), table((far[k], -1.0, k))
        else:
            here, there = table((far[k], 1.0, (k + 1) % 3)), table((far[k], 1.0, k))
        plan = planned(t.task_of(here, promise, people=False), GIVEN if rule == "given" else rule)
        curator = t.ran(plan, here, 3, s.Recorded)[2]
        distance = s.moved(curator.tape, here, there, promise)
        told = by_group(curator.log.events, 1e-6, promise.neighbours, 3)[k]
        assert distance <= gaussian_mu(told, 1e-6) ** 2 * (1 + 1e-6)
        ratios.append(distance / gaussian_mu(told, 1e-6) ** 2)
    assert max(ratios) > (0.95 if relation == "add" else 0.4)
    if relation == "add":
        assert min(ratios) > 0.75


@pytest.mark.parametrize("rule", ["equal", "size", "standard-error", "least-noise"])
def test_limits_by_group_are_kept_over_the_whole_run(rule: str) -> None:
    least, most = gaussian_mu(1.5, 1e-6) ** 2, gaussian_mu(2.5, 1e-6) ** 2
    limits = {"least": np.full(3, least), "most": np.array([math.inf, most, most])}
    plan = planned(t.task_of(ROWS, t.ADDED), rule, scales=True, **limits)
    _, _, curator = t.ran(plan, ROWS)
    paid = [
        t.common_square(curator.log.events) + t.own_square(curator.log.events, k) for k in range(3)
    ]
    assert min(paid) >= least * (1 - 1e-9)
    assert max(paid[1:]) <= most * (1 + 1e-9)
    assert max(paid[1:]) == pytest.approx(most)
    assert paid[0] <= gaussian_mu(4.0, 1e-6) ** 2 * (1 + 1e-9)


def test_limits_that_the_plan_cannot_keep_are_refused_before_data_are_read() -> None:
    task = t.task_of(ROWS, t.ADDED)
    with pytest.raises(InputError, match="limits by group"):
        planned(task, "equal", least=np.full(3, gaussian_mu(4.5, 1e-6) ** 2))
    with pytest.raises(InputError, match="max_epsilon"):
        planned(task, "standard-error", most=np.full(3, gaussian_mu(0.1, 1e-6) ** 2))


# ---- guarantee 2
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("relation", list(t.PROMISES))
def test_guarantee_2_shares_and_coefficients_follow_from_what_was_answered(
    relation: str, mode: str
) -> None:
    """Every answer is told again, by somebody who holds no rows: the same shares and outcome to the
    bit."""
    rows = ROWS if mode == "product" else two_columns()
    for rule in ("least-noise", "standard-error", "size"):
        plan = planned(
            t.task_of(rows, t.PROMISES[relation], (3,) if mode == "product" else TWO, mode),
            rule,
            scales=True,
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
        other = t.ran(plan, rows, 5)[0]
        assert other.coefficients.tolist() != outcome.coefficients.tolist()


def test_guarantee_2_rows_in_another_order_have_the_same_answers_shares_and_coefficients() -> None:
    order = np.random.default_rng(0).permutation(len(Y))
    turned = t.rows_of(X[order], Y[order], A[order])
    for rule in ("least-noise", "standard-error"):
        plan = planned(t.task_of(ROWS, t.ADDED), rule, scales=True)
        one, other = t.ran(plan, ROWS), t.ran(plan, turned)
        assert one[0].coefficients.tolist() == other[0].coefficients.tolist()
        assert one[1].shares.tolist() == other[1].shares.tolist()


# ---- guarantee 3, and noise
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scales", [False, True])
@pytest.mark.parametrize("rule", ["least-noise", "standard-error"])
def test_guarantee_3_without_noise_it_is_weighted_least_squares(rule: str, scales: bool) -> None:
    weights = np.random.default_rng(0).random(len(Y))
    for given, people in ((None, True), (weights, False), (weights, True)):
        rows = t.rows_of(X, Y, A, weights=given)
        plan = planned(t.task_of(rows, t.EXACT, people=people), rule, scales=scales)
        outcome, shares, _ = t.ran(plan, rows)
        wanted = t.weighted_squares(X, Y, A, 3, given, alike=not people)
        assert outcome.coefficients == pytest.approx(wanted, abs=1e-9)
        assert shares.shares.sum() == pytest.approx(1.0)
        if given is None:
            assert outcome.losses == pytest.approx(t.group_errors(wanted, X, Y, A, 3) / 4, abs=1e-9)
            assert shares.counts == pytest.approx(SIZES)


def test_guarantee_3_marginal_groups_each_count_alike() -> None:
    rng = np.random.default_rng(1)
    both = np.array([rng.integers(2, size=len(Y)), A])
    rows = t.rows_of(X, Y, both, TWO)
    outcome, _, _ = t.ran(planned(t.task_of(rows, t.EXACT, TWO, "marginal")), rows)
    per_row = 1.0 / np.bincount(both[0])[both[0]] + 1.0 / np.bincount(both[1])[both[1]]
    r = np.column_stack([np.ones(len(Y)), X]) * np.sqrt(per_row)[:, np.newaxis]
    assert outcome.coefficients == pytest.approx(
        np.linalg.lstsq(r, Y * np.sqrt(per_row), rcond=None)[0], abs=1e-9
    )


@pytest.mark.parametrize("one_bound", [True, False])
def test_guarantee_3_bounded_losses_are_solved_as_by_scipy(one_bound: bool) -> None:
    """Half way between what the bounded losses are without a bound, and the least that they can be:
    SLSQP for both."""
    bounded = slice(0, 3) if one_bound else slice(2, 3)

    def least(of: Any, start: Any, **more: Any) -> Any:
        return optimize.minimize(
            of, start, method="SLSQP", options={"ftol": 1e-12, "maxiter": 300}, **more
        )

    def largest(c: Any) -> float:
        return float(t.group_errors(c, X, Y, A, 3)[bounded].max())

    free = t.weighted_squares(X, Y, A, 3)
    lowest = least(  # over (c, level)
        lambda v: v[-1],
        np.append(free, largest(free)),
        constraints={
            "type": "ineq",
            "fun": lambda v: v[-1] - t.group_errors(v[:-1], X, Y, A, 3)[bounded],
        },
    )
    bound = (lowest.fun + largest(free)) / 2
    assert lowest.fun < 0.98 * largest(free)
    asked = (LargestGroupLoss() if one_bound else GroupLoss(2)).at_most(bound / 4)
    outcome, _, _ = t.ran(planned(t.task_of(ROWS, t.EXACT, bounds=[asked])), ROWS)
    found = least(
        lambda c: t.group_errors(c, X, Y, A, 3).mean(),
        lowest.x[:-1],
        constraints={
            "type": "ineq",
            "fun": lambda c: bound - t.group_errors(c, X, Y, A, 3)[bounded],
        },
    )
    assert largest(found.x) <= bound * (1 + 1e-6)
    assert largest(outcome.coefficients) == pytest.approx(bound, rel=1e-5)
    assert t.group_errors(outcome.coefficients, X, Y, A, 3).mean() == pytest.approx(
        found.fun, rel=1e-5
    )
    assert outcome.coefficients == pytest.approx(found.x, abs=1e-3)
    assert outcome.broken == ()


def test_with_hardly_any_noise_released_standard_errors_are_true_ones() -> None:
    outcome, shares, _ = t.ran(planned(t.task_of(ROWS, t.PLENTY), "standard-error"), ROWS)
    pooled = t.weighted_squares(X, Y, A, 3, alike=False)
    squares = t.group_errors(pooled, X, Y, A, 3)
    assert shares.errors == pytest.approx(np.sqrt(squares), rel=1e-2)
    assert shares.shares == pytest.approx(squares / squares.sum(), rel=2e-2)
    assert shares.counts == pytest.approx(SIZES, abs=0.1)
    assert outcome.coefficients == pytest.approx(t.weighted_squares(X, Y, A, 3), abs=1e-2)


@pytest.mark.parametrize("relation", list(t.PROMISES))
def test_released_matrices_have_the_noise_of_their_share(relation: str) -> None:
    """200 releases, 10 entries of each group's matrix in each: a ratio of deviations is known
    within 1 / sqrt(2 * 2000) = 1.6 %; 7 % is more than four of these, so that a right one fails
    with a chance below 1e-4 for three groups. What is stated where rows are public is a bound:
    their longest row is shorter than the clip."""
    promise = t.PROMISES[relation]
    rows = t.rows_of(*t.sample((200, 60, 40)))
    plan = planned(t.task_of(rows, promise), GIVEN)
    tailored = 1.0 / np.sqrt(plan._shares(None, None).paid)
    above = np.triu_indices(4)
    scale = np.where(np.eye(4)[above] > 0, 1.0, math.sqrt(2.0))
    seen = []
    for seed in range(200):
        curator = t.curator_for(plan, rows, seed)
        told = plan._inner.matrices(curator, None, tailored)
        curator.close()
        upper = np.array([one[above] for one in told.released * told.rows / told.unit])
        seen.append(upper * scale / told.noise[:, np.newaxis])
    ratio = np.sqrt(np.array(seen).var(axis=0).mean(axis=1))
    if relation == "groups":
        assert ratio.max() <= 1.0
        assert ratio.min() > 0.75
    else:
        assert np.abs(ratio - 1.0).max() < 0.07


# ---- edges
# --------------------------------------------------------------------------------------------------

EDGES: dict[str, Any] = {
    "a group of one row": (X, Y, np.where(np.arange(len(Y)) == 0, 2, A % 2)),
    "an empty listed group": (X, Y, A % 2),
    "a constant feature": (np.column_stack([X[:, 0], np.full(len(Y), 0.5)]), Y, A),
    "a column twice": (np.column_stack([X[:, 0], X[:, 0]]), Y, A),
    "a column of zeros": (np.column_stack([X[:, 0], np.zeros(len(Y))]), Y, A),
    "a column that is nearly constant": (
        np.column_stack([X[:, 0], 1.0 / 3.0 + 1e-13 * X[:, 1]]),
        Y,
        A,
    ),
    "a target that never changes": (X, np.full(len(Y), 0.25), A),
}


@pytest.mark.parametrize("edge", list(EDGES))
@pytest.mark.parametrize("relation", [*t.PROMISES, "none"])
def test_at_the_edges_there_is_an_answer(relation: str, edge: str) -> None:
    x, y, a = EDGES[edge]
    rows = t.rows_of(x, y, a)
    promise = t.PROMISES.get(relation, t.EXACT)
    for rule, scales in (("least-noise", True), ("standard-error", False), ("size", True)):
        plan = planned(t.task_of(rows, promise), rule, scales=scales)
        outcome, shares, curator = t.ran(plan, rows)
        assert np.isfinite(outcome.coefficients).all()
        assert np.isfinite(outcome.losses).all()
        assert shares.shares.sum() == pytest.approx(1.0)
        if promise.is_private:
            assert (
                accounting.epsilon(curator.log.events, 1e-6, promise.neighbours) <= promise.epsilon
            )
        else:
            errors = t.group_errors(
                outcome.coefficients, x, y, a, 3 if edge != "an empty listed group" else 2
            )
            groups = len(errors)
            best = t.group_errors(t.weighted_squares(x, y, a, groups), x, y, a, groups).mean()
            assert errors.mean() == pytest.approx(best, abs=1e-6)


def test_a_sum_of_residuals_that_is_lost_in_noise_makes_shares_equal() -> None:
    """So small an epsilon that half of the sums are negative: of three groups all are positive in
    one of eight runs."""
    promise = Promise(0.02, 1e-6)
    fallen = 0
    for seed in range(6):
        outcome, shares, curator = t.ran(
            planned(t.task_of(ROWS, promise), "standard-error"), ROWS, seed
        )
        assert np.isfinite(outcome.coefficients).all()
        if "no information" in shares.why:
            fallen += 1
            assert shares.shares == pytest.approx(np.full(3, 1 / 3))
            assert np.isnan(shares.errors).any()
        assert accounting.epsilon(curator.log.events, 1e-6, "add-remove") <= 0.02
    assert fallen >= 2  # a chance of 1 in 37000 otherwise
    assert outcome.reason == Ended.NOTHING.value


@pytest.mark.parametrize("plan", [plan_tailored_descent, plan_tailored_regression])
def test_no_group_is_smaller_than_two_deviations_of_its_count(plan: Any) -> None:
    rows = t.rows_of(*t.sample((900, 5, 5)))
    made = plan(t.task_of(rows, Promise(0.05, 1e-6)), Allocation("standard-error"))
    least = [t.ran(made, rows, seed)[1].counts.min() for seed in range(3)]
    assert least == pytest.approx([2.0 * made._count_noise] * 3)
    assert made._count_noise > 5.0


def test_with_one_group_there_is_nothing_to_share() -> None:
    rows = t.rows_of(X, Y, np.zeros(len(Y), int), (1,))
    for promise in t.PROMISES.values():
        events = []
        for rule in ("least-noise", "standard-error", "equal"):
            plan = planned(t.task_of(rows, promise, (1,)), rule, scales=True)
            _, shares, curator = t.ran(plan, rows)
            assert shares.fixed
            assert shares.shares.tolist() == [1.0]
            events.append(accounting.epsilon(curator.log.events, 1e-6, promise.neighbours))
        assert max(events) <= promise.epsilon
    rows_alone = t.rows_of(X, Y, [], ())
    outcome, _, _ = t.ran(planned(t.task_of(rows_alone, t.EXACT, (), people=True)), rows_alone)
    assert outcome.coefficients == pytest.approx(
        t.weighted_squares(X, Y, A, 3, alike=False), abs=1e-9
    )


def test_without_delta_gaussian_noise_is_refused() -> None:
    with pytest.raises(InputError, match="delta"):
        planned(t.task_of(ROWS, Promise(1.0, 0.0)))


def test_a_run_that_is_interrupted_has_a_closed_curator() -> None:
    plan = planned(t.task_of(ROWS, t.ADDED, bounds=[LargestGroupLoss().at_most(0.001)]), rounds=3)
    curator = t.curator_for(plan, ROWS)

    def watch(done: int, most: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan.run(curator, watch)
    with pytest.raises(PrivacyError):
        curator.answer(plan._counts())
