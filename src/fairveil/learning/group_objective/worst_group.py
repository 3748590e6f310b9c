"""The largest group's log loss by weights and clips that follow released losses (after ASC,
Cairney-Leeming et al.).

    w_a = p_a / share_a,    p = softmax(sum over rounds of PUSH x mean loss of group a)

A group with a larger loss weighs more, and is clipped more tightly: every row's *weighed* gradient
is clipped to one bound C, so a gradient of group a to C / w_a. Weights are 1 in the mean over rows.
So the noise of a round is the same whatever the weights are, where `LossDescent` lets it grow with
the largest weight.

`Differs:` ASC samples groups at rates in place of weighing them. Weights at full batch cost no more
at every whole order, and have no sampling error (theory.md#weights-for-rates). With one bound on
what is weighed a person who changes group costs what two persons of one group do: nothing is added
up over groups (theory.md#weighed-clip).

Guarantees (tests/learning/test_learning_worst_group.py):
1. The log is the plan, event for event, whatever the weights were.
2. Weights and model depend on the rows through the curator's answers alone.
3. No neighbour moves a round's answers further than its event says, under each relation and for any
   weights: enumerated.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from ... import _checks
from ..._types import Floats
from ...curator import Curator
from ...errors import InputError
from ...fairness.objectives import LargestGroupLoss
from ..lagrangian.duals import ExponentiatedGradientState
from ..lagrangian.primal import PrimalState
from ..oracles.oracle import count_rows
from .descent import LATE, MOMENTUM, MOST, LossDescent, plan_descent
from .descent_state import Course, GroupDescentState
from .problem import Problem, ReleasedProblem

PUSH = 0.1  # of a group's logarithm, a round and unit of mean loss
# noise of a group's mean loss, averaged so far, above which the group counts as everybody does
QUIET = 0.05


@dataclass(frozen=True, eq=False)
class WorstGroupDescent(LossDescent):
    """A descent that is planned and priced: public values alone. Made by `plan_worst_group`. In its
    states `leaning.sums` are the groups' logarithms."""

    def _room(self, weights: Floats) -> float:
        """One clip for whatever is weighed. Where nothing is private no clip is needed, and the
        largest weight has it."""
        return super()._room(weights) if self.problem.ground.is_exact else 1.0

    def init(self, curator: Curator) -> GroupDescentState:
        """Counts; the first weights are those of all rows alike."""
        ground = self.problem.ground
        counts = count_rows(curator, ground, self.counts_multiplier)
        posed = self.problem.pose(counts, self.counts_multiplier, self.penalty)
        walk, none = PrimalState.begin((1, ground.outputs, 1 + ground.layout.width)), np.zeros(0)
        start = np.log(_sizes(posed))
        leaning = ExponentiatedGradientState(start)
        noise, losses = self._noise_of_losses(posed) / _sizes(posed), np.zeros(ground.groups)
        late = Course(walk.average[0], losses)
        return GroupDescentState(
            posed, walk, _weights(posed, start), leaning, none, losses, noise, late
        )

    def step(self, curator: Curator, state: GroupDescentState) -> GroupDescentState:
        """One round."""
        posed, v, t = state.posed, state.walk.weights[0], state.round + 1
        gradient, sums = curator.answer(
            self._measurements(v, state.weights), purpose="gradient and losses of the groups"
        )
        losses, sizes = sums / posed.rows, _sizes(posed)
        told = posed.told[0] & (state.noise / np.sqrt(t) <= QUIET)
        everybody = np.clip(losses.sum() / sizes.sum(), 0.0, MOST)
        means = np.where(told, np.clip(losses / sizes, 0.0, MOST), everybody)
        leaning = replace(state.leaning, sums=state.leaning.sums + PUSH * means)
        late = t > (1.0 - LATE) * self.rounds
        walk = state.walk.step(
            gradient[np.newaxis] / posed.rows,
            self._rate(posed, state.weights),
            MOMENTUM,
            count=late,
        )
        mean = state.mean + (losses - state.mean) / t
        return replace(
            state,
            walk=walk,
            weights=_weights(posed, leaning.sums),
            leaning=leaning,
            mean=mean,
            round=t,
        )


def _sizes(posed: ReleasedProblem) -> Floats:
    """Released shares of the groups, none smaller than noise lets one tell."""
    return np.maximum(posed.shares[:, 0], posed.least)


def _weights(posed: ReleasedProblem, logarithms: Floats) -> Floats:
    """What a row of each group counts: 1 in the mean over rows."""
    shares = np.exp(logarithms - logarithms.max())
    return np.asarray(shares / shares.sum() / _sizes(posed))


def plan_worst_group(
    problem: Problem, *, rounds: int | None = None, clip: float | None = None
) -> WorstGroupDescent:
    """The descent whose noise is the least that keeps the promise."""
    objective = problem.objective
    if (
        not isinstance(objective, LargestGroupLoss)
        or objective.costs is not None
        or not problem.is_free
    ):
        remedy = "Pass objective='largest_group_loss' and no constraint, or method='linear-oracle'."
        expected = "the largest group loss without a constraint"
        raise InputError.expected(
            expected, of="method='worst-group'", got=str(objective), remedy=remedy
        )
    planned = plan_descent(problem, rounds=rounds, clip=clip)
    return WorstGroupDescent(
        **_checks.named(planned, (one.name for one in fields(planned) if one.init))
    )
