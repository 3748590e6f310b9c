"""`fairveil schema`: what is public about a table, written down before a row is read: begin a file,
and check it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .helping import DATA, OUTPUT, add, group

app = group("schema", "Public facts of a table in a file: begin one, check one.")


def init(
    table: options.TableArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FILE", help="write this file, .toml", rich_help_panel=OUTPUT
        ),
    ] = Path("schema.toml"),
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="read bounds and values from the rows, because you know that they are public: "
            "privacy does not cover them",
            rich_help_panel=DATA,
        ),
    ] = False,
    query: options.Query = None,
    force: Annotated[
        bool, typer.Option("--force", help="replace a file that is there", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Write a schema with the columns' names and kinds, and blanks ("?") for bounds, values and
    roles.

    It reads no row: names come from a header or a catalogue, kinds from the types of Parquet and
    SQL. `fairveil fit` refuses the file, and names every blank, until all are filled in.

    Exit status: 0 written, 2 refused.
    """
    import shlex

    from .._waiting import waiting
    from ..errors import InputError
    from . import schema_draft as drafts
    from .folders import require_file, write_file
    from .headers import kinds
    from .printing import Fact, print_facts
    from .tables import picked

    if out.suffix.lower() != ".toml":
        remedy = "--out schema.toml"
        raise InputError.expected("a file ending in .toml", of="--out", got=str(out), remedy=remedy)
    require_file(out, force=force)
    place = options.place_of(table, query)
    known = kinds(place)
    for of, names in (("--target", [target] if target else []), ("--sensitive", sensitive or [])):
        picked(known, names, place.shown, of)
    with waiting("Reading the table"):
        values = place.columns() if public else None
    columns = drafts.of_table(known, values)
    rows = None if values is None else len(next(iter(values.values())))
    source = "read from the rows, which are public" if public else ""
    name = Path(place.shown).stem if query is None else query if query.isidentifier() else "rows"
    write_file(out, drafts.text(name, columns, target, sensitive or (), rows, source).encode())
    left = drafts.blanks(columns, target, sensitive or ())
    todo = 'fill in every "?"' if left else "look at every bound and value"
    asked = "" if query is None else f" --query {shlex.quote(query)}"
    print_facts(
        (
            Fact("written", f"{out} ({len(columns)} columns, {left} blanks)"),
            Fact(
                "next",
                f"{todo}, then run: fairveil schema check {shlex.quote(str(out))} "
                f"{shlex.quote(place.shown)}{asked}",
            ),
        )
    )


def check(
    schema: Annotated[
        Path,
        typer.Argument(metavar="SCHEMA", help="a schema file, TOML or JSON", rich_help_panel=DATA),
    ],
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]",
            help="a table: are the schema's columns in it? no row is read",
            rich_help_panel=DATA,
        ),
    ] = None,
    query: options.Query = None,
) -> None:
    """Check that a schema is whole, and with a table that its columns are there; name all that is
    wrong at once.

    It reads no row of the table: names come from a header or a catalogue.

    Exit status: 0 whole, 1 something is wrong or left blank, 2 unreadable.
    """
    import sys

    from ..facts import Schema
    from .complaints import lines
    from .headers import kinds
    from .printing import Fact, print_facts
    from .schema_errors import WrongSchema, lacking, loaded

    try:
        found: Schema = loaded(schema)
        there = None if table is None else kinds(options.place_of(table, query))
        if there is not None:
            lacking(found, there, str(table))
    except WrongSchema as wrong:
        print(*lines(wrong), sep="\n", file=sys.stderr)
        raise typer.Exit(1) from None
    roles = f"target {found.target or 'none'}; groups of {', '.join(found.sensitive) or 'none'}"
    facts = [Fact("schema", f"whole: {len(found.columns)} columns, {roles}")]
    if there is not None:
        unread = [name for name in there if name not in found.columns]
        others = f"not read: {', '.join(unread)}" if unread else "no other column"
        facts.append(Fact("table", f"{table} has them all; {others}"))
    print_facts(facts)


add(
    app,
    init,
    "fairveil schema init people.csv --out people.toml",
    "fairveil schema init people.parquet --target hired --sensitive sex",
    "fairveil schema init people.db --query people --public --out people.toml",
    short="write a schema with blanks to fill in; read no row",
)
add(
    app,
    check,
    "fairveil schema check people.toml",
    "fairveil schema check people.toml people.csv",
    "fairveil schema check people.toml people.db --query people",
    short="name all that is wrong or left blank",
)
