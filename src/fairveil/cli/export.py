"""`fairveil export`: a saved model as one SQL query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .helping import DATA, OUTPUT


def export(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="a model that `fairveil fit` or the library wrote",
            rich_help_panel=DATA,
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="write this file",
            rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ],
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="read this table",
            rich_help_panel=OUTPUT,
            show_default="rows",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="hand on this column; repeat for more",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    materialized: Annotated[
        bool,
        typer.Option(
            "--materialized",
            help="compute each step once; long queries always do",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="replace a file that is there", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Write a saved model as one SQL query over a table.

    The encoding is inside: columns go in as they are. A randomized model takes a uniform number for
    each row as an input. Exit status: 0 written, 2 refused.
    """
    from .folders import require_file, write_file

    require_file(out, force=force)
    from ..export import sql_query
    from .deciding import loaded

    content = sql_query(
        loaded(model),
        table="rows" if table is None else table,
        keep=tuple(keep or ()),
        materialized=materialized or None,
    ).encode()
    write_file(out, content)
    typer.echo(f"Written: {out} ({len(content):,} bytes)")
