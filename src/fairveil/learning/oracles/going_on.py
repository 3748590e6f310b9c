"""What rounds are spent on where noise would hide what they were planned for: the rule without
constraints goes on.

The plan fixes the price of every answer of a round. Which question is asked at that price may
follow what was released before (theory.md#t9). So each answer of a round is about the gradient of
the loss, of one and the same model, at the multipliers z_j of the plan. Their mean, weighed by
1 / z_j^2, has the noise of one answer that costs as much as the round:

    z = (sum_j 1 / z_j^2)^(-1/2)

The walk begins where the descent without constraints ended. Its rule is the average of the late
iterates.

Guarantees (tests/learning/test_learning_going_on.py):
1. A round logs what the plan has for it, event for event, and costs as much.
2. The rule depends on the rows through the curator's answers alone.
3. The mean of a round's answers has the noise of one answer at z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ..._types import Floats
from ...curator import Curator, Measurement, Question
from ..gaussian import averaged, joint_multiplier
from ..lagrangian.primal import PrimalState
from .descent import Begun, Course
from .ground import GameInstance
from .oracle import LinearRule, Rule

LATE = 0.75
"""The share of rounds, at the end, whose iterates are averaged: they begin near the end."""


@dataclass(frozen=True, eq=False)
class Walk:
    """Between rounds: released values only. `begun`: the course of the descent without constraints;
    `rows`: what sums are divided by."""

    begun: Course
    at: PrimalState
    rate: float
    rows: float
    round: int = 0


@dataclass(frozen=True, eq=False)
class GoingOn:
    """What is public: the oracle whose rule goes on for `rounds`, and the multipliers of the joint
    release that a round has `beside` the oracle's own."""

    oracle: Begun
    ground: GameInstance
    rounds: int
    beside: tuple[float, ...]

    def begin(self, begun: Course, rows: float) -> Walk:
        """Where the descent without constraints ended."""
        assert begun.free is not None
        rate = self.oracle.free_rate(self.ground, rows, self.multiplier, self.rounds)
        return Walk(begun, PrimalState.at(begun.free), 0.0 if begun.rests else rate, rows)

    def step(self, curator: Curator, walk: Walk) -> Walk:
        """One round."""
        question = self.oracle.free_question(self.ground, walk.at.weights)
        own, beside = self._asked(curator, question, "a step of the model without constraints")
        gradient = averaged((own, beside), (self.own, self._beside))
        counted = walk.round >= (1.0 - LATE) * self.rounds
        at = walk.at.step(gradient / walk.rows, walk.rate, self.oracle.momentum, count=counted)
        return replace(walk, at=at, round=walk.round + 1)

    def rule(self, walk: Walk) -> LinearRule:
        """The average of the late iterates."""
        return LinearRule(walk.at.average, walk.begun.standard)

    def shown(self, curator: Curator, rule: Rule, counts: Floats) -> tuple[Floats, Floats]:
        """How a rule decides, (cells, labels, classes), at the price of one round: by the oracle's
        own answers, and by those beside them."""
        question = rule.decisions(self.ground.cells, self.ground.by_label)
        answers = self._asked(curator, question, "how a rule decides")
        own, beside = (answer.reshape(*counts.shape, -1) for answer in answers)
        if own.shape[-1] == self.ground.classes:
            return own, beside
        return self.ground.by_class(own, counts), self.ground.by_class(beside, counts)

    @cached_property
    def multiplier(self) -> float:
        """Of one answer that costs as much as a round."""
        return joint_multiplier((self.own, self._beside))

    @cached_property
    def _steps(self) -> list[float]:
        return [one.multiplier for one in self.oracle.round_measurements(self.ground)]

    @cached_property
    def own(self) -> float:
        """The same of the oracle's own answers."""
        return joint_multiplier(self._steps)

    @cached_property
    def _beside(self) -> float:
        return joint_multiplier(self.beside)

    def _asked(self, curator: Curator, question: Question, purpose: str) -> tuple[Floats, Floats]:
        """One question at every multiplier of a round: the mean of the oracle's own answers, and of
        those beside."""
        steps = self._steps
        own = [curator.answer([Measurement(question, z)], purpose=purpose)[0] for z in steps]
        beside = curator.answer([Measurement(question, z) for z in self.beside], purpose=purpose)
        return averaged(own, steps), averaged(beside, self.beside)
