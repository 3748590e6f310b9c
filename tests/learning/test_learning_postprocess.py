"""The counts of a post-processor, its linear program and its bounds.

Judges are independent: enumerated neighbours, vertex enumeration of the polytope, a fine grid,
exact probabilities.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin

from fairveil.core import cost as accounting
from fairveil.core.events import Approximate, DiscreteLaplace, Gaussian
from fairveil.core.noise import NoiseSource
from fairveil.core.promise import Promise
from fairveil.curator import Curator, Rows
from fairveil.errors import BudgetError
from fairveil.facts import Cells
from fairveil.fairness import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    FalseNegativeRate,
    Notion,
    resolve,
)
from fairveil.learning.counts import possible
from fairveil.learning.postprocessing import counting as postprocess
from fairveil.learning.postprocessing import mixing, mixing_bounds, mixing_comparison
from fairveil.learning.postprocessing.counting import CountNoise, Released
from fairveil.learning.postprocessing.mixing import Program

Floats = npt.NDArray[np.float64]
EXACT = CountNoise("none", 0.0)
RECORDS = Promise(1.0, 1e-6)
REPLACE = Promise(1.0, 1e-6, "records", "replace-one")
GROUPS = Promise(1.0, 1e-6, "sensitive_features")


def cells_of(groups: int) -> Cells:
    return Cells((tuple(range(groups)),), names=("group",))


def table_of(labels: Any, decided: Any, groups: Any, count: int, classes: int = 2) -> Floats:
    out = np.zeros((count, classes, classes))
    np.add.at(out, (np.asarray(groups), np.asarray(labels), np.asarray(decided)), 1.0)
    return out


def some_counts(groups: int, classes: int, seed: int, rows: float = 2000.0) -> Floats:
    rng = np.random.default_rng(seed)
    raw = rng.uniform(0.2, 1.0, size=(groups, classes, classes)) + 2.0 * np.eye(classes)
    return np.asarray(np.round(rows * raw / raw.sum()))


def exact(counts: Floats) -> Released:
    return Released(counts, None, EXACT, float(counts.sum()))


def released(
    promise: Promise,
    labels: Any,
    decided: Any,
    groups: Any,
    count: int,
    seed: int = 0,
    weights: Any = None,
) -> Released:
    """A whole release by a curator."""
    rows = Rows.from_arrays(
        np.zeros((len(labels), 1)), labels, [groups], classes=(0, 1), groups=[tuple(range(count))], sensitive_names=("group",),
        sample_weight=weights,
    )  # fmt: skip
    plan = postprocess.plan(promise, rows.cells(), 2, weighted=weights is not None)
    curator = Curator(
        rows,
        promise,
        plan=plan.event if promise.is_private else None,
        noise=NoiseSource.seeded(seed),
    )
    attached = curator.attach(lambda block: np.asarray(decided))
    out = postprocess.release(curator, attached, plan, None if weights is None else 1.0)
    curator.finish()
    return out


# -- the release: sensitivities and distributions


def asked_of(promise: Promise, groups: int, counts: Floats) -> Floats:
    """What gets noise, of a table of exact counts."""
    one_group = promise.protects == "sensitive_features" and groups == 2
    return counts[:1] if one_group else counts


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("promise", [RECORDS, REPLACE, GROUPS])
def test_guarantee_2_and_3_no_neighbour_moves_the_counts_further_than_stated(
    promise: Promise, groups: int
) -> None:
    kinds = list(itertools.product(range(2), range(2), range(groups)))  # label, decision, group
    base = [(0, 1, 0), (1, 1, 1), (0, 0, groups - 1)]
    most = postprocess.steps(promise, cells_of(groups))
    seen = 0.0

    def counts(people: list[tuple[int, int, int]]) -> Floats:
        labels, decided, group = (list(line) for line in zip(*people, strict=True))
        return asked_of(promise, groups, table_of(labels, decided, group, groups))

    for at, new in itertools.product(range(len(base)), kinds):
        person = base[at]
        if promise.protects == "sensitive_features":
            new = (person[0], person[1], new[2])
        other = (
            [*base, new]
            if promise.neighbours == "add-remove"
            else [*base[:at], new, *base[at + 1 :]]
        )
        seen = max(seen, float(np.abs(counts(other) - counts(base)).sum()))
    assert seen == most


@pytest.mark.parametrize(("groups", "scale"), [(2, 1.0), (3, 2.0)])
def test_guarantee_2_the_released_distribution_keeps_epsilon_over_every_output_in_a_box(
    groups: int, scale: float
) -> None:
    """Exact likelihood ratios of neighbours that differ in one group: all outputs that can be
    within reach of either."""
    plan = postprocess.plan(Promise(1.0, 0.0, "sensitive_features"), cells_of(groups), 2)
    noise = plan.law(1.0)
    assert noise.kind == "discrete-laplace"
    assert noise.scale == pytest.approx(scale, rel=2e-4)
    one = asked_of(GROUPS, groups, table_of([0, 0, 1], [1, 1, 0], [0, 1, 1], groups))[:, 0, 1]
    other = asked_of(GROUPS, groups, table_of([0, 0, 1], [1, 1, 0], [1, 1, 1], groups))[:, 0, 1]
    outputs = np.array(list(itertools.product(range(-6, 9), repeat=len(one))), float)
    ratio = (np.abs(outputs - other).sum(axis=1) - np.abs(outputs - one).sum(axis=1)) / noise.scale
    assert np.abs(ratio).max() <= 1.0 + 1e-12
    assert np.abs(ratio).max() > 0.999  # and no noise is wasted


@pytest.mark.parametrize("promise", [RECORDS, REPLACE, GROUPS, Promise(0.3, 0.0)])
@pytest.mark.parametrize("spent", [(), (Gaussian(30.0),) * 20])
def test_guarantee_1_the_plan_keeps_the_promise_beside_what_was_spent(
    promise: Promise, spent: Any
) -> None:
    spent = () if promise.delta == 0 else spent
    plan = postprocess.plan(promise, cells_of(3), 2, spent)
    price = accounting.epsilon([*spent, plan.event], promise.delta, promise.neighbours)
    assert 0.999 * promise.epsilon <= price <= promise.epsilon
    assert isinstance(plan.event, DiscreteLaplace | Gaussian)


def test_the_kinder_noise_is_taken_and_nothing_left_is_an_error() -> None:
    assert postprocess.plan(RECORDS, cells_of(2), 2).noise == "discrete-laplace"
    assert postprocess.plan(REPLACE, cells_of(2), 2, (Gaussian(5.3),)).noise == "gaussian"
    assert postprocess.plan(RECORDS, cells_of(2), 2, weighted=True).noise == "gaussian"
    with pytest.raises(BudgetError, match=r"left of epsilon=1.*Pass epsilon above"):
        postprocess.plan(RECORDS, cells_of(2), 2, (Gaussian(2.0),))
    with pytest.raises(BudgetError, match="delta"):
        postprocess.plan(Promise(1.0, 0.0), cells_of(2), 2, weighted=True)


def test_guarantee_1_a_base_that_used_up_delta_leaves_pure_noise() -> None:
    plan = postprocess.plan(RECORDS, cells_of(2), 2, (Approximate(0.5, RECORDS.delta),))
    assert plan.noise == "discrete-laplace"
    assert plan.law(1.0).scale == pytest.approx(2.0, rel=1e-3)
    with pytest.raises(BudgetError):
        postprocess.plan(RECORDS, cells_of(2), 2, (Approximate(0.5, RECORDS.delta),), weighted=True)


def test_guarantee_4_the_release_is_the_truth_plus_the_stated_noise() -> None:
    """The empirical variance of the noise over many releases. False alarm below 1e-4; 1.5 times the
    noise is caught."""
    rng = np.random.default_rng(0)
    labels, decided, groups = rng.integers(2, size=(3, 60))
    truth = table_of(labels, decided, groups, 2)
    for promise in (GROUPS, RECORDS, REPLACE):
        found = [released(promise, labels, decided, groups, 2, seed) for seed in range(150)]
        noise = found[0].noise
        off = np.array([(one.raw - truth)[:1] for one in found])
        ratio = off.std() / noise.sd
        assert 0.8 < ratio < 1.2, promise
        if promise is GROUPS:
            assert all((one.raw.sum(axis=0) == truth.sum(axis=0)).all() for one in found)
            assert found[0].totals is not None
        else:
            assert found[0].totals is None
            assert found[0].rows == (60.0 if promise is REPLACE else None)


def test_without_privacy_counts_are_exact_and_weights_are_summed() -> None:
    labels, decided, groups = [0, 1, 1], [0, 1, 0], [0, 1, 1]
    plain = released(Promise(math.inf, 0.0), labels, decided, groups, 2)
    assert (plain.raw == table_of(labels, decided, groups, 2)).all()
    weighted = released(
        Promise(math.inf, 0.0), labels, decided, groups, 2, weights=np.array([0.5, 1.0, 0.25])
    )
    assert weighted.raw[0, 0, 0] == pytest.approx(0.5)
    assert weighted.raw[1, 1, 0] == pytest.approx(0.25)


@pytest.mark.parametrize(
    "noise", [CountNoise("discrete-laplace", 2.3), CountNoise("gaussian", 4.0)]
)
def test_tails_of_the_noise_are_exact(noise: CountNoise) -> None:
    if noise.kind == "discrete-laplace":
        x = np.arange(-400, 401)
        law = np.exp(-np.abs(x) / noise.scale)
        law /= law.sum()
        assert noise.sd == pytest.approx(math.sqrt((law * x * x).sum()))
        for p in (0.3, 0.05, 1e-4):
            w = noise.tail(p)
            assert law[np.abs(x) > w].sum() <= p < law[np.abs(x) > w - 1].sum()
        folded = np.bincount(np.abs(x), law)
        total = np.ones(1)
        for _ in range(12):
            total = np.convolve(total, folded)
        s = noise.sum_tail(12, 0.05)
        assert total[int(s) + 1 :].sum() <= 0.05
        assert s < 1.6 * (total.cumsum() < 0.95).sum()
    else:
        from scipy import stats

        assert noise.tail(0.05) == pytest.approx(4.0 * stats.norm.isf(0.025) + 0.5)
        draws = np.abs(np.random.default_rng(0).normal(0, 4.0, size=(100_000, 12))).sum(axis=1)
        assert (draws > noise.sum_tail(12, 0.05)).mean() <= 0.05


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_projection_on_known_totals_is_the_nearest_point(seed: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 9, size=(groups, 1, 1)).astype(float)
    raw = truth + rng.normal(0, 5, size=truth.shape)
    found = possible.onto_totals(raw, truth.sum(axis=0))
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(truth.sum(), abs=1e-9)
    # the condition of the nearest point: <raw - found, other - found> <= 0 for every corner of the
    # simplex
    for corner in np.eye(groups) * truth.sum():
        assert ((raw - found).ravel() * (corner - found.ravel())).sum() <= 1e-7
    assert np.abs(found - truth).sum() <= 2.0 * np.abs(raw - truth).sum() + 1e-9


# -- the linear program


def vertices(program: Program) -> Any:
    """The least error over all vertices of the polytope, of two groups and two classes: brute
    force, no solver."""
    # unknowns: p[c, j, 1] for four (c, j); 0 <= p <= 1 and the constraints
    lines = program.rows.toarray().reshape(-1, 4, 2)
    a = np.concatenate([lines[:, :, 1] - lines[:, :, 0], -np.eye(4), np.eye(4)])
    b = np.concatenate([program.limits - lines[:, :, 0].sum(axis=1), np.zeros(4), np.ones(4)])
    cost = program.cost.reshape(4, 2)
    best = math.inf
    for chosen in itertools.combinations(range(len(b)), 4):
        square = a[list(chosen)]
        if abs(np.linalg.det(square)) < 1e-10:
            continue
        p = np.linalg.solve(square, b[list(chosen)])
        if (a @ p <= b + 1e-9).all():
            best = min(best, 1.0 + float((cost[:, 1] * p + cost[:, 0] * (1 - p)).sum()))
    return best


@pytest.mark.parametrize(
    "notion",
    [EqualizedOdds(0.05), EqualOpportunity(0.01), DemographicParity(0.02), EqualizedOdds(0.0)],
)
@pytest.mark.parametrize("seed", range(4))
def test_the_program_is_as_good_as_the_best_vertex(notion: Notion, seed: int) -> None:
    program = Program.of(exact(some_counts(2, 2, seed)), resolve(notion, cells_of(2), (0, 1)))
    solved = mixing.solve(program)
    assert solved.excess == 0
    assert np.nanmax(program.values(solved.table)) <= notion.max_gap + 1e-8  # type: ignore[attr-defined]
    assert program.error(solved.table) == pytest.approx(vertices(program), abs=2 * mixing.TIE)


def test_the_program_is_as_good_as_a_fine_grid() -> None:
    program = Program.of(
        exact(some_counts(2, 2, 9)), resolve(EqualizedOdds(0.1), cells_of(2), (0, 1))
    )
    axis = np.linspace(0, 1, 21)
    p = np.stack(np.meshgrid(axis, axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 4)
    tables = np.stack([1 - p, p], axis=-1).reshape(len(p), -1)
    values = (program.rows @ tables.T).max(axis=0)
    error = 1.0 + tables[values <= 0.1] @ program.cost
    found = program.error(mixing.solve(program).table)
    assert found <= error.min() + mixing.TIE
    assert error.min() - found < 0.02  # the grid is fine enough to judge


def test_against_fairlearn_in_the_noiseless_limit() -> None:
    fairlearn = pytest.importorskip("fairlearn.postprocessing")
    rng = np.random.default_rng(0)
    groups, labels = rng.integers(2, size=(2, 4000))
    decided = np.where(rng.random(4000) < 0.2 + 0.15 * groups, 1 - labels, labels)

    class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        classes_ = np.array([0, 1])

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def predict(self, X: Any) -> Any:
            return X[:, 0]

    X = decided[:, np.newaxis].astype(float)
    peer = fairlearn.ThresholdOptimizer(
        estimator=Given(), constraints="equalized_odds", objective="accuracy_score", prefit=True, predict_method="predict",
        grid_size=2000,
    )  # fmt: skip
    peer.fit(X, labels, sensitive_features=groups)
    chance = peer._pmf_predict(X, sensitive_features=groups)[:, 1]
    theirs = np.where(labels == 1, 1 - chance, chance).mean()
    program = Program.of(
        exact(table_of(labels, decided, groups, 2)),
        resolve(EqualizedOdds(0.0), cells_of(2), (0, 1)),
    )
    assert program.error(mixing.solve(program).table) == pytest.approx(theirs, abs=2e-3)


def test_equal_base_rates_leave_the_base_alone_and_ties_go_to_it() -> None:
    counts = np.stack([some_counts(1, 3, 1)[0]] * 3)
    program = Program.of(exact(counts), resolve(EqualizedOdds(0.0), cells_of(3), (0, 1, 2)))
    assert np.allclose(mixing.solve(program).table, np.eye(3), atol=1e-6)
    # a base that is no better than chance: every table has the same error, and the base's own is
    # taken
    flat = Program.of(
        exact(np.full((2, 2, 2), 25.0)), resolve(EqualizedOdds(0.1), cells_of(2), (0, 1))
    )
    assert np.allclose(mixing.solve(flat).table, np.eye(2), atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "notion", [EqualizedOdds(0.0), DemographicParity(0.01), ErrorRateParity(0.0)]
)
@pytest.mark.parametrize(
    "raw",
    [
        np.zeros(1),
        np.full(1, -50.0),
        np.array([0.3, -2.0, 7.0, 0.0, 1e-6, 3.0]),
        np.array([1e6, -1e6, 5.0]),
    ],
)
def test_every_noisy_count_has_a_solution(notion: Notion, classes: int, raw: Floats) -> None:
    """Zero, tiny, negative, empty: gap notions are always met, without an excess."""
    counts = np.resize(raw, (3, classes, classes))
    noise = CountNoise("discrete-laplace", 2.0)
    system = resolve(notion, cells_of(3), tuple(range(classes)))
    for one in (
        Released(counts, None, noise, None),
        Released(counts, np.maximum(counts.sum(axis=0), 0.0), noise, 1.0),
    ):
        solved = mixing.solve(Program.of(one, system))
        assert solved.excess == 0
        assert np.allclose(solved.table.sum(axis=2), 1)
        bounds = mixing_bounds.guarantee(one, system, solved.table, 0.95)
        assert all(0 <= bound <= 1 + 1e-9 for bound in (bounds.error_bound, bounds.gap_bound))


def test_an_empty_group_does_not_rule_the_others() -> None:
    """A listed group without rows: the table of the others is about what it is without it."""
    counts = some_counts(2, 2, 3, 20_000)
    noise = CountNoise("discrete-laplace", 2.0)
    with_empty = Released(np.concatenate([counts, [[[3.0, -2.0], [-1.0, 4.0]]]]), None, noise, None)
    without = Released(counts, None, noise, None)
    errors = [
        Program.of(one, resolve(EqualizedOdds(0.05), cells_of(len(one.raw)), (0, 1)))
        for one in (with_empty, without)
    ]
    first, second = (program.error(mixing.solve(program).table) for program in errors)
    assert first == pytest.approx(second, abs=2e-3)


def test_contradictions_get_the_least_uniform_excess() -> None:
    counts = np.zeros((1, 2, 2))
    counts[0] = [[40, 10], [10, 40]]
    system = resolve(
        [FalseNegativeRate(0.1), FalseNegativeRate(0.2, positive=0)], cells_of(1), (0, 1)
    ).without_groups()
    program = Program.of(exact(counts), system)
    solved = mixing.solve(program)
    # rates of one line: FNR a and FPR b with a >= (1 - b') ... the least uniform excess is where
    # both are exceeded alike
    axis = np.linspace(0, 1, 401)
    p0, p1 = np.meshgrid(axis, axis)  # probability of 1 given decisions 0 and 1
    fnr, fpr = 1 - (0.2 * p0 + 0.8 * p1), 0.8 * p0 + 0.2 * p1
    least = np.maximum(fnr - 0.1, fpr - 0.2).min()
    assert solved.excess == pytest.approx(least, abs=3e-3)
    assert (program.values(solved.table) <= system.bounds + solved.excess + 1e-7).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bound", [0.0, 0.05, 0.3])
def test_the_deterministic_table_is_the_best_of_all(seed: int, bound: float) -> None:
    program = Program.of(
        exact(some_counts(2, 2, seed)), resolve(EqualizedOdds(bound), cells_of(2), (0, 1))
    )
    found = mixing.deterministic(program)
    best = (math.inf, math.inf)
    for bits in itertools.product((0, 1), repeat=4):
        table = np.eye(2)[np.array(bits)].reshape(2, 2, 2)
        worst = max(0.0, float((program.values(table) - bound).max()))
        best = min(best, (round(worst, 9), program.error(table)))
    assert found.excess == pytest.approx(best[0], abs=1e-8)
    assert program.error(found.table) == pytest.approx(best[1], abs=1e-5)
    assert set(np.unique(found.table)) <= {0.0, 1.0}


def test_marginal_groups_are_bounded_over_product_cells() -> None:
    cells = Cells(((0, 1), (0, 1, 2)), names=("sex", "region"))
    counts = some_counts(6, 2, 5)
    system = resolve(DemographicParity(0.0, groups="marginal"), cells, (0, 1))
    program = Program.of(exact(counts), system)
    table = mixing.solve(program).table
    chosen = np.einsum("cyj,cjk->ck", counts, table).reshape(2, 3, 2)
    sizes = counts.sum(axis=(1, 2)).reshape(2, 3)
    for axis in (0, 1):
        rates = chosen[..., 1].sum(axis=1 - axis) / sizes.sum(axis=1 - axis)
        assert np.ptp(rates) < 1e-7
    product = (chosen[..., 1] / sizes).ravel()
    assert np.ptp(product) > 0.01  # only marginal groups are held


# -- the bounds


@pytest.mark.parametrize(
    ("promise", "groups"), [(GROUPS, 2), (GROUPS, 4), (RECORDS, 2), (REPLACE, 3)]
)
@pytest.mark.parametrize("with_slack", [False, True])
def test_guarantee_1_the_bounds_hold_and_say_something(
    promise: Promise, groups: int, with_slack: bool
) -> None:
    """Over 200 seeds at confidence 0.9 all bounds hold together at least as often as stated, and
    are not vacuous.

    False alarm: the bounds would have to hold with probability exactly 0.9, and 200 fits to fail 40
    times or more: below 1e-4 (binomial tail). Noise 1.5 times as large as stated is caught by
    `test_guarantee_4`.
    """
    counts = some_counts(groups, 2, 7, 20_000)
    system = resolve(EqualizedOdds(0.05), cells_of(groups), (0, 1))
    truth = Program.of(exact(counts), system)
    best = mixing.least_error(truth)
    law = postprocess.plan(promise, cells_of(groups), 2).law(1.0)
    known = promise.protects == "sensitive_features"
    failures = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        noise = _drawn(law, counts.shape, rng)
        raw = counts + noise
        if known and groups == 2:
            raw[1] = counts.sum(axis=0) - raw[0]
        rows = float(counts.sum()) if promise.rows_are_public else None
        one = Released(raw, counts.sum(axis=0) if known else None, law, rows)
        table = mixing_bounds.mixed(one, system, 0.9, with_slack=with_slack).table
        bounds = mixing_bounds.guarantee(one, system, table, 0.9)
        held = (
            (truth.values(table) <= np.array(bounds.value_bounds) + 1e-9).all()
            and truth.error(table) <= bounds.error_bound + 1e-9
            and truth.error(table) - best <= bounds.excess_bound + 1e-9
        )
        failures += not held
        assert bounds.gap_bound < 0.25
        assert bounds.excess_bound < 0.08
        assert bounds.error_bound < bounds.error + 0.03
        if with_slack:  # Theorem 3.1: the best table of the exact counts is feasible
            slack = mixing_bounds.slacks(one, system, 0.9)
            assert (slack > 0).all()
    assert failures < 40


def _drawn(law: CountNoise, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    if law.kind == "gaussian":
        return rng.normal(0.0, law.scale, size=shape)
    p = 1.0 - math.exp(-1.0 / law.scale)
    return np.asarray(rng.geometric(p, size=shape) - rng.geometric(p, size=shape), float)


@pytest.mark.parametrize("seed", range(5))
def test_slacks_bound_the_difference_for_every_table(seed: int) -> None:
    """Random tables and random counts of the box: no value differs by more than its slack."""
    rng = np.random.default_rng(seed)
    counts = some_counts(3, 2, seed, 3000)
    law = CountNoise("discrete-laplace", 2.0)
    one = Released(counts, counts.sum(axis=0), law, 3000.0)
    system = resolve([EqualizedOdds(0.1), DemographicParity(0.1)], cells_of(3), (0, 1))
    slack = mixing_bounds.slacks(one, system, 0.95)
    low, high = one.box(0.025)
    program = Program.of(one, system)
    worst = np.zeros(len(system))
    for _ in range(300):
        table = np.eye(2)[rng.integers(2, size=(3, 2))]
        other = np.where(rng.random(counts.shape) < 0.5, low, high)
        off = np.abs(Program.of(exact(other), system).values(table) - program.values(table))
        worst = np.maximum(worst, off)
    assert (worst <= slack + 1e-9).all()
    assert (worst > 0.3 * slack).any()  # and they are not far from what can happen


@pytest.mark.parametrize("public", [True, False])
def test_guarantee_1_holds_where_a_group_truly_lacks_a_label(public: bool) -> None:
    """The best table that knows it need not keep the constraint there: its error must still be what
    we are compared with.

    Bounds fail with probability at most 0.1: more than 15 of 60 releases have probability below
    1e-4.
    """
    truth = np.zeros((2, 2, 2))
    truth[0, 0] = [500, 500]  # of the first group nobody has label 1, and the base is no good there
    truth[1] = [[4000, 200], [200, 4000]]
    system = resolve(EqualOpportunity(0.0), cells_of(2), (0, 1))
    known = Program.of(exact(truth), system)
    best = known.error(mixing.solve(known).table)
    rng = np.random.default_rng(0)
    law = CountNoise("discrete-laplace", 2.0)
    lost = failed = 0
    for _ in range(60):
        raw = truth + _drawn(law, truth.shape, rng)
        if public:
            raw[1] = truth.sum(axis=0) - raw[0]
        one = Released(
            raw, truth.sum(axis=0) if public else None, law, float(truth.sum()) if public else None
        )
        table = mixing_bounds.mixed(one, system, 0.9, with_slack=False).table
        found = mixing_bounds.guarantee(one, system, table, 0.9)
        failed += known.error(table) - best > found.excess_bound + 1e-5
        loose = Program.of(one, system, mixing_bounds.slacks(one, system, 0.9))
        lost += bool(
            (loose.values(mixing.solve(known).table)[loose.kept] > loose.limits + 1e-7).any()
        )
    assert failed <= 15
    assert lost <= 15


@pytest.mark.parametrize("epsilon", [700.0, 1e3, 1e5])
def test_noise_that_is_none_in_any_double(epsilon: float) -> None:
    law = postprocess.plan(Promise(epsilon, 0.0, "sensitive_features"), cells_of(2), 2).law(1.0)
    assert law.kind == "discrete-laplace"
    assert law.tail(1e-9) == 0.0
    assert law.sum_tail(20, 0.05) == pytest.approx(0.0, abs=0.05)
    counts = some_counts(2, 2, 0)
    one = Released(counts, counts.sum(axis=0), law, float(counts.sum()))
    system = resolve(EqualizedOdds(0.05), cells_of(2), (0, 1))
    table = mixing_bounds.mixed(one, system, 0.95, with_slack=True).table
    assert mixing_bounds.guarantee(one, system, table, 0.95).gap_bound == pytest.approx(
        0.05, abs=1e-3
    )


def test_without_noise_the_bounds_are_the_values() -> None:
    system = resolve(EqualizedOdds(0.05), cells_of(2), (0, 1))
    one = exact(some_counts(2, 2, 0))
    table = mixing.solve(Program.of(one, system)).table
    bounds = mixing_bounds.guarantee(one, system, table, 0.95)
    assert bounds.gap_bound == pytest.approx(bounds.gap, abs=1e-9)
    assert bounds.error_bound == pytest.approx(bounds.error)
    assert bounds.excess_bound == pytest.approx(0.0, abs=2 * mixing.TIE)
    assert "at most" in str(bounds)


def test_the_noise_of_values_is_what_releases_show() -> None:
    """The stated standard deviations against those of 400 releases: a ratio within 20 % (false
    alarm below 1e-6)."""
    counts = some_counts(2, 2, 4, 4000)
    system = resolve(EqualizedOdds(0.05), cells_of(2), (0, 1))
    law = CountNoise("discrete-laplace", 3.0)
    table = np.array([[[0.9, 0.1], [0.2, 0.8]], [[1.0, 0.0], [0.1, 0.9]]])
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        raw = counts + _drawn(law, counts.shape, rng)
        raw[1] = counts.sum(axis=0) - raw[0]
        found.append(
            Program.of(Released(raw, counts.sum(axis=0), law, 4000.0), system).values(table)
        )
    stated = mixing_bounds.guarantee(
        Released(counts, counts.sum(axis=0), law, 4000.0), system, table, 0.95
    ).noise
    assert np.allclose(np.std(found, axis=0) / np.array(stated), 1.0, atol=0.2)


def test_constants_beside_it_have_the_noise_that_releases_show() -> None:
    """A constant has error rates that are shares of labels: against 400 releases. Its selection
    rates are 0 and 1."""
    counts = some_counts(2, 2, 4, 4000)
    law, rng = CountNoise("discrete-laplace", 3.0), np.random.default_rng(0)
    releases = [
        Released(counts + _drawn(law, counts.shape, rng), None, law, None) for _ in range(400)
    ]
    table = np.full((2, 2, 2), 0.5)
    for notion, moves in ((ErrorRateParity(0.05), True), (DemographicParity(0.05), False)):
        system = resolve(notion, cells_of(2), (0, 1))
        stated = mixing_comparison.compared(Released(counts, None, law, None), system, table).limits
        constant = np.broadcast_to([[[1.0, 0.0]]], table.shape)
        found = np.std([Program.of(one, system).values(constant) for one in releases], axis=0)
        assert np.allclose(found, stated.doubts[0], rtol=0.2, atol=1e-12)
        assert (stated.doubts > 1e-6).all() == moves
