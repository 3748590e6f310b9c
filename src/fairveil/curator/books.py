"""The books of a run: what it may still release, what it has released, where it is charged, and
what its privacy statement will say of that.

A ledger is a listener (`Recorder`): it is told before anything is asked, around each answer and at the
end, and what it refuses stops the run.

Guarantees (tests/curator/test_curator_books.py, test_curator_ledger.py)
    1. What there is no room for, in the ledger, the plan or the filter, is refused, and a refusal
       changes nothing; a refused reservation leaves no journal and no log.
    2. What was admitted stays charged, whether its answer came or not: after an answer that failed,
       a plan goes no further. What an earlier sitting released is charged before anything else, and
       its numbers are not given again.
    3. The log of a planned run is a beginning of the plan, or finer. A release is in the log, and
       in the journal, before `release` returns.
    4. A run that is charged in a ledger does not go on without it.
    5. The statement names the largest bound of each question and norm, of earlier sittings too.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from .._types import Floats
from ..core.cost import covers, price
from ..core.errors import need
from ..core.events import (
    Event,
    Gaussian,
    NoOp,
    OnPart,
    PoissonSampled,
    VisiblySampled,
    compose,
    spelled_out,
)
from ..core.filters import Filter
from ..core.promise import Promise
from ..core.runs import ledger_of_block
from ..errors import (
    BudgetError,
    InputError,
    LedgerError,
    PrivacyError,
)
from ..statement.document import (
    Arithmetic,
    NamedGroups,
    PrivacyStatement,
    PublicFact,
    Receipt,
    StatedBound,
    names_read,
    releases_of,
)
from .journal import SITTING, Given, Journal, Log, LogEntry, digest_of, refused

USER_CODE, BY_ROW = "user code", "float32-by-row"
"""Marks in a journal."""
_GOES_ON, _ENDED = "one that goes on", "one that was ended"
_BROKEN = "one whose plan broke off when an answer failed"


# -- what may still be released --------------------------------------------------------------------


class Budget:
    """A plan, priced now and followed from then on; or, without one, a filter that adds up what was
    chosen (theory.md#t10). One answer at a time.

    `admitted`: all events that were charged, of earlier sittings and of failed answers, too;
    `failed`: one did.
    """

    def __init__(self, promise: Promise, plan: Event | None, cap: Filter | None) -> None:
        self.promise, self.plan, self.failed = promise, plan, False
        self.room: Filter | None = None
        self._state, self._inside, self._releases = _GOES_ON, False, 0
        self._admitted: list[Event] = []
        # One that its own thread may take again: Ctrl-C between a release and its end leaves the
        # lock with whoever keeps the traceback, and the run must be closed all the same.
        self._lock = threading.RLock()
        self._due: deque[Event] = deque()
        self._to_come: Iterator[Event] = iter(())
        self._asked: tuple[Event | None, list[Event], dict[int, Event]] = (None, [], {})
        if not promise.is_private:
            return
        if plan is None:
            self.room = _checked(cap, promise)
            return
        cost = price(plan, self.promise.delta, self.promise.neighbours).epsilon
        if cost > self.promise.epsilon * (1 + 1e-12):
            words = f"a plan that costs at most epsilon={self.promise.epsilon:g}"
            fix = "Calibrate the plan to the guarantee: fairveil.privacy.calibrate."
            raise BudgetError.expected(words, of="plan", got=cost, remedy=fix)
        self._to_come = spelled_out(plan)

    @property
    def is_open(self) -> bool:
        """Whether answers may still come."""
        return self._state == _GOES_ON

    @property
    def admitted(self) -> tuple[Event, ...]:
        """What was charged, whether its answer came or not."""
        return tuple(self._admitted)

    def go_on(self, earlier: Iterable[Event], first: int) -> None:
        """Charge what was released before; the next answer is number `first`."""
        with self._lock:
            for event in earlier:
                self._charge(event, "earlier")
            self._releases = first

    def close(self) -> None:
        """End the run: nothing more is admitted."""
        with self._lock:
            self._state = _ENDED

    @contextmanager
    def release(self, event: Event) -> Iterator[int]:
        """Admit one answer and give its number, which is not given again, also when the answer
        fails."""
        with self._lock:
            if not self.is_open:
                words, fix = "a run that goes on", "Make a new Curator."
                raise PrivacyError.expected(words, of="answer", got=self._state, remedy=fix)
            if self._inside:
                words, got = "one answer after another", "one inside"
                fix = "User code that runs beside rows must not ask the curator."
                raise PrivacyError.expected(words, of="answer", got=got, remedy=fix)
            # Charged before the answer is made: an answer that fails, or is interrupted, may have
            # shown something.
            self._charge(event)
            number = self._releases
            self._releases += 1
            self._inside = True
            try:
                yield number
            except BaseException as error:
                if not isinstance(event, NoOp):
                    # which is no row's doing
                    self.failed = not isinstance(error, KeyboardInterrupt)
                    # A plan's later events were priced with this one answered. A filter adds up
                    # whatever came.
                    self._state = self._state if self.plan is None else _BROKEN
                raise
            finally:
                self._inside = False

    def _charge(self, event: Event, of: str = "answer") -> None:
        if isinstance(event, NoOp):
            return
        if self.room is not None:
            self.room = self.room.add(event)
        elif self.promise.is_private:
            self._follow(event, of)
        self._admitted.append(event)

    def _follow(self, event: Event, of: str) -> None:
        """The plan's next events, or an error that says which was due."""
        # the steps of a run are one event many times: what was found equal stays equal
        if event is not self._asked[0]:
            self._asked = (event, list(spelled_out(event)), {})
        parts, equals = self._asked[1:]
        while len(self._due) < len(parts) and (following := next(self._to_come, None)) is not None:
            self._due.append(following)
        for i, part in enumerate(parts):
            due = self._due[i] if i < len(self._due) else None
            if due is not None and equals.get(i) is due:
                continue
            if due is None or not covers(due, part, self.promise.neighbours):
                words = "no more answers: the plan is done"
                if due is not None:
                    bounded = isinstance(due, Gaussian | PoissonSampled | VisiblySampled | OnPart)
                    finer = ", or one by cell with no less noise for anybody" if bounded else ""
                    words = f"the plan's next event, {due}{finer}"
                fix = "A plan is fixed in advance; leave plan=None to choose as you go."
                raise PrivacyError.expected(words, of=of, got=part, remedy=fix)
            equals[i] = due
        for _ in parts:
            self._due.popleft()


def _checked(cap: object, promise: Promise) -> Filter:
    if cap is None:
        return Filter.create(promise, "renyi" if promise.delta > 0 else "pure")
    if not isinstance(cap, Filter) or cap.promise != promise:
        got = str(cap.promise) if isinstance(cap, Filter) else cap
        fix = "Make the filter of the curator's own guarantee: Filter.create(promise)."
        raise InputError.expected(f"a filter for {promise}", of="cap", got=got, remedy=fix)
    return cap


# -- where it is charged ---------------------------------------------------------------------------


class Recorder(Protocol):
    """What a ledger does for one run; see `fairveil.ledger.recording`."""

    @property
    def receipt(self) -> Receipt | None:
        """What the statement says of the ledger."""
        ...

    def begin(self, earlier: Sequence[Event] = ()) -> None:
        """Before anything is asked: what refuses stops the run."""
        ...

    def take(self, journal: Journal) -> Callable[[int], None]:
        """Before a journal is written in; what is returned is called once it is this run's."""
        ...

    def mark(self, journal: Journal) -> None:
        """Once it is: write down where the run is charged."""
        ...

    def answer(self, event: Event, purpose: str) -> AbstractContextManager[Callable[[], None]]:
        """Around an answer; what is given is called when it was admitted."""
        ...

    def finish(self, log: Iterable[Event]) -> None:
        """The run did all of its plan."""
        ...

    def end(self, admitted: Sequence[Event], *, failed: bool) -> None:
        """The run is over, unless it was finished or goes on in another sitting."""
        ...


class RunLedger(Protocol):
    """A ledger, as a curator knows it."""

    def recorder(
        self,
        promise: Promise,
        plan: Event | None,
        purpose: str,
        *,
        secure: bool,
        read_from_data: Iterable[str],
        columns: Iterable[str],
    ) -> Recorder:
        """What records one run."""
        ...


class _Unrecorded:
    """A run that no ledger has. One that is charged in a ledger does not go on so."""

    receipt = None

    def begin(self, earlier: Sequence[Event] = ()) -> None:
        pass

    def take(self, journal: Journal) -> Callable[[int], None]:
        journal.look_again()
        mark = journal.ledger

        def agreed(sitting: int) -> None:
            fix = "Give each run a journal of its own."
            if journal.ledger != mark:
                raise refused("one that nobody else writes", "one that grew meanwhile", fix)

        if mark is not None:
            words = f"the ledger of data set {mark[0]!r}, which the run began with"
            fix = "Pass that ledger: what the journal holds is charged there."
            raise LedgerError.expected(words, of="ledger", got=None, remedy=fix)
        return agreed

    def mark(self, journal: Journal) -> None:
        pass

    @contextmanager
    def answer(self, event: Event, purpose: str) -> Iterator[Callable[[], None]]:
        yield lambda: None

    def finish(self, log: Iterable[Event]) -> None:
        pass

    def end(self, admitted: Sequence[Event], *, failed: bool) -> None:
        pass


# -- of a run --------------------------------------------------------------------------------------


class Books:
    """What a run may release and has released: budget, ledger, journal and log, with what the
    statement tells of its bounds.

    `open` comes last, as it may write a file. `secure`: whether all noise comes from secure
    sources.
    """

    def __init__(
        self,
        promise: Promise,
        plan: Event | Iterable[Event] | None,
        cap: Filter | None,
        *,
        facts: tuple[PublicFact, ...],
        bounds: tuple[StatedBound, ...],
        columns: Sequence[str],
        secure: bool,
        ledger: RunLedger | None,
        purpose: str,
    ) -> None:
        self.promise = promise
        self.journal: Journal | None = None
        self.log = Log()
        events = [plan] if isinstance(plan, Event) else plan
        self.budget = Budget(promise, None if events is None else compose(events), cap)
        ledger = ledger_of_block() if ledger is None else ledger
        fix = "Make one with Ledger.create, or find one with Ledger.open."
        fits = ledger is None or hasattr(ledger, "recorder")
        need(fits, "a Ledger", of="ledger", got=type(ledger).__name__, fix=fix)
        self._recording: Recorder = _Unrecorded()
        if ledger is not None:
            self._recording = ledger.recorder(
                promise,
                self.budget.plan,
                purpose,
                secure=secure,
                read_from_data=names_read(facts, bounds),
                columns=columns,
            )
        self._facts, self._bounds_before, self._secure = facts, bounds, secure
        self._bounds: dict[tuple[str, str], StatedBound] = {}
        self._trusted = False
        self._arithmetic: Arithmetic = "exact"  # a network's own float32 may have taken part
        self._given: deque[LogEntry] = deque()  # by earlier sittings, and not asked again yet

    def open(
        self,
        journal: Callable[[LogEntry], None] | None,
        earlier: Sequence[LogEntry] | Journal,
        public_rows: int | None,
    ) -> None:
        """Begin the log: what an earlier sitting released is charged, and a journal written on."""
        if isinstance(journal, Journal):
            fix = "A journal that is written on is given once: earlier=Journal(path)."
            need(earlier == (), "earlier= or journal=", of="journal", got="both", fix=fix)
            got, fix = "one with a run in it", "To resume its run pass earlier=Journal(path)."
            new = journal.is_new
            need(new, "a new journal", of="journal", got=got, fix=fix, error=PrivacyError)
        book = next((one for one in (journal, earlier) if isinstance(one, Journal)), None)
        if book is None:
            entries = _entries(earlier)
            first = (
                0
                if not entries
                else (max(entry.number for entry in entries) // SITTING + 1) * SITTING
            )
            events = [entry.event for entry in entries]
            self.budget.go_on(events, first)
            self._recording.begin(events)
            self.log = Log(journal, entries)
            return
        try:
            entries = self._begun(book, public_rows)
        except BaseException:
            # what was reserved is given back: the run never began. What was resumed stays.
            self._recording.end((), failed=False)
            raise
        self.journal = book

        def write(entry: LogEntry) -> None:
            book(entry)
            if journal is not None and journal is not book:
                journal(entry)

        self.log = Log(write, entries)

    def _begun(self, book: Journal, public_rows: int | None) -> tuple[LogEntry, ...]:
        """What earlier sittings wrote, charged; and the journal, to be written on."""
        budget = self.budget
        plan = budget.plan if self.promise.is_private else None
        agreed = self._recording.take(book)
        first = book.begin(
            self.promise, plan, budget.room, public_rows, secure=self._secure, agreed=agreed
        )
        entries = book.entries
        try:
            budget.go_on([entry.event for entry in entries], first)
            self._recording.mark(book)
        except BaseException:
            book.close()
            raise
        self._bounds.update({(bound.question, bound.norm): bound for bound in book.bounds})
        self._given.extend(entries if book.keeps_answers else ())
        self._trusted = USER_CODE in book.marks
        self._arithmetic = "float32-by-row" if BY_ROW in book.marks else "exact"
        return entries

    # -- while it goes on --------------------------------------------------------------------------

    @contextmanager
    def admitted(self, event: Event, purpose: str) -> Iterator[int]:
        """An answer's number, once there is room for it everywhere. Meanwhile no row makes
        arithmetic warn, or raise."""
        with (
            self._recording.answer(event, purpose) as admit,
            self.budget.release(event) as number,
            np.errstate(all="ignore"),
        ):
            admit()
            yield number

    @property
    def keeps_answers(self) -> bool:
        """Whether the journal has answers, to be given again."""
        return self.journal is not None and self.journal.keeps_answers

    def again(self, event: Event, *asked: object) -> Given | None:
        """What an earlier sitting was given for the same question; None where it is new, or shows
        nothing of anybody."""
        if not self._given or isinstance(event, NoOp):
            return None
        entry, number = self._given[0], len(self.log) - len(self._given) + 1
        given = entry.given
        if given is not None and entry.event == event and given.asked == digest_of(*asked):
            self._given.popleft()
            return given
        self.budget.close()
        words = f"the question that answer {number} was given to"
        fix = "Resume with the rows, the arguments and the version that the run began with, or "
        fix += "begin another."
        raise PrivacyError.expected(words, of="journal", got="another question", remedy=fix)

    def release(self, entry: LogEntry, answers: Sequence[Floats] | int, *asked: object) -> None:
        """Write an answer down, unless it showed nothing of anybody."""
        if isinstance(entry.event, NoOp):
            return
        if self.keeps_answers:
            entry = replace(entry, given=Given.of(digest_of(*asked), answers))
        self.log.append(entry)

    def state(self, question: str, norm: str, moved: float, reason: str, origin: Any) -> None:
        """Write a sensitivity down for the statement: the largest of the run, where rounds or
        questions of one name differ."""
        key, bound = (question, norm), StatedBound(question, norm, moved, reason, origin)
        if key not in self._bounds or moved > self._bounds[key].sensitivity:
            if self.journal is not None:
                self.journal.state(bound)
            self._bounds[key] = bound

    def trust(self, *, singles: bool = False) -> None:
        """The caller's code runs beside the rows (and its own float32): the statement says so."""
        self._trusted = True
        if singles and self._arithmetic == "exact":
            self._arithmetic = "float32-by-row"
        for name in (USER_CODE, BY_ROW) if singles else (USER_CODE,):
            if self.journal is not None:
                self.journal.mark(name)

    # -- at its end --------------------------------------------------------------------------------

    def close(self) -> None:
        """End the run. What was reserved in a ledger is settled, by what was admitted."""
        self.budget.close()
        try:
            self._recording.end(self.budget.admitted, failed=self.budget.failed)
        finally:
            if self.journal is not None:
                self.journal.close()

    def finish(self) -> Event:
        """End the run and give the whole log as one event; with a plan, an error unless all of it
        was done."""
        if self.budget.plan is not None and self.promise.is_private:
            self.log.reconcile([self.budget.plan], self.promise.neighbours)
        self.budget.close()
        self._recording.finish(self.log.events)
        self.close()
        return compose(self.log.events)

    def statement(
        self,
        not_covered: Iterable[str],
        tuning: str | None,
        earlier_releases: str | None,
        groups: Iterable[NamedGroups],
    ) -> PrivacyStatement:
        """What was released so far, at what price, under which promise."""
        secure = self._secure and (self.journal is None or self.journal.is_secure)
        planned = self.budget.plan is not None and self.promise.is_private
        return PrivacyStatement.of(
            self.promise,
            self.log.events,
            plan=[self.budget.plan] if self.budget.plan is not None and planned else None,
            cap=self.budget.room,
            facts=self._facts,
            bounds=[*self._bounds.values(), *self._bounds_before],
            not_covered=not_covered,
            tuning=tuning,
            earlier_releases=earlier_releases,
            noise="secure" if secure else "seeded",
            user_code="trusted" if self._trusted else "none",
            arithmetic=self._arithmetic,
            groups=groups,
            ledger=self._recording.receipt,
            releases=releases_of((entry.questions, entry.event) for entry in self.log.entries),
        )


def _entries(earlier: object) -> tuple[LogEntry, ...]:
    """Entries of an earlier sitting, as they are given to a curator."""
    if isinstance(earlier, list | tuple) and all(isinstance(entry, LogEntry) for entry in earlier):
        return tuple(earlier)
    fix = "Pass earlier=Journal(path), or the entries of an earlier log."
    got = type(earlier).__name__
    raise InputError.expected("a Journal, or entries", of="earlier", got=got, remedy=fix)
