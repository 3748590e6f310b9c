"""A connection to a ledger's file, and what can be asked of files and connections without waiting
for either."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from .one_name import Name

LONG_LOG, SHORT_LOG = 4 << 20, 1 << 20


class Connection:
    """One of SQLite's connections, and the file that it opened. `block`: who writes through it."""

    def __init__(self, link: sqlite3.Connection, name: Name) -> None:
        self.link = link
        self.name = name
        self.file = name.identity
        self.log = f"{os.path.realpath(_file_of(link))}-wal"
        self.shorten_at = LONG_LOG
        self.rules = -1
        self.block: Callable[[], object] = nobody

    def close(self) -> None:
        self.link.close()
        self.name.release()


def nobody() -> None:
    """Who writes through a connection that is idle."""


def has_transaction(link: sqlite3.Connection) -> bool:
    """False, too, of one that is closed."""
    try:
        return link.in_transaction
    except sqlite3.Error:
        return False


def _file_of(link: sqlite3.Connection) -> str:
    """The name that SQLite found by following links: it keeps the log beside it."""
    return str(link.execute("PRAGMA database_list").fetchall()[0][2])


def is_at(path: Path, file: tuple[int, int]) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == file


def size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
