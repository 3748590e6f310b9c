"""The site's page of every command with its arguments and options, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fairveil.cli import app
from fairveil.cli.words import PANELS

HEAD = """# Every command and option

*Reference.* Look up here each command of `fairveil`, its arguments and its options. [The command line](cli.md) has examples
and exit statuses.

`fairveil COMMAND --help` prints the same.
"""


def commands(command: Any, path: str = "fairveil") -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it, in the order of the help."""
    for name, inner in command.commands.items():
        called = f"{path} {name}"
        if hasattr(inner, "called"):
            yield called, inner
        if hasattr(inner, "commands"):
            yield from commands(inner, called)


def section(called: str, command: Any) -> str:
    """One command: what it does, examples, and a table of its arguments and options."""
    context = command.context_class(command, info_name=called)
    rows = sorted(command.rows(context), key=lambda row: PANELS.index(row[0]))
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## {called}", "", f"    {called} {usage}".rstrip(), ""]
    parts += [paragraphs(command.help or ""), ""]
    parts += ["| for | option | what it does |", "|---|---|---|"]
    parts += [f"| {head} | `{typed(name)}` | {escaped(words)} |" for head, name, words in rows]
    parts += ["", "```text", *command.examples, "```", ""]
    return "\n".join(parts)


def typed(record: str) -> str:
    """The option as it is typed."""
    return re.sub(r" <(?:str|path)>$", "", record).strip().replace("|", r"\|")


def paragraphs(text: str) -> str:
    """Its help, a paragraph a line."""
    return "\n\n".join(
        escaped(" ".join(part.split())) for part in re.split(r"\n\s*\n", text.replace("\b", ""))
    )


def escaped(text: str) -> str:
    """Words of a help as Markdown: a bar ends no cell, a star begins no emphasis."""
    text = re.sub(r"\s*\[default: \((.*)\)\]$", r" [default: \1]", " ".join(text.split()))
    pieces = re.split(r"(`[^`]*`)", text.replace("|", r"\|"))
    return "".join(one if one.startswith("`") else marked(one) for one in pieces)


def marked(words: str) -> str:
    """Options as code, and marks of Markdown as words."""
    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)", r"`\1`", re.sub(r"([*<])", r"\\\1", words))


def page() -> str:
    """The whole page."""
    found = list(commands(app))
    return (
        "\n".join((HEAD, *(section(called, command) for called, command in found))).rstrip() + "\n"
    )
