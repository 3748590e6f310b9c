"""Private tables from counts: what is counted, how often intervals and gaps miss, alone and all
together, which pair is named; consistency; groups that may be nobody."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from fairveil import group_table
from fairveil.facts import Cells
from fairveil.methods.counts import EXACT, CountNoise
from fairveil.methods.tables import (
    MISSES,
    TableCount,
    TableEvidence,
    TableLayout,
    difference,
    ratio,
)

CELLS = Cells((("f", "m"), ("x", "y")), names=("sex", "town"))
LAYOUT = TableLayout(CELLS, (0, 1), True, 2)
SHARES = np.array(
    [[0.2, 0.1, 0.3, 0.4], [0.5, 0.2, 0.1, 0.2], [0.1, 0.1, 0.1, 0.7], [0.25, 0.25, 0.25, 0.25]]
)
SIZES = np.array([12, 20, 9, 15])
LAPLACE = CountNoise("discrete-laplace", 0.4)
THREE = TableLayout(Cells((("a", "b", "c"),)), (0, 1), False, 1)
GROUPS, NAME = [1, 2, 3], "selection_rate[1]"


def _noise(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Discrete Laplace of scale 0.4, as a difference of geometric ones."""
    p = 1.0 - np.exp(-2.5)
    return (rng.geometric(p, shape) - rng.geometric(p, shape)).astype(float)


def _truth(group: int, name: str) -> float:
    sums = (SHARES * SIZES[:, np.newaxis])[list(LAYOUT.groups[group].cells)].sum(axis=0)
    one = LAYOUT.shares[name].counted(sums, 0)
    return one.selected / (one.selected + one.others)


def _people(rng: np.random.Generator) -> np.ndarray:
    """Of fixed sizes of groups."""
    drawn = [rng.multinomial(n, p) for n, p in zip(SIZES, SHARES, strict=True)]
    return np.stack(drawn).astype(float)


# -- what is counted -------------------------------------------------------------------------------


@pytest.mark.parametrize("labelled", [True, False])
def test_every_kind_of_person_is_in_a_part_of_her_own(labelled: bool) -> None:
    """All kinds of people, enumerated: no two that differ share a part, so a row moves one count
    and a replaced row two."""
    cells = Cells((("f", "m"), ("x", "y", "z"), (0, 1)), names=("sex", "town", "old"))
    layout = TableLayout(cells, ("a", "b"), labelled, 2)
    kinds = itertools.product(range(cells.count), range(2 if labelled else 1), range(2))
    columns = np.array(list(kinds)).T
    assert sorted(layout.part_of(*columns)) == list(range(layout.parts))
    assert layout.levels == ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    for level in layout.levels:
        of_level = [cell for one in layout.groups if one.columns == level for cell in one.cells]
        assert sorted(of_level) == list(range(cells.count))
    keys = {one.key for one in layout.groups}
    assert {None, ("sex", "f"), (("sex", "f"), ("town", "x"))} <= keys
    assert not TableLayout(Cells((("everyone",),)), (0, 1), True, 1).levels


def test_rates_are_those_of_the_exact_group_table() -> None:
    rng = np.random.default_rng(0)
    y, decided = rng.integers(3, size=(2, 900))
    sex, town, old = rng.integers(2, size=900), rng.integers(3, size=900), rng.integers(2, size=900)
    exact = group_table(y, decided, {"sex": sex, "town": town, "old": old})
    cells = Cells(((0, 1), (0, 1, 2), (0, 1)), names=("sex", "town", "old"))
    layout = TableLayout(cells, (0, 1, 2), True, 3)
    ids = cells.ids(np.stack([sex, town, old]).astype(np.uint16))[0]
    counts = np.bincount(layout.part_of(ids, y, decided), minlength=layout.parts)
    found = TableEvidence(layout, counts, EXACT, 0.95)
    assert set(exact.overall.rates) == set(layout.shares)
    for at, group in enumerate(layout.groups):
        if group.key is None or len(group.columns) == 3:
            row = exact.overall if group.key is None else exact[group.key]
            for name in layout.shares:
                assert found.value(at, name) == pytest.approx(row.rates[name].value)


# -- intervals -------------------------------------------------------------------------------------


