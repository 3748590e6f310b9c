"""Several events as one, and one event as the answers that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from ... import _checks
from ...errors import InputError
from .event import Event, need_event, need_events
from .mechanisms import NoOp

MOST_TIMES = 1 << 60


@dataclass(frozen=True)
class Composed(Event):
    """All of these, on the same data, adaptively. Inside a sampled event: all on the same batch,
    one joint release."""

    kind: ClassVar[str] = "composed"
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        _checks.normalise(self, events=need_events(self.events))


@dataclass(frozen=True)
class Repeated(Event):
    """One event, `count` times over."""

    kind: ClassVar[str] = "repeated"
    event: Event
    count: int

    def __post_init__(self) -> None:
        need_event(self.event)
        _checks.normalise(self, count=_checks.whole(count=self.count))
        if self.count > MOST_TIMES:
            raise InputError.expected(
                "at most 2^60 times",
                of="count",
                got=self.count,
                remedy="Nothing is done that often.",
            )


def compose(events: Iterable[Event]) -> Event:
    """One event for several: runs of equal neighbours are folded into `Repeated`, no-ops dropped,
    singletons unwrapped.

    >>> from fairveil.privacy.events import Gaussian
    >>> compose([Gaussian(2.0), Gaussian(2.0), NoOp()])
    Repeated(event=Gaussian(noise_multiplier=2.0), count=2)
    """
    folded: list[tuple[Event, int]] = []
    for event in events:
        inner, count = (event.event, event.count) if isinstance(event, Repeated) else (event, 1)
        if isinstance(inner, NoOp) or count == 0:
            continue
        # Only neighbours: the order of a plan is the order in which it is followed.
        if folded and folded[-1][0] == inner:
            folded[-1] = (inner, folded[-1][1] + count)
        else:
            folded.append((inner, count))
    parts = tuple(event if count == 1 else Repeated(event, count) for event, count in folded)
    if not parts:
        return NoOp()
    return parts[0] if len(parts) == 1 else Composed(parts)


def spelled_out(event: Event) -> Iterator[Event]:
    """The answers that an event of composition and repetition stands for, one by one. No-ops cost
    nothing and are left out."""
    # once, in advance: nothing, however often it is repeated, takes no time
    left = _without_nothing(event)
    return iter(()) if left is None else _one_by_one(left)


def _without_nothing(event: Event) -> Event | None:
    if isinstance(event, Composed):
        parts = tuple(
            part for inner in event.events if (part := _without_nothing(inner)) is not None
        )
        return Composed(parts) if parts else None
    if isinstance(event, Repeated):
        inner = _without_nothing(event.event)
        return None if inner is None else Repeated(inner, event.count)
    return None if isinstance(event, NoOp) else event


def _one_by_one(event: Event) -> Iterator[Event]:
    if isinstance(event, Composed):
        for part in event.events:
            yield from _one_by_one(part)
    elif isinstance(event, Repeated):
        for _ in range(event.count):
            yield from _one_by_one(event.event)
    else:
        yield event


def joint_parts(event: Event) -> tuple[Event, ...]:
    """The leaves of one joint release: the event itself, or what a `Composed` or `Repeated` of
    leaves spells out."""
    if isinstance(event, Composed):
        return tuple(part for inner in event.events for part in joint_parts(inner))
    if isinstance(event, Repeated):
        return joint_parts(event.event) * event.count
    return (event,)


def count_parts(event: Event) -> int:
    """How many leaves `joint_parts` would spell out, without spelling them out."""
    if isinstance(event, Composed):
        return sum(count_parts(inner) for inner in event.events)
    return count_parts(event.event) * event.count if isinstance(event, Repeated) else 1
