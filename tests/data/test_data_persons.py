"""Rows of persons: the guarantees of `data/persons.py`, and fits on them."""

from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairveil as fv
import ways
from fairveil import data
from fairveil.core.extra.sharded import ShardedRows, Taking
from fairveil.core.noise import NoiseSource
from fairveil.core.rows import Poisson
from fairveil.curator import CellCounts, Curator, Rows
from fairveil.data import persons
from fairveil.data.persons import names_of
from fairveil.data.pieces import pieces_of
from fairveil.errors import FairveilError, InputError, PrivacyError, SchemaError
from fairveil.privacy import Promise, Unit
from fairveil.tables.columns import Plain
from knobs import made
from shards_here import Here

SCHEMA = data.Schema(
    {
        "age": data.Number(17, 90),
        "sex": data.Category(("f", "m")),
        "hired": data.Category(("no", "yes")),
    },
    target="hired",
    sensitive="sex",
    unit="patient",
    max_rows_per_unit=3,
)


def table(rows: int = 900, people: int = 250, seed: int = 0) -> pd.DataFrame:
    """Persons in no order; one of them has 40 rows."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, people, rows)
    ids[rng.choice(rows, 40, replace=False)] = 7
    sex, age = rng.integers(2, size=rows), rng.integers(17, 90, rows)
    hired = np.where(age + 15 * sex + rng.normal(0, 20, rows) > 60, "yes", "no")
    whose = [f"planted-{i}" for i in ids]
    return pd.DataFrame(
        {"age": age, "sex": np.array(["f", "m"])[sex], "hired": hired, "patient": whose}
    )


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ---- guarantee 1: whole persons, in the order of their first rows
# --------------------------------------------------------


@pytest.mark.parametrize("files", [1, 64])
@pytest.mark.parametrize("block_rows", [1, 30, 10_000])
def test_guarantee_1_no_person_has_rows_in_two_blocks(
    monkeypatch, files: int, block_rows: int
) -> None:
    monkeypatch.setattr(persons, "FILES", files)
    people = table()
    store = data.encode(people, SCHEMA, "people.store", block_rows=block_rows)
    blocks = list(store.blocks())
    places = np.concatenate([block.persons["place"] for block in blocks])
    first = people.groupby("patient", sort=False).ngroup()
    assert np.array_equal(places, np.lexsort((np.arange(len(people)), first)))
    whose = people["patient"].to_numpy()[places]
    seen: set[str] = set()
    start = 0
    for block in blocks:
        mine = whose[start : start + block.rows]
        assert not seen & set(mine)
        assert len(set(mine)) == block.persons["begins"].sum()
        assert block.rows <= block_rows or len(set(mine)) == 1
        seen |= set(mine)
        start += block.rows
    told = next(data.encode(people, SCHEMA, block_rows=10_000).blocks())
    assert np.array_equal(
        np.concatenate([block.numbers for block in blocks], axis=1), told.numbers[:, places]
    )
    assert np.array_equal(np.concatenate([block.labels for block in blocks]), told.labels[places])
    assert np.array_equal(
        np.concatenate([block.sensitive for block in blocks], axis=1), told.sensitive[:, places]
    )


def test_guarantee_1_blocks_with_a_part_of_a_person_are_refused() -> None:
    class Parts:
        """A source whose second block continues with the person of the first."""

        layout = data.Encoding(SCHEMA).layout

        def blocks(self) -> Any:
            found = next(data.encode(table(), SCHEMA, "people.store").blocks())
            for a, b in ((0, 2), (2, found.rows)):
                persons = found.persons[a:b]
                yield type(found)(
                    found.numbers[:, a:b],
                    found.codes[:, a:b],
                    found.labels[a:b],
                    found.sensitive[:, a:b],
                    None,
                    persons,
                )

    store = data.encode(table(), SCHEMA, "people.store")
    persons = next(store.blocks()).persons
    assert not persons["begins"][2]  # else the planted cut would be none
    store.delete()
    with pytest.raises(InputError, match="whole persons"):
        Rows(Parts())


def test_guarantee_2_nothing_is_left_and_nobody_is_named() -> None:
    data.encode(table(), SCHEMA, "people.store")
    assert [path.name for path in Path.cwd().iterdir()] == ["people.store"]
    assert b"planted" not in Path("people.store").read_bytes()


# ---- fits
# --------------------------------------------------------------------------------------------------


def spilled() -> Any:
    """Put person by person on the disk, in a file without a name."""
    with pytest.MonkeyPatch.context() as context:
        context.setenv("FAIRVEIL_MEMORY", "2000")
        context.setenv("FAIRVEIL_SPILL", str(Path.cwd()))
        return data.open("people.csv", SCHEMA)


def sources() -> dict[str, Any]:
    """The same rows in memory, spilled, as a store, some of a store (all), and in shards."""
    people = table()
    people.to_csv("people.csv", index=False)
    store = data.encode("people.csv", SCHEMA, "people.store", block_rows=50, overwrite=True)
    return {
        "coded": data.encode(people, SCHEMA),
        "csv": data.open("people.csv", SCHEMA),
        "spilled": spilled(),
        "store": store,
        "chosen": store.chosen(np.arange(len(people))),
        "shards": Here("people.store", shards=5),
    }


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (fv.FairClassifier, {"epsilon": 3.0}),
        (ways.fermi, {"epsilon": 3.0}),
        (ways.tailored, {"epsilon": 3.0}),
        (
            fv.FairClassifier,
            {"epsilon": 3.0, "protects": "sensitive_features", "max_rows_per_unit": 60},
        ),
    ],
)
def test_estimators_give_the_bits_of_the_table_from_every_source(kind, options) -> None:
    people = table()
    asked = {
        fv.FairClassifier: "demographic_parity:0.1",
        ways.fermi: "demographic_parity",
        ways.tailored: "least-noise",
    }[kind]

    def fitted(X: Any, *rest: Any, **more: Any) -> Any:
        clf = made(kind, asked, delta=1e-5, rounds=4, random_state=0, schema=SCHEMA, **options)
        clf.fit(X, *rest, **more)
        return clf.coef_.tobytes(), clf.privacy_.epsilon

    told = fitted(people.drop(columns="hired"), people["hired"], sensitive_features="sex")
    for name, source in sources().items():
        assert fitted(source) == told, name


def test_batches_of_persons_are_the_same_from_store_and_shards() -> None:
    promise = Promise(5.0, 1e-5, unit=Unit("patient", 2))
    found = sources()
    shards = Here("people.store", shards=4)
    held = {name: Rows(found[name]) for name in ("coded", "store")}
    held["chosen"] = Rows(found["chosen"], in_memory=False)
    held["shards"] = ShardedRows(shards.shards(), Taking(shards.layout), shards)
    answers = {}
    for name, rows in held.items():
        curator = Curator(rows, promise, noise=NoiseSource.seeded(0))
        question = CellCounts(rows.cells())
        answers[name] = [
            curator.answer([(question, 4.0)], batch=Poisson(0.3))[0].tolist() for _ in range(3)
        ]
        assert rows.most_per_person >= 40
    assert len({str(one) for one in answers.values()}) == 1


def test_a_worker_that_is_killed_is_told_again_which_rows_are_read() -> None:
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    data.encode(table(), SCHEMA, "people.store", block_rows=50)
    promise, answers = Promise(5.0, 1e-5, unit=Unit("patient", 2)), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cluster
        with (
            fv.distributed.local_cluster(2) as cluster,
            distributed.Client(cluster) as client,
            fv.distributed.DaskRows(client, "people.store", shards=3) as source,
        ):
            shards = source.shards()
            for name, rows in (
                ("here", Rows(data.open("people.store"))),
                ("workers", ShardedRows(shards, Taking(source.layout), source)),
            ):
                curator = Curator(rows, promise, noise=NoiseSource.seeded(0))
                question = CellCounts(rows.cells())
                answers[name] = [curator.answer([(question, 4.0)])[0].tolist()]
                if name == "workers":
                    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
                answers[name].append(curator.answer([(question, 4.0)])[0].tolist())
    assert answers["here"] == answers["workers"]


def test_a_part_of_a_store_reads_the_rows_that_a_part_of_the_table_reads() -> None:
    """Whole persons set aside: the others keep their coins by place among those that are left."""
    people, out = table(), {}
    keep = ~people["patient"].isin([f"planted-{i}" for i in range(60)]).to_numpy()
    store = data.encode(people, SCHEMA, "people.store", block_rows=40)
    places = np.concatenate([block.persons["place"] for block in store.blocks()])
    for name, X in (
        ("table", data.encode(people[keep], SCHEMA)),
        ("store", store.chosen(np.flatnonzero(keep[places]))),
    ):
        clf = fv.FairClassifier(
            "demographic_parity:0.1",
            epsilon=3.0,
            solver=fv.PrimalDual(rounds=3),
            random_state=0,
            schema=SCHEMA,
        )
        out[name] = clf.fit(X).coef_.tobytes()
    assert out["table"] == out["store"]


# ---- what is refused
# --------------------------------------------------------------------------------------------------


def test_what_contradicts_a_store_of_persons_is_refused() -> None:
    store = data.encode(table(), SCHEMA, "people.store")
    clf = fv.FairClassifier("demographic_parity:0.1", epsilon=3.0, solver=fv.PrimalDual(rounds=3))
    with pytest.raises(PrivacyError):  # rows would be protected, not persons
        clf.fit(store)
    with pytest.raises(InputError, match="rows that know"):
        ways.told(clf, unit="other", max_rows_per_unit=3).fit(store)
    with pytest.raises(SchemaError, match="unit"):
        store.by(SCHEMA.with_unit("other"))
    assert fv.FairClassifier(
        "demographic_parity:0.1", epsilon=3.0, solver=fv.PrimalDual(rounds=3)
    ).fit(store.by(SCHEMA.without_unit()))
    with pytest.raises(FairveilError):
        ways.game("demographic_parity:0.1", epsilon=3.0).fit(store)
    people = table()
    with pytest.raises(InputError, match="person for every row"):
        data.encode(people.assign(patient=[None, *people["patient"][1:]]), SCHEMA, "missing.store")
    assert not Path("missing.store").exists()
    # one block: a shard is never less than a block
    assert len(pieces_of("people.store", None, shards=3)[1]) == 1


# ---- names (tests/contract: a person in several parts of a source counts once, or is refused)
# --------------------------------------------------------------------------------------------------


def test_a_person_whose_name_is_a_text_in_one_file_and_a_number_in_another() -> None:
    people = table(60, 20).assign(patient=range(60))
    Path("mixed").mkdir()
    people.to_parquet("mixed/0.parquet")
    people.assign(patient=people["patient"].astype(str)).to_parquet("mixed/1.parquet")
    with pytest.raises(SchemaError, match="one kind"):
        data.open("mixed", SCHEMA)
    with pytest.raises(SchemaError, match="one kind"):
        data.encode("mixed", SCHEMA, "mixed.store")
    # A column of whole numbers with a gap is one of floats: these are the same names.
    people.assign(patient=people["patient"].astype(float)).to_parquet("mixed/1.parquet")
    (store,) = data.encode("mixed", SCHEMA, "mixed.store").blocks()
    assert store.persons["begins"].sum() == 60


def test_equal_numbers_are_one_name_whatever_their_type_and_block() -> None:
    from decimal import Decimal
    from fractions import Fraction

    values = [0.5, Decimal("0.5"), Fraction(1, 2), np.float32(0.5), 7, 7.0, Decimal(7), "7", True]
    names = [names_of(Plain(np.array([value], object))).tolist() for value in values]
    assert [names.index(name) for name in names] == [values.index(value) for value in values]


@pytest.mark.parametrize("block_rows", [60, 10])
def test_a_person_whose_name_is_a_text_in_one_row_of_a_table_and_a_number_in_another(
    block_rows: int,
) -> None:
    """As in two files: a column of both is what concatenated frames have."""
    people = table(60, 20).assign(patient=range(60))
    mixed = pd.concat([people, people.assign(patient=people["patient"].astype(str))])
    for options in ({}, {"out": "mixed.store"}):
        with pytest.raises(SchemaError, match="one kind"):
            data.encode(mixed, SCHEMA, block_rows=block_rows, **options)
    asked = fv.FairClassifier(schema=SCHEMA, random_state=0)
    with pytest.raises((InputError, SchemaError), match="one kind"):
        asked.fit(mixed)
