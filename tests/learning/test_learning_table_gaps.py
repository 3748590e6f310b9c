"""Widest differences and smallest ratios: coverage, which pair is named and how rarely wrongly,
groups without a rate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairveil.facts import Cells
from fairveil.learning.counts.noise import CountNoise
from fairveil.learning.private_tables.gaps import MISSES, difference, ratio
from fairveil.learning.private_tables.layout import TableLayout
from fairveil.learning.private_tables.rates import TableEvidence

LAYOUT = TableLayout(Cells((("a", "b", "c"),)), (0, 1), False, 1)
GROUPS = [1, 2, 3]
NAME = "selection_rate[1]"
LAPLACE = CountNoise("discrete-laplace", 0.4)


def _drawn(rng: np.random.Generator, rates: list[float], sizes: list[int]) -> np.ndarray:
    hits = np.array([rng.binomial(n, p) for n, p in zip(sizes, rates, strict=True)])
    q = 1.0 - np.exp(-2.5)
    noise = rng.geometric(q, (3, 2)) - rng.geometric(q, (3, 2))
    return np.stack([np.array(sizes) - hits, hits], axis=1) + noise.astype(float)


@pytest.mark.parametrize(
    ("rates", "together"),
    [([0.3, 0.32, 0.5], False), ([0.4, 0.4, 0.4], False), ([0.2, 0.3, 0.6], True)],
)
def test_the_widest_gap_is_missed_as_rarely_as_stated(rates: list[float], together: bool) -> None:
    """100 tables at 80 %: above 38 misses has probability below 2e-5. Both measures."""
    rng, missed = np.random.default_rng(0), [0, 0]
    for _ in range(100):
        found = TableEvidence(
            LAYOUT, _drawn(rng, rates, [14, 20, 10]), LAPLACE, 0.8, together=together
        )
        wide, small = difference(found, GROUPS, NAME), ratio(found, GROUPS, NAME)
        missed[0] += not wide.low <= max(rates) - min(rates) <= wide.high
        missed[1] += not small.low <= min(rates) / max(rates) <= small.high
    assert max(missed) <= int(stats.binom.isf(2e-5, 100, 0.2))


def test_a_wrong_pair_is_rarely_named_and_a_clear_one_always() -> None:
    """Equal rates but for a hair: any pair that is named with 80 % or more is about always wrong.
    Of 200 at most 65."""
    rng, named = np.random.default_rng(1), dict.fromkeys(MISSES, 0)
    for _ in range(200):
        found = TableEvidence(LAYOUT, _drawn(rng, [0.4, 0.4001, 0.4], [12, 12, 12]), LAPLACE, 0.95)
        gap = difference(found, GROUPS, NAME)
        for miss in MISSES:
            named[miss] += gap.named_with is not None and gap.named_with >= 1.0 - miss
    for miss, count in named.items():
        assert count <= int(stats.binom.isf(2e-5, 200, miss))
    clear = TableEvidence(LAYOUT, _drawn(rng, [0.1, 0.5, 0.9], [4000, 4000, 4000]), LAPLACE, 0.95)
    gap = difference(clear, GROUPS, NAME)
    assert (gap.pair, gap.named_with, gap.others) == ((3, 1), 0.999, ())
    assert ratio(clear, GROUPS, NAME).pair == (3, 1)


def test_unclear_pairs_are_all_listed() -> None:
    counts = np.array([[300.0, 100.0], [302.0, 98.0], [200.0, 200.0]])
    gap = difference(TableEvidence(LAYOUT, counts, LAPLACE, 0.95), GROUPS, NAME)
    assert {gap.pair, *gap.others} == {(3, 1), (3, 2)}
    assert gap.named_with in (None, 0.5)


def test_a_group_without_a_rate_leaves_the_gap_undefined() -> None:
    counts = np.array([[300.0, 100.0], [0.0, 1.0], [200.0, 200.0]])
    found = TableEvidence(LAYOUT, counts, LAPLACE, 0.95)
    for gap in (difference(found, GROUPS, NAME), ratio(found, GROUPS, NAME)):
        assert (gap.value, gap.named_with, gap.undefined) == (None, None, (2,))
    assert difference(found, GROUPS, NAME).high is None
    assert difference(found, GROUPS, NAME).low > 0.1  # of those that have one
    assert ratio(found, GROUPS, NAME).low is None
    assert difference(found, [1], NAME).value is None


def test_a_ratio_of_rates_that_are_zero_is_undefined() -> None:
    counts = np.array([[100.0, 0.0], [80.0, 0.0], [50.0, 50.0]])
    found = TableEvidence(LAYOUT, counts, CountNoise("none", 0.0), 0.95)
    assert ratio(found, [1, 2], NAME).value is None
    assert ratio(found, [1, 3], NAME).value == 0.0
