"""`fairveil ledger`: budgets that many releases share, in a file or a database: begin one, look,
check, keep a copy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .completing import FILTERS, PROTECTS, out_of
from .helping import DATA, PRIVACY, add, group
from .ledger_import import bring_in
from .ledger_words import (
    USUAL,
    chosen,
    opened,
    place_and_name,
    place_of_ledger,
    require_nothing,
    said,
)

app = group("ledger", "Privacy budgets that many releases share, and their history.")

Url = Annotated[
    str | None,
    typer.Argument(
        metavar="URL", help="a file, or postgresql://...", show_default=options.LEDGER_VARIABLE
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option("--dataset", metavar="NAME", help="take this budget, where there are several"),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


def create(
    url: Url = None,
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET", help="name the data set (not with --from)", show_default=False
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="set what all releases together may cost",
            show_default=False,
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="set the additive part of the guarantee: well below 1/rows",
            show_default=False,
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    protects: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="protect records, or sensitive-features alone",
            show_default="records",
            rich_help_panel=PRIVACY,
            autocompletion=out_of(*PROTECTS),
        ),
    ] = None,
    neighbours: options.Neighbours = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="make it each person's budget, who are identified by this column",
            show_default="each row's budget",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    max_rows_per_unit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="with --unit: state the most rows of any person, so that releases about rows are "
            "taken, at so many times",
            show_default="releases about rows are refused",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    production: Annotated[
        bool,
        typer.Option(
            "--production",
            help="refuse seeded noise, and what was read from the data",
            rich_help_panel=PRIVACY,
        ),
    ] = False,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="take only rows that are read by this schema",
            rich_help_panel=DATA,
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="add up by this filter: renyi, gaussian, zcdp or pure",
            show_default="renyi; pure for delta 0",
            rich_help_panel=PRIVACY,
            autocompletion=out_of(*FILTERS),
        ),
    ] = None,
    order: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="set the order of a renyi filter",
            show_default="the best for many Gaussians",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            "--sensitive",
            metavar="COLUMN",
            help="protect this column, with sensitive-features; repeat for more",
            show_default="the schema's",
            rich_help_panel=DATA,
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="restore what `ledger export` wrote, with no other option",
        ),
    ] = None,
) -> None:
    """Begin a budget of a data set, fixed for good; or restore an exported one.

    Exit status: 0 begun, 2 refused: then nothing was written.
    """
    from ..ledger import Ledger
    from .balances import about
    from .ledger_checks import text_of

    url, dataset = place_and_name(url, dataset, restoring=export is not None)
    if export is not None:
        given = {
            "DATASET": dataset,
            "--epsilon": epsilon,
            "--delta": delta,
            "--protects": protects,
            "--kind": kind,
        }
        more = {
            "--neighbours": neighbours,
            "--production": production or None,
            "--schema": schema,
            "--order": order,
        }
        require_nothing(
            {
                **given,
                **more,
                "--sensitive": sensitive,
                "--unit": unit,
                "--max-rows-per-unit": max_rows_per_unit,
            }
        )
        typer.echo(about(Ledger.restore(url, text_of(export))))
        return
    begun = Ledger.create(
        url,
        said("DATASET", dataset),
        said("--epsilon", epsilon),
        said("--delta", delta),
        options.protection(protects or "records"),
        neighbours,
        production,
        schema=options.schema_of(schema),
        kind=kind,
        order=order,
        columns=sensitive,
        unit=unit,
        max_rows_per_unit=max_rows_per_unit,
    )
    typer.echo(about(begun))


def show(
    url: Url = None,
    dataset: Dataset = None,
    json: Json = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="write a page, and its JSON twin beside it"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace a page that is there")] = False,
) -> None:
    """Show the budget, what is spent and left, and what is not settled; of several data sets a line
    each."""
    from ..ledger import Ledger
    from .balances import numbers, page, several, words
    from .folders import require_page
    from .printing import print_json

    place = place_of_ledger(url)
    names = Ledger.datasets(place) if dataset is None else [dataset]
    if html is not None or len(names) == 1:
        ledger = opened(place, dataset)
        if html is not None:
            require_page(html, force=force)
            page(ledger, html)
        shown = [ledger]
    else:
        shown = [opened(place, name) for name in names] or [opened(place, None)]
    if json:
        print_json({"address": shown[0].shown, "ledgers": [numbers(ledger) for ledger in shown]})
    else:
        typer.echo(words(shown[0])) if len(shown) == 1 else several(shown)
        if html is not None:
            typer.echo(f"Written: {html}")


def history(
    url: Url = None,
    dataset: Dataset = None,
    last: Annotated[
        int | None, typer.Option(metavar="N", help="show the last N lines", show_default=str(USUAL))
    ] = None,
    first: Annotated[
        int | None, typer.Option(metavar="N", help="show lines from this one on")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="show at most N lines, from --first on")
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(metavar="WORDS", help="show only lines whose purpose holds these words"),
    ] = None,
    json: Json = False,
) -> None:
    """List lines: number, time, who, what happened, purpose, its share of the budget, and what was
    charged after it."""
    from .balances import lines_as_json, lines_as_words
    from .printing import print_json

    ledger = opened(place_of_ledger(url), dataset)
    lines = chosen(ledger, last, first, limit, purpose)
    if json:
        print_json(
            {"address": ledger.shown, "dataset": ledger.dataset, "entries": lines_as_json(lines)}
        )
    else:
        lines_as_words(lines)


def check(
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            help="a file, postgresql://..., or what `export` wrote",
            show_default=options.LEDGER_VARIABLE,
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset", metavar="NAME", help="check this budget alone", show_default="all"
        ),
    ] = None,
    statement: Annotated[
        list[Path] | None,
        typer.Option(
            "--statement",
            metavar="FILE",
            help="look for this statement, or that of a folder with a model; repeat for more",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Work everything out again: the chain of lines, the sums, the price of every plan; and look
    statements up.

    Exit status: 0 all agrees, 1 there is a contradiction, 2 refused.
    """
    from .._waiting import waiting
    from .ledger_checks import checked, print_checked

    with waiting("Computing the lines again"):
        found = checked(place_of_ledger(url), dataset, statement or [])
    print_checked(found, json=json)
    if not found.agrees:
        raise typer.Exit(1)


