"""Commands on tables that do not fit memory, on folders of files, and on a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from people_who_do_not_exist import Command, applicants, write_csv

import fairveil as fv


@pytest.fixture
def folder(schema: Path, tmp_path: Path) -> Path:
    """A table, the same as two files of a folder, and the same as a store."""
    lines = write_csv(tmp_path / "t.csv", applicants(400, 1)).read_text().splitlines(keepends=True)
    (tmp_path / "parts").mkdir()
    for number, part in enumerate((lines[1:201], lines[201:])):
        (tmp_path / "parts" / f"part-{number}.csv").write_text("".join([lines[0], *part]))
    schema.rename(tmp_path / "t.toml")
    return tmp_path


def test_a_fit_that_spills_is_the_fit_in_memory_and_says_so_first(
    fairveil: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = []
    for out, table in (
        ("memory", "t.csv"),
        ("disk", "t.csv"),
        ("folder", "parts"),
        ("pattern", "parts/part-*.csv"),
    ):
        if out != "memory":
            monkeypatch.setenv("FAIRVEIL_MEMORY", "1000")
            monkeypatch.setenv("FAIRVEIL_SPILL", str(folder))
        done = fairveil(
            "fit", table, "--schema", "t.toml", "--seed", "1", "--holdout", "0.25", "--out", out
        )
        assert done.code == 0, done.err
        if out != "memory":
            assert "larger than memory should hold" in done.err
            assert "fairveil encode" in done.err
            assert str(folder) in done.err
        pages.append(
            (
                fv.load(folder / out).model_.weights.tobytes(),
                (folder / out / "report.html").read_text(),
            )
        )
    assert {weights for weights, _ in pages} == {pages[0][0]}
    assert pages[0][1] == pages[1][1]  # what was held out was measured alike
    for table in ("t.csv", "parts"):
        lines = fairveil("predict", "memory", table, "--seed", "2").out
        assert len(lines.splitlines()) == 401


def test_several_files_without_a_schema_are_read_as_one(fairveil: Command, folder: Path) -> None:
    fits = []
    for out, table in (("one", "t.csv"), ("several", "parts")):
        done = fairveil(
            "fit", table, "--target", "hired", "--sensitive", "sex", "--seed", "1", "--out", out
        )
        assert done.code == 0, done.err
        fits.append(fv.load(folder / out).model_.weights.tobytes())
    assert fits[0] == fits[1]
    asked = ("--prediction", "hired", "--target", "hired", "--sensitive", "sex")
    assert fairveil("audit", "t.csv", *asked).out == fairveil("audit", "parts", *asked).out
    (folder / "parts" / "part-2.csv").write_text("other,columns\n1,2\n")
    done = fairveil("fit", "parts", "--target", "hired", "--sensitive", "sex", "--out", "none")
    assert done.code == 2
    assert "part-2.csv" in done.err


def test_mistakes_beside_a_scheduler_are_refused_before_one_is_asked(
    fairveil: Command, folder: Path
) -> None:
    for arguments, word in (
        (("t.csv", "--schema", "t.toml", "--scheduler", "tcp://10.0.0.1:8786"), "--scheduler"),
        (("t.csv", "--target", "hired", "--scheduler", "local"), "--schema"),
        (("none.csv", "--schema", "t.toml", "--scheduler", "local"), "none.csv"),
    ):
        done = fairveil("fit", *arguments, "--out", "m")
        assert done.code == 2, done.err
        assert word in done.err


@pytest.mark.filterwarnings("ignore")  # the engine's own, of sockets
def test_a_fit_on_a_cluster_is_the_fit_here(fairveil: Command, folder: Path) -> None:
    pytest.importorskip("distributed")
    assert fairveil("fit", "parts", "--schema", "t.toml", "--seed", "1", "--out", "here").code == 0
    done = fairveil(
        "fit",
        "parts",
        "--schema",
        "t.toml",
        "--seed",
        "1",
        "--scheduler",
        "local",
        "--out",
        "there",
    )
    assert done.code == 0, done.err
    here, there = (fv.load(folder / name).model_.weights for name in ("here", "there"))
    assert (here == there).all()
    held = fairveil(
        "fit",
        "parts",
        "--schema",
        "t.toml",
        "--scheduler",
        "local",
        "--holdout",
        "0.25",
        "--out",
        "m",
    )
    assert held.code == 2
    assert "--holdout" in held.err
