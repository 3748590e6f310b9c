"""Thresholds from released histograms: the program against brute force and fairlearn, and Theorem
3.1 in its form for them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from fairveil.audit import audit_fit
from fairveil.core.noise import NoiseSource
from fairveil.core.promise import Promise
from fairveil.curator import Curator, Rows
from fairveil.facts import Cells
from fairveil.fairness import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    FalseNegativeRate,
    FalsePositiveRateParity,
    Notion,
    resolve,
)
from fairveil.learning.counts import CountNoise
from fairveil.learning.postprocessing import counting as postprocess
from fairveil.learning.postprocessing import mixing, mixing_bounds, score_bins, threshold_bounds
from fairveil.learning.postprocessing.counting import Released
from fairveil.learning.postprocessing.mixing import Program
from fairveil.learning.postprocessing.tables import Tables

Floats = npt.NDArray[np.float64]
EXACT = CountNoise("none", 0.0)
RECORDS = Promise(1.0, 1e-6)
REPLACE = Promise(1.0, 1e-6, "records", "replace-one")
GROUPS = Promise(1.0, 1e-6, "sensitive_features")


def cells_of(groups: int) -> Cells:
    return Cells((tuple(range(groups)),), names=("group",))


def people(rows: int, groups: int, seed: int, level: float = 0.0) -> tuple[Floats, Any, Any]:
    """Scores that foretell labels, better and higher in some groups than in others."""
    rng = np.random.default_rng(seed)
    group = rng.integers(groups, size=rows)
    label = (rng.random(rows) < 0.25 + 0.3 * group / groups).astype(int)
    score = (
        (1.1 + 0.3 * group) * (2 * label - 1) + 0.4 * group + rng.normal(size=rows) * 1.3 + level
    )
    return score, label, group


def histogram(score: Floats, label: Any, group: Any, edges: Floats, groups: int) -> Floats:
    out = np.zeros((groups, 2, 1 + len(edges)))
    np.add.at(out, (group, label, score_bins.codes(score, edges)), 1.0)
    return out


def exact(counts: Floats, edges: Floats) -> Released:
    return Released(counts, None, EXACT, float(counts.sum()), edges)


def some(groups: int, bins: int, seed: int = 0, rows: int = 4000) -> tuple[Floats, Floats]:
    edges = score_bins.fixed(bins)
    return histogram(*people(rows, groups, seed), edges, groups), edges


# -- tables


@pytest.mark.parametrize("shared", [False, True])
def test_a_table_of_thresholds_is_a_mixture_that_rises_with_the_score(shared: bool) -> None:
    allowed = Tables((3, 5, 2), usual=2, shared=shared)
    assert allowed.unknowns == 6 * (1 if shared else 3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        w = rng.dirichlet(np.full(6, 0.3), size=allowed.parts)
        table = allowed.table(w.ravel())
        assert np.allclose(table.sum(axis=2), 1.0)
        assert (np.diff(table[:, :, 1], axis=1) >= -1e-12).all()
        wanted = [[sum(line[: b + 1]) for b in range(5)] for line in w] * (3 if shared else 1)
        assert np.allclose(table[:, :, 1], wanted, atol=1e-8)
        assert np.allclose(allowed.sums @ w.ravel(), 1.0)
    base = np.zeros((3, 5, 2))
    base[:, :2, 0] = base[:, 2:, 1] = 1.0
    assert (allowed.base == base).all()
    unknowns = np.zeros((allowed.parts, 6))
    unknowns[:, 2] = 1.0
    assert (allowed.table(unknowns.ravel()) == base).all()
    assert allowed.changed.reshape(allowed.parts, 6)[:, 2].max() == 0.0


# -- the release: a histogram asked of a curator, and audited


def released(
    promise: Promise, score: Any, label: Any, group: Any, seed: int, bins: int = 4
) -> Released:
    rows = Rows.from_arrays(
        np.zeros((len(label), 1)),
        label,
        [group],
        classes=(0, 1),
        groups=[(0, 1)],
        sensitive_names=("group",),
    )
    plan = postprocess.plan(promise, rows.cells(), 2)
    edges = score_bins.fixed(bins)
    with Curator(rows, promise, plan=plan.event, noise=NoiseSource.seeded(seed)) as curator:
        attached = curator.attach_codes(
            lambda block: score_bins.codes(np.asarray(score), edges), 1 + len(edges)
        )
        out = postprocess.release(curator, attached, plan, edges=edges)
        curator.finish()
    return out


@pytest.mark.parametrize("promise", [RECORDS, REPLACE, GROUPS])
def test_the_release_is_the_truth_plus_the_stated_noise(promise: Promise) -> None:
    """The variance of the noise over 150 releases. False alarm below 1e-4; 1.5 times the noise is
    caught."""
    score, label, group = people(80, 2, 0)
    truth = histogram(score, label, group, score_bins.fixed(4), 2)
    found = [released(promise, score, label, group, seed) for seed in range(150)]
    off = np.array([(one.raw - truth)[:1] for one in found])
    assert 0.85 < off.std() / found[0].noise.sd < 1.15
    if promise is GROUPS:
        assert all((one.raw.sum(axis=0) == truth.sum(axis=0)).all() for one in found)


def test_an_audit_does_not_contradict_the_price_and_catches_half_the_noise() -> None:
    """As for decisions: one person's group is changed, and the number released of her label and bin
    is the score.

    A right claim is contradicted in at most 5 % of fresh seeds (here they are fixed).
    """
    score, label = [1.0, 3.0, -1.0, -3.0, 0.5], [0, 1, 1, 0, 1]

    def lower(epsilon: float) -> float:
        def one(group: list[int], seed: int) -> float:
            return float(
                released(
                    Promise(epsilon, 0.0, "sensitive_features"), score, label, group, seed
                ).raw[0, 0, 2]
            )

        return float(
            audit_fit(one, [1, 0, 1, 0, 0], [0, 0, 1, 0, 0], trials=800, delta=0.0).epsilon_lower
        )

    assert 0.4 < lower(1.0) <= 1.0
    assert lower(2.0) > 1.0  # half the noise under a claim of 1


# -- the program


NOTIONS = [
    EqualizedOdds(0.05),
    EqualOpportunity(0.01),
    DemographicParity(0.0),
    EqualizedOdds(0.0),
    FalsePositiveRateParity(0.02),
]


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
@pytest.mark.parametrize("shared", [False, True])
def test_the_program_is_as_good_as_the_best_mixture_of_pairs_of_thresholds(
    notion: Notion, shared: bool
) -> None:
    """Every mixture of two thresholds a group on a grid of weights is allowed, and none within the
    bound is better."""
    counts, edges = some(2, 4, seed=3)
    program = Program.of(exact(counts, edges), resolve(notion, cells_of(2), (0, 1)), shared=shared)
    solved = mixing.solve(program)
    assert np.nanmax(program.values(solved.table)) <= notion.max_gap + 1e-7  # type: ignore[attr-defined]
    lines = [
        a * np.eye(5)[s] + (1 - a) * np.eye(5)[t]
        for s, t in itertools.combinations(range(5), 2)
        for a in np.linspace(0, 1, 9)
    ]
    pairs = (
        [np.concatenate([one, other]) for one, other in itertools.product(lines, lines)]
        if not shared
        else lines
    )
    best = math.inf
    for w in pairs:
        table = program.tables.table(w)
        if np.nanmax(program.values(table)) <= notion.max_gap + 1e-9:  # type: ignore[attr-defined]
            best = min(best, program.error(table))
    assert program.error(solved.table) <= best + mixing.CHANCE + 2 * mixing.TIE
    assert (np.diff(solved.table[:, :, 1], axis=1) >= -1e-9).all()


@pytest.mark.parametrize(
    ("notion", "theirs"),
    [
        (DemographicParity(0.0), "demographic_parity"),
        (EqualizedOdds(0.0), "equalized_odds"),
        (EqualOpportunity(0.0), "true_positive_rate_parity"),
        (FalsePositiveRateParity(0.0), "false_positive_rate_parity"),
    ],
)
@pytest.mark.parametrize("groups", [2, 4])
def test_against_fairlearns_threshold_optimizer_without_noise(
    notion: Notion, theirs: str, groups: int
) -> None:
    fairlearn = pytest.importorskip("fairlearn.postprocessing")
    score, label, group = people(6000, groups, seed=1)

    class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        classes_ = np.array([0, 1])

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def decision_function(self, X: Any) -> Any:
            return X[:, 0]

    X = score[:, np.newaxis]
    peer = fairlearn.ThresholdOptimizer(
        estimator=Given(), constraints=theirs, objective="accuracy_score", prefit=True, predict_method="decision_function",
        grid_size=4000,
    )  # fmt: skip
    peer.fit(X, label, sensitive_features=group)
    chance = peer._pmf_predict(X, sensitive_features=group)[:, 1]
    error = np.where(label == 1, 1 - chance, chance).mean()
    edges = score_bins.quantiles(score, score_bins.MOST_EXACT)
    program = Program.of(
        exact(histogram(score, label, group, edges, groups), edges),
        resolve(notion, cells_of(groups), (0, 1)),
    )
    solved = mixing.solve(program)
    assert program.error(solved.table) == pytest.approx(error, abs=1e-3)
    assert np.nanmax(program.values(solved.table)) <= 1e-7


def test_a_false_negative_bound_on_rare_labels_is_one_threshold_and_no_coin() -> None:
    rng = np.random.default_rng(0)
    label = (rng.random(60_000) < 0.09).astype(int)
    score = -2.6 + 1.9 * label + rng.normal(size=60_000)
    edges = score_bins.fixed(64)
    counts = histogram(score, label, np.zeros(60_000, int), edges, 1)
    system = resolve(FalseNegativeRate(0.2), cells_of(1), (0, 1)).without_groups()
    program = Program.of(exact(counts, edges), system)
    table = mixing.solve(program).table
    cut = np.quantile(score[label == 1], 0.2)  # the best single threshold that knows every score
    best = float(((score > cut) != label).mean())
    assert program.error(table) <= best + 0.01
    # a bin's worth of false negatives less
    assert program.error(mixing.deterministic(program).table) <= best + 0.03
    assert ((table > 0) & (table < 1)).any(axis=2).sum() <= 1  # chance in one bin at most


@pytest.mark.parametrize("groups", [1, 2])
def test_thresholds_without_chance_are_taken_where_chance_gains_nothing(groups: int) -> None:
    counts, edges = some(groups, 32, seed=5, rows=20_000)
    system = resolve(DemographicParity(0.08), cells_of(max(groups, 2)), (0, 1))
    if groups == 1:
        system = resolve(FalseNegativeRate(0.3), cells_of(1), (0, 1)).without_groups()
    program = Program.of(exact(counts, edges), system)
    table = mixing.solve(program).table
    single = mixing.deterministic(program)
    least = mixing.least_error(program)
    if program.error(single.table) <= least + mixing.CHANCE and single.excess == 0:
        assert set(np.unique(table)) <= {0.0, 1.0}
    assert program.error(table) <= least + mixing.CHANCE + 2 * mixing.TIE


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bound", [0.0, 0.05, 0.3])
def test_the_deterministic_thresholds_are_the_best_of_all(seed: int, bound: float) -> None:
    counts, edges = some(2, 8, seed)
    program = Program.of(exact(counts, edges), resolve(EqualizedOdds(bound), cells_of(2), (0, 1)))
    found = mixing.deterministic(program)
    best = (math.inf, math.inf)
    for one, other in itertools.product(range(9), repeat=2):
        table = program.tables.table(np.concatenate([np.eye(9)[one], np.eye(9)[other]]))
        worst = max(0.0, float((program.values(table) - bound).max()))
        best = min(best, (round(worst, 9), program.error(table)))
    assert found.excess == pytest.approx(best[0], abs=1e-8)
    assert program.error(found.table) == pytest.approx(best[1], abs=1e-5)


@pytest.mark.parametrize(
    "notion", [EqualizedOdds(0.0), DemographicParity(0.01), ErrorRateParity(0.0)], ids=str
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
@pytest.mark.parametrize("shared", [False, True])
def test_every_noisy_histogram_has_a_solution(notion: Notion, raw: Floats, shared: bool) -> None:
    counts, edges = np.resize(raw, (3, 2, 8)), score_bins.fixed(8)
    noise = CountNoise("discrete-laplace", 2.0)
    system = resolve(notion, cells_of(3), (0, 1))
    totals = np.maximum(counts.sum(axis=0), 0.0)
    for one in (
        Released(counts, None, noise, None, edges),
        Released(counts, totals, noise, 1.0, edges),
    ):
        solved = mixing.solve(Program.of(one, system, shared=shared))
        assert solved.excess == 0
        bounds = mixing_bounds.guarantee(one, system, solved.table, 0.95, shared=shared)
        assert all(0 <= bound <= 1 + 1e-9 for bound in (bounds.error_bound, bounds.gap_bound))


def test_one_threshold_for_all_costs_more_for_the_same_bound() -> None:
    counts, edges = some(3, 32)
    system = resolve(DemographicParity(0.05), cells_of(3), (0, 1))
    own, shared = (Program.of(exact(counts, edges), system, shared=one) for one in (False, True))
    table = mixing.solve(shared).table
    assert (table == table[0]).all()
    assert mixing.least_error(shared) >= mixing.least_error(own)
    assert np.nanmax(shared.values(table)) <= 0.05 + 1e-7


# -- the bounds


def drawn(law: CountNoise, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    if law.kind == "gaussian":
        return np.rint(rng.normal(0.0, law.scale, size=shape))
    p = 1.0 - math.exp(-1.0 / law.scale)
    return np.asarray(rng.geometric(p, size=shape) - rng.geometric(p, size=shape), float)


def noisy(
    counts: Floats, edges: Floats, promise: Promise, law: CountNoise, rng: np.random.Generator
) -> Released:
    """A release of these counts."""
    known = promise.protects == "sensitive_features"
    raw = counts + drawn(law, counts.shape, rng)
    if known and len(counts) == 2:
        raw[1] = counts.sum(axis=0) - raw[0]
    rows = float(counts.sum()) if promise.rows_are_public else None
    return Released(raw, counts.sum(axis=0) if known else None, law, rows, edges)


@pytest.mark.parametrize(
    ("promise", "groups"), [(GROUPS, 2), (GROUPS, 4), (RECORDS, 2), (REPLACE, 3)]
)
@pytest.mark.parametrize(("with_slack", "shared"), [(False, False), (True, False), (False, True)])
def test_guarantee_1_the_bounds_hold_and_say_something(
    promise: Promise, groups: int, with_slack: bool, shared: bool
) -> None:
    """Over 60 seeds at confidence 0.9 all bounds hold together at least as often as stated, and are
    not vacuous.

    False alarm: the bounds would have to hold with probability exactly 0.9, and 60 fits to fail 18
    times or more: below 1e-4.
    """
    counts, edges = some(groups, 16, 7, 20_000)
    system = resolve(EqualizedOdds(0.05), cells_of(groups), (0, 1))
    truth = Program.of(exact(counts, edges), system, shared=shared)
    best = mixing.least_error(truth)
    law = postprocess.plan(promise, cells_of(groups), 2).law(1.0)
    failures = 0
    for seed in range(60):
        one = noisy(counts, edges, promise, law, np.random.default_rng(seed))
        table = mixing_bounds.mixed(one, system, 0.9, with_slack=with_slack, shared=shared).table
        bounds = mixing_bounds.guarantee(one, system, table, 0.9, shared=shared)
        held = (
            (truth.values(table) <= np.array(bounds.value_bounds) + 1e-9).all()
            and truth.error(table) <= bounds.error_bound + 1e-9
            and truth.error(table) - best <= bounds.excess_bound + 1e-6
        )
        failures += not held
        assert bounds.gap_bound < 0.25
        assert bounds.excess_bound < 0.15
        assert bounds.error_bound < bounds.error + 0.04
    assert failures < 18


@pytest.mark.parametrize("planted", [None, "noise", "root"])
def test_guarantee_1_no_table_of_thresholds_is_further_off_than_its_slack_and_planted_bugs_are_caught(
    planted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst threshold of each release, over 300 releases at confidence 0.8: more than 85
    failures have probability below 1e-4 if 0.2 is right. Noise far larger than stated, and the walk
    of a single bin in place of all, fail far more often."""
    counts, edges = some(2, 16, 2, 8000)
    system = resolve([EqualizedOdds(0.1), DemographicParity(0.1)], cells_of(2), (0, 1))
    truth = Program.of(exact(counts, edges), system)
    law = CountNoise("discrete-laplace", 3.0)
    if planted == "root":
        honest = CountNoise.walk_tail
        monkeypatch.setattr(
            CountNoise, "walk_tail", lambda self, length, walks, p: honest(self, 1, walks, p) / 1.5
        )
    rng = np.random.default_rng(0)
    each = np.eye(17)
    tables = [
        truth.tables.table(np.concatenate([each[s], each[t]])) for s in range(17) for t in range(17)
    ]
    flat = np.array([table.ravel() for table in tables]).T
    values, errors = np.asarray(truth.rows @ flat), 1.0 + truth.cost @ flat
    failures = 0
    for _ in range(300):
        real = CountNoise("discrete-laplace", 60.0) if planted == "noise" else law
        raw = counts + drawn(real, counts.shape, rng)
        one = Released(raw, None, law, float(counts.sum()), edges)
        program = Program.of(one, system)
        slack = threshold_bounds.slacks(one, system, 0.8)
        off = np.abs(np.asarray(program.rows @ flat) - values).max(axis=1)
        wrong = np.abs(1.0 + program.cost @ flat - errors).max()
        failures += bool((off > slack).any() or wrong > threshold_bounds.error_slack(one, 0.8))
    if planted is None:
        assert failures <= 85
    else:
        assert failures > 150


