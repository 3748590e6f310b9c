"""One or several columns as users hold them (arrays, series, frames, mappings, lists), matched by
position: what is missing, what is no number and no word, and the distinct values.

A mask is missing values, never the numbers under it. A date is no number: NaT as one is -9.2e18.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._types import ColumnsLike, Floats
from ..core.errors import need
from ..errors import InputError, KindError
from . import keys

if TYPE_CHECKING:
    import narwhals as nw

Values = npt.NDArray[Any]
Codes = npt.NDArray[np.int32]
ROWS_AT_ONCE = 1 << 16  # a knob of memory only
MOST_VALUES = 1 << 16  # codes of sensitive columns are 16 bits wide
NO_NUMBERS = {
    "M": ("dates", "Turn dates into numbers first: days since a fixed date, for example."),
    "m": (
        "durations",
        "Turn durations into numbers first: column / np.timedelta64(1, 'D'), for example.",
    ),
    "c": (
        "complex numbers",
        "Complex data not supported: pass real and imaginary parts as two columns.",
    ),
    "V": ("records or raw bytes", "Pass one plain column for each field."),
    "S": ("bytes", "Decode them first: column.astype(str), for example."),
}
"""Kinds of NumPy that are neither numbers nor words."""


# ------------------------------ one column as it came


@dataclass(frozen=True)
class Plain:
    """Values as they came: a numeric array, or objects. `null` marks those that the table itself
    calls missing."""

    values: Values
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
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    is_nat = isinstance(value, np.datetime64) and bool(np.isnat(value))
    return is_nat or type(value).__name__ in ("NAType", "NaTType")


def missing_mask(column: Values) -> npt.NDArray[np.bool_]:
    """Which places of an array are missing."""
    kind = column.dtype.kind
    if kind in "fmM":
        return np.asarray(np.isnan(column) if kind == "f" else np.isnat(column))
    if kind == "O":
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


def in_words(values: Iterable[object]) -> str:
    """A list of values on one printable line."""
    text = ", ".join(
        "".join(letter if letter.isprintable() else "?" for letter in str(value))
        for value in values
    )
    return text.strip() or "one without a name"


# ------------------------------ as arrays


def as_array(given: Any, of: str, *, dtype: npt.DTypeLike | None = None) -> Values:
    """`numpy.asarray`, but masked values are None in an array of objects, and what cannot be read
    is an error that says so."""
    try:
        if not is_masked(given):
            return np.asarray(given, dtype=dtype)
        masked = given if isinstance(given, np.ma.MaskedArray) else np.ma.array(given)
        array = np.array(masked.data, dtype=object)
        array[np.ma.getmaskarray(masked)] = None
        return array
    except Exception as error:
        # whatever an object of somebody else's has to say: nothing was asked of the rows yet
        raise InputError.expected(
            "an array of one value a place", of=of, got=type(given).__name__, remedy=f"{error}"
        ) from error


def is_masked(given: object) -> bool:
    """Whether an array, or one in a list, has masked values."""
    if isinstance(given, list | tuple):
        return any(isinstance(item, np.ma.MaskedArray) and is_masked(item) for item in given)
    return isinstance(given, np.ma.MaskedArray) and bool(np.ma.is_masked(given))


def refuse_other_kinds(array: Values, of: str, *, bytes_too: bool = True) -> None:
    """An error for an array of dates, durations, complex numbers, records or bytes."""
    kind = array.dtype.kind
    if kind in NO_NUMBERS and (bytes_too or kind != "S"):
        words, fix = NO_NUMBERS[kind]
        got = f"{words} ({array.dtype})"
        need(False, "numbers or words", of=of, got=got, fix=fix, error=KindError)


def numbers(given: object, of: str, *, remedy: str) -> npt.NDArray[np.float64]:
    """One finite or infinite float64 a place; missing ones are NaN. Texts are no numbers, and
    neither are dates."""
    array = as_array(given, of)
    refuse_other_kinds(array, of)
    listed = array.ravel() if array.dtype.kind == "O" else ()
    others = str | bytes | complex | np.complexfloating
    if array.dtype.kind not in "UT" and not any(isinstance(value, others) for value in listed):
        try:
            with np.errstate(over="ignore"):  # a long double beyond float64 is infinite
                return np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
    raise KindError.expected("one number a row", of=of, got="others", remedy=remedy)


def one_column(values: object, of: str) -> Values:
    """One column as an array; values of several kinds stay what they are."""
    if not isinstance(values, (np.ndarray, list, tuple)):
        import narwhals as nw

        wrapped: Any = nw.from_native(values, pass_through=True, series_only=True)
        values = from_series(wrapped) if isinstance(wrapped, nw.Series) else values
    mixed = isinstance(values, (list, tuple)) and len({type(v) for v in values}) > 1
    array = as_array(values, of, dtype=object if mixed else None)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    got = f"an array of shape {array.shape}" if array.ndim else type(values).__name__
    need(array.ndim == 1, "a column", of=of, got=got, fix="Pass one value a row.")
    return array


def from_series(series: nw.Series[Any]) -> Values:
    """A narwhals series as an array; whole numbers and texts stay what they are beside missing
    values."""
    if series.null_count() and not series.dtype.is_float():
        return np.asarray(series.to_list(), dtype=object)
    return np.asarray(series.to_numpy())


def read_columns(sensitive_features: ColumnsLike) -> dict[str, Values]:
    """One or several named columns: an array, a series, a frame, a mapping, a 2-d array or a list
    of columns."""
    given, of = sensitive_features, "sensitive_features"
    found: dict[str, Values] = {}
    if isinstance(given, Mapping):
        found = {str(name): one_column(column, str(name)) for name, column in given.items()}
    elif isinstance(given, (list, tuple)) and given and all(map(_is_column, given)):
        found = {
            name_of(item) or f"sensitive_{j}": one_column(item, f"column {j}")
            for j, item in enumerate(given)
        }
        fix = "Pass a mapping from name to column."
        need(len(found) == len(given), "distinct names", of=of, got=list(found), fix=fix)
    elif given is not None:
        found = frame_or_array(given)
    fix = "Pass a column, a list of columns, a mapping or a frame."
    need(found, "at least one column", of=of, got=given, fix=fix)
    return found


def frame_or_array(given: object) -> dict[str, Values]:
    """The columns of a frame, a series or an array by name."""
    if not isinstance(given, (np.ndarray, list, tuple)):
        import narwhals as nw

        try:
            wrapped: Any = nw.from_native(given, pass_through=True, allow_series=True)
        except Exception as error:
            # names twice, and what else a table of somebody else's does not bear
            of, got, expected = "sensitive_features", "another table", "columns with distinct names"
            raise InputError.expected(expected, of=of, got=got, remedy=f"{error}") from None
        wrapped = wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped
        if isinstance(wrapped, nw.DataFrame):
            return {str(name): from_series(wrapped[:, j]) for j, name in enumerate(wrapped.columns)}
        if isinstance(wrapped, nw.Series):
            return {str(wrapped.name or "sensitive_0"): from_series(wrapped)}
    array = as_array(given, "sensitive_features")
    if array.ndim == 2:
        return {f"sensitive_{j}": array[:, j] for j in range(array.shape[1])}
    return {"sensitive_0": one_column(given, "sensitive_features")}


def read_weights(sample_weight: ColumnsLike, rows: int, *, of: str = "prediction") -> Floats | None:
    """Finite weights of at least 0, or None. `of`: what has so many rows."""
    if sample_weight is None:
        return None
    fix, name = "Pass one finite number of at least 0 a row.", "sample_weight"
    weights = numbers(one_column(sample_weight, name), name, remedy=fix)
    same_length({of: rows, name: len(weights)})
    sound = bool(np.isfinite(weights).all()) and not (weights < 0).any()
    need(sound, "weights", of=name, got="a negative or missing one", fix=fix)
    return weights


def read_numbers(values: object, of: str) -> Floats:
    """A column of finite numbers."""
    column = one_column(values, of)
    finite = column.dtype.kind in "fiub" and bool(np.isfinite(column.astype(np.float64)).all())
    need(finite, "finite numbers", of=of, got="others", fix="Pass one finite number a row.")
    return column.astype(np.float64)


def same_length(lengths: Mapping[str, int | None]) -> None:
    """Rows are matched by position, so all columns must be of one length."""
    given = {name: length for name, length in lengths.items() if length is not None}
    got = ", ".join(f"{name}: {length}" for name, length in given.items())
    fix = "Rows are matched by position: pass columns of one length."
    need(len({*given.values()}) <= 1, "columns of one length", of="rows", got=got, fix=fix)


def _is_column(item: object) -> bool:
    return hasattr(item, "__len__") and not isinstance(item, (str, bytes))


def name_of(item: object) -> str:
    """The name that a column has of its own; "" where it has none."""
    name = getattr(item, "name", None)
    return name if isinstance(name, str) else ""


# ------------------------------ distinct values: what is read from the data without a schema


def distinct(raw: Raw, of: str) -> tuple[tuple[Hashable, ...], Codes]:
    """The values that occur, sorted, as plain Python values, and each row's position among them. A
    missing one is an error."""
    if isinstance(raw, Listed):
        used = np.unique(raw.at)
        _refuse_missing(len(used) > 0 and used[0] < 0, of)
        values, places = _of_objects([raw.values[at] for at in used.tolist()], of)
        code_of = np.zeros(len(raw.values) + 1, np.int32)
        code_of[used] = places
        return values, code_of[raw.at]
    _refuse_missing(raw.null is not None and raw.null.any(), of)
    array = raw.values
    refuse_other_kinds(array, of)
    if array.dtype.kind in "biuf":
        is_float = array.dtype.kind == "f"
        _refuse_missing(is_float and np.isnan(array).any(), of)
        _refuse_infinite(is_float and np.isinf(array).any(), of)
        found, codes = np.unique(array, return_inverse=True)
        return _checked(found.tolist(), of), codes.astype(np.int32)
    # some rows at a time: as Python's values a column takes several times its own space
    starts = range(0, max(1, len(array)), ROWS_AT_ONCE)
    parts = [_of_objects(array[at : at + ROWS_AT_ONCE].tolist(), of) for at in starts]
    if len(parts) == 1:
        return parts[0]
    listed = _checked(in_order({value for part, _ in parts for value in part}), of)
    code = {value: at for at, value in enumerate(listed)}
    joined = [np.array([code[value] for value in part], np.int32)[at] for part, at in parts]
    return listed, np.concatenate(joined)


def _of_objects(listed: list[Any], of: str) -> tuple[tuple[Hashable, ...], Codes]:
    if not set(map(type, listed)) <= {str, bool, int}:
        _refuse_missing(any(map(is_missing, listed)), of)
        listed = [keys.plain(value, of=of) for value in listed]
        known = str | int | float
        strange = sorted({type(one).__name__ for one in listed if not isinstance(one, known)})
        fix = "Make texts of them first: column.astype(str), for example."
        expected = "texts, numbers or truth values"
        need(not strange, expected, of=of, got=strange, fix=fix, error=KindError)
        infinite = (isinstance(value, float) and math.isinf(value) for value in listed)
        _refuse_infinite(any(infinite), of)
    values = in_order(set(listed))
    code_of = {value: code for code, value in enumerate(values)}
    codes = np.fromiter(map(code_of.__getitem__, listed), np.int32, len(listed))
    return _checked(values, of), codes


def _checked(values: list[Any], of: str) -> tuple[Hashable, ...]:
    fix = "Make ranges of a number first; leave out columns that identify people."
    expected, got = f"at most {MOST_VALUES} distinct values", f"{len(values)} of them"
    need(len(values) <= MOST_VALUES, expected, of=of, got=got, fix=fix)
    return tuple(values)


def _refuse_missing(wrong: object, of: str) -> None:
    fix = (
        'Give them a value of their own ("unknown", for example), or declare what they count as in '
        "a schema."
    )
    need(not wrong, "a value in every row", of=of, got="missing ones (None or NaN)", fix=fix)


def _refuse_infinite(wrong: object, of: str) -> None:
    fix = "Write a word for them: 'unknown', for example."
    need(not wrong, "finite numbers or words", of=of, got="infinite ones", fix=fix)
