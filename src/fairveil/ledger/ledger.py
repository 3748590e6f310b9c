"""A budget that many fits share, as a handle: the lines are in a store, and the handle only says
where. A spend is reserved (its whole plan, before a row is read), then committed with what was
really released, or refunded, if nothing was; one whose process died stays charged as reserved.

A charge is the filter's (theory.md#t10), so it bounds fits that were chosen after seeing earlier
answers, in any number of processes at once: every fit is a sequence of single answers, and however
they interleave, each is one more event of the same filter, whose sum the reservations keep within
the budget (Rogers, Roth, Ullman and Vadhan 2016; Feldman and Zrnic 2021). For the same reason a fit
that broke off may be charged what it had asked by then. One exception: the first spend of a ledger
that nothing was spent of may take all of it, when its own tight price is within the promise.

Guarantees (tests/ledger/, tests/curator/test_curator_ledger.py):
1. What is charged never passes the cap, whoever reserves, from however many processes, and
   whichever of them die. Nothing is granted on lines that do not fit, on an older copy of what the
   handle read before, or where another ledger was put in its place.
2. A reservation is on the disk before `reserve` returns. A refused one, and any error, changes
   nothing. A handle reads and verifies every line once.
3. A handle is never copied: `clone`, `copy` and `deepcopy` give itself, a pickle opens the store.
4. Inside `with ledger.recording():` every fit of the process is recorded, in every thread; blocks
   of two ledgers in two threads at once are refused.
5. A run is charged once, in however many sittings: nothing is asked of a row before all that it may
   cost is reserved, and it is settled once, by what was admitted. A copy of its journal is refused
   once the run went on, and so is the run without its ledger, or with another.
"""

from __future__ import annotations

import getpass
import os
import secrets
import socket
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import PurePath
from typing import Any

from .. import _checks, errors
from ..core.events import Event, NoOp, as_event, compose, spelled_out
from ..core.promise import Promise, Unit
from ..core.runs import BLOCKS
from ..errors import FairveilError, InputError, LedgerError, Overspent, WentOnElsewhere
from ..facts import Schema
from ..show.numbers import at_least, at_most, delta_words, left, printable, promised, spent
from ..show.parts import Column, Facts, Note, Part, Shown, Table
from ..statement.document import Receipt, is_whole
from ..statement.form import Finding
from . import lines as entries
from .lines import ALL, NOTHING, WHOLE, Cost, Entry, Spent, State, Terms, checked_words, need
from .store import PAGE, Read, Store, missing

NOTE = (
    "Epsilons are those of one release of such a share; shares add up, epsilons do not. Not covered: "
    "what was released from the same people and not recorded in this ledger."
)


@dataclass(frozen=True)
class Balance:
    """Shares are of the filter's budget. `spent` and `left` are epsilons at the ledger's delta, as
    one release each: what is left is what one more release may cost, and neither is a difference of
    the other. `open`: spends that nobody settled yet (running, or dead); they are charged as
    reserved. `waiting`: ids of these, the oldest first. `more`: how many releases like the newest
    one still fit; None where nothing is charged."""

    dataset: str
    epsilon: float
    delta: float
    entries: int
    spent_share: float
    left_share: float
    leaked_share: float
    spent: float
    left: float
    open: int
    committed: int
    refunded: int
    waiting: tuple[str, ...]
    more: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @property
    def words(self) -> tuple[str, str, str]:
        """The budget, what is spent of it, and what is left: the one rounded up, the other down."""
        more = "" if self.more is None else f": about {self.more:,} more fits like this one"
        rest = f"{left(self.left_share)} (as one release epsilon = {at_least(self.left)}){more}"
        whole = f"epsilon = {promised(self.epsilon)} at delta = {delta_words(self.delta)}"
        return whole, spent(self.spent_share), rest

    def __str__(self) -> str:
        waiting = f"; not settled: {self.open:,}" if self.open else ""
        whole, gone, rest = self.words
        return f"{self.dataset}: {gone} of {whole} spent, left {rest}{waiting}"


