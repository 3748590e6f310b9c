"""`fairveil attribute rates`: a private table's rates for true groups, where recorded ones were
flipped with known rates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .helping import DATA, PRIVACY

LARGEST = 1 << 26

Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="private table, as fairveil audit --epsilon --out wrote it"
    ),
]
LocalEpsilon = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="undo randomized response of this local epsilon",
        show_default=False,
        rich_help_panel=PRIVACY,
    ),
]
Flips = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="undo these rates: JSON of groups, and of a line of P(recorded | true) for each true "
        "group",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
Drawn = Annotated[
    bool,
    typer.Option(
        "--drawn",
        help="groups were drawn from distributions: say what a proxy cannot show",
        rich_help_panel=DATA,
    ),
]


def rates(
    table: Table, local_epsilon: LocalEpsilon = None, flips: Flips = None, drawn: Drawn = False
) -> None:
    """Estimate rates of true groups from a private table of recorded ones. It spends nothing
    further.

    Exit status: 0 done, 2 refused.
    """
    from .._json import Document
    from .._reading import read_text
    from ..errors import InputError
    from ..estimators import PrivateTable
    from ..facts.reports import Reports

    text = read_text(
        table,
        what="a private table",
        most=LARGEST,
        remedy="Name the file that fairveil audit wrote.",
    )
    found = PrivateTable.from_json(text)
    keys = found.layout.cells.keys
    if (local_epsilon is not None) + (flips is not None) + drawn != 1:
        remedy = "Pass --local-epsilon 1.1, for example; or --flips rates.json; or --drawn."
        got = "none" if local_epsilon is None and flips is None and not drawn else "several"
        raise InputError.expected(
            "one way in which groups were recorded", of="rates", got=got, remedy=remedy
        )
    if flips is not None:
        remedy = 'Write {"groups": ["f", "m"], "rates": [[0.9, 0.1], [0.1, 0.9]]}, for example.'
        node = Document("rates of flips", remedy).node(
            read_text(flips, what="rates of flips", most=LARGEST, remedy=remedy)
        )
        node.only(("groups", "rates"))
        named = tuple(one.value for one in node["groups"].list())
        reports = Reports(named, tuple(line.numbers() for line in node["rates"].list()))
    elif local_epsilon is not None:
        reports = Reports.randomized_response(keys, local_epsilon)
    else:
        size = range(len(keys))
        reports = Reports(keys, tuple(tuple(float(a == b) for b in size) for a in size), drawn=True)
    typer.echo(str(found.true_groups(reports)))
    typer.echo(
        f"(confidence {found.confidence:g}, over people, flips and noise; computed from the "
        f"released counts)"
    )
