"""The max player of private descent: what it makes a prediction cost, and how it answers a released
histogram.

Descent minimises over models what the max player makes as large as it can. RaCO-DP's holds the
duals of constraints on hard decisions; DP-FERMI's holds the matrix W of the mutual information of
soft ones. Either is post-processing of histograms by cell, label and class, in units of all rows;
what it hands the gradient is a cost of each prediction in each cell.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from ..._types import Floats, Mask
from ...fairness import ConstraintSystem
from ...fairness.dependence import Dependence, FixedShares, projected
from ...fairness.systems import FixedCounts
from ..systems import slopes_of_decisions
from .duals import AVERAGED, AscentState, ProjectedAscent, weights_of
from .plan import Plan

P = TypeVar("P")
HEARD = 0.04
"""The share of an excess that is followed from which on hearing it is worth a part of each round's
price."""


class Player(ABC, Generic[P]):
    """Pure functions of released values; a leading axis for the models. Abstract."""

    @property
    @abstractmethod
    def models(self) -> int:
        """For how many models it plays."""

    @abstractmethod
    def begin(self, counts: Floats, rows: Floats) -> P:
        """Its state before the first round, at the released counts (models, cells, labels)."""

    def hears(self, state: P) -> bool:
        """Whether what the histograms of the rounds say reaches it through their noise."""
        return True

    @abstractmethod
    def costs(self, state: P) -> tuple[Floats, Floats]:
        """What a prediction costs one row (models, cells, labels, classes), and the weight of the
        row's loss beside it."""

    @abstractmethod
    def step(self, state: P, histogram: Floats, round: int) -> P:
        """Its state after a round, given the histogram (models, cells, labels, classes)."""

    @abstractmethod
    def rests(self, before: P, after: P, histogram: Floats, round: int, tolerance: float) -> Mask:
        """Without noise: for which models its play is over if the model moves no more."""

    @abstractmethod
    def keep(self, before: P, after: P, stopped: Mask) -> P:
        """The later state, but the earlier one for models that have stopped."""

    @abstractmethod
    def duals(self, state: P, constraints: int) -> Floats:
        """How hard each constraint is pressed, (models, constraints): nothing where there are
        none."""


@dataclass(frozen=True, eq=False, slots=True)
class ConstraintState:
    """The duals of constraints, at counts that do not change. `trust`: what each excess is
    multiplied by."""

    pressure: AscentState
    fixed: FixedCounts
    rows: Floats
    trust: Floats | float = 1.0


@dataclass(frozen=True, eq=False)
class Constraints(Player[ConstraintState]):
    """RaCO-DP's: L = E[loss] + sum_j duals_j (value_j - bound_j), divided by 1 + loss_scale x the
    sum of the duals.

    `bounds` (models, constraints). The duals begin after `start` rounds. `blur`: the standard
    deviation of the noise of a number of a round's histogram. `Differs:` the ascent follows
    excesses by their precision (`weights_of`): noise of s in the mean of AVERAGED rounds leaves
    TELLABLE^2 / (TELLABLE^2 + s^2) of one, so that the noise of a cell of few rows does not drive
    the search, and what is known well is followed as before.
    """

    system: ConstraintSystem
    bounds: Floats
    ascent: ProjectedAscent
    floor: float
    start: float
    loss_scale: float
    blur: float = 0.0

    @property
    def models(self) -> int:
        return len(self.bounds)

    def begin(self, counts: Floats, rows: Floats) -> ConstraintState:
        return ConstraintState(
            AscentState.begin(*self.bounds.shape),
            self.system.at(counts, self.floor),
            rows,
            self._trust(counts),
        )

    def hears(self, state: ConstraintState) -> bool:
        """Not where less than `HEARD` of an excess is followed, in the root mean square over
        constraints."""
        trust = np.broadcast_to(state.trust, self.bounds.shape)
        return bool((np.sqrt(np.square(trust).mean(axis=1)) >= HEARD).any())

    def costs(self, state: ConstraintState) -> tuple[Floats, Floats]:
        from . import kernels

        duals, pull = state.pressure.duals, state.fixed.pull
        if pull is not None:
            costs, eased = kernels.costs_of(pull, duals, state.rows, self.loss_scale)
            return costs.reshape(len(duals), *self.system.shape), eased
        loss_scale = 1.0 / (1.0 + self.loss_scale * np.add.reduce(duals, axis=1))
        return state.fixed.cell_costs(duals) * (state.rows * loss_scale)[
            :, np.newaxis, np.newaxis, np.newaxis
        ], loss_scale

    def step(self, state: ConstraintState, histogram: Floats, round: int) -> ConstraintState:
        if round < self.start:
            return state
        pressure = self.ascent.step(state.pressure, self._excess(state, histogram), state.trust)
        return ConstraintState(pressure, state.fixed, state.rows, state.trust)

    def rests(
        self,
        before: ConstraintState,
        after: ConstraintState,
        histogram: Floats,
        round: int,
        tolerance: float,
    ) -> Mask:
        # Either no constraint presses, or the ascent has had its rounds.
        settled = (round > self.ascent.rounds) | ~after.pressure.duals.any(axis=1)
        worst = np.nan_to_num(self._excess(after, histogram)).max(axis=1)
        return np.asarray(settled & (worst <= tolerance))

    def keep(
        self, before: ConstraintState, after: ConstraintState, stopped: Mask
    ) -> ConstraintState:
        # A model that has stopped keeps the duals by which it was found.
        duals = np.where(stopped[:, np.newaxis], before.pressure.duals, after.pressure.duals)
        return replace(after, pressure=replace(after.pressure, duals=duals))

    def duals(self, state: ConstraintState, constraints: int) -> Floats:
        return state.pressure.duals

    def _trust(self, counts: Floats) -> Floats | float:
        """(models, constraints), or 1 where nothing has noise."""
        if not self.blur:
            return 1.0
        outputs = 1 if self.system.shape[2] == 2 else self.system.shape[2]
        # Of each value in one number of the histogram: what noise of a count does to a rate.
        slopes = np.stack(
            [slopes_of_decisions(self.system, of_one, self.floor, outputs) for of_one in counts]
        )
        return weights_of(self.blur * slopes / math.sqrt(AVERAGED))

    def _excess(self, state: ConstraintState, histogram: Floats) -> Floats:
        from . import kernels

        pull = state.fixed.pull
        if pull is None:
            return np.asarray(state.fixed.values(histogram) - self.bounds)
        flat = np.ascontiguousarray(histogram.reshape(len(pull), -1))
        return np.asarray(kernels.excesses(pull, flat, self.bounds))


