"""A ledger in a file: SQLite with a write-ahead log, each commit on the disk before it is acknowledged.

Versions of SQLite before 3.51.3 may lose a commit when one connection copies the log into the database while another begins the
log anew. Here nobody does the one while another may do the other: the log is never copied by itself, only by a connection
beside one that holds the right to write and does not use it (`_shorten`), and by whoever closes the file as the last.

Guarantees (tests/privacy/ledger/test_ledger_sqlite.py, and those of `store`):
1. Every acknowledged line outlives the loss of power at any moment, and no line is half there.
2. The file is its owner's alone (0600) from the first moment; a file that is not a ledger is refused and stays as it is.
3. What SQLite or the system refuses (a full disk, rights, a locked or damaged file) is a typed error, and nothing is half
   written.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ...errors import DataNotFoundError, FairveilError, LedgerError, complaint
from . import migrations
from .connections import Connections
from .entries import Entry
from .refusals import changed_by_a_child, half_failed, not_for_reading, one_inside_another
from .store import Page
from .tables import Ask, Lines, TablePage, TableStore

T = TypeVar("T")
PATIENCE = 60.0
LONG_LOG, SHORT_LOG = 4 << 20, 1 << 20
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# Closing any descriptor of a file gives up all of the process's locks on it: no connection may be open while it is made.
_making = threading.Lock()


class _Connection:
    """One of SQLite's connections, and the file that it opened."""

    def __init__(self, link: sqlite3.Connection, file: tuple[int, int]) -> None:
        self.link = link
        self.file = file
        self.shorten_at = LONG_LOG

    def close(self) -> None:
        self.link.close()


