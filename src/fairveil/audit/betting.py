"""Bets against a claim, one for each pair of runs: evidence that may be looked at after every run,
and stops when it is enough.

A claim says E[phi(there)] - e^epsilon E[phi(here)] <= delta for every test phi in [0, 1]. With x_i
= phi(there_i) and y_i = phi(here_i) of pair i, and a stake in [0, 1 / (e^epsilon + delta)) that
follows from earlier pairs alone,

    wealth_t = product over i <= t of (1 + stake_i (x_i - e^epsilon y_i - delta))

has expectation at most 1 where the claim is true, so it ever reaches 1 / risk with probability risk
at most (Ville 1939; the stakes are after Waudby-Smith and Ramdas 2024). Expectations alone enter:
the two runs of a pair may share their coins, which leaves x_i - y_i far less spread than of
independent runs, and changes nothing in what is claimed.

An auditor who knows both tables can recompute every noiseless answer of a curator at the very
parameters of the run. So she sees all noise, and two things follow that need few runs:

1. **Is the noise what the plan says?** If it is, residuals of a run are independent standard normal
   numbers. `NoiseBets` bets on smaller noise, on noise that comes again, and on answers that lean
   towards what the stated sensitivity does not explain.
2. **How far apart are the two tables?** Their noiseless answers are as far apart as they are, run
   by run. `total_variation` turns that into a lower bound on what the releases tell, given Gaussian
   noise of some scale.

Proofs: docs/audit.md#what-the-noise-tells.

Guarantees (tests/audit/test_audit_betting.py):
1. The wealth against a true claim ever reaches 1 / risk with probability risk at most, whether runs
   of a pair depend on each other or not; where all noise is as stated, so does that of `NoiseBets`.
2. `lower` is below the true parameter with probability 1 - risk at least, at all times together.
3. `total_variation` is above the truth with probability risk at most, for Gaussian noise of any one
   scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from .._types import Floats
from . import scores

MOST = 0.9  # of the largest stake that wealth survives
DISTANCES = np.concatenate([np.linspace(0.0, 0.3, 601), np.linspace(0.302, 0.998, 349)])
"""Total variation distances that are bet against."""
EPSILONS = np.concatenate([np.linspace(0.0, 4.0, 201), np.linspace(4.1, 12.0, 80)])
PRIOR = 0.01  # variance before anything was seen, worth one pair
RESAMPLED = 400
QUANTILE = 1.6449  # the 95 % quantile of a normal mean
SOFTNESS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Half-widths of soft tests, in deviations of the score."""
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
Seen = tuple[Floats, Floats]
"""A test's values on both tables: there, and here."""


@dataclass(frozen=True)
class Soft:
    """A test: 0 below `low`, 1 above `high`, straight between; `turned`: the other way round."""

    low: float
    high: float
    turned: bool = False

    def __call__(self, scores: Floats) -> Floats:
        given = np.asarray(scores, np.float64)
        if self.low == self.high:
            found = (given > self.low).astype(np.float64)
        else:
            found = np.clip((given - self.low) / (self.high - self.low), 0.0, 1.0)
        return 1.0 - found if self.turned else found


