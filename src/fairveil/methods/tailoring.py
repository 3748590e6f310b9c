"""Learning whose privacy budget is shared among groups: the second stage of the paper of Alabi and
Wiggins, corrected (theory.md#tailoring). `TailoredDescent` descends; `TailoredRegression` finds
least squares in one release of Gram matrices.

*Descent.*

    min over weights v:   h(l(v)) = f(l(v)) + G max(0, g(l(v))),      l_k(v) the mean loss of group
    k over its share

0. Where numbers are to be scaled their moments; the groups' counts.
1. Stage one, where shares follow standard errors: a private precursor on all rows (one Gram matrix
   for squared loss, a few rounds for log loss), then each group's sum of its losses.
2. Rounds: each group's sum of gradients, clipped row by row to a clip, and, where losses are
   bounded, of losses, all in one joint release with noise by share. The step is sum_k (w_k / n_k)
   G_k, w = the gradient of h at released losses.
3. The groups' losses of the answer.

Without bounds, shares or limits that were asked for, w is constant and one sum in which a row of
group k counts w_k / n_k has all that a step needs: its noise is that of the group that weighs most,
where sums apart bring every group's.

`Differs:` sums are divided by released counts, never by true ones; noise is of the sensitivity of a
sum, not of a mean over unknown sizes; the indicator of g >= 0 is a player whose pressure follows
released excesses, and averages their noise.

Guarantees of it (tests/methods/test_methods_tailored_descent.py):
1. The log is the plan, or finer: no group spends more than was planned.
2. Shares, steps and weights depend on the rows through the curator's answers alone.
3. Without noise the answer is that of the non-private solver.

*Steps.* How a step is made of a noisy gradient of groups' losses, and where it may lead: public and
released values alone.

- *steady*: below one over the curvature of sum_k w_k l_k, and so slow that the noise of a round
  walks little of a score's unit.
- *decaying* (appendix E of the paper, after Shamir and Zhang): S / (Q sqrt t), S the diameter of a
  bounded region and Q a bound on the length of a noisy gradient; without momentum.
- of a *module*: a fixed rate over the largest weight of a row, which falls over the last rounds
  where the last iterate counts.

*Regression.* Least squares by Gram matrices: one release for all
rounds (theory.md#gram).

1. Stage one, where shares follow standard errors: the Gram matrix of all rows, whose coefficients
   are the precursor's and whose moments scale the numbers; then, in one joint release, each group's
   sum of the precursor's squared residuals, cut at `RESIDUAL_CLIP`, and its count.
2. Stage two: each group's Gram matrix, with noise by its share. Losses of any coefficients are
   post-processing of these.

The mean error of all rows needs no group's matrix apart: where nothing else was asked for, one
matrix of all rows is released, and the groups' losses of what was found in it. For the mean of the
*groups'* errors one weighed matrix would do, too, with less noise where many groups are small; but
rows far out are clipped, a group whose rows are spread more than others' would lose weight, and
apart every group's matrix says what is left of it. A descent has that release (`tailored_descent`).

Guarantees of it (tests/methods/test_methods_tailored_regression.py):
1. The log is the plan, or finer: no group spends more than was planned.
2. Shares, and coefficients, depend on the rows through the curator's answers alone.
3. Without noise the coefficients are those of weighted least squares.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.events import Event, Gaussian, NoOp, Repeated, compose
from ..core.promise import Promise
from ..core.questions import RECORDS, Facts
from ..curator import (
    FULL,
    ByCell,
    CellCounts,
    Curator,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    Measurement,
    Network,
    NetworkGradient,
    NetworkHistogram,
    Part,
    Poisson,
    Question,
    Weighed,
    largest_of_one,
)
from ..errors import InputError
from ..facts import Cells
from ..fairness.functions import GroupFunction
from ..fairness.objectives import Error, MeanGroupLoss
from .allocation import (
    LEAST_NOISE,
    SIZE,
    STANDARD_ERROR,
    Allocation,
    Shares,
    afforded,
    as_spent,
    by_column,
    each_column,
    factors_of,
    share_out,
    spent_by_rows,
)
from .comparison import Rival
from .descent import Batch, Progress, Reason
from .duals import AscentState, PrimalState, ProjectedAscent
from .gaussian import quietest
from .least_squares import (
    CERTAIN,
    LENGTH,
    MOMENTS_SHARE,
    Ended,
    GroupQuadratics,
    GroupRegression,
    RegressionOutcome,
    RegressionTask,
    Scaling,
    moments_of,
)
from .oracles import LEAST_ROWS
from .primal_dual import of_persons, usual_clip
from .systems import NO_GROUPS, columns_of

if TYPE_CHECKING:
    from ..models.torch_network import Skeleton

ROUNDS, EXACT_ROUNDS = 100, 600
PRECURSOR_PART, ERRORS_PART, SIZES_PART = 0.5, 0.25, 0.25  # of stage one
COUNTS, REPORT = 0.05, 0.08  # of the squared budget
LOSSES_PART = 0.2  # of a round, where losses are bounded
# how far one row moves a sum of vectors within its group; one of losses, which have one sign, by 1
SIGNED = 2.0
WARMING = 25  # rounds of a precursor with log loss
PENALTY = 5.0
MOST = {"log": 3.0, "squared": 1.0}  # of one row's loss
RESIDUAL = 0.5  # of codes in [-1, 1]: what counts in full, times the usual length of a row

LATE = 0.5  # of the rounds, at the end: their mean is the answer
MOMENTUM = 0.9
MODULE_RATE = 0.1
UNIT = {"log": 1.0, "squared": 0.25}  # of losses of codes, in squared ranges of the target
SLOPE = {"log": 1.0, "squared": 2.0}  # gradients of squared loss are asked for by the half
WALKED = {"log": 0.3, "squared": 0.03}  # units of the score, by the noise of one round
REGIONS, STEP_SIZES, ITERATES = ("ball", "box"), ("steady", "decaying"), ("average", "last")
RESIDUAL_CLIP = 1.0  # of one squared residual of codes in [-1, 1]: half the target's range
GRAM_PART, RESIDUALS_PART, COUNTS_PART = 0.5, 0.25, 0.25  # of stage one
LOSSES = 0.05  # of the squared budget, where stage one is not needed


@dataclass(frozen=True)
class Steps:
    """The public choices. `columns`: of a row, a coded feature counting once; `clip`: the longest
    gradient of a row."""

    loss: str
    columns: int
    clip: float
    rounds: int
    radius: float | None = None
    region: str = "ball"
    size: str = "steady"
    iterate: str = "average"
    rate: float | None = None
    of_module: bool = False

    def walked(
        self,
        walk: PrimalState,
        gradient: Floats,
        noise: float,
        heavy: float,
        loudest: float,
        t: int,
    ) -> PrimalState:
        """Round t's step, and back into the region. `noise`: its deviation; `heavy`: the curvature
        of what is minimised, over that of a mean of rows; `loudest`: the noise's weight, over that
        of a sum of all rows alike."""
        momentum = MOMENTUM
        if self.of_module:
            fading = (
                1.0
                if self.iterate == "average"
                else min(1.0, (self.rounds - t + 1) / max(1.0, LATE * self.rounds))
            )
            rate = fading * (MODULE_RATE / max(1.0, loudest) if self.rate is None else self.rate)
        elif self.size == "decaying":
            rate, momentum = self._decaying(gradient.size, noise, heavy) / math.sqrt(t), 0.0
        else:
            rate = self.pace(noise, heavy) if self.rate is None else self.rate
        moved = walk.step(gradient, rate, momentum, count=False)
        weights, late = self._projected(moved.weights), t > (1.0 - LATE) * self.rounds
        return PrimalState(
            weights,
            moved.velocity,
            walk.total + weights if late else walk.total,
            walk.counted + late,
        )

    def pace(self, noise: float, heavy: float = 1.0) -> float:
        """The steady rate."""
        square = 1.0 + self.columns
        usual = 1.0 if self.loss == "log" else 2.0 / (SLOPE[self.loss] * UNIT[self.loss] * square)
        usual /= max(1.0, heavy)
        return (
            usual
            if noise == 0.0
            else min(usual, WALKED[self.loss] * (1.0 - MOMENTUM) / (noise * math.sqrt(square)))
        )

    def _decaying(self, size: int, noise: float, heavy: float) -> float:
        assert self.radius is not None
        reach = 2.0 * self.radius * (math.sqrt(size) if self.region == "box" else 1.0)
        longest = self.clip * SLOPE[self.loss] * UNIT[self.loss] * max(1.0, heavy)
        return reach / math.hypot(longest, math.sqrt(size) * noise)

    def _projected(self, v: Floats) -> Floats:
        if self.radius is None:
            return v
        if self.region == "box":
            return np.clip(v, -self.radius, self.radius)
        return v * min(1.0, self.radius / max(float(np.linalg.norm(v)), 1e-300))


@dataclass(frozen=True, eq=False)
class TailoredState:
    """Between rounds: released values only."""

    walk: PrimalState
    pressure: AscentState
    losses: Floats
    round: int = 0


@dataclass(frozen=True, eq=False)
class PosedTask:
    """What released counts make of the task: f, lines of what is bounded, their bounds, the groups'
    shares and the rows."""

    f: GroupFunction
    lines: Floats
    bounds: Floats
    counts: Floats
    rows: float

    def weights(self, losses: Floats, duals: Floats) -> Floats:
        """What one more unit of each group's loss costs."""
        pulled = duals @ self.lines if len(self.bounds) else 0.0
        return np.asarray(self.f.gradient(losses) + pulled)


