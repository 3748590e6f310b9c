"""A table joined to an attribute that another holds: all neighbours of small tables, what is
refused, the same bits."""

from __future__ import annotations

import itertools
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import fairveil as fv
from fairveil import data
from fairveil.curator import Curator, Rows
from fairveil.data import EncodedRows, load_joined, write_store
from fairveil.data.joined import Matched, matched
from fairveil.data.pieces import pieces_of
from fairveil.errors import FairveilError, JoinError, LedgerError, SchemaError
from fairveil.facts import Boolean, Category, Number, Schema
from fairveil.methods.released import plan_groups
from fairveil.privacy import Promise

IDS = ("a1", "b2", "c3")
OTHER = "z9"
COLUMNS = {
    "score": Number(0, 10),
    "town": Category(("x", "y")),
    "sex": Category(("f", "m", "unknown"), missing="unknown"),
    "hired": Category(("no", "yes")),
}
SCHEMA = Schema(COLUMNS, target="hired", sensitive="sex")
ALONE = Schema(
    {**COLUMNS, "sex": Category(("f", "m"), missing="m")}, target="hired", sensitive="sex"
)
COMPANY = "id,score,town,hired\na1,1,x,no\nb2,5.5,y,yes\nc3,9,x,yes\n"
CODES, CLUSTERS = np.array([0, 1, 1]), 2


@pytest.fixture
def company(tmp_path: Path) -> Path:
    path = tmp_path / "company.csv"
    path.write_text(COMPANY)
    return path


def register(folder: Path, entries: dict[str, str], name: str = "register.csv") -> Path:
    path = folder / name
    path.write_text("id,sex\n" + "".join(f"{one},{value}\n" for one, value in entries.items()))
    return path


def tables() -> Iterator[dict[str, str]]:
    """Every table of the holder over three people of the company and one of nobody's."""
    for values in itertools.product(("f", "m", None), repeat=3):
        for other in (None, "f"):
            named = zip((*IDS, OTHER), (*values, other), strict=True)
            yield {one: value for one, value in named if value is not None}


def apart(one: dict[str, str], other: dict[str, str]) -> int:
    """In how many entries two tables differ."""
    return sum(one.get(name) != other.get(name) for name in {*one, *other})


def counts_of(rows: EncodedRows) -> Any:
    """What a release asks of the rows, without noise."""
    held = Rows(rows)
    plan = plan_groups(Promise(1.0, 0.0, "sensitive_features"), held.cells())
    curator = Curator(held, Promise(math.inf, 0.0, "sensitive_features"))
    attached = curator.attach_codes(CODES, CLUSTERS, columns_read={"features", "label"})
    return plan.moved, curator.answer([(plan.measurement(attached).question, 0.0)])[0]


@pytest.mark.parametrize(
    ("schema", "moved"), [(SCHEMA, 2), (ALONE, 1)], ids=["group of its own", "one of two groups"]
)
def test_guarantee_1_one_entry_moves_one_row_and_the_counts_by_their_bound(
    schema: Schema, moved: int, company: Path, tmp_path: Path
) -> None:
    """All pairs of the holder's tables that differ in one entry: its value, or that it is there."""
    found = []
    for entries in tables():
        rows = load_joined(company, register(tmp_path, entries), schema, id="id")
        (block,) = rows.blocks()
        bound, counts = counts_of(rows)
        assert bound == moved
        found.append((entries, block, counts))
    furthest = 0.0
    for (one, block, counts), (other, next_block, others) in itertools.combinations(found, 2):
        if apart(one, other) != 1:
            continue
        assert (block.sensitive != next_block.sensitive).sum() <= 1
        assert (block.numbers == next_block.numbers).all()
        assert (block.codes == next_block.codes).all()
        assert (block.labels == next_block.labels).all()
        furthest = max(furthest, float(np.abs(counts - others).sum()))
    assert furthest == moved


def test_guarantee_1_an_entry_that_becomes_another_persons_moves_two_rows(
    company: Path, tmp_path: Path
) -> None:
    """Hence it is two steps, and the page says so."""
    one = load_joined(company, register(tmp_path, {"a1": "f"}), SCHEMA, id="id")
    other = load_joined(company, register(tmp_path, {"b2": "f"}), SCHEMA, id="id")
    assert np.abs(counts_of(one)[1] - counts_of(other)[1]).sum() == 4


def test_drop_shows_who_has_an_entry_and_says_so(company: Path, tmp_path: Path) -> None:
    held = register(tmp_path, {"a1": "f", "c3": "m"})
    rows = load_joined(company, held, SCHEMA, id="id", unmatched="drop")
    (block,) = rows.blocks()
    assert block.rows == 2
    assert block.sensitive is not None
    assert block.sensitive.tolist() == [[0, 1]]
    assert block.labels is not None
    assert block.labels.tolist() == [0, 1]
    (fact,) = (fact for fact in rows.facts if fact.name == "unmatched ids")
    assert fact.origin == "read from the data, not covered"
    ledger = fv.Ledger.create(
        None, "people", 1.0, 0.0, protects="sensitive_features", production=True
    )
    with pytest.raises(FairveilError, match=r"read from the data|production"):
        fv.release_groups(rows, epsilon=1.0, ledger=ledger)


