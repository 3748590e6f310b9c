"""What a ledger says of itself: its terms, its lines, its balance, and whether there is room for a
release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ... import _checks
from ..._urls import without_password
from ...core.events import Event
from ...core.inventory import as_event
from ...core.promise import Promise
from ...errors import LedgerError
from .costs import Cost
from .lines import checked_words, terms_of, user_and_machine
from .spends import Spent, standing
from .stores.entries import RESERVED, Entry, malformed
from .stores.refusals import another_ledger
from .stores.store import Store, missing
from .terms import Terms

if TYPE_CHECKING:
    from ..statement.checks import Finding
    from ..statement.parts import Receipt
    from .balance import Balance


class Account:
    """A named budget as its store holds it. Abstract: see `Ledger`, which spends."""

    def __init__(
        self,
        place: Store | str,
        dataset: str,
        *,
        read_only: bool = False,
        who: str | None = None,
        purpose: str = "",
    ) -> None:
        """`place`: a store, or an address that is opened when it is first needed."""
        self._place, self.dataset, self.read_only = place, dataset, read_only
        self._who = user_and_machine() if who is None else checked_words("who", who)
        self._purpose = checked_words("purpose", purpose)
        self._columns: tuple[str, ...] | None = None
        self._first_hash: str | None = None

    @cached_property
    def _store(self) -> Store:
        if not isinstance(self._place, str):
            return self._place
        from .stores.opening import store_of

        return store_of(self._place, create=False, read_only=self.read_only)

    @cached_property
    def terms(self) -> Terms:
        """The guarantee, and the filter that keeps it."""
        first = self._first()
        if first.hash != first.digest():
            raise malformed(
                "a first line that is what its hash was made of", f"another one, in {self.shown}"
            )
        terms = terms_of(first)
        if terms.dataset != self.dataset:
            remedy = "Somebody gave the lines another name: look at an export, or at receipts."
            raise LedgerError.expected(
                self.dataset, of="the first line's data set", got=terms.dataset, remedy=remedy
            )
        self._require_own(first.hash)
        self._first_hash = first.hash
        return terms

    @property
    def promise(self) -> Promise:
        """Guarantee of everything that is recorded, together."""
        return self.terms.promise

    # -- what it says ------------------------------------------------------------------------------

    @property
    def shown(self) -> str:
        """Where it is, without a password."""
        return without_password(self._place) if isinstance(self._place, str) else self._place.shown

    @property
    def address(self) -> str | None:
        """What opens it again, in another process too; None in memory.

        It may hold a password: show `shown` instead.
        """
        return self._place if isinstance(self._place, str) else self._place.address

    def balance(self) -> Balance:
        """Spent and remaining budget.

        Returns
        -------
        Balance
            Print it, or take its fields.
        """
        from .balance import balance_of

        self._require_own(self._store.first_hash(self.dataset))
        return balance_of(self.terms, self._store)

    def history(self, first: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Lines of the ledger, in their order.

        Parameters
        ----------
        first : int, default=0
            Number of the first line.
        limit : int, default=None
            Most lines. None: all.

        Returns
        -------
        iterator of Entry
            The lines.
        """
        first = _checks.whole(first=first)
        limit = None if limit is None else _checks.whole(limit=limit)
        return self._store.entries(self.dataset, first, limit)

    def standing(self, spend: str) -> Spent:
        """State of one spend.

        Parameters
        ----------
        spend : str
            Id of the spend.

        Returns
        -------
        Spent
            What is reserved, committed and open.
        """
        return self._standing(self._store.of_spend(self.dataset, spend), spend)

    def check(self, receipts: Iterable[Receipt] = ()) -> list[Finding]:
        """Find every contradiction among the lines, and with receipts that were kept elsewhere.

        Parameters
        ----------
        receipts : iterable of Receipt, default=()
            Receipts to compare with.

        Returns
        -------
        list of Finding
            Empty if there is none.
        """
        from .checking import findings, past_the_head

        head = self._store.kept_head(self.dataset)
        found = findings(self._store.entries(self.dataset, 0, head[0] + 1), head, tuple(receipts))
        beyond = next(self._store.entries(self.dataset, head[0] + 1), None)
        # else somebody wrote meanwhile
        if beyond is not None and self._store.kept_head(self.dataset) == head:
            found.insert(0, past_the_head(beyond, head))
        return found

    def export(self) -> str:
        """Export all lines as one JSON document, to keep elsewhere, to check, or to restore.

        Returns
        -------
        str
            The document.
        """
        from .documents import written

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
        self._require_own(self._store.first_hash(self.dataset))
        last = self._store.last(self.dataset)
        # An untouched ledger may be given away whole: then the tight price of one plan counts, and
        # no filter.
        return cost.within(last.spent, last.leaked) or (alone and fixed and last.is_untouched)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is charged: the next spend may have all of it."""
        return self._store.last(self.dataset).is_untouched

    def _first(self) -> Entry:
        first = next(self._store.entries(self.dataset, 0, 1), None)
        if first is None:
            raise missing(self.dataset, self._store.datasets(), self.shown)
        return first

    def _require_own(self, first_hash: str) -> None:
        if self._first_hash not in (None, first_hash):
            raise another_ledger(self.dataset, self.shown)

    def _require_columns(self, named: list[str] | None) -> None:
        """A release that protects other columns publishes the ledger's. Inside `writing`: the first
        release decides, unless the terms do."""
        if named is None:
            return
        if self._columns is None:
            self._columns = self.terms.columns or self._first_columns()
        missed = set(self._columns or ()) - set(named)
        if missed:
            remedy = (
                "It would publish the others: protect all of them (more is fine), or keep a ledger "
                "for each."
            )
            of = f"ledger {self.dataset!r}"
            raise LedgerError.expected(
                f"a release that protects {', '.join(self._columns or ())}",
                of=of,
                got=named,
                remedy=remedy,
            )

    def _first_columns(self) -> tuple[str, ...] | None:
        """Of the first release that named some: mostly line 1."""
        reserved = (
            line.values.get("columns")
            for line in self._store.entries(self.dataset, 1)
            if line.kind == RESERVED
        )
        first = next((columns for columns in reserved if columns), None)
        return None if first is None else tuple(first)

    def _priced(self, event: Event, asked: Promise) -> tuple[Cost, bool]:
        """What it costs in the filter; and whether, too much for that, it may have an untouched
        ledger for itself."""
        cost = self.terms.cost(event, asked)
        return cost, not cost.within(0, 0) and self.terms.fits_alone(event, asked)

    def _standing(self, lines: list[Entry], spend: str) -> Spent:
        if not lines:
            remedy = "Pass the ledger that the run began with, or begin another run."
            of = f"ledger {self.dataset!r}"
            raise LedgerError.expected("one of its own spends", of=of, got=spend, remedy=remedy)
        return standing(lines)

    def close(self) -> None:
        """Close files and connections; the next use opens them again."""
        store = vars(self).get("_store") if isinstance(self._place, str) else self._place
        if store is not None:
            store.close()

    def _require_writable(self) -> None:
        if self.read_only:
            remedy = "Open it without read_only=True."
            of = f"ledger {self.dataset!r}"
            raise LedgerError.expected(
                "one to write in", of=of, got="one opened to read", remedy=remedy
            )
