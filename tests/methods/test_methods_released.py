"""Groups released once: clusters of public rows, price, neighbours and noise of the counts, rates
and how far off they may be, and models from soft memberships."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from fairveil.core import cost as accounting
from fairveil.curator import Curator, Rows
from fairveil.errors import PrivacyError
from fairveil.facts import Cells
from fairveil.fairness import (
    ConstraintSystem,
    DemographicParity,
    EqualizedOdds,
    FalseNegativeRate,
    RateConstraint,
    resolve,
)
from fairveil.fairness.notions import Event, PredictionRate
from fairveil.methods.counts import EXACT, CountNoise, CountPlan
from fairveil.methods.public_rows import PublicRows
from fairveil.methods.released import (
    MOST,
    Candidates,
    Clusters,
    GroupCounts,
    Soft,
    SoftValue,
    constants,
    grown_clusters,
    leaves_for,
    path,
    plan_groups,
    release_groups,
    soft_values,
)
from fairveil.privacy import NoiseSource, Promise
from fairveil.statement.document import PrivacyStatement

CELLS = Cells(((0, 1),))

# -- clusters --------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
X[:, 3] = RNG.integers(2, size=600)
Y = (X[:, 0] + RNG.normal(size=600) > 0).astype(np.intp)


def test_a_rows_cluster_depends_on_itself_alone_and_never_mixes_labels() -> None:
    found = grown_clusters(X, Y, 2, 30)
    codes, order = found.codes(X, Y), RNG.permutation(len(X))
    assert (found.codes(X[order], Y[order]) == codes[order]).all()
    assert [int(found.codes(X[[i]], Y[[i]])[0]) for i in range(50)] == codes[:50].tolist()
    assert (found.labels[codes] == Y).all()
    assert set(codes.tolist()) == set(range(found.count))
    assert 20 <= found.count <= 30


def test_rows_of_a_leaf_are_closer_than_rows_of_a_label() -> None:
    """In what the trees split: the variance inside leaves is a small part of that inside labels."""
    found: Clusters = grown_clusters(X, Y, 2, 60)
    z, codes = found.numbers(X), found.codes(X, Y)
    parts = [z[codes == k].var(axis=0) * (codes == k).sum() for k in range(found.count)]
    labels = [z[k == Y].var(axis=0) * (k == Y).sum() for k in (0, 1)]
    assert np.sum(parts) < 0.5 * np.sum(labels)


@pytest.mark.parametrize("rows", [1, 100, 5000, 10**6])
@pytest.mark.parametrize("groups", [2, 5, 20])
@pytest.mark.parametrize("deviation", [0.0, 1.4, 14.0])
def test_leaves_are_few_where_noise_is_large(rows: int, groups: int, deviation: float) -> None:
    found = leaves_for(rows, 2, groups, deviation)
    assert 2 <= found <= MOST
    assert found <= leaves_for(rows, 2, groups, deviation / 2)
    assert found <= leaves_for(rows, 2, 2, deviation)
    assert found <= leaves_for(2 * rows, 2, groups, deviation)


@pytest.mark.parametrize(
    "features",
    [np.zeros((40, 3)), X[:1], np.eye(3)[[0] * 30 + [1] * 30]],
    ids=["flat", "one", "two"],
)
def test_rows_that_cannot_be_split_make_one_cluster_a_label(features: np.ndarray) -> None:
    labels = np.zeros(len(features), np.intp)
    found = grown_clusters(features, labels, 2, 10)
    assert found.count >= 2
    assert (found.codes(features, labels) < found.trees[0].leaves).all()


# -- the release -----------------------------------------------------------------------------------

CLUSTERS, PLACES, HELD = 3, np.array([0, 0, 1, 1, 1, 2]), np.array([2.0, 3.0, 1.0])


def promised(epsilon: float = 1.0) -> Promise:
    return Promise(epsilon, 0.0, "sensitive_features")


def rows_of(groups: np.ndarray, sizes: tuple[int, ...]) -> Rows:
    """Six rows whose features and labels never change."""
    columns, labels = [tuple(range(size)) for size in sizes], np.array([0, 1, 0, 1, 0, 1])
    features = np.arange(12.0).reshape(6, 2)
    return Rows.from_arrays(features, labels, list(groups.T), classes=(0, 1), groups=columns)


def largest_move(sizes: tuple[int, ...]) -> float:
    """What the plan asks, without noise, over data sets and all their neighbours: one person's
    sensitive values change, all else stays."""
    rng, found = np.random.default_rng(0), 0.0

    def exact(groups: np.ndarray) -> np.ndarray:
        rows = rows_of(groups, sizes)
        curator = Curator(rows, promised(math.inf))
        attached = curator.attach_codes(PLACES, CLUSTERS, columns_read={"features", "label"})
        question = plan_groups(promised(), rows.cells()).measurement(attached).question
        return np.asarray(curator.answer([(question, 0.0)])[0])

    values = list(itertools.product(*map(range, sizes)))
    for _ in range(4):
        groups = np.array([values[i] for i in rng.integers(len(values), size=6)])
        here = exact(groups)
        for row, value in itertools.product(range(6), values):
            other = groups.copy()
            other[row] = value
            found = max(found, float(np.abs(exact(other) - here).sum()))
    return found


@pytest.mark.parametrize(("sizes", "bound"), [((2,), 1), ((3,), 2), ((2, 2), 2)])
def test_all_neighbours_move_by_the_stated_sensitivity_and_a_planted_bug_is_caught(
    sizes: tuple[int, ...], bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = Cells(tuple(tuple(range(size)) for size in sizes))
    assert plan_groups(promised(), cells).moved == bound
    # neither more, nor less: the noise is not more than is needed
    assert largest_move(sizes) == bound
    if bound == 1:  # both groups asked at the price of one
        monkeypatch.setattr(CountPlan, "one_group", property(lambda self: False))
        assert largest_move(sizes) > bound


@pytest.mark.parametrize("epsilon", [0.1, 5.0])
@pytest.mark.parametrize("groups", [2, 7])
def test_the_plan_keeps_the_promise_and_the_log_is_the_plan(epsilon: float, groups: int) -> None:
    rows = rows_of(np.array([[0], [1], [1], [0], [1], [0]]), (groups,))
    asked = plan_groups(Promise(epsilon, 1e-6, "sensitive_features"), rows.cells())
    assert 0.999 * epsilon <= accounting.epsilon(asked.event, 0.0, "replace-one") <= epsilon
    with Curator(rows, promised(epsilon), plan=asked.event, noise=NoiseSource.of(0)) as curator:
        attached = curator.attach_codes(PLACES, CLUSTERS, columns_read={"features", "label"})
        release_groups(curator, attached, asked, HELD)
        curator.finish()
    statement = PrivacyStatement.of_run(curator)
    assert statement.check() == []
    assert statement.user_code == "none"
    assert statement.events == (asked.event,)


@pytest.mark.parametrize("groups", [2, 3])
def test_noise_is_unbiased_and_of_the_stated_law(groups: int) -> None:
    """20,000 clusters: a mean and a frequency stay within 5 standard errors, so a false alarm is
    one in a million."""
    count, codes = 20_000, np.array([0, 1, 2, 3])
    rows = Rows.from_arrays(
        np.zeros((4, 1)),
        np.zeros(4, int),
        [np.array([0, 1, 1, 0])],
        classes=(0, 1),
        groups=[range(groups)],
    )
    asked = plan_groups(promised(0.5), rows.cells())
    with Curator(rows, promised(0.5), plan=asked.event, noise=NoiseSource.of(1)) as curator:
        attached = curator.attach_codes(codes, count, columns_read={"features"})
        sizes = np.append(np.ones(4), np.zeros(count - 4))
        released = release_groups(curator, attached, asked, sizes)
        curator.finish()
    noise, law = released.raw[0, 4:], released.noise
    assert (noise == np.rint(noise)).all()
    assert abs(noise.mean()) < 5 * law.sd / math.sqrt(len(noise))
    r = math.exp(-1.0 / law.scale)
    for size in range(4):
        share = (1 - r) / (1 + r) * r**size * (2 if size else 1)
        error = math.sqrt(share * (1 - share) / len(noise))
        assert abs((np.abs(noise) == size).mean() - share) < 5 * error
    assert law.scale == pytest.approx(2.0 if groups == 2 else 4.0, rel=1e-3)
    if groups == 2:
        assert (released.raw.sum(axis=0) == sizes).all()


def test_memberships_are_shares_and_private_columns_make_no_clusters() -> None:
    rng, sizes = np.random.default_rng(0), np.array([5.0, 0.0, 1.0, 200.0])
    for groups in (2, 4):
        raw = rng.normal(10.0, 60.0, size=(groups, 4)).round()
        found = GroupCounts(raw, sizes, CountNoise("discrete-laplace", 2.0)).memberships
        assert found.shape == (4, groups)
        assert (found >= 0).all()
        assert np.allclose(found.sum(axis=1), 1.0)
    with pytest.raises(PrivacyError, match="protects"):
        plan_groups(Promise(1.0, 1e-6), CELLS)
    rows = rows_of(np.zeros((6, 1), int), (2,))
    with pytest.raises(PrivacyError, match="public features"):
        Curator(rows, Promise(1.0, 1e-6)).attach_codes(PLACES, CLUSTERS)


# -- rates -----------------------------------------------------------------------------------------

CODES, LABELS = np.repeat(np.arange(12), 20), np.repeat([0, 1], 6)
Q, SIZES = RNG.random(240), np.full(12, 20.0)
GROUP = (RNG.random(240) < 0.3 + 0.4 * (CODES % 3 == 0)).astype(int)
COUNTS = np.stack([np.bincount(CODES[g == GROUP], minlength=12) for g in (0, 1)]).astype(float)
LAW = np.column_stack([1 - Q, Q])
ODDS = resolve(EqualizedOdds(0.1), CELLS, (0, 1))
MEANS = np.bincount(CODES, weights=Q) / 20


def smoothed(group: int, label: int) -> float:
    """The first term of a group's rate: cluster means weighed by its exact counts."""
    at = label == LABELS
    return float(COUNTS[group, at] @ MEANS[at] / COUNTS[group, at].sum())


