"""Tables where people have them: CSV, Parquet, databases, coded stores. With a schema as coded rows;
without one as raw columns; and the names and kinds of columns alone.

Guarantees (tests/cli/test_cli_rows.py):
1. `kinds` reads no row: of a CSV file its first line, of Parquet its metadata, of a database the
   names of a query that yields no row, and what SQLite's catalogue says of kinds.
2. A first line that may be a person's is not taken for a header, nor shown. No message holds a cell.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._urls import without_password
from ..data.reading import (
    BROKEN,
    BROKEN_GZIP,
    CSV,
    PARQUET,
    Database,
    delimiter_of,
    files_of,
    headed,
    kind_of,
    open_bytes,
    parquet_schema,
    rows_from,
    unreadable,
)
from ..errors import FairveilError, RowsOnDisk, SchemaError
from ..facts import Schema
from .files import note
from .frame import wrong

if TYPE_CHECKING:
    from ..data import EncodedRows

Columns = dict[str, npt.NDArray[Any]]
NOT_READ = np.empty(0, dtype=object)
KINDS = {
    "boolean": re.compile("bool", re.IGNORECASE),
    "category": re.compile("string|char|text|dictionary|enum|utf8", re.IGNORECASE),
    "number": re.compile("int|float|double|decimal|numeric|real", re.IGNORECASE),
}
RENAME = "Give every column a name of its own; with a schema only the declared ones are read."


@dataclass(frozen=True)
class Place:
    """A file, or a database and what is asked of it."""

    address: str
    query: str | None = None

    @property
    def shown(self) -> str:
        """Its name without a password."""
        return without_password(self.address)

    def kind(self) -> str:
        """ "csv", "parquet", "sql" or "store"; an error where it is none of these."""
        return kind_of(
            self.address, self.query, "Say which rows with --query: a table, or a SELECT."
        )

    def coded(
        self, schema: Schema, *, sensitive_as_feature: bool = False, precision: str = "float64"
    ) -> EncodedRows:
        """Rows coded by a schema, in memory; of a coded store, or where they do not fit memory,
        mapped from the disk."""
        from ..data import open as open_rows

        with _said_at_once():
            self.kind()
            found: Any = open_rows(
                self.address,
                schema,
                query=self.query,
                sensitive_as_feature=sensitive_as_feature,
                precision=precision,
            )
        return found  # type: ignore[no-any-return]

    def columns(self, words: Collection[str] = (), only: Collection[str] | None = None) -> Columns:
        """The columns as they come. In a CSV file a column whose cells are all numbers is numbers,
        unless it is among `words`; an empty cell is missing. `only`: those that are wanted, where
        they are all there; the others may be empty then."""
        kind = self.kind()
        if kind == "store" or (kind != "sql" and not Path(self.address).is_file()):
            got = "a coded store" if kind == "store" else "several files"
            remedy = "Pass one table; a store, and several files, are read by a schema alone."
            raise wrong(self.shown, "a table", got, remedy)
        if kind == "sql":
            return self._from_sql()
        return self._from_parquet(only) if kind == "parquet" else self._from_csv(words, only)

    def kinds(self) -> dict[str, str | None]:
        """Each column's kind, by what the table says of itself; None where it says nothing."""
        how = self.kind()
        if how == "csv":
            return dict.fromkeys(self._header())
        if how == "parquet":
            return {str(one.name): _kind(str(one.type)) for one in parquet_schema(self._file)}
        database = Database(self.address, str(self.query))
        known = database.sqlite_types()
        return {name: _kind(known.get(name, "")) for name in database.names()}

    @property
    def _file(self) -> Path:
        return files_of(self.address, "a CSV or Parquet file", (*PARQUET, *CSV))[0]

    def _header(self) -> list[str]:
        try:
            with io.TextIOWrapper(
                open_bytes(self._file), encoding="utf-8-sig", errors="replace", newline=""
            ) as text:
                # a block of bytes is decoded at once: a later row that is no UTF-8 is not looked at
                first = next(csv.reader(text, delimiter=delimiter_of(self.address)), [])
        except (csv.Error, *BROKEN_GZIP):
            first = []
        names = [name.strip() for name in first]
        if (got := _strange(names)) is not None:
            remedy = "Give the table a first line with a name of its own for every column."
            raise SchemaError.expected(
                "a header", of=self.shown, got=got, remedy=remedy, quote=False
            )
        return names

    def _from_csv(self, words: Collection[str], only: Collection[str] | None) -> Columns:
        rows = rows_from(Path(self.address), delimiter_of(self.address))
        names = _distinct([name.strip() for name in next(rows, [])], self.shown)
        wanted = [(at, name) for at, name in enumerate(names) if name in _wanted(names, only)]
        cells: dict[str, list[str]] = {name: [] for _, name in wanted}
        for row in rows:
            for at, name in wanted:
                cells[name].append(intern(row[at].strip()))  # equal cells are kept once
        typed = {name: _typed(cells.pop(name), name in words) for _, name in wanted}
        return {name: typed.get(name, NOT_READ) for name in names}

    def _from_parquet(self, only: Collection[str] | None) -> Columns:
        from pyarrow import parquet

        from ..tables.frames import column_of

        def columns() -> Columns:  # one at a time: no second copy of the table
            names = _distinct(list(found.names), self.shown)
            read = {
                name: column_of(parquet.read_table(self.address, columns=[name])[0], name)
                for name in _wanted(names, only)
            }
            return {name: read.get(name, NOT_READ) for name in names}

        found = parquet_schema(self._file)
        try:
            return columns()
        except FairveilError:
            raise
        except BROKEN:
            pass
        raise unreadable(Path(self.address), "a whole Parquet file")

    def _from_sql(self) -> Columns:
        from ..tables.frames import column_of

        database = Database(self.address, str(self.query))
        names = database.names()
        rows = [row for part in database.rows(names, ()) for row in part]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
        return {name: column_of(list(one), name) for name, one in zip(names, columns, strict=True)}


