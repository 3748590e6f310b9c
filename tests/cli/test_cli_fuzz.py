"""Every command with every option wrong: status 2, two lines or one for each thing, nothing of
Python, nothing written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from people_who_do_not_exist import PYTHONISM, Command, applicants, write_csv

from fairveil.cli import app
from fairveil.cli.shell_words import COMMANDS
from fairveil.facts import Category, Schema

LINES = re.compile(r"(?:error: [^\n]+\n)+hint: [^\n]+\n")
NEEDED: dict[str, tuple[str, ...]] = {
    "fit": ("t.csv", "--schema", "t.toml", "--out", "new"),
    "frontier": ("t.csv", "--schema", "t.toml", "--out", "new"),
    "audit": ("t.csv", "--target", "hired", "--sensitive", "sex", "--prediction", "hired"),
    "tune": ("t.csv", "--schema", "t.toml", "--grid", "clip=1,2", "--out", "new"),
    "audit-privacy": ("rate-constrained", "--schema", "t.toml"),
    "predict": ("nowhere", "t.csv"),
    "encode": ("t.csv", "--schema", "t.toml", "--out", "new"),
    "monitor": ("nowhere",),
    "certify": ("nowhere", "t.csv", "--constraint", "demographic_parity:5%"),
    "release-groups": ("t.csv", "--schema", "t.toml", "--out", "new"),
    "attribute release": (
        "c.csv",
        "--attribute",
        "h.csv",
        "--id",
        "id",
        "--schema",
        "j.toml",
        "--out",
        "new.json",
    ),
    "attribute check": ("c.csv", "--attribute", "h.csv", "--id", "id", "--schema", "j.toml"),
    "verify": ("t.csv",),
    "sign": ("t.csv", "--key", "t.csv"),
    "export": ("nowhere", "--out", "new.sql"),
    "card": ("nowhere",),
    "demo": ("--path", "nowhere"),
    "serve": ("--config", "nowhere.toml"),
    "door token": ("--config", "nowhere.toml", "--name", "me"),
    "door tokens": ("--config", "nowhere.toml"),
    "door revoke": ("0123", "--config", "nowhere.toml"),
    "door runs": ("--config", "nowhere.toml"),
    "door stop": ("0123", "--config", "nowhere.toml"),
    "schema init": ("t.csv", "--out", "new.toml"),
    "schema check": ("t.toml", "t.csv"),
    "plan": ("--schema", "t.toml"),
    "ledger create": ("new.db", "people", "--epsilon", "1", "--delta", "1e-6"),
    "ledger show": ("nowhere.db",),
    "ledger history": ("nowhere.db",),
    "ledger check": ("nowhere.db",),
    "ledger export": ("nowhere.db",),
    "ledger import": ("t.csv", "nowhere.db"),
    "data get": ("adult", "--path", "nowhere"),
    "data describe": ("nobody",),
    "data list": (),
}
WRONG = ("-1", "karma:x", "")
HARMLESS = {"--tuning", "--earlier-releases", "--note", "--purpose"}  # any line of words will do


class FitRequest(BaseException):
    """Stops a fit whose options were right: it asked something of the rows."""


def paid(*_: object, **__: object) -> None:
    raise FitRequest


def options() -> list[tuple[str, str]]:
    """(command, option) of all options that take a value."""
    root: Any = typer.main.get_command(app)
    out = []
    for name, command in root.commands.items():
        parts = command.commands.items() if hasattr(command, "commands") else [("", command)]
        for part, leaf in parts:
            words = f"{name} {part}".strip()
            out += [
                (words, max(one.opts, key=len))
                for one in leaf.params
                if not getattr(one, "is_flag", False) and one.opts[0][:1] == "-"
            ]
    return out


@pytest.fixture
def folder(
    fairveil: Command, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A small table and its schema."""
    write_csv(tmp_path / "t.csv", applicants(40, 1))
    schema.rename(tmp_path / "t.toml")
    write_joined(tmp_path)
    return tmp_path


def write_joined(folder: Path) -> None:
    """The same table with ids in place of the sex, the sex by id, and a schema for both
    together."""
    rows = [[f"p{at}", *row] for at, row in enumerate(applicants(40, 1))]
    write_csv(
        folder / "c.csv",
        [[*row[:4], row[5]] for row in rows],
        ["id", "age", "score", "city", "hired"],
    )
    write_csv(folder / "h.csv", [[row[0], row[4]] for row in rows[:30]], ["id", "sex"])
    known = Schema.load(folder / "t.toml")
    columns = {**known.columns, "sex": Category(("female", "male", "?"), missing="?")}
    Schema(columns, target="hired", sensitive="sex").save(folder / "j.toml")


