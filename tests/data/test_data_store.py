"""Coded stores: the guarantees of `data/store.py`. Writers are killed for real, in processes of
their own."""

from __future__ import annotations

import errno
import gc
import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fairveil as fv
import ways
from fairveil import data
from fairveil.curator import Curator, Linear, PredictionHistogram, Rows
from fairveil.data import store as module
from fairveil.errors import (
    ChecksumError,
    DataNotFoundError,
    InputError,
    PrivacyError,
    RowsOnDisk,
    SchemaError,
)

SCHEMA = data.Schema(
    {
        "age": data.Number(17, 90),
        "hours": data.Number(0, 100, missing=40),
        "job": data.Category(("private", "state", "?"), missing="?"),
        "sex": data.Category(("f", "m")),
        "race": data.Category(("a", "b", "c")),
        "hired": data.Category(("no", "yes")),
    },
    target="hired",
    sensitive=("sex", "race"),
)


def table(rows: int = 1000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=rows)
    age = rng.integers(17, 90, rows)
    hours = rng.integers(0, 100, rows).astype(float)
    hired = age + hours / 2 + 15 * sex + rng.normal(0, 20, rows) > 80
    return pd.DataFrame(
        {
            "age": age,
            "hours": hours,
            "job": rng.choice(["private", "state", "?"], rows),
            "sex": np.array(["f", "m"])[sex],
            "race": rng.choice(["a", "b", "c"], rows),
            "hired": np.where(hired, "yes", "no"),
        }
    )


def same(one: Any, other: Any) -> bool:
    pairs = zip(one.blocks(), other.blocks(), strict=True)
    return all(
        np.array_equal(a.numbers, b.numbers) and a.numbers.dtype == b.numbers.dtype
        and np.array_equal(a.codes, b.codes) and np.array_equal(a.labels, b.labels) and np.array_equal(a.sensitive, b.sensitive)
        for a, b in pairs
    )  # fmt: skip


# ---- guarantee 1
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 1000])
def test_guarantee_1_blocks_are_those_that_were_written(
    tmp_path: Path, precision: str, rows: int
) -> None:
    source = data.encode(table(rows), SCHEMA, block_rows=64, precision=precision)
    found = data.write_store(source, tmp_path / "people.store", block_rows=64)
    assert same(found, source)
    assert same(data.open_store(tmp_path / "people.store"), source)
    assert found.encoding == source.encoding


def test_guarantee_1_a_numeric_target_and_no_groups_survive(tmp_path: Path) -> None:
    schema = data.Schema({"age": data.Number(17, 90), "hours": data.Number(0, 100)}, target="hours")
    source = data.encode(table(200)[["age", "hours"]], schema)
    (block,) = data.write_store(source, tmp_path / "s").blocks()
    assert block.sensitive is None
    assert block.labels is not None
    assert np.array_equal(block.labels, next(source.blocks()).labels)


@pytest.mark.parametrize(
    "clf",
    [
        fv.FairClassifier("demographic_parity:0.1", epsilon=2.0, random_state=0),
        fv.FairClassifier(
            epsilon=2.0, random_state=0, solver=fv.PrimalDual(sampling_rate=0.1, rounds=30)
        ),
        ways.fermi(epsilon=2.0, random_state=0),
        ways.game("equalized_odds:0.1", epsilon=2.0, rounds=5, random_state=0),
        ways.objective(
            "error",
            "demographic_parity:0.1",
            epsilon=2.0,
            solver=fv.GroupObjective(rounds=5),
            random_state=0,
        ),
        ways.tailored(epsilon=2.0, random_state=0),
        fv.FairClassifier("equalized_odds:0.1", protects="sensitive_features", random_state=0),
    ],
    ids=lambda clf: f"{type(clf).__name__}-{clf.protects}",
)
@pytest.mark.filterwarnings("ignore")
def test_guarantee_1_fits_on_a_store_are_those_on_the_rows_in_memory(
    tmp_path: Path, clf: Any
) -> None:
    source = data.encode(table(800), SCHEMA, block_rows=256)
    store = data.write_store(source, tmp_path / "people.store", block_rows=256)
    probabilities = []
    for rows in (source, store):
        clf.fit(rows)
        probabilities.append(clf.predict_proba(rows))
    assert np.array_equal(*probabilities)