@pytest.mark.parametrize("public", [True, False])
def test_guarantee_1_holds_where_a_group_truly_lacks_a_label(public: bool) -> None:
    """The best table that knows it need not keep the constraint there. Bounds fail with probability
    at most 0.1: more than 15 of 60 releases have probability below 1e-4."""
    counts, edges = some(2, 8, 4, 8000)
    counts[0, 1] = 0.0
    system = resolve(EqualOpportunity(0.0), cells_of(2), (0, 1))
    known = Program.of(exact(counts, edges), system)
    best = known.error(mixing.solve(known).table)
    rng, law, failed = np.random.default_rng(0), CountNoise("discrete-laplace", 2.0), 0
    for _ in range(60):
        one = noisy(counts, edges, GROUPS if public else RECORDS, law, rng)
        table = mixing_bounds.mixed(one, system, 0.9, with_slack=False).table
        found = mixing_bounds.guarantee(one, system, table, 0.9)
        failed += known.error(table) - best > found.excess_bound + 1e-5
    assert failed <= 15


def test_without_noise_the_bounds_are_the_values() -> None:
    counts, edges = some(2, 32)
    system = resolve(EqualizedOdds(0.05), cells_of(2), (0, 1))
    one = exact(counts, edges)
    table = mixing.solve(Program.of(one, system)).table
    bounds = mixing_bounds.guarantee(one, system, table, 0.95)
    assert bounds.gap_bound == pytest.approx(bounds.gap, abs=1e-9)
    assert bounds.error_bound == pytest.approx(bounds.error)
    assert bounds.excess_bound <= mixing.CHANCE + 2 * mixing.TIE


