"""Private descent whose budget is shared among groups: the paper's second stage, corrected (theory.md#tailoring).

    min over weights v:   h(l(v)) = f(l(v)) + G max(0, g(l(v))),      l_k(v) the mean loss of group k over its share

0. Where numbers are to be scaled their moments; the groups' counts.
1. Stage one, where shares follow standard errors: a private precursor on all rows (one Gram matrix for squared loss, a few
   rounds for log loss), then each group's sum of its losses.
2. Rounds: each group's sum of gradients, shortened row by row to a clip, and, where losses are bounded, of losses, all in one
   joint release with noise by share. The step is sum_k (w_k / n_k) G_k, w = the gradient of h at released losses.
3. The groups' losses of the answer.

Without bounds, shares or limits that were asked for, w is constant and one sum in which a row of group k counts w_k / n_k has
all that a step needs: its noise is that of the group that weighs most, where sums apart bring every group's.

`Differs:` sums are divided by released counts, never by true ones; noise is of the sensitivity of a sum, not of a mean over
unknown sizes; the indicator of g >= 0 is a player whose pressure follows released excesses, and averages their noise.

Guarantees (tests/learning/test_learning_tailored_descent.py):
1. The log is the plan, or finer: no group pays more than was planned.
2. Shares, steps and weights depend on the rows through the curator's answers alone.
3. Without noise the answer is that of the non-private solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...curator import (
    FULL,
    Ask,
    ByCell,
    CellCounts,
    Curator,
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
from ...errors import InputError, complaint
from ...facts import Cells
from ...fairness.group_function import GroupFunction
from ...fairness.objectives import MeanGroupLoss
from ...privacy import calibrate
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
from ..comparison import Rival
from ..descent import Batch, Progress, Reason
from ..gaussian import budget_of
from ..lagrangian.duals import AscentState, ProjectedAscent
from ..lagrangian.plan import usual_clip
from ..lagrangian.primal import PrimalState
from ..least_squares.by_group import LENGTH, MOMENTS_SHARE, Scaling, moments_of
from ..least_squares.grams import CERTAIN, GroupQuadratics
from ..least_squares.hull import Ended
from ..least_squares.task import RegressionOutcome, RegressionTask
from ..oracles.ground import LEAST_ROWS
from ..systems import NO_GROUPS, columns_of
from .steps import ITERATES, MOMENTUM, REGIONS, SLOPE, STEP_SIZES, UNIT, Steps

if TYPE_CHECKING:
    from ...models.torch_network import Skeleton

PRECURSOR_PART, ERRORS_PART, SIZES_PART = 0.5, 0.25, 0.25  # of stage one
COUNTS, REPORT = 0.05, 0.08  # of the squared budget
LOSSES_PART = 0.2  # of a round, where losses are bounded
WARMING = 25  # rounds of a precursor with log loss
ROUNDS, EXACT_ROUNDS = 100, 600
PENALTY = 5.0
SIGNED = 2.0  # how far one row moves a sum of vectors within its group; one of losses, which have one sign, by 1
MOST = {"log": 3.0, "squared": 1.0}  # of one row's loss
RESIDUAL = 0.5  # of codes in [-1, 1]: what counts in full, times the usual length of a row


@dataclass(frozen=True, eq=False)
class State:
    """Between rounds: released values only."""

    walk: PrimalState
    pressure: AscentState
    losses: Floats
    round: int = 0


@dataclass(frozen=True, eq=False)
class PosedTask:
    """What released counts make of the task: f, lines of what is bounded, their bounds, the groups' shares and the rows."""

    f: GroupFunction
    lines: Floats
    bounds: Floats
    counts: Floats
    rows: float

    def weights(self, losses: Floats, duals: Floats) -> Floats:
        """What one more unit of each group's loss costs."""
        pulled = duals @ self.lines if len(self.bounds) else 0.0
        return np.asarray(self.f.gradient(losses) + pulled)


