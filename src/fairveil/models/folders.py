"""Folders of files that are written whole or not at all, and read without following anything out of them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from .._reading import MIB, read_bytes
from ..errors import DataNotFoundError, InputError, complaint

LARGEST_TEXT = 256 * MIB
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")


def largest_text(name: str) -> int:
    """Bytes that a file of words and numbers may have."""
    return LARGEST_TEXT


def write_folder(path: str | os.PathLike[str], files: Mapping[str, bytes], *, replaces: str | None = None) -> Path:
    """A new folder with these files, made under another name beside it and moved into place when all is on disk.

    An existing folder is an error, unless `replaces` names a file that it holds (so that only a folder of the same kind is
    ever replaced); what it held is then gone. An empty folder is taken over.
    """
    target = Path(path)
    for name in files:
        _check_name(name)
    replaced = _may_replace(target, replaces)
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    made.mkdir()
    try:
        for name, content in files.items():
            with open(made / name, "xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        _move_into_place(made, target, replaced)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return target


def read_folder(
    path: str | os.PathLike[str], names: tuple[str, ...], largest: Callable[[str], int] = largest_text
) -> dict[str, bytes]:
    """The named files of a folder, each of at most `largest(name)` bytes. Links are refused: a folder from elsewhere must not
    make us read other files."""
    folder = Path(path)
    if not folder.is_dir():
        remedy = "Pass the folder that was saved."
        raise DataNotFoundError(complaint(expected="a folder", of="path", got=str(folder), remedy=remedy))
    found = {}
    for name in names:
        file = folder / _check_name(name)
        if file.is_symlink():
            remedy = "Copy the file itself into the folder."
            raise InputError(complaint(expected="a plain file, not a link", of="path", got=str(file), remedy=remedy))
        if not file.exists():
            remedy = "Part of the folder is missing: save it again."
            raise DataNotFoundError(complaint(expected=f"a file {name}", of="path", got=str(folder), remedy=remedy))
        remedy = "It is not what was saved: save the model again."
        found[name] = read_bytes(file, what="a plain file", most=largest(name), remedy=remedy)
    return found


def _check_name(name: str) -> str:
    if not FILE_NAME.fullmatch(name):
        remedy = "Pass a name like model.json."
        raise InputError(complaint(expected="a plain file name", of="file name", got=name, remedy=remedy))
    return name


def _may_replace(target: Path, replaces: str | None) -> bool:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        remedy = "Pass a path that is free, or a folder."
        raise InputError(complaint(expected="a folder to write", of="path", got=str(target), remedy=remedy))
    if not target.exists():
        return False
    if any(target.iterdir()) and (replaces is None or not (target / replaces).is_file()):
        remedy = "Pass another path, or overwrite=True where it holds an earlier model."
        raise InputError(complaint(expected="a folder that is not there yet", of="path", got=str(target), remedy=remedy))
    return True


def _move_into_place(made: Path, target: Path, replaced: bool) -> None:
    if not replaced:
        os.rename(made, target)
    else:
        old = target.with_name(f".{target.name}.{secrets.token_hex(6)}.old")
        os.rename(target, old)
        try:
            os.rename(made, target)
        except BaseException:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    if os.name == "posix":  # elsewhere a folder cannot be opened, and renames are durable by other means
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
