"""What a server must not forget, in one SQLite file: runs, what each released, the replies that were
given, divisions, and tokens.

A reply and the release that it carries are written in one transaction before the reply leaves. So a
server that is killed at any time knows, when it is back, exactly the replies that anybody can have
seen. Replies of an open run are given to the system and not waited for on the disk: a killed process
does not lose them, a machine that loses its power may. So the boot that they belong to is on the
disk before them, and after another boot open runs are ended and charged whole (theory.md#repeats).
All else waits for the disk, and takes the replies before it along.

Guarantees (tests/serving/test_serving_records.py):
1. A release is never on the disk without its reply, nor a reply without its release.
2. One key of a run has one reply; one key of a token opens one run.
3. One server at a time has the file; a second one is refused.
4. Whether replies may be missing, because the machine was started anew, is known for certain.
5. Runs and divisions are bound to the rows that they began with, by a digest under a key that is in
   this file alone.
6. What is kept for a token is bounded: bodies of requests are not kept, and replies and openings
   have a quota of bytes that is free again when their runs end.
7. No token can be made from what is here. One that has ended, was revoked or was never issued is
   refused with the same words, and opens the data sets, protections and methods of its scope alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from .. import _checks
from ..core.events import from_dict
from ..core.promise import PROTECTS
from ..curator import LogEntry
from ..errors import DoorError, InputError, PrivacyError
from ..statement.document import StatedBound
from .holder import Limits
from .refusals import Refusal

try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None  # type: ignore[assignment]

FILE, LOCK, VERSION = "door.db", "door.lock", 2
BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Where Linux names the time since its machine was started."""
OPENING, OPEN, SETTLING, ENDED = "opening", "open", "settling", "ended"
"""Of a run: begun to be opened; reserved, and asked; over, and its ledger to be told; settled."""
STOP = "to be stopped by the holder"
DAY = 86_400.0
MOST_DIVISIONS = 1000
"""Of one token at a time."""
TABLES = """
CREATE TABLE IF NOT EXISTS facts (version INTEGER, secret BLOB, boot TEXT);
CREATE TABLE IF NOT EXISTS tokens (id TEXT PRIMARY KEY, hash BLOB, role TEXT, name TEXT, scope TEXT,
    created REAL, expires REAL, revoked REAL);
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, token TEXT, key TEXT, digest BLOB, dataset TEXT,
    rows BLOB, opening TEXT, state TEXT, how TEXT, epsilon REAL, opened REAL, touched REAL,
    begun INTEGER DEFAULT 0, secure INTEGER DEFAULT 1, sitting INTEGER DEFAULT 0, spend TEXT,
    bytes INTEGER DEFAULT 0, statement TEXT, UNIQUE (token, key));
CREATE INDEX IF NOT EXISTS states ON runs (state);
CREATE TABLE IF NOT EXISTS entries (run TEXT, number INTEGER, event TEXT, questions TEXT, batch TEXT,
    purpose TEXT, PRIMARY KEY (run, number));
CREATE TABLE IF NOT EXISTS notes (run TEXT, kind TEXT, words TEXT, PRIMARY KEY (run, kind, words));
CREATE TABLE IF NOT EXISTS replies (place INTEGER PRIMARY KEY, run TEXT, key TEXT, digest BLOB,
    act TEXT, request BLOB, body BLOB, UNIQUE (run, key));
CREATE TABLE IF NOT EXISTS divisions (id TEXT PRIMARY KEY, token TEXT, key TEXT, digest BLOB,
    dataset TEXT, rows BLOB, share REAL, coins TEXT, root BLOB, secure INTEGER, at REAL,
    UNIQUE (token, key));
"""


@dataclass(frozen=True)
class RunRecord:
    """One run, as it is written down. `how`: in words, how it ended; `rows`: a digest of those that
    it began with."""

    id: str
    token: str
    key: str
    digest: bytes
    dataset: str
    rows: bytes
    state: str
    how: str
    epsilon: float
    opened: float
    touched: float
    begun: int = 0
    secure: int = 1
    sitting: int = 0
    spend: str | None = None