def export(
    url: Url = None,
    dataset: Dataset = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="write this file", show_default="standard output"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace a file that is there")] = False,
) -> None:
    """Write all lines as one JSON document, whole or not at all, readable by you alone: to keep
    where others cannot write.

    Exit status: 0 written, 2 refused.
    """
    from shlex import quote

    from .folders import require_file, write_file

    if out is not None:
        require_file(out, force=force)
    ledger = opened(place_of_ledger(url), dataset)
    document = ledger.export()
    if out is None:
        typer.echo(document, nl=False)
        return
    write_file(out, document.encode(), mode=0o600)
    typer.echo(f"Written: {out}. Check it: fairveil ledger check {quote(str(out))}")


add(
    app,
    create,
    "fairveil ledger create budget.db people --epsilon 4 --delta 1e-6",
    "fairveil ledger create budget.db people --epsilon 4 --delta 1e-6 --production",
    "fairveil ledger create copy.db --from people.json",
    short="begin a budget of a data set, or restore one",
)
add(
    app,
    show,
    "fairveil ledger show budget.db",
    "fairveil ledger show budget.db --dataset people --html budget.html",
    "fairveil ledger show postgresql://team@host/base --json",
    short="show what is spent, left and not settled",
)
add(
    app,
    history,
    "fairveil ledger history budget.db",
    "fairveil ledger history budget.db --first 100 --limit 20",
    'fairveil ledger history budget.db --purpose "spring model"',
    short="list what was recorded, line by line",
)
add(
    app,
    check,
    "fairveil ledger check budget.db",
    "fairveil ledger check budget.db --statement model",
    "fairveil ledger check people.json --json",
    short="compute every line again",
)
add(
    app,
    export,
    "fairveil ledger export budget.db --out people.json",
    "fairveil ledger export budget.db --dataset people --out people.json",
    "fairveil ledger export postgresql://team@host/base -o people.json",
    short="write all lines as one document",
)
add(
    app,
    bring_in,
    "fairveil ledger import spent.json budget.db",
    'fairveil ledger import spent.json --dataset people --purpose "opacus fit"',
    "fairveil ledger import spent.json budget.db --look",
    name="import",
    short="charge what another library spent",
)