def test_a_mapped_table_keeps_no_second_copy(tmp_path: Path) -> None:
    """Rows of a store stay views of the file, also once they were scaled; what is made of them is
    the same to the bit."""
    source = data.encode(table(500), SCHEMA, block_rows=128)
    store = data.write_store(source, tmp_path / "s", block_rows=128)
    mapped, held = Rows(store), Rows(source)
    scale, shift = np.array([2.0, 0.5]), np.array([0.1, -0.3])
    pairs = zip(
        mapped.rescaled(scale, shift).blocks(), held.rescaled(scale, shift).blocks(), strict=True
    )
    assert all(np.array_equal(a.numbers, b.numbers) for a, b in pairs)
    assert all(not block.numbers.flags.owndata and block.is_mapped for block in mapped.blocks())
    question = PredictionHistogram(
        Linear(np.ones((1, 1 + SCHEMA_WIDTH))), held.cells(), "hard", by_label=True
    )
    answers = [
        Curator(rows, fv.Promise(float("inf"), 0.0)).answer([(question, 0.0)])[0]
        for rows in (mapped, held)
    ]
    assert np.array_equal(*answers)
    assert all(not block.in_order for block in mapped.blocks())


SCHEMA_WIDTH = data.Encoding(SCHEMA).layout.width


# ---- guarantee 2
# --------------------------------------------------------------------------------------------------

