"""SQL: SQLite, DuckDB and, where its programs are installed, a real PostgreSQL server."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
import sqlalchemy

from fairveil.data import encode, load_sql, sql
from fairveil.errors import DataNotFoundError, FairveilError, InputError, PrivacyError, SchemaError
from fairveil.facts import Category, Number, Schema

Same = Callable[[Any, Any], bool]


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
    expected = encode(people, schema, block_rows=300)
    for url in (base, f"sqlite:///{base}"):
        rows = load_sql(url, "the people", schema, block_rows=300)
        assert same_bits(rows, expected)
        assert same_bits(rows, expected)
    assert same_bits(load_sql(base, "the people", schema, in_memory=True, block_rows=300), expected)
    query = 'SELECT * FROM "the people" WHERE age > 50 -- older\n;'
    some = {name: column[people["age"] > 50] for name, column in people.items()}
    assert same_bits(load_sql(base, query, schema), encode(some, schema))
    order = people["age"].argsort()
    ordered = {name: column[order] for name, column in people.items()}
    assert same_bits(
        load_sql(base, "the people", schema, order_by=["age"]), encode(ordered, schema)
    )


def test_duckdb_gives_the_bits_of_the_table(
    people: Any, schema: Schema, tmp_path: Path, same_bits: Same
) -> None:
    frame = pd.DataFrame(people)
    connection = duckdb.connect(str(tmp_path / "people.duckdb"))
    connection.register("frame", frame)
    connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    connection.close()
    rows = load_sql(f"duckdb:///{tmp_path}/people.duckdb", "people", schema)
    assert same_bits(rows, encode(people, schema))
    with pytest.raises(DataNotFoundError, match="a table or a query that runs"):
        load_sql(f"duckdb:///{tmp_path}/people.duckdb", "peple", schema)


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
            load_sql(url, "people", schema)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_inside(base: Path, schema: Schema, tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match="no such table: peple"):
        load_sql(base, "peple", schema)
    with pytest.raises(DataNotFoundError, match="expected a table or a query that runs"):
        load_sql(base, "SELECT FROM WHERE", schema)
    # SQLite takes a quoted name that it does not know for a text.
    with pytest.raises(SchemaError, match="'aeg'"):
        load_sql(base, "the people", Schema({"aeg": Number(0, 1)}))
    with pytest.raises(InputError, match="a table or a SELECT"):
        load_sql(base, " ; ", schema)
    (tmp_path / "text.db").write_text("this is not a database at all")
    with pytest.raises(DataNotFoundError, match="not a database"):
        load_sql(tmp_path / "text.db", "people", schema)


def test_databases_are_opened_for_reading_only(base: Path, schema: Schema) -> None:
    before = base.read_bytes()
    with pytest.raises(FairveilError):
        load_sql(base, 'DROP TABLE "the people"', schema)
    assert base.read_bytes() == before


def test_rows_that_changed_are_refused(base: Path) -> None:
    rows = load_sql(base, "the people", Schema({"age": Number(0, 120)}))
    connection = sqlite3.connect(base)
    connection.execute('DELETE FROM "the people" WHERE age > 100')
    connection.commit()
    connection.close()
    with pytest.raises(PrivacyError, match="that were checked"):
        list(rows.blocks())


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
def test_passwords_never_appear(url: str, schema: Schema) -> None:
    with pytest.raises(FairveilError) as caught:
        load_sql(url, "people", schema)
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
    engine = sqlalchemy.create_engine(server.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        pd.DataFrame(people).to_sql("people", connection, index=False)
    engine.dispose()
    expected = encode(people, schema)
    rows = load_sql(server, "public.people", schema)
    assert same_bits(rows, expected)
    assert same_bits(rows, expected)
    query = "SELECT *, '100%:x'::text AS odd FROM people WHERE job NOT LIKE '%zz%' ORDER BY age"
    order = people["age"].argsort()
    assert same_bits(
        load_sql(server, query, schema),
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
            load_sql(bad, what, schema)
        assert "word" not in str(caught.value).replace("password", "")
    assert same_bits(rows, expected)


# ---- read ahead ----------------------------------------------------------------------------------


def readers() -> list[threading.Thread]:
    """The threads that read ahead now."""
    return [one for one in threading.enumerate() if one.name == "fairveil-ahead"]


def left(url: str | Path, what: str, schema: Schema, expected: Any, same_bits: Same) -> None:
    """A pass that is left ends its thread, and the next pass has all rows."""
    rows = load_sql(url, what, schema, block_rows=100)
    blocks = rows.blocks()
    next(blocks)
    assert readers()
    blocks.close()
    assert not readers()
    assert same_bits(rows, expected)
    assert not readers()


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_pass_that_is_left_lets_go_of_the_file(
    kind: str,
    people: Any,
    schema: Schema,
    tmp_path: Path,
    same_bits: Same,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sql, "BLOCK_ROWS", 100)
    path, frame = tmp_path / f"people.{kind}", pd.DataFrame(people)
    if kind == "sqlite":
        made = sqlite3.connect(path)
        frame.to_sql("people", made, index=False)
    else:
        made = duckdb.connect(str(path))
        made.register("frame", frame)
        made.execute("CREATE TABLE people AS SELECT * FROM frame")
    made.close()
    left(f"{kind}:///{path}", "people", schema, encode(people, schema, block_rows=100), same_bits)
    opened = [os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    assert str(path) not in opened


def test_what_a_database_says_in_the_other_thread_shows_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 700th row is a text that is none, after five runs of rows were taken."""
    monkeypatch.setattr(sql, "BLOCK_ROWS", 100)
    made = sqlite3.connect(tmp_path / "people.db")
    made.execute("CREATE TABLE people (job TEXT)")
    made.executemany("INSERT INTO people VALUES (?)", [("clerk",)] * 700)
    made.execute("INSERT INTO people VALUES (CAST(x'416c696365ff' AS TEXT))")  # Alice
    made.commit()
    made.close()
    jobs = Schema({"job": Category(("clerk",))})
    with pytest.raises(DataNotFoundError, match="text is left out") as caught:
        load_sql(tmp_path / "people.db", "people", jobs)
    whole = "".join(traceback.format_exception(caught.value)) + repr(caught.value.__context__)
    assert "Alice" not in whole
    assert "416c" not in whole
    assert not readers()


def test_a_pass_that_is_left_ends_its_connection_to_the_server(
    postgres_url: str,
    people: Any,
    schema: Schema,
    same_bits: Same,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sql, "BLOCK_ROWS", 100)
    engine = sqlalchemy.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        pd.DataFrame(people).to_sql("some_people", connection, index=False)
    expected = encode(people, schema, block_rows=100)
    left(postgres_url, "some_people", schema, expected, same_bits)
    asked = sqlalchemy.text(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%some_people%'"
    )
    for _ in range(600):  # a server hears of it a moment later
        with engine.connect() as connection:
            open_now = connection.execute(asked).scalar()
        if open_now == 1:
            break
        time.sleep(0.1)
    assert open_now == 1  # the one that asks
    engine.dispose()
