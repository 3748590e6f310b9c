"""Group keys and class values as plain Python values, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..errors import InputError


def plain(value: object, *, of: str) -> Hashable:
    """The value itself, a NumPy scalar as the Python value it stands for, lists as tuples; NaN is
    refused.

    >>> plain(np.int64(3), of="positive")
    3
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple)):
        return tuple(plain(item, of=of) for item in value)
    if isinstance(value, float) and math.isnan(value):
        raise InputError.expected(
            "a value that equals itself", of=of, got=value, remedy="Give missing ones a code."
        )
    try:
        hash(value)
    except TypeError:
        raise InputError.expected(
            "a hashable value", of=of, got=value, remedy="Pass a text or a number."
        ) from None
    return value


def to_json(key: Hashable, *, of: str) -> Any:
    """The key as JSON values; a tuple becomes a list."""
    if isinstance(key, tuple):
        return [to_json(item, of=of) for item in key]
    if (
        key is None
        or isinstance(key, (str, bool, int))
        or (isinstance(key, float) and math.isfinite(key))
    ):
        return key
    remedy = "Use texts, numbers or booleans as group and class values."
    raise InputError.expected("a value that JSON can hold", of=of, got=key, remedy=remedy)


def shown(key: Hashable) -> str:
    """The key as a reader wants it: texts without quotes, tuples joined by a stroke.

    >>> shown(("f", "black"))
    'f / black'
    """
    return " / ".join(shown(item) for item in key) if isinstance(key, tuple) else str(key)
