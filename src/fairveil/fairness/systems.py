"""Constraints as arrays over a histogram by cell, label and class: what a solver works with.

With H[c, y, k] the (weighted) number of rows of cell c and label y whose prediction is class k, and
N[c, y] the number of rows, the rate of event E and outcome O is

    rate = sum_{(c, y, k) in E and O} H[c, y, k]  /  max(sum_{(c, y) in E} N[c, y], floor)

and a constraint's value is a fixed combination of rates. For N fixed it is linear in H, so

    L(duals) = sum_j duals_j (value_j - bound_j),     cell_costs = dL / dH[c, y, k],

and a row whose soft prediction is q adds q to H in each of its cells: dL/dq is the sum of the costs
of those cells. This is the per-row decomposition of RaCO-DP (its sec. 4.2), with N and H noisy or
not. Everything here is post-processing.

H and N may be noisy. They must be in one unit: both of all rows, or both of an (expected) batch.
Leading axes (many models at once) are carried through, and no model's numbers depend on which
others are asked about with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _checks
from .._types import Floats
from ..errors import InputError

# entries of a Jacobian: a sparse product of a smaller one costs more than all its zeros
MOST_DENSE = 1 << 12


@dataclass(frozen=True, eq=False)
class ConstraintSystem:
    """Constraints as sparse arrays of public values, never changed after they are made.

    `shape` = (cells, labels, classes). `members` (events, cells x labels): which rows an event is
    about. `numerators` (rates, cells x labels x classes): which predictions a rate counts;
    `event_of` (rates,): out of which event. `coefficients` (constraints, rates), `bounds` and
    `names` (constraints,).
    """

    shape: tuple[int, int, int]
    members: Any
    numerators: Any
    event_of: npt.NDArray[np.intp]
    coefficients: Any
    bounds: Floats
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def exact_values(
        self,
        hard_histogram: npt.ArrayLike,
        counts: npt.ArrayLike,
        floor: float | None = None,
        *,
        clip: bool = False,
    ) -> Floats:
        """Each constraint's value from a histogram of *decisions*: what the dual step and the audit
        use. (..., constraints).

        An event without rows (`counts` not above 0) and without a `floor` is undefined: NaN. `clip`
        projects each rate on [0, 1] first, where noise may have pushed it out.
        """
        return self._values(hard_histogram, counts, floor, clip)

    def surrogate_values(
        self,
        soft_histogram: npt.ArrayLike,
        counts: npt.ArrayLike,
        floor: float | None = None,
        *,
        clip: bool = False,
    ) -> Floats:
        """Each constraint's value from a histogram of *soft predictions*: what the gradient
        follows. (..., constraints)."""
        return self._values(soft_histogram, counts, floor, clip)

    def excess(self, values: npt.ArrayLike) -> Floats:
        """value - bound: above 0 where broken, NaN where undefined."""
        return np.asarray(values, dtype=np.float64) - self.bounds

    def lagrangian(self, duals: npt.ArrayLike, values: npt.ArrayLike) -> Floats:
        """sum_j duals_j (value_j - bound_j) over the constraints that are defined."""
        return np.asarray(
            np.nansum(np.asarray(duals, dtype=np.float64) * self.excess(values), axis=-1)
        )

    def rates(
        self,
        histogram: npt.ArrayLike,
        counts: npt.ArrayLike,
        floor: float | None = None,
        *,
        clip: bool = False,
    ) -> Floats:
        """The value of each distinct rate, (..., rates)."""
        top = _apply(self.numerators, _tail(histogram, self.shape, "histogram"))
        rates = top / self.event_sizes(counts, floor)[..., self.event_of]
        return np.clip(rates, 0.0, 1.0) if clip else rates

    def event_sizes(self, counts: npt.ArrayLike, floor: float | None = None) -> Floats:
        """How many rows each event is taken to have, (..., events): at least `floor`; NaN if none
        and there is no floor."""
        sizes = _apply(self.members, _tail(counts, self.shape[:2], "counts"))
        if floor is not None:
            return np.maximum(sizes, _checks.positive(floor=floor))
        return np.where(sizes > 0, sizes, np.nan)

    def cell_costs(
        self, duals: npt.ArrayLike, counts: npt.ArrayLike, floor: float | None = None
    ) -> Floats:
        """dL/dH, (..., cells, labels, classes): what one more prediction of class k in that cell
        costs the Lagrangian.

        Constraints that are undefined take no part.
        """
        duals = _tail(duals, (len(self),), "duals")
        weights = 1.0 / self.event_sizes(counts, floor)[..., self.event_of]
        undefined = np.isnan(weights)
        if undefined.any():
            # A constraint with one undefined rate has no value: its dual takes no part at all.
            broken = _apply(self._touches, undefined.astype(np.float64)) > 0
            duals, weights = np.where(broken, 0.0, duals), np.where(undefined, 0.0, weights)
        flat = _apply(self._numerators_across, _apply(self._coefficients_across, duals) * weights)
        return flat.reshape(*flat.shape[:-1], *self.shape)

    def jacobian(self, counts: npt.ArrayLike, floor: float | None = None) -> Any:
        """d values / dH as a sparse array (constraints, cells x labels x classes): a row of a
        linear program each."""
        weights = 1.0 / self.event_sizes(counts, floor)[self.event_of]
        return sparse.csr_array(self.coefficients @ sparse.diags_array(weights) @ self.numerators)

    def at(self, counts: npt.ArrayLike, floor: float | None) -> FixedCounts:
        """The system at counts (..., cells, labels) that no longer change, prepared for many
        rounds."""
        return FixedCounts.of(self, np.asarray(counts, dtype=np.float64), floor)

    @property
    def needs_labels(self) -> bool:
        """False when no constraint looks at labels: a histogram by cell and class is then enough,
        and less noisy."""
        cells, labels, classes = self.shape
        first = (np.arange(cells)[:, np.newaxis] * labels + np.zeros(labels, dtype=np.intp)).ravel()
        return bool(
            (self.members != self.members[:, first]).nnz
            or (self.numerators != self.numerators[:, _with_classes(first, classes)]).nnz
        )

    def without_labels(self) -> ConstraintSystem:
        """The same constraints over (cells, 1, classes)."""
        if self.needs_labels:
            remedy = "Keep the histogram by label."
            raise InputError.expected(
                "constraints that ignore labels", of="system", got=self.names[0], remedy=remedy
            )
        cells, labels, classes = self.shape
        return self._picked(np.arange(cells) * labels, (cells, 1, classes))

    @property
    def needs_groups(self) -> bool:
        """False when no constraint tells groups apart: a histogram of the whole population is then
        enough."""
        cells, labels, classes = self.shape
        first = (np.zeros(cells, dtype=np.intp)[:, np.newaxis] + np.arange(labels)).ravel()
        return bool(
            (self.members != self.members[:, first]).nnz
            or (self.numerators != self.numerators[:, _with_classes(first, classes)]).nnz
        )

    def without_groups(self) -> ConstraintSystem:
        """The same constraints over (1, labels, classes)."""
        if self.needs_groups:
            remedy = "Keep the histogram by group."
            raise InputError.expected(
                "constraints that ignore groups", of="system", got=self.names[0], remedy=remedy
            )
        _, labels, classes = self.shape
        return self._picked(np.arange(labels), (1, labels, classes))

    def smallest_partition(self) -> tuple[npt.NDArray[np.int32], ConstraintSystem]:
        """The coarsest parts of (cell, label) that still give every constraint (RaCO-DP's smallest
        global partition).

        Returns `part_of` (cells, labels), -1 where no constraint looks, and the system over (parts,
        1, classes). Fewer parts, less noise: a population rate needs one part whatever the number
        of groups.
        """
        cells, labels, classes = self.shape
        width = cells * labels
        members, numerators = self.members.tocsc(), self.numerators.tocsc()
        part_of = np.full(width, -1, dtype=np.int32)
        parts: dict[tuple[bytes, ...], int] = {}
        first: list[int] = []
        for place in range(width):
            columns = [_column(members, place)] + [
                _column(numerators, place * classes + k) for k in range(classes)
            ]
            if not columns[0]:
                continue
            # Two places are one part where every event and every rate counts them alike.
            signature = tuple(columns)
            if signature not in parts:
                parts[signature] = len(first)
                first.append(place)
            part_of[place] = parts[signature]
        chosen = np.asarray(first, dtype=np.intp)
        return part_of.reshape(cells, labels), self._picked(chosen, (len(first), 1, classes))

    def _picked(
        self, places: npt.NDArray[np.intp], shape: tuple[int, int, int]
    ) -> ConstraintSystem:
        return ConstraintSystem(
            shape=shape,
            members=sparse.csr_array(self.members[:, places]),
            numerators=sparse.csr_array(self.numerators[:, _with_classes(places, shape[2])]),
            event_of=self.event_of,
            coefficients=self.coefficients,
            bounds=self.bounds,
            names=self.names,
        )

    def _values(
        self, histogram: npt.ArrayLike, counts: npt.ArrayLike, floor: float | None, clip: bool
    ) -> Floats:
        return _apply(self.coefficients, self.rates(histogram, counts, floor, clip=clip))

    @cached_property
    def _coefficients_across(self) -> Any:
        return sparse.csr_array(self.coefficients.T)

    @cached_property
    def _numerators_across(self) -> Any:
        return sparse.csr_array(self.numerators.T)

    @cached_property
    def _touches(self) -> Any:
        return sparse.csr_array(abs(self.coefficients))


@dataclass(frozen=True, eq=False)
class FixedCounts:
    """A system at fixed counts, where values = J h and cell costs = J' duals with J = d values /
    dH, worked out once.

    Small systems keep J as a dense array, `pull` (..., constraints, cells x labels x classes);
    large ones, and those with undefined constraints, stay sparse (None). Either way each model's
    sums run in one fixed order.
    """

    system: ConstraintSystem
    counts: Floats
    floor: float | None
    pull: Floats | None

    @staticmethod
    def of(system: ConstraintSystem, counts: Floats, floor: float | None) -> FixedCounts:
        """See `ConstraintSystem.at`."""
        flat = _tail(counts, system.shape[:2], "counts")
        width = math.prod(system.shape)
        if len(system) * width > MOST_DENSE or np.isnan(system.event_sizes(counts, floor)).any():
            return FixedCounts(system, counts, floor, None)
        lines = [
            system.jacobian(line.reshape(system.shape[:2]), floor).toarray()
            for line in flat.reshape(-1, flat.shape[-1])
        ]
        return FixedCounts(
            system,
            counts,
            floor,
            frozen(np.array(lines).reshape(*flat.shape[:-1], len(system), width)),
        )

    def values(self, histogram: Floats) -> Floats:
        """`exact_values` (or `surrogate_values`) of a histogram (..., cells, labels, classes):
        (..., constraints)."""
        if self.pull is None:
            return self.system.exact_values(histogram, self.counts, self.floor)
        flat = histogram.reshape(*histogram.shape[:-3], 1, self.pull.shape[-1])
        return np.asarray(np.add.reduce(self.pull * flat, axis=-1))

    def cell_costs(self, duals: Floats) -> Floats:
        """`ConstraintSystem.cell_costs` of duals (..., constraints)."""
        if self.pull is None:
            return self.system.cell_costs(duals, self.counts, self.floor)
        flat = np.add.reduce(self.pull * duals[..., np.newaxis], axis=-2)
        return np.asarray(flat.reshape(*flat.shape[:-1], *self.system.shape))


def combine(systems: Sequence[ConstraintSystem]) -> ConstraintSystem:
    """All constraints of systems that are over the same cells, labels and classes."""
    if not systems or len({system.shape for system in systems}) != 1:
        got = [system.shape for system in systems]
        remedy = "Resolve all against the same cells and classes."
        raise InputError.expected(
            "at least one system, all of one shape", of="systems", got=got, remedy=remedy
        )
    offsets = np.cumsum([0, *(system.members.shape[0] for system in systems)])
    return ConstraintSystem(
        shape=systems[0].shape,
        members=sparse.csr_array(sparse.vstack([s.members for s in systems])),
        numerators=sparse.csr_array(sparse.vstack([s.numerators for s in systems])),
        event_of=np.concatenate(
            [s.event_of + offset for s, offset in zip(systems, offsets[:-1], strict=True)]
        ),
        coefficients=sparse.csr_array(sparse.block_diag([s.coefficients for s in systems])),
        bounds=frozen(np.concatenate([s.bounds for s in systems])),
        names=tuple(name for s in systems for name in s.names),
    )


def _apply(matrix: sparse.csr_array, array: Floats) -> Floats:
    """matrix x vector along the last axis. One model or many take the same path, so its bits do not
    depend on the others."""
    lead = array.shape[:-1]
    flat = np.ascontiguousarray(array.reshape(math.prod(lead), array.shape[-1]).T)
    out: Floats = np.asarray(matrix @ flat).T.reshape(*lead, matrix.shape[0])
    return out


def _tail(array: npt.ArrayLike, tail: tuple[int, ...], of: str) -> Floats:
    """The array as (..., product of tail); its last axes must be `tail`."""
    array = np.asarray(array, dtype=np.float64)
    if array.shape[max(array.ndim - len(tail), 0) :] != tail:
        expected = f"an array of shape (..., {', '.join(map(str, tail))})"
        remedy = (
            "Count over the cells, labels and classes that the constraints were resolved against."
        )
        raise InputError.expected(expected, of=of, got=array.shape, remedy=remedy)
    flat: Floats = array.reshape(*array.shape[: array.ndim - len(tail)], math.prod(tail))
    return flat


def _with_classes(places: npt.NDArray[np.intp], classes: int) -> npt.NDArray[np.intp]:
    return (places[:, np.newaxis] * classes + np.arange(classes)).ravel()


def _column(matrix: sparse.csr_array, place: int) -> bytes:
    return bytes(np.sort(matrix.indices[matrix.indptr[place] : matrix.indptr[place + 1]]).tobytes())


def frozen(array: Floats) -> Floats:
    """The array, read-only."""
    array.setflags(write=False)
    return array
