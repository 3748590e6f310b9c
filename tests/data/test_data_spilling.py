"""Rows that do not fit memory: the guarantees of `data/spilling.py` and `data/chosen_rows.py`."""

from __future__ import annotations

import gc
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_data_store import SCHEMA, same, table

import fairveil as fv
from fairveil import data
from fairveil.data import spilling, store_writer
from fairveil.errors import InputError, PrivacyError, RowsOnDisk

LOADERS = {"csv": data.load_csv, "parquet": data.load_parquet}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that may hold 10 kB of rows, and where they go else."""
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setenv(spilling.LIMIT, "10000")
    monkeypatch.setenv(spilling.FOLDER, str(folder))
    return folder


def file_of(folder: Path, kind: str, rows: int = 1000) -> Path:
    path = folder / f"people.{kind}"
    found = table(rows)
    found.to_csv(path, index=False) if kind == "csv" else found.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", LOADERS)
def test_guarantee_1_fits_of_streams_are_those_of_memory_wherever_rows_lie(
    tmp_path: Path, small: Path, kind: str
) -> None:
    path, fits = file_of(tmp_path, kind), []
    for source in (
        lambda: LOADERS[kind](path, SCHEMA),
        lambda: LOADERS[kind](path, SCHEMA, in_memory=None),
        lambda: LOADERS[kind](path, SCHEMA, in_memory=True),
    ):
        clf = fv.RateConstrainedClassifier("demographic_parity:0.1", epsilon=1.0, random_state=0)
        if len(fits) < 2:
            with pytest.warns(RowsOnDisk, match=str(small)):
                fits.append(clf.fit(source()).coef_)
        else:
            fits.append(clf.fit(source()).coef_)
    assert np.array_equal(fits[0], fits[2])
    assert np.array_equal(fits[1], fits[2])
    gc.collect()
    assert not list(small.iterdir())


def test_guarantee_1_what_fits_is_held_and_nothing_is_written(tmp_path: Path, small: Path) -> None:
    found = data.load_csv(file_of(tmp_path, "csv", 100), SCHEMA, in_memory=None)
    assert isinstance(found, data.EncodedRows)
    assert not found.is_mapped
    assert not list(small.iterdir())
    assert same(found, data.encode(table(100), SCHEMA))


def test_guarantee_2_a_full_disk_is_found_before_a_row_is_written_or_charged(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, needed: int) -> None:
        raise InputError("no room")

    monkeypatch.setattr(store_writer, "require_room", full)
    book = fv.Ledger.create(
        f"sqlite:///{tmp_path}/book.db", dataset="people", epsilon=10.0, delta=1e-5
    )
    source = data.load_csv(file_of(tmp_path, "csv"), SCHEMA)
    with (
        pytest.warns(RowsOnDisk, match="GiB of coded rows"),
        pytest.raises(InputError, match="no room"),
    ):
        fv.RateConstrainedClassifier("demographic_parity:0.1", ledger=book).fit(source)
    assert book.is_untouched
    assert not list(small.iterdir())


def test_guarantee_3_the_folder_is_its_owners_and_goes_with_the_last_use(
    tmp_path: Path, small: Path
) -> None:
    source = data.load_csv(file_of(tmp_path, "csv"), SCHEMA)
    with pytest.warns(RowsOnDisk):
        found = source.settled()
    (folder,) = small.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(
        stat.S_IMODE(file.stat().st_mode) & 0o077 == 0
        for file in (folder / spilling.STORE).iterdir()
    )
    half = found.chosen(np.arange(0, 1000, 2))
    del found
    gc.collect()
    assert len(next(half.blocks()).labels) > 0  # who holds a part holds them
    del half
    gc.collect()
    assert not list(small.iterdir())


KILLED = """
import sys, warnings
warnings.simplefilter("ignore")
from fairveil import data
from fairveil.facts import Schema
found = data.load_csv(sys.argv[1], Schema.load(sys.argv[2]), in_memory=None)
print("there", flush=True)
sys.stdin.read()
"""


def test_guarantee_3_what_a_killed_process_left_is_removed_by_the_next_and_what_runs_is_not(
    tmp_path: Path, small: Path
) -> None:
    path = file_of(tmp_path, "csv")
    SCHEMA.save(tmp_path / "s.toml")
    command = [sys.executable, "-c", KILLED, str(path), str(tmp_path / "s.toml")]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"there\n"
    (left,) = small.iterdir()
    with pytest.warns(RowsOnDisk):
        mine = data.load_csv(path, SCHEMA, in_memory=None)
    assert left.is_dir()  # it runs
    os.kill(other.pid, signal.SIGKILL)
    other.communicate()
    assert left.is_dir()
    with pytest.warns(RowsOnDisk):
        again = data.load_csv(path, SCHEMA, in_memory=None)
    assert not left.exists()
    assert same(mine, again)


def test_the_limit_is_a_share_of_memory_or_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(spilling.LIMIT, raising=False)
    assert (
        0
        < spilling.most_in_memory()
        <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    )
    monkeypatch.setenv(spilling.LIMIT, "2 GB")
    with pytest.raises(InputError, match="bytes"):
        spilling.most_in_memory()


# ---- chosen rows
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_rows", [7, 64, 1000])
def test_chosen_rows_are_those_that_a_copy_has(tmp_path: Path, block_rows: int) -> None:
    source = data.encode(table(500), SCHEMA, block_rows=block_rows)
    store = data.write_store(source, tmp_path / "s", block_rows=block_rows)
    at = np.flatnonzero(np.random.default_rng(0).random(500) < 0.4)
    copied, gathered = source.chosen(at), store.chosen(at)
    assert gathered.traits.is_streamed

    def whole(rows: Any, name: str) -> Any:
        return np.concatenate([getattr(block, name) for block in rows.blocks()], axis=-1)

    assert all(
        np.array_equal(whole(copied, one), whole(gathered, one))
        for one in ("numbers", "codes", "labels", "sensitive")
    )
    fits = [
        fv.RateConstrainedClassifier(
            "demographic_parity:0.5", epsilon=3.0, model=fv.Additive(), random_state=0
        )
        .fit(rows)
        .coef_
        for rows in (copied, gathered)
    ]
    assert np.array_equal(*fits)


def test_chosen_rows_of_a_file_that_changed_are_refused(tmp_path: Path) -> None:
    store = data.write_store(data.encode(table(200), SCHEMA), tmp_path / "s")
    half = store.chosen(np.arange(100))
    file = tmp_path / "s" / "rows.bin"
    file.write_bytes(file.read_bytes())
    with pytest.raises(PrivacyError):
        next(half.blocks())
