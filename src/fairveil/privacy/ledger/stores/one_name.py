"""One file, one name: SQLite keeps a database's log under the name that it was opened by, not in
the database.

Whoever opens the same file by another name (a hard link; the file alone mounted into a container)
sees none of the lines in that log, is granted the same budget again, and may write over what the
other one wrote. So a file with a second link is refused, as is one that is a mount point itself.
And each process locks one byte of the file, which stands for the name that it uses: a byte far
beyond the file's end and SQLite's own locks, by locks of Linux that belong to an open file ("OFD"),
which nothing but their own descriptor gives up. Where another name's byte is locked, the file is in
use by that name.

A name is the folder itself (device and inode) and the file's name in it: a folder that is mounted
elsewhere as a whole brings the log along, and is the same name.

Guarantees (tests/privacy/ledger/test_ledger_one_name.py):
1. A file that has two links, or is a mount point, is not used. Not by any process, in whatever
   order, as long as it is so.
2. While a process uses a file by one name nobody uses it by another; many processes use it by one
   name.
3. No lock that SQLite holds on the file is given up here: a descriptor is closed only where this
   process has no connection.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import threading
import weakref
from pathlib import Path

from ...._reading import AT_ONCE
from ....errors import LedgerError

try:
    import fcntl
except ImportError:
    # no such system: hard links and mount points are still refused where they can be seen
    fcntl = None  # type: ignore[assignment]

_FIRST, _SLOTS = 1 << 61, 1 << 60
_READ, _WRITE, _NONE = 0, 1, 2  # F_RDLCK and its like, as Linux numbers them
_LAYOUT = "hhqqi0q"
_lock = threading.RLock()


class _File:
    """A file of which this process has connections: how many, and a descriptor for each name."""

    def __init__(self) -> None:
        # one that was interrupted while it was made is gone
        self.users: weakref.WeakSet[Name] = weakref.WeakSet()
        self.descriptors: dict[int, int] = {}


_files: dict[tuple[int, int], _File] = {}
_process = os.getpid()


class Name:
    """A file by one name, from before a connection to it is opened until after it was closed."""

    def __init__(self, path: Path, shown: str) -> None:
        """Refused where it has another name. What was taken when this raises is given back."""
        self.identity = (-1, -1)
        self._file: tuple[int, int] | None = None
        real = Path(os.path.realpath(path))
        try:
            self._take(real, shown)
        except BaseException:
            self.release()
            raise

    def _take(self, real: Path, shown: str) -> None:
        folder = os.stat(real.parent)
        slot = _slot(folder.st_dev, folder.st_ino, real.name)
        with _lock:
            status = os.stat(real)
            key = self.identity = (status.st_dev, status.st_ino)
            file = _files.setdefault(key, _File())
            file.users.add(self)
            self._file = key
            if slot not in file.descriptors:
                # Held open as long as any connection lives: closing one would give up SQLite's own
                # locks on the file.
                file.descriptors[slot] = _opened(real)
            descriptor = file.descriptors[slot]
            status = os.fstat(descriptor)
            if (status.st_dev, status.st_ino) != key:
                raise moved(shown)
            if is_mounted(real, descriptor):
                raise named_twice(
                    shown, "a mount point: the file alone is mounted there, without its folder"
                )
            require_one_link(status, shown)
            # First lock, then look: of two processes with two names at least one sees the other.
            _control(descriptor, "F_OFD_SETLK", _READ, slot, 1)
            if _is_locked_beside(descriptor, slot):
                _control(descriptor, "F_OFD_SETLK", _NONE, slot, 1)
                raise named_twice(shown, "a file that is in use by another name")

    def release(self) -> None:
        """After its connection was closed. A second time is no error."""
        if self._file is None or os.getpid() != _process:
            return
        with _lock:
            file = _files.get(self._file)
            if file is not None:
                file.users.discard(self)
                if not file.users:
                    _files.pop(self._file, None)
                    for descriptor in file.descriptors.values():
                        os.close(descriptor)
            self._file = None


def require_one_link(status: os.stat_result, shown: str) -> None:
    """Refuse a file that another name leads to."""
    if status.st_nlink > 1:
        raise named_twice(shown, f"a file with {status.st_nlink} hard links")


def is_mounted(real: Path, descriptor: int) -> bool:
    """Whether the file itself is mounted there: it is on another mount than its folder."""
    path_only = os.O_PATH if sys.platform == "linux" else None
    if path_only is not None:
        folder = os.open(real.parent, path_only | os.O_CLOEXEC)
        try:
            ours, its = _mount(descriptor), _mount(folder)
        finally:
            os.close(folder)
        if ours is not None and its is not None:
            # Two mounts: the file is a mount point, and its log lies beside another name.
            return ours != its
    # Not where the above tells: of a layered file system files and folders have devices of their
    # own.
    return os.fstat(descriptor).st_dev != os.stat(real.parent).st_dev


def named_twice(shown: str, got: str) -> LedgerError:
    """A name that SQLite would keep a log of its own by."""
    remedy = (
        "By each name some lines are not seen. Remove the other one (find / -samefile FILE), or "
        "mount the folder instead of "
        "the file; or use PostgreSQL."
    )
    return LedgerError.expected("a file with one name", of=shown, got=got, remedy=remedy)


def moved(shown: str) -> LedgerError:
    """Another file was put in its place in the middle of a use."""
    remedy = "Nothing was written. Try again when it stays where it is."
    return LedgerError.expected(
        "a file that stays where it is", of=shown, got="another one", remedy=remedy
    )


def _opened(real: Path) -> int:
    return os.open(real, os.O_RDONLY | AT_ONCE)


def _slot(device: int, inode: int, name: str) -> int:
    """The byte of a name: one of so many that no two names are likely to share it."""
    text = f"{device} {inode} {name}".encode("utf-8", "surrogateescape")
    return _FIRST + int.from_bytes(hashlib.sha256(text).digest()[:8], "big") % _SLOTS


def _is_locked_beside(descriptor: int, slot: int) -> bool:
    before = (
        _control(descriptor, "F_OFD_GETLK", _WRITE, _FIRST, slot - _FIRST)
        if slot > _FIRST
        else _NONE
    )
    after = _control(descriptor, "F_OFD_GETLK", _WRITE, slot + 1, _FIRST + _SLOTS - slot)
    return before != _NONE or after != _NONE


def _control(descriptor: int, command: str, kind: int, start: int, length: int) -> int:
    """The kind of lock that is answered. No lock where the system, or the file's, has none of
    these."""
    if not hasattr(fcntl, command) or sys.maxsize < 1 << 32:
        return _NONE
    asked = struct.pack(_LAYOUT, kind, os.SEEK_SET, start, length, 0)
    try:
        answer = fcntl.fcntl(descriptor, getattr(fcntl, command), asked)
    except OSError:  # a file system without locks: SQLite, which needs them, says so
        return _NONE
    return int(struct.unpack(_LAYOUT, answer)[0])


def _mount(descriptor: int) -> str | None:
    """On which mount an open file is, where Linux tells."""
    try:
        with open(f"/proc/self/fdinfo/{descriptor}") as lines:
            return next((line.split()[1] for line in lines if line.startswith("mnt_id:")), None)
    except OSError:
        return None


def _in_child() -> None:
    """The descriptors stay open as the parent has them, and are never closed here; the lock may be
    a thread's that is gone."""
    global _lock, _process
    _files.clear()
    _lock, _process = threading.RLock(), os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
