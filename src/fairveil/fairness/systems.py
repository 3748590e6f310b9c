"""Notions resolved against public lists of groups and classes: constraints as arrays over a
histogram by cell, label and class, what a solver works with.

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
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _checks
from .._types import Floats, Mask
from ..errors import InputError
from ..facts import Cells
from ..tables import keys
from .notions import ErrorRate, Event, Grouping, Notion, RateConstraint

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
        histogram: npt.ArrayLike,
        counts: npt.ArrayLike,
        floor: float | None = None,
        *,
        clip: bool = False,
    ) -> Floats:
        """Each constraint's value from a histogram of decisions, or of soft predictions,
        (..., constraints).

        An event without rows (`counts` not above 0) and without a `floor` is undefined: NaN. `clip`
        projects each rate on [0, 1] first, where noise may have pushed it out.
        """
        return _apply(self.coefficients, self.rates(histogram, counts, floor, clip=clip))

    def excess(self, values: npt.ArrayLike) -> Floats:
        """value - bound: above 0 where broken, NaN where undefined."""
        return np.asarray(values, dtype=np.float64) - self.bounds

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
        """`exact_values` of a histogram (..., cells, labels, classes):
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


def frozen(array: Floats) -> Floats:
    """The array, read-only."""
    array.setflags(write=False)
    return array


def resolve(
    notions: Notion | Iterable[Notion] | None,
    cells: Cells,
    classes: Sequence[Hashable],
    *,
    keep_vacuous: bool = True,
) -> ConstraintSystem:
    """One system for one notion, several that are combined, or none; rates that several constraints
    use are kept once.

    >>> from .notions import DemographicParity
    >>> print(
    ...     *resolve(DemographicParity(0.05), Cells((("f", "m"),)), ("no", "yes")).names, sep="\\n"
    ... )
    P(prediction = yes | group f) - P(prediction = yes | group m) <= 0.05
    P(prediction = yes | group m) - P(prediction = yes | group f) <= 0.05
    """
    builder = _Builder(cells, classes)
    for notion in as_list(notions):
        if keep_vacuous or not notion.is_vacuous:
            for constraint in notion.constraints(cells, builder.classes):
                builder.add(constraint)
    return builder.finish()


def as_list(notions: Notion | Iterable[Notion] | None) -> list[Notion]:
    """None, one notion or several, as a list of notions."""
    listed: list[Any] = (
        [] if notions is None else [notions] if isinstance(notions, Notion) else _several(notions)
    )
    for notion in listed:
        if not isinstance(notion, Notion):
            remedy = "Pass DemographicParity(max_gap=0.05), a list of such, or None."
            raise InputError.expected(
                "a notion of fairness", of="constraints", got=notion, remedy=remedy
            )
    return listed


class _Builder:
    """Collects distinct events and rates while constraints are added."""

    def __init__(self, cells: Cells, classes: Sequence[Hashable]) -> None:
        self.cells = cells
        self.classes = tuple(keys.plain(value, of="classes") for value in classes)
        if not self.classes or len(set(self.classes)) != len(self.classes):
            remedy = "Pass classes=(0, 1), for example."
            raise InputError.expected(
                "distinct classes, at least one", of="classes", got=classes, remedy=remedy
            )
        self.code_of = {value: code for code, value in enumerate(self.classes)}
        self.groupings: dict[str, Grouping] = {}
        self.masks: dict[tuple[str, Event], Mask] = {}
        self.events: dict[bytes, int] = {}
        self.members: list[npt.NDArray[np.intp]] = []
        self.rates: dict[tuple[int, int], int] = {}
        self.numerators: list[npt.NDArray[np.intp]] = []
        self.event_of: list[int] = []
        self.entries: list[tuple[int, int, float]] = []
        self.bounds: list[float] = []
        self.names: list[str] = []

    def add(self, constraint: RateConstraint) -> None:
        row = len(self.names)
        for coefficient, rate in constraint.terms:
            prediction = (
                -1 if isinstance(rate, ErrorRate) else self._code("prediction", rate.prediction)
            )
            place = self._rate(self._mask(rate.event, constraint.groups), prediction)
            self.entries.append((row, place, coefficient))
        self.bounds.append(constraint.bound)
        self.names.append(str(constraint))

    def finish(self) -> ConstraintSystem:
        cells, labels = self.cells.count, len(self.classes)
        rows, places, values = ([entry[i] for entry in self.entries] for i in range(3))
        entries = (np.asarray(values, dtype=np.float64), (rows, places))
        coefficients = sparse.coo_array(entries, shape=(len(self.names), len(self.numerators)))
        return ConstraintSystem(
            shape=(cells, labels, labels),
            members=_indicator(self.members, cells * labels),
            numerators=_indicator(self.numerators, cells * labels * labels),
            event_of=np.asarray(self.event_of, dtype=np.intp),
            coefficients=sparse.csr_array(coefficients),
            bounds=frozen(np.asarray(self.bounds, dtype=np.float64)),
            names=tuple(self.names),
        )

    def _rate(self, mask: Mask, prediction: int) -> int:
        event = self.events.setdefault(mask.tobytes(), len(self.members))
        if event == len(self.members):
            self.members.append(np.flatnonzero(mask))
        place = self.rates.setdefault((event, prediction), len(self.numerators))
        if place == len(self.numerators):
            labels = len(self.classes)
            wrong = ~np.eye(labels, dtype=bool)
            counted = wrong if prediction < 0 else np.arange(labels) == prediction
            self.numerators.append(np.flatnonzero(mask[:, :, np.newaxis] & counted))
            self.event_of.append(event)
        return place

    def _mask(self, event: Event, mode: str) -> Mask:
        """Which (cell, label) an event is about."""
        if (mode, event) not in self.masks:
            mask = self._rectangle(event, mode)
            for other in event.also:
                mask = mask | self._mask(other, mode)
            self._refuse_double_counting(mask, event)
            self.masks[mode, event] = mask
        return self.masks[mode, event]

    def _rectangle(self, event: Event, mode: str) -> Mask:
        labels = np.ones(len(self.classes), dtype=bool)
        if event.labels is not None:
            labels[:] = False
            labels[[self._code("label", value) for value in event.labels]] = True
        return np.asarray(self._cells_of(event, mode)[:, np.newaxis] & labels)

    def _cells_of(self, event: Event, mode: str) -> Mask:
        columns = self._column_of_cell()
        if event.groups is None:
            return np.asarray(columns == 0)  # every row is in exactly one cell of the first column
        if mode not in self.groupings:
            self.groupings[mode] = Grouping.of(self.cells, mode)
        grouping = self.groupings[mode]
        inside: Mask = np.any(
            grouping.members[[grouping.index(key) for key in event.groups]], axis=0
        )
        return np.asarray(np.isin(columns, columns[inside]) & ~inside) if event.outside else inside

    def _column_of_cell(self) -> npt.NDArray[np.intp]:
        if self.cells.mode == "product":
            return np.zeros(self.cells.count, dtype=np.intp)
        return np.repeat(np.arange(len(self.cells.sizes)), self.cells.sizes)

    def _refuse_double_counting(self, mask: Mask, event: Event) -> None:
        if not mask.any():
            remedy = "Name at least one (group, label) pair that exists."
            raise InputError.expected(
                "an event that rows can be in", of="event", got=str(event), remedy=remedy
            )
        if len(set(self._column_of_cell()[mask.any(axis=1)])) > 1:
            remedy = (
                "A row is in one marginal cell a column and would count twice: resolve it against "
                "product cells."
            )
            raise InputError.expected(
                "groups of one column", of="event", got=str(event), remedy=remedy
            )

    def _code(self, name: str, value: Hashable) -> int:
        try:
            return self.code_of[value]
        except KeyError:
            remedy = f"Known classes: {', '.join(map(repr, self.classes))}."
            raise InputError.expected("a known class", of=name, got=value, remedy=remedy) from None


