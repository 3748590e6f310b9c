"""A group objective where features and labels are public: rules are searched on public rows, and
their mixture is counted once.

    min over mixtures Q of linear rules:   h(l(Q)) = f(l(Q)) + G max(0, g(l(Q)))

The oracle is the game's (`responses`): sums that are released once say who may be in which group,
so what any rule costs is foretold, and several searches answer a round all but free. Losses are
linear in the mixture and h is convex, so the best mixture of all rules that were met, and its
prices, are the `master`'s.

    init    counts by cell and label, and sums of features, released once
    step    prices of the best mixture so far -> the oracle's rule -> its losses, released; they say how far off what is
            foretold is, and all rounds together say it with little noise
    finish  the best mixture of the rules and the constants, and how it decides, released once: noise that no choice has seen

What is foretold is moved by the mean over rounds of what was counted less what was foretold, as a
part of its cell, times (variance of such parts) / (that + their noise's): a small cell is taken to
be like the others unless it is clear that it is not (empirical Bayes). Bounds are aimed at from
inside (`group_hearing`).

Guarantees (tests/learning/test_learning_group_public.py):
1. The log is the plan, event for event, and it costs what was promised.
2. Rules and mixture depend on the groups through the curator's answers alone.
3. What is reported has noise that is independent of what was chosen, of the deviation that is said.
4. No mixture of the rules that were met is better, by what was known of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import nnls

from ..._types import Floats
from ...core.events import Event, Repeated, compose
from ...curator import Curator, Measurement
from ..descent import Progress, Reason, run_to_the_end
from ..oracles import (
    PARTS,
    LinearRule,
    Responses,
    ResponseState,
    Rule,
    any_measurement,
    audit_measurements,
    audited,
    counted,
    in_parts,
)
from .found import Found
from .hearing import aimed, noise_of_excesses
from .master import LAST_PASSES, Master
from .planned import PlannedSearch
from .problem import ReleasedProblem

TINY = 1e-9
SETTLED = 0.6
"""Of the price of all that is released of decisions: for the mixture's own count."""
FEWEST_PARTS = 5  # of PARTS: a rule that weighs less than that is left out of the mixture


@dataclass(frozen=True, eq=False)
class PublicFeaturesState:
    """Between rounds: released values and public rows. `price`: what the next rule is asked to be
    cheap at; `master`: tangents of what is aimed at."""

    posed: ReleasedProblem
    told: ResponseState
    master: Master
    price: Floats
    round: int = 0


