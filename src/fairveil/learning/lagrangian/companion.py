"""What is asked once a model is there: its values anew, if they chose its threshold, and what a
model without constraints does.

A threshold that was picked by noisy values has the luckiest of them; those of a release of its own
are what is reported. A companion without constraints tells what fairness cost, and what mixing
would. It begins where the constrained model ended, so that few rounds are enough, and asks for the
gradient of the loss alone. Where features are public the opening rounds have found it exactly, for
free, and nothing is asked but how it is group-aware.

Guarantees (tests/learning/test_learning_comparison.py; neighbours in
tests/learning/test_learning_rate_constrained.py):
1. Its releases are in the plan of the model that it stands beside, priced with it, and the log
   equals the plan.
2. The weights that are returned do not depend on it; its values of them are unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import _checks
from ..._types import Floats
from ...curator import FULL, Linear, Measurement
from .. import constants
from ..comparison import Comparison, DecisionTable, Free, Limits
from ..descent import Answers, Batch, Reason, Search
from ..gaussian import averaged, joint_multiplier
from ..outcome import Outcome
from ..units import in_coded_units, in_inner_units
from .plan import Plan
from .primal import PrimalState

LATE = 0.5
"""The share of rounds, at the end, whose iterates are averaged."""


@dataclass(frozen=True, eq=False)
class Course:
    """Between rounds: released values only."""

    walk: PrimalState
    round: int = 0


@dataclass(frozen=True, eq=False)
class Companion(Search[Course, list[Outcome]]):
    """The search that follows on `found`. `begin`: weights (models, outputs, 1 + width) in the
    units that rows have inside; `standard`: their centre and scale; `rate`: of its steps, a number
    a model. `walk`: of a search that asked for the loss alone; it goes on here, and the model is
    where it ends."""

    planned: Plan
    found: tuple[Outcome, ...]
    begin: Floats
    standard: tuple[Floats, Floats] | None
    rate: Floats
    many: bool = False
    walk: PrimalState | None = None

    def __post_init__(self) -> None:
        _checks.normalise(self, rounds=self.planned.free_rounds, plan=None)

    def first(self) -> list[Measurement]:
        return []

    def init(self, answers: Answers) -> Course:
        return Course(self.walk or PrimalState.at(self.begin))

    def batch_for(self, state: Course) -> Batch:
        return FULL

    def measurements(self, state: Course) -> list[Measurement]:
        return self.planned.free_measurements(self._linear(state.walk.weights))

    def step(self, state: Course, answers: Answers) -> Course:
        rows = np.array([one.rows for one in self.found])[:, np.newaxis, np.newaxis]
        counted = self.walk is not None or state.round >= (1.0 - LATE) * self.rounds
        momentum, rate = self.planned.settings.momentum, self.rate[:, np.newaxis, np.newaxis]
        walk = state.walk.step(self._each(answers[0]) / rows, rate, momentum, count=counted)
        return replace(state, walk=walk, round=state.round + 1)

    def stop(self, state: Course) -> Reason | None:
        return Reason.ROUNDS if state.round >= self.rounds else None

    def last(self, state: Course) -> list[Measurement]:
        settled = self.planned.settled_measurements(self._linear(self._own(state)))
        return [*settled, *self.planned.free_last(self._linear(state.walk.average))]

    def finish(self, state: Course, reason: Reason, answers: Answers) -> list[Outcome]:
        own = len(self.planned.settled_measurements(self._linear(state.walk.average)))
        if self.walk is not None:
            return self._ended(state, answers[:own], answers[own:])
        found = self._settled(answers[:own]) if own else list(self.found)
        return self._beside(found, state, answers[own:]) if self.planned.companion else found

    def _own(self, state: Course) -> Floats:
        """The weights of the models, in the units that rows have inside."""
        if self.walk is not None:
            return state.walk.average
        return in_inner_units(np.stack([one.weights for one in self.found]), self.standard)

    def _ended(self, state: Course, settled: Answers, free: Answers) -> list[Outcome]:
        """Models where the walk ended. Both reports are of them, so they are taken together; and
        they are the models without constraints."""
        planned, price = self.planned, self.planned.free_report_multiplier
        told = [(answer, price) for answer in free]
        if settled:
            prices = [planned.report_multiplier, *[planned.compare_multiplier] * len(settled)]
            pairs = zip(settled, prices, free, strict=False)
            told = [
                (averaged((one, other), (z, price)), joint_multiplier((z, price)))
                for one, z, other in pairs
            ]
        (decided, report), tables = told[0], [answer for answer, _ in told[1:]]
        compare = planned.read_compare(tables, len(self.found), told[1][1])
        weights = in_coded_units(state.walk.average, self.standard)
        out = []
        for m, (one, *known) in enumerate(
            zip(self.found, *self._values(decided, report), strict=True)
        ):
            values, spread, drawn = known
            one = replace(one, weights=weights[m].copy(), rounds=one.rounds + self.rounds, looks=1)
            one = replace(one, values=values, spread=spread, sampling=drawn)
            one = compared(planned, one, compare.of(m))
            if one.comparison is not None:
                free_one = Free(weights[m], compare.of(m), values, spread, drawn)
                one = replace(one, comparison=replace(one.comparison, free=free_one))
            out.append(one)
        return out

    def _settled(self, answers: Answers) -> list[Outcome]:
        """With the values of models whose thresholds were put before these were released."""
        tables = self.planned.read_compare(
            answers[1:], len(self.found), self.planned.compare_multiplier
        )
        values, spread, drawn = self._values(answers[0], self.planned.report_multiplier)
        told = zip(self.found, values, spread, drawn, strict=True)
        fresh = [
            replace(one, values=value, spread=noise, sampling=error, looks=1)
            for one, value, noise, error in told
        ]
        return [compared(self.planned, one, tables.of(m)) for m, one in enumerate(fresh)]

    def _beside(self, found: list[Outcome], state: Course, answers: Answers) -> list[Outcome]:
        """With the companions to compare with."""
        multiplier = self.planned.free_report_multiplier
        tables = self.planned.read_compare(answers[1:], len(found), multiplier)
        values, spread, drawn = self._values(answers[0], multiplier)
        weights = in_coded_units(state.walk.average, self.standard)
        out = []
        for m, one in enumerate(found):
            if one.comparison is None:
                out.append(one)
                continue
            free = Free(weights[m], tables.of(m), values[m], spread[m], drawn[m])
            out.append(replace(one, comparison=replace(one.comparison, free=free)))
        return out

    def _values(self, answer: Floats, multiplier: float) -> tuple[Floats, Floats, Floats]:
        """The constraints' values of decisions that were released at that multiplier, their noise
        and their sampling error."""
        planned, system = self.planned, self.planned.system
        assert system is not None
        counts = np.stack([one.counts for one in self.found])
        decided = self._each(answer).reshape(len(counts), *system.shape[:2], -1)
        values = system.exact_values(planned.by_class(decided, counts), counts, planned.floor)
        spread = np.stack(
            [planned.noise_of(*pair, multiplier)(0) for pair in zip(counts, decided, strict=True)]
        )
        return (
            values,
            spread,
            np.stack([planned.sampling_of(*pair) for pair in zip(counts, decided, strict=True)]),
        )

    def _linear(self, weights: Floats) -> Linear:
        return Linear(weights if self.many else weights[0], 1.0 / self.planned.settings.temperature)

    def _each(self, answer: Floats) -> Floats:
        return np.asarray(answer if self.many else answer[np.newaxis])


def compared(planned: Plan, found: Outcome, table: DecisionTable) -> Outcome:
    """An outcome with what was released to compare it."""
    if not found.rows > 0:
        return found
    limits = None
    if planned.system is not None:
        known = (planned.system, found.counts, planned.floor)
        noise, drawn = (
            constants.noise_of(*known, planned.count_noise),
            constants.sampling_of(*known, planned.max_sample_weight),
        )
        limits = Limits(
            found.values, found.bounds, found.spread, constants.values_of(*known), noise, drawn
        )
    return replace(found, comparison=Comparison(table, found.rows, limits))
