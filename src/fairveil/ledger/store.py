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
from collections.abc import Callable, Iterator
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
from .entries import MOST, NAMES, NUMBERS, Entry, malformed, misfits, need

T = TypeVar("T")
PATIENCE = 60.0
MOST_READ, PAGE = 10_000, 500
SMALL = 16 << 20
"""Bytes of a file whose pages and indexes are verified before its first line is added."""

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
_RULE = "CREATE TRIGGER fairveil_ledger_{0} BEFORE {0} ON fairveil_ledger {1} "
_NEVER = "BEGIN SELECT RAISE(ABORT, 'a line is never changed'); END"
_REPLACED = """WHEN EXISTS (SELECT 1 FROM fairveil_ledger WHERE hash = NEW.hash
    OR dataset = NEW.dataset AND number >= NEW.number)"""
_RULES = (
    ("sqlite", _RULE.format("UPDATE", _NEVER)),
    ("sqlite", _RULE.format("DELETE", _NEVER)),
    ("sqlite", _RULE.format("INSERT", _REPLACED) + _NEVER),
    (
        "postgresql",
        """CREATE FUNCTION fairveil_ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'a line is never changed' USING ERRCODE = 'integrity_constraint_violation';
        END $$""",
    ),
    (
        "postgresql",
        """CREATE TRIGGER fairveil_ledger_keep BEFORE UPDATE OR DELETE OR TRUNCATE
        ON fairveil_ledger FOR EACH STATEMENT EXECUTE FUNCTION fairveil_ledger_refuse()""",
    ),
)
for _dialect, _text in _RULES:
    _rule = sa.DDL(_text)  # type: ignore[no-untyped-call]
    sa.event.listen(TABLE, "after_create", _rule.execute_if(dialect=_dialect))

# The rollback journal, and a commit that is on the disk, its folder's too.
_SETTINGS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",
)
# In one message: the right to write is of all who make the table, then of this data set.
_BEGIN = """BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '60s';
SET LOCAL idle_in_transaction_session_timeout = '45s';
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
SELECT pg_advisory_xact_lock(1179012167); SELECT pg_advisory_xact_lock({})"""

# SQLite's codes with an s before, and PostgreSQL's: of what others hold, and of servers that are away.
_TAKEN = ("s5", "s6", "55P03", "57014", "40P01")
_AWAY = ("08", "57", "28", "3D")
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
    """The lines of one data set while nobody else may write. `head`: the last one, None where the
    ledger begins."""

    def __init__(self, store: Store, link: sa.Connection, dataset: str, head: Entry | None) -> None:
        self._store, self._link, self._dataset, self._head = store, link, dataset, head

    @property
    def first(self) -> Entry:
        """The first line."""
        return self._store._one(self._link, self._dataset, 0)

    @property
    def head(self) -> Entry:
        """The last line."""
        if self._head is None:
            raise malformed("a first line", "none")
        return self._head

    def of_spend(self, spend: str) -> list[Entry]:
        """The lines of one spend, in order."""
        return self._store._lines(self._link, self._dataset, TABLE.c.spend == spend)

    def naming_columns(self) -> list[Entry]:
        """The first release that named the columns that it protects, if there is one."""
        named = TABLE.c.content.startswith('{"columns":["')  # names are sorted: it comes first
        return self._store._lines(self._link, self._dataset, named, limit=1)

    def append(self, entry: Entry) -> None:
        """Add a line: the next number, chained to the last one; what could not be read again is not
        written."""
        strict = Entry.from_dict(entry.to_dict())
        _ = strict.values
        for sentence in misfits(self._head, strict):
            raise malformed("a line that follows", sentence)
        line = sa.insert(TABLE).values(dataset=self._dataset, **strict.to_dict())
        self._store._asked(self._link, line)
        self._head = strict