class Ledger(Shown):
    """Named budget of a named data set, shared by fits of many processes.

    Make one by `Ledger.create`, and find one by `Ledger.open`. Pass it to estimators as `ledger`,
    or to all fits of a block by ``with ledger.recording():``. The store is a path (SQLite), an
    address ``postgresql://...``, or None for the memory of this process.

    Attributes
    ----------
    dataset, shown : str
        Name of the data set, and where the ledger is, without a password.
    address : str or None
        What opens it again, in another process too; None in memory. It may hold a password.
    read_only : bool
        Whether spends are refused.
    terms : Terms
        The guarantee and the filter that keeps it.

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
    ) -> None:
        self._store, self.dataset, self.read_only = store, dataset, read_only
        self.who, self._purpose = _who(who), checked_words("purpose", purpose)
        self.address, self.shown = store.address, store.shown
        self._state: State | None = None
        self._first = ""

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
        columns: Iterable[str] | None = None,
        who: str | None = None,
        unit: str | None = None,
        max_rows_per_unit: int | None = None,
    ) -> Ledger:
        """Begin a budget; an error where the store has one of this data set.

        Parameters
        ----------
        url : path, str or None
            A path (SQLite), an address ``postgresql://...``, or None for this process's memory.
        dataset : str
            Name of the data set.
        epsilon, delta : float
            Privacy budget of everything that is recorded, together: one row changes the probability
            of any results by a factor of at most e^epsilon, plus delta.
        protects : {"records", "sensitive_features"}, default="records"
            Whether all of a row is protected, or the sensitive attributes alone.
        neighbours : {"add-remove", "replace-one"}, default=None
            One record is added or removed, or one is replaced. None: ``"add-remove"`` for records,
            ``"replace-one"`` for sensitive features.
        production : bool, default=False
            Whether seeded noise and anything read from the data without privacy are refused.
        schema : Schema, default=None
            Only rows read by this schema are accepted. None: by any.
        kind : {"renyi", "gaussian", "pure"}, default=None
            Filter, fixed for good. ``"renyi"``, the usual one, takes every event; ``"gaussian"``
            none with random batches, ``"pure"``, usual for delta 0, what has delta 0: each is
            tighter.
        columns : iterable of str, default=None
            Sensitive columns that are protected, where sensitive features alone are. None: those of
            the schema, or of the first release.
        who : str, default=None
            Name that spends are recorded under. None: the user and the machine.
        unit : str, default=None
            Column that tells persons apart, where the budget is each person's. None: each row's.
        max_rows_per_unit : int, default=None
            Most rows of any person in the table: releases about rows are then taken too, at the
            price of so many. None: not known.
        """
        right, got = unit is not None or max_rows_per_unit is None, max_rows_per_unit
        fix = "Pass unit='patient', or leave it out."
        need(right, "max_rows_per_unit", "None without a unit", got, fix, InputError)
        whose = None if unit is None else Unit(unit, max_rows_per_unit)
        promise, made_by = Promise(epsilon, delta, protects, neighbours, whose), None
        if schema is not None:
            _checks.instance(Schema, "schema", schema, "Read it with Schema.load(path).")
            made_by = schema.require_columns().fingerprint
            if columns is None and promise.protects == "sensitive_features":
                columns = schema.sensitive or None
        terms = Terms(dataset, promise, kind, None, production, made_by, columns)  # type: ignore[arg-type]
        first = Entry.following(None, entries.CREATED, {"terms": terms.to_dict()}, who=_who(who))
        store = Store(url)
        store.append(dataset, lambda read: [first], begins=True)
        return Ledger(store, dataset, who=who)

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
        return Store(url, read_only=True).datasets()

    # -- what it says ------------------------------------------------------------------------------

    @cached_property
    def terms(self) -> Terms:
        """The guarantee, and the filter that keeps it."""
        (first,) = self._store.lines(self.dataset, 0, 1)
        terms = Terms.of(first)
        right = (first.digest(), terms.dataset) == (first.hash, self.dataset)
        expected, fix = f"the terms of {self.dataset!r}", "Look at receipts, or at a backup."
        need(right, "first line", expected, "one that was changed, or is another's", fix)
        self._first = first.hash
        return terms

    @property
    def promise(self) -> Promise:
        """Guarantee of everything that is recorded, together."""
        return self.terms.promise

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is charged: the next spend may have all of it."""
        return self._now()[1].is_untouched

    def balance(self) -> Balance:
        """Spent and remaining budget."""
        (state, head), terms, promise = self._now(), self.terms, self.promise
        spends, room = list(state.spends.values()), max(0, WHOLE - head.spent)
        kinds = Counter(now.last for now in spends)
        newest = next((now.units for now in reversed(spends) if now.units), 0)
        waiting = tuple(name for name, now in state.spends.items() if now.is_open)
        used = (min(1.0, head.spent / WHOLE), room / WHOLE, min(1.0, head.leaked / WHOLE))
        alone = (terms.as_release(head.spent), terms.as_release(room))
        counts = (len(waiting), kinds[entries.COMMITTED], kinds[entries.REFUNDED])
        about = (self.dataset, promise.epsilon, promise.delta, head.number + 1)
        return Balance(*about, *used, *alone, *counts, waiting, room // newest if newest else None)

    def history(self, first: int = 0) -> Iterator[Entry]:
        """Lines of the ledger, in their order.

        Parameters
        ----------
        first : int, default=0
            Number of the first line.
        """
        at = _checks.whole(first=first)
        while lines := self._store.lines(self.dataset, at):
            yield from lines
            at = lines[-1].number + 1

    def standing(self, spend: str) -> Spent:
        """State of one spend.

        Parameters
        ----------
        spend : str
            Id of the spend.
        """
        now = self._spent(self._now()[0], spend)
        found = [*self._store.lines(self.dataset, now.reserved.number, 1), now.reserved][0]
        got, fix = "one that was changed", "Look at `fairveil ledger check`, or at a backup."
        self.terms.need(found.digest() == now.reserved.hash, "the line that was read", got, fix)
        return replace(now, reserved=found)

    def check(self, receipts: Iterable[Receipt] = ()) -> list[Finding]:
        """Find every contradiction among the lines, and with receipts that were kept elsewhere.

        Parameters
        ----------
        receipts : iterable of Receipt, default=()
            Receipts to compare with.
        """
        return entries.findings(self.history(), tuple(receipts))

    def fits(
        self, events: Event | Iterable[Event], promise: Promise | None = None, *, fixed: bool = True
    ) -> bool:
        """Whether the budget suffices for these events now.

        Parameters
        ----------
        events, promise, fixed
            As of `reserve`.
        """
        cost, alone = self._priced(as_event(events), promise or self.promise)
        head = self._now()[1]
        # An untouched ledger may be given away whole: then the tight price of one plan counts, and
        # no filter.
        return cost.within(head.spent, head.leaked) or (alone and fixed and head.is_untouched)

    def parts(self) -> Iterator[Part]:
        """What is promised, spent and left, what a check found, and every release."""
        terms, balance, state = self.terms, self.balance(), self._now()[0]
        whole, gone, rest = balance.words
        place = self.shown if "://" in self.shown else PurePath(self.shown).name
        only = f", schema {terms.fingerprint}" * (terms.fingerprint is not None)
        columns = f" ({', '.join(terms.columns or ())})" * (terms.columns is not None)
        verb, strict = "is" if balance.open == 1 else "are", terms.production
        waiting = f"; {balance.open:,} {verb} not settled (running, or dead), charged as reserved"
        facts = [
            ("guarantee", f"{whole}, for all that is recorded in {place} together"),
            ("protected", entries.under(terms.promise) + columns),
            ("terms", f"filter {terms.kind}, production {'on' * strict or 'off'}{only}"),
            ("spent", gone),
            ("left", rest),
            ("releases", f"{balance.committed + balance.open:,}{waiting * (balance.open > 0)}"),
            *(("CONTRADICTION", printable(x.sentence)) for x in self.check() if x.grave),
        ]
        yield Facts.of(facts, printable(self.dataset))
        rows = [
            (
                *(now.reserved.number, now.reserved.at[:19].replace("T", " ")),
                *(printable(now.reserved.who), printable(now.reserved.purpose)),
                *("not settled" if now.is_open else now.last, min(1.0, now.units / WHOLE)),
            )
            for now in reversed(state.spends.values())
        ]
        names = ("line", "when (UTC)", "who", "purpose", "state", "share")
        cells = zip(names, zip(*rows, strict=True), strict=True) if rows else ()
        told = tuple(Column(name, of, "spent" * (name == "share")) for name, of in cells)
        if told:
            yield Table(told, "Releases, the newest first", 200)
        yield Note(NOTE)

    # -- spending ----------------------------------------------------------------------------------

    def require(
        self,
        promise: Promise,
        *,
        secure: bool = True,
        read_from_data: Iterable[str] = (),
        schema: Schema | bool | None = False,
    ) -> None:
        """Refuse, before a row is read, what `reserve` would refuse later, but for its price.

        Parameters
        ----------
        promise, secure, read_from_data
            As of `reserve`.
        schema : Schema or bool, default=False
            Schema that rows are read by. None: without one. False: not known yet.
        """
        fix = "Open it without read_only=True."
        self.terms.need(not self.read_only, "one to write in", "one opened to read", fix)
        read: list[object] = list(read_from_data)
        words = not isinstance(read_from_data, str) and all(isinstance(one, str) for one in read)
        of, fix = "read_from_data", "Pass read_from_data=['bounds of age'], or nothing."
        need(words, of, "a list of words", read_from_data, fix, InputError)
        self.terms.require(promise, secure=secure, read=map(str, read), schema=schema)

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
        """Charge the whole cost of a release before its first query, or raise `Overspent`: a fit's,
        or that of any code, ``with ledger.reserve(Gaussian(20.0), purpose="counts"):``.

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
        """
        asked, event, terms = promise or self.promise, as_event(events), self.terms
        parts = (self._purpose, checked_words("purpose", purpose))
        words = checked_words("purpose", ": ".join(part for part in parts if part))
        self.require(asked, secure=secure, read_from_data=read_from_data)
        named = terms.named(columns, asked)
        cost, alone = self._priced(event, asked)
        alone = _checks.truth(fixed=fixed) and alone
        noise = "secure" if secure else "seeded"
        content: dict[str, Any] = {"plan": event.to_dict(), "promise": asked.to_dict()}
        content |= {"noise": noise, "read_from_data": sorted(set(read_from_data)), "columns": named}
        refused: list[Entry] = []

        def line(state: State, head: Entry) -> Entry | None:
            charged = ALL if alone and head.is_untouched else cost
            # A release that protects other columns publishes the ledger's.
            ours = state.columns or named or []
            fix = "It would publish the others: protect all of them, or keep two ledgers."
            right = named is None or set(ours) <= set(named)
            terms.need(right, f"a release that protects {', '.join(ours)}", named, fix)
            if not charged.within(head.spent, head.leaked):
                refused.append(head)
                return None
            more: dict[str, Any] = {"spend": secrets.token_hex(16), "purpose": words}
            return Entry.following(
                head, entries.RESERVED, content, who=self.who, change=charged, **more
            )

        made = self._write(line)
        if made is None:
            raise _overspent(terms, event, asked, cost, refused[0])
        return Spend(self, made)

    def resume(self, spend: str, sitting: int) -> Spend:
        """Resume a spend in another process. A copy of a run's journal that is resumed after the run
        was is refused: it would release the plan twice.

        Parameters
        ----------
        spend : str
            Id of the spend.
        sitting : int
            Number of this part of its run, later than all before it.
        """
        self.require(self.promise)
        sitting, of = _checks.whole(at_least=1, sitting=sitting), f"spend {spend}"
        fix = "Number the sittings of a run from 1."
        need(sitting <= 1 << 62, "sitting", "a sitting", sitting, fix, InputError)

        def line(state: State, head: Entry) -> Entry | None:
            now = self._spent(state, spend)
            fix = "Copies of a checkpoint are runs of their own: begin another, with its own spend."
            right = now.is_open or now.complete
            need(right, of, "one that goes on", f"one {now.last}", fix)
            if not now.is_open:
                return None
            got = f"sitting {sitting}, which went on before"
            need(sitting > now.sitting, of, "a run in one place", got, fix)
            return self._step(head, entries.RESUMED, now, {"sitting": sitting})

        self._write(line)
        return Spend(self, self.standing(spend).reserved, sitting)

    @property
    def recorder(self) -> partial[Recording]:
        """What records one run of a curator: a `Recording` of this ledger."""
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
            "Give estimators of several threads their own ledger=: a block is the whole process's."
        )
        with _lock:
            same = all(same_budget(book, self) for at, book in _blocks if at != block[0])
            need(same, "ledger block", "one ledger at a time", "another thread's", fix)
            _blocks.append(block)
        try:
            yield self
        finally:
            with _lock:
                del _blocks[max(i for i, one in enumerate(_blocks) if one is block)]

    def close(self) -> None:
        """Nothing is open between uses, and nothing is to be waited for."""

    # -- inside ------------------------------------------------------------------------------------

    def _now(self) -> tuple[State, Entry]:
        """What all lines add up to now, and the last one."""
        self._state = self._caught_up(partial(self._store.lines, self.dataset))
        return self._state, _last(self._state)

    def _caught_up(self, read: Read) -> State:
        """What all lines add up to, of which those are read that this handle has not seen: an error
        where they do not fit each other, or others have their place."""
        _ = self.terms
        state = State() if self._state is None else self._state.copy()
        head = state.head
        lines = read(0 if head is None else head.number)
        known, here = head.hash if head else self._first, lines[0].hash if lines else ""
        got = "an older copy, or another one in its place: what was read before is gone"
        fix = "Nothing was written. Open it again to go on with what is there."
        of = f"{self.dataset} in {self.shown}"
        need(known == here, of, "the ledger that this handle was opened for", got, fix)
        lines = lines if head is None else lines[1:]
        while lines:
            for line in lines:
                self._add(state, line)
            lines = read(lines[-1].number + 1) if len(lines) >= PAGE - 1 else []
        return state

    def _add(self, state: State, line: Entry) -> None:
        wrong, of = "; ".join(state.misfits(line)), f"{self.dataset} in {self.shown}"
        fix = "Nothing was written. Look at `fairveil ledger check`, and restore a backup."
        need(not wrong, of, "lines that fit each other", wrong, fix)
        state.add(line)

    def _write(self, work: Callable[[State, Entry], Entry | None]) -> Entry | None:
        """Add the line that `work` makes of the state and the last line, as the only writer."""
        if self._state is None:
            self._now()  # the long part, while others may write
        done: list[tuple[State, Entry | None]] = []

        def lines(read: Read) -> list[Entry]:
            state = self._caught_up(read)
            line = work(state, _last(state))
            done.append((state, line))
            if line is None:
                return []
            _ = Entry.from_dict(line.to_dict()).values  # what could not be read again is refused
            self._add(state, line)
            return [line]

        self._store.append(self.dataset, lines)
        self._state, made = done[-1]
        return made

    def _settle(self, spend: Spend, kind: str, content: dict[str, Any], events: object) -> None:
        """The last line of a spend. `events`: what was admitted; None: all that was reserved."""
        cost = None
        if isinstance(events, Event):  # priced while others may write
            promise = Promise.from_dict(self.standing(spend.id).reserved.values["promise"])
            cost = self.terms.cost(events, promise)

        def line(state: State, head: Entry) -> Entry:
            now, of = self._spent(state, spend.id), f"spend {spend.id}"
            here = now.sitting == spend.sitting and (now.is_open or spend.was_settled)
            fix = "A copy of its journal went on: what this run released is not charged by it."
            got = f"sitting {now.sitting}, {now.last}"
            need(here, of, f"sitting {spend.sitting}", got, fix, WentOnElsewhere)
            fix, got = "A spend is settled once; reserve another.", f"one that was {now.last}"
            need(now.is_open, of, "one that is open", got, fix)
            kept = NOTHING if kind == entries.REFUNDED else now.charge(cost)
            change = Cost(kept.units - now.units, kept.leak - now.leak)
            return self._step(head, kind, now, content, change)

        self._write(line)
        spend.was_settled = True

    def _step(
        self, head: Entry, kind: str, now: Spent, content: dict[str, Any], change: Cost = NOTHING
    ) -> Entry:
        """One more line of a spend."""
        about = {"spend": now.reserved.spend, "purpose": now.reserved.purpose}
        return Entry.following(head, kind, content, who=self.who, change=change, **about)

    def _priced(self, event: Event, asked: Promise) -> tuple[Cost, bool]:
        """What it costs in the filter; and whether, too much for that, it may have an untouched
        ledger for itself."""
        cost = self.terms.cost(event, asked)
        return cost, not cost.within(0, 0) and self.terms.fits_alone(event, asked)

    def _spent(self, state: State, spend: str) -> Spent:
        fix, known = "Pass the ledger that the run began with.", spend in state.spends
        self.terms.need(known, "one of its own spends", spend, fix)
        return state.spends[spend]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_state": None}

    def __repr__(self) -> str:
        only = ", read_only=True" if self.read_only else ""
        return f"Ledger({self.shown!r}, {self.dataset!r}{only})"

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    __sklearn_clone__ = __copy__


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
        self.ledger._settle(self, entries.COMMITTED, told, done)

    def refund(self) -> None:
        """Give it back: only if nothing was asked of the rows."""
        self.ledger._settle(self, entries.REFUNDED, {}, None)

    def __enter__(self) -> Spend:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # the block's own error is the one to see; unsettled, it stays charged
        with suppress(*((LedgerError, OSError) if kind else ())):
            if self.is_open:
                self.commit(complete=kind is None)

    def __repr__(self) -> str:
        return f"Spend({self.id!r} of {self.ledger!r})"