def noisy(scale: float, rng: np.random.Generator) -> np.ndarray:
    """Discrete Laplace noise, by its own recipe: a difference of two geometric numbers."""
    p = 1.0 - math.exp(-1.0 / scale)
    first = COUNTS[0] + rng.geometric(p, 12) - rng.geometric(p, 12)
    return np.stack([first, SIZES - first])


def rate_of(counts: GroupCounts, codes: np.ndarray, law: np.ndarray, **event: Any) -> SoftValue:
    """That of deciding for 1, of an event, over clusters of one label."""
    one = RateConstraint(((1.0, PredictionRate(1, Event(**event))),), 1.0)
    labels = np.zeros(len(counts.sizes), np.intp)
    return soft_values(counts, codes, labels, law, resolve(one, CELLS, (0, 1)), 0.05)[0]


def test_a_value_is_the_difference_of_its_rates_and_exact_where_clusters_decide_alike() -> None:
    """Decisions that a cluster's rows share have no covariance with the group inside it."""
    exact = GroupCounts(COUNTS, SIZES, EXACT)
    found = soft_values(exact, CODES, LABELS, LAW, ODDS, 0.05)
    assert len(found) == 4
    assert found[0].name.startswith("P(prediction = 1 | group 0, label 0)")
    assert found[0].value == pytest.approx(smoothed(0, 0) - smoothed(1, 0))
    assert found[0].low == pytest.approx(found[0].high)
    assert found[1].within == found[0].within > 0
    alike = np.column_stack([1 - CODES % 2, CODES % 2]).astype(float)
    one = soft_values(exact, CODES, LABELS, alike, ODDS, 0.05)[0]
    label = LABELS[CODES]
    truth = [alike[(g == GROUP) & (label == 0), 1].mean() for g in (0, 1)]
    assert one.value == pytest.approx(truth[0] - truth[1])
    assert one.within == pytest.approx(0.0)
    assert [one.lowest, one.highest] == pytest.approx([one.value] * 2, abs=1e-6)


