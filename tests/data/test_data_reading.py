"""Tables as they are read: the guarantees of `data/reading.py`. Both readers of CSV to the same bits,
broken files and rows that nobody sees, databases (SQLite, DuckDB, a real PostgreSQL server)."""

from __future__ import annotations

import gzip
import importlib.util
import re
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairveil import data
from fairveil.cli.tables import Place, picked
from fairveil.data import encode, reading
from fairveil.errors import DataNotFoundError, FairveilError, InputError, SchemaError
from fairveil.facts import Boolean, Category, Number, RowSource, Schema

Same = Callable[[Any, Any], bool]
ENGINES = ("pyarrow", "csv")


def by(engine: str, *args: Any, **options: Any) -> Any:
    """Read with pyarrow, or as on a machine without it."""
    if engine == "pyarrow":
        return data.open(*args, **options)
    there, find = importlib.util, importlib.util.find_spec
    with pytest.MonkeyPatch.context() as context:
        context.setattr(there, "find_spec", lambda name: None if name == "pyarrow" else find(name))
        return data.open(*args, **options)


def of_database(url: Any, query: str, schema: Schema, **options: Any) -> Any:
    return data.open(url, schema, query=query, **options)


@pytest.fixture
def file(people: dict[str, Any], tmp_path: Path) -> Path:
    pd.DataFrame({**people, "unread": ["line\nbreak"] * 1_000}).to_csv(
        tmp_path / "people.csv", index=False
    )
    return tmp_path / "people.csv"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("zipped", [False, True])
def test_csv_gives_the_bits_of_the_table(
    engine: str,
    zipped: bool,
    file: Path,
    people: Any,
    schema: Schema,
    same_bits: Same,
) -> None:
    if zipped:
        file.write_bytes(gzip.compress(file.read_bytes()))
    rows = by(engine, file, schema)
    assert isinstance(rows, RowSource)
    assert same_bits(rows, encode(people, schema))


CELLS = st.sampled_from(
    """1|-2.5|+3|.5|5.|1e3|1E-3|inf|-Infinity|nan|NaN|-nan|| |NA| 7 |1_0|0x10|1e400|4.9e-324|0.1|1,5|--1|1e|nan(1)|١|3.38e-005
|true|TRUE|False|0|1.0|2|x|é|a b| "q"|q"q|"|'|01|1e0|99999999999999999999|\t8""".replace(
        "\n", ""
    ).split("|")
)


@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), min_size=1, max_size=6),
    lenient=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
)
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_both_engines_agree_on_any_cells(
    rows: Any, lenient: bool, newline: str, tmp_path: Path, same_bits: Same
) -> None:
    def cell(text: str) -> str:
        return (
            '"' + text.replace('"', '""') + '"'
            if any(mark in text for mark in ',"\n') and not text.startswith(" ")
            else text
        )

    text = newline.join(["n,c,k,b", *(",".join(map(cell, row)) for row in rows)]) + newline
    path = tmp_path / "cells.csv"
    path.write_text(text, encoding="utf-8", newline="")
    schema = Schema(
        {
            "n": Number(-5, 5, missing=0 if lenient else None),
            "c": Category(("x", "é", "", "2", "1"), missing="x", unknown="é" if lenient else None),
            "k": Category((1, 2.5, 2, True and "NA", 0), missing=2, unknown=0 if lenient else None),
            "b": Boolean(missing=False),
        },
        missing_values=("", "NA"),
    )

    def outcome(engine: str) -> Any:
        try:
            return by(engine, path, schema)
        except SchemaError as error:
            return str(error)

    one, other = map(outcome, ENGINES)
    assert isinstance(one, str) == isinstance(other, str), (one, other)
    assert one == other if isinstance(one, str) else same_bits(one, other)


