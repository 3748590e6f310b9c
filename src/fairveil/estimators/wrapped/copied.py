"""Public features that are a sensitive column over again, refused before anything is released."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._types import TableLike
from ...errors import InputError
from ...facts import RowBlock, RowLayout
from ...tables.distinct import distinct
from ...tables.grids import grid_of
from ...tables.raw import Plain, is_missing
from ..reading.copies import refuse_copies
from .base_columns import names_of


def refuse_copied(
    features: TableLike, layout: RowLayout, group_codes: npt.NDArray[np.uint16]
) -> None:
    """Where features are public none may be the sensitive column over again, among the rows where
    it is known; nor may the table's index. What is no table is not looked into."""
    try:
        grid = None if names_of(features) else grid_of(features)
    except (InputError, TypeError, ValueError):
        grid = None
    if grid is not None and grid.matrix is not None:
        numbers: Any = grid.matrix if grid.is_sparse else np.ascontiguousarray(grid.matrix.T)
        block = RowBlock(numbers, np.empty((0, grid.rows), np.uint8), sensitive=group_codes)
        refuse_copies([block], layout_of(layout, grid.matrix.shape[1], 0), grid.names)
        return
    for name, values in _each_column(features, group_codes.shape[1]):
        line, known = _numbers(values)
        block = RowBlock(
            line[known][np.newaxis],
            np.empty((0, int(known.sum())), np.uint8),
            sensitive=group_codes[:, known],
        )
        refuse_copies([block], layout_of(layout, 1, 0), (name,))


def _each_column(features: Any, rows: int) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """The columns of what may be a table, and its index, which a base could read too."""
    names = names_of(features)
    try:
        whole = None if names else np.asarray(features, dtype=object)
    except ValueError:
        return
    if whole is not None and whole.ndim in (1, 2):
        whole = whole.reshape(len(whole), -1)
        names = tuple(f"x{j}" for j in range(whole.shape[1]))
    index = getattr(features, "index", None)
    listed = [
        (name, features[name] if whole is None else whole[:, j]) for j, name in enumerate(names)
    ]
    if hasattr(index, "to_numpy"):
        listed.append(("the index", index))
    for name, column in listed:
        values = np.asarray(column)
        if values.shape == (rows,):
            yield name, values


def _numbers(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """A column as numbers, anything else by codes of its values, and where it is not missing."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64), np.isfinite(values.astype(np.float64))
    if values.dtype.kind in "mM":
        return values.astype(np.int64).astype(np.float64), ~np.isnat(values)
    try:
        return distinct(Plain(values), "a column")[1].astype(np.float64), np.ones(len(values), bool)
    except (InputError, TypeError, ValueError):
        # missing values, or values of no kind that a table of ours has
        places: dict[str, int] = {}
        line = [places.setdefault(repr(value), len(places)) for value in values]
        return np.array(line, np.float64), np.array(
            [not is_missing(value) for value in values], bool
        )


def layout_of(layout: RowLayout, numbers: int, codes: int) -> RowLayout:
    """The layout with so many numbers."""
    return RowLayout(
        numbers, (2,) * codes, layout.classes, layout.sensitive, layout.sensitive_names
    )
