"""A column of labels, groups or categories as codes of its distinct values: what is read from the
data without a schema."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, KindError
from . import keys
from .given import refuse_other_kinds
from .raw import Listed, Raw, in_order, is_missing

Codes = npt.NDArray[np.int32]
ROWS_AT_ONCE = 1 << 16  # a knob of memory only
MOST_VALUES = 1 << 16  # codes of sensitive columns are 16 bits wide


def distinct(raw: Raw, of: str) -> tuple[tuple[Hashable, ...], Codes]:
    """The values that occur, sorted, as plain Python values, and each row's position among them. A
    missing one is an error."""
    if isinstance(raw, Listed):
        return _of_listed(raw, of)
    if raw.null is not None and raw.null.any():
        _refuse_missing(of)
    values = raw.values
    refuse_other_kinds(values, of)
    if values.dtype.kind not in "biuf":
        return _of_runs(values, of)
    if values.dtype.kind == "f" and np.isnan(values).any():
        _refuse_missing(of)
    if values.dtype.kind == "f" and np.isinf(values).any():
        _refuse_infinite(of)
    found, codes = np.unique(values, return_inverse=True)
    return _checked(found.tolist(), of), codes.astype(np.int32)


def in_words(values: Iterable[object]) -> str:
    """A list of values on one printable line."""
    text = ", ".join(
        "".join(letter if letter.isprintable() else "?" for letter in str(value))
        for value in values
    )
    return text.strip() or "one without a name"


def _of_listed(raw: Listed, of: str) -> tuple[tuple[Hashable, ...], Codes]:
    used = np.unique(raw.at)
    if len(used) and used[0] < 0:
        _refuse_missing(of)
    values, places = _of_objects([raw.values[at] for at in used.tolist()], of)
    code_of = np.zeros(len(raw.values) + 1, np.int32)
    code_of[used] = places
    return values, code_of[raw.at]


def _of_runs(values: npt.NDArray[Any], of: str) -> tuple[tuple[Hashable, ...], Codes]:
    """Some rows at a time: as Python's values a column takes several times its own space."""
    starts = range(0, max(1, len(values)), ROWS_AT_ONCE)
    parts = [_of_objects(values[at : at + ROWS_AT_ONCE].tolist(), of) for at in starts]
    if len(parts) == 1:
        return parts[0]
    found = _checked(in_order({value for part, _ in parts for value in part}), of)
    code_of = {value: code for code, value in enumerate(found)}
    places = [np.array([code_of[value] for value in part], np.int32) for part, _ in parts]
    return found, np.concatenate([at[codes] for at, (_, codes) in zip(places, parts, strict=True)])


def _of_objects(listed: list[Any], of: str) -> tuple[tuple[Hashable, ...], Codes]:
    kinds = set(map(type, listed))
    if not kinds <= {str, bool, int}:
        if any(is_missing(value) for value in listed):
            _refuse_missing(of)
        listed = [keys.plain(value, of=of) for value in listed]
        strange = sorted(
            {type(value).__name__ for value in listed if not isinstance(value, str | int | float)}
        )
        if strange:
            remedy = "Make texts of them first: column.astype(str), for example."
            raise KindError.expected(
                "texts, numbers or truth values", of=of, got=strange, remedy=remedy
            )
        if any(isinstance(value, float) and math.isinf(value) for value in listed):
            _refuse_infinite(of)
    found = set(listed)
    values = in_order(found)
    code_of = {value: code for code, value in enumerate(values)}
    return _checked(values, of), np.fromiter(
        map(code_of.__getitem__, listed), np.int32, len(listed)
    )


def _checked(values: list[Any], of: str) -> tuple[Hashable, ...]:
    if len(values) > MOST_VALUES:
        remedy = "Make ranges of a number first; leave out columns that identify people."
        raise InputError.expected(
            f"at most {MOST_VALUES} distinct values",
            of=of,
            got=f"{len(values)} of them",
            remedy=remedy,
        )
    return tuple(values)


def _refuse_missing(of: str) -> None:
    raise InputError.expected(
        "a value in every row",
        of=of,
        got="missing ones (None or NaN)",
        remedy=(
            'Give them a value of their own ("unknown", for example), or declare what they '
            "count as in a schema."
        ),
    )


def _refuse_infinite(of: str) -> None:
    remedy = "Write a word for them: 'unknown', for example."
    raise InputError.expected("finite numbers or words", of=of, got="infinite ones", remedy=remedy)
