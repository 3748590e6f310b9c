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
from functools import partial
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...curator import Curator
from ...fairness.objectives import Error
from ..allocation import Allocation, Shares
from ..descent import Progress
from ..gaussian import quietest
from ..least_squares import RegressionOutcome, RegressionTask, Scaling
from ..oracles import LEAST_ROWS
from ..quadratics import GroupQuadratics
from .described_regression import DescribedRegression


@dataclass(frozen=True, eq=False)
class TailoredRegression(DescribedRegression):
    """A regression that is planned and priced: public values alone. Made by
    `plan_tailored_regression`.

    `z`: the noise over the sensitivity, had all of the budget been spent on one Gaussian; the parts
    of 1/z^2 are `_parts`.
    """

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
        noise = (
            0.0
            if task.is_exact
            else float(measurements[0].multiplier) * self.task.move(measurements[0].question)
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
    make = partial(TailoredRegression, task, allocation, **options)
    planned = quietest(
        task.promise, lambda z: make(z=z), TailoredRegression.event, exact=task.is_exact
    )
    if not task.is_exact:
        planned._shares(None, None)  # limits that cannot be kept are refused now
    return planned
