"""Rows that do not fit memory: coded once into a store of their own beside temporary files, mapped,
and deleted after use.

Guarantees (tests/data/test_data_spilling.py):
1. Rows are those of the source, to the bit, in memory or on the disk.
2. Where the rows go, and how large they are, is said before anything is written; a disk without
   room is found then, too.
3. The folder is its owner's alone, and is deleted with the last use of its rows; one that a killed
   process left, by the next.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from .. import _checks
from ..errors import InputError, RowsOnDisk, complaint
from ..facts.rows import RowBlock, RowSource
from .encoded import EncodedRows, in_blocks_of
from .encoding import Encoding
from .store_writer import write_store

SHARE = 0.25  # of the memory of this machine, or of what the process may use of it
LIMIT, FOLDER = "FAIRVEIL_MEMORY", "FAIRVEIL_SPILL"
PREFIX, LOCK, STORE = "fairveil-rows-", "lock", "rows.store"
CGROUP = Path("/sys/fs/cgroup/memory.max")


def most_in_memory() -> int:
    """Bytes of coded rows that are held: FAIRVEIL_MEMORY, or a quarter of what there is."""
    stated = os.environ.get(LIMIT)
    if stated is not None:
        try:
            return _checks.whole(at_least=1, FAIRVEIL_MEMORY=int(stated))
        except ValueError:
            pass
        remedy = "Set it to a number of bytes: 2000000000, for example."
        raise InputError.expected("bytes", of=LIMIT, got=stated, remedy=remedy)
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no such question on this system
        found = 1 << 33
    with contextlib.suppress(OSError, ValueError):
        found = min(found, int(CGROUP.read_text("ascii")))
    return int(SHARE * found)


def size_of(block: RowBlock) -> int:
    """Bytes of a block of dense rows."""
    arrays = (block.numbers, block.codes, block.labels, block.sensitive, block.persons)
    return sum(array.nbytes for array in arrays if array is not None)


def within(blocks: Iterable[RowBlock], encoding: Encoding, block_rows: int) -> EncodedRows | None:
    """The blocks, held; None as soon as they are more than memory should hold."""
    kept: list[RowBlock] = []
    size, most = 0, most_in_memory()
    for block in in_blocks_of(blocks, block_rows):
        size += size_of(block)
        if size > most and (encoding.schema.unit is None or block.persons is not None):
            return None
        kept.append(block)
    return EncodedRows(encoding, tuple(kept))


def too_large(source: RowSource, rows: int, encoding: Encoding) -> bool:
    """Whether `within` would hold no such rows: so many, each like one of the first block."""
    for block in source.blocks():
        known = encoding.schema.unit is None or block.persons is not None
        return known and rows / max(1, block.rows) * size_of(block) > most_in_memory()
    return False


def spilled(source: RowSource, rows: int, encoding: Encoding) -> EncodedRows:
    """The rows of a source in a store of their own, mapped. It is deleted when nobody holds the
    rows any more."""
    folder, lock = _folder()
    try:
        size = rows * _bytes_of_row(source)
        _say(size, folder)
        store = write_store(source, folder / STORE)
    except BaseException:
        _remove(folder, lock)
        raise
    weakref.finalize(store, _remove, folder, lock)
    return store.rows(encoding.schema, sensitive_as_feature=encoding.sensitive_as_feature)


def _bytes_of_row(source: RowSource) -> float:
    for block in source.blocks():
        return size_of(block) / max(1, block.rows)
    return 0.0


def _say(size: float, folder: Path) -> None:
    expected = f"rows of at most {most_in_memory() / 2**30:.2f} GiB, to be held in memory"
    got = f"about {size / 2**30:.2f} GiB of coded rows"
    copied = f"They are copied to {folder}, for their owner alone, and deleted after use"
    ways = f"name another folder in {FOLDER}, or set {LIMIT} to more bytes"
    remedy, in_shell = (
        f"{copied}. To keep them use {name}; {ways}."
        for name in ("data.write_store", "`fairveil encode`")
    )
    warning = RowsOnDisk(complaint(expected=expected, of="X", got=got, remedy=remedy, quote=False))
    warning.in_shell = f"the table is larger than memory should hold: {got}. {in_shell}"
    warnings.warn(warning, stacklevel=2)


def _folder() -> tuple[Path, IO[str] | None]:
    """A new folder, held by a lock as long as this process runs; what killed processes left is
    removed first."""
    parent = Path(os.environ.get(FOLDER) or _temporary())
    if not parent.is_dir():
        remedy = "Name a folder on a disk with space."
        raise InputError.expected("a folder", of=FOLDER, got=str(parent), remedy=remedy)
    for left in parent.glob(f"{PREFIX}*"):
        _remove_left(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    return folder, _locked(folder / LOCK)


def _remove(folder: Path, lock: IO[str] | None) -> None:
    """The folder with the rows, and only then its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        lock.close()


def _temporary() -> str:
    """Where large temporary files belong: /tmp may itself be memory."""
    large = Path("/var/tmp")
    return str(large) if large.is_dir() and os.access(large, os.W_OK) else tempfile.gettempdir()


def _locked(path: Path) -> IO[str] | None:
    """The lock, taken; None where another process has it."""
    file = open(path, "a", encoding="ascii")  # noqa: SIM115  # it is held open
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except OSError:
        file.close()
        return None
    return file


def _remove_left(folder: Path) -> None:
    """Of a process that is no more: nobody holds its lock. Others' folders cannot be opened, and
    stay."""
    with contextlib.suppress(OSError):
        if not (folder / LOCK).is_file() or folder.is_symlink():
            return
        lock = _locked(folder / LOCK)
        if lock is not None:
            _remove(folder, lock)
