"""Whose each row is, as seventeen bytes a person: enough to tell persons apart, and no name.

Two names have the same bytes where Python says that they are equal, as in a table in memory; else
with probability 2^-128.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ..tables.raw import Listed, Raw, is_missing

BYTES = 16
NAME = np.dtype(f"S{BYTES + 1}")
NOBODY = b""


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


def _name(value: object) -> bytes:
    if is_missing(value) or value == "":
        return NOBODY
    if isinstance(value, str):
        # A letter for the kind: the person "1" is not the person 1.
        told = b"s" + value.encode("utf-8", "surrogatepass")
    elif isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer()):
        # 1 and 1.0 are one person: a column of whole numbers with a gap is read as floats.
        told = b"n%d" % int(float(value) if not isinstance(value, Integral) else value)
    elif isinstance(value, Real):
        told = b"f" + repr(float(value)).encode()
    else:
        told = b"o" + f"{type(value).__qualname__} {value!r}".encode()
    # numpy drops zero bytes at the end
    return hashlib.blake2b(told, digest_size=BYTES).digest() + b"\x01"
