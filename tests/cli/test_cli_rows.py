"""Rows of a command: coins that set them aside, and tables as people have them."""

from __future__ import annotations

import gzip
import itertools
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from people_who_do_not_exist import Command, write_csv

import fairveil as fv
from fairveil.cli import tables
from fairveil.cli.tables import Place, picked
from fairveil.core.noise import NoiseSource
from fairveil.data.reading import Database
from fairveil.errors import FairveilError
from fairveil.facts import Category, Number, Schema

SECRET = "Zzyzx-4711"


def some(count: int, whose: Any = None) -> Any:
    """Coded rows that say their place."""
    columns = {"at": Number(0, count), "y": Category(("a", "b"))}
    table: dict[str, Any] = {"at": np.arange(count), "y": np.array(["a"] * count)}
    schema = Schema(columns, target="y", sensitive=())
    if whose is not None:
        table["who"], schema = whose, schema.with_unit("who")
    return fv.data.encode(table, schema)


def places(rows: Any, count: int) -> list[int]:
    """The places of coded rows in the table that they come from."""
    numbers = np.concatenate([block.numbers[0] for block in rows.blocks()])
    return sorted(np.round((numbers + 1) * count / 2).astype(int).tolist())


def held(count: int, share: float, seed: int | None = None) -> frozenset[int]:
    return frozenset(places(tables.split(some(count), share, seed)[1], count))


# guarantee 1: coins are secret and independent


def test_guarantee_1_coins_come_from_a_secure_source_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[NoiseSource] = []
    secure = NoiseSource.secure

    def counted() -> NoiseSource:
        made.append(secure())
        return made[-1]

    def refused(*given: Any) -> Any:
        raise AssertionError("not a secure generator")

    monkeypatch.setattr(NoiseSource, "secure", staticmethod(counted))
    monkeypatch.setattr(np.random, "default_rng", refused)
    tables.split(some(100), 0.3, None)
    tables.split(some(100), 0.3, None)
    assert len(made) == 2
    assert all(source.is_secure for source in made)
    with pytest.raises(fv.errors.PrivacyError, match="not used before"):
        made[0].stream("sampling", 0)  # the stream was drawn from, and none is drawn from twice


def test_guarantee_1_no_two_splits_are_alike_without_a_seed_and_all_with_one() -> None:
    """200 coins that come to the same twice: a chance of 0.5^200."""
    assert len({held(200, 0.5) for _ in range(20)}) == 20
    assert held(200, 0.5, 3) == held(200, 0.5, 3) != held(200, 0.5, 4)


def test_guarantee_1_every_subset_of_rows_is_as_likely_as_independent_coins_make_it() -> None:
    """All 16 subsets of four rows, so also: each row alone, each pair, and how many. Chi-square,
    false alarms below 1e-9. Constant coins, coins by place and a fixed number of rows all leave
    subsets out."""
    draws, share = 4000, 0.3
    counts: dict[frozenset[int], int] = {}
    for _ in range(draws):
        out = frozenset(np.flatnonzero(tables.set_aside(4, share, None)).tolist())
        counts[out] = counts.get(out, 0) + 1
    square = 0.0
    for size in range(5):
        for subset in itertools.combinations(range(4), size):
            expected = draws * share**size * (1 - share) ** (4 - size)
            square += (counts.get(frozenset(subset), 0) - expected) ** 2 / expected
    assert square < 80.0  # 15 degrees of freedom: beyond with probability 7e-11


def test_guarantee_1_the_coins_of_the_rest_do_not_depend_on_whether_a_row_is_there() -> None:
    """Under add-remove: of a table and of one without its second row, the other rows' lots have one
    distribution."""
    laws = []
    for count, kept in ((3, [0, 2]), (2, [0, 1])):
        seen: dict[tuple[bool, ...], float] = {}
        for _ in range(4000):
            lots = tuple(tables.set_aside(count, 0.4, None)[kept].tolist())
            seen[lots] = seen.get(lots, 0) + 1 / 4000
        laws.append(seen)
    for lots in itertools.product((False, True), repeat=2):
        assert abs(laws[0].get(lots, 0) - laws[1].get(lots, 0)) < 0.08  # 7 deviations


