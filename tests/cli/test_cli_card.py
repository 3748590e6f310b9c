"""`fairveil card`: what the library writes, and refusals in the shell's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

import fairveil as fv
from fairveil.show import model_card


@pytest.fixture
def folder(fairveil: Command, table: Path, schema: Path, tmp_path: Path) -> Path:
    options = (
        "--constraint",
        "demographic_parity:0.2",
        "--holdout",
        "0.25",
        "--seed",
        0,
        "--out",
        "model",
    )
    done = fairveil("fit", table, "--schema", schema, *options)
    assert done.code == 0, done.err
    return tmp_path / "model"


def test_a_card_has_the_folders_report(fairveil: Command, folder: Path, tmp_path: Path) -> None:
    clf = fv.load(folder)
    done = fairveil("card", folder)
    assert done.code == 0
    assert done.out == model_card(clf, report=folder / "report.json")
    assert "held-out people" in done.out
    (tmp_path / "facts.json").write_text(json.dumps({"name": "Hiring", "license": "mit"}))
    assert (
        fairveil("card", folder, "--facts", "facts.json", "--out", "README.md").out
        == "Written: README.md\n"
    )
    assert (tmp_path / "README.md").read_text().startswith('---\nlicense: "mit"\n')


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--facts", "none.json"), "none.json"),
        (("--facts", "facts.json"), "licence"),
        (("--certificate", "facts.json"), "certificate"),
        (("--out", "facts.json"), "--force"),
    ],
)
def test_a_wrong_option_is_refused_and_writes_nothing(
    fairveil: Command, folder: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "facts.json").write_text(json.dumps({"licence": "mit"}))
    before = sorted(tmp_path.iterdir())
    done = fairveil("card", folder, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert sorted(tmp_path.iterdir()) == before
