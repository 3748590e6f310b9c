"""Parts of tables: the guarantees of `data/pieces.py`, and folders and patterns of files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_data_store import SCHEMA, table

from fairveil import data
from fairveil.data.pieces import pieces_of
from fairveil.errors import ChecksumError, DataNotFoundError, InputError, PrivacyError


def gathered(sources: Any) -> dict[str, np.ndarray]:
    """All rows of some sources, one after another."""
    blocks = [block for source in sources for block in source.blocks()]
    return {
        name: np.concatenate([getattr(block, name) for block in blocks], axis=-1)
        for name in ("numbers", "codes", "labels")
    }


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of Parquet files and one of CSV files, with what other programs leave beside them; a
    store."""
    rows = table(1000)
    for ending in ("parquet", "csv"):
        folder = tmp_path / ending
        folder.mkdir()
        for number, start in enumerate(range(0, 1000, 250)):
            part = rows.iloc[start : start + 250]
            if ending == "csv":
                part.to_csv(folder / f"part-{number}.csv", index=False)
            else:
                part.to_parquet(folder / f"part-{number}.parquet", row_group_size=50)
        (folder / "_SUCCESS").touch()
        (folder / f".part-0.{ending}.crc").write_bytes(b"crc")
        (folder / f"_old.{ending}").write_bytes(b"not rows")
    data.write_store(
        data.encode(rows, SCHEMA, block_rows=64), tmp_path / "people.store", block_rows=64
    )
    return tmp_path


@pytest.mark.parametrize(
    "name", ["parquet", "csv", "people.store", "parquet/part-*.parquet", "csv/*.csv"]
)
@pytest.mark.parametrize("shards", [1, 3, 100])
def test_guarantee_1_pieces_are_all_rows_in_their_order(
    files: Path, name: str, shards: int
) -> None:
    if "*" in name and "csv" in name:
        (files / "csv" / "_old.csv").unlink()
    encoding, found = pieces_of(files / name, SCHEMA, shards=shards)
    assert encoding == data.Encoding(SCHEMA)
    if "csv" not in name:
        assert (
            len(found)
            == {"people.store": {1: 1, 3: 3, 100: 16}}.get(name, {1: 4, 3: 4, 100: 20})[shards]
        )
    found = pickle.loads(pickle.dumps(found))  # they travel
    assert same(
        gathered([one.open() for one in found]), gathered([data.encode(table(1000), SCHEMA)])
    )


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_folders_and_patterns_are_read_as_one_table(files: Path, ending: str) -> None:
    (files / "empty").mkdir()
    truth = gathered([data.encode(table(1000), SCHEMA)])
    for path in (files / ending, files / ending / f"part-*.{ending}"):
        assert same(gathered([data.open(path, SCHEMA)]), truth)
    with pytest.raises(DataNotFoundError, match="nothing there"):
        data.open(files / ending / "none-*.x", SCHEMA)
    with pytest.raises(DataNotFoundError, match="a folder without one"):
        data.open(files / "empty", SCHEMA)


@pytest.mark.parametrize("name", ["parquet", "csv", "people.store"])
def test_guarantee_2_another_file_is_refused(files: Path, name: str) -> None:
    _, found = pieces_of(files / name, SCHEMA, shards=2)
    other = table(1000, seed=1)
    if name == "people.store":
        data.write_store(
            data.encode(other, SCHEMA, block_rows=64), files / name, block_rows=64, overwrite=True
        )
    elif name == "csv":
        other.iloc[:250].to_csv(files / "csv" / "part-0.csv", index=False)
    else:
        other.iloc[:250].to_parquet(files / "parquet" / "part-0.parquet", row_group_size=50)
    with pytest.raises(ChecksumError, match="that was cut into parts"):
        found[0].open()


def test_guarantee_1_a_folder_of_stores_is_one_table(files: Path) -> None:
    (files / "stores").mkdir()
    for number, start in enumerate(range(0, 1000, 400)):
        part = data.encode(table(1000).iloc[start : start + 400], SCHEMA, block_rows=64)
        data.write_store(part, files / "stores" / f"part-{number}.store", block_rows=64)
    encoding, found = pieces_of(files / "stores", None, shards=5)
    assert len(found) == 6
    assert encoding == data.Encoding(SCHEMA)
    assert same(
        gathered([one.open() for one in found]), gathered([data.encode(table(1000), SCHEMA)])
    )
    data.write_store(
        data.encode(table(10), SCHEMA, precision="float32"), files / "stores" / "part-9.store"
    )
    with pytest.raises(InputError, match="one schema"):
        pieces_of(files / "stores", None, shards=5)


def test_guarantee_3_persons_in_several_parts_are_refused(files: Path) -> None:
    whose = SCHEMA.with_unit("who", 2)
    (files / "stores").mkdir()
    for number in range(2):
        part = table(20).assign(who="ann")
        data.encode(part, whose, files / "stores" / f"{number}.store")
        part.to_parquet(files / "parquet" / f"part-{number}.parquet")
    for place, schema in (("stores", None), ("parquet", whose)):
        with pytest.raises(PrivacyError, match="one store of all rows"):
            pieces_of(files / place, schema, shards=2)


def test_what_cannot_be_cut_is_refused(files: Path) -> None:
    with pytest.raises(InputError, match="a Schema"):
        pieces_of(files / "parquet", None, shards=2)
    with pytest.raises(InputError, match="one schema"):
        pieces_of(files / "people.store", SCHEMA.without("job"), shards=2)
    with pytest.raises(InputError, match="shards"):
        pieces_of(files / "parquet", SCHEMA, shards=0)
    (files / "parquet" / "part-3.parquet").write_bytes(b"PAR1 cut short")
    with pytest.raises(InputError, match="Parquet file"):
        pieces_of(files / "parquet", SCHEMA, shards=2)
