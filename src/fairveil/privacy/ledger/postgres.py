"""A ledger on a server: PostgreSQL, by psycopg 3 (the extra `sql`).

Whoever writes locks the head of its data set (`SELECT ... FOR UPDATE`), so that others wait in a queue of the server. A commit
waits for the disk whatever the server's default is: `synchronous_commit` is `on` (that of standbys, too, where the server has
such), or `remote_apply` where the default asks for even that. Settings are made in each transaction, so a pooler between may
hand it to any session. A session that stops in the middle of a block is ended by the server, which undoes what it did.

Guarantees (tests/privacy/ledger/test_ledger_postgres.py, and those of `store`):
1. A commit that was broken off is never repeated: whether its lines are there is read from the database, under the lock that it
   held. Only what had not begun to write is tried again, once, on a new connection.
2. Tables may be made by many processes at once.
3. No message, no `repr` and no error in the context of one shows the password of the address.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..._urls import scrubbed, without_password
from ...errors import DataNotFoundError, FairveilError, InputError, LedgerError, complaint
from . import migrations
from .connections import Connections
from .entries import Entry
from .refusals import changed_by_a_child, half_failed, not_for_reading, one_inside_another
from .store import Page
from .tables import Ask, Lines, TablePage, TableStore

if TYPE_CHECKING:
    import psycopg

    Link = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")
PATIENCE = 60
IDLE_PATIENCE = 45
CONNECT_PATIENCE = 10

_SETTINGS = f"""SELECT set_config('lock_timeout', '{PATIENCE}s', true),
set_config('idle_in_transaction_session_timeout', '{IDLE_PATIENCE}s', true),
set_config('synchronous_commit',
  CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"""
_VERSION = "(SELECT max(version) FROM fairveil_ledger_version)"
_TURN = f"SELECT {_VERSION} FROM fairveil_ledger_heads h WHERE dataset = ? FOR UPDATE OF h"
# Reads the catalogue itself: to_regclass may answer from what was so before another process made the tables.
_MADE = "SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'fairveil_ledger_version' AND pg_catalog.pg_table_is_visible(oid)"
_CREATING = "SELECT pg_advisory_xact_lock(?)"


@dataclass
class _Change:
    """A transaction: how to ask in it, and what it wrote last."""

    ask: Ask
    wrote: Entry | None = None


class PostgresStore(TableStore):
    """A `Store` in a database of PostgreSQL."""

    def __init__(self, url: str, *, create: bool, read_only: bool = False) -> None:
        if create and read_only:
            raise not_for_reading("create")
        self._driver = _driver()
        self._url = url
        self._read_only = read_only
        self._create = create
        self._connections = Connections(self._opened, _is_open)
        with self._connections.using():
            self._create = False

    @property
    def shown(self) -> str:
        return without_password(self._url)

    @property
    def address(self) -> str | None:
        return self._url

    def create(self, dataset: str, first: Entry, rest: Iterable[Entry] = ()) -> None:
        with self._changing(dataset, _CREATING, migrations.CREATE_LOCK) as change:
            change.wrote = Lines(change.ask, self.shown).begin(dataset, first, rest)

    @contextmanager
    def writing(self, dataset: str) -> Iterator[Page]:
        self._lines.require_name(dataset)
        with self._changing(dataset, _TURN, dataset) as change:
            page = TablePage(change.ask, dataset, self.shown)
            before = page.head()
            yield page
            change.wrote = None if page.head() is before else page.head()

    def close(self) -> None:
        self._connections.close()

    def _ask(self, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """A reading of its own; once more where the connection had died."""
        try:
            with self._connections.using() as link:
                return self._tried(partial(_rows, link, statement, parameters))
        except FairveilError:
            if not link.closed:
                raise
        with self._connections.using() as link:
            return self._tried(partial(_rows, link, statement, parameters))

    @contextmanager
    def _changing(self, dataset: str, turn: str, parameter: object) -> Iterator[_Change]:
        """A transaction that nobody else can enter: committed at the end, undone if the block raises."""
        if self._read_only:
            raise not_for_reading("write")
        with ExitStack() as stack:
            link = self._begun(stack, dataset, turn, parameter)
            process, failed = os.getpid(), False

            def ask(statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
                nonlocal failed
                if os.getpid() != process:
                    raise changed_by_a_child(self.shown)
                try:
                    return self._tried(partial(_rows, link, statement, parameters))
                except FairveilError:
                    failed = True
                    raise

            change = _Change(ask)
            try:
                yield change
                if os.getpid() != process:
                    raise changed_by_a_child(self.shown)
                if failed:
                    raise half_failed(self.shown)
            except BaseException:
                if os.getpid() == process:
                    self._undo(link)
                raise
            self._commit(link, dataset, change.wrote)

    def _begun(self, stack: ExitStack, dataset: str, turn: str, parameter: object) -> Link:
        """A connection in its transaction, the only one in it; once more where the connection had died."""
        link = stack.enter_context(self._connections.using())
        if link.info.transaction_status != self._driver.pq.TransactionStatus.IDLE and not link.closed:
            raise one_inside_another(self.shown)
        try:
            self._begin(link, dataset, turn, parameter)
            return link
        except FairveilError:
            if not link.closed:
                raise
        stack.pop_all().close()
        link = stack.enter_context(self._connections.using())
        self._begin(link, dataset, turn, parameter)
        return link

    def _begin(self, link: Link, dataset: str, turn: str, parameter: object) -> None:
        try:
            for statement in ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", _SETTINGS):
                self._tried(partial(_done, link, statement))
            locked = self._tried(partial(_rows, link, turn, (parameter,)))
            if turn is _TURN and not locked:
                # No head: the lines say whether there is such a data set.
                Lines(lambda statement, given: self._tried(partial(_rows, link, statement, given)), self.shown).kept_head(
                    dataset
                )
            # A newer program may have changed the tables since this connection was opened.
            migrations.require_known(self._version(link), self.shown, read_only=False)
        except BaseException:
            self._undo(link)
            raise

    def _undo(self, link: Link) -> None:
        try:
            if link.closed:
                self._connections.spoil()
            elif link.info.transaction_status != self._driver.pq.TransactionStatus.IDLE:
                link.execute(b"ROLLBACK")
        except self._driver.Error:
            self._connections.spoil()

    def _commit(self, link: Link, dataset: str, wrote: Entry | None) -> None:
        """Commit; where no answer came, read what is so."""
        failure, said = None, ""
        try:
            said = link.execute(b"COMMIT").statusmessage or ""
        except self._driver.Error as error:
            failure = self._refusal(error)
        except BaseException:
            self._connections.spoil()
            raise
        if said == "COMMIT":
            return
        if wrote is None:
            self._connections.spoil()
            return
        if failure is None or not link.closed:
            self._undo(link)
            raise failure or half_failed(self.shown)
        self._connections.spoil()
        try:
            written = self._is_written(dataset, wrote)
        except FairveilError as error:
            remedy = f"Look for line {wrote.number} ({wrote.hash[:12]}) in the history: if it is there, it counts."
            got = f"none, and then: {error}"
            raise LedgerError(complaint(expected="an answer to a commit", of=self.shown, got=got, remedy=remedy)) from None
        if not written:
            raise failure

    def _is_written(self, dataset: str, entry: Entry) -> bool:
        """Whether a line is there for good: under the locks of the transaction that wrote it, so that it has ended."""
        with closing(self._opened()) as link:
            self._tried(partial(_done, link, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"))
            self._tried(partial(_done, link, _SETTINGS))
            self._tried(partial(_rows, link, _CREATING, (migrations.CREATE_LOCK,)))
            self._tried(partial(_rows, link, _TURN, (dataset,)))
            query = "SELECT 1 FROM fairveil_ledger_entries WHERE dataset = ? AND number = ? AND hash = ?"
            return bool(self._tried(partial(_rows, link, query, (dataset, entry.number, entry.hash))))

    def _opened(self) -> Link:
        given = self._tried(lambda: self._driver.conninfo.conninfo_to_dict(self._url))
        settings: dict[str, Any] = {"client_encoding": "utf8", "autocommit": True, "prepare_threshold": None}
        if "connect_timeout" not in given:
            settings["connect_timeout"] = CONNECT_PATIENCE
        link: Link = self._tried(lambda: self._driver.connect(self._url, **settings))
        try:
            if self._read_only:
                self._tried(partial(_done, link, "SET default_transaction_read_only = on"))
            self._require_tables(link)
            return link
        except BaseException:
            link.close()
            raise

    def _require_tables(self, link: Link) -> None:
        """Tables of this version: made when asked to, migrated if older."""
        version = self._version(link)
        if version == migrations.LATEST:
            return
        if version == 0 and not self._create:
            remedy = "Begin one with Ledger.create, or name the database that it is in."
            raise DataNotFoundError(
                complaint(expected="a database with a ledger", of=self.shown, got="none of its tables", remedy=remedy)
            )
        migrations.require_known(version, self.shown, read_only=self._read_only)
        try:
            for statement in ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", _SETTINGS):
                self._tried(partial(_done, link, statement))
            self._tried(partial(_rows, link, _CREATING, (migrations.CREATE_LOCK,)))
            version = self._version(link)  # another process may have been first
            if version < migrations.LATEST:
                for statement in migrations.postgres_statements(version):
                    self._tried(partial(_done, link, statement))
            self._tried(partial(_done, link, "COMMIT"))
        except BaseException:
            self._undo(link)
            raise

    def _version(self, link: Link) -> int:
        """0 where there are no tables yet."""
        if not self._tried(partial(_rows, link, _MADE, ())):
            return 0
        version = self._tried(partial(_rows, link, f"SELECT {_VERSION}", ()))[0][0]
        return 0 if version is None else int(version)

    def _tried(self, action: Callable[[], T]) -> T:
        """Its errors are raised outside of `except`, so that no context holds the driver's own message."""
        try:
            return action()
        except (self._driver.Error, UnicodeError, ValueError) as error:
            failure = self._refusal(error)
        raise failure

    def _refusal(self, error: Exception) -> FairveilError:
        """What the driver says, with the way out."""
        text = scrubbed((str(error).strip() or type(error).__name__).splitlines()[0], self._url)
        state = getattr(error, "sqlstate", None)
        for states, expected, remedy in _WAYS_OUT:
            if state is not None and state.startswith(states):
                return LedgerError(complaint(expected=expected, of=self.shown, got=text, remedy=remedy))
        if isinstance(error, self._driver.OperationalError) or state is None:
            remedy = "Check the address, the name of the database, the user and the password, and that the server runs."
            return LedgerError(complaint(expected="a server that answers", of=self.shown, got=text, remedy=remedy))
        remedy = "Nothing was written. Look at the server's log."
        return LedgerError(complaint(expected="a ledger that can be used", of=self.shown, got=text, remedy=remedy))


_WAYS_OUT = (
    (
        ("55P03", "57014", "40P01"),
        f"its turn within {PATIENCE} seconds",
        "Another session holds the ledger: find it in pg_stat_activity and end it.",
    ),
    (("42501",), "a user who may do this", "Ask for the rights to the tables whose names begin with fairveil_ledger."),
    (("25006",), "a server that may be written to", "Name the primary server, not a standby, or open it for reading only."),
    (("53100", "53200"), "room on the server", "Nothing was written. Make room and try again."),
    (
        ("23",),
        "a line that keeps the rules of the tables",
        "Lines are only added, each one number further, and never charge more than all.",
    ),
    (("42P07", "42723", "42710"), "a database without other tables of these names", "Use a database or a schema of its own."),
)


def _driver() -> Any:
    """psycopg, loaded when a server is named."""
    try:
        import psycopg
    except ImportError as error:
        remedy = "pip install 'fairveil[sql]'"
        raise InputError(complaint(expected="psycopg 3", of="ledger", got=str(error), remedy=remedy)) from None
    return psycopg


def _rows(link: Link, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
    cursor = link.execute(statement.replace("?", "%s").encode(), parameters)
    return cursor.fetchall() if cursor.description else []


def _done(link: Link, statement: str) -> None:
    link.execute(statement.encode())


def _is_open(link: Link) -> bool:
    return not link.closed