@pytest.mark.parametrize("engine", ENGINES)
def test_headers_skipped_lines_and_delimiters(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    schema = Schema({"a": Number(0, 2), "b c": Category((1, 2))})
    expected = [[0.0, 1.0]], [[0, 1]]
    for text, options in (
        ("\ufeff a ,b c\n1,1\n\n2,2\n", {}),
        ("\n\na;x;b c;x\n1;0;1;0\n2;0;2;0", {"delimiter": ";"}),
        ("|comment\n1,1\n2,2\n", {"skip_rows": 1, "names": ["a", "b c"]}),
        ('"b c","a","m\nn"\n1,1,0\n2,2,0\n', {}),
    ):
        path.write_text(text, encoding="utf-8")
        (block,) = by(engine, path, schema, **options).blocks()  # type: ignore[arg-type]
        assert (block.numbers.tolist(), block.codes.tolist()) == expected, text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "names of the columns"),
        (b"a,z\n1,1\n", "'b'"),
        (b"a,b,a\n1,1,1\n", "occur once"),
        (b"a,b\n1\n", "cells"),
        (b"a,b\n1,1,1\n", "cells"),
        (b"a,b\n\xff,1\n", "UTF-8"),
        (gzip.compress(b"a,b\n" + b"1,1\n" * 9_999, mtime=0)[:-20], "whole|cells"),
        (b"a,b\n1,1\nforty,1\n", "got another value .*row 2"),
        (b"a,b\n,1\n", "'a'.*missing"),
    ],
)
def test_files_that_are_not_what_they_say(
    engine: str, text: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "f.csv").write_bytes(text)
    with pytest.raises(InputError, match=words):
        by(engine, tmp_path / "f.csv", Schema({"a": Number(0, 2), "b": Category((1, 2))}))


def test_a_file_that_is_not_there(tmp_path: Path, schema: Schema) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(
            DataNotFoundError, match=r"expected a .*file, .*got '(nothing|a folder)"
        ):
            data.open(path, schema)


def test_guarantee_1_every_row_is_checked_before_the_source_is_returned(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("a\n" + "1\n" * 150_000 + "bad\n")
    with pytest.raises(SchemaError, match=r"got another value \(in .*first in row 150001"):
        data.open(tmp_path / "f.csv", Schema({"a": Number(0, 2)}))


def test_parquet_gives_the_bits_of_the_table(
    people: Any, schema: Schema, tmp_path: Path, same_bits: Same
) -> None:
    frame = pd.DataFrame(people)
    expected = encode(people, schema)
    for at, table in enumerate((frame, frame.astype({"job": "category", "age": object}))):
        path = tmp_path / f"{at}.parquet"
        pa.parquet.write_table(
            pa.Table.from_pandas(table, preserve_index=False), path, row_group_size=77
        )
        assert same_bits(data.open(path, schema), expected)


def test_parquet_that_is_not_one_or_lacks_a_column(tmp_path: Path, schema: Schema) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match="expected a whole Parquet file"):
        data.open(path, schema)
    pa.parquet.write_table(pa.table({"age": [1.0]}), path)
    with pytest.raises(SchemaError, match="'visits'"):
        data.open(path, schema)
    pa.parquet.write_table(pa.table({"age": [1.0, None]}), path)
    with pytest.raises(SchemaError, match=r"missing value.*row 2"):
        data.open(path, Schema({"age": Number(0, 1)}))


@pytest.mark.parametrize("engine", ENGINES)
def test_no_rows_and_rows_to_predict(engine: str, tmp_path: Path, schema: Schema) -> None:
    path = tmp_path / "f.csv"
    path.write_text("age,visits,job,member\n")
    bare = schema.without("hired", "sex")
    assert list(by(engine, path, bare).blocks()) == []
    path.write_text("age,visits,job,member\n55,1,c,true\n")
    (block,) = by(engine, path, bare).blocks()
    assert block.numbers.tolist() == [[0.0]]
    assert block.labels is None
    assert block.sensitive is None
    assert list(encode({"age": []}, Schema({"age": Number(0, 1)})).blocks()) == []


def test_wrong_arguments(tmp_path: Path, schema: Schema, file: Path) -> None:
    for options in ({"delimiter": ";;"}, {"skip_rows": -1}, {"precision": "half"}):
        with pytest.raises(FairveilError, match=next(iter(options))):
            data.open(file, schema, **options)  # type: ignore[arg-type]


# ---- guarantee 2: broken files

SCHEMA = Schema({"name": Category(("ada", "bob")), "pay": Number(0, 100)})
SECRETS = ("Alice", "4242", "Möbius")
HEAD = "name,pay\n" + "ada,1\n" * 5


def columns(path: Path, schema: Schema) -> object:
    return Place(str(path)).columns()