@dataclass(frozen=True, eq=False)
class PublicSearch(PlannedSearch):
    """A search that is planned and priced: public values alone. Made by
    `group_plan.plan_public`."""

    oracle: Responses
    rounds: int
    penalty: float
    counts_multiplier: float = 0.0
    audit_multiplier: float = 0.0
    settled_multiplier: float = 0.0

    def events(self) -> Event:
        """The whole search's events."""
        ground = self.ground
        parts = in_parts(self.oracle.asked(ground, self.counts_multiplier)[0])
        return compose(
            [
                *parts,
                Repeated(ground.event(self.audit_measurements()), self.rounds),
                ground.event(self.last_measurements()),
            ]
        )

    def audit_measurements(self) -> list[Measurement]:
        """What a round asks of its rule: for plans, which depend on shapes alone."""
        ground = self.ground
        zeros = LinearRule(np.zeros((ground.outputs, 1 + ground.layout.width)))
        return audit_measurements(ground, zeros, [self.audit_multiplier])

    def last_measurements(self) -> list[Measurement]:
        """What is asked of the mixture."""
        return [any_measurement(self.ground, self.settled_multiplier)]

    def _noise(self, measurements: list[Measurement]) -> float:
        """The standard deviation of each number of such an answer."""
        return (
            0.0
            if self.ground.is_exact
            else float(measurements[0].multiplier) * self.ground.move(measurements[0].question)
        )

    @property
    def noise_of_counts(self) -> float:
        """The standard deviation of each released count."""
        return (
            0.0
            if self.ground.is_exact
            else self.counts_multiplier * self.ground.move(self.ground.counts)
        )

    def noise_of_mixture(self, posed: ReleasedProblem, losses: Floats) -> float:
        """The standard deviation of each number that is reported of the mixture."""
        return self._noise(self.last_measurements())

    # -- init, step, stop, finish ------------------------------------------------------------------

    def init(self, curator: Curator) -> PublicFeaturesState:
        """Counts, and what the oracle needs; the first price is that of the rule without
        constraints and the constants."""
        counts, told = self.oracle.prepare(curator, self.ground, self.counts_multiplier)
        posed = self.problem.pose(counts, self.counts_multiplier, self.penalty)
        noise = noise_of_excesses(
            posed, posed.chance, self._noise(self.audit_measurements()) / math.sqrt(self.rounds)
        )
        state = PublicFeaturesState(
            posed, told, Master(aimed(posed, posed.chance, noise)), np.zeros_like(posed.chance)
        )
        return self._priced(state)

    def step(self, curator: Curator, state: PublicFeaturesState) -> PublicFeaturesState:
        """One round."""
        posed, ground = state.posed, self.ground
        costs = state.price / posed.rows - ground.costs(np.zeros_like(state.price), posed.rows)
        rule, told = self.oracle.respond(curator, ground, state.told, costs, posed.rows)
        (shown,) = audited(curator, ground, rule, [self.audit_multiplier], posed.counts)
        return self._priced(
            replace(state, told=self.oracle.heard(told, rule, shown), round=state.round + 1)
        )

    def _priced(self, state: PublicFeaturesState) -> PublicFeaturesState:
        """Prices of the best mixture so far."""
        return replace(
            state, price=state.master.solve(np.array(list(self.foretold(state).values())))[1]
        )

    def foretold(self, state: PublicFeaturesState) -> dict[Hashable, Floats]:
        """About how each rule that was met decides, as shares of all rows."""
        told, posed = state.told, state.posed
        off = np.zeros_like(posed.chance)
        if told.rounds:
            sizes = np.maximum(posed.counts, posed.least * posed.rows)[..., np.newaxis]
            parts = told.off / told.rounds / sizes
            noise = (
                self._noise(self.audit_measurements()) / math.sqrt(told.rounds) / sizes
            ) ** 2 + TINY**2
            weights = np.broadcast_to((noise.min() / noise) ** 2, parts.shape)
            spread = max(0.0, float((weights * (parts**2 - noise)).sum() / weights.sum()))
            off = sizes * parts * spread / (spread + noise)
        return {
            key: posed.possible((atom.table if atom.certain else atom.table + off) / posed.rows)
            for key, atom in told.atoms.items()
        }

    def stop(self, state: PublicFeaturesState) -> Reason | None:
        """When the rounds of the plan are done."""
        return Reason.ROUNDS if state.round >= self.rounds else None

    def settle(self, state: PublicFeaturesState) -> list[tuple[Rule, int]]:
        """The best mixture: each rule, and how many of `PARTS` it has."""
        losses = np.array(list(self.foretold(state).values()))
        weights = state.master.solve(losses, passes=LAST_PASSES)[0]
        parts = np.rint(PARTS * weights).astype(int)
        parts[parts < FEWEST_PARTS] = 0
        parts[int(parts.argmax())] += PARTS - int(parts.sum())
        return [
            (atom.rule, int(part))
            for atom, part in zip(state.told.atoms.values(), parts, strict=True)
            if part > 0
        ]

    def finish(self, curator: Curator, state: PublicFeaturesState, reason: Reason) -> Found:
        """The mixture, and how it decides, released once."""
        posed, ground = state.posed, self.ground
        rules = self.settle(state)
        pressed = np.zeros(len(posed.excesses(posed.chance)))
        found = counted(curator, ground, rules, pressed, self.settled_multiplier, posed.counts)
        table = (
            found.histogram
            if ground.outputs > 1
            else ground.by_class(found.histogram[..., 1:], posed.counts)
        )
        return Found.of(
            posed,
            found.rules,
            np.array(found.plays) / PARTS,
            np.broadcast_to(table / posed.rows, (len(rules), *table.shape)),
            noise=self._noise(self.last_measurements()),
            count_noise=self.noise_of_counts,
            duals=self._final_duals(state),
            reason=reason,
            rounds=state.round,
        )

    def _final_duals(self, state: PublicFeaturesState) -> Floats:
        """How hard each comparison was pressed, about: of the last prices, what each excess's slope
        explains."""
        posed = state.posed
        at = posed.chance
        lines = np.array([posed.pull(one, at).ravel() for one in np.eye(len(posed.excesses(at)))])
        if not len(lines):
            return np.zeros(0)
        left = (state.price - posed.f.gradient(at)).ravel()
        return np.asarray(nnls(lines.T, left)[0])

    def run(self, curator: Curator, progress: Progress | None = None) -> Found:
        """Search, with a curator that was made for the plan; the curator is closed afterwards, come
        what may."""
        return run_to_the_end(curator, self, partial(self.finish, curator), progress)
