"""How commands end: the status says it, a traceback never does, and streams that are gone or narrow
end nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from fairveil.cli import app, ending, main
from fairveil.errors import InputError

SECRET = "Alice earns 41"


def run_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """The status of a command in which this happens."""

    def command() -> None:
        raise error

    broken = typer.Typer(cls=type(typer.main.get_command(app)), pretty_exceptions_enable=False)
    broken.command("break")(command)
    broken.command("other")(lambda: None)
    monkeypatch.setattr(sys, "argv", ["fairveil", "break"])
    return ending.status_of(broken)


@pytest.mark.parametrize(
    "error",
    [RuntimeError, KeyError, ZeroDivisionError, RecursionError, AssertionError, UnicodeError],
)
def test_guarantee_1_an_unexpected_error_is_told_without_its_words(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(ending.DEBUG, raising=False)
    assert run_with(monkeypatch, error(SECRET)) == 70
    told = capsys.readouterr().err
    assert told.startswith(f"error: internal error: {error.__name__} (fairveil/")
    assert told.count("\n") == 2
    assert "Alice" not in told


def test_guarantee_1_the_place_is_in_the_librarys_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("fairveil.statement.document.examine", broken)
    monkeypatch.setattr(sys, "argv", ["fairveil", "verify", __file__])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 70
    assert "fairveil/cli/verify.py:" in capsys.readouterr().err


def test_the_traceback_is_shown_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(ending.DEBUG, "1")
    assert run_with(monkeypatch, RuntimeError(SECRET)) == 70
    assert SECRET in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (MemoryError(), 70, "error: not enough memory (fairveil/"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (InputError("epsilon: wrong"), 2, "error: epsilon: wrong\nhint: "),
        (OSError(28, "No space left on device"), 2, "error: No space left on device\nhint: "),
        (SystemExit(1), 1, ""),
        (SystemExit(None), 0, ""),
        (typer.Exit(1), 1, ""),
    ],
)
def test_each_ending_has_its_status(
    error: BaseException,
    status: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_with(monkeypatch, error) == status
    told = capsys.readouterr().err
    assert told.startswith(words)
    assert bool(told) == bool(words)


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command line in a shell, with `fairveil` as this interpreter's."""
    source = str(Path(ending.__file__).parents[2])
    given = {**os.environ, "PYTHONPATH": source, **environment}
    whole = f'fairveil() {{ "{sys.executable}" -m fairveil "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", whole], capture_output=True, env=given, timeout=900, check=False
    )


def test_guarantee_2_standard_output_that_is_gone() -> None:
    done = shell("fairveil schema --help | true; echo ${PIPESTATUS[0]}")
    assert done.stdout == b"141\n"
    assert done.stderr == b""
    done = shell("fairveil schema --help >&-; echo $? >&2")
    assert done.stderr == b"0\n"
    done = shell("fairveil verify /nowhere 2>&-; echo $?")
    assert done.stdout == b"2\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_guarantee_2_a_full_disk_is_two_lines() -> None:
    done = shell("fairveil schema --help >/dev/full; echo $?")
    assert done.stdout == b"2\n"
    assert done.stderr.count(b"\n") == 2
    assert b"No space left" in done.stderr


def test_guarantee_2_letters_that_a_stream_cannot_write(tmp_path: Path) -> None:
    """A name in Greek on streams of Latin letters: escaped in words, of JSON's own kind in JSON,
    UTF-8 in a table."""
    (tmp_path / "t.csv").write_text("Ω,y,p\nα,ä,ä\nβ,b,b\n", encoding="utf-8")
    table = f"{tmp_path}/t.csv --target y --prediction p --sensitive Ω"
    done = shell(f"fairveil audit {table}; echo $?", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert done.stdout.endswith(b"0\n"), done.stderr
    assert rb"\u03b1" in done.stdout
    done = shell(f"fairveil audit {table} --json", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert "ä" in json.dumps(json.loads(done.stdout), ensure_ascii=False)
    done = shell(
        "fairveil audit 'Ω' --target y; echo $?", PYTHONIOENCODING="latin-1", PYTHONUTF8="0"
    )
    assert done.stdout == b"2\n"
    assert b"Traceback" not in done.stderr
