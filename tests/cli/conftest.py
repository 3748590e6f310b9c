"""The command line in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from people_who_do_not_exist import Command, Done, applicants, write_csv

from fairveil import cli
from fairveil.facts import Category, Number, Schema
from fairveil.facts.columns import Column


@pytest.fixture
def fairveil(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Runs a command in an empty folder; a traceback is a failure of the test."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["fairveil", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        code = end.value.code
        assert code is None or isinstance(code, int)
        shown = capsys.readouterr()
        return Done(code or 0, shown.out, shown.err)

    return call


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """4,000 applicants."""
    return write_csv(tmp_path / "applicants.csv", applicants(4000, 1))


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """1,500 others."""
    return write_csv(tmp_path / "others.csv", applicants(1500, 2))


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """What is public about them."""
    columns: dict[str, Column] = {
        "age": Number(16, 80),
        "score": Number(0, 100),
        "city": Category(("a", "b")),
        "sex": Category(("female", "male")),
        "hired": Category(("no", "yes")),
    }
    path = tmp_path / "applicants.toml"
    Schema(columns, target="hired", sensitive=("sex",), rows=4000, name="applicants").save(path)
    return path
