"""What was charged is not lost: full disks, odd file systems, Ctrl-C, and folders that hold a
user's own files."""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import fairveil as fv
from fairveil.cli import folders
from fairveil.ledger import Ledger
from fairveil.models import folders as model_folders

COMMAND = importlib.import_module("fairveil.cli.fit")
FIT = ("--epsilon", "0.5", "--delta", "1e-7", "--public-rows", "300", "--out", "model")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for what is made by the way."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def begun(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.db", "people", 2.0, 1e-5)


def fit(fairveil: Any, table: Path, schema: Path, *more: object) -> Any:
    return fairveil("fit", table, "--schema", schema, *FIT, "--ledger", "budget.db", *more)


def fail(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, error: BaseException) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(where, name, failing)


def rescued(elsewhere: Path) -> Any:
    (made,) = elsewhere.glob("fairveil-model-*/model")
    return fv.load(made)


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(
    fairveil: Any, table: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = begun(tmp_path)
    fail(monkeypatch, os, "posix_fallocate", OSError(28, "No space left on device"))
    told = fit(fairveil, table, schema, "--out", "deep/down/model")
    assert (told.code, "No space left" in told.err) == (2, True)
    assert ledger.balance().entries == 1
    assert not (tmp_path / "deep").exists()
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize(
    ("where", "name", "error", "code"),
    [
        (model_folders, "_move_into_place", OSError(5, "Input/output error"), 3),
        (model_folders.Staged, "free", OSError(28, "No space left on device"), 3),
        (COMMAND, "report_of", ValueError("a page that cannot be made"), 3),
        (COMMAND, "report_of", KeyboardInterrupt(), 130),
        (model_folders, "_move_into_place", KeyboardInterrupt(), 130),
    ],
)
def test_guarantee_1_a_fit_that_is_done_is_written_elsewhere(
    where: Any,
    name: str,
    error: BaseException,
    code: int,
    fairveil: Any,
    table: Path,
    schema: Path,
    tmp_path: Path,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = begun(tmp_path)
    real = getattr(where, name)
    failed: list[int] = []

    def once(*given: Any, **named: Any) -> Any:
        if not failed:
            failed.append(1)
            raise error
        return real(*given, **named)

    if where is model_folders:  # `save` moves, too: let it fail at the end alone
        real_move = model_folders.Staged.move
        monkeypatch.setattr(
            model_folders.Staged, "move", lambda self: once() if self._room else real_move(self)
        )
    else:
        monkeypatch.setattr(where, name, once)
    told = fit(fairveil, table, schema)
    assert told.code == code, told.err
    assert "could not be written" in told.err
    assert "it spent epsilon=" in told.err
    assert "line 1 of people" in told.err
    assert str(elsewhere) in told.err
    loaded = rescued(elsewhere)
    assert loaded.privacy_.ledger.entry == 1
    assert ledger.standing(loaded.privacy_.ledger.spend).last == "committed"
    assert not (tmp_path / "model").exists()
    assert not list(tmp_path.glob(".*.part"))


def test_guarantee_1_where_nothing_can_be_written_the_statement_is_said(
    fairveil: Any, table: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path)
    fail(monkeypatch, model_folders.Staged, "free", OSError(28, "No space left on device"))
    fail(monkeypatch, tempfile, "mkdtemp", OSError(30, "Read-only file system"))
    told = fit(fairveil, table, schema)
    assert told.code == 3
    assert "the model is lost" in told.err
    assert json.loads(told.err[told.err.index("{") :])["ledger"]["entry"] == 1


def test_a_fit_that_is_interrupted_says_what_is_charged(
    fairveil: Any, table: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = begun(tmp_path)
    real = fv.Ledger.reserve

    def reserve(*given: Any, **named: Any) -> Any:
        real(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(fv.Ledger, "reserve", reserve)
    told = fit(fairveil, table, schema)
    assert told.code == 130
    assert "not finished; the ledger charges" in told.err
    assert "(line 1)" in told.err
    assert ledger.balance().open == 1


def test_a_frontier_that_is_done_is_written_elsewhere(
    fairveil: Any,
    table: Path,
    schema: Path,
    tmp_path: Path,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun(tmp_path)
    fail(monkeypatch, model_folders.Staged, "free", OSError(28, "No space left on device"))
    command = (
        "--gaps",
        "0.1",
        "--epsilons",
        "0.5",
        "--public-rows",
        "300",
        "--delta",
        "1e-7",
        "--out",
        "front",
    )
    told = fairveil("frontier", table, "--schema", schema, *command, "--ledger", "budget.db")
    assert told.code == 3, told.err
    (made,) = elsewhere.glob("fairveil-front-*/model")
    assert sorted(os.listdir(made)) == ["frontier.json", "statement.json"]


def test_a_disk_that_is_full_for_real(table: Path, schema: Path, tmp_path: Path) -> None:
    """No file may grow beyond a few bytes, but for the ledger's own: refused, and nothing is
    spent."""
    ledger = begun(tmp_path)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    command = [
        sys.executable,
        "-m",
        "fairveil",
        "fit",
        str(table),
        "--schema",
        str(schema),
        *FIT,
        "--ledger",
        "budget.db",
    ]
    done = subprocess.run(command, cwd=tmp_path, preexec_fn=limited, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert ledger.balance().entries == 1
    assert not list(tmp_path.glob(".*.part"))


def test_a_small_disk(table: Path, schema: Path, tmp_path: Path) -> None:
    script = (
        'mkdir small && mount -t tmpfs -o size=1m none small && { "$@"; echo "left: $(ls -A '
        'small)"; }'
    )
    command = [
        sys.executable,
        "-m",
        "fairveil",
        "fit",
        str(table),
        "--schema",
        str(schema),
        *FIT[:-1],
        "small/model",
    ]
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only the superuser may mount a file system")
    ledger = begun(tmp_path)
    whole = ["unshare", "-m", "sh", "-c", script, "sh", *command, "--ledger", "budget.db"]
    done = subprocess.run(whole, cwd=tmp_path, capture_output=True, text=True)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip("no file system may be mounted here")
    assert "No space left" in done.stderr
    assert done.stdout == "left: \n"
    assert ledger.balance().entries == 1


def test_force_keeps_a_users_own_files(
    fairveil: Any, table: Path, schema: Path, tmp_path: Path
) -> None:
    def command(*more: Any) -> Any:
        return fairveil("fit", table, "--schema", schema, *FIT, "--seed", 1, *more)

    assert command().code == 0
    kinds = sorted(os.listdir(tmp_path / "model"))
    assert all(model_folders.OWN.fullmatch(name) for name in kinds)
    (tmp_path / "model" / "notes.txt").write_text("mine")
    (tmp_path / "model" / "photos").mkdir()
    told = command("--force")
    assert told.code == 2
    assert "notes.txt, photos" in told.err
    assert (tmp_path / "model" / "notes.txt").read_text() == "mine"
    with pytest.raises(fv.errors.InputError, match=r"notes\.txt, photos"):
        fv.save(fv.load(tmp_path / "model"), tmp_path / "model", overwrite=True)
    (tmp_path / "model" / "notes.txt").unlink()
    (tmp_path / "model" / "photos").rmdir()
    assert command("--force").code == 0
    assert sorted(os.listdir(tmp_path / "model")) == kinds


def test_a_file_that_appears_in_the_last_moment_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_folders.write_folder(tmp_path / "m", {"model.json": b"1"})
    real = os.rename

    def late(old: Any, new: Any) -> None:
        if str(new).endswith(".old"):
            (tmp_path / "m" / "mine.txt").write_text("mine")
        real(old, new)

    monkeypatch.setattr(os, "rename", late)
    model_folders.write_folder(tmp_path / "m", {"model.json": b"2"}, replaces="model.json")
    assert (tmp_path / "m" / "model.json").read_bytes() == b"2"
    (left,) = tmp_path.glob(".m.*.old/mine.txt")
    assert left.read_text() == "mine"


def test_a_users_own_twin_is_not_replaced(fairveil: Any, tmp_path: Path) -> None:
    begun(tmp_path)
    show = ("ledger", "show", "budget.db", "--html", "page.html")
    (tmp_path / "page.json").write_text('{"mine": 1}')
    told = fairveil(*show, "--force")
    assert told.code == 2
    assert "page.json" in told.err
    assert (tmp_path / "page.json").read_text() == '{"mine": 1}'
    (tmp_path / "page.json").unlink()
    assert fairveil(*show).code == 0
    assert fairveil(*show, "--force").code == 0


def test_the_room_is_more_than_a_fit_writes(
    fairveil: Any, table: Path, schema: Path, tmp_path: Path
) -> None:
    assert fairveil("fit", table, "--schema", schema, *FIT, "--seed", 1).code == 0
    assert sum(file.stat().st_size for file in (tmp_path / "model").iterdir()) < folders.ROOM / 4
