"""From notions to a system: events and rates resolved against public lists of groups and
classes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._types import Mask
from ..errors import InputError
from ..facts import Cells
from ..tables import keys
from .grouping import Grouping
from .rates import ErrorRate, Event, Notion, RateConstraint
from .systems import ConstraintSystem, frozen


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
