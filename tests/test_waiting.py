"""The line of words while a command works: at a terminal only, after two seconds, gone afterwards,
aside for a bar."""

from __future__ import annotations

import io
import threading

import pytest

from fairveil import _waiting
from fairveil._waiting import CLEAR, Line, replaced, waiting


class Terminal(io.StringIO):
    """Says when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.written.set()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", found)
    monkeypatch.setattr(_waiting, "PATIENCE", 0.0)
    monkeypatch.setattr(_waiting, "EVERY", 0.001)
    return found


def test_what_takes_long_is_said_and_taken_away(
    monkeypatch: pytest.MonkeyPatch, screen: Terminal
) -> None:
    monkeypatch.setattr("sys.stderr", screen)
    with waiting("Reading"):
        assert screen.written.wait(60)
    assert screen.getvalue().startswith(f"{CLEAR}Reading ... 0 s")
    assert screen.getvalue().endswith(CLEAR)
    assert not _waiting._current


def test_what_is_short_shows_nothing(monkeypatch: pytest.MonkeyPatch, screen: Terminal) -> None:
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(_waiting, "PATIENCE", 1e9)
    with waiting("Reading"):
        _waiting._current[0].draw()
    assert screen.getvalue() == ""
    assert _waiting.PATIENCE > 2.0


def test_two_seconds_are_the_patience() -> None:
    assert _waiting.PATIENCE == 2.0


@pytest.mark.parametrize("kind", ["pipe", "dumb"])
def test_a_pipe_and_a_dumb_terminal_get_nothing(
    monkeypatch: pytest.MonkeyPatch, screen: Terminal, kind: str
) -> None:
    stream = io.StringIO() if kind == "pipe" else screen
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "dumb" if kind == "dumb" else "xterm")
    with waiting("Reading") as say:
        say("Fitting")
        assert not _waiting._current
    assert stream.getvalue() == ""


def test_an_error_takes_it_away(monkeypatch: pytest.MonkeyPatch, screen: Terminal) -> None:
    monkeypatch.setattr("sys.stderr", screen)

    def interrupted() -> None:
        with waiting("Reading"):
            assert screen.written.wait(60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert screen.getvalue().endswith(CLEAR)
    assert not any(thread.name == "fairveil-waiting" for thread in threading.enumerate())


def test_a_bar_stands_in_its_place(screen: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(screen, "Fitting")
    monkeypatch.setattr(_waiting, "_current", [line])
    line.draw()
    with replaced():
        shown = screen.getvalue()
        assert shown.endswith(CLEAR)
        line.draw()
        assert screen.getvalue() == shown
    line.draw()
    assert screen.getvalue() != shown
