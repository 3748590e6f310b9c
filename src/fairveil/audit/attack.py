"""One attack: a pilot that fixes the tests, then pairs of runs, each a bet against the claim.

A pair is one run on each table, with the same seed: coins that are shared change nothing in how a
test behaves on either table, and leave the difference far less spread. Where the target draws coins
of its own, pairs are merely independent runs.

Guarantees (tests/audit/test_audit_attack.py):
1. The pilot's runs choose the tests and bet nothing.
2. Each pair of runs has a seed of its own, and the same seed gives the same audit, given the number
   of runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._types import Floats
from ..errors import InputError
from . import betting, noise, pairs
from .betting import Bets, Soft
from .claims import Claim, PointClaim
from .noise import NoiseBets, Residual
from .planted import SAME_SEED
from .targets import HERE, THERE, Bug, Target

Tick = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Tests:
    """Fixed by a pilot: the line on which releases are projected, a test for distances, and one for
    (epsilon, delta), for which the tables may change places."""

    line: Floats
    middle: Soft
    tail: Soft
    swapped: bool
    seen: tuple[Floats, Floats]
    seen_tail: tuple[Floats, Floats]

    @staticmethod
    def of(
        here: Floats, there: Floats, claim: Claim, delta: float, *, exact: bool, planned: int
    ) -> Tests:
        """From a pilot's releases, (runs, numbers) each, for so many pairs. A likelihood ratio is
        best cut around 0."""
        line = np.ones(1) if here.shape[1] == 1 else pairs.best_line(here, there)
        one, other = here @ line, there @ line
        middle = betting.chosen(one, other, 0.0 if exact else None, planned)
        epsilon = claim.epsilon if isinstance(claim, PointClaim) else 0.1
        tail, swapped = betting.chosen_tail(one, other, epsilon, delta, planned)
        second, first = (one, other) if swapped else (other, one)
        return Tests(
            line, middle, tail, swapped, (middle(other), middle(one)), (tail(second), tail(first))
        )


class Attack:
    """Runs of one target, with or without a bug, and the wealth of the bets so far, each at
    `risk`."""

    def __init__(
        self,
        target: Target,
        seeds: Seeds,
        claim: Claim,
        *,
        delta: float,
        risk: float,
        planned: int,
        bug: Bug | None = None,
    ) -> None:
        self.target, self.claim, self.bug = target, claim, bug
        self._seeds, self._delta, self._risk, self._planned = seeds, delta, risk, planned
        self._shape: tuple[int, ...] | None = None
        self.tests: Tests | None = None
        self.pilot = 0
        self.scores: tuple[list[float], list[float]] = ([], [])
        self.gains: tuple[list[float], list[float]] = ([], [])
        self.noise = NoiseBets(claim.gaussian) if target.sees_noise else None
        self._of_plan = target.sees_noise and claim == target.claim

    def fix(self, runs: int, tick: Tick | None = None) -> Attack:
        """The pilot."""
        both = [self._pair(tick)[0] for _ in range(runs)]
        here, there = (np.stack([pair[side] for pair in both]) for side in (HERE, THERE))
        self.tests = Tests.of(
            here, there, self.claim, self._delta, exact=self.target.exact, planned=self._planned
        )
        self.pilot = runs
        self._distances = betting.distances(self.tests.seen)
        self._epsilons = betting.epsilons(self._delta, self.tests.seen_tail)
        factor, delta = self.allowed
        self._held = Bets(np.array([factor]), np.array([delta]), self.seen)
        return self

    @property
    def allowed(self) -> tuple[float, float]:
        """What the claim allows: E[there] - factor E[here] <= delta."""
        if isinstance(self.claim, PointClaim):
            return math.exp(self.claim.epsilon), self.claim.delta
        return 1.0, self.claim.total_variation

    @property
    def seen(self) -> tuple[Floats, Floats]:
        """The pilot's values of the test that the claim is held against."""
        assert self.tests is not None
        return self.tests.seen_tail if isinstance(self.claim, PointClaim) else self.tests.seen

    @property
    def trials(self) -> int:
        """Pairs that were bet on."""
        return len(self.scores[0])

    @property
    def refuted(self) -> bool:
        """Whether the wealth against the claim has reached 1 / risk at some time; where the noise
        is known and the claim is the plan's own, each of both bets has half of the risk."""
        return self.refuted_by != ""

    @property
    def refuted_by(self) -> str:
        """Which bet won: "noise" or "releases"; "" where none did."""
        risk = self._risk / 2.0 if self._of_plan else self._risk
        if self._of_plan and self.noise is not None and self.noise.refuted(risk):
            return "noise"
        return "releases" if self._held.refuted(risk)[0] else ""

    def go_on(
        self,
        until: int,
        tick: Tick | None = None,
        stop: Callable[[], bool] = lambda: False,
        *,
        through: bool = False,
    ) -> None:
        """More pairs, until so many, or until `stop` says so, or the claim is refuted, unless
        `through`."""
        assert self.tests is not None
        while self.trials < until and (through or not self.refuted) and not stop():
            both, residuals = self._pair(tick)
            here, there = (float(released @ self.tests.line) for released in both)
            if self.noise is not None and residuals is not None:
                self.noise.add(*residuals)
            self.scores[HERE].append(here)
            self.scores[THERE].append(there)
            middle = [float(self.tests.middle(np.array(score))) for score in (there, here)]
            turned = (here, there) if self.tests.swapped else (there, here)
            tail = [float(self.tests.tail(np.array(score))) for score in turned]
            self._distances.add(middle[0], middle[1])
            self._epsilons.add(tail[0], tail[1])
            used = tail if isinstance(self.claim, PointClaim) else middle
            self._held.add(used[0], used[1])
            for kept, value in zip(self.gains, used, strict=True):
                kept.append(value)

    @property
    def total_variation_lower(self) -> float:
        """The releases on both tables are at least this far apart, with confidence 1 - risk at all
        times together."""
        return betting.lower(self._distances, betting.DISTANCES, self._risk)

    @property
    def gaussian_lower(self) -> float:
        """The same from the noise that was seen, if it is Gaussian of one scale; 0 where none
        was."""
        return 0.0 if self.noise is None else self.noise.total_variation(self._risk)

    @property
    def epsilon_lower(self) -> float:
        """The mechanism, whatever it is, has at least this epsilon at delta, with that
        confidence."""
        return betting.lower(self._epsilons, betting.EPSILONS, self._risk)

    def power(self, trials: int) -> float:
        """The least share of audits of so many pairs that refute the claim, of a mechanism like
        this one."""
        there, here = (np.array(kept) for kept in self.gains)
        risk = self._risk / 2.0 if self._of_plan else self._risk
        by_noise = (
            noise.power(self.noise.gains, trials, risk)
            if self._of_plan and self.noise is not None
            else 0.0
        )
        if by_noise >= 1.0:
            return by_noise
        return max(by_noise, betting.power(*self.allowed, self.seen, (there, here), trials, risk))

    def _pair(
        self, tick: Tick | None
    ) -> tuple[tuple[Floats, Floats], tuple[Residual, Residual] | None]:
        seed = self._seeds.next(self.bug)
        (here, own), (there, other) = (
            self.target.watched(side, seed, self.bug) for side in (HERE, THERE)
        )
        if self._shape is None:
            self._shape = here.shape
        if not here.shape == there.shape == self._shape:
            remedy = "Pad what a run leaves out: how much is released is a release too."
            raise InputError.expected(
                "as many numbers from every run", of="TARGET", got="others", remedy=remedy
            )
        if tick is not None:
            tick(2)
        return (here, there), None if own is None or other is None else (own, other)


class Seeds:
    """A seed for every pair of runs, below 2^32, each once; a planted bug that uses one again gets
    the first."""

    def __init__(self, seed: int) -> None:
        self._first = (seed * 2_654_435_761) % (1 << 32)
        self._given = 0

    def next(self, bug: Bug | None = None) -> int:
        """Another one."""
        if bug is not None and bug.name == SAME_SEED:
            return self._first
        self._given += 1
        return (self._first + self._given) % (1 << 32)
