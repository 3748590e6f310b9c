"""Coded stores: the guarantees of `data/store.py`. Writers are killed for real, in processes of
their own."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairveil as fv
from fairveil import data
from fairveil.curator import Curator, Linear, PredictionHistogram, Rows
from fairveil.data import store_writer
from fairveil.data.store import ROWS_FILE, STORE_FILE
from fairveil.errors import ChecksumError, DataNotFoundError, InputError, PrivacyError, SchemaError

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
    assert "people.store" in repr(found)


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
        fv.RateConstrainedClassifier("demographic_parity:0.1", epsilon=2.0, random_state=0),
        fv.RateConstrainedClassifier(
            epsilon=2.0, random_state=0, solver=fv.Descent(sampling_rate=0.1, rounds=30)
        ),
        fv.FermiClassifier(epsilon=2.0, random_state=0),
        fv.OracleGameClassifier("equalized_odds:0.1", epsilon=2.0, rounds=5, random_state=0),
        fv.GroupObjectiveClassifier(
            "error",
            "demographic_parity:0.1",
            epsilon=2.0,
            solver=fv.LinearOracle(rounds=5),
            random_state=0,
        ),
        fv.TailoredClassifier(epsilon=2.0, random_state=0),
        fv.RateConstrainedClassifier(
            "equalized_odds:0.1", protects="sensitive_features", random_state=0
        ),
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
from pathlib import Path
from fairveil import data
from fairveil.data import store_writer
store_writer.SYNCED = 1
schema = data.Schema.load(sys.argv[1])
def slowly(done, blocks):
    print(done, flush=True)
    time.sleep(0.02)
data.write_store(data.load_csv(sys.argv[2], schema), sys.argv[3], block_rows=64, progress=slowly)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX systems")
@pytest.mark.parametrize("after", [1, 7, 20])
def test_guarantee_2_a_writer_that_was_killed_is_resumed_and_ends_in_the_same_bytes(
    tmp_path: Path, after: int
) -> None:
    SCHEMA.save(tmp_path / "t.toml")
    table(2000).to_csv(tmp_path / "t.csv", index=False)
    arguments = [
        sys.executable,
        "-c",
        WRITER,
        str(tmp_path / "t.toml"),
        str(tmp_path / "t.csv"),
        str(tmp_path / "s"),
    ]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == after:
                writer.send_signal(signal.SIGKILL)
                break
    assert not (tmp_path / "s").exists()
    left = tmp_path / ".s.part"
    # the head, and blocks that are on the disk
    assert len((left / store_writer.JOURNAL).read_text().splitlines()) >= after
    done: list[int] = []
    source = data.load_csv(tmp_path / "t.csv", SCHEMA)
    found = data.write_store(
        source, tmp_path / "s", block_rows=64, progress=lambda block, _: done.append(block)
    )
    assert done[0] >= after  # what was there is not written again
    assert not left.exists()
    whole = data.write_store(
        data.load_csv(tmp_path / "t.csv", SCHEMA), tmp_path / "w", block_rows=64
    )
    assert (tmp_path / "s" / ROWS_FILE).read_bytes() == (tmp_path / "w" / ROWS_FILE).read_bytes()
    assert same(found, whole)


def test_guarantee_2_another_source_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer, "SYNCED", 1)
    table(500, seed=1).to_csv(tmp_path / "one.csv", index=False)
    table(500, seed=2).to_csv(tmp_path / "two.csv", index=False)

    def breaks(done: int, blocks: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data.write_store(
            data.load_csv(tmp_path / "one.csv", SCHEMA),
            tmp_path / "s",
            block_rows=64,
            progress=breaks,
        )
    assert not (tmp_path / "s").exists()
    other = data.load_csv(tmp_path / "two.csv", SCHEMA)
    assert same(
        data.write_store(other, tmp_path / "s", block_rows=64),
        data.encode(table(500, seed=2), SCHEMA, block_rows=64),
    )


def test_guarantee_2_a_source_that_changes_under_way_leaves_no_store(tmp_path: Path) -> None:
    class Changing:
        encoding, passes = data.Encoding(SCHEMA), 0
        layout = encoding.layout

        def blocks(self) -> Any:
            Changing.passes += 1
            yield from data.encode(
                table(100 + 50 * Changing.passes), SCHEMA, block_rows=64
            ).blocks()

    with pytest.raises(InputError, match="rows of the first pass"):
        data.write_store(Changing(), tmp_path / "s", block_rows=64)
    assert not (tmp_path / "s").exists()


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX systems")
def test_two_writers_of_one_store_refuse_each_other(tmp_path: Path) -> None:
    source = data.encode(table(300), SCHEMA, block_rows=64)

    def again(done: int, blocks: int) -> None:
        if done == 1:
            with pytest.raises(InputError, match="one writer"):
                data.write_store(source, tmp_path / "s", block_rows=64)

    data.write_store(source, tmp_path / "s", block_rows=64, progress=again)
    assert same(data.open_store(tmp_path / "s"), source)


# ---- guarantee 3
# --------------------------------------------------------------------------------------------------


def test_guarantee_3_every_changed_byte_is_found_when_a_store_is_opened(tmp_path: Path) -> None:
    data.write_store(data.encode(table(150), SCHEMA, block_rows=64), tmp_path / "s", block_rows=64)
    file = tmp_path / "s" / ROWS_FILE
    whole = file.read_bytes()
    for at in range(0, len(whole), 97):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ChecksumError):
            data.open_store(tmp_path / "s")
    for changed in (whole[:-64], whole + b"0" * 64, b""):
        file.write_bytes(changed)
        with pytest.raises(ChecksumError, match="bytes"):
            data.open_store(tmp_path / "s")


def test_guarantee_3_a_description_that_was_changed_is_refused(tmp_path: Path) -> None:
    data.write_store(data.encode(table(150), SCHEMA, block_rows=64), tmp_path / "s", block_rows=64)
    file = tmp_path / "s" / STORE_FILE
    content = json.loads(file.read_text())
    for change in (
        {"rows": 149},
        {"rows": -1},
        {"block_rows": 0},
        {"block_rows": 1 << 62},
        # made into a list, the blocks would take all memory
        {"rows": 1 << 62, "block_rows": 1},
        {"rows": 200_000_000, "block_rows": 1},
        {"types": ["<f8", "|u1"]},
        {"types": ["<f8", "|O8", "<i4"]},
        {"sums": []},
        {"labels": 1},
        {"version": 2},
        {"strange": 1},
        {"encoding": {}},
    ):
        file.write_text(json.dumps(content | change))
        with pytest.raises((InputError, SchemaError, ChecksumError)):
            data.open_store(tmp_path / "s")


def test_guarantee_3_rows_that_change_while_a_store_is_used_are_refused(tmp_path: Path) -> None:
    store = data.write_store(data.encode(table(150), SCHEMA), tmp_path / "s")
    file = tmp_path / "s" / ROWS_FILE
    time.sleep(0.01)
    file.write_bytes(file.read_bytes())
    with pytest.raises(PrivacyError, match="rows that were checked"):
        list(store.blocks())


# ---- guarantee 4, and around
# -----------------------------------------------------------------------------------------------


def test_guarantee_4_a_disk_without_room_is_found_before_a_row_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        free = 1000

    monkeypatch.setattr("fairveil.data.store.shutil.disk_usage", lambda _: Full)
    with pytest.raises(InputError, match="GiB of space"):
        data.write_store(data.encode(table(5000), SCHEMA), tmp_path / "s")
    assert not (tmp_path / "s").exists()
    assert (tmp_path / ".s.part" / ROWS_FILE).stat().st_size == 0


@pytest.mark.skipif(os.name != "posix", reason="file modes of POSIX systems")
def test_a_store_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    data.write_store(data.encode(table(50), SCHEMA), tmp_path / "s")
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "s").iterdir()} == {0o600}


def test_only_a_store_is_ever_replaced_and_deletion_takes_its_own_files_alone(
    tmp_path: Path,
) -> None:
    source = data.encode(table(50), SCHEMA)
    store = data.write_store(source, tmp_path / "s")
    with pytest.raises(InputError, match="not there yet"):
        data.write_store(source, tmp_path / "s")
    data.write_store(data.encode(table(60), SCHEMA), tmp_path / "s", overwrite=True)
    (tmp_path / "s" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not there yet"):
        data.write_store(source, tmp_path / "s", overwrite=True)
    data.open_store(tmp_path / "s").delete()
    assert [file.name for file in (tmp_path / "s").iterdir()] == ["mine.txt"]
    with pytest.raises(PrivacyError):
        list(store.blocks())


def test_rows_of_other_roles_come_from_one_store_and_other_features_do_not(tmp_path: Path) -> None:
    store = data.write_store(data.encode(table(50), SCHEMA), tmp_path / "s")
    features = store.rows(SCHEMA.without("hired", "sex", "race"))
    (block,) = features.blocks()
    assert block.labels is None
    assert block.sensitive is None
    (one,) = store.rows(SCHEMA.without("sex")).blocks()
    assert np.array_equal(one.sensitive, next(store.blocks()).sensitive[1:])
    with pytest.raises(SchemaError, match="features"):
        store.rows(SCHEMA.without("job"))
    with pytest.raises(SchemaError, match="features"):
        store.rows(SCHEMA, sensitive_as_feature=True)


def test_what_is_no_coded_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="coded by a schema"):
        data.write_store(table(5), tmp_path / "s")  # type: ignore[arg-type]
    with pytest.raises(DataNotFoundError):
        data.open_store(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a folder to write"):
        data.write_store(data.encode(table(5), SCHEMA), tmp_path / "file")


def test_a_schema_of_persons_needs_their_column_and_rows_coded_by_one_protect_no_rows_alone(
    tmp_path: Path,
) -> None:
    """Without the column nobody can tell who would be protected. And rows that were coded are not
    taken for persons."""
    people = SCHEMA.with_unit("person", 3)
    source = data.encode(table(50), people)
    with pytest.raises(InputError, match="whose each row is"):
        data.write_store(source, tmp_path / "s")
    with pytest.raises(PrivacyError, match="a schema of rows"):
        fv.RateConstrainedClassifier(random_state=0).fit(source)
