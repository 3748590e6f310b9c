"""Folders of files that are written whole or not at all, and read without following anything out of
them."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from .._reading import MIB, read_bytes
from ..core.errors import DataNotFoundError, need

LARGEST_TEXT = 256 * MIB
"""Bytes that a file of words and numbers may have."""
# What the library writes into folders: of models, estimators (of one inside another with "base."
# before), and commands.
OWN = re.compile(
    r"(base\.)*((model|estimator|groups|statement|certificate|report|frontier|all_models)\.json|arrays\.npz|report\.html"
    r"|frontier\.svg)"
    r"(\.sig)?"
)
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")


def write_folder(
    path: str | os.PathLike[str], files: Mapping[str, bytes], *, replaces: str | None = None
) -> Path:
    """A new folder with these files, made under another name beside it and moved into place when
    all is on disk.

    An existing folder is an error, unless `replaces` names a file that it holds (so that only a
    folder of the same kind is ever replaced) and it holds nothing but what the library writes; that
    is then gone. An empty folder is taken over.
    """
    for name in files:
        _check_name(name)
    with Staged(path, replaces=replaces) as staged:
        staged.folder.mkdir()
        for name, content in files.items():
            with open(staged.folder / name, "xb") as stream:
                stream.write(content)
        return staged.move()


class Staged:
    """A place for a folder, taken before the work: beside `path`, with so many bytes of room; moved
    there after the work.

    Whoever makes `folder` and calls `move` has a whole folder at `path`; else nothing is left.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, replaces: str | None = None, room: int = 0
    ) -> None:
        self._target, self._replaces, self._room = Path(path), replaces, room
        self._parents: list[Path] = []
        self._made: Path | None = None

    def __enter__(self) -> Staged:
        _may_replace(self._target, self._replaces)
        try:
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)
        for folder in reversed(self._parents):
            with suppress(OSError):  # it holds what was made, or what somebody else put there
                folder.rmdir()

    @property
    def folder(self) -> Path:
        """Where to make the folder; it is not there yet."""
        assert self._made is not None, "inside of the block only"
        return self._made / "files"

    def move(self) -> Path:
        """Put the folder in its place, once all of it is on the disk."""
        target, folder = self._target, self.folder
        replaced = _may_replace(target, self._replaces)
        for file in folder.iterdir():
            with open(file, "rb+") as stream:
                os.fsync(stream.fileno())
        _move_into_place(folder, target, replaced)
        self._parents.clear()
        return target

    def free(self) -> None:
        """Give the room to what is written now."""
        assert self._made is not None, "inside of the block only"
        (self._made / "room").unlink(missing_ok=True)

    def _take(self) -> None:
        parent = self._target.parent
        self._parents = [
            folder for folder in (*reversed(parent.parents), parent) if not folder.exists()
        ]
        parent.mkdir(parents=True, exist_ok=True)
        made = self._target.with_name(f".{self._target.name}.{secrets.token_hex(6)}.part")
        made.mkdir()
        self._made = made
        if self._room:
            with open(made / "room", "xb") as stream:
                _reserve(stream.fileno(), self._room)
                os.fsync(stream.fileno())
            (made / "probe").mkdir()
            os.rename(made / "probe", made / "moved")  # what will be done at the end
            (made / "moved").rmdir()


def _reserve(descriptor: int, size: int) -> None:
    """Bytes that are the file's, not only its length."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
    for _ in range(0, size, MIB):
        os.write(descriptor, bytes(min(MIB, size)))


def _is_own(entry: Path) -> bool:
    """Whether it is a plain file that the library wrote."""
    return bool(OWN.fullmatch(entry.name)) and entry.is_file() and not entry.is_symlink()


def read_folder(
    path: str | os.PathLike[str],
    names: tuple[str, ...],
    largest: Callable[[str], int] = lambda _: LARGEST_TEXT,
) -> dict[str, bytes]:
    """The named files of a folder, each of at most `largest(name)` bytes. Links are refused: a
    folder from elsewhere must not make us read other files."""
    folder, found = Path(path), {}
    _need_there(folder.is_dir(), "a folder", folder, "Pass the folder that was saved.")
    for name in names:
        file = folder / _check_name(name)
        linked, fix = file.is_symlink(), "Copy the file itself into the folder."
        need(not linked, "a plain file, not a link", of="path", got=str(file), fix=fix)
        fix = "Part of the folder is missing: save it again."
        _need_there(file.exists(), f"a file {name}", folder, fix)
        fix = "It is not what was saved: save the model again."
        found[name] = read_bytes(file, what="a plain file", most=largest(name), remedy=fix)
    return found


def _need_there(holds: bool, words: str, folder: Path, fix: str) -> None:
    need(holds, words, of="path", got=str(folder), fix=fix, error=DataNotFoundError)


def _check_name(name: str) -> str:
    right, fix = FILE_NAME.fullmatch(name), "Pass a name like model.json."
    need(right, "a plain file name", of="file name", got=name, fix=fix)
    return name


def _may_replace(target: Path, replaces: str | None) -> bool:
    other, fix = target.exists() and not target.is_dir(), "Pass a path that is free, or a folder."
    free, got = not other and not target.is_symlink(), str(target)
    need(free, "a folder to write", of="path", got=got, fix=fix)
    if not target.exists():
        return False
    if any(target.iterdir()):
        same = replaces is not None and (target / replaces).is_file()
        fix = "Pass another path, or overwrite=True where it holds an earlier model."
        need(same, "a folder that is not there yet", of="path", got=got, fix=fix)
        require_own(target, of="path")
    return True


def require_own(folder: Path, *, of: str) -> None:
    """Refuse to replace a folder that holds files of somebody else."""
    others = sorted(e.name for e in folder.iterdir() if not _is_own(e))
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    shown = ", ".join(name if name.isprintable() else repr(name) for name in others[:5])
    words, got = f"only files that Fairveil wrote in {folder}", f"{shown}{more}"
    fix = "Move them, or name another folder: only what Fairveil wrote is replaced."
    need(not others, words, of=of, got=got, fix=fix)


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
        _remove_own(old)
    # elsewhere a folder cannot be opened, and renames are durable by other means
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _remove_own(old: Path) -> None:
    """What somebody put there in the last moment stays, in the folder that was moved away."""
    with suppress(OSError):
        for entry in old.iterdir():
            if _is_own(entry):
                entry.unlink()
        old.rmdir()
