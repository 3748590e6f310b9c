"""CSV and Parquet: both CSV engines to the same bits, streams read again and again, files that
change or are broken."""

from __future__ import annotations

import gzip
import os
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

from fairveil.data import encode, load_csv, load_parquet
from fairveil.errors import DataNotFoundError, FairveilError, InputError, PrivacyError, SchemaError
from fairveil.facts import Boolean, Category, Number, RowSource, Schema

Same = Callable[[Any, Any], bool]
ENGINES = ("pyarrow", "csv")


@pytest.fixture
def file(people: dict[str, Any], tmp_path: Path) -> Path:
    pd.DataFrame({**people, "unread": ["line\nbreak"] * 1_000}).to_csv(
        tmp_path / "people.csv", index=False
    )
    return tmp_path / "people.csv"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("in_memory", [False, True])
def test_csv_gives_the_bits_of_the_table(
    engine: str,
    zipped: bool,
    in_memory: bool,
    file: Path,
    people: Any,
    schema: Schema,
    same_bits: Same,
) -> None:
    if zipped:
        file.write_bytes(gzip.compress(file.read_bytes()))
    rows = load_csv(file, schema, engine=engine, block_rows=300, in_memory=in_memory)
    assert isinstance(rows, RowSource)
    expected = encode(people, schema, block_rows=300)
    assert same_bits(rows, expected)
    assert same_bits(rows, expected)


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
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
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
            return load_csv(path, schema, engine=engine)
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
        (block,) = load_csv(path, schema, engine=engine, **options).blocks()  # type: ignore[arg-type]
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
        load_csv(
            tmp_path / "f.csv", Schema({"a": Number(0, 2), "b": Category((1, 2))}), engine=engine
        )


@pytest.mark.parametrize("load", [load_csv, load_parquet])
def test_a_file_that_is_not_there(load: Any, tmp_path: Path, schema: Schema) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(DataNotFoundError, match=r"expected a .* file, got '(nothing|a folder)"):
            load(path, schema)


@pytest.mark.parametrize("engine", ENGINES)
def test_guarantee_2_rows_that_changed_are_refused_without_their_values(
    engine: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.csv"
    path.write_text("a\n1\n2\n")
    rows = load_csv(path, Schema({"a": Number(0, 2)}), engine=engine)
    times = path.stat()
    for text, unchanged_looks in (
        ("a\n1\n1\n1\n", False),
        ("a\n1\nX\n", True),
        ("a\n1\n\n\n", True),
    ):
        path.write_text(text)
        if unchanged_looks:
            # As if the file system had not told: size, time and inode are those of before.
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        with pytest.raises(PrivacyError, match="that were checked") as caught:
            list(rows.blocks())
        assert "X" not in "".join(traceback.format_exception(caught.value)).replace(
            "PrivacyError", ""
        )
        assert caught.value.__context__ is None


def test_guarantee_1_every_row_is_checked_before_the_source_is_returned(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("a\n" + "1\n" * 150_000 + "bad\n")
    with pytest.raises(SchemaError, match=r"got another value \(in .*first in row 150001"):
        load_csv(tmp_path / "f.csv", Schema({"a": Number(0, 2)}))


def test_parquet_gives_the_bits_of_the_table(
    people: Any, schema: Schema, tmp_path: Path, same_bits: Same
) -> None:
    frame = pd.DataFrame(people)
    expected = encode(people, schema, block_rows=300)
    for at, table in enumerate((frame, frame.astype({"job": "category", "age": object}))):
        path = tmp_path / f"{at}.parquet"
        pa.parquet.write_table(
            pa.Table.from_pandas(table, preserve_index=False), path, row_group_size=77
        )
        for in_memory in (False, True):
            assert same_bits(
                load_parquet(path, schema, block_rows=300, in_memory=in_memory), expected
            )


def test_parquet_that_is_not_one_or_lacks_a_column(tmp_path: Path, schema: Schema) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match="expected a Parquet file"):
        load_parquet(path, schema)
    pa.parquet.write_table(pa.table({"age": [1.0]}), path)
    with pytest.raises(SchemaError, match="'visits'"):
        load_parquet(path, schema)
    pa.parquet.write_table(pa.table({"age": [1.0, None]}), path)
    with pytest.raises(SchemaError, match=r"missing value.*row 2"):
        load_parquet(path, Schema({"age": Number(0, 1)}))


@pytest.mark.parametrize("engine", ENGINES)
def test_no_rows_and_rows_to_predict(engine: str, tmp_path: Path, schema: Schema) -> None:
    path = tmp_path / "f.csv"
    path.write_text("age,visits,job,member\n")
    bare = schema.without("hired", "sex")
    assert list(load_csv(path, bare, engine=engine).blocks()) == []
    path.write_text("age,visits,job,member\n55,1,c,true\n")
    (block,) = load_csv(path, bare, engine=engine).blocks()
    assert block.numbers.tolist() == [[0.0]]
    assert block.labels is None
    assert block.sensitive is None
    assert list(encode({"age": []}, Schema({"age": Number(0, 1)})).blocks()) == []


def test_guarantee_2_holds_for_any_failure_of_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f.csv").write_text("a\n1\n")
    rows = load_csv(tmp_path / "f.csv", Schema({"a": Number(0, 2)}), engine="csv")

    def fails(*_: Any) -> Any:
        raise RuntimeError("the value 1")

    monkeypatch.setattr("fairveil.data.csv_rows.open_text", fails)
    with pytest.raises(PrivacyError, match="that were checked") as caught:
        list(rows.blocks())
    assert caught.value.__context__ is None


def test_wrong_arguments(tmp_path: Path, schema: Schema, file: Path) -> None:
    for options in (
        {"engine": "pandas"},
        {"delimiter": ";;"},
        {"skip_rows": -1},
        {"block_rows": 0},
    ):
        with pytest.raises(FairveilError, match=next(iter(options))):
            load_csv(file, schema, **options)  # type: ignore[arg-type]