def test_a_share_that_leaves_a_part_empty_is_refused() -> None:
    assert not tables.set_aside(50, 0.0, None).any()
    with pytest.raises(FairveilError, match="rows in both parts"):
        tables.split(some(50), 0.0, None)


# guarantees 2 and 3: persons


def test_guarantee_2_a_split_keeps_persons_whole_and_3_takes_one_row_of_each() -> None:
    whose = np.random.default_rng(0).integers(0, 100, 700)
    sample = some(700, whose)
    for seed in (None, 1):
        fitted, apart = (places(one, 700) for one in tables.split(sample, 0.4, seed))
        assert not set(whose[fitted]) & set(whose[apart])
        assert sorted(fitted + apart) == list(range(700))
        once = places(tables.one_of_each(tables.split(sample, 0.4, 1)[1], seed), 700)
        assert sorted(whose[once]) == sorted(set(whose[once]))
    firsts = [tuple(places(tables.one_of_each(sample, None), 700)) for _ in range(4)]
    assert len(set(firsts)) == 4  # drawn, not the first of each
    assert all(sorted(whose[list(one)]) == sorted(set(whose)) for one in firsts)
    with pytest.raises(FairveilError, match="persons in both parts"):
        tables.split(sample, 0.0, None)


# tables as people have them


