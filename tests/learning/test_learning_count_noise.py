"""How large sums of noise get: walks against simulation, and bounds that would be false if they
were smaller by half."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from fairveil.learning.counts.noise import CountNoise

LAWS = [CountNoise("discrete-laplace", scale) for scale in (0.8, 7.0)] + [
    CountNoise("gaussian", scale) for scale in (0.6, 9.0)
]


def drawn(law: CountNoise, shape: tuple[int, ...], seed: int = 0) -> npt.NDArray[np.float64]:
    """Noise as it is released: whole numbers."""
    rng = np.random.default_rng(seed)
    if law.kind == "gaussian":
        return np.rint(rng.normal(0.0, law.scale, size=shape))
    p = 1.0 - np.exp(-1.0 / law.scale)
    return np.asarray(rng.geometric(p, size=shape) - rng.geometric(p, size=shape), float)


def furthest(noise: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The largest size of a sum of the first or of the last of the noises, of none up to all, along
    the last axis."""
    first = np.cumsum(noise, axis=-1)
    last = np.cumsum(noise[..., ::-1], axis=-1)
    return np.asarray(np.maximum(np.abs(first).max(axis=-1), np.abs(last).max(axis=-1)))


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("length", "walks"), [(1, 1), (16, 1), (16, 4), (64, 10)])
def test_guarantee_1_walks_stay_within_their_bound_and_not_far_within(
    law: CountNoise, length: int, walks: int
) -> None:
    """20,000 draws at 0.05: an excess of 6 % or more has probability below 1e-9 if the bound
    holds."""
    found = furthest(drawn(law, (20_000, walks, length))).sum(axis=1)
    bound = law.walk_tail(length, walks, 0.05)
    assert (found > bound).mean() < 0.06
    assert bound < 3.0 * np.quantile(found, 0.95) + 2.0
    assert (found > bound / 2.5).mean() > 0.05  # a bound that were so much smaller would be false


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_exponential_moments_are_no_less_than_those_of_the_noise(law: CountNoise) -> None:
    t, logs = law._cumulants()
    noise = drawn(law, (400_000,), seed=1)
    small = t * law.sd < 0.7  # where 400,000 draws tell the mean to a per cent
    for one, log in list(zip(t[small], logs[small], strict=True))[::40]:
        assert np.log(np.exp(one * noise).mean()) <= log + 0.01


def test_without_noise_nothing_wanders() -> None:
    assert CountNoise("none", 0.0).walk_tail(9, 3, 0.05) == 0.0
    assert CountNoise("gaussian", 1.0).walk_tail(0, 3, 0.05) == 0.0
