"""How large a gap or a rate may be: read, checked, and never left out by accident.

A rate lies between 0 and 1, and two rates are never more than 1 apart. A bound of 1 or more
therefore requires nothing. To require nothing, pass None. On a command line a bound may be in per
cent: "5%" is 0.05.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from .. import _checks
from ..errors import InputError

LARGEST = 1.0
UNITS = {"max_gap": "percentage points"}  # of all others: per cent
_PER_CENT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*%\s*")
_BARE_POINT = re.compile(r"[+-]?(?:\d+\.|\.\d+)(?:[eE][+-]?\d{1,3})?")


class _NotGiven:
    """The default of a bound that has none."""

    def __repr__(self) -> str:
        return "required"

    def __copy__(self) -> _NotGiven:
        return self

    def __deepcopy__(self, memo: object) -> _NotGiven:
        return self


NOT_GIVEN: Any = _NotGiven()


def of_rates(owner: str, *, below: float = LARGEST, **named: object) -> float | None:
    """A bound on rates or on gaps of rates: at least 0 and below `below`, or None, which requires
    nothing.

    >>> of_rates("DemographicParity", max_gap=0.05)
    0.05
    """
    ((name, value),) = named.items()
    if value is NOT_GIVEN:
        remedy = (
            f"Write {owner}({name}=0.05), for example, or {owner}({name}=None) to require nothing."
        )
        raise InputError.expected("a bound", of=name, got="none", remedy=remedy, quote=False)
    if value is None:
        return None
    way_out = f"{name}=None requires nothing."
    bound = _number(name, value, f"Pass {name}=0.05, for example; {way_out}")
    if bound >= below:
        back = (
            asked_back(name, bound, f"{name}={{}}")
            if below == LARGEST
            else "This loss has no largest value."
        )
        remedy = f"{back} {way_out}"
        raise InputError.expected(
            f"a number from 0 to below {below:g}", of=name, got=value, remedy=remedy
        )
    return bound


def asked_back(name: str, bound: float, *ways: str) -> str:
    """What so large a bound would mean, and which smaller one may have been meant; `ways` to write
    that, with {} for it.

    >>> asked_back("max_gap", 5.0, "max_gap={}")
    '5 means 500 percentage points: did you mean max_gap=0.05?'
    >>> asked_back("max_rate", 300.0, "max_rate={}")
    'No rate is above 1.'
    """
    unit = UNITS.get(name, "per cent")
    if bound >= 100:
        return "No two rates are more than 1 apart." if name == "max_gap" else "No rate is above 1."
    meant = " or ".join(way.format(f"{bound / 100:.6g}") for way in ways)
    return f"{bound:g} means {100 * bound:.6g} {unit}: did you mean {meant}?"


def share(text: str) -> float | None:
    """The number that a text in per cent stands for; None where it is not in per cent.

    >>> share("5%"), share("2.3 %"), share("0.05")
    (0.05, 0.023, None)
    """
    found = _PER_CENT.fullmatch(text) if len(text) < 64 else None
    return None if found is None else float(Decimal(found[1]) / 100)


def bare_point(text: str) -> float | None:
    """A number with no digit before its point, or none after it, which JSON does not take; None of
    any other text.

    >>> bare_point(".1"), bare_point("1."), bare_point("0.1")
    (0.1, 1.0, None)
    """
    return float(text) if len(text) < 64 and _BARE_POINT.fullmatch(text) else None


def below_one(bound: object, name: str) -> float:
    """A bound on an objective that is a rate, a gap of rates or a mean of them."""
    found = _number(name, bound, f"Pass {name}=0.05, for example.")
    if found >= LARGEST:
        remedy = (
            f"{asked_back(name, found, f'{name}={{}}')} To require nothing, leave the bound out."
        )
        raise InputError.expected("a number from 0 to below 1", of=name, got=bound, remedy=remedy)
    return found


def _number(name: str, value: object, remedy: str) -> float:
    """At least 0, perhaps infinite: whoever calls refuses that in words of its own."""
    if isinstance(value, float) and value == math.inf:
        return value
    return _checks.non_negative(remedy=remedy, **{name: value})  # type: ignore[arg-type]


def require_below_one(bound: float, text: str, name: str, limit: str) -> None:
    """An error where the bound in a text requires nothing. `name`: of what it bounds; `limit`:
    "max_gap", or of a rate."""
    if bound >= LARGEST:
        remedy = f"{asked_back(limit, bound, f'{name}:{{}}')[:-1]} or {name}:{bound:g}%?"
        remedy = (
            remedy
            if bound < 100
            else f"{asked_back(limit, bound)} Leave the option out to require nothing."
        )
        raise InputError.expected(
            "a bound from 0 to below 1", of="constraint", got=text, remedy=remedy
        )


def of_confidence(confidence: object) -> None:
    """The confidence with which a fit certifies a bound: None, or from 0.5 to below 1."""
    if confidence is None:
        return
    remedy = "Pass confidence=0.95, for example: no finite number of people makes anything certain."
    found = _checks.fraction(confidence=confidence, high_open=True, remedy=remedy)
    if found < 0.5:
        raise InputError.expected(
            "0.5 or more, and below 1", of="confidence", got=confidence, remedy=remedy
        )
