"""Broken files: where they are broken is said, what stands there is not, whatever parser found
it."""

from __future__ import annotations

import gzip
import re
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairveil.cli.tables import Place, picked
from fairveil.data import Category, Number, Schema, load_csv, load_parquet, load_sql
from fairveil.data.databases import own_words
from fairveil.errors import FairveilError

SCHEMA = Schema({"name": Category(("ada", "bob")), "pay": Number(0, 100)})
SECRETS = ("Alice", "4242", "Möbius")
HEAD = "name,pay\n" + "ada,1\n" * 5


def columns(path: Path, schema: Schema) -> object:
    return Place(str(path)).columns()


READ: dict[str, Callable[[Path, Schema], object]] = {
    "pyarrow": lambda path, schema: load_csv(path, schema, engine="pyarrow"),
    "csv": lambda path, schema: load_csv(path, schema, engine="csv"),
    "command line": lambda path, schema: Place(str(path)).coded(schema),
    "columns": columns,
}


def told(read: Callable[[], object]) -> str:
    """The message, when neither it nor anything that hangs on it shows a cell."""
    with pytest.raises(FairveilError) as caught:
        read()
    whole = "".join(traceback.format_exception(caught.value))
    assert not [secret for secret in SECRETS if secret in whole]
    assert caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize("reader", READ)
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("Alice,4242,x\nbob,2\n", "2 cells in every row.*got 3 cells in line 7"),
        ("Alice\n", "got 1 cells in line 7"),
        ("\n\nbob,2\nAlice,4242,1,2\n", "got 4 cells in line 10"),
        ('"bob",2\n"Al\nice",4242,3\n', "got 3 cells in line 8"),
        ('bob,2\n"Alice,4242\nbob,2\n', "cells in line 8"),
    ],
)
def test_guarantee_1_a_broken_row_is_its_line_and_its_cells(
    reader: str, rows: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_text(HEAD + rows)
    message = told(lambda: READ[reader](path, SCHEMA))
    assert re.search(words, message), message
    packed = tmp_path / "people.csv.gz"
    packed.write_bytes(gzip.compress((HEAD + rows).encode()))
    assert re.search(words, told(lambda: READ[reader](packed, SCHEMA)))


@pytest.mark.parametrize("reader", READ)
def test_guarantee_1_bytes_that_are_no_text_are_their_line(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes((HEAD + "Alice Möbius,4242\n").encode("latin-1"))
    assert "no UTF-8 in line 7" in told(lambda: READ[reader](path, SCHEMA))


@pytest.mark.parametrize("reader", ["pyarrow", "csv", "command line"])
@pytest.mark.parametrize("row", ["Alice,1", "ada,Alice", "ada,", ",1"])
def test_a_value_that_the_schema_does_not_cover_is_its_column_and_row(
    reader: str, row: str, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_text(HEAD + row + "\n")
    message = told(lambda: READ[reader](path, SCHEMA))
    assert "first in row 6" in message
    assert "another value" in message or "a missing value" in message


@pytest.mark.parametrize("reader", ["pyarrow", "csv", "command line"])
def test_the_first_row_of_a_file_without_a_header_is_not_shown(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Alice,4242\nbob,2\n")
    assert "a first line of 2 cells that names none of them" in told(
        lambda: READ[reader](path, SCHEMA)
    )
    path.write_text("names,wage\nbob,2\n")
    assert "['names', 'wage']" in told(lambda: READ[reader](path, SCHEMA))
    path.write_text("name,wage\nbob,2\n")
    assert "['name', 'wage']" in told(lambda: READ[reader](path, SCHEMA))


def test_columns_that_are_not_there_or_twice(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Alice,4242,4242\n")
    assert "one name for columns 2, 3" in told(lambda: columns(path, SCHEMA))
    path.write_text("Alice,4242\n")
    there: Any = columns(path, SCHEMA)
    assert "a first line of 2 cells" in told(lambda: picked(there, ["pay"], str(path), "--target"))


@pytest.mark.parametrize(
    "raw", [b"PAR1 Alice 4242 PAR1", b"PAR1" + b"Alice" * 99 + b"\x05\0\0\0PAR1", b"Alice"]
)
def test_a_broken_parquet_file_shows_nothing(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    path.write_bytes(raw)
    assert "Parquet file" in told(lambda: load_parquet(path, SCHEMA))
    if raw.startswith(b"PAR1"):
        assert "Parquet file" in told(lambda: columns(path, SCHEMA))


def test_names_in_a_parquet_file_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"abcdefgh": [1.0]}), path)
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abcd\xffgh!"))
    assert "Parquet file" in told(lambda: load_parquet(path, SCHEMA))
    assert "Parquet file" in told(lambda: columns(path, SCHEMA))


def test_what_a_database_says_of_its_rows_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    made = sqlite3.connect(path)
    made.execute("create table people (name, pay)")
    made.execute("insert into people values ('ada', 1), (cast(x'416c696365ff' as text), 4242)")
    made.commit()
    made.close()
    assert "OperationalError, whose text is left out" in told(
        lambda: load_sql(str(path), "people", SCHEMA)
    )
    assert "no such column: wage" in told(
        lambda: load_sql(str(path), "select wage from people", SCHEMA)
    )
    assert "no such table: peple" in told(lambda: load_sql(str(path), "peple", SCHEMA))
    assert "OperationalError" in told(
        lambda: columns_of(path, "select name, json(name) from people")
    )


def columns_of(path: Path, query: str) -> object:
    return Place(str(path), query).columns()


def test_what_duckdb_says_of_its_rows_is_left_out(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "people.duckdb"
    made = duckdb.connect(str(path))
    made.execute("create table people as select 'Alice' as name, 4242 as pay")
    made.close()
    query = "select cast(name as integer) as name, pay from people"
    assert "ConversionException, whose text is left out" in told(
        lambda: load_sql(f"duckdb:///{path}", query, SCHEMA)
    )
    assert "peple" in told(lambda: load_sql(f"duckdb:///{path}", "peple", SCHEMA))


def test_what_postgresql_says_of_its_rows_is_left_out() -> None:
    """By the class of its SQLSTATE: 22 quotes a value, 42 a name of the query."""

    class SaidError(Exception):
        sqlstate = "22P02"

    words = 'invalid input syntax for type integer: "Alice"'
    assert (
        own_words(SaidError(words))
        == "SaidError (22P02), whose text is left out because it may show values of rows"
    )
    SaidError.sqlstate = "42P01"
    assert (
        own_words(SaidError('relation "peple" does not exist')) == 'relation "peple" does not exist'
    )
