"""Least squares whose privacy budget is shared among groups, by Gram matrices: one release for all
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

Guarantees (tests/learning/test_learning_tailored_regression.py):
1. The log is the plan, or finer: no group spends more than was planned.
2. Shares, and coefficients, depend on the rows through the curator's answers alone.
3. Without noise the coefficients are those of weighted least squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...curator import Ask, CellCounts, Curator, GramMatrices, GroupLosses, Linear
from ...facts import Cells
from ...fairness.objectives import Error, MeanGroupLoss
from ...privacy import calibrate
from ...privacy.events import Event, Gaussian, NoOp, compose
from ..allocation import (
    LEAST_NOISE,
    SIZE,
    STANDARD_ERROR,
    Allocation,
    Shares,
    afforded,
    as_paid,
    by_column,
    each_column,
    share_out,
    spent_by_rows,
)
from ..descent import Progress
from ..gaussian import budget_of
from ..least_squares.by_group import MOMENTS_SHARE, GroupRegression, Scaling
from ..least_squares.grams import GroupQuadratics
from ..least_squares.task import RegressionOutcome, RegressionTask
from ..oracles.ground import LEAST_ROWS
from ..systems import NO_GROUPS, columns_of

RESIDUAL_CLIP = 1.0  # of one squared residual of codes in [-1, 1]: half the target's range
GRAM_PART, RESIDUALS_PART, COUNTS_PART = 0.5, 0.25, 0.25  # of stage one
COUNTS, LOSSES = 0.05, 0.05  # of the squared budget, where stage one is not needed


@dataclass(frozen=True, eq=False)
class TailoredRegression:
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

    @cached_property
    def plan(self) -> Event | None:
        """What is fixed before data are read: the price of shares that are, else the worst
        person's."""
        return self.event(bound=not self.is_fixed) if self.task.promise.is_private else None

    # -- what it costs -----------------------------------------------------------------------------

    @property
    def cells(self) -> Cells:
        """The groups."""
        return self.task.cells or NO_GROUPS

    @property
    def measures_errors(self) -> bool:
        """Whether stage one is needed: with one group there is nothing to share."""
        return self.allocation.name == STANDARD_ERROR and self.cells.count > 1

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
    def _weighs(self) -> bool:
        return isinstance(self.task.objective, MeanGroupLoss)

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

    @property
    def last_part(self) -> float:
        """Of the squared budget: the matrices'."""
        return 1.0 - sum(self._parts.values())

    def _multiplier(self, part: str, times: int = 1) -> float:
        share = self._parts.get(part, 0.0)
        return 0.0 if self.task.is_exact or share == 0.0 else self.z * math.sqrt(times / share)

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

    def _asked_before(self, c: Floats) -> list[list[Ask]]:
        """The releases before the matrices; `c`: the precursor's coefficients, which the last of
        them is about."""
        out: list[list[Ask]] = []
        if self.measures_errors:
            out.append([Ask(GramMatrices(None, self._usual), self._multiplier("gram"))])
            out.append([*self._residuals(c), *self._counts()])
            return out
        sizes = self._counts() if self.counts_first else []
        # exact, and free: columns far smaller than others are seen the second time
        if self.scales and self.task.sees_features:
            out += [self._inner._moments()] * 2
        moments = self._inner._moments() if self.scales and not self.task.sees_features else []
        return [*out, [*moments, *sizes]] if moments or sizes else out

    def _asked_after(self, c: Floats) -> list[list[Ask]]:
        """The losses of coefficients that were found in a matrix of all groups."""
        if not self.pools:
            return []
        losses, z = (
            GroupLosses(Linear(c), self.task.cells, "squared", clip=RESIDUAL_CLIP),
            self._multiplier("losses", 2),
        )
        return [[Ask(losses, z), Ask(CellCounts(self.task.cells), z)]]

    def _residuals(self, c: Floats) -> list[Ask]:
        z = self._multiplier("residuals", len(each_column(self.cells)))
        return by_column(
            self.cells, lambda one: GroupLosses(Linear(c), one, "squared", clip=RESIDUAL_CLIP), z
        )

    def _counts(self) -> list[Ask]:
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

    # -- what is done ------------------------------------------------------------------------------

    def run(
        self, curator: Curator, progress: Progress | None = None
    ) -> tuple[RegressionOutcome, Shares]:
        """Release and minimise; the curator is closed afterwards, in every case."""
        try:
            found = self._run(curator, progress)
            curator.finish()
        finally:
            curator.close()
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
        asks = self._asked_before(np.zeros(1 + self.task.layout.width))
        if not asks or (self.task.sees_features and not self.counts_first):
            return scaling, None, None
        answers = curator.answer(asks[-1], purpose="moments of the numbers, counts of the groups")
        if self.scales and not self.task.sees_features:
            scaling, answers = inner.scaling_of(answers).apply(curator), answers[2:]
        return scaling, None, self._floored(np.concatenate(answers)) if self.counts_first else None

    def _stage_one(self, curator: Curator) -> tuple[Scaling | None, Floats, Floats]:
        """Scaling, sums of squared residuals by group, and sizes."""
        task, at = self.task, self.task.layout.numbers
        (before, joint) = self._asked_before(np.zeros(1 + task.layout.width))
        ((matrix,),) = curator.answer(before, purpose="Gram matrix of all rows")
        noise = (
            0.0
            if task.sees_features
            else float(before[0].multiplier) * self.task.move(before[0].question)
        )
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

    def _floored(self, counts: Floats) -> Floats:
        """No group is smaller than two deviations of its count's noise."""
        return np.maximum(counts, max(LEAST_ROWS, 2.0 * self._count_noise))

    @property
    def _count_noise(self) -> float:
        zeros = np.zeros(1 + self.task.layout.width)
        asks = self._counts() if "counts" in self._parts else self._asked_after(zeros)[0][1:]
        return (
            0.0
            if self.task.is_exact
            else float(asks[0].multiplier) * self.task.move(asks[0].question)
        )

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
        allocation, promise, columns = self.allocation, self.task.promise, columns_of(self.cells)
        weighs = self._weighs
        shares, errors, why = share_out(
            allocation, promise, columns, self.cells.count, sums=sums, counts=counts, weighs=weighs
        )
        paid = np.full(self.cells.count, math.inf)
        for column in columns if not self.task.is_exact else ():
            low, high = (
                None if one is None else self._within_stage(one[column])
                for one in (allocation.least, allocation.most)
            )
            budget = self.last_part / self.z**2 / len(columns)
            terms: dict[str, Any] = {"spend": allocation.spend, "least": low, "most": high}
            paid[column] = afforded(shares[column], budget, promise, self._within, **terms)
        shares, why = as_paid(shares, paid, columns, why)
        return Shares(allocation.name, shares, paid, why, errors, counts, self.is_fixed)

    @property
    def _within(self) -> float:
        """How far one row moves a matrix within its group, over the square of its length: sqrt 2,
        and what the grid adds."""
        question, cap = GramMatrices(None, self._inner._clip), self.task.max_sample_weight
        return (question.within + question.scale(self.task.layout, cap).slack) * (1.0 + 1e-12)

    def _within_stage(self, limit: Floats) -> Floats:
        """A limit on all that a person spends, as one on what she is charged for the matrices."""
        return np.maximum(limit - (1.0 - self.last_part) / self.z**2, 0.0)

    @property
    def _pooled_part(self) -> float:
        """Of the budget: with a total to spend the worst person spends less."""
        return spent_by_rows(np.ones(self.cells.count), self.task.promise, self.allocation.spend)[0]

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
        (asks,) = self._asked_after(self._in_scaled_numbers(best.coefficients, scaling))
        sums, counts = curator.answer(asks, purpose="losses and counts of the groups")
        counts = self._floored(counts)
        rows = float(task.stated_rows or max(counts.sum(), LEAST_ROWS))
        noise = (
            0.0 if task.is_exact else float(asks[0].multiplier) * self.task.move(asks[0].question)
        )
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
    if task.is_exact:
        return TailoredRegression(task, allocation, **options)
    budget_of(task.promise)

    def event(z: float) -> Event:
        return TailoredRegression(task, allocation, **options, z=z).event()

    planned = TailoredRegression(
        task, allocation, **options, z=calibrate(task.promise, event, start=10.0).multiplier
    )
    planned._shares(None, None)  # limits that cannot be kept are refused now
    return planned
