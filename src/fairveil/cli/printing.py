"""What commands print: JSON, tables, and words from elsewhere on one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import typer

from ..show.parts import aligned
from . import colour

LABEL = 12
"""Letters before the words of a fact."""


def print_json(values: object) -> None:
    """A JSON document, strictly."""
    import json

    # JSON is UTF-8, and a stream's own escapes are none of JSON's: elsewhere other letters are
    # escaped as JSON does it.
    is_utf8 = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    typer.echo(json.dumps(values, indent=2, ensure_ascii=not is_utf8, allow_nan=False))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of rich in a terminal; aligned plain text, which other programs can cut,
    elsewhere."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*heads)
        for row in rows:
            table.add_row(*map(Text, row))
        Console().print(table)
        return
    for line in aligned([heads, *rows]):
        typer.echo(line)


@dataclass(frozen=True)
class Fact:
    """A line: its label ("" continues with the fact above), its words, and the verdicts among them,
    to be shown in colour."""

    label: str
    words: str
    verdicts: tuple[str, ...] = ()


def print_facts(found: Iterable[Fact]) -> None:
    """A line a fact, its label aligned; words of verdicts in colour where a terminal has it."""
    for fact in found:
        words = fact.words
        if fact.verdicts:
            # "not met" before "met"
            either = "|".join(sorted(set(fact.verdicts), key=len, reverse=True))
            words = re.sub(
                rf"\b(?:{either})\b", lambda one: colour.verdict(one.group(0), sys.stdout), words
            )
        style = "bad" if fact.label == "warning" else "strong"
        label = (
            colour.painted(f"{fact.label:{LABEL}}", style, sys.stdout)
            if fact.label
            else " " * LABEL
        )
        typer.echo(f"{label}{words}", color=colour.allowed(sys.stdout))


def bar(share: float, width: int = 40) -> str:
    """A bar of what is gone: blocks where a terminal can show them, plain characters elsewhere.

    >>> bar(0.25, 8)
    '[##......]'
    """
    full = min(width, max(0, -int(-share * width // 1)))
    if sys.stdout.isatty() and (sys.stdout.encoding or "").lower().startswith("utf"):
        return "█" * full + "░" * (width - full)
    return f"[{'#' * full}{'.' * (width - full)}]"


def on_one_line(text: str) -> str:
    """Letters that cannot be printed as question marks: a terminal obeys some of them."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
