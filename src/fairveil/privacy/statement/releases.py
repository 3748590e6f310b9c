"""What was released, one line a kind: query, mechanism, noise multiplier, how often. Made of events
and names alone.

Guarantees (tests/privacy/test_privacy_releases.py):
1. Lines hold public values only: names of queries, multipliers, rates, counts.
2. Their counts add up to the events' leaves: a table that says otherwise contradicts its statement
   (`same_releases`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ... import _checks
from ...core.events import (
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    SamplerError,
    VisiblySampled,
    ZeroConcentrated,
)
from ...errors import StatementError

ALL_ROWS = "all rows"
NORMS = {
    "Gaussian": "L2",
    "discrete Gaussian": "L2",
    "Gaussian by cell": "L2",
    "Laplace": "L1",
    "discrete Laplace": "L1",
    "exponential": "range",
}
"""The norm in which each mechanism's sensitivity is stated."""
MADE_BY = {
    "Gaussian": "Gaussian noise",
    "discrete Gaussian": "discrete Gaussian noise",
    "Laplace": "Laplace noise",
    "discrete Laplace": "discrete Laplace noise",
    "Gaussian by cell": "Gaussian noise by cell",
    "exponential": "a choice by the exponential mechanism",
    "pure": "a mechanism known by its epsilon",
    "approximate": "a mechanism known by its epsilon and delta",
    "zero-concentrated": "a mechanism known by its rho",
    "sampler error": "samplers that are not exact",
    "exact": "something protected, exactly",
}
"""Every mechanism, in words."""
MOST_NAMED = 64
"""Queries of one answer that are distinguished by name."""


@dataclass(frozen=True)
class Release:
    """One kind of release. `name`: of the query, "" where nobody said; `numbers`: the noise
    multipliers (one, or one a cell), or what else the mechanism is known by; `rows`: which rows it
    read; `times`: how often it was made."""

    name: str
    mechanism: str
    numbers: tuple[float, ...]
    rows: str
    times: int

    def __post_init__(self) -> None:
        given: tuple[tuple[str, object], ...] = (
            ("name", self.name or "-"),
            ("mechanism", self.mechanism),
            ("rows", self.rows),
        )
        for of, text in given:
            if not isinstance(text, str) or not text.strip() or not text.isprintable():
                remedy = f"Say {of} in words."
                raise StatementError.expected(
                    "some words on one line", of=of, got=text, remedy=remedy
                )
        _checks.one_of(tuple(MADE_BY), mechanism=self.mechanism)
        numbers = tuple(_checks.non_negative(numbers=number) for number in self.numbers)
        _checks.normalise(self, numbers=numbers)
        _checks.normalise(self, times=_checks.whole(at_least=1, times=self.times))


def releases_of(answers: Iterable[tuple[Sequence[str], Event]]) -> tuple[Release, ...]:
    """The table of these answers, each the queries that it answered and its event; equal lines are
    added up.

    >>> from ..events import Composed, Gaussian, Repeated
    >>> joint = Composed((Gaussian(57.0), Gaussian(87.5)))
    >>> for line in releases_of([(("gradient sum", "prediction histogram"), joint)] * 120):
    ...     print(line.name, line.numbers, line.times)
    gradient sum (57.0,) 120
    prediction histogram (87.5,) 120
    """
    counts: Counter[Release] = Counter()
    for (names, event), times in _runs(answers):
        lines = list(_leaves(event, 1, ALL_ROWS))
        for name, line in _named(lines, names):
            counts[Release(name, line.mechanism, line.numbers, line.rows, 1)] += line.times * times
    return tuple(
        Release(one.name, one.mechanism, one.numbers, one.rows, times)
        for one, times in counts.items()
    )


def same_releases(told: Iterable[Release], events: Iterable[Event]) -> bool:
    """Whether a table, its names left out, is that of these events."""
    return _unnamed(told) == _unnamed(releases_of(((), event) for event in events))


def _unnamed(lines: Iterable[Release]) -> Counter[tuple[str, tuple[float, ...], str]]:
    counts: Counter[tuple[str, tuple[float, ...], str]] = Counter()
    for line in lines:
        counts[line.mechanism, line.numbers, line.rows] += line.times
    return counts


def _runs(
    answers: Iterable[tuple[Sequence[str], Event]],
) -> Iterator[tuple[tuple[tuple[str, ...], Event], int]]:
    """Equal answers in a row together: long runs are rounds of one kind."""
    last: tuple[tuple[str, ...], Event] | None = None
    times = 0
    for names, event in answers:
        here = (tuple(names), event)
        if here == last:
            times += 1
            continue
        if last is not None:
            yield last, times
        last, times = here, 1
    if last is not None:
        yield last, times


def _named(lines: list[Release], names: Sequence[str]) -> Iterator[tuple[str, Release]]:
    """Names in the order of an answer's events; where they do not fit one to one, all of them stand
    at each line."""
    each = sum(line.times for line in lines)
    if len(set(names)) == 1:
        yield from ((names[0], line) for line in lines)
    elif each == len(names) <= MOST_NAMED:
        left = iter(names)
        for line in lines:
            for _ in range(line.times):
                yield next(left), Release("", line.mechanism, line.numbers, line.rows, 1)
    else:
        yield from ((" and ".join(dict.fromkeys(names)), line) for line in lines)


def _leaves(event: Event, times: int, rows: str) -> Iterator[Release]:
    match event:
        case NoOp():
            return
        case Repeated(inner, count):
            if count:
                yield from _leaves(inner, times * count, rows)
        case Composed(events):
            for inner in events:
                yield from _leaves(inner, times, rows)
        case PoissonSampled(rate, inner):
            yield from _leaves(
                inner, times, f"a secret random batch, each row with probability {rate:g}"
            )
        case VisiblySampled(rate, inner):
            yield from _leaves(
                inner, times, f"a random batch that can be seen, each row with probability {rate:g}"
            )
        case OnPart(inner, _, parts):
            yield from _leaves(inner, times, f"one of {parts} fixed parts of the rows")
        case PrivateSelection(inner, mean, shape):
            yield from _leaves(
                inner,
                times,
                f"{rows}, in the best of a random number of runs (mean {mean:g}, shape {shape:g})",
            )
        case _:
            mechanism, numbers = _leaf(event)
            yield Release("", mechanism, numbers, rows, times)


def _leaf(event: Event) -> tuple[str, tuple[float, ...]]:
    match event:
        case Gaussian(multiplier):
            return "Gaussian", (multiplier,)
        case DiscreteGaussian(multiplier):
            return "discrete Gaussian", (multiplier,)
        case Laplace(multiplier):
            return "Laplace", (multiplier,)
        case DiscreteLaplace(multiplier, _):
            return "discrete Laplace", (multiplier,)
        case PerCell(multipliers):
            return "Gaussian by cell", tuple(one for part in multipliers for one in part)
        case Exponential(epsilon):
            return "exponential", (epsilon,)
        case Pure(epsilon):
            return "pure", (epsilon,)
        case Approximate(epsilon, delta):
            return "approximate", (epsilon, delta)
        case ZeroConcentrated(rho):
            return "zero-concentrated", (rho,)
        case SamplerError(distance):
            return "sampler error", (distance,)
        case NonPrivate():
            return "exact", ()
        case _:
            return event.kind, ()
