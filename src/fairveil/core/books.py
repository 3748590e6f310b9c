"""The books of a run: what it may still release, what it has released, where it is charged, and who
hears of it.

A ledger is a listener (`Recorder`): it is told before anything is asked, around each answer and at
the end, and what it refuses stops the run. An audit of rows that were made up for it is another
(`Listener`): the code that asks may be a whole estimator's, which makes its own curator, so inside
`with heard_by(listener):` curators that this context makes tell it their rows once, and then each
joint release.

Guarantees (tests/curator/test_curator_books.py, test_curator_ledger.py, test_curator_listening.py)
    1. What there is no room for, in the ledger, the plan or the filter, is refused, and a refusal
       changes nothing; a refused reservation leaves no journal and no log.
    2. What was admitted stays charged, whether its answer came or not: after an answer that failed,
       a plan goes no further. What an earlier sitting released is charged before anything else, and
       its numbers are not given again.
    3. The log of a planned run is a beginning of the plan, or finer. A release is in the log, and
       in the journal, before `release` returns.
    4. A run that is charged in a ledger does not go on without it.
    5. The record has the largest bound of each question and norm, of earlier sittings too.
    6. A listener hears the context that opened its block alone. It changes no bit of an answer, no
       event and no price; after the block nobody listens.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from . import checks
from .cost import Filter, covers, price
from .errors import BudgetError, LedgerError, PrivacyError, need
from .events import (
    Event,
    Gaussian,
    NoOp,
    OnPart,
    PoissonSampled,
    VisiblySampled,
    compose,
    spelled_out,
)
from .journal import Bounded, Journal, Log, LogEntry, digest_of
from .layout import Floats
from .promise import Promise
from .public import READ_FROM_DATA
from .rows import Batch, Rows
from .runs import ledger_of_block

USER_CODE, BY_ROW = "user code", "float32-by-row"
"""Marks in a journal."""
_GOES_ON, _ENDED = "one that goes on", "one that was ended"
_BROKEN = "one whose plan broke off when an answer failed"


# -- what may still be released --------------------------------------------------------------------


class Budget:
    """A plan, priced now and followed from then on; or, without one, a filter that adds up what was
    chosen (theory.md#t10). One answer at a time.

    `failed`: an answer that was admitted did not come.
    """

    def __init__(self, promise: Promise, plan: Event | None, cap: Filter | None) -> None:
        self.promise, self.plan, self.failed = promise, plan, False
        self.room: Filter | None = None
        self._state, self._inside, self._releases = _GOES_ON, False, 0
        self._admitted = list[Event]()
        # One that its own thread may take again: Ctrl-C between a release and its end leaves the
        # lock with whoever keeps the traceback, and the run must be closed all the same.
        self._lock = threading.RLock()
        self._due = deque[Event]()
        self._to_come: Iterator[Event] = iter(())
        self._asked: tuple[Event | None, list[Event], dict[int, Event]] = (None, [], {})
        if not promise.is_private:
            return
        if plan is None:
            if cap is None:
                cap = Filter.create(promise, "renyi" if promise.delta > 0 else "pure")
            fix = "Make the filter of the curator's own guarantee: Filter.create(promise)."
            self.room = checks.instance(Filter, "cap", cap, fix, f"a filter for {promise}")
            own, got = self.room.promise == promise, str(self.room.promise)
            need(own, f"a filter for {promise}", of="cap", got=got, fix=fix)
            return
        cost = price(plan, self.promise.delta, self.promise.neighbours).epsilon
        words = f"a plan that costs at most epsilon={self.promise.epsilon:g}"
        fix = "Calibrate the plan to the guarantee: fairveil.privacy.calibrate."
        within = cost <= self.promise.epsilon * (1 + 1e-12)
        need(within, words, of="plan", got=cost, fix=fix, error=BudgetError)
        self._to_come = spelled_out(plan)

    @property
    def is_open(self) -> bool:
        """Whether answers may still come."""
        return self._state == _GOES_ON

    @property
    def admitted(self) -> tuple[Event, ...]:
        """What was charged, of earlier sittings too, whether its answer came or not."""
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
            words, fix = "a run that goes on", "Make a new Curator."
            need(self.is_open, words, of="answer", got=self._state, fix=fix, error=PrivacyError)
            alone, words, got = not self._inside, "one answer after another", "one inside"
            fix = "User code that runs beside rows must not ask the curator."
            need(alone, words, of="answer", got=got, fix=fix, error=PrivacyError)
            # Charged before the answer is made: an answer that fails, or is interrupted, may have
            # shown something.
            self._charge(event, "answer")
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

    def _charge(self, event: Event, of: str) -> None:
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
                bounded = isinstance(due, Gaussian | PoissonSampled | VisiblySampled | OnPart)
                finer = ", or one by cell with no less noise for anybody" if bounded else ""
                words = f"the plan's next event, {due}{finer}"
                words = words if due is not None else "no more answers: the plan is done"
                fix = "A plan is fixed in advance; leave plan=None to choose as you go."
                raise PrivacyError.expected(words, of=of, got=part, remedy=fix)
            equals[i] = due
        for _ in parts:
            self._due.popleft()


# -- who listens -----------------------------------------------------------------------------------


class Recorder:
    """What a ledger does for one run (see `fairveil.ledger.ledger.Recording`, whose methods these are), and
    what is done where no ledger has it: then one that is charged in a ledger does not go on.

    `receipt`: what the statement says of the ledger.
    """

    receipt: Any = None

    def begin(self, earlier: Sequence[Event] = ()) -> None:
        """Before anything is asked: what refuses stops the run."""

    def take(self, journal: Journal) -> Callable[[int], None]:
        """Before a journal is written in; what is returned is called once it is this run's, with
        the number of the sitting."""
        journal.look_again()
        mark = journal.ledger
        if mark is not None:
            words = f"the ledger of data set {mark[0]!r}, which the run began with"
            fix = "Pass that ledger: what the journal holds is charged there."
            raise LedgerError.expected(words, of="ledger", got=None, remedy=fix)

        def agreed(sitting: int) -> None:
            words, got = "one that nobody else writes", "one that grew meanwhile"
            fix, same = "Give each run a journal of its own.", journal.ledger == mark
            need(same, words, of="journal", got=got, fix=fix, error=PrivacyError)

        return agreed

    def mark(self, journal: Journal) -> None:
        """Once it is: write down where the run is charged."""

    @contextmanager
    def answer(self, event: Event, purpose: str) -> Iterator[Callable[[], None]]:
        """Around an answer; what is given is called when it was admitted."""
        yield lambda: None

    def finish(self, log: Iterable[Event]) -> None:
        """The run did all of its plan."""

    def end(self, admitted: Sequence[Event], *, failed: bool) -> None:
        """The run is over, unless it was finished or goes on in another sitting."""


Scalings = tuple[tuple[Floats, Floats], ...]


class Listener(Protocol):
    """What hears curators of its block."""

    def opened(self, rows: Rows) -> None:
        """A curator was made of these rows."""
        ...

    def answered(
        self, measurements: Any, batch: Batch, answers: Sequence[Floats], scalings: Scalings
    ) -> None:
        """The curator that was made last answered these measurements."""
        ...


_LISTENER: ContextVar[Listener | None] = ContextVar("fairveil listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Curators of the block, in this context, are heard by `listener`."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def listener() -> Listener | None:
    """Who hears what this context does; mostly nobody."""
    return _LISTENER.get()


@dataclass(frozen=True)
class Record:
    """A run as its statement tells it (`statement.document.PrivacyStatement.of_run`): promise, log,
    plan or filter, public facts and bounds; whether all noise was secure, code of the caller ran
    beside rows, and torch added float32 numbers of a row; the ledger's receipt."""

    promise: Promise
    entries: tuple[LogEntry, ...]
    plan: Event | None
    room: Filter | None
    facts: tuple[Any, ...]
    bounds: tuple[Any, ...]
    is_secure: bool
    user_code: bool
    by_row: bool
    receipt: Any


# -- of a run --------------------------------------------------------------------------------------


class Books:
    """What a run may release and has released: budget, ledger, journal and log, with what the
    statement tells of its bounds.

    `ledger`: a `Ledger`, whose `recorder` listens; None: that of a block, if there is one. `open`
    comes last, as it may write a file. `secure`: whether all noise comes from secure sources.
    """

    def __init__(
        self,
        promise: Promise,
        plan: Event | Iterable[Event] | None,
        cap: Filter | None,
        *,
        facts: tuple[Any, ...],
        bounds: tuple[Any, ...],
        columns: Sequence[str],
        secure: bool,
        ledger: Any,
        purpose: str,
    ) -> None:
        self.promise, self.log = promise, Log()
        self.journal: Journal | None = None
        events = [plan] if isinstance(plan, Event) else plan
        self.budget = Budget(promise, None if events is None else compose(events), cap)
        ledger = ledger_of_block() if ledger is None else ledger
        fix = "Make one with Ledger.create, or find one with Ledger.open."
        fits = ledger is None or hasattr(ledger, "recorder")
        need(fits, "a Ledger", of="ledger", got=type(ledger).__name__, fix=fix)
        self._recorder = Recorder()
        if ledger is not None:
            read = [one.name for one in facts if one.origin == READ_FROM_DATA]
            read += [one.question for one in bounds if one.origin == READ_FROM_DATA]
            self._recorder = ledger.recorder(
                promise,
                self.budget.plan,
                purpose,
                secure=secure,
                read_from_data=read,
                columns=columns,
            )
        self._facts, self._bounds_before, self._secure = facts, bounds, secure
        self._bounds = dict[tuple[str, str], Bounded]()
        self._marks = set[str]()  # what the statement must say of user code
        self._given = deque[LogEntry]()  # by earlier sittings, and not asked again yet

    def open(
        self,
        heard: Callable[[LogEntry], None] | None,
        journal: Journal | None,
        public_rows: int | None,
    ) -> None:
        """Begin the log: what earlier sittings released is charged, and the journal written on.
        `heard`: is told each entry, before its answer is returned."""
        if journal is None:
            self._recorder.begin()
            self.log = Log(heard)
            return
        fix = "Pass earlier=Journal(path): one that is new, or whose run goes on."
        checks.instance(Journal, "earlier", journal, fix)
        try:
            entries = self._begun(journal, public_rows)
        except BaseException:
            # what was reserved is given back: the run never began. What was resumed stays.
            self._recorder.end((), failed=False)
            raise
        self.journal, self.log = journal, Log(journal, entries, heard)

    def _begun(self, journal: Journal, public_rows: int | None) -> tuple[LogEntry, ...]:
        """What earlier sittings wrote, charged; and the journal, to be written on."""
        plan = self.budget.plan if self.promise.is_private else None
        agreed, room = self._recorder.take(journal), self.budget.room
        first = journal.begin(
            self.promise, plan, room, public_rows, secure=self._secure, agreed=agreed
        )
        entries = journal.entries
        try:
            self.budget.go_on([entry.event for entry in entries], first)
            self._recorder.mark(journal)
        except BaseException:
            journal.close()
            raise
        self._bounds.update({(bound.question, bound.norm): bound for bound in journal.bounds})
        self._given.extend(entries)
        self._marks.update(journal.marks)
        return entries

    # -- while it goes on --------------------------------------------------------------------------

    @contextmanager
    def admitted(self, event: Event, purpose: str) -> Iterator[int]:
        """An answer's number, once there is room for it everywhere. Meanwhile no row makes
        arithmetic warn, or raise."""
        with (
            self._recorder.answer(event, purpose) as admit,
            self.budget.release(event) as number,
            np.errstate(all="ignore"),
        ):
            admit()
            yield number

    def again(self, event: Event, *asked: object) -> list[Floats] | None:
        """What an earlier sitting was given for the same question; None where it is new, or shows
        nothing of anybody."""
        if not self._given or isinstance(event, NoOp):
            return None
        entry, number = self._given[0], len(self.log) - len(self._given) + 1
        if entry.event == event and entry.asked == digest_of(*asked):
            self._given.popleft()
            return [array.copy() for array in entry.given]
        self.budget.close()
        words = f"the question that answer {number} was given to"
        fix = "Resume with the rows, the arguments and the version that the run began with, or "
        fix += "begin another."
        raise PrivacyError.expected(words, of="journal", got="another question", remedy=fix)

    def release(self, entry: LogEntry, answers: Sequence[Any], *asked: object) -> None:
        """Write an answer down, unless it showed nothing of anybody."""
        if isinstance(entry.event, NoOp):
            return
        if self.journal is not None:
            given = tuple(np.array(one, np.float64) for one in answers)
            entry = replace(entry, asked=digest_of(*asked), given=given)
        self.log.append(entry)

    def state(self, question: str, norm: str, moved: float, reason: str, origin: Any) -> None:
        """Write a sensitivity down for the statement: the largest of the run, where rounds or
        questions of one name differ."""
        key, bound = (question, norm), Bounded(question, norm, moved, reason, origin)
        if key not in self._bounds or moved > self._bounds[key].sensitivity:
            if self.journal is not None:
                self.journal.state(bound)
            self._bounds[key] = bound

    def trust(self, *, singles: bool = False) -> None:
        """The caller's code runs beside the rows (and its own float32): the statement says so."""
        for name in (USER_CODE, BY_ROW) if singles else (USER_CODE,):
            self._marks.add(name)
            if self.journal is not None:
                self.journal.mark(name)

    # -- at its end --------------------------------------------------------------------------------

    def close(self) -> None:
        """End the run. What was reserved in a ledger is settled, by what was admitted."""
        self.budget.close()
        try:
            self._recorder.end(self.budget.admitted, failed=self.budget.failed)
        finally:
            if self.journal is not None:
                self.journal.close()

    def finish(self) -> Event:
        """End the run and give the whole log as one event; with a plan, an error unless all of it
        was done."""
        if self.budget.plan is not None and self.promise.is_private:
            self.log.reconcile([self.budget.plan], self.promise.neighbours)
        self.budget.close()
        self._recorder.finish(self.log.events)
        self.close()
        return compose(self.log.events)

    @property
    def record(self) -> Record:
        """What was released so far, at what price, under which promise."""
        secure = self._secure and (self.journal is None or self.journal.is_secure)
        return Record(
            self.promise,
            self.log.entries,
            self.budget.plan if self.promise.is_private else None,
            self.budget.room,
            self._facts,
            (*self._bounds.values(), *self._bounds_before),
            secure,
            USER_CODE in self._marks,
            BY_ROW in self._marks,
            self._recorder.receipt,
        )
