"""docs/commands.md is what docs/make_commands.py writes from the commands, and leaves no command
and no option out."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import typer

from fairveil.cli import app

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "commands.md"


@pytest.fixture(scope="module")
def maker() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "make_commands.py"))


def test_the_page_is_what_the_commands_say(maker: dict[str, Any]) -> None:
    up_to_date = PAGE.read_text("utf-8") == maker["page"]()
    assert up_to_date, (
        "docs/commands.md is not what the commands say: run `python docs/make_commands.py`"
    )


def test_no_command_and_no_option_is_left_out(maker: dict[str, Any]) -> None:
    text = PAGE.read_text("utf-8")
    sections = dict(re.findall(r"^## (fairveil .*)\n((?:(?!^## ).*\n)*)", text, re.MULTILINE))
    commands = dict(maker["commands"](typer.main.get_command(app)))
    assert list(sections) == list(commands)
    assert len(commands) > 25
    for called, command in commands.items():
        typed = {
            name
            for param in command.params
            if param.param_type_name == "option"
            for name in param.opts
        }
        shown = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", sections[called]))
        assert typed - shown == set(), called


def test_marks_of_markdown_are_words(maker: dict[str, Any]) -> None:
    assert (
        maker["escaped"]("one of a|b, *all*, `a*b` [default: (none)]")
        == r"one of a\|b, \*all\*, `a*b` [default: none]"
    )
