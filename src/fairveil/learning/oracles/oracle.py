"""Private cost-sensitive oracles: given what each decision costs by cell, label and class, a rule
whose total cost is small.

A row of cell c and label y that is given class k costs  C_k = costs[c, y, k]; an oracle looks for a
rule h with little sum_i C_{h(x_i)}. The paper's learner (its Subroutine 2, BEST_h) is such an
oracle, asked once a round at the auditor's duals.

| oracle       | a round costs               | its rules                                    | see             |
| regression   | nothing (post-processing)   | linear: regress costs, take the cheapest     | `regression`    |
| exponential  | one exponential mechanism   | a finite class                               | `choosing`      |
| descent      | a few private gradients     | linear: descend a softmax of costs           | `gradient_oracle` |

Guarantees (tests/learning/test_learning_oracles.py):
1. What an oracle does depends on the rows through the curator's answers alone, and on costs made of
   released values.
2. The log of a round is the oracle's `round_events`, and of its preparation `first_events`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from ..._types import Floats
from ...core.events import Event, NonPrivate, compose
from ...curator import Curator, GroupedHistogram, Linear, Measurement, PredictionHistogram, Question
from ...facts import Cells
from ...fairness.systems import FixedCounts
from ..units import in_coded_units
from .divergence import Divergence
from .ground import GameInstance

P = TypeVar("P")


class Rule(ABC):
    """What an oracle answers with: one way to decide. Abstract."""

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Equal for rules that decide alike."""

    @abstractmethod
    def decisions(self, cells: Cells | None, by_label: bool) -> Question:
        """The question how its decisions fall."""

    @property
    def learnt(self) -> bool:
        """Whether there is anything in it: coefficients of zeros decide as no row says."""
        return True

    @property
    def reads_groups(self) -> bool:
        """Whether a row's group decides, too."""
        return False

    def published(self) -> Rule:
        """The rule without any handle of the curator, which would hold its rows."""
        return self


@dataclass(frozen=True, eq=False)
class LinearRule(Rule):
    """A linear model's hard decisions; `weights` (outputs, 1 + width), the intercept first.
    `standard`: centre and scale by which the curator's numbers were scaled, in whose units the
    weights are; None: as they came."""

    weights: Floats
    standard: tuple[Floats, Floats] | None = None

    @property
    def learnt(self) -> bool:
        return bool(self.weights.any())

    @property
    def key(self) -> Hashable:
        return self.weights.tobytes()

    def published(self) -> LinearRule:
        return (
            self
            if self.standard is None
            else LinearRule(in_coded_units(self.weights, self.standard))
        )

    def decisions(self, cells: Cells | None, by_label: bool) -> Question:
        return PredictionHistogram(Linear(self.weights), cells, "hard", by_label=by_label)


@dataclass(frozen=True, eq=False)
class GroupedRule(Rule):
    """A linear model with an intercept of its own for each product cell; `offsets` (cells,
    outputs)."""

    weights: Floats
    offsets: Floats
    of: Cells

    @property
    def learnt(self) -> bool:
        return bool(self.weights.any())

    @property
    def key(self) -> Hashable:
        return self.weights.tobytes(), self.offsets.tobytes()

    @property
    def reads_groups(self) -> bool:
        return True

    def decisions(self, cells: Cells | None, by_label: bool) -> Question:
        return GroupedHistogram(Linear(self.weights), self.offsets, self.of, cells, by_label)


def constant_rule(ground: GameInstance, k: int) -> LinearRule:
    """The rule that decides for class k, whatever the row."""
    weights = np.zeros((ground.outputs, 1 + ground.layout.width))
    weights[0 if ground.outputs == 1 else k, 0] = -1.0 if ground.outputs == 1 and k == 0 else 1.0
    return LinearRule(weights)


def indicators(cells: Cells, width: int) -> list[GroupedRule]:
    """The maximally discriminatory classifiers, two for each group: the second class for it alone,
    and for all others.

    Assumption 4.1 of Jagielski et al. Two classes.
    """
    zeros = np.zeros((1, 1 + width))
    alone = 2.0 * np.eye(cells.count) - 1.0
    return [
        GroupedRule(zeros, sign * line[:, np.newaxis], cells)
        for line in alone
        for sign in (1.0, -1.0)
    ]


