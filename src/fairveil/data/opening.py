"""Rows from wherever they are: `open` reads files, folders, patterns, databases and stores;
`encode` codes once, to keep.

Guarantees (tests/data/test_data_opening.py):
1. What `open` gives has the rows of the source, to the bit, whatever the source is, in memory or on
   the disk.
2. A source that cannot be read is an error that names the way out, and shows no value of a row and
   no password.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from .._urls import without_password
from ..errors import InputError
from ..facts.schema import Schema
from .csv_files import load_csv
from .databases import SQLITE_HEADER
from .encoded import BLOCK_ROWS, EncodedRows, encode_table
from .file_lists import CSV, PARQUET, files_of
from .files import PathLike
from .parquet_files import load_parquet, parquet_to_copy
from .sql import load_sql
from .store import STORE_FILE, Store, open_store
from .store_writer import Told, write_store
from .streamed import StreamedRows

PARQUET_HEADER = b"PAR1"
NAME_ROWS = "Say which rows: query='people', a table, or a SELECT."


def open(  # as gzip.open is
    source: PathLike | Store,
    schema: Schema | None = None,
    *,
    query: str | None = None,
    order_by: Sequence[str] = (),
    sensitive_as_feature: bool = False,
    precision: str = "float64",
    in_memory: bool | None = None,
) -> Store | EncodedRows | StreamedRows:
    """Rows of any size, checked, for estimators, frontiers, audits and certificates.

    Rows that fit a quarter of the memory are held there. Larger ones are coded into a store of
    their own on the disk, which is deleted after use; a warning, `RowsOnDisk`, says first where it
    goes.

    Parameters
    ----------
    source : path, URL or Store
        A Parquet or CSV file, a folder of files, a pattern (``"people/*.parquet"``), a coded store,
        or the address of a database (``"postgresql://user@host/base"``, ``"sqlite:///people.db"``).
    schema : Schema, default=None
        How rows are coded. None is allowed of a coded store alone, which has a schema.
    query : str, default=None
        A table or a SELECT, of a database. None: the source is no database.
    order_by : sequence of str, default=()
        Columns that fix the order of a database's rows. Only the repetition of a seeded fit with
        sampling needs it.
    sensitive_as_feature : bool, default=False
        Whether sensitive columns are features, too.
    precision : {"float64", "float32"}, default="float64"
        How numbers are kept. A store keeps what it was written with.
    in_memory : bool, default=None
        True holds the rows in memory whatever their size, False reads the source again at each
        pass. None decides by size.

    Returns
    -------
    Store, EncodedRows or StreamedRows
        A source of rows: pass it in place of X.

    Raises
    ------
    DataNotFoundError
        There is no such file, or the database does not answer.
    SchemaError
        A row has a value that the schema does not cover, or a declared column is missing.
    InputError
        The schema or the query is missing.

    Examples
    --------
    >>> import tempfile
    >>> from fairveil.data import Category, Number, Schema, open
    >>> path = tempfile.mkdtemp() + "/people.csv"
    >>> _ = Path(path).write_text("age,sex\\n25,m\\n50,f\\n")
    >>> schema = Schema({"age": Number(0, 100), "sex": Category(("f", "m"))}, sensitive="sex")
    >>> next(open(path, schema).blocks()).numbers.tolist()
    [[-0.5, 0.0]]
    """
    if isinstance(source, Store):
        return _of_store(source, schema, sensitive_as_feature)
    kind = kind_of(source, query)
    if kind == "store":
        return _of_store(open_store(source), schema, sensitive_as_feature)
    if not isinstance(schema, Schema):
        remedy = "Pass Schema.load(path); only a coded store has a schema of its own."
        raise InputError.expected("a Schema", of="schema", got=schema, remedy=remedy)
    options: dict[str, Any] = {
        "in_memory": in_memory,
        "precision": precision,
        "sensitive_as_feature": sensitive_as_feature,
    }
    if kind == "sql":
        return load_sql(source, str(query), schema, order_by=order_by, **options)
    if kind == "parquet":
        return load_parquet(source, schema, **options)
    return load_csv(source, schema, delimiter=delimiter_of(source), **options)


@overload
def encode(
    table: object,
    schema: Schema,
    out: None = None,
    *,
    names: Sequence[str] | None = ...,
    target: object = ...,
    sensitive: Mapping[str, object] | None = ...,
    with_target: bool = ...,
    with_sensitive: bool = ...,
    sensitive_as_feature: bool = ...,
    block_rows: int = ...,
    precision: str = ...,
) -> EncodedRows: ...
@overload
def encode(
    table: object,
    schema: Schema,
    out: PathLike,
    *,
    names: Sequence[str] | None = ...,
    target: object = ...,
    sensitive: Mapping[str, object] | None = ...,
    with_target: bool = ...,
    with_sensitive: bool = ...,
    sensitive_as_feature: bool = ...,
    block_rows: int = ...,
    precision: str = ...,
    query: str | None = ...,
    overwrite: bool = ...,
    progress: Told | None = ...,
) -> Store: ...
def encode(
    table: object,
    schema: Schema,
    out: PathLike | None = None,
    *,
    names: Sequence[str] | None = None,
    target: object = None,
    sensitive: Mapping[str, object] | None = None,
    with_target: bool = True,
    with_sensitive: bool = True,
    sensitive_as_feature: bool = False,
    block_rows: int = BLOCK_ROWS,
    precision: str = "float64",
    query: str | None = None,
    overwrite: bool = False,
    progress: Told | None = None,
) -> EncodedRows | Store:
    """Code a table by its schema alone: nothing (no least, largest, mean, list of values) is read
    from its rows.

    Everything that the schema does not cover is an error here, before any release. It names the
    column, the value and the row, for the data holder alone; numbers beyond their bounds are
    clipped without a word.

    Parameters
    ----------
    table : table, path or URL
        A pandas, polars or pyarrow table, a mapping of columns, a structured array, or a 2-D array
        with `names`. With `out` also a file, a folder, a pattern or a database, as `open` reads
        them.
    schema : Schema
        How rows are coded.
    out : path, default=None
        The folder of a coded store to write, whole or not at all. None codes in memory.
    names : sequence of str, default=None
        The columns of a 2-D array. None: the table has names.
    target : column, default=None
        The target, where it is not in the table. None: it is.
    sensitive : mapping, default=None
        Sensitive columns that are not in the table. None: they are.
    with_target : bool, default=True
        False: rows to predict, without the target.
    with_sensitive : bool, default=True
        False: rows without sensitive columns.
    sensitive_as_feature : bool, default=False
        Whether sensitive columns are features, too.
    block_rows : int, default=65536
        Rows of a block.
    precision : {"float64", "float32"}, default="float64"
        How numbers are kept.
    query : str, default=None
        With a database and `out`: a table or a SELECT. None: the table is no database.
    overwrite : bool, default=False
        Replace a store that is there.
    progress : callable, default=None
        Called with blocks done and all blocks after each block of a store. None calls nothing.

    Returns
    -------
    EncodedRows or Store
        The coded rows, in memory; with `out` the store, opened.

    Examples
    --------
    >>> from fairveil.facts import Category, Number
    >>> schema = Schema({"age": Number(0, 100), "sex": Category(("f", "m"))}, sensitive="sex")
    >>> rows = encode({"age": [25, 300], "sex": ["m", "f"]}, schema)
    >>> next(rows.blocks()).numbers.tolist()
    [[-0.5, 1.0]]
    """
    if out is None:
        if isinstance(table, str | os.PathLike):
            remedy = (
                "Pass out='people.store' to write a coded store, or read it with data.open(path, "
                "schema)."
            )
            raise InputError.expected("a table in memory", of="table", got="a path", remedy=remedy)
        if query is not None or overwrite or progress is not None:
            remedy = "Pass out='people.store', or leave these out."
            got = "query, overwrite or progress without it"
            raise InputError.expected(
                "a folder to write", of="out", got=got, remedy=remedy, quote=False
            )
    beside: dict[str, Any] = {
        "names": names,
        "target": target,
        "sensitive": sensitive,
        "with_target": with_target,
        "with_sensitive": with_sensitive,
    }
    if not isinstance(table, str | os.PathLike):
        options: dict[str, Any] = {
            "sensitive_as_feature": sensitive_as_feature,
            "precision": precision,
        }
        rows = encode_table(table, schema, block_rows=block_rows, **beside, **options)
        return (
            rows
            if out is None
            else write_store(
                rows, out, overwrite=overwrite, block_rows=block_rows, progress=progress
            )
        )
    if beside != {
        "names": None,
        "target": None,
        "sensitive": None,
        "with_target": True,
        "with_sensitive": True,
    }:
        remedy = (
            "A file has its columns: leave names, target, sensitive out, and use "
            "schema.without(...) for fewer of them."
        )
        got = "columns beside a file"
        raise InputError.expected(
            "a table in memory", of="table", got=got, remedy=remedy, quote=False
        )
    kind = kind_of(table, query)
    if kind == "store":
        remedy = "Pass the table that it was made from."
        raise InputError.expected("a table", of="table", got="a coded store", remedy=remedy)
    assert out is not None
    coded: dict[str, Any] = {"sensitive_as_feature": sensitive_as_feature, "precision": precision}
    found: StreamedRows | EncodedRows | Store
    if kind == "parquet":
        found = parquet_to_copy(table, schema, block_rows=block_rows, **coded)
    else:
        found = open(table, schema, query=query, in_memory=False, **coded)
    return write_store(found, out, overwrite=overwrite, block_rows=block_rows, progress=progress)


def _of_store(
    store: Store, schema: Schema | None, sensitive_as_feature: bool
) -> Store | EncodedRows:
    """A store as it is, or as a schema has it."""
    return (
        store if schema is None else store.rows(schema, sensitive_as_feature=sensitive_as_feature)
    )


def kind_of(source: object, query: str | None = None, remedy: str = NAME_ROWS) -> str:
    """Where rows lie: "sql", "store", "parquet" or "csv"."""
    if not isinstance(source, str | os.PathLike):
        way = "Pass a path or an address; a table in memory goes to data.encode(table, schema)."
        raise InputError.expected(
            "a path or an address", of="source", got=type(source).__name__, remedy=way
        )
    address = os.fspath(source)
    if query is not None:
        return "sql"
    shown = without_password(address)
    if "://" in address:
        raise InputError.expected("a query beside a database", of=shown, got=None, remedy=remedy)
    if (Path(address) / STORE_FILE).is_file():
        return "store"
    first = files_of(address, "a CSV or Parquet file, or a coded store", (*PARQUET, *CSV))[0]
    with first.open("rb") as opened:
        start = opened.read(len(SQLITE_HEADER))
    if start == SQLITE_HEADER or start[8:12] == b"DUCK":
        raise InputError.expected("a query beside a database", of=shown, got=None, remedy=remedy)
    return "parquet" if start.startswith(PARQUET_HEADER) else "csv"


def delimiter_of(source: PathLike) -> str:
    """Of a CSV file: a tab where its name says so."""
    return "\t" if os.fspath(source).lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
