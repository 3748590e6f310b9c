"""Private tables from counts: how often an interval misses, alone and all together; consistency;
groups that may be nobody."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairveil.facts import Cells
from fairveil.learning.certificates.tails import Counted
from fairveil.learning.counts.noise import CountNoise
from fairveil.learning.private_tables import rates as table_rates
from fairveil.learning.private_tables.layout import TableLayout
from fairveil.learning.private_tables.rates import TableEvidence

CELLS = Cells((("f", "m"), ("x", "y")), names=("sex", "town"))
LAYOUT = TableLayout(CELLS, (0, 1), True, 2)
SHARES = np.array(
    [[0.2, 0.1, 0.3, 0.4], [0.5, 0.2, 0.1, 0.2], [0.1, 0.1, 0.1, 0.7], [0.25, 0.25, 0.25, 0.25]]
)
SIZES = np.array([12, 20, 9, 15])
LAPLACE = CountNoise("discrete-laplace", 0.4)


def _noise(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Discrete Laplace of scale 0.4, as a difference of geometric ones."""
    p = 1.0 - np.exp(-2.5)
    return (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(float)


def _truth(group: int, name: str) -> float:
    share, cells = LAYOUT.shares[name], list(LAYOUT.groups[group].cells)
    sums = (SHARES * SIZES[:, np.newaxis])[cells].sum(axis=0)
    return float(sums[share.hits].sum() / (sums[share.hits].sum() + sums[share.rest].sum()))


def _drawn(rng: np.random.Generator) -> np.ndarray:
    """People of fixed sizes of groups, and noise."""
    people = np.stack([rng.multinomial(n, p) for n, p in zip(SIZES, SHARES, strict=True)])
    return people + _noise(rng, people.shape)


def test_intervals_miss_as_rarely_as_they_say() -> None:
    """300 tables at 80 %. The misses of one interval are at most Binomial(300, 0.2): above 90 with
    probability below 2e-5. Margins of the hierarchy are mixtures of groups of fixed sizes, which
    vary less than draws of the population."""
    rng = np.random.default_rng(0)
    asked = [(7, "selection_rate[1]"), (5, "true_positive_rate[1]"), (3, "error"), (6, "error")]
    misses = dict.fromkeys(asked, 0)
    most = int(stats.binom.isf(2e-5, 300, 0.2))
    for _ in range(300):
        found = TableEvidence(LAYOUT, _drawn(rng), LAPLACE, 0.8)
        for at in asked:
            rate = found.rate(*at)
            misses[at] += rate.low is not None and not rate.low <= _truth(*at) <= rate.high
    assert max(misses.values()) <= most
    assert max(misses.values()) >= 5  # not so wide that nothing could miss


def test_counts_are_held_and_a_whole_table_is_held_together() -> None:
    """60 tables at 50 %, all intervals together: more than 46 tables with a miss has probability
    below 2e-5."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(60):
        drawn = np.stack(
            [rng.multinomial(n, p) for n, p in zip(SIZES, SHARES, strict=True)]
        ).astype(float)
        found = TableEvidence(LAYOUT, drawn + _noise(rng, drawn.shape), LAPLACE, 0.5, together=True)
        wrong = False
        for at, group in enumerate(LAYOUT.groups):
            sums = drawn[list(group.cells)].sum(axis=0)
            people = found._count(at, np.ones(4, bool))
            wrong |= not people.low <= sums.sum() <= people.high
            for name in ("selection_rate[1]", "error"):
                rate = found.rate(at, name)
                wrong |= rate.low is not None and not rate.low <= _truth(at, name) <= rate.high
        missed += wrong
    assert missed <= int(stats.binom.isf(2e-5, 60, 0.5))
    assert found.level < 0.5 / 50


def test_intervals_that_left_the_noise_out_would_be_caught() -> None:
    """The planted bug: bounds of Clopper and Pearson on noisy counts miss more than twice as often
    as allowed."""
    rng = np.random.default_rng(2)
    misses = 0
    for _ in range(300):
        people = rng.multinomial(25, [0.3, 0.0, 0.0, 0.7])
        counts = np.zeros((4, 4))
        counts[0] = people + 8.0 * _noise(rng, (4,))
        found = TableEvidence(LAYOUT, np.maximum(counts, 0), CountNoise("none", 0.0), 0.9)
        rate = found.rate(4, "error")
        misses += rate.low is None or not rate.low <= 0.0 <= rate.high
    assert misses > int(stats.binom.isf(2e-5, 300, 0.1))


def test_values_fit_together() -> None:
    rng = np.random.default_rng(3)
    found = TableEvidence(LAYOUT, rng.integers(-8, 9, size=(4, 4)).astype(float) + 4, LAPLACE, 0.9)
    lines = [found.line(at, 30) for at in range(len(LAYOUT.groups))]
    everyone = lines[0].people.value
    for level in LAYOUT.levels:
        assert (
            sum(
                line.people.value
                for line, one in zip(lines, LAYOUT.groups, strict=True)
                if one.columns == level
            )
            == everyone
        )
    for line in lines:
        assert sum(one.value for one in line.labels) == line.people.value
        assert line.people.low <= line.people.value <= line.people.high
        for rate in line.rates.values():
            assert rate.value is None or 0.0 <= rate.low <= rate.value <= rate.high <= 1.0


def test_a_group_that_may_be_nobody_has_no_rate() -> None:
    counts = np.full((4, 4), 100.0)
    counts[1] = [1.0, -1.0, 0.0, 2.0]
    line = TableEvidence(LAYOUT, counts, CountNoise("discrete-laplace", 1.0), 0.95).line(6, 30)
    assert all(rate.value is None and rate.low is None for rate in line.rates.values())
    assert line.small
    assert line.people.low == 0.0


def test_what_is_public_is_exact() -> None:
    counts = np.full((4, 4), 50.0)
    by_kind = TableEvidence(
        LAYOUT, counts, LAPLACE, 0.95, known=np.array([210.0, 190.0, 205.0, 195.0])
    )
    assert by_kind.line(0, 30).people == table_rates.TableCount(800.0, 800.0, 800.0)
    assert by_kind.rate(0, "selection_rate[1]").value == 385 / 800
    rows = TableEvidence(LAYOUT, counts, LAPLACE, 0.95, known=np.array(810.0))
    assert rows.line(0, 30).people == table_rates.TableCount(810.0, 810.0, 810.0)


@pytest.mark.parametrize("n", [40, 400])
def test_very_large_noise_is_bounded_count_by_count_and_holds(n: int) -> None:
    """Sums of 60 Gaussian noises: 200 draws at 90 %, one-sided; above 41 misses has probability
    below 2e-5."""
    noise, rng, misses = CountNoise("gaussian", 4.0), np.random.default_rng(4), 0
    for _ in range(200):
        hits = rng.binomial(n, 0.3)
        away = np.rint(rng.normal(0, 4.0, (2, 60))).sum(axis=1)
        one = Counted(hits + away[0], n - hits + away[1], 60, 60)
        (high,) = table_rates._upper_bounds(one, noise, (0.1,))
        misses += high < 0.3
    assert misses <= int(stats.binom.isf(2e-5, 200, 0.1))
