"""`fairveil predict`: decisions of a saved model for the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .helping import DATA, OUTPUT

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="a model that `fairveil fit` or the library wrote",
        rich_help_panel=DATA,
        show_default=False,
    ),
]

ROWS_AT_ONCE = 1 << 16  # of the text that is written: no more of it is held
DRAWN = "this classifier is randomized: the decisions were drawn from their distribution,"
ANEW = "anew at every call (--seed N repeats draws, --proba shows the distribution)"


def predict(
    model: Folder,
    table: options.TableArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="write this CSV file",
            show_default="standard output",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba", help="add a column of probability for each class", rich_help_panel=OUTPUT
        ),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="copy this column beside the decisions; repeat for more",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            "--sensitive",
            metavar="COLUMN",
            help="read the groups of a group-aware model from this column; repeat for more",
            rich_help_panel=DATA,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="repeat the draws of a randomized model", rich_help_panel=OUTPUT
        ),
    ] = None,
    query: options.Query = None,
    force: Annotated[
        bool, typer.Option("--force", help="replace a file that is there", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Predict the rows of a table, in its order: a CSV file with a column `prediction`, whole or
    not at all.

    The target need not be there, nor the sensitive columns, unless the model is group-aware. A
    randomized classifier draws each decision anew; --seed repeats the draws, --proba shows the
    distribution. Exit status: 0 written, 2 refused.
    """
    from .. import _checks
    from .._waiting import waiting
    from ..errors import InputError
    from .deciding import by_chance, loaded, shown_to
    from .folders import require_file, write_file
    from .tables import picked

    if out is not None:
        require_file(out, force=force)
    if seed is not None:
        _checks.whole(seed=seed)
    clf = loaded(model)
    place = options.place_of(table, query)
    with waiting("Deciding"):
        kept = picked(place.columns(words=keep), keep, place.shown, "--keep") if keep else {}
        rows = shown_to(clf, place, sensitive)
        law = rows.law() if proba or by_chance(clf) else None
        decided = rows.drawn(law, seed) if law is not None and by_chance(clf) else rows.decisions()
    added: dict[str, Any] = {"prediction": decided}
    if proba and law is not None:
        for name, line in zip(clf.classes_.tolist(), law.T, strict=True):
            added[f"probability[{name}]"] = line
    if set(added) & set(kept):
        remedy = "Leave it out of --keep."
        raise InputError.expected(
            "another name", of="--keep", got=sorted(set(added) & set(kept)), remedy=remedy
        )
    content = _parts({**kept, **added})
    if out is not None:
        write_file(out, content)
    if by_chance(clf):
        typer.echo(
            f"fairveil: note: {DRAWN} {ANEW if seed is None else f'by --seed {seed}'}", err=True
        )
    if out is None:
        # in UTF-8, as in a file, whatever a terminal's own letters are
        for part in content:
            typer.echo(part, nl=False)
        return
    typer.echo(f"Written: {out} ({len(added['prediction']):,} rows)")


def _parts(columns: dict[str, Any]) -> Iterator[bytes]:
    """The file: its header, then some rows at a time."""
    yield _lines([columns])
    for start in range(0, len(columns["prediction"]), ROWS_AT_ONCE):
        run = (column[start : start + ROWS_AT_ONCE].tolist() for column in columns.values())
        yield _lines(zip(*run, strict=True))


def _lines(rows: Iterable[Iterable[Any]]) -> bytes:
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
