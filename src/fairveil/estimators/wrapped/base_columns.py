"""Columns that a base takes as features: their names, which are sensitive, and X without some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._types import TableLike
from ...facts import RowBlock, RowLayout, RowSource
from ...tables.columns import read_columns
from ...tables.frames import column_of, table_of
from ...tables.given import column_names_of, shape_of
from ..reading.columns import names_in, no_such_columns


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Groupless:
    """Coded rows without their sensitive codes, as a `RowSource`."""

    _source: RowSource

    @property
    def layout(self) -> RowLayout:
        """The shape of features and labels."""
        return replace(self._source.layout, sensitive=(), sensitive_names=())

    def blocks(self) -> Iterator[RowBlock]:
        """All rows."""
        return (replace(block, sensitive=None) for block in self._source.blocks())


def without(X: Any, names: Sequence[str]) -> Any:
    """X without the columns of these names, in the form that it has; arrays have no names. Coded
    rows lose all their groups."""
    if isinstance(X, RowBlock):
        return replace(X, sensitive=None)
    if isinstance(X, RowSource):
        return Groupless(X)
    drop = [name for name in names if name in names_of(X)]
    if not drop:
        return X
    if is_mapping(X):
        return {name: column for name, column in X.items() if name not in drop}
    import narwhals as nw

    return nw.from_native(X, eager_only=True).drop(drop).to_native()


def columns_of(X: Any, given: object) -> tuple[dict[str, npt.NDArray[Any]], bool]:
    """Sensitive columns by name, and whether they are columns of X."""
    if given is None:
        return {}, False
    names = names_in(given)
    shown = names_of(X)
    if names is None or (
        set(names) - set(shown) and not isinstance(given, str) and len(names) == length_of(X)
    ):
        return dict(read_columns(given)), False
    strange = [name for name in names if name not in shown]
    if strange or len(set(names)) != len(names):
        raise no_such_columns(strange, names, shown)
    return {name: column_of(X[name], name) for name in names}, True


def names_of(X: Any) -> tuple[str, ...]:
    """The names of a table's columns, none for arrays and what is no table."""
    if is_mapping(X):
        return tuple(map(str, X))
    if isinstance(X, np.ndarray):
        return ()
    # pyarrow's columns are arrays; it has their names beside
    columns = tuple(getattr(X, "column_names", ())) or column_names_of(X)
    names = tuple(name for name in columns if isinstance(name, str))
    return names if len(names) == len(columns) else ()


def is_mapping(X: TableLike) -> bool:
    # one kind of sparse array is a mapping too
    return isinstance(X, Mapping) and not sparse.issparse(X)


def length_of(X: TableLike) -> int | None:
    """How many rows, where that can be seen; else the base's decisions say it."""
    if is_mapping(X):
        return table_of(X).rows
    if (shape := shape_of(X)) is not None:
        return int(shape[0]) if shape else None
    return len(X) if hasattr(X, "__len__") and not isinstance(X, type) else None


def width_of(X: Any) -> int:
    names = names_of(X)
    shape = shape_of(X) or ()
    return (
        len(names)
        if names
        else int(shape[1])
        if len(shape) > 1
        else len(X[0])
        if _is_listed(X)
        else 1
    )


def _is_listed(X: TableLike) -> bool:
    return isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], (list, tuple, np.ndarray))