READ: dict[str, Callable[[Path, Schema], object]] = {
    "pyarrow": lambda path, schema: by("pyarrow", path, schema),
    "csv": lambda path, schema: by("csv", path, schema),
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
def test_guarantee_2_a_broken_row_is_its_line_and_its_cells(
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
def test_guarantee_2_bytes_that_are_no_text_are_their_line(reader: str, tmp_path: Path) -> None:
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
    for text, why in (
        ("Alice,4242\n", "the name of column 2 is a number"),
        ("Alice,Alice\n", "columns 1 and 2 have one name"),
    ):
        path.write_text(text)
        assert why in told(lambda: columns(path, SCHEMA))
    path.write_text("name,wage\nada,1\n")
    there: Any = columns(path, SCHEMA)
    assert "['name', 'wage']" in told(lambda: picked(there, ["pay"], str(path), "--target"))


@pytest.mark.parametrize(
    "raw", [b"PAR1 Alice 4242 PAR1", b"PAR1" + b"Alice" * 99 + b"\x05\0\0\0PAR1", b"Alice"]
)
def test_a_broken_parquet_file_shows_nothing(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    path.write_bytes(raw)
    assert "Parquet file" in told(lambda: data.open(path, SCHEMA))
    if raw.startswith(b"PAR1"):
        assert "Parquet file" in told(lambda: columns(path, SCHEMA))


def test_names_in_a_parquet_file_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"abcdefgh": [1.0]}), path)
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abcd\xffgh!"))
    assert "Parquet file" in told(lambda: data.open(path, SCHEMA))
    assert "Parquet file" in told(lambda: columns(path, SCHEMA))


def test_what_a_database_says_of_its_rows_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    made = sqlite3.connect(path)
    made.execute("create table people (name, pay)")
    made.execute("insert into people values ('ada', 1), (cast(x'416c696365ff' as text), 4242)")
    made.commit()
    made.close()
    assert "OperationalError, whose text is left out" in told(
        lambda: of_database(str(path), "people", SCHEMA)
    )
    assert "no such column: wage" in told(
        lambda: of_database(str(path), "select wage from people", SCHEMA)
    )
    assert "no such table: peple" in told(lambda: of_database(str(path), "peple", SCHEMA))
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
        lambda: of_database(f"duckdb:///{path}", query, SCHEMA)
    )
    assert "peple" in told(lambda: of_database(f"duckdb:///{path}", "peple", SCHEMA))


def test_what_postgresql_says_of_its_rows_is_left_out() -> None:
    """By the class of its SQLSTATE: 22 quotes a value, 42 a name of the query."""

    class SaidError(Exception):
        sqlstate = "22P02"

    words = 'invalid input syntax for type integer: "Alice"'
    assert (
        reading.own_words(SaidError(words))
        == "SaidError (22P02), whose text is left out because it may show values of rows"
    )
    SaidError.sqlstate = "42P01"
    assert (
        reading.own_words(SaidError('relation "peple" does not exist'))
        == 'relation "peple" does not exist'
    )


# ---- databases


@pytest.fixture
def base(people: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "it's people.db"
    connection = sqlite3.connect(path)
    pd.DataFrame(people).to_sql("the people", connection, index=False)
    connection.close()
    return path


def test_sqlite_gives_the_bits_of_the_table(
    base: Path, people: Any, schema: Schema, same_bits: Same
) -> None:
    expected = encode(people, schema)
    for url in (base, f"sqlite:///{base}"):
        assert same_bits(of_database(url, "the people", schema), expected)
    query = 'SELECT * FROM "the people" WHERE age > 50 -- older\n;'
    some = {name: column[people["age"] > 50] for name, column in people.items()}
    assert same_bits(of_database(base, query, schema), encode(some, schema))
    order = people["age"].argsort()
    ordered = {name: column[order] for name, column in people.items()}
    assert same_bits(
        of_database(base, "the people", schema, order_by=["age"]), encode(ordered, schema)
    )


def test_duckdb_gives_the_bits_of_the_table(
    people: Any, schema: Schema, tmp_path: Path, same_bits: Same
) -> None:
    frame = pd.DataFrame(people)
    connection = pytest.importorskip("duckdb").connect(str(tmp_path / "people.duckdb"))
    connection.register("frame", frame)
    connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    connection.close()
    rows = of_database(f"duckdb:///{tmp_path}/people.duckdb", "people", schema)
    assert same_bits(rows, encode(people, schema))
    with pytest.raises(DataNotFoundError, match="a table or a query that runs"):
        of_database(f"duckdb:///{tmp_path}/people.duckdb", "peple", schema)


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path, schema: Schema) -> None:
    for url in (
        f"sqlite:///{tmp_path}/none.db",
        tmp_path / "none.db",
        f"duckdb:///{tmp_path}/none.duckdb",
        tmp_path,
    ):
        with pytest.raises(
            DataNotFoundError, match=r"expected a (sqlite|duckdb) database, got '(no file|a folder)"
        ):
            of_database(url, "people", schema)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_inside(base: Path, schema: Schema, tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match="no such table: peple"):
        of_database(base, "peple", schema)
    with pytest.raises(DataNotFoundError, match="expected a table or a query that runs"):
        of_database(base, "SELECT FROM WHERE", schema)
    # SQLite takes a quoted name that it does not know for a text.
    with pytest.raises(SchemaError, match="'aeg'"):
        of_database(base, "the people", Schema({"aeg": Number(0, 1)}))
    with pytest.raises(InputError, match="a table or a SELECT"):
        of_database(base, " ; ", schema)
    (tmp_path / "text.db").write_text("this is not a database at all")
    with pytest.raises(DataNotFoundError, match="not a database"):
        of_database(tmp_path / "text.db", "people", schema)


