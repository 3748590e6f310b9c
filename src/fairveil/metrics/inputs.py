"""Labels, predictions and sensitive columns as users hold them, read by position into codes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._types import ColumnsLike, Floats
from ..errors import InputError, KindError
from ..facts import GROUP_MODES, Cells
from ..tables import keys
from ..tables.columns import (
    as_array,
    frame_or_array,
    in_order,
    missing_mask,
    numbers,
    one_column,
    read_columns,
    read_weights,
    refuse_other_kinds,
    same_length,
)

Values = npt.NDArray[Any]
Codes = npt.NDArray[np.integer]
BLOCK = 1 << 16  # rows that are looked at as Python values at a time
MOST_GROUPS = 10_000
"""Groups that measures distinguish, unless they are declared."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """What is measured: codes of labels (None: none given), of decisions or probabilities, cells
    and weights, row by row."""

    classes: tuple[Hashable, ...]
    labels: Codes | None
    decisions: Codes | None
    probabilities: Floats | None
    cells: Cells
    cell_ids: npt.NDArray[np.integer]
    weights: Floats | None


def read_decisions(
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    *,
    classes: Sequence[Hashable] | None = None,
    groups: Cells | str = "product",
    missing: Hashable = None,
    sample_weight: ColumnsLike = None,
) -> Decisions:
    """Read and check everything; lengths must agree, and every error names what is wrong.

    `groups`: "product", "marginal", or the declared `Cells`, whose columns then say which groups
    exist.
    """
    predicted = _prediction(prediction)
    rows = len(predicted)
    labels = None if y is None else one_column(y, "y")
    same_length({"y": None if labels is None else len(labels), "prediction": rows})
    if labels is not None:
        _refuse_missing(labels, "y", "Leave rows without a label out.")
    known = _classes(labels, predicted, classes)
    cells, codes = read_groups(sensitive_features, rows, groups=groups, missing=missing)
    soft = predicted.ndim == 2
    return Decisions(
        classes=known,
        labels=None if labels is None else _code(labels, known, "y"),
        decisions=None if soft else _code(predicted, known, "prediction"),
        probabilities=_probabilities(predicted) if soft else None,
        cells=cells,
        cell_ids=cells.ids(codes),
        weights=read_weights(sample_weight, rows),
    )


def read_groups(
    sensitive_features: ColumnsLike,
    rows: int,
    *,
    groups: Cells | str = "product",
    missing: Hashable = None,
) -> tuple[Cells, npt.NDArray[np.uint16]]:
    """The groups and the codes (columns, rows) of the sensitive columns, in the order of their
    sorted values."""
    named = read_columns(sensitive_features)
    for name, column in named.items():
        if column.dtype.kind in "cV":
            refuse_other_kinds(column, f"sensitive column {name!r}")
    columns = {name: _fill_missing(column, name, missing) for name, column in named.items()}
    same_length(
        {"prediction": rows}
        | {f"sensitive column {name!r}": len(column) for name, column in columns.items()}
    )
    if isinstance(groups, Cells):
        if len(groups.columns) != len(columns):
            remedy = "Give the columns that were declared."
            expected = f"{len(groups.columns)} columns"
            raise InputError.expected(
                expected, of="sensitive_features", got=list(columns), remedy=remedy
            )
        return groups, _encoded(groups, list(columns.values()))
    if groups not in GROUP_MODES:
        remedy = "Pass groups='product', 'marginal', or declared Cells."
        raise InputError.expected("'product' or 'marginal'", of="groups", got=groups, remedy=remedy)
    values = tuple(
        tuple(_distinct(column, f"sensitive column {name!r}")) for name, column in columns.items()
    )
    _refuse_too_many(
        {name: len(listed) for name, listed in zip(columns, values, strict=True)}, groups
    )
    cells = Cells(values, mode=groups, names=tuple(columns))
    return cells, _encoded(cells, list(columns.values()))


def _encoded(cells: Cells, columns: Sequence[Values]) -> npt.NDArray[np.uint16]:
    """Codes of the columns, a block of rows at a time: as plain Python values they need ten times
    the memory."""
    rows = len(columns[0]) if columns else 0
    looked_up = [
        _looked_up(listed, column) for listed, column in zip(cells.columns, columns, strict=True)
    ]
    if columns and all(line is not None for line in looked_up):
        return np.stack([line for line in looked_up if line is not None])
    parts = [
        cells.encode([_as_objects(column[a : a + BLOCK]) for column in columns])
        for a in range(0, rows, BLOCK)
    ]
    return np.concatenate(parts, axis=1) if parts else np.empty((len(columns), 0), np.uint16)


def _looked_up(listed: tuple[Hashable, ...], column: Values) -> npt.NDArray[np.uint16] | None:
    """Codes of whole numbers that lie close together, from a table; None where they do not, or one
    of them is not listed."""
    if (
        column.dtype.kind not in "iu"
        or not len(column)
        or not all(type(value) is int for value in listed)
    ):
        return None
    low, high = int(column.min()), int(column.max())
    if high - low >= BLOCK or high >= 1 << 62:
        return None
    table = np.full(high - low + 1, -1, np.int32)
    for code, value in enumerate(listed):
        if isinstance(value, int) and low <= value <= high:
            table[value - low] = code
    codes = table[column.astype(np.int64) - low]
    return None if (codes < 0).any() else codes.astype(np.uint16)


def _refuse_too_many(sizes: Mapping[str, int], mode: str) -> None:
    """A column of numbers, or of names of people, is no column of groups."""
    count = math.prod(sizes.values()) if mode == "product" else sum(sizes.values())
    if count > MOST_GROUPS:
        each = ", ".join(f"{name!r}: {size:,}" for name, size in sizes.items())
        apart = (
            " Or look at one column at a time: groups='marginal'."
            if mode == "product" and len(sizes) > 1
            else ""
        )
        raise InputError.expected(
            f"at most {MOST_GROUPS:,} groups",
            of="sensitive_features",
            got=f"{count:,} (distinct values of {each})",
            remedy=f"Make ranges of a number first, or merge values that are rare.{apart}",
            quote=False,
        )


def _prediction(prediction: ColumnsLike) -> Values:
    if isinstance(prediction, (np.ndarray, list, tuple)):
        array = as_array(prediction, "prediction")
        refuse_other_kinds(array, "prediction", bytes_too=False)
        if array.ndim == 2:
            return array[:, 0] if array.shape[1] == 1 else array
    if not isinstance(prediction, (np.ndarray, list, tuple)):
        columns = frame_or_array(prediction)
        if len(columns) > 1:
            return np.stack(list(columns.values()), axis=1)
        if not columns:
            remedy = "Pass one column of decisions, or one of probabilities for each class."
            raise InputError.expected(
                "at least one column", of="prediction", got="none", remedy=remedy
            )
        return next(iter(columns.values()))
    return one_column(prediction, "prediction")


def _classes(
    labels: Values | None, predicted: Values, given: Sequence[Hashable] | None
) -> tuple[Hashable, ...]:
    if predicted.ndim == 1:
        _refuse_missing(predicted, "prediction", "Predict something for every row.")
        _refuse_scores(labels, predicted)
    if given is not None:
        values: Any = given
        listed = isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
        known = tuple(keys.plain(value, of="classes") for value in values) if listed else ()
        if not known or len(set(known)) != len(known):
            remedy = "Pass classes=[0, 1], for example."
            raise InputError.expected(
                "a list of distinct classes", of="classes", got=given, remedy=remedy
            )
    else:
        columns = [
            column for column in (labels, predicted) if column is not None and column.ndim == 1
        ]
        occurring: dict[Any, None] = {}
        try:
            for column in columns:
                for a in range(0, len(column), BLOCK):
                    occurring.update(dict.fromkeys(column[a : a + BLOCK].tolist()))
        except TypeError:
            remedy = "Pass one text or number a row."
            raise KindError.expected(
                "classes", of="y and prediction", got="others", remedy=remedy
            ) from None
        known = tuple(_sorted(occurring, "y and prediction"))
    if predicted.ndim == 2 and predicted.shape[1] != len(known):
        remedy = "Pass classes= in the order of the columns."
        expected = f"a column for each of the {len(known)} classes"
        raise InputError.expected(
            expected, of="prediction", got=f"{predicted.shape[1]} columns", remedy=remedy
        )
    return known


def _refuse_scores(labels: Values | None, predicted: Values) -> None:
    """A column of probabilities would be taken for as many classes as rows."""
    if predicted.dtype.kind != "f" or labels is None:
        return
    strange = (
        ~np.isin(predicted, labels)
        if labels.dtype.kind in "fiub"
        else np.ones(len(predicted), dtype=bool)
    )
    if (strange & (predicted != np.floor(predicted))).any():
        remedy = "Pass decisions, or probabilities as an array of shape (rows, classes)."
        raise InputError.expected(
            "classes", of="prediction", got="fractions that are no label", remedy=remedy
        )


def _probabilities(predicted: Values) -> Floats:
    array = numbers(predicted, "prediction", remedy="Pass rows of numbers in [0, 1] that sum to 1.")
    sums = array.sum(axis=1)
    if (
        not np.isfinite(array).all()
        or array.min(initial=0.0) < 0
        or np.abs(sums - 1.0).max(initial=0.0) > 1e-6
    ):
        remedy = "Pass rows of numbers in [0, 1] that sum to 1."
        raise InputError.expected(
            "probabilities", of="prediction", got="rows that are none", remedy=remedy
        )
    return array


def _refuse_missing(column: Values, of: str, remedy: str) -> None:
    gone = int(missing_mask(column).sum())
    if gone:
        raise InputError.expected("no missing values", of=of, got=f"{gone} missing", remedy=remedy)


def _fill_missing(column: Values, name: str, missing: Hashable) -> Values:
    mask = missing_mask(column)
    if not mask.any():
        return column
    if missing is None:
        remedy = 'Declare a group for them: missing="unknown", for example.'
        _refuse_missing(column, f"sensitive column {name!r}", remedy)
    filled = column.astype(object)
    filled[mask] = missing
    return filled


def _as_objects(column: Values) -> npt.NDArray[np.object_]:
    """The column as plain Python values."""
    out = np.empty(len(column), dtype=object)
    listed = column.tolist()
    if column.dtype.kind == "O":  # only objects can hold anything but plain values
        listed = [
            value if type(value) in (str, int) else keys.plain(value, of="sensitive_features")
            for value in listed
        ]
    out[:] = listed
    return out


def _distinct(column: Values, of: str) -> list[Hashable]:
    occurring: dict[Hashable, None] = {}
    for a in range(0, len(column), BLOCK):
        occurring.update(dict.fromkeys(_as_objects(column[a : a + BLOCK]).tolist()))
    return _sorted(occurring, of)


def _sorted(values: Iterable[Any], of: str) -> list[Any]:
    listed = list(values)
    if not listed:
        raise InputError.expected("at least one row", of=of, got="none", remedy="Pass some rows.")
    if of.startswith("y "):
        try:
            return sorted(listed)
        except TypeError:
            remedy = "Give labels and predictions as values of one kind."
            kinds = sorted({type(value).__name__ for value in listed})
            raise InputError.expected(
                "values of one kind", of=of, got=kinds, remedy=remedy
            ) from None
    return in_order(listed)


def _code(column: Values, known: tuple[Hashable, ...], of: str) -> Codes:
    code_of = {value: code for code, value in enumerate(known)}
    codes: Codes = np.empty(len(column), np.uint8 if len(known) <= 1 << 8 else np.int32)
    try:
        for a in range(0, len(column), BLOCK):
            run = column[a : a + BLOCK].tolist()
            codes[a : a + BLOCK] = np.fromiter(map(code_of.__getitem__, run), np.int32, len(run))
        return codes
    except (KeyError, TypeError):
        unknown = sorted(
            {repr(value) for value in column.tolist() if not _is_among(value, code_of)}
        )[:5]
        got = ", ".join(unknown)
        raise InputError.expected(
            f"one of {list(known)}", of=of, got=got, remedy="List every class."
        ) from None


def _is_among(value: object, code_of: Mapping[Hashable, int]) -> bool:
    try:
        return value in code_of
    except TypeError:
        return False