WRITER = """
import sys, time
from fairveil import data
from fairveil.data import reading, store
schema = data.Schema.load(sys.argv[1])
kept = store._digest
def slowly(*lines):
    print("block", flush=True)
    time.sleep(0.02)
    return kept(*lines)
store._digest = slowly
data.encode(sys.argv[2], schema, sys.argv[3], block_rows=64, overwrite=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are of Linux")
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("after", [1, 20])
def test_guarantee_2_a_writer_that_is_killed_leaves_nothing(
    tmp_path: Path, after: int, there: bool
) -> None:
    SCHEMA.save(tmp_path / "t.toml")
    table(2000).to_csv(tmp_path / "t.csv", index=False)
    before = data.encode(table(50), SCHEMA, tmp_path / "s") if there else None
    names = {path.name for path in tmp_path.iterdir()}
    arguments = [str(tmp_path / name) for name in ("t.toml", "t.csv", "s")]
    command = [sys.executable, "-c", WRITER, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(after):
            assert writer.stdout.readline() == "block\n"
        writer.send_signal(signal.SIGKILL)
    assert {path.name for path in tmp_path.iterdir()} == names
    if before is not None:
        assert same(data.open_store(tmp_path / "s"), before)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_guarantee_2_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool, there: bool
) -> None:
    """Also where the system has no files without a name."""
    if named:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    before = data.encode(table(50), SCHEMA, tmp_path / "s") if there else None
    table(500).to_csv(tmp_path / "t.csv", index=False)
    names = {path.name for path in tmp_path.iterdir()}
    strange = table(500)
    strange.loc[499, "job"] = "planted-value"
    strange.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(SchemaError, match="first in row 500") as caught:
        data.encode(tmp_path / "t.csv", SCHEMA, tmp_path / "s", block_rows=64, overwrite=there)
    assert "planted-value" not in str(caught.value)

    def full(lines: Any, rows: int) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(module, "_digest", full)
        with pytest.raises(InputError, match="space on the disk"):
            data.encode(table(500), SCHEMA, tmp_path / "s", block_rows=64, overwrite=there)
    assert {path.name for path in tmp_path.iterdir()} == names
    if before is not None:
        assert same(data.open_store(tmp_path / "s"), before)
    found = data.encode(table(500), SCHEMA, tmp_path / "s", block_rows=64, overwrite=there)
    assert same(data.open_store(tmp_path / "s"), found)
    assert {path.name for path in tmp_path.iterdir()} == names | {"s"}


def test_guarantee_2_what_is_no_store_is_never_replaced(tmp_path: Path) -> None:
    source = data.encode(table(50), SCHEMA)
    store = data.write_store(source, tmp_path / "s")
    with pytest.raises(InputError, match="not there yet"):
        data.write_store(source, tmp_path / "s")
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "s")
    (tmp_path / "folder").mkdir()
    for name in ("mine.txt", "link", "folder"):
        with pytest.raises(InputError, match="not there yet"):
            data.write_store(source, tmp_path / name, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
    store.delete()
    assert not (tmp_path / "s").exists()
    with pytest.raises(PrivacyError):
        list(store.blocks())


@pytest.mark.parametrize("named", [False, True])
def test_guarantee_2_of_two_writers_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    if named:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    first, second = (data.encode(table(50, seed), SCHEMA) for seed in (0, 1))

    class Late:
        encoding, layout = first.encoding, first.layout

        def blocks(self) -> Any:
            data.write_store(second, tmp_path / "s")  # while the other is under way
            yield from first.blocks()

    with pytest.raises(InputError, match="not there yet"):
        data.write_store(Late(), tmp_path / "s")
    assert same(data.open_store(tmp_path / "s"), second)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


# ---- guarantee 3
# --------------------------------------------------------------------------------------------------


def test_guarantee_3_every_changed_byte_of_a_row_is_found_when_a_store_is_opened(
    tmp_path: Path,
) -> None:
    """Bytes that hold nothing (padding) may change; then the rows are those that were written."""
    store = data.write_store(data.encode(table(150), SCHEMA), tmp_path / "s", block_rows=64)
    whole = (tmp_path / "s").read_bytes()
    told = [np.array(block.numbers) for block in store.blocks()]
    refused = 0
    for at in range(0, len(whole), 31):
        (tmp_path / "s").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            found = data.open_store(tmp_path / "s")
        except (ChecksumError, InputError):
            refused += 1
        else:
            assert all(map(np.array_equal, told, (block.numbers for block in found.blocks())))
    assert refused > 100
    for changed in (whole[:-64], whole[: len(whole) // 2], whole[:6], b""):
        (tmp_path / "s").write_bytes(changed)
        with pytest.raises(ChecksumError, match="bytes"):
            data.open_store(tmp_path / "s")


def test_guarantee_3_rows_that_change_while_they_are_used_are_refused(tmp_path: Path) -> None:
    store = data.write_store(data.encode(table(150), SCHEMA), tmp_path / "s")
    half = store.chosen(np.arange(100))
    time.sleep(0.01)
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes())
    for rows in (store, half):
        with pytest.raises(PrivacyError, match="rows that were checked"):
            list(rows.blocks())


def test_an_arrow_file_of_somebody_else_is_no_store(tmp_path: Path) -> None:
    with pa.OSFile(str(tmp_path / "s"), "wb") as file, pa.ipc.new_file(file, pa.schema([])):
        pass
    with pytest.raises(InputError, match="another Arrow file"):
        data.open(tmp_path / "s")
    with pytest.raises(DataNotFoundError):
        data.open_store(tmp_path / "nowhere")


# ---- guarantee 4: rows that do not fit memory
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that may hold 10 kB of rows, and where they go else."""
    (tmp_path / "spill").mkdir()
    monkeypatch.setenv("FAIRVEIL_MEMORY", "10000")
    monkeypatch.setenv("FAIRVEIL_SPILL", str(tmp_path / "spill"))
    return tmp_path / "spill"


