"""Bounds on population rates from noisy counts: their miss rates by enumeration of all outcomes,
not by simulation."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

from fairveil.learning.certificates.tails import (
    Counted,
    _Search,
    fewest_people,
    lower_bounds,
    upper_bounds,
)
from fairveil.learning.counts.distributions import distribution_of_sum
from fairveil.learning.counts.noise import CountNoise

LEVELS = (0.05, 0.3)
MOST = 7
RATES = (0.01, 0.08, 0.2, 0.37, 0.5, 0.64, 0.9, 0.97)
NOISES = [CountNoise("discrete-laplace", 0.45), CountNoise("gaussian", 0.55)]
BEYOND = 4  # noises above it are counted as misses


@functools.cache
def _table(noise: CountNoise) -> np.ndarray:
    """Upper bounds of every outcome that can occur: (selected, others, level)."""
    ends = range(-BEYOND, MOST + BEYOND + 1)
    return np.array([[upper_bounds(Counted(s, m), noise, LEVELS) for m in ends] for s in ends])


def _pmf(count: np.ndarray, noise: CountNoise) -> np.ndarray:
    """Of a count with noise added, on the table's axis; what lies outside is missing."""
    law = distribution_of_sum(noise, 1)
    weights = np.array(
        [
            law.weights[z - law.low] if abs(z) <= -law.low else 0.0
            for z in range(-BEYOND, BEYOND + 1)
        ]
    )
    return np.convolve(count, weights)


def _miss(noise: CountNoise, n: int, p: float, level: int, refused: np.ndarray) -> float:
    """P(the bound lies below p) of n people, with the mass outside of the table as misses."""
    total = 1.0
    for k in range(n + 1):
        weight = stats.binom.pmf(k, n, p)
        one, other = np.zeros(MOST + 1), np.zeros(MOST + 1)
        one[k] = other[n - k] = 1.0
        joint = np.outer(_pmf(one, noise), _pmf(other, noise))
        total -= weight * joint[~refused].sum()
    return total


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_no_rate_and_no_number_of_people_is_missed_too_often(noise: CountNoise) -> None:
    table = _table(noise)
    for at, level in enumerate(LEVELS):
        worst = max(
            _miss(noise, n, p, at, table[:, :, at] < p) for n in range(MOST + 1) for p in RATES
        )
        assert worst <= level
        assert worst >= 0.3 * level  # not by being useless


def test_a_bound_that_takes_noise_for_people_is_caught() -> None:
    """Wilson's interval of noisy counts, by the same kind of enumeration; the bound of this module
    keeps its level there."""
    noise, n, p, level = CountNoise("gaussian", 4.22), 300, 0.1, 0.025
    law, k = distribution_of_sum(noise, 1), np.arange(n + 1)

    def with_noise(ends: np.ndarray, counts: np.ndarray) -> np.ndarray:
        away = ends[:, np.newaxis] - counts - law.low
        return np.where(
            (away >= 0) & (away < len(law.weights)),
            law.weights[np.clip(away, 0, len(law.weights) - 1)],
            0.0,
        )

    selected, others = np.arange(-20, 80), np.arange(220, 330)
    joint = (with_noise(selected, k) * stats.binom.pmf(k, n, p)) @ with_noise(others, n - k).T
    s, m = np.meshgrid(np.maximum(selected, 0), others, indexing="ij")
    wilson = stats.norm.ppf(1 - level)
    total, share = s + m, s / (s + m)
    middle = (share + wilson**2 / (2 * total)) / (1 + wilson**2 / total)
    naive = middle + wilson / (1 + wilson**2 / total) * np.sqrt(
        share * (1 - share) / total + wilson**2 / (4 * total**2)
    )
    assert joint[naive < p].sum() > 2.0 * level
    search = [
        [_Search(Counted(int(one), int(other)), noise, level) for other in others[::9]]
        for one in selected[::5]
    ]
    ours = np.array([[found._refuses(p, p, level) for found in line] for line in search])
    # refused counts form a corner: the block up to each tried point
    wider = np.zeros(joint.shape, bool)
    for i, line in enumerate(ours):
        for j, refused in enumerate(line):
            wider[: 5 * i + 1, 9 * j :] |= refused
    assert joint[wider].sum() <= level + 1e-9


