"""The sample-size planner: its bounds against exact probabilities and simulated loops, its orders,
its bad input."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaincc

import fairveil as fv
from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.study import sample_size as bounds
from fairveil.study.sample_size import Decisions

SETS: dict[str, dict[str, int]] = {
    "list": {"candidates": 40},
    "convex": {"dimension": 3},
    "vc": {"vc": 2},
}


def rows(
    alpha: float = 0.05, theorem: str = "Theorem 5.2", *, count: str = "rows", **options: Any
) -> int:
    options = {"groups": 4, "candidates": 40} | options
    (line,) = [
        one
        for one in fv.study.plan_sample_size(alpha, **options).table()
        if one["theorem"] == theorem
    ]
    return int(line[count])


def setting(alpha: float, **options: Any) -> bounds.SampleSizePlan:
    values: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "failure": 0.1,
        "groups": 3,
        "rows_in": 1,
        "neighbours": "replace-one",
    }
    return bounds.SampleSizePlan(alpha, **({"lipschitz": (1.0, 1.0)} | values | options))


# ---- against what happens
# -----------------------------------------------------------------------------------------------


def planes(rng: np.random.Generator, groups: int) -> Any:
    """A convex function of Lipschitz constant 1: the largest of a few planes whose slopes have
    length at most 1."""
    slopes = rng.standard_normal((3, groups))
    slopes /= np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1.0)
    return lambda losses: (losses @ slopes.T).max(axis=-1)


@pytest.mark.parametrize("rows_in", [1, 3])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_an_excess_above_alpha_is_no_likelier_than_asked(rows_in: int, neighbours: str) -> None:
    """Exact probabilities of the exponential mechanism, with as many rows as Theorem 5.2 asks for,
    on 150 problems."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for trial in range(150):
        count, alpha = int(rng.choice([2, 10, 200])), float(rng.choice([0.05, 0.2]))
        one = setting(
            alpha, rows_in=rows_in, neighbours=neighbours, epsilon=float(rng.choice([0.2, 1.0]))
        )
        n = bounds.choice_rows(one, Decisions("candidates", count), one.steepness)
        losses = rng.dirichlet(np.ones(4), count)[:, :3] if rows_in == 1 else rng.random((count, 3))
        f, level = planes(rng, 3)(losses), planes(rng, 3)(losses)
        if trial % 2:  # the worst case: one decision is right, all others are off by just too much
            f, level = np.where(np.arange(count) == 0, 0.0, alpha * (1 + 1e-9)), np.zeros(count)
        g = level - np.quantile(level, 0.4)
        h = f + one.penalty * np.maximum(g, 0.0)
        widest = 2.0 * one.steepness * one.moved / n
        weights = np.exp(-one.epsilon * (h - h.min()) / widest)
        bad = (f > f[g <= 0].min() + alpha) | (g > alpha)
        worst = max(worst, float(weights[bad].sum() / weights.sum()))
        assert weights[bad].sum() / weights.sum() <= one.failure
    assert worst > 0.05  # nothing much is given away where all others are equally bad


@pytest.mark.parametrize("rows_in", [1, 2, 3, 5])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_no_neighbour_moves_losses_further_and_no_data_lie_further_apart(
    rows_in: int, neighbours: str
) -> None:
    """Rows are all 0-1 vectors with `rows_in` places of five, where losses are 0 or 1."""
    places = list(itertools.combinations(range(5), rows_in))
    made = {
        tuple(int(j in place and bit >> place.index(j) & 1) for j in range(5))
        for place in places
        for bit in range(2**rows_in)
    }
    every = np.array(sorted(made), float)
    one = setting(0.1, groups=5, rows_in=rows_in, neighbours=neighbours)
    apart = np.linalg.norm(every[:, None] - every[None], axis=-1)
    moves = apart if neighbours == "replace-one" else np.linalg.norm(every, axis=-1)
    assert moves.max() == pytest.approx(one.moved)
    assert apart.max() == pytest.approx(one.diameter)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("theta", [0.02, 0.3])
