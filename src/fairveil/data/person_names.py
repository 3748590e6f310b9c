"""Whose each row is, as seventeen bytes a person: enough to tell persons apart, and no name.

Two names have the same bytes where Python says that they are equal, as in a table in memory; else
with probability 2^-128. The last byte says whether a name is a text, a number or of another type: a person
whose name is 7 in one file and "7" in another would count as two (`require_one_kind`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SchemaError
from ..tables.raw import Listed, Raw, is_missing

BYTES = 16
NAME = np.dtype(f"S{BYTES + 1}")
NOBODY = b""
TEXT, NUMBER, OTHERS = b"s", b"n", 128


def names_of(raw: Raw) -> npt.NDArray[Any]:
    """The bytes of each row's person; none where it is missing."""
    if isinstance(raw, Listed):
        return np.asarray(_named([*raw.values, None])[raw.at])  # -1, a missing one, is the last
    values = np.asarray(raw.values)
    if values.dtype.kind in "biuf":
        distinct, at = np.unique(values, return_inverse=True)
        found = _named(distinct.tolist())[at.reshape(-1)]
    else:
        known: dict[Any, int] = {}
        at = np.fromiter(
            (known.setdefault(value, len(known)) for value in values.tolist()), np.intp, len(values)
        )
        found = _named(known)[at]
    if raw.null is not None:
        found[raw.null] = NOBODY
    return found


def _named(values: Iterable[Any]) -> npt.NDArray[Any]:
    return np.array([_name(value) for value in values], NAME)


def require_one_kind(persons: npt.NDArray[Any], unit: str, before: set[int]) -> set[int]:
    """The kinds of names so far; an error where files, or rows of a database, write them in several
    ways."""
    last = np.frombuffer(persons.tobytes(), np.uint8).reshape(-1, NAME.itemsize)[:, BYTES]
    kinds = before | set(np.unique(last).tolist()) - {0}
    if len(kinds) > 1:
        remedy = "Write it in one way everywhere: as text in all files, or as numbers in all."
        raise SchemaError.expected(
            "names of one kind", of=f"unit {unit!r}", got=_Kinds(), remedy=remedy
        )
    return kinds


class _Kinds:
    def __repr__(self) -> str:
        return "names of several kinds, so that one person may have two"


def _name(value: object) -> bytes:
    if is_missing(value) or value == "":
        return NOBODY
    kind = NUMBER
    if isinstance(value, str):
        told, kind = value.encode("utf-8", "surrogatepass"), TEXT
    elif isinstance(value, Integral):
        told = b"%d" % int(value)
    elif isinstance(value, Real | Decimal):
        told = _number(value)
    else:
        named = type(value).__qualname__.encode()
        told = named + f" {value!r}".encode()
        kind = bytes([hashlib.blake2b(named, digest_size=1).digest()[0] | OTHERS])
    # A letter for the kind: the person "1" is not the person 1. It is never zero, which numpy
    # drops at the end.
    return hashlib.blake2b(kind + told, digest_size=BYTES).digest() + kind


def _number(value: Any) -> bytes:
    """The same for equal numbers of any type: a column of whole numbers with a gap is read as
    floats."""
    try:
        top, bottom = value.as_integer_ratio()
    except (AttributeError, ArithmeticError, ValueError):  # infinite, or of a type without ratios
        return repr(value).encode()
    return b"%d" % top if bottom == 1 else b"%d/%d" % (top, bottom)
