"""A curator of bounded sums: prices, admits, totals, adds noise, logs. Nothing else touches a row.

What an answer may cost is fixed before a row is read: by a plan, which was priced, or by a filter.
A plan is the trace of a run: `Trace` prices what it is asked like a curator, and has no rows.

Guarantees (tests/core/test_core_curator.py)
    1. Nothing that depends on a protected value leaves but by `answer`, whose event is in the log
       before a row is read: an answer that fails half way stays charged, and ends the run.
    2. One `answer` is one joint release on one batch, and one event; every coordinate has noise of
       its own, from a stream named by the number of the release and the place of the question.
    3. What is exact reads nothing that is protected, or nothing that a neighbour changes.
    4. The partition of a noise by cell is derived from the cells, never said by the asker.
    5. A refusal of a listener in `reserve` stops the run; the size of a batch leaves nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from . import checks, cost
from .bound import OUTWARDS
from .errors import BudgetError, InputError, PrivacyError, need
from .events import (
    Event,
    Gaussian,
    NonPrivate,
    NoOp,
    PerCell,
    PoissonSampled,
    VisiblySampled,
    compose,
    spelled_out,
)
from .filters import Filter
from .kernels import Array, Floats
from .layout import partition_of
from .noise import NoiseSource, Stream, symmetric_gaussians
from .sums import RUN, Facts, Run, Sum

Asked = Sequence[tuple[Sum, Any]]
"""Sums, each with its noise multiplier: one number, or one a cell."""
LARGEST_MULTIPLIER = 2.0**18
"""Beyond, an answer is noise and nothing else; the exact sampler ends at 2^50 grid units."""


class Answer(NamedTuple):
    """A noisy total, and the standard deviation of its noise: one number, or one a coordinate; 0
    where it is exact. Of matrices: on the diagonal."""

    values: Floats
    sd: Any


@dataclass(frozen=True)
class Entry:
    """One release of the log."""

    number: int
    event: Event
    names: tuple[str, ...]


class Hook(Protocol):
    """Who listens to a run: a ledger, a statement, a journal. What `reserve` raises stops it."""

    def reserve(self, plan: Event | None) -> None: ...
    def released(self, entry: Entry) -> None: ...
    def ended(self, log: Sequence[Entry]) -> None: ...


def is_free(one: Sum, facts: Facts, rate: float | None) -> bool:
    """Whether no neighbour moves the answer: what is protected is not read, or a replaced row adds
    what another does (not to the size of a secret batch)."""
    if facts.alone:
        return "sensitive" not in one.reads
    still = one.bound.diameter == 0.0 and facts.promise.neighbours == "replace-one"
    return still and rate is None


def event_of(asked: Asked, facts: Facts, rate: float | None = None) -> Event:
    """The one event of a joint answer, from bounds and public constants alone: of all rows, or of a
    secret Poisson batch of this rate."""
    promise = facts.promise
    if not promise.is_private:
        return NonPrivate()
    if rate is not None:
        checks.fraction(rate=rate, low_open=True)
    parts: list[Event] = []
    spreads: list[float] = []
    for one, multiplier in asked:
        sizes = np.atleast_1d(np.asarray(multiplier, np.float64))
        if is_free(one, facts, rate):
            continue
        right = sizes.ndim == 1 and ((sizes > 0) & (sizes <= LARGEST_MULTIPLIER)).all()
        fix = "An exact answer is for sums that read nothing protected."
        of = f"the multiplier of {one.name!r}"
        got = sizes.tolist()
        need(right, "numbers above 0, at most 2^18", of=of, got=got, fix=fix, error=PrivacyError)
        if np.ndim(multiplier) == 1:
            parts.append(_per_cell(one, sizes, facts))
        else:
            parts.append(Gaussian(float(sizes[0])))
        far = 2.0 if one.parts is not None else one.bound.diameter / one.bound.norm * OUTWARDS
        spreads.append(min(2.0, far))
    if not parts:
        return NoOp()
    joint = compose(parts)
    if rate is None:
        return joint
    if facts.alone:  # exact public parts of the step may show who was drawn: theory.md#t4
        return VisiblySampled(rate, joint)
    replaced = promise.neighbours == "replace-one"
    return PoissonSampled(rate, joint, tuple(spreads) if replaced else None)


def _per_cell(one: Sum, sizes: Floats, facts: Facts) -> PerCell:
    cells, expected = one.cells, "a multiplier for each disjoint cell"
    if cells is None or sizes.shape != (cells.count,):
        fix = "Use product groups and a sum by cells, or one multiplier for all."
        raise InputError.expected(expected, of=one.name, got=sizes.shape, remedy=fix)
    most = facts.promise.rows_per_unit
    fix = "Noise by cell is for persons in one group each: ask with one multiplier."
    need(most == 1, "rows", of="promise", got=facts.promise, fix=fix, error=PrivacyError)
    within = 0.0 if facts.alone else min(2.0, one.within * OUTWARDS + one.slack)
    column = partition_of(cells, facts.layout)
    return PerCell((tuple(sizes.tolist()),), (within,), column=column)


class Trace:
    """A curator without rows: it prices what it is asked, and answers made-up numbers. What it has
    been asked in the end is the plan of the run; that it does not depend on what is made up is what
    makes it one.

    Parameters
    ----------
    facts : Facts
        Layout, promise and cap of weights.
    made_up : callable, default=None
        From the shape of an answer and the number of the release to numbers. None: hundreds.
    """

    def __init__(self, facts: Facts, made_up: Callable[..., Floats] | None = None) -> None:
        self.facts, self.events = facts, list[Event]()
        self._made_up = made_up or (lambda shape, number: np.full(shape, 100.0))

    @property
    def plan(self) -> Event:
        """Everything that was asked so far, as one event."""
        return compose(self.events)

    def answer(self, asked: Asked, rate: float | None = None) -> list[Answer]:
        """What `Curator.answer` would cost; made-up numbers."""
        self.events.append(event_of(asked, self.facts, rate))
        number = len(self.events) - 1
        return [
            Answer(
                self._made_up(one.shape, number),
                # where rows are public the bound is a maximum over them: not known here
                0.0 if one.parts is not None else size_of(one, z, self.facts, rate) / one.unit,
            )
            for one, z in asked
        ]


class Curator:
    """The holder of rows: answers bounded sums with noise, and logs what each answer cost.

    Parameters
    ----------
    rows : object
        ``blocks()``, ``layout``, ``offsets``, ``exact_count`` and, for batches, ``of_units``.
    facts : Facts
        Layout, promise and cap of weights.
    noise : NoiseSource
        Where noise comes from.
    plan : Event, default=None
        The events of the whole run, fixed in advance; it is priced now, and answers follow it.
    cap : Filter, default=None
        Without a plan: what answers may add up to, chosen as they are (theory.md#t10).
    hooks : sequence of Hook, default=()
        Who is told what is reserved, released and ended.
    """

    def __init__(
        self,
        rows: Any,
        facts: Facts,
        noise: NoiseSource,
        plan: Event | None = None,
        cap: Filter | None = None,
        hooks: Sequence[Hook] = (),
    ) -> None:
        promise = facts.promise
        one_way, fix = (
            (plan is None) != (cap is None),
            "Trace a run for its plan, or make a Filter.",
        )
        need(one_way, "a plan, or a cap", of="curator", got=(plan, cap), fix=fix)
        fix = "Give Facts(cap=) if and only if rows have weights."
        need(
            rows.weighted == (facts.cap is not None),
            "weights and a cap",
            of="rows",
            got="",
            fix=fix,
        )
        need(rows.layout == facts.layout, "these rows' layout", of="facts", got="another's", fix="")
        capped = facts.cap is None or rows.largest_weight <= facts.cap
        fix = "Cap the weights before."
        need(capped, "weights within the cap", of="rows", got="more", fix=fix, error=PrivacyError)
        unit, fix = promise.unit is not None, "Say whose each row is if and only if persons count."
        known = unit == rows.knows_persons
        need(known, "persons in both", of="rows", got="in one", fix=fix, error=PrivacyError)
        self._labelled = bool(rows.labelled)
        if plan is not None:
            spent = cost.epsilon(plan, promise.delta, promise.neighbours)
            within = spent <= promise.epsilon
            fix = "Ask less, or with more noise."
            need(within, str(promise), of="plan", got=spent, fix=fix, error=BudgetError)
        need(cap is None or cap.promise == promise, str(promise), of="cap", got="another's", fix="")
        self.facts, self.log, self._hooks = facts, list[Entry](), tuple(hooks)
        self._rows, self._noise, self._cap, self._open = rows, noise, cap, True
        self._due = None if plan is None else spelled_out(plan)
        for hook in self._hooks:
            hook.reserve(plan)

    def answer(self, asked: Asked, rate: float | None = None) -> list[Answer]:
        """One joint noisy answer about all rows, or about a secret Poisson batch."""
        event = event_of(asked, self.facts, rate)
        told = self._labelled or not any("label" in one.reads for one, _ in asked)
        need(told, "labels", of="rows", got="none", fix="Give labels, or ask what reads none.")
        self._admit(event)
        entry = Entry(len(self.log), event, tuple(one.name for one, _ in asked))
        self.log.append(entry)
        try:
            out = self._answers(asked, rate, entry.number)
            for hook in self._hooks:
                hook.released(entry)
        except BaseException:
            self.close()
            raise
        return out

    def close(self) -> None:
        """End the run: nothing more is answered."""
        if self._open:
            self._open = False
            for hook in self._hooks:
                hook.ended(tuple(self.log))

    def _admit(self, event: Event) -> None:
        fix = "Make another curator."
        need(self._open, "a run that goes on", of="answer", got="one that ended", fix=fix)
        if self._cap is not None:
            self._cap = self._cap.add(event)
            return
        assert self._due is not None
        for part in spelled_out(event):  # refused before a row is read
            planned = next(self._due, None)
            same = planned is not None and cost.covers(planned, part, self.facts.promise.neighbours)
            of, fix = "answer", "A plan is followed in its order: trace the run that is made."
            need(same, f"{planned} now", of=of, got=part, fix=fix, error=BudgetError)

    def _answers(self, asked: Asked, rate: float | None, number: int) -> list[Answer]:
        taken = None
        if rate is not None:
            coins = self._noise.stream("sampling", number)
            taken = coins.poisson_batch(self._rows.exact_units, rate)
        pieces: list[tuple[int, Sum]] = []
        with np.errstate(all="ignore"):  # no row may make arithmetic warn
            for i, (one, _) in enumerate(asked):
                found = [one]
                if self.facts.alone and one.parts is not None:  # over all public rows, drawn or not
                    found = list(one.parts(self._runs(None), self._rows.exact_count))
                pieces += [(i, piece) for piece in found]
            totals = [np.zeros(piece.shape, np.int64) for _, piece in pieces]
            for run in self._runs(taken):
                for total, (_, piece) in zip(totals, pieces, strict=True):
                    total += piece.total(run, piece.unit)[0]
        out: list[Answer | None] = [None] * len(asked)
        for total, (i, piece) in zip(totals, pieces, strict=True):
            size = size_of(piece, asked[i][1], self.facts, rate)
            if np.max(size) > 0.0:
                total = total + drawn(piece, size, self._noise.stream("noise", number, i))
            values, before = total / piece.unit, out[i]
            if before is None:
                out[i] = Answer(values, size / piece.unit)
            else:
                out[i] = Answer(before.values + values, np.hypot(before.sd, size / piece.unit))
        return [one for one in out if one is not None]

    def _runs(self, taken: Array | None) -> Iterator[Run]:
        blocks: Iterable[Any] = self._rows.blocks() if taken is None else self._rows.of_units(taken)
        for block in blocks:
            self._check_persons(block)
            a = 0
            while a < block.rows:
                b = self._end(block, min(block.rows, a + RUN))
                yield Run(block, self._rows.offsets, a, b)
                a = b

    def _end(self, block: Any, b: int) -> int:
        """The end of a run near b: no person is cut in two."""
        if self.facts.promise.unit is None or b == block.rows:
            return b
        return int(np.searchsorted(block.persons, block.persons[b - 1], side="right"))

    def _check_persons(self, block: Any) -> None:
        """A person's rows stand together, and are no more than the promise says."""
        unit = self.facts.promise.unit
        if unit is None or not block.rows:
            return
        persons = np.asarray(block.persons)
        there = len(persons) == block.rows and (np.diff(persons) >= 0).all()
        few = there and np.unique(persons, return_counts=True)[1].max() <= (unit.max_rows or 0)
        fix = "Put rows person by person, and keep so many of each."
        expected = f"persons of at most {unit.max_rows} rows, which stand together"
        need(few, expected, of="rows", got="others", fix=fix, error=PrivacyError)


def size_of(one: Sum, multiplier: Any, facts: Facts, rate: float | None) -> Any:
    """The standard deviation of its noise, in steps: of a secret batch over the largest norm of a
    row, which is there or not; by cell too."""
    if not facts.promise.is_private or is_free(one, facts, rate):
        return 0.0
    if np.ndim(multiplier) == 1:
        grid = np.reshape(multiplier, (-1, *(1,) * (len(one.shape) - 1)))
        return np.broadcast_to(grid, one.shape) * (one.bound.largest * one.unit)
    hidden = rate is not None and not facts.alone
    moved = one.bound.largest if hidden else one.bound.sensitivity(facts.promise.neighbours)
    return math.ldexp(float(multiplier) * moved, one.exponent)


def drawn(one: Sum, size: Any, stream: Stream) -> Array:
    """Noise of this deviation, one number or one a coordinate, in steps."""
    if one.is_symmetric:
        return symmetric_gaussians(stream, size, one.shape)
    if isinstance(size, np.ndarray):
        return stream.rounded_gaussian(size.ravel()).reshape(one.shape)
    return stream.rounded_gaussian(size, math.prod(one.shape)).reshape(one.shape)
