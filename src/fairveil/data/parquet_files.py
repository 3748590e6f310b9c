"""Rows from Parquet files, by pyarrow."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import FairveilError, InputError, complaint
from ..facts.schema import Schema
from .encoded import BLOCK_ROWS, EncodedRows, require_columns
from .encoding import Encoding
from .files import PathLike, existing, identity_of, unreadable
from .streamed import Chunk, StreamedRows, rows_of
from .tables import from_arrow

BROKEN = (OSError, ValueError, LookupError, TypeError, ArithmeticError, NotImplementedError, RuntimeError, MemoryError)
"""What pyarrow raises for bytes that are no Parquet file: its own errors are of these families."""


def load_parquet(
    path: PathLike,
    schema: Schema,
    *,
    in_memory: bool = False,
    sensitive_as_feature: bool = False,
    block_rows: int = BLOCK_ROWS,
    precision: str = "float64",
) -> StreamedRows | EncodedRows:
    """Rows of a Parquet file, read block by block at each pass, or once with `in_memory=True`. Needs pyarrow.

    The whole file is checked here, before any release; see `StreamedRows` for what happens when it changes afterwards.
    """
    found = existing(path, "a Parquet file")
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError(
            complaint(expected="pyarrow", of="load_parquet", got="no pyarrow", remedy="pip install 'fairveil[data]'")
        )
    encoding = Encoding(schema, sensitive_as_feature, precision)
    reader = _Reader(found, encoding.needed())
    return rows_of(reader, encoding, in_memory, block_rows)


class _Reader:
    def __init__(self, path: Path, needed: tuple[str, ...]) -> None:
        self._path = path
        self._needed = needed
        with self._open() as file:
            require_columns(needed, self._names(file), str(path))

    @property
    def place(self) -> str:
        return str(self._path)

    def identity(self) -> object:
        return identity_of(self._path)

    def chunks(self) -> Iterator[Chunk]:
        try:
            with self._open() as file:
                for batch in file.iter_batches(batch_size=BLOCK_ROWS, columns=list(self._needed)):
                    columns = {name: from_arrow(batch.column(name)) for name in self._needed}
                    yield Chunk(columns, batch.num_rows)
            return
        except FairveilError:
            raise
        except BROKEN:
            pass
        raise unreadable(self._path, "a whole Parquet file")

    def _names(self, file: Any) -> list[str]:
        names: list[str] | None = None
        with suppress(*BROKEN):
            names = file.schema_arrow.names
        if names is None:
            raise unreadable(self._path, "a whole Parquet file")
        return names

    def _open(self) -> Any:
        from pyarrow import parquet

        try:
            return parquet.ParquetFile(self._path)
        except BROKEN:
            pass
        raise unreadable(self._path, "a Parquet file")
