"""A ledger in a file: SQLite with a write-ahead log, each commit on the disk before it is
acknowledged.

Versions of SQLite before 3.51.3 may lose a commit when one connection copies the log into the
database while another begins the log anew. Here nobody does the one while another may do the other:
the log is never copied by itself, only by a connection beside one that holds the right to write and
does not use it (`_shorten`), and by whoever closes the file as the last.

Guarantees (tests/privacy/ledger/test_ledger_sqlite.py, and those of `store`):
1. Every acknowledged line outlives the loss of power at any moment, and no line is half there.
2. The file is its owner's alone (0600) from the first moment; a file that is not a ledger is
   refused and stays as it is. Where a ledger could not be begun, no empty file is left.
3. What SQLite or the system refuses (a full disk, rights, a locked or damaged file) is a typed
   error, and nothing is half written.
4. A line is written to the file that has the name now, and that has no other name: see `one_name`.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ....errors import LedgerError
from . import creating
from .blocks import Block, within
from .connections import Connections
from .entries import Entry
from .one_name import Name, moved, require_one_link
from .refusals import changed_by_a_child, half_failed, not_for_reading, one_inside_another
from .sqlite_connection import (
    LONG_LOG,
    Connection,
    has_transaction,
    is_at,
    nobody,
    size_of,
)
from .sqlite_file import linked, made_file, settle, version_of
from .sqlite_refusals import (
    BUSY,
    PATIENCE,
    REFUSED,
    code,
    no_ledger,
    refusal,
    require_file,
    unreachable,
)
from .sqlite_rules import ALL_RULES, SMALL, require_rules
from .store import Page
from .tables import Beginning, Lines, Measurement, TablePage, TableStore
from .verifying import damaged

T = TypeVar("T")


W = TypeVar("W", bound="_Writer")


OPENINGS = 3


# Closing any descriptor of a file gives up all of the process's locks on it: no connection may be
# open while it is made.
_making = threading.RLock()


class SQLiteStore(TableStore):
    """A `Store` in a file."""

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool, read_only: bool = False
    ) -> None:
        if create and read_only:
            raise not_for_reading("create")
        self._path = Path(os.path.abspath(os.fspath(path)))
        if "\0" in str(self._path):
            raise unreachable(ValueError("a name with a zero byte"), self._path)
        self._read_only = read_only
        self._create = create
        self._made: tuple[int, int] | None = None
        self._connections = Connections(
            self._opened, self._is_current, os.path.realpath(self._path)
        )
        self._connections.lent(lambda connection: None)
        self._create = False

    @property
    def shown(self) -> str:
        return str(self._path)

    @property
    def address(self) -> str | None:
        return str(self._path)

    def create(self, dataset: str, first: Entry, rest: Iterable[Entry] = ()) -> None:
        try:
            within(
                _Transaction(self, Beginning, None), lambda begun: begun.begin(dataset, first, rest)
            )
        except BaseException:
            self._take_back()
            raise

    def writing(self, dataset: str) -> Block[Page]:
        self._lines.require_name(dataset)
        return _Transaction(self, lambda ask, shown: self._page(ask, dataset), dataset)

    def close(self) -> None:
        self._connections.close()

    def _page(self, ask: Measurement, dataset: str) -> TablePage:
        return TablePage(ask, dataset, self.shown, self._marks.get((self._file(), dataset)))

    def _file(self) -> tuple[int, int]:
        """Of this thread's connection."""
        return self._connections.lent(lambda connection: connection.file)

    def _ask(self, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """A reading of its own."""
        return self._connections.lent(
            lambda connection: self._patiently(
                lambda: connection.link.execute(statement, parameters).fetchall()
            )
        )

    def _require_fitting(self, connection: Connection, dataset: str) -> None:
        """Once in a file: what is there fits, read while others may write."""
        if (connection.file, dataset) in self._marks:
            return
        (pages,), (size,) = (
            self._ask(f"PRAGMA {name}", ())[0] for name in ("page_count", "page_size")
        )
        if pages * size <= SMALL:
            ((said,), *_) = self._ask("PRAGMA integrity_check(1)", ())
            if said != "ok":
                raise damaged(
                    self.shown,
                    "".join(letter if letter.isprintable() else "?" for letter in str(said))[:200],
                )
        mark = self._lines.fitting(dataset, None)
        if mark is not None:
            self._marks[connection.file, dataset] = mark

    def _start(self, connection: Connection) -> None:
        """A transaction that nobody else can enter, in a file that is still the one of this name,
        by this version's rules."""
        link = connection.link
        # The right to write is taken before the balance is read: between reading and charging
        # nobody else can charge.
        self._patiently(lambda: link.execute("BEGIN IMMEDIATE"))
        size = size_of(connection.log)
        if size < LONG_LOG:
            connection.shorten_at = LONG_LOG
        elif size >= connection.shorten_at:
            self._shorten(connection)
            self._patiently(lambda: link.execute("BEGIN IMMEDIATE"))
        # A file that was moved away would take the line along, and the one that has the name now
        # would lack it.
        self._require_current(connection)
        # Another program may have changed the tables since this connection was opened.
        creating.require_known(self._tried(lambda: version_of(link, self.shown)), self.shown)
        rules = self._tried(lambda: link.execute("PRAGMA schema_version").fetchone()[0])
        if rules != connection.rules:
            require_rules(self._tried(lambda: link.execute(ALL_RULES).fetchall()), self.shown)
            connection.rules = rules

    def _require_current(self, connection: Connection) -> None:
        try:
            status = os.stat(self._path)
        except OSError:
            raise moved(self.shown) from None
        if (status.st_dev, status.st_ino) != connection.file:
            raise moved(self.shown)
        require_one_link(status, self.shown)

    def _shorten(self, connection: Connection) -> None:
        """Copy the log into the database while this connection keeps everybody from writing, so
        that the next one to write may begin the log anew. A log that a reader holds up is tried
        again when it has grown."""
        # what is not copied now stays in the log
        with suppress(sqlite3.Error), closing(linked(self._path, "rw")) as beside:
            beside.execute("PRAGMA synchronous = FULL")
            beside.execute("PRAGMA checkpoint_fullfsync = ON")
            beside.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        # The lock had to be held while the log was copied; the caller takes it again.
        connection.link.execute("ROLLBACK")
        connection.shorten_at = size_of(connection.log) + LONG_LOG

    def _opened(self) -> Connection:
        """Again, where another file was put in its place meanwhile."""
        for _ in range(OPENINGS - 1):
            with suppress(_Moved):
                return self._opened_once()
        try:
            return self._opened_once()
        except _Moved:
            raise moved(self.shown) from None

    def _opened_once(self) -> Connection:
        with _making:
            if self._create:
                self._made = made_file(self._path) or self._made
            require_file(self._path)
        try:
            return self._connected()
        except BaseException:
            self._take_back()
            raise

    def _connected(self) -> Connection:
        try:
            name = Name(self._path, self.shown)
        except OSError as error:
            raise unreachable(error, self._path) from None
        link: sqlite3.Connection | None = None
        try:
            link = self._tried(lambda: linked(self._path, "ro" if self._read_only else "rw"))
            if self._read_only:
                self._patiently(lambda: link.execute("PRAGMA query_only = ON"))
                self._require_ledger(link)
            else:
                self._require_ledger(link)
                settle(link, self._patiently, self.shown)
            if not is_at(self._path, name.identity):
                raise _Moved
            return self._tried(lambda: Connection(link, name))
        except BaseException:
            if link is not None:
                link.close()
            name.release()
            raise

    def _take_back(self) -> None:
        """Remove the file that was made here if no ledger was begun in it. Whoever is about to
        begin one there finds, before it is kept, that the file was moved."""
        made = self._made
        if made is None or not is_at(self._path, made):
            return
        self._connections.close()
        if size_of(str(self._path)) == 0:  # where no room is left, SQLite would lock nothing
            with suppress(OSError):
                os.unlink(self._path)
            return
        with suppress(Exception), closing(linked(self._path, "rw")) as link:
            # without the log's index beside, for which there may be no room
            link.execute("PRAGMA locking_mode = EXCLUSIVE")
            # Another process may be about to begin a ledger in this very file.
            link.execute("BEGIN EXCLUSIVE")
            if not Lines(
                lambda asked, given: link.execute(asked, given).fetchall(), self.shown
            ).datasets():
                for end in ("-wal", "-shm", ""):
                    with suppress(FileNotFoundError):
                        os.unlink(f"{self._path}{end}")
            link.execute("ROLLBACK")

    def _require_ledger(self, link: sqlite3.Connection) -> None:
        """A ledger of this version: made in an empty file when asked to."""
        version = self._patiently(lambda: version_of(link, self.shown))
        if version == creating.VERSION:
            return
        if version == 0 and not self._create:
            raise no_ledger("an empty file", self.shown)
        if version or self._read_only:
            creating.require_known(version, self.shown)
        self._patiently(lambda: link.execute("PRAGMA synchronous = FULL"))
        self._patiently(lambda: link.execute("BEGIN EXCLUSIVE"))
        try:
            if not version_of(link, self.shown):  # another process may have been first
                for statement in creating.sqlite_statements():
                    self._tried(lambda statement=statement: link.execute(statement))  # type: ignore[misc]
            self._tried(lambda: link.execute("COMMIT"))
        except BaseException:
            if link.in_transaction:
                with suppress(sqlite3.Error):  # it is closed next, which undoes it too
                    link.execute("ROLLBACK")
            raise

    def _is_current(self, connection: Connection) -> bool:
        """Not where the file was moved away or replaced: what was written there would be
        forgotten."""
        return is_at(self._path, connection.file)

    def _patiently(self, action: Callable[[], T]) -> T:
        """Waits while others have the file, at random moments so that nobody is always too late."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return action()
            except REFUSED as error:
                if code(error) not in BUSY or time.monotonic() > end:
                    raise refusal(error, self.shown) from None
            time.sleep(0.001 * (1 + secrets.randbelow(12)))

    def _tried(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except REFUSED as error:
            raise refusal(error, self.shown) from None


class _Writer(Protocol):
    """What is returned inside of a transaction."""

    wrote: Entry | None


class _Transaction(Block[W], Generic[W]):
    """A transaction that nobody else can enter."""

    def __init__(
        self, store: SQLiteStore, made: Callable[[Measurement, str], W], dataset: str | None
    ) -> None:
        if store._read_only:
            raise not_for_reading("write")
        self._store, self._made, self._dataset = store, made, dataset
        self._use = store._connections.using()
        self._process = os.getpid()
        self._failed = False
        self._connection: Connection | None = None
        self._page: W | None = None

    def _begin(self) -> W:
        store, connection = self._store, self._use.__enter__()
        if connection.block() is not None:
            raise one_inside_another(store.shown)
        if self._dataset is not None:
            store._require_fitting(connection, self._dataset)
        self._connection = connection  # from here on what is undone is this block's
        connection.block = weakref.ref(self)
        # of a block that was interrupted, and again while it was undone
        if connection.link.in_transaction:
            connection.link.execute("ROLLBACK")
        store._start(connection)
        self._page = self._made(self._ask, store.shown)
        return self._page

    def _ask(self, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        connection = self._connection
        # A forked child shares the connection, and SQLite forbids that it be used there.
        if connection is None or os.getpid() != self._process:
            raise changed_by_a_child(self._store.shown)
        try:
            return self._store._tried(
                lambda: connection.link.execute(statement, parameters).fetchall()
            )
        except LedgerError:
            self._failed = True
            raise

    def _keep(self) -> None:
        connection, store = self._connection, self._store
        if connection is None or os.getpid() != self._process:
            raise changed_by_a_child(store.shown)
        # A statement failed and the caller went on: half of a block is never kept.
        if self._failed:
            raise half_failed(store.shown)
        store._require_current(connection)
        store._tried(lambda: connection.link.execute("COMMIT"))
        if self._dataset is not None and isinstance(self._page, TablePage):
            store._marks[connection.file, self._dataset] = self._page.mark

    def abandon(self) -> None:
        if os.getpid() != self._process:
            return
        connection = self._connection
        if connection is not None:
            with suppress(sqlite3.Error):
                if connection.link.in_transaction:
                    connection.link.execute("ROLLBACK")
            if has_transaction(connection.link):
                self._use.spoil()
            connection.block = nobody
            self._connection = None
        self._use.leave()


class _Moved(Exception):  # noqa: N818 -- never seen outside
    """Another file has the name now."""
