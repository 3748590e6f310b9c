"""The README's picture says the same as the numbers drawn in it, and the front page has exactly two
commands."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def test_the_text_alternative_has_the_numbers_of_the_picture() -> None:
    alternative, place = re.findall(r"^!\[([^\]]+)\]\(([^)]+)\)$", README, re.MULTILINE)[0]
    drawn = re.search(r"<desc[^>]*>([^<]+)</desc>", (ROOT / place).read_text("utf-8"))
    assert drawn is not None
    number = r"\d+\.\d%"
    assert re.findall(number, alternative) == re.findall(number, drawn[1])


def test_the_differences_in_the_text_are_those_of_the_picture() -> None:
    drawn = re.search(
        r"<desc[^>]*>([^<]+)</desc>", (ROOT / "docs/images/payoff.svg").read_text("utf-8")
    )
    assert drawn is not None
    plain, private, fair = (float(error) for error in re.findall(r"error (\d+\.\d)%", drawn[1]))
    assert abs(private - plain) < 0.11
    (costs,) = re.findall(r"costs (\d+\.\d) points more", README.replace("\n", " "))
    assert abs(fair - private - float(costs)) < 0.11  # of numbers that are rounded


def test_there_are_two_commands() -> None:
    (block,) = re.findall(r"^```console\n((?:\$ make .*\n)+)```", README, re.MULTILINE)
    assert block.split("\n") == ["$ make demo", "$ make test", ""]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(f"\n{name}: " in makefile for name in ("demo", "test"))
    assert "exec make test" in (ROOT / ".ci" / "run").read_text("utf-8")
