"""Tables where people have them: CSV, Parquet, databases. With a schema as coded rows; without one
as raw columns."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

from .._urls import without_password
from ..data import EncodedRows
from ..data import open as open_rows
from ..data.reading import (
    BROKEN,
    CSV,
    PARQUET,
    Database,
    delimiter_of,
    files_of,
    headed,
    kind_of,
    parquet_schema,
    rows_from,
    unreadable,
)
from ..errors import (
    FairveilError,
    InputError,
    RowsOnDisk,
    SchemaError,
)
from ..facts import Schema
from ..tables.frames import column_of
from .csv_columns import columns_from

Columns = dict[str, npt.NDArray[Any]]
NOT_READ = np.empty(0, dtype=object)


@dataclass(frozen=True)
class Place:
    """A file, or a database and what is asked of it."""

    address: str
    query: str | None = None

    @property
    def shown(self) -> str:
        """Its name without a password."""
        return without_password(self.address)

    def coded(
        self, schema: Schema, *, sensitive_as_feature: bool = False, precision: str = "float64"
    ) -> EncodedRows:
        """Rows coded by a schema, in memory; of a coded store, or where they do not fit memory,
        mapped from the disk."""
        with _said_at_once():
            return self._coded(schema, sensitive_as_feature, precision)

    def _coded(self, schema: Schema, sensitive_as_feature: bool, precision: str) -> EncodedRows:
        self.kind()
        return open_rows(
            self.address,
            schema,
            query=self.query,
            sensitive_as_feature=sensitive_as_feature,
            precision=precision,
        )

    def columns(self, words: Collection[str] = (), only: Collection[str] | None = None) -> Columns:
        """The columns as they come. In a CSV file a column whose cells are all numbers is numbers,
        unless it is among `words`; an empty cell is missing. `only`: those that are wanted, where
        they are all there; the others may be empty then."""
        kind = self.kind()
        if kind == "store":
            remedy = (
                "Pass the table that it was made from; rows of a store are read by their schema "
                "alone."
            )
            raise InputError.expected("a table", of=self.shown, got="a coded store", remedy=remedy)
        if kind == "sql":
            return self._from_sql()
        if not Path(self.address).is_file():
            return self._from_files([Place(str(file)) for file in self.files], words, only)
        return self._from_parquet(only) if kind == "parquet" else self._from_csv(words, only)

    def _from_files(
        self, files: Sequence[Place], words: Collection[str], only: Collection[str] | None
    ) -> Columns:
        """Those of several files, one after another. What is words in one of them is words in
        all."""
        parts = [file.columns(words, only) for file in files]
        names = list(parts[0])
        for file, part in zip(files, parts, strict=True):
            if set(part) != set(names):
                remedy = (
                    "Give all files the same columns; with a schema only the declared ones are "
                    "read."
                )
                expected = f"the columns of {files[0].shown}: {headed(names, ())}"
                got = headed(list(part), ())
                raise SchemaError.expected(
                    expected, of=file.shown, got=got, remedy=remedy, quote=False
                )
        mixed = {name for name in names if len({part[name].dtype == object for part in parts}) > 1}
        if not mixed <= set(words):
            return self._from_files(files, {*words, *mixed}, only)
        return {name: np.concatenate([part[name] for part in parts]) for name in names}

    def kind(self) -> str:
        return kind_of(
            self.address, self.query, "Say which rows with --query: a table, or a SELECT."
        )

    @property
    def files(self) -> list[Path]:
        """Those of a file, a folder or a pattern, in the order in which they are read."""
        return files_of(self.address, "a CSV or Parquet file", (*PARQUET, *CSV))

    @property
    def delimiter(self) -> str:
        """Of a CSV file: a tab where its name says so."""
        return delimiter_of(self.address)

    def parquet_schema(self) -> Any:
        """Names and types of a Parquet file, without a row."""
        return parquet_schema(self.files[0])

    def _from_csv(self, words: Collection[str], only: Collection[str] | None) -> Columns:
        rows = rows_from(Path(self.address), self.delimiter)
        names = _distinct([name.strip() for name in next(rows, [])], self.shown)
        read = columns_from(rows, names, _wanted(names, only), words)
        return {name: read.get(name, NOT_READ) for name in names}

    def _from_parquet(self, only: Collection[str] | None) -> Columns:
        found = self.parquet_schema()
        from pyarrow import parquet

        try:  # a column at a time: no second copy of the table
            names = _distinct(list(found.names), self.shown)
            read = {
                name: column_of(_parquet_column(parquet, self.address, name), name)
                for name in _wanted(names, only)
            }
            return {name: read.get(name, NOT_READ) for name in names}
        except FairveilError:
            raise
        except BROKEN:
            pass
        raise unreadable(Path(self.address), "a whole Parquet file")

    def _from_sql(self) -> Columns:
        database = Database(self.address, str(self.query))
        names = database.names()
        rows = [row for part in database.rows(names, ()) for row in part]
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return {
            name: column_of(list(column), name) for name, column in zip(names, columns, strict=True)
        }


@contextmanager
def _said_at_once() -> Iterator[None]:
    """That rows go to the disk is said before they do."""
    show = warnings.showwarning

    def said(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if isinstance(message, RowsOnDisk):
            typer.echo(f"fairveil: note: {message.in_shell}", err=True)
        else:
            show(message, category, *place)

    with warnings.catch_warnings():
        warnings.simplefilter("always", RowsOnDisk)
        warnings.showwarning = said  # type: ignore[assignment]  # it takes the same, in one
        yield


def _wanted(names: list[str], only: Collection[str] | None) -> list[str]:
    """The columns to read: none where one is lacking, which the caller then says."""
    if only is None:
        return names
    return [name for name in names if name in only] if set(only) <= set(names) else []


def _parquet_column(parquet: Any, address: str, name: str) -> Any:
    """One column; texts by their distinct values, as they lie in the file."""
    import pyarrow as pa

    kind = parquet.read_schema(address).field(name).type
    coded = [name] if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None
    return parquet.read_table(address, columns=[name], read_dictionary=coded)[0]


def picked(columns: Mapping[str, Any], names: Collection[str], shown: str, of: str) -> Columns:
    """The named columns; an error that lists the ones that are there."""
    lacking = [name for name in names if name not in columns]
    if lacking:
        remedy = f"Name columns of {shown}."
        known = headed(list(columns), names)
        among = known if isinstance(known, list) else ()
        words = (
            f"columns out of {known}"
            if isinstance(known, list)
            else f"columns of {shown}: it has {known}"
        )
        raise InputError.expected(words, of=of, got=lacking, remedy=remedy, among=among)
    return {name: columns[name] for name in names}


def _distinct(names: list[str], shown: str) -> list[str]:
    if not names or len(set(names)) != len(names):
        remedy = (
            "Give every column a name of its own; with a schema only the declared ones are read."
        )
        # without a header the names are a row
        twice = [at for at, name in enumerate(names, 1) if names.count(name) > 1]
        got = f"one name for columns {', '.join(map(str, twice[:10]))}" if names else "no columns"
        raise SchemaError.expected(
            "columns with distinct names", of=shown, got=got, remedy=remedy, quote=False
        )
    return names
