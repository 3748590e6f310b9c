"""What a run's curators show of their noise: each released number less its noiseless value, in
deviations of the stated noise.

An auditor who knows both tables can recompute every noiseless answer at the very parameters of the
run. So she sees all noise. Two things follow, which need few runs, where a test between two near
distributions needs thousands:

1. **Is the noise what the plan says?** If it is, residuals of a run are independent standard normal
   numbers. `NoiseBets` bets on smaller noise, on noise that comes again, and on answers that lean
   towards what the stated sensitivity does not explain.
2. **How far apart are the two tables?** Their noiseless answers are as far apart as they are, run
   by run. `total_variation` turns that into a lower bound on what the releases tell, given Gaussian
   noise of some scale.

Proofs: docs/audit.md#what-the-noise-tells.

Guarantees (tests/audit/test_audit_noise.py):
1. Where all noise is as stated, `NoiseBets` ever refutes with probability risk at most.
2. `total_variation` is above the truth with probability risk at most, for Gaussian noise of any one
   scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from .._types import Floats
from . import bounds

SMALLER = np.array([0.15, 0.25, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
"""Noise of these shares of the stated deviation is bet on."""
AGAIN = np.array([0.5, 0.99])
"""Correlations with the run before that are bet on."""
LEANING = np.array([0.5, 1.0, 3.0])
"""Answers that lie further towards the neighbour by so many times their distance."""
SURE = 1e6
"""What the last bet gains of a run that no plan as claimed can make; it never loses."""
COARSE = np.array([0.7, 0.85, 0.93, 0.97, 0.99])
LOOKS = 100
SCALES = np.geomspace(0.2, 4.0, 301)


@dataclass(frozen=True, eq=False)
class Residual:
    """Of one run: `noise`, released less noiseless, and `towards`, how far the other table's
    answers are, both in deviations of the stated noise, number by number."""

    noise: Floats
    towards: Floats

    @property
    def squared(self) -> float:
        """The squared distance of the two tables in this run."""
        return float(np.sum(self.towards**2))


class NoiseBets:
    """Wealth against "all noise is as stated", and against each of `SCALES`. `allowed`: the largest
    squared distance of two tables in a run that the plan allows; a run beyond it refutes the plan
    for sure."""

    def __init__(self, allowed: float = math.inf) -> None:
        self._allowed = allowed * (1.0 + 1e-6) + 1e-9
        self._wealth = np.zeros(len(SMALLER) + len(AGAIN) + len(LEANING) + 1)
        self._highest = -math.inf
        self._counts: list[int] = []
        self._totals: list[float] = []
        self._before: Floats | None = None
        self.gains: list[Floats] = []
        self.squared: list[float] = []

    def add(self, here: Residual, there: Residual) -> None:
        """One pair of runs. They share their noise: each bet looks at one of them."""
        gain = self._gain(here, there)
        self._before = here.noise
        self.gains.append(gain)
        self.squared.append(there.squared)
        self._wealth = self._wealth + gain
        self._highest = max(self._highest, mixed(self._wealth))
        self._counts.append(here.noise.size)
        self._totals.append(float(np.sum(here.noise**2)))

    def refuted(self, risk: float) -> bool:
        """Whether the wealth against the stated noise has reached 1 / risk at some time."""
        return self._highest >= -math.log(risk)

    def largest_scale(self, risk: float) -> float:
        """The noise has at most this multiple of its stated deviation, with probability 1 - risk at
        all times together."""
        if not self._counts:
            return math.inf
        at = np.unique(np.linspace(0, len(self._counts) - 1, LOOKS).round().astype(int))
        counts, totals = (np.cumsum(one)[at][:, None, None] for one in (self._counts, self._totals))
        rates = (1.0 / COARSE**2 - 1.0)[:, None] / (2.0 * SCALES**2)
        wealth = special.logsumexp(
            -counts * np.log(COARSE)[:, None] - totals * rates, axis=1
        ) - math.log(len(COARSE))
        kept = np.flatnonzero(wealth.max(axis=0, initial=-math.inf) < -math.log(risk))
        above = int(kept[-1]) + 1 if len(kept) else 0
        return float(SCALES[above]) if above < len(SCALES) else math.inf

    def total_variation(self, risk: float) -> float:
        """The releases on both tables are at least this far apart, if noise is Gaussian of one
        scale: with probability 1 - risk after a number of runs that their outcome did not
        choose."""
        if not self.squared:
            return 0.0
        scale, found = self.largest_scale(risk / 2.0), np.sort(np.sqrt(self.squared))
        if math.isinf(scale):
            return 0.0
        # runs that are nearer than the distance that is tried
        nearer = np.array([0, len(found) // 20, len(found) // 4])
        share = bounds.most_probable(nearer, len(found), 1.0 - risk / (2.0 * len(nearer)))
        return float(
            np.max((2.0 * special.ndtr(found[nearer] / scale / 2.0) - 1.0) * (1.0 - share))
        )

    def _gain(self, here: Residual, there: Residual) -> Floats:
        z, total = here.noise, float(np.sum(here.noise**2))
        smaller = -z.size * np.log(SMALLER) - total * (1.0 / SMALLER**2 - 1.0) / 2.0
        again = np.zeros(len(AGAIN))
        if self._before is not None and self._before.size == z.size:
            left = 1.0 - AGAIN**2
            off = np.sum((z - AGAIN[:, None] * self._before) ** 2, axis=1)
            again = -z.size * np.log(left) / 2.0 - (off / left - total) / 2.0
        lean = (
            LEANING * float(np.sum(there.noise * -there.towards)) - LEANING**2 * there.squared / 2.0
        )
        return np.concatenate(
            [smaller, again, lean, [SURE if there.squared > self._allowed else 0.0]]
        )


def mixed(wealth: Floats) -> float:
    """The logarithm of the mean wealth of all bets."""
    return float(special.logsumexp(wealth) - math.log(len(wealth)))


def power(gains: list[Floats], pairs: int, risk: float, *, resampled: int = 400) -> float:
    """In which share of audits of so many pairs the stated noise would be refuted, by resampling
    the pairs of a planted bug; each bet's gains are lowered by what their mean may be too high at
    95 % confidence (a normal approximation)."""
    if len(gains) < 2:
        return 0.0
    found = np.stack(gains)
    found = found - 1.6449 * found.std(axis=0, ddof=1) / math.sqrt(len(found))
    rng, wealth, won = (
        np.random.default_rng(0),
        np.zeros((resampled, found.shape[1])),
        np.zeros(resampled, bool),
    )
    for _ in range(pairs):
        wealth += found[rng.integers(len(found), size=resampled)]
        won |= special.logsumexp(wealth, axis=1) - math.log(found.shape[1]) >= -math.log(risk)
        if won.all():
            break
    return float(won.mean())
