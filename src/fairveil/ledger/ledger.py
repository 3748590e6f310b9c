"""A budget that many fits share, as a handle: the lines are in a store, and the handle only says
where.

Life of a spend: reserved (its whole plan, before a row is read; refused where the filter has no
room) -> committed with what was really released -> or refunded, if nothing was. A spend whose
process died stays charged as reserved.

A charge is the filter's (theory.md#t10), so it bounds fits that were chosen after seeing earlier
answers, in any number of processes at once: every fit is a sequence of single answers, and however
they interleave, each is one more event of the same filter, whose sum the reservations keep within
the budget (Rogers, Roth, Ullman and Vadhan 2016; Feldman and Zrnic 2021). For the same reason a fit
that broke off may be charged what it had asked by then. One exception: the first spend of a ledger
that nothing was spent of may take all of it, when its own tight price is within the promise.

Guarantees (tests/ledger/):
1. What is charged never passes the cap, whoever reserves, from however many processes, and
   whichever of them die.
2. A reservation is on the disk before `reserve` returns. A process that dies later leaves it
   charged. A refused reservation, and any error, changes nothing.
3. A reservation reads the head and adds a line: its price does not grow with the history.
4. A handle is never copied: `clone`, `copy` and `deepcopy` give itself, pickling opens the store
   again. It is of one ledger: where another one was put in its place nothing is granted.
5. Inside `with ledger.recording():` every fit of the process is recorded, in every thread; blocks
   of two ledgers in two threads at once are refused.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _checks
from ..core.events import Event, compose
from ..core.inventory import as_event
from ..core.promise import Promise, Unit
from ..core.runs import BLOCKS
from ..errors import InputError, LedgerError, Overspent, WentOnElsewhere, complaint
from ..facts import Schema
from ..show import numbers
from .entries import (
    COMMITTED,
    CREATED,
    FREE,
    MOST,
    REFUNDED,
    RESERVED,
    RESUMED,
    WHOLE,
    Cost,
    Entry,
    Spent,
    checked_words,
    malformed,
    need,
    parsed,
    standing,
    user_and_machine,
    written,
)
from .terms import Terms, tight_epsilon, under

if TYPE_CHECKING:
    from ..statement.document import Receipt
    from ..statement.form import Finding
    from .page import Balance
    from .recording import Recording
    from .store import Page, Store

MOST_SITTINGS = 1 << 62
T = TypeVar("T")


class Ledger:
    """Named budget of a named data set, shared by fits of many processes.

    Make one by `Ledger.create`, and find one by `Ledger.open`. Pass it to estimators as `ledger`,
    or to all fits of a block by ``with ledger.recording():``. The store is a path (SQLite), an
    address ``postgresql://...``, or None for the memory of this process.

    Attributes
    ----------
    dataset : str
        Name of the data set.
    read_only : bool
        Whether spends are refused.
    address : str or None
        What opens it again, in another process too; None in memory. It may hold a password.
    shown : str
        Where it is, without a password.
    terms : Terms
        The guarantee and the filter that keeps it.
    is_untouched : bool
        Whether nothing is charged.

    Examples
    --------
    >>> from fairveil.core.events import Gaussian
    >>> ledger = Ledger.create(None, "census", 1.0, 1e-6)
    >>> with ledger.reserve(Gaussian(12.0), purpose="counts by region"):
    ...     pass  # ask, and add the noise
    >>> print(f"{ledger.balance().spent_share:.2f}")
    0.14
    """

    def __init__(
        self,
        store: Store,
        dataset: str,
        *,
        read_only: bool = False,
        who: str | None = None,
        purpose: str = "",
        first_hash: str | None = None,
    ) -> None:
        self._store, self.dataset, self.read_only = store, dataset, read_only
        self.who = user_and_machine() if who is None else checked_words("who", who)
        self._purpose, self._first_hash = checked_words("purpose", purpose), first_hash
        self.address, self.shown = store.address, store.shown

    # -- finding one -------------------------------------------------------------------------------

    @staticmethod
    def create(
        url: str | os.PathLike[str] | None,
        dataset: str,
        epsilon: float,
        delta: float,
        protects: str = "records",
        neighbours: str | None = None,
        production: bool = False,
        *,
        schema: Schema | None = None,
        kind: str | None = None,
        order: float | None = None,
        columns: Iterable[str] | None = None,
        who: str | None = None,
        unit: str | None = None,
        max_rows_per_unit: int | None = None,
    ) -> Ledger:
        """Begin a budget; an error where the store has one of this data set.

        Parameters
        ----------
        url : path, str or None
            The store: a path (SQLite), an address ``postgresql://...``, or None for this process's
            memory.
        dataset : str
            Name of the data set.
        epsilon : float
            Privacy budget of everything that is recorded, together.
        delta : float
            Slack that is added to the epsilon bound: one row changes the probability of any results
            by a factor of at most e^epsilon, plus delta.
        protects : {"records", "sensitive_features"}, default="records"
            What is protected. ``"records"``: all of a row. ``"sensitive_features"``: the sensitive
            attributes alone; features and labels are then public.
        neighbours : {"add-remove", "replace-one"}, default=None
            Adjacency relation: one record is added or removed, or one is replaced. None:
            ``"add-remove"`` for records, ``"replace-one"`` for sensitive features.
        production : bool, default=False
            Whether seeded noise and anything read from the data without privacy are refused.
        schema : Schema, default=None
            Only rows read by this schema are accepted. None: by any.
        kind : {"renyi", "gaussian", "zcdp", "pure"}, default=None
            Filter, fixed for good. ``"renyi"`` takes every event. The others are tighter:
            ``"gaussian"`` takes none with random batches, ``"zcdp"`` takes what is
            zero-concentrated, and ``"pure"`` takes those with delta 0. None: ``"renyi"``, or
            ``"pure"`` for delta 0.
        order : float, default=None
            Order of the ``"renyi"`` filter. None: the best for many Gaussians.
        columns : iterable of str, default=None
            Sensitive columns that are protected, where sensitive features alone are. None: those of
            the first release.
        who : str, default=None
            Name that spends are recorded under. None: the user and the machine.
        unit : str, default=None
            Column that tells persons apart, where the budget is each person's: it takes releases
            about these persons. None: the budget is each row's.
        max_rows_per_unit : int, default=None
            Most rows of any person in the table. Releases about rows are then taken too, at the
            price of so many. None: not known.
        """
        fix = "Pass unit='patient', for example, or leave it out: the budget is each row's."
        of, got = "max_rows_per_unit", max_rows_per_unit
        need(unit is not None or got is None, of, "None without a unit", got, fix, InputError)
        whose = None if unit is None else Unit(unit, max_rows_per_unit)
        promise = Promise(epsilon, delta, protects, neighbours, whose)
        more: dict[str, Any] = {"production": production, "schema": schema, "kind": kind}
        terms = Terms.create(dataset, promise, order=order, columns=columns, **more)
        by = user_and_machine() if who is None else checked_words("who", who)
        content = {"terms": terms.to_dict()}
        first = Entry.following(None, CREATED, content, who=by, under=under(promise))
        return _begun(url, [first], who)

    @staticmethod
    def open(
        url: str | os.PathLike[str],
        dataset: str | None = None,
        *,
        read_only: bool = False,
        who: str | None = None,
        purpose: str = "",
    ) -> Ledger:
        """Open the ledger of a data set in a store.

        Parameters
        ----------
        url : path or str
            The store: a path (SQLite), or an address ``postgresql://...``.
        dataset : str, default=None
            Name of the data set. None: the store's only one.
        read_only : bool, default=False
            Whether it is opened to look only.
        who : str, default=None
            Name that spends are recorded under. None: the user and the machine.
        purpose : str, default=""
            Words that the purpose of every spend through this handle begins with.
        """
        from .store import Store, missing

        store = Store(url, read_only=read_only)
        known = store.datasets()
        if dataset is None and len(known) != 1:
            raise missing(None, known, store.shown)
        ledger = Ledger(store, dataset or known[0], read_only=read_only, who=who, purpose=purpose)
        _ = ledger.terms  # there is such a ledger, or this is the error
        return ledger

    @staticmethod
    def datasets(url: str | os.PathLike[str]) -> list[str]:
        """Names of the data sets that a store has ledgers of.

        Parameters
        ----------
        url : path or str
            The store.
        """
        from .store import Store

        return Store(url, read_only=True).datasets()

    @staticmethod
    def restore(url: str | os.PathLike[str] | None, document: str) -> Ledger:
        """Write an exported ledger into a store that has none of its data set.

        Parameters
        ----------
        url : path, str or None
            The store: a path (SQLite), an address ``postgresql://...``, or None for this process's
            memory.
        document : str
            What `export` gave. A document in which `check` finds a fault is refused.
        """
        from .checks import findings

        lines = parsed(document)
        grave = [finding.sentence for finding in findings(lines) if finding.grave]
        fix = "Ask for a fresh export; `fairveil ledger check` says all that does not fit."
        got = grave[0][:300] if grave else ""
        need(not grave, "exported ledger", "lines that agree", got, fix)
        return _begun(url, lines, None)

    # -- what it says ------------------------------------------------------------------------------

    @cached_property
    def terms(self) -> Terms:
        """The guarantee, and the filter that keeps it."""
        first = self._store.line(self.dataset, 0)
        if first.hash != first.digest():
            raise malformed("a first line that is what its hash was made of", "another one")
        terms = Terms.of(first)
        fix = "Somebody gave the lines another name: look at an export, or at receipts."
        of, got = "the first line's data set", terms.dataset
        need(got == self.dataset, of, self.dataset, got, fix)
        self._require_own(first)
        self._first_hash = first.hash
        return terms

    @property
    def promise(self) -> Promise:
        """Guarantee of everything that is recorded, together."""
        return self.terms.promise

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is charged: the next spend may have all of it."""
        return self._store.line(self.dataset).is_untouched

    def balance(self) -> Balance:
        """Spent and remaining budget."""
        from .page import balance_of

        return balance_of(self.terms, self._last(), self._store.charges(self.dataset))

    def history(self, first: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Lines of the ledger, in their order.

        Parameters
        ----------
        first : int, default=0
            Number of the first line.
        limit : int, default=None
            Most lines. None: all.
        """
        limit = None if limit is None else _checks.whole(limit=limit)
        return self._store.entries(self.dataset, _checks.whole(first=first), limit)

    def standing(self, spend: str) -> Spent:
        """State of one spend.

        Parameters
        ----------
        spend : str
            Id of the spend.
        """
        return self._standing(self._store.of_spend(self.dataset, spend), spend)

    def check(self, receipts: Iterable[Receipt] = ()) -> list[Finding]:
        """Find every contradiction among the lines, and with receipts that were kept elsewhere.

        Parameters
        ----------
        receipts : iterable of Receipt, default=()
            Receipts to compare with.
        """
        from .checks import findings

        return findings(self._store.entries(self.dataset), tuple(receipts))

    def export(self) -> str:
        """Export all lines as one JSON document, to keep elsewhere, to check, or to restore."""
        return written(self._store.entries(self.dataset))

    def fits(
        self, events: Event | Iterable[Event], promise: Promise | None = None, *, fixed: bool = True
    ) -> bool:
        """Whether the budget suffices for these events.

        Parameters
        ----------
        events : Event or iterable of Event
            Everything that the release may contain.
        promise : Promise, default=None
            Guarantee whose adjacency relation the events are priced for. None: the ledger's.
        fixed : bool, default=True
            Whether all events were fixed in advance.

        Returns
        -------
        bool
            Another process may spend it before you reserve.
        """
        cost, alone = self._priced(as_event(events), promise or self.promise)
        last = self._last()
        # An untouched ledger may be given away whole: then the tight price of one plan counts, and
        # no filter.
        return cost.within(last.spent, last.leaked) or (alone and fixed and last.is_untouched)

    # -- spending ----------------------------------------------------------------------------------

    def require(
        self,
        promise: Promise,
        *,
        secure: bool = True,
        read_from_data: Iterable[str] = (),
        schema: Schema | bool | None = False,
    ) -> None:
        """Refuse, before a row is read, what would be refused later.

        Parameters
        ----------
        promise : Promise
            Guarantee of the release.
        secure : bool, default=True
            Whether the noise comes from a cryptographic generator.
        read_from_data : iterable of str, default=()
            What was read from the data outside of the guarantee.
        schema : Schema or bool, default=False
            Schema that rows are read by. None: without one. False: not known yet.
        """
        fix, of = "Open it without read_only=True.", f"ledger {self.dataset!r}"
        got = "one opened to read"
        need(not self.read_only, of, "one to write in", got, fix)
        self.terms.require(promise, secure=secure, read=_words_in(read_from_data), schema=schema)

    def reserve(
        self,
        events: Event | Iterable[Event],
        promise: Promise | None = None,
        *,
        purpose: str = "",
        secure: bool = True,
        read_from_data: Iterable[str] = (),
        columns: Iterable[str] | None = None,
        fixed: bool = True,
    ) -> Spend:
        """Charge the whole cost of a release before its first query, or raise `Overspent`.

        Parameters
        ----------
        events : Event or iterable of Event
            Everything that the release may contain.
        promise : Promise, default=None
            Guarantee whose adjacency relation the events are priced for. None: the ledger's.
        purpose : str, default=""
            A line of words.
        secure : bool, default=True
            Whether the noise comes from a cryptographic generator.
        read_from_data : iterable of str, default=()
            What was read from the data outside of the guarantee.
        columns : iterable of str, default=None
            Sensitive columns that the release protects, where it protects no more. None: the
            ledger's.
        fixed : bool, default=True
            Whether all events were fixed in advance. Otherwise the release never takes an untouched
            ledger for itself, since its tight price would be no bound.

        Returns
        -------
        Spend
            A context manager too: the spend is committed as reserved when its block ends, also by
            an error.

        Raises
        ------
        Overspent
            If the budget does not suffice.
        """
        asked, event, terms = promise or self.promise, as_event(events), self.terms
        own = checked_words("purpose", purpose)
        words = checked_words("purpose", ": ".join(part for part in (self._purpose, own) if part))
        read, named = _words_in(read_from_data), terms.named(columns, asked)
        self.require(asked, secure=secure, read_from_data=read)
        cost, alone = self._priced(event, asked)
        alone = _checks.truth(fixed=fixed) and alone
        noise = "secure" if secure else "seeded"
        content: dict[str, Any] = {"plan": event.to_dict(), "promise": asked.to_dict()}
        content |= {"noise": noise, "read_from_data": read, "columns": named}
        about = {"who": self.who, "under": under(asked), "purpose": words}

        def charge(page: Page) -> tuple[Entry, bool]:
            head = page.head
            whole = alone and head.is_untouched
            charged = Cost(MOST, MOST) if whole else cost
            self._require_columns(page, named)
            if not charged.within(head.spent, head.leaked):
                return head, False
            more = {"spend": secrets.token_hex(16), **about}
            told = content | {"whole": whole}
            entry = Entry.following(head, RESERVED, told, change=charged, **more)
            page.append(entry)
            return entry, True

        entry, granted = self._write(charge)
        if not granted:
            raise _overspent(terms, event, asked, cost, entry)
        return Spend(self, entry)

    def spend(
        self,
        events: Event | Iterable[Event],
        *,
        purpose: str,
        neighbours: str | None = None,
        secure: bool = False,
        fixed_in_advance: bool = False,
    ) -> AbstractContextManager[Spend]:
        """Charge a block of any code: ``with ledger.spend(Gaussian(20.0), purpose="counts"):``.

        An `Overspent` keeps the block from running. The spend is committed when the block ends,
        also by an error, unless the block settled it itself.

        Parameters
        ----------
        events : Event or iterable of Event
            Everything that the block may release, for neighbours in one row, or one person where
            the ledger protects persons.
        purpose : str
            A line of words.
        neighbours : {"add-remove", "replace-one"}, default=None
            Adjacency relation that the events are priced for. None: the ledger's.
        secure : bool, default=False
            Whether the noise comes from a cryptographic generator.
        fixed_in_advance : bool, default=False
            Whether all parameters were fixed without a look at the data.

        Returns
        -------
        context manager of Spend
            The whole cost is reserved before the block begins, and nothing before the ``with``.

        Raises
        ------
        Overspent
            If the budget does not suffice; the block does not run.
        """
        own, fixed = self.promise, _checks.truth(fixed_in_advance=fixed_in_advance)
        relation = neighbours or own.neighbours
        asked = Promise(own.epsilon, own.delta, own.protects, relation, own.unit)
        fix = "Say what the block releases: purpose='counts by region'."
        said = checked_words("purpose", purpose).strip()
        need(said, "purpose", "words", purpose, fix, InputError)
        how: dict[str, Any] = {"purpose": purpose, "secure": _checks.truth(secure=secure)}

        @contextmanager
        def block() -> Iterator[Spend]:
            with self.reserve(events, asked, fixed=fixed, **how) as spend:
                yield spend

        return block()

    def resume(self, spend: str, sitting: int) -> Spend:
        """Resume a spend in another process.

        A copy of a run's journal that is resumed after the run was is refused here: it would
        release the plan twice.

        Parameters
        ----------
        spend : str
            Id of the spend.
        sitting : int
            Number of this part of its run, later than all before it.
        """
        self.require(self.promise)
        sitting = _checks.whole(at_least=1, sitting=sitting)
        fix, of = "Number the sittings of a run from 1.", "sitting"
        need(sitting <= MOST_SITTINGS, of, "a sitting of a run", sitting, fix, InputError)
        of = f"spend {spend}"

        def go_on(page: Page) -> Spent:
            now = self._standing(page.of_spend(spend), spend)
            if not now.is_open:
                fix = "What is left of it was given back. Begin another run."
                need(now.complete, of, "one that goes on", f"one {now.last}", fix)
                return now
            fix = "Copies of a checkpoint are runs of their own: begin another, with its own spend."
            got = f"sitting {sitting}, which went on before"
            need(sitting > now.sitting, of, "a run in one place", got, fix)
            page.append(self._step(page, RESUMED, now, {"sitting": sitting}))
            return now

        return Spend(self, self._write(go_on).reserved, sitting)

    @property
    def recorder(self) -> partial[Recording]:
        """What records one run of a curator: a `Recording` of this ledger."""
        from .recording import Recording

        return partial(Recording, self)

    @contextmanager
    def recording(self) -> Iterator[Ledger]:
        """Record every fit of a block, in every thread: ``with ledger.recording():``.

        The block is the whole process's, not one thread's: searches return their work from threads
        of their own, and a fit that a thread-local block would miss is a spend that nobody
        recorded. Hence blocks of two ledgers in two threads at once are refused.
        """
        block = (threading.get_ident(), self)
        fix = (
            "A block is the whole process's: give estimators of several threads their own ledger=."
        )
        with _lock:
            others = [book for thread, book in _blocks if thread != block[0]]
            same = all(same_budget(book, self) for book in others)
            need(same, "ledger block", "one ledger at a time", "another thread's", fix)
            _blocks.append(block)
        try:
            yield self
        finally:
            with _lock:
                at = next(i for i in reversed(range(len(_blocks))) if _blocks[i] is block)
                del _blocks[at]

    def close(self) -> None:
        """Nothing is open between uses, and nothing is to be waited for."""

    # -- inside ------------------------------------------------------------------------------------

    def _settle(self, spend: Spend, kind: str, content: dict[str, Any], events: object) -> None:
        """The last line of a spend. `events`: what was admitted; None: all that was reserved."""
        cost = None
        if isinstance(events, Event):  # priced while others may write
            promise = Promise.from_dict(self.standing(spend.id).reserved.values["promise"])
            cost = self.terms.cost(events, promise)

        def settle(page: Page) -> None:
            now = self._own(page, spend)
            kept = FREE if kind == REFUNDED else now.charge(cost)
            change = Cost(kept.units - now.units, kept.leak - now.leak)
            page.append(self._step(page, kind, now, content, change))

        self._write(settle)

    def _step(
        self, page: Page, kind: str, now: Spent, content: dict[str, Any], change: Cost = FREE
    ) -> Entry:
        """One more line of a spend."""
        first = now.reserved
        about = {"under": first.under, "spend": first.spend, "purpose": first.purpose}
        return Entry.following(page.head, kind, content, who=self.who, change=change, **about)

    def _write(self, work: Callable[[Page], T]) -> T:
        """What `work` answers as the only writer of these lines, which are still those of this
        handle."""
        _ = self.terms

        def own(page: Page) -> T:
            self._require_own(page.first)
            return work(page)

        return self._store.write(self.dataset, own)

    def _own(self, page: Page, spend: Spend) -> Spent:
        """Where it stands, to be settled once, by the sitting that it is in."""
        now = self._standing(page.of_spend(spend.id), spend.id)
        here = now.sitting == spend.sitting and (now.is_open or spend.was_settled)
        of, expected = f"spend {spend.id}", f"sitting {spend.sitting}"
        fix = "A copy of its journal went on: what this run released is not charged by it."
        got = f"sitting {now.sitting}, {now.last}"
        need(here, of, expected, got, fix, WentOnElsewhere)
        fix = "A spend is settled once; reserve another for another release."
        need(now.is_open, "spend", "one that is open", f"one that was {now.last}", fix)
        return now

    def _last(self) -> Entry:
        self._require_own(self._store.line(self.dataset, 0))
        return self._store.line(self.dataset)

    def _require_own(self, first: Entry) -> None:
        """A handle has the terms of one ledger, and there may be another one now."""
        of, fix = f"{self.dataset} in {self.shown}", "Nothing was written. Open it again "
        expected, got = "the ledger that this handle was opened for", "another one in its place"
        same = self._first_hash in (None, first.hash)
        need(same, of, expected, got, f"{fix}(Ledger.open): the terms of the new one hold.")

    def _require_columns(self, page: Page, named: list[str] | None) -> None:
        """A release that protects other columns publishes the ledger's. The first release decides,
        unless the terms do."""
        if named is None:
            return
        before = () if self.terms.columns else page.naming_columns()
        ours = self.terms.columns or next((line.values["columns"] for line in before), named)
        expected = f"a release that protects {', '.join(ours)}"
        fix = (
            "It would publish the others: protect all of them (more is fine), or keep two ledgers."
        )
        need(set(ours) <= set(named), f"ledger {self.dataset!r}", expected, named, fix)

    def _priced(self, event: Event, asked: Promise) -> tuple[Cost, bool]:
        """What it costs in the filter; and whether, too much for that, it may have an untouched
        ledger for itself."""
        cost = self.terms.cost(event, asked)
        return cost, not cost.within(0, 0) and self.terms.fits_alone(event, asked)

    def _standing(self, lines: list[Entry], spend: str) -> Spent:
        fix, of = "Pass the ledger that the run began with.", f"ledger {self.dataset!r}"
        need(lines, of, "one of its own spends", spend, fix)
        return standing(lines)

    def _repr_html_(self) -> str:
        return self.balance()._repr_html_()

    def __repr__(self) -> str:
        only = ", read_only=True" if self.read_only else ""
        return f"Ledger({self.shown!r}, {self.dataset!r}{only})"

    def __sklearn_clone__(self) -> Ledger:
        return self

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self


class Spend:
    """What one release was reserved. Settle it once: `commit` with what was admitted, or `refund`
    if nothing was."""

    def __init__(self, ledger: Ledger, reserved: Entry, sitting: int = 0) -> None:
        self.ledger, self.id, self.entry = ledger, reserved.spend, reserved.number
        self.hash, self.sitting, self.was_settled = reserved.hash, sitting, False

    @property
    def receipt(self) -> Receipt:
        """What a statement keeps of it: with this, a ledger that lost or changed the line is found
        out."""
        from ..statement.document import Receipt

        return Receipt(self.ledger.dataset, self.id, self.entry, self.hash)

    @property
    def is_open(self) -> bool:
        """Whether it is still to be settled."""
        return self.ledger.standing(self.id).is_open

    def commit(
        self, events: Event | Iterable[Event] | None = None, *, complete: bool = True
    ) -> None:
        """Charge for good: what was admitted (never more than was reserved; None: all that was
        reserved).

        `complete=False`: the release broke off, and does not go on. Answers that failed after they
        began count as admitted.
        """
        done = None if events is None else compose([as_event(events)])
        told = {"events": None if done is None else done.to_dict(), "complete": bool(complete)}
        self.ledger._settle(self, COMMITTED, told, done)
        self.was_settled = True

    def refund(self) -> None:
        """Give it back: only if nothing was asked of the rows."""
        self.ledger._settle(self, REFUNDED, {}, None)
        self.was_settled = True

    def __enter__(self) -> Spend:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            if self.is_open:
                self.commit()
            return
        # the block's own error is the one to see; unsettled, it stays charged
        with suppress(LedgerError, OSError):
            if self.is_open:
                self.commit(complete=False)

    def __repr__(self) -> str:
        return f"Spend({self.id!r} of {self.ledger!r})"


# -- the ledger of a block -------------------------------------------------------------------------

_blocks: list[tuple[int, Ledger]] = []
_lock = threading.Lock()
_PAID_FOR: ContextVar[bool] = ContextVar("fairveil release reserved as a whole", default=False)


@contextmanager
def already_charged() -> Iterator[None]:
    """Fits of the block, in this context alone, are part of a release that was reserved as a whole
    (a private search's), or are of rows that were made up (an audit's)."""
    token = _PAID_FOR.set(True)
    try:
        yield
    finally:
        _PAID_FOR.reset(token)


def current() -> Ledger | None:
    """The ledger of the innermost block, if there is one."""
    if _PAID_FOR.get():
        return None
    with _lock:
        return _blocks[-1][1] if _blocks else None


BLOCKS.append(current)


def given_ledger(given: object) -> Ledger | None:
    """A handle, or None: an address is opened by the caller."""
    if given is not None and not isinstance(given, Ledger):
        fix = "Make one with Ledger.create, find one with Ledger.open."
        got = type(given).__name__
        raise LedgerError.expected("a Ledger, or None", of="ledger", got=got, remedy=fix)
    return given


def same_budget(one: Ledger, other: Ledger) -> bool:
    """Whether two handles are of one budget; where two addresses name one store that is not
    seen."""
    here = (one.dataset, one.address)
    return one is other or (here[1] is not None and here == (other.dataset, other.address))


def _begun(url: str | os.PathLike[str] | None, lines: list[Entry], who: str | None) -> Ledger:
    """Write a ledger's first lines into a store."""
    from .store import Store

    store, dataset = Store(url), Terms.of(lines[0]).dataset

    def begin(page: Page) -> None:
        for line in lines:
            page.append(line)

    store.write(dataset, begin, begins=True)
    return Ledger(store, dataset, who=who, first_hash=lines[0].hash)


def _words_in(read_from_data: object) -> list[str]:
    """What was read from the data, each once."""
    names = list(read_from_data) if isinstance(read_from_data, Iterable) else [None]
    words = not isinstance(read_from_data, str) and all(isinstance(name, str) for name in names)
    fix = "Pass read_from_data=['bounds of age'], for example, or nothing."
    need(words, "read_from_data", "a list of words", read_from_data, fix, InputError)
    return sorted(set(map(str, names)))


def _overspent(terms: Terms, event: Event, asked: Promise, cost: Cost, head: Entry) -> Overspent:
    """What is said where there is no room: spent, asked, left, and the largest epsilon that fits."""
    spent, left = terms.as_release(head.spent), terms.as_release(max(0, WHOLE - head.spent))
    tight = tight_epsilon(event, asked.delta, asked.neighbours)
    largest = terms.largest_epsilon(event, asked, head.spent, head.leaked)
    most, delta = terms.promise.epsilon, terms.promise.delta
    of_delta = head.spent + cost.units <= MOST  # there is room for the rest of it
    part = "what delta may leak" if of_delta else "the budget"
    taken, gone = (cost.leak, head.leaked) if of_delta else (cost.units, head.spent)
    size = numbers.spent(taken / WHOLE) if taken < 2 * WHOLE else "more than 200%"
    room = numbers.left(max(0, WHOLE - gone) / WHOLE)
    told = f"as one release epsilon={numbers.at_least(left)} of {numbers.promised(most)}"
    told = f"{told} at delta={delta:g}; epsilon={numbers.at_most(spent, most)} is spent"
    share = f"spent {numbers.spent(gone / WHOLE)}, left {room} ({told})"
    fix = f"The largest epsilon that fits is epsilon={largest:g} at delta={asked.delta:g}."
    text = complaint(
        expected=f"a release of at most {room} of {part}",
        of=f"ledger {terms.dataset!r}",
        got=f"{size} (epsilon={numbers.at_most(tight)}); {share}",
        remedy=fix if largest else "Nothing of this kind fits any more.",
        quote=False,
    )
    return Overspent(text, spent=spent, asked=tight, left=left, largest_epsilon=largest)
