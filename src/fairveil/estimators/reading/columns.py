"""Labels, targets and sensitive columns as users hold them: arrays, series, frames, mappings, or
names of columns of X."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import assert_all_finite, column_or_1d

from ..._types import ColumnsLike
from ...errors import InputError, KindError
from ...facts import Schema
from ...tables.columns import read_columns, same_length
from ...tables.distinct import distinct
from ...tables.given import as_array, refuse_other_kinds
from ...tables.grids import FeatureTable
from ...tables.raw import Plain, Raw, is_missing
from .carried import require_few_values


def read_labels(y: ColumnsLike) -> npt.NDArray[Any]:
    """Labels as one array, from any container; a column of shape (rows, 1) warns, as in
    scikit-learn."""
    labels = _one_column(y)
    if labels.dtype.kind == "O":
        strange = sorted(
            {
                type(value).__name__
                for value in labels
                if not isinstance(value, str | int | float | np.generic)
            }
        )
        if strange:
            remedy = "Make texts of them first. Unknown label type."
            raise KindError.expected(
                "texts, numbers or truth values", of="y", got=strange, remedy=remedy
            )
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        remedy = "Unknown label type: continuous. Make classes of a number first."
        raise InputError.expected("classes", of="y", got="fractions", remedy=remedy)
    return labels


def read_targets(y: ColumnsLike) -> npt.NDArray[np.float64]:
    """Targets that are numbers, as one array, from any container."""
    targets = _one_column(y, "number")
    listed = targets.tolist() if targets.dtype.kind == "O" else ()
    words = targets.dtype.kind not in "biufO" or any(
        isinstance(value, (str, bytes)) for value in listed
    )
    try:
        with np.errstate(over="ignore"):  # a long double beyond float64 is infinite
            numbers: npt.NDArray[np.float64] = np.empty(0) if words else targets.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        words = True
    if words:
        remedy = "Fit a classifier to words; turn dates and the like into numbers first."
        raise InputError.expected("numbers", of="y", got="others", remedy=remedy)
    if not np.isfinite(numbers).all():  # objects that are NaN or infinite
        remedy = "Input y contains infinity or NaN: fill such targets in, or leave their rows out."
        raise InputError.expected("a finite number a row", of="y", got="others", remedy=remedy)
    return numbers


def _one_column(y: ColumnsLike, of: str = "class") -> npt.NDArray[Any]:
    if y is None:
        raise InputError.expected(
            "one label a row",
            of="y",
            got=None,
            remedy="This estimator requires y to be passed, but the target y is None.",
        )
    if isinstance(y, (list, tuple)):
        mixed = len({type(value) for value in y}) > 1
        y = as_array(y, "y", dtype=object if mixed else None)
    elif not isinstance(y, np.ndarray):
        columns = list(read_columns(y).values())
        if len(columns) != 1:
            remedy = "Pass one column of labels."
            raise InputError.expected(
                "one label a row", of="y", got=f"{len(columns)} columns", remedy=remedy
            )
        y = columns[0]
    return _finite_column(y, of)


def _finite_column(y: ColumnsLike, of: str) -> npt.NDArray[Any]:
    """One column without missing values; scikit-learn's words for what is wrong are kept."""
    y = as_array(y, "y")
    refuse_other_kinds(y, "y", bytes_too=False)
    try:
        labels: npt.NDArray[Any] = column_or_1d(y, warn=True)
        if labels.dtype.kind != "O":
            assert_all_finite(labels, input_name="y")
        elif not set(map(type, labels)) <= {str, bool, int} and any(map(is_missing, labels)):
            raise ValueError("Input y contains NaN or None.")
    except ValueError as error:
        got = "others"
        raise InputError.expected(
            f"one {of} a row, none missing", of="y", got=got, remedy=f"{error}"
        ) from None
    return labels


def names_in(sensitive: object) -> tuple[str, ...] | None:
    """The names that were given, or None where columns were."""
    if isinstance(sensitive, str):
        return (sensitive,)
    if not isinstance(sensitive, (list, tuple)) or len(sensitive) == 0:
        return None
    return tuple(sensitive) if all(isinstance(item, str) for item in sensitive) else None


def no_such_columns(
    strange: Sequence[str], names: Sequence[str], there: Sequence[str]
) -> InputError:
    """The error of names that are no columns of X, or are named twice."""
    known = f"names out of {list(there)}" if there else "columns: an array has no names"
    known = known if strange else f"each column once, of {list(there)}"
    remedy = "Pass the sensitive columns themselves, or X as a data frame that has them."
    got = strange or list(names)
    return InputError.expected(
        known,
        of="sensitive_features",
        got=got[0] if len(got) == 1 else got,
        remedy=remedy,
        among=there,
    )


def names_of_columns(sensitive: ColumnsLike, grid: FeatureTable) -> tuple[str, ...] | None:
    """Names of columns of X, or None. A list of texts as long as X that are not its columns is a
    column of groups."""
    names = names_in(sensitive)
    if names is None or (
        set(names) - set(grid.names) and not isinstance(sensitive, str) and len(names) == grid.rows
    ):
        return None
    strange = [name for name in names if not grid.named or name not in grid.names]
    if strange or len(set(names)) != len(names):
        raise no_such_columns(strange, names, grid.names if grid.named else ())
    return names


def given_columns(sensitive: ColumnsLike, rows: int) -> dict[str, Raw]:
    if sensitive is None:
        return {}
    return {name: Plain(column) for name, column in read_columns(sensitive).items()}


def coded_groups(
    columns: Mapping[str, Raw], rows: int, listed: tuple[Hashable, ...] | None = None
) -> tuple[tuple[tuple[Hashable, ...], ...], npt.NDArray[np.uint16]]:
    """The groups of each sensitive column, sorted, and each row's codes. `listed`: those of the one
    column, where they were stated, in that order."""
    same_length(
        {"X": rows}
        | {f"sensitive column {name!r}": column.rows for name, column in columns.items()}
    )
    codes = np.empty((len(columns), rows), np.uint16)
    groups = []
    for line, (name, column) in zip(codes, columns.items(), strict=True):
        values, line[:] = distinct(column, f"sensitive column {name!r}")
        if listed is not None:
            line[:] = np.array([listed.index(value) for value in values], np.uint16)[line]
        groups.append(values if listed is None else listed)
    require_few_values(
        {name: len(values) for name, values in zip(columns, groups, strict=True)}, rows
    )
    return tuple(groups), codes


def named_as_declared(sensitive: ColumnsLike, schema: Schema) -> dict[str, Any]:
    """Given columns under the schema's names: by name where all names fit, else in the schema's
    order."""
    columns = read_columns(sensitive)
    if set(columns) == set(schema.sensitive):
        return dict(columns)
    if len(columns) != len(schema.sensitive):
        raise InputError.expected(
            (f"the schema's {len(schema.sensitive)} sensitive columns {list(schema.sensitive)}"),
            of="sensitive_features",
            got=list(columns),
            remedy="Declare each sensitive column, and its groups, in the schema.",
        )
    return dict(zip(schema.sensitive, columns.values(), strict=True))
