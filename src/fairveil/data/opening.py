"""Rows from wherever they are: `open` reads files, folders, patterns, databases and stores;
`encode` codes once, to keep.

Guarantees (tests/data/test_data_opening.py):
1. Rows are those of the source, to the bit, whatever the source is, in memory or on the disk.
2. A source that cannot be read is an error that names the way out, and shows no value of a row and
   no password.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import _checks
from ..errors import InputError
from ..facts.schema import Schema
from .encoding import Encoding
from .reading import PathLike, chunks_of, kind_of
from .rows import BLOCK_ROWS, Chunk, EncodedRows, coded, encode_table
from .store import held, open_store, write_store, written


def open(  # as gzip.open is
    source: PathLike,
    schema: Schema | None = None,
    *,
    query: str | None = None,
    order_by: Sequence[str] = (),
    sensitive_as_feature: bool = False,
    precision: str = "float64",
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    skip_rows: int = 0,
) -> EncodedRows:
    """Rows of any size, checked, for estimators, frontiers, audits and certificates.

    Rows that fit a quarter of the memory are held there. Larger ones are coded into a file without
    a name, which is gone after use; a warning, `RowsOnDisk`, says first where it lies.

    Parameters
    ----------
    source : path or URL
        A Parquet or CSV file, a folder of files, a pattern (``"people/*.parquet"``), a coded store,
        or the address of a database (``"postgresql://user@host/base"``, ``"sqlite:///people.db"``).
        Files are read by name, one after another.
    schema : Schema, default=None
        How rows are coded. None is allowed of a coded store alone, which has a schema.
    query : str, default=None
        A table or a SELECT, of a database. None: the source is no database. A database gives no
        sign of a change: read a snapshot, or a table that nobody writes to.
    order_by : sequence of str, default=()
        Columns that fix the order of a database's rows. Only the repetition of a seeded fit with
        sampling needs it.
    sensitive_as_feature : bool, default=False
        Whether sensitive columns are features, too.
    precision : {"float64", "float32"}, default="float64"
        How numbers are kept. A store keeps what it was written with.
    names : sequence of str, default=None
        The columns of a CSV file. None: its first line names them.
    delimiter : str, default=None
        Between the cells of a CSV file. None: a tab where the file's name says so, else a comma.
        Blanks around a cell do not count; one that is empty, one of the schema's `missing_values`,
        or NaN, is missing unless the column lists it.
    skip_rows : int, default=0
        Lines before the first one of a CSV file.

    Returns
    -------
    EncodedRows
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
    >>> from pathlib import Path
    >>> from fairveil.data import Category, Number, Schema, open
    >>> path = tempfile.mkdtemp() + "/people.csv"
    >>> _ = Path(path).write_text("age,sex\\n25,m\\n50,f\\n")
    >>> schema = Schema({"age": Number(0, 100), "sex": Category(("f", "m"))}, sensitive="sex")
    >>> next(open(path, schema).blocks()).numbers.tolist()
    [[-0.5, 0.0]]
    """
    kind = kind_of(source, query)
    if kind == "store":
        found = open_store(source)
        if schema is None:
            return found
        return found.by(schema, sensitive_as_feature=sensitive_as_feature)
    if not isinstance(schema, Schema):
        remedy = "Pass Schema.load(path); only a coded store has a schema of its own."
        raise InputError.expected("a Schema", of="schema", got=schema, remedy=remedy)
    encoding = Encoding(schema, sensitive_as_feature, precision)
    options: dict[str, Any] = {"query": query, "order_by": order_by}
    if kind == "csv":
        skipped = _checks.whole(skip_rows=skip_rows)
        options = {"names": names, "delimiter": delimiter, "skip_rows": skipped}
    elif names is not None or delimiter is not None or skip_rows:
        remedy = "Leave names, delimiter and skip_rows out."
        raise InputError.expected("a CSV file", of="source", got=f"a {kind} source", remedy=remedy)
    return held(coded(_chunks(source, encoding, kind, **options), encoding), encoding)


def _chunks(source: PathLike, encoding: Encoding, kind: str, **options: Any) -> Iterator[Chunk]:
    needed, wished = encoding.needed(), encoding.wished
    return chunks_of(source, needed, wished, schema=encoding.schema, kind=kind, **options)


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
) -> EncodedRows:
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
        A coded store to write, whole or not at all. None codes in memory.
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

    Returns
    -------
    EncodedRows
        The coded rows: in memory, or with `out` mapped from the store.

    Examples
    --------
    >>> from fairveil.facts import Category, Number
    >>> schema = Schema({"age": Number(0, 100), "sex": Category(("f", "m"))}, sensitive="sex")
    >>> rows = encode({"age": [25, 300], "sex": ["m", "f"]}, schema)
    >>> next(rows.blocks()).numbers.tolist()
    [[-0.5, 1.0]]
    """
    is_place = isinstance(table, str | os.PathLike)
    if out is None and (is_place or query is not None or overwrite):
        remedy = "Pass out='people.store' to write a coded store, or read it with data.open(path)."
        got = "a path, query or overwrite without one"
        raise InputError.expected("a store to write", of="out", got=got, remedy=remedy, quote=False)
    beside = {"names": names, "target": target, "sensitive": sensitive}
    roles = {"with_target": with_target, "with_sensitive": with_sensitive}
    if not isinstance(table, str | os.PathLike):
        kept: dict[str, Any] = {"precision": precision, "block_rows": block_rows}
        kept |= {"sensitive_as_feature": sensitive_as_feature, **beside, **roles}
        rows = encode_table(table, schema, **kept)
        if out is None:
            return rows
        return write_store(rows, out, overwrite=overwrite, block_rows=block_rows)
    if any(one is not None for one in beside.values()) or not all(roles.values()):
        remedy = "A file has its columns; use schema.without(...) for fewer of them."
        raise InputError.expected(
            "a table in memory", of="table", got="columns beside a file", remedy=remedy, quote=False
        )
    assert out is not None
    encoding, kind = Encoding(schema, sensitive_as_feature, precision), kind_of(table, query)
    chunks = _chunks(table, encoding, kind, query=query)
    return written(coded(chunks, encoding), encoding, out, overwrite, block_rows)
