"""Rows from Parquet files, by pyarrow."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FairveilError, InputError
from ..facts.schema import Schema
from ..tables.frames import from_arrow
from .ahead import ahead
from .encoded import BLOCK_ROWS, EncodedRows, require_columns
from .encoding import Encoding
from .file_lists import PARQUET, chained, files_of
from .files import PathLike, identity_of, unreadable
from .streamed import Chunk, Reader, StreamedRows, rows_of, to_copy

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BROKEN = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
)
"""What pyarrow raises for bytes that are no Parquet file: its own errors are of these families."""


def load_parquet(
    path: PathLike,
    schema: Schema,
    *,
    in_memory: bool | None = False,
    sensitive_as_feature: bool = False,
    block_rows: int = BLOCK_ROWS,
    precision: str = "float64",
    row_groups: Sequence[int] | None = None,
) -> StreamedRows | EncodedRows:
    """Rows of a Parquet file, read block by block at each pass, or once with `in_memory=True`.
    Needs pyarrow.

    `path`: a file, a folder of files, or a pattern (`"people/*.parquet"`); files are read by name,
    one after another. `row_groups`: of one file, these alone. `in_memory=None`: held where they fit
    memory, else in a coded store that is deleted after use.

    The whole file is checked here, before any release; see `StreamedRows` for what happens when it
    changes afterwards.
    """
    encoding = Encoding(schema, sensitive_as_feature, precision)
    return rows_of(
        reader_of(path, encoding.needed(), row_groups, encoding.wished),
        encoding,
        in_memory,
        block_rows,
    )


def parquet_to_copy(
    path: PathLike, schema: Schema, *, sensitive_as_feature: bool, precision: str, block_rows: int
) -> StreamedRows:
    """Rows of Parquet files for one who copies all of them: read, and checked, once."""
    encoding = Encoding(schema, sensitive_as_feature, precision)
    reader = reader_of(path, encoding.needed(), None, encoding.wished)
    return to_copy(reader, encoding, block_rows)


def reader_of(
    path: PathLike,
    needed: Sequence[str],
    row_groups: Sequence[int] | None = None,
    wished: Sequence[str] = (),
) -> Reader:
    """The columns `needed` of a Parquet file, and of those `wished` what there are, as
    `load_parquet` reads them."""
    found = files_of(path, "a Parquet file", PARQUET)
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError.expected(
            "pyarrow", of="load_parquet", got="no pyarrow", remedy="pip install 'fairveil[data]'"
        )
    return chained(
        [_Reader(file, tuple(needed), tuple(wished), row_groups) for file in found], path
    )


def groups_of(path: Path) -> int:
    """How many row groups a file has."""
    return int(_opened(path).num_row_groups)


def footer_of(path: Path) -> bytes:
    """The end of a file: where each column of each row group lies, its size and its statistics."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        end = file.read()
        length = int.from_bytes(end[:4], "little")
        if len(end) < 8 or end[4:] != b"PAR1" or length + 8 > size:
            raise unreadable(path, "a whole Parquet file")
        file.seek(size - 8 - length)
        return file.read()


def _opened(path: Path) -> Any:
    from pyarrow import parquet

    try:
        # Not as pyarrow has it: a buffer of all row groups that are asked for, held until the end.
        return parquet.ParquetFile(path, pre_buffer=False)
    except BROKEN:
        pass
    raise unreadable(path, "a Parquet file")


class _Reader:
    def __init__(
        self,
        path: Path,
        needed: tuple[str, ...],
        wished: tuple[str, ...],
        groups: Sequence[int] | None = None,
    ) -> None:
        self._path = path
        self._groups = None if groups is None else list(groups)
        with self._open() as file:
            names = self._names(file)
            require_columns(needed, names, str(path))
        self._needed = (*needed, *(name for name in wished if name in names))

    @property
    def place(self) -> str:
        return str(self._path)

    def identity(self) -> object:
        return identity_of(self._path)

    def counted(self) -> int | None:
        with self._open() as file:
            told = file.metadata
            groups = range(told.num_row_groups) if self._groups is None else self._groups
            return sum(int(told.row_group(group).num_rows) for group in groups)

    def chunks(self) -> Iterator[Chunk]:
        return ahead(self._chunks)

    def _chunks(self) -> Iterator[Chunk]:
        try:
            with self._open() as file:
                for batch in file.iter_batches(BLOCK_ROWS, self._groups, list(self._needed)):
                    columns = {name: from_arrow(batch.column(name)) for name in self._needed}
                    yield Chunk(columns, batch.num_rows)
            return
        except FairveilError:
            raise
        except BROKEN:
            pass
        raise unreadable(self._path, "a whole Parquet file")

    def _names(self, file: pq.ParquetFile) -> list[str]:
        names: list[str] | None = None
        with suppress(*BROKEN):
            names = file.schema_arrow.names
        if names is None:
            raise unreadable(self._path, "a whole Parquet file")
        return names

    def _open(self) -> Any:
        return _opened(self._path)
