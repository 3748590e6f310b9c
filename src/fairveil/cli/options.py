"""Arguments that several commands share, and what their words mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..facts import Schema
    from .tables import Place

TableArgument = Annotated[
    str,
    typer.Argument(help="A CSV file (gzip or not), a Parquet file, or a database with --query.", show_default=False),
]
Query = Annotated[str | None, typer.Option("--query", help="With a database: a table, or a SELECT.")]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", help="Public facts (TOML or JSON). Without: kinds are read from the data, which is stamped."),
]
Target = Annotated[str | None, typer.Option("--target", help="The column to predict (else the schema's).")]
Sensitive = Annotated[
    list[str] | None, typer.Option("--sensitive", help="A column that makes groups; again for more (else the schema's).")
]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="A column that is no feature; again for more.")]
Delta = Annotated[float, typer.Option(help="Far below one over the number of rows.")]
Protects = Annotated[str, typer.Option(help="records, or sensitive-features.")]
Neighbours = Annotated[
    str | None, typer.Option(help="add-remove or replace-one.", show_default="add-remove for records, else replace-one")
]
PublicRows = Annotated[
    int | None, typer.Option(help="About how many rows TABLE has, where that is public; else a noisy count is bought.")
]
TestTable = Annotated[str | None, typer.Option("--test", help="Other rows to measure on, exactly: not covered.")]
TestQuery = Annotated[
    str | None, typer.Option(help="A table or SELECT of the test rows (in --test, else in TABLE's database).")
]
HoldOut = Annotated[
    float, typer.Option(help="Set so large a part of TABLE aside, by coins that read no data, and measure on it: not covered.")
]
Seed = Annotated[int | None, typer.Option(help="Repeatable noise, stamped insecure. Without it: secure noise.")]
Unsafe = Annotated[
    bool, typer.Option("--unsafe-data-dependent-bounds", help="Scale numbers by the rows' own means and deviations; stamped.")
]
Out = Annotated[Path, typer.Option("--out", help="The folder to write.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace what an earlier run of this command wrote there.")]


LEDGER_VARIABLE = "FAIRVEIL_LEDGER"
LedgerUrl = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help=f"Record it in this ledger: a file, or postgresql://... (else {LEDGER_VARIABLE}; an empty one records nothing).",
        show_default=False,
    ),
]
LedgerDataset = Annotated[str | None, typer.Option("--dataset", help="With --ledger: which budget, where there are several.")]
Purpose = Annotated[str | None, typer.Option("--purpose", help="With --ledger: what it is for, in a line of words.")]


def ledger_address(url: str | None) -> str | None:
    """What was said, else what stands in for it; it may hold a password."""
    import os

    return (os.environ.get(LEDGER_VARIABLE) if url is None else url) or None


def place_of(table: str, query: str | None) -> Place:
    """TABLE and --query as a place that rows can be read from."""
    from .tables import Place

    return Place(table, query)


def test_place(table: str, test: str | None, test_query: str | None, holdout: float) -> Place | None:
    """The place of test rows, or None; not beside --holdout."""
    from .. import _checks
    from ..errors import InputError, complaint

    _checks.fraction(holdout=holdout, high_open=True)
    if test is None and test_query is None:
        return None
    if holdout:
        remedy = "Measure on other rows, or on a part of these."
        raise InputError(complaint(expected="no --holdout beside --test", of="--holdout", got=holdout, remedy=remedy))
    return place_of(table if test is None else test, test_query)


def schema_of(path: Path | None) -> Schema | None:
    """The schema file, read."""
    from ..facts import Schema

    return None if path is None else Schema.load(path)


def require_words(**named: str | None) -> None:
    """What a statement will say, checked before there is one: after the fit an error would come too late."""
    from ..figures.checked import line

    for name, text in named.items():
        if text is not None:
            line(empty=False, **{name: text})


def protection(word: str) -> str:
    """`sensitive-features`, as one writes on a command line, is `sensitive_features`."""
    return word.replace("-", "_")


@contextmanager
def warnings_as_notes() -> Iterator[list[str]]:
    """The library's warnings as lines on standard error, without the place in the code; all of them, once each."""
    import warnings

    from ..errors import FairveilWarning

    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FairveilWarning)
        yield said
    for warning in caught:
        if not issubclass(warning.category, FairveilWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
            continue
        assert isinstance(warning.message, FairveilWarning)
        text = warning.message.in_shell or str(warning.message)
        if text not in said:
            said.append(text)
            typer.echo(f"fairveil: note: {text}", err=True)
