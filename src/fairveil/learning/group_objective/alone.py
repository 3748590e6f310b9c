"""A loop whose rounds would be in vain: the rule without constraints goes on in their place.

Where noise would hide something that is constrained in the mean of all that is released to steer
by, a loop follows that noise, and its mixture gives way to the rule without constraints at the end.
So that rule goes on, at the prices of the plan (`oracles.GoingOn`). In the last `LOOKED` of the
rounds it is not moved any more, and all that they ask is how it decides: the oracle's own answers
say which share of it becomes a constant, and those beside them are reported.

Guarantees (tests/learning/test_learning_going_on.py):
1. The log is the plan of the loop, event for event.
2. Whether the rounds go on follows from what was released before them.
3. What is reported has noise that is independent of how it was chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...curator import Curator
from ..likely import HEARD, drowned
from ..oracles import Begun, GoingOn, Walk
from .floor import CLEARLY, Stake, likely_losses, shares_of
from .hearing import noise_of_excesses
from .planned_loop import PlannedLoop
from .played import FREE, Played, PlayedState, constants
from .problem import ReleasedProblem

LOOKED = 0.1  # of the rounds, at the end


@dataclass(frozen=True, eq=False)
class LoopOrAlone(PlannedLoop):
    """What a loop does where its rounds would be in vain. Abstract: see `Loop`."""

    @cached_property
    def going_on(self) -> GoingOn | None:
        """What the rounds are spent on if they would be in vain; None where they never are."""
        last = math.ceil(LOOKED * self.rounds)
        free = self.problem.is_free or not isinstance(self.oracle, Begun)
        if free or not self.compares or last == self.rounds:
            return None
        assert isinstance(self.oracle, Begun)
        return GoingOn(self.oracle, self.ground, self.rounds - last, self._multipliers)

    def in_vain(self, posed: ReleasedProblem, free: Played) -> bool:
        """Whether noise would hide something that is constrained: by the released counts, and
        decisions by chance. Less noise is enough where the rule without constraints breaks no bound
        by more than its own noise. Comparisons of cells that cannot be told from none take no part;
        where none is left, there is nothing to hear."""
        noise = noise_of_excesses(posed, posed.chance, self._noise_after(self.rounds, 0))
        if not posed.defined.any() or drowned(noise, HEARD):
            return True
        own = Stake(free.steering, self._noise_after(free.times, 0))
        likely = likely_losses(posed, own)
        known = CLEARLY * noise_of_excesses(posed, likely, own.noise)
        return drowned(noise) and bool((posed.excesses(likely) <= known).all())

    def _went_on(
        self, curator: Curator, state: PlayedState, going_on: GoingOn, walk: Walk
    ) -> PlayedState:
        """One round."""
        state = replace(state, round=state.round + 1)
        if walk.round < going_on.rounds:
            return replace(state, walk=going_on.step(curator, walk))
        shown = going_on.shown(curator, going_on.rule(walk), state.posed.counts)
        return replace(state, shown=(*state.shown, shown))

    def _alone(self, state: PlayedState, going_on: GoingOn, walk: Walk) -> PlayedState:
        """With the weights of the final model: of the rule that went on, and of constants."""
        posed, looks = state.posed, len(state.shown)
        steering, measuring = np.mean(state.shown, axis=0) / posed.rows
        times = looks * (self._multipliers[1] / self.audit_multiplier) ** 2
        free = Played(going_on.rule(walk), posed.possible(steering), measuring, times)
        noise = self._noise(going_on.own / math.sqrt(looks))
        fixed = constants(posed)
        others = [Stake(one.steering, 0.0) for one in fixed]
        shares = shares_of(posed, Stake(free.steering, noise), others)
        played = {FREE: free} | {one.rule.key: one for one in fixed}
        return replace(state, played=played, weights=shares)
