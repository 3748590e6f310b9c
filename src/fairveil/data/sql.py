"""Rows from SQL databases: SQLite by the standard library, DuckDB by duckdb, every other one by
SQLAlchemy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

import numpy as np

from .._urls import scrubbed, without_password
from ..errors import DataNotFoundError, FairveilError, InputError
from ..facts.schema import Schema
from ..tables.raw import Plain, Raw
from .ahead import ahead
from .databases import Cursor, Failure, connector_for, file_of
from .encoded import BLOCK_ROWS, EncodedRows, require_columns
from .encoding import Encoding
from .streamed import Chunk, Reader, StreamedRows, rows_of

QUERY = re.compile(r"\s*(?:select|with|values)\b", re.IGNORECASE)


def load_sql(
    url: str | os.PathLike[str],
    query_or_table: str,
    schema: Schema,
    *,
    order_by: Sequence[str] = (),
    in_memory: bool | None = False,
    sensitive_as_feature: bool = False,
    block_rows: int = BLOCK_ROWS,
    precision: str = "float64",
) -> StreamedRows | EncodedRows:
    """Rows of a table or of a SELECT, read block by block at each pass, or once with
    `in_memory=True`.

    `url`: "sqlite:///people.db" (or just the path of the file), "duckdb:///people.duckdb",
    "postgresql://user:password@host/base" or any other address of SQLAlchemy. Databases are opened
    for reading only, so none is made where there is none; passwords never appear in an error.
    `order_by`: columns that fix the order of rows, which SQL leaves open: only the repetition of a
    seeded fit with sampling needs it.

    `in_memory=None`: held where they fit memory, else in a coded store that is deleted after use.

    All rows are checked here, before any release. A database gives no sign of a change but another
    number of rows: read a snapshot, or a table that nobody writes to.
    """
    encoding = Encoding(schema, sensitive_as_feature, precision)
    return rows_of(
        reader_of(url, query_or_table, encoding.needed(), order_by, encoding.wished),
        encoding,
        in_memory,
        block_rows,
    )


def reader_of(
    url: str | os.PathLike[str],
    query_or_table: str,
    needed: Sequence[str],
    order_by: Sequence[str] = (),
    wished: Sequence[str] = (),
) -> Reader:
    """The columns `needed` of a table or a SELECT, and of those `wished` what there are, as
    `load_sql` reads them."""
    reader = _Reader(os.fspath(url), query_or_table, tuple(needed), tuple(order_by), tuple(wished))
    reader.require_columns()
    return reader


class _Reader:
    def __init__(
        self,
        url: str,
        query_or_table: str,
        needed: tuple[str, ...],
        order_by: tuple[str, ...],
        wished: tuple[str, ...],
    ) -> None:
        self._url = url
        self._place = without_password(url)
        self._connect = connector_for(url)
        self._what = query_or_table
        self._needed, self._wished = needed, wished
        self._order_by = order_by

    @property
    def place(self) -> str:
        return (
            f"{self._place}, "
            f"{self._what.strip().splitlines()[0][:60] if self._what.strip() else ''}"
        )

    def identity(self) -> object:
        file = file_of(self._url)
        stat = file.stat() if file is not None and file.is_file() else None
        return None if stat is None else (stat.st_size, stat.st_mtime_ns, stat.st_ino)

    def counted(self) -> None:
        """Another query would have to count them, and other rows may be there then."""

    def require_columns(self) -> None:
        """SQLite would read a name that it does not know as a text, so the columns are looked up
        first."""
        cursor = self._run(f"SELECT * FROM {self._source()} WHERE 1 = 0")
        try:
            require_columns((*self._needed, *self._order_by), cursor.names, self.place)
            self._needed = (*self._needed, *(name for name in self._wished if name in cursor.names))
        finally:
            cursor.close()

    def chunks(self) -> Iterator[Chunk]:
        """Another thread asks the database for the next rows while the caller works on these."""
        return ahead(self._chunks)

    def _chunks(self) -> Iterator[Chunk]:
        columns = ", ".join(map(self._quoted, self._needed)) or "1"
        order = (
            f" ORDER BY {', '.join(map(self._quoted, self._order_by))}" if self._order_by else ""
        )
        cursor = self._run(f"SELECT {columns} FROM {self._source()}{order}")
        try:
            while rows := self._fetch(cursor):
                raw: dict[str, Raw] = {
                    name: Plain(
                        np.fromiter((row[at] for row in rows), dtype=object, count=len(rows))
                    )
                    for at, name in enumerate(self._needed)
                }
                yield Chunk(raw, len(rows))
        finally:
            cursor.close()

    def _source(self) -> str:
        text = self._what.strip().rstrip(";").rstrip()
        if not text:
            raise InputError.expected(
                "a table or a SELECT",
                of="query_or_table",
                got=self._what,
                remedy='Pass "people", for example.',
            )
        if QUERY.match(text):
            return f"({text}\n) AS fairveil_rows"
        return ".".join(map(self._quoted, text.split(".")))

    def _quoted(self, name: str) -> str:
        return self._connect.quoted(name)

    def _run(self, query: str) -> Cursor:
        try:
            return self._connect.run(query)
        except Failure as failure:
            error = self._error(failure)
        raise error

    def _fetch(self, cursor: Cursor) -> Sequence[Sequence[object]]:
        try:
            return cursor.fetch(BLOCK_ROWS)
        except Failure as failure:
            error = self._error(failure)
        raise error

    def _error(self, failure: Failure) -> FairveilError:
        """Made here and raised by the caller outside its `except`, so that no context holds the
        driver's own message."""
        got = scrubbed(str(failure), self._url)
        if failure.connected:
            remedy = "Look for the table's name (schema.table), or mend the query."
            return DataNotFoundError.expected(
                "a table or a query that runs", of=self.place, got=got, remedy=remedy
            )
        remedy = (
            "Check the address, the name of the database, the user and the password, and that the "
            "server runs."
        )
        return DataNotFoundError.expected(
            "a database that answers", of=self._place, got=got, remedy=remedy
        )
