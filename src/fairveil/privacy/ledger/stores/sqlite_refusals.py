"""What SQLite and the system say of a ledger's file, with the way out."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from ...._reading import kind_of
from ....errors import DataNotFoundError, FairveilError, LedgerAway, LedgerError

PATIENCE = 60.0
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# A damaged page may hold anything: text that is none, numbers and lengths beyond all bounds.
REFUSED = (sqlite3.Error, OverflowError, UnicodeError, MemoryError)


def refusal(error: BaseException, shown: str) -> LedgerError:
    """What SQLite says."""
    for codes, expected, remedy in _WAYS_OUT:
        if code(error) in codes:
            kind = LedgerAway if codes is BUSY else LedgerError
            return kind.expected(expected, of=shown, got=str(error), remedy=remedy)
    if not isinstance(error, sqlite3.Error):
        expected, remedy = _DAMAGED[1:]
        return LedgerError.expected(expected, of=shown, got=_printable(error), remedy=remedy)
    remedy = "Nothing was written. Look at the disk and the file, and try again."
    return LedgerError.expected(
        "a ledger that can be used", of=shown, got=_printable(error), remedy=remedy
    )


def unreachable(error: Exception, path: Path) -> FairveilError:
    """What the system says of its name."""
    if isinstance(error, FileNotFoundError):
        remedy = "Make the folder first."
        return DataNotFoundError.expected(
            "a folder to put the ledger in", of=str(path), got=f"no {path.parent}", remedy=remedy
        )
    remedy = "Name a file in a folder that you may write to, on a disk with space."
    got = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return LedgerError.expected("a file that can be reached", of=str(path), got=got, remedy=remedy)


def require_file(path: Path) -> None:
    """An error for what is no plain file, by its kind."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return
        found = f"{kind_of(mode)}, {path}"
    except (FileNotFoundError, NotADirectoryError):
        found = f"no file {path}"
        if path.parent.exists() and not path.parent.is_dir():
            raise unreachable(NotADirectoryError(20, "Not a directory"), path) from None
    except OSError as error:
        raise unreachable(error, path) from None
    remedy = "Begin one with Ledger.create, or name the file that it is in."
    raise DataNotFoundError.expected("the file of a ledger", of=str(path), got=found, remedy=remedy)


def no_ledger(found: str, shown: str) -> LedgerError:
    """Another program's file."""
    remedy = (
        "Begin a ledger with Ledger.create in a file of its own, or name the file that one is in."
    )
    return LedgerError.expected("the file of a ledger", of=shown, got=found, remedy=remedy)


def code(error: BaseException) -> int | None:
    """SQLite's kind of error, without its finer distinctions."""
    found = getattr(error, "sqlite_errorcode", None)
    return None if found is None else int(found) & 0xFF


def _printable(error: BaseException) -> str:
    """A damaged file's words may be no words."""
    text = "".join(letter if letter.isprintable() else "?" for letter in str(error))[:200]
    return text or type(error).__name__


_DAMAGED = (
    (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_FORMAT),
    "the file of a ledger",
    "It is another file, or damaged: restore a copy, or `fairveil ledger check` an export.",
)
_WAYS_OUT = (
    (
        BUSY,
        f"its turn within {PATIENCE:.0f} seconds",
        "Another program has it open and does not let go: find it (on Linux: fuser FILE) and end "
        "it.",
    ),
    ((sqlite3.SQLITE_FULL,), "space on the disk", "Nothing was written. Free space and try again."),
    _DAMAGED,
    (
        (
            sqlite3.SQLITE_READONLY,
            sqlite3.SQLITE_PERM,
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_AUTH,
        ),
        "a file and a folder that may be written to",
        "Readers, too, need a log beside the file: ask for the rights to the folder, or copy the "
        "ledger.",
    ),
    (
        (sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH),
        "a line that keeps the rules of the tables",
        "Lines are only added, each one number further, and never charge more than all.",
    ),
)
