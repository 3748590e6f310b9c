"""One column as it came: values with a mask, or positions in a list of distinct ones; and what
counts as missing."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Plain:
    """Values as they came: a numeric array, or objects. `null` marks those that the table itself
    calls missing."""

    values: npt.NDArray[Any]
    null: npt.NDArray[np.bool_] | None = None

    @property
    def rows(self) -> int:
        """How many values."""
        return len(self.values)


@dataclass(frozen=True)
class Listed:
    """Values as positions in a list of distinct ones; -1 is missing. `at` is an index array, so a
    value is looked at once."""

    at: npt.NDArray[np.integer]
    values: tuple[object, ...]

    @property
    def rows(self) -> int:
        """How many values."""
        return len(self.at)


Raw = Plain | Listed


def is_missing(value: object) -> bool:
    """None, NaN, and what pandas writes for them.

    >>> [is_missing(value) for value in (None, float("nan"), 0, "")]
    [True, True, False, False]
    """
    if (
        value is None
        or value is np.ma.masked
        or (isinstance(value, float | np.floating) and math.isnan(value))
    ):
        return True
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, np.datetime64) and bool(np.isnat(value))
    )


def missing_mask(column: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which places of an array are missing."""
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype.kind in "mM":
        return np.asarray(np.isnat(column))
    if column.dtype.kind == "O":
        return np.fromiter((is_missing(value) for value in column), bool, len(column))
    return np.zeros(len(column), dtype=bool)


def in_order(values: Iterable[Hashable]) -> list[Any]:
    """Values in the order of groups and classes: their own, or by kind and then by text where kinds
    do not compare.

    >>> in_order([2, "b", 1, "a"])
    [1, 2, 'a', 'b']
    """
    listed: list[Any] = list(values)
    try:
        return sorted(listed)
    except TypeError:
        return sorted(listed, key=lambda value: (type(value).__name__, str(value)))
