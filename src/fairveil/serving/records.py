"""What a server must not forget, in one SQLite file: runs and what was asked of them, divisions, and
tokens. What a run released, and its answers, are in the journal of its curator, a file beside it.

A release is in the journal, on the disk, before its reply leaves; the request is written here after
it. So a server that is killed at any time goes on by asking its curator the same again, which gives
again what the journal has and draws nothing anew (theory.md#repeats).

Guarantees (tests/serving/test_serving_crashes.py, tests/serving/test_serving_limits.py):
1. One key of a run is one request, and one key of a token opens one run.
2. One server at a time has the file; a second one is refused.
3. Runs and divisions are bound to the rows that they began with, by a digest under a key that is in
   this file alone.
4. What is kept for a token is bounded: requests and openings have a quota of bytes that is free
   again when their runs end, and a request that was refused is not kept.
5. Nothing is begun that the disk has no room for; what cannot be written is refused and changes
   nothing.
6. No token can be made from what is here. One that has ended, was revoked or was never issued is
   refused with the same words, and opens the data sets, protections and methods of its scope alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from .. import _checks
from ..core.errors import need
from ..core.promise import PROTECTS
from ..errors import DoorError, PrivacyError
from .holder import Limits
from .refusals import Refusal

try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None  # type: ignore[assignment]

FILE, LOCK, JOURNALS, VERSION = "door.db", "door.lock", "runs", 3
OPENING, OPEN, SETTLING, ENDED = "opening", "open", "settling", "ended"
"""Of a run: begun to be opened; reserved, and asked; over, and its ledger to be told; settled."""
STOP, FINISHED = "to be stopped by the holder", "finished"
DAY, FREE = 86_400.0, 1 << 20
"""Seconds, and bytes that the disk must have left."""
MOST_DIVISIONS = 1000
"""Of one token at a time."""
TABLES = """
CREATE TABLE IF NOT EXISTS facts (version INTEGER, secret BLOB);
CREATE TABLE IF NOT EXISTS tokens (id TEXT PRIMARY KEY, hash BLOB, role TEXT, name TEXT, scope TEXT,
    created REAL, expires REAL, revoked REAL);
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, token TEXT, key TEXT, digest BLOB, dataset TEXT,
    rows BLOB, state TEXT, how TEXT, epsilon REAL, opened REAL, touched REAL, spend TEXT, sitting INTEGER, released TEXT,
    opening TEXT, statement TEXT, bytes INTEGER DEFAULT 0, UNIQUE (token, key));
CREATE INDEX IF NOT EXISTS states ON runs (state);
CREATE TABLE IF NOT EXISTS requests (place INTEGER PRIMARY KEY, run TEXT, key TEXT, digest BLOB,
    act TEXT, body BLOB, UNIQUE (run, key));
CREATE TABLE IF NOT EXISTS divisions (id TEXT PRIMARY KEY, token TEXT, key TEXT, digest BLOB,
    dataset TEXT, rows BLOB, share REAL, coins TEXT, root BLOB, secure INTEGER, at REAL,
    UNIQUE (token, key));
