"""The file of a monitor: read whole, written whole, by one writer at a time.

Guarantees (tests/estimators/test_estimators_monitor.py):
1. A process that is killed leaves the file as it was, or with the new period, and nothing between.
2. While one process writes, another is refused; a lock dies with its process.
3. A file in which anything was changed is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..._json import Document
from ..._reading import read_text
from ...errors import InputError
from ...statement.document import write
from .counts_json import checksum

FORMAT, FORMAT_VERSION = "fairveil monitor", 1
OF_PERSONS = 2
"""The version where people may come back: what knows version 1 alone would add too little noise."""
DOCUMENT = Document(
    "monitor", "It is written by fv.Monitor; restore it from a backup.", largest=1 << 28
)
LARGEST = 1 << 28


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold the lock beside the file; an error where somebody else does."""
    import fcntl

    with open(path.with_name(f".{path.name}.lock"), "a+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            remedy = "Wait until it has ended: a monitor has one writer at a time."
            raise InputError.expected(
                "no other writer", of="monitor", got="another process", remedy=remedy
            ) from None
        yield


def load(path: Path) -> dict[str, Any]:
    """The content, with its checksum checked."""
    remedy = "Begin one with fv.Monitor.create(path, ...)."
    values = DOCUMENT.json(
        read_text(path, what="the file of a monitor", most=LARGEST, remedy=remedy, error=InputError)
    )
    if (
        not isinstance(values, dict)
        or values.get("format") != FORMAT
        or values.get("version") != _version(values)
    ):
        raise DOCUMENT.refusal(f"{FORMAT!r} of version 1 or 2", "another document")
    if values.get("checksum") != checksum(values):
        raise DOCUMENT.refusal("a file as it was written", "a changed one")
    return values


def save(path: Path, values: dict[str, Any], *, new: bool = False) -> None:
    """Write it whole: to a file beside it, flushed to the disk, then renamed; and the folder,
    too."""
    if new and path.exists():
        remedy = "Open it with fv.Monitor.open(path), or name another."
        raise InputError.expected(
            "a file that is not there yet", of="path", got=str(path), remedy=remedy
        )
    out = {"format": FORMAT, "version": _version(values)} | values
    write(path, json.dumps(out | {"checksum": checksum(out)}, indent=2, allow_nan=False) + "\n")
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _version(values: dict[str, Any]) -> int:
    return OF_PERSONS if "unit" in values else FORMAT_VERSION
