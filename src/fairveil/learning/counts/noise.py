"""The distribution of the noise of released counts, and how large sums of it get: exact tails, and
Chernoff's bounds.

Guarantees (tests/learning/test_learning_count_noise.py, against exact distributions and simulated
walks):
1. What a tail says is exceeded is exceeded with at most that probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..._types import Floats

GRID = 0.5
"""Added to a bound on Gaussian noise, which is rounded to the grid of the sums: whole numbers,
without weights."""


@dataclass(frozen=True)
class CountNoise:
    """The distribution of the noise of one count: `kind` "none", "gaussian" (standard deviation
    `scale`) or "discrete-laplace" (P(x) proportional to exp(-|x| / scale))."""

    kind: str
    scale: float

    @property
    def sd(self) -> float:
        """The standard deviation."""
        if self.kind == "none":
            return 0.0
        if self.kind == "gaussian":
            return self.scale
        r = math.exp(-1.0 / self.scale)
        return math.sqrt(2.0 * r) / (1.0 - r)

    def tail(self, probability: float) -> float:
        """The least w with P(|noise| > w) <= probability: exact tails.

        Discrete Laplace, r = exp(-1 / scale): P(|x| > w) = 2 r^(w + 1) / (1 + r) for whole w.
        """
        if self.kind == "none":
            return 0.0
        if self.kind == "gaussian":
            # Rounding moves a Gaussian by half a unit at most.
            return float(-special.ndtri(probability / 2.0)) * self.scale + GRID
        r = math.exp(-1.0 / self.scale)
        return max(
            0.0, math.ceil(self.scale * math.log(2.0 / ((1.0 + r) * probability)) - 1.0 - 1e-12)
        )

    def sum_tail(self, count: int, probability: float) -> float:
        """A number that the sum of `count` independent |noise| exceeds with at most this
        probability: Chernoff's bound,

            min over t of (count log E exp(t |x|) + log 1/probability) / t,

        or count x `tail`, whichever is less.
        """
        if self.kind == "none" or not count:
            return 0.0
        if self.kind == "gaussian":
            t = np.geomspace(1e-3, 1e2, 400) / self.scale
            # E exp(t |G|) = 2 exp(t^2 s^2 / 2) Phi(t s) for G of deviation s.
            logs = np.log(2.0) + (t * self.scale) ** 2 / 2.0 + special.log_ndtr(t * self.scale)
        else:
            r = math.exp(-1.0 / self.scale)
            t = np.linspace(0.0, 1.0, 402)[1:-1] / self.scale
            rising = np.exp(t - 1.0 / self.scale)
            logs = np.log((1.0 - r) / (1.0 + r) * (1.0 + 2.0 * rising / (1.0 - rising)))
        chernoff = float(((count * logs - math.log(probability)) / t).min())
        more = count * GRID if self.kind == "gaussian" else 0.0
        return min(chernoff + more, count * self.tail(probability / count))

    def walk_tail(self, length: int, walks: int, probability: float) -> float:
        """A number that a sum of `walks` independent M exceeds with at most this probability, where
        M is the largest size that a sum of the first or of the last s of `length` independent
        noises has, over all s.

        The noise is symmetric, so by Levy's inequality P(M > x) <= 4 P(|S| > x) for the whole sum
        S, and E exp(t M) <= 8 E exp(t S) - 3; Chernoff's bound follows. Or the sum of all sizes
        (`sum_tail`), whichever is less.
        """
        if self.kind == "none" or not walks or not length:
            return 0.0
        t, logs = self._cumulants()
        each = length * logs + np.log(8.0 - 3.0 * np.exp(-length * logs))
        chernoff = float(((walks * each - math.log(probability)) / t).min())
        # Both hold, and which of them is less depends on public numbers alone.
        return min(chernoff, self.sum_tail(length * walks, probability))

    def _cumulants(self) -> tuple[Floats, Floats]:
        """Numbers t, and at least log E exp(t x) for each."""
        if self.kind == "gaussian":
            t = np.geomspace(1e-4, 1e2, 600) / max(self.scale, 1e-3)
            t = t[t < 300.0]
            # rounded: |x| is at most |g| + 1/2 and x is symmetric, so E exp(t x) = E cosh(t x) <= E
            # cosh(t (|g| + 1/2))
            rounded = np.cosh(t * GRID) + np.sinh(t * GRID) * special.erf(
                t * self.scale / math.sqrt(2.0)
            )
            return t, np.asarray((t * self.scale) ** 2 / 2.0 + np.log(rounded))
        r = math.exp(-1.0 / self.scale)
        t = (
            np.concatenate([np.geomspace(1e-3, 0.1, 200), np.linspace(0.1, 1.0, 402)[1:-1]])
            / self.scale
        )
        return t, np.asarray(
            2.0 * math.log1p(-r)
            - np.log1p(-np.exp(t - 1.0 / self.scale))
            - np.log1p(-r * np.exp(-t))
        )