@dataclass(frozen=True)
class Reply:
    """What was answered to a request of this key. `request`: where it must be done again later."""

    key: str
    digest: bytes
    act: str
    request: bytes | None
    body: bytes


COLUMNS = ", ".join(field.name for field in fields(RunRecord))


class Records:
    """The file of one server."""

    def __init__(self, folder: Path, *, serves: bool = True) -> None:
        """`serves`: of the one server; else for a look, a token or a note beside it."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / FILE
        self._lock, self._looking = threading.RLock(), threading.Lock()
        self._held = _held(folder / LOCK) if serves else None
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        self._db, self._reading = self._connected(), self._connected()
        self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA journal_size_limit = 16777216")
        self._boot, self._waits, self._synchronous = _boot(), True, ""
        self.can_write = True
        with self.writing() as db:
            for statement in TABLES.split(";"):
                db.execute(statement)
            found = db.execute("SELECT version FROM facts").fetchone()
            if found is None:
                values = (VERSION, secrets.token_bytes(32))
                db.execute("INSERT INTO facts (version, secret) VALUES (?, ?)", values)
            elif found["version"] != VERSION:
                remedy = "Serve it with the version of Fairveil that wrote it, or another folder."
                got = f"version {found['version']}"
                raise PrivacyError.expected(
                    f"version {VERSION}", of=str(self.path), got=got, remedy=remedy
                )

    def _connected(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=30.0, check_same_thread=False, isolation_level=None)
        db.row_factory = sqlite3.Row
        return db

    def close(self) -> None:
        """Let go of the file. A server that ends so has all its replies on the disk, and no boot to
        compare with."""
        with self._lock:
            if not self._waits:
                self._waits = True
                with suppress(DoorError, sqlite3.Error), self.writing() as db:
                    db.execute("UPDATE facts SET boot = NULL")
            self._db.close()
            self._reading.close()
            if self._held is not None:
                os.close(self._held)
                self._held = None

    @property
    def secret(self) -> bytes:
        """The key under which digests of rows are made."""
        return bytes(self.rows("SELECT secret FROM facts")[0]["secret"])

    @property
    def was_rebooted(self) -> bool:
        """Whether the machine was started anew since the last server: guarantee 4."""
        boot = self.rows("SELECT boot FROM facts")[0]["boot"]
        return boot is not None and boot != self._boot

    def note_boot(self) -> None:
        """From now on replies are of this boot: open runs of another one have been ended."""
        with self.writing() as db:
            db.execute("UPDATE facts SET boot = ?", (self._boot,))
        self._waits = self._boot is None

    @contextmanager
    def writing(self, *, waits: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on the disk when the block ends, or nothing is; a full disk
        is a `DoorError`. `waits` False: it may be on its way."""
        with self._lock:
            wanted = "FULL" if waits or self._waits else "NORMAL"
            if wanted != self._synchronous:
                self._db.execute(f"PRAGMA synchronous = {wanted}")
                self._synchronous = wanted
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
                self.can_write = True
            except BaseException as error:
                # SQLite itself undoes some that fail, on a full disk for example
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if not isinstance(error, sqlite3.OperationalError):
                    raise
                self.can_write = False
                remedy = "Make room on the disk; what was written before stays."
                raise DoorError.expected(
                    "a folder to write in", of="the server's records", got=str(error), remedy=remedy
                ) from error

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """What a query of constant text finds of what is written; it waits for no writer."""
        with self._looking:
            return self._reading.execute(query, tuple(values)).fetchall()

    # -- runs --------------------------------------------------------------------------------------

    def begin(self, run: RunRecord, opening: str, limits: Limits, a_day: float | None) -> None:
        """Write a run down before anything is reserved for it, where its token has room: of open
        runs, bytes, and epsilon of the day."""
        with self.writing() as db:
            live = f"SELECT COUNT(*) FROM runs WHERE state IN ('{OPENING}', '{OPEN}')"
            mine = db.execute(f"{live} AND token = ?", (run.token,)).fetchone()[0]
            if (
                mine >= limits.open_runs
                or db.execute(live).fetchone()[0] >= limits.open_runs_in_all
            ):
                raise Refusal("too-many")
            since = time.time() // DAY * DAY
            spent = db.execute(
                "SELECT TOTAL(epsilon) FROM runs WHERE token = ? AND opened >= ?",
                (run.token, since),
            ).fetchone()[0]
            if a_day is not None and spent + run.epsilon > a_day * (1 + 1e-9):
                got = f"{run.epsilon:g}, after {spent:g} today, of epsilon a day {a_day:g}"
                raise Refusal("forbidden", got=got)
            _require_room(db, run.token, len(opening), limits.kept_bytes)
            marks = ", ".join("?" * len(fields(run)))
            values = (*(getattr(run, one.name) for one in fields(run)), opening, len(opening))
            try:
                db.execute(
                    f"INSERT INTO runs ({COLUMNS}, opening, bytes) VALUES ({marks}, ?, ?)", values
                )
            except sqlite3.IntegrityError:
                raise Refusal("busy") from None  # the same key opens one now

    def drop(self, id: str) -> None:
        """Forget a run that never began: nothing was asked, and what was reserved is given back."""
        with self.writing() as db:
            for table, name in (("runs", "id"), ("replies", "run"), ("notes", "run")):
                db.execute(f"DELETE FROM {table} WHERE {name} = ?", (id,))

    def run(self, id: str) -> RunRecord | None:
        """A run by its id."""
        found = self.rows(f"SELECT {COLUMNS} FROM runs WHERE id = ?", (id,))
        return RunRecord(*found[0]) if found else None

    def run_of_key(self, token: str, key: str) -> RunRecord | None:
        """The run that a token opened under this key."""
        found = self.rows(f"SELECT {COLUMNS} FROM runs WHERE token = ? AND key = ?", (token, key))
        return RunRecord(*found[0]) if found else None

    def runs(
        self, states: Sequence[str] = (OPENING, OPEN, SETTLING, ENDED), most: int = 10_000
    ) -> list[RunRecord]:
        """Runs in these states, the latest first."""
        marks = ", ".join("?" * len(states))
        query = f"SELECT {COLUMNS} FROM runs WHERE state IN ({marks}) ORDER BY opened DESC LIMIT ?"
        return [RunRecord(*row) for row in self.rows(query, (*states, most))]

    def text(self, run: str, name: str) -> str | None:
        """A run's opening, or its statement; None where there is none, or no more."""
        assert name in ("opening", "statement")
        found = self.rows(f"SELECT {name} FROM runs WHERE id = ?", (run,))
        return found[0][name] if found else None

    def put(self, run: str, **values: object) -> None:
        """Change a run's state, statement or times."""
        with self.writing() as db:
            _put(db, run, values)

    def end(self, run: str, how: str) -> None:
        """A run is settled. Its replies go, but for that of its end, and its opening, unless a
        statement may be made of it."""
        with self.writing() as db:
            db.execute("DELETE FROM replies WHERE run = ? AND act != 'finish'", (run,))
            _put(db, run, {"state": ENDED})
            if how != "finished":
                _put(db, run, {"opening": None})
            kept = "UPDATE runs SET bytes = COALESCE(LENGTH(opening), 0) WHERE id = ?"
            db.execute(kept, (run,))

    def entries(self, run: str) -> list[LogEntry]:
        """What a run released, in turn."""
        found = self.rows("SELECT * FROM entries WHERE run = ? ORDER BY number", (run,))
        return [
            LogEntry(
                row["number"],
                from_dict(json.loads(row["event"])),
                tuple(json.loads(row["questions"])),
                row["batch"],
                row["purpose"],
            )
            for row in found
        ]

    def notes(self, run: str, kind: str) -> list[str]:
        """Marks and bounds of a run."""
        query = "SELECT words FROM notes WHERE run = ? AND kind = ? ORDER BY rowid"
        return [row["words"] for row in self.rows(query, (run, kind))]

    def note(self, run: str, bounds: Sequence[StatedBound], marks: Sequence[str]) -> None:
        """Write marks and bounds down without a reply."""
        with self.writing() as db:
            _note(db, run, bounds, marks)

    # -- replies -----------------------------------------------------------------------------------

    def reply(self, run: str, key: str) -> Reply | None:
        """What was answered to a key before."""
        found = self.rows("SELECT * FROM replies WHERE run = ? AND key = ?", (run, key))
        return _reply(found[0]) if found else None

    def stateful(self, run: str) -> list[Reply]:
        """Those of a run that must be done again, in turn."""
        query = "SELECT * FROM replies WHERE run = ? AND request IS NOT NULL ORDER BY place"
        return [_reply(row) for row in self.rows(query, (run,))]

    def require_room(self, token: str, size: int, most: int) -> None:
        """A refusal where a reply of this size would be one too many for a token."""
        with self._looking:
            kept = _kept(self._reading, token)
        if kept + size > most:
            with self.writing() as db:
                _require_room(db, token, size, most)

    def keep(
        self,
        run: str,
        reply: Reply,
        entries: Sequence[LogEntry],
        bounds: Sequence[StatedBound],
        marks: Sequence[str],
        **changes: str,
    ) -> None:
        """Write a reply and what it released down, for good: guarantee 1. `changes`: of the run's
        own state."""
        size = len(reply.body) + len(reply.request or b"")
        with self.writing(waits=bool(changes)) as db:
            for one in entries:
                event, names = json.dumps(one.event.to_dict()), json.dumps(list(one.questions))
                values = (run, one.number, event, names, one.batch, one.purpose)
                db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", values)
            _note(db, run, bounds, marks)
            told = (run, reply.key, reply.digest, reply.act, reply.request, reply.body)
            db.execute(
                "INSERT INTO replies (run, key, digest, act, request, body) VALUES (?, ?, ?, ?, ?, ?)",
                told,
            )
            db.execute("UPDATE runs SET bytes = bytes + ? WHERE id = ?", (size, run))
            _put(db, run, {"touched": time.time(), **changes})

    def forget(self, before: float) -> None:
        """Delete what was kept for requests that are repeated and for statements, of runs that ended
        and were last asked before this time, and divisions that are older while no run is open. What
        runs released stays, as do the statements that were given."""
        old = "state = ? AND touched < ?"
        with self.writing() as db:
            query = f"DELETE FROM replies WHERE run IN (SELECT id FROM runs WHERE {old})"
            db.execute(query, (ENDED, before))
            db.execute(f"UPDATE runs SET opening = NULL, bytes = 0 WHERE {old}", (ENDED, before))
            db.execute(
                "DELETE FROM divisions WHERE at < ? AND NOT EXISTS (SELECT 1 FROM runs WHERE state "
                "!= ?)",
                (before, ENDED),
            )
        with self._lock, suppress(sqlite3.Error):
            self._db.execute("PRAGMA incremental_vacuum").fetchall()

    # -- divisions ---------------------------------------------------------------------------------

    def divide(self, token: str, key: str, digest: bytes, values: Sequence[Any]) -> str:
        """A new division, or the one that this key made before; `values`: data set, digest of its
        rows, share, coins, root, and whether they are secret."""
        with self.writing() as db:
            query = "SELECT * FROM divisions WHERE token = ? AND key = ?"
            known = db.execute(query, (token, key)).fetchone()
            if known is not None:
                if bytes(known["digest"]) != digest:
                    raise Refusal("key-reused")
                require_same(known["rows"], bytes(values[1]))
                return str(known["id"])
            count = db.execute(
                "SELECT COUNT(*) FROM divisions WHERE token = ?", (token,)
            ).fetchone()
            if count[0] >= MOST_DIVISIONS:
                raise Refusal("too-many")
            told = (secrets.token_hex(16), token, key, digest, *values, time.time())
            db.execute("INSERT INTO divisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", told)
            return str(told[0])

    def division(self, id: str) -> Any:
        """A division by its id: a row, or a refusal."""
        found = self.rows("SELECT * FROM divisions WHERE id = ?", (id,))
        if not found:
            raise Refusal("not-found")
        return found[0]