def test_estimates_are_unbiased_and_intervals_hold_what_they_say() -> None:
    """2,000 releases. Means within 5 standard errors; misses in 100 of them at most 11 (the bound
    says 5 %: a false alarm of an honest one is below 1 in 100, and the seed is fixed). Bars that are
    made for a fortieth of the true scale, a planted bug, miss far more than they say."""
    rng, missed, planted, tops, scale = np.random.default_rng(7), 0, 0, [], 4.0
    truth = [smoothed(0, y) - smoothed(1, y) for y in (0, 1)]
    wanted = [sign * gap for gap in truth for sign in (1, -1)]
    for run in range(2000):
        raw = noisy(scale, rng)
        tops.append([float(raw[0, :6] @ MEANS[:6]), float(raw[0, :6].sum())])
        for told in (scale, 0.025 * scale) if run < 100 else ():
            counts = GroupCounts(raw, SIZES, CountNoise("discrete-laplace", told))
            found = soft_values(counts, CODES, LABELS, LAW, ODDS, 0.05)
            pairs = zip(found, wanted, strict=True)
            wrong = any(not one.low <= value <= one.high for one, value in pairs)
            missed += wrong and told == scale
            planted += wrong and told != scale
    exact = np.array([COUNTS[0, :6] @ MEANS[:6], COUNTS[0, :6].sum()])
    errors = np.array(tops).std(axis=0) / math.sqrt(2000)
    assert (np.abs(np.mean(tops, axis=0) - exact) < 5 * errors).all()
    assert missed <= 11
    assert planted > 30