class Store:
    """Lines of named data sets at one address. `read_only`: nothing is written."""

    def __init__(self, url: str | os.PathLike[str] | None, *, read_only: bool = False) -> None:
        self._path, self._url = _placed(url)
        self._read_only, self._process = read_only, os.getpid()
        self._marks: dict[str, Entry] = {}
        self._known = self._sound = self._busy = False
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
            raise InputError.expected(
                "psycopg 3", of="ledger", got=str(error), remedy=fix
            ) from None
        if self.address is None:  # it lives as long as a connection to it
            weakref.finalize(self, self._in_file().close)
            self._raw.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        fix = "Keep it in a file, Ledger.create('budget.db', ...), where other processes find it."
        need(self.address is not None, "pickle", "a ledger in a store", "one in memory", fix)
        return partial(Store, self._path or self._url, read_only=self._read_only), ()

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
        for start in range(first, last + 1, PAGE):
            pages = TABLE.c.number.between(start, min(start + PAGE - 1, last))
            yield from self._use(partial(self._lines, dataset=dataset, where=pages))

    def of_spend(self, dataset: str, spend: str) -> list[Entry]:
        """The lines of one spend, in order."""
        if not spend.isprintable():
            return []
        return self._use(lambda link: self._lines(link, dataset, TABLE.c.spend == spend))

    def charges(self, dataset: str) -> list[tuple[str, str, str, int]]:
        """(kind, spend, under, units) of every line, in order: what a summary needs."""
        names = (TABLE.c.kind, TABLE.c.spend, TABLE.c.under, TABLE.c.units)
        query = sa.select(*names).where(TABLE.c.dataset == dataset).order_by(TABLE.c.number)
        rows = self._use(lambda link: self._asked(link, query))
        if not all(isinstance(row[3], int) for row in rows):
            raise malformed("whole numbers of units", "others")
        return [(str(kind), str(spend), str(under), units) for kind, spend, under, units in rows]

    # -- writing -----------------------------------------------------------------------------------

    def write(self, dataset: str, work: Callable[[Page], T], *, begins: bool = False) -> T:
        """What `work` answers as the only writer of these lines; kept when it returns, undone where
        it raises. `begins`: the first lines of a data set; an error where it has some."""
        fix = "Open the ledger without read_only=True."
        need(not self._read_only, "ledger", "a handle that may write", "read_only=True", fix)
        done: list[tuple[Entry, T]] = []

        def whole(link: sa.Connection) -> None:
            self._begin(link, dataset)
            before = self._found()
            head = None
            if begins:
                self._make_table(link, dataset)
            else:
                head = self._verified(link, dataset)
            page = Page(self, link, dataset, head)
            answer = work(page)
            done.append((page.head, answer))
            fix = "Nothing was written. Try again when it stays where it is."
            stays = self._found() == before
            need(stays, self.shown, "a file that stays where it is", "another one", fix)
            self._asked(link, "COMMIT")

        if not begins and dataset not in self._marks:  # the long part, while others may write
            self._use(lambda link: self._verified(link, dataset))
        made = begins and self._make_file()
        try:
            self._use(whole, begins=begins)
        except BaseException as error:
            away = isinstance(error, LedgerAway) and done
            if not away or not self._was_kept(dataset, done[0][0]):
                with suppress(OSError):
                    if made and self._path and not os.stat(self._path).st_size:
                        os.unlink(self._path)
                raise
        self._marks[dataset], answer = done[0]
        return answer

    def _make_table(self, link: sa.Connection, dataset: str) -> None:
        """Make the table where there is none; an error where it has lines of this data set."""
        self._require_table(link, there=False)
        TABLE.metadata.create_all(link)
        fix = "Open it with Ledger.open, or give the new budget another name."
        free = not self._lines(link, dataset, limit=1)
        need(free, "dataset", f"a name that {self.shown} has no ledger of", dataset, fix)

    def _begin(self, link: sa.Connection, dataset: str) -> None:
        """Take the right to write before anything is read: between reading and charging nobody else
        can charge."""
        if self._url is None:
            self._asked(link, "BEGIN IMMEDIATE")
        else:
            digest = hashlib.sha256(b"fairveil ledger " + dataset.encode()).digest()
            self._asked(link, _BEGIN.format(int.from_bytes(digest[:8], "big", signed=True)))

    def _was_kept(self, dataset: str, entry: Entry) -> bool:
        """Of a commit without an answer, read under the lock that it held, so that it has ended."""

        def look(link: sa.Connection) -> bool:
            self._begin(link, dataset)
            return bool(self._lines(link, dataset, TABLE.c.hash == entry.hash))

        try:
            return self._use(look)
        except FairveilError as error:
            got = f"none, and then: {error}"
        fix = f"Look for line {entry.number} ({entry.hash[:12]}): if it is there, it counts."
        raise LedgerAway.expected("an answer to a commit", of=self.shown, got=got, remedy=fix)

    def _verified(self, link: sa.Connection, dataset: str) -> Entry:
        """The last line; an error where what a grant relies on is not what a ledger wrote. The newest
        lines are read and recomputed, once; later those since."""

        def fits(holds: bool, got: str) -> None:
            of, expected = f"{dataset} in {self.shown}", "lines that fit each other"
            fix = "Nothing was written. Look at `fairveil ledger check`, and restore an export."
            need(holds, of, expected, got, fix)

        if self._path is not None and not self._sound:
            if os.stat(self._path).st_size <= SMALL:
                said = str(self._asked(link, "PRAGMA integrity_check(1)")[0][0])
                fits(said == "ok", _printable(said))
            self._sound = True
        before, last = self._marks.get(dataset), self._one(link, dataset)
        start = max(0, last.number + 1 - MOST_READ)
        if before is not None:
            there = self._lines(link, dataset, TABLE.c.hash == before.hash)
            gone = f"an older copy, or another ledger: line {before.number}, read before, is gone"
            fits(bool(there), f"{gone}. Open it again to go on")
            start = before.number + 1
        for first in range(start, last.number + 1, PAGE):
            pages = TABLE.c.number.between(first, min(first + PAGE - 1, last.number))
            for line in self._lines(link, dataset, pages):
                known = before is not None or line.number == 0
                wrong = misfits(before, line) if known else [""] * (line.hash != line.digest())
                fits(not wrong, " ".join(wrong) or f"line {line.number}, which was changed")
                before = line
        fits(before == last and last.hash == last.digest(), f"line {last.number} as the last one")
        self._marks[dataset] = last
        return last

    # -- one use -----------------------------------------------------------------------------------

    def _use(self, work: Callable[[sa.Connection], T], *, begins: bool = False) -> T:
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
                    if not (self._known or begins):
                        self._require_table(link)
                    answer = work(link)
                    self._known = True
                    return answer
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

    def _asked(self, link: sa.Connection, query: sa.Executable | str) -> list[tuple[Any, ...]]:
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
        self,
        link: sa.Connection,
        dataset: str,
        where: sa.ColumnElement[bool] | None = None,
        *,
        limit: int | None = None,
        last: bool = False,
    ) -> list[Entry]:
        """Those for which this holds, in order; `last`: backwards."""
        number = TABLE.c.number.desc() if last else TABLE.c.number
        query = sa.select(*(TABLE.c[name] for name in NAMES)).where(TABLE.c.dataset == dataset)
        query = query if where is None else query.where(where)
        rows = self._asked(link, query.order_by(number).limit(limit))
        return [Entry.from_dict(dict(zip(NAMES, row, strict=True))) for row in rows]

    def _one(self, link: sa.Connection, dataset: str, number: int | None = None) -> Entry:
        where = None if number is None else TABLE.c.number == number
        if dataset.isprintable():
            for line in self._lines(link, dataset, where, limit=1, last=True):
                return line
        raise missing(dataset, self._names(link), self.shown)

    def _names(self, link: sa.Connection) -> list[str]:
        names = self._asked(link, sa.select(TABLE.c.dataset).distinct())
        return sorted(str(name) for (name,) in names)

    # -- files, servers and memory -----------------------------------------------------------------

    def _at_server(self) -> Any:
        import psycopg

        given = psycopg.conninfo.conninfo_to_dict(str(self._url))
        how: dict[str, Any] = {"client_encoding": "utf8", "prepare_threshold": None}
        how |= {} if "connect_timeout" in given else {"connect_timeout": 10}
        raw = psycopg.connect(str(self._url), autocommit=True, **how)
        self._raw.append(raw)
        return raw

    def _in_file(self) -> Any:
        place = self._memory
        if self._path is not None:
            place = f"{Path(os.path.realpath(self._path)).as_uri()}?mode=rw"
        how: dict[str, Any] = {"uri": True, "timeout": 0.1, "isolation_level": None}
        raw = sqlite3.connect(place, check_same_thread=False, factory=_Link, **how)
        self._raw.append(raw)
        return raw

    def _settings(self) -> tuple[str, ...]:
        if self._url is not None:
            return ("SET default_transaction_read_only = on",) if self._read_only else ()
        if self._path is None:
            return ()
        return (_SETTINGS[0], "PRAGMA query_only = ON") if self._read_only else _SETTINGS

    def _require_table(self, link: sa.Connection, *, there: bool = True) -> None:
        """Only what a ledger made is opened, and only an empty file is made one."""
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        if self._url is not None:
            query = f"SELECT relname FROM pg_catalog.pg_class WHERE relname = '{TABLE.name}' AND "
            query += "pg_catalog.pg_table_is_visible(oid)"
        names = [name for (name,) in self._asked(link, query)]
        got = "another program's database" if names else "none of its tables"
        fix = "Begin one with Ledger.create in a place of its own, or name where it is."
        kind = DataNotFoundError if there and not names else LedgerError
        right = TABLE.name in names or not (names or there)
        need(right, self.shown, "a ledger", got, fix, kind)

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
            fix = "Keep it in a file, Ledger.create('budget.db', ...), for other processes."
            own = self._url is not None or os.getpid() == self._process
            need(own, "memory", "the process that began it", "a fork of it", fix)
            return None
        real = Path(os.path.realpath(self._path))
        try:
            status, alone = os.stat(real), _mount(real) != _mount(real.parent)
        except (OSError, ValueError) as error:
            raise _unreachable(error, self._path) from None
        plain, got = stat.S_ISREG(status.st_mode), kind_of(status.st_mode)
        need(plain, self.shown, "the file of a ledger", got, "Name a file.", DataNotFoundError)
        fix = "By each name some lines may not be seen. Remove the other one (find / -samefile FILE), "
        fix += "or mount the folder instead of the file; or use PostgreSQL."
        got = "a mount point: the file alone is mounted there, without its folder"
        got = got if status.st_nlink == 1 else f"a file with {status.st_nlink} hard links"
        single = status.st_nlink == 1 and not alone
        need(single, self.shown, "a file with one name", got, fix)
        return status.st_dev, status.st_ino

    def _refusal(self, error: BaseException) -> FairveilError:
        """What the database says, with the way out."""
        said = (str(getattr(error, "orig", error)).strip() or type(error).__name__).splitlines()[0]
        got = scrubbed(_printable(said), self.address or "")
        state, kind, expected = _state(error), LedgerError, "a ledger that can be used"
        fix = "Nothing was written. Look at the rights and the space, or restore an export of it."
        if state is not None and state.startswith(_TAKEN):
            kind, expected = LedgerAway, f"its turn within {PATIENCE:.0f} seconds"
            fix = "Another program holds it: find it (fuser FILE, pg_stat_activity) and end it."
        elif self._url is not None and (state is None or state.startswith(_AWAY)):
            kind, expected = LedgerAway, "a server that answers"
            fix = "Check the address, the user and the password, and that the server runs."
        return kind.expected(expected, of=self.shown, got=got, remedy=fix)


