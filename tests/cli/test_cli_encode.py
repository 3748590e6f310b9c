"""`fairveil encode`: a table onto the disk, and the commands that read it there."""

from __future__ import annotations

from pathlib import Path

import pytest
from people_who_do_not_exist import Command, applicants, write_csv

import fairveil as fv


@pytest.fixture
def folder(schema: Path, tmp_path: Path) -> Path:
    write_csv(tmp_path / "t.csv", applicants(400, 1))
    schema.rename(tmp_path / "t.toml")
    return tmp_path


def test_a_fit_on_a_store_is_the_fit_on_the_table(fairveil: Command, folder: Path) -> None:
    done = fairveil("encode", "t.csv", "--schema", "t.toml", "--out", "people.store")
    assert done.code == 0, done.err
    assert "readable by its owner alone" in done.out
    for table, out in (("t.csv", "one"), ("people.store", "two")):
        fitted = fairveil(
            "fit", table, "--schema", "t.toml", "--seed", "1", "--holdout", "0", "--out", out
        )
        assert fitted.code == 0, fitted.err
    one, two = (fv.load(folder / name) for name in ("one", "two"))
    assert (one.model_.weights == two.model_.weights).all()
    lines = []
    for table in ("t.csv", "people.store"):
        predicted = fairveil("predict", "one", table, "--out", f"{table}.out.csv", "--seed", "2")
        assert predicted.code == 0, predicted.err
        lines.append((folder / f"{table}.out.csv").read_text())
    assert lines[0] == lines[1]


def test_a_store_is_replaced_by_force_alone(fairveil: Command, folder: Path) -> None:
    for extra, code in (((), 0), ((), 2), (("--force", "--float32"), 0)):
        done = fairveil("encode", "t.csv", "--schema", "t.toml", "--out", "people.store", *extra)
        assert done.code == code, done.err


def test_mistakes_are_said_in_the_shells_words(fairveil: Command, folder: Path) -> None:
    done = fairveil("encode", "t.csv", "--out", "people.store")
    assert done.code == 2
    assert "--schema" in done.err
    assert fairveil("encode", "t.csv", "--schema", "t.toml", "--out", "people.store").code == 0
    again = fairveil("encode", "people.store", "--schema", "t.toml", "--out", "another")
    assert again.code == 2
    assert "a coded store" in again.err
    unread = fairveil(
        "fit", "people.store", "--target", "hired", "--sensitive", "sex", "--out", "m"
    )
    assert unread.code == 2
    assert "a coded store" in unread.err
    (folder / "people.store").write_bytes((folder / "people.store").read_bytes()[:-99])
    broken = fairveil("fit", "people.store", "--schema", "t.toml", "--out", "m")
    assert broken.code == 2
    assert "people.store" in broken.err