"""


@dataclass(frozen=True)
class RunRecord:
    """One run, as it is written down. `rows`: a digest of those that it began with; `how`: in words,
    how it ended; `sitting`, `released`: of its journal, and its events as JSON, once it ended."""

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
    spend: str | None = None
    sitting: int = 0
    released: str | None = None


COLUMNS = ", ".join(field.name for field in fields(RunRecord))


class Records:
    """The file of one server."""

    def __init__(self, folder: Path, *, serves: bool = True) -> None:
        """`serves`: of the one server; else for a look, a token or a note beside it."""
        for place in (folder, folder / JOURNALS):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / FILE
        self._lock, self._looking = threading.RLock(), threading.Lock()
        self._held = _held(folder / LOCK) if serves else None
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        self._db, self._reading = self._connected(), self._connected()
        settings = ("auto_vacuum = INCREMENTAL", "journal_mode = WAL", "synchronous = FULL")
        for setting in (*settings, "journal_size_limit = 16777216"):
            self._db.execute(f"PRAGMA {setting}")
        self.can_write = True
        with self.writing() as db:
            for statement in TABLES.split(";"):
                db.execute(statement)
            found = db.execute("SELECT version FROM facts").fetchone()
            if found is None:
                told = (VERSION, secrets.token_bytes(32))
                db.execute("INSERT INTO facts VALUES (?, ?)", told)
            known, got = found is None or found["version"] == VERSION, found and found["version"]
            fix = "Serve it with the version of Fairveil that wrote it, or another folder."
            expected, got = f"version {VERSION}", f"version {got}"
            need(known, expected, of=str(self.path), got=got, fix=fix, error=PrivacyError)

    def _connected(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=30.0, check_same_thread=False, isolation_level=None)
        db.row_factory = sqlite3.Row
        return db

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()
            self._reading.close()
            if self._held is not None:
                os.close(self._held)
                self._held = None

    @property
    def secret(self) -> bytes:
        """The key under which digests of rows are made."""
        return bytes(self.rows("SELECT secret FROM facts")[0]["secret"])

    def journal(self, run: str) -> Path:
        """The file of a run's journal."""
        return self.path.parent / JOURNALS / f"{run}.journal"

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on the disk when the block ends, or nothing is; a full disk
        is a `DoorError`."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
                self.can_write = True
            except BaseException as error:
                # SQLite itself undoes some that fail, on a full disk for example
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise self._full(str(error)) from error
                raise

    def require_disk(self, size: int = 0) -> None:
        """An error where the disk has no room for so many bytes, and for others."""
        free = shutil.disk_usage(self.path.parent).free
        if free < size + FREE:
            raise self._full(f"{free} bytes that are free")

    def _full(self, got: str) -> DoorError:
        self.can_write = False
        fix, of = "Make room on the disk; what was written before stays.", "the server's records"
        return DoorError.expected("a folder to write in", of=of, got=got, remedy=fix)

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """What a query of constant text finds of what is written; it waits for no writer."""
        with self._looking:
            return self._reading.execute(query, values).fetchall()

    # -- runs --------------------------------------------------------------------------------------

    def begin(self, run: RunRecord, opening: str, limits: Limits, a_day: float | None) -> None:
        """Write a run down before anything is reserved for it, where its token has room: of open
        runs, bytes, and epsilon of the day."""
        self.require_disk(len(opening))
        live = f"FROM runs WHERE state IN ('{OPENING}', '{OPEN}')"
        with self.writing() as db:
            self.require_room(run.token, len(opening), limits)
            mine = _one(db, f"SELECT COUNT(*) {live} AND token = ?", run.token)
            if (
                mine >= limits.open_runs
                or _one(db, f"SELECT COUNT(*) {live}") >= limits.open_runs_in_all
            ):
                raise Refusal("too-many")
            since, query = time.time() // DAY * DAY, "SELECT TOTAL(epsilon) FROM runs"
            spent = _one(db, f"{query} WHERE token = ? AND opened >= ?", run.token, since)
            if a_day is not None and spent + run.epsilon > a_day * (1 + 1e-9):
                got = f"{run.epsilon:g}, after {spent:g} today, of epsilon a day {a_day:g}"
                raise Refusal("forbidden", got=got)
            values = (*(getattr(run, one.name) for one in fields(run)), opening, len(opening))
            marks = ", ".join("?" * len(values))
            try:
                db.execute(f"INSERT INTO runs ({COLUMNS}, opening, bytes) VALUES ({marks})", values)
            except sqlite3.IntegrityError:
                raise Refusal("busy") from None  # the same key opens one now

    def require_room(self, token: str, size: int, limits: Limits) -> None:
        """A refusal where so many bytes would be too many for a token."""
        kept = self.rows("SELECT TOTAL(bytes) FROM runs WHERE token = ?", token)[0][0]
        if kept + size > limits.kept_bytes:
            raise Refusal("no-room")

    def run(self, id: str) -> RunRecord | None:
        """A run by its id."""
        found = self.rows(f"SELECT {COLUMNS} FROM runs WHERE id = ?", id)
        return RunRecord(*found[0]) if found else None

    def run_of_key(self, token: str, key: str) -> RunRecord | None:
        """The run that a token opened under this key."""
        found = self.rows(f"SELECT {COLUMNS} FROM runs WHERE token = ? AND key = ?", token, key)
        return RunRecord(*found[0]) if found else None

    def runs(self, *states: str, most: int = 10_000) -> list[RunRecord]:
        """Runs in these states, or in any, the latest first."""
        among = f"WHERE state IN ({', '.join('?' * len(states))})" if states else ""
        query = f"SELECT {COLUMNS} FROM runs {among} ORDER BY opened DESC LIMIT ?"
        return [RunRecord(*row) for row in self.rows(query, *states, most)]

    def text(self, run: str, name: str) -> str | None:
        """A run's opening, or its statement; None where there is none, or no more."""
        assert name in ("opening", "statement")
        found = self.rows(f"SELECT {name} FROM runs WHERE id = ?", run)
        return found[0][name] if found else None

    def put(self, run: str, **values: object) -> None:
        """Change a run's state, spend, statement or times."""
        known = {"statement", *(field.name for field in fields(RunRecord))}
        assert set(values) <= known
        names = ", ".join(f"{name} = ?" for name in values)
        with self.writing() as db:
            db.execute(f"UPDATE runs SET {names} WHERE id = ?", (*values.values(), run))

    def spends(self, dataset: str, most: int = 64) -> list[str]:
        """The latest spends of a data set's runs."""
        query = "SELECT spend FROM runs WHERE dataset = ? AND spend IS NOT NULL"
        return [row[0] for row in self.rows(f"{query} ORDER BY opened DESC LIMIT ?", dataset, most)]

    def clear(self, run: str, *, forgets: bool = False) -> None:
        """Let go of what was kept to go on with a run; or forget it, where it never began."""
        with self.writing() as db:
            db.execute("DELETE FROM requests WHERE run = ?", (run,))
            db.execute("UPDATE runs SET opening = NULL, bytes = 0 WHERE id = ?", (run,))
            if forgets:
                db.execute("DELETE FROM runs WHERE id = ?", (run,))
        self.journal(run).unlink(missing_ok=True)

    # -- requests ----------------------------------------------------------------------------------

    def keep(self, run: str, key: str, digest: bytes, act: str, body: bytes, size: int) -> None:
        """Write down what was asked of a run, and answered; `size`: of all that is kept of it."""
        with self.writing() as db:
            told = (run, key, digest, act, body)
            query = "INSERT INTO requests (run, key, digest, act, body) VALUES (?, ?, ?, ?, ?)"
            db.execute(query, told)
            query = "UPDATE runs SET bytes = bytes + ?, touched = ? WHERE id = ?"
            db.execute(query, (size, time.time(), run))

    def asked(self, run: str) -> list[sqlite3.Row]:
        """What was asked of a run, in turn."""
        return self.rows("SELECT * FROM requests WHERE run = ? ORDER BY place", run)

    def knows(self, run: str, key: str) -> bool:
        """Whether a key of a run was used."""
        return bool(self.rows("SELECT 1 FROM requests WHERE run = ? AND key = ?", run, key))

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
            if _one(db, "SELECT COUNT(*) FROM divisions WHERE token = ?", token) >= MOST_DIVISIONS:
                raise Refusal("too-many")
            told = (secrets.token_hex(16), token, key, digest, *values, time.time())
            db.execute("INSERT INTO divisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", told)
            return str(told[0])

    def division(self, id: str) -> Any:
        """A division by its id: a row, or a refusal."""
        found = self.rows("SELECT * FROM divisions WHERE id = ?", id)
        if not found:
            raise Refusal("not-found")
        return found[0]

    def forget(self, before: float) -> None:
        """Delete divisions that are older, while no run is open, and give room back to the disk.
        What runs released stays, as do the statements that were given."""
        with self.writing() as db:
            still = f"NOT EXISTS (SELECT 1 FROM runs WHERE state != '{ENDED}')"
            db.execute(f"DELETE FROM divisions WHERE at < ? AND {still}", (before,))
        with self._lock, suppress(sqlite3.Error):
            self._db.execute("PRAGMA incremental_vacuum").fetchall()


