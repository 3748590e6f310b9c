"""Where a command writes: refused before the work when it may not, written whole after it or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ..errors import InputError, complaint
from ..models.folders import write_folder


def require_free(path: Path, *, force: bool, mark: str, of: str = "--out") -> None:
    """An error where the folder may not be written: before hours of work, and before any budget is spent. With `force` only
    a folder that has the file `mark`, which an earlier run of the same command wrote, may be replaced."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        remedy = "Name a folder that is not there yet."
        raise InputError(complaint(expected="a folder to write", of=of, got=str(path), remedy=remedy))
    parent = next(folder for folder in (path, *path.parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        remedy = "Name a place where you may write."
        raise InputError(complaint(expected="a folder that may be written", of=of, got=str(parent), remedy=remedy))
    if not path.exists() or not any(path.iterdir()):
        return
    if not force:
        remedy = "Name another, or replace it with --force."
        raise InputError(complaint(expected="a folder that is not there yet", of=of, got=str(path), remedy=remedy))
    if not (path / mark).is_file():
        remedy = "Name another: only what this command wrote is replaced."
        raise InputError(complaint(expected=f"a folder with {mark}", of=of, got=str(path), remedy=remedy))


def move_into_place(made: Path, path: Path, mark: str | None) -> None:
    """The files of a folder as a new one (or in the place of one that has the file `mark`), whole or not at all."""
    write_folder(path, {file.name: file.read_bytes() for file in sorted(made.iterdir())}, replaces=mark)


def require_file(path: Path, *, force: bool, of: str = "--out") -> None:
    """An error where a file may not be written."""
    if path.is_dir() or (path.exists() and not force):
        remedy = "Name another." if path.is_dir() else "Name another, or replace it with --force."
        raise InputError(complaint(expected="a file that is not there yet", of=of, got=str(path), remedy=remedy))
    if not path.absolute().parent.is_dir():
        remedy = "Make that folder first."
        raise InputError(complaint(expected="a folder that is there", of=of, got=str(path.parent), remedy=remedy))


def write_file(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """A file, whole or not at all. `mode`: at most these rights, from the first moment."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