@dataclass(frozen=True, eq=False)
class TailoredDescent:
    """A descent that is planned and priced: public values alone. Made by `plan_tailored_descent`.

    `z`: the noise over the sensitivity, had all of the budget been spent on one Gaussian. `scales`: numbers are scaled to mean
    0 and deviation 1 by their released moments first, so that columns narrow within their bounds are seen. `skeleton`: of a
    network, descended from where it stands, in secret batches of `sampling_rate`.
    """

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
        """What is fixed before data are touched: the price of shares that are, else the worst person's."""
        return self.event(bound=not self.is_fixed) if self.task.promise.is_private else None

    # -- public facts ------------------------------------------------------------------------------------------------------

    @property
    def cells(self) -> Cells:
        """The groups."""
        return self.task.cells or NO_GROUPS

    @property
    def columns(self) -> list[Cells | None]:
        """The groups of each sensitive column, or all of them; None where nobody is told apart."""
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
        plain = self.allocation.name == LEAST_NOISE and not self.allocation.has_limits and not self.bounded
        return plain and self.cells.mode == "product"

    @property
    def is_fixed(self) -> bool:
        """Whether shares depend on nothing that is released."""
        pairs = self.allocation.spend == "total" or self.task.sees_features
        alike = self.allocation.name == LEAST_NOISE and not (self._weighs and (self.adds_groups or pairs))
        return self.allocation.is_fixed or alike or self.cells.count == 1

    @property
    def batch(self) -> Batch:
        """What a round asks, as it is priced."""
        return FULL if self.sampling_rate >= 1.0 else Poisson(self.sampling_rate)

    def batch_of(self, round: int) -> Batch:
        """What a round asks: without privacy fixed parts take turns, since no batch need be secret."""
        return Part(round % self._parts_of_rows, self._parts_of_rows) if self._parts_of_rows > 1 else self.batch

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
            parts = {"precursor": s * PRECURSOR_PART, "errors": s * ERRORS_PART, "counts": s * SIZES_PART}
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
        return 0.0 if self.is_exact or part not in self._parts else self.z * math.sqrt(times / self._parts[part])

    @property
    def _round_multiplier(self) -> float:
        """Of a round as a whole."""
        return 0.0 if self.is_exact else self.z * self.sampling_rate * math.sqrt(self.rounds / self.last_part)

    # -- what is asked -----------------------------------------------------------------------------------------------------

    @property
    def _clip(self) -> float:
        if self.clip is not None:
            return self.clip
        if self.loss == "log":
            return usual_clip(self.task.promise)
        return RESIDUAL * math.sqrt(1.0 + self.task.layout.numbers + len(self.task.layout.code_sizes))

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
            return [Ask(GramMatrices(None, longest, with_target=True), self._multiplier("precursor"))]
        return [Ask(GradientSum(Linear(v), usual_clip(self.task.promise)), self._multiplier("precursor", WARMING))]

    def _sized(self) -> list[Ask]:
        z = self._multiplier("counts", len(self.columns))
        return [Ask(CellCounts(one), z, column=j) for j, one in enumerate(self.columns)]

    def _measured(self, v: Floats) -> list[Ask]:
        """The precursor's losses by group."""
        z = self._multiplier("errors", len(self.columns))
        return [Ask(self._losses(v, one), z, column=j) for j, one in enumerate(self.columns)]

    def _reported(self, v: Floats) -> list[Ask]:
        """The answer's losses, or a network's errors, by group; and what one answer for everybody
        would lose: from how many rows have each label, or, of numbers, by the losses of coefficients 0."""
        z = self._multiplier("report", 2 * len(self.columns))
        if self.loss == "squared" and self.skeleton is None:
            return [Ask(self._losses(at, one), z, column=j) for at in (v, self.start) for j, one in enumerate(self.columns)]
        labels = [Ask(CellCounts(one, by_label=True), z, column=j) for j, one in enumerate(self.columns)]
        if self.skeleton is None:
            return [*(Ask(self._losses(v, one), z, column=j) for j, one in enumerate(self.columns)), *labels]
        model = Network(self.skeleton, v)
        histograms = [Ask(NetworkHistogram(model, one, by_label=True), z, column=j) for j, one in enumerate(self.columns)]
        return [*histograms, *labels]

    def _asked(self, v: Floats, shares: Shares | None, factors: Floats | None) -> list[Ask]:
        """A round. Without shares: what it costs at most, every group's noise that of the worst person."""
        m = self._round_multiplier * math.sqrt(len(self.columns))
        gradient = self.gradient(v)
        if self.adds_groups:
            if self.task.cells is None or not self._weighs:
                return [Ask(gradient, m * (1.0 if shares is None else self._saving(np.ones(self.cells.count))))]
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
            asks += by_column(self.cells, lambda one: self._losses(v, one), each / math.sqrt(parts[1]))
        return asks

    def _saving(self, factors: Floats) -> float:
        """With a total to spend the worst person pays less of it."""
        return 1.0 / math.sqrt(spent_by_rows(factors, self.task.promise, self.allocation.spend)[0])

    def event(self, *, bound: bool = True) -> Event:
        """What the run costs; of the rounds what the worst person may, whatever the shares will be, or by shares that are
        fixed."""
        asked = self.asked_in_turn(bound=bound)
        return compose([Repeated(self.task.event(asks, batch), times) for asks, batch, times in asked])

    def asked_in_turn(self, *, bound: bool = True) -> list[tuple[list[Ask], Batch, int]]:
        """The joint releases in their order, of which batch, and how often each."""
        v, none = self.start, np.zeros((self._outputs, 1 + self.task.layout.width))
        before: list[tuple[list[Ask], Batch, int]] = [(self._moments(), FULL, 1)] if self.scales else []
        before.append((self._sized(), FULL, 1))
        if self.measures_errors:
            before.append((self._warming(none), FULL, WARMING if self.loss == "log" else 1))
            before.append((self._measured(none), FULL, 1))
        shares = None if bound else self._shares(None, None)
        return [*before, (self._asked(v, shares, None), self.batch, self.rounds), (self._reported(v), FULL, 1)]

    # -- shares ------------------------------------------------------------------------------------------------------------

    def _shares(self, sums: Floats | None, counts: Floats | None) -> Shares:
        """Of what was released; `paid` is over what the worst person pays for the rounds."""
        allocation, columns, count = self.allocation, columns_of(self.cells), self.cells.count
        if self.adds_groups:
            factors = self._factors(counts)
            part, relative = spent_by_rows(factors, self.task.promise, allocation.spend)
            why = "one sum for all groups: people pay by the square of what their rows weigh"
            return Shares(LEAST_NOISE, relative / relative.sum(), part * relative, why, None, counts, self.is_fixed)
        promise = self.task.promise
        shares, errors, why = share_out(allocation, promise, columns, count, sums=sums, counts=counts, weighs=self._weighs)
        if self.sampling_rate < 1.0 and promise.is_private:  # against no row: what a batch that is drawn amplifies
            promise = Promise(promise.epsilon, promise.delta)
        paid, part = np.ones(count), LOSSES_PART if self.bounded and self.is_fixed else 0.0  # else each sum keeps its own bound
        within = math.sqrt((1.0 - part) * SIGNED**2 + part)
        for column in columns:
            low, high = (
                None if one is None else self._within_rounds(one[column]) for one in (allocation.least, allocation.most)
            )
            paid[column] = afforded(shares[column], 1.0, promise, within, spend=allocation.spend, least=low, most=high)
        shares, why = as_paid(shares, paid, columns, why)
        return Shares(allocation.name, shares, paid, why, errors, counts, self.is_fixed)

    def _within_rounds(self, limit: Floats) -> Floats:
        """A limit on all that a person pays, as one on her part of the rounds."""
        return np.maximum(limit * self.z**2 - (1.0 - self.last_part), 0.0) / self.last_part

    @property
    def _weighs(self) -> bool:
        return isinstance(self.task.objective, MeanGroupLoss)

    def _factors(self, counts: Floats | None) -> Floats:
        """What a row of each group counts in a step, over the most that one does."""
        return np.ones(self.cells.count) if counts is None or not self._weighs else factors_of(counts)

    # -- what is done ------------------------------------------------------------------------------------------------------

    def run(self, curator: Curator, progress: Progress | None = None) -> tuple[RegressionOutcome, Shares]:
        """Descend; the curator is closed afterwards, come what may. The outcome's coefficients are the model's weights."""
        try:
            scaling = self._scaled(curator) if self.scales else None
            sums, counts, rests = self._begun(curator)
            shares, posed = self._shares(sums, counts), self._posed(counts)
            state, reason = self._initial(posed), Ended.NOTHING if rests else Reason.ROUNDS
            while state.round < self.rounds:
                state = self._step(curator, state, posed, shares)
                if progress is not None:
                    progress(state.round, self.rounds)
            found = state.walk.average if self.iterate == "average" else state.walk.weights
            v = self.start if rests else found
            outcome = self._concluded(curator, v, state, posed, reason)
            curator.finish()
            if scaling is not None:
                c = _before(np.atleast_2d(outcome.coefficients), scaling).reshape(outcome.coefficients.shape)
                outcome = replace(outcome, coefficients=c)
        finally:
            curator.close()
        return outcome, replace(shares, counts=counts)

    def _scaled(self, curator: Curator) -> Scaling:
        """Have numbers scaled by their means and deviations."""
        asks = self._moments()
        return Scaling.of_moments(self.task, asks, curator.answer(asks, purpose="moments of the numbers")).apply(curator)

    def _begun(self, curator: Curator) -> tuple[Floats | None, Floats, bool]:
        """Sums of the precursor's losses by group, sizes, and whether a released number of rows cannot be told from none: a
        model would be noise alone then, and stays where it is."""
        counts = np.concatenate(curator.answer(self._sized(), purpose="counts of the groups"))
        certain = CERTAIN * self._count_noise * math.sqrt(len(counts))
        rests = self.task.stated_rows is None and 0.0 < certain >= float(counts.sum())
        counts = self._floored(counts)
        if not self.measures_errors:
            return None, counts, rests
        v = self._precursor(curator, self._rows_of(counts))
        return np.concatenate(curator.answer(self._measured(v), purpose="losses of the groups")), counts, rests

    def _rows_of(self, counts: Floats) -> float:
        """What averages divide by: the public number of rows, or the released one."""
        return float(self.task.stated_rows or max(float(counts.sum()) / self.cells.per_row, LEAST_ROWS))

    def _precursor(self, curator: Curator, rows: float) -> Floats:
        none = np.zeros((self._outputs, 1 + self.task.layout.width))
        if self.loss == "squared":
            asks = self._warming(none)
            ((matrix,),) = curator.answer(asks, purpose="Gram matrix of all rows")
            noise = 0.0 if self.task.sees_features else float(asks[0].multiplier) * self.task.move(asks[0].question)
            told = GroupQuadratics.of(matrix[np.newaxis], noise=noise, cells=None)
            return told.best(np.ones(1))[np.newaxis] if told.has_rows else none
        walk, noise = PrimalState.at(none), self._multiplier("precursor", WARMING) * usual_clip(self.task.promise) / rows
        for _ in range(WARMING):
            (total,) = curator.answer(self._warming(walk.weights), purpose="precursor")
            walk = walk.step(total / rows, self.steps.pace(noise), MOMENTUM, count=True)
        return walk.average

    def _floored(self, counts: Floats) -> Floats:
        """No group is smaller than two deviations of its count's noise."""
        return np.maximum(counts, max(LEAST_ROWS, 2.0 * self._count_noise))

    @property
    def _count_noise(self) -> float:
        ask = self._sized()[0]
        return 0.0 if self.is_exact else float(ask.multiplier) * self.task.move(ask.question)

    def _posed(self, counts: Floats) -> PosedTask:
        task = self.task
        rows = self._rows_of(counts)
        f, bounds = task.functions(counts / rows, max(LEAST_ROWS, 2.0 * self._count_noise) / rows)
        lines = [np.asarray(one.lines.todense() if hasattr(one.lines, "todense") else one.lines) for one in bounds]
        listed = [np.full(len(line), one.bound) for line, one in zip(lines, bounds, strict=True)]
        return PosedTask(
            f, np.concatenate([np.zeros((0, len(counts))), *lines]), np.concatenate([np.zeros(0), *listed]), counts, rows
        )

    def _initial(self, posed: PosedTask) -> State:
        return State(PrimalState.at(self.start), AscentState.begin(1, len(posed.bounds)), np.zeros(self.cells.count))

    def _step(self, curator: Curator, state: State, posed: PosedTask, shares: Shares) -> State:
        """One round."""
        weights = posed.weights(state.losses, state.pressure.duals[0])
        factors = self._factors(posed.counts) if self.adds_groups else None
        answers = curator.answer(
            self._asked(state.walk.weights, shares, factors), self.batch_of(state.round), purpose="gradients of the groups"
        )
        scale = SLOPE[self.loss] * UNIT[self.loss] / posed.rows / self._asked_part
        if self.adds_groups:
            gradient, loudest = answers[0] * float(weights.max()), float(weights.max())
        else:
            gradient = np.tensordot(weights, np.concatenate(answers[: len(self.columns)]), axes=1)
            loudest = float(np.linalg.norm(weights / np.sqrt(shares.paid)))
        t, pressure, losses = state.round + 1, state.pressure, state.losses
        if self.bounded:
            sums = np.concatenate(answers[len(self.columns) :])
            losses = np.maximum(sums, 0.0) * UNIT[self.loss] / posed.rows
            pressure = self._auditor.step(pressure, (posed.lines @ losses - posed.bounds)[np.newaxis])
        heavy = float(weights @ posed.counts) / posed.rows  # of the curvature of sum_k w_k l_k, over that of a mean of rows
        noise = self._noise * loudest * scale
        walk = self.steps.walked(state.walk, gradient * scale, noise, heavy, loudest, t)
        return State(walk, pressure, losses, t)

    @cached_property
    def _noise(self) -> float:
        """The deviation of a round's noise where every row counts 1: by group over a norm, of one sum over the sensitivity."""
        if self.is_exact:
            return 0.0
        bound = self.gradient(self.start).scale(self.task.layout, self.task.max_sample_weight).bound
        alone = not self.adds_groups or self.sampling_rate < 1.0
        return self._round_multiplier * (bound.norm if alone else bound.sensitivity(self.task.promise.neighbours))

    @property
    def _auditor(self) -> ProjectedAscent:
        """How hard bounds are pressed: no harder than the penalty."""
        most = PENALTY if self.task.penalty is None else self.task.penalty
        return ProjectedAscent(self.rounds, most)

    def _concluded(
        self, curator: Curator, v: Floats, state: State, posed: PosedTask, reason: Reason | Ended
    ) -> RegressionOutcome:
        asks = self._reported(v)
        answers, task, half = curator.answer(asks, purpose="losses of the groups"), self.task, len(self.columns)
        noise = 0.0 if self.is_exact else float(asks[0].multiplier) * self.task.move(asks[0].question)
        if self.skeleton is None:
            sums, per_row = np.concatenate(answers[:half]), UNIT[self.loss] / posed.rows
        else:
            sums, per_row, noise = self._errors(answers[:half], answers[half:]), 1.0 / posed.rows, 2.0 * noise
        outcome = task.outcome(
            np.asarray(v).reshape(-1) if self._outputs == 1 and self.skeleton is None else np.asarray(v),
            sums * per_row,
            posed.counts / posed.rows,
            least=max(LEAST_ROWS, 2.0 * self._count_noise) / posed.rows,
            noise=noise * per_row,
            count_noise=self._count_noise / posed.rows,
            rows=posed.rows,
            gap=None,
            calls=state.round,
            reason=reason.value,
            largest=self._largest,
        )
        if self.skeleton is not None:
            return outcome
        least = max(LEAST_ROWS, 2.0 * self._count_noise) / posed.rows
        return replace(outcome, constant=self._constant(outcome, np.concatenate(answers[half:]), posed, least, noise))

    def _constant(self, outcome: RegressionOutcome, labels: Floats, posed: PosedTask, least: float, noise: float) -> Rival:
        """The classes' shares as everybody's probabilities: their log loss in each group, from how many rows have each label
        (`labels`); of numbers the middle of the target's bounds, whose losses were asked for."""
        count, shares = self._count_noise / posed.rows, posed.counts / posed.rows
        unit = UNIT[self.loss] / posed.rows
        if self.loss == "squared":
            return self.task.rival(outcome, labels * unit, shares, least=least, noise=noise * unit, count_noise=count)
        sizes = np.maximum(labels.sum(axis=0), LEAST_ROWS)
        surprise = np.minimum(-np.log(sizes / sizes.sum()), MOST["log"])
        losses, of_labels = np.maximum(labels, 0.0) @ surprise * unit, noise * float(np.linalg.norm(surprise)) * unit
        return self.task.rival(outcome, losses, shares, least=least, noise=of_labels, count_noise=count)

    @property
    def _largest(self) -> float:
        """What one row's loss is at most: errors of a module's decisions are 0 or 1, and losses with noise are cut."""
        if self.skeleton is not None:
            return 1.0
        return math.inf if self.is_exact and self.loss == "log" else MOST[self.loss] * UNIT[self.loss]

    def _errors(self, histograms: Sequence[Floats], counts: Sequence[Floats]) -> Floats:
        """How many decisions of each group are wrong."""
        decided, sizes = np.concatenate(histograms), np.concatenate(counts)
        if decided.shape[-1] == 1:
            return np.asarray(decided[:, 0, 0] + sizes[:, 1] - decided[:, 1, 0])
        return np.asarray(sizes.sum(axis=1) - np.einsum("kll->k", decided))


