"""Keyword validators: `positive(epsilon=epsilon)` returns the value or raises an `InputError` that
names it."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterable
from typing import Any, TypeVar, cast

from .errors import InputError

T = TypeVar("T")


def _the_one(named: dict[str, object]) -> tuple[str, object]:
    ((name, value),) = named.items()
    return name, value


def _number(name: str, value: object, expected: str, remedy: str) -> float:
    # the common case, without the detour through abstract classes
    if type(value) is float and value == value:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError.expected(expected, of=name, got=value, remedy=remedy)
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        raise InputError.expected(
            expected, of=name, got="one beyond all floats", remedy=remedy
        ) from None
    if math.isnan(number):
        raise InputError.expected(expected, of=name, got=value, remedy=remedy)
    return number


def positive(*, remedy: str = "", allow_inf: bool = False, **named: object) -> float:
    """A number above 0 (finite unless `allow_inf`).

    >>> positive(clip=2)
    2.0
    """
    name, value = _the_one(named)
    expected = "a number above 0" + (" (inf allowed)" if allow_inf else "")
    remedy = remedy or f"Pass {name}=1.0, for example."
    number = _number(name, value, expected, remedy)
    if number <= 0 or (math.isinf(number) and not allow_inf):
        raise InputError.expected(expected, of=name, got=value, remedy=remedy)
    return number


def non_negative(*, remedy: str = "", allow_inf: bool = False, **named: object) -> float:
    """A number at least 0 (finite unless `allow_inf`)."""
    name, value = _the_one(named)
    expected = "a number at least 0" + (" (inf allowed)" if allow_inf else "")
    remedy = remedy or f"Pass {name}=0.0, for example."
    number = _number(name, value, expected, remedy)
    if number < 0 or (math.isinf(number) and not allow_inf):
        raise InputError.expected(expected, of=name, got=value, remedy=remedy)
    return number


def fraction(
    *, remedy: str = "", low_open: bool = False, high_open: bool = False, **named: object
) -> float:
    """A number in [0, 1], each end open on request."""
    name, value = _the_one(named)
    expected = f"a number in {'(' if low_open else '['}0, 1{')' if high_open else ']'}"
    remedy = remedy or f"Pass a {name} inside that range."
    number = _number(name, value, expected, remedy)
    if number < 0 or number > 1 or (low_open and number == 0) or (high_open and number == 1):
        raise InputError.expected(expected, of=name, got=value, remedy=remedy)
    return number


def whole(*, at_least: int = 0, remedy: str = "", **named: object) -> int:
    """A whole number not below `at_least`."""
    name, value = _the_one(named)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < at_least:
        raise InputError.expected(
            f"a whole number of at least {at_least}",
            of=name,
            got=value,
            remedy=remedy or f"Pass {name}={max(at_least, 1)}, for example.",
        )
    return int(value)


def instance(kind: type[T], name: str, value: object, remedy: str, expected: str = "") -> T:
    """A value of a class; "a Schema" is expected of a `Schema`.

    >>> instance(int, "rounds", 3, "Pass rounds=3.")
    3
    """
    if not isinstance(value, kind):
        expected = expected or f"a {kind.__name__}"
        raise InputError.expected(expected, of=name, got=type(value).__name__, remedy=remedy)
    return value


def one_of(choices: Iterable[str], **named: object) -> str:
    """One of the given words.

    >>> one_of(("records", "sensitive_features"), protects="records")
    'records'
    """
    name, value = _the_one(named)
    words = tuple(choices)
    if not isinstance(value, str) or value not in words:
        listed = " or ".join(repr(word) for word in words)
        remedy = f"Pass {name}={words[0]!r}, for example."
        raise InputError.expected(listed, of=name, got=value, remedy=remedy, among=words)
    return value


def normalise(value: object, /, **fields: object) -> None:
    """Set fields of a frozen dataclass while it is made: as numbers of Python, as tuples, or from
    the others."""
    for name, content in fields.items():
        object.__setattr__(value, name, content)


def named(of: object, names: Iterable[str]) -> dict[str, Any]:
    """Attributes of a value by their names."""
    return {name: getattr(of, name) for name in names}


def fields_of(value: object) -> dict[str, Any]:
    """The fields of a data class by their names, each as it is: `asdict` would copy them."""
    return named(value, (one.name for one in dataclasses.fields(cast(Any, value))))