@pytest.mark.parametrize(
    ("table", "held"),
    [
        (COMPANY + "a1,2,x,no\n", "id,sex\na1,f\n"),
        (COMPANY, "id,sex\na1,f\nb2,m\na1,f\n"),
        (COMPANY, "id,sex\na1,f\n a1 ,m\n"),
        (COMPANY, "id,sex\na1,f\n,m\n"),
        (COMPANY + ",2,x,no\n", "id,sex\na1,f\n"),
    ],
)
def test_guarantee_2_ids_that_occur_twice_or_lack_are_refused_without_being_shown(
    table: str, held: str, tmp_path: Path
) -> None:
    (tmp_path / "company.csv").write_text(table)
    (tmp_path / "register.csv").write_text(held)
    with pytest.raises(JoinError, match=r"row [0-9]") as error:
        load_joined(tmp_path / "company.csv", tmp_path / "register.csv", SCHEMA, id="id")
    assert "a1" not in str(error.value)


@pytest.mark.parametrize("value", ["other", "3"])
def test_guarantee_2_a_value_that_the_schema_does_not_list_is_refused_without_being_shown(
    value: str, company: Path, tmp_path: Path
) -> None:
    with pytest.raises(SchemaError, match="first in row 2") as error:
        load_joined(company, register(tmp_path, {"a1": "f", "b2": value}), SCHEMA, id="id")
    assert repr(value) not in str(error.value)


@pytest.mark.parametrize(
    ("schema", "options", "words"),
    [
        (SCHEMA.with_roles(sensitive=()), {}, "sensitive columns"),
        (
            Schema({**COLUMNS, "sex": Category(("f", "m"))}, target="hired", sensitive="sex"),
            {},
            "value for unmatched ids",
        ),
        (SCHEMA, {"id": "score"}, "no feature and no role"),
        (SCHEMA, {"id": "hired"}, "no feature and no role"),
        (SCHEMA, {"unmatched": "keep"}, "unmatched"),
        (SCHEMA, {"ids": "ids.csv"}, "None beside another table"),
        (SCHEMA, {"id": "nowhere"}, "nowhere"),
    ],
)
def test_guarantee_3_what_is_not_declared_is_refused(
    schema: Schema, options: dict[str, Any], words: str, company: Path, tmp_path: Path
) -> None:
    with pytest.raises(FairveilError, match=words):
        load_joined(company, register(tmp_path, {"a1": "f"}), schema, **{"id": "id", **options})


