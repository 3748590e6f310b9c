"""What the door must not forget: runs, what each released, the replies that were given, and tokens.
One SQLite file.

A reply and the release that it carries are written in one transaction before the reply leaves. So a
server that is killed at any time knows, when it is back, exactly the replies that anybody can have
seen.

Replies of an open run are given to the system and not waited for on the disk: a killed process does
not lose them, a machine that loses its power may. So the boot that they belong to is on the disk
before them. After another boot open runs are ended and charged whole (theory.md#repeats). All else
waits for the disk, and takes the replies before it along: that a run is open, or over. Where the
system does not name its boots, replies wait, too.

Guarantees (tests/serving/test_serving_records.py):
1. A release is never on the disk without its reply, nor a reply without its release.
2. One key of a run has one reply: a second one is refused, whoever writes it.
3. One server at a time has the file; a second one is refused.
4. Whether replies may be missing, because the machine was started anew, is known for certain.
5. Runs and divisions are bound to the rows that they began with, by a digest under a key that is in
   this file alone (tests/serving/test_serving_rows.py).
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...core.events import from_dict
from ...curator import LogEntry
from ...errors import DoorError, PrivacyError
from ...statement.document import StatedBound
from .record_rows import (
    ENDED,
    NEXT,
    OPEN,
    OPENING,
    SETTLING,
    TABLES,
    Reply,
    RunRecord,
    reply_of,
    run_of,
)
from .refusals import ROWS_CHANGED, Refusal

try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None  # type: ignore[assignment]

FILE, LOCK = "door.db", "door.lock"
VERSION = 1
BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Where Linux names the time since its machine was started."""


