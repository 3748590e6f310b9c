"""`fairveil predict`: decisions of a saved model for the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from ..estimators import RateConstrainedClassifier
    from .tables import Place

Folder = Annotated[Path, typer.Argument(help="A folder that `fairveil fit` or fv.save wrote.", show_default=False)]


def predict(
    model: Folder,
    table: options.TableArgument,
    out: Annotated[Path | None, typer.Option("--out", help="The CSV file to write (else to standard output).")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="A column of probability for each class too.")] = False,
    keep: Annotated[list[str] | None, typer.Option("--keep", help="A column to copy beside; again for more.")] = None,
    query: options.Query = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Predict the rows of a table, in its order: a CSV file with a column `prediction`, whole or not at all.

    The target and the sensitive columns need not be there. Exit status: 0 written, 2 refused.
    """
    import csv
    import io

    from ..errors import InputError, complaint
    from ..estimators import load
    from .folders import require_file, write_file
    from .tables import picked

    if out is not None:
        require_file(out, force=force)
    clf = load(model)
    place = options.place_of(table, query)
    kept = picked(place.columns(words=keep), keep, place.shown, "--keep") if keep else {}
    features = features_of(clf, place)
    columns: dict[str, list[Any]] = {name: column.tolist() for name, column in kept.items()}
    added: dict[str, list[Any]] = {"prediction": clf.predict(features).tolist()}
    if proba:
        for name, line in zip(clf.classes_.tolist(), clf.predict_proba(features).T, strict=True):
            added[f"probability[{name}]"] = line.tolist()
    if set(added) & set(columns):
        remedy = "Leave it out of --keep."
        raise InputError(complaint(expected="another name", of="--keep", got=sorted(set(added) & set(columns)), remedy=remedy))
    columns |= added
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(zip(*columns.values(), strict=True))
    if out is None:
        typer.echo(text.getvalue(), nl=False)
        return
    write_file(out, text.getvalue().encode())
    typer.echo(f"Written: {out} ({len(added['prediction']):,} rows)")


def features_of(clf: RateConstrainedClassifier, place: Place) -> Any:
    """What a fitted model predicts from: rows coded by its schema, else the columns that it was fitted to."""
    from ..errors import InputError, complaint
    from ..estimators.coding import SchemaCoding, TableCoding
    from .tables import picked

    coding = clf.coding_
    if isinstance(coding, SchemaCoding):
        encoding = coding.encoding
        schema = encoding.schema
        absent = [*([schema.target] if schema.target else []), *(() if encoding.sensitive_as_feature else schema.sensitive)]
        return place.coded(
            schema.without(*absent),
            sensitive_as_feature=encoding.sensitive_as_feature,
            precision=encoding.precision,
        )
    if isinstance(coding, TableCoding):
        words = [feature.name for feature in coding.features if feature.values is not None]
        return picked(place.columns(words), [feature.name for feature in coding.features], place.shown, "TABLE")
    remedy = "Predict in Python, from rows coded as those of the fit were."
    raise InputError(complaint(expected="a model of a table", of="model", got="a model of coded rows", remedy=remedy))