def large(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """2,000 people of the company, 1,700 entries in another order, some of them of others."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(10**6)[:2000]
    table = pd.DataFrame(
        {
            "id": ids,
            "score": rng.uniform(0, 10, 2000).round(3),
            "town": rng.choice(["x", "y"], 2000),
        }
    )
    table["hired"] = np.where(table["score"] + rng.normal(size=2000) > 5, "yes", "no")
    held = pd.DataFrame(
        {
            "id": [*rng.permutation(ids)[:1600], *range(10**6, 10**6 + 100)],
            "sex": rng.choice(["f", "m"], 1700),
        }
    )
    table.to_csv(folder / "t.csv", index=False)
    held.to_csv(folder / "h.csv", index=False)
    whole = table.merge(held, how="left", on="id")
    whole["sex"] = whole["sex"].fillna("unknown")
    whole.drop(columns="id").to_csv(folder / "whole.csv", index=False)
    return table, held


def same(one: EncodedRows, other: EncodedRows) -> bool:
    return all(
        getattr(a, name).tobytes() == getattr(b, name).tobytes()
        and getattr(a, name).dtype == getattr(b, name).dtype
        for a, b in zip(one.blocks(), other.blocks(), strict=True)
        for name in ("numbers", "codes", "labels", "sensitive")
    )


def test_guarantee_4_rows_are_those_of_the_joined_table_from_files_databases_and_stores(
    tmp_path: Path,
) -> None:
    table, held = large(tmp_path)
    whole = data.open(tmp_path / "whole.csv", SCHEMA)
    assert isinstance(whole, EncodedRows)
    table.to_parquet(tmp_path / "t.parquet")
    held.to_parquet(tmp_path / "h.parquet")
    table[["id"]].to_csv(tmp_path / "ids.csv", index=False)
    with sqlite3.connect(tmp_path / "people.db") as base:
        table.to_sql("company", base, index=False)
        held.to_sql("register", base, index=False)
    write_store(data.open(tmp_path / "t.csv", SCHEMA.without("sex")), tmp_path / "t.store")
    ways: list[tuple[str, str, dict[str, Any]]] = [
        ("t.csv", "h.csv", {}),
        ("t.parquet", "h.csv", {}),
        ("t.csv", "h.parquet", {}),
        (
            "people.db",
            "people.db",
            {"query": "company", "attribute_query": "SELECT * FROM register"},
        ),
        ("t.store", "h.csv", {"ids": tmp_path / "ids.csv"}),
    ]
    for place, other, options in ways:
        found = load_joined(tmp_path / place, tmp_path / other, SCHEMA, id="id", **options)
        assert same(found, whole), (place, other)
    kept = load_joined(tmp_path / "t.csv", tmp_path / "h.csv", SCHEMA, id="id", unmatched="drop")
    stored = load_joined(
        tmp_path / "t.store",
        tmp_path / "h.csv",
        SCHEMA,
        id="id",
        unmatched="drop",
        ids=tmp_path / "ids.csv",
    )
    assert same(kept, stored)
    assert sum(block.rows for block in kept.blocks()) == 1600
    assert matched(tmp_path / "t.csv", tmp_path / "h.csv", SCHEMA, id="id") == Matched(
        2000, 1600, 100
    )


def test_a_store_needs_an_id_for_each_row(company: Path, tmp_path: Path) -> None:
    write_store(data.open(company, SCHEMA.without("sex")), tmp_path / "t.store")
    held = register(tmp_path, {"a1": "f"})
    with pytest.raises(FairveilError, match="a file of ids beside a coded store"):
        load_joined(tmp_path / "t.store", held, SCHEMA, id="id")
    (tmp_path / "ids.csv").write_text("id\na1\nb2\n")
    with pytest.raises(JoinError, match="an id for each row of the store"):
        load_joined(tmp_path / "t.store", held, SCHEMA, id="id", ids=tmp_path / "ids.csv")


def test_a_register_of_those_who_have_something_makes_two_groups(
    company: Path, tmp_path: Path
) -> None:
    """Who is not in it counts as false: whether somebody is in it is what is protected."""
    columns = {
        "score": Number(0, 10),
        "ill": Boolean(missing=False),
        "hired": Category(("no", "yes")),
    }
    schema = Schema(columns, target="hired", sensitive="ill")
    (tmp_path / "ill.csv").write_text("id,ill\nb2,true\n")
    (block,) = load_joined(company, tmp_path / "ill.csv", schema, id="id").blocks()
    assert block.sensitive is not None
    assert block.sensitive.tolist() == [[0, 1, 0]]


def test_ids_are_texts_and_whole_numbers_by_their_digits(tmp_path: Path) -> None:
    table = pd.DataFrame({"id": [7, 8, 9], "score": [1.0, 2.0, 3.0], "town": "x", "hired": "no"})
    table.to_parquet(tmp_path / "t.parquet")
    (block,) = load_joined(
        tmp_path / "t.parquet", register(tmp_path, {"7": "f", "08": "m", "9": "m"}), SCHEMA, id="id"
    ).blocks()
    assert block.sensitive is not None
    assert block.sensitive.tolist() == [[0, 2, 1]]
    table.astype({"id": float}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(JoinError, match="an id in column"):
        load_joined(tmp_path / "t.parquet", register(tmp_path, {"7": "f"}), SCHEMA, id="id")


@pytest.mark.parametrize("unmatched", ["group", "drop"])
def test_rows_say_how_they_were_joined_wherever_they_lie(unmatched: str, tmp_path: Path) -> None:
    """In memory, in a store, in some of its rows, and in pieces of it: a fit's statement tells, and
    a ledger in production refuses who was left out by the data."""
    draw, count = np.random.default_rng(0), 300
    told = zip(draw.uniform(0, 10, count), draw.choice(["x", "y"], count), strict=True)
    hired = ("yes", "no", "no")
    lines = (f"{at},{a:.2f},{town},{hired[at % 3]}" for at, (a, town) in enumerate(told))
    (tmp_path / "t.csv").write_text("\n".join(["id,score,town,hired", *lines]))
    held = register(tmp_path, {str(at): "fm"[at % 2] for at in range(200)})
    joined = load_joined(tmp_path / "t.csv", held, SCHEMA, id="id", unmatched=unmatched)
    stored = write_store(joined, tmp_path / "t.store")
    assert joined.facts
    assert data.open_store(tmp_path / "t.store").facts == joined.facts
    assert stored.chosen(np.arange(9)).chosen(np.arange(3)).facts == joined.facts
    assert {piece.facts for piece in pieces_of(stored, None, shards=2)[1]} == {joined.facts}
    alone: dict[str, Any] = {"protects": "sensitive_features"}
    strict = fv.Ledger.create(tmp_path / "b.db", "p", 3.0, 1e-5, production=True, **alone)
    for source in (joined, stored, stored.by(SCHEMA)):
        quick = fv.FairClassifier(solver=fv.PrimalDual(rounds=3), **alone)
        assert {*joined.facts} <= {*clone(quick).fit(source).privacy_.facts}
        recorded = clone(quick).set_params(constraints="demographic_parity:0.3", ledger=strict)
        if unmatched == "group":
            recorded.fit(source)
        else:
            with pytest.raises(LedgerError, match="unmatched ids"):
                recorded.fit(source)
