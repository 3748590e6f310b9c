"""Some of the rows of a table as it was given: arrays, tables, mappings of columns, coded rows. For
parts that are set aside.

Guarantees (tests/estimators/test_estimators_certified_fits.py, tests/study/test_study_search.py):
1. Rows stay whole and in their order; what is chosen depends on their places alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from ..._types import ColumnsLike, Ints, TableLike
from ...core.noise import NoiseSource
from ...curator.elsewhere import Elsewhere
from ...errors import InputError
from ...facts import RowSource
from ...tables.given import shape_of

CERTIFICATE, SEARCH = "certificate", "search"
COINS = (CERTIFICATE, SEARCH)
"""What rows are set aside for: each has a stream of its own, so that no coin is thrown twice."""


def length_of(X: TableLike) -> int | None:
    """How many rows; None where that cannot be seen."""
    if isinstance(X, Elsewhere):
        return X.exact_rows
    if isinstance(X, RowSource):
        return sum(block.rows for block in X.blocks())
    if isinstance(X, Mapping):
        return len(next(iter(X.values()))) if X else None
    if (shape := shape_of(X)) is not None:
        return int(shape[0]) if shape and shape[0] is not None else None
    return len(X) if hasattr(X, "__len__") else None


def rows_at(given: object, at: npt.NDArray[np.intp]) -> Any:
    """The rows at these places, which ascend; None stays None."""
    if given is None:
        return None
    if isinstance(given, RowSource) and hasattr(given, "chosen"):
        return given.chosen(at)
    if isinstance(given, Mapping):
        return {name: _safe_indexing(column, at) for name, column in given.items()}
    return _safe_indexing(given, at)


def aside_of(
    source: NoiseSource, rows: int, share: float, coins: str, persons: Ints | None = None
) -> npt.NDArray[np.bool_]:
    """Which rows are set aside: each by a coin of its own, which no other row moves. `persons`: a
    number for each row, whose it is; each person then has one coin."""
    if persons is not None:
        return aside_of(source, int(persons.max(initial=-1)) + 1, share, coins)[persons]
    if coins == CERTIFICATE:
        return np.asarray(source.stream("sampling").uniforms(rows) < share)
    aside = np.zeros(rows, bool)
    aside[source.stream("sampling", "rows set aside").poisson_batch(rows, share)] = True
    return aside


def parts_elsewhere(
    X: Elsewhere, y: ColumnsLike, groups: ColumnsLike, share: float, seed: int | None, coins: str
) -> list[tuple[Any, Any, Any]]:
    """The two parts of another holder's rows, who throws the coins; each as (X, y, groups) of a
    fit."""
    if y is not None:
        remedy = "Leave it out: labels are the holder's."
        raise InputError.expected(
            "None beside remote data", of="y", got=type(y).__name__, remedy=remedy
        )
    return [(part, None, groups) for part in X.parted(share, seed, coins)]
