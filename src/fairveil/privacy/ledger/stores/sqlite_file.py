"""A file of SQLite that is to be a ledger: made, connected to, and set up."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ....errors import LedgerError
from . import creating
from .sqlite_connection import SHORT_LOG
from .sqlite_refusals import no_ledger, unreachable

Patience = Callable[[Callable[[], Any]], Any]


def made_file(path: Path) -> tuple[int, int] | None:
    """An empty file, the owner's alone, and which it is; None where one was there.

    SQLite gives its log the same rights.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        return None
    except OSError as error:
        raise unreachable(error, path) from None
    status = os.fstat(descriptor)
    os.close(descriptor)
    return status.st_dev, status.st_ino


def linked(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that copies no log by itself."""
    link = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        # No connection copies the log by itself: see `sqlite`.
        link.execute("PRAGMA wal_autocheckpoint = 0")
        link.execute("PRAGMA trusted_schema = OFF")
    except BaseException:
        link.close()
        raise
    return link


def version_of(link: sqlite3.Connection, shown: str) -> int:
    """0 for a file with nothing in it; an error for another program's."""
    application = link.execute("PRAGMA application_id").fetchone()[0]
    version = int(link.execute("PRAGMA user_version").fetchone()[0])
    if application == creating.APPLICATION and version > 0:
        return version
    if (
        application == 0
        and version == 0
        and not link.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    ):
        return 0
    raise no_ledger("another program's database", shown)


def settle(link: sqlite3.Connection, patiently: Patience, shown: str) -> None:
    """Everybody writes to the log, and to the disk."""
    mode = patiently(lambda: link.execute("PRAGMA journal_mode = WAL").fetchone()[0])
    if mode != "wal":
        remedy = "Put it on a disk of this machine; for several machines use PostgreSQL."
        raise LedgerError.expected(
            "a disk that takes a write-ahead log", of=shown, got=f"the mode {mode}", remedy=remedy
        )
    for setting in (
        "synchronous = FULL",
        "fullfsync = ON",
        "checkpoint_fullfsync = ON",
        f"journal_size_limit = {SHORT_LOG}",
    ):
        patiently(lambda setting=setting: link.execute(f"PRAGMA {setting}"))  # type: ignore[misc]
