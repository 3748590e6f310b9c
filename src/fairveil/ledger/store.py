"""Where a ledger's lines are kept: one table, in a file of SQLite, in PostgreSQL, or in this
process's memory, by SQLAlchemy Core.

Every use opens a connection of its own and closes it; uses of one process take turns, and a fork
waits for the turn to end. So no connection is ever shared with a child or another thread, none is
left in a transaction, and what is read is what has the name now. SQLite keeps its rollback journal
(no log beside the file that another name would not see) and waits for the disk at each commit.
Whoever writes holds the right to write before it reads: SQLite's, or a lock of PostgreSQL on the
data set's name.

Guarantees (tests/ledger/test_ledger_store.py, test_ledger_processes.py):
1. While one writer works nobody else does, in this process or another. What it appended is on the
   disk when `write` returns, and not there at all where it raised; an interrupt at any step leaves
   nothing held.
2. Lines are only added, numbered one after another; the database refuses to change or delete one,
   and to charge more than all. Before the first one is added the newest 10,000 are verified, later
   those that came since: on damaged lines, or an older copy of what was read before, nothing is
   granted.
3. A file is its owner's alone from the first moment; one that is no ledger, that has a second name
   (a hard link, a mount of the file alone) or was moved in the middle of a use is refused, and
   stays as it is.
4. A commit without an answer is never repeated: its last line is looked up.
5. No message shows the password of an address.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sqlite3
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from .._reading import kind_of
from .._urls import IN_QUERY, scrubbed, without_password
from ..errors import DataNotFoundError, FairveilError, InputError, LedgerAway, LedgerError
from .entries import MOST, NAMES, Entry, malformed, misfits, need

T = TypeVar("T")
PATIENCE = 60.0
MOST_READ, PAGE = 10_000, 500
SMALL = 16 << 20
"""Bytes of a file whose pages and indexes are verified before its first line is added."""

_WHOLE = {"number", "units", "leak", "spent", "leaked"}
TABLE = sa.Table(
    "fairveil_ledger",
    sa.MetaData(),
    sa.Column("dataset", sa.Text, primary_key=True),
    *(
        sa.Column(
            name,
            sa.BigInteger if name in _WHOLE else sa.Text,
            nullable=False,
            primary_key=name == "number",
            autoincrement=False,
            unique=name == "hash",
        )
        for name in NAMES
    ),
    sa.CheckConstraint(f"number >= 0 AND spent BETWEEN 0 AND {MOST}"),
    sa.CheckConstraint(f"leaked BETWEEN 0 AND {MOST}"),
    # With the number: else a database may rather read every line than sort the few of one spend.
    sa.Index("fairveil_ledger_spends", "dataset", "spend", "number"),
)
# Inserting "or replace" deletes without a word to the triggers on deletion: hence that on insertion.
_RULES = {
    "sqlite": (
        *(
            f"CREATE TRIGGER fairveil_ledger_{deed} BEFORE {deed} ON fairveil_ledger "
            "BEGIN SELECT RAISE(ABORT, 'a line is never changed'); END"
            for deed in ("UPDATE", "DELETE")
        ),
        "CREATE TRIGGER fairveil_ledger_INSERT BEFORE INSERT ON fairveil_ledger WHEN EXISTS (SELECT"
        " 1 FROM fairveil_ledger WHERE hash = NEW.hash OR dataset = NEW.dataset AND number >= "
        "NEW.number) BEGIN SELECT RAISE(ABORT, 'a line is never replaced'); END",
    ),
    "postgresql": (
        "CREATE FUNCTION fairveil_ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
        " EXCEPTION 'a line is never changed' USING ERRCODE = 'integrity_constraint_violation'; "
        "END $$",
        "CREATE TRIGGER fairveil_ledger_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON fairveil_ledger"
        " FOR EACH STATEMENT EXECUTE FUNCTION fairveil_ledger_refuse()",
    ),
}
for _dialect, _texts in _RULES.items():
    for _text in _texts:
        _rule = sa.DDL(_text)  # type: ignore[no-untyped-call]
        sa.event.listen(TABLE, "after_create", _rule.execute_if(dialect=_dialect))
_LINE = tuple(TABLE.c[name] for name in NAMES)

_TAKEN = f"its turn within {PATIENCE:.0f} seconds"
_WAYS_OUT: tuple[tuple[tuple[str, ...], str, str], ...] = (
    # SQLite's codes with a letter before, and states of PostgreSQL
    (
        ("s5", "s6", "55P03", "57014", "40P01"),
        _TAKEN,
        "Another program holds it: find it (fuser FILE, pg_stat_activity) and end it.",
    ),
    (("s13", "53100", "53200"), "space on the disk", "Nothing was written. Free space, try again."),
    (
        ("s26", "s11", "s17", "s24"),
        "the file of a ledger",
        "It is another file, or damaged: restore a copy, or `fairveil ledger check` an export.",
    ),
    (
        ("s8", "s3", "s14", "s23", "42501", "25006"),
        "a place that may be written to",
        "Ask for the rights to the file and its folder, or the table; or read_only=True.",
    ),
    (
        ("s19", "s20", "23"),
        "a line that keeps the rules of the table",
        "Lines are only added, each one number further, and never charge more than all.",
    ),
)
_REFUSED = (sa.exc.DBAPIError, sqlite3.Error, UnicodeError, OverflowError, MemoryError, ValueError)

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


class Page:
    """The lines of one data set while nobody else may write."""

    def __init__(self, store: Store, link: sa.Connection, dataset: str) -> None:
        self._store, self._link, self._dataset = store, link, dataset
        self.first, self.head = store._one(link, dataset, 0), store._one(link, dataset)

    def lines(self, *where: sa.ColumnElement[bool]) -> list[Entry]:
        """Those for which all of this holds, in order."""
        query = _lines(self._dataset, *where)
        return [_entry(row) for row in self._store._asked(self._link, query)]

    def of_spend(self, spend: str) -> list[Entry]:
        """The lines of one spend, in order."""
        return self.lines(TABLE.c.spend == spend)

    def naming_columns(self) -> list[Entry]:
        """Those of releases that named the columns that they protect."""
        return self.lines(TABLE.c.content.contains('"columns":["'), TABLE.c.number > 0)

    def append(self, entry: Entry) -> None:
        """Add a line: the next number, chained to the last one; what could not be read again is not
        written."""
        self._store._insert(self._link, self._dataset, self.head, entry)
        self.head = entry


class Store:
    """Lines of named data sets at one address. `read_only`: nothing is written."""

    def __init__(
        self, url: str | os.PathLike[str] | None, *, create: bool = False, read_only: bool = False
    ) -> None:
        self._path, self._url = _placed(url)
        self._read_only, self._process = read_only, os.getpid()
        self._marks: dict[str, Entry] = {}
        self._checked = self._busy = False
        self._raw: list[Any] = []
        self._name = secrets.token_hex(8)
        self.address = str(self._path) if self._path else self._url
        self.shown = without_password(self.address) if self.address else "memory"
        self._engine = self._made_engine()
        if self.address is None:  # it lives as long as a connection to it
            weakref.finalize(self, self._in_file().close)
            self._raw.clear()
        if create:
            need(
                not read_only,
                "ledger",
                "a handle that may create",
                "read_only=True",
                "Open the ledger without read_only=True.",
            )
        elif self._url is not None or self._path is not None:
            self._use(self._require_table)

    # -- what it holds -----------------------------------------------------------------------------

    def datasets(self) -> list[str]:
        """The names, sorted."""
        return self._use(self._names)

    def line(self, dataset: str, number: int | None = None) -> Entry:
        """The line of this number; None: the last one."""
        return self._use(lambda link: self._one(link, dataset, number))

    def entries(self, dataset: str, first: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Lines from number `first` on, up to the last one of now."""
        last = self.line(dataset).number
        last = last if limit is None else min(last, first + limit - 1)
        return self._between(dataset, first, last)

    def of_spend(self, dataset: str, spend: str) -> list[Entry]:
        """The lines of one spend, in order."""
        if not spend.isprintable():
            return []
        query = _lines(dataset, TABLE.c.spend == spend)
        return [_entry(row) for row in self._use(lambda link: self._asked(link, query))]

    def charges(self, dataset: str) -> list[tuple[str, str, str, int]]:
        """(kind, spend, under, units) of every line, in order: what a summary needs."""
        names = (TABLE.c.kind, TABLE.c.spend, TABLE.c.under, TABLE.c.units)
        query = sa.select(*names).where(TABLE.c.dataset == dataset).order_by(TABLE.c.number)
        rows = self._use(lambda link: self._asked(link, query))
        if not all(isinstance(row[3], int) for row in rows):
            raise malformed("whole numbers of units", "others")
        return [(str(kind), str(spend), str(under), units) for kind, spend, under, units in rows]

    # -- writing -----------------------------------------------------------------------------------

    def begin(self, dataset: str, lines: Iterable[Entry]) -> None:
        """The first lines of a data set, all of these or none; an error where it has some."""

        def work(link: sa.Connection) -> Entry:
            self._require_table(link, there=False)
            TABLE.metadata.create_all(link)
            fix = "Open it with Ledger.open, or give the new budget another name."
            free = not self._asked(link, _lines(dataset, limit=1))
            need(free, "dataset", f"a name that {self.shown} has no ledger of", dataset, fix)
            head = None
            for entry in lines:
                self._insert(link, dataset, head, entry)
                head = entry
            if head is None:
                raise malformed("a first line", "none")
            return head

        made = self._make_file()
        try:
            self._write(dataset, work)
        except BaseException:
            with suppress(OSError):
                if made and self._path and not os.stat(self._path).st_size:
                    os.unlink(self._path)
            raise

    def write(self, dataset: str, work: Callable[[Page], T]) -> T:
        """What `work` answers as the only writer of these lines; kept when it returns, undone where
        it raises."""
        answers: list[T] = []

        def paged(link: sa.Connection) -> Entry:
            self._verify(link, dataset)
            page = Page(self, link, dataset)
            answers[:] = [work(page)]
            return page.head

        if dataset not in self._marks:  # the long part, while others may write
            self._use(lambda link: self._verify(link, dataset))
        self._write(dataset, paged)
        return answers[0]

    def _write(self, dataset: str, work: Callable[[sa.Connection], Entry]) -> None:
        """In a transaction that nobody else can enter."""
        fix = "Open the ledger without read_only=True."
        need(not self._read_only, "ledger", "a handle that may write", "read_only=True", fix)
        wrote: list[Entry] = []

        def whole(link: sa.Connection) -> None:
            self._begin(link, dataset)
            before = self._found()
            wrote[:] = [work(link)]
            fix = "Nothing was written. Try again when it stays where it is."
            stays = self._found() == before
            need(stays, self.shown, "a file that stays where it is", "another one", fix)
            self._asked(link, "COMMIT")

        try:
            self._use(whole)
        except LedgerAway:
            if not wrote or not self._was_kept(dataset, wrote[0]):
                raise
        self._marks[dataset] = wrote[0]

    def _begin(self, link: sa.Connection, dataset: str) -> None:
        """Take the right to write before anything is read: between reading and charging nobody else
        can charge."""
        if self._url is None:
            self._asked(link, "BEGIN IMMEDIATE")
            return
        self._asked(link, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        digest = hashlib.sha256(b"fairveil ledger " + dataset.encode()).digest()
        for name, value in (
            ("lock_timeout", "60s"),
            ("idle_in_transaction_session_timeout", "45s"),
        ):
            self._asked(link, f"SELECT set_config('{name}', '{value}', true)")
        self._asked(
            link,
            "SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
            "WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)",
        )
        # of all who make the table, then of this data set
        for key in (0x46564C47, int.from_bytes(digest[:8], "big", signed=True)):
            self._asked(link, f"SELECT pg_advisory_xact_lock({key})")

    def _was_kept(self, dataset: str, entry: Entry) -> bool:
        """Of a commit without an answer, read under the lock that it held, so that it has ended."""

        def look(link: sa.Connection) -> bool:
            self._begin(link, dataset)
            return bool(self._asked(link, _lines(dataset, TABLE.c.hash == entry.hash)))

        try:
            return self._use(look)
        except FairveilError as error:
            got = f"none, and then: {error}"
        fix = f"Look for line {entry.number} ({entry.hash[:12]}): if it is there, it counts."
        raise LedgerAway.expected("an answer to a commit", of=self.shown, got=got, remedy=fix)

    def _insert(self, link: sa.Connection, dataset: str, head: Entry | None, entry: Entry) -> None:
        strict = Entry.from_dict(entry.to_dict())
        for sentence in misfits(head, strict):
            raise malformed("a line that follows", sentence)
        self._asked(link, sa.insert(TABLE).values(dataset=dataset, **strict.to_dict()))

    def _verify(self, link: sa.Connection, dataset: str) -> None:
        """Is what a grant relies on what a ledger wrote? The newest lines are read and recomputed,
        once; later those since."""
        of = f"{dataset} in {self.shown}"
        fix = (
            "Nothing was written. Look at `fairveil ledger check`, and restore an export or a copy."
        )

        def fits(holds: bool, got: str) -> None:
            need(holds, of, "lines that fit each other", got, fix)

        if self._path is not None and not self._checked:
            if os.stat(self._path).st_size <= SMALL:
                said = str(self._asked(link, "PRAGMA integrity_check(1)")[0][0])
                fits(said == "ok", "".join(x if x.isprintable() else "?" for x in said)[:200])
            self._checked = True
        before, last = self._marks.get(dataset), self._one(link, dataset)
        start = max(0, last.number + 1 - MOST_READ)
        if before is not None:
            there = self._asked(link, _lines(dataset, TABLE.c.hash == before.hash))
            gone = f"an older copy, or another ledger: line {before.number}, read before, is gone"
            fits(bool(there), f"{gone}. Open it again to go on")
            start = before.number + 1
        for first in range(start, last.number + 1, PAGE):
            pages = TABLE.c.number.between(first, min(first + PAGE - 1, last.number))
            for line in map(_entry, self._asked(link, _lines(dataset, pages))):
                known = before is not None or line.number == 0
                wrong = misfits(before, line) if known else [""] * (line.hash != line.digest())
                fits(not wrong, " ".join(wrong) or f"line {line.number}, which was changed")
                before = line
        fits(before == last and last.hash == last.digest(), f"line {last.number} as the last one")
        self._marks[dataset] = last

    # -- one use -----------------------------------------------------------------------------------

    def _use(self, work: Callable[[sa.Connection], T]) -> T:
        """What `work` answers on a connection of its own, in this process's turn. Its errors are
        raised outside of `except`, so that no context holds the driver's own message."""
        failure: FairveilError | None = None
        with _turns:
            fix = "End the first use before the next."
            need(not self._busy, self.shown, "one use at a time", "one inside", fix)
            try:
                try:
                    self._busy = True
                    self._found()
                    link = self._engine.connect()
                    for setting in self._settings():
                        self._asked(link, setting)
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

    def close(self) -> None:
        """Nothing is open between uses; of this process's memory nothing is lost."""
        if self.address is not None:
            self._engine.dispose()

    def _asked(self, link: sa.Connection, query: sa.Executable | str) -> list[tuple[Any, ...]]:
        """All rows of an answer. Waits while others have the file, and hears Ctrl-C meanwhile."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                found = (
                    link.exec_driver_sql(query) if isinstance(query, str) else link.execute(query)
                )
                return [tuple(row) for row in found] if found.returns_rows else []
            except sa.exc.DBAPIError as error:
                if _state(error) not in ("s5", "s6") or time.monotonic() > end:
                    raise

    def _one(self, link: sa.Connection, dataset: str, number: int | None = None) -> Entry:
        if dataset.isprintable():
            where = () if number is None else (TABLE.c.number == number,)
            for row in self._asked(link, _lines(dataset, *where, limit=1, last=True)):
                return _entry(row)
        raise missing(dataset, self._names(link), self.shown)

    def _names(self, link: sa.Connection) -> list[str]:
        names = self._asked(link, sa.select(TABLE.c.dataset).distinct())
        return sorted(str(name) for (name,) in names)

    def _between(self, dataset: str, first: int, last: int) -> Iterator[Entry]:
        for start in range(first, last + 1, PAGE):
            query = _lines(dataset, TABLE.c.number.between(start, min(start + PAGE - 1, last)))
            yield from map(_entry, self._use(partial(self._asked, query=query)))

    # -- files, servers and memory -----------------------------------------------------------------

    def _made_engine(self) -> sa.Engine:
        if self._url is not None:
            try:
                import psycopg  # noqa: F401
            except ImportError as error:
                fix, got = "pip install 'fairveil[sql]'", str(error)
                raise InputError.expected("psycopg 3", of="ledger", got=got, remedy=fix) from None
            how: dict[str, Any] = {"creator": self._at_server, "use_native_hstore": False}
        else:
            how = {"creator": self._in_file}
        kind = "postgresql+psycopg" if self._url else "sqlite"
        # What it connects is closed by `_end` alone.
        how |= {"poolclass": NullPool, "pool_reset_on_return": None, "hide_parameters": True}
        return sa.create_engine(f"{kind}://", **how)

    def _at_server(self) -> Any:
        import psycopg

        given = psycopg.conninfo.conninfo_to_dict(str(self._url))
        how: dict[str, Any] = {"client_encoding": "utf8", "prepare_threshold": None}
        how |= {} if "connect_timeout" in given else {"connect_timeout": 10}
        raw = psycopg.connect(str(self._url), autocommit=True, **how)
        self._raw.append(raw)
        return raw

    def _in_file(self) -> Any:
        place = f"file:{self._name}?mode=memory&cache=shared"
        if self._path is not None:
            place = f"{Path(os.path.realpath(self._path)).as_uri()}?mode=rw"
        how: dict[str, Any] = {"uri": True, "timeout": 0.1, "isolation_level": None}
        raw = sqlite3.connect(place, check_same_thread=False, factory=_Link, **how)
        self._raw.append(raw)
        return raw

    def _settings(self) -> tuple[str, ...]:
        """The rollback journal, and a commit that is on the disk, its folder's too."""
        if self._url is not None:
            return ("SET default_transaction_read_only = on",) if self._read_only else ()
        if self._path is None:
            return ()
        if self._read_only:
            return ("PRAGMA trusted_schema = OFF", "PRAGMA query_only = ON")
        return (
            "PRAGMA trusted_schema = OFF",
            "PRAGMA journal_mode = DELETE",
            "PRAGMA synchronous = EXTRA",
            "PRAGMA fullfsync = ON",
        )

    def _require_table(self, link: sa.Connection, *, there: bool = True) -> None:
        """Only what a ledger made is opened, and only an empty file is made one."""
        query = (
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            if self._url is None
            else f"SELECT relname FROM pg_catalog.pg_class WHERE relname = '{TABLE.name}' "
            "AND pg_catalog.pg_table_is_visible(oid)"
        )
        names = [name for (name,) in self._asked(link, query)]
        need(
            TABLE.name in names or not (names or there),
            self.shown,
            "a ledger",
            "another program's database" if names else "none of its tables",
            "Begin one with Ledger.create in a place of its own, or name where it is.",
            DataNotFoundError if there and not names else LedgerError,
        )

    def _make_file(self) -> bool:
        """Whether an empty file was made, the owner's alone; not where one was there."""
        if self._path is None:
            return False
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return False
        except (OSError, ValueError) as error:
            raise _unreachable(error, self._path) from None
        return True

    def _found(self) -> tuple[int, int] | None:
        """Which file has the name now; refused where that is no plain file, or has another name.

        By another name a crashed writer's journal would not be seen, and what one of two containers
        writes could be lost: so a file with a second link is refused, and one that is a mount point
        itself. A folder that is mounted elsewhere as a whole brings the journal along, and symbolic
        links lead to the one name."""
        if self._path is None:
            fix = (
                "Keep it in a file, Ledger.create('budget.db', ...), where other processes find it."
            )
            own = self._url is not None or os.getpid() == self._process
            need(own, "memory", "the process that began it", "a fork of it", fix)
            return None
        real = Path(os.path.realpath(self._path))
        try:
            status = os.stat(real)
        except FileNotFoundError:
            got, fix = f"no file {self._path}", "Begin one with Ledger.create, or name its file."
            raise DataNotFoundError.expected(
                "the file of a ledger", of=self.shown, got=got, remedy=fix
            ) from None
        except (OSError, ValueError) as error:
            raise _unreachable(error, self._path) from None
        fix = "By each name some lines may not be seen. Remove the other one (find / -samefile FILE), "
        fix += "or mount the folder instead of the file; or use PostgreSQL."
        got = kind_of(status.st_mode)
        plain = stat.S_ISREG(status.st_mode)
        need(plain, self.shown, "the file of a ledger", got, "Name a file.", DataNotFoundError)
        got = f"a file with {status.st_nlink} hard links"
        need(status.st_nlink == 1, self.shown, "a file with one name", got, fix)
        got = "a mount point: the file alone is mounted there, without its folder"
        need(_mount(real) == _mount(real.parent), self.shown, "a file with one name", got, fix)
        return status.st_dev, status.st_ino

    def _refusal(self, error: BaseException) -> FairveilError:
        """What the database says, with the way out."""
        said = (str(getattr(error, "orig", error)).strip() or type(error).__name__).splitlines()[0]
        text = "".join(letter if letter.isprintable() else "?" for letter in said)[:300]
        text, state = scrubbed(text, self.address or ""), _state(error)
        for states, expected, fix in _WAYS_OUT:
            if state is not None and state.startswith(states):
                kind = LedgerAway if expected is _TAKEN else LedgerError
                return kind.expected(expected, of=self.shown, got=text, remedy=fix)
        if self._url is not None and (state is None or state.startswith(("08", "57", "28", "3D"))):
            fix = "Check the address, the user and the password, and that the server runs."
            return LedgerAway.expected("a server that answers", of=self.shown, got=text, remedy=fix)
        fix = "Nothing was written. Look at the disk and the file, or the server's log."
        return LedgerError.expected(
            "a ledger that can be used", of=self.shown, got=text, remedy=fix
        )


def missing(dataset: str | None, known: list[str], shown: str) -> DataNotFoundError:
    """No such data set."""
    expected, fix = f"a ledger in {shown}, which has none", "Begin one with Ledger.create."
    if known:
        expected = f"one of {', '.join(map(repr, known))}, in {shown}"
        fix = f"Name one of these. {fix}"
    return DataNotFoundError.expected(expected, of="dataset", got=dataset, remedy=fix)


def _lines(
    dataset: str, *where: sa.ColumnElement[bool], limit: int | None = None, last: bool = False
) -> sa.Select[Any]:
    number = TABLE.c.number.desc() if last else TABLE.c.number
    query = sa.select(*_LINE).where(TABLE.c.dataset == dataset, *where).order_by(number)
    return query.limit(limit)


def _entry(row: Iterable[object]) -> Entry:
    return Entry.from_dict(dict(zip(NAMES, row, strict=True)))


def _state(error: BaseException) -> str | None:
    """SQLite's kind of error with an s before, or the state that PostgreSQL tells."""
    found = getattr(error, "orig", error)
    code = getattr(found, "sqlite_errorcode", None)
    return getattr(found, "sqlstate", None) if code is None else f"s{code & 0xFF}"


def _mount(path: Path) -> object:
    """On which mount a file or folder is: Linux tells; elsewhere the device."""
    if sys.platform == "linux":
        # such a descriptor may be closed without giving up SQLite's locks on the file
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            with open(f"/proc/self/fdinfo/{descriptor}") as lines:
                found = next((line for line in lines if line.startswith("mnt_id:")), None)
        except OSError:
            found = None
        finally:
            os.close(descriptor)
        if found is not None:
            return found
    return os.stat(path).st_dev


def _unreachable(error: Exception, path: Path) -> FairveilError:
    """What the system says of a name."""
    if isinstance(error, FileNotFoundError):
        got, fix = f"no {path.parent}", "Make the folder first."
        expected = "a folder to put the ledger in"
        return DataNotFoundError.expected(expected, of=str(path), got=got, remedy=fix)
    fix = "Name a file in a folder that you may write to, on a disk with space."
    got = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return LedgerError.expected("a file that can be reached", of=str(path), got=got, remedy=fix)


def _placed(url: object) -> tuple[Path | None, str | None]:
    """The file, or the address of a server; neither is this process's memory.

    A path, `sqlite:///people.db` (from the working folder), `sqlite:////data/people.db`,
    `postgresql://...`, or None. What SQLite itself would keep in memory is refused."""
    if url is None:
        return None, None
    text = os.fspath(url) if isinstance(url, str | os.PathLike) else None
    if not isinstance(text, str) or text in (":memory:", "file::memory:"):
        raise _unknown(type(url).__name__ if text is None else f"{text!r}")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.\-]*)://", text) if isinstance(url, str) else None
    if scheme is None:
        odd = IN_QUERY.search(text) or re.match(r"\w+:[^/\\]*@|postgres(ql)?:", text)
        if not text or (isinstance(url, str) and odd):
            raise _unknown("no path and no scheme://")
    elif scheme[1].lower() in ("postgresql", "postgres"):
        return None, text
    elif scheme[1].lower() != "sqlite":
        raise _unknown(f"{scheme[1]}://")
    else:
        rest = text[scheme.end() :]
        text = unquote(rest.removeprefix("/"))
        fix = "Write sqlite:///people.db or sqlite:////data/people.db (a ? of the name as %3F)."
        named = rest.startswith("/") and text not in ("", ":memory:") and "?" not in rest
        got = without_password(str(url))
        need(named, "url", "sqlite:///FILE", got, fix, InputError)
    path = Path(os.path.abspath(text))
    if "\0" in text:
        raise _unreachable(ValueError("a name with a zero byte"), path)
    return path, None


def _unknown(got: str) -> InputError:
    fix = "Pass a path, sqlite:///FILE, postgresql://USER:PASSWORD@HOST/DATABASE, or None for one "
    fix += "in memory."
    expected = "an address of a file or of PostgreSQL"
    return InputError.expected(expected, of="url", got=got, remedy=fix)
