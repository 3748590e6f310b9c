"""Where a ledger's lines are kept: one table, in a file of SQLite, in PostgreSQL, or in this
process's memory, by SQLAlchemy Core.

Every use opens a connection of its own and closes it; uses of one process take turns, and a fork
waits for the turn to end. So no connection is ever shared with a child or another thread, none is
left in a transaction, and what is read is what has the name now. SQLite keeps its rollback journal
(no log beside the file that another name would not see) and waits for the disk at each commit.

Guarantees (tests/ledger/test_ledger_store.py, test_ledger_processes.py):
1. Whoever appends holds the right to write before it reads: meanwhile nobody else writes, in this
   process or another. What it appended is on the disk when `append` returns, and not there at all
   where it raised; an interrupt at any step leaves nothing held. A commit without an answer is
   never repeated: its last line is looked up.
2. A file is its owner's alone from the first moment; one that is no ledger, that has a second name
   (a hard link, a mount of the file alone) or was moved in the middle of a use is refused, and
   stays as it is.
3. No message shows the password of an address.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from .._urls import IN_QUERY, scrubbed, without_password
from ..errors import DataNotFoundError, FairveilError, InputError, LedgerAway, LedgerError
from .lines import MOST, NAMES, NUMBERS, Entry, need

T = TypeVar("T")
Read = Callable[[int], list[Entry]]
"""The lines from this number on, at most `PAGE` of them."""
PATIENCE, PAGE = 60.0, 500

TABLE = sa.Table(
    "fairveil_ledger",
    sa.MetaData(),
    sa.Column("dataset", sa.Text, primary_key=True),
    *(
        sa.Column(
            name,
            sa.BigInteger if name in NUMBERS else sa.Text,
            nullable=False,
            primary_key=name == "number",
            autoincrement=False,
        )
        for name in NAMES
    ),
    sa.CheckConstraint(f"spent BETWEEN 0 AND {MOST} AND leaked BETWEEN 0 AND {MOST}"),
    sqlite_with_rowid=False,  # one tree, no index that could say something else
)
# The rollback journal, and a commit that is on the disk, its folder's too.
_SETTINGS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",
)
# In one message, with the right to write.
_BEGIN = """BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '60s';
SET LOCAL idle_in_transaction_session_timeout = '45s';
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
SELECT pg_advisory_xact_lock(1179012167)"""
# SQLite's codes with an s before, and PostgreSQL's: of what others hold, of servers that are away.
_TAKEN, _AWAY = ("s5", "s6", "55P03", "57014", "40P01"), ("08", "57", "28", "3D")
_REFUSED = (sa.exc.DBAPIError, sqlite3.Error, OSError, OverflowError, MemoryError, ValueError)
# Linux tells what is mounted where, with some letters in octal.
_MOUNTS, _IN_MOUNTS = "/proc/self/mountinfo", {c: f"\\{c:03o}" for c in b"\t\n \\"}

_turns = threading.RLock()


def _in_child() -> None:
    global _turns
    _turns = threading.RLock()


os.register_at_fork(
    before=lambda: _turns.acquire() and None,
    after_in_parent=lambda: _turns.release(),
    after_in_child=_in_child,
)


class _Link(sqlite3.Connection):
    """Closes its cursors, too: one that an interrupt left in the middle of an answer, which the
    error's trace keeps, would hold the file."""

    def cursor(self, *given: Any, **named: Any) -> Any:
        found = super().cursor(*given, **named)
        vars(self).setdefault("open", []).append(found)
        return found

    def close(self) -> None:
        held = vars(self).get("open", [])
        while held:
            held[-1].close()
            held.pop()
        super().close()


