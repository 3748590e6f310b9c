"""Models from soft memberships: the program over candidates, the path, exponentiated gradient."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairveil.facts import Cells
from fairveil.fairness import DemographicParity, EqualizedOdds, FalseNegativeRate, resolve
from fairveil.learning.public_rows import PublicRows
from fairveil.learning.released import search as soft_search
from fairveil.learning.released.search import Candidates, Soft

RNG = np.random.default_rng(0)
ROWS = 800
A = RNG.integers(2, size=ROWS)
X = RNG.normal(size=(ROWS, 3)) + 0.8 * A[:, None]
Y = (X.sum(axis=1) + RNG.normal(size=ROWS) > 1).astype(np.intp)
CELLS = Cells(((0, 1),))


def soft_of(notion: object, classes: int = 2, labels: np.ndarray = Y) -> Soft:
    design = np.column_stack([np.ones(ROWS), (X - X.mean(axis=0)) / X.std(axis=0)])
    members = np.clip(np.eye(2)[A] * 0.8 + 0.1, 0, 1)
    rows = PublicRows(design, np.eye(4), labels, members, np.full(ROWS, 1 / ROWS), classes, True)
    return Soft.of(rows, resolve(notion, CELLS, tuple(range(classes))))


def test_histogram_error_and_values_are_sums_over_rows() -> None:
    soft = soft_of(EqualizedOdds(0.05))
    q = RNG.random(ROWS)
    law = np.column_stack([1 - q, q])
    table = soft.histogram(law)
    assert table[1, 0, 1] == pytest.approx((soft.rows.members[:, 1] * q)[Y == 0].sum())
    assert soft.error(law) == pytest.approx(np.where(Y == 1, 1 - q, q).mean())
    members = soft.rows.members
    rates = [(members[:, a] * q)[Y == 0].sum() / members[Y == 0, a].sum() for a in (0, 1)]
    assert soft.values(law)[0] == pytest.approx(rates[0] - rates[1])


def test_guarantee_1_the_program_is_the_best_mixture() -> None:
    """Brute force over a fine grid of mixtures of three candidates finds none that is better."""
    found = Candidates(
        np.array([0.1, 0.2, 0.35]), np.array([[0.3, -0.3], [0.1, -0.1], [-0.1, 0.1]])
    )
    for bound in (0.3, 0.15, 0.1, 0.05, 0.0):
        shares, excess = found.mixture(np.full(2, bound))
        assert excess == pytest.approx(0.0, abs=1e-9)
        assert (shares @ found.values <= bound + 1e-6).all()
        grid = [
            np.array([a, b, 60 - a - b]) / 60
            for a, b in itertools.product(range(61), repeat=2)
            if a + b <= 60
        ]
        best = min(
            float(w @ found.errors) for w in grid if (w @ found.values <= bound + 1e-12).all()
        )
        assert float(shares @ found.errors) <= best + 1e-6


def test_bounds_that_contradict_each_other_give_by_the_least() -> None:
    found = Candidates(np.array([0.1, 0.2]), np.array([[0.5, 0.0], [0.4, 0.2]]))
    shares, excess = found.mixture(np.array([0.1, 0.3]))
    assert excess == pytest.approx(0.3)
    assert shares.tolist() == [0.0, 1.0]


def test_a_single_candidate_is_the_best_that_keeps_the_bounds_or_comes_nearest() -> None:
    found = Candidates(
        np.array([0.1, 0.2, 0.35, 0.3]),
        np.array([[0.3, -0.3], [0.1, -0.1], [0.0, 0.0], [0.02, -0.02]]),
    )
    for bound, best, over in (
        (0.5, 0, 0.0),
        (0.1, 1, 0.0),
        (0.05, 3, 0.0),
        (0.01, 2, 0.0),
        (-0.05, 2, 0.05),
    ):
        shares, excess = found.single(np.array([bound, bound]))
        assert shares.tolist() == np.eye(4)[best].tolist(), bound
        assert excess == pytest.approx(over)
    free = Candidates(np.array([0.3, 0.1]), np.empty((2, 0)))
    assert free.single(np.zeros(0))[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "notion", [DemographicParity(0.03), EqualizedOdds(0.03), FalseNegativeRate(0.15, group="each")]
)
def test_the_path_reaches_bounds_for_less_than_constants_cost(notion: object) -> None:
    soft = soft_of(notion)
    eye = np.eye(2)
    laws = [eye[soft.rows.decided(v)] for v in soft_search.path(soft)]
    fixed = [law for _, law in soft_search.constants(soft)]
    shares, excess = Candidates.of(soft, laws + fixed).mixture(soft.system.bounds)
    law = np.sum([s * one for s, one in zip(shares, laws + fixed, strict=True)], axis=0)
    assert excess < 1e-6
    assert (soft.values(law) <= soft.system.bounds + 1e-6).all()
    assert soft.values(laws[0]).max() > soft.system.bounds.max()
    # mixing with one class
    beside, _ = Candidates.of(soft, [laws[0], *fixed]).mixture(soft.system.bounds)
    mixing = soft.error(
        np.sum([s * one for s, one in zip(beside, [laws[0], *fixed], strict=True)], axis=0)
    )
    assert soft.error(law) < mixing


def test_three_classes() -> None:
    labels = np.digitize(X.sum(axis=1), [0.0, 2.0]).astype(np.intp)
    soft = soft_of(DemographicParity(0.1), 3, labels)
    laws = [np.eye(3)[soft.rows.decided(v)] for v in soft_search.path(soft)]
    shares, excess = Candidates.of(
        soft, laws + [law for _, law in soft_search.constants(soft)]
    ).mixture(soft.system.bounds)
    assert excess < 1e-6
    assert shares.sum() == pytest.approx(1.0)


def test_exponentiated_gradient_teaches_any_learner() -> None:
    soft = soft_of(EqualizedOdds(0.05))
    taught: list[np.ndarray] = []

    def fit(targets: np.ndarray, weights: np.ndarray) -> LogisticRegression:
        taught.append(weights)
        return LogisticRegression().fit(X, targets, sample_weight=weights)

    pairs = soft_search.reduced(
        soft, soft.system.bounds, fit, lambda rule: rule.predict(X).astype(np.intp), 15
    )
    assert len(pairs) == 16
    assert (taught[0] == 1).all()
    laws = [law for _, law in pairs] + [law for _, law in soft_search.constants(soft)]
    shares, excess = Candidates.of(soft, laws).mixture(soft.system.bounds)
    law = np.sum([s * one for s, one in zip(shares, laws, strict=True)], axis=0)
    assert excess < 1e-6
    assert soft.error(law) < min(Y.mean(), 1 - Y.mean()) - 0.05


def test_guarantee_2_groups_enter_through_memberships_alone() -> None:
    """Members that tell nothing: every value of a difference is 0, and the constrained path is the
    free one."""
    soft = soft_of(EqualizedOdds(0.05))
    flat = Soft.of(
        PublicRows(
            soft.rows.design,
            soft.rows.basis,
            Y,
            np.full((ROWS, 2), 0.5),
            soft.rows.weights,
            2,
            True,
        ),
        soft.system,
    )
    path = soft_search.path(flat)
    assert np.allclose(flat.values(np.eye(2)[flat.rows.decided(path[0])]), 0.0)
    assert np.allclose(path[5], path[0], atol=0.05)
