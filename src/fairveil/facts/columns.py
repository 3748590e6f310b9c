"""The kinds of columns that a schema may declare. Each holds public facts only and checks
itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from .. import _checks
from ..errors import MissingBoundError, SchemaError

Value = str | int | float | bool
"""What a category, a class or a group may be: everything that both TOML and JSON can write."""

LARGEST_WHOLE = 2**63 - 1
MOST_EDGES = 1_000
ABOUT_ONE = 0.02
"""How far a sum of shares may be from 1: they are rounded numbers from elsewhere."""
# a sum that is 1 but for floating point is left alone, so that shares come back from a file as they
# were
EXACT = 1e-9


def _plain(given: object) -> Any:
    return given.item() if isinstance(given, np.generic) else given


def _value(given: object, of: str) -> Value:
    """One listed value as plain Python, its type kept; what TOML or JSON could not write back is
    refused."""
    plain = _plain(given)
    fits = isinstance(plain, bool | str | int | float)
    if isinstance(plain, float):
        fits = math.isfinite(plain)
    elif isinstance(plain, int):
        fits = abs(plain) <= LARGEST_WHOLE
    elif isinstance(plain, str):
        fits = all(not 0xD800 <= ord(letter) <= 0xDFFF for letter in plain)
    if not fits:
        raise SchemaError.expected(
            "a text, a truth value, a whole number below 2^63 or a finite number",
            of=of,
            got=given,
            remedy=(
                "List the values that occur; a missing one is declared by missing=, not "
                "listed as None or NaN."
            ),
        )
    value: Value = plain
    return value


def _bound(given: object, of: str) -> float:
    plain = _plain(given)
    if plain is None:
        raise MissingBoundError.expected(
            "a finite number",
            of=of,
            got=None,
            remedy=(
                "State a bound from public knowledge (a scale, a law, a legal limit); never "
                "from the rows."
            ),
        )
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not math.isfinite(plain):
        raise SchemaError.expected(
            "a finite number",
            of=of,
            got=given,
            remedy="Bounds are public numbers, such as 0 and 120.",
        )
    return float(plain)


def _shares(given: object, count: int, values: str) -> tuple[float, ...] | None:
    """One share for each value, above 0, of sum 1; None stays None. What is written by hand adds up
    to about 1."""
    if given is None:
        return None
    listed = [_plain(one) for one in given] if isinstance(given, list | tuple | np.ndarray) else []
    numbers = [
        float(one) for one in listed if isinstance(one, int | float) and not isinstance(one, bool)
    ]
    if (
        len(numbers) != count
        or len(listed) != count
        or not all(math.isfinite(one) and one > 0.0 for one in numbers)
    ):
        remedy = (
            f"State about how large a share each of {values} has, from public knowledge; leave it "
            f"out if that is not known."
        )
        raise SchemaError.expected(
            f"{count} numbers above 0", of="shares", got=given, remedy=remedy
        )
    total = math.fsum(numbers)
    if abs(total - 1.0) > ABOUT_ONE:
        raise SchemaError.expected(
            "numbers of sum 1",
            of="shares",
            got=f"a sum of {total:g}",
            remedy="Shares of all rows: 0.3 and 0.7.",
        )
    return tuple(numbers) if abs(total - 1.0) < EXACT else tuple(one / total for one in numbers)


def _edges(given: object, low: float, high: float) -> tuple[float, ...] | None:
    """Steps strictly inside the bounds, ascending; None stays None, and an empty list says that
    there are none."""
    if given is None:
        return None
    remedy = "State ascending numbers inside the bounds, such as [18, 25, 65]; or leave edges out."
    if not isinstance(given, list | tuple | np.ndarray):
        raise SchemaError.expected("a list of numbers", of="edges", got=given, remedy=remedy)
    edges = tuple(_bound(edge, "edges") for edge in given)
    inside = all(low < edge < high for edge in edges)
    if not inside or any(a >= b for a, b in pairwise(edges)) or len(edges) > MOST_EDGES:
        expected = f"at most {MOST_EDGES} ascending numbers between {low:g} and {high:g}"
        raise SchemaError.expected(expected, of="edges", got=list(edges), remedy=remedy)
    return edges


@dataclass(frozen=True)
class Number:
    """A number with public bounds. Values beyond them are clipped; `missing` is what stands in for
    a missing one.

    `edges`: where an additive model's steps may lie, public as the bounds are: from a distribution
    or a scale, never counted in the rows. None: the library's own, from the bounds. No other model
    reads them.

    >>> Number(0, 120, missing=40).high
    120.0
    >>> Number(0, 120, edges=[18, 25, 65]).edges
    (18.0, 25.0, 65.0)
    """

    low: float
    high: float
    missing: float | None = None
    edges: tuple[float, ...] | None = None

    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        low, high = _bound(self.low, "low"), _bound(self.high, "high")
        if not low < high:
            raise SchemaError.expected(
                "low < high", of="bounds", got=(low, high), remedy="Swap them, or widen the range."
            )
        _checks.normalise(self, low=low, high=high)
        if self.missing is not None:
            missing = _bound(self.missing, "missing")
            if not low <= missing <= high:
                raise SchemaError.expected(
                    f"a number between {low:g} and {high:g}",
                    of="missing",
                    got=missing,
                    remedy="Declare a stand-in inside the bounds.",
                )
            _checks.normalise(self, missing=missing)
        _checks.normalise(self, edges=_edges(self.edges, low, high))

    def facts(self) -> dict[str, Any]:
        """The options, as plain values."""
        edges = None if self.edges is None else list(self.edges)
        options = {"missing": self.missing, "edges": edges}
        return {
            "low": self.low,
            "high": self.high,
            **{name: value for name, value in options.items() if value is not None},
        }


@dataclass(frozen=True)
class Category:
    """One of the listed values; their order is the order of the codes.

    `missing`: the listed value that a missing one counts as. `unknown`: the listed value that an
    unlisted one counts as. List a value of its own ("other") to keep them apart. Not declared: a
    missing or unlisted value is an error.

    `shares`: about which share of the rows has each value, where that is *public*: from a census,
    never counted in the rows. They foretell noise (`plan`); nothing that is fitted depends on them.

    >>> Category(("private", "state", "?"), missing="?").values
    ('private', 'state', '?')
    >>> Category(("f", "m"), shares=(0.33, 0.67)).shares
    (0.33, 0.67)
    """

    values: tuple[Value, ...]
    missing: Value | None = None
    unknown: Value | None = None
    shares: tuple[float, ...] | None = None

    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        given: object = self.values
        if (
            isinstance(given, str | bytes)
            or not isinstance(given, list | tuple | np.ndarray)
            or len(given) == 0
        ):
            raise SchemaError.expected(
                "a non-empty list of values",
                of="values",
                got=given,
                remedy='Pass values=["no", "yes"], for example.',
            )
        values = tuple(_value(value, "values") for value in given)
        if len(set(values)) != len(values):
            twice = [value for at, value in enumerate(values) if value in values[:at]]
            raise SchemaError.expected(
                "distinct values (1, 1.0 and true are the same value)",
                of="values",
                got=twice,
                remedy="List each value once.",
            )
        _checks.normalise(self, values=values)
        for name, option in _checks.named(self, ("missing", "unknown")).items():
            if option is None:
                continue
            option = _value(option, name)
            if option not in values:
                raise SchemaError.expected(
                    f"one of the listed values {list(values)}",
                    of=name,
                    got=option,
                    remedy=f"Add {option!r} to values, or name a listed value.",
                )
            _checks.normalise(self, **{name: values[values.index(option)]})
        _checks.normalise(self, shares=_shares(self.shares, len(values), str(list(values))))

    def facts(self) -> dict[str, Any]:
        """The options, as plain values."""
        shares = None if self.shares is None else list(self.shares)
        options = {"missing": self.missing, "unknown": self.unknown, "shares": shares}
        return {
            "values": list(self.values),
            **{name: value for name, value in options.items() if value is not None},
        }


@dataclass(frozen=True)
class Boolean:
    """True or false (1 and 0 too; in text, any case of "true" and "false"). Its codes are 0 for
    false and 1 for true.

    `shares`: about which share of the rows is false, and which is true, where that is public: see
    `Category`.
    """

    missing: bool | None = None
    shares: tuple[float, ...] | None = None

    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        given = _plain(self.missing)
        if given is not None and not isinstance(given, bool):
            raise SchemaError.expected(
                "true, false or nothing",
                of="missing",
                got=given,
                remedy=(
                    'For a third value use a category: values=[false, true, "unknown"], '
                    'missing="unknown".'
                ),
            )
        _checks.normalise(self, missing=given, shares=_shares(self.shares, 2, "false and true"))

    @property
    def values(self) -> tuple[Value, ...]:
        """The values in the order of their codes."""
        return (False, True)

    def facts(self) -> dict[str, Any]:
        """The options, as plain values."""
        options = {
            "missing": self.missing,
            "shares": None if self.shares is None else list(self.shares),
        }
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True)
class Ignored:
    """A column that is never read."""

    kind: ClassVar[str] = "ignored"

    def facts(self) -> dict[str, Any]:
        """No options."""
        return {}


Column = Number | Category | Boolean | Ignored
KINDS: dict[str, type[Column]] = {
    "number": Number,
    "category": Category,
    "boolean": Boolean,
    "ignored": Ignored,
}
OPTIONS: dict[str, tuple[str, ...]] = {
    "number": ("low", "high", "missing", "edges"),
    "category": ("values", "missing", "unknown", "shares"),
    "boolean": ("missing", "shares"),
    "ignored": (),
}