class Bets:
    """Wealth against many claims at once: `factors` are e^epsilon, `deltas` what is allowed, one
    pair of numbers a claim. `seen`: of a pilot, from which stakes learn."""

    def __init__(self, factors: Floats, deltas: Floats, seen: Seen | None = None) -> None:
        self._factors, self._deltas = np.broadcast_arrays(factors, deltas)
        # A bet loses at most factor + delta: with this stake wealth stays above 0 whatever comes.
        self._largest = MOST / (self._factors + self._deltas)
        zeros = np.zeros(self._factors.shape)
        self.log_wealth, self.highest, self._sums, self._squares = (zeros.copy() for _ in range(4))
        self._count = 0
        if seen is not None:
            for one, other in zip(*seen, strict=True):
                self._learn(one - self._factors * other - self._deltas)

    def add(self, there: float, here: float) -> None:
        """One pair: the test's values on both tables."""
        self.add_gains(there - self._factors * here - self._deltas)

    def add_gains(self, gain: Floats) -> None:
        """One pair, by what each claim's bet gains of a stake of 1."""
        self.log_wealth = self.log_wealth + np.log1p(self._stakes() * gain)
        # Ville's inequality is about the supremum: once refuted, a claim stays refuted.
        self.highest = np.maximum(self.highest, self.log_wealth)
        self._learn(gain)

    def refuted(self, risk: float) -> npt.NDArray[np.bool_]:
        """Against which claims the wealth has reached 1 / risk at some time."""
        return np.asarray(self.highest >= -np.log(risk))

    def _stakes(self) -> Floats:
        """What past gains would have liked best: mean / (variance + mean^2), within what wealth
        survives."""
        # Past gains alone: a stake that knew the next gain would be no fair bet.
        mean = self._sums / (self._count + 1.0)
        variance = np.maximum((self._squares + PRIOR) / (self._count + 1.0) - mean**2, 1e-6)
        return np.asarray(np.clip(mean / (variance + mean**2), 0.0, self._largest))

    def _learn(self, gain: Floats) -> None:
        self._count += 1
        self._sums = self._sums + gain
        self._squares = self._squares + gain**2


def lower(refuted: npt.NDArray[np.bool_], values: Floats) -> float:
    """The largest value that is refuted, with all below it; 0 where none is."""
    kept = np.flatnonzero(~refuted)
    first = int(kept[0]) if len(kept) else len(values)
    return float(values[first - 1]) if first else 0.0


def power(factor: float, delta: float, seen: Seen, gains: Seen, pairs: int, risk: float) -> float:
    """In which share of audits of so many pairs the claim would be refuted, by resampling the pairs
    of a planted bug.

    Cautious: the gains are lowered by what their mean may be too high at 95 % confidence (a normal
    approximation). So the share is a lower bound, as far as the pairs that were run tell how such
    pairs are spread.
    """
    there, here = gains
    if len(there) < 2:
        return 0.0
    found = there - factor * here - delta
    off = QUANTILE * float(found.std(ddof=1)) / np.sqrt(len(found))
    # A forecast of power, which protects nobody: seeded, so that it repeats.
    rng = np.random.default_rng(0)
    many = Bets(np.full(RESAMPLED, factor), np.full(RESAMPLED, delta), seen)
    for drawn in rng.integers(len(found), size=(pairs, RESAMPLED)):
        many.add_gains(np.maximum(found[drawn] - off, -(factor + delta)))
    return float(many.refuted(risk).mean())


def chosen(
    here: Floats, there: Floats, factor: float, delta: float, pairs: int, *, exact: bool = False
) -> Soft:
    """The test for a claim that a pilot's scores favour, by the lower end that they promise for so
    many pairs. For a distance (`factor` 1) soft ones around a few quantiles, or around 0 where the
    scores are `exact` log likelihood ratios; else hard ones, far out."""
    both = np.concatenate((here, there))
    if factor > 1.0:
        cuts = np.unique(np.quantile(both, np.linspace(0.02, 0.98, 49))).tolist()
        tests = [Soft(cut, cut, turned) for cut in cuts for turned in (False, True)]
    elif not (np.ptp(here) or np.ptp(there)):
        middle = float((here.mean() + there.mean()) / 2.0)
        return Soft(middle, middle, bool(there.mean() < here.mean()))
    else:
        spread = float(np.sqrt((here.var() + there.var()) / 2.0))
        turned = bool(there.mean() < here.mean())
        centres = [0.0] if exact else np.quantile(both, (0.3, 0.4, 0.5, 0.6, 0.7)).tolist()
        tests = [Soft(c - a * spread, c + a * spread, turned) for c in centres for a in SOFTNESS]
    return max(tests, key=lambda test: promised(test, here, there, factor, delta, pairs))


