"""_verdicts: how often a word is wrong, by simulation and at the ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil import _verdicts as verdicts
from fairveil._verdicts import MET, NOT_MET, UNCLEAR, of_interval, of_noisy, of_sampled, together

DRAWS = 20_000


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_1_a_broken_constraint_is_rarely_called_met(confidence: float) -> None:
    """At its worst the value is just above the bound: 1 - confidence, within five deviations (false
    alarm: 6e-7 each way)."""
    values = 0.05 + 1e-12 + 0.01 * np.random.default_rng(0).normal(size=DRAWS)
    wrong = np.mean([of_noisy(value, 0.05, 0.01, confidence=confidence) == MET for value in values])
    assert abs(wrong - (1 - confidence)) <= 5 * math.sqrt(confidence * (1 - confidence) / DRAWS)


def test_1_of_several_constraints_the_broken_one_decides() -> None:
    """Four that hold by far and one that is broken slightly; five deviations."""
    rng = np.random.default_rng(1)
    truth = np.array([0.0, 0.0, 0.0, 0.0, 0.05 + 1e-12])
    wrong = 0
    for noise in 0.01 * rng.normal(size=(DRAWS // 4, 5)):
        wrong += together(of_noisy(value, 0.05, 0.01, among=5) for value in truth + noise) is True
    assert wrong / (DRAWS // 4) <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / (DRAWS // 4))


@pytest.mark.parametrize("among", [1, 2, 12])
def test_2_constraints_that_hold_are_rarely_called_broken(among: int) -> None:
    """All of them at their bounds, where it is worst; five deviations. Without the correction 12
    would be wrong in 46 %."""
    noise = 0.01 * np.random.default_rng(2).normal(size=(DRAWS // 4, among))
    wrong = np.mean(
        [
            together(of_noisy(0.05 + z, 0.05, 0.01, among=among) for z in row) is False
            for row in noise
        ]
    )
    assert 0.02 < wrong <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / (DRAWS // 4))


@pytest.mark.parametrize("looks", [1, 2, 30])
def test_3_the_luckiest_of_many_is_rarely_called_met(looks: int) -> None:
    """The least value of several models, all of them just above the bound; five deviations. By
    itself 30 would pass in 78 %."""
    values = (0.05 + 1e-12 + 0.01 * np.random.default_rng(4).normal(size=(DRAWS // 4, looks))).min(
        axis=1
    )
    wrong = np.mean([of_noisy(value, 0.05, 0.01, looks=looks) == MET for value in values])
    assert 0.02 < wrong <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / (DRAWS // 4))


def test_4_no_word_contradicts_its_number() -> None:
    rng = np.random.default_rng(3)
    for value, bound, noise in rng.normal(size=(2000, 3)) * [0.1, 0.1, 0.05]:
        verdict = of_noisy(value, bound, abs(noise), among=int(rng.integers(1, 9)))
        assert verdict != MET or value <= bound
        assert verdict != NOT_MET or value > bound
    assert (
        of_noisy(-0.33, 0.05, 0.50)
        == of_noisy(0.04, 0.05, 0.9)
        == of_noisy(1.099, 1.2, 0.868)
        == UNCLEAR
    )


def test_exact_values_are_compared_with_their_bounds() -> None:
    assert of_noisy(0.05, 0.05, 0.0) == MET
    assert of_noisy(0.05 + 1e-11, 0.05, 0.0) == MET  # rounding
    assert of_noisy(0.0501, 0.05, 0.0) == NOT_MET
    assert of_noisy(5.3e9 * (1 + 1e-12), 5.3e9, 0.0) == MET


def test_what_is_undefined_cannot_be_told() -> None:
    assert of_noisy(math.nan, 0.05, 0.0) == of_noisy(0.01, 0.05, math.nan) == UNCLEAR
    assert of_interval(None, None, 0.05) == of_interval(math.nan, 0.1, 0.05) == UNCLEAR


def test_an_interval_that_holds_the_bound_tells_nothing() -> None:
    assert of_interval(0.0, 0.05, 0.05) == MET
    assert of_interval(0.05, 0.06, 0.05) == UNCLEAR
    assert of_interval(0.0501, 0.06, 0.05) == NOT_MET


def test_one_that_is_not_met_outweighs_what_cannot_be_told() -> None:
    assert together([MET, UNCLEAR, NOT_MET]) is False
    assert together([MET, UNCLEAR]) is None
    assert together([MET, MET]) is True
    assert together([]) is True
    assert {MET, NOT_MET, UNCLEAR} == set(verdicts.Verdict.__args__)  # type: ignore[attr-defined]


def test_as_many_looks_as_a_file_can_claim_have_a_verdict() -> None:
    """1 minus what is left to chance is rounded to 1 there, whose quantile is none."""
    most = (1 << 63) - 1
    for verdict in (
        of_noisy(0.0, 0.05, 0.001, looks=most, among=most),
        of_sampled(0.0, 0.05, 0.001, 0.001, looks=most, among=most),
    ):
        assert verdict == MET
    assert of_noisy(0.05 - 9.0 * 0.001, 0.05, 0.001, looks=most) == "inconclusive"


@pytest.mark.parametrize("looks", [1, 2])
def test_who_aims_the_margin_inside_is_called_met_as_often_as_it_says(looks: int) -> None:
    """Values that end within their doubts of the aims, about the people: `CHANCE` of each within
    five deviations. One constraint that cannot be told takes the margins of all."""
    noise, sampling, doubt = 0.002, 0.004, 0.003
    (inside,) = verdicts.margins([0.05], [noise], [sampling], [doubt], looks=looks)
    values = 0.05 - inside + doubt * np.random.default_rng(6).normal(size=DRAWS)
    met = np.mean([of_sampled(one, 0.05, noise, sampling, looks=looks) == MET for one in values])
    chance = verdicts.CHANCE
    assert abs(met - chance) <= 5 * math.sqrt(chance * (1 - chance) / DRAWS)
    few = [0.05, 0.05], [noise, 0.03], [sampling, 0.03], [doubt, 0.03]
    assert verdicts.margins(*few, looks=looks) == [0.0, 0.0]
    rows = verdicts.margins([0.05], [noise], [0.05], [doubt], looks=looks)
    assert rows == [verdicts.reach(noise, looks=looks) + verdicts.deviations(chance) * doubt]
