"""Arguments that several commands share, and what their words mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .completing import NEIGHBOURS, PROTECTS, out_of
from .helping import DATA, LEDGER, MEASURED, OUTPUT, PRIVACY

if TYPE_CHECKING:
    from ..facts import Schema
    from .tables import Place

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="a CSV file (gzip or not), a Parquet file, a coded store, or a database with --query",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        metavar="SQL",
        help="read this table of a database, or this SELECT",
        rich_help_panel=DATA,
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="read the columns by these public facts, in TOML or JSON (`fairveil schema init` "
        "writes one)",
        show_default="kinds are read from the data, and the statement says so",
        rich_help_panel=DATA,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="take this column as the target",
        show_default="the schema's",
        rich_help_panel=DATA,
    ),
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option(
        "--sensitive",
        metavar="COLUMN",
        help="make groups of this column; repeat for more",
        show_default="the schema's",
        rich_help_panel=DATA,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="COLUMN",
        help="leave out this column; repeat for more",
        rich_help_panel=DATA,
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        metavar="NUMBER",
        help="set the additive part of the guarantee: well below 1/rows",
        rich_help_panel=PRIVACY,
    ),
]
Protects = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        help="protect records, or sensitive-features alone",
        rich_help_panel=PRIVACY,
        autocompletion=out_of(*PROTECTS),
    ),
]
Neighbours = Annotated[
    str | None,
    typer.Option(
        metavar="RELATION",
        help="hide that a row was added or removed (add-remove), or replaced (replace-one)",
        show_default="add-remove for records, else replace-one",
        rich_help_panel=PRIVACY,
        autocompletion=out_of(*NEIGHBOURS),
    ),
]
PublicRows = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="state about how many rows TABLE has, where that is public",
        show_default="the schema's, or a noisy count is released",
        rich_help_panel=PRIVACY,
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="protect each person with all of their rows, who are identified by this column; it is "
        "no feature",
        show_default="the schema's, or each row is protected",
        rich_help_panel=PRIVACY,
    ),
]
MaxRowsPerUnit = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="with --unit: read at most so many rows of each person, drawn by coins; a public "
        "number",
        show_default="the schema's",
        rich_help_panel=PRIVACY,
    ),
]
TestTable = Annotated[
    str | None,
    typer.Option(
        "--test",
        metavar="TABLE",
        help="measure on these other rows, exactly: not covered by privacy",
        rich_help_panel=MEASURED,
    ),
]
TestQuery = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="read the test rows with this query (of --test, else of TABLE's database)",
        rich_help_panel=MEASURED,
    ),
]
HoldOut = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        help="set this part of TABLE aside, by coins that read no data, and measure on it: not "
        "covered by privacy",
        rich_help_panel=MEASURED,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="repeat the noise, flagged INSECURE",
        show_default="secure noise",
        rich_help_panel=PRIVACY,
    ),
]
Unsafe = Annotated[
    bool,
    typer.Option(
        "--unsafe-data-dependent-bounds",
        help="scale numbers by the rows' own means and deviations, flagged",
        rich_help_panel=PRIVACY,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", help="write here", show_default=False, rich_help_panel=OUTPUT
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        help="print the report's first paragraph and the statement, too",
        rich_help_panel=OUTPUT,
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="replace what an earlier run of this command wrote there",
        rich_help_panel=OUTPUT,
    ),
]


LEDGER_VARIABLE = "FAIRVEIL_LEDGER"
LedgerUrl = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="record the release in this ledger: a file, or postgresql://...; an empty one records "
        "nothing",
        show_default=LEDGER_VARIABLE,
        rich_help_panel=LEDGER,
    ),
]
LedgerDataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="take this budget, where the ledger has several",
        rich_help_panel=LEDGER,
    ),
]
Purpose = Annotated[
    str | None,
    typer.Option(
        "--purpose",
        metavar="WORDS",
        help="write down what it is for, in a line of words",
        rich_help_panel=LEDGER,
    ),
]


def ledger_address(url: str | None) -> str | None:
    """What was said, else what stands in for it; it may hold a password."""
    import os

    return (os.environ.get(LEDGER_VARIABLE) if url is None else url) or None


def place_of(table: str, query: str | None) -> Place:
    """TABLE and --query as a place that rows can be read from."""
    from .tables import Place

    return Place(table, query)


def test_place(
    table: str, test: str | None, test_query: str | None, holdout: float
) -> Place | None:
    """The place of test rows, or None; not beside --holdout."""
    from .. import _checks
    from ..errors import InputError

    _checks.fraction(holdout=holdout, high_open=True)
    if test is None and test_query is None:
        return None
    if holdout:
        remedy = "Measure on other rows, or on a part of these."
        raise InputError.expected(
            "no --holdout beside --test", of="--holdout", got=holdout, remedy=remedy
        )
    return place_of(table if test is None else test, test_query)


def schema_of(path: Path | None) -> Schema | None:
    """The schema file, read."""
    from .schema_errors import loaded

    return None if path is None else loaded(path)


def require_words(**named: str | None) -> None:
    """What a statement will say, checked before there is one: after the fit an error would come too
    late."""
    from ..errors import InputError

    for name, text in named.items():
        if text is not None and not (text.isprintable() and text.strip()):
            remedy = f"Say {name} in words, without line breaks."
            raise InputError.expected("some words on one line", of=name, got=text, remedy=remedy)


def protection(word: str) -> str:
    """`sensitive-features`, as one writes on a command line, is `sensitive_features`."""
    return word.replace("-", "_")


@contextmanager
def warnings_as_notes() -> Iterator[list[str]]:
    """The library's warnings as lines on standard error, without the place in the code: all of
    them, once each, and each when it is given, so that one before a spend is read before it."""
    import warnings

    from .._waiting import replaced
    from ..errors import FairveilWarning

    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", FairveilWarning)
        others = warnings.showwarning

        def show(message: Any, category: Any, *place: Any, **options: Any) -> None:
            if not isinstance(message, FairveilWarning):
                others(message, category, *place, **options)
                return
            text = message.in_shell or str(message).replace("; see constraint_report_.", ".")
            if text not in said:
                said.append(text)
                with replaced():
                    typer.echo(f"fairveil: note: {text}", err=True)

        warnings.showwarning = show
        yield said