def promised(
    test: Soft, here: Floats, there: Floats, factor: float, delta: float, pairs: int
) -> float:
    """What a test's pilot promises to gain at least, in so many pairs."""
    gains = test(there) - factor * test(here) - delta
    return float(gains.mean() - 2.5 * gains.std() / np.sqrt(pairs))


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
        z, total = here.noise, float(np.sum(here.noise**2))
        smaller = -z.size * np.log(SMALLER) - total * (1.0 / SMALLER**2 - 1.0) / 2.0
        again = np.zeros(len(AGAIN))
        if self._before is not None and self._before.size == z.size:
            left = 1.0 - AGAIN**2
            off = np.sum((z - AGAIN[:, None] * self._before) ** 2, axis=1)
            again = -z.size * np.log(left) / 2.0 - (off / left - total) / 2.0
        leaning = float(np.sum(there.noise * -there.towards))
        lean = LEANING * leaning - LEANING**2 * there.squared / 2.0
        sure = [SURE if there.squared > self._allowed else 0.0]
        gain = np.concatenate([smaller, again, lean, sure])
        self._wealth = self._wealth + gain
        self._highest = max(self._highest, float(_mixed(self._wealth)))
        self._before = z
        self.gains.append(gain)
        self.squared.append(there.squared)
        self._counts.append(z.size)
        self._totals.append(total)

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
        wealth = _mixed(-counts * np.log(COARSE)[:, None] - totals * rates, axis=1)
        kept = np.flatnonzero(wealth.max(axis=0, initial=-math.inf) < -math.log(risk))
        above = int(kept[-1]) + 1 if len(kept) else 0
        return float(SCALES[above]) if above < len(SCALES) else math.inf

    def total_variation(self, risk: float) -> float:
        """The releases on both tables are at least this far apart, if noise is Gaussian of one
        scale: with probability 1 - risk after a number of runs that their outcome did not
        choose."""
        scale, found = self.largest_scale(risk / 2.0), np.sort(np.sqrt(self.squared))
        if math.isinf(scale):
            return 0.0
        # runs that are nearer than the distance that is tried
        nearer = np.array([0, len(found) // 20, len(found) // 4])
        share = scores.most_probable(nearer, len(found), 1.0 - risk / (2.0 * len(nearer)))
        apart = 2.0 * special.ndtr(found[nearer] / scale / 2.0) - 1.0
        return float(np.max(apart * (1.0 - share)))

    def power(self, pairs: int, risk: float) -> float:
        """In which share of audits of so many pairs the stated noise would be refuted, as `power`
        says it."""
        if len(self.gains) < 2:
            return 0.0
        found = np.stack(self.gains)
        found = found - QUANTILE * found.std(axis=0, ddof=1) / math.sqrt(len(found))
        rng, wealth = np.random.default_rng(0), np.zeros((RESAMPLED, found.shape[1]))
        won = np.zeros(RESAMPLED, bool)
        for _ in range(pairs):
            wealth += found[rng.integers(len(found), size=RESAMPLED)]
            won |= _mixed(wealth, axis=1) >= -math.log(risk)
            if won.all():
                break
        return float(won.mean())


def _mixed(wealth: Floats, axis: int = 0) -> Floats:
    """The logarithm of the mean wealth of all bets."""
    return np.asarray(special.logsumexp(wealth, axis=axis) - math.log(wealth.shape[axis]))


def band(
    here: Floats, there: Floats, confidence: float, places: int
) -> Sequence[tuple[float, float]]:
    """Points (false alarms, misses) that the mechanism's own trade-off curve is at or below, all
    with probability `confidence`: each threshold's two rates, moved up by what their distribution
    functions may be off (Dvoretzky, Kiefer and Wolfowitz, with the constant of Massart 1990)."""
    if there.mean() < here.mean():
        here, there = -here, -there
    off = math.sqrt(math.log(4.0 / (1.0 - confidence)) / (2.0 * len(here)))
    cuts = np.unique(np.quantile(np.concatenate((here, there)), np.linspace(0.0, 1.0, places)))
    alarms = [min(1.0, float(np.mean(here > cut)) + off) for cut in cuts]
    misses = [min(1.0, float(np.mean(there <= cut)) + off) for cut in cuts]
    return tuple(sorted(set(zip(alarms, misses, strict=True))))
