"""`--help` in panels: options by theme and by method, then examples. Plain text, so that no library
for layouts is loaded.

An option names its panel by `rich_help_panel=`, as typer calls it; a command has three examples.
Beside `--method NAME` the help has the options that this method reads, and no others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from . import colour
from .method_reads import READS, unread

DATA, FAIRNESS, PRIVACY, OUTPUT, LEDGER = "Data", "Fairness", "Privacy", "Output", "Ledger"
MEASURED = "Rows to measure on"
MODEL = "Method"
OF_POST, OF_OBJECTIVE, OF_FERMI, OF_TAILORED = (
    f"Method {name}" for name in ("post-processing", "group-objective", "fermi", "tailored")
)
ORDER = (
    "Arguments",
    DATA,
    FAIRNESS,
    MODEL,
    OF_POST,
    OF_OBJECTIVE,
    OF_FERMI,
    OF_TAILORED,
    PRIVACY,
    MEASURED,
    LEDGER,
    OUTPUT,
)
FIRST = 27
"""Letters of the column that names options."""


WORDS = "fairveil.words"


def method_in(words: Sequence[str]) -> str | None:
    """The method that was named among the words of a command, if any was."""
    for word, after in zip(words, (*words[1:], None), strict=True):
        if word == "--method":
            return after
        if word.startswith("--method="):
            return word.partition("=")[2]
    return None


class Panelled(TyperCommand):
    """A command whose help has a panel a theme, and examples."""

    examples: tuple[str, ...] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[WORDS] = tuple(args)  # `--help` is answered before other options are read
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        method = method_in(ctx.meta.get(WORDS, ()))
        hidden = unread(method)
        for param in self.get_params(ctx):
            if param.name in hidden:
                continue
            record = param.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if param.param_type_name == "argument" else "Options"
                head = str(getattr(param, "rich_help_panel", None) or usual)
                if method in READS and head.startswith(f"{MODEL} "):
                    head = f"{MODEL} {method}"
                words = re.sub(r"\[default: \((.*)\)\]$", r"[default: \1]", record[1])
                panels.setdefault(head, []).append(
                    (record[0].removesuffix(" <str>").removesuffix(" <path>").ljust(FIRST), words)
                )
        for head in sorted(panels, key=_place_of):
            with formatter.section(colour.painted(head, "strong", sys.stdout)):
                formatter.write_dl(panels[head], col_max=FIRST)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        pieces = [
            piece.replace("{", "").replace("}", "") for piece in self.collect_usage_pieces(ctx)
        ]
        formatter.write_usage(ctx.command_path, " ".join(pieces))

    def format_epilog(self, ctx: object, formatter: Any) -> None:
        if self.examples:
            with formatter.section(colour.painted("Examples", "strong", sys.stdout)):
                for line in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def group(name: str, words: str) -> typer.Typer:
    """Commands under one name; `words`: what they are for."""
    return typer.Typer(
        name=name,
        help=words,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def add(
    app: typer.Typer,
    function: Callable[..., Any],
    *examples: str,
    short: str,
    name: str | None = None,
) -> Callable[..., Any]:
    """Make a function a command of `app`; `short`: its line in the list of commands."""
    kind = type("Panelled", (Panelled,), {"examples": examples})
    app.command(name, cls=kind, short_help=short)(function)
    return function


def _place_of(head: str) -> float:
    """Where a panel stands: a method's after that of all methods."""
    if head in ORDER:
        return ORDER.index(head)
    return ORDER.index(MODEL) + 0.5 if head.startswith(f"{MODEL} ") else len(ORDER)
