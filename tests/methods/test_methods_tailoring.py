"""Shares of a budget by group: nobody spends more than the budget, by enumerated people; limits,
the least noise, and errors.

What a person contributes is a vector of norm 1 in the coordinates of her group, over that group's
noise; neighbours are all pairs of such people. Budgets, shares and limits are random, from seeds
that are fixed.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from covering import pairs
from fairveil.curator import CellCounts
from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.methods.allocation import (
    ALLOCATIONS,
    NO_INFORMATION,
    SMALLEST,
    SPENDS,
    Allocation,
    afforded,
    by_column,
    checked_rule,
    each_column,
    factors_of,
    least_noise,
    share_out,
    spent_by_rows,
    worst,
)
from fairveil.privacy import Promise

ADDED = Promise(1.0, 1e-6)
REPLACED = Promise(1.0, 1e-6, neighbours="replace-one")
SENSITIVE = Promise(1.0, 1e-6, protects="sensitive_features")
PROMISES = [ADDED, REPLACED, SENSITIVE]
IDS = ["add-remove", "replace-one", "sensitive"]
ROOT = math.sqrt(2.0)
CONTRIBUTIONS = {
    1.0: [[0.0, 0.0], [1.0, 0.0]],
    ROOT: [[1.0, 0.0], [0.0, 1.0]],
    2.0: [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]],
}
"""How far a row moves a sum within its group: losses in [0, 1], Gram matrices of a row that is
turned, vectors of any sign."""


def enumerated(paid: Any, promise: Promise, within: float) -> float:
    """The largest squared distance, in deviations of the noise, of two tables that differ in one
    person."""

    def told(group: int, vector: Any) -> Any:
        out = np.zeros((len(paid), 2))
        out[group] = np.sqrt(paid[group]) * np.array(vector)
        return out

    people = [(k, v, told(k, v)) for k in range(len(paid)) for v in CONTRIBUTIONS[within]]
    if promise.neighbours == "add-remove":
        return max(float((one**2).sum()) for _, _, one in people)
    same_vector = promise.protects == "sensitive_features"
    pairs = itertools.combinations(people, 2)
    moves = [
        float(((one - two) ** 2).sum())
        for (_, v, one), (_, w, two) in pairs
        if v == w or not same_vector
    ]
    return max(moves, default=0.0)


def draws(many: int = 40) -> Any:
    """Numbers of groups and a generator for each."""
    return [(1 + seed % 6, np.random.default_rng(seed)) for seed in range(many)]


# ---- guarantee 1
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("within", list(CONTRIBUTIONS))
@pytest.mark.parametrize("promise", PROMISES, ids=IDS)
def test_guarantee_1_the_worst_pair_is_the_worst_of_all_people(
    promise: Promise, within: float
) -> None:
    for groups, rng in draws(24):
        paid = rng.exponential(size=groups) * 10.0 ** rng.uniform(-3, 3, size=groups)
        assert worst(paid, promise, within) == pytest.approx(
            enumerated(paid, promise, within), rel=1e-12
        )


@pytest.mark.parametrize(
    ("spend", "within", "promise"),
    pairs(SPENDS, list(CONTRIBUTIONS), PROMISES),
)
def test_guarantee_1_no_shares_cost_anybody_more_than_the_budget(
    promise: Promise, within: float, spend: str
) -> None:
    for groups, rng in draws(24):
        if groups == 1 and promise is SENSITIVE:
            continue  # one group: nothing that is protected can be told
        shares, budget = rng.exponential(size=groups), 10.0 ** rng.uniform(-4, 2)
        paid = afforded(shares, budget, promise, within, spend=spend)
        cost = enumerated(paid, promise, within)
        assert cost <= budget * (1.0 + 1e-12)
        if spend == "person":
            assert cost == pytest.approx(budget, rel=1e-9)
        else:
            inside = max(within**2, 1.0) if promise is REPLACED else 1.0
            assert inside * paid.sum() == pytest.approx(budget, rel=1e-9)
        assert np.allclose(paid / paid.max(), np.maximum(shares / shares.max(), SMALLEST))


@pytest.mark.parametrize("promise", PROMISES, ids=IDS)
def test_a_share_is_never_so_small_that_its_noise_is_all(promise: Promise) -> None:
    paid = afforded(np.array([1.0, 0.0, 1e-12]), 1.0, promise, 2.0)
    assert paid[1:] == pytest.approx(SMALLEST * paid[0])


# ---- guarantee 2
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spend", SPENDS)
@pytest.mark.parametrize("promise", PROMISES, ids=IDS)
def test_guarantee_2_limits_are_kept_and_what_they_leave_is_spent(
    promise: Promise, spend: str
) -> None:
    """Lower limits that together cost at most half; upper ones of any size, now and then all of
    them below the budget."""
    stopped = 0
    for groups, rng in draws(30):
        if groups == 1:
            continue
        shares, high = rng.exponential(size=groups), 10.0 ** rng.uniform(-2, 1, size=groups)
        low = np.minimum(high, 0.1 * rng.random(groups) / groups)
        paid = afforded(shares, 1.0, promise, 2.0, spend=spend, least=low, most=high)
        assert (low <= paid).all()
        assert (paid <= high).all()

        def spent(r: Any) -> float:
            inside = 4.0 if promise is REPLACED else 1.0
            return enumerated(r, promise, 2.0) if spend == "person" else inside * float(r.sum())

        assert spent(paid) <= 1.0 + 1e-9
        all_at_most = np.allclose(paid, high)
        assert all_at_most or spent(paid) == pytest.approx(1.0, rel=1e-6)
        stopped += all_at_most
        free = (paid > low * (1 + 1e-9)) & (paid < high * (1 - 1e-9))
        rates = paid[free] / shares[free]
        assert not free.any() or np.ptp(rates) < 1e-6 * rates.max()
    assert stopped < 20


@pytest.mark.parametrize("promise", PROMISES, ids=IDS)
def test_limits_that_cannot_be_kept_together_are_refused(promise: Promise) -> None:
    shares = np.ones(3)
    refused: list[Any] = [
        {"least": np.array([1.1, 0.0, 0.0])},
        {"least": np.full(3, 0.6), "spend": "total"},
        {"least": np.array([0.2, 0.0, 0.0]), "most": np.array([0.1, 1.0, 1.0])},
    ]
    if promise is not ADDED:
        refused.append({"least": np.full(3, 0.6)})  # two people's
    for options in refused:
        with pytest.raises(InputError, match="limits by group that epsilon can keep"):
            afforded(shares, 1.0, promise, 2.0, **options)
    with pytest.raises(InputError, match="max_epsilon"):
        afforded(shares, 1.0, promise, 2.0, most=np.array([0.0, 1.0, 1.0]))


# ---- shares
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promise", "within"), [(ADDED, 2.0), (REPLACED, ROOT), (REPLACED, 2.0), (SENSITIVE, 2.0)]
)
@pytest.mark.parametrize("spend", SPENDS)
def test_the_shares_of_least_noise_are_an_optimisers(
    promise: Promise, within: float, spend: str
) -> None:
    """min sum_k w_k^2 / r_k over all r that keep the budget: convex, with linear constraints,
    started from equal r."""
    for groups, rng in draws(18):
        if groups == 1 and promise is SENSITIVE:
            continue
        weights = rng.exponential(size=groups) + 0.05

        def noise(r: Any, weights: Any = weights) -> float:
            return float((weights**2 / r).sum())

        paid = afforded(least_noise(weights, promise, spend), 1.0, promise, within, spend=spend)
        lines = _limits(groups, promise, within, spend)
        assert (lines @ paid <= 1.0 + 1e-9).all()
        found = optimize.minimize(
            noise,
            np.full(groups, 0.5 / lines.sum(axis=1).max()),
            jac=lambda r, weights=weights: -(weights**2) / r**2,
            bounds=[(1e-6, None)] * groups,
            constraints={
                "type": "ineq",
                "fun": lambda r, lines=lines: 1.0 - lines @ r,
                "jac": lambda r, lines=lines: -lines,
            },
            method="SLSQP",
            options={"ftol": 1e-10, "maxiter": 500},
        )
        kept = found.x / max(1.0, float((lines @ found.x).max()))
        assert noise(paid) <= noise(kept) * (1.0 + 1e-6)
        assert noise(kept) <= noise(paid) * (1.0 + 1e-3)  # it came as near


def _limits(groups: int, promise: Promise, within: float, spend: str) -> Any:
    """Rows a with a . r <= 1: every pair of neighbours, or the sum."""
    alone, pairs = np.eye(groups), list(itertools.combinations(range(groups), 2))
    both = np.array([alone[i] + alone[j] for i, j in pairs]).reshape(-1, groups)
    inside = max(within**2, 1.0)
    if spend == "total":
        return np.full((1, groups), inside if promise is REPLACED else 1.0)
    if promise is SENSITIVE:
        return both
    return alone if promise is ADDED else np.concatenate([inside * alone, both])


def test_standard_errors_are_roots_of_means_and_shares_their_squares() -> None:
    sums, counts = np.array([8.0, 2.0, 3.0, 1.0]), np.array([2.0, 8.0, 3.0, 4.0])
    columns = [slice(0, 2), slice(2, 4)]
    rule = Allocation("standard-error")
    shares, errors, why = share_out(rule, ADDED, columns, 4, sums=sums, counts=counts)
    assert errors is not None
    assert errors.tolist() == [2.0, 0.5, 1.0, 0.5]
    assert shares == pytest.approx([4.0 / 4.25, 0.25 / 4.25, 0.8, 0.2])
    assert "no information" not in why


@pytest.mark.parametrize("lost", [-3.0, 0.0])
def test_a_sum_that_is_not_positive_is_no_information_and_shares_are_equal(lost: float) -> None:
    """In its own column; another column's shares follow its errors still."""
    sums, counts = np.array([8.0, lost, 3.0, 1.0]), np.ones(4)
    columns = [slice(0, 2), slice(2, 4)]
    shares, errors, why = share_out(
        Allocation("standard-error"), ADDED, columns, 4, sums=sums, counts=counts
    )
    assert shares == pytest.approx([0.5, 0.5, 0.75, 0.25])
    assert errors is not None
    assert np.isnan(errors).tolist() == [False, True, False, False]
    assert why.startswith(NO_INFORMATION.split("{")[0])


