"""Blind decisions in the place of some of a model's: shares by hand, how often the mixture breaks a
bound, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fairveil as fv
from fairveil.core.noise import NoiseSource
from fairveil.facts import Cells
from fairveil.fairness import Notion
from fairveil.learning.certificates.certificate import certified
from fairveil.learning.certificates.parts import Layout, layout_of
from fairveil.learning.certificates.replacing import Replaced, blind, least, rates_of, sums_of
from fairveil.learning.counts.noise import CountNoise

CELLS = Cells((("f", "m"),))
LAPLACE = CountNoise("discrete-laplace", 1.0)


def _layout(*notions: Notion, groups: int = 2) -> Layout:
    return layout_of(notions, Cells((tuple(range(groups)),)), (0, 1))


def _counts(layout: Layout, table: np.ndarray) -> np.ndarray:
    """Of people by (cell, label, decision)."""
    return np.bincount(layout.part_of.ravel(), table.ravel(), layout.parts).astype(np.float64)


def test_rates_of_blind_decisions_are_those_of_the_formula() -> None:
    layout = _layout(fv.EqualizedOdds(0.1))
    assert rates_of(layout, (0.25, 0.75)) == (0.75,) * len(layout.rates)
    errors = _layout(fv.ErrorRateParity(0.1))
    assert rates_of(errors, (0.5, 0.5)) == (0.5, 0.5)
    assert rates_of(errors, (1.0, 0.0)) == (None, None)  # the share of a label, which nobody knows
    misses = _layout(fv.FalseNegativeRate(0.3, "each"))
    assert rates_of(misses, (0.0, 1.0)) == (0.0, 0.0)
    assert sums_of(misses, (0.5, 0.5)) == (0.5, 0.5)
    assert all(math.isnan(one) for one in sums_of(errors, (0.0, 1.0)))


@pytest.mark.parametrize(
    ("notion", "labels", "expected"),
    [
        (fv.DemographicParity(0.1), (0.7, 0.3), (1.0, 0.0)),
        (fv.DemographicParity(0.1), (0.3, 0.7), (0.0, 1.0)),
        (fv.DemographicParity(0.1), None, (0.5, 0.5)),
        (fv.ErrorRateParity(0.1), (0.7, 0.3), (0.5, 0.5)),
        (fv.FalseNegativeRate(0.3, "each"), (0.7, 0.3), (0.0, 1.0)),
        (fv.SelectionRateRatio(0.8), (0.3, 0.7), (0.0, 1.0)),
        (fv.BoundedGroupLoss(0.25), (0.7, 0.3), None),
    ],
)
def test_which_blind_decisions(
    notion: Notion, labels: tuple[float, ...] | None, expected: tuple[float, ...] | None
) -> None:
    assert blind(_layout(notion), labels) == expected


def test_the_share_is_the_least_that_is_certified() -> None:
    """Guarantee 2: by hand from the bound of the count, and by trying a thousandth less."""
    layout = _layout(fv.DemographicParity(0.2))
    table = np.zeros((2, 2, 2))
    table[0, 0], table[1, 0] = (700, 300), (400, 600)  # rates 0.3 and 0.6
    counts = _counts(layout, table)
    before = certified(layout.rates, layout.lines, 1, counts, LAPLACE, 0.95).notions[0]
    assert before.at_most is not None
    found = least(layout, counts, LAPLACE, 0.95, (1.0, 0.0))
    assert found is not None
    assert found.share == pytest.approx(math.ceil(1000 * (1 - 0.2 / before.at_most)) / 1000)
    for share, holds in ((found.share, True), (found.share - 0.001, False)):
        mixed = Replaced(share, found.by).within(layout)
        after = certified(layout.rates, layout.lines, 1, counts, LAPLACE, 0.95, mixed)
        assert after.holds is holds
        assert after.notions[0].at_most == pytest.approx((1 - share) * before.at_most)
        assert [one.value for one in after.rates] == pytest.approx(
            [(1 - share) * rate for rate in (0.3, 0.6)]
        )


def test_nothing_is_replaced_where_it_is_certified_and_everything_where_nobody_is_known() -> None:
    layout = _layout(fv.DemographicParity(0.2))
    even = _counts(layout, np.full((2, 2, 2), 500.0))
    assert least(layout, even, LAPLACE, 0.95, (1.0, 0.0)) == Replaced(0.0, (1.0, 0.0))
    nobody = np.zeros(layout.parts)
    found = least(layout, nobody, LAPLACE, 0.95, (1.0, 0.0))
    assert found is not None
    assert found.share == pytest.approx(0.8, abs=0.0011)  # the gap is at most 1
    blindly = found.within(layout)
    assert certified(layout.rates, layout.lines, 1, nobody, LAPLACE, 0.95, blindly).holds
    assert (
        least(_layout(fv.BoundedGroupLoss(0.25)), np.full(5, 9.0), LAPLACE, 0.95, (0.5, 0.5))
        is None
    )


def test_the_mixture_breaks_a_bound_as_seldom_as_a_bound_fails() -> None:
    """Guarantee 1, over people and noise: a model far above its bound, 50 draws at 80 %. More than
    19 broken bounds have probability below 1e-3 even if each breaks with 20 %; the share is never
    so large that none is near."""
    notions = (fv.DemographicParity(0.1),)
    layout, rng = _layout(*notions, groups=3), np.random.default_rng(0)
    # of decisions for 1, by group and label
    chances = np.array([[0.2, 0.55], [0.3, 0.7], [0.45, 0.8]])
    chance = (
        np.stack([1 - chances, chances], axis=2)
        * np.array([0.3, 0.3, 0.4])[:, None, None]
        * np.array([0.6, 0.4])[:, None]
    )
    stream, broken, shares = NoiseSource.seeded(1).stream("noise"), 0, []
    by = blind(layout, (0.6, 0.4))
    assert by is not None
    for _ in range(50):
        table = rng.multinomial(3000, chance.ravel()).reshape(chance.shape)
        counts = _counts(layout, table) + np.asarray(stream.discrete_laplace(1.0, layout.parts))
        found = least(layout, counts, LAPLACE, 0.8, by)
        assert found is not None
        shares.append(found.share)
        mixed = (1 - found.share) * chance + found.share * chance.sum(
            axis=2, keepdims=True
        ) * np.array(by)
        exact = _counts(layout, 1e9 * mixed)
        rates = [one.counted(exact) for one in layout.rates]
        of = [one.selected / (one.selected + one.others) for one in rates]
        broken += any(
            sum(c * of[at] for c, at in line.terms) > line.bound + 1e-9 for line in layout.lines
        )
    assert 0.0 < np.mean(shares) < 1.0
    assert broken <= 19


@pytest.mark.parametrize(
    ("notion", "people", "groups", "chances", "scale"),
    [
        (fv.DemographicParity(0.1), 8, (0.5, 0.5), ((0.0, 0.0), (1.0, 1.0)), 2.0),
        (fv.EqualizedOdds(0.1), 100, (0.95, 0.05), ((0.1, 0.9), (0.1, 0.6)), 1.0),
        (fv.SelectionRateRatio(0.8), 60, (0.5, 0.5), ((0.0, 0.0), (0.02, 0.02)), 1.0),
    ],
)
def test_few_people_and_rates_at_the_ends(
    notion: Notion,
    people: int,
    groups: tuple[float, ...],
    chances: tuple[tuple[float, ...], ...],
    scale: float,
) -> None:
    """Guarantee 1 in hostile settings (more of them: benchmarks/results/certificates.md): 25 draws
    at 80 %. More than 12 broken bounds have probability below 1e-3 even if each breaks with 20 %."""
    layout, rng, noise = (
        _layout(notion),
        np.random.default_rng(2),
        CountNoise("discrete-laplace", scale),
    )
    yes = np.array(chances)
    chance = np.stack([1 - yes, yes], axis=2) * np.array(groups)[:, None, None] * 0.5
    stream, broken = NoiseSource.seeded(3).stream("noise"), 0
    by = blind(layout, None)
    assert by is not None

    def values(of: np.ndarray) -> list[float]:
        told = [one.counted(_counts(layout, of)) for one in layout.rates]
        rates = [one.selected / (one.selected + one.others) for one in told]
        return [sum(c * rates[at] for c, at in line.terms) for line in layout.lines]

    assert any(value > line.bound for value, line in zip(values(chance), layout.lines, strict=True))
    for _ in range(25):
        table = rng.multinomial(people, chance.ravel()).reshape(chance.shape)
        found = least(
            layout,
            _counts(layout, table) + np.asarray(stream.discrete_laplace(scale, layout.parts)),
            noise,
            0.8,
            by,
        )
        assert found is not None
        mixed = (1 - found.share) * chance + found.share * chance.sum(
            axis=2, keepdims=True
        ) * np.array(by)
        broken += any(
            value > line.bound + 1e-9
            for value, line in zip(values(mixed), layout.lines, strict=True)
        )
    assert broken <= 12
