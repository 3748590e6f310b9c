"""Where a command writes: refused before the work when it may not, written whole after it or not at
all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from ..errors import InputError
from ..models.folders import Staged, require_own

TWIN = b'"format": "fairveil-report"'
ROOM = 8 << 20
"""Bytes that are taken before the work: more than a linear model and its report have."""


def require_free(path: Path, *, force: bool, mark: str, of: str = "--out") -> None:
    """An error where the folder may not be written: before hours of work, and before any budget is
    spent. With `force` only a folder that has the file `mark`, which an earlier run of the same
    command wrote, may be replaced."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        remedy = "Name a folder that is not there yet."
        raise InputError.expected("a folder to write", of=of, got=str(path), remedy=remedy)
    parent = next(folder for folder in (path, *path.parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        remedy = "Name a place where you may write."
        raise InputError.expected(
            "a folder that may be written", of=of, got=str(parent), remedy=remedy
        )
    if not path.exists() or not any(path.iterdir()):
        return
    if not force:
        remedy = "Name another, or replace it with --force."
        raise InputError.expected(
            "a folder that is not there yet", of=of, got=str(path), remedy=remedy
        )
    if not (path / mark).is_file():
        remedy = "Name another: only what this command wrote is replaced."
        raise InputError.expected(f"a folder with {mark}", of=of, got=str(path), remedy=remedy)
    require_own(path, of=of)


def staged(path: Path, *, force: bool, mark: str, of: str = "--out") -> Staged:
    """A place beside the folder, with room in it, taken before any budget is spent: see
    `require_free`."""
    require_free(path, force=force, mark=mark, of=of)
    return Staged(path, replaces=mark if force else None, room=ROOM)


def require_file(path: Path, *, force: bool, of: str = "--out") -> None:
    """An error where a file may not be written."""
    if path.is_dir() or (path.exists() and not force):
        remedy = "Name another." if path.is_dir() else "Name another, or replace it with --force."
        raise InputError.expected(
            "a file that is not there yet", of=of, got=str(path), remedy=remedy
        )
    if not path.absolute().parent.is_dir():
        remedy = "Make that folder first."
        raise InputError.expected(
            "a folder that is there", of=of, got=str(path.parent), remedy=remedy
        )


def require_page(page: Path, *, force: bool, of: str = "--html") -> None:
    """An error where a page and its twin may not be written. A twin is replaced only if it is one:
    nobody named it."""
    require_file(page, force=force, of=of)
    twin = page.with_suffix(".json")
    require_file(twin, force=force, of=of)
    if twin.is_file():
        with open(twin, "rb") as stream:
            if TWIN not in stream.read(200):
                remedy = "Move it, or name another page: its numbers are written beside it."
                expected = "a place for the page's numbers, or those of an earlier page"
                raise InputError.expected(
                    expected, of=of, got=f"another file, {twin}", remedy=remedy
                )


def write_file(path: Path, content: bytes | Iterable[bytes], *, mode: int = 0o666) -> None:
    """A file, whole or not at all; of parts that are made one after another, too. `mode`: at most
    these rights, from the first moment."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as stream:
            stream.writelines([content] if isinstance(content, bytes) else content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