def _last(state: State) -> Entry:
    assert state.head is not None
    return state.head


def _who(who: str | None) -> str:
    """Who writes: as told, else the user and the machine."""
    if who is not None:
        return checked_words("who", who)
    name = "somebody"
    with suppress(OSError, KeyError, ImportError):  # no such account, in a container say
        name = getpass.getuser()
    return "".join(x for x in f"{name}@{socket.gethostname()}" if x.isprintable())[:500]


def _overspent(terms: Terms, event: Event, asked: Promise, cost: Cost, head: Entry) -> Overspent:
    """What is said where there is no room: spent, asked, left, and the largest epsilon that fits."""
    gone, rest = terms.as_release(head.spent), terms.as_release(max(0, WHOLE - head.spent))
    tight = entries.tight_epsilon(event, asked.delta, asked.neighbours)
    largest = terms.largest_epsilon(event, asked, head.spent, head.leaked)
    of_delta = head.spent + cost.units <= entries.MOST  # there is room for the rest of it
    part = "what delta may leak" if of_delta else "the budget"
    taken, used = (cost.leak, head.leaked) if of_delta else (cost.units, head.spent)
    size = spent(taken / WHOLE) if taken < 2 * WHOLE else "more than 200%"
    room, most = left(max(0, WHOLE - used) / WHOLE), terms.promise.epsilon
    told = f"epsilon={at_least(rest)} of {promised(most)} at delta={terms.promise.delta:g} as one "
    told = f"{told}release; epsilon={at_most(gone, most)} is spent"
    got = f"{size} (epsilon={at_most(tight)}); spent {spent(used / WHOLE)}, left {room} ({told})"
    fix = f"The largest epsilon that fits is epsilon={largest:g} at delta={asked.delta:g}."
    fix = fix if largest else "Nothing of this kind fits any more."
    words, of = f"a release of at most {room} of {part}", f"ledger {terms.dataset!r}"
    text = errors.complaint(expected=words, of=of, got=got, remedy=fix, quote=False)
    return Overspent(text, spent=gone, asked=tight, left=rest, largest_epsilon=largest)


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
    with _lock:
        return _blocks[-1][1] if _blocks and not _PAID_FOR.get() else None


