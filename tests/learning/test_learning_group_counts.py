"""Counts of groups in public clusters: price, neighbours, the distribution of what is released."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fairveil.core import cost as accounting
from fairveil.curator import CodeHistogram, Curator, Rows
from fairveil.errors import PrivacyError
from fairveil.facts import Cells
from fairveil.learning.released import group_counts
from fairveil.privacy import NoiseSource, Promise

CLUSTERS = 3
CODES = np.array([0, 0, 1, 1, 1, 2])
SIZES = np.array([2.0, 3.0, 1.0])


def promised(epsilon: float = 1.0) -> Promise:
    return Promise(epsilon, 0.0, "sensitive_features")


def rows_of(groups: np.ndarray, sizes: tuple[int, ...]) -> Rows:
    """Six rows whose features and labels never change."""
    X = np.arange(12.0).reshape(6, 2)
    columns = [tuple(range(size)) for size in sizes]
    return Rows.from_arrays(
        X, np.array([0, 1, 0, 1, 0, 1]), list(groups.T), classes=(0, 1), groups=columns
    )


def exact(groups: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """The counts that the plan asks, without noise: asked by the plan's own question."""
    rows = rows_of(groups, sizes)
    plan = group_counts.plan(promised(), rows.cells())
    curator = Curator(rows, promised(math.inf))
    attached = curator.attach_codes(CODES, CLUSTERS, columns_read={"features", "label"})
    return curator.answer([(plan.question(attached), 0.0)])[0]


def largest_move(sizes: tuple[int, ...]) -> float:
    """Over data sets and all their neighbours: one person's sensitive values change, all else
    stays."""
    found = 0.0
    rng = np.random.default_rng(0)
    values = list(itertools.product(*map(range, sizes)))
    for _ in range(4):
        groups = np.array([values[i] for i in rng.integers(len(values), size=6)])
        here = exact(groups, sizes)
        for row, value in itertools.product(range(6), values):
            other = groups.copy()
            other[row] = value
            found = max(found, float(np.abs(exact(other, sizes) - here).sum()))
    return found


@pytest.mark.parametrize(("sizes", "bound"), [((2,), 1), ((3,), 2), ((2, 2), 2)])
def test_guarantee_2_all_neighbours_move_by_the_stated_sensitivity(
    sizes: tuple[int, ...], bound: int
) -> None:
    cells = Cells(tuple(tuple(range(size)) for size in sizes))
    assert group_counts.plan(promised(), cells).moved == bound
    # neither more, nor less: the noise is not more than is needed
    assert largest_move(sizes) == bound


def test_guarantee_2_a_planted_bug_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both groups asked at the price of one."""
    monkeypatch.setattr(group_counts.CountsPlan, "one_group", property(lambda self: False))
    assert largest_move((2,)) > group_counts.plan(promised(), Cells(((0, 1),))).moved


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("groups", [2, 3, 7])
def test_guarantee_1_the_plan_keeps_the_promise_and_the_log_is_the_plan(
    epsilon: float, groups: int
) -> None:
    rows = rows_of(np.array([[0], [1], [1], [0], [1], [0]]), (groups,))
    plan = group_counts.plan(promised(epsilon), rows.cells())
    assert 0.999 * epsilon <= accounting.epsilon(plan.event, 0.0, "replace-one") <= epsilon
    curator = Curator(rows, promised(epsilon), plan=plan.event, noise=NoiseSource.of(0))
    attached = curator.attach_codes(CODES, CLUSTERS, columns_read={"features", "label"})
    group_counts.release(curator, attached, plan, SIZES)
    curator.finish()
    statement = curator.statement()
    assert statement.check() == []
    assert statement.user_code == "none"
    assert statement.events == (plan.event,)
    assert statement.epsilon <= epsilon


@pytest.mark.parametrize("groups", [2, 3])
def test_guarantee_3_noise_is_unbiased_and_of_the_stated_distribution(groups: int) -> None:
    """20,000 clusters: a mean and a frequency stay within 5 standard errors, so a false alarm is
    one in a million."""
    count = 20_000
    rows = Rows.from_arrays(
        np.zeros((4, 1)),
        np.zeros(4, int),
        [np.array([0, 1, 1, 0])],
        classes=(0, 1),
        groups=[range(groups)],
    )
    plan = group_counts.plan(promised(0.5), rows.cells())
    curator = Curator(rows, promised(0.5), plan=plan.event, noise=NoiseSource.of(1))
    attached = curator.attach_codes(np.array([0, 1, 2, 3]), count, columns_read={"features"})
    sizes = np.append(np.ones(4), np.zeros(count - 4))
    released = group_counts.release(curator, attached, plan, sizes)
    noise = released.raw[0, 4:]
    assert (noise == np.rint(noise)).all()
    assert abs(noise.mean()) < 5 * plan.noise.sd / math.sqrt(len(noise))
    r = math.exp(-1.0 / plan.noise.scale)
    for size in range(4):
        share = (1 - r) / (1 + r) * r**size * (2 if size else 1)
        assert abs((np.abs(noise) == size).mean() - share) < 5 * math.sqrt(
            share * (1 - share) / len(noise)
        )
    if groups == 2:
        assert (released.raw.sum(axis=0) == sizes).all()
        assert plan.noise.scale == pytest.approx(2.0, rel=1e-3)
    else:
        assert plan.noise.scale == pytest.approx(4.0, rel=1e-3)


def test_guarantee_4_memberships_are_shares() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([5.0, 0.0, 1.0, 200.0])
    for groups in (2, 4):
        raw = rng.normal(10.0, 60.0, size=(groups, 4)).round()
        found = group_counts.GroupCounts(
            raw, sizes, group_counts.CountNoise("discrete-laplace", 2.0)
        ).memberships
        assert found.shape == (4, groups)
        assert (found >= 0).all()
        assert np.allclose(found.sum(axis=1), 1.0)


def test_clusters_that_would_be_made_of_private_columns_are_refused() -> None:
    with pytest.raises(PrivacyError, match="protects"):
        group_counts.plan(Promise(1.0, 1e-6), Cells(((0, 1),)))
    rows = rows_of(np.zeros((6, 1), int), (2,))
    with pytest.raises(PrivacyError, match="public features"):
        Curator(rows, Promise(1.0, 1e-6)).attach_codes(CODES, CLUSTERS)


def test_the_question_is_one_histogram_of_codes() -> None:
    rows = rows_of(np.zeros((6, 1), int), (2,))
    attached = Curator(rows, promised()).attach_codes(CODES, CLUSTERS)
    question = group_counts.plan(promised(), rows.cells()).question(attached)
    assert isinstance(question, CodeHistogram)
    assert question.group == 0
