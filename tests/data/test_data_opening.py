"""`data.open` and `data.encode(..., out)`: the guarantees of `data/opening.py`."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_data_store import SCHEMA, table

import fairveil as fv
from fairveil import data
from fairveil.errors import DataNotFoundError, FairveilError, InputError, RowsOnDisk, SchemaError


@pytest.fixture
def places(tmp_path: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """The same rows in everything that can be opened."""
    people = table(300)
    for kind in ("csv", "parquet"):
        (tmp_path / kind).mkdir()
    people.to_csv(tmp_path / "people.csv", index=False)
    people.to_csv(tmp_path / "people.tsv.gz", index=False, sep="\t")
    people.to_parquet(tmp_path / "people.parquet", index=False, row_group_size=70)
    for number in range(3):
        part = people.iloc[100 * number : 100 * (number + 1)]
        part.to_csv(tmp_path / "csv" / f"{number}.csv", index=False)
        part.to_parquet(tmp_path / "parquet" / f"{number}.parquet", index=False)
    with sqlite3.connect(tmp_path / "people.db") as connection:
        people.to_sql("people", connection, index=False)
    data.encode(people, SCHEMA, tmp_path / "people.store", block_rows=128)
    base = f"sqlite:///{tmp_path}/people.db"
    return {
        "csv": (str(tmp_path / "people.csv"), {}),
        "tsv": (str(tmp_path / "people.tsv.gz"), {}),
        "parquet": (str(tmp_path / "people.parquet"), {}),
        "folder": (str(tmp_path / "csv"), {}),
        "pattern": (str(tmp_path / "parquet" / "*.parquet"), {}),
        "database": (base, {"query": "people"}),
        "query": (base, {"query": "SELECT * FROM people WHERE age > 0"}),
        "store": (str(tmp_path / "people.store"), {}),
    }


def alike(one: Any, other: Any) -> bool:
    """The same rows, whatever the blocks."""
    return all(
        np.array_equal(
            *(
                np.concatenate([getattr(block, name) for block in rows.blocks()], axis=-1)
                for rows in (one, other)
            )
        )
        for name in ("numbers", "codes", "labels", "sensitive")
    )


@pytest.mark.parametrize("memory", [1 << 30, 2000])
def test_guarantee_1_every_source_has_the_rows(places, monkeypatch, tmp_path, memory) -> None:
    monkeypatch.setenv("FAIRVEIL_MEMORY", str(memory))
    monkeypatch.setenv("FAIRVEIL_SPILL", str(tmp_path))
    told = data.encode(table(300), SCHEMA)
    fits: list[bytes] = []
    for name, (address, options) in places.items():
        if memory < 1 << 30 and name != "store":
            with pytest.warns(RowsOnDisk):
                found = data.open(address, SCHEMA, **options)
        else:
            found = data.open(address, SCHEMA, **options)
        assert alike(found, told), name
        clf = fv.FairClassifier(
            "demographic_parity:0.1", epsilon=3.0, solver=fv.PrimalDual(rounds=4), random_state=0
        ).fit(found)
        fits.append(clf.coef_.tobytes())
    assert len(set(fits)) == 1
    assert alike(data.open(places["store"][0]), told)


def test_guarantee_1_encode_with_out_writes_any_source(places, tmp_path) -> None:
    told = data.encode(table(300), SCHEMA)
    for name, (address, options) in places.items():
        if name == "store":
            continue
        store = data.encode(
            address,
            SCHEMA,
            tmp_path / f"{name}.store",
            block_rows=128,
            **options,
        )
        assert store.is_mapped
        assert alike(store, told), name
    again = data.encode(table(300), SCHEMA, tmp_path / "csv.store", overwrite=True)
    assert alike(again, told)


@pytest.mark.parametrize(
    ("source", "options", "error", "words"),
    [
        ("nowhere.csv", {"schema": SCHEMA}, DataNotFoundError, "nothing there"),
        ("people.csv", {}, InputError, "Schema"),
        ("people.db", {"schema": SCHEMA}, InputError, "query="),
        ("postgresql://me:secret@host/base", {"schema": SCHEMA}, InputError, "query="),
        ({"age": [1]}, {"schema": SCHEMA}, InputError, "data.encode"),
        ("people.csv", {"schema": SCHEMA.with_roles(target="hired").without("job")}, None, ""),
        ("strange.csv", {"schema": SCHEMA}, SchemaError, "another value"),
    ],
)
def test_guarantee_2_errors_name_the_way_out(
    tmp_path, monkeypatch, source, options, error, words
) -> None:
    monkeypatch.chdir(tmp_path)
    table(20).to_csv("people.csv", index=False)
    table(20).assign(job="planted-value").to_csv("strange.csv", index=False)
    sqlite3.connect("people.db").execute("CREATE TABLE people (age INT)").connection.commit()
    if error is None:
        data.open(source, **options)
        return
    with pytest.raises(error, match=words) as caught:
        data.open(source, **options)
    assert "secret" not in str(caught.value)
    assert "planted-value" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"table": "people.csv"},
        {"table": {"age": [1]}, "overwrite": True},
        {"table": "people.csv", "out": "a.store", "names": ["age"]},
        {"table": "people.csv", "out": "a.store", "with_target": False},
        {"table": "people.store", "out": "a.store"},
    ],
)
def test_encode_refuses_what_does_not_belong_together(tmp_path, monkeypatch, options) -> None:
    monkeypatch.chdir(tmp_path)
    table(20).to_csv("people.csv", index=False)
    data.encode("people.csv", SCHEMA, "people.store")
    with pytest.raises(FairveilError):
        data.encode(schema=SCHEMA, **options)
    assert not Path("a.store").exists()