def test_bounds_hold_every_assignment() -> None:
    """Four rows a cluster, two of them of the group: all 36 assignments lie inside, and the
    extremes are reached."""
    codes, q = np.repeat([0, 1], 4), np.array([0.1, 0.9, 0.4, 0.6, 0.0, 1.0, 1.0, 0.2])
    counts = GroupCounts(np.full((2, 2), 2.0), np.full(2, 4.0), EXACT)
    found = rate_of(counts, codes, np.column_stack([1 - q, q]), groups=(0,))
    pairs = list(itertools.combinations(range(4), 2))
    rates = [np.mean([*q[:4][list(a)], *q[4:][list(b)]]) for a in pairs for b in pairs]
    assert found.lowest == pytest.approx(min(rates))
    assert found.highest == pytest.approx(max(rates))
    assert found.value == pytest.approx(np.mean(rates))
    # every assignment is equally likely: the distribution of chance inside clusters
    assert found.within == pytest.approx(np.std(rates))


def test_a_rate_of_everybody_has_no_noise_and_a_group_of_nobody_has_no_rate() -> None:
    shifted = np.stack([COUNTS[0] + 9.0, COUNTS[1] - 9.0])
    whole = rate_of(GroupCounts(shifted, SIZES, CountNoise("discrete-laplace", 5.0)), CODES, LAW)
    assert whole.low == whole.value == whole.high == pytest.approx(Q.mean())
    nobody = np.stack([-np.ones(12), SIZES + 1.0])
    law = CountNoise("discrete-laplace", 1.0)
    found = rate_of(GroupCounts(nobody, SIZES, law), CODES, LAW, groups=(0,))
    assert math.isnan(found.value)
    assert (found.low, found.high, found.lowest, found.highest) == (0.0, 1.0, 0.0, 1.0)


# -- the search ------------------------------------------------------------------------------------

ROWS = 800
A = RNG.integers(2, size=ROWS)
Z = RNG.normal(size=(ROWS, 3)) + 0.8 * A[:, None]
T = (Z.sum(axis=1) + RNG.normal(size=ROWS) > 1).astype(np.intp)
MEMBERS = np.clip(np.eye(2)[A] * 0.8 + 0.1, 0, 1)


def system_of(notion: Any, classes: int = 2) -> ConstraintSystem:
    return resolve(notion, CELLS, tuple(range(classes)))


def soft_of(
    notion: Any, classes: int = 2, labels: np.ndarray = T, members: np.ndarray = MEMBERS
) -> Soft:
    design = np.column_stack([np.ones(ROWS), (Z - Z.mean(axis=0)) / Z.std(axis=0)])
    weights = np.full(ROWS, 1 / ROWS)
    rows = PublicRows(design, np.eye(4), labels, members, weights, classes, True)
    return Soft.of(rows, system_of(notion, classes))


