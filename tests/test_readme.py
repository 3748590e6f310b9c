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
    values = [
        float(value)
        for value in re.findall(r'data-value="([\d.]+)"', (ROOT / place).read_text("utf-8"))
    ]
    assert sorted(f"{100 * value:.1f}%" for value in values) == sorted(
        re.findall(number, alternative)
    )


def test_the_differences_in_the_text_are_those_of_the_picture() -> None:
    values = [
        float(value)
        for value in re.findall(
            r'data-value="([\d.]+)"', (ROOT / "docs/images/payoff.svg").read_text("utf-8")
        )
    ]
    plain, private, fair = (values[3 * at + 2] for at in range(3))
    assert abs(private - plain) < 0.001
    assert f"costs {100 * (fair - private):.1f} points more" in README.replace("\n", " ")


def test_there_are_two_commands() -> None:
    (block,) = re.findall(r"^```console\n((?:\$ make .*\n)+)```", README, re.MULTILINE)
    assert block.split("\n") == ["$ make demo", "$ make test", ""]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(f"\n{name}: " in makefile for name in ("demo", "test"))
    assert "exec make test" in (ROOT / ".ci" / "run").read_text("utf-8")
