"""The books of a run: what it may still release, what it has released, and what its privacy
statement will say of that.

Guarantees (tests/curator/test_curator_books.py, and those of `budget`, `journal` and `recording`):
1. What is admitted is admitted everywhere: by the ledger's spend first, then by the plan or the
   filter, under one number.
2. A release is in the log, and in the journal, before `release` returns.
3. The statement names the largest bound of each question and norm, of earlier sittings too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from .._types import Floats
from ..core.events import Event, NoOp, compose
from ..core.filters import Filter
from ..core.promise import Promise
from ..errors import InputError, PrivacyError
from ..ledger import Ledger
from ..statement.document import (
    Arithmetic,
    NamedGroups,
    PrivacyStatement,
    PublicFact,
    StatedBound,
    names_read,
    releases_of,
)
from .budget import Budget
from .journal.given import Given, digest_of
from .journal.journal import Journal, earlier_entries
from .journal.lines import CUT, SITTING
from .journal.log import Log, LogEntry
from .journal.recording import Recording

# marks in a journal
USER_CODE, BY_ROW = "user code", "float32-by-row"


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
        self.budget = Budget(
            promise,
            None if plan is None else compose([plan] if isinstance(plan, Event) else plan),
            cap,
        )
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

    # -- before anything is asked ------------------------------------------------------------------

    def open(
        self,
        journal: Callable[[LogEntry], None] | None,
        earlier: Sequence[LogEntry] | Journal,
        public_rows: int | None,
    ) -> None:
        """Begin the log: what an earlier sitting released is charged, and a journal written on."""
        if isinstance(journal, Journal) and earlier != ():
            remedy = "A journal that is written on is given once: earlier=Journal(path)."
            raise InputError.expected(
                "earlier= or journal=", of="journal", got="both", remedy=remedy
            )
        if isinstance(journal, Journal) and not journal.is_new:
            remedy = "To resume its run pass earlier=Journal(path); else begin another."
            raise PrivacyError.expected(
                "a new journal", of="journal", got="one with a run in it", remedy=remedy
            )
        book = (
            journal
            if isinstance(journal, Journal)
            else earlier
            if isinstance(earlier, Journal)
            else None
        )
        if book is None:
            entries = earlier_entries(earlier)
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
            self._recording.withdraw()
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
        spend, admitted = self._recording.answer(event, purpose), False
        try:
            with self.budget.release(event) as number, np.errstate(all="ignore"):
                admitted = True
                yield number
        finally:
            self._recording.answered(spend, admitted=admitted)

    @property
    def keeps_answers(self) -> bool:
        """Whether the journal has answers, to be given again."""
        return self.journal is not None and self.journal.keeps_answers

    def again(self, event: Event, *asked: object) -> Given | None:
        """What an earlier sitting was given for the same question; None where it is new, or shows
        nothing of anybody."""
        if not self._given or isinstance(event, NoOp):
            return None
        entry = self._given[0]
        if entry.given is None:
            self.budget.close()
            remedy = (
                "It is not drawn anew: the run ends, and stays charged. Begin another with what is "
                "left of the budget."
            )
            raise PrivacyError.expected(
                "an answer as it was released", of="journal", got=CUT, remedy=remedy
            )
        if entry.event != event or entry.given.asked != digest_of(*asked):
            self.budget.close()
            remedy = (
                "Resume with the rows, the arguments and the version that the run began with, or "
                "begin another."
            )
            expected = (
                f"the question that answer {len(self.log) - len(self._given) + 1} was given to"
            )
            raise PrivacyError.expected(
                expected, of="journal", got="another question", remedy=remedy
            )
        return self._given.popleft().given

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
        return PrivacyStatement.of(
            self.promise,
            self.log.events,
            plan=None
            if self.budget.plan is None or not self.promise.is_private
            else [self.budget.plan],
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
