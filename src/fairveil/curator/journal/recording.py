"""A run's place in a ledger: all that it may cost is reserved before anything is asked, and
settled once, when it ends.

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
before it is returned.

A spend that cannot be settled, as where the store is away, stays charged as reserved: never too
little. What was released is out and charged, so keeping its model back would protect nobody: it is
a warning, `NotSettled`. Where an error is on its way already it is a note on that error, which it
must not hide.

Guarantees (tests/curator/test_curator_ledger.py):
1. Nothing is asked of a row before all that it may cost is reserved. A refused reservation leaves
   no journal and no log.
2. A spend is settled once, by what the run's budget admitted and never by less than that.
3. A run with a journal is charged once, in however many sittings; a copy of its journal is refused
   once the run went on, and so is the run without its ledger, or with another.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ...core.events import Event, NoOp, compose, spelled_out
from ...core.promise import Promise
from ...errors import (
    BudgetError,
    FairveilError,
    LedgerError,
    NotSettled,
    WentOnElsewhere,
    complaint,
)
from ...ledger import Ledger, Spend, current
from ...statement.document import Receipt, is_whole
from .journal import Journal
from .lines import refused

NO_SPEND = "-"
"""In a journal's mark, of a run without a plan, whose answers are spends of their own."""


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

    # -- before anything is asked ------------------------------------------------------------------

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

        To be called when the journal is this run's alone, with the number of the sitting and before
        anything is written: then a spend goes on. The ledger is told first: where the process dies
        between the two the run is over, and charged whole. The other way round a copy of the
        journal could go on as well.
        """
        journal.look_again()
        mark, entries = journal.ledger, journal.entries
        if mark is None:
            self.begin([entry.event for entry in entries])
        elif self.ledger is None or self.ledger.dataset != mark[0]:
            expected = f"the ledger of data set {mark[0]!r}, which the run began with"
            got = None if self.ledger is None else self.ledger.dataset
            remedy = "Pass that ledger: what the journal holds is charged there."
            raise LedgerError.expected(expected, of="ledger", got=got, remedy=remedy)

        def agreed(sitting: int) -> None:
            # by what was not reserved
            grew = self.ledger is not None and journal.entries != entries
            if grew or journal.ledger != mark:
                raise refused(
                    "one that nobody else writes",
                    "one that grew meanwhile",
                    "Give each run a journal of its own.",
                )
            if mark is not None and self._plan is not None:
                self._resume(mark[1], sitting, self._plan, [entry.event for entry in entries])

        return agreed

    def _resume(self, spend_id: str, sitting: int, plan: Event, done: Sequence[Event]) -> None:
        assert self.ledger is not None
        spend = self.ledger.resume(spend_id, sitting)
        self.receipt = spend.receipt
        if spend.is_open:
            self._spend, self._may_go_on = spend, True
        elif not is_whole(tuple(done), (plan,), self._promise.neighbours):
            remedy = (
                "Its run went on elsewhere, to its end. Begin another, with a spend of its own."
            )
            raise refused(
                "one that is whole, of a run that was finished", "a copy that is not", remedy
            )

    def withdraw(self) -> None:
        """Give back what was reserved: the run never began. What was resumed stays."""
        self.end((), failed=False)

    def mark(self, journal: Journal) -> None:
        """Write down where the run is charged: another sitting continues with that."""
        if self.ledger is not None and journal.ledger is None:
            journal.mark_ledger(
                self.ledger.dataset, NO_SPEND if self._spend is None else self._spend.id
            )
        self._may_go_on = True

    # -- answers without a plan --------------------------------------------------------------------

    def answer(self, event: Event, purpose: str) -> Spend | None:
        """Reserve one answer that no plan holds."""
        if self.ledger is None or self._plan is not None or isinstance(event, NoOp):
            return None
        words = ": ".join(words for words in (self._purpose, purpose) if words)
        return self._reserved(self.ledger, [event], words)

    def answered(self, spend: Spend | None, *, admitted: bool) -> None:
        """Commit it, whether its answer came or not; give it back where it was not admitted."""
        if spend is not None:
            settle(spend.commit if admitted else spend.refund)

    # -- the end -----------------------------------------------------------------------------------

    def finish(self, log: Iterable[Event]) -> None:
        """The run did all of its plan."""
        spend, self._spend = self._spend, None
        if spend is not None and self._plan is not None and os.getpid() == self._process:
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
            return
        if admitted:
            settle(partial(spend.commit, None if failed else compose(admitted), complete=False))
        else:
            settle(spend.refund)

    # -- inside ------------------------------------------------------------------------------------

    def _charge_if_copied(self, spend: Spend, done: Event) -> None:
        if spend.ledger.standing(spend.id).sitting != spend.sitting:
            self._charge_again(done)

    def _charge_again(self, done: Event) -> None:
        """What was released here is not in the spend, which a copy of the journal took along: it is
        one of its own."""
        assert self.ledger is not None
        self._reserved(
            self.ledger, [done], f"{self._purpose}, again: its journal was copied"
        ).commit()

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