class Store:
    """Lines of named data sets at one address. `read_only`: nothing is written."""

    def __init__(self, url: str | os.PathLike[str] | None, *, read_only: bool = False) -> None:
        self._path, self._url = _placed(url)
        self._read_only, self._process, self._busy = read_only, os.getpid(), False
        self._raw: list[Any] = []
        self.address = str(self._path) if self._path else self._url
        self.shown = without_password(self.address) if self.address else "memory"
        self._memory = f"file:{secrets.token_hex(8)}?mode=memory&cache=shared"
        how: dict[str, Any] = {"creator": self._in_file}
        if self._url is not None:
            how = {"creator": self._at_server, "use_native_hstore": False}
        # What it connects is closed by `_end` alone.
        how |= {"poolclass": NullPool, "pool_reset_on_return": None, "hide_parameters": True}
        kind = "sqlite" if self._url is None else "postgresql+psycopg"
        try:
            self._engine = sa.create_engine(f"{kind}://", **how)
        except ImportError as error:
            fix = "pip install 'fairveil[sql]'"
            need(False, "ledger", "psycopg 3", str(error), fix, InputError)
        if self.address is None:  # it lives as long as a connection to it
            weakref.finalize(self, self._in_file().close)
            self._raw.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        fix = "Keep it in a file, Ledger.create('budget.db', ...), where other processes find it."
        need(self.address is not None, "pickle", "a ledger in a store", "one in memory", fix)
        return partial(Store, self._path or self._url, read_only=self._read_only), ()

    # -- reading and writing -----------------------------------------------------------------------

    def datasets(self) -> list[str]:
        """The names, sorted."""
        return self._use(self._names)

    def lines(self, dataset: str, first: int = 0, most: int = PAGE) -> list[Entry]:
        """Lines from number `first` on, at most so many; an error where there is no such data
        set."""
        return self._use(lambda link: self._lines(link, dataset, first, most))

    def append(
        self, dataset: str, work: Callable[[Read], Sequence[Entry]], *, begins: bool = False
    ) -> None:
        """Add the lines that `work` makes of what is there, as the only writer: all of them, or none
        where it raises. `begins`: the first of a data set; an error where it has some."""
        fix = "Open the ledger without read_only=True."
        need(not self._read_only, "ledger", "a handle that may write", "read_only=True", fix)
        made: list[Entry] = []

        def whole(link: sa.Connection) -> None:
            # Between reading and charging nobody else can charge.
            self._ask(link, "BEGIN IMMEDIATE" if self._url is None else _BEGIN)
            before = self._found()
            if begins:
                self._make_table(link, dataset)
            made.extend(work(partial(self._lines, link, dataset)))
            for line in made:
                self._ask(link, sa.insert(TABLE).values(dataset=dataset, **line.to_dict()))
            fix, stays = "Nothing was written. Try again.", self._found() == before
            need(stays, self.shown, "a file that stays where it is", "another one", fix)
            self._ask(link, "COMMIT")

        new = begins and self._path is not None and not os.path.exists(self._path)
        try:
            self._use(whole, new=new)
        except BaseException as error:
            if isinstance(error, LedgerAway) and made:
                error.add_note(f"If line {made[-1].number} is there all the same, it counts.")
            with suppress(OSError, ValueError):
                if new and self._path and not os.stat(self._path).st_size:
                    os.unlink(self._path)
            raise

    def _make_table(self, link: sa.Connection, dataset: str) -> None:
        """Make the table where there is none; an error where it has lines of this data set, or the
        file is another program's."""
        if self._url is None:
            query = "SELECT name FROM sqlite_master WHERE type = 'table'"
            names, got = [name for (name,) in self._ask(link, query)], "another program's database"
            own = not names or TABLE.name in names
            need(own, self.shown, "a ledger, or no file", got, "Name another file.")
        TABLE.metadata.create_all(link)
        expected = f"a name that {self.shown} has no ledger of"
        fix = "Open it with Ledger.open, or give the new budget another name."
        need(dataset not in self._names(link), "dataset", expected, dataset, fix)

    # -- one use -----------------------------------------------------------------------------------

    def _use(self, work: Callable[[sa.Connection], T], *, new: bool = False) -> T:
        """What `work` answers on a connection of its own, in this process's turn. Its errors are
        raised outside of `except`, so that no context holds the driver's own message. `new`: an
        empty file is made first, the owner's alone."""
        failure: FairveilError | None = None
        with _turns:
            fix = "End the first use before the next."
            need(not self._busy, self.shown, "one use at a time", "one inside", fix)
            try:
                try:
                    self._busy = True
                    if new and self._path is not None:
                        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
                    self._found()
                    link = self._engine.connect()
                    for setting in self._settings():
                        self._ask(link, setting)
                    return work(link)
                finally:
                    self._end()
            except _REFUSED as error:
                if isinstance(error, FairveilError):
                    raise
                failure = self._refusal(error)
            finally:
                # Once more, from outside: an interrupt may have hit the first one itself.
                self._end()
        raise failure

    def _end(self) -> None:
        """Undo what is not kept and let go; nothing is left to do after the first time."""
        for raw in self._raw:
            with suppress(Exception):
                raw.close()
        self._raw.clear()
        self._busy = False

    def _ask(self, link: sa.Connection, query: sa.Executable | str) -> list[tuple[Any, ...]]:
        """All rows of an answer. Waits while others have the file, and hears Ctrl-C meanwhile."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                text = isinstance(query, str)
                found = link.exec_driver_sql(query) if text else link.execute(query)  # type: ignore[arg-type]
                return [tuple(row) for row in found] if found.returns_rows else []
            except sa.exc.DBAPIError as error:
                if _state(error) not in ("s5", "s6") or time.monotonic() > end:
                    raise

    def _lines(
        self, link: sa.Connection, dataset: str, first: int, most: int = PAGE
    ) -> list[Entry]:
        query = sa.select(*(TABLE.c[name] for name in NAMES)).order_by(TABLE.c.number)
        if dataset.isprintable():
            query = query.where(TABLE.c.dataset == dataset, TABLE.c.number >= first)
            rows = self._ask(link, query.limit(most))
            if rows or first:
                return [Entry.from_dict(dict(zip(NAMES, row, strict=True))) for row in rows]
        raise missing(dataset, self._names(link), self.shown)

    def _names(self, link: sa.Connection) -> list[str]:
        names = self._ask(link, sa.select(TABLE.c.dataset).distinct())
        return sorted(str(name) for (name,) in names)

    # -- files, servers and memory -----------------------------------------------------------------

    def _at_server(self) -> Any:
        import psycopg

        given = psycopg.conninfo.conninfo_to_dict(str(self._url))
        how: dict[str, Any] = {"client_encoding": "utf8", "prepare_threshold": None}
        how |= {} if "connect_timeout" in given else {"connect_timeout": 10}
        self._raw.append(psycopg.connect(str(self._url), autocommit=True, **how))
        return self._raw[-1]

    def _in_file(self) -> Any:
        place = self._memory
        if self._path is not None:
            place = f"{Path(os.path.realpath(self._path)).as_uri()}?mode=rw"
        how: dict[str, Any] = {"uri": True, "timeout": 0.1, "isolation_level": None}
        self._raw.append(sqlite3.connect(place, check_same_thread=False, factory=_Link, **how))
        return self._raw[-1]

    def _settings(self) -> tuple[str, ...]:
        if self._url is not None:
            return ("SET default_transaction_read_only = on",) if self._read_only else ()
        if self._path is None:
            return ()
        return (_SETTINGS[0], "PRAGMA query_only = ON") if self._read_only else _SETTINGS

    def _found(self) -> tuple[int, int] | None:
        """Which file has the name now; refused where that is no plain file, or has another name.

        By another name a crashed writer's journal would not be seen, and what one of two containers
        writes could be lost: so a file with a second link is refused, and one that is a mount point
        itself. A folder that is mounted elsewhere as a whole brings the journal along, and symbolic
        links lead to the one name."""
        if self._path is None:
            own, fix = self._url is not None or os.getpid() == self._process, "Keep it in a file."
            need(own, "memory", "the process that began it", "a fork of it", fix)
            return None
        real = os.path.realpath(self._path)
        status, mounted = os.stat(real), real.translate(_IN_MOUNTS)
        plain = stat.S_ISREG(status.st_mode)
        need(plain, self.shown, "a file", "none", "Name a file.", DataNotFoundError)
        got = f"a file with {status.st_nlink} hard links" * (status.st_nlink > 1)
        with suppress(FileNotFoundError), open(_MOUNTS, errors="surrogateescape") as lines:
            if any(line.split(" ")[4] == mounted for line in lines):
                got = "a mount point: the file alone is mounted there, without its folder"
        fix = (
            "Remove the other name (find / -samefile FILE), or mount the folder; or use PostgreSQL."
        )
        need(not got, self.shown, "a file with one name", got, fix)
        return status.st_dev, status.st_ino

    def _refusal(self, error: BaseException) -> FairveilError:
        """What the database or the system says, with the way out."""
        told = getattr(error, "strerror", None) or getattr(error, "orig", error)
        said = (str(told).strip() or type(error).__name__).splitlines()[0]
        said = "".join(letter if letter.isprintable() else "?" for letter in said)[:300]
        kind: type[FairveilError] = LedgerError
        state, expected = _state(error), "a ledger that can be used"
        fix = "Nothing was written. Look at the rights and the space, or restore a backup."
        absent = said.startswith("no such table") or state == "42P01"
        if absent or isinstance(error, FileNotFoundError):
            kind, fix = DataNotFoundError, "Begin one with Ledger.create, or name where it is."
        elif state.startswith(_TAKEN):
            kind, expected = LedgerAway, f"its turn within {PATIENCE:.0f} seconds"
            fix = "Another program holds it: find it (fuser FILE, pg_stat_activity) and end it."
        elif self._url is not None and (not state or state.startswith(_AWAY)):
            kind, expected = LedgerAway, "a server that answers"
            fix = "Check the address, the user and the password, and that the server runs."
        got = scrubbed(said, self.address or "")
        return kind.expected(expected, of=self.shown, got=got, remedy=fix)


def missing(dataset: str | None, known: list[str], shown: str) -> DataNotFoundError:
    """No such data set."""
    expected = f"one of {', '.join(map(repr, known)) or 'none'}, in {shown}"
    fix = "Name one of these, or begin one with Ledger.create."
    return DataNotFoundError.expected(expected, of="dataset", got=dataset, remedy=fix)


def _state(error: BaseException) -> str:
    """SQLite's kind of error with an s before, or the state that PostgreSQL tells."""
    found = getattr(error, "orig", error)
    code = getattr(found, "sqlite_errorcode", None)
    return getattr(found, "sqlstate", None) or "" if code is None else f"s{code & 0xFF}"


def _placed(url: object) -> tuple[Path | None, str | None]:
    """The file, or the address of a server; neither is this process's memory.

    A path, `sqlite:///people.db`, `postgresql://...`, or None. What SQLite itself would keep in
    memory is refused."""
    if url is None:
        return None, None
    given = os.fspath(url) if isinstance(url, str | os.PathLike) else ""
    text = given if isinstance(given, str) else ""
    got = repr(text)[:20] if text else type(url).__name__
    if isinstance(url, str):
        if re.match(r"postgres(ql)?://.", text, re.IGNORECASE):
            return None, text
        text = re.sub(r"^sqlite:///(?=[^?]+$)", "", text)
        if re.match(r"[A-Za-z][\w+.\-]*://|\w+:[^/\\]*@|postgres(ql)?:", text) or IN_QUERY.search(
            text
        ):
            text, got = "", f"{text.partition('://')[0]}://..." * ("://" in text) or "no path"
    fix = "Pass a path, postgresql://USER:PASSWORD@HOST/BASE, or None for memory."
    right = text not in ("", ":memory:", "file::memory:")
    need(right, "url", "a file, or an address of PostgreSQL", got, fix, InputError)
    return Path(os.path.abspath(text)), None