def _before(weights: Floats, scaling: Scaling) -> Floats:
    """Coefficients (outputs, 1 + width) of scaled numbers as those of the numbers before."""
    out, numbers = weights.copy(), slice(1, 1 + len(scaling.scale))
    out[:, numbers] = weights[:, numbers] / scaling.scale
    out[:, 0] -= out[:, numbers] @ scaling.centre
    return out


def plan_tailored_descent(task: RegressionTask, allocation: Allocation, **options: Any) -> TailoredDescent:
    """The descent whose noise is the least that keeps the promise. `options`: fields of `TailoredDescent`."""
    _checks.one_of(REGIONS, region=options.get("region", "ball"))
    _checks.one_of(STEP_SIZES, step_size=options.get("step_size", "steady"))
    _checks.one_of(ITERATES, iterate=options.get("iterate", "average"))
    for name in ("clip", "radius", "learning_rate"):
        if options.get(name) is not None:
            _checks.positive(**{name: options[name]})
    if options.get("step_size") == "decaying" and (options.get("radius") is None or options.get("skeleton") is not None):
        remedy = "The steps of appendix E are for a bounded region of coefficients: pass radius=5.0, or step_size='steady'."
        raise InputError(complaint(expected="a radius, of a linear model", of="step_size", got="decaying", remedy=remedy))
    if allocation.has_limits and options.get("sampling_rate", 1.0) < 1.0:
        remedy = "Pass sampling_rate=1.0, or leave limits out: they are kept by adding up Gaussians, which batches are not."
        got = "secret batches"
        raise InputError(complaint(expected="all rows in every round", of="min_epsilon, max_epsilon", got=got, remedy=remedy))
    exact = not task.promise.is_private
    options.setdefault("rounds", EXACT_ROUNDS if exact and options.get("skeleton") is None else ROUNDS)
    if exact:
        return TailoredDescent(task, allocation, **options)
    budget_of(task.promise)

    def event(z: float) -> Event:
        return TailoredDescent(task, allocation, **options, z=z).event()

    planned = TailoredDescent(task, allocation, **options, z=calibrate(task.promise, event, start=10.0).multiplier)
    planned._shares(None, None)  # limits that cannot be kept are refused now
    return planned
