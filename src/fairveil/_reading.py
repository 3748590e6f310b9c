"""Reading a file that anybody may have put there (a plain file, of a size that is known before a
byte is read), and writing files whole or not at all.

Guarantees (tests/test_reading.py):
1. A folder, a pipe, a socket or a device is refused at once: opening one never waits, and reading
   one never begins.
2. A file larger than the reader's limit is refused by its size; one that grows meanwhile, once the
   limit is passed.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from .errors import DataNotFoundError, FairveilError, InputError

MIB = 1 << 20
# Without O_NONBLOCK, opening a pipe waits until somebody writes to it. Windows has no such pipes,
# and would change line ends.
if sys.platform == "win32":
    AT_ONCE = os.O_BINARY
else:
    AT_ONCE = os.O_NONBLOCK
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def kind_of(mode: int) -> str:
    """What is there that is no plain file."""
    return next((words for holds, words in _KINDS if holds(mode)), "no plain file")


def read_bytes(
    path: str | os.PathLike[str],
    *,
    what: str,
    most: int,
    remedy: str = "Look for its name.",
    error: type[FairveilError] = InputError,
) -> bytes:
    """The bytes of a plain file of at most `most` bytes. `what`: what was expected, in words;
    `error`: of what is too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | AT_ONCE)
    except (OSError, ValueError) as wrong:
        got = _missing(Path(path), wrong)
        raise DataNotFoundError.expected(
            what, of=str(path), got=got, remedy=remedy, quote=False
        ) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            got = kind_of(found.st_mode)
            raise DataNotFoundError.expected(
                what, of=str(path), got=got, remedy=remedy, quote=False
            )
        if found.st_size > most:
            raise _too_large(path, what, most, f"{found.st_size} bytes", remedy, error)
        with open(descriptor, "rb", closefd=False) as opened:
            # a buffer of this size is made before anything is read
            content = opened.read(found.st_size + 1)
            while len(content) <= most and (more := opened.read(MIB)):
                content += more
    except OSError as wrong:
        if isinstance(wrong, FairveilError):
            raise
        got = wrong.strerror or "what cannot be read"
        raise DataNotFoundError.expected(
            what, of=str(path), got=got, remedy=remedy, quote=False
        ) from None
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise _too_large(path, what, most, "more", remedy, error)
    return content


def read_text(
    path: str | os.PathLike[str],
    *,
    what: str,
    most: int,
    remedy: str = "Look for its name.",
    error: type[FairveilError] = InputError,
) -> str:
    """The same as text in UTF-8."""
    try:
        return read_bytes(path, what=what, most=most, remedy=remedy, error=error).decode("utf-8")
    except UnicodeDecodeError as wrong:
        got = wrong.reason
    raise error.expected("text in UTF-8", of=str(path), got=got, remedy=remedy, quote=False)


def _missing(path: Path, wrong: OSError | ValueError) -> str:
    return (
        str(wrong.strerror or "what cannot be opened")
        if isinstance(wrong, OSError)
        else "no name of a file"
    )


def _too_large(
    path: str | os.PathLike[str],
    what: str,
    most: int,
    got: str,
    remedy: str,
    error: type[FairveilError],
) -> FairveilError:
    expected = f"{what} of at most {most} bytes"
    return error.expected(expected, of=str(path), got=got, remedy=remedy, quote=False)


def write_files(
    contents: Mapping[Path, bytes | str | Iterable[bytes]], *, mode: int = 0o666
) -> None:
    """Write each beside its place, flush it to the disk, then rename all; of parts that are made one
    after another, too. `mode`: at most these rights, from the first moment."""
    made = {path: path.with_name(f".{path.name}.{secrets.token_hex(6)}.part") for path in contents}
    try:
        for path, content in contents.items():
            parts = content.encode() if isinstance(content, str) else content
            part = os.open(made[path], os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
            with open(part, "wb") as stream:
                stream.writelines([parts] if isinstance(parts, bytes) else parts)
                stream.flush()
                os.fsync(stream.fileno())
        for path, written in made.items():
            os.replace(written, path)
    finally:
        for written in made.values():
            written.unlink(missing_ok=True)