def require_same(began: bytes, rows: bytes) -> None:
    """A refusal where these are not the rows that a run or a division began with: guarantee 5."""
    if not hmac.compare_digest(bytes(began), rows):
        raise Refusal("rows-changed")


def _kept(db: sqlite3.Connection, token: str) -> int:
    return int(db.execute("SELECT TOTAL(bytes) FROM runs WHERE token = ?", (token,)).fetchone()[0])


def _require_room(db: sqlite3.Connection, token: str, size: int, most: int) -> None:
    """Openings of runs that ended, which are kept for their statements, go first."""
    if _kept(db, token) + size > most:
        gone = "UPDATE runs SET opening = NULL, bytes = 0 WHERE token = ? AND state = ?"
        db.execute(gone, (token, ENDED))
        if _kept(db, token) + size > most:
            raise Refusal("no-room")


def _put(db: sqlite3.Connection, run: str, values: dict[str, Any]) -> None:
    assert set(values) <= {"statement", "opening", *(field.name for field in fields(RunRecord))}
    names = ", ".join(f"{name} = ?" for name in values)
    db.execute(f"UPDATE runs SET {names} WHERE id = ?", (*values.values(), run))


def _note(
    db: sqlite3.Connection, run: str, bounds: Sequence[StatedBound], marks: Sequence[str]
) -> None:
    told = [("bound", json.dumps(asdict(bound))) for bound in bounds]
    told += [("mark", mark) for mark in marks]
    if told:
        values = [(run, *one) for one in told]
        db.executemany("INSERT OR IGNORE INTO notes VALUES (?, ?, ?)", values)


