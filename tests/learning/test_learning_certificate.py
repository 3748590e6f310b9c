"""Certificates from counts: how often a broken notion is certified, worst pairs, people needed,
absent groups."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from scipy import stats

from fairveil import (
    DemographicParity,
    EqualizedOdds,
    ErrorRateParity,
    FalseNegativeRate,
    RateConstraint,
    SelectionRateRatio,
)
from fairveil.facts import Cells
from fairveil.fairness.notions import ErrorRate, Event, PredictionRate
from fairveil.learning.certificates.certificate import Certified, Evidence, certified, rounded_up
from fairveil.learning.certificates.parts import Layout, layout_of
from fairveil.learning.counts.distributions import distribution_of_sum
from fairveil.learning.counts.noise import CountNoise

LAPLACE = CountNoise("discrete-laplace", 0.4)
TWO = Cells((("f", "m"),), names=("sex",))


def _counts(layout: Layout, cells: Cells, table: np.ndarray) -> np.ndarray:
    """Counts by part from a table (cells, labels, classes)."""
    return np.bincount(layout.part_of.ravel(), table.ravel(), layout.parts)


def _found(
    notions: list,
    table: np.ndarray,
    noise: CountNoise = LAPLACE,
    cells: Cells = TWO,
    confidence: float = 0.9,
) -> Certified:
    layout = layout_of(notions, cells, tuple(range(table.shape[1])))
    return certified(
        layout.rates, layout.lines, len(notions), _counts(layout, cells, table), noise, confidence
    )


def test_a_broken_gap_is_certified_too_rarely_by_enumeration() -> None:
    """Two groups of four people, true gap 0.75 > 0.7: every outcome of people and noise, with its
    probability."""
    rates, sizes, bound, alpha, reach = (0.1, 0.85), (4, 4), 0.7, 0.2, 2
    layout = layout_of([DemographicParity(bound)], TWO, (0, 1))
    law = distribution_of_sum(LAPLACE, 1)
    noise = np.array([law.weights[z - law.low] for z in range(-reach, reach + 1)])

    @cache
    def evidence(s: int, m: int, group: int) -> Evidence:
        counts = np.full(layout.parts, 50.0)
        counts[list(layout.rates[group].hits)] = s
        counts[list(layout.rates[group].rest)] = m
        return Evidence(layout.rates, counts, LAPLACE, 1 - alpha)

    outcomes = []
    for p, n in zip(rates, sizes, strict=True):
        chances: dict[tuple[int, int], float] = {}
        for k in range(n + 1):
            for (a, wa), (b, wb) in itertools.product(enumerate(noise, -reach), repeat=2):
                chances[k + a, n - k + b] = (
                    chances.get((k + a, n - k + b), 0.0) + stats.binom.pmf(k, n, p) * wa * wb
                )
        outcomes.append(chances)
    line = next(one for one in layout.lines if one.terms[0][1] == 1)  # m minus f, the broken side
    steps = evidence(0, 0, 0).steps(line)
    highs = [
        {seen: [evidence(*seen, 1).end(1, a, upper=True) for a, _ in steps] for seen in outcomes[1]}
    ]
    lows = [
        {
            seen: [evidence(*seen, 0).end(0, b, upper=False) for _, b in steps]
            for seen in outcomes[0]
        }
    ]
    granted = sum(
        one * other
        for (seen, one), (too, other) in itertools.product(outcomes[0].items(), outcomes[1].items())
        if max(high - low for high, low in zip(highs[0][too], lows[0][seen], strict=True)) <= bound
    )
    missing = 1.0 - sum(outcomes[0].values()) * sum(outcomes[1].values())
    assert granted + missing <= alpha
    assert granted > 0  # it does grant, sometimes


def test_without_noise_the_largest_gap_is_that_of_the_worst_pair() -> None:
    table = np.zeros((3, 2, 2))
    table[:, 0, :] = [[800, 200], [700, 300], [400, 100]]
    cells = Cells((("a", "b", "c"),))
    found = _found([DemographicParity(0.2)], table, CountNoise("none", 0.0), cells)
    assert found.holds
    assert found.notions[0].value == pytest.approx(0.1)
    # fewer people
    assert found.notions[0].worst.startswith(
        "P(prediction = 1 | group b) - P(prediction = 1 | group c)"
    )
    assert 0.1 < found.notions[0].at_most < 0.2
    alone = {line.name: None for line in layout_of([DemographicParity(0.2)], cells, (0, 1)).lines}
    layout = layout_of([DemographicParity(0.2)], cells, (0, 1))
    evidence = Evidence(layout.rates, _counts(layout, cells, table), CountNoise("none", 0.0), 0.9)
    assert found.notions[0].at_most == max(evidence.at_most(line) for line in layout.lines)
    assert len(alone) == 6


@pytest.mark.parametrize(
    ("notion", "parts"),
    [
        (DemographicParity(0.1), 4),
        (SelectionRateRatio(0.8), 4),
        (EqualizedOdds(0.1), 8),
        (ErrorRateParity(0.1), 4),
        (FalseNegativeRate(0.1), 3),
        (FalseNegativeRate(0.1, "each"), 5),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_rows_that_no_rate_distinguishes_are_counted_together(notion: object, parts: int) -> None:
    layout = layout_of([notion], TWO, (0, 1))  # type: ignore[list-item]
    assert layout.parts == parts
    for rate in layout.rates:
        assert len(rate.hits) == len(rate.rest) == 1


def test_every_notion_has_the_values_that_the_library_measures() -> None:
    rng = np.random.default_rng(1)
    cells = Cells((("f", "m"), ("x", "y", "z")), names=("sex", "town"))
    table = rng.integers(200, 900, size=(6, 3, 3)).astype(float)
    custom = RateConstraint(
        ((1.0, PredictionRate(2, Event(groups=(("f", "x"),)))), (-0.7, ErrorRate(Event()))), 0.9
    )
    notions = [
        DemographicParity(0.5),
        DemographicParity(0.5, groups="marginal"),
        DemographicParity(0.5, compare="rest"),
        EqualizedOdds(0.6),
        FalseNegativeRate(0.9, "each", positive=1),
        custom,
    ]
    found = _found(notions, table, CountNoise("none", 0.0), cells)
    from fairveil.fairness import resolve

    for notion, bound in zip(notions, found.notions, strict=True):
        system = resolve(notion, cells, (0, 1, 2))
        values = system.exact_values(table, table.sum(axis=2))
        assert bound.value == pytest.approx(values.max())
        assert bound.at_most > values.max()
    assert found.holds == all(one.at_most <= one.limit for one in found.notions)


def test_a_group_that_may_be_nobody_is_refused_and_is_no_number() -> None:
    table = np.array([[[500.0, 300.0], [0, 0]], [[1.0, 0.0], [0, 0]]])
    found = _found([DemographicParity(0.1)], table, CountNoise("discrete-laplace", 2.0))
    (one,) = found.notions
    assert not found.holds
    assert (one.at_most, one.value, one.people_needed) == (None, None, None)
    assert "nobody" in one.refused
    assert 100 < (one.in_each_group or 0) < 5000
    assert found.rates[1].value is None
    assert found.rates[1].high is None


def test_people_needed_would_do_at_the_same_rates() -> None:
    table = np.zeros((2, 2, 2))
    table[:, 0, :] = [[210, 90], [72, 28]]
    before = _found([DemographicParity(0.1)], table)
    needed = before.notions[0].people_needed
    assert not before.holds
    assert needed is not None
    assert needed > 400
    grown = np.rint(table * needed / 400)
    assert _found([DemographicParity(0.1)], grown).holds
    # not many times too many
    assert not _found([DemographicParity(0.1)], np.rint(grown / 1.6)).holds
    far = np.zeros((2, 2, 2))
    far[:, 0, :] = [[210, 90], [20, 80]]
    assert _found([DemographicParity(0.1)], far).notions[0].people_needed is None


def test_a_ratio_is_certified_by_the_linear_constraint() -> None:
    table = np.zeros((2, 2, 2))
    table[:, 0, :] = [[6000, 4000], [6200, 3800]]
    found = _found([SelectionRateRatio(0.8)], table).notions[0]
    assert found.certified
    assert found.ratio is not None
    assert 0.8 < found.ratio < 0.95
    edge = _found([SelectionRateRatio(found.ratio - 1e-4)], table).notions[0]
    over = _found([SelectionRateRatio(found.ratio + 1e-4)], table).notions[0]
    assert edge.certified
    assert not over.certified


def test_numbers_of_people_are_rounded_up() -> None:
    for number in (1.0, 9.5, 99.2, 101.0, 8123.0, 1e7 + 1):
        assert number <= rounded_up(number) <= 1.2 * number + 1
