"""Rates of true groups from flipped ones: how often intervals miss, tails of weighted noise, and
what a neighbour moves."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil.facts.reports import Reports
from fairveil.learning.counts.noise import CountNoise
from fairveil.learning.private_tables.true_groups import sum_tail, true_rate
from fairveil.privacy.noise.sources import NoiseSource

ASKED = Reports.randomized_response(("a", "b"), epsilon=1.1)
JOINT = np.array([[0.1, 0.4], [0.3, 0.2]])  # of true group and hit
MISS = 0.2


def drawn(rng: np.random.Generator, rows: int, reports: Reports, noise: CountNoise) -> Any:
    """Released counts (recorded group, hit) of people from `JOINT`."""
    table = rng.multinomial(rows, JOINT.ravel()).reshape(JOINT.shape)
    recorded = sum(
        np.outer(rng.multinomial(table[g, k], reports.rates[g]), np.eye(2)[k])
        for g in range(2)
        for k in range(2)
    )
    if noise.kind == "gaussian":
        return recorded + np.rint(rng.normal(0.0, noise.scale, JOINT.shape))
    if noise.kind == "none":
        return recorded
    ratio = 1.0 - math.exp(-1.0 / noise.scale)
    return recorded + rng.geometric(ratio, JOINT.shape) - rng.geometric(ratio, JOINT.shape)


@pytest.mark.parametrize(
    "noise",
    [CountNoise("none", 0.0), CountNoise("discrete-laplace", 3.0), CountNoise("gaussian", 5.0)],
)
def test_an_interval_misses_no_more_often_than_it_says(noise: CountNoise) -> None:
    """60 tables of 4,000 people, two groups each. More than 0.2 + 4 deviations of misses: a false
    alarm in 3e4 at most, and far fewer, as the bounds are wide. Rates of recorded groups, taken for
    true ones, are found out by the same count."""
    rng, missed, naive, count = np.random.default_rng(1), 0, 0, 0
    for _ in range(60):
        released = drawn(rng, 4000, ASKED, noise)
        for g in range(2):
            rate = JOINT[g, 1] / JOINT[g].sum()
            for into, line in (("right", ASKED.undone[g]), ("naive", np.eye(2)[g])):
                found = true_rate(released[:, 1], released[:, 0], line, noise, (1, 1), MISS)
                out = not found.low <= rate <= found.high
                missed, naive = (
                    missed + (out and into == "right"),
                    naive + (out and into == "naive"),
                )
            count += 1
    allowed = MISS + 4 * math.sqrt(MISS * (1 - MISS) / 60)
    assert missed / count <= allowed
    assert naive / count > allowed


def test_estimates_have_no_bias() -> None:
    """Of numerator and denominator: 400 tables, five deviations of their mean: a false alarm in
    1e6."""
    rng = np.random.default_rng(2)
    noise = CountNoise("discrete-laplace", 2.0)
    found = np.stack([ASKED.undone @ drawn(rng, 800, ASKED, noise) for _ in range(400)])
    error = found.std(axis=0) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - 800 * JOINT) < 5 * error).all()


def test_without_flips_the_estimate_is_the_released_rate() -> None:
    found = true_rate(
        np.array([30.0, 5.0]),
        np.array([10.0, 5.0]),
        np.array([1.0, 0.0]),
        CountNoise("none", 0.0),
        (1, 1),
        0.05,
    )
    assert found.value == 0.75
    assert found.low < 0.75 < found.high
    more = true_rate(
        np.array([3e4, 5.0]),
        np.array([1e4, 5.0]),
        np.array([1.0, 0.0]),
        CountNoise("none", 0.0),
        (1, 1),
        0.05,
    )
    assert more.high - more.low < 0.03 < found.high - found.low


def test_where_nobody_may_be_there_is_no_value() -> None:
    found = true_rate(
        np.array([0.0, 9.0]),
        np.array([-1.0, 9.0]),
        np.array([1.0, 0.0]),
        CountNoise("gaussian", 3.0),
        (1, 1),
        0.05,
    )
    assert (found.value, found.low, found.high) == (None, 0.0, 1.0)


@pytest.mark.parametrize(
    "noise", [CountNoise("discrete-laplace", 2.0), CountNoise("gaussian", 3.0)]
)
@pytest.mark.parametrize("weights", [[1.0], [1.0, -2.0, 0.5], [0.3] * 40])
def test_a_weighted_sum_of_noise_passes_its_tail_as_rarely_as_it_says(
    noise: CountNoise, weights: list[float]
) -> None:
    """Of 20,000 sums; four deviations above 0.05: a false alarm in 3e4 of each."""
    rng, line = np.random.default_rng(3), np.array(weights)
    size = (20_000, len(line))
    if noise.kind == "gaussian":
        draws = np.rint(rng.normal(0.0, noise.scale, size))
    else:
        ratio = 1.0 - math.exp(-1.0 / noise.scale)
        draws = (rng.geometric(ratio, size) - rng.geometric(ratio, size)).astype(np.float64)
    over = float((np.abs(draws @ line) > sum_tail(noise, line, 0.05)).mean())
    assert over <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 20_000)
    assert sum_tail(noise, line, 1e-6) > sum_tail(noise, line, 0.05)


def test_no_distribution_moves_more_than_one_persons_count() -> None:
    """Under each relation, all neighbours of a table of four people: one row's distribution or
    decision replaced, or no row."""
    lines = [(1.0, 0.0), (0.3, 0.7), (0.0, 1.0)]
    base = [(lines[1], 0), (lines[1], 1), (lines[0], 1), (lines[2], 0)]

    def counts(table: list[tuple[tuple[float, float], int]]) -> Any:
        """Exact ones, at the coins of rows that stay in their places."""
        soft = fv.SoftGroups([line for line, _ in table], ("a", "b"))
        groups = soft.drawn(NoiseSource.seeded(5))
        found = np.zeros((2, 2))
        for group, (_, decision) in zip(list(groups), table, strict=True):
            found["ab".index(str(group)), decision] += 1
        return found

    plain = counts(base)
    for at, line, decision in itertools.product(range(4), lines, range(2)):
        other = [*base[:at], (line, decision), *base[at + 1 :]]
        assert np.abs(counts(other) - plain).sum() <= 2
    assert np.abs(counts(base[:-1]) - plain).sum() == 1
