"""What all files have in common: are they there, are they the same as before, are they
compressed."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from pathlib import Path
from typing import IO

from ..errors import DataNotFoundError, InputError

PathLike = str | os.PathLike[str]
BROKEN_GZIP = (EOFError, gzip.BadGzipFile, zlib.error)


def existing(path: PathLike, what: str) -> Path:
    """A path to a file that is there."""
    found = Path(path)
    if not found.is_file():
        came = "a folder" if found.is_dir() else "nothing there"
        raise DataNotFoundError.expected(
            what,
            of=str(found),
            got=came,
            remedy=f"Look for its name; the current folder is {Path.cwd()}.",
        )
    return found


def identity_of(path: Path) -> tuple[int, int, int]:
    """Changes when the file is written to or replaced."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def is_gzip(path: Path) -> bool:
    """By the file's first bytes, not by its name."""
    with path.open("rb") as opened:
        return opened.read(2) == b"\x1f\x8b"


def open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, decompressed when it is gzip."""
    return gzip.open(path, "rb") if is_gzip(path) else path.open("rb")  # type: ignore[return-value]


def open_text(path: Path) -> io.TextIOWrapper:
    """The file's text in UTF-8 (a byte order mark is skipped), decompressed when it is gzip,
    newlines as they are."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def unreadable(path: Path, expected: str) -> InputError:
    """The error for a file whose bytes are not what they should be. A parser's own words may show
    values of rows."""
    got, remedy = "bytes that cannot be read as one", "Mend the file, or fetch it anew."
    return InputError.expected(expected, of=str(path), got=got, remedy=remedy, quote=False)