def test_without_noise_it_is_clopper_and_pearson() -> None:
    none = CountNoise("none", 0.0)
    for s, n in [(0, 12), (3, 40), (40, 40), (700, 20_000)]:
        upper, lower = (
            upper_bounds(Counted(s, n - s), none, [0.025])[0],
            lower_bounds(Counted(s, n - s), none, [0.025])[0],
        )
        high = stats.beta.ppf(0.975, s + 1, n - s) if s < n else 1.0
        low = stats.beta.ppf(0.025, s, n - s + 1) if s else 0.0
        assert high - 1e-9 <= upper <= high + 0.02 * (high - low)
        assert low + 1e-9 >= lower >= low - 0.02 * (high - low)


@pytest.mark.parametrize("seen", [(30, 270), (3, 80), (900, 20), (-2, 40), (0, 0), (5, -3)])
@pytest.mark.parametrize(
    "noise", [CountNoise("discrete-laplace", 1.0), CountNoise("gaussian", 4.22)], ids=str
)
def test_all_rates_above_a_bound_were_refused(seen: tuple[int, int], noise: CountNoise) -> None:
    """Nothing is assumed of how the p-value runs: a fine grid of rates above the bound finds none
    that is kept."""
    counted = Counted(*seen)
    found = upper_bounds(counted, noise, [0.04, 0.2])
    assert found[0] >= found[1]
    search = _Search(counted, noise, 0.04)
    people = np.arange(search.fewest, search.most + 1)
    for bound, level in zip(found, (0.04, 0.2), strict=True):
        for p in np.linspace(bound, 1.0, 25):
            assert (
                search._tails(people, people, p, p).max() + search.added <= level + 1e-9
                or bound == 1.0
            )


@pytest.mark.parametrize("p", [0.03, 0.3, 0.5, 0.8])
@pytest.mark.parametrize(
    "noise", [CountNoise("discrete-laplace", 0.6), CountNoise("gaussian", 1.3)], ids=str
)
def test_a_tail_is_the_sum_over_all_outcomes(p: float, noise: CountNoise) -> None:
    counted, n = Counted(9, 14, 2, 1), 21
    search = _Search(counted, noise, 0.05)
    found = search._tails(np.array([n]), np.array([n]), p, p)[0]
    one, other = distribution_of_sum(noise, 2), distribution_of_sum(noise, 1)
    seen, exact = (1 - p) * counted.selected - p * counted.others, 0.0
    for k in range(n + 1):
        moved = (1 - p) * (k + one.values[:, np.newaxis]) - p * (n - k + other.values)
        exact += (
            stats.binom.pmf(k, n, p)
            * (np.outer(one.weights, other.weights) * (moved <= seen + 1e-9)).sum()
        )
    assert found <= exact + 1e-9
    assert found + search.added >= exact - 1e-9


def test_blocks_of_rates_and_people_are_bounded_from_above() -> None:
    for seen in [(9, 30), (33, 9)]:
        search = _Search(Counted(*seen), CountNoise("discrete-laplace", 1.0), 0.05)
        people = np.arange(34, 41)
        for low, high in [(0.2, 0.5), (0.55, 0.7), (0.3, 0.31)]:
            whole = search._tails(np.array([34]), np.array([40]), low, high)[0]
            for p in np.linspace(low, high, 9):
                assert search._tails(people, people, float(p), float(p)).max() <= whole + 1e-12


def test_few_people_are_told_from_none() -> None:
    noise = CountNoise("discrete-laplace", 1.0)
    assert fewest_people(Counted(1, 2), noise, 0.025) == 0
    assert 25 < fewest_people(Counted(10, 30), noise, 0.025) < 40
    assert fewest_people(Counted(1, 0), CountNoise("none", 0.0), 0.025) == 1
    law = distribution_of_sum(noise, 2)  # as often as said: a group of nobody is taken for somebody
    alone = law.weights[
        [fewest_people(Counted(int(z), 0), noise, 0.025) > 0 for z in law.values]
    ].sum()
    assert alone <= 0.025
