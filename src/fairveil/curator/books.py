"""The books of a run: what it may still release, what it has released, where it is charged, and
what its privacy statement will say of that.

**In a ledger** all that a run may cost is reserved before anything is asked, and settled once:

| the run | its spend |
|---|---|
| finished | is committed with the log |
| ended before any answer was admitted | is given back |
| was interrupted | is committed with what was admitted |
| was interrupted by an answer that failed | stays as reserved: what made it fail may be one private row |
| has a journal, and may go on | stays as reserved, and open; the next sitting resumes it |
| ends after a copy of its journal went on | is the copy's; what was released here is one more spend, and an error |
| died with its process | stays as reserved |
| is a forked child's copy | is the parent's to settle |

Without a plan every answer is a spend of its own: reserved before the filter admits it, committed
before it is returned. A spend that cannot be settled, as where the store is away, stays charged as
reserved: never too little. What was released is out and charged, so keeping its model back would
protect nobody: it is a warning, `NotSettled`, or a note on an error that is on its way already.

Guarantees (tests/curator/test_curator_books.py, test_curator_ledger.py)
    1. What there is no room for, in the ledger, the plan or the filter, is refused, and a refusal
       changes nothing; a refused reservation leaves no journal and no log.
    2. What was admitted stays charged, whether its answer came or not: after an answer that failed,
       a plan goes no further. What an earlier sitting released is charged before anything else, and
       its numbers are not given again.
    3. The log of a planned run is a beginning of the plan, or finer. A release is in the log, and
       in the journal, before `release` returns.
    4. A spend is settled once, by what was admitted and never by less. A run with a journal is
       charged once, in however many sittings; a copy of its journal is refused once the run went
       on, and so is the run without its ledger, or with another.
    5. The statement names the largest bound of each question and norm, of earlier sittings too.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

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
from ..errors import (
    BudgetError,
    FairveilError,
    InputError,
    LedgerError,
    NotSettled,
    PrivacyError,
    WentOnElsewhere,
    complaint,
)
from ..ledger import Ledger, Spend, current
from ..statement.document import (
    Arithmetic,
    NamedGroups,
    PrivacyStatement,
    PublicFact,
    Receipt,
    StatedBound,
    is_whole,
    names_read,
    releases_of,
)
from .journal import SITTING, Given, Journal, Log, LogEntry, digest_of, refused

USER_CODE, BY_ROW = "user code", "float32-by-row"
"""Marks in a journal."""
NO_SPEND = "-"
"""In a journal's mark, of a run without a plan, whose answers are spends of their own."""
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


# -- in a ledger -----------------------------------------------------------------------------------


