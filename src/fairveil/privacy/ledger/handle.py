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

Guarantees (tests/privacy/ledger/test_ledger_handle.py):
1. What is charged never passes the cap, whoever reserves, from however many processes, and
   whichever of them die.
2. A reservation is on the disk before `reserve` returns. A process that dies later leaves it
   charged.
3. A refused reservation, and any error, changes nothing.
4. A reservation reads the head and adds a line: its price does not grow with the history.
5. A handle is never copied: `clone`, `copy` and `deepcopy` give itself, pickling opens the store
   again.
6. A handle is of one ledger: where another one was put in its place, under its name, nothing is
   granted by the terms of the first. Nor by a pickle of the handle.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from ... import _checks
from ...core.events import Event
from ...core.inventory import as_event
from ...core.promise import Promise, Unit
from ...errors import InputError, LedgerError, WentOnElsewhere
from ...facts import Schema
from .account import Account
from .around import around
from .costs import MOST, Cost
from .in_memory import IN_MEMORY, kept_in_memory
from .lines import checked_words, created, following, step, terms_of, under, user_and_machine
from .overspent import overspent
from .requirements import named_columns, require, words_in
from .spending import Spend
from .spends import Spent
from .stores.blocks import within
from .stores.entries import COMMITTED, REFUNDED, RESERVED, RESUMED, Entry
from .stores.store import MemoryStore, Page, Store, missing
from .terms import Terms

MOST_SITTINGS = 1 << 62


T = TypeVar("T")