def test_intervals_miss_as_rarely_as_they_say_and_would_not_without_the_noise() -> None:
    """250 tables at 80 %: the misses of one interval are at most Binomial(250, 0.2), and above that
    limit with probability below 2e-5. Margins of the hierarchy are mixtures of groups of fixed
    sizes, which vary less than draws of the population. Then the same of noisy counts that are
    taken for exact ones, in a group of 25 with 8 times the noise."""
    rng = np.random.default_rng(0)
    asked = [(7, "selection_rate[1]"), (5, "true_positive_rate[1]"), (3, "error"), (6, "error")]
    misses = dict.fromkeys(asked, 0)
    for _ in range(250):
        found = TableEvidence(LAYOUT, _people(rng) + _noise(rng, (4, 4)), LAPLACE, 0.8)
        for at in asked:
            rate = found.rate(*at)
            misses[at] += rate.low is not None and not rate.low <= _truth(*at) <= rate.high
    assert 5 <= max(misses.values()) <= int(stats.binom.isf(2e-5, 250, 0.2))
    naive = 0
    for _ in range(300):
        counts = np.zeros((4, 4))
        counts[0] = rng.multinomial(25, [0.3, 0.0, 0.0, 0.7]) + 8.0 * _noise(rng, (4,))
        rate = TableEvidence(LAYOUT, np.maximum(counts, 0), EXACT, 0.9).rate(4, "error")
        naive += rate.low is None or not rate.low <= 0.0 <= rate.high
    assert naive > int(stats.binom.isf(2e-5, 300, 0.1))


def test_a_whole_table_is_held_together() -> None:
    """24 tables at 50 %, all intervals together: 22 or more with a miss have probability below
    2e-5."""
    rng, missed = np.random.default_rng(1), 0
    for _ in range(24):
        drawn = _people(rng)
        found = TableEvidence(LAYOUT, drawn + _noise(rng, (4, 4)), LAPLACE, 0.5, together=True)
        wrong = False
        for at, group in enumerate(LAYOUT.groups):
            sums, line = drawn[list(group.cells)].sum(axis=0), found.line(at, 30)
            parts = zip(line.labels, (sums[:2].sum(), sums[2:].sum()), strict=True)
            for count, truth in [(line.people, sums.sum()), *parts]:
                wrong |= not count.low <= truth <= count.high
            for name in ("selection_rate[1]", "error"):
                rate = line.rates[name]
                wrong |= rate.low is not None and not rate.low <= _truth(at, name) <= rate.high
        missed += wrong
    assert missed <= int(stats.binom.isf(2e-5, 24, 0.5))
    assert found.level < 0.5 / 50


def test_values_fit_together() -> None:
    rng = np.random.default_rng(3)
    found = TableEvidence(LAYOUT, rng.integers(-8, 9, size=(4, 4)).astype(float) + 4, LAPLACE, 0.9)
    lines = [found.line(at, 30) for at in range(len(LAYOUT.groups))]
    for level in LAYOUT.levels:
        of_level = zip(lines, LAYOUT.groups, strict=True)
        people = [line.people.value for line, one in of_level if one.columns == level]
        assert sum(people) == lines[0].people.value
    for line in lines:
        assert sum(one.value for one in line.labels) == line.people.value
        assert line.people.low <= line.people.value <= line.people.high
        for rate in line.rates.values():
            assert rate.value is None or 0.0 <= rate.low <= rate.value <= rate.high <= 1.0


def test_a_group_that_may_be_nobody_has_no_rate_and_what_is_public_is_exact() -> None:
    counts = np.full((4, 4), 100.0)
    counts[1] = [1.0, -1.0, 0.0, 2.0]
    line = TableEvidence(LAYOUT, counts, CountNoise("discrete-laplace", 1.0), 0.95).line(6, 30)
    assert all(rate.value is None and rate.low is None for rate in line.rates.values())
    assert line.small
    assert line.people.low == 0.0
    counts, known = np.full((4, 4), 50.0), np.array([210.0, 190.0, 205.0, 195.0])
    by_kind = TableEvidence(LAYOUT, counts, LAPLACE, 0.95, known=known)
    assert by_kind.line(0, 30).people == TableCount(800.0, 800.0, 800.0)
    assert by_kind.rate(0, NAME).value == 385 / 800
    rows = TableEvidence(LAYOUT, counts, LAPLACE, 0.95, known=np.array(810.0))
    assert rows.line(0, 30).people == TableCount(810.0, 810.0, 810.0)


