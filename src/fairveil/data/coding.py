"""One column's values to codes, by its declaration alone.

Numerals are compared by value, however they are written: 1, 1.0, "1" and "1.0" are one value, of a
number and of a listed code, in memory as in a file. A listed value that is equal as it stands comes
first; a numeral that two listed texts could mean is neither.

Guarantees, each with a test:
1. A row's code depends on that row's value and the declaration, on nothing else: no other row moves
   it by a bit.
2. A number's code lies in [-1, 1], whatever came.
3. What the declaration does not cover is an error that names column and row, never a code. It names
   the value, too, of a table in memory, which the caller has at hand; of files and databases never.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import SchemaError
from ..facts.columns import Boolean, Category, Number, Value
from ..tables.columns import Listed, Raw, is_missing

NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)",
    re.ASCII | re.IGNORECASE,
)
NOT_A_NUMBER = re.compile(r"[+-]?nan", re.ASCII | re.IGNORECASE)
SHOWN = 5
MISSING, UNKNOWN = -1, -2


@dataclass(frozen=True)
class Place:
    """Where values stand, for messages: the column, and the number of its first row.

    `missing_values`: texts that mean "missing" where the column does not list them. `shows_values`:
    whether messages may; not of a file or a database, whose errors end in logs that others read.
    """

    column: str
    first_row: int = 0
    missing_values: tuple[str, ...] = ("",)
    shows_values: bool = True


# Numbers


def number_codes(raw: Raw, column: Number, place: Place) -> npt.NDArray[np.float64]:
    """Numbers scaled from [low, high] to [-1, 1] and clipped; guarantee 2.

    z = (min(max(x, low), high) - center) / half, with center = low/2 + high/2 and half = high/2 -
    low/2.
    """
    values, missing = _numbers(raw, place)
    if missing.any():
        if column.missing is None:
            remedy = (
                "Declare for the column, as `missing`, the number that a missing cell counts as."
            )
            _refuse(place, "a number", ["a missing value"], missing, remedy)
        values[missing] = column.missing
    np.clip(values, column.low, column.high, out=values)
    values -= column.low / 2 + column.high / 2
    values /= column.high / 2 - column.low / 2
    return np.clip(values, -1.0, 1.0, out=values)


def _numbers(raw: Raw, place: Place) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """A copy as floats, and which of them are missing."""
    null = np.zeros(raw.rows, np.bool_)
    if isinstance(raw, Listed):
        found = _parsed([*raw.values, None], place)[raw.at]
    elif raw.values.dtype.kind in "biuf":
        found = raw.values.astype(np.float64)
    else:
        found = _parsed(raw.values.tolist(), place)
    if not isinstance(raw, Listed) and raw.null is not None:
        null = raw.null
    if found.dtype == object:  # what is no number is None
        strange = np.array([one is None for one in found.tolist()], np.bool_) & ~null
        if strange.any():
            remedy = "Mend these values, or declare another kind."
            _refuse(place, "a number", _sample(raw, strange), strange, remedy)
        found = np.where(null, math.nan, found).astype(np.float64)
    return found, np.isnan(found) | null


def _parsed(values: Iterable[Any], place: Place) -> npt.NDArray[Any]:
    listed = [_number(value, place) for value in values]
    return np.array(listed, object if None in listed else np.float64)


def _number(value: Any, place: Place) -> float | None:
    """A float (NaN: missing), or None for what is not a number."""
    if isinstance(value, str):
        if value in place.missing_values or NOT_A_NUMBER.fullmatch(value):
            return math.nan
        return float(value) if NUMBER.fullmatch(value) else None
    if is_missing(value):
        return math.nan
    if isinstance(value, bytes | complex):
        return None
    try:
        return float(value)  # Decimal, Fraction and their like say how they become floats
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # only whole numbers overflow
    except (TypeError, ValueError):
        return None


# Categories


def category_codes(raw: Raw, column: Category | Boolean, place: Place) -> npt.NDArray[np.int32]:
    """The position of each value in the declared list; guarantees 1 and 3."""
    coder = _Coder(column.values, place.missing_values, isinstance(column, Boolean))
    if isinstance(raw, Listed):
        listed = (*map(coder.code, raw.values), MISSING)
        codes = np.fromiter(listed, np.int32, len(raw.values) + 1)[raw.at]
    else:
        fast = coder.of_numbers(raw.values) if raw.values.dtype.kind in "biuf" else None
        codes = coder.codes(raw.values.tolist()) if fast is None else fast
        if raw.null is not None:
            codes[raw.null] = MISSING
    return _declared(codes, raw, column, place)


class _Coder:
    """Code of one value, or MISSING or UNKNOWN. A listed value wins over the texts that mean
    missing. `whole`: whether truth values are numbers, too. `_exact`: codes of values as they
    stand, `_numerals`: of what numbers are worth."""

    def __init__(
        self, values: Sequence[Any], missing_values: Sequence[str] = (), whole: bool = False
    ) -> None:
        listed: list[tuple[Any, int]] = [(one, code) for code, one in enumerate(values)]
        self._exact: dict[Hashable, int] = dict(listed)
        self._known = {one: code for one, code in listed if isinstance(one, str)}
        self._missing = missing_values
        self._truths = {one: code for one, code in listed if isinstance(one, bool)}
        self._numerals: dict[int | float, int] = {
            one: code
            for one, code in listed
            if not isinstance(one, str) and (whole or not isinstance(one, bool))
        }
        worth = [(_worth(one), code) for one, code in listed if isinstance(one, str)]
        several = [one for one, _ in worth]
        self._numerals |= {
            one: code
            for one, code in worth
            if one is not None and several.count(one) == 1 and one not in self._numerals
        }

    def codes(self, values: list[Any]) -> npt.NDArray[np.int32]:
        """Codes of many values: texts that were met before by one look-up each."""
        try:
            met = zip(values, map(self._known.get, values), strict=True)
            codes = (self.code(value) if code is None else code for value, code in met)
            return np.fromiter(codes, np.int32, len(values))
        except TypeError:  # a value that cannot be looked up at all
            return np.fromiter(map(self.code, values), np.int32, len(values))

    def code(self, value: Any) -> int:
        """The code of one value."""
        if isinstance(value, str):
            known = self._known.get(value)
            code = self._text(value) if known is None else known
            if code != UNKNOWN:
                self._known[value] = code
            return code
        if is_missing(value):
            return MISSING
        try:
            exact = self._exact.get(value)
        except TypeError:
            return UNKNOWN
        if exact is not None or isinstance(value, bool | np.bool_):
            return UNKNOWN if exact is None else exact
        return self._numerals.get(value, UNKNOWN)

    def _text(self, text: str) -> int:
        """A text that is not itself listed: a marker of missing, or another writing of a listed
        number or truth value."""
        if text in self._missing:
            return MISSING
        truth = {"true": True, "false": False}.get(text.lower())
        if truth is not None and truth in self._truths:
            return self._truths[truth]
        worth = _worth(text)
        if worth is None:
            return MISSING if NOT_A_NUMBER.fullmatch(text) else UNKNOWN
        return self._numerals.get(worth, UNKNOWN)

    def of_numbers(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int32] | None:
        """Codes of an array of numbers by binary search, where float64 holds both the values and
        the list exactly; None elsewhere: then they are looked at one by one."""
        exact = values.dtype.kind in "bf" or values.dtype.itemsize <= 4
        exact = exact or (len(values) > 0 and values.min() >= -(2**53) and values.max() <= 2**53)
        known: dict[Any, int] = {} if values.dtype.kind == "b" else dict(self._numerals)
        known |= {one: code for one, code in self._exact.items() if not isinstance(one, str)}
        if not exact or any(isinstance(one, int) and abs(one) > 2**53 for one in known):
            return None
        codes = np.full(len(values), UNKNOWN, dtype=np.int32)
        as_float = values.astype(np.float64)
        if known:
            listed = sorted((float(value), code) for value, code in known.items())
            keys = np.array([key for key, _ in listed])
            at = np.minimum(np.searchsorted(keys, as_float), len(keys) - 1)
            found = keys[at] == as_float
            codes[found] = np.array([code for _, code in listed], dtype=np.int32)[at[found]]
        codes[np.isnan(as_float)] = MISSING
        return codes


def codes_among(values: Sequence[Any], listed: Sequence[Any]) -> npt.NDArray[np.int32]:
    """The place of each value in a list, numerals by value; below 0 where it has none.

    >>> codes_among(["no", 1, "1.0", 2], ["no", "1"]).tolist()
    [0, 1, 1, -2]
    """
    return _Coder(listed).codes(list(values))


def _worth(text: str) -> int | float | None:
    """The finite number that a text writes; None where it writes none."""
    if not NUMBER.fullmatch(text):
        return None
    try:
        return int(text)
    except ValueError:
        worth = float(text)
    return worth if math.isfinite(worth) else None


def _declared(
    codes: npt.NDArray[np.int32], raw: Raw, column: Category | Boolean, place: Place
) -> npt.NDArray[np.int32]:
    """The declared codes in the place of missing and unknown values, or an error."""
    if codes.size == 0 or codes.min() >= 0:
        return codes
    values: Sequence[Value] = column.values
    unknown = column.unknown if isinstance(column, Category) else None
    for mark, option, declared in (
        (MISSING, "missing", column.missing),
        (UNKNOWN, "unknown", unknown),
    ):
        where = codes == mark
        if not where.any():
            continue
        if declared is not None:
            codes[where] = values.index(declared)
            continue
        came = ["a missing value"] if mark == MISSING else _sample(raw, where)
        cell = "a missing cell" if mark == MISSING else "one that is not listed"
        remedy = f"Declare for the column, as `{option}`, the value that {cell} counts as."
        if mark == UNKNOWN:
            remedy = f"List the value in the schema. {remedy}"
        _refuse(place, f"one of {list(values)}", came, where, remedy)
    return codes


def _sample(raw: Raw, where: npt.NDArray[np.bool_]) -> list[object]:
    if isinstance(raw, Listed):
        return [raw.values[at] for at in raw.at[where][:SHOWN]]
    return list(raw.values[where][:SHOWN].tolist())


def _refuse(
    place: Place, expected: str, came: Sequence[object], where: npt.NDArray[np.bool_], remedy: str
) -> NoReturn:
    """Raised before any release, to the data holder."""
    rows = np.flatnonzero(where)
    shown = [repr(value) if place.shows_values else "another value" for value in came]
    if came == ["a missing value"]:
        shown = list(map(str, came))
    at, of = place.first_row + int(rows[0]) + 1, f"column {place.column!r}"
    count = f"in {len(rows)} of the {len(where)} rows looked at; first in row {at}"
    got = f"{', '.join(dict.fromkeys(shown))} ({count})"
    raise SchemaError.expected(expected, of=of, got=got, remedy=remedy, quote=False)