def test_guarantee_3_databases_are_opened_for_reading_only(base: Path, schema: Schema) -> None:
    before = base.read_bytes()
    with pytest.raises(FairveilError):
        of_database(base, 'DROP TABLE "the people"', schema)
    assert base.read_bytes() == before


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@127.0.0.1:1/base",
        "postgresql://me:hunter2@127.0.0.1:no/base",
        "postgresql:me:hunter2@127.0.0.1/base",
        "nosuchdriver://me:hunter2@127.0.0.1/base",
        "postgresql://127.0.0.1:1/base?user=me&password=hunter2",
        "postgresql://me:hun@ter2@127.0.0.1:1/base",
        "postgresql://me:hunter2%40@127.0.0.1:1/base?connect_timeout=x",
    ],
)
def test_guarantee_3_passwords_never_appear(url: str, schema: Schema) -> None:
    with pytest.raises(FairveilError) as caught:
        of_database(url, "people", schema)
    told = (
        "".join(traceback.format_exception(caught.value))
        + repr(caught.value)
        + repr(caught.value.__context__)
    )
    assert "ter2" not in told
    assert "expected" in str(caught.value)


def test_postgresql_gives_the_bits_of_the_table(
    postgres_url: str, people: Any, schema: Schema, same_bits: Same
) -> None:
    server = postgres_url
    engine = pytest.importorskip("sqlalchemy").create_engine(
        server.replace("postgresql:", "postgresql+psycopg:")
    )
    with engine.begin() as connection:
        pd.DataFrame(people).to_sql("people", connection, index=False)
    engine.dispose()
    expected = encode(people, schema)
    assert same_bits(of_database(server, "public.people", schema), expected)
    query = "SELECT *, '100%:x'::text AS odd FROM people WHERE job NOT LIKE '%zz%' ORDER BY age"
    order = people["age"].argsort()
    assert same_bits(
        of_database(server, query, schema),
        encode({name: column[order] for name, column in people.items()}, schema),
    )
    for bad, what, words in (
        (server, "peple", "peple"),
        (server, "DELETE FROM people", "query that runs"),
        (
            server,
            "WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone",
            "query that runs",
        ),
        (server.replace("s3cret", "wrong"), "people", "a database that answers"),
        (
            server.replace("/postgres", "/none").replace("none://", "postgresql://"),
            "people",
            "a database that answers",
        ),
    ):
        with pytest.raises(DataNotFoundError, match=words) as caught:
            of_database(bad, what, schema)
        assert "word" not in str(caught.value).replace("password", "")


def test_guarantee_2_what_fails_after_some_rows_shows_none_and_the_file_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 700th row is a text that is none, after some runs of rows were taken; then a reader is
    left."""
    monkeypatch.setattr(reading, "BLOCK_ROWS", 100)
    made = sqlite3.connect(tmp_path / "people.db")
    made.execute("CREATE TABLE people (job TEXT)")
    made.executemany("INSERT INTO people VALUES (?)", [("clerk",)] * 700)
    made.execute("INSERT INTO people VALUES (CAST(x'416c696365ff' AS TEXT))")  # Alice
    made.commit()
    made.close()
    said = told(
        lambda: of_database(tmp_path / "people.db", "people", Schema({"job": Category(("clerk",))}))
    )
    assert "text is left out" in said
    chunks = reading.chunks_of(tmp_path / "people.db", ["job"], query="people")
    assert next(chunks).rows == 100
    chunks.close()
    opened = [Path(f"/proc/self/fd/{one.name}") for one in Path("/proc/self/fd").iterdir()]
    assert not [one for one in opened if one.is_symlink() and "people.db" in str(one.readlink())]
