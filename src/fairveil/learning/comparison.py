"""A model beside what costs nothing: a constant answer, and a model without constraints into which
constants are mixed.

    error of a constant k     the share of rows of other classes; a constant that is further above a
    bound than the model is
                              no rival of it: "no" to everybody errs little where positives are
                              rare, and misses all of them
    mixing (share s, k)       (1 - s) x the free model + s x the constant k: error and rates are
    mixtures too, so the least s at
                              which it exceeds its bounds by no more than the model does follows
                              from released values

All of it is post-processing of tables (label, decision) and of constraint values, with the noise of
their release. Errors are linear in the tables, so the noise of a difference is known; that of s is
taken to first order. Rows that divide are public, or released with noise that is small beside their
number.

Guarantees (tests/learning/test_learning_comparison.py):
1. Without noise, errors, differences and the mixing share are those of the rows.
2. With noise, a difference of exact errors lies within its deviations as often as those say.
3. A mixture that is returned has the values and the error that are stated of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._types import Floats

CLOSE = 1e-12


@dataclass(frozen=True, eq=False)
class DecisionTables:
    """Rows by (label, decision) of one or many models, and the standard deviation of each number's
    noise (label, decision)."""

    counts: Floats
    noise: Floats

    def of(self, model: int) -> DecisionTable:
        """That of one of them."""
        return DecisionTable(self.counts[model], self.noise)


@dataclass(frozen=True, eq=False)
class DecisionTable:
    """Rows by (label, decision), noisy; `noise`: the standard deviation of each number."""

    counts: Floats
    noise: Floats

    @property
    def classes(self) -> int:
        """How many."""
        return len(self.counts)

    @property
    def errors(self) -> Floats:
        """What counts an error: 1 off the diagonal."""
        return 1.0 - np.eye(self.classes)

    def constant(self, k: int) -> Floats:
        """What counts an error of deciding for k, whatever the row."""
        return np.repeat(
            (np.arange(self.classes) != k).astype(np.float64)[:, np.newaxis], self.classes, axis=1
        )

    def total(self, weights: Floats) -> float:
        """A weighted sum of the numbers."""
        return float((weights * self.counts).sum())

    def deviation(self, weights: Floats) -> float:
        """The standard deviation of that sum."""
        return float(np.sqrt(((weights * self.noise) ** 2).sum()))


@dataclass(frozen=True, eq=False)
class Free:
    """A model without constraints, of the same rows: its weights in the units of coded rows (None
    of a base), its table, and the values of the constraints that it does not know of, with the
    noise of their release and their sampling error."""

    weights: Floats | None
    table: DecisionTable
    values: Floats
    spread: Floats
    sampling: Floats | None = None


@dataclass(frozen=True, eq=False)
class Limits:
    """What is required, and what of it is known: the model's own `values`, with noise of that
    `spread`, the `bounds`, and the values of deciding for one class, whatever the row: `constants`
    (classes, constraints). Where these are no plain numbers but shares of labels, they have noise
    and sampling error too: `doubts` and `drawn`, of the same shape; None: none."""

    values: Floats
    bounds: Floats
    spread: Floats
    constants: Floats
    doubts: Floats | None = None
    drawn: Floats | None = None

    @property
    def goals(self) -> Floats:
        """The bounds; 0 of gaps that are measured and not bounded."""
        return np.where(np.isfinite(self.bounds), self.bounds, 0.0)

    @property
    def worst(self) -> int | None:
        """The constraint that the model is furthest above, or least below; None where there is
        none."""
        excess = np.where(np.isfinite(self.values), self.values - self.goals, -np.inf)
        return int(np.argmax(excess)) if np.isfinite(excess).any() else None

    @property
    def most(self) -> Floats:
        """What each value may be without being further above its bound than the model is
        anywhere."""
        return (
            self.goals
            if self.worst is None
            else self.goals + (self.values - self.goals)[self.worst]
        )

    def admit(self, k: int) -> bool:
        """Whether the constant k is no further above its bounds than the model."""
        values = np.nan_to_num(self.constants[k], nan=0.0)
        return bool((values <= self.most + CLOSE).all())


@dataclass(frozen=True)
class Rival:
    """What a model is compared with: its error, and by how much the model's is larger, with the
    deviation of that. `admitted`: whether it keeps what is required as well as the model does; if
    it does not, its error says nothing against the model."""

    error: float
    difference: float
    noise: float
    admitted: bool = True


@dataclass(frozen=True)
class Constant(Rival):
    """One class for every row."""

    constant: int = 0


@dataclass(frozen=True)
class Mixing(Rival):
    """The free model with a `share` of its answers replaced by the class `constant`."""

    share: float = 0.0
    constant: int = 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was released to compare one model: its own table, the rows that errors are divided by,
    what is required, and a free model's table."""

    table: DecisionTable
    rows: float
    limits: Limits | None = None
    free: Free | None = None

    @property
    def error(self) -> float:
        """The model's own error."""
        return self.table.total(self.table.errors) / self.rows

    @property
    def noise(self) -> float:
        """The deviation of its noise."""
        return self.table.deviation(self.table.errors) / self.rows

    def constant(self) -> Constant:
        """The best constant answer, of those that keep what is required as well as the model if
        there are any."""
        table = self.table
        ranked = [
            (self.limits is None or self.limits.admit(k), table.counts[k].sum(), k)
            for k in range(table.classes)
        ]
        admitted, _, k = max(ranked)
        weights = table.constant(k)
        against = table.errors - weights
        parts = (table.total(weights), table.total(against), table.deviation(against))
        error, difference, noise = (part / self.rows for part in parts)
        return Constant(error, difference, noise, admitted, k)

    def unconstrained(self) -> Rival | None:
        """The free model as it is; admitted where it keeps what is required as well as the model
        does."""
        if self.free is None:
            return None
        own, other = self.table, self.free.table
        error = other.total(other.errors) / self.rows
        noise = math.hypot(own.deviation(own.errors), other.deviation(other.errors)) / self.rows
        mixed = self.mixing()
        return Rival(error, self.error - error, noise, mixed is not None and mixed.share == 0.0)

    def mixing(self) -> Mixing | None:
        """The free model with as few constant answers as bring it no further above its bounds than
        the model is. None where no constant does."""
        if self.limits is None or (worst := self.limits.worst) is None:
            return None
        return self._mixed_to(
            self.limits.most, np.isfinite(self.limits.values), float(self.limits.spread[worst])
        )

    def within(self) -> Mixing | None:
        """The same, down to the bounds themselves."""
        return (
            None
            if self.limits is None
            else self._mixed_to(self.limits.bounds, np.isfinite(self.limits.bounds), 0.0)
        )

    def _mixed_to(self, most: Floats, known: npt.NDArray[np.bool_], doubt: float) -> Mixing | None:
        if self.free is None:
            return None
        known = known & np.isfinite(self.free.values)
        ways = [self._mixed(k, most, known, doubt) for k in range(self.table.classes)]
        return min(
            (way for way in ways if way is not None), key=lambda way: way.error, default=None
        )

    def _mixed(
        self, k: int, most: Floats, known: npt.NDArray[np.bool_], doubt: float
    ) -> Mixing | None:
        assert self.free is not None
        assert self.limits is not None
        free, own, other = self.free, self.table, self.free.table
        share, tight, j = _least_share(free.values, self.limits.constants[k], most, known)
        if math.isnan(share):
            return None
        constant, errors = own.constant(k), own.errors
        of_constant, of_free = own.total(constant) / self.rows, other.total(errors) / self.rows
        error = (1.0 - share) * of_free + share * of_constant
        # The share follows noisy values: it moves by the noise of the value that decides it over
        # that value's way to k's.
        of_constants = (
            0.0 if self.limits.doubts is None else share * float(self.limits.doubts[k, j])
        )
        moved = math.hypot(doubt, (1.0 - share) * float(free.spread[j]), of_constants)
        of_share = moved / tight if tight > CLOSE else 0.0
        parts = (
            own.deviation(errors - share * constant) / self.rows,
            (1.0 - share) * other.deviation(errors) / self.rows,
            (of_constant - of_free) * of_share,
        )
        return Mixing(error, self.error - error, math.hypot(*parts), True, share, k)


def _least_share(
    values: Floats, constant: Floats, most: Floats, known: npt.NDArray[np.bool_]
) -> tuple[float, float, int]:
    """The least share of a constant with which no known value is above `most`; how far that value
    is from the constant's, and its place. NaN where none does."""
    least, highest, tight, at = 0.0, 1.0, 0.0, 0
    for j in np.flatnonzero(known):
        start, end, bound = float(values[j]), float(constant[j]), float(most[j])
        end = start if math.isnan(end) else end
        if start > bound + CLOSE:
            if end > bound + CLOSE:
                return math.nan, 0.0, 0
            needed = (start - bound) / (start - end)
            if needed > least:
                least, tight, at = needed, start - end, int(j)
        elif end > bound + CLOSE:
            highest = min(highest, (bound - start) / (end - start))
    return (least, tight, at) if least <= highest + CLOSE else (math.nan, 0.0, 0)
