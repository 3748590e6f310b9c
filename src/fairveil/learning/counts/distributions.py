"""The distribution of a sum of independent noises of counts, value by value: what exact tails are
made of.

The curator draws whole numbers: a discrete Laplace, or a Gaussian rounded to the nearest whole
number. Sums are convolved. Values far out are left out, and their probability is kept as `missed`:
whoever adds up a tail adds it, and never rescales the rest.

Guarantees (tests/learning/test_learning_noise_laws.py):
1. `weights` and `missed` add up to at least 1: no probability is lost, whatever was cut or rounded.
2. The weights are those of the sampler, not of a density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special

from ..._types import Floats
from .noise import CountNoise

FARTHEST = 1e-14  # probability of one noise that is left out on each side
ROUNDING = 1e-13  # added for the rounding of a convolution


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """P(noise = low + i) = `weights[i]`, and `missed` for everything else. The distribution is
    symmetric around 0."""

    low: int
    weights: Floats
    missed: float

    @property
    def values(self) -> npt.NDArray[np.int64]:
        """The values that have weights."""
        return self.low + np.arange(len(self.weights))

    @property
    def variance(self) -> float:
        """Of the values that have weights."""
        return float((self.weights * self.values.astype(np.float64) ** 2).sum())

    def radius(self, probability: float) -> int:
        """The least w with P(|noise| > w) <= probability, as far as the weights say; what is missed
        counts as beyond."""
        half = len(self.weights) // 2
        # From the smallest weights up, so that the tail keeps its digits.
        beyond = self.missed + 2.0 * np.append(np.cumsum(self.weights[:half])[::-1], 0.0)
        return int(np.argmax(beyond <= probability)) if (beyond <= probability).any() else half

    def cut(self, probability: float) -> NoiseLaw:
        """The same without its tails, whose probability, at most about this much, is missed from
        now on."""
        half, w = len(self.weights) // 2, self.radius(self.missed + probability)
        kept = self.weights[half - w : half + w + 1]
        return NoiseLaw(
            -w,
            kept,
            self.missed
            + float(self.weights[: half - w].sum() + self.weights[half + w + 1 :].sum()),
        )


def distribution_of_sum(noise: CountNoise, count: int) -> NoiseLaw:
    """The distribution of the sum of `count` independent noises."""
    return _sum(noise.kind, noise.scale, count)


@cache
def _sum(kind: str, scale: float, count: int) -> NoiseLaw:
    if kind == "none" or count == 0:
        return NoiseLaw(0, np.ones(1), 0.0)
    if count == 1:
        return _one(kind, scale)
    half = _sum(kind, scale, count // 2)
    whole = _added(half, half)
    return whole if count % 2 == 0 else _added(whole, _one(kind, scale))


def _one(kind: str, scale: float) -> NoiseLaw:
    if kind == "gaussian":
        far = math.ceil(-float(special.ndtri(FARTHEST)) * scale) + 1
        away = np.arange(far + 1, dtype=np.float64)
        # P(round(scale G) = k) by upper tails, which keep their digits far out.
        half = special.ndtr(-(away - 0.5) / scale) - special.ndtr(-(away + 0.5) / scale)
        missed = 2.0 * float(special.ndtr(-(far + 0.5) / scale))
    else:
        r = math.exp(-1.0 / scale)
        far = max(1, math.ceil(-scale * math.log(FARTHEST)))
        # P(k) = (1 - r)/(1 + r) r^|k|, r = exp(-1/scale); the two tails beyond `far` have 2
        # r^(far+1)/(1 + r).
        half = (1.0 - r) / (1.0 + r) * np.exp(-np.arange(far + 1) / scale)
        missed = 2.0 * r ** (far + 1) / (1.0 + r)
    return NoiseLaw(-far, np.concatenate([half[:0:-1], half]), missed + ROUNDING)


def _added(one: NoiseLaw, other: NoiseLaw) -> NoiseLaw:
    weights = np.convolve(one.weights, other.weights)
    # A sum of symmetric noises is symmetric; what rounding made of it is not.
    weights = (weights + weights[::-1]) / 2.0
    whole = NoiseLaw(one.low + other.low, weights, one.missed + other.missed + ROUNDING)
    return whole.cut(2.0 * FARTHEST)
