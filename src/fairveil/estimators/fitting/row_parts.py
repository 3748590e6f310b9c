"""Some of the rows of a table as it was given: arrays, tables, mappings of columns, coded rows. For parts that are set aside.

Guarantees (tests/estimators/test_estimators_certified_fits.py, tests/study/test_study_search.py):
1. Rows stay whole and in their order; what is chosen depends on their places alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from ...facts import RowSource


def length_of(X: Any) -> int | None:
    """How many rows; None where that cannot be seen."""
    if isinstance(X, RowSource):
        return sum(block.rows for block in X.blocks())
    if isinstance(X, Mapping):
        return len(next(iter(X.values()))) if X else None
    found = getattr(X, "shape", (len(X) if hasattr(X, "__len__") else None,))[0]
    return None if found is None else int(found)


def rows_at(given: Any, at: npt.NDArray[np.intp]) -> Any:
    """The rows at these places, which ascend; None stays None."""
    if given is None:
        return None
    if isinstance(given, RowSource) and hasattr(given, "chosen"):
        return given.chosen(at)
    if isinstance(given, Mapping):
        return {name: _safe_indexing(column, at) for name, column in given.items()}
    return _safe_indexing(given, at)
