"""One column's values to codes, by its declaration alone.

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
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Place:
    """Where values stand, for messages: the column, the number of its first row, and whether cells
    are text that is parsed.

    `missing_values`: texts that mean "missing" where the column does not list them. `shows_values`:
    whether messages may; not of a file or a database, whose errors end in logs that others read.
    """

    column: str
    first_row: int = 0
    text: bool = False
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


def plain_numbers(raw: Raw, place: Place) -> npt.NDArray[np.float64]:
    """Numbers as they stand, NaN where one is missing. No error shows a value where `place` does
    not."""
    values, missing = _numbers(raw, place)
    values[missing] = math.nan
    return values


def _numbers(raw: Raw, place: Place) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """A copy as floats, and which of them are missing."""
    if isinstance(raw, Listed):
        each = [*(_number(value, place) for value in raw.values), math.nan]
        values = np.array([*raw.values, None], dtype=object)[raw.at]
        return _numbers_or_error([each[at] for at in raw.at.tolist()], values, None, place)
    if raw.values.dtype.kind not in "biuf":
        parsed = [_number(value, place) for value in raw.values.tolist()]
        return _numbers_or_error(parsed, raw.values, raw.null, place)
    is_float = raw.values.dtype.kind == "f"
    missing = np.isnan(raw.values) if is_float else np.zeros(raw.rows, np.bool_)
    if raw.null is not None:
        missing |= raw.null
    return raw.values.astype(np.float64), missing


def _numbers_or_error(
    parsed: list[float | None],
    values: npt.NDArray[Any],
    null: npt.NDArray[np.bool_] | None,
    place: Place,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    strange = np.fromiter((number is None for number in parsed), bool, len(parsed))
    if null is not None:
        strange &= ~null
    if strange.any():
        as_text = replace(place, text=True)
        texts = (isinstance(one, str) and _number(one, as_text) for one in values[strange])
        numerals = np.array([one is not None and one is not False for one in texts])
        remedy = "Mend these values, or declare another kind."
        if numerals.any():
            way = "convert the column with pandas.to_numeric, or read the file by data.open"
            remedy = f"Numbers in this column are text: {way}."
            if not numerals.all():
                remedy = f"Mend these values. {remedy}"
                strange[np.flatnonzero(strange)[numerals]] = False
        _refuse(place, "a number", values[strange][:SHOWN].tolist(), strange, remedy)
    numbers = np.array([math.nan if one is None else one for one in parsed], dtype=np.float64)
    missing = np.isnan(numbers)
    return numbers, missing if null is None else missing | null


def _number(value: Any, place: Place) -> float | None:
    """A float (NaN: missing), or None for what is not a number."""
    if isinstance(value, str):
        if value in place.missing_values:
            return math.nan
        if not place.text:
            return None
        if NUMBER.fullmatch(value):
            return float(value)
        return math.nan if NOT_A_NUMBER.fullmatch(value) else None
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
    coder = _Coder(column, place)
    if isinstance(raw, Listed):
        codes = np.fromiter((*map(coder.code, raw.values), MISSING), np.int32, len(raw.values) + 1)[
            raw.at
        ]
    else:
        fast = _numeric_codes(raw.values, column) if raw.values.dtype.kind in "biuf" else None
        codes = coder.codes(raw.values.tolist()) if fast is None else fast
        if raw.null is not None:
            codes[raw.null] = MISSING
    return _declared(codes, raw, column, place)


MISSING, UNKNOWN = -1, -2


class _Coder:
    """Code of one value, or MISSING or UNKNOWN. A listed value wins over the texts that mean
    missing."""

    def __init__(self, column: Category | Boolean, place: Place) -> None:
        self._codes: dict[Hashable, int] = {value: code for code, value in enumerate(column.values)}
        self._known: dict[str, int] = {
            value: code for value, code in self._codes.items() if isinstance(value, str)
        }
        self._place = place
        self._boolean = isinstance(column, Boolean)

    def codes(self, values: list[Any]) -> npt.NDArray[np.int32]:
        """Codes of many values: texts that were met before by one look-up each."""
        try:
            met = zip(values, map(self._known.get, values), strict=True)
            codes = (self.code(value) if code is None else code for value, code in met)
            return np.fromiter(codes, np.int32, len(values))
        except TypeError:  # a value that cannot be looked up at all
            return np.fromiter(map(self.code, values), np.int32, len(values))

    def code(self, value: object) -> int:
        """The code of one value."""
        if isinstance(value, str):
            code = self._known.get(value)
            if code is None:
                code = self._text(value)
                if code != UNKNOWN:
                    self._known[value] = code
            return code
        if is_missing(value):
            return MISSING
        try:
            return self._codes.get(value, UNKNOWN)
        except TypeError:
            return UNKNOWN

    def _text(self, text: str) -> int:
        """A text that is not itself listed: a marker of missing, or the writing of a listed number
        or truth value."""
        if text in self._place.missing_values:
            return MISSING
        if not self._place.text:
            return UNKNOWN
        truth = {"true": True, "false": False}.get(text.lower())
        for value, code in self._codes.items():
            if truth is not None and isinstance(value, bool) and value is truth:
                return code
            if (
                NUMBER.fullmatch(text)
                and not isinstance(value, str)
                and (self._boolean or not isinstance(value, bool))
            ):
                number = _as_listed(text)
                if number == value:
                    return code
        return MISSING if NOT_A_NUMBER.fullmatch(text) else UNKNOWN


def _as_listed(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _numeric_codes(
    values: npt.NDArray[Any], column: Category | Boolean
) -> npt.NDArray[np.int32] | None:
    """Codes of an array of numbers by binary search, where float64 holds both the values and the
    list exactly; None elsewhere: then they are looked at one by one."""
    exact = values.dtype.kind in "bf" or values.dtype.itemsize <= 4
    exact = exact or (len(values) > 0 and values.min() >= -(2**53) and values.max() <= 2**53)
    if not exact or any(isinstance(value, int) and abs(value) > 2**53 for value in column.values):
        return None
    pairs = enumerate(column.values)
    listed = [(float(value), code) for code, value in pairs if not isinstance(value, str)]
    codes = np.full(len(values), UNKNOWN, dtype=np.int32)
    as_float = values.astype(np.float64)
    if listed:
        listed.sort()
        keys = np.array([key for key, _ in listed])
        at = np.minimum(np.searchsorted(keys, as_float), len(keys) - 1)
        found = keys[at] == as_float
        codes[found] = np.array([code for _, code in listed], dtype=np.int32)[at[found]]
    codes[np.isnan(as_float)] = MISSING
    return codes


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
            if all(isinstance(one, str) and NUMBER.fullmatch(one) for one in values):
                remedy = (
                    f"Codes that are listed as texts are found only as they are written: list "
                    f"{values[0]} as a number, without quotes, to find it however a cell writes "
                    f"it. Or: {remedy[0].lower()}{remedy[1:]}"
                )
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
