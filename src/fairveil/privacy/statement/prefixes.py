"""Whether what was done is how a plan begins: answer by answer, in runs of equal events, however
long either is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...core.cost import covers
from ...core.events import Composed, Event, NoOp, Repeated

if TYPE_CHECKING:
    from ...core.promise import Neighbours


MOST_RUNS = 1_000_000


def is_prefix(
    log: tuple[Event, ...], plan: tuple[Event, ...], neighbours: Neighbours | None = None
) -> bool:
    """Whether the log, spelled out answer by answer, is how the plan, spelled out, begins, or finer
    under this relation.

    Runs of one event are compared by their counts, so that long plans are not spelled out. More
    than `MOST_RUNS` runs (a stranger's file can claim any number of rounds) count as not agreeing.
    """
    return log == plan or _agree(log, plan, neighbours, whole=False)


def is_whole(
    log: tuple[Event, ...], plan: tuple[Event, ...], neighbours: Neighbours | None = None
) -> bool:
    """Whether the log, spelled out, is the plan, spelled out, or finer under this relation, to the
    end of both."""
    return log == plan or _agree(log, plan, neighbours, whole=True)


def _agree(
    log: tuple[Event, ...], plan: tuple[Event, ...], neighbours: Neighbours | None, *, whole: bool
) -> bool:
    for number, (planned, done, _) in enumerate(side_by_side(log, plan)):
        if done is None:
            return not whole
        # A stranger's file may claim any number of rounds; reading it must end.
        if number == MOST_RUNS or planned is None or not covers(planned, done, neighbours):
            return False
    return True


def side_by_side(
    log: tuple[Event, ...], plan: tuple[Event, ...]
) -> Iterator[tuple[Event | None, Event | None, int]]:
    """(what was planned, what was done, how often in a row) until the log ends; then what of the
    plan is left, if anything."""
    to_come = runs_of(plan)
    planned: Event | None = None
    left = 0
    for done, count in runs_of(log):
        rest = count
        while rest > 0:
            if left == 0:
                planned, left = next(to_come, (None, rest))
            step = min(rest, left)
            yield planned, done, step
            rest, left = rest - step, left - step
    if left == 0:
        planned, left = next(to_come, (None, 0))
    if left:
        yield planned, None, left


def runs_of(events: Iterable[Event], times: int = 1) -> Iterator[tuple[Event, int]]:
    """(event, how often in a row), composition and repetition spelled out, free events left out."""
    whole = (
        events
        if times == 1
        else itertools.chain.from_iterable(itertools.repeat(tuple(events), times))
    )
    for event in whole:
        match event:
            case NoOp():
                continue
            case Composed(inner):
                yield from runs_of(inner)
            case Repeated(Composed(inner), count):
                if next(runs_of(inner), None) is not None:
                    yield from runs_of(inner, count)
            case Repeated(Repeated(inner, first), second):
                yield from runs_of((Repeated(inner, first * second),))
            case Repeated(inner, count):
                if count and not isinstance(inner, NoOp):
                    yield inner, count
            case _:
                yield event, 1
