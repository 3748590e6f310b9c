"""Where the contract reaches inside: the only file of this folder that a redesign carries over.

All that a fit learns of its rows comes through two methods of the documented `Curator`: `answer`,
with noise added to sums, and `choose`, with a candidate drawn. Here they are recorded, replayed and
made to fail. Whatever takes their place has to call `_through` once for each release, after it was
made and charged and before anybody sees it; nothing else of the contract knows of a curator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fairveil.curator import Curator, Measurement

Answer = tuple[npt.NDArray[np.float64], ...]


@dataclass(frozen=True)
class Released:
    """One release: the questions' names and noise multipliers, its event (None: it was free, because
    it read nothing that is protected), and its values."""

    names: tuple[str, ...]
    multipliers: tuple[Any, ...]
    noises: tuple[str, ...]
    event: Any
    batch: str
    purpose: str
    values: Answer


@dataclass
class Tape:
    """Releases in order. `replay`: values that are handed out in place of those just made;
    `made_up`: what is handed out in place of an answer."""

    replay: tuple[Released, ...] | None = None
    made_up: Callable[[Released], Answer] | None = None
    entries: list[Released] = field(default_factory=list)
    fail_at: int | None = None
    error: BaseException | None = None


_TAPE: list[Tape] = []


def _through(release: Released) -> Answer:
    tape = _TAPE[-1]
    place = len(tape.entries)
    tape.entries.append(release)
    if tape.fail_at == place + 1:
        assert tape.error is not None
        raise tape.error
    if tape.made_up is not None and release.names != ("choice",):
        return tape.made_up(release)
    if tape.replay is None or place >= len(tape.replay):
        return release.values
    return tuple(value.copy() for value in tape.replay[place].values)


@contextmanager
def _taped(tape: Tape) -> Iterator[Tape]:
    answer: Callable[..., Any] = Curator.answer
    choose: Callable[..., Any] = Curator.choose

    def answered(self: Curator, asked: Any, *args: Any, **options: Any) -> list[Any]:
        before = len(self.log.entries)
        values = answer(self, asked, *args, **options)
        measured = [one if isinstance(one, Measurement) else Measurement(*one) for one in asked]
        entry = self.log.entries[-1] if len(self.log.entries) > before else None
        release = Released(
            tuple(one.question.name for one in measured),
            tuple(one.multiplier for one in measured),
            tuple(one.noise for one in measured),
            None if entry is None else entry.event,
            repr(args[0]) if args else repr(options.get("batch")),
            options.get("purpose", ""),
            tuple(np.array(value, np.float64) for value in values),
        )
        return list(_through(release))

    def chosen(self: Curator, asked: Any, epsilon: float, **options: Any) -> int:
        index = choose(self, asked, epsilon, **options)
        entry = self.log.entries[-1]
        release = Released(
            ("choice",), (epsilon,), ("choice",), entry.event, "", entry.purpose, (np.array(index),)
        )
        return int(_through(release)[0])

    Curator.answer, Curator.choose = answered, chosen  # type: ignore[method-assign]
    _TAPE.append(tape)
    try:
        yield tape
    finally:
        _TAPE.pop()
        Curator.answer, Curator.choose = answer, choose  # type: ignore[method-assign]


@contextmanager
def recording() -> Iterator[Tape]:
    """Every release inside of the block."""
    with _taped(Tape()) as tape:
        yield tape


@contextmanager
def replaying(entries: list[Released]) -> Iterator[Tape]:
    """The rows are asked as ever, and what they answer is recorded; what is handed out is this."""
    with _taped(Tape(tuple(entries))) as tape:
        yield tape


@contextmanager
def making_up(made_up: Callable[[Released], Answer]) -> Iterator[Tape]:
    """The rows are asked as ever; what is handed out has nothing to do with them."""
    with _taped(Tape(made_up=made_up)) as tape:
        yield tape


@contextmanager
def failing(at: int, error: BaseException) -> Iterator[Tape]:
    """The release of this number, from 1, is made and charged, and then this is raised."""
    with _taped(Tape(fail_at=at, error=error)) as tape:
        yield tape


def undecided(stream: Any, bits: int = 64) -> Any:
    """The stream, which now leaves to exact arithmetic what so many bits fewer do not decide: the
    same draws."""
    stream._blur = bits
    return stream


def side_by_side(streams: list[Any], scales: list[float], sizes: list[int]) -> npt.NDArray[Any]:
    """The noise of several models that are answered together, each from a stream of its own."""
    from fairveil.core.noise import Gaussians

    return Gaussians(scales, sizes).draw(streams)
