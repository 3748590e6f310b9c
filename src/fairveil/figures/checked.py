"""Validators of what figures and reports are made of; like `_checks`, for numbers that may be
absent and for words."""

from __future__ import annotations

import math
from typing import TypeVar

from .. import _checks
from ..errors import InputError

T = TypeVar("T")


def finite(name: str, value: object) -> float:
    """A number that is neither infinite nor undefined, as a Python float."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, (bool, str)) or not math.isfinite(number):
        remedy = "Leave out what is undefined."
        raise InputError.expected("a finite number", of=name, got=value, remedy=remedy)
    return number


def finite_if_given(of: object, *names: str) -> None:
    """The same of fields of a frozen value, each of which may be None."""
    for name, value in _checks.named(of, names).items():
        if value is not None:
            _checks.normalise(of, **{name: finite(name, value)})


def interval(of: object, low: str, high: str) -> None:
    """Both ends or neither, in order, as Python floats."""
    ends = tuple(_checks.named(of, (low, high)).values())
    if ends == (None, None):
        return
    if None in ends or finite(low, ends[0]) > finite(high, ends[1]):
        remedy = f"Pass {low} <= {high}, or neither."
        raise InputError.expected("two ends in order", of=f"{low}, {high}", got=ends, remedy=remedy)
    _checks.normalise(of, **{low: float(ends[0])})
    _checks.normalise(of, **{high: float(ends[1])})


def line(*, empty: bool = False, **named: object) -> None:
    """Printable words on one line."""
    for name, value in named.items():
        if not isinstance(value, str) or not value.isprintable() or not (value.strip() or empty):
            remedy = f"Say {name} in words, without line breaks."
            raise InputError.expected("some words on one line", of=name, got=value, remedy=remedy)


def sentences(name: str, values: object) -> tuple[str, ...]:
    """Several lines, as a tuple; a single text is refused, it would be read letter by letter."""
    if isinstance(values, str) or not isinstance(values, (list, tuple)):
        raise InputError.expected(
            "a list of sentences", of=name, got=values, remedy=f"Pass {name}=['...']."
        )
    for value in values:
        line(**{name: value})
    return tuple(values)


def several(kind: type[T], name: str, values: object) -> tuple[T, ...]:
    """One or more of a kind, as a tuple."""
    found = tuple(values) if isinstance(values, (list, tuple)) else ()
    if not found or not all(isinstance(value, kind) for value in found):
        remedy = f"Pass {name}=[{kind.__name__}(...)]."
        raise InputError.expected(
            f"one {kind.__name__} or more", of=name, got=values, remedy=remedy
        )
    return found
