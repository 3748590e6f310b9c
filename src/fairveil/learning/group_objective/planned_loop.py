"""What is public of a loop over an oracle: its events, what it asks, and how noisy answers are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Floats
from ...core.events import Event, Repeated, compose
from ...curator import Measurement
from ..lagrangian.duals import ExponentiatedGradient
from ..oracles import LinearRule, Oracle, Rule, audit_measurements, in_parts
from .hearing import blocks_of
from .planned import PlannedSearch
from .played import compared, crowd_of, halves
from .problem import ReleasedProblem

OPENING = 0.4  # of the rounds, where another objective than the error is to be small


@dataclass(frozen=True, eq=False)
class PlannedLoop(PlannedSearch):
    """A loop's public values, its price and its noise. Abstract: see `Loop`."""

    oracle: Oracle[Any]
    rounds: int
    step_by: str
    penalty: float
    width: float
    counts_multiplier: float
    audit_multiplier: float
    free_multiplier: float = 0.0

    def events(self) -> Event:
        """The whole loop's events."""
        ground = self.ground
        once, one = (in_parts(part) for part in self.oracle.asked(ground, self.counts_multiplier))
        parts = [*once]
        parts += [ground.event(measurements)] if (measurements := self.free_measurements()) else []
        audit = ground.event(self.audit_measurements())
        return compose([*parts, Repeated(compose([*one, audit]), self.rounds)])

    def audit_measurements(self) -> list[Measurement]:
        """What a round asks of a rule: for plans, which depend on shapes alone."""
        return audit_measurements(self.ground, self._any_rule, self._multipliers)

    def free_measurements(self) -> list[Measurement]:
        """What is asked once of the rule without constraints, for plans."""
        return (
            audit_measurements(self.ground, self._any_rule, self._free_multipliers)
            if self.compares
            else []
        )

    @property
    def compares(self) -> bool:
        """Whether the mixture may give way to the oracle's rule without constraints, which is
        audited for it."""
        return compared(self.ground, self.oracle)

    @property
    def noise_of_counts(self) -> float:
        """The standard deviation of each released count."""
        ground = self.ground
        return 0.0 if ground.is_exact else self.counts_multiplier * ground.move(ground.counts)

    def noise_of_mixture(self, posed: ReleasedProblem, losses: Floats) -> float:
        """Before there is a mixture: about the standard deviation of each number that will be
        reported of it, where its losses are like these. Of one block of rounds, of the rules of a
        list that may weigh most, or of one rule alone."""
        size, t = self.size_of(posed, losses), self.rounds
        squares = {"auditor": blocks_of(size, t) / t, "frank-wolfe": 4.0 / (3.0 * t)}.get(
            self.step_by, 1.0
        )
        if self.step_by == "auditor" and self.oracle.in_turn:
            squares = crowd_of(size, t)
        return self._noise(self._multipliers[1]) * math.sqrt(min(1.0, squares))

    @property
    def _any_rule(self) -> Rule:
        return LinearRule(np.zeros((self.ground.outputs, 1 + self.ground.layout.width)))

    @property
    def _multipliers(self) -> tuple[float, float]:
        """Of one round's release: what steers, what is reported."""
        return halves(self.audit_multiplier)

    @property
    def _free_multipliers(self) -> tuple[float, float]:
        return halves(self.free_multiplier)

    @property
    def opening(self) -> int:
        """Rounds at the start whose price is the error's: where linear rules are to make another
        objective small, and nothing is constrained. What they find is returned unless the others
        are better by more than noise. None where a rule without constraints is there already."""
        opens = (
            self.step_by == "auditor"
            and self.oracle.any_linear
            and not self.problem.is_linear
            and not self.ground.is_exact
        )
        opens = opens and not self.compares
        return int(OPENING * self.rounds) if opens and self.problem.is_free else 0

    @property
    def auditor(self) -> ExponentiatedGradient:
        """How the duals are played."""
        return ExponentiatedGradient(self.penalty)

    def _noise_after(self, times: float, part: int) -> float:
        """The deviation of each number of what was released so often: to steer by (0), to measure
        (1)."""
        return self._noise(self._multipliers[part]) / math.sqrt(times)

    def size_of(self, posed: ReleasedProblem, losses: Floats) -> float:
        """The noise of what steers, in one round, in the objective or in what is constrained,
        whichever has more."""
        noise = self._noise(self._multipliers[0]) / posed.rows
        of_objective, spread = posed.spread(losses, noise, 0.0)
        return max(of_objective, float(spread.max(initial=0.0)))

    def _noise(self, multiplier: float) -> float:
        """The standard deviation of each number of an audit."""
        ground = self.ground
        return (
            0.0
            if ground.is_exact
            else multiplier
            * ground.move(audit_measurements(ground, self._any_rule, [1.0])[0].question)
        )
