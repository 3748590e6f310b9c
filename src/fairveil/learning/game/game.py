"""A game of learner against auditor (Jagielski et al., Algorithm 3, in the form of theory.md#game).

    min over mixtures Q, max over duals:   L(Q, duals) = error(Q) + sum_k duals_k (value_k(Q) -
    bound_k)

The auditor plays exponentiated gradient over the simplex of size `dual_bound`; the learner answers
with a private oracle. Each round the auditor is told how the learner's rule decides, with noise;
the answer is the uniform mixture of the rules.

    init   counts by cell and label, and what the oracle needs, released once; from the counts
           follows whether noise would hide what is constrained
    step   duals -> dL/dH -> the oracle's rule -> its decisions by cell (noisy) -> excesses -> duals
    stop   after the rounds of the plan
    settle how the oracle's rule without constraints decides, where it has one
    finish the mixture, the mean of the released decisions, and what theory says of them; or what
    `program` makes of it, of the
           rule without constraints and of constants

*Rounds in vain.* Where noise would hide a constraint in the mean of all audits, a game follows that
noise, and its mixture gives way to the rule without constraints at the end. So the rounds go on
with that rule, at the prices of the plan (`oracles.going_on`), and no game is played.

`Differs:` the paper's noise is Laplace, scaled by the smallest cell of the data, which is not
released, and its learner spends in every round. Here multipliers are constants, counts are
released, and the regression oracle spends once.

Guarantees (tests/learning/test_learning_game.py):
1. A game's log is its plan, event for event.
2. The mixture depends on the rows through the curator's answers alone.
3. A game that is interrupted leaves a log that is a beginning of the plan, and the curator closed.
4. Whether the rounds go on without constraints follows from released counts alone
   (tests/learning/test_learning_going_on.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri, ndtri

from ..._types import Floats
from ...curator import Curator
from ...fairness.systems import FixedCounts
from ..descent import Progress, Reason, run_to_the_end
from ..lagrangian import program
from ..lagrangian.duals import ExponentiatedGradientState
from ..oracles.oracle import Rule, audited
from ..oracles.settled import counted
from .bounds import PARTS, Seen
from .compared import ComparedGame
from .description import COMPARING
from .equilibrium import Equilibrium, EquilibriumState

TINY = 1e-9  # of a number of rows that divides


@dataclass(frozen=True, eq=False)
class Game(ComparedGame):
    """A game that is planned and priced: public values alone. Made by `game_plan.plan`."""

    # -- init, step, stop, finish ------------------------------------------------------------------

    def init(self, curator: Curator) -> EquilibriumState:
        """Counts, and what the oracle needs."""
        counts, prepared = self.oracle.prepare(curator, self.ground, self.counts_multiplier)
        per_row = 1 if self.ground.cells is None else self.ground.cells.per_row
        # weights are counted, not rows
        stated = None if self.ground.max_sample_weight is not None else self.ground.public_rows
        rows = float(stated or max(self.floor or TINY, counts.sum() / per_row))
        fixed = None if self.system is None else self.system.at(counts, self.floor)
        none = np.zeros(0 if self.system is None else len(self.system))
        seen = Seen.nothing(none, counts, self.ground.classes, self._usual_lag(fixed, rows))
        noise = self._audit_noise(counts) if self.settles else None
        state = EquilibriumState(
            prepared, counts, rows, fixed, ExponentiatedGradientState(none), {}, seen, noise=noise
        )
        if self.going_on is None or not self.in_vain(counts):
            return state
        return replace(state, walk=self.going_on.begin(prepared, rows))

    def _usual_lag(self, fixed: FixedCounts | None, rows: float) -> float:
        """The unit of the learner's lag with all pressure on the first constraint: a scale, known
        before the first round."""
        if fixed is None or self.system is None:
            return 1.0
        duals = self.dual_bound * np.eye(1, len(self.system))[0]
        unit, _ = self.oracle.regret(self.ground, self.ground.costs(fixed.cell_costs(duals), rows))
        return unit if math.isfinite(unit) else 1.0

    def step(self, curator: Curator, state: EquilibriumState) -> EquilibriumState:
        """One round."""
        if state.walk is not None and self.going_on is not None:
            walk = self.going_on.step(curator, state.walk)
            return replace(state, walk=walk, round=state.round + 1)
        duals = self._duals(state)
        none = np.zeros((*state.counts.shape, self.ground.classes))
        cell_costs = none if state.fixed is None else state.fixed.cell_costs(duals)
        rule, prepared = self.oracle.respond(
            curator, self.ground, state.prepared, cell_costs, state.rows
        )
        state = replace(state, prepared=prepared, round=state.round + 1)
        if state.fixed is None or self.system is None:
            return self._played(state, rule)
        costs = self.ground.costs(cell_costs, state.rows)
        rule, histogram = self._better(state, rule, *self._audited(curator, state, rule), costs)
        fixed, state = (
            state.fixed,
            replace(state, prepared=self.oracle.heard(state.prepared, rule, histogram)),
        )
        excess = fixed.values(histogram) - self.system.bounds
        state = self._played(state, rule)
        lag = state.seen.lag.after(*self.oracle.regret(self.ground, costs), self._doubt(costs))
        counted = state.round > self.oracle.burn_in * self.rounds
        pull = cell_costs[..., 1:] - cell_costs[..., :1] if self.ground.outputs == 1 else cell_costs
        variance = (self._audit_scale * float(np.linalg.norm(pull))) ** 2
        seen = state.seen.after(
            duals, excess, histogram if counted else none, lag, variance, counted
        )
        values = None
        if state.noise is not None:
            values = self.oracle.expected(state.prepared, fixed, state.noise)
        if values is None:
            values = self.system.exact_values(histogram, state.counts, self.floor, clip=True)
        heard = values - self.system.bounds
        return replace(state, leaning=self.auditor.step(state.leaning, heard), seen=seen)

    def _duals(self, state: EquilibriumState) -> Floats:
        """The auditor's play, or prices that the oracle would rather answer: of what was released
        before this round."""
        wished = None
        if state.fixed is not None and state.noise is not None:
            wished = self.oracle.prices(state.prepared, state.fixed, state.noise)
        return self.auditor.duals(state.leaning) if wished is None else wished

    def settle(self, curator: Curator, state: EquilibriumState) -> EquilibriumState:
        """The mixture that the oracle makes, if it does, and how it decides, or the rule without
        constraints does: after the last round."""
        if self.compares:
            free = self.oracle.free_rule(state.prepared)
            if state.walk is not None and self.going_on is not None:
                free = self.going_on.rule(state.walk)
            (shown,) = audited(curator, self.ground, free, [self.free_multiplier], state.counts)
            return replace(state, free=(free, shown))
        if state.noise is None or state.fixed is None:
            return state
        rules, duals = self.oracle.settle(state.prepared, state.fixed, state.noise)
        found = counted(curator, self.ground, rules, duals, self.settled_multiplier, state.counts)
        return replace(state, settled=found)

    def _played(self, state: EquilibriumState, rule: Rule) -> EquilibriumState:
        if state.round <= self.oracle.burn_in * self.rounds:
            return state
        return replace(
            state,
            played=state.played | {rule.key: (rule, state.played.get(rule.key, (rule, 0))[1] + 1)},
        )

    def _audited(
        self, curator: Curator, state: EquilibriumState, rule: Rule
    ) -> tuple[Floats, Floats]:
        """How the rule decides, (cells, labels, classes), with noise: to compare, and to
        measure."""
        shown = audited(curator, self.ground, rule, self._multipliers, state.counts)
        return shown[0], shown[-1]

    def _better(
        self, state: EquilibriumState, rule: Rule, noisy: Floats, histogram: Floats, costs: Floats
    ) -> tuple[Rule, Floats]:
        """The rule, or the cheapest indicator of a group if released values say that it costs less:
        how those decide is in the counts, and costs nothing (Theorem 4.6 needs them in the
        class)."""
        best, cost = (rule, histogram), float((costs * noisy).sum())
        for other in self._indicators:
            decided = state.counts * (other.offsets > 0)
            shown = np.stack([state.counts - decided, decided], axis=-1)
            if (price := float((costs * shown).sum())) < cost:
                best, cost = (other, shown), price
        return best

    def _doubt(self, costs: Floats) -> float:
        """How far a comparison with the indicators may be off by noise, but for a share of the
        chance; 0 where none is made.

        The audit's noise is drawn after the costs are fixed: a Gaussian, in every round. The
        counts' was drawn before, and costs follow it: its length bounds what it does to any of
        them.
        """
        if not self._indicators or self.ground.is_exact:
            return 0.0
        part = (1.0 - self.confidence) / PARTS / 2.0
        audit = (
            self._audit_scale
            * math.sqrt((1.0 - COMPARING) / COMPARING)
            * float(ndtri(1.0 - part / 2.0 / self.rounds))
        )
        counts = self._count_scale * math.sqrt(float(chdtri(costs[..., 0].size, part)))
        return float(np.linalg.norm(costs[..., 1] - costs[..., 0])) * max(
            audit + counts, 2.0 * counts
        )

    def stop(self, state: EquilibriumState) -> Reason | None:
        """When the rounds of the plan are done."""
        done = Reason.ROUNDS if state.walk is None else Reason.HIDDEN
        return done if state.round >= self.rounds else None

    def finish(self, state: EquilibriumState, reason: Reason) -> Equilibrium:
        """The mixture and what was released of it."""
        settled = state.settled
        parts = (
            tuple(state.played.values())
            if settled is None
            else tuple(zip(settled.rules, settled.plays, strict=True))
        )
        duals = state.seen.mean_duals if settled is None else settled.duals
        empty = np.zeros(0)
        if self.system is None or state.fixed is None:
            return Equilibrium(
                tuple(rule.published() for rule, _ in parts),
                tuple(plays for _, plays in parts),
                reason,
                state.round,
                (),
                empty,
                empty,
                empty,
                duals,
                state.counts,
                state.rows,
                None,
                sampling=empty,
            )
        histogram = self._found(state)
        values = self.system.exact_values(histogram, state.counts, self.floor)
        spread = self._spread(state, histogram)
        drawn: Floats | None = self._sampling(histogram, state.counts)
        comparison, choice, looks = self._compared(state, values, spread), None, 1
        if comparison is not None and comparison.free is not None:
            looks = program.looks_at(comparison)
            choice = self._choice(state, comparison, drawn)
            if not choice.is_model:
                comparison, drawn = program.comparison_of(comparison, choice, drawn)
                assert comparison.limits is not None
                values, spread = comparison.limits.values, comparison.limits.spread
                parts = self._parts(state, choice)
        return Equilibrium(
            tuple(rule.published() for rule, _ in parts),
            tuple(plays for _, plays in parts),
            reason,
            state.round,
            self.system.names,
            self.system.bounds,
            values,
            spread,
            duals,
            state.counts,
            state.rows,
            self._guarantee(state, values, choice, looks),
            comparison,
            drawn,
            looks,
            choice,
        )


def play(
    curator: Curator,
    game: Game,
    progress: Progress | None = None,
    *,
    watch: Callable[[EquilibriumState], None] | None = None,
) -> Equilibrium:
    """Play a game to its end with a curator that was made for its plan; the curator is closed
    afterwards, in every case."""

    def finish(state: EquilibriumState, reason: Reason) -> Equilibrium:
        return game.finish(game.settle(curator, state), reason)

    return run_to_the_end(curator, game, finish, progress, watch=watch)