def _reply(row: sqlite3.Row) -> Reply:
    return Reply(*(row[field.name] for field in fields(Reply)))


def _boot() -> str | None:
    """What tells this start of the machine from any other; None where the system does not say."""
    try:
        return BOOT.read_text("ascii").strip() or None
    except (OSError, UnicodeError):
        return None


def _held(path: Path) -> int | None:
    """A lock that ends with the process, however it ends."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            remedy = "Stop the other server first, or give this one a folder of its own."
            of, expected = str(path.parent), "a folder that no other server has"
            raise PrivacyError.expected(expected, of=of, got="one in use", remedy=remedy) from None
    return file


# -- tokens ----------------------------------------------------------------------------------------

ROLES = ("analyst", "auditor", "holder")
METHODS = ("models", "counts")
"""What a run may ask: all of the catalogue; or counts alone, with decisions of finished models."""
_SHAPE = re.compile(r"fv_([0-9a-f]{12})_([0-9a-f]{64})")


@dataclass(frozen=True)
class Scope:
    """What an analyst's token opens. None: everything that the holder serves."""

    datasets: tuple[str, ...] | None = None
    protects: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    epsilon_a_day: float | None = None

    def __post_init__(self) -> None:
        for one in self.protects or ():
            _checks.one_of(PROTECTS, protects=one)
        for one in self.methods or ():
            _checks.one_of(METHODS, methods=one)
        if self.epsilon_a_day is not None:
            _checks.positive(epsilon_a_day=self.epsilon_a_day)

    @staticmethod
    def of(text: str) -> Scope:
        """The inverse of `to_json`."""
        values = json.loads(text)
        told: dict[str, Any] = {
            name: tuple(one) if isinstance(one, list) else one for name, one in values.items()
        }
        return Scope(**told)

    def to_json(self) -> str:
        """As it is written down."""
        return json.dumps(asdict(self))

    @property
    def words(self) -> str:
        """For a page or a terminal."""
        parts = ["all data sets" if self.datasets is None else ", ".join(self.datasets)]
        parts += [", ".join(self.protects)] if self.protects is not None else []
        parts += [" and ".join(self.methods) + " only"] if self.methods is not None else []
        parts += [f"epsilon {self.epsilon_a_day:g} a day"] if self.epsilon_a_day is not None else []
        return "; ".join(parts)


