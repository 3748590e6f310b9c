"""What a run tells its ledger: all that it may cost is reserved before anything is asked, and settled
once. A curator is given a `Recording` by its ledger, and imports neither.

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

Guarantees (tests/curator/test_curator_ledger.py)
    1. Nothing is asked of a row before all that it may cost is reserved. A refused reservation
       leaves no journal and no log.
    2. A spend is settled once, by what the run's budget admitted and never by less than that.
    3. A run with a journal is charged once, in however many sittings; a copy of its journal is
       refused once the run went on, and so is the run without its ledger, or with another.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from ..core.events import Event, NoOp, compose, spelled_out
from ..core.promise import Promise
from ..errors import (
    BudgetError,
    FairveilError,
    LedgerError,
    NotSettled,
    PrivacyError,
    WentOnElsewhere,
    complaint,
)
from ..statement.document import Receipt, is_whole

NO_SPEND = "-"
"""In a journal's mark, of a run without a plan, whose answers are spends of their own."""


class Journal(Protocol):
    """What a ledger reads of a run's journal, and writes into it."""

    @property
    def entries(self) -> Sequence[Any]: ...
    @property
    def ledger(self) -> tuple[str, str] | None: ...
    def look_again(self) -> None: ...
    def mark_ledger(self, dataset: str, spend: str) -> None: ...


class Recording:
    """What one run tells its `Ledger`, whose `recorder` makes it, and the `Spend` of its plan."""

    def __init__(
        self,
        ledger: Any,
        promise: Promise,
        plan: Event | None,
        purpose: str,
        secure: bool,
        read_from_data: Iterable[str],
        columns: Iterable[str],
    ) -> None:
        self.ledger, self._promise, self._plan, self._purpose = ledger, promise, plan, purpose
        how = {"secure": secure, "read_from_data": tuple(read_from_data)}
        ledger.require(promise, **how)
        self._reserve = partial(ledger.reserve, promise=promise, columns=tuple(columns), **how)
        self._spend: Any = None  # of the plan, until it is settled
        self._may_go_on = False
        self._process = os.getpid()
        self.receipt: Receipt | None = None

    def begin(self, earlier: Sequence[Event] = ()) -> None:
        """Reserve the plan whole. Without one, what an earlier sitting released is charged; whether
        it was recorded then is not known where no journal says so."""
        if self._plan is not None:
            self._spend = self._reserved([self._plan], self._purpose)
        elif earlier:
            settle(self._reserved(earlier, self._purpose).commit)

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
        elif self.ledger.dataset != mark[0]:
            words = f"the ledger of data set {mark[0]!r}, which the run began with"
            fix = "Pass that ledger: what the journal holds is charged there."
            got = self.ledger.dataset
            raise LedgerError.expected(words, of="ledger", got=got, remedy=fix)

        def agreed(sitting: int) -> None:
            # by what was not reserved
            if journal.entries != entries or journal.ledger != mark:
                fix = "Give each run a journal of its own."
                raise _refused("one that nobody else writes", "one that grew meanwhile", fix)
            if mark is None or self._plan is None:
                return
            spend = self.ledger.resume(mark[1], sitting)
            self.receipt, done = spend.receipt, tuple(entry.event for entry in entries)
            if spend.is_open:
                self._spend, self._may_go_on = spend, True
            elif not is_whole(done, (self._plan,), self._promise.neighbours):
                words = "one that is whole, of a run that was finished"
                fix = "Its run went on elsewhere, to its end. Begin another, with its own spend."
                raise _refused(words, "a copy that is not", fix)

        return agreed

    def mark(self, journal: Journal) -> None:
        """Write down where the run is charged: another sitting continues with that."""
        if journal.ledger is None:
            spend = NO_SPEND if self._spend is None else self._spend.id
            journal.mark_ledger(self.ledger.dataset, spend)
        self._may_go_on = True

    @contextmanager
    def answer(self, event: Event, purpose: str) -> Iterator[Callable[[], None]]:
        """One answer that no plan holds, reserved; committed, whether it came or not, once what is
        given was called: it was admitted. Given back where it was not."""
        if self._plan is not None or isinstance(event, NoOp):
            yield lambda: None
            return
        words = ": ".join(words for words in (self._purpose, purpose) if words)
        spend, admitted = self._reserved([event], words), []
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

    def _charge_if_copied(self, spend: Any, done: Event) -> None:
        if spend.ledger.standing(spend.id).sitting != spend.sitting:
            self._charge_again(done)

    def _charge_again(self, done: Event) -> None:
        """What was released here is not in the spend, which a copy of the journal took along: it is
        one of its own."""
        words = f"{self._purpose}, again: its journal was copied"
        self._reserved([done], words).commit()

    def _reserved(self, events: Sequence[Event], purpose: str) -> Any:
        spend = self._reserve(events, purpose=purpose)
        self.receipt = spend.receipt
        return spend


def _refused(expected: str, got: str, remedy: str) -> PrivacyError:
    return PrivacyError.expected(expected, of="journal", got=got, remedy=remedy)


def settle(settle: Callable[[], None]) -> None:
    """Tell the ledger; where that fails, say so, and go on: see above."""
    on_its_way = sys.exception()
    try:
        settle()
    except WentOnElsewhere:
        raise
    except (FairveilError, OSError) as error:
        words = "a ledger that can be told how the release ended"
        fix = "It stays charged as it was reserved: `fairveil ledger show` lists it as open."
        text = complaint(expected=words, of="spend", got=str(error), remedy=fix)
        if on_its_way is None:
            warnings.warn(text, NotSettled, stacklevel=4)
        else:
            on_its_way.add_note(text)