def test_guarantee_4_rows_go_to_a_file_without_a_name_and_this_is_said(
    tmp_path: Path, small: Path
) -> None:
    table(100).to_csv(tmp_path / "few.csv", index=False)
    few = data.open(tmp_path / "few.csv", SCHEMA)
    assert not few.is_mapped
    assert same(few, data.encode(table(100), SCHEMA))
    table(1000).to_csv(tmp_path / "many.csv", index=False)
    with pytest.warns(RowsOnDisk, match=str(small)):
        found = data.open(tmp_path / "many.csv", SCHEMA)
    assert found.is_mapped
    assert not list(small.iterdir())
    assert same(found, data.encode(table(1000), SCHEMA))
    half = found.chosen(np.arange(0, 1000, 2))
    del found
    gc.collect()
    copied = data.encode(table(1000), SCHEMA).chosen(np.arange(0, 1000, 2))
    assert same(half, copied)  # who holds a part holds them
    fits = [
        fv.FairClassifier(
            "demographic_parity:0.5", epsilon=3.0, model=fv.Additive(), random_state=0
        )
        .fit(rows)
        .coef_
        for rows in (copied, half)
    ]
    assert np.array_equal(*fits)


def test_guarantee_4_a_full_disk_is_an_error_before_a_charge(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(lines: Any, rows: int) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "_digest", full)
    table(1000).to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(RowsOnDisk), pytest.raises(InputError, match="space on the disk"):
        data.open(tmp_path / "t.csv", SCHEMA)
    monkeypatch.setenv("FAIRVEIL_MEMORY", "2 GB")
    with pytest.raises(InputError, match="bytes"):
        data.open(tmp_path / "t.csv", SCHEMA)
    monkeypatch.delenv("FAIRVEIL_MEMORY")
    assert (
        0 < module.most_in_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    )


# ---- around
# --------------------------------------------------------------------------------------------------


def test_rows_of_other_roles_come_from_one_store_and_other_features_do_not(tmp_path: Path) -> None:
    store = data.write_store(data.encode(table(50), SCHEMA), tmp_path / "s")
    (block,) = store.by(SCHEMA.without("hired", "sex", "race")).blocks()
    assert block.labels is None
    assert block.sensitive is None
    (one,) = store.by(SCHEMA.without("sex")).blocks()
    assert np.array_equal(one.sensitive, next(store.blocks()).sensitive[1:])
    with pytest.raises(SchemaError, match="features"):
        store.by(SCHEMA.without("job"))
    with pytest.raises(SchemaError, match="features"):
        store.by(SCHEMA, sensitive_as_feature=True)


def test_what_is_no_coded_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="coded by a schema"):
        data.write_store(table(5), tmp_path / "s")  # type: ignore[arg-type]

    class Mixed:
        encoding = data.Encoding(SCHEMA)
        layout = encoding.layout

        def __init__(self, change: Any) -> None:
            self.change = change

        def blocks(self) -> Any:
            first, second = data.encode(table(20), SCHEMA, block_rows=10).blocks()
            yield first
            yield replace(second, **self.change)

    for change in (
        {"labels": None},
        {"weights": np.ones(10)},
        {"codes": np.zeros((1, 10), np.int64)},
    ):
        with pytest.raises(InputError, match=r"of one kind|without weights|dense coded"):
            data.write_store(Mixed(change), tmp_path / "s", block_rows=10)
    assert not list(tmp_path.iterdir())


def test_a_schema_of_persons_needs_their_column_and_rows_coded_by_one_protect_no_rows_alone(
    tmp_path: Path,
) -> None:
    """Without the column nobody can tell who would be protected. And rows that were coded are not
    taken for persons."""
    source = data.encode(table(50), SCHEMA.with_unit("person", 3))
    with pytest.raises(InputError, match="whose each row is"):
        data.write_store(source, tmp_path / "s")
    with pytest.raises(PrivacyError, match="a schema of rows"):
        fv.FairClassifier(random_state=0).fit(source)
