"""Functions of rates from welfare and inequality: shortfalls of means, and the Gini index."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import _checks
from .._types import Floats
from .outer import Outer

SMOOTHING = 0.01


@dataclass(frozen=True)
class GeometricShortfall(Outer):
    """1 less the geometric mean of numbers in [0, 1], each raised by `smoothing`, without which no
    slope is bounded at 0."""

    smoothing: float = SMOOTHING

    def __post_init__(self) -> None:
        _checks.normalise(self, smoothing=_checks.fraction(smoothing=self.smoothing, low_open=True))

    def value(self, v: Floats) -> Floats:
        return np.asarray(1.0 + self.smoothing - self._mean(v))

    def gradient(self, v: Floats) -> Floats:
        return np.asarray(
            -self._mean(v)[..., np.newaxis] / v.shape[-1] / self._raised(v) * (v <= 1.0)
        )

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        s = self.smoothing
        return np.full(m, -(((1.0 + s) / s) ** ((m - 1) / m)) / m), np.zeros(m)

    def steepness(self, m: int) -> float:
        s, low = self.smoothing, np.arange(m + 1)
        means = np.exp((low * math.log(s) + (m - low) * math.log(1.0 + s)) / m)
        return float((means / m * np.sqrt(low / s**2 + (m - low) / (1.0 + s) ** 2)).max())

    def bend(self, m: int) -> float:
        s = self.smoothing
        return s ** (1.0 / m) * (1.0 + s) ** ((m - 1) / m) / s**2 / m if m > 1 else 0.0

    def _raised(self, v: Floats) -> Floats:
        return np.asarray(np.clip(v, 0.0, 1.0) + self.smoothing)

    def _mean(self, v: Floats) -> Floats:
        return np.asarray(np.exp(np.log(self._raised(v)).mean(axis=-1)))


@dataclass(frozen=True)
class HarmonicShortfall(Outer):
    """1 less the harmonic mean of numbers in [0, 1], each raised by `smoothing`."""

    smoothing: float = SMOOTHING

    def __post_init__(self) -> None:
        _checks.normalise(self, smoothing=_checks.fraction(smoothing=self.smoothing, low_open=True))

    def value(self, v: Floats) -> Floats:
        return np.asarray(1.0 + self.smoothing - v.shape[-1] / (1.0 / self._raised(v)).sum(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        inverse = 1.0 / self._raised(v)
        return np.asarray(
            -v.shape[-1] * (inverse / inverse.sum(axis=-1, keepdims=True)) ** 2 * (v <= 1.0)
        )

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        return np.full(m, -m * self._share(m) ** 2), np.zeros(m)

    def steepness(self, m: int) -> float:
        return float(m * self._share(m) ** 1.5)

    def bend(self, m: int) -> float:
        return float(2.0 * m * self._share(m) ** 2 / self.smoothing) if m > 1 else 0.0

    def _share(self, m: int) -> float:
        """The largest share: one number 0, the others 1."""
        s = self.smoothing
        return (1.0 / s) / (1.0 / s + (m - 1) / (1.0 + s))

    def _raised(self, v: Floats) -> Floats:
        return np.asarray(np.clip(v, 0.0, 1.0) + self.smoothing)


@dataclass(frozen=True)
class Inequality(Outer):
    """Above 0 exactly where the Gini index of non-negative numbers is above `theta` (Definition
    8.6's convex level set).

    (sum_{i<j} |v_i - v_j| - theta m sum_i v_i) / (m - 1): of two numbers the difference, less 4
    theta their mean. The index itself is quasi-convex only.
    """

    theta: float

    def __post_init__(self) -> None:
        _checks.normalise(self, theta=_checks.fraction(theta=self.theta))

    def value(self, v: Floats) -> Floats:
        ranks, pull = self._slopes(v.shape[-1])
        return np.asarray((np.sort(v, axis=-1) * ranks).sum(axis=-1) - pull * v.sum(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        m = v.shape[-1]
        above = (v[..., :, np.newaxis] > v[..., np.newaxis, :]).sum(axis=-1)
        below = (v[..., :, np.newaxis] < v[..., np.newaxis, :]).sum(axis=-1)
        return np.asarray((above - below) / max(1, m - 1) - self._slopes(m)[1])

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        ranks, pull = self._slopes(m)
        return np.full(m, ranks[0] - pull), np.full(m, ranks[-1] - pull)

    def steepness(self, m: int) -> float:
        ranks, pull = self._slopes(m)
        return math.sqrt(float((ranks**2).sum()) + m * pull**2)

    def _slopes(self, m: int) -> tuple[Floats, float]:
        """What each number counts by its rank, and what all count against."""
        unit = max(1, m - 1)
        return (2.0 * np.arange(m) - (m - 1)) / unit, self.theta * m / unit

    def bend(self, m: int) -> float:
        return math.inf if m > 1 else 0.0


def gini(v: Floats) -> Floats:
    """The Gini index of numbers that are not negative, (..., m) -> (...); NaN where all are 0."""
    m = v.shape[-1]
    ranks = 2.0 * np.arange(m) - (m - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((np.sort(v, axis=-1) * ranks).sum(axis=-1) / (m * v.sum(axis=-1)))
