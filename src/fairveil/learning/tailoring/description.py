"""A tailored descent as it is described before data are read: what is asked, at what price, and
who spends which share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._types import Floats
from ...curator import (
    FULL,
    Ask,
    ByCell,
    CellCounts,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    Network,
    NetworkGradient,
    NetworkHistogram,
    Part,
    Poisson,
    Weighed,
)
from ...facts import Cells
from ...fairness.objectives import MeanGroupLoss
from ...privacy.events import Event, Repeated, compose
from ...privacy.promise import Promise
from ..allocation import (
    LEAST_NOISE,
    STANDARD_ERROR,
    Allocation,
    Shares,
    afforded,
    as_paid,
    by_column,
    each_column,
    factors_of,
    share_out,
    spent_by_rows,
)
from ..descent import Batch
from ..lagrangian.duals import ProjectedAscent
from ..lagrangian.noise import usual_clip
from ..least_squares.by_group import LENGTH, MOMENTS_SHARE, moments_of
from ..least_squares.task import RegressionTask
from ..systems import NO_GROUPS, columns_of
from .steps import UNIT, Steps

if TYPE_CHECKING:
    from ...models.torch_network import Skeleton

ROUNDS, EXACT_ROUNDS = 100, 600


PRECURSOR_PART, ERRORS_PART, SIZES_PART = 0.5, 0.25, 0.25  # of stage one


COUNTS, REPORT = 0.05, 0.08  # of the squared budget


LOSSES_PART = 0.2  # of a round, where losses are bounded


WARMING = 25  # rounds of a precursor with log loss


PENALTY = 5.0


# how far one row moves a sum of vectors within its group; one of losses, which have one sign, by 1
SIGNED = 2.0


MOST = {"log": 3.0, "squared": 1.0}  # of one row's loss


RESIDUAL = 0.5  # of codes in [-1, 1]: what counts in full, times the usual length of a row


@dataclass(frozen=True, eq=False)
class DescribedDescent:
    """What is public of a descent whose budget is shared among groups. Abstract: see
    `TailoredDescent`."""

    task: RegressionTask
    allocation: Allocation
    loss: str = "squared"
    stage_one: float = 0.2
    scales: bool = False
    clip: float | None = None
    radius: float | None = None
    region: str = "ball"
    step_size: str = "steady"
    iterate: str = "average"
    rounds: int = ROUNDS
    learning_rate: float | None = None
    sampling_rate: float = 1.0
    skeleton: Skeleton | None = None
    z: float = 0.0

    @cached_property
    def plan(self) -> Event | None:
        """What is fixed before data are read: the price of shares that are, else the worst
        person's."""
        return self.event(bound=not self.is_fixed) if self.task.promise.is_private else None

    # -- public facts ------------------------------------------------------------------------------

    @property
    def cells(self) -> Cells:
        """The groups."""
        return self.task.cells or NO_GROUPS

    @property
    def columns(self) -> list[Cells | None]:
        """The groups of each sensitive column, or all of them; None where nobody is
        distinguished."""
        return [None] if self.task.cells is None else [*each_column(self.task.cells)]

    @property
    def measures_errors(self) -> bool:
        """Whether stage one is needed: with one group there is nothing to share."""
        return self.allocation.name == STANDARD_ERROR and self.cells.count > 1

    @property
    def bounded(self) -> bool:
        """Whether groups' losses are bounded, and so released in every round."""
        return not self.task.constraint.is_vacuous

    @property
    def adds_groups(self) -> bool:
        """Whether a round releases one sum of all groups."""
        if self.task.cells is None:
            return True
        plain = (
            self.allocation.name == LEAST_NOISE
            and not self.allocation.has_limits
            and not self.bounded
        )
        return plain and self.cells.mode == "product"

    @property
    def is_fixed(self) -> bool:
        """Whether shares depend on nothing that is released."""
        pairs = self.allocation.spend == "total" or self.task.sees_features
        alike = self.allocation.name == LEAST_NOISE and not (
            self._weighs and (self.adds_groups or pairs)
        )
        return self.allocation.is_fixed or alike or self.cells.count == 1

    @property
    def batch(self) -> Batch:
        """What a round asks, as it is priced."""
        return FULL if self.sampling_rate >= 1.0 else Poisson(self.sampling_rate)

    def batch_of(self, round: int) -> Batch:
        """What a round asks: without privacy fixed parts take turns, since no batch need be
        secret."""
        return (
            Part(round % self._parts_of_rows, self._parts_of_rows)
            if self._parts_of_rows > 1
            else self.batch
        )

    @property
    def _parts_of_rows(self) -> int:
        return max(1, round(1.0 / self.sampling_rate)) if self.is_exact else 1

    @property
    def _asked_part(self) -> float:
        """Of the rows, in a round."""
        return 1.0 / self._parts_of_rows if self.is_exact else self.sampling_rate

    @property
    def is_exact(self) -> bool:
        """Without privacy."""
        return not self.task.promise.is_private

    @cached_property
    def _parts(self) -> dict[str, float]:
        if self.measures_errors:
            s = self.stage_one
            parts = {
                "precursor": s * PRECURSOR_PART,
                "errors": s * ERRORS_PART,
                "counts": s * SIZES_PART,
            }
            if self.task.sees_features:
                parts.pop("precursor")
        else:
            parts = {"counts": COUNTS}
        if self.scales and not self.task.sees_features:
            parts["moments"] = MOMENTS_SHARE
        return parts | {"report": REPORT}

    @property
    def last_part(self) -> float:
        """Of the squared budget: the rounds'."""
        return 1.0 - sum(self._parts.values())

    def _multiplier(self, part: str, times: int = 1) -> float:
        return (
            0.0
            if self.is_exact or part not in self._parts
            else self.z * math.sqrt(times / self._parts[part])
        )

    @property
    def _round_multiplier(self) -> float:
        """Of a round as a whole."""
        return (
            0.0
            if self.is_exact
            else self.z * self.sampling_rate * math.sqrt(self.rounds / self.last_part)
        )

    # -- what is asked -----------------------------------------------------------------------------

    @property
    def _clip(self) -> float:
        if self.clip is not None:
            return self.clip
        if self.loss == "log":
            return usual_clip(self.task.promise)
        return RESIDUAL * math.sqrt(
            1.0 + self.task.layout.numbers + len(self.task.layout.code_sizes)
        )

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

    def _moments(self) -> list[Ask]:
        return moments_of(self.task, self._multiplier("moments", 2))

    def _losses(self, v: Floats, cells: Cells | None) -> GroupLosses:
        return GroupLosses(Linear(v), cells, self.loss, clip=MOST[self.loss])

    def _warming(self, v: Floats) -> list[Ask]:
        """The precursor's: of squared loss one matrix, of log loss a round."""
        if self.loss == "squared":
            usual = math.sqrt(2.0 + self.task.layout.numbers + len(self.task.layout.code_sizes))
            longest = LENGTH * usual if self.scales else usual
            return [
                Ask(GramMatrices(None, longest, with_target=True), self._multiplier("precursor"))
            ]
        return [
            Ask(
                GradientSum(Linear(v), usual_clip(self.task.promise)),
                self._multiplier("precursor", WARMING),
            )
        ]

    def _sized(self) -> list[Ask]:
        z = self._multiplier("counts", len(self.columns))
        return [Ask(CellCounts(one), z, column=j) for j, one in enumerate(self.columns)]

    def _measured(self, v: Floats) -> list[Ask]:
        """The precursor's losses by group."""
        z = self._multiplier("errors", len(self.columns))
        return [Ask(self._losses(v, one), z, column=j) for j, one in enumerate(self.columns)]

    def _reported(self, v: Floats) -> list[Ask]:
        """The answer's losses, or a network's errors, by group; and what one answer for everybody
        would lose: from how many rows have each label, or, of numbers, by the losses of
        coefficients 0."""
        z = self._multiplier("report", 2 * len(self.columns))
        if self.loss == "squared" and self.skeleton is None:
            return [
                Ask(self._losses(at, one), z, column=j)
                for at in (v, self.start)
                for j, one in enumerate(self.columns)
            ]
        labels = [
            Ask(CellCounts(one, by_label=True), z, column=j) for j, one in enumerate(self.columns)
        ]
        if self.skeleton is None:
            return [
                *(Ask(self._losses(v, one), z, column=j) for j, one in enumerate(self.columns)),
                *labels,
            ]
        model = Network(self.skeleton, v)
        histograms = [
            Ask(NetworkHistogram(model, one, by_label=True), z, column=j)
            for j, one in enumerate(self.columns)
        ]
        return [*histograms, *labels]

    def _asked(self, v: Floats, shares: Shares | None, factors: Floats | None) -> list[Ask]:
        """A round. Without shares: what it costs at most, every group's noise that of the worst
        person."""
        m = self._round_multiplier * math.sqrt(len(self.columns))
        gradient = self.gradient(v)
        if self.adds_groups:
            if self.task.cells is None or not self._weighs:
                return [
                    Ask(
                        gradient,
                        m * (1.0 if shares is None else self._saving(np.ones(self.cells.count))),
                    )
                ]
            if factors is None:
                return [Ask(ByCell(gradient, self.cells), m)]
            return [Ask(Weighed(gradient, self.cells, factors), m * self._saving(factors))]
        parts = (1.0 - LOSSES_PART, LOSSES_PART) if self.bounded else (1.0, 0.0)
        if shares is None or self.is_exact:
            each: Any = m
        else:
            each = m / np.sqrt(shares.paid)
        asks = by_column(self.cells, lambda one: ByCell(gradient, one), each / math.sqrt(parts[0]))
        if self.bounded:
            asks += by_column(
                self.cells, lambda one: self._losses(v, one), each / math.sqrt(parts[1])
            )
        return asks

    def _saving(self, factors: Floats) -> float:
        """With a total to spend the worst person spends less of it."""
        return 1.0 / math.sqrt(spent_by_rows(factors, self.task.promise, self.allocation.spend)[0])

    def event(self, *, bound: bool = True) -> Event:
        """What the run costs; of the rounds what the worst person may, whatever the shares will be,
        or by shares that are fixed."""
        asked = self.asked_in_turn(bound=bound)
        return compose(
            [Repeated(self.task.event(asks, batch), times) for asks, batch, times in asked]
        )

    def asked_in_turn(self, *, bound: bool = True) -> list[tuple[list[Ask], Batch, int]]:
        """The joint releases in their order, of which batch, and how often each."""
        v, none = self.start, np.zeros((self._outputs, 1 + self.task.layout.width))
        before: list[tuple[list[Ask], Batch, int]] = (
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

    def _shares(self, sums: Floats | None, counts: Floats | None) -> Shares:
        """Of what was released; `paid` is over what the worst person is charged for the rounds."""
        allocation, columns, count = self.allocation, columns_of(self.cells), self.cells.count
        if self.adds_groups:
            factors = self._factors(counts)
            part, relative = spent_by_rows(factors, self.task.promise, allocation.spend)
            why = (
                "one sum for all groups: people spend in proportion to the square of their rows' "
                "weight"
            )
            return Shares(
                LEAST_NOISE,
                relative / relative.sum(),
                part * relative,
                why,
                None,
                counts,
                self.is_fixed,
            )
        promise = self.task.promise
        shares, errors, why = share_out(
            allocation, promise, columns, count, sums=sums, counts=counts, weighs=self._weighs
        )
        # against no row: what a batch that is drawn amplifies
        if self.sampling_rate < 1.0 and promise.is_private:
            promise = Promise(promise.epsilon, promise.delta)
        # else each sum keeps its own bound
        paid, part = np.ones(count), LOSSES_PART if self.bounded and self.is_fixed else 0.0
        within = math.sqrt((1.0 - part) * SIGNED**2 + part)
        for column in columns:
            low, high = (
                None if one is None else self._within_rounds(one[column])
                for one in (allocation.least, allocation.most)
            )
            paid[column] = afforded(
                shares[column], 1.0, promise, within, spend=allocation.spend, least=low, most=high
            )
        shares, why = as_paid(shares, paid, columns, why)
        return Shares(allocation.name, shares, paid, why, errors, counts, self.is_fixed)

    def _within_rounds(self, limit: Floats) -> Floats:
        """A limit on all that a person spends, as one on her part of the rounds."""
        return np.maximum(limit * self.z**2 - (1.0 - self.last_part), 0.0) / self.last_part

    @property
    def _weighs(self) -> bool:
        return isinstance(self.task.objective, MeanGroupLoss)

    def _factors(self, counts: Floats | None) -> Floats:
        """What a row of each group counts in a step, over the most that one does."""
        return (
            np.ones(self.cells.count) if counts is None or not self._weighs else factors_of(counts)
        )

    @property
    def _count_noise(self) -> float:
        ask = self._sized()[0]
        return 0.0 if self.is_exact else float(ask.multiplier) * self.task.move(ask.question)

    @cached_property
    def _noise(self) -> float:
        """The deviation of a round's noise where every row counts 1: by group over a norm, of one
        sum over the sensitivity."""
        if self.is_exact:
            return 0.0
        bound = self.gradient(self.start).scale(self.task.layout, self.task.max_sample_weight).bound
        alone = not self.adds_groups or self.sampling_rate < 1.0
        return self._round_multiplier * (
            bound.norm if alone else bound.sensitivity(self.task.promise.neighbours)
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
