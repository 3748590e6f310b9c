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

Guarantees (tests/audit/test_audit_betting.py):
1. The wealth against a true claim ever reaches 1 / risk with probability risk at most, whether runs
   of a pair depend on each other or not.
2. `lower` is below the true parameter with probability 1 - risk at least, at all times together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._types import Floats

MOST = 0.9  # of the largest stake that wealth survives
DISTANCES = np.concatenate([np.linspace(0.0, 0.3, 601), np.linspace(0.302, 0.998, 349)])
"""Total variation distances that are bet against."""
EPSILONS = np.concatenate([np.linspace(0.0, 4.0, 201), np.linspace(4.1, 12.0, 80)])
PRIOR = 0.01  # variance before anything was seen, worth one pair
RESAMPLED = 400
SOFTNESS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Half-widths of soft tests, in deviations of the score."""


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
    pair of numbers a claim."""

    def __init__(
        self, factors: Floats, deltas: Floats, seen: tuple[Floats, Floats] | None = None
    ) -> None:
        self._factors, self._deltas = (
            np.asarray(given, np.float64) for given in np.broadcast_arrays(factors, deltas)
        )
        # A bet loses at most factor + delta: with this stake wealth stays above 0 whatever comes.
        self._largest = MOST / (self._factors + self._deltas)
        self.log_wealth = np.zeros(self._factors.shape)
        self.highest = np.zeros(self._factors.shape)
        self._count, self._sums, self._squares = (
            0,
            np.zeros(self._factors.shape),
            np.zeros(self._factors.shape),
        )
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


def distances(seen: tuple[Floats, Floats]) -> Bets:
    """Against total variation distances of at most `DISTANCES`."""
    return Bets(np.ones_like(DISTANCES), DISTANCES, seen)


def epsilons(delta: float, seen: tuple[Floats, Floats]) -> Bets:
    """Against (epsilon, delta) for each of `EPSILONS`."""
    return Bets(np.exp(EPSILONS), np.full(len(EPSILONS), delta), seen)


def lower(bets: Bets, values: Floats, risk: float) -> float:
    """The largest value that is refuted, with all below it; 0 where none is."""
    kept = np.flatnonzero(~bets.refuted(risk))
    return (
        0.0
        if len(kept) and kept[0] == 0
        else float(values[(kept[0] if len(kept) else len(values)) - 1])
    )


def power(
    factor: float,
    delta: float,
    seen: tuple[Floats, Floats],
    gains: tuple[Floats, Floats],
    pairs: int,
    risk: float,
) -> float:
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
    # The 95 % quantile of a normal mean.
    off = 1.6449 * float(found.std(ddof=1)) / np.sqrt(len(found))
    # A forecast of power, which protects nobody: seeded, so that it repeats.
    rng = np.random.default_rng(0)
    many = Bets(np.full(RESAMPLED, factor), np.full(RESAMPLED, delta), seen)
    at = rng.integers(len(found), size=(pairs, RESAMPLED))
    for drawn in at:
        many.add_gains(np.maximum(found[drawn] - off, -(factor + delta)))
    return float(many.refuted(risk).mean())


def chosen(here: Floats, there: Floats, centre: float | None, pairs: int) -> Soft:
    """The test for distances that a pilot's scores favour: how soft, and around which centre (None:
    of a few quantiles)."""
    spread = float(np.sqrt((here.var() + there.var()) / 2.0))
    turned = bool(there.mean() < here.mean())
    everything = np.concatenate((here, there))
    if not (np.ptp(here) or np.ptp(there)):
        middle = float((here.mean() + there.mean()) / 2.0)
        return Soft(middle, middle, turned)
    centres = (
        [centre]
        if centre is not None
        else np.quantile(everything, (0.3, 0.4, 0.5, 0.6, 0.7)).tolist()
    )
    tests = [Soft(c - a * spread, c + a * spread, turned) for c in centres for a in SOFTNESS]
    return _best(tests, here, there, 1.0, 0.0, pairs)


def _best(
    tests: list[Soft], here: Floats, there: Floats, factor: float, delta: float, pairs: int
) -> Soft:
    """By the lower end that a pilot promises for so many pairs."""
    ends = []
    for test in tests:
        gains = test(there) - factor * test(here) - delta
        ends.append(float(gains.mean() - 2.5 * gains.std() / np.sqrt(pairs)))
    return tests[int(np.argmax(ends))]


def chosen_tail(
    here: Floats, there: Floats, epsilon: float, delta: float, pairs: int
) -> tuple[Soft, bool]:
    """The test for (epsilon, delta), and whether the two tables change places: the claim holds in
    both directions."""
    cuts = np.unique(np.quantile(np.concatenate((here, there)), np.linspace(0.02, 0.98, 49)))
    found: list[tuple[float, Soft, bool]] = []
    for swapped in (False, True):
        one, other = (there, here) if swapped else (here, there)
        tests = [Soft(float(cut), float(cut), turned) for cut in cuts for turned in (False, True)]
        test = _best(tests, one, other, np.exp(epsilon), delta, pairs)
        gains = test(other) - np.exp(epsilon) * test(one) - delta
        found.append((float(gains.mean() - 2.5 * gains.std() / np.sqrt(pairs)), test, swapped))
    _, test, swapped = max(found, key=lambda one: one[0])
    return test, swapped
