"""A tailored regression, in advance of the data: what is asked, at what price, and whose share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._types import Floats
from ...core.events import Event, Gaussian, NoOp, compose
from ...curator import CellCounts, GramMatrices, GroupLosses, Linear, Measurement
from ...facts import Cells
from ...fairness.objectives import MeanGroupLoss
from ..allocation import (
    LEAST_NOISE,
    SIZE,
    STANDARD_ERROR,
    Allocation,
    Shares,
    afforded,
    as_spent,
    by_column,
    each_column,
    share_out,
    spent_by_rows,
)
from ..least_squares import MOMENTS_SHARE, GroupRegression, RegressionTask
from ..oracles import LEAST_ROWS
from ..systems import NO_GROUPS, columns_of

RESIDUAL_CLIP = 1.0  # of one squared residual of codes in [-1, 1]: half the target's range
GRAM_PART, RESIDUALS_PART, COUNTS_PART = 0.5, 0.25, 0.25  # of stage one
COUNTS, LOSSES = 0.05, 0.05  # of the squared budget, where stage one is not needed


@dataclass(frozen=True, eq=False)
class DescribedRegression:
    """What is public of a regression whose budget is shared. Abstract: see `TailoredRegression`.

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

    def _floored(self, counts: Floats) -> Floats:
        """No group is smaller than two deviations of its count's noise."""
        return np.maximum(counts, max(LEAST_ROWS, 2.0 * self._count_noise))

    @property
    def _count_noise(self) -> float:
        zeros = np.zeros(1 + self.task.layout.width)
        measurements = (
            self._counts() if "counts" in self._parts else self._asked_after(zeros)[0][1:]
        )
        return (
            0.0
            if self.task.is_exact
            else float(measurements[0].multiplier) * self.task.move(measurements[0].question)
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
        shares, why = as_spent(shares, paid, columns, why)
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
        return spent_by_rows(np.ones(self.cells.count), self.allocation.spend)[0]
