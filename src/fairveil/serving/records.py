"""What a server must not forget, in one SQLite file: tokens, and runs with the spends that pay for
them. What a run released, and its answers, are in the journal of its curator, a file beside it.
What was asked is not kept: an analyst whose server was started anew asks the same again, and is
given what the journal has (theory.md#repeats).

Guarantees (tests/serving/test_serving_crashes.py, tests/serving/test_serving_limits.py):
1. One key of a token opens one run.
2. One server at a time has the file; a second one is refused.
3. Runs and divisions are bound to the rows that they began with, by a digest under a key that is in
   this file alone.
4. What is kept for a token is bounded: its journals have a quota of bytes that is free again when
   their runs end.
5. Nothing is begun that the disk has no room for; what cannot be written is refused and changes
   nothing.
6. No token can be made from what is here. One that has ended, was revoked or was never issued is
   refused with the same words.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from .. import _checks
from ..core.errors import need
from ..errors import DoorError, PrivacyError
from .refusals import Refusal

try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None  # type: ignore[assignment]

FILE, LOCK, JOURNALS, VERSION = "door.db", "door.lock", "runs", 4
OPENING, OPEN, SETTLING, ENDED = "opening", "open", "settling", "ended"
"""Of a run: begun to be opened; reserved, and asked; over, and its ledger to be told; settled."""
STOP, FINISHED = "to be stopped by the holder", "finished"
DAY, FREE = 86_400.0, 1 << 20
"""Seconds, and bytes that the disk must have left."""
ROLES = ("analyst", "holder")
_SHAPE = re.compile(r"fv_([0-9a-f]{12})_([0-9a-f]{64})")
TABLES = """
CREATE TABLE IF NOT EXISTS facts (version INTEGER, secret BLOB);
CREATE TABLE IF NOT EXISTS tokens (id TEXT PRIMARY KEY, role TEXT, name TEXT, datasets TEXT,
    created REAL, expires REAL, revoked REAL, hash BLOB);
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, token TEXT, key TEXT, digest BLOB,
    dataset TEXT, rows BLOB, state TEXT, how TEXT, epsilon REAL, opened REAL, touched REAL,
    spend TEXT, sitting INTEGER, released TEXT, kept INTEGER, UNIQUE (token, key));
