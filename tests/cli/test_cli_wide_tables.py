"""An audit of many rows holds few bytes of each: wanted columns alone, each distinct cell once,
blocks of rows."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairveil.cli import csv_columns
from fairveil.cli.csv_columns import columns_from, typed
from fairveil.cli.measured import measure, table_of
from fairveil.cli.samples import Truth
from fairveil.cli.tables import Place, picked
from fairveil.errors import InputError
from fairveil.fairness import DemographicParity
from fairveil.metrics import group_table, histograms, inputs

ROWS = 60_000
BYTES_A_ROW = 100  # 430 before; 41 measured


def people(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    sex, hired, decision = (
        rng.choice(values, rows) for values in (["female", "male"], ["no", "yes"], ["no", "yes"])
    )
    lines = (
        f"{at % 70},{at}.5,{a},{b},{c}\n"
        for at, (a, b, c) in enumerate(zip(sex, hired, decision, strict=True))
    )
    path.write_text("age,income,sex,hired,decision\n" + "".join(lines))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_audit_holds_few_bytes_a_row(tmp_path: Path, kind: str) -> None:
    people(tmp_path / "rows.csv", ROWS)
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        pa.parquet = pytest.importorskip("pyarrow.parquet")
        csv = pytest.importorskip("pyarrow.csv")
        pa.parquet.write_table(csv.read_csv(tmp_path / "rows.csv"), tmp_path / "rows.parquet")

    def audited() -> Any:
        columns = Place(str(tmp_path / f"rows.{kind}")).columns(only={"hired", "decision", "sex"})
        truth = Truth(columns["hired"], {"sex": columns["sex"]})
        return table_of(truth, columns["decision"]), measure(
            DemographicParity(0.05), truth, columns["decision"]
        )

    audited()  # what is imported and kept for good is no row's
    tracemalloc.start()
    try:
        table, _ = audited()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert table.overall.rows == ROWS
    assert peak < BYTES_A_ROW * ROWS


@pytest.mark.parametrize("most", [3, 1 << 16])
@pytest.mark.parametrize("block", [1, 2, 1 << 14])
def test_columns_are_those_of_the_whole_file_at_once(
    monkeypatch: pytest.MonkeyPatch, most: int, block: int
) -> None:
    monkeypatch.setattr(csv_columns, "MOST_VALUES", most)
    monkeypatch.setattr(csv_columns, "BLOCK", block)
    columns = {
        "whole": ["1", " 2", "3 ", "1", "-4", "1e3", "7"],
        "with a gap": ["1", "", "3", "1", "4", "5", "6"],
        "fractions": ["1.5", "2", "3", "1.5", "4", "5", "6"],
        "texts": ["a", "b", "", "a", " a ", "c", "d"],
        "late text": ["1", "2", "3", "4", "5", "6", "x"],
        "underscores": ["1_000", "2", "3", "1", "4", "5", "6"],
        "wide": ["9007199254740993", "2", "3", "1", "4", "5", "6"],
        "nan": ["nan", "inf", "3", "1", "4", "5", "6"],
        "empty": [""] * 7,
    }
    rows = list(map(list, zip(*columns.values(), strict=True)))
    for words in ((), ("whole", "texts")):
        found = columns_from(iter(rows), list(columns), list(columns), words)
        for name, cells in columns.items():
            wanted = typed([cell.strip() for cell in cells], name in words)
            assert found[name].dtype == wanted.dtype, name
            np.testing.assert_array_equal(found[name], wanted)
    assert columns_from(iter([]), ["a"], ["a"], ())["a"].tolist() == []
    assert list(columns_from(iter(rows), list(columns), ["nan"], ())) == ["nan"]


def test_a_column_that_is_not_there_is_said_beside_those_that_are(tmp_path: Path) -> None:
    people(tmp_path / "rows.csv", 3)
    place = Place(str(tmp_path / "rows.csv"))
    columns = place.columns(only={"hired", "gender"})
    with pytest.raises(
        InputError, match=r"expected columns out of .*'sex', 'hired', 'decision'.*got \['gender'\]"
    ):
        picked(columns, ["gender"], place.shown, "--sensitive")


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
@pytest.mark.parametrize("groups", ["product", "marginal"])
def test_measures_are_the_same_in_blocks(
    monkeypatch: pytest.MonkeyPatch, block: int, groups: str
) -> None:
    rng = np.random.default_rng(1)
    y, decided = rng.choice(["no", "yes", "perhaps"], 50), rng.choice(["no", "yes"], 50)
    columns = {"sex": rng.choice(["f", "m"], 50), "race": rng.integers(3, size=50).astype(object)}
    whole = group_table(y, decided, columns, groups=groups).to_dict()
    for module in (inputs, histograms):
        monkeypatch.setattr(module, "BLOCK", block)
    assert group_table(y, decided, columns, groups=groups).to_dict() == whole
    counted = {
        row["group"] if isinstance(row["group"], str) else tuple(row["group"]): row["rows"]
        for row in whole["groups"]
    }
    first = next(iter(counted))
    if groups == "product":
        assert counted[first] == int(
            ((columns["sex"] == first[0]) & (columns["race"] == first[1])).sum()
        )