@dataclass(frozen=True, eq=False, slots=True)
class PenaltyState:
    """W (models, cells, labels, classes), at counts that do not change."""

    w: Floats
    fixed: FixedShares


@dataclass(frozen=True, eq=False)
class Penalty(Player[PenaltyState]):
    """DP-FERMI's: E[loss] + strength x mean psi(W), divided by 1 + loss_scale x strength.
    `strengths` (models,).

        W <- project(W + pace (W*(H) - W)),     W*(H)[r, j] = H[r, j] / (sqrt(p[r]) H[j])

    which is ascent along the gradient of Lemma D.1 with steps of pace / (2 strength H[j] / rows):
    its exact curvature, so no step size is to be found for it, and one pace serves every strength.
    `radius`: of the ball of W, a Frobenius norm, label by label. `floor`: the least number of rows
    that a prediction is taken to have.

    `Differs:` from Algorithm 1, whose noise is added to W's gradient (theory.md#fermi, H2: without
    the strength): here it is in the released histogram, of which the gradient is made, so it is
    multiplied by strength as the gradient is.
    """

    dependence: Dependence
    strengths: Floats
    radius: float
    floor: float
    classes: int
    pace: float = 0.5
    loss_scale: float = 0.35

    @property
    def models(self) -> int:
        return len(self.strengths)

    def begin(self, counts: Floats, rows: Floats) -> PenaltyState:
        return PenaltyState(np.zeros((*counts.shape, self.classes)), self.dependence.at(counts))

    def costs(self, state: PenaltyState) -> tuple[Floats, Floats]:
        return state.fixed.costs(state.w) * self._strengths_eased, self._ease

    def step(self, state: PenaltyState, histogram: Floats, round: int) -> PenaltyState:
        best = state.fixed.best(histogram, self.floor)
        return PenaltyState(
            projected(state.w + self.pace * (best - state.w), self.radius), state.fixed
        )

    def rests(
        self,
        before: PenaltyState,
        after: PenaltyState,
        histogram: Floats,
        round: int,
        tolerance: float,
    ) -> Mask:
        return np.asarray(np.abs(after.w - before.w).max(axis=(1, 2, 3)) <= tolerance)

    def keep(self, before: PenaltyState, after: PenaltyState, stopped: Mask) -> PenaltyState:
        return replace(
            after, w=np.where(stopped[:, np.newaxis, np.newaxis, np.newaxis], before.w, after.w)
        )

    def duals(self, state: PenaltyState, constraints: int) -> Floats:
        return np.zeros((self.models, constraints))

    @cached_property
    def _ease(self) -> Floats:
        return np.asarray(1.0 / (1.0 + self.loss_scale * self.strengths))

    @cached_property
    def _strengths_eased(self) -> Floats:
        return np.asarray((self.strengths * self._ease)[:, np.newaxis, np.newaxis, np.newaxis])


def constraints_of(planned: Plan, bounds: Floats) -> Constraints:
    """The max player that holds the duals of the plan's constraints, a line of bounds a model."""
    assert planned.system is not None
    s = planned.settings
    # a search that stops when it has converged
    to_the_end = planned.is_exact and planned.skeleton is None
    horizon = s.dual_horizon if to_the_end else s.rounds
    ascent = ProjectedAscent(
        horizon, s.dual_bound, s.dual_ki, s.dual_kp, s.dual_ema_nu, s.dual_fade, s.dual_unit
    )
    return Constraints(
        planned.system,
        bounds,
        ascent,
        planned.floor,
        s.dual_start * horizon,
        s.dual_ease,
        planned.blur,
    )