BLOCKS.append(current)


def given_ledger(given: object) -> Ledger | None:
    """A handle, or None: an address is opened by the caller."""
    if given is not None and not isinstance(given, Ledger):
        fix, got = "Make one with Ledger.create, find one with Ledger.open.", type(given).__name__
        raise LedgerError.expected("a Ledger, or None", of="ledger", got=got, remedy=fix)
    return given


def same_budget(one: Ledger, other: Ledger) -> bool:
    """Whether two handles are of one budget; where two addresses name one store that is not
    seen."""
    here = (one.dataset, one.address)
    return one is other or (here[1] is not None and here == (other.dataset, other.address))


# -- a run and its ledger --------------------------------------------------------------------------


class Recording:
    """What one run tells its ledger, and the spend of its plan.

    | the run | its spend |
    |---|---|
    | finished | is committed with the log |
    | ended before any answer was admitted | is given back |
    | was interrupted | is committed with what was admitted |
    | was interrupted by an answer that failed | stays as reserved: a private row may have done it |
    | has a journal, and may go on | stays as reserved, and open; the next sitting resumes it |
    | ends after a copy of its journal went on | is the copy's; what was released here is one more |
    | died with its process, or is a forked child's copy | stays as reserved, or is the parent's |

    Without a plan every answer is a spend of its own: reserved before the filter admits it,
    committed before it is returned.
    """

    def __init__(
        self,
        ledger: Ledger,
        promise: Promise,
        plan: Event | None,
        purpose: str,
        secure: bool,
        read_from_data: Iterable[str],
        columns: Iterable[str],
    ) -> None:
        self.ledger, self._plan, self._purpose = ledger, plan, purpose
        how: dict[str, Any] = {"secure": secure, "read_from_data": tuple(read_from_data)}
        ledger.require(promise, **how)
        self._how = {"promise": promise, "columns": tuple(columns), **how}
        self._neighbours, self._process, self._may_go_on = promise.neighbours, os.getpid(), False
        self._spend: Spend | None = None  # of the plan, until it is settled
        self.receipt: Receipt | None = None

    def begin(self, earlier: Sequence[Event] = ()) -> None:
        """Reserve the plan whole. Without one, what an earlier sitting released is charged; whether
        it was recorded then is not known where no journal says so."""
        if self._plan is not None:
            self._spend = self._reserved([self._plan], self._purpose)
        elif earlier:
            settle(self._reserved(earlier, self._purpose).commit)

    def take(self, journal: Any) -> Callable[[int], None]:
        """Before a journal is written in: refused where it is another ledger's; a run that is new
        to its ledger is reserved.

        What is returned is to be called when the journal is this run's alone, with the number of
        the sitting and before anything is written: then a spend goes on. The ledger is told first:
        where the process dies between the two the run is over, and charged whole. The other way
        round a copy of the journal could go on as well.
        """
        journal.look_again()
        mark, events = journal.ledger, tuple(entry.event for entry in journal.entries)
        if mark is None:
            self.begin(events)
        else:
            words = f"the ledger of data set {mark[0]!r}, which the run began with"
            fix, got = "Pass it: what the journal holds is charged there.", self.ledger.dataset
            need(self.ledger.dataset == mark[0], "ledger", words, got, fix)

        def agreed(sitting: int) -> None:
            same = journal.ledger == mark and events == tuple(x.event for x in journal.entries)
            words, fix = "one that nobody else writes", "Give each run a journal of its own."
            need(same, "journal", words, "one that grew meanwhile", fix, errors.PrivacyError)
            if mark is None or self._plan is None:
                return
            spend = self.ledger.resume(mark[1], sitting)
            self.receipt = spend.receipt
            if spend.is_open:
                self._spend, self._may_go_on = spend, True
                return
            words, whole = "one that is whole", is_whole(events, (self._plan,), self._neighbours)
            fix = "Its run went on elsewhere, to its end. Begin another, with its own spend."
            need(whole, "journal", words, "a copy that is not", fix, errors.PrivacyError)

        return agreed

    def mark(self, journal: Any) -> None:
        """Write down where the run is charged: another sitting continues with that."""
        if journal.ledger is None:
            # without a plan answers are spends of their own
            journal.mark_ledger(self.ledger.dataset, self._spend.id if self._spend else "-")
        self._may_go_on = True

    @contextmanager
    def answer(self, event: Event, purpose: str) -> Iterator[Callable[[], None]]:
        """One answer that no plan holds, reserved; committed, whether it came or not, once what is
        given was called: it was admitted. Given back where it was not."""
        if self._plan is not None or isinstance(event, NoOp):
            yield lambda: None
            return
        words = ": ".join(words for words in (self._purpose, purpose) if words)
        spend, admitted = self._reserved([event], words), list[bool]()
        try:
            yield lambda: admitted.append(True)
        finally:
            settle(spend.commit if admitted else spend.refund)

    def finish(self, log: Iterable[Event]) -> None:
        """The run did all of its plan."""
        spend, done = self._ended(), compose(log)
        if spend is None or self._plan is None:
            return
        # As planned, the spend keeps what was reserved to the last bit; a sum in another order
        # could differ by one.
        as_planned = list(spelled_out(done)) == list(spelled_out(self._plan))
        try:
            settle(partial(spend.commit, None if as_planned else done))
        except WentOnElsewhere as error:
            try:
                self._charge_again(done)
            except errors.BudgetError as more:
                error.add_note(f"For that the budget does not suffice: {more}")
            raise

    def end(self, admitted: Sequence[Event], *, failed: bool) -> None:
        """The run is over, unless it was finished or goes on in another sitting. `failed`: an
        answer did."""
        spend = self._ended()
        if spend is None:
            return
        if self._may_go_on:
            if admitted:
                settle(partial(self._charge_again, compose(admitted), spend))
        elif admitted:
            settle(partial(spend.commit, None if failed else compose(admitted), complete=False))
        else:
            settle(spend.refund)

    def _ended(self) -> Spend | None:
        """The spend that is to be settled. A forked child, which leaves the parent's blocks when it
        ends, settles nothing: it does not know what the parent still asks."""
        spend, self._spend = self._spend, None
        return spend if os.getpid() == self._process else None

    def _charge_again(self, done: Event, unless: Spend | None = None) -> None:
        """What was released here is not in the spend, which a copy of the journal took along: it is
        one of its own. `unless`: the spend is in this sitting still."""
        if unless is None or self.ledger.standing(unless.id).sitting != unless.sitting:
            self._reserved([done], f"{self._purpose}, again: its journal was copied").commit()

    def _reserved(self, events: Sequence[Event], purpose: str) -> Spend:
        spend = self.ledger.reserve(events, purpose=purpose, **self._how)
        self.receipt = spend.receipt
        return spend


def settle(settle: Callable[[], None]) -> None:
    """Tell the ledger how a release ended. Where that fails it stays charged as reserved, never too
    little, and what was released is out: so it is a warning, `NotSettled`, or a note on an error
    that is on its way already."""
    on_its_way = sys.exception()
    try:
        settle()
    except WentOnElsewhere:
        raise
    except (FairveilError, OSError) as error:
        words = "a ledger that can be told how the release ended"
        fix = "It stays charged as it was reserved: `fairveil ledger show` lists it as open."
        text = errors.complaint(expected=words, of="spend", got=str(error), remedy=fix)
        if on_its_way is None:
            warnings.warn(text, errors.NotSettled, stacklevel=4)
        else:
            on_its_way.add_note(text)
