"""The decisions, groups and persons of a period, in terms of what a monitor was begun with."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import ColumnsLike, TableLike
from ...core.promise import Unit
from ...errors import InputError
from ...facts import Cells
from ...tables import keys
from ..reading import units
from ..reading.units import Whose

IN_PARALLEL = (
    "a monitor's periods: each person was taken to be in one period alone, so that all of them "
    "together cost what one costs"
)
COME_BACK = (
    "a monitor's other periods: a person may be counted in {most}, which together cost at "
    "most the budget{taken}"
)


def places_of(found: Cells, known: Cells) -> npt.NDArray[np.intp]:
    """Where the monitor has each cell of the people."""
    columns = [
        found.names.index(name) if name in found.names else at
        for at, name in enumerate(known.names)
    ]
    codes = []
    grid = np.indices(found.sizes).reshape(len(found.sizes), -1)
    for at, (column, values) in enumerate(zip(columns, known.columns, strict=True)):
        strange = [value for value in found.columns[column] if value not in values]
        if strange:
            remedy = f"Groups of {known.names[at]}: {', '.join(map(keys.shown, values))}."
            raise InputError.expected(
                "a known group", of="sensitive_features", got=strange, remedy=remedy
            )
        codes.append(
            np.array([values.index(value) for value in found.columns[column]])[grid[column]]
        )
    return np.asarray(known.ids(np.stack(codes).astype(np.uint16))[0], np.intp)


def codes_in(found: tuple[Hashable, ...], known: tuple[Hashable, ...]) -> npt.NDArray[np.intp]:
    """Classes as codes of the monitor's."""
    strange = [value for value in found if value not in known]
    if strange:
        remedy = f"Classes of this monitor: {', '.join(map(keys.shown, known))}."
        raise InputError.expected(
            "a known class", of="y and the decisions", got=strange, remedy=remedy
        )
    return np.array([known.index(value) for value in found], np.intp)


def coming_back(unit: object, most: object) -> Whose | None:
    """Who is protected where people may come back, as `create` was told: one row of each person a
    period, in `most` periods at most. None: rows, of people who do not."""
    if unit is None and most is None:
        return None
    if not isinstance(unit, str):
        remedy = 'Pass unit="patient", its name; `add` takes whose each row is.'
        raise InputError.expected(
            "the name of a column", of="unit", got=unit, remedy=remedy, quote=False
        )
    remedy = (
        "Pass max_periods_per_unit=12, for example: in how many periods a person may be at most, "
        "known in advance."
    )
    _checks.whole(at_least=1, max_periods_per_unit=most, remedy=remedy)
    return Whose(Unit(unit, 1), column=unit)


def whose_of(given: ColumnsLike, unit: Unit | None, X: TableLike) -> Whose | None:
    """Whose each row of a period is: the values that were given, or the unit's column of X."""
    if unit is None:
        if given is None:
            return None
        remedy = 'Begin a monitor with unit="patient", max_periods_per_unit=12, for example.'
        raise InputError.expected(
            "None: this monitor has no unit", of="unit", got="values", remedy=remedy, quote=False
        )
    if given is not None and not isinstance(given, str):
        return units.whose(
            {unit.name: next(iter(given.values())) if isinstance(given, Mapping) else given},
            1,
            None,
        )
    if X is None or given not in (None, unit.name):
        remedy = "Pass unit=ids, one value a row, or X with this column."
        raise InputError.expected(
            f"whose each row is, by {unit.name!r}", of="unit", got=given, remedy=remedy, quote=False
        )
    return Whose(unit, column=unit.name)


def about_others(most: int | None, periods: int) -> str:
    """What a statement of one period says of the others. `most`: in how many periods a person may
    be, None without a unit; while there are no more periods, nothing is taken on trust."""
    if most is None:
        return IN_PARALLEL
    taken = "; that nobody is in more was taken as said" if periods > most else ""
    return COME_BACK.format(most="one" if most == 1 else f"at most {most}", taken=taken)