def test_the_quantile_of_a_convex_set_is_never_passed(dimension: int, theta: float) -> None:
    """Exact distribution on a fine grid of [-1, 1]^P, convex scores in units of R / epsilon; a cone
    comes as close as one likes."""
    quantile = Decisions("dimension", dimension).quantile(1.0, theta)
    assert gammaincc(dimension, quantile) == pytest.approx(theta)
    rng = np.random.default_rng(dimension)
    axis = np.linspace(-1.0, 1.0, 40001 if dimension == 1 else 501)
    points = np.stack(np.meshgrid(*[axis] * dimension), axis=-1).reshape(-1, dimension)
    closest = 0.0
    for trial in range(25):
        centre = rng.random(dimension) - 0.5
        away = points - centre
        kinds = [
            np.linalg.norm(away, axis=1) * 30,
            np.abs(away).max(axis=1) * rng.choice([3.0, 40.0]),
            (away @ rng.standard_normal((dimension, 4))).max(axis=1) * 10,
            (away**2).sum(axis=1) * 50,
        ]
        score = kinds[trial % 4]
        excess = score - score.min()
        weights = np.exp(-excess)
        chance = float(weights[excess > quantile].sum() / weights.sum())
        closest = max(closest, chance)
        assert chance <= theta * 1.01
    assert closest > 0.8 * theta


def test_a_convex_oracles_rows_hold_on_a_grid() -> None:
    """Theorem 5.2 for a convex set: f the largest of three convex losses of a decision in [0, 1],
    exact probabilities."""
    points = np.linspace(0.0, 1.0, 20001)
    for alpha, epsilon in ((0.1, 1.0), (0.03, 0.3)):
        one = setting(alpha, epsilon=epsilon)
        n = bounds.choice_rows(one, Decisions("dimension", 1), one.steepness)
        losses = np.stack([(points - centre) ** 2 / 3.0 for centre in (0.1, 0.5, 0.9)], axis=1)
        f, g = losses.max(axis=1), losses[:, 0] - 0.05
        h = f + one.penalty * np.maximum(g, 0.0)
        weights = np.exp(-epsilon * n * (h - h.min()) / (2.0 * one.steepness * one.moved))
        bad = (f > f[g <= 0].min() + alpha) | (g > alpha)
        assert weights[bad].sum() / weights.sum() <= one.failure


@pytest.mark.parametrize("kind", ["candidates", "dimension"])
def test_the_mean_of_calls_is_no_larger_than_said(kind: str) -> None:
    """Weighted means of Gamma variables; false-alarm rate below 1e-6: at most 0.1 of 4,000 means
    expected, 0.13 allowed."""
    rng = np.random.default_rng(3)
    for calls in (1, 3, 50, 400):
        decisions = Decisions(kind, 5)
        limit = float(decisions.mean(1e6, np.array(float(calls)), 0.1)) - decisions.level(1e6)
        weights = 2.0 * np.arange(1, calls + 1) / (calls * (calls + 1.0))
        means = rng.gamma(decisions.shape, size=(4000, calls)) @ weights
        assert (means > limit).mean() <= 0.13


def test_the_corrected_loop_keeps_its_bound() -> None:
    """The loop itself at the planned rows and rounds: exponential mechanism by exact probabilities,
    Gaussian releases."""
    rng = np.random.default_rng(4)
    alpha, failures = 1.0, 0
    one = setting(alpha, groups=3, lipschitz=(1.0, 0.5), epsilon=2.0)
    n, rounds = bounds.loop_rows(one, Decisions("candidates", 12))
    promise = fv.Promise(one.epsilon, one.delta, neighbours="replace-one")
    found = fv.privacy.calibrate(
        promise, lambda z: fv.privacy.events.ZeroConcentrated(1 / (2 * z * z))
    )
    rho = 1 / (2 * found.multiplier**2)
    noise = one.moved * math.sqrt(rounds / (2.0 * rho / 2)) / n
    rate = math.sqrt(8.0 * rho / 2 / rounds)
    mu = alpha / one.steepness**2
    for _ in range(3):
        losses = rng.dirichlet(np.ones(4), 12)[:, :3]
        slopes = rng.standard_normal((2, 3))
        slopes /= np.linalg.norm(slopes, axis=1, keepdims=True)
        level = float(np.quantile(losses @ slopes[1], 0.3))
        pieces = np.array([slopes[0], slopes[0] + one.penalty * 0.5 * slopes[1]])
        # h is the larger of two planes; its envelope is known
        levels = np.array([0.0, -one.penalty * 0.5 * level])
        mean, share = losses.mean(axis=0), np.zeros(12)
        for t in range(rounds):
            w = _envelope_slope(mean, pieces, levels, mu)
            scores = losses @ w
            weights = np.exp(
                -rate * n * (scores - scores.min()) / (2.0 * one.moved * np.linalg.norm(w))
            )
            choice = int(rng.choice(12, p=weights / weights.sum()))
            step = 2.0 / (t + 2.0)
            mean = (1 - step) * mean + step * (losses[choice] + noise * rng.standard_normal(3))
            share = (1 - step) * share + step * (np.arange(12) == choice)
        reached = float((pieces @ (share @ losses) + levels).max())
        best = min(float((pieces @ each + levels).max()) for each in losses)
        failures += reached > best + alpha
    assert failures == 0


