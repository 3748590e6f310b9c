"""`fairveil schema`: a file with blanks from names alone; every blank and every mistake named at
once."""

from __future__ import annotations

import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import pytest
from people_who_do_not_exist import HEADER, PYTHONISM, Command, applicants, write_csv

from fairveil.facts import Schema


def filled(text: str) -> str:
    """A user's answers to all blanks of the applicants' table."""
    facts = {
        "age": 'kind = "number"\nlow = 16\nhigh = 80',
        "score": 'kind = "number"\nlow = 0\nhigh = 100',
        "city": 'kind = "category"\nvalues = ["a", "b"]',
        "sex": 'kind = "category"\nvalues = ["female", "male"]',
        "hired": 'kind = "category"\nvalues = ["no", "yes"]',
    }
    head = (
        text.partition("\n[[columns]]")[0]
        .replace('target = "?"', 'target = "hired"')
        .replace('["?"]', '["sex"]')
    )
    return head + "".join(
        f'\n[[columns]]\nname = "{name}"\n{lines}\n' for name, lines in facts.items()
    )


def test_a_file_is_begun_refused_filled_in_and_used(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    done = fairveil("schema", "init", table, "--out", "s.toml")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "written     s.toml (5 columns, 7 blanks)"
    text = (tmp_path / "s.toml").read_text("utf-8")
    assert [column["name"] for column in tomllib.loads(text)["columns"]] == HEADER

    for command in (
        ("schema", "check", "s.toml"),
        ("fit", table, "--schema", "s.toml", "--out", "m"),
    ):
        refused = fairveil(*command)
        assert refused.code == (1 if command[0] == "schema" else 2)
        wrong = refused.err.splitlines()
        assert [line.split(":")[0] for line in wrong] == ["error"] * 7 + ["hint"]
        assert all(any(f"column '{name}'" in line for line in wrong) for name in HEADER)
        assert all(
            any(f"s.toml, {role})" in line for line in wrong) for role in ("target", "sensitive")
        )
        assert "fairveil schema check s.toml" in wrong[-1]
        assert not PYTHONISM.search(refused.err)
    assert not (tmp_path / "m").exists()

    (tmp_path / "s.toml").write_text(filled(text), "utf-8")
    done = fairveil("schema", "check", "s.toml", table)
    assert (done.code, done.err) == (0, "")
    assert fairveil("fit", table, "--schema", "s.toml", "--epsilon", "inf", "--out", "m").code == 0


@pytest.mark.parametrize("kind", ["csv", "parquet", "db"])
def test_guarantee_1_no_row_is_read(fairveil: Command, tmp_path: Path, kind: str) -> None:
    """Rows that cannot be read change nothing: broken cells, column data overwritten, a value that
    SQL cannot cast."""
    rows = applicants(30, 1)
    if kind == "csv":
        path = write_csv(tmp_path / "t.csv", rows)
        path.write_bytes(path.read_bytes() + b"1,2\n\xff\xfe,broken\n")
        words: tuple[Any, ...] = (path,)
    elif kind == "parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        path = tmp_path / "t.parquet"
        columns = dict(zip(HEADER, map(list, zip(*rows, strict=True)), strict=True))
        parquet.write_table(pa.table(columns), path, compression="none")
        content = bytearray(path.read_bytes())
        length = int.from_bytes(content[-8:-4], "little")
        content[4 : -8 - length] = bytes(len(content) - 12 - length)
        path.write_bytes(bytes(content))
        words = (path,)
    else:
        base = sqlite3.connect(tmp_path / "t.db")
        base.execute("create table people (age int, score real, city text, sex text, hired text)")
        base.execute("create view v as select *, abs(-9223372036854775808) as broken from people")
        base.executemany("insert into people values (?, ?, ?, ?, ?)", rows)
        base.commit()
        base.close()
        words = (tmp_path / "t.db", "--query", "people")
        assert (
            fairveil("schema", "init", tmp_path / "t.db", "--query", "v", "--out", "v.toml").code
            == 0
        )
    done = fairveil("schema", "init", *words, "--out", "s.toml")
    assert done.code == 0, done.err
    text = (tmp_path / "s.toml").read_text("utf-8")
    assert "female" not in text
    assert [column["name"] for column in tomllib.loads(text)["columns"]] == HEADER
    kinds = [column["kind"] for column in tomllib.loads(text)["columns"]]
    assert kinds == (
        ["?"] * 5 if kind == "csv" else ["number", "number", "category", "category", "category"]
    )


def test_guarantee_2_a_row_is_not_taken_for_a_header(fairveil: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Alice,41,yes\nBob,29,no\n", "utf-8")
    done = fairveil("schema", "init", "t.csv", "--out", "s.toml")
    assert done.code == 2
    assert "Alice" not in done.err + done.out
    assert not (tmp_path / "s.toml").exists()


def test_public_rows_give_bounds_and_say_so(fairveil: Command, table: Path, tmp_path: Path) -> None:
    done = fairveil(
        "schema",
        "init",
        table,
        "--public",
        "--target",
        "hired",
        "--sensitive",
        "sex",
        "--out",
        "s.toml",
    )
    assert done.code == 0, done.err
    text = (tmp_path / "s.toml").read_text("utf-8")
    found = Schema.load(tmp_path / "s.toml")
    assert text.count("read from the rows: public only if you know that it is") == 6
    assert (found.rows, found.classes, found.groups) == (4000, ("no", "yes"), (("female", "male"),))
    assert fairveil("schema", "check", "s.toml", table).code == 0


def test_three_mistakes_are_three_lines(fairveil: Command, schema: Path, tmp_path: Path) -> None:
    text = (
        schema.read_text("utf-8")
        .replace('target = "hired"', 'target = "hird"')
        .replace("low = 16.0", "low = 90")
    )
    schema.write_text(text.replace('kind = "category"', 'kind = "categry"', 1), "utf-8")
    done = fairveil("schema", "check", schema)
    assert done.code == 1
    assert done.err.count("error: ") == 3
    for words in (
        "column 'age', bounds",
        "column 'city'",
        "did you mean category?",
        "did you mean hired?",
    ):
        assert words in done.err
    assert not PYTHONISM.search(done.err)


BROKEN = [
    ("low = 0.0", "low = true"),
    ("low = 0.0", 'low = "a"'),
    ("low = 0.0", "lowest = 0.0"),
    ('values = ["a", "b"]', "values = []"),
    ('values = ["a", "b"]', 'values = "a"'),
    ('values = ["a", "b"]', 'values = ["a", "a"]'),
    ('values = ["a", "b"]', 'values = ["a", "b"]\nmissing = "c"'),
    ('name = "city"', 'name = "sex"'),
    ('name = "city"', "name = 3"),
    ('sensitive = ["sex"]', 'sensitive = ["sex", "sex"]'),
    ('sensitive = ["sex"]', 'sensitive = ["age"]'),
    ('sensitive = ["sex"]', "sensitive = 3"),
    ("rows = 4000", "rows = -1"),
    ('name = "applicants"', "name = 3"),
    ("fairveil_schema = 1", "fairveil_schema = 2"),
    ("fairveil_schema = 1", "fairveil_schema = 1\nowner = 3"),
    ("[[columns]]", "[columns"),
]


@pytest.mark.parametrize(("was", "is_now"), BROKEN, ids=lambda text: text)
def test_every_mistake_is_said_in_the_shells_words(
    fairveil: Command, schema: Path, tmp_path: Path, was: str, is_now: str
) -> None:
    text = schema.read_text("utf-8")
    assert was in text
    schema.write_text(text.replace(was, is_now, 1), "utf-8")
    done = fairveil("schema", "check", schema)
    assert done.code == 1
    lines = done.err.splitlines()
    assert lines[0].startswith("error: ")
    assert lines[-1].startswith("hint: ")
    assert "applicants.toml" in lines[0]
    assert not PYTHONISM.search(done.err), done.err


def test_a_column_that_is_not_there_is_named_with_the_nearest(
    fairveil: Command, table: Path, schema: Path
) -> None:
    schema.write_text(
        schema.read_text("utf-8").replace('name = "score"', 'name = "scores"'), "utf-8"
    )
    done = fairveil("schema", "check", schema, table)
    assert (done.code, done.err.count("\n")) == (1, 2)
    assert "expected a column scores" in done.err
    assert "did you mean score?" in done.err


def test_what_is_there_is_replaced_only_when_asked(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text("mine", "utf-8")
    assert fairveil("schema", "init", table, "--out", "s.toml").code == 2
    assert (tmp_path / "s.toml").read_text("utf-8") == "mine"
    assert fairveil("schema", "init", table, "--out", "s.toml", "--force").code == 0
    assert fairveil("schema", "init", table, "--out", "s.json").code == 2


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ("age,,sex", "column 2 has no name"),
        ("age,31,sex", "the name of column 2 is a number"),
        ("age,sex,age", "columns 1 and 3 have one name"),
        ("age,s\ufffdx", "the name of column 2 has letters that cannot be printed"),
    ],
)
def test_what_is_strange_about_a_first_line_is_said_by_its_place(
    fairveil: Command, tmp_path: Path, first: str, why: str
) -> None:
    (tmp_path / "t.csv").write_text(f"{first}\n1,2,3\n", "utf-8")
    done = fairveil("schema", "init", "t.csv", "--out", "t.toml")
    assert done.code == 2
    assert f"got none that is surely one: {why} (t.csv)" in done.err
