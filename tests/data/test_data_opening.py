"""`data.open` and `data.encode(..., out)`: the guarantees of `data/opening.py`."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairveil as fv
from fairveil import data
from fairveil.errors import DataNotFoundError, FairveilError, InputError, RowsOnDisk, SchemaError

SCHEMA = data.Schema(
    {
        "age": data.Number(17, 90),
        "job": data.Category(("private", "state")),
        "sex": data.Category(("f", "m")),
        "hired": data.Category(("no", "yes")),
    },
    target="hired",
    sensitive="sex",
)


def table(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sex, age = rng.integers(2, size=rows), rng.integers(17, 90, rows)
    return pd.DataFrame(
        {
            "age": age,
            "job": rng.choice(["private", "state"], rows),
            "sex": np.array(["f", "m"])[sex],
            "hired": np.where(age + 20 * sex > 60, "yes", "no"),
        }
    )


@pytest.fixture
def places(tmp_path: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """The same rows in everything that can be opened."""
    people = table()
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


def arrays(source: Any) -> list[np.ndarray]:
    blocks = list(source.blocks())
    joined = [
        np.concatenate([getattr(block, name) for block in blocks], axis=-1)
        for name in ("numbers", "codes")
    ]
    return [
        *joined,
        np.concatenate([block.labels for block in blocks]),
        np.hstack([block.sensitive for block in blocks]),
    ]


def alike(one: Any, other: Any) -> bool:
    return all(map(np.array_equal, arrays(one), arrays(other)))


@pytest.mark.parametrize("memory", [1 << 30, 2000])
def test_guarantee_1_every_source_has_the_rows(places, monkeypatch, tmp_path, memory) -> None:
    monkeypatch.setenv("FAIRVEIL_MEMORY", str(memory))
    monkeypatch.setenv("FAIRVEIL_SPILL", str(tmp_path))
    told = data.encode(table(), SCHEMA)
    fits: list[bytes] = []
    for name, (address, options) in places.items():
        if memory < 1 << 30 and name != "store":
            with pytest.warns(RowsOnDisk):
                found = data.open(address, SCHEMA, **options)
        else:
            found = data.open(address, SCHEMA, **options)
        assert alike(found, told), name
        clf = fv.RateConstrainedClassifier(
            "demographic_parity:0.1", epsilon=3.0, solver=fv.Descent(rounds=4), random_state=0
        ).fit(found)
        fits.append(clf.coef_.tobytes())
    assert len(set(fits)) == 1
    assert alike(data.open(places["store"][0]), told)


def test_guarantee_1_encode_with_out_writes_any_source(places, tmp_path) -> None:
    told = data.encode(table(), SCHEMA)
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
    again = data.encode(table(), SCHEMA, tmp_path / "csv.store", overwrite=True)
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
