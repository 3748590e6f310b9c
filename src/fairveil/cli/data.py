"""`fairveil data`: which benchmark sets are known, where they lie, and what is public about
them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .completing import DATASETS, out_of
from .helping import add, group
from .printing import print_json, print_table

app = group("data", "Benchmark sets by name: found here, checked, never downloaded.")

Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Toml = Annotated[bool, typer.Option("--toml", help="print the schema as TOML")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="a name that `fairveil data list` shows",
        show_default=False,
        autocompletion=out_of(*DATASETS),
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--path",
        metavar="DIR",
        help="look in this folder",
        show_default="FAIRVEIL_DATA, the cache, then a carrier",
    ),
]


def list_(path: Folder = None, json: Json = False) -> None:
    """List the sets: name, rows, licence, and where files of that name lie on this machine (checked
    when they are used)."""
    from ..data.registry import ENTRIES

    lines = [_line(name, path) for name in ENTRIES]
    if json:
        print_json(lines)
        return
    heads = ("name", "rows", "sensitive", "licence", "found")
    rows = [
        (
            line["name"],
            f"{line['rows']:,}",
            ", ".join(line["sensitive"]) or "-",
            line["licence"],
            line["found"] or "-",
        )
        for line in lines
    ]
    print_table(heads, rows)


def _line(name: str, path: Path | None) -> dict[str, Any]:
    from ..data.registry import ENTRIES, find
    from ..errors import DataNotFoundError

    entry = ENTRIES[name]
    found: str | None = None
    rows = entry.editions[0].rows
    try:
        edition, place = find(name, path)
        found, rows = place.where, edition.rows
    except DataNotFoundError:
        pass
    return {
        "name": name,
        "rows": rows,
        "rows_of_the_original": entry.editions[0].rows,
        "target": entry.schema.target,
        "sensitive": list(entry.schema.sensitive),
        "licence": entry.licence,
        "found": found,
    }


def get(name: Name, path: Folder = None, json: Json = False) -> None:
    """Copy a set's files into the cache, checked by checksum, each whole or not at all. Nothing is
    downloaded."""
    from ..data.registry import fetch

    edition, found = fetch(name, path)
    files = [str(file) for file in found.paths]
    if json:
        print_json(
            {"name": name, "rows": edition.rows, "files": files, "notes": list(edition.notes)}
        )
        return
    typer.echo(f"{name}: {edition.rows:,} rows in the cache, checksums right.")
    for line in (*files, *edition.notes):
        typer.echo(f"  {line}")


def describe(name: Name, toml: Toml = False, json: Json = False) -> None:
    """Say what is public about a set: its schema, groups, citation, licence and notes."""
    from .. import _checks
    from ..data.registry import ENTRIES

    entry = ENTRIES[_checks.one_of(ENTRIES, name=name)]
    carriers = [
        edition.carrier.install for edition in entry.editions if edition.carrier is not None
    ]
    notes = [*entry.notes, *(note for edition in entry.editions for note in edition.notes)]
    if toml:
        typer.echo(entry.schema.to_toml(), nl=False)
        return
    if json:
        about = {
            "citation": entry.citation,
            "licence": entry.licence,
            "notes": notes,
            "carriers": carriers,
        }
        print_json(
            {
                "name": name,
                "fingerprint": entry.schema.fingerprint,
                **about,
                "schema": entry.schema.to_dict(),
            }
        )
        return
    typer.echo(entry.schema.describe())
    files = ", ".join(file.name for file in entry.editions[0].files)
    for head, text in (("citation", entry.citation), ("licence", entry.licence), ("files", files)):
        typer.echo(f"  {head}: {text}")
    for head, texts in (("note", notes), ("carrier", carriers)):
        for text in texts:
            typer.echo(f"  {head}: {text}")


add(
    app,
    list_,
    "fairveil data list",
    "fairveil data list --json",
    "fairveil data list --path data",
    short="list the sets",
    name="list",
)
add(
    app,
    get,
    "fairveil data get adult",
    "fairveil data get adult --path downloads",
    "fairveil data get credit --json",
    short="copy a set's files into the cache, checked",
)
add(
    app,
    describe,
    "fairveil data describe adult",
    "fairveil data describe adult --toml",
    "fairveil data describe law_school --json",
    short="say what is public about a set",
)