def _envelope_slope(x: Any, pieces: Any, levels: Any, mu: float) -> Any:
    """The gradient of the Moreau envelope of the larger of two planes: between their slopes."""
    a, b = pieces
    apart = b - a
    share = np.clip(
        ((x - mu * a) @ apart + levels[1] - levels[0]) / (mu * (apart @ apart)), 0.0, 1.0
    )
    return a + share * apart


# ---- orders
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decisions", SETS)
@pytest.mark.parametrize("theorem", ["Theorem 5.2", "Theorem 5.10", "Corollary 5.11"])
def test_more_is_asked_of_what_is_harder(theorem: str, decisions: str) -> None:
    chosen = {"candidates": None} | SETS[decisions]
    base = rows(0.1, theorem, **chosen)
    ((name, size),) = SETS[decisions].items()
    assert rows(0.05, theorem, **chosen) > base
    assert rows(0.1, theorem, epsilon=0.5, **chosen) > base
    assert rows(0.1, theorem, failure=0.01, **chosen) > base
    assert rows(0.1, theorem, **(chosen | {name: 10 * size})) > base
    assert rows(0.1, theorem, rows_in=2, **chosen) > base
    assert rows(0.1, theorem, groups=16, rows_in=16, **chosen) > rows(
        0.1, theorem, rows_in=4, **chosen
    )
    if theorem != "Theorem 5.10":
        assert rows(0.1, theorem, lipschitz=(2.0, 1.0), **chosen) > base
        assert rows(0.1, theorem, lipschitz=(1.0, 2.0), **chosen) > base
    if theorem == "Corollary 5.11":
        assert rows(0.1, theorem, delta=1e-12, **chosen) > base
        assert rows(0.1, theorem, groups=64, **chosen) > base  # noise on every coordinate
    if decisions != "vc":
        assert rows(0.1, theorem, neighbours="add-remove", **chosen) < base


ORDERS = {  # theorem: what is counted, powers of 1/alpha and of K (every row in all K groups)
    "Theorem 5.2": ("rows", 2.0, 1.0),
    "Theorem 5.5": ("calls", 4.0, 2.0),
    "Theorem 5.10": ("rows", 1.0, 0.5),
    "Corollary 5.11": ("rows", 4.0, None),
    "Theorem 6.1": ("rows", 1.0, 1.0),
    "Theorem 6.2": ("rows", 1.0, 0.5),
}


@pytest.mark.parametrize("theorem", ORDERS)
def test_orders_in_alpha_and_in_groups_are_the_theorems(theorem: str) -> None:
    count, of_alpha, of_groups = ORDERS[theorem]
    options: dict[str, Any] = {"count": count, "epsilon": 0.01}

    def power(few: int, many: int, ratio: float) -> float:
        return math.log(many / few) / math.log(ratio)

    small = [rows(alpha, theorem, groups=4, rows_in=4, **options) for alpha in (1e-4, 1e-3)]
    assert power(small[1], small[0], 10.0) == pytest.approx(of_alpha, abs=0.02)
    large = [rows(1e-4, theorem, groups=k, rows_in=k, **options) for k in (10_000, 100)]
    found = power(large[1], large[0], 100.0)
    if of_groups is None:  # K^2 (ln |C| + ...) + K^2.5
        assert 2.0 <= found <= 2.5
    else:
        assert found == pytest.approx(of_groups, abs=0.02)
    one_each = [rows(1e-4, theorem, groups=k, **options) for k in (10_000, 100)]
    if theorem == "Theorem 5.2":  # where each row is in one group, K is no matter
        assert one_each[0] == one_each[1]