def _several(notions: object) -> list[Any]:
    if isinstance(notions, str) or not isinstance(notions, Iterable):
        remedy = (
            "Pass DemographicParity(max_gap=0.05), a list of such, or None; notions.parse reads a "
            "text."
        )
        raise InputError.expected(
            "a notion of fairness", of="constraints", got=notions, remedy=remedy
        )
    return list(notions)


def _indicator(rows: list[npt.NDArray[np.intp]], width: int) -> Any:
    ends = np.cumsum([0, *(len(row) for row in rows)])
    columns = np.concatenate(rows) if rows else np.zeros(0, dtype=np.intp)
    return sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), width))


ADDED = 2.0
"""Rows that are added to each place."""


def deviations(
    system: ConstraintSystem, histogram: Floats, counts: Floats, *, heaviest: float | None = None
) -> Floats:
    """The standard deviation of each constraint's value over draws of the rows: how far rates of the
    rows that were drawn are from those of the people. NaN where an event has no row.

    A constraint's value is a sum of quotients of counts. One more row in a place (cell, label,
    decision) moves it by its influence there, and the rows in a place are as many as were drawn, so to
    first order

        variance = sum over places of rows x influence^2.

    Rates of few rows are moved towards each other first, by two rows for each place (Agresti and
    Coull's correction): a group of ten rows without an error is not taken for one that makes none.
    Post-processing of released counts, which may be noisy.

    `histogram` (cells, labels, classes) of decisions, `counts` (cells, labels) of rows, as
    released. `heaviest`: the largest weight of a row, where rows have weights, which the counts are
    sums of.
    """
    sizes = np.maximum(np.asarray(counts, np.float64), 0.0)
    classes = system.shape[2]
    hits = np.clip(histogram, 0.0, sizes[..., np.newaxis]) + ADDED
    # Two rows more at each place: a rate of 0 in a small group is not known without error.
    rows = sizes[..., np.newaxis] * hits / (sizes[..., np.newaxis] + classes * ADDED)
    events = system.event_sizes(sizes)
    weights = 1.0 / events[system.event_of]
    rates = (system.numerators @ rows.ravel()) * weights
    members = sparse.csr_array(sparse.kron(system.members, np.ones((1, classes)), format="csr"))[
        system.event_of
    ]
    known = np.nan_to_num(weights)
    slopes = sparse.diags_array(known) @ (
        system.numerators - sparse.diags_array(np.nan_to_num(rates)) @ members
    )
    influence = sparse.csr_array(system.coefficients @ slopes)
    # The delta method: each row moves the value by its influence, and rows are independent draws.
    variance = np.asarray(influence.power(2) @ rows.ravel()) * (
        1.0 if heaviest is None else heaviest
    )
    undefined = np.asarray(abs(system.coefficients) @ np.isnan(weights).astype(np.float64)) > 0
    return np.where(undefined, math.nan, np.sqrt(variance))