CREATE INDEX IF NOT EXISTS states ON runs (state);
CREATE INDEX IF NOT EXISTS journals ON runs (kept, token);
"""


@dataclass(frozen=True)
class RunRecord:
    """One run, as it is written down. `rows`: a digest of those that it began with; `how`: in words,
    how it ended; `sitting`, `released`: of its journal, and its events as JSON, once it ended;
    `kept`: whether its journal is there."""

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
    kept: int = 1


@dataclass(frozen=True)
class Token:
    """A token without its secret. `datasets`: that it opens; None: all that the holder serves."""

    id: str
    role: str
    name: str
    datasets: tuple[str, ...] | None
    created: float
    expires: float | None
    revoked: float | None = None

    def holds_at(self, now: float) -> bool:
        """Whether it opens anything."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def may_see(self, dataset: str) -> bool:
        """Whether it may know of this data set."""
        return self.datasets is None or dataset in self.datasets

    @property
    def opens(self) -> str:
        """For a page or a terminal."""
        return "all data sets" if self.datasets is None else ", ".join(self.datasets)


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
        for setting in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "journal_size_limit = 16777216",
        ):
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
        self._secret = bytes(self.rows("SELECT secret FROM facts")[0]["secret"])

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

    def mark(self, *parts: str | bytes) -> bytes:
        """32 bytes that nobody can make who has not the secret of this file."""
        digest = hmac.new(self._secret, digestmod=hashlib.sha256)
        for part in parts:
            raw = part.encode() if isinstance(part, str) else part
            digest.update(len(raw).to_bytes(8, "little") + raw)
        return digest.digest()

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

    def begin(self, run: RunRecord, most: int, most_in_all: int) -> None:
        """Write a run down before anything is reserved for it, where so many may be open."""
        self.require_disk()
        live = f"SELECT COUNT(*) FROM runs WHERE state IN ('{OPENING}', '{OPEN}')"
        names = [field.name for field in fields(RunRecord)]
        told = f"INSERT INTO runs ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        with self.writing() as db:
            mine = db.execute(f"{live} AND token = ?", (run.token,)).fetchone()[0]
            others = db.execute(live).fetchone()[0]
            if mine >= most or others >= most_in_all:
                raise Refusal("too-many")
            try:
                db.execute(told, [getattr(run, name) for name in names])
            except sqlite3.IntegrityError:
                raise Refusal("busy") from None  # the same key opens one now

    def run(self, id: str) -> RunRecord | None:
        """A run by its id."""
        return next(iter(self._runs("id = ?", id)), None)

    def run_of_key(self, token: str, key: str) -> RunRecord | None:
        """The run that a token opened under this key."""
        return next(iter(self._runs("token = ? AND key = ?", token, key)), None)

    def runs(self, *states: str, token: str | None = None, most: int = 10_000) -> list[RunRecord]:
        """Runs in these states, or in any, the latest first."""
        among = f"state IN ({', '.join('?' * len(states))})" if states else "1"
        mine = () if token is None else (token,)
        return self._runs(f"{among}{' AND token = ?' if mine else ''}", *states, *mine, most=most)

    def _runs(self, where: str, *values: object, most: int = 1) -> list[RunRecord]:
        query = f"SELECT * FROM runs WHERE {where} ORDER BY opened DESC LIMIT ?"
        return [RunRecord(**dict(row)) for row in self.rows(query, *values, most)]

    def put(self, run: str, **values: object) -> None:
        """Change a run's state, spend or times."""
        assert set(values) <= {field.name for field in fields(RunRecord)}
        names = ", ".join(f"{name} = ?" for name in values)
        with self.writing() as db:
            db.execute(f"UPDATE runs SET {names} WHERE id = ?", (*values.values(), run))

    def spends(self, dataset: str, most: int = 64) -> list[str]:
        """The latest spends of a data set's runs."""
        query = "SELECT spend FROM runs WHERE dataset = ? AND spend IS NOT NULL"
        return [row[0] for row in self.rows(f"{query} ORDER BY opened DESC LIMIT ?", dataset, most)]

    def clear(self, run: str, *, forgets: bool = False) -> None:
        """Let go of a run's journal; or forget it, where it never began."""
        query = (
            "DELETE FROM runs WHERE id = ?" if forgets else "UPDATE runs SET kept = 0 WHERE id = ?"
        )
        with self.writing() as db:
            db.execute(query, (run,))
        self.journal(run).unlink(missing_ok=True)

    def kept(self, token: str) -> int:
        """Bytes of the journals of a token's runs."""
        found = self.rows("SELECT id FROM runs WHERE kept = 1 AND token = ?", token)
        places = [self.journal(row["id"]) for row in found]
        return sum(place.stat().st_size for place in places if place.exists())

    # -- tokens: 256 secret bits each, shown once; kept is their SHA-256, which needs not be slow ---

    def issue(
        self,
        name: str,
        role: str = "analyst",
        *,
        days: float | None = 90.0,
        datasets: tuple[str, ...] | None = None,
    ) -> str:
        """A new token: the one time that its secret is seen."""
        _checks.one_of(ROLES, role=role)
        fits = name.strip() and name.isprintable() and len(name) <= 100
        fix = "Say whose it is: 'R. Weber, university'."
        need(fits, "a line of at most 100 letters", of="name", got=name, fix=fix)
        if days is not None:
            _checks.positive(days=days)
        id, secret, now = secrets.token_hex(6), secrets.token_hex(32), time.time()
        told = (
            id,
            role,
            name,
            json.dumps(datasets),
            now,
            None if days is None else now + days * DAY,
        )
        with self.writing() as db:
            values = (*told, None, _hash(secret))
            db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        return f"fv_{id}_{secret}"

    def token(self, given: str | None) -> Token:
        """The token that was shown; a refusal that says nothing where it opens nothing."""
        shape = _SHAPE.fullmatch(given or "")
        id, secret = shape.groups() if shape else ("", "")
        found = self.rows("SELECT * FROM tokens WHERE id = ?", id)
        known = bytes(found[0]["hash"]) if found else bytes(32)
        right = hmac.compare_digest(known, _hash(secret))
        token = _token(found[0]) if found else None
        if token is None or not right or not token.holds_at(time.time()):
            raise Refusal("no-token")
        return token

    def tokens(self) -> list[Token]:
        """Every token, the latest first."""
        return [*map(_token, self.rows("SELECT * FROM tokens ORDER BY created DESC"))]

    def revoke(self, id: str) -> bool:
        """End a token now; whether there was one that held."""
        query = "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL"
        with self.writing() as db:
            return db.execute(query, (time.time(), id)).rowcount == 1


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _token(row: sqlite3.Row) -> Token:
    values = dict(row)
    values.pop("hash")
    opens = json.loads(values.pop("datasets"))
    return Token(**values, datasets=None if opens is None else tuple(opens))


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