def test_the_noise_of_values_is_what_releases_show() -> None:
    """The stated standard deviations against those of 400 releases: a ratio within 20 % (false
    alarm below 1e-6)."""
    counts, edges = some(2, 16, 4, 8000)
    system = resolve(EqualizedOdds(0.05), cells_of(2), (0, 1))
    law = CountNoise("discrete-laplace", 3.0)
    table = Program.of(exact(counts, edges), system).tables.base
    rng = np.random.default_rng(0)
    found = [
        Program.of(noisy(counts, edges, RECORDS, law, rng), system).values(table)
        for _ in range(400)
    ]
    stated = mixing_bounds.value_noise(Released(counts, None, law, None, edges), system, table)
    assert np.allclose(np.std(found, axis=0) / np.array(stated), 1.0, atol=0.2)


def test_what_is_written_is_read_to_the_bit() -> None:
    counts, edges = some(2, 8)
    one = noisy(
        counts, edges, GROUPS, CountNoise("discrete-laplace", 2.0), np.random.default_rng(0)
    )
    again = postprocess.from_dict(postprocess.to_dict(one))
    assert (again.raw == one.raw).all()
    assert again.edges is not None
    assert (again.edges == edges).all()
    assert (again.counts == one.counts).all()


def test_a_small_group_keeps_its_share_of_positives_where_labels_do_not_matter() -> None:
    """Filled up label by label it would seem to have far more positives than it has, and its rate
    be moved for nothing."""
    counts, edges = some(2, 8, rows=8000)
    counts[1] = counts[0] * 0.03
    law = CountNoise("gaussian", 20.0)
    one = Released(counts, None, law, None, edges)
    parity, odds = (
        resolve(notion, cells_of(2), (0, 1))
        for notion in (DemographicParity(0.0), EqualizedOdds(0.0))
    )
    filled = mixing.filled(one, parity)
    share = counts[0, 1].sum() / counts[0].sum()
    assert filled[1].sum() == pytest.approx(mixing.FLOOR * 20.0 * 4.0)
    assert filled[1, 1].sum() / filled[1].sum() == pytest.approx(share)
    assert np.allclose(mixing.filled(one, odds)[1].sum(axis=1), mixing.FLOOR * 20.0 * math.sqrt(8))
    table = mixing.solve(Program.of(one, parity)).table
    assert np.abs(table[0] - table[1]).max() < 1e-6  # the same people: the same threshold
    for system in (parity, odds):
        assert (
            mixing.filled(Released(counts * 0.0, None, law, None, edges), system).sum(axis=(1, 2))
            > 0
        ).all()
