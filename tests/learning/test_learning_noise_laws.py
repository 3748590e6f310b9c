"""Sums of noises, value by value: against exact sums, and against what the curator draws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fairveil.core.noise import NoiseSource
from fairveil.learning.counts.distributions import NoiseLaw, distribution_of_sum
from fairveil.learning.counts.noise import CountNoise

KINDS = [
    CountNoise("discrete-laplace", 0.7),
    CountNoise("discrete-laplace", 5.0),
    CountNoise("gaussian", 0.6),
    CountNoise("gaussian", 4.22),
]


def _one(noise: CountNoise, value: int) -> float:
    if noise.kind == "gaussian":
        return float(
            stats.norm.cdf((value + 0.5) / noise.scale)
            - stats.norm.cdf((value - 0.5) / noise.scale)
        )
    r = math.exp(-1.0 / noise.scale)
    return (1 - r) / (1 + r) * r ** abs(value)


@pytest.mark.parametrize("noise", KINDS, ids=str)
def test_one_noise_is_that_of_the_sampler(noise: CountNoise) -> None:
    law = distribution_of_sum(noise, 1)
    for value in range(-12, 13):
        if law.low <= value <= -law.low:
            assert law.weights[value - law.low] == pytest.approx(
                _one(noise, value), rel=1e-9, abs=1e-15
            )
    stream = NoiseSource.seeded(5).stream("noise", 0)
    n = 200_000
    drawn = (
        stream.discrete_laplace(noise.scale, n)
        if noise.kind == "discrete-laplace"
        else stream.rounded_gaussian(noise.scale, n)
    )
    seen = np.array([(drawn == value).sum() for value in range(-3, 4)]) / n
    wanted = law.weights[-3 - law.low : 4 - law.low]
    # false alarm below 1e-7
    assert (np.abs(seen - wanted) < 6 * np.sqrt(wanted * (1 - wanted) / n) + 1e-6).all()


@pytest.mark.parametrize("noise", [KINDS[0], KINDS[2]], ids=str)
@pytest.mark.parametrize("count", [2, 3])
def test_sums_are_those_of_all_tuples(noise: CountNoise, count: int) -> None:
    law, reach = distribution_of_sum(noise, count), 9
    exact = dict.fromkeys(range(-reach * count, reach * count + 1), 0.0)
    for values in itertools.product(range(-reach, reach + 1), repeat=count):
        exact[sum(values)] += math.prod(_one(noise, value) for value in values)
    for value in range(-4, 5):
        assert law.weights[value - law.low] == pytest.approx(exact[value], abs=1e-5)


@pytest.mark.parametrize("noise", KINDS, ids=str)
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_no_probability_is_lost(noise: CountNoise, count: int) -> None:
    law = distribution_of_sum(noise, count)
    assert 1.0 <= law.weights.sum() + law.missed <= 1.0 + 1e-9
    assert law.variance == pytest.approx(count * distribution_of_sum(noise, 1).variance, rel=1e-6)
    for share in (0.1, 1e-3, 1e-8):
        cut = law.cut(share)
        assert 1.0 <= cut.weights.sum() + cut.missed <= 1.0 + 1e-9
        assert cut.missed <= law.missed + share * (1 + 1e-9)
        radius = law.radius(share)
        outside = law.weights[np.abs(law.values) > radius].sum() + law.missed
        inside = law.weights[np.abs(law.values) > radius - 1].sum() + law.missed
        assert outside <= share < inside or radius == 0


def test_no_noise_is_zero() -> None:
    law = distribution_of_sum(CountNoise("none", 0.0), 3)
    assert (law.low, law.weights.tolist(), law.missed, law.radius(1e-9)) == (0, [1.0], 0.0, 0)
    assert isinstance(law, NoiseLaw)
