"""The decisions and groups of a period, as codes of what a monitor was begun with."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from ...errors import InputError, complaint
from ...facts import Cells
from ...tables import keys


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
            raise InputError(
                complaint(
                    expected="a known group", of="sensitive_features", got=strange, remedy=remedy
                )
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
        raise InputError(
            complaint(
                expected="a known class", of="y and the decisions", got=strange, remedy=remedy
            )
        )
    return np.array([known.index(value) for value in found], np.intp)
