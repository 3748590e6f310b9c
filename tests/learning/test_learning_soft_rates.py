"""Rates from counts of groups in clusters, and how far off they may be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fairveil.facts import Cells
from fairveil.fairness import EqualizedOdds, resolve
from fairveil.learning.counts import CountNoise
from fairveil.learning.released import rates as soft_rates
from fairveil.learning.released.group_counts import GroupCounts

RNG = np.random.default_rng(0)
NO_NOISE = CountNoise("none", 0.0)


def drawn(size: tuple[int, ...], scale: float, rng: np.random.Generator) -> np.ndarray:
    """Discrete Laplace noise, by its own recipe: a difference of two geometric numbers."""
    p = 1.0 - math.exp(-1.0 / scale)
    return (rng.geometric(p, size) - rng.geometric(p, size)).astype(float)


CODES = np.repeat(np.arange(12), 20)
LABELS = np.repeat([0, 1], 6)
Q = RNG.random(240)
GROUPS = (RNG.random(240) < 0.3 + 0.4 * (CODES % 3 == 0)).astype(int)
SIZES = np.full(12, 20.0)
EXACT = np.stack([np.bincount(CODES[g == GROUPS], minlength=12) for g in (0, 1)]).astype(float)
LAW = np.column_stack([1 - Q, Q])
SYSTEM = resolve(EqualizedOdds(0.1), Cells(((0, 1),)), (0, 1))


def smoothed(group: int, label: int) -> float:
    """The first term of a group's rate: cluster means weighed by its exact counts."""
    means = np.bincount(CODES, weights=Q) / 20
    at = label == LABELS
    return float(EXACT[group, at] @ means[at] / EXACT[group, at].sum())


def test_a_value_is_the_difference_of_its_rates() -> None:
    found = soft_rates.values(GroupCounts(EXACT, SIZES, NO_NOISE), CODES, LABELS, LAW, SYSTEM, 0.05)
    assert len(found) == 4
    assert found[0].name.startswith("P(prediction = 1 | group 0, label 0)")
    assert found[0].value == pytest.approx(smoothed(0, 0) - smoothed(1, 0))
    assert found[0].low == pytest.approx(found[0].high)


def test_it_is_exact_where_clusters_decide_alike() -> None:
    """No bias: decisions that a cluster's rows share have no covariance with the group inside
    it."""
    law = np.column_stack([1 - CODES % 2, CODES % 2]).astype(float)
    found = soft_rates.values(GroupCounts(EXACT, SIZES, NO_NOISE), CODES, LABELS, law, SYSTEM, 0.05)
    label = LABELS[CODES]
    truth = [law[(g == GROUPS) & (label == 0), 1].mean() for g in (0, 1)]
    assert found[0].value == pytest.approx(truth[0] - truth[1])
    assert found[0].within == pytest.approx(0.0)
    assert found[0].lowest == pytest.approx(found[0].value, abs=1e-6)
    assert found[0].highest == pytest.approx(found[0].value, abs=1e-6)


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_guarantee_1_estimates_are_unbiased_and_intervals_hold_what_they_say(scale: float) -> None:
    """2,000 releases. Means within 5 standard errors; misses in 120 of them at most 12 (the bound
    says 5 %: a false alarm of an honest one is below 1 in 100, and the seed is fixed)."""
    rng, noise = np.random.default_rng(7), CountNoise("discrete-laplace", scale)
    truth = [smoothed(0, y) - smoothed(1, y) for y in (0, 1)]
    tops, missed, runs = [], 0, 2000
    cells = np.zeros((2, 12), bool)
    cells[0] = LABELS == 0
    means = np.bincount(CODES, weights=Q) / 20
    for run in range(runs):
        first = EXACT[0] + drawn((12,), scale, rng)
        counts = GroupCounts(np.stack([first, SIZES - first]), SIZES, noise)
        tops.append([float(counts.raw[0, :6] @ means[:6]), float(counts.raw[0, :6].sum())])
        if run < 120:
            found = soft_rates.values(counts, CODES, LABELS, LAW, SYSTEM, 0.05)
            missed += any(
                not one.low <= truth[j // 2] * (1 - 2 * (j % 2)) <= one.high
                for j, one in enumerate(found)
            )
    exact = np.array([EXACT[0, :6] @ means[:6], EXACT[0, :6].sum()])
    errors = np.array(tops).std(axis=0) / math.sqrt(runs)
    assert (np.abs(np.mean(tops, axis=0) - exact) < 5 * errors).all()
    assert missed <= 12


def test_guarantee_1_bars_of_too_little_noise_miss() -> None:
    """A planted bug: bars made for a fortieth of the true scale miss far more than they say."""
    rng, missed = np.random.default_rng(7), 0
    for _ in range(60):
        first = EXACT[0] + drawn((12,), 8.0, rng)
        counts = GroupCounts(
            np.stack([first, SIZES - first]), SIZES, CountNoise("discrete-laplace", 0.2)
        )
        found = soft_rates.values(counts, CODES, LABELS, LAW, SYSTEM, 0.05)
        missed += not found[0].low <= smoothed(0, 0) - smoothed(1, 0) <= found[0].high
    assert missed > 10


def test_guarantee_2_bounds_hold_every_assignment() -> None:
    """Four rows a cluster, two of them of the group: all 36 assignments lie inside, and the
    extremes are reached."""
    codes, q = np.repeat([0, 1], 4), np.array([0.1, 0.9, 0.4, 0.6, 0.0, 1.0, 1.0, 0.2])
    counts = GroupCounts(np.full((2, 2), 2.0), np.full(2, 4.0), NO_NOISE)
    cells = np.array([[True, True], [False, False]])
    found = soft_rates.rate_of(
        counts, codes, np.column_stack([1 - q, q]), cells, np.tile([0.0, 1.0], (2, 1)), 0.05
    )
    pairs = list(itertools.combinations(range(4), 2))
    rates = [np.mean([*q[:4][list(a)], *q[4:][list(b)]]) for a in pairs for b in pairs]
    assert found.lowest == pytest.approx(min(rates))
    assert found.highest == pytest.approx(max(rates))
    assert found.value == pytest.approx(np.mean(rates))
    # every assignment is equally likely: the distribution of chance inside clusters
    assert found.within == pytest.approx(np.std(rates))


def test_a_rate_of_everybody_has_no_noise() -> None:
    counts = GroupCounts(
        np.stack([EXACT[0] + 9.0, EXACT[1] - 9.0]), SIZES, CountNoise("discrete-laplace", 5.0)
    )
    found = soft_rates.rate_of(
        counts, CODES, LAW, np.ones((2, 12), bool), np.tile([0.0, 1.0], (12, 1)), 0.05
    )
    assert found.low == found.value == found.high == pytest.approx(Q.mean())


def test_a_group_that_nobody_is_in_has_no_rate() -> None:
    counts = GroupCounts(
        np.stack([-np.ones(12), SIZES + 1.0]), SIZES, CountNoise("discrete-laplace", 1.0)
    )
    cells = np.zeros((2, 12), bool)
    cells[0] = True
    found = soft_rates.rate_of(counts, CODES, LAW, cells, np.tile([0.0, 1.0], (12, 1)), 0.05)
    assert math.isnan(found.value)
    assert (found.low, found.high, found.lowest, found.highest) == (0.0, 1.0, 0.0, 1.0)