class SQLiteStore(TableStore):
    """A `Store` in a file."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool, read_only: bool = False) -> None:
        if create and read_only:
            raise not_for_reading("create")
        self._path = Path(os.path.abspath(os.fspath(path)))
        if "\0" in str(self._path):
            raise self._unreachable(ValueError("a name with a zero byte"))
        self._read_only = read_only
        self._create = create
        self._connections = Connections(self._opened, self._is_current, os.path.realpath(self._path))
        with self._connections.using():
            self._create = False

    @property
    def shown(self) -> str:
        return str(self._path)

    @property
    def address(self) -> str | None:
        return str(self._path)

    def create(self, dataset: str, first: Entry, rest: Iterable[Entry] = ()) -> None:
        with self._changing() as ask:
            Lines(ask, self.shown).begin(dataset, first, rest)

    @contextmanager
    def writing(self, dataset: str) -> Iterator[Page]:
        self._lines.require_name(dataset)
        with self._changing() as ask:
            yield TablePage(ask, dataset, self.shown)

    def close(self) -> None:
        self._connections.close()

    def _ask(self, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """A reading of its own."""
        with self._connections.using() as connection:
            return self._patiently(lambda: connection.link.execute(statement, parameters).fetchall())

    @contextmanager
    def _changing(self) -> Iterator[Ask]:
        """A transaction that nobody else can enter: committed at the end, undone if the block raises."""
        if self._read_only:
            raise not_for_reading("write")
        with self._connections.using() as connection:
            link, process = connection.link, os.getpid()
            if link.in_transaction:
                raise one_inside_another(self.shown)
            failed = False

            def ask(statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
                nonlocal failed
                if os.getpid() != process:
                    raise changed_by_a_child(self.shown)
                try:
                    return self._tried(lambda: link.execute(statement, parameters).fetchall())
                except LedgerError:
                    failed = True
                    raise

            self._begin(connection)
            try:
                yield ask
                if os.getpid() != process:
                    raise changed_by_a_child(self.shown)
                if failed:
                    raise half_failed(self.shown)
                self._tried(lambda: link.execute("COMMIT"))
            except BaseException:
                if os.getpid() == process:
                    self._undo(link)
                raise

    def _begin(self, connection: _Connection) -> None:
        link = connection.link
        self._patiently(lambda: link.execute("BEGIN IMMEDIATE"))
        try:
            size = self._log_size()
            if size < LONG_LOG:
                connection.shorten_at = LONG_LOG
            elif size >= connection.shorten_at:
                self._shorten(connection)
                self._patiently(lambda: link.execute("BEGIN IMMEDIATE"))
            # A newer program may have changed the tables since this connection was opened.
            migrations.require_known(self._version(link), self.shown, read_only=False)
        except BaseException:
            self._undo(link)
            raise

    def _undo(self, link: sqlite3.Connection) -> None:
        try:
            if link.in_transaction:
                link.execute("ROLLBACK")
        except sqlite3.Error:
            self._connections.spoil()

    def _shorten(self, connection: _Connection) -> None:
        """Copy the log into the database while this connection keeps everybody from writing, so that the next one to write may
        begin the log anew. A log that a reader holds up is tried again when it has grown."""
        with suppress(sqlite3.Error), closing(self._linked("rw")) as beside:  # what is not copied now stays in the log
            beside.execute("PRAGMA synchronous = FULL")
            beside.execute("PRAGMA checkpoint_fullfsync = ON")
            beside.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        connection.link.execute("ROLLBACK")
        connection.shorten_at = self._log_size() + LONG_LOG

    def _log_size(self) -> int:
        try:
            return os.stat(f"{self._path}-wal").st_size
        except OSError:
            return 0

    def _opened(self) -> _Connection:
        with _making:
            if self._create:
                self._make_file()
            self._require_file()
        link = self._tried(lambda: self._linked("ro" if self._read_only else "rw"))
        try:
            if self._read_only:
                self._patiently(lambda: link.execute("PRAGMA query_only = ON"))
                self._require_ledger(link)
            else:
                self._require_ledger(link)
                self._settle(link)
            status = os.stat(self._path)
            return _Connection(link, (status.st_dev, status.st_ino))
        except BaseException:
            link.close()
            raise

    def _linked(self, mode: str) -> sqlite3.Connection:
        link = sqlite3.connect(
            f"{self._path.as_uri()}?mode={mode}", uri=True, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            # No connection copies the log by itself: see above.
            link.execute("PRAGMA wal_autocheckpoint = 0")
            link.execute("PRAGMA trusted_schema = OFF")
        except BaseException:
            link.close()
            raise
        return link

    def _make_file(self) -> None:
        """An empty file, the owner's alone. SQLite gives its log the same rights."""
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)
        except FileExistsError:
            return
        except OSError as error:
            raise self._unreachable(error) from None
        os.close(descriptor)

    def _require_file(self) -> None:
        try:
            is_file = self._path.is_file()
            found = f"no file {self._path}" if not self._path.exists() else f"a folder, {self._path}"
        except OSError as error:
            raise self._unreachable(error) from None
        if not is_file:
            remedy = "Begin one with Ledger.create, or name the file that it is in."
            raise DataNotFoundError(complaint(expected="the file of a ledger", of=self.shown, got=found, remedy=remedy))

    def _require_ledger(self, link: sqlite3.Connection) -> None:
        """A ledger of this version: made in an empty file when asked to, migrated if older."""
        version = self._patiently(lambda: self._version(link))
        if version == migrations.LATEST:
            return
        if version == 0 and not self._create:
            self._refuse("an empty file")
        migrations.require_known(version, self.shown, read_only=self._read_only)
        self._patiently(lambda: link.execute("PRAGMA synchronous = FULL"))
        self._patiently(lambda: link.execute("BEGIN EXCLUSIVE"))
        try:
            for statement in migrations.sqlite_statements(self._version(link)):
                self._tried(lambda statement=statement: link.execute(statement))  # type: ignore[misc]
            self._tried(lambda: link.execute("COMMIT"))
        except BaseException:
            self._undo(link)
            raise

    def _version(self, link: sqlite3.Connection) -> int:
        """0 for a file with nothing in it; an error for another program's."""
        application = link.execute("PRAGMA application_id").fetchone()[0]
        version = int(link.execute("PRAGMA user_version").fetchone()[0])
        if application == migrations.APPLICATION and version > 0:
            return version
        if application == 0 and version == 0 and not link.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall():
            return 0
        self._refuse("another program's database")

    def _settle(self, link: sqlite3.Connection) -> None:
        """Everybody writes to the log, and to the disk."""
        mode = self._patiently(lambda: link.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            remedy = "Put it on a disk of this machine; for several machines use PostgreSQL."
            raise LedgerError(
                complaint(expected="a disk that takes a write-ahead log", of=self.shown, got=f"the mode {mode}", remedy=remedy)
            )
        for setting in (
            "synchronous = FULL",
            "fullfsync = ON",
            "checkpoint_fullfsync = ON",
            f"journal_size_limit = {SHORT_LOG}",
        ):
            self._patiently(lambda setting=setting: link.execute(f"PRAGMA {setting}"))  # type: ignore[misc]

    def _is_current(self, connection: _Connection) -> bool:
        """Not where the file was moved away or replaced: what was written there would be forgotten."""
        try:
            status = os.stat(self._path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == connection.file

    def _patiently(self, action: Callable[[], T]) -> T:
        """Waits while others have the file, at random moments so that nobody is always too late."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return action()
            except sqlite3.Error as error:
                if _code(error) not in _BUSY or time.monotonic() > end:
                    raise self._refusal(error) from None
            time.sleep(0.001 * (1 + secrets.randbelow(12)))

    def _tried(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise self._refusal(error) from None

    def _refuse(self, found: str) -> NoReturn:
        remedy = "Begin a ledger with Ledger.create in a file of its own, or name the file that one is in."
        raise LedgerError(complaint(expected="the file of a ledger", of=self.shown, got=found, remedy=remedy))

    def _refusal(self, error: Exception) -> LedgerError:
        """What SQLite says, with the way out."""
        for codes, expected, remedy in _WAYS_OUT:
            if _code(error) in codes:
                return LedgerError(complaint(expected=expected, of=self.shown, got=str(error), remedy=remedy))
        remedy = "Nothing was written. Look at the disk and the file, and try again."
        return LedgerError(complaint(expected="a ledger that can be used", of=self.shown, got=str(error), remedy=remedy))

    def _unreachable(self, error: Exception) -> FairveilError:
        if isinstance(error, FileNotFoundError):
            remedy = "Make the folder first."
            return DataNotFoundError(
                complaint(expected="a folder to put the ledger in", of=self.shown, got=f"no {self._path.parent}", remedy=remedy)
            )
        remedy = "Name a file in a folder that you may write to, on a disk with room."
        got = getattr(error, "strerror", None) or str(error)
        return LedgerError(complaint(expected="a file that can be reached", of=self.shown, got=got, remedy=remedy))


_WAYS_OUT = (
    (
        _BUSY,
        f"its turn within {PATIENCE:.0f} seconds",
        "Another program has it open and does not let go: find it (on Linux: fuser FILE) and end it.",
    ),
    ((sqlite3.SQLITE_FULL,), "room on the disk", "Nothing was written. Make room and try again."),
    (
        (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_FORMAT),
        "the file of a ledger",
        "It is another file, or damaged: restore a copy, or `fairveil ledger check` an export.",
    ),
    (
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH),
        "a file and a folder that may be written to",
        "Readers, too, need a log beside the file: ask for the rights to the folder, or copy the ledger.",
    ),
    (
        (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH),
        "a line that keeps the rules of the tables",
        "Lines are only added, each one number further, and never charge more than all.",
    ),
)


def _code(error: Exception) -> int | None:
    """SQLite's kind of error, without its finer distinctions."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF
