"""Reading ahead: the guarantees of `data/ahead.py`, and files that are read so."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from test_data_store import SCHEMA, same, table

from fairveil import data
from fairveil.data import parquet_files
from fairveil.data.ahead import AHEAD, ahead
from fairveil.errors import PrivacyError, SchemaError


def readers() -> list[threading.Thread]:
    """The threads that read ahead now."""
    return [one for one in threading.enumerate() if one.name == "fairveil-ahead"]


class Counted:
    """Numbers, how many were made, and in which thread they ended."""

    def __init__(self, count: int, error: BaseException | None = None) -> None:
        self.count, self.error, self.made = count, error, 0
        self.ended: str = ""

    def __call__(self) -> Iterator[int]:
        try:
            for number in range(self.count):
                self.made += 1
                yield number
            if self.error is not None:
                raise self.error
        finally:
            self.ended = threading.current_thread().name


def test_guarantee_1_items_come_in_order_and_few_wait() -> None:
    numbers, taken = Counted(200), []
    for number in ahead(numbers):
        taken.append(number)
        assert numbers.made <= len(taken) + AHEAD + 1
    assert taken == list(range(200))
    assert list(ahead(Counted(0))) == []
    assert not readers()


@pytest.mark.parametrize("error", [ValueError("its words"), MemoryError(), KeyboardInterrupt()])
def test_guarantee_2_an_error_comes_where_the_next_item_would_have(error: BaseException) -> None:
    numbers, taken = Counted(5, error), []
    with pytest.raises(type(error)) as found:
        taken.extend(ahead(numbers))
    assert found.value is error
    assert found.value.__context__ is None
    assert taken == list(range(5))
    assert not readers()


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, None])
def test_guarantee_3_who_stops_leaves_no_thread(kind: type[BaseException] | None) -> None:
    numbers = Counted(1000)

    def stops() -> None:
        for number in ahead(numbers):
            if number == 3 and kind is None:
                return
            if number == 3:
                raise kind

    if kind is None:
        stops()
    else:
        with pytest.raises(kind):
            stops()
    assert not readers()
    assert numbers.ended == "fairveil-ahead"
    assert numbers.made < 10
    never = ahead(numbers)  # nothing begins before the first item is asked for
    assert not readers()
    del never


INTERRUPTED = """
import os, signal, threading, time
from fairveil.data.ahead import ahead

def slow():
    yield 1
    os.kill(os.getpid(), signal.SIGINT)  # while the caller waits for the next item
    time.sleep(0.2)
    yield 2

try:
    for item in ahead(slow):
        pass
except KeyboardInterrupt:
    print([thread.name for thread in threading.enumerate()])
"""


def test_guarantee_3_an_interrupt_while_the_caller_waits_leaves_no_thread() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGINT), done.stderr
    assert done.stdout.strip() == "['MainThread']"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_whose_pass_is_left_leaves_no_thread(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"people.{kind}"
    people = table(1000)
    people.to_csv(file, index=False) if kind == "csv" else people.to_parquet(file)
    source = data.open(file, SCHEMA, in_memory=False)
    blocks = source.blocks()
    next(blocks)
    blocks.close()
    assert not readers()
    assert same(source, data.encode(people, SCHEMA))
    assert not readers()


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "people.parquet"
    table(2000).to_parquet(file, row_group_size=100)
    monkeypatch.setattr(parquet_files, "BLOCK_ROWS", 100)
    source = data.load_parquet(file, SCHEMA, block_rows=100)
    blocks = source.blocks()
    next(blocks)
    file.write_bytes(b"PAR1" + b"Alice" * 9 + b"PAR1")
    with pytest.raises(PrivacyError, match="rows that were checked") as error:
        list(blocks)
    assert "Alice" not in f"{error.value!r} {error.value.__context__!r}"
    assert not readers()


def test_a_pass_over_a_parquet_file_holds_a_few_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyarrow by itself holds all of them until the last was read."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {f"x{j}": np.random.default_rng(j).random(1 << 16) for j in range(4)}
    file = tmp_path / "numbers.parquet"
    parquet.write_table(pa.table(columns), file, row_group_size=1 << 10)
    monkeypatch.setattr(parquet_files, "BLOCK_ROWS", 1 << 10)
    schema = data.Schema({name: data.Number(0, 1) for name in columns})
    source = data.load_parquet(file, schema, block_rows=1 << 10)
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in source.blocks()]
    assert len(held) == 64
    assert max(held) < file.stat().st_size / 4


def test_a_parquet_file_is_read_through_once_to_be_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table(1000).to_parquet(tmp_path / "people.parquet", row_group_size=100)
    passes, read = [], parquet_files._Reader._chunks

    def counted(self: parquet_files._Reader) -> Iterator[object]:
        yield from read(self)
        passes.append(1)

    monkeypatch.setattr(parquet_files._Reader, "_chunks", counted)
    monkeypatch.setattr(parquet_files, "BLOCK_ROWS", 10)
    store = data.encode(tmp_path / "people.parquet", SCHEMA, tmp_path / "s", block_rows=10)
    assert len(passes) == 1
    assert same(store, data.encode(table(1000), SCHEMA, block_rows=10))


def test_a_row_that_is_found_while_a_store_is_written_leaves_nothing(tmp_path: Path) -> None:
    people = table(1000)
    people.loc[990, "job"] = "Alice's secret"
    people.to_parquet(tmp_path / "people.parquet")
    with pytest.raises(SchemaError, match=r"'job'.*row 991") as error:
        data.encode(tmp_path / "people.parquet", SCHEMA, tmp_path / "s", block_rows=64)
    assert "Alice" not in f"{error.value!r} {error.value.__context__!r}"
    assert [path.name for path in tmp_path.iterdir()] == ["people.parquet"]
    assert not readers()
