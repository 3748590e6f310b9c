"""What a statement's log, plan and table of releases say, and whether they say the same.
docs/statement_spec.md, sections 4.9 and 4.10."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from . import counts
from .counts import Event

ALL_ROWS = "all rows"
MOST_RUNS = 1_000_000


class Said(NamedTuple):
    """What prices follow from: the log, the plan, the filter's terms, the stated epsilon, and the
    guarantee."""

    events: Event
    plan: Event | None
    cap: dict[str, Any] | None
    epsilon: float
    budget: float
    delta: float
    neighbours: str

    @property
    def nothing(self) -> bool:
        """Whether nothing was released that costs anything."""
        return kept(self.events) is None


def kept(whole: Event) -> Event | None:
    """The event without what is free; None where nothing is left."""
    if whole[0] == "composed":
        parts = tuple(part for part in map(kept, whole[1]) if part is not None)
        return ("composed", parts) if parts else None
    if whole[0] == "repeated":
        part = kept(whole[1]) if whole[2] else None
        return None if part is None else ("repeated", part, whole[2])
    return None if whole[0] == "no-op" else whole


def runs(whole: Event) -> Iterator[tuple[Event, int]]:
    """(event, how often in a row), composition and repetition spelled out, free events left out."""
    some = kept(whole)
    return iter(()) if some is None else _runs(some, 1)


def _runs(whole: Event, times: int) -> Iterator[tuple[Event, int]]:
    if whole[0] == "repeated":
        yield from _runs(whole[1], times * whole[2])
    elif whole[0] == "composed":
        for _ in range(times):
            for one in whole[1]:
                yield from _runs(one, 1)
    else:
        yield whole, times


def side_by_side(log: Event, plan: Event) -> Iterator[tuple[Event | None, Event | None, int]]:
    """(what was planned, what was done, how often in a row) until the log ends; then what is left."""
    to_come = runs(plan)
    planned: Event | None = None
    left = 0
    for done, count in runs(log):
        while count > 0:
            if left == 0:
                planned, left = next(to_come, (None, count))
            step = min(count, left)
            yield planned, done, step
            count, left = count - step, left - step
    if left == 0:
        planned, left = next(to_come, (None, 0))
    if left:
        yield planned, None, left


@cache
def covers(planned: Event, done: Event, neighbours: str) -> bool:
    """Whether a planned answer bounds the one that was given: the same, or noise by cell with no
    less of it for anybody (spec, section 4.9)."""
    if planned == done:
        return True
    kinds = planned[0], done[0]
    if kinds == ("poisson-sampled",) * 2 and planned[1] == done[1]:
        pairs = zip(counts.batch(planned, neighbours), counts.batch(done, neighbours), strict=True)
        return all(
            a[1:] == b[1:] == (0.0, counts.ZERO, 0.0) and b[0] ** 2 <= a[0] ** 2 * (1 + 1e-12)
            for a, b in pairs
            if a is not None and b is not None
        )
    if kinds == ("visibly-sampled",) * 2 and planned[1] == done[1]:
        return _no_worse(planned[2], done[2], neighbours)
    if kinds == ("on-part",) * 2 and planned[2:] == done[2:]:
        return _no_worse(planned[1], done[1], neighbours)
    return kinds == ("gaussian", "per-cell") and _no_worse(planned, done, neighbours)


def _no_worse(planned: Event, done: Event, neighbours: str) -> bool:
    if not _made_of(("gaussian",), planned) or not _made_of(("gaussian", "per-cell"), done):
        return False
    first, second = (counts.inventory(one, neighbours).square for one in (planned, done))
    return second <= first * (1 + 1e-12)


def _made_of(kinds: tuple[str, ...], whole: Event) -> bool:
    if whole[0] in ("composed", "repeated"):
        return all(_made_of(kinds, one) for one in counts.inside(whole))
    return whole[0] in kinds


def is_prefix(log: Event, plan: Event, neighbours: str, *, whole: bool = False) -> bool:
    """Whether the log, spelled out, is how the plan begins, or finer; `whole`: to the end of both."""
    if log == plan:
        return True
    for number, (planned, done, _) in enumerate(side_by_side(log, plan)):
        if done is None:
            return not whole
        if number == MOST_RUNS or planned is None or not covers(planned, done, neighbours):
            return False
    return True


# ---- the table of releases

MECHANISMS = {
    "gaussian": "Gaussian",
    "discrete-gaussian": "discrete Gaussian",
    "laplace": "Laplace",
    "discrete-laplace": "discrete Laplace",
    "per-cell": "Gaussian by cell",
    "sampler-error": "sampler error",
    "non-private": "exact",
}


def leaves(whole: Event, times: int = 1, rows: str = ALL_ROWS) -> Iterator[tuple[Any, ...]]:
    """(mechanism, numbers, rows, times) of everything that was released."""
    kind = whole[0]
    if kind == "repeated":
        times *= whole[2]
    elif kind == "poisson-sampled":
        rows = f"a secret random batch, each row with probability {whole[1]:g}"
    elif kind == "visibly-sampled":
        rows = f"a random batch that can be seen, each row with probability {whole[1]:g}"
    elif kind == "on-part":
        rows = f"one of {whole[3]} fixed parts of the rows"
    elif kind == "private-selection":
        rows += f", in the best of a random number of runs (mean {whole[2]:g}, shape {whole[3]:g})"
    if kind in ("composed", *(k for k, names in counts.FIELDS.items() if "event" in names)):
        for one in counts.inside(whole) if times else ():
            yield from leaves(one, times, rows)
    elif kind != "no-op":
        numbers = [n for part in whole[1] for n in part] if kind == "per-cell" else whole[1:]
        numbers = numbers[:1] if kind == "discrete-laplace" else numbers
        yield MECHANISMS.get(kind, kind), tuple(map(float, numbers)), rows, times


def same_releases(told: Iterable[tuple[Any, ...]], done: Iterable[tuple[Any, ...]]) -> bool:
    """Whether two tables of (mechanism, numbers, rows, times) say the same."""
    sums: list[Counter[Any]] = [Counter(), Counter()]
    for table, lines in zip(sums, (told, done), strict=False):
        for *line, times in lines:
            table[tuple(line)] += times
    return sums[0] == sums[1]