def require_same(began: bytes, rows: bytes) -> None:
    """A refusal where these are not the rows that a run or a division began with: guarantee 3."""
    if not hmac.compare_digest(bytes(began), rows):
        raise Refusal("rows-changed")


def _one(db: sqlite3.Connection, query: str, *values: object) -> Any:
    return db.execute(query, values).fetchone()[0]


def _held(path: Path) -> int | None:
    """A lock that ends with the process, however it ends."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            fix = "Stop the other server first, or give this one a folder of its own."
            told: dict[str, Any] = {"of": str(path.parent), "got": "one in use", "remedy": fix}
            raise PrivacyError.expected("a folder that no other server has", **told) from None
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
        told: dict[str, Any] = json.loads(text)
        for name, value in told.items():
            told[name] = tuple(value) if isinstance(value, list) else value
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
        fits = name.strip() and name.isprintable() and len(name) <= 100
        fix = "Say whose it is: 'R. Weber, university'."
        need(fits, "a line of at most 100 letters", of="name", got=name, fix=fix)
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
        found = self._records.rows("SELECT * FROM tokens WHERE id = ?", id)
        known = bytes(found[0]["hash"]) if found else bytes(32)
        right = hmac.compare_digest(known, _hash(secret))
        token = _token(found[0]) if found else None
        if token is None or not right or not token.holds_at(time.time()):
            raise Refusal("no-token")
        return token

    def all(self) -> list[Token]:
        """Every token, the latest first."""
        return [*map(_token, self._records.rows("SELECT * FROM tokens ORDER BY created DESC"))]

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