class Ledger(Account):
    """Named budget of a named data set, shared by fits of many processes.

    Make one by `Ledger.create`, and find one by `Ledger.open`. Pass it to estimators as `ledger`,
    or to all fits of a block by ``with fairveil.ledger(ledger):``. The store is a path (SQLite), an
    address ``postgresql://...``, or None for the memory of this process.

    Parameters
    ----------
    place : Store or str
        An open store, or an address that is opened when it is first needed.
    dataset : str
        Name of the data set.
    read_only : bool, default=False
        Whether spends are refused.
    who : str, default=None
        Name that spends are recorded under. None: the user and the machine.
    purpose : str, default=""
        Words that begin the purpose of every spend.

    Attributes
    ----------
    address : str or None
        What opens it again, in another process too; None in memory. It may hold a password.
    shown : str
        Where it is, without a password.
    terms : Terms
        The guarantee and the filter that keeps it.
    is_untouched : bool
        Whether nothing is charged.

    See Also
    --------
    ledger : Records every fit of a block.

    Examples
    --------
    >>> from fairveil.core.events import Gaussian
    >>> ledger = Ledger.create(None, "census", 1.0, 1e-6)
    >>> with ledger.reserve(Gaussian(12.0), purpose="counts by region"):
    ...     pass  # ask, and add the noise
    >>> print(f"{ledger.balance().spent_share:.2f}")
    0.14
    """

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

        Returns
        -------
        Ledger
            A handle.
        """
        if unit is None and max_rows_per_unit is not None:
            remedy = (
                "Pass unit='patient', for example, or leave max_rows_per_unit out: the budget is "
                "each row's."
            )
            got = max_rows_per_unit
            raise InputError.expected(
                "None without a unit", of="max_rows_per_unit", got=got, remedy=remedy
            )
        whose = None if unit is None else Unit(unit, max_rows_per_unit)
        promise = Promise(epsilon, delta, protects, neighbours, whose)
        terms = Terms.create(
            dataset,
            promise,
            production=production,
            schema=schema,
            kind=kind,
            order=order,
            columns=columns,
        )
        return _begun(
            url,
            created(terms, user_and_machine() if who is None else checked_words("who", who)),
            who,
        )

    @staticmethod
    def open(
        url: str | os.PathLike[str] | None,
        dataset: str | None = None,
        *,
        read_only: bool = False,
        who: str | None = None,
        purpose: str = "",
    ) -> Ledger:
        """Open the ledger of a data set in a store.

        Parameters
        ----------
        url : path, str or None
            The store: a path (SQLite), an address ``postgresql://...``, or None for this process's
            memory.
        dataset : str, default=None
            Name of the data set. None: the store's only one.
        read_only : bool, default=False
            Whether it is opened to look only.
        who : str, default=None
            Name that spends are recorded under. None: the user and the machine.
        purpose : str, default=""
            Words that the purpose of every spend through this handle begins with.

        Returns
        -------
        Ledger
            A handle.
        """
        if url is None:
            store: Store = kept_in_memory(dataset)
        else:
            from .stores.opening import store_of

            store = store_of(url, create=False, read_only=read_only)
        known = store.datasets()
        if dataset is None and len(known) == 1:
            dataset = known[0]
        if dataset is None:
            store.close()
            raise missing(None, known, store.shown)
        ledger = Ledger(store, dataset, read_only=read_only, who=who, purpose=purpose)
        ledger._columns = ledger.terms.columns  # there is such a ledger, or this is the error
        return ledger

    @staticmethod
    def datasets(url: str | os.PathLike[str]) -> list[str]:
        """Names of the data sets that a store has ledgers of.

        Parameters
        ----------
        url : path or str
            The store.

        Returns
        -------
        list of str
            The names.
        """
        from .stores.opening import store_of

        store = store_of(url, create=False, read_only=True)
        try:
            return store.datasets()
        finally:
            store.close()

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

        Returns
        -------
        Ledger
            A handle.
        """
        from .documents import read

        lines = read(document)
        return _begun(url, lines[0], None, lines[1:])

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
        self._require_writable()
        require(self.terms, promise, secure=secure, read=words_in(read_from_data), schema=schema)

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
        asked, event = promise or self.promise, as_event(events)
        own = checked_words("purpose", purpose)
        words = checked_words(
            "purpose", ": ".join(words for words in (self._purpose, own) if words)
        )
        read, named = words_in(read_from_data), named_columns(self.terms, columns, asked)
        self.require(asked, secure=secure, read_from_data=read)
        cost, alone = self._priced(event, asked)
        alone = _checks.truth(fixed=fixed) and alone

        def charge(page: Page) -> tuple[Entry, bool]:
            self._require_columns(named)
            head = page.head()
            whole = alone and head.is_untouched
            charged = Cost(MOST, MOST) if whole else cost
            if not charged.within(head.spent, head.leaked):
                return head, False
            told = {"promise": asked.to_dict(), "plan": event.to_dict(), "whole": whole}
            content = {
                **told,
                "noise": "secure" if secure else "seeded",
                "read_from_data": read,
                "columns": named,
            }
            change, name = (charged.units, charged.leak), secrets.token_hex(16)
            entry = following(head, self._who, RESERVED, name, words, content, change, under(asked))
            page.append(entry)
            return entry, True

        entry, fits = self._written(charge)
        if not fits:
            raise overspent(self.terms, event, asked, cost, entry)
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
            The whole cost is reserved before the block begins.

        Raises
        ------
        Overspent
            If the budget does not suffice; the block does not run.
        """
        own = self.promise
        asked = (
            None
            if neighbours is None
            else Promise(own.epsilon, own.delta, own.protects, neighbours, own.unit)
        )
        return around(self.reserve, events, purpose, asked, secure, fixed_in_advance)

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

        Returns
        -------
        Spend
            The spend.
        """
        self._require_writable()
        sitting = _checks.whole(at_least=1, sitting=sitting)
        if sitting > MOST_SITTINGS:
            remedy = "Number the sittings of a run from 1."
            raise InputError.expected(
                "a sitting of a run", of="sitting", got=sitting, remedy=remedy
            )

        def go_on(page: Page) -> Spent:
            now = self._standing(page.of_spend(spend), spend)
            if now.is_open:
                if sitting <= now.sitting:
                    remedy = (
                        "Copies of a checkpoint are runs of their own: begin another, with a spend "
                        "of its own."
                    )
                    got = f"sitting {sitting}, which went on before"
                    raise LedgerError.expected(
                        "a run in one place", of=f"spend {spend}", got=got, remedy=remedy
                    )
                page.append(
                    step(page.head(), self._who, RESUMED, now, {"sitting": sitting}, (0, 0))
                )
            elif not now.complete:
                remedy = "What is left of it was given back. Begin another run."
                raise LedgerError.expected(
                    "one that goes on", of=f"spend {spend}", got=f"one {now.last}", remedy=remedy
                )
            return now

        return Spend(self, self._written(go_on).reserved, sitting)

    def _settle(self, spend: Spend, events: Event | None, complete: bool) -> None:
        """Commit, with what was admitted (None: as reserved)."""
        cost = None
        if events is not None:  # priced while others may write
            promise = Promise.from_dict(self.standing(spend.id).reserved.values["promise"])
            cost = self.terms.cost(events, promise)

        def commit(page: Page) -> None:
            now = self._own(page, spend)
            units, leak = now.units, now.leak
            if cost is not None:
                units, leak = now.charge(cost)
            content = {"events": None if events is None else events.to_dict(), "complete": complete}
            change = (units - now.units, leak - now.leak)
            page.append(step(page.head(), self._who, COMMITTED, now, content, change))

        self._written(commit)

    def _refund(self, spend: Spend) -> None:
        def give_back(page: Page) -> None:
            now = self._own(page, spend)
            page.append(step(page.head(), self._who, REFUNDED, now, {}, (-now.units, -now.leak)))

        self._written(give_back)

    # -- inside ------------------------------------------------------------------------------------

    def _written(self, work: Callable[[Page], T]) -> T:
        """What `work` answers as the only writer of these lines, which are still those of this
        handle."""
        _ = self.terms

        def own(page: Page) -> T:
            self._require_own(page.first_hash())
            return work(page)

        return within(self._store.writing(self.dataset), own)

    def _own(self, page: Page, spend: Spend) -> Spent:
        """Where it stands, to be settled by the sitting that it is in."""
        now = self._standing(page.of_spend(spend.id), spend.id)
        if now.sitting != spend.sitting or not (now.is_open or spend.was_settled):
            got = f"sitting {now.sitting}, {now.last}"
            remedy = "A copy of its journal went on: what this run released is not charged by it."
            raise WentOnElsewhere.expected(
                f"sitting {spend.sitting}", of=f"spend {spend.id}", got=got, remedy=remedy
            )
        now.require_open()
        return now

    def _repr_html_(self) -> str:
        return self.balance()._repr_html_()

    def __repr__(self) -> str:
        return (
            f"Ledger({self.shown!r}, "
            f"{self.dataset!r}{', read_only=True' if self.read_only else ''})"
        )

    def __sklearn_clone__(self) -> Ledger:
        return self

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        address = self.address
        if address is None:
            remedy = (
                "Keep it in a file, Ledger.create('budget.db', ...), where other processes find it."
            )
            raise LedgerError.expected(
                "a ledger in a store", of="pickle", got="one in memory", remedy=remedy
            )
        return (
            _reopened,
            (address, self.dataset, self.read_only, self._who, self._purpose, self._first_hash),
        )


def _begun(
    url: str | os.PathLike[str] | None, first: Entry, who: str | None, rest: Iterable[Entry] = ()
) -> Ledger:
    """Write a ledger's first lines into a store."""
    dataset = terms_of(first).dataset
    if url is None:
        memory = MemoryStore()
        store: Store = memory
        IN_MEMORY[dataset] = memory
    else:
        from .stores.opening import store_of

        store = store_of(url, create=True, read_only=False)
    store.create(dataset, first, rest)
    ledger = Ledger(store, dataset, who=who)
    ledger._first_hash = first.hash
    return ledger


def _reopened(
    address: str,
    dataset: str,
    read_only: bool,
    who: str,
    purpose: str,
    first_hash: str | None,
) -> Ledger:
    ledger = Ledger(address, dataset, read_only=read_only, who=who, purpose=purpose)
    ledger._first_hash = first_hash
    return ledger
