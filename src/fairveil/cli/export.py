"""`fairveil export`: a saved model in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .helping import DATA, OUTPUT

LANGUAGES = ("onnx", "sql", "python")


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
    language: Annotated[
        str,
        typer.Option(
            "--as", metavar="LANGUAGE", help="write onnx, sql or python", rich_help_panel=OUTPUT
        ),
    ] = "onnx",
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="of sql: read this table",
            rich_help_panel=OUTPUT,
            show_default="rows",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="of sql: hand on this column; repeat for more",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    materialized: Annotated[
        bool,
        typer.Option(
            "--materialized",
            help="of sql: compute each step once; long queries always do",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="replace a file that is there", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Write a saved model as ONNX, as one SQL query, or as a Python file.

    The encoding is inside: columns go in as they are. A randomized model takes a uniform number for
    each row as an input. Exit status: 0 written, 2 refused.
    """
    from .. import _checks
    from ..errors import InputError
    from .folders import require_file, write_file

    _checks.one_of(LANGUAGES, **{"as": language})
    asked = (("--table", table), ("--keep", keep), ("--materialized", materialized or None))
    given = [name for name, value in asked if value is not None]
    if given and language != "sql":
        remedy = "Leave it out, or write sql: --as sql."
        raise InputError.expected(
            "--as sql", of=given[0], got=f"--as {language}", remedy=remedy, quote=False
        )
    require_file(out, force=force)
    from ..export import onnx_bytes, python_source, sql_query
    from .deciding import loaded

    clf = loaded(model)
    if language == "onnx":
        content = onnx_bytes(clf)
    elif language == "sql":
        place = "rows" if table is None else table
        content = sql_query(
            clf, table=place, keep=tuple(keep or ()), materialized=materialized or None
        ).encode()
    else:
        content = python_source(clf).encode()
    write_file(out, content)
    typer.echo(f"Written: {out} ({language}, {len(content):,} bytes)")
