"""At a terminal, made of a pseudo-terminal: colour, and none where it is not wanted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairveil
from fairveil.cli import colour

pty = pytest.importorskip("pty")


def at_terminal(words: list[str], **environment: str) -> str:
    """What a person sees, both streams together."""
    leader, follower = pty.openpty()
    given = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "TERM", "COLUMNS")
    }
    given |= {"PYTHONPATH": str(Path(fairveil.__file__).parents[1]), "TERM": "xterm", **environment}
    command = [sys.executable, "-m", "fairveil", *words]
    with subprocess.Popen(
        command, stdout=follower, stderr=follower, stdin=subprocess.DEVNULL, env=given
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        process.wait()
    os.close(leader)
    return shown.decode()


def test_errors_have_colour_at_a_terminal() -> None:
    shown = at_terminal(["fitt"])
    assert f"{colour.STYLES['bad']}error:{colour.END} there is no such command (fitt)" in shown
    assert f"{colour.STYLES['hint']}hint:{colour.END} did you mean fit?" in shown


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_it_is_not_wanted(environment: dict[str, str]) -> None:
    for words in (["fitt"], ["fit", "--help"]):
        assert "\x1b" not in at_terminal(words, **environment)


def test_an_empty_no_color_counts_as_none() -> None:
    assert "\x1b[" in at_terminal(["fit", "--help"], NO_COLOR="")


def test_headings_of_help_stand_out_at_a_terminal_and_a_pipe_has_no_colour() -> None:
    assert f"{colour.STYLES['strong']}Privacy{colour.END}:" in at_terminal(["fit", "--help"])
    given = {**os.environ, "PYTHONPATH": str(Path(fairveil.__file__).parents[1]), "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-m", "fairveil", "fitt"], capture_output=True, env=given, check=False
    )
    assert b"\x1b" not in done.stderr + done.stdout


def test_words_of_verdicts_have_their_colours(tmp_path: Path) -> None:
    """Every verdict's word, and no part of another word."""
    program = (
        "from fairveil.cli.printing import Fact, print_facts\n"
        "print_facts([Fact('fairness', 'met in training, not met held out: the metric', ('met', "
        "'not met'))])\n"
    )
    leader, follower = pty.openpty()
    given = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    given |= {"PYTHONPATH": str(Path(fairveil.__file__).parents[1]), "TERM": "xterm"}
    subprocess.run([sys.executable, "-c", program], stdout=follower, env=given, check=True)
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    good, bad, end = colour.STYLES["good"], colour.STYLES["bad"], colour.END
    assert f"{good}met{end} in training, {bad}not met{end} held out: the metric" in shown