@pytest.mark.parametrize("promise", PROMISES, ids=IDS)
def test_shares_add_up_in_every_column_whatever_was_given(promise: Promise) -> None:
    columns, counts, sums = (
        [slice(0, 2), slice(2, 5)],
        np.array([10.0, 40.0, 5.0, 20.0, 25.0]),
        np.arange(1.0, 6.0),
    )
    rules: list[Any] = [
        *ALLOCATIONS,
        np.array([3.0, 1.0, 200.0, 200.0, 400.0]),
        np.array([1e-3, 2e-3, 1.0, 1.0, 1.0]),
    ]
    for rule, spend in itertools.product(rules, SPENDS):
        shares, errors, why = share_out(
            Allocation(rule, spend), promise, columns, 5, sums=sums, counts=counts
        )
        assert [shares[column].sum() for column in columns] == pytest.approx([1.0, 1.0])
        assert (shares > 0).all()
        assert (errors is not None) == (isinstance(rule, str) and rule == "standard-error")
        assert why
    given, _, why = share_out(Allocation(rules[4]), promise, columns, 5)
    assert given == pytest.approx([0.75, 0.25, 0.25, 0.25, 0.5])
    assert why == "as given"
    small, _, _ = share_out(Allocation("size"), promise, [slice(0, 2)], 2, counts=counts[:2])
    assert small == pytest.approx([0.8, 0.2])
    for rule in ("standard-error", "size", "equal"):  # nothing was released
        assert share_out(Allocation(rule), promise, columns, 5)[0] == pytest.approx(
            [1 / 2] * 2 + [1 / 3] * 3
        )