def test_dimension_and_vc_dimension_enter_in_the_first_power() -> None:
    for name in ("dimension", "vc"):
        few, many = (rows(0.01, candidates=None, **{name: size}) for size in (100, 1000))
        assert math.log10(many / few) == pytest.approx(1.0, abs=0.1)


def test_sauers_lemma_is_solved_for_the_rows_themselves() -> None:
    one = setting(0.05)
    n = bounds.choice_rows(one, Decisions("vc", 3), one.steepness)
    exact = sum(math.comb(n, i) for i in range(4))

    def excess(labellings: float, many: int) -> float:
        return 2.0 * one.steepness * one.moved * (labellings + math.log(10.0)) / many

    assert excess(math.log(exact), n) <= one.alpha
    assert excess(3 * math.log(math.e * (n - 1) / 3), n - 1) > one.alpha
    assert Decisions("vc", 50).level(10.0) == pytest.approx(10 * math.log(2.0))
    for v, many in itertools.product((1, 3, 10), (1, 2, 5, 20, 100)):
        assert (
            Decisions("vc", v).level(many)
            >= math.log(sum(math.comb(many, i) for i in range(v + 1))) - 1e-12
        )


def test_the_least_is_the_least() -> None:
    for wanted in (1, 2, 3, 17, 1000, 10**12 + 7):
        assert bounds.least(lambda n, wanted=wanted: n >= wanted) == wanted


# ---- the result
# --------------------------------------------------------------------------------------------------


def test_the_result_says_all_in_words_in_a_table_and_in_json() -> None:
    plan = fv.study.plan_sample_size(0.1, groups=4, candidates=100, dimension=5, vc=3)
    table = plan.table()
    assert [line["theorem"] for line in table].count("Corollary 5.11") == 3
    assert {line["bound"] for line in table} == {
        "upper bound, constants ours",
        "lower bound, order only: constant 1",
    }
    text = str(plan)
    for line in table:
        assert line["theorem"] in text
        assert line["rows"] is None or f"{line['rows']:,}" in text
        assert line["calls"] is None or f"{line['calls']:,}" in text
    read = json.loads(plan.to_json())
    assert read["lines"] == table
    assert read["penalty"] == pytest.approx(1 + math.sqrt(2) / 0.1)
    with pytest.raises(AttributeError):
        plan.alpha = 0.2  # type: ignore[misc]


def test_groups_may_be_cells() -> None:
    marginal = fv.study.plan_sample_size(
        0.1, groups=Cells((("f", "m"), ("x", "y", "z")), mode="marginal"), candidates=10
    )
    assert (marginal.groups, marginal.rows_in) == (5, 2)
    product = fv.study.plan_sample_size(
        0.1, groups=Cells((("f", "m"), ("x", "y", "z"))), candidates=10
    )
    assert (product.groups, product.rows_in) == (6, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": 0.0},
        {"alpha": math.nan},
        {"groups": 0},
        {"groups": 2.5},
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"delta": 0.0},
        {"delta": 1.0},
        {"failure": 0.0},
        {"candidates": 0},
        {"candidates": None},
        {"dimension": -1},
        {"vc": 1.5},
        {"vc": 2, "neighbours": "add-remove"},
        {"rows_in": 5},
        {"rows_in": 0},
        {"neighbours": "swap"},
        {"lipschitz": 1.0},
        {"lipschitz": (1.0, -1.0)},
        {"lipschitz": (1.0, 1.0, 1.0)},
    ],
)
def test_bad_input_is_an_input_error(change: dict[str, Any]) -> None:
    options: dict[str, Any] = {"alpha": 0.1, "groups": 4, "candidates": 10} | change
    with pytest.raises(InputError):
        fv.study.plan_sample_size(options.pop("alpha"), **options)
