"""Page and twin on disk: together, whole or not at all; what the package carries."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairveil.errors import InputError
from fairveil.metrics import group_table
from fairveil.privacy import PrivacyStatement
from fairveil.report import GroupSection, Report, render, to_dict, write

ROOT = Path(__file__).parent.parent.parent


def test_page_and_twin_are_written_beside_each_other(full: Report, tmp_path: Path) -> None:
    written = write(tmp_path / "new" / "page.html", full)
    assert (written.page, written.twin) == (
        tmp_path / "new" / "page.html",
        tmp_path / "new" / "page.json",
    )
    assert written.page.read_text("utf-8") == render(full, twin="page.json")
    twin = json.loads(written.twin.read_text("utf-8"))
    assert twin == json.loads(json.dumps(to_dict(full, twin="page.json")))
    assert sorted(os.listdir(tmp_path / "new")) == ["page.html", "page.json"]


def test_a_folder_takes_files_of_the_usual_names(full: Report, tmp_path: Path) -> None:
    write(tmp_path, full)
    first = (tmp_path / "report.html").read_bytes()
    write(tmp_path, full)
    assert (tmp_path / "report.html").read_bytes() == first, "the same report gives the same bytes"
    assert sorted(os.listdir(tmp_path)) == ["report.html", "report.json"]


def test_the_statement_in_the_twin_is_the_statement(
    full: Report, statement: PrivacyStatement, tmp_path: Path
) -> None:
    twin = json.loads(write(tmp_path, full).twin.read_text("utf-8"))
    assert PrivacyStatement.from_json(json.dumps(twin["statement"])) == statement


def test_a_write_that_fails_leaves_what_was_there(
    full: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, full)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}

    def broken(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path, replace(full, title="Another"))
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before


@pytest.mark.parametrize("name", ["report.txt", "report", "report.json"])
def test_other_endings_are_refused_before_anything_is_written(
    full: Report, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match=r"\.html"):
        write(tmp_path / name, full)
    assert not os.listdir(tmp_path)


def test_bad_input_writes_nothing(full: Report, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        write(tmp_path / "report.html", "a report")  # type: ignore[arg-type]
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(InputError, match="taken"):
        write(tmp_path / "taken.html", full)
    assert os.listdir(tmp_path) == ["taken.json"]


def test_names_that_cannot_be_printed_are_shown_with_a_sign(tmp_path: Path) -> None:
    table = group_table(["\x00no", "yes"], ["yes", "yes"], ["a\nb", "\x1b[31m"], positive="\x00no")
    written = write(tmp_path, Report("t", tables=(GroupSection(table),)))
    text = written.page.read_text("utf-8")
    assert "a�b" in text
    assert not set(text) & {"\x00", "\x1b"}
    assert json.loads(written.twin.read_text("utf-8"))["tables"][0]["groups"][0]["group"] in {
        "a\nb",
        "\x1b[31m",
    }


def test_letters_that_cannot_be_written_are_refused_before_anything_is(tmp_path: Path) -> None:
    table = group_table(["no", "yes"], ["yes", "yes"], ["a\ud800", "b"])
    with pytest.raises(InputError, match="UTF-8"):
        write(tmp_path / "report.html", Report("t", tables=(GroupSection(table),)))
    assert not os.listdir(tmp_path)


def test_what_the_page_is_made_of_is_declared_as_package_data() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"][
        "package-data"
    ]["fairveil"]
    package = ROOT / "src" / "fairveil"
    carried = {path for pattern in declared for path in package.glob(pattern)}
    there = {
        path for path in (package / "report").iterdir() if path.is_file() and path.suffix != ".py"
    }
    assert there
    assert there <= carried