# ---- one sum for all groups
# ----------------------------------------------------------------------------------------------


def test_rows_count_by_one_over_their_groups_size() -> None:
    assert factors_of(np.array([100.0, 10.0, 40.0])) == pytest.approx([0.1, 1.0, 0.25])
    assert factors_of(np.array([7.0])).tolist() == [1.0]
    alike = factors_of(np.array([5.0, 5.0, 5.0]))
    assert alike == pytest.approx([1.0, 1.0, 1.0], rel=1e-5)
    assert len(set(alike.tolist())) == 2  # distinguished slightly


@pytest.mark.parametrize("spend", SPENDS)
def test_of_one_sum_people_spend_by_the_square_of_their_factor(spend: str) -> None:
    """A person's distance is her factor over the noise; the noise is that of the worst, who has
    `part` of the budget."""
    for groups, rng in draws(12):
        factors = rng.random(groups) + 1e-3
        part, paid = spent_by_rows(factors, spend)
        noise = factors.max() / math.sqrt(part)
        assert part * paid == pytest.approx((factors / noise) ** 2)
        assert (part * paid.max() if spend == "person" else part * paid.sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_overlapping_groups_are_asked_about_column_by_column(mode: Any) -> None:
    cells = Cells(((0, 1), ("a", "b", "c")), mode, ("sex", "place"))
    measurements = by_column(cells, CellCounts, np.arange(1.0, 1.0 + cells.count))
    assert [one.count for one in each_column(cells)] == ([6] if mode == "product" else [2, 3])
    assert np.concatenate(
        [np.ravel(measurement.multiplier) for measurement in measurements]
    ).tolist() == list(range(1, 1 + cells.count))
    assert all(
        measurement.question.cells == one
        for measurement, one in zip(measurements, each_column(cells), strict=True)
    )


# ---- what is refused
# --------------------------------------------------------------------------------------------------


def test_a_rule_is_a_name_or_a_positive_number_for_each_group() -> None:
    assert [checked_rule(name, ["f", "m"]) for name in ALLOCATIONS] == list(ALLOCATIONS)
    for given in ({"m": 1, "f": 3}, [3, 1], (3.0, 1.0), np.array([3.0, 1.0])):
        assert np.asarray(checked_rule(given, ["f", "m"])).tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    "given",
    [
        "equally",
        {"f": 1.0},
        {"f": 1.0, "m": 1.0, "x": 1.0},
        {"f": 1.0, "m": "much"},
        {"f": 1.0, "m": 0.0},
        {"f": 1.0, "m": -1.0},
        {"f": 1.0, "m": math.nan},
        {"f": 1.0, "m": math.inf},
        [1.0],
        [[1.0, 2.0]],
        3.0,
        None,
        object,
    ],
    ids=str,
)
def test_other_rules_are_refused_by_name(given: Any) -> None:
    with pytest.raises(InputError, match="allocation"):
        checked_rule(given, ["f", "m"])
