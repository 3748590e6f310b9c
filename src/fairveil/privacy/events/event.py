"""What an event is, and what all events check."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from ... import _checks
from ...errors import InputError

SMALLEST, LARGEST = 1e-100, 1e100  # of multipliers: their squares and sums stay finite


@dataclass(frozen=True)
class Event:
    """One node of the tree. Abstract: use a leaf or a combination below."""

    kind: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, `kind` first."""
        out: dict[str, Any] = {"kind": self.kind}
        return out | {name: _plain(value) for name, value in _checks.fields_of(self).items()}


def checked_multiplier(value: object, remedy: str = "") -> float:
    number = _checks.positive(noise_multiplier=value, remedy=remedy)
    if not SMALLEST <= number <= LARGEST:
        raise InputError.expected(
            f"a number from {SMALLEST:g} to {LARGEST:g}",
            of="noise_multiplier",
            got=value,
            remedy=remedy or "A multiplier is the noise over the sensitivity.",
        )
    return number


def _plain(value: object) -> Any:
    if isinstance(value, Event):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf"
    return value


def need_event(value: object) -> Event:
    if not isinstance(value, Event):
        raise InputError.expected(
            "an event", of="event", got=brief(value), remedy="Pass Gaussian(1.0), for example."
        )
    return value


def need_events(values: object) -> tuple[Event, ...]:
    if isinstance(values, Event) or not isinstance(values, Iterable):
        raise InputError.expected(
            "several events", of="events", got=brief(values), remedy="Pass a list of events."
        )
    return tuple(need_event(value) for value in values)


def brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."
