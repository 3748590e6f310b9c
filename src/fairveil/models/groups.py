"""What models that read the group share: a row's cell, and cells in a file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..facts import Cells, RowBlock


def cell_ids(rows: object, cells: Cells) -> npt.NDArray[np.integer]:
    """The product cell of each row, from the sensitive codes that the rows carry."""
    if not isinstance(rows, RowBlock) or rows.sensitive is None:
        remedy = "Pass a RowBlock with sensitive codes: this model is group-aware."
        raise InputError.expected(
            "rows with sensitive codes", of="rows", got=type(rows).__name__, remedy=remedy
        )
    return np.asarray(cells.ids(rows.sensitive)[0])


def cells_to_values(cells: Cells) -> dict[str, Any]:
    """Plain JSON values."""
    return {"columns": [list(column) for column in cells.columns], "names": list(cells.names)}


def cells_from_values(values: Mapping[str, Any]) -> Cells:
    """The inverse of `cells_to_values`, as product cells."""
    return Cells(
        tuple(tuple(map(_hashable, column)) for column in values["columns"]),
        "product",
        tuple(values["names"]),
    )


def _hashable(value: object) -> Hashable:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
