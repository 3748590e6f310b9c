"""Certificates from counts: how often a broken notion is certified, worst pairs, people needed,
absent groups, how a miss is shared, margins, and evidence of monitors."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from scipy import stats

import fairveil as fv
from fairveil.facts import Cells
from fairveil.fairness import resolve
from fairveil.fairness.notions import ErrorRate, Event, PredictionRate
from fairveil.methods.certificate import (
    LEVELS,
    Bet,
    Certified,
    Evidence,
    Layout,
    SupposedPeople,
    area,
    certified,
    corners,
    e_value,
    even_shares,
    layout_of,
    margins,
    p_value,
    rounded_up,
    shares,
)
from fairveil.methods.counts import EXACT, CountNoise, distribution_of_sum

SMALL, LAPLACE = (CountNoise("discrete-laplace", scale) for scale in (0.4, 1.0))
TWO = Cells((("f", "m"),), names=("sex",))
GAP = layout_of([fv.DemographicParity(0.3)], TWO, (0, 1))


def _counts(layout: Layout, table: np.ndarray) -> np.ndarray:
    """Counts by part from a table (cells, labels, classes)."""
    return np.bincount(layout.part_of.ravel(), table.ravel(), layout.parts)


def _noise(rng: np.random.Generator, scale: float, size: int) -> np.ndarray:
    q = 1.0 - np.exp(-1.0 / scale)
    return rng.geometric(q, size) - rng.geometric(q, size)


def _decided(hits: np.ndarray, people: int) -> np.ndarray:
    """A table of two groups of so many people, all of one label."""
    table = np.zeros((2, 2, 2))
    table[:, 0, 0], table[:, 0, 1] = people - hits, hits
    return table


def _found(
    notions: list, table: np.ndarray, noise: CountNoise = SMALL, cells: Cells = TWO
) -> Certified:
    layout = layout_of(notions, cells, tuple(range(table.shape[1])))
    return certified(layout, len(notions), _counts(layout, table), noise, 0.9)


# -- certificates ----------------------------------------------------------------------------------


def test_a_broken_gap_is_certified_too_rarely_by_enumeration() -> None:
    """Two groups of four people, true gap 0.75 > 0.7: every outcome of people and noise, with its
    probability."""
    rates, sizes, bound, alpha, reach = (0.1, 0.85), (4, 4), 0.7, 0.2, 2
    layout = layout_of([fv.DemographicParity(bound)], TWO, (0, 1))
    law = distribution_of_sum(SMALL, 1)
    noise = np.array([law.weights[z - law.low] for z in range(-reach, reach + 1)])

    @cache
    def evidence(s: int, m: int, group: int) -> Evidence:
        counts = np.full(layout.parts, 50.0)
        counts[list(layout.rates[group].hits)] = s
        counts[list(layout.rates[group].rest)] = m
        return Evidence(layout, counts, SMALL, 1 - alpha)

    outcomes = []
    for p, n in zip(rates, sizes, strict=True):
        chances: dict[tuple[int, int], float] = {}
        for k in range(n + 1):
            for (a, wa), (b, wb) in itertools.product(enumerate(noise, -reach), repeat=2):
                seen = (k + a, n - k + b)
                chances[seen] = chances.get(seen, 0.0) + stats.binom.pmf(k, n, p) * wa * wb
        outcomes.append(chances)
    line = next(one for one in layout.lines if one.terms[0][1] == 1)  # m minus f, the broken side
    steps = evidence(0, 0, 0).steps(line)
    assert len(steps) == 4
    highs = {
        seen: [evidence(*seen, 1).end(1, a, upper=True) for a, _ in steps] for seen in outcomes[1]
    }
    lows = {
        seen: [evidence(*seen, 0).end(0, b, upper=False) for _, b in steps] for seen in outcomes[0]
    }
    granted = sum(
        one * other
        for (seen, one), (too, other) in itertools.product(outcomes[0].items(), outcomes[1].items())
        if max(high - low for high, low in zip(highs[too], lows[seen], strict=True)) <= bound
    )
    missing = 1.0 - sum(outcomes[0].values()) * sum(outcomes[1].values())
    assert granted + missing <= alpha
    assert granted > 0  # it does grant, sometimes


def test_without_noise_the_largest_gap_is_that_of_the_worst_pair() -> None:
    table, cells = np.zeros((3, 2, 2)), Cells((("a", "b", "c"),))
    table[:, 0, :] = [[800, 200], [700, 300], [400, 100]]
    found = _found([fv.DemographicParity(0.2)], table, EXACT, cells)
    (one,) = found.notions
    assert found.holds
    assert one.value == pytest.approx(0.1)
    # fewer people
    assert one.worst.startswith("P(prediction = 1 | group b) - P(prediction = 1 | group c)")
    assert 0.1 < one.at_most < 0.2
    layout = layout_of([fv.DemographicParity(0.2)], cells, (0, 1))
    evidence = Evidence(layout, _counts(layout, table), EXACT, 0.9)
    assert one.at_most == max(evidence.at_most(line) for line in layout.lines)
    for rate in found.rates:  # exact, by Clopper and Pearson with half of the miss on each side
        hits = rate.value * rate.people
        assert rate.low <= stats.beta.ppf(0.05, hits, rate.people - hits + 1) + 1e-9
        assert rate.high >= stats.beta.ppf(0.95, hits + 1, rate.people - hits) - 1e-9


@pytest.mark.parametrize(
    ("notion", "parts"),
    [
        (fv.DemographicParity(0.1), 4),
        (fv.SelectionRateRatio(0.8), 4),
        (fv.EqualizedOdds(0.1), 8),
        (fv.ErrorRateParity(0.1), 4),
        (fv.FalseNegativeRate(0.1), 3),
        (fv.FalseNegativeRate(0.1, "each"), 5),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_rows_that_no_rate_distinguishes_are_counted_together(notion: object, parts: int) -> None:
    layout = layout_of([notion], TWO, (0, 1))  # type: ignore[list-item]
    assert layout.parts == parts
    for rate in layout.rates:
        assert len(rate.hits) == len(rate.rest) == 1


def test_every_notion_has_the_values_that_the_library_measures() -> None:
    cells = Cells((("f", "m"), ("x", "y", "z")), names=("sex", "town"))
    table = np.random.default_rng(1).integers(200, 900, size=(6, 3, 3)).astype(float)
    terms = ((1.0, PredictionRate(2, Event(groups=(("f", "x"),)))), (-0.7, ErrorRate(Event())))
    notions = [
        fv.DemographicParity(0.5),
        fv.DemographicParity(0.5, groups="marginal"),
        fv.DemographicParity(0.5, compare="rest"),
        fv.EqualizedOdds(0.6),
        fv.FalseNegativeRate(0.9, "each", positive=1),
        fv.fairness.RateConstraint(terms, 0.9),
    ]
    found = _found(notions, table, EXACT, cells)
    for notion, bound in zip(notions, found.notions, strict=True):
        values = resolve(notion, cells, (0, 1, 2)).exact_values(table, table.sum(axis=2))
        assert bound.value == pytest.approx(values.max())
        assert bound.at_most > values.max()
    assert found.holds == all(one.at_most <= one.limit for one in found.notions)
    overlapping = next(line for line in layout_of(notions[5:], cells, (0, 1, 2)).lines)
    evidence = Evidence(layout_of(notions[5:], cells, (0, 1, 2)), np.full(9, 500.0), EXACT, 0.9)
    assert evidence.steps(overlapping) == ((pytest.approx(0.05), pytest.approx(0.05)),)


def test_a_group_that_may_be_nobody_is_refused_and_is_no_number() -> None:
    table = np.array([[[500.0, 300.0], [0, 0]], [[1.0, 0.0], [0, 0]]])
    found = _found([fv.DemographicParity(0.1)], table, CountNoise("discrete-laplace", 2.0))
    (one,) = found.notions
    assert not found.holds
    assert (one.at_most, one.value, one.people_needed) == (None, None, None)
    assert "nobody" in one.refused
    assert found.rates[1].value is None
    assert found.rates[1].high is None
    overall = fv.fairness.RateConstraint(((1.0, ErrorRate(Event())),), 0.9)
    both = _found([overall, fv.DemographicParity(0.1)], table, SMALL)
    assert [one.certified for one in both.notions] == [True, False]
    assert not both.holds


def test_people_needed_would_do_at_the_same_rates() -> None:
    table = _decided(np.array([90, 28]), 300)
    table[1, 0, 0] = 72
    before = _found([fv.DemographicParity(0.1)], table)
    needed = before.notions[0].people_needed
    assert not before.holds
    assert needed is not None
    assert needed > 400
    grown = np.rint(table * needed / 400)
    assert _found([fv.DemographicParity(0.1)], grown).holds
    # not many times too many
    assert not _found([fv.DemographicParity(0.1)], np.rint(grown / 1.6)).holds
    far = _decided(np.array([90, 240]), 300)
    assert _found([fv.DemographicParity(0.1)], far).notions[0].people_needed is None
    for number in (1.0, 9.5, 99.2, 101.0, 8123.0, 1e7 + 1):
        assert number <= rounded_up(number) <= 1.2 * number + 1


def test_a_ratio_is_certified_by_the_linear_constraint() -> None:
    table = _decided(np.array([4000, 3800]), 10_000)
    found = _found([fv.SelectionRateRatio(0.8)], table).notions[0]
    assert found.certified
    assert found.ratio is not None
    assert 0.8 < found.ratio < 0.95
    assert _found([fv.SelectionRateRatio(found.ratio - 1e-4)], table).holds
    assert not _found([fv.SelectionRateRatio(found.ratio + 1e-4)], table).holds


# -- how a miss is shared --------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.01, 1e-6])
def test_the_refused_area_is_alpha_and_no_more(alpha: float) -> None:
    found = corners(alpha)
    assert 0.999 * alpha <= area(found) <= alpha
    firsts, seconds = zip(*found, strict=True)
    assert list(firsts) == sorted(firsts)
    assert list(seconds) == sorted(seconds, reverse=True)
    assert np.allclose(found, [(b, a) for a, b in reversed(found)])


def test_the_area_is_that_of_the_set_and_only_separate_pairs_have_steps() -> None:
    u, v = np.random.default_rng(0).random((2, 400_000))
    for times in (1.0, 1.5):
        kept = np.zeros(len(u), bool)
        for a, b in corners(0.05):
            kept |= (u > times * a) & (v > times * b)
        # false alarm below 1e-8; a set that is too large would be seen
        off = abs((~kept).mean() - 0.05)
        assert bool(off < 6 * np.sqrt(0.05 * 0.95 / len(u))) is (times == 1.0)
    assert shares(1, True, 0.05) == ((0.05,),)
    assert shares(2, False, 0.05) == ((0.025, 0.025),)
    assert shares(2, True, 0.05) == corners(0.05)
    assert shares(3, True, 0.06) == ((0.02, 0.02, 0.02),)


@pytest.mark.parametrize("ratio", [1.0, 2.0, 5.0])
def test_steps_are_nearer_than_equal_parts(ratio: float) -> None:
    """In standard deviations, of normal rates whose precisions differ so much."""
    best = stats.norm.ppf(0.95) * np.hypot(1, ratio)
    equal = stats.norm.ppf(0.975) * (1 + ratio)
    ours = max(-stats.norm.ppf(a) - ratio * stats.norm.ppf(b) for a, b in corners(0.05))
    assert best < ours < 0.96 * equal
    assert ours < 1.33 * best


# -- margins ---------------------------------------------------------------------------------------


def test_a_population_the_margin_inside_is_certified_with_about_the_chance() -> None:
    """Two groups of 500 people at rates about one half, gap bound - margin: of 60 certificates 80
    % are granted. Outside of the limits with probability below 1e-4 if the chance is between 0.76
    and 0.84."""
    bound, people, chance = 0.2, 500, 0.8
    layout = layout_of([fv.DemographicParity(bound)], TWO, (0, 1))
    supposed = SupposedPeople(2 * people, even_shares(2, 2))
    (margin,) = margins(layout, 1, supposed, LAPLACE, 0.95, chance)
    gap, rng, granted = bound - margin, np.random.default_rng(0), 0
    assert 0.05 < margin < 0.15
    for _ in range(60):
        hits = rng.binomial(people, [0.5 - gap / 2, 0.5 + gap / 2])
        counts = _counts(layout, _decided(hits, people)) + _noise(rng, 1.0, layout.parts)
        found = Evidence(layout, counts, LAPLACE, 0.95)
        granted += all(found.at_most(line) <= line.bound for line in layout.lines)
    least, most = stats.binom.isf(1 - 1e-4, 60, 0.76), stats.binom.isf(1e-4, 60, 0.84)
    assert least - 1 <= granted <= most


def test_margins_shrink_with_people_and_grow_with_noise_confidence_and_the_fit() -> None:
    notions = [fv.DemographicParity(0.1), fv.FalseNegativeRate(0.2), fv.SelectionRateRatio(0.8)]
    layout, even = layout_of(notions, TWO, (0, 1)), even_shares(2, 2)

    def found(
        people: float = 1000,
        noise: CountNoise = LAPLACE,
        confidence: float = 0.95,
        fitted: float | None = None,
        of: np.ndarray = even,
    ) -> np.ndarray:
        supposed = SupposedPeople(people, of, fitted)
        return np.array(margins(layout, 3, supposed, noise, confidence, 0.8))

    assert (found(people=4000) < found()).all()
    assert (found(noise=CountNoise("gaussian", 9.0)) > found()).all()
    assert (found(confidence=0.99) > found()).all()
    assert (found(fitted=2.0) > found()).all()
    few = even_shares(2, 2, [0.1, 0.9])
    assert few.sum() == pytest.approx(1.0)
    assert found(of=few)[0] > found()[0]


# -- monitors --------------------------------------------------------------------------------------


@cache
def _p_of(counts: tuple[float, ...]) -> float:
    return p_value(GAP, np.array([*counts, 0.0]), SMALL)  # the last part is of no use


def _p(rng: np.random.Generator, rates: tuple[float, float], people: int) -> float:
    counts = _counts(GAP, _decided(rng.binomial(people, rates), people))
    return _p_of(tuple((counts + _noise(rng, 0.4, GAP.parts))[:-1].tolist()))


def test_p_values_are_valid_where_the_constraint_just_holds() -> None:
    """150 periods of a gap at the bound: P(p <= u) <= u for u of 0.5, 0.25, 0.0625; each count
    above its limit has probability below 1e-4."""
    rng = np.random.default_rng(0)
    found = np.array([_p(rng, (0.3, 0.6), 8) for _ in range(150)])
    for u in (0.5, 0.25, 0.0625):
        assert (found <= u).sum() <= stats.binom.isf(1e-4, 150, u)
    assert found.max() == 1.0
    nobody = np.zeros(GAP.parts)
    nobody[0] = 500.0
    assert p_value(GAP, nobody, SMALL) == 1.0  # a group that may be nobody refutes nothing
    clear = _counts(GAP, _decided(np.array([10, 990]), 1000))
    assert p_value(GAP, clear, SMALL) == len(GAP.lines) * LEVELS[-1]


def test_e_values_of_any_valid_p_have_mean_at_most_one() -> None:
    """Exactly, of the p-value that is as small as it may be: P(p <= u) = u on the grid."""
    for many in (1, 2, 12):
        grid = [1.0, *(many * level for level in LEVELS if many * level < 1.0)]
        steps = zip(grid, [*grid[1:], 0.0], strict=True)
        assert sum((here - there) * e_value(here) for here, there in steps) <= 1.0
    values = [e_value(p) for p in (1.0, 0.9999995, 0.5, 0.1, 0.01, 1e-9)]
    assert values == sorted(values)


def test_the_wealth_of_any_run_is_a_supermartingale() -> None:
    """All runs of up to three periods with e-values 0 or 2, each with one half: the mean wealth
    stays at 1, at every time."""
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
