"""Writes docs/commands.md, every command with its arguments and options, from the commands
themselves.

    python docs/make_commands.py

tests/cli/test_cli_reference.py says whether the page is up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from fairveil.cli import app
from fairveil.cli.helping import ORDER

PAGE = Path(__file__).with_name("commands.md")
HEAD = """# Every command and option

*Reference.* Look up here each command of `fairveil`, its arguments and its options. [The command line](cli.md) has examples
and exit statuses.

`python docs/make_commands.py` writes this page from the commands; a test compares them. `fairveil COMMAND --help` prints the
same.
"""


def commands(command: Any, path: str = "fairveil") -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it, in the order of the help."""
    for name, inner in getattr(command, "commands", {}).items():
        called = f"{path} {name}"
        if getattr(inner, "commands", None):
            yield from commands(inner, called)
        else:
            yield called, inner


def section(called: str, command: Any) -> str:
    """One command: what it does, examples, and a table of its arguments and options."""
    context = command.context_class(command, info_name=called)
    rows: dict[str, list[str]] = {}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is None or "--help" in param.opts:
            continue
        place = (
            "Arguments"
            if param.param_type_name == "argument"
            else getattr(param, "rich_help_panel", None) or "Options"
        )
        rows.setdefault(place, []).append(
            f"| {place} | `{typed(record[0])}` | {escaped(record[1])} |"
        )
    usage = " ".join(
        piece.replace("{", "").replace("}", "") for piece in command.collect_usage_pieces(context)
    )
    parts = [
        f"## {called}",
        "",
        f"    {called} {usage}".rstrip(),
        "",
        paragraphs(command.help or ""),
        "",
    ]
    if rows:
        order = sorted(rows, key=lambda head: ORDER.index(head) if head in ORDER else len(ORDER))
        parts += [
            "| for | option | what it does |",
            "|---|---|---|",
            *(row for head in order for row in rows[head]),
            "",
        ]
    if getattr(command, "examples", ()):
        parts += ["```text", *command.examples, "```", ""]
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
    found = list(commands(typer.main.get_command(app)))
    return (
        "\n".join((HEAD, *(section(called, command) for called, command in found))).rstrip() + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
