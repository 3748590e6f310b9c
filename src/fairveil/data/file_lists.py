"""One file, a folder of files, or a pattern with stars: which files a table lies in, in the order
in which they are read."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import DataNotFoundError
from .files import PathLike, existing
from .streamed import Chunk, Reader

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".txt")
STARS = "*?["


def files_of(path: PathLike, what: str, endings: Sequence[str]) -> list[Path]:
    """The files, by name. Of a folder those with one of the endings; names that begin with a dot or
    an underscore are notes of the programs that wrote it.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("part-1.csv", "part-0.csv", "_SUCCESS", ".part-0.csv.crc"):
    ...     (folder / name).touch()
    >>> [found.name for found in files_of(folder, "a CSV file", CSV)]
    ['part-0.csv', 'part-1.csv']
    """
    text = os.fspath(path)
    if Path(text).is_dir():
        named = (
            entry for entry in Path(text).iterdir() if entry.name.lower().endswith(tuple(endings))
        )
    elif any(star in text for star in STARS) and not Path(text).exists():
        named = (Path(found) for found in glob.glob(text))
    else:
        return [existing(path, what)]
    found = sorted(
        entry for entry in named if entry.is_file() and not entry.name.startswith((".", "_"))
    )
    if not found:
        remedy = f"Look for its name; the current folder is {Path.cwd()}."
        got = "a folder without one" if Path(text).is_dir() else "nothing there"
        raise DataNotFoundError.expected(what, of=text, got=got, remedy=remedy)
    return found


class Chained:
    """Several files as one: their rows one after another."""

    def __init__(self, readers: Sequence[Reader], place: str) -> None:
        self._readers, self._place = tuple(readers), place

    @property
    def place(self) -> str:
        """As it was given."""
        return self._place

    def identity(self) -> object:
        """Of all files."""
        return tuple(reader.identity() for reader in self._readers)

    def counted(self) -> int | None:
        """Of all files, where each says it."""
        found = [reader.counted() for reader in self._readers]
        return None if None in found else sum(one for one in found if one is not None)

    def chunks(self) -> Iterator[Chunk]:
        """All rows."""
        for reader in self._readers:
            yield from reader.chunks()


def chained(readers: Sequence[Reader], path: PathLike) -> Reader:
    """One reader of all; the only one as it is."""
    return readers[0] if len(readers) == 1 else Chained(readers, os.fspath(path))