class Tailored(ABC):
    """What both methods share: parts of a budget that are fixed before rows are read, and groups
    that are no smaller than the noise of their counts."""

    task: RegressionTask
    allocation: Allocation
    z: float

    @property
    @abstractmethod
    def is_fixed(self) -> bool:
        """Whether shares depend on nothing that is released."""

    @property
    @abstractmethod
    def _parts(self) -> dict[str, float]:
        """Of the squared budget; what is left is for the rounds, or for the matrices."""

    @property
    @abstractmethod
    def _count_noise(self) -> float: ...

    @abstractmethod
    def _limited(self, limit: Floats) -> Floats:
        """A limit on all that a person spends, as one on her part of the last stage."""

    @property
    def is_exact(self) -> bool:
        """Whether nothing gets noise."""
        return self.task.is_exact

    @abstractmethod
    def event(self, *, bound: bool = True) -> Event:
        """What the run costs; `bound`: what the worst person may."""

    @property
    def cells(self) -> Cells:
        """The groups."""
        return self.task.cells or NO_GROUPS

    @property
    def measures_errors(self) -> bool:
        """Whether stage one is needed: with one group there is nothing to share."""
        return self.allocation.name == STANDARD_ERROR and self.cells.count > 1

    @property
    def _weighs(self) -> bool:
        return isinstance(self.task.objective, MeanGroupLoss)

    @cached_property
    def plan(self) -> Event | None:
        """What is fixed before data are read: the price of shares that are, else the worst
        person's."""
        return self.event(bound=not self.is_fixed) if self.task.promise.is_private else None

    def _floored(self, counts: Floats) -> Floats:
        """No group is smaller than two deviations of its count's noise."""
        return np.maximum(counts, max(LEAST_ROWS, 2.0 * self._count_noise))

    @property
    def last_part(self) -> float:
        """Of the squared budget: what the other parts leave."""
        return 1.0 - sum(self._parts.values())

    def _multiplier(self, part: str, times: int = 1) -> float:
        share = self._parts.get(part, 0.0)
        return 0.0 if self.is_exact or share == 0.0 else self.z * math.sqrt(times / share)

    def _shared(
        self,
        sums: Floats | None,
        counts: Floats | None,
        budget: float,
        promise: Promise,
        within: float,
    ) -> Shares:
        """Of what was released; `budget`: of the last stage, in each column; inf: all that there
        is."""
        allocation, columns, count = self.allocation, columns_of(self.cells), self.cells.count
        shares, errors, why = share_out(
            allocation,
            self.task.promise,
            columns,
            count,
            sums=sums,
            counts=counts,
            weighs=self._weighs,
        )
        paid = np.full(count, math.inf)
        for column in columns if math.isfinite(budget) else ():
            low, high = (
                None if one is None else self._limited(one[column])
                for one in (allocation.least, allocation.most)
            )
            terms: dict[str, Any] = {"spend": allocation.spend, "least": low, "most": high}
            paid[column] = afforded(shares[column], budget, promise, within, **terms)
        shares, why = as_spent(shares, paid, columns, why)
        return Shares(allocation.name, shares, paid, why, errors, counts, self.is_fixed)


