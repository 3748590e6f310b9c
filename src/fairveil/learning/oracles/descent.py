"""Best responses by private gradient descent, a few steps a round.

`Descent` starts at zero. `Begun` starts where a descent without constraints has ended, which is
asked for once, before the first round: where records are protected, what rows look like is most of
what there is to learn, and duals move it little. That rule knows no constraint, so it is also what
a mixture may be compared with and made of.

Guarantees (tests/learning/test_learning_gradient_oracle.py):
1. The log of `prepare` is `first_events`, event for event, and of a round `round_events`.
2. Without noise, `Begun`'s free rule is the regularised-by-rounds logistic regression that
   `LinearDescent` finds.
3. Rules are returned in the units of coded rows, whatever units the curator's rows have inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._types import Floats
from ...core.events import Event, compose
from ...curator import Curator, GradientSum, Linear, Measurement
from ..descent import follow
from ..lagrangian.linear import LinearDescent
from ..lagrangian.noise import usual_clip
from ..lagrangian.plan import Plan
from ..lagrangian.settings import Settings
from ..systems import columns_of
from ..units import in_inner_units
from .ground import GameInstance
from .oracle import LinearRule, Oracle, Rule, count_rows

CERTAIN = 3.0  # deviations of the noise in a number of rows
CURVE, DROWNED = 0.25, 12.0
FREE_ROUNDS = 120
COUNTED, SCALED = 0.03, 0.05
"""Of what is released once: for the number of rows, and for the moments of numbers, where these are
asked for."""


@dataclass(frozen=True, eq=False)
class Course:
    """Where the descent is: weights and momentum. `rests`: the released number of rows cannot be
    told from none, so that a model would be noise alone: it stays at zero. `free`: the rule that
    knows no constraint; `standard`: see `LinearRule`."""

    weights: Floats
    velocity: Floats
    rests: bool = False
    free: Floats | None = None
    standard: tuple[Floats, Floats] | None = None


@dataclass(frozen=True, eq=False)
class Descent(Oracle[Course]):
    """Best responses by private gradient descent: a few steps a round, from where the round before
    ended.

        min_w  mean loss(w) + sum_k (rows x dL/dH)[cell, label, k] softmax(score)_k

    The log loss stands for the error, the softmax for the decision, as in rate-constrained descent.
    Heuristic: no bound on its regret. Where only sensitive features are protected the loss's
    gradient is exact, and noise is in the costs' part alone.

    *The clip comes first.* A constraint on a small cell costs its rows dual / share, 100 and more,
    and a gradient that is weighed so and then clipped to the clip has lost that pull: rules that
    decide alike for everybody are what is left. So all that is minimised is divided by 1 + `CURVE`
    x the largest cost of a row, `CURVE` the most that a softmax moves with its score; the gradient
    of the costs is then within a row's length. It divides the loss's gradient too, beside which the
    noise grows. So it is never divided further than to `DROWNED` x the noise of an averaged
    gradient.
    """

    steps: int = 5
    clip: float | None = None
    rate: float = 1.0
    momentum: float = 0.9
    multiplier: float = 0.0
    rounds_share = 0.65
    burn_in = 0.3
    looks_for_the_least = False
    any_linear = True

    def at(self, once: float, round_: float) -> Descent:
        return replace(self, multiplier=round_ * math.sqrt(self.steps))

    def round_measurements(self, ground: GameInstance) -> list[Measurement]:
        return [self._ask(ground, self._zeros(ground), None)] * self.steps

    def round_events(self, ground: GameInstance) -> list[Event]:
        measurements = self.round_measurements(ground)
        return [compose([ground.event([measurement]) for measurement in measurements])]

    def prepare(
        self, curator: Curator, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, Course]:
        zeros = self._zeros(ground)
        counts = count_rows(curator, ground, counts_multiplier)
        noise = (
            0.0
            if ground.is_exact
            else counts_multiplier * ground.move(ground.counts) * math.sqrt(counts.size)
        )
        # Where rows cannot be told from none, a model would follow noise alone.
        rests = ground.public_rows is None and float(counts.sum()) <= CERTAIN * noise
        return counts, Course(zeros, zeros, rests)

    def respond(
        self,
        curator: Curator,
        ground: GameInstance,
        prepared: Course,
        cell_costs: Floats,
        rows: float,
    ) -> tuple[Rule, Course]:
        w, v = prepared.weights, prepared.velocity
        costs = rows * cell_costs if ground.has_costs else None
        rate, loss_scale = 0.0 if prepared.rests else self._rate(ground, rows), 1.0
        if costs is not None:
            loss_scale = self._ease(ground, costs, rows)
            costs = loss_scale * costs
        for _ in range(self.steps):
            (gradient,) = curator.answer(
                [self._ask(ground, w, costs, loss_scale)], purpose="a step of the learner"
            )
            # By the released or stated number of rows, never by the true one.
            v = self.momentum * v - rate * gradient / rows
            w = w + v
        return LinearRule(w, prepared.standard), replace(prepared, weights=w, velocity=v)

    def _rate(self, ground: GameInstance, rows: float) -> float:
        """Less where the noise of an averaged gradient, times the length of a row, would walk more
        than a logit or so."""
        length = math.sqrt(1.0 + ground.layout.numbers + len(ground.layout.code_sizes))
        noise = self._noise(ground, rows)
        return (
            self.rate
            if noise == 0
            else min(self.rate, 0.3 * (1.0 - self.momentum) / (noise * length))
        )

    def _noise(self, ground: GameInstance, rows: float) -> float:
        """About the deviation of each number of an averaged gradient."""
        if not ground.promise.is_private:  # and weights have no cap
            return 0.0
        return self.multiplier * self._clip(ground) * (ground.max_sample_weight or 1.0) / rows

    def _ease(self, ground: GameInstance, costs: Floats, rows: float) -> float:
        """What loss and costs are multiplied by."""
        heaviest = costs.max(axis=-1) - costs.min(axis=-1)
        # A row has costs in each column, so that the worst of them add up.
        if ground.cells is not None:  # a row is in one cell of each column
            heaviest = np.sum(
                [heaviest[part].max(axis=0) for part in columns_of(ground.cells)], axis=0
            )
        return max(
            1.0 / (1.0 + CURVE * float(heaviest.max())),
            min(1.0, DROWNED * self._noise(ground, rows)),
        )

    def _clip(self, ground: GameInstance) -> float:
        return self.clip or usual_clip(ground.promise)

    def _zeros(self, ground: GameInstance) -> Floats:
        return np.zeros((ground.outputs, 1 + ground.layout.width))

    def _ask(
        self, ground: GameInstance, weights: Floats, costs: Floats | None, loss_scale: float = 1.0
    ) -> Measurement:
        given: Any = costs
        if costs is None and ground.has_costs:
            given = np.zeros(
                (ground.groups, ground.classes if ground.by_label else 1, ground.classes)
            )
        gradient = GradientSum(
            Linear(weights), self._clip(ground), ground.cells, given, loss_weight=loss_scale
        )
        return Measurement(gradient, self.multiplier)


@dataclass(frozen=True, eq=False)
class Begun(Descent):
    """The same from where a descent without constraints has ended: of records that are protected.

    It takes `FREE_ROUNDS` rounds, with numbers scaled by their released moments where `scales`
    (they lie in [-1, 1]). Where decisions have no costs, that rule is the answer, and rounds ask
    nothing.
    """

    scales: bool = False
    once: float = 0.0
    once_share = 0.35
    rounds_share = 0.35
    most_rounds = 120
    knows_free = True

    def at(self, once: float, round_: float) -> Begun:
        return replace(self, once=once, multiplier=round_ * math.sqrt(self.steps))

    def opening_measurements(self, ground: GameInstance) -> list[tuple[list[Measurement], int]]:
        plan = self._plan(ground)
        first = [(asked, 1)] if (asked := plan.first(None)) else []
        return [*first, (plan.round_measurements(plan.start(), None), FREE_ROUNDS)]

    def first_events(self, ground: GameInstance, counts_multiplier: float) -> list[Event]:
        event = self._plan(ground).events(None)
        assert event is not None
        return [*super().first_events(ground, counts_multiplier), event]

    def round_measurements(self, ground: GameInstance) -> list[Measurement]:
        return super().round_measurements(ground) if ground.has_costs else []

    def round_events(self, ground: GameInstance) -> list[Event]:
        return super().round_events(ground) if ground.has_costs else []

    def prepare(
        self, curator: Curator, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, Course]:
        counts, begun = super().prepare(curator, ground, counts_multiplier)
        search = LinearDescent(self._plan(ground), np.zeros((1, 0)))
        state, (found,) = follow(curator, search, "a step of the model without constraints")
        weights = (
            np.zeros_like(begun.weights)
            if begun.rests
            else in_inner_units(found.weights, state.standard)
        )
        return counts, replace(begun, weights=weights, free=weights, standard=state.standard)

    def respond(
        self,
        curator: Curator,
        ground: GameInstance,
        prepared: Course,
        cell_costs: Floats,
        rows: float,
    ) -> tuple[Rule, Course]:
        if ground.has_costs:
            return super().respond(curator, ground, prepared, cell_costs, rows)
        return self.free_rule(prepared), prepared

    def free_rule(self, prepared: Course) -> Rule:
        assert prepared.free is not None
        return LinearRule(prepared.free, prepared.standard)

    def free_question(self, ground: GameInstance, weights: Floats) -> GradientSum:
        """The gradient of the loss alone."""
        return GradientSum(Linear(weights), self._clip(ground))

    def free_rate(self, ground: GameInstance, rows: float, multiplier: float, rounds: int) -> float:
        """The step size of so many rounds of that question at that multiplier."""
        plan = self._plan(ground)
        settings = replace(plan.settings, rounds=rounds)
        longer = replace(plan, settings=settings, gradient_multiplier=multiplier)
        return float(longer.rate(np.array([rows]))[0])

    def _plan(self, ground: GameInstance) -> Plan:
        """The descent without constraints, at the multiplier of what is released once."""
        settings = Settings(rounds=FREE_ROUNDS, clip=self.clip, compare_share=0.0)
        scales = self.scales and ground.layout.numbers > 0
        facts = (ground.public_rows, ground.max_sample_weight, scales)
        plan = Plan(
            ground.promise, ground.layout, settings, None, None, False, 0.0, 0.0, 0.0, 0.0, *facts
        )
        counted = COUNTED if ground.public_rows is None or plan.counts_for_moments else 0.0
        scaled = SCALED if scales else 0.0
        return replace(
            plan,
            counts_multiplier=self.once / math.sqrt(counted) if counted else 0.0,
            moments_multiplier=self.once / math.sqrt(scaled) if scaled else 0.0,
            gradient_multiplier=self.once * math.sqrt(FREE_ROUNDS / (1.0 - counted - scaled)),
        )
