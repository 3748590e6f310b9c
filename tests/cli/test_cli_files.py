"""What commands write: whole or not at all, never over a user's own files, and never lost once it is
paid for."""

from __future__ import annotations

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
from people_who_do_not_exist import Command, applicants, write_csv

import fairveil as fv
from fairveil._reading import write_files
from fairveil.cli import files, frame, judged
from fairveil.errors import FairveilWarning, InputError
from fairveil.ledger import Ledger
from fairveil.models import folders as model_folders

FIT = ("--epsilon", "0.5", "--delta", "1e-7", "--out", "model")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for what is made by the way."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "small.csv", applicants(300, 4))


def begun(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.db", "people", 2.0, 1e-5)


def fit(fairveil: Command, table: Path, schema: Path, *more: object) -> Any:
    return fairveil("fit", table, "--schema", schema, *FIT, "--ledger", "budget.db", *more)


def fail(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, error: BaseException) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(where, name, failing)


# guarantee 1: whole or not at all


def test_guarantee_1_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def parts() -> Any:
        yield b"one"
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.json"
    write_files({path: "old"})
    with pytest.raises(OSError, match="No space"):
        write_files({path: parts()})
    assert path.read_text() == "old"
    write_files({path: iter([b"n", b"ew"])}, mode=0o600)
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o077 == 0
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


def test_guarantee_1_files_to_write_are_looked_at_before_the_work(tmp_path: Path) -> None:
    known = frame.require_files(
        [tmp_path / "a.json", tmp_path / "a.html"], force=False, endings=(".json", ".html")
    )
    assert sorted(known) == [".html", ".json"]
    (tmp_path / "there.json").write_text("mine")
    for paths, force in (
        ([tmp_path / "a.txt"], True),
        ([tmp_path / "there.json"], False),
        ([tmp_path], True),
        ([tmp_path / "no" / "a.json"], True),
        ([tmp_path / "a.json", tmp_path / "b.json"], True),
    ):
        with pytest.raises(InputError, match="out: expected"):
            frame.require_files(paths, force=force, endings=(".json", ".html"))


def test_guarantee_1_a_disk_that_is_full_for_real(
    small: Path, schema: Path, tmp_path: Path
) -> None:
    """No file may grow beyond a few bytes, but for the ledger's own: refused, and nothing is
    spent."""
    ledger = begun(tmp_path)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    command = [sys.executable, "-m", "fairveil", "fit", str(small), "--schema", str(schema), *FIT]
    done = subprocess.run(
        [*command, "--ledger", "budget.db"],
        cwd=tmp_path,
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert ledger.balance().entries == 1
    assert not list(tmp_path.glob(".*.part"))


def test_guarantee_1_force_keeps_a_users_own_files(
    fairveil: Command, small: Path, schema: Path, tmp_path: Path
) -> None:
    def command(*more: Any) -> Any:
        return fairveil("fit", small, "--schema", schema, *FIT, "--seed", 1, *more)

    assert command().code == 0
    written = sorted(os.listdir(tmp_path / "model"))
    assert sum(one.stat().st_size for one in (tmp_path / "model").iterdir()) < files.ROOM / 4
    (tmp_path / "model" / "notes.txt").write_text("mine")
    (tmp_path / "model" / "photos").mkdir()
    refused = command("--force")
    assert refused.code == 2
    assert "notes.txt, photos" in refused.err
    assert (tmp_path / "model" / "notes.txt").read_text() == "mine"
    shutil.rmtree(tmp_path / "model" / "photos")
    (tmp_path / "model" / "notes.txt").unlink()
    assert command().code == 2
    assert command("--force").code == 0
    assert sorted(os.listdir(tmp_path / "model")) == written
    assert not list(tmp_path.glob(".*"))


# guarantee 2: paid for, and not lost


def test_guarantee_2_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(
    fairveil: Command, small: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = begun(tmp_path)
    fail(monkeypatch, os, "posix_fallocate", OSError(28, "No space left on device"))
    told = fit(fairveil, small, schema, "--out", "deep/down/model")
    assert (told.code, "No space left" in told.err) == (2, True)
    assert ledger.balance().entries == 1
    assert not (tmp_path / "deep").exists()
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize(
    ("where", "name", "error", "code"),
    [
        (model_folders, "_move_into_place", OSError(5, "Input/output error"), 3),
        (model_folders.Staged, "free", OSError(28, "No space left on device"), 3),
        (judged, "report_of", ValueError("a page that cannot be made"), 3),
        (judged, "report_of", KeyboardInterrupt(), 130),
        (model_folders, "_move_into_place", KeyboardInterrupt(), 130),
    ],
)
def test_guarantee_2_a_fit_that_is_done_is_written_elsewhere(
    where: Any,
    name: str,
    error: BaseException,
    code: int,
    fairveil: Command,
    small: Path,
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
    told = fit(fairveil, small, schema)
    assert told.code == code, told.err
    for words in ("could not be written", "it spent epsilon=", "line 1 of people", str(elsewhere)):
        assert words in told.err
    (made,) = elsewhere.glob("fairveil-model-*/model")
    loaded = fv.load(made)
    assert loaded.privacy_.ledger.entry == 1
    assert ledger.standing(loaded.privacy_.ledger.spend).last == "committed"
    assert not (tmp_path / "model").exists()
    assert not list(tmp_path.glob(".*.part"))


def test_guarantee_2_where_nothing_can_be_written_the_statement_is_said(
    fairveil: Command, small: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path)
    fail(monkeypatch, model_folders.Staged, "free", OSError(28, "No space left on device"))
    fail(monkeypatch, tempfile, "mkdtemp", OSError(30, "Read-only file system"))
    told = fit(fairveil, small, schema)
    assert told.code == 3
    assert "the model is lost" in told.err
    assert json.loads(told.err[told.err.index("{") :])["ledger"]["entry"] == 1


@pytest.mark.parametrize("kind", ["search", "frontier"])
def test_guarantee_2_other_results_that_are_done_are_written_elsewhere(
    kind: str,
    fairveil: Command,
    small: Path,
    schema: Path,
    tmp_path: Path,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun(tmp_path)
    fail(monkeypatch, model_folders.Staged, "free", OSError(28, "No space left on device"))
    promise = ("--delta", "1e-7", "--ledger", "budget.db")
    words: dict[str, tuple[Any, ...]] = {
        "search": ("fit", small, "--grid", "clip=1,2", "--set", "way=all", "--epsilon", 0.5),
        "frontier": ("frontier", small, "--gaps", 0.1, "--epsilons", 0.5, "--keep", "models"),
    }
    told = fairveil(*words[kind], "--schema", schema, *promise, "--out", "made")
    assert told.code == 3, told.err
    (made,) = elsewhere.glob("fairveil-made-*/model")
    assert (made / "statement.json").is_file()
    assert fairveil("verify", made / "statement.json").code == 0
    assert (tmp_path / "models").exists() is False


def test_guarantee_2_a_fit_that_is_interrupted_says_what_is_charged(
    fairveil: Command, small: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = begun(tmp_path)
    real = Ledger.reserve

    def reserve(*given: Any, **named: Any) -> Any:
        real(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "reserve", reserve)
    told = fit(fairveil, small, schema)
    assert told.code == 130
    assert "not finished; the ledger charges" in told.err
    assert "(line 1)" in told.err
    assert ledger.balance().open == 1


def test_models_of_a_frontier_are_kept_and_say_that_there_are_others(
    fairveil: Command, small: Path, schema: Path, tmp_path: Path
) -> None:
    words = ("--schema", schema, "--gaps", "0.3,0.1", "--epsilons", 1, "--keep", "models")
    done = fairveil("frontier", small, *words, "--out", "sweep")
    assert done.code == 0, done.err
    found = sorted(one.name for one in (tmp_path / "models").iterdir())
    assert found == ["epsilon-1-gap-0.1", "epsilon-1-gap-0.3"]
    whole = fv.PrivacyStatement.from_json((tmp_path / "sweep/statement.json").read_text())
    for name in found:
        model = fv.load(tmp_path / "models" / name)
        assert "one of 2 models of a frontier" in model.privacy_.earlier_releases
        assert model.privacy_.epsilon < whole.epsilon
        assert fairveil("predict", f"models/{name}", small, "--seed", 1, "--out", name).code == 0
    assert fairveil("frontier", small, *words, "--out", "again").code == 2


# words


def test_warnings_are_said_once_and_before_what_comes_after(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import warnings

    with files.working() as said:
        for text in ("first", "second", "first"):
            warnings.warn(text, FairveilWarning, stacklevel=1)
        print("work", file=sys.stderr)
    assert said == ["first", "second"]
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["fairveil: note: first", "fairveil: note: second", "work"]


def test_words_of_files_are_printed_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    files.print_facts(("groups", "a\x1b[31m\nb"), ("a label of many letters", "words"))
    files.print_lines("x\x1b[2J")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.splitlines()[0] == "groups      a?[31m?b"
    assert "letters words" in shown
