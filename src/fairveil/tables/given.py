"""What users hand in, looked at as an array: the one place where masks, dates and unreadable
objects are met.

A mask is missing values, never the numbers under it. A date is no number: NaT as one is -9.2e18.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, KindError

Values = npt.NDArray[Any]

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


def as_array(given: Any, of: str, *, dtype: npt.DTypeLike | None = None) -> Values:
    """`numpy.asarray`, but masked values are None in an array of objects, and what cannot be read
    is an error that says so."""
    masked = is_masked(given)
    try:
        if masked and not isinstance(given, np.ma.MaskedArray):
            given = np.ma.array(given)
        if masked:
            array = np.array(given.data, dtype=object)
            array[np.ma.getmaskarray(given)] = None
        else:
            array = np.asarray(given, dtype=dtype)
    except Exception as error:
        # whatever an object of somebody else's has to say: nothing was asked of the rows yet
        raise InputError.expected(
            "an array of one value a place", of=of, got=type(given).__name__, remedy=f"{error}"
        ) from error
    return array


def is_masked(given: object) -> bool:
    """Whether an array, or one in a list, has masked values."""
    if isinstance(given, list | tuple):
        return any(
            isinstance(item, np.ma.MaskedArray) and bool(np.ma.is_masked(item)) for item in given
        )
    return isinstance(given, np.ma.MaskedArray) and bool(np.ma.is_masked(given))


def refuse_other_kinds(array: Values, of: str, *, bytes_too: bool = True) -> None:
    """An error for an array of dates, durations, complex numbers, records or bytes."""
    kind = array.dtype.kind
    if kind in NO_NUMBERS and (bytes_too or kind != "S"):
        words, remedy = NO_NUMBERS[kind]
        raise KindError.expected(
            "numbers or words", of=of, got=f"{words} ({array.dtype})", remedy=remedy
        )


def numbers(given: object, of: str, *, remedy: str) -> npt.NDArray[np.float64]:
    """One finite or infinite float64 a place; missing ones are NaN. Texts are no numbers, and
    neither are dates."""
    array = as_array(given, of)
    refuse_other_kinds(array, of)
    words = array.dtype.kind in "UT"
    if array.dtype.kind == "O":
        words = any(
            isinstance(value, str | bytes | complex | np.complexfloating) for value in array.ravel()
        )
    try:
        if words:
            raise TypeError
        with np.errstate(over="ignore"):  # a long double beyond float64 is infinite
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise KindError.expected("one number a row", of=of, got="others", remedy=remedy) from None


def shape_of(X: object) -> tuple[Any, ...] | None:
    """What X says of its shape, (rows, columns) of a table; None where it says nothing."""
    found = getattr(X, "shape", None)
    return found if isinstance(found, tuple) else None


def column_names_of(X: object) -> tuple[object, ...]:
    """The names of a frame's columns, of whatever kind; () of what has none."""
    found = getattr(X, "columns", ())
    return tuple(found) if isinstance(found, Iterable) else ()