@dataclass(frozen=True)
class Token:
    """A token without its secret."""

    id: str
    role: str
    name: str
    scope: Scope
    created: float
    expires: float | None
    revoked: float | None

    def holds_at(self, now: float) -> bool:
        """Whether it opens anything."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def may_see(self, dataset: str) -> bool:
        """Whether it may know of this data set."""
        return self.scope.datasets is None or dataset in self.scope.datasets

    def require_method(self, method: str) -> None:
        """An act of this method is within the scope; whoever may ask all may count."""
        allowed = METHODS if self.scope.methods is None else self.scope.methods
        if method not in allowed and (method != "counts" or "models" not in allowed):
            raise Refusal("forbidden", got=method)

    def require_protection(self, protects: str) -> None:
        """A run that protects this is within the scope."""
        if self.scope.protects is not None and protects not in self.scope.protects:
            raise Refusal("forbidden", got=f"protects={protects!r}")


class Tokens:
    """The tokens of one server: 256 secret bits each, shown once. On the disk is their SHA-256, for
    no guess of so many bits needs to be made slow."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def issue(
        self,
        name: str,
        role: str = "analyst",
        *,
        days: float | None = 90.0,
        scope: Scope | None = None,
    ) -> str:
        """A new token: the one time that its secret is seen."""
        _checks.one_of(ROLES, role=role)
        if not name.strip() or not name.isprintable() or len(name) > 100:
            remedy = "Say whose it is: 'R. Weber, university'."
            raise InputError.expected(
                "a line of at most 100 letters", of="name", got=name, remedy=remedy
            )
        if days is not None:
            _checks.positive(days=days)
        id, secret, now = secrets.token_hex(6), secrets.token_hex(32), time.time()
        expires = None if days is None else now + days * DAY
        values = (id, _hash(secret), role, name, (scope or Scope()).to_json(), now, expires)
        with self._records.writing() as db:
            db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", values)
        return f"fv_{id}_{secret}"

    def of(self, given: str | None) -> Token:
        """The token that was shown; a refusal that says nothing where it opens nothing."""
        shape = _SHAPE.fullmatch(given or "")
        id, secret = shape.groups() if shape else ("", "")
        found = self._records.rows("SELECT * FROM tokens WHERE id = ?", (id,))
        known = bytes(found[0]["hash"]) if found else bytes(32)
        right = hmac.compare_digest(known, _hash(secret))
        token = _token(found[0]) if found else None
        if token is None or not right or not token.holds_at(time.time()):
            raise Refusal("no-token")
        return token

    def all(self) -> list[Token]:
        """Every token, the latest first."""
        found = self._records.rows("SELECT * FROM tokens ORDER BY created DESC")
        return [_token(row) for row in found]

    def names(self) -> dict[str, str]:
        """Whose each token is."""
        return {token.id: token.name for token in self.all()}

    def revoke(self, id: str) -> bool:
        """End a token now; whether there was one that held."""
        query = "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL"
        with self._records.writing() as db:
            return db.execute(query, (time.time(), id)).rowcount == 1


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _token(row: sqlite3.Row) -> Token:
    scope = Scope.of(row["scope"])
    names = ("created", "expires", "revoked")
    return Token(row["id"], row["role"], row["name"], scope, *(row[name] for name in names))
