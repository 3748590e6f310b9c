"""Options of an audit with noise: what only `fairveil audit --epsilon` has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from .completing import NEIGHBOURS, PROTECTS, out_of
from .helping import FAIRNESS, OUTPUT, PRIVACY

Epsilon = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="count once with noise, and show rates, counts and gaps by group with intervals",
        show_default="exact counts, not private",
        rich_help_panel=PRIVACY,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="set the additive part of the guarantee: well below 1/rows",
        show_default="0",
        rich_help_panel=PRIVACY,
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="with --epsilon: of the intervals",
        show_default="0.95",
        rich_help_panel=FAIRNESS,
    ),
]
Intervals = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="with --epsilon: each interval holds by itself (each), or the whole table together "
        "(all)",
        show_default="each",
        rich_help_panel=FAIRNESS,
        autocompletion=out_of("each", "all"),
    ),
]
Depth = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="with --epsilon: list groups of up to so many sensitive columns at once",
        show_default="all",
        rich_help_panel=FAIRNESS,
    ),
]
Protects = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="with --epsilon: protect records, or sensitive-features alone",
        show_default="records",
        rich_help_panel=PRIVACY,
        autocompletion=out_of(*PROTECTS),
    ),
]
Neighbours = Annotated[
    str | None,
    typer.Option(
        metavar="RELATION",
        help="with --epsilon: hide that a row was added or removed (add-remove), or replaced "
        "(replace-one)",
        show_default="add-remove for records, else replace-one",
        rich_help_panel=PRIVACY,
        autocompletion=out_of(*NEIGHBOURS),
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="with --epsilon: write the table as JSON, for `fairveil verify`",
        rich_help_panel=OUTPUT,
    ),
]


@dataclass(frozen=True)
class Noisy:
    """What only a table with noise has, as it was typed; None where it was not."""

    epsilon: float | None
    delta: float | None
    confidence: float | None
    intervals: str | None
    depth: int | None
    protects: str | None
    neighbours: str | None
    seed: int | None
    out: Path | None
    ledger: str | None
    dataset: str | None
    purpose: str | None

    def refuse_without_epsilon(self) -> None:
        """An exact audit has no use for them; a ledger named by the environment alone is none of
        its options."""
        from ..errors import InputError

        given = [
            name for name, value in vars(self).items() if value is not None and name != "epsilon"
        ]
        if given:
            option = f"--{given[0]}"
            remedy = "Add --epsilon 1, for example, for a table with noise, or leave it out."
            raise InputError.expected(
                "--epsilon beside it", of=option, got="none", remedy=remedy, quote=False
            )