class Oracle(ABC, Generic[P]):
    """How best responses are found. Abstract; `P` is what it prepared and carries from round to
    round, released values alone.

    `burn_in`: the share of rounds, at the start, whose rules are left out of the answer.
    `once_share`, `rounds_share`: of the squared Gaussian budget, for what is released once and for
    all rounds together. `looks_for_the_least`: whether what it answers costs about as little as any
    of its rules, so that it says how little that is. `in_turn`: whether rules come in their turn,
    whatever prices are. `any_linear`: whether it answers with linear rules of any weights:
    constants are some. `settles`: whether it makes the mixture itself, of linear rules, which is
    then counted once. `most_rounds`: of its own accord. `knows_free`: whether `prepare` finds a
    rule that knows no constraint, to start from and to compare with.
    """

    burn_in: float = 0.0
    looks_for_the_least: bool = True
    in_turn: bool = False
    any_linear: bool = False
    once_share: float = 0.0
    rounds_share: float = 0.0
    settles: bool = False
    most_rounds: int | None = None
    knows_free: bool = False

    def require(self, ground: GameInstance) -> None:
        """An error where the oracle cannot answer on this ground, before anything is asked. Most
        can anywhere."""
        return

    @abstractmethod
    def at(self, once: float, round_: float) -> Oracle[P]:
        """The same oracle at these multipliers: of what is released once, and of what is released
        in a round."""

    def first_measurements(
        self, ground: GameInstance, counts_multiplier: float
    ) -> list[Measurement]:
        """What `prepare` asks in one joint release: the counts, and what else is released once."""
        return [Measurement(ground.counts, counts_multiplier)]

    def opening_measurements(self, ground: GameInstance) -> list[tuple[list[Measurement], int]]:
        """What `prepare` asks after that, and how often: mostly nothing."""
        return []

    def free_rule(self, prepared: P) -> Rule:
        """The rule that knows no constraint; of oracles that find one."""
        raise NotImplementedError

    def first_events(self, ground: GameInstance, counts_multiplier: float) -> list[Event]:
        """What `prepare` will log."""
        measurements = self.first_measurements(ground, counts_multiplier)
        return [ground.event(measurements)]

    def round_measurements(self, ground: GameInstance) -> list[Measurement]:
        """What `respond` asks about rows, of models at zero; private choices are no asks."""
        return []

    @abstractmethod
    def round_events(self, ground: GameInstance) -> list[Event]:
        """What `respond` will log."""

    @abstractmethod
    def prepare(
        self, curator: Curator, ground: GameInstance, counts_multiplier: float
    ) -> tuple[Floats, P]:
        """Counts by (cell, label), released with that multiplier, and what else the oracle
        needs."""

    @abstractmethod
    def respond(
        self, curator: Curator, ground: GameInstance, prepared: P, cell_costs: Floats, rows: float
    ) -> tuple[Rule, P]:
        """A rule with little cost, (cells, labels or 1, classes) beside the error's own 1 / rows a
        row."""

    def heard(self, prepared: P, rule: Rule, histogram: Floats) -> P:
        """How its rule decides, as it was released: most do not listen."""
        return prepared

    def expected(self, prepared: P, fixed: FixedCounts, noise: Floats) -> Floats | None:
        """The values of the latest rule with less noise than its own release has; None: of that one
        alone."""
        return None

    def prices(self, prepared: P, fixed: FixedCounts, noise: Floats) -> Floats | None:
        """Duals for the next round that the oracle would rather answer than the auditor's; None:
        the auditor's."""
        return None

    def settle(
        self, prepared: P, fixed: FixedCounts, noise: Floats
    ) -> tuple[list[tuple[Rule, int]], Floats]:
        """The mixture, each rule with how many parts of it, and the duals that make it the best; of
        oracles that settle."""
        raise NotImplementedError

    def guarantee(self, ground: GameInstance) -> Divergence:
        """What one call guarantees, its costs being made of released values (Alabi, Definitions 7.1
        to 7.3)."""
        return _guaranteed(ground, self.round_events)

    def first_guarantee(self, ground: GameInstance, counts_multiplier: float) -> Divergence:
        """What is released once guarantees, the counts among it."""
        return _guaranteed(ground, lambda ground: self.first_events(ground, counts_multiplier))

    def regret(self, ground: GameInstance, costs: Floats) -> tuple[float, float]:
        """(unit, known): a response's cost is above the class's best by at most unit (known + E), E
        no larger than an exponential variable of mean 1, whatever came before. Infinite where
        nothing is known."""
        return math.inf, 0.0


def _guaranteed(ground: GameInstance, events: Callable[[GameInstance], list[Event]]) -> Divergence:
    promise = ground.promise
    return Divergence(
        compose(events(ground)) if promise.is_private else NonPrivate(), promise.neighbours
    )


def count_rows(
    curator: Curator, ground: GameInstance, multiplier: float, noise: str = "gaussian"
) -> Floats:
    """Counts by (cell, label), released once."""
    measurements = [Measurement(ground.counts, multiplier, noise)]
    (answer,) = ground.joint(
        curator, measurements, [replace(ground.counts, cells=None)], "counts of the cells"
    )
    return ground.table(answer)


def counting_event(ground: GameInstance, multiplier: float, noise: str = "gaussian") -> Event:
    """What `count_rows` logs."""
    return ground.event([Measurement(ground.counts, multiplier, noise)])


def audit_measurements(
    ground: GameInstance, rule: Rule, multipliers: Sequence[float], noise: str = "gaussian"
) -> list[Measurement]:
    """How a rule decides, asked once for each multiplier: noise of its own each time."""
    question = rule.decisions(ground.cells, ground.by_label)
    return [Measurement(question, multiplier, noise) for multiplier in multipliers]


def audited(
    curator: Curator,
    ground: GameInstance,
    rule: Rule,
    multipliers: Sequence[float],
    counts: Floats,
    noise: str = "gaussian",
) -> list[Floats]:
    """The answers, (cells, labels, classes) each, from one joint release."""
    measurements = audit_measurements(ground, rule, multipliers, noise)
    free = [] if rule.reads_groups else [rule.decisions(None, ground.by_label)] * len(measurements)
    answers = [
        answer.reshape(*counts.shape, -1)
        for answer in ground.joint(curator, measurements, free, "how a rule decides")
    ]
    return [
        one if one.shape[-1] == ground.classes else ground.by_class(one, counts) for one in answers
    ]
