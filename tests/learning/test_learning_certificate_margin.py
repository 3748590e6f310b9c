"""Margins: how often a population that lies the margin inside is certified, and that nothing but
public facts decides them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairveil import DemographicParity, FalseNegativeRate, SelectionRateRatio
from fairveil.facts import Cells
from fairveil.learning.certificates.certificate import Evidence
from fairveil.learning.certificates.margin import SupposedPeople, even, margins
from fairveil.learning.certificates.parts import layout_of
from fairveil.learning.counts.noise import CountNoise

TWO = Cells((("f", "m"),), names=("sex",))
NOISE = CountNoise("discrete-laplace", 1.0)


def test_a_population_the_margin_inside_is_certified_with_about_the_chance() -> None:
    """Two groups of 500 people at rates about one half, gap bound - margin: of 200 certificates 80
    % are granted. Outside of 133 to 184 with probability below 1e-4 if the chance is between 0.76
    and 0.84."""
    bound, people, chance = 0.2, 1000, 0.8
    layout = layout_of([DemographicParity(bound)], TWO, (0, 1))
    (margin,) = margins(layout, 1, SupposedPeople(people, even(2, 2)), NOISE, 0.95, chance)
    gap, rng, granted = bound - margin, np.random.default_rng(0), 0
    assert 0.05 < margin < 0.15
    q = 1.0 - np.exp(-1.0)
    for _ in range(200):
        hits = rng.binomial(people // 2, [0.5 - gap / 2, 0.5 + gap / 2])
        table = np.zeros((2, 2, 2))
        table[:, 0, 0], table[:, 0, 1] = people // 2 - hits, hits
        counts = np.bincount(layout.part_of.ravel(), table.ravel(), layout.parts)
        counts += rng.geometric(q, layout.parts) - rng.geometric(q, layout.parts)
        found = Evidence(layout.rates, counts, NOISE, 0.95)
        granted += all(found.at_most(line) <= line.bound for line in layout.lines)
    assert (
        stats.binom.isf(1 - 1e-4, 200, 0.76) - 1 <= granted <= stats.binom.isf(1e-4, 200, 0.84) + 1
    )


def test_margins_shrink_with_people_and_grow_with_noise_confidence_and_the_fit() -> None:
    layout = layout_of(
        [DemographicParity(0.1), FalseNegativeRate(0.2), SelectionRateRatio(0.8)], TWO, (0, 1)
    )

    def found(
        people: float = 1000,
        noise: CountNoise = NOISE,
        confidence: float = 0.95,
        fitted: float | None = None,
    ) -> list:
        return list(
            margins(layout, 3, SupposedPeople(people, even(2, 2), fitted), noise, confidence, 0.8)
        )

    usual = found()
    assert all(a < b for a, b in zip(found(people=4000), usual, strict=True))
    assert all(a > b for a, b in zip(found(noise=CountNoise("gaussian", 9.0)), usual, strict=True))
    assert all(a > b for a, b in zip(found(confidence=0.99), usual, strict=True))
    assert all(a > b for a, b in zip(found(fitted=2.0), usual, strict=True))


def test_shares_that_are_stated_are_used() -> None:
    layout = layout_of([DemographicParity(0.1)], TWO, (0, 1))
    few = even(2, 2, [0.1, 0.9])
    assert few.sum() == pytest.approx(1.0)
    wide, narrow = (
        margins(layout, 1, SupposedPeople(1000, shares), NOISE, 0.95, 0.8)[0]
        for shares in (few, even(2, 2))
    )
    assert wide > narrow