class Records:
    """The file of one door."""

    def __init__(self, folder: Path, *, serves: bool = True) -> None:
        """`serves`: of the one server; else for a look, a token or a note beside it."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / FILE
        self._lock = threading.RLock()
        self._held = _held(folder / LOCK) if serves else None
        new = not self.path.exists()
        if new:
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        self._db = sqlite3.connect(
            self.path, timeout=30.0, check_same_thread=False, isolation_level=None
        )
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._looking = threading.Lock()
        self._reading = sqlite3.connect(
            self.path, timeout=30.0, check_same_thread=False, isolation_level=None
        )
        self._reading.row_factory = sqlite3.Row
        self._boot, self._waits, self._synchronous = _boot(), True, ""
        self.can_write = True
        with self.writing() as db:
            for statement in TABLES.split(";"):
                db.execute(statement)
            found = db.execute("SELECT number FROM version").fetchone()
            if found is None:
                db.execute("INSERT INTO version VALUES (?)", (VERSION,))
            elif found["number"] != VERSION:
                remedy = (
                    "Serve it with the version of Fairveil that wrote it, and see the page about "
                    "upgrades."
                )
                got = f"version {found['number']}"
                raise PrivacyError.expected(
                    f"version {VERSION}", of=str(self.path), got=got, remedy=remedy
                )

    def close(self) -> None:
        """Let go of the file. A server that ends so has all its replies on the disk, and no boot to
        compare with."""
        with self._lock:
            if not self._waits:
                self._waits = True
                with suppress(DoorError, sqlite3.Error), self.writing() as db:
                    db.execute("DELETE FROM boots")
            self._db.close()
            self._reading.close()
            if self._held is not None:
                os.close(self._held)
                self._held = None

    @property
    def was_rebooted(self) -> bool:
        """Whether the machine was started anew since the last server: guarantee 4."""
        found = self.rows("SELECT id FROM boots")
        return bool(found) and found[-1]["id"] != self._boot

    def note_boot(self) -> None:
        """From now on replies are of this boot. To be called when open runs of another one have
        been ended."""
        with self.writing() as db:
            db.execute("DELETE FROM boots")
            if self._boot is not None:
                db.execute("INSERT INTO boots VALUES (?)", (self._boot,))
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
                    "a folder to write in", of="the door's records", got=str(error), remedy=remedy
                ) from error

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """What a query of constant text finds."""
        with self._lock:
            return self._db.execute(query, tuple(values)).fetchall()

    def look(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """The same of what is written, by a connection that waits for no writer."""
        with self._looking:
            return self._reading.execute(query, tuple(values)).fetchall()

    # -- runs --------------------------------------------------------------------------------------

    def key(self) -> bytes:
        """The secret under which digests of rows are made."""
        found = self.rows("SELECT key FROM secret")
        if not found:
            with self.writing() as db:
                db.execute("INSERT INTO secret VALUES (?)", (secrets.token_bytes(32),))
            return self.key()
        return bytes(found[0]["key"])

    @staticmethod
    def bind(db: sqlite3.Connection, id: str, rows: bytes) -> None:
        """Note which rows a run or a division begins with: guarantee 5."""
        db.execute("INSERT INTO bound VALUES (?, ?)", (id, rows))

    def require_rows(self, id: str, rows: bytes) -> None:
        """A refusal where these are not the rows that a run or a division began with."""
        found = self.rows("SELECT rows FROM bound WHERE id = ?", (id,))
        if not found or not hmac.compare_digest(bytes(found[0]["rows"]), rows):
            raise Refusal(*ROWS_CHANGED)

    def begin(self, run: RunRecord, rows: bytes) -> None:
        """Write a run down, with a digest of the rows, before anything is reserved for it."""
        values = (
            run.id,
            run.token,
            run.key,
            run.digest,
            run.dataset,
            run.request,
            run.state,
            run.how,
            run.epsilon,
        )
        with self.writing() as db:
            db.execute(
                "INSERT INTO runs (id, token, key, digest, dataset, request, state, how, epsilon, "
                "opened, touched) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, run.opened, run.touched),
            )
            self.bind(db, run.id, rows)

    def retire(self, id: str) -> None:
        """Free the key of a run that never began."""
        with self.writing() as db:
            db.execute("UPDATE runs SET key = key || ' ' || id WHERE id = ?", (id,))

    def run(self, id: str) -> RunRecord | None:
        """A run by its id."""
        found = self.rows("SELECT * FROM runs WHERE id = ?", (id,))
        return run_of(found[0]) if found else None

    def run_of_key(self, token: str, key: str) -> RunRecord | None:
        """The run that a token opened under this key."""
        found = self.rows("SELECT * FROM runs WHERE token = ? AND key = ?", (token, key))
        return run_of(found[0]) if found else None

    def runs(
        self, states: Sequence[str] = (OPENING, OPEN, SETTLING, ENDED), most: int = 10_000
    ) -> list[RunRecord]:
        """Runs in these states, the latest first."""
        marks = ", ".join("?" * len(states))
        found = self.rows(
            f"SELECT * FROM runs WHERE state IN ({marks}) ORDER BY opened DESC LIMIT ?",
            (*states, most),
        )
        return [run_of(row) for row in found]

    def put(self, run: str, **values: object) -> None:
        """Change a run's state, statement or times."""
        with self.writing() as db:
            self._put(db, run, values)

    @staticmethod
    def _put(db: sqlite3.Connection, run: str, values: dict[str, Any]) -> None:
        assert set(values) <= {
            "state",
            "how",
            "touched",
            "header",
            "secure",
            "sitting",
            "statement",
        }
        names = ", ".join(f"{name} = ?" for name in values)
        db.execute(f"UPDATE runs SET {names} WHERE id = ?", (*values.values(), run))

    def entries(self, run: str) -> list[LogEntry]:
        """What a run released, in turn."""
        found = self.rows("SELECT * FROM entries WHERE run = ? ORDER BY place", (run,))
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
        return [
            row["words"]
            for row in self.rows(
                "SELECT words FROM notes WHERE run = ? AND kind = ? ORDER BY rowid", (run, kind)
            )
        ]

    # -- replies -----------------------------------------------------------------------------------

    def reply(self, run: str, key: str) -> Reply | None:
        """What was answered to a key before."""
        found = self.rows("SELECT * FROM replies WHERE run = ? AND key = ?", (run, key))
        return reply_of(found[0]) if found else None

    def replies(self, run: str) -> list[Reply]:
        """Those of a run that must be done again, in turn."""
        return [
            reply_of(row)
            for row in self.rows(
                "SELECT * FROM replies WHERE run = ? AND request IS NOT NULL ORDER BY place", (run,)
            )
        ]

    def keep(
        self,
        run: str,
        reply: Reply,
        entries: Sequence[LogEntry],
        bounds: Sequence[StatedBound],
        marks: Sequence[str],
        at: float,
        **changes: object,
    ) -> None:
        """Write a reply and what it released down, for good: guarantee 1. `changes`: of the run's
        own state."""
        with self.writing(waits=bool(changes)) as db:
            for entry in entries:
                told = (
                    json.dumps(entry.event.to_dict()),
                    json.dumps(list(entry.questions)),
                    entry.batch,
                    entry.purpose,
                    at,
                )
                db.execute(
                    f"INSERT INTO entries VALUES (?, {NEXT.format('entries')}, ?, ?, ?, ?, ?, ?)",
                    (run, run, entry.number, *told),
                )
            if bounds or marks:
                self._note(db, run, bounds, marks)
            values = (run, run, reply.key, reply.digest, reply.act, reply.request, reply.body, at)
            db.execute(
                f"INSERT INTO replies VALUES (?, {NEXT.format('replies')}, ?, ?, ?, ?, ?, ?)",
                values,
            )
            self._put(db, run, {"touched": at, **changes})

    def forget(self, before: float) -> int:
        """Delete what was answered in runs that ended and were last asked before this time; how
        many replies. What they released stays, as do their statements."""
        ended = "SELECT id FROM runs WHERE state = ? AND touched < ?"
        with self.writing() as db:
            return db.execute(
                f"DELETE FROM replies WHERE run IN ({ended})", (ENDED, before)
            ).rowcount

    def note(self, run: str, bounds: Sequence[StatedBound], marks: Sequence[str]) -> None:
        """Write marks and bounds down without a reply."""
        with self.writing() as db:
            self._note(db, run, bounds, marks)

    @staticmethod
    def _note(
        db: sqlite3.Connection, run: str, bounds: Sequence[StatedBound], marks: Sequence[str]
    ) -> None:
        told = [("bound", json.dumps(asdict(bound))) for bound in bounds] + [
            ("mark", mark) for mark in marks
        ]
        db.executemany(
            "INSERT OR IGNORE INTO notes VALUES (?, ?, ?)", [(run, *one) for one in told]
        )


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
            raise PrivacyError.expected(
                "a folder that no other server has",
                of=str(path.parent),
                got="one in use",
                remedy=remedy,
            ) from None
    return file