@dataclass(frozen=True, eq=False)
class TailoredDescent(Tailored):
    """A descent that is planned and priced: public values alone. Made by `plan_tailored_descent`.

    `z`: the noise over the sensitivity, had all of the budget been spent on one Gaussian. `scales`:
    numbers are scaled to mean 0 and deviation 1 by their released moments first, so that columns
    narrow within their bounds are seen. `skeleton`: of a network, descended from where it stands,
    in secret batches of `sampling_rate`.
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

    @property
    def columns(self) -> list[Cells | None]:
        """The groups of each sensitive column, or all of them; None where nobody is
        distinguished."""
        return [None] if self.task.cells is None else [*each_column(self.task.cells)]

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
    def _round_multiplier(self) -> float:
        """Of a round as a whole."""
        return (
            0.0
            if self.is_exact
            else self.z * self.sampling_rate * math.sqrt(self.rounds / self.last_part)
        )

    def _saving(self, factors: Floats) -> float:
        """With a total to spend the worst person spends less of it."""
        return 1.0 / math.sqrt(spent_by_rows(factors, self.allocation.spend)[0])

    def _shares(self, sums: Floats | None, counts: Floats | None) -> Shares:
        """Of what was released; `paid` is over what the worst person is charged for the rounds."""
        if self.adds_groups:
            factors = self._factors(counts)
            part, relative = spent_by_rows(factors, self.allocation.spend)
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
        # against no row: what a batch that is drawn amplifies
        if self.sampling_rate < 1.0 and promise.is_private:
            promise = Promise(promise.epsilon, promise.delta)
        # else each sum keeps its own bound
        part = LOSSES_PART if self.bounded and self.is_fixed else 0.0
        within = math.sqrt((1.0 - part) * SIGNED**2 + part)
        return self._shared(sums, counts, 1.0, promise, within)

    def _limited(self, limit: Floats) -> Floats:
        """A limit on all that a person spends, as one on her part of the rounds."""
        return np.maximum(limit * self.z**2 - (1.0 - self.last_part), 0.0) / self.last_part

    def _factors(self, counts: Floats | None) -> Floats:
        """What a row of each group counts in a step, over the most that one does."""
        return (
            np.ones(self.cells.count) if counts is None or not self._weighs else factors_of(counts)
        )

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

    def gradient(self, v: Floats) -> Question:
        """The question of all rows' gradients."""
        if self.skeleton is not None:
            return NetworkGradient(Network(self.skeleton, v), self._clip)
        return GradientSum(Linear(v), self._clip, loss=self.loss)

    def _moments(self) -> list[Measurement]:
        return moments_of(self.task, self._multiplier("moments", 2))

    def _losses(self, v: Floats, cells: Cells | None) -> Question:
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
        return self.task.noise(measurement)

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

    # -- what is done ------------------------------------------------------------------------------

    def run(
        self, curator: Curator, progress: Progress | None = None
    ) -> tuple[RegressionOutcome, Shares]:
        """Descend; the curator is closed afterwards, in every case. The outcome's coefficients are
        the model's weights."""
        with curator:
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
                c = _before(np.atleast_2d(outcome.coefficients), scaling).reshape(
                    outcome.coefficients.shape
                )
                outcome = replace(outcome, coefficients=c)
        return outcome, replace(shares, counts=counts)

    def _scaled(self, curator: Curator) -> Scaling:
        """Have numbers scaled by their means and deviations."""
        measurements = self._moments()
        return Scaling.of_moments(
            self.task, measurements, curator.answer(measurements, purpose="moments of the numbers")
        ).apply(curator)

    def _begun(self, curator: Curator) -> tuple[Floats | None, Floats, bool]:
        """Sums of the precursor's losses by group, sizes, and whether a released number of rows
        cannot be told from none: a model would be noise alone then, and stays where it is."""
        counts = np.concatenate(curator.answer(self._sized(), purpose="counts of the groups"))
        # The sum of the groups' counts has the noise of all of them.
        certain = CERTAIN * self._count_noise * math.sqrt(len(counts))
        rests = self.task.stated_rows is None and 0.0 < certain >= float(counts.sum())
        counts = self._floored(counts)
        if not self.measures_errors:
            return None, counts, rests
        v = self._precursor(curator, self._rows_of(counts))
        return (
            np.concatenate(curator.answer(self._measured(v), purpose="losses of the groups")),
            counts,
            rests,
        )

    def _rows_of(self, counts: Floats) -> float:
        """What averages divide by: the public number of rows, or the released one."""
        return float(
            self.task.stated_rows or max(float(counts.sum()) / self.cells.per_row, LEAST_ROWS)
        )

    def _precursor(self, curator: Curator, rows: float) -> Floats:
        # The precursor tells groups by their errors alone: any rough model does.
        none = np.zeros((self._outputs, 1 + self.task.layout.width))
        if self.loss == "squared":
            measurements = self._warming(none)
            ((matrix,),) = curator.answer(measurements, purpose="Gram matrix of all rows")
            noise = self.task.noise(measurements[0])
            told = GroupQuadratics.of(matrix[np.newaxis], noise=noise, cells=None)
            return told.best(np.ones(1))[np.newaxis] if told.has_rows else none
        walk, noise = (
            PrimalState.at(none),
            self._multiplier("precursor", WARMING) * usual_clip(self.task.promise) / rows,
        )
        for _ in range(WARMING):
            (total,) = curator.answer(self._warming(walk.weights), purpose="precursor")
            walk = walk.step(total / rows, self.steps.pace(noise), MOMENTUM, count=True)
        return walk.average

    def _posed(self, counts: Floats) -> PosedTask:
        task = self.task
        rows = self._rows_of(counts)
        f, bounds = task.functions(counts / rows, max(LEAST_ROWS, 2.0 * self._count_noise) / rows)
        lines = [
            np.asarray(one.lines.todense() if hasattr(one.lines, "todense") else one.lines)
            for one in bounds
        ]
        listed = [np.full(len(line), one.bound) for line, one in zip(lines, bounds, strict=True)]
        return PosedTask(
            f,
            np.concatenate([np.zeros((0, len(counts))), *lines]),
            np.concatenate([np.zeros(0), *listed]),
            counts,
            rows,
        )

    def _initial(self, posed: PosedTask) -> TailoredState:
        return TailoredState(
            PrimalState.at(self.start),
            AscentState.begin(len(posed.bounds)),
            np.zeros(self.cells.count),
        )

    def _step(
        self, curator: Curator, state: TailoredState, posed: PosedTask, shares: Shares
    ) -> TailoredState:
        """One round."""
        weights = posed.weights(state.losses, state.pressure.duals)
        factors = self._factors(posed.counts) if self.adds_groups else None
        answers = curator.answer(
            self._asked(state.walk.weights, shares, factors),
            self.batch_of(state.round),
            purpose="gradients of the groups",
        )
        scale = SLOPE[self.loss] * UNIT[self.loss] / posed.rows / self._asked_part
        if self.adds_groups:
            # Rows were weighed after their clip by factors of at most 1: the largest weight brings
            # the sum back to its size.
            gradient, loudest = answers[0] * float(weights.max()), float(weights.max())
        else:
            gradient = np.tensordot(weights, np.concatenate(answers[: len(self.columns)]), axes=1)
            # A group's noise goes with 1 / sqrt(what it spends), and independent noises add up as
            # squares.
            loudest = float(np.linalg.norm(weights / np.sqrt(shares.paid)))
        t, pressure, losses = state.round + 1, state.pressure, state.losses
        if self.bounded:
            sums = np.concatenate(answers[len(self.columns) :])
            # A sum of losses is not negative; what noise makes of it may be.
            losses = np.maximum(sums, 0.0) * UNIT[self.loss] / posed.rows
            pressure = self._auditor.step(pressure, posed.lines @ losses - posed.bounds)
        # of the curvature of sum_k w_k l_k, over that of a mean of rows
        heavy = float(weights @ posed.counts) / posed.rows
        noise = self._noise * loudest * scale
        walk = self.steps.walked(state.walk, gradient * scale, noise, heavy, loudest, t)
        return TailoredState(walk, pressure, losses, t)

    def _concluded(
        self,
        curator: Curator,
        v: Floats,
        state: TailoredState,
        posed: PosedTask,
        reason: Reason | Ended,
    ) -> RegressionOutcome:
        measurements = self._reported(v)
        answers, task, half = (
            curator.answer(measurements, purpose="losses of the groups"),
            self.task,
            len(self.columns),
        )
        noise = self.task.noise(measurements[0])
        if self.skeleton is None:
            sums, per_row = np.concatenate(answers[:half]), UNIT[self.loss] / posed.rows
        else:
            sums, per_row, noise = (
                self._errors(answers[:half], answers[half:]),
                1.0 / posed.rows,
                2.0 * noise,
            )
        outcome = task.outcome(
            np.asarray(v).reshape(-1)
            if self._outputs == 1 and self.skeleton is None
            else np.asarray(v),
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
        return replace(
            outcome,
            constant=self._constant(outcome, np.concatenate(answers[half:]), posed, least, noise),
        )

    def _constant(
        self,
        outcome: RegressionOutcome,
        labels: Floats,
        posed: PosedTask,
        least: float,
        noise: float,
    ) -> Rival:
        """The classes' shares as everybody's probabilities: their log loss in each group, from how
        many rows have each label (`labels`); of numbers the middle of the target's bounds, whose
        losses were asked for."""
        count, shares = self._count_noise / posed.rows, posed.counts / posed.rows
        unit = UNIT[self.loss] / posed.rows
        if self.loss == "squared":
            return self.task.rival(
                outcome, labels * unit, shares, least=least, noise=noise * unit, count_noise=count
            )
        sizes = np.maximum(labels.sum(axis=0), LEAST_ROWS)
        surprise = np.minimum(-np.log(sizes / sizes.sum()), MOST["log"])
        losses, of_labels = (
            np.maximum(labels, 0.0) @ surprise * unit,
            noise * float(np.linalg.norm(surprise)) * unit,
        )
        return self.task.rival(
            outcome, losses, shares, least=least, noise=of_labels, count_noise=count
        )

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


def plan_tailored_descent(
    task: RegressionTask, allocation: Allocation, **options: Any
) -> TailoredDescent:
    """The descent whose noise is the least that keeps the promise. `options`: fields of
    `TailoredDescent`."""
    _checks.one_of(REGIONS, region=options.get("region", "ball"))
    _checks.one_of(STEP_SIZES, step_size=options.get("step_size", "steady"))
    _checks.one_of(ITERATES, iterate=options.get("iterate", "average"))
    for name in ("clip", "radius", "learning_rate"):
        if options.get(name) is not None:
            _checks.positive(**{name: options[name]})
    if options.get("step_size") == "decaying" and (
        options.get("radius") is None or options.get("skeleton") is not None
    ):
        remedy = (
            "The steps of appendix E are for a bounded region of coefficients: pass radius=5.0, or "
            "step_size='steady'."
        )
        raise InputError.expected(
            "a radius, of a linear model", of="step_size", got="decaying", remedy=remedy
        )
    if allocation.has_limits and options.get("sampling_rate", 1.0) < 1.0:
        remedy = (
            "Pass sampling_rate=1.0, or leave limits out: they are kept by adding up Gaussians, "
            "which batches are not."
        )
        got = "secret batches"
        raise InputError.expected(
            "all rows in every round", of="min_epsilon, max_epsilon", got=got, remedy=remedy
        )
    exact = not task.promise.is_private
    options.setdefault(
        "rounds", EXACT_ROUNDS if exact and options.get("skeleton") is None else ROUNDS
    )
    make = partial(TailoredDescent, task, allocation, **options)
    planned = quietest(task.promise, lambda z: make(z=z), TailoredDescent.event, exact=exact)
    if not exact:
        planned._shares(None, None)  # limits that cannot be kept are refused now
    return planned


# -- by Gram matrices --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TailoredRegression(Tailored):
    """A regression that is planned and priced: public values alone. Made by
    `plan_tailored_regression`.

    `z`: the noise over the sensitivity, had all of the budget been spent on one Gaussian; the parts
    of 1/z^2 are `_parts`.
    """

    task: RegressionTask
    allocation: Allocation
    stage_one: float = 0.2
    scales: bool = False
    clip: float | None = None
    radius: float | None = None
    rounds: int = 200
    z: float = 0.0

    @property
    def pools(self) -> bool:
        """Whether one matrix of all rows is released, though there are groups."""
        alike = (
            self.allocation.name == LEAST_NOISE
            and not self.allocation.has_limits
            and not self._weighs
        )
        return (
            alike
            and self.task.cells is not None
            and not self.task.sees_features
            and self.cells.mode == "product"
            and self.task.constraint.is_vacuous
        )

    @property
    def is_fixed(self) -> bool:
        """Whether shares depend on nothing that is released."""
        alike = self.allocation.name == LEAST_NOISE and not self.counts_first
        return self.allocation.is_fixed or alike or self.cells.count == 1

    @property
    def counts_first(self) -> bool:
        """Whether the groups' sizes share anything before the matrices are asked for."""
        pairs = self.allocation.spend == "total" or self.task.sees_features
        by_noise = self.allocation.name == LEAST_NOISE and self._weighs and pairs
        return self.cells.count > 1 and (self.allocation.name == SIZE or by_noise)

    @property
    def _parts(self) -> dict[str, float]:
        """Of the squared budget; what is left is for the matrices."""
        task = self.task
        out: dict[str, float] = {}
        if self.measures_errors:
            out["gram"] = 0.0 if task.sees_features else self.stage_one * GRAM_PART
            out["residuals"], out["counts"] = (
                self.stage_one * RESIDUALS_PART,
                self.stage_one * COUNTS_PART,
            )
        elif self.scales and not task.sees_features:
            out["moments"] = MOMENTS_SHARE
        if self.counts_first:
            out["counts"] = COUNTS
        if self.pools:
            out["losses"] = LOSSES
        return out

    def event(self, *, bound: bool = True) -> Event:
        """What the run costs; of the matrices what the worst person may, whatever the shares will
        be, or by shares that are fixed."""
        none = np.zeros(1 + self.task.layout.width)
        before, after = self._asked_before(none), self._asked_after(none)
        matrices = NoOp() if self.task.is_exact else self._matrices(bound)
        return compose(
            [
                *(self.task.event(one) for one in before),
                matrices,
                *(self.task.event(one) for one in after),
            ]
        )

    def _matrices(self, bound: bool) -> Event:
        columns = each_column(self.cells)
        if self.task.cells is None or self.pools:
            return Gaussian(
                self.z / math.sqrt(self.last_part * (1.0 if bound else self._pooled_part))
            )
        if bound:
            return compose(
                [Gaussian(self.z * math.sqrt(len(columns) / self.last_part))] * len(columns)
            )
        tailored = 1.0 / np.sqrt(self._shares(None, None).paid)
        clip = self._inner._clip
        return self.task.event(by_column(self.cells, lambda one: GramMatrices(one, clip), tailored))

    def _asked_before(self, c: Floats) -> list[list[Measurement]]:
        """The releases before the matrices; `c`: the precursor's coefficients, which the last of
        them is about."""
        out: list[list[Measurement]] = []
        if self.measures_errors:
            out.append([Measurement(GramMatrices(None, self._usual), self._multiplier("gram"))])
            out.append([*self._residuals(c), *self._counts()])
            return out
        sizes = self._counts() if self.counts_first else []
        # exact, and free: columns far smaller than others are seen the second time
        if self.scales and self.task.sees_features:
            out += [self._inner._moments()] * 2
        moments = self._inner._moments() if self.scales and not self.task.sees_features else []
        return [*out, [*moments, *sizes]] if moments or sizes else out

    def _asked_after(self, c: Floats) -> list[list[Measurement]]:
        """The losses of coefficients that were found in a matrix of all groups."""
        if not self.pools:
            return []
        losses, z = (
            GroupLosses(Linear(c), self.task.cells, "squared", clip=RESIDUAL_CLIP),
            self._multiplier("losses", 2),
        )
        return [[Measurement(losses, z), Measurement(CellCounts(self.task.cells), z)]]

    def _residuals(self, c: Floats) -> list[Measurement]:
        z = self._multiplier("residuals", len(each_column(self.cells)))
        return by_column(
            self.cells, lambda one: GroupLosses(Linear(c), one, "squared", clip=RESIDUAL_CLIP), z
        )

    def _counts(self) -> list[Measurement]:
        return by_column(
            self.cells, CellCounts, self._multiplier("counts", len(each_column(self.cells)))
        )

    @property
    def _usual(self) -> float:
        """The longest row of codes: nothing is clipped."""
        return math.sqrt(1.0 + self.task.layout.numbers + len(self.task.layout.code_sizes))

    @property
    def _inner(self) -> GroupRegression:
        """What scales numbers, asks for matrices, and finds coefficients in them."""
        # with a stage one its matrix has the moments
        moments = self._multiplier("moments", 2) or self.z
        options: dict[str, Any] = {
            "scales": self.scales,
            "clip": self.clip,
            "radius": self.radius,
            "rounds": self.rounds,
        }
        z = 0.0 if self.task.is_exact else self.z / math.sqrt(self.last_part)
        return GroupRegression(self.task, **options, moments_multiplier=moments, multiplier=z)

    @property
    def _count_noise(self) -> float:
        zeros = np.zeros(1 + self.task.layout.width)
        measurements = (
            self._counts() if "counts" in self._parts else self._asked_after(zeros)[0][1:]
        )
        return self.task.noise(measurements[0])

    def _shares(self, sums: Floats | None, counts: Floats | None) -> Shares:
        """Of what was released."""
        if self.pools:
            each = self._pooled_part * self.last_part / self.z**2 if self.z > 0.0 else math.inf
            equal = np.full(self.cells.count, 1.0 / self.cells.count)
            why = "one sum of all rows: everybody spends the same"
            return Shares(
                LEAST_NOISE,
                equal,
                np.full(self.cells.count, each),
                why,
                None,
                counts,
                self.is_fixed,
            )
        columns = len(columns_of(self.cells))
        budget = math.inf if self.is_exact else self.last_part / self.z**2 / columns
        within = 1.0 if self.is_exact else self._within
        return self._shared(sums, counts, budget, self.task.promise, within)

    @property
    def _within(self) -> float:
        """How far one row moves a matrix within its group, over the square of its length: sqrt 2,
        and what the grid adds."""
        facts = Facts(self.task.layout, RECORDS, self.task.max_sample_weight)
        one = GramMatrices(None, self._inner._clip).sum(facts)
        return (one.within + one.slack) * (1.0 + 1e-12)

    def _limited(self, limit: Floats) -> Floats:
        """A limit on all that a person spends, as one on what she is charged for the matrices."""
        return np.maximum(limit - (1.0 - self.last_part) / self.z**2, 0.0)

    @property
    def _pooled_part(self) -> float:
        """Of the budget: with a total to spend the worst person spends less."""
        return spent_by_rows(np.ones(self.cells.count), self.allocation.spend)[0]

    # -- what is done ------------------------------------------------------------------------------

    def run(
        self, curator: Curator, progress: Progress | None = None
    ) -> tuple[RegressionOutcome, Shares]:
        """Release and minimise; the curator is closed afterwards, in every case."""
        with curator:
            found = self._run(curator, progress)
            curator.finish()
        return found

    def _run(self, curator: Curator, progress: Progress | None) -> tuple[RegressionOutcome, Shares]:
        inner = self._inner
        scaling, sums, counts = (
            self._stage_one(curator) if self.measures_errors else self._begun(curator)
        )
        shares = self._shares(sums, counts)
        if self.pools:
            return self._pooled(curator, scaling, shares, progress)
        tailored = (
            None if self.task.is_exact or self.task.cells is None else 1.0 / np.sqrt(shares.paid)
        )
        quadratics = inner.matrices(curator, scaling, tailored)
        shares = replace(
            shares, counts=quadratics.shares * quadratics.rows if counts is None else counts
        )
        return inner.found(quadratics, scaling, progress), shares

    def _begun(self, curator: Curator) -> tuple[Scaling | None, None, Floats | None]:
        """Without a stage one: moments and counts, as far as they are needed, in one release."""
        inner = self._inner
        scaling: Scaling | None = None
        if self.task.sees_features:
            scaling = inner.scaled(curator)
        measurements = self._asked_before(np.zeros(1 + self.task.layout.width))
        if not measurements or (self.task.sees_features and not self.counts_first):
            return scaling, None, None
        answers = curator.answer(
            measurements[-1], purpose="moments of the numbers, counts of the groups"
        )
        if self.scales and not self.task.sees_features:
            scaling, answers = inner.scaling_of(answers).apply(curator), answers[2:]
        return scaling, None, self._floored(np.concatenate(answers)) if self.counts_first else None

    def _stage_one(self, curator: Curator) -> tuple[Scaling | None, Floats, Floats]:
        """Scaling, sums of squared residuals by group, and sizes."""
        task, at = self.task, self.task.layout.numbers
        (before, joint) = self._asked_before(np.zeros(1 + task.layout.width))
        ((matrix,),) = curator.answer(before, purpose="Gram matrix of all rows")
        noise = task.noise(before[0])
        last = self._inner._target_last(matrix)
        told = GroupQuadratics.of(last[np.newaxis], noise=noise, cells=None)
        c = (
            np.insert(told.best(np.ones(1)), at, 0.0)
            if told.has_rows
            else np.zeros(1 + task.layout.width)
        )
        scaling = None
        if self.scales:
            diagonal = np.diag(matrix)[1 : 1 + at]
            scaling = Scaling.of(float(matrix[0, 0]), matrix[0, 1 : 1 + at], diagonal, noise)
        joint = self._asked_before(c)[1]
        answers = curator.answer(joint, purpose="squared residuals and counts of the groups")
        half = len(answers) // 2
        if scaling is not None:
            scaling.apply(curator)
        return (
            scaling,
            np.concatenate(answers[:half]),
            self._floored(np.concatenate(answers[half:])),
        )

    def _pooled(
        self, curator: Curator, scaling: Scaling | None, shares: Shares, progress: Progress | None
    ) -> tuple[RegressionOutcome, Shares]:
        """One matrix of all rows, then the groups' losses of what was found in it."""
        task = self.task
        z = 0.0 if task.is_exact else self.z / math.sqrt(self.last_part * self._pooled_part)
        inner = replace(
            self._inner, task=replace(task, cells=None, objective=Error()), multiplier=z
        )
        best = inner.found(inner.matrices(curator, scaling), scaling, progress)
        (measurements,) = self._asked_after(self._in_scaled_numbers(best.coefficients, scaling))
        sums, counts = curator.answer(measurements, purpose="losses and counts of the groups")
        counts = self._floored(counts)
        rows = float(task.stated_rows or max(counts.sum(), LEAST_ROWS))
        noise = task.noise(measurements[0])
        per_row = 0.25 / rows  # of squared residuals of codes, in squared ranges
        outcome = task.outcome(
            best.coefficients,
            sums * per_row,
            counts / rows,
            least=max(LEAST_ROWS, 2.0 * self._count_noise) / rows,
            noise=noise * per_row,
            count_noise=self._count_noise / rows,
            rows=rows,
            gap=best.gap,
            calls=best.calls,
            reason=best.reason,
        )
        return replace(outcome, constant=best.constant, free=best.free), replace(
            shares, counts=counts
        )

    def _in_scaled_numbers(self, c: Floats, scaling: Scaling | None) -> Floats:
        """Coefficients of coded rows as those of the curator's, which were scaled and have the
        target as their last number."""
        at = self.task.layout.numbers
        out = np.insert(c, at, 0.0)
        if scaling is not None:
            numbers = slice(1, at)
            out[0] += float(out[numbers] @ scaling.centre[:-1])
            out[numbers] *= scaling.scale[:-1]
        return out


def plan_tailored_regression(
    task: RegressionTask, allocation: Allocation, **options: Any
) -> TailoredRegression:
    """The regression whose noise is the least that keeps the promise. `options`: fields of
    `TailoredRegression`."""
    for name in ("clip", "radius"):
        if options.get(name) is not None:
            _checks.positive(**{name: options[name]})
    make = partial(TailoredRegression, task, allocation, **options)
    planned = quietest(
        task.promise, lambda z: make(z=z), TailoredRegression.event, exact=task.is_exact
    )
    if not task.is_exact:
        planned._shares(None, None)  # limits that cannot be kept are refused now
    return planned
