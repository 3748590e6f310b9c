"""What decisions do on held-out rows, as one table of counts; and the baselines, which are linear
in it.

A table counts decisions by (group, label, class): expectations where a model is randomized.
Every error, every rate and every mixture with a constant answer is linear in it. So a run keeps the
table, and everything else is found from it later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fairveil.estimators.fitting import notions_of
from fairveil.facts import Cells
from fairveil.fairness import ConstraintSystem, resolve
from sets import Coded

Floats = npt.NDArray[np.float64]


def table_of(law: Floats, rows: Coded, cells: Cells) -> Floats:
    """Counts (groups, labels, classes) of decisions with these probabilities (rows, classes)."""
    table = np.zeros((cells.count, law.shape[1], law.shape[1]))
    for ids in cells.ids(rows.sensitive):
        np.add.at(table, (ids, rows.labels), law)
    return table


@dataclass(frozen=True, eq=False)
class Judge:
    """One constraint on one case."""

    system: ConstraintSystem

    @staticmethod
    def of(constraint: str, cells: Cells, classes: int) -> Judge:
        """Compiled once."""
        return _judge(constraint, cells, classes)

    def values(self, table: Floats) -> Floats:
        """Of every constraint; NaN where no row is in an event."""
        return self.system.exact_values(table, table.sum(axis=2))

    def gap(self, table: Floats) -> float:
        """The largest."""
        return float(np.nanmax(self.values(table)))

    def mixing(self, free: Floats, gap: float) -> float:
        """The least error of a model, of some of whose answers one class takes the place, at no
        more than this gap.

        NaN where no constant answer keeps to the gap either: a rate of misses, say, below every
        mixture's.
        """
        return min(
            (self._mixed(free, k, gap) for k in range(free.shape[2])),
            default=math.nan,
            key=_last_if_none,
        )

    def _mixed(self, free: Floats, k: int, gap: float) -> float:
        constant = constant_table(free, k)
        start, end = self.values(free), self.values(constant)
        known = ~np.isnan(start)
        start, slope = start[known], (end - start)[known]
        low, high = 0.0, 1.0  # of the share of answers replaced
        over, falling, rising = start > gap + 1e-12, slope < 0, slope > 0
        if np.any(over & ~falling):
            return math.nan
        if np.any(over):
            low = float(((gap - start[over]) / slope[over]).max())
        under = ~over & rising
        if np.any(under):
            high = min(high, float(((gap - start[under]) / slope[under]).min()))
        if low > min(1.0, high) + 1e-9:
            return math.nan
        at = [error_of(free) * (1.0 - share) + error_of(constant) * share for share in (low, high)]
        return min(at)

    def constant(self, table: Floats, gap: float) -> float:
        """The least error of one class for everybody, of those at no more than this gap."""
        found = [constant_table(table, k) for k in range(table.shape[2])]
        return min(
            (error_of(one) for one in found if self.gap(one) <= gap + 1e-9), default=math.nan
        )


@lru_cache(maxsize=64)
def _judge(constraint: str, cells: Cells, classes: int) -> Judge:
    return Judge(resolve(notions_of(constraint), cells, tuple(range(classes))))


def constant_table(table: Floats, k: int) -> Floats:
    """The same rows, class k for everybody."""
    return np.asarray(table.sum(axis=2, keepdims=True) * np.eye(table.shape[2])[k])


def error_of(table: Floats) -> float:
    """The share of rows on which the decision is wrong."""
    return 1.0 - float(np.trace(table.sum(axis=0)) / table.sum())


def selected(table: Floats) -> list[float]:
    """Of all rows, the share decided for each class."""
    return [float(share) for share in table.sum(axis=(0, 1)) / table.sum()]


def _last_if_none(value: float) -> float:
    return math.inf if math.isnan(value) else value
