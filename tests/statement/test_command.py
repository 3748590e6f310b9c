"""`fairveil verify` of a statement: what it loads, and that both ways to it say the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairveil.cli.frame import status_of
from fairveil.statement import command

VECTORS = Path(__file__).parent / "vectors"
LOADED = """
import json, sys
from fairveil.__main__ import main
sys.argv = ["fairveil", *json.loads(sys.argv[1])]
try:
    main()
except SystemExit as left:
    status = left.code
files = [one.__file__ for name, one in sys.modules.items() if name.split(".")[0] == "fairveil"]
lines = sum(len(open(file, encoding="utf-8").read().splitlines()) for file in files)
print(json.dumps([status, lines, sorted({name.split(".")[0] for name in sys.modules})]))
"""


def put(name: str, folder: Path) -> Path:
    """A vector's statement as a file."""
    vector: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
    path = folder / "statement.json"
    path.write_text(vector.get("text") or json.dumps(vector["statement"]), "utf-8")
    return path


def loaded(*words: str) -> tuple[int, int, list[str]]:
    """Status, lines of this library that were loaded, and the packages that were."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(words)],
        capture_output=True,
        text=True,
        check=True,
    )
    status, lines, packages = json.loads(done.stdout.splitlines()[-1])
    return status, lines, packages


@pytest.mark.parametrize(
    "name",
    [
        "consistent-gaussians",
        "consistent-pure-counts",
        "consistent-cells-fixed",
        "consistent-cells-later",
        "consistent-two-steps-gaussian",
        "consistent-filter-pure",
        "consistent-persons",
        "forged-log-beyond-the-plan",
    ],
)
def test_what_verify_rests_on_can_be_read(name: str, tmp_path: Path) -> None:
    found, lines, packages = loaded("verify", str(put(name, tmp_path)))
    assert found == name.startswith("forged")
    assert lines <= 1500
    assert not {"numpy", "scipy", "typer", "cryptography"} & set(packages)


def test_losses_on_a_grid_are_the_accountants(tmp_path: Path) -> None:
    found, _, packages = loaded("verify", str(put("consistent-gaussians-and-counts", tmp_path)))
    assert found == 0
    assert {"numpy", "scipy"} <= set(packages)
    assert not {"typer", "numba", "cryptography", "sqlalchemy"} & set(packages)


@pytest.mark.parametrize("words", [[], ["--json"]])
@pytest.mark.parametrize(
    "name", ["consistent-interrupted", "consistent-persons", "forged-epsilon-lowered"]
)
def test_both_ways_say_the_same(
    name: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(name, tmp_path)
    for given in (path, path.parent):  # a folder is its statement
        status = command.verify([str(given), *words])
        told = capsys.readouterr().out
        assert status_of(["verify", str(given), *words]) == status
        assert strip(capsys.readouterr().out) == strip(told)


def strip(told: str) -> str:
    """Without notes on versions, which only the whole command line compares."""
    if told.startswith("{"):
        values = json.loads(told)
        values["findings"] = [
            one for one in values["findings"] if "written with" not in one["sentence"]
        ]
        return json.dumps(values)
    return "\n".join(line for line in told.splitlines() if "written with" not in line)


def test_what_is_for_the_command_line_is_left_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(put("consistent-gaussians", tmp_path))
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": "fairveil certificate"}', "utf-8")
    for words in (
        [],
        ["--help"],
        [path, "--key", "holder.pub"],
        [path, "--words"],
        [path, path],
        [str(tmp_path / "none.json")],
        [str(broken)],
        ["/dev/null"],
    ):
        assert command.verify(words) is None
    assert capsys.readouterr().out == ""


def test_a_signature_beside_it_is_mentioned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put("signed", tmp_path)
    path.with_name("statement.json.sig").write_text("{}", "utf-8")
    assert command.verify([str(path)]) == 0
    assert command.UNCHECKED in capsys.readouterr().out