def _typed(cells: list[str], words: bool) -> npt.NDArray[Any]:
    """Whole numbers, numbers, or texts; None or NaN where a cell is empty."""
    # Python would read 1_000 as a number
    if not words and any(cells) and not any("_" in cell for cell in cells):
        try:
            numbers = np.array([float(cell) if cell else np.nan for cell in cells])
        except ValueError:
            pass
        else:
            whole = np.isfinite(numbers).all() and (np.abs(numbers) < 2**53).all()
            whole = whole and (numbers == np.floor(numbers)).all()
            return numbers.astype(np.int64) if whole else numbers
    return np.fromiter((cell or None for cell in cells), dtype=object, count=len(cells))


@contextmanager
def _said_at_once() -> Iterator[None]:
    """That rows go to the disk is said before they do."""
    show = warnings.showwarning

    def said(message: Any, category: Any, *place: Any) -> None:
        if isinstance(message, RowsOnDisk):
            note(f"note: {message.in_shell}")
        else:
            show(message, category, *place)

    with warnings.catch_warnings():
        warnings.simplefilter("always", RowsOnDisk)
        warnings.showwarning = said  # type: ignore[assignment]  # it takes the same, in one
        yield


def _kind(type_name: str) -> str | None:
    return next((kind for kind, known in KINDS.items() if known.search(type_name)), None)


def _strange(names: list[str]) -> str | None:
    """Why a first line is not surely a header, by the places of its cells; None where it is."""
    if not names:
        return "no first line"
    for at, name in enumerate(names, 1):
        first = names.index(name) + 1
        why = (
            f"column {at} has no name"
            if not name
            else f"the name of column {at} is a number"
            if not isinstance(headed([name], ()), list)
            else f"columns {first} and {at} have one name"
            if first < at
            else f"the name of column {at} has letters that cannot be printed"
            if not name.isprintable() or "\ufffd" in name
            else None
        )
        if why is not None:
            return f"none that is surely one: {why}"
    return None


def _wanted(names: list[str], only: Collection[str] | None) -> list[str]:
    """The columns to read: none where one is lacking, which the caller then says."""
    if only is None:
        return names
    return [name for name in names if name in only] if set(only) <= set(names) else []


def _distinct(names: list[str], shown: str) -> list[str]:
    if not names or len(set(names)) != len(names):
        # without a header the names are a row
        twice = [str(at) for at, name in enumerate(names, 1) if names.count(name) > 1]
        got = f"one name for columns {', '.join(twice[:10])}" if names else "no columns"
        raise SchemaError.expected(
            "columns with distinct names", of=shown, got=got, remedy=RENAME, quote=False
        )
    return names


def picked(columns: Mapping[str, Any], names: Collection[str], shown: str, of: str) -> Columns:
    """The named columns; an error that lists the ones that are there."""
    lacking = [name for name in names if name not in columns]
    if lacking:
        known = headed(list(columns), names)
        shows = isinstance(known, list)
        words = f"columns out of {known}" if shows else f"columns of {shown}: it has {known}"
        among = known if isinstance(known, list) else ()
        raise wrong(of, words, lacking, f"Name columns of {shown}.", among)
    return {name: columns[name] for name in names}