def mixed(soft: Soft, laws: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """The best mixture's probabilities, and its excess."""
    shares, excess = Candidates.of(soft, laws).mixture(soft.system.bounds)
    return np.sum([s * one for s, one in zip(shares, laws, strict=True)], axis=0), excess


def test_histogram_error_and_values_are_sums_over_rows() -> None:
    soft, q = soft_of(EqualizedOdds(0.05)), RNG.random(ROWS)
    law = np.column_stack([1 - q, q])
    assert soft.histogram(law)[1, 0, 1] == pytest.approx((MEMBERS[:, 1] * q)[T == 0].sum())
    assert soft.error(law) == pytest.approx(np.where(T == 1, 1 - q, q).mean())
    at = T == 0
    rates = [(MEMBERS[:, a] * q)[at].sum() / MEMBERS[at, a].sum() for a in (0, 1)]
    assert soft.values(law)[0] == pytest.approx(rates[0] - rates[1])


def test_the_program_is_the_best_mixture() -> None:
    """Brute force over a fine grid of mixtures of three candidates finds none that is better."""
    values = np.array([[0.3, -0.3], [0.1, -0.1], [-0.1, 0.1]])
    found = Candidates(np.array([0.1, 0.2, 0.35]), values)
    grid = [np.array([a, b, 60 - a - b]) / 60 for a in range(61) for b in range(61 - a)]
    for bound in (0.3, 0.15, 0.1, 0.05, 0.0):
        shares, excess = found.mixture(np.full(2, bound))
        assert excess == pytest.approx(0.0, abs=1e-9)
        assert (shares @ values <= bound + 1e-6).all()
        kept = [w for w in grid if (w @ values <= bound + 1e-12).all()]
        assert float(shares @ found.errors) <= min(float(w @ found.errors) for w in kept) + 1e-6
    # bounds that contradict each other give by the least
    found = Candidates(np.array([0.1, 0.2]), np.array([[0.5, 0.0], [0.4, 0.2]]))
    shares, excess = found.mixture(np.array([0.1, 0.3]))
    assert excess == pytest.approx(0.3)
    assert shares.tolist() == [0.0, 1.0]


def test_a_single_candidate_is_the_best_that_keeps_the_bounds_or_comes_nearest() -> None:
    values = np.array([[0.3, -0.3], [0.1, -0.1], [0.0, 0.0], [0.02, -0.02]])
    found = Candidates(np.array([0.1, 0.2, 0.35, 0.3]), values)
    expected = ((0.5, 0, 0), (0.1, 1, 0), (0.05, 3, 0), (0.01, 2, 0), (-0.05, 2, 0.05))
    for bound, best, over in expected:
        shares, excess = found.single(np.array([bound, bound]))
        assert shares.tolist() == np.eye(4)[int(best)].tolist(), bound
        assert excess == pytest.approx(over)
    free = Candidates(np.array([0.3, 0.1]), np.empty((2, 0)))
    assert free.single(np.zeros(0))[0].tolist() == [0.0, 1.0]
    assert free.mixture(np.zeros(0))[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "notion", [DemographicParity(0.03), EqualizedOdds(0.03), FalseNegativeRate(0.15, group="each")]
)
def test_the_path_reaches_bounds_for_less_than_constants_cost(notion: Any) -> None:
    soft = soft_of(notion)
    laws = [np.eye(2)[soft.rows.decided(v)] for v in path(soft)]
    fixed = [law for _, law in constants(soft)]
    law, excess = mixed(soft, laws + fixed)
    assert excess < 1e-6
    assert (soft.values(law) <= soft.system.bounds + 1e-6).all()
    assert soft.values(laws[0]).max() > soft.system.bounds.max()
    assert soft.error(law) < soft.error(mixed(soft, [laws[0], *fixed])[0])


def test_three_classes() -> None:
    labels = np.digitize(Z.sum(axis=1), [0.0, 2.0]).astype(np.intp)
    soft = soft_of(DemographicParity(0.1), 3, labels)
    laws = [np.eye(3)[soft.rows.decided(v)] for v in path(soft)]
    assert mixed(soft, laws + [law for _, law in constants(soft)])[1] < 1e-6


def test_groups_enter_through_memberships_alone() -> None:
    """Members that tell nothing: every value of a difference is 0, and the constrained path is the
    free one."""
    flat = soft_of(EqualizedOdds(0.05), members=np.full((ROWS, 2), 0.5))
    found = path(flat)
    assert np.allclose(flat.values(np.eye(2)[flat.rows.decided(found[0])]), 0.0)
    assert np.allclose(found[5], found[0], atol=0.05)
