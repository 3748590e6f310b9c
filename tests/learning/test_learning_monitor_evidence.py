"""Evidence by bets: p-values that are valid, e-values of mean at most 1, and alarms that are rarely
false at any time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from fairveil import DemographicParity
from fairveil.facts import Cells
from fairveil.learning.certificates.evidence import LEVELS, Bet, e_value, p_value
from fairveil.learning.certificates.parts import layout_of
from fairveil.learning.counts.noise import CountNoise

NOISE = CountNoise("discrete-laplace", 0.4)
LAYOUT = layout_of([DemographicParity(0.3)], Cells((("f", "m"),)), (0, 1))
KNOWN: dict[tuple[float, ...], float] = {}


def _p(rng: np.random.Generator, rates: tuple[float, float], people: int) -> float:
    hits = rng.binomial(people, rates)
    table = np.zeros((2, 2, 2))
    table[:, 0, 0], table[:, 0, 1] = people - hits, hits
    q = 1.0 - np.exp(-2.5)
    counts = np.bincount(LAYOUT.part_of.ravel(), table.ravel(), LAYOUT.parts).astype(float)
    counts += rng.geometric(q, LAYOUT.parts) - rng.geometric(q, LAYOUT.parts)
    key = tuple(counts[:-1].tolist())  # the last part is of no use
    if key not in KNOWN:
        KNOWN[key] = p_value(LAYOUT, counts, NOISE)
    return KNOWN[key]


def test_p_values_are_valid_where_the_constraint_just_holds() -> None:
    """150 periods of a gap at the bound: P(p <= u) <= u for u of 0.5, 0.25, 0.0625; each count
    above its limit has probability below 1e-4."""
    rng = np.random.default_rng(0)
    found = np.array([_p(rng, (0.3, 0.6), 8) for _ in range(150)])
    for u in (0.5, 0.25, 0.0625):
        assert (found <= u).sum() <= stats.binom.isf(1e-4, 150, u)
    assert found.max() == 1.0


def test_e_values_of_any_valid_p_have_mean_at_most_one() -> None:
    """Exactly, of the p-value that is as small as it may be: P(p <= u) = u on the grid."""
    for many in (1, 2, 12):
        grid = [1.0, *(many * level for level in LEVELS if many * level < 1.0)]
        after = [*grid[1:], 0.0]
        assert (
            sum((here - there) * e_value(here) for here, there in zip(grid, after, strict=True))
            <= 1.0
        )
    values = [e_value(p) for p in (1.0, 0.9999995, 0.5, 0.1, 0.01, 1e-9)]
    assert values == sorted(values)


def test_the_wealth_of_any_run_is_a_supermartingale() -> None:
    """All runs of three periods with e-values 0 or 2, each with one half: the mean wealth stays at
    1, at every time."""
    for periods in (1, 2, 3):
        total = 0.0
        for run in itertools.product((0.0, 2.0), repeat=periods):
            bet = Bet()
            for e in run:
                bet = bet.after(e)
            total += bet.wealth / 2**periods
        assert total == pytest.approx(1.0)


def test_alarms_are_rarely_false_over_a_whole_run_and_drifts_are_found() -> None:
    """40 runs of 5 periods at the bound, alarm at 4: at most 10 false on average; 21 or more have
    probability below 1e-4. After a drift to a gap of 0.8 both of 2 runs raise an alarm."""
    rng, false = np.random.default_rng(1), 0
    for _ in range(40):
        bet = Bet()
        for _ in range(5):
            bet = bet.after(e_value(_p(rng, (0.3, 0.6), 8)))
        false += bet.highest >= 4.0
    assert false <= stats.binom.isf(1e-4, 40, 0.25)
    for _ in range(2):
        bet = Bet()
        for period in range(8):
            bet = bet.after(e_value(_p(rng, (0.3, 0.5) if period < 4 else (0.1, 0.9), 100)))
        assert bet.highest >= 20.0


def test_a_group_that_may_be_nobody_refutes_nothing() -> None:
    counts = np.zeros(LAYOUT.parts)
    counts[0] = 500.0
    assert p_value(LAYOUT, counts, NOISE) == 1.0
