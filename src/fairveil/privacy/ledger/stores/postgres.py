"""A ledger on a server: PostgreSQL, by psycopg 3 (the extra `sql`).

Whoever writes locks the head of its data set (`SELECT ... FOR UPDATE`), so that others wait in a
queue of the server. A commit waits for the disk whatever the server's default is:
`synchronous_commit` is `on` (that of standbys, too, where the server has such), or `remote_apply`
where the default asks for even that. Settings are made in each transaction, so a pooler between may
hand it to any session. A session that stops in the middle of a block is ended by the server, which
undoes what it did.

Guarantees (tests/privacy/ledger/test_ledger_postgres.py, and those of `store`):
1. A commit that was interrupted is never repeated: whether its lines are there is read from the
   database, under the lock that it held. Only what had not begun to write is tried again, once, on
   a new connection.
2. Tables may be made by many processes at once.
3. No message, no `repr` and no error in the context of one shows the password of the address.
4. A block that was interrupted ends its session, where the server may still be at work for it: the
   server undoes what it did.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ...._urls import scrubbed, without_password
from ....errors import DataNotFoundError, FairveilError, LedgerAway, LedgerError
from . import creating
from .blocks import Block, within
from .connections import Connections, Use
from .entries import Entry
from .postgres_driver import PATIENCE, TAKEN, WAYS_OUT, done, driver, is_open, rows_of
from .refusals import changed_by_a_child, half_failed, not_for_reading, one_inside_another
from .store import Page
from .tables import Beginning, Lines, Measurement, TablePage, TableStore

if TYPE_CHECKING:
    import psycopg

    Link = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")
W = TypeVar("W", bound="_Writer")
IDLE_PATIENCE = 45
CONNECT_PATIENCE = 10

_SETTINGS = f"""SELECT set_config('lock_timeout', '{PATIENCE}s', true),
set_config('idle_in_transaction_session_timeout', '{IDLE_PATIENCE}s', true),
set_config('synchronous_commit',
  CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"""
_VERSION = "(SELECT max(version) FROM fairveil_ledger_version)"
_TURN = f"SELECT {_VERSION} FROM fairveil_ledger_heads h WHERE dataset = ? FOR UPDATE OF h"
# Reads the catalogue itself: to_regclass may answer from what was so before another process made
# the tables.
_MADE = (
    "SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'fairveil_ledger_version' AND "
    "pg_catalog.pg_table_is_visible(oid)"
)
_CREATING = "SELECT pg_advisory_xact_lock(?)"


class PostgresStore(TableStore):
    """A `Store` in a database of PostgreSQL."""

    def __init__(self, url: str, *, create: bool, read_only: bool = False) -> None:
        if create and read_only:
            raise not_for_reading("create")
        self._driver = driver()
        self._url = url
        self._read_only = read_only
        self._create = create
        self._connections = Connections(self._opened, is_open)
        self._blocks: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._connections.lent(lambda link: None)
        self._create = False

    @property
    def shown(self) -> str:
        return without_password(self._url)

    @property
    def address(self) -> str | None:
        return self._url

    def create(self, dataset: str, first: Entry, rest: Iterable[Entry] = ()) -> None:
        block = _Transaction(self, Beginning, dataset, _CREATING, creating.CREATE_LOCK)
        within(block, lambda begun: begun.begin(dataset, first, rest))

    def writing(self, dataset: str) -> Block[Page]:
        self._lines.require_name(dataset)
        return _Transaction(
            self, lambda ask, shown: self._page(ask, dataset), dataset, _TURN, dataset
        )

    def _page(self, ask: Measurement, dataset: str) -> TablePage:
        return TablePage(ask, dataset, self.shown, self._marks.get((None, dataset)))

    def close(self) -> None:
        self._connections.close()

    def _ask(self, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """A reading of its own; once more where the connection had died."""
        used: list[Link] = []

        def ask(link: Link) -> list[tuple[Any, ...]]:
            used.append(link)
            try:
                return self._tried(partial(rows_of, link, statement, parameters))
            except Exception:
                raise
            except BaseException:  # interrupted, perhaps before the answer came
                link.close()
                raise

        try:
            return self._connections.lent(ask)
        except FairveilError:
            if not used or not used[0].closed:
                raise
        return self._connections.lent(ask)

    def _require_fitting(self, dataset: str) -> None:
        """Once: what is there fits, read while others may write."""
        if (None, dataset) not in self._marks:
            mark = self._lines.fitting(dataset, None)
            if mark is not None:
                self._marks[None, dataset] = mark

    def _begin(self, link: Link, dataset: str, turn: str, parameter: object) -> None:
        for statement in ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", _SETTINGS):
            self._tried(partial(done, link, statement))
        locked = self._tried(partial(rows_of, link, turn, (parameter,)))
        if turn is _TURN and not locked:
            # No head: the lines say whether there is such a data set.
            Lines(
                lambda statement, given: self._tried(partial(rows_of, link, statement, given)),
                self.shown,
            ).kept_head(dataset)

    def _undo(self, link: Link) -> None:
        """Its session is idle or ended afterwards."""
        try:
            if (
                not link.closed
                and link.info.transaction_status != self._driver.pq.TransactionStatus.IDLE
            ):
                link.execute(b"ROLLBACK")
        except self._driver.Error:
            link.close()
        except BaseException:
            link.close()
            raise

    def _commit(self, link: Link, dataset: str, wrote: Entry | None) -> None:
        """Commit; where no answer came, read what is so."""
        failure, said = None, ""
        try:
            said = link.execute(b"COMMIT").statusmessage or ""
        except self._driver.Error as error:
            failure = self._refusal(error)
        if said == "COMMIT":
            return
        if wrote is None:
            link.close()
            return
        if failure is None or not link.closed:
            self._undo(link)
            raise failure or half_failed(self.shown)
        try:
            written = self._is_written(dataset, wrote)
        except FairveilError as error:
            remedy = (
                f"Look for line {wrote.number} ({wrote.hash[:12]}) in the history: if it is there, "
                f"it counts."
            )
            got = f"none, and then: {error}"
            raise LedgerAway.expected(
                "an answer to a commit", of=self.shown, got=got, remedy=remedy
            ) from None
        if not written:
            raise failure

    def _is_written(self, dataset: str, entry: Entry) -> bool:
        """Whether a line is there for good: under the locks of the transaction that wrote it, so
        that it has ended."""
        with closing(self._opened()) as link:
            self._tried(partial(done, link, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"))
            self._tried(partial(done, link, _SETTINGS))
            self._tried(partial(rows_of, link, _CREATING, (creating.CREATE_LOCK,)))
            self._tried(partial(rows_of, link, _TURN, (dataset,)))
            query = (
                "SELECT 1 FROM fairveil_ledger_entries WHERE dataset = ? AND number = ? AND hash = "
                "?"
            )
            return bool(
                self._tried(partial(rows_of, link, query, (dataset, entry.number, entry.hash)))
            )

    def _opened(self) -> Link:
        given = self._tried(lambda: self._driver.conninfo.conninfo_to_dict(self._url))
        settings: dict[str, Any] = {
            "client_encoding": "utf8",
            "autocommit": True,
            "prepare_threshold": None,
        }
        if "connect_timeout" not in given:
            settings["connect_timeout"] = CONNECT_PATIENCE
        link: Link = self._tried(lambda: self._driver.connect(self._url, **settings))
        try:
            if self._read_only:
                self._tried(partial(done, link, "SET default_transaction_read_only = on"))
            self._require_tables(link)
            return link
        except BaseException:
            link.close()
            raise

    def _require_tables(self, link: Link) -> None:
        """Tables of this version: made when asked to."""
        version = self._version(link)
        if version == creating.VERSION:
            return
        if version == 0 and not self._create:
            remedy = "Begin one with Ledger.create, or name the database that it is in."
            raise DataNotFoundError.expected(
                "a database with a ledger", of=self.shown, got="none of its tables", remedy=remedy
            )
        if version or self._read_only:
            creating.require_known(version, self.shown)
        try:
            for statement in ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", _SETTINGS):
                self._tried(partial(done, link, statement))
            self._tried(partial(rows_of, link, _CREATING, (creating.CREATE_LOCK,)))
            # Read again under the lock that all who make tables take.
            if not self._version(link):  # another process may have been first
                for statement in creating.postgres_statements():
                    self._tried(partial(done, link, statement))
            self._tried(partial(done, link, "COMMIT"))
        except BaseException:
            self._undo(link)
            raise

    def _version(self, link: Link) -> int:
        """0 where there are no tables yet."""
        if not self._tried(partial(rows_of, link, _MADE, ())):
            return 0
        version = self._tried(partial(rows_of, link, f"SELECT {_VERSION}", ()))[0][0]
        return 0 if version is None else int(version)

    def _tried(self, action: Callable[[], T]) -> T:
        """Its errors are raised outside of `except`, so that no context holds the driver's own
        message."""
        try:
            return action()
        except (self._driver.Error, UnicodeError, ValueError) as error:
            failure = self._refusal(error)
        raise failure

    def _refusal(self, error: Exception) -> FairveilError:
        """What the driver says, with the way out."""
        text = scrubbed((str(error).strip() or type(error).__name__).splitlines()[0], self._url)
        state = getattr(error, "sqlstate", None)
        for states, expected, remedy in WAYS_OUT:
            if state is not None and state.startswith(states):
                kind = LedgerAway if states is TAKEN else LedgerError
                return kind.expected(expected, of=self.shown, got=text, remedy=remedy)
        if isinstance(error, self._driver.OperationalError) or state is None:
            remedy = (
                "Check the address, the name of the database, the user and the password, and that "
                "the server runs."
            )
            return LedgerAway.expected(
                "a server that answers", of=self.shown, got=text, remedy=remedy
            )
        remedy = "Nothing was written. Look at the server's log."
        return LedgerError.expected(
            "a ledger that can be used", of=self.shown, got=text, remedy=remedy
        )


class _Writer(Protocol):
    """What is returned inside of a transaction."""

    wrote: Entry | None


class _Transaction(Block[W], Generic[W]):
    """A transaction that nobody else can enter."""

    def __init__(
        self,
        store: PostgresStore,
        made: Callable[[Measurement, str], W],
        dataset: str,
        turn: str,
        parameter: object,
    ) -> None:
        if store._read_only:
            raise not_for_reading("write")
        self._store, self._made, self._dataset, self._turn = store, made, dataset, (turn, parameter)
        self._process = os.getpid()
        self._failed = self._kept = False
        self._use: Use[Link] = store._connections.using()
        self._link: Link | None = None
        self._page: W | None = None

    def _begin(self) -> W:
        store = self._store
        if self._turn[0] is _TURN:
            store._require_fitting(self._dataset)
        try:
            link = self._started()
        except FairveilError:
            if self._link is None or not self._link.closed:
                raise
            self._use.leave()  # the connection had died
            self._use = store._connections.using()
            link = self._started()
        # A newer program may have changed the tables since this connection was opened.
        creating.require_known(store._version(link), store.shown)
        self._page = self._made(self._ask, store.shown)
        return self._page

    def _started(self) -> Link:
        """A connection in its transaction, the only one in it."""
        store, link = self._store, self._use.__enter__()
        if store._blocks.get(link, _nobody)() is not None and not link.closed:
            raise one_inside_another(store.shown)
        self._link = link  # from here on what is undone is this block's
        store._blocks[link] = weakref.ref(self)
        store._undo(link)  # what a block left that was interrupted, and again while it was undone
        store._begin(link, self._dataset, *self._turn)
        return link

    def _ask(self, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        link = self._link
        if link is None or os.getpid() != self._process:
            raise changed_by_a_child(self._store.shown)
        try:
            return self._store._tried(partial(rows_of, link, statement, parameters))
        except FairveilError:
            self._failed = True
            raise

    def _keep(self) -> None:
        link, page, store = self._link, self._page, self._store
        if link is None or page is None or os.getpid() != self._process:
            raise changed_by_a_child(store.shown)
        if self._failed:
            raise half_failed(store.shown)
        store._commit(link, self._dataset, page.wrote)
        self._kept = True
        if isinstance(page, TablePage):
            store._marks[None, self._dataset] = page.mark

    def abandon(self) -> None:
        if os.getpid() != self._process:
            return
        link, store = self._link, self._store
        if link is not None:
            status = store._driver.pq.TransactionStatus
            if not self._kept and not link.closed and link.info.transaction_status == status.ACTIVE:
                # interrupted while the server was at work: the session's end undoes it
                link.close()
            store._undo(link)
            if link.closed:
                self._use.spoil()
            store._blocks.pop(link, None)
            self._link = None
        self._use.leave()


def _nobody() -> None:
    """Who writes through a connection that is idle."""