def test_all_commands_are_tried() -> None:
    root: Any = typer.main.get_command(app)
    leaves = {
        f"{name} {part}".strip()
        for name, one in root.commands.items()
        for part in getattr(one, "commands", {"": 0})
    }
    assert leaves <= set(COMMANDS)
    assert leaves == set(NEEDED)


@pytest.mark.parametrize("command", list(NEEDED))
def test_a_wrong_value_of_any_option_is_refused_in_the_shells_words(
    fairveil: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("fairveil.curator.Curator.answer", paid)
    tried = 0
    for name, option in options():
        if name != command or option in HARMLESS:
            continue
        for wrong in WRONG:
            before = sorted(folder.iterdir())
            try:
                done = fairveil(*command.split(), *NEEDED[command], option, wrong)
            except FitRequest:
                continue
            if done.code == 0:  # it was right after all
                for path in set(folder.iterdir()) - set(before):
                    path.unlink() if path.is_file() else None
                continue
            assert done.code in (1, 2), (option, wrong, done.err)
            assert (
                LINES.fullmatch(done.err.replace("fairveil: note: ", "error: ")) or not done.err
            ), (option, wrong, done.err)
            assert not PYTHONISM.search(
                done.err.replace(repr(wrong), "").replace(wrong or "\0", "")
            ), (option, wrong, done.err)
            assert sorted(folder.iterdir()) == before, (option, wrong)
            tried += 1
    assert tried or command in ("data list", "data describe", "demo", "verify")


WORDS = [
    ("fitt",),
    ("ledger", "shwo"),
    ("fit",),
    ("fit", "t.csv", "--ou", "m"),
    ("fit", "t.csv", "t.csv", "--out", "m"),
    ("fit", "t.csv", "--out"),
    ("--verson",),
    ("fit", "postgresql://me:hunter2@host/base", "--out", "m", "--target", "y"),
    ("fit", "t.csv", "--out", "m", "--target", "hird"),
    ("fit", "t.csv", "--out", "m", "--target", "hired", "--constraint", "demographic_parity:0.1"),
    ("fit", "t.csv", "--out", "m", "--target", "hired", "--sensitive", "sex", "--max-epsilon", "1"),
    (
        "fit",
        "t.csv",
        "--out",
        "m",
        "--schema",
        "t.toml",
        "--method",
        "tailored",
        "--max-epsilon",
        "mal:1",
    ),
    ("audit", "t.csv", "--target", "hired"),
    ("sign", "--new-key", "k", "--note", "x"),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_wrong_words_are_refused_in_the_shells_words(
    fairveil: Command, folder: Path, words: tuple[str, ...]
) -> None:
    done = fairveil(*words)
    assert done.code == 2
    assert LINES.fullmatch(done.refusal), done.err
    assert not PYTHONISM.search(done.refusal), done.err
    assert "hunter2" not in done.err


CELLS = [(0, "old"), (0, ""), (2, "z"), (3, "other"), (4, ""), (1, "1e999")]


@pytest.mark.parametrize(("at", "cell"), CELLS)
@pytest.mark.parametrize(
    "roles",
    [("--schema", "t.toml"), ("--target", "hired", "--sensitive", "sex")],
    ids=["schema", "raw"],
)
def test_a_wrong_cell_is_refused_in_the_shells_words(
    fairveil: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: int,
    cell: str,
    roles: tuple[str, ...],
) -> None:
    monkeypatch.setattr("fairveil.curator.Curator.answer", paid)
    rows = applicants(40, 1)
    rows[7][at] = cell
    write_csv(folder / "t.csv", rows)
    try:
        done = fairveil(
            "fit", "t.csv", *roles, "--constraint", "demographic_parity:0.1", "--out", "m"
        )
    except FitRequest:  # words that happen to be there
        return
    assert done.code == 2
    lines = "".join(
        line for line in done.err.splitlines(keepends=True) if not line.startswith("fairveil: note")
    )
    assert LINES.fullmatch(lines), done.err
    assert not PYTHONISM.search(lines), done.err
