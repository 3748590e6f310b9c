"""A tailored descent as it is described before data are read: what is asked, at what price, and
who spends which share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._types import Floats
from ...core.events import Event, Repeated, compose
from ...curator import (
    FULL,
    ByCell,
    CellCounts,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    Measurement,
    Network,
    NetworkGradient,
    NetworkHistogram,
    Weighed,
    largest_of_one,
)
from ...facts import Cells
from ..allocation import Shares, by_column
from ..descent import Batch
from ..duals import ProjectedAscent
from ..least_squares import LENGTH, moments_of
from ..primal_dual import of_persons, usual_clip
from .shared_budget import LOSSES_PART, SharedBudget
from .steps import UNIT, Steps

WARMING = 25  # rounds of a precursor with log loss


PENALTY = 5.0


MOST = {"log": 3.0, "squared": 1.0}  # of one row's loss


RESIDUAL = 0.5  # of codes in [-1, 1]: what counts in full, times the usual length of a row


@dataclass(frozen=True, eq=False)
class DescribedDescent(SharedBudget):
    """What is public of a descent whose budget is shared among groups. Abstract: see
    `TailoredDescent`."""

    @cached_property
    def plan(self) -> Event | None:
        """What is fixed before data are read: the price of shares that are, else the worst
        person's."""
        return self.event(bound=not self.is_fixed) if self.task.promise.is_private else None

    # -- what is asked -----------------------------------------------------------------------------

    @property
    def _clip(self) -> float:
        if self.clip is not None:
            return self.clip
        if self.loss == "log":
            return usual_clip(self.task.promise)
        usual = RESIDUAL * math.sqrt(
            1.0 + self.task.layout.numbers + len(self.task.layout.code_sizes)
        )
        return usual * of_persons(self.task.promise)

    @cached_property
    def steps(self) -> Steps:
        """How it walks."""
        columns = self.task.layout.numbers + len(self.task.layout.code_sizes)
        where = (self.radius, self.region, self.step_size, self.iterate, self.learning_rate)
        return Steps(self.loss, columns, self._clip, self.rounds, *where, self.skeleton is not None)

    @property
    def start(self) -> Floats:
        """Where the descent begins."""
        if self.skeleton is not None:
            return np.asarray(self.skeleton.start, np.float64)
        return np.zeros((self._outputs, 1 + self.task.layout.width))

    @property
    def _outputs(self) -> int:
        classes = len(self.task.layout.classes or ())
        return 1 if classes <= 2 or self.loss == "squared" else classes

    def gradient(self, v: Floats) -> GradientSum | NetworkGradient:
        """The question of all rows' gradients."""
        if self.skeleton is not None:
            return NetworkGradient(Network(self.skeleton, v), self._clip)
        return GradientSum(Linear(v), self._clip, loss=self.loss)

    def _moments(self) -> list[Measurement]:
        return moments_of(self.task, self._multiplier("moments", 2))

    def _losses(self, v: Floats, cells: Cells | None) -> GroupLosses:
        return GroupLosses(Linear(v), cells, self.loss, clip=MOST[self.loss])

    def _warming(self, v: Floats) -> list[Measurement]:
        """The precursor's: of squared loss one matrix, of log loss a round."""
        if self.loss == "squared":
            usual = math.sqrt(2.0 + self.task.layout.numbers + len(self.task.layout.code_sizes))
            longest = LENGTH * usual if self.scales else usual
            return [
                Measurement(
                    GramMatrices(None, longest, with_target=True), self._multiplier("precursor")
                )
            ]
        return [
            Measurement(
                GradientSum(Linear(v), usual_clip(self.task.promise)),
                self._multiplier("precursor", WARMING),
            )
        ]

    def _sized(self) -> list[Measurement]:
        z = self._multiplier("counts", len(self.columns))
        return [Measurement(CellCounts(one), z) for one in self.columns]

    def _measured(self, v: Floats) -> list[Measurement]:
        """The precursor's losses by group."""
        z = self._multiplier("errors", len(self.columns))
        return [Measurement(self._losses(v, one), z) for one in self.columns]

    def _reported(self, v: Floats) -> list[Measurement]:
        """The answer's losses, or a network's errors, by group; and what one answer for everybody
        would lose: from how many rows have each label, or, of numbers, by the losses of
        coefficients 0."""
        z = self._multiplier("report", 2 * len(self.columns))
        if self.loss == "squared" and self.skeleton is None:
            return [
                Measurement(self._losses(at, one), z)
                for at in (v, self.start)
                for one in self.columns
            ]
        labels = [Measurement(CellCounts(one, by_label=True), z) for one in self.columns]
        if self.skeleton is None:
            return [*(Measurement(self._losses(v, one), z) for one in self.columns), *labels]
        model = Network(self.skeleton, v)
        histograms = [
            Measurement(NetworkHistogram(model, one, by_label=True), z) for one in self.columns
        ]
        return [*histograms, *labels]

    def _asked(self, v: Floats, shares: Shares | None, factors: Floats | None) -> list[Measurement]:
        """A round. Without shares: what it costs at most, every group's noise that of the worst
        person."""
        m = self._round_multiplier * math.sqrt(len(self.columns))
        gradient = self.gradient(v)
        if self.adds_groups:
            if self.task.cells is None or not self._weighs:
                return [
                    Measurement(
                        gradient,
                        m * (1.0 if shares is None else self._saving(np.ones(self.cells.count))),
                    )
                ]
            if factors is None:
                return [Measurement(ByCell(gradient, self.cells), m)]
            return [Measurement(Weighed(gradient, self.cells, factors), m * self._saving(factors))]
        parts = (1.0 - LOSSES_PART, LOSSES_PART) if self.bounded else (1.0, 0.0)
        if shares is None or self.is_exact:
            each: Any = m
        else:
            each = m / np.sqrt(shares.paid)
        measurements = by_column(
            self.cells, lambda one: ByCell(gradient, one), each / math.sqrt(parts[0])
        )
        if self.bounded:
            measurements += by_column(
                self.cells, lambda one: self._losses(v, one), each / math.sqrt(parts[1])
            )
        return measurements

    def event(self, *, bound: bool = True) -> Event:
        """What the run costs; of the rounds what the worst person may, whatever the shares will be,
        or by shares that are fixed."""
        asked = self.asked_in_turn(bound=bound)
        return compose(
            [
                Repeated(self.task.event(measurements, batch), times)
                for measurements, batch, times in asked
            ]
        )

    def asked_in_turn(self, *, bound: bool = True) -> list[tuple[list[Measurement], Batch, int]]:
        """The joint releases in their order, of which batch, and how often each."""
        v, none = self.start, np.zeros((self._outputs, 1 + self.task.layout.width))
        before: list[tuple[list[Measurement], Batch, int]] = (
            [(self._moments(), FULL, 1)] if self.scales else []
        )
        before.append((self._sized(), FULL, 1))
        if self.measures_errors:
            before.append((self._warming(none), FULL, WARMING if self.loss == "log" else 1))
            before.append((self._measured(none), FULL, 1))
        shares = None if bound else self._shares(None, None)
        return [
            *before,
            (self._asked(v, shares, None), self.batch, self.rounds),
            (self._reported(v), FULL, 1),
        ]

    # -- shares ------------------------------------------------------------------------------------

    @property
    def _count_noise(self) -> float:
        measurement = self._sized()[0]
        return (
            0.0
            if self.is_exact
            else float(measurement.multiplier) * self.task.move(measurement.question)
        )

    @cached_property
    def _noise(self) -> float:
        """The deviation of a round's noise where every row counts 1: by group over a norm, of one
        sum over the sensitivity."""
        if self.is_exact:
            return 0.0
        question, task = self.gradient(self.start), self.task
        if self.adds_groups and self.sampling_rate >= 1.0:
            return self._round_multiplier * task.move(question)
        return self._round_multiplier * largest_of_one(
            question, task.layout, task.promise, task.max_sample_weight
        )

    @property
    def _auditor(self) -> ProjectedAscent:
        """How hard bounds are pressed: no harder than the penalty."""
        most = PENALTY if self.task.penalty is None else self.task.penalty
        return ProjectedAscent(self.rounds, most)

    @property
    def _largest(self) -> float:
        """What one row's loss is at most: errors of a module's decisions are 0 or 1, and losses
        with noise are cut."""
        if self.skeleton is not None:
            return 1.0
        return (
            math.inf if self.is_exact and self.loss == "log" else MOST[self.loss] * UNIT[self.loss]
        )