@pytest.mark.parametrize("n", [40, 400])
def test_very_large_noise_is_bounded_count_by_count_and_holds(n: int) -> None:
    """Everyone, of 60 cells with Gaussian noise: 200 draws, one-sided at 90 %; above 41 misses has
    probability below 2e-5."""
    noise, rng, misses = CountNoise("gaussian", 4.0), np.random.default_rng(4), 0
    layout = TableLayout(Cells((tuple(range(60)),)), (0, 1), False, 1)
    for _ in range(200):
        counts = np.rint(rng.normal(0, 4.0, (60, 2)))
        hits = rng.binomial(n, 0.3)
        counts[0] += [n - hits, hits]
        misses += TableEvidence(layout, counts, noise, 0.8).highs(0, NAME, [0.1])[0] < 0.3
    assert misses <= int(stats.binom.isf(2e-5, 200, 0.1))


# -- gaps ------------------------------------------------------------------------------------------


def _drawn(rng: np.random.Generator, rates: list[float], sizes: list[int]) -> np.ndarray:
    hits = np.array([rng.binomial(n, p) for n, p in zip(sizes, rates, strict=True)])
    return np.stack([np.array(sizes) - hits, hits], axis=1) + _noise(rng, (3, 2))


@pytest.mark.parametrize(
    ("rates", "together"),
    [([0.3, 0.32, 0.5], False), ([0.4, 0.4, 0.4], False), ([0.2, 0.3, 0.6], True)],
)
def test_the_widest_gap_is_missed_as_rarely_as_stated(rates: list[float], together: bool) -> None:
    """50 tables at 80 %: above 23 misses has probability below 2e-5. Both measures."""
    rng, missed = np.random.default_rng(0), [0, 0]
    for _ in range(50):
        counts = _drawn(rng, rates, [14, 20, 10])
        found = TableEvidence(THREE, counts, LAPLACE, 0.8, together=together)
        wide, small = difference(found, GROUPS, NAME), ratio(found, GROUPS, NAME)
        missed[0] += not wide.low <= max(rates) - min(rates) <= wide.high
        missed[1] += not small.low <= min(rates) / max(rates) <= small.high
    assert max(missed) <= int(stats.binom.isf(2e-5, 50, 0.2))


def test_a_wrong_pair_is_rarely_named_and_a_clear_one_always() -> None:
    """Equal rates but for a hair: any pair that is named with confidence c or more is about always
    wrong, and may be at most so often."""
    rng, named = np.random.default_rng(1), dict.fromkeys(MISSES, 0)
    for _ in range(150):
        found = TableEvidence(THREE, _drawn(rng, [0.4, 0.4001, 0.4], [12, 12, 12]), LAPLACE, 0.95)
        gap = difference(found, GROUPS, NAME)
        for miss in MISSES:
            named[miss] += gap.named_with is not None and gap.named_with >= 1.0 - miss
    for miss, count in named.items():
        assert count <= int(stats.binom.isf(2e-5, 150, miss))
    clear = TableEvidence(THREE, _drawn(rng, [0.1, 0.5, 0.9], [4000, 4000, 4000]), LAPLACE, 0.95)
    gap = difference(clear, GROUPS, NAME)
    assert (gap.pair, gap.named_with, gap.others) == (("c", "a"), 0.999, ())
    assert ratio(clear, GROUPS, NAME).pair == ("c", "a")
    counts = np.array([[300.0, 100.0], [302.0, 98.0], [200.0, 200.0]])
    unclear = difference(TableEvidence(THREE, counts, LAPLACE, 0.95), GROUPS, NAME)
    assert {unclear.pair, *unclear.others} == {("c", "a"), ("c", "b")}
    assert unclear.named_with in (None, 0.5)


def test_a_group_without_a_rate_leaves_the_gap_undefined() -> None:
    counts = np.array([[300.0, 100.0], [0.0, 1.0], [200.0, 200.0]])
    found = TableEvidence(THREE, counts, LAPLACE, 0.95)
    for gap in (difference(found, GROUPS, NAME), ratio(found, GROUPS, NAME)):
        assert (gap.value, gap.named_with, gap.undefined) == (None, None, ("b",))
    assert difference(found, GROUPS, NAME).high is None
    assert difference(found, GROUPS, NAME).low > 0.1  # of those that have one
    assert ratio(found, GROUPS, NAME).low is None
    assert difference(found, [1], NAME).value is None
    none = TableEvidence(THREE, np.array([[100.0, 0.0], [80.0, 0.0], [50.0, 50.0]]), EXACT, 0.95)
    assert ratio(none, [1, 2], NAME).value is None  # of two rates of zero
    assert ratio(none, [1, 3], NAME).value == 0.0