def _printable(said: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in said)[:300]


def missing(dataset: str | None, known: list[str], shown: str) -> DataNotFoundError:
    """No such data set."""
    expected, fix = f"a ledger in {shown}, which has none", "Begin one with Ledger.create."
    if known:
        expected = f"one of {', '.join(map(repr, known))}, in {shown}"
        fix = f"Name one of these. {fix}"
    return DataNotFoundError.expected(expected, of="dataset", got=dataset, remedy=fix)


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
            lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
            return next(line for line in lines if line.startswith("mnt_id:"))
        except (OSError, StopIteration):
            pass
        finally:
            os.close(descriptor)
    return os.stat(path).st_dev


def _unreachable(error: Exception, path: Path) -> FairveilError:
    """What the system says of a name."""
    kind: type[FairveilError] = LedgerError
    fix = "Name a file in a folder that you may write to, on a disk with space."
    if isinstance(error, FileNotFoundError):
        kind, fix = DataNotFoundError, "Begin one with Ledger.create, or name its file."
    got = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return kind.expected("a file that can be reached", of=str(path), got=got, remedy=fix)


def _placed(url: object) -> tuple[Path | None, str | None]:
    """The file, or the address of a server; neither is this process's memory.

    A path, `sqlite:///people.db` (from the working folder), `sqlite:////data/people.db`,
    `postgresql://...`, or None. What SQLite itself would keep in memory is refused."""
    if url is None:
        return None, None
    given = os.fspath(url) if isinstance(url, str | os.PathLike) else ""
    text = given if isinstance(given, str) else ""
    fix = "Pass a path, sqlite:///FILE (a ? of the name as %3F), postgresql://USER:PASSWORD@HOST/BASE, "
    got, fix = repr(text)[:20] if text else type(url).__name__, f"{fix}or None for one in memory."
    if isinstance(url, str):
        scheme, _, rest = text.partition("://")
        if rest and scheme.lower() in ("postgresql", "postgres"):
            return None, text
        named = re.fullmatch(r"sqlite:///([^?]+)", text, re.IGNORECASE)
        address = re.match(r"[A-Za-z][\w+.\-]*://|\w+:[^/\\]*@|postgres(ql)?:", text)
        if named:
            text = unquote(named[1])
        elif address or IN_QUERY.search(text):
            text, got = "", f"{scheme}://..." if rest else "no path and no scheme://"
    right = text not in ("", ":memory:", "file::memory:")
    need(right, "url", "an address of a file or of PostgreSQL", got, fix, InputError)
    path = Path(os.path.abspath(text))
    if "\0" in text:
        raise _unreachable(ValueError("a name with a zero byte"), path)
    return path, None
