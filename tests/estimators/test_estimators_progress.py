"""The progress bar: silent on pipes and on short fits, gone after an interruption."""

from __future__ import annotations

import io
import time
from typing import Any

import numba
import numpy as np
import pytest
from estimator_samples import Columns, short

from fairveil import _waiting
from fairveil.estimators import fitting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called inside a test: what a fixture puts in the place of stderr is taken away before the
    test."""
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(fitting, "EVERY", 0.0)
    monkeypatch.setattr(_waiting, "PATIENCE", 60.0)
    return screen


def fit(people: Columns) -> Any:
    return short().fit(people["hours"][:, np.newaxis] / 30, people["hired"])


def test_a_short_fit_shows_nothing(people: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    fit(people)
    assert screen.getvalue() == ""


def test_a_long_fit_shows_a_bar_and_takes_it_away(
    people: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setattr(fitting, "PATIENCE", 0.0)
    shown = fit(people)
    assert "Fitting" in screen.getvalue()
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert fit(people).coef_.tobytes() == shown.coef_.tobytes()


def test_a_pipe_gets_no_bar(people: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    monkeypatch.setattr(fitting, "PATIENCE", 0.0)
    fit(people)
    assert pipe.getvalue() == ""


def test_an_interruption_takes_the_bar_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setattr(fitting, "PATIENCE", 0.0)

    def broken_off() -> None:
        with fitting.progress("Fitting") as tick:
            assert tick is not None
            tick(1, 10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert "\x1b[?25l" in screen.getvalue()  # the cursor was hidden
    # and is back
    assert screen.getvalue().rfind("\x1b[?25h") > screen.getvalue().rfind("\x1b[?25l")


def test_loops_that_are_compiled_are_said_to_be_and_those_that_are_loaded_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setattr(_waiting, "PATIENCE", 0.0)
    monkeypatch.setattr(_waiting, "EVERY", 0.01)

    @numba.njit
    def loop(rows: Any) -> float:
        total = 0.0
        for row in rows:
            total += np.sqrt(row)
        return total

    for compiled in (True, False):
        with _waiting.waiting("Outside"), fitting.progress("Fitting"):
            loop(np.ones(3))
            time.sleep(0.1)
        shown = screen.getvalue()
        assert "Fitting ... " in shown
        assert ("Compiling loops, once" in shown) is compiled
        assert shown.endswith(_waiting.CLEAR)
        screen.truncate(0)