class Recording:
    """What a run tells its ledger; nothing, where `ledger` is None and no block has one."""

    def __init__(
        self,
        ledger: Ledger | None,
        promise: Promise,
        plan: Event | None,
        purpose: str,
        *,
        secure: bool,
        read_from_data: Iterable[str],
        columns: Iterable[str],
    ) -> None:
        self.ledger = current() if ledger is None else ledger
        self._promise, self._plan, self._purpose = promise, plan, purpose
        self._how: dict[str, Any] = {
            "secure": secure,
            "read_from_data": tuple(read_from_data),
            "columns": tuple(columns),
        }
        self._spend: Spend | None = None  # of the plan, until it is settled
        self._may_go_on = False
        self._process = os.getpid()
        self.receipt: Receipt | None = None
        if self.ledger is not None:
            self.ledger.require(promise, secure=secure, read_from_data=self._how["read_from_data"])

    def begin(self, earlier: Sequence[Event] = ()) -> None:
        """Reserve the plan whole. Without one, what an earlier sitting released is charged; whether
        it was recorded then is not known where no journal says so."""
        if self.ledger is None:
            return
        if self._plan is not None:
            self._spend = self._reserved(self.ledger, [self._plan], self._purpose)
        elif earlier:
            settle(self._reserved(self.ledger, earlier, self._purpose).commit)

    def take(self, journal: Journal) -> Callable[[int], None]:
        """Before a journal is written in: refused where it is another ledger's; a run that is new
        to its ledger is reserved.

        What is returned is to be called when the journal is this run's alone, with the number of
        the sitting and before anything is written: then a spend goes on. The ledger is told first:
        where the process dies between the two the run is over, and charged whole. The other way
        round a copy of the journal could go on as well.
        """
        journal.look_again()
        mark, entries = journal.ledger, journal.entries
        if mark is None:
            self.begin([entry.event for entry in entries])
        elif self.ledger is None or self.ledger.dataset != mark[0]:
            words = f"the ledger of data set {mark[0]!r}, which the run began with"
            got = None if self.ledger is None else self.ledger.dataset
            fix = "Pass that ledger: what the journal holds is charged there."
            raise LedgerError.expected(words, of="ledger", got=got, remedy=fix)

        def agreed(sitting: int) -> None:
            # by what was not reserved
            grew = self.ledger is not None and journal.entries != entries
            if grew or journal.ledger != mark:
                fix = "Give each run a journal of its own."
                raise refused("one that nobody else writes", "one that grew meanwhile", fix)
            if mark is None or self._plan is None or self.ledger is None:
                return
            spend = self.ledger.resume(mark[1], sitting)
            self.receipt, done = spend.receipt, tuple(entry.event for entry in entries)
            if spend.is_open:
                self._spend, self._may_go_on = spend, True
            elif not is_whole(done, (self._plan,), self._promise.neighbours):
                words = "one that is whole, of a run that was finished"
                fix = "Its run went on elsewhere, to its end. Begin another, with its own spend."
                raise refused(words, "a copy that is not", fix)

        return agreed

    def mark(self, journal: Journal) -> None:
        """Write down where the run is charged: another sitting continues with that."""
        if self.ledger is not None and journal.ledger is None:
            spend = NO_SPEND if self._spend is None else self._spend.id
            journal.mark_ledger(self.ledger.dataset, spend)
        self._may_go_on = True

    @contextmanager
    def answer(self, event: Event, purpose: str) -> Iterator[Callable[[], None]]:
        """One answer that no plan holds, reserved; committed, whether it came or not, once what is
        given was called: it was admitted. Given back where it was not."""
        if self.ledger is None or self._plan is not None or isinstance(event, NoOp):
            yield lambda: None
            return
        words = ": ".join(words for words in (self._purpose, purpose) if words)
        spend, admitted = self._reserved(self.ledger, [event], words), []
        try:
            yield lambda: admitted.append(True)
        finally:
            settle(spend.commit if admitted else spend.refund)

    def finish(self, log: Iterable[Event]) -> None:
        """The run did all of its plan."""
        spend, self._spend = self._spend, None
        if spend is None or self._plan is None or os.getpid() != self._process:
            return
        # As planned, the spend keeps what was reserved to the last bit; a sum in another order
        # could differ by one.
        done = compose(log)
        as_planned = list(spelled_out(done)) == list(spelled_out(self._plan))
        try:
            settle(partial(spend.commit, None if as_planned else done))
        except WentOnElsewhere as error:
            try:
                self._charge_again(done)
            except BudgetError as more:
                error.add_note(f"For that the budget does not suffice: {more}")
            raise

    def end(self, admitted: Sequence[Event], *, failed: bool) -> None:
        """The run is over, unless it was finished or goes on in another sitting. `failed`: an
        answer did. A forked child, which leaves the parent's blocks when it ends, settles nothing:
        it does not know what the parent still asks."""
        spend, self._spend = self._spend, None
        if spend is None or os.getpid() != self._process:
            return
        if self._may_go_on:
            if admitted:
                settle(partial(self._charge_if_copied, spend, compose(admitted)))
        elif admitted:
            settle(partial(spend.commit, None if failed else compose(admitted), complete=False))
        else:
            settle(spend.refund)

    def _charge_if_copied(self, spend: Spend, done: Event) -> None:
        if spend.ledger.standing(spend.id).sitting != spend.sitting:
            self._charge_again(done)

    def _charge_again(self, done: Event) -> None:
        """What was released here is not in the spend, which a copy of the journal took along: it is
        one of its own."""
        assert self.ledger is not None
        words = f"{self._purpose}, again: its journal was copied"
        self._reserved(self.ledger, [done], words).commit()

    def _reserved(self, ledger: Ledger, events: Sequence[Event], purpose: str) -> Spend:
        spend = ledger.reserve(events, self._promise, purpose=purpose, **self._how)
        self.receipt = spend.receipt
        return spend


def settle(settle: Callable[[], None]) -> None:
    """Tell the ledger; where that fails, say so, and go on: see above."""
    on_its_way = sys.exception()
    try:
        settle()
    except WentOnElsewhere:
        raise
    except (FairveilError, OSError) as error:
        text = complaint(
            expected="a ledger that can be told how the release ended",
            of="spend",
            got=str(error),
            remedy="It stays charged as it was reserved: `fairveil ledger show` lists it as open.",
        )
        if on_its_way is None:
            warnings.warn(text, NotSettled, stacklevel=4)
        else:
            on_its_way.add_note(text)


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
        ledger: Ledger | None,
        purpose: str,
    ) -> None:
        self.promise = promise
        self.journal: Journal | None = None
        self.log = Log()
        events = [plan] if isinstance(plan, Event) else plan
        self.budget = Budget(promise, None if events is None else compose(events), cap)
        self._recording = Recording(
            ledger,
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

    def state(self, bound: StatedBound) -> None:
        """Write a sensitivity down for the statement: the largest of the run, where rounds or
        questions of one name differ."""
        key = (bound.question, bound.norm)
        if key not in self._bounds or bound.sensitivity > self._bounds[key].sensitivity:
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