def table(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_a_column_of_numbers_is_numbers_and_all_else_words(tmp_path: Path) -> None:
    text = "a,b,c,d,e,f\n1,007,x,,1_000,1.5\n 2 ,3,1,4,2,nan\n"
    found = Place(str(table(tmp_path / "t.csv", text))).columns()
    assert {name: column.tolist() for name, column in found.items() if name not in "df"} == {
        "a": [1, 2],
        "b": [7, 3],
        "c": ["x", "1"],
        "e": ["1_000", "2"],
    }
    assert (found["a"].dtype.kind, found["c"].dtype.kind) == ("i", "O")
    assert np.isnan(found["d"][0])
    assert found["d"][1] == 4.0
    assert found["f"][0] == 1.5
    words = Place(str(tmp_path / "t.csv")).columns(words=["a"], only={"a"})
    assert words["a"].tolist() == ["1", "2"]
    assert not len(words["b"])


def test_the_same_rows_wherever_they_are(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    text = "age,sex\n3,f\n4,m\n"
    places = [Place(str(table(tmp_path / "t.csv", text)))]
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    places.append(Place(str(tmp_path / "t.csv.gz")))
    places.append(Place(str(table(tmp_path / "t.tsv", text.replace(",", "\t")))))
    parquet.write_table(pa.table({"age": [3, 4], "sex": ["f", "m"]}), tmp_path / "t.parquet")
    places.append(Place(str(tmp_path / "t.parquet")))
    with sqlite3.connect(tmp_path / "t.db") as base:
        base.execute("create table people (age integer, sex text)")
        base.executemany("insert into people values (?, ?)", [(3, "f"), (4, "m")])
    places += [Place(str(tmp_path / "t.db"), of) for of in ("people", "select * from people;")]
    for place in places:
        found = place.columns()
        assert {name: one.tolist() for name, one in found.items()} == {
            "age": [3, 4],
            "sex": ["f", "m"],
        }
        kinds = place.kinds()
        assert list(kinds) == ["age", "sex"]
        if place.kind() == "parquet" or place.query == "people":
            assert list(kinds.values()) == ["number", "category"]


def test_guarantee_1_kinds_reads_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that nobody could read are not looked at; a database is asked for no row."""
    bad = b"age,sex\n" + b"x" * 20000 + b"\xff\xfe\x00,\n"
    (tmp_path / "t.csv").write_bytes(bad)
    assert Place(str(tmp_path / "t.csv")).kinds() == {"age": None, "sex": None}
    with pytest.raises(FairveilError):
        Place(str(tmp_path / "t.csv")).columns()
    asked: list[str] = []
    real = Database._answer

    def watched(self: Database, query: str) -> Any:
        asked.append(query)
        return real(self, query)

    monkeypatch.setattr(Database, "_answer", watched)
    with sqlite3.connect(tmp_path / "t.db") as base:
        base.execute("create table people (age integer)")
    assert Place(str(tmp_path / "t.db"), "people").kinds() == {"age": "number"}
    assert len(asked) == 2
    assert all("WHERE 1 = 0" in one or one.startswith("PRAGMA") for one in asked)


HOSTILE = {
    "a row as a header": f"3,{SECRET},f\n4,x,m\n",
    "an empty name": f"a,,{SECRET}\n1,2,3\n",
    "one name twice": f"{SECRET},{SECRET},b\n1,2,3\n",
    "a letter of terminals": f"a\x1b[31m,c,b\n1,{SECRET},3\n",
    "nothing": "",
    "a cell too many": f"a,b\n1,2\n3,4,{SECRET}\n",
    "a quote that does not end": f'a,b\n1,"{SECRET}\n',
    "a null byte": f"a,b\n1,\0{SECRET}\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("command", ["schema init", "fit", "audit"])
def test_guarantee_2_a_hostile_file_is_refused_and_no_cell_is_shown(
    kind: str, command: str, fairveil: Command, schema: Path, tmp_path: Path
) -> None:
    schema.rename(tmp_path.parent / f"{tmp_path.name}.toml")
    schema = tmp_path.parent / f"{tmp_path.name}.toml"
    path = table(tmp_path / "t.csv", HOSTILE[kind])
    words = {
        "schema init": ("--out", "new.toml"),
        "fit": ("--schema", schema, "--out", "new"),
        "audit": ("--target", "b", "--sensitive", "a", "--prediction", "b"),
    }[command]
    done = fairveil(*command.split(), path, *words)
    read = command == "schema init" and kind in ("a cell too many", "a quote that does not end")
    read = read or (command == "schema init" and kind == "a null byte" and done.code == 0)
    if command == "audit" and done.code == 0:  # which shows labels: exact, and said to be
        assert done.out.replace("\n", "").isprintable()
        return
    if not read:
        assert done.code == 2, done
        assert re.fullmatch(r"(error: [^\n]+\n)+hint: [^\n]+\n", done.err), done.err
    named = (command, kind) == ("fit", "one name twice")  # words alone are taken for a header
    assert named or SECRET not in done.out + done.err
    assert "\x1b" not in done.err
    assert sorted(one.name for one in tmp_path.iterdir()) in (["t.csv"], ["new.toml", "t.csv"])


@pytest.mark.parametrize(
    "where",
    ["t.parquet", "nowhere.csv", "folder", "t.db", "t.csv.gz", "postgresql://me:hunter2@h/b"],
)
def test_files_that_are_not_what_their_name_says(
    where: str, fairveil: Command, schema: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("t.parquet", "t.db", "t.csv.gz"):
        (tmp_path / name).write_text(f"a,b\n{SECRET},2\n")
    more = ("--query", "people") if where == "t.db" else ()
    done = fairveil("fit", where, "--schema", schema, *more, "--out", "m")
    assert done.code == 2, done
    assert done.err.splitlines()[-1].startswith("hint: ")
    assert SECRET not in done.err
    assert "hunter2" not in done.err
    assert not (tmp_path / "m").exists()


def test_a_column_that_is_not_there_is_named_with_what_is_like_it(tmp_path: Path) -> None:
    place = Place(str(write_csv(tmp_path / "t.csv", [[1, "f", "x", "a", "b"]])))
    with pytest.raises(FairveilError, match=r"columns out of .*got \['hird'\]|hired"):
        picked(place.columns(), ["hird"], place.shown, "target")
    first = table(tmp_path / "row.csv", f"3,{SECRET}\n4,x\n")
    with pytest.raises(FairveilError) as caught:
        picked(Place(str(first)).columns(), ["age"], "row.csv", "target")
    assert SECRET not in str(caught.value)


def test_a_table_without_rows_is_refused(fairveil: Command, schema: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", [])
    for words in (("fit", path, "--schema", schema, "--out", "m"), ("audit", path, *AUDIT)):
        done = fairveil(*words)
        assert (done.code, "some rows" in done.err) == (2, True), done.err


AUDIT = ("--target", "hired", "--sensitive", "sex", "--prediction", "hired")
