"""The exponential mechanism as an oracle: a private choice from a finite class, in every round
(Jagielski et al., sec. 4).

A candidate's cost is a fixed combination of how its decisions fall by cell and label, so one
histogram a candidate, kept inside the curator, serves all rounds. The mechanism is scaled by the
range of a neighbour's changes (`curator.choice`); with sensitive features alone protected that is
max_{y, a, a'} of the spread over classes of costs[a', y] - costs[a, y]: about 2 dual_bound / N,
where the paper has (2 |A| B + 1) / (min N - 1), read from the data.

But for probability exp(-s) a choice is within range (ln(candidates) + s) / epsilon of the best
(theory.md#t6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._types import Floats
from ...core.events import Event, Exponential
from ...curator import Curator, Linear, PredictionHistogram
from ...curator.choices import Costs
from .classes import Class, RuleQuestion
from .ground import GameInstance
from .oracle import Oracle, Rule, count_rows


@dataclass(frozen=True, eq=False)
class Gathered:
    """What rounds choose from."""

    questions: list[RuleQuestion]
    rules: list[Rule]


@dataclass(frozen=True, eq=False)
class Choice(Oracle[Gathered]):
    """The exponential mechanism over a finite class; `epsilon` is what one choice costs."""

    of: Class
    epsilon: float = math.inf
    rounds_share = 0.6

    def at(self, once: float, round_: float) -> Choice:
        """A Gaussian of multiplier z is 1/(2 z^2)-zCDP, a choice epsilon^2/8 (theory.md#t6):
        epsilon = 2 / z costs the same."""
        return replace(self, epsilon=2.0 / round_ if round_ > 0 else math.inf)

    def require(self, ground: GameInstance) -> None:
        self.of.require(ground)

    def round_events(self, ground: GameInstance) -> list[Event]:
        return [] if ground.is_exact else [Exponential(self.epsilon)]

    def prepare(
        self, curator: Curator, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, Gathered]:
        counts = count_rows(curator, ground, counts_multiplier)
        return counts, Gathered(*self.of.gather(curator, ground))

    def respond(
        self,
        curator: Curator,
        ground: GameInstance,
        prepared: Gathered,
        cell_costs: Floats,
        rows: float,
    ) -> tuple[Rule, Gathered]:
        costs = ground.costs(cell_costs, rows)
        index = curator.choose(
            prepared.questions, self.epsilon, costs=costs, purpose="a choice of the learner"
        )
        return prepared.rules[index], prepared

    def regret(self, ground: GameInstance, costs: Floats) -> tuple[float, float]:
        if ground.is_exact:
            return 0.0, 0.0
        return reach(ground, costs) / self.epsilon, math.log(self.of.size)


@dataclass(frozen=True, eq=False)
class InTurn:
    """What is played next, of what there is."""

    of: Gathered
    next: int = 0


@dataclass(frozen=True, eq=False)
class Each(Oracle[InTurn]):
    """Every decision of a short list in its turn: no choice is charged, and what a round costs
    goes into what is released."""

    of: Class
    looks_for_the_least = False
    in_turn = True

    def at(self, once: float, round_: float) -> Each:
        return self

    def require(self, ground: GameInstance) -> None:
        self.of.require(ground)

    def round_events(self, ground: GameInstance) -> list[Event]:
        return []

    def prepare(
        self, curator: Curator, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, InTurn]:
        counts = count_rows(curator, ground, counts_multiplier)
        return counts, InTurn(Gathered(*self.of.gather(curator, ground)))

    def respond(
        self,
        curator: Curator,
        ground: GameInstance,
        prepared: InTurn,
        cell_costs: Floats,
        rows: float,
    ) -> tuple[Rule, InTurn]:
        rules = prepared.of.rules
        return rules[prepared.next % len(rules)], InTurn(prepared.of, prepared.next + 1)


def reach(ground: GameInstance, costs: Floats) -> float:
    """The range of one neighbour's changes of the candidates' costs, as the curator has it
    (`curator.choices.Costs`)."""
    model = Linear(np.zeros((ground.outputs, 1 + ground.layout.width)))
    made = Costs.of(
        costs, PredictionHistogram(model, ground.cells, "hard", by_label=True), ground.layout
    )
    steps = made.reach(ground.promise, ground.layout, reads_groups=False)
    return math.ldexp(steps, -made.exponent) * (ground.heaviest or 1.0)
