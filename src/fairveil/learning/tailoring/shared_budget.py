"""How a tailored descent shares its budget: among what it releases, and among groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..._types import Floats
from ...core.promise import Promise
from ...curator import FULL, Part, Poisson
from ...facts import Cells
from ...fairness.objectives import MeanGroupLoss
from ..allocation import (
    LEAST_NOISE,
    STANDARD_ERROR,
    Allocation,
    Shares,
    afforded,
    as_spent,
    each_column,
    factors_of,
    share_out,
    spent_by_rows,
)
from ..descent import Batch
from ..least_squares import MOMENTS_SHARE, RegressionTask
from ..systems import NO_GROUPS, columns_of

if TYPE_CHECKING:
    from ...models.torch_network import Skeleton

ROUNDS, EXACT_ROUNDS = 100, 600
PRECURSOR_PART, ERRORS_PART, SIZES_PART = 0.5, 0.25, 0.25  # of stage one
COUNTS, REPORT = 0.05, 0.08  # of the squared budget
LOSSES_PART = 0.2  # of a round, where losses are bounded
# how far one row moves a sum of vectors within its group; one of losses, which have one sign, by 1
SIGNED = 2.0


@dataclass(frozen=True, eq=False)
class SharedBudget:
    """Public values of a shared budget, and who spends which share. See `DescribedDescent`."""

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

    def _saving(self, factors: Floats) -> float:
        """With a total to spend the worst person spends less of it."""
        return 1.0 / math.sqrt(spent_by_rows(factors, self.allocation.spend)[0])

    def _shares(self, sums: Floats | None, counts: Floats | None) -> Shares:
        """Of what was released; `paid` is over what the worst person is charged for the rounds."""
        allocation, columns, count = self.allocation, columns_of(self.cells), self.cells.count
        if self.adds_groups:
            factors = self._factors(counts)
            part, relative = spent_by_rows(factors, allocation.spend)
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
        shares, why = as_spent(shares, paid, columns, why)
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
