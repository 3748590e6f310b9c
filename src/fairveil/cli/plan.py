"""`fairveil plan`: what a fit would release, with how much noise, and whether that lets a bound be
enforced. Reads no table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import fit_options as asking
from . import options
from .helping import DATA, OUTPUT

if TYPE_CHECKING:
    from ..estimators.fitting.plan import Plan
    from ..facts import Schema

ENDINGS = (".svg", ".json", ".txt")


def plan(
    schema: Annotated[
        Path,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="plan for a table of these public facts",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="suppose about so many rows",
            show_default="the schema's number",
            rich_help_panel=DATA,
        ),
    ] = None,
    shares: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE:SHARE,...",
            help="suppose groups or classes of this size, as in sex=f:0.3,m:0.7; repeat for more "
            "columns",
            show_default="the schema's shares, else equal ones",
            rich_help_panel=DATA,
        ),
    ] = None,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    ignore: options.Ignore = None,
    constraint: asking.Constraint = None,
    method: asking.Method = "rate-constrained",
    model: asking.Model = "linear",
    interaction: asking.Interaction = None,
    notion: asking.Notion = None,
    objective: asking.Objective = None,
    search: asking.Search = None,
    epsilon: asking.Epsilon = 1.0,
    delta: options.Delta = 1e-6,
    protects: options.Protects = "records",
    neighbours: options.Neighbours = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="write the picture (.svg), or the plan (.json, .txt)",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="print the plan as JSON", rich_help_panel=OUTPUT)
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="replace a file that is there", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Plan a fit before its budget is spent: its releases, their noise, and the smallest gaps that
    it can enforce and verify.

    It reads a schema and no table, and spends nothing. It takes the options of `fairveil fit`.

    Exit status: 0 every required bound can be enforced, or none is required; 1 noise would hide
    one; 2 refused.
    """
    from .. import _checks
    from .folders import require_file, write_file
    from .method_options import FitOptions
    from .methods import METHODS
    from .samples import Roles

    _ending(out)
    if out is not None:
        require_file(out, force=force)
    chosen = METHODS[_checks.one_of(tuple(METHODS), method=method)]
    asked = chosen.with_model(
        chosen.asked(FitOptions(constraint, notion, None, objective, search)), model, interaction
    )
    roles = Roles.of(options.schema_of(schema), target, sensitive, ignore)
    assert roles.schema is not None
    clf: Any = chosen.built(
        **asked.arguments,
        epsilon=epsilon,
        delta=delta,
        protects=options.protection(protects),
        neighbours=neighbours,
        schema=roles.schema,
    )
    with options.warnings_as_notes():
        found: Plan = clf.plan(rows=rows, shares=shares_of(shares or (), roles.schema))
    if json:
        from .printing import print_json

        print_json(found.to_dict())
    else:
        _print(found)
    if out is not None:
        write_file(out, _text(found, out.suffix.lower()).encode())
        typer.echo(f"Written: {out}", err=json)
    if found.can_be_enforced is False:
        raise typer.Exit(1)


def _print(found: Plan) -> None:
    """One fact a line, then the releases and the constraints."""
    import sys

    from ..show.parts import Table
    from . import colour
    from .printing import on_one_line, print_table

    facts = found.facts()
    width = max(len(label) for label, _ in facts)
    for label, words in facts:
        named = colour.painted(f"{label:{width}}", "strong", sys.stdout)
        typer.echo(f"{named}  {on_one_line(words)}", color=colour.allowed(sys.stdout))
    for part in found.parts():
        if isinstance(part, Table):
            typer.echo(f"\n{part.title}")
            rows = [tuple(map(on_one_line, row)) for row in part.lines()]
            print_table([column.head for column in part.columns], rows)


def shares_of(given: Sequence[str], schema: Schema) -> dict[str, dict[Any, float]]:
    """`sex=f:0.3,m:0.7` as shares by column and value."""
    from ..errors import InputError

    found: dict[str, dict[Any, float]] = {}
    for text in given:
        name, _, listed = text.partition("=")
        parts = [part.rpartition(":") for part in listed.split(",")]
        if name not in schema.columns or not all(
            value and _number(share) is not None for value, _, share in parts
        ):
            remedy = (
                "--shares sex=f:0.3,m:0.7: a column of the schema, and a share for each of its "
                "values"
            )
            raise InputError.expected(
                "COLUMN=VALUE:SHARE,...", of="--shares", got=text, remedy=remedy
            )
        named = {str(value): value for value in schema.listed(name)}
        found[name] = {named.get(value, value): float(share) for value, _, share in parts}
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _ending(out: Path | None) -> None:
    """Refused before anything is worked out."""
    from ..errors import InputError

    if out is not None and out.suffix.lower() not in ENDINGS:
        remedy = "--out plan.svg for the picture, or --out plan.json"
        raise InputError.expected(
            f"a file ending in {', '.join(ENDINGS)}", of="--out", got=str(out), remedy=remedy
        )


def _text(found: Plan, ending: str) -> str:
    if ending == ".svg":
        return found.chart().to_svg()
    return found.to_json() if ending == ".json" else f"{found}\n"
