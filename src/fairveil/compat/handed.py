"""A table as `fit` takes it, from other people's data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._types import Floats
from ..errors import InputError
from ..tables.given import shape_of


class Handed(NamedTuple):
    """`clf.fit(handed.X, handed.y, sensitive_features=handed.sensitive_features)`. It holds rows.

    `X`: a data frame of features; `y`: labels; `sensitive_features`: a data frame of the sensitive
    columns; `sample_weight`: or None, where all are 1.
    """

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any = None

    def __repr__(self) -> str:
        """Without the rows."""
        shape = shape_of(self.X) or "?"
        return f"Handed(X of shape {shape}, sensitive_features={list(self.sensitive_features)})"


def frame_of(given: Any, of: str) -> Any:
    """A data frame of its own rows, of a frame, a mapping of columns or an array."""
    import pandas as pd

    try:
        frame = pd.DataFrame(given).reset_index(drop=True)
    except (TypeError, ValueError):
        got, remedy = (
            type(given).__name__,
            "Pass a data frame, or a mapping of columns of one length.",
        )
        raise InputError.expected(
            "a table of columns of one length", of=of, got=got, remedy=remedy
        ) from None
    if not len(frame.columns):
        raise InputError.expected(
            "at least one column", of=of, got="none", remedy="Pass a data frame."
        )
    return frame


def line_of(given: object, rows: int, of: str) -> Any:
    """One plain value a row."""
    try:
        line = np.asarray(given)
    except ValueError:
        line = np.empty((0, 0))
    if line.shape != (rows,) or any(
        isinstance(value, list | dict | set) for value in line.tolist()
    ):
        got = f"shape {line.shape}"
        remedy = "Pass one value for each row of X."
        raise InputError.expected(
            f"X, y and groups of one length, {rows}", of=of, got=got, remedy=remedy
        )
    return line


def labels_beside(y: object, frame: Any, groups: Any) -> Any:
    """One label for each row of features and of groups."""
    labels = line_of(y, len(frame), "y")
    if len(groups) != len(frame):
        got, remedy = f"{len(frame)} and {len(groups)}", "Pass all rows of each."
        raise InputError.expected(
            "X and groups of one length", of="to_dataset", got=got, remedy=remedy
        )
    return labels


def weights_of(given: object, rows: int) -> Floats:
    """Weights that a fit would take: finite, none below 0, one a row."""
    try:
        weights = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        weights = np.empty(0)
    if weights.shape != (rows,) or not np.isfinite(weights).all() or (weights < 0).any():
        remedy = "Pass one weight for each row."
        expected = f"{rows} finite numbers of at least 0"
        raise InputError.expected(expected, of="sample_weight", got="others", remedy=remedy)
    return weights


def names_of(given: object, of: str) -> list[str]:
    """Names of columns, none of them twice."""
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or not all(isinstance(one, str) for one in given)
    ):
        remedy = f"Pass {of}=['sex'], for example."
        raise InputError.expected(
            "a list of columns", of=of, got=type(given).__name__, remedy=remedy
        )
    return list(given)


def name_of(given: object, of: str) -> str:
    """One name of a column."""
    if not isinstance(given, str) or not given:
        remedy = f"Pass {of}='label', for example."
        raise InputError.expected(
            "the name of a column", of=of, got=type(given).__name__, remedy=remedy
        )
    return given
