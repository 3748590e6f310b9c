"""Events as plain values, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ...errors import InputError
from .composition import Composed, Repeated
from .event import Event, brief
from .mechanisms import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    Pure,
    SamplerError,
    ZeroConcentrated,
)
from .per_cell import LATER, PerCell
from .sampled import OnPart, PoissonSampled, PrivateSelection, VisiblySampled

FORMAT_VERSION = 1


KINDS: Mapping[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        NoOp,
        NonPrivate,
        Gaussian,
        DiscreteGaussian,
        Laplace,
        DiscreteLaplace,
        Exponential,
        Pure,
        Approximate,
        ZeroConcentrated,
        SamplerError,
        PerCell,
        Composed,
        Repeated,
        PoissonSampled,
        VisiblySampled,
        OnPart,
        PrivateSelection,
    )
}


def to_json_dict(event: Event) -> dict[str, Any]:
    """An event with the version of its format, for files."""
    return {"version": FORMAT_VERSION, "event": event.to_dict()}


def from_json_dict(values: object) -> Event:
    """The inverse of `to_json_dict`; refuses unknown versions, kinds and fields."""
    if not isinstance(values, Mapping) or set(values) != {"version", "event"}:
        raise InputError.expected(
            "an object with 'version' and 'event'",
            of="events file",
            got=brief(values),
            remedy="Write it with events.to_json_dict().",
        )
    if values["version"] != FORMAT_VERSION:
        raise InputError.expected(
            f"version {FORMAT_VERSION}",
            of="events file",
            got=values["version"],
            remedy="Read it with the version of Fairveil that wrote it.",
        )
    return from_dict(values["event"])


def from_dict(values: object) -> Event:
    """The inverse of `Event.to_dict`."""
    if (
        not isinstance(values, Mapping)
        or not isinstance(values.get("kind"), str)
        or values["kind"] not in KINDS
    ):
        raise InputError.expected(
            f"an object whose 'kind' is one of {sorted(KINDS)}",
            of="event",
            got=brief(values),
            remedy="Write events with to_dict().",
        )
    cls = KINDS[values["kind"]]
    names = {field.name for field in fields(cls)}
    given = {name: value for name, value in values.items() if name != "kind"}
    if set(given) | set(LATER.get(cls.kind, ())) != names:
        raise InputError.expected(
            f"the fields {sorted(names)}",
            of=f"event {values['kind']!r}",
            got=sorted(given),
            remedy="Write events with to_dict().",
        )
    return cls(**{name: _revive(name, value) for name, value in given.items()})


def _revive(name: str, value: object) -> Any:
    if name == "event":
        return from_dict(value)
    if name in ("events", "multipliers", "spreads", "crossings") and value is not None:
        if not isinstance(value, list):
            raise InputError.expected(
                "a list", of=name, got=brief(value), remedy="Write events with to_dict()."
            )
        if name == "events":
            return tuple(from_dict(item) for item in value)
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return math.inf if value == "inf" else value
