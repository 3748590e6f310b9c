"""`fairveil card`: what others ask to be told about a model, as a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .helping import DATA, OUTPUT

LARGEST = 1 << 20


def card(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="a model that `fairveil fit` or the library wrote",
            rich_help_panel=DATA,
            show_default=False,
        ),
    ],
    facts: Annotated[
        Path | None,
        typer.Option(
            "--facts",
            metavar="FILE",
            help="read what no file of the model knows (JSON)",
            rich_help_panel=DATA,
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="read a certificate of the model",
            rich_help_panel=DATA,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="write this file",
            show_default="standard output",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="replace a file that is there", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Write a model card for Hugging Face.

    Numbers come from the statement, the report and the certificate. Facts are name, license and
    dataset. Exit status: 0 written, 2 refused.
    """
    from ..errors import InputError
    from ..show.card import model_card
    from .deciding import loaded
    from .folders import require_file

    words = ("name", "license", "dataset")
    if out is not None:
        require_file(out, force=force)
    given = _facts(facts)
    clf = loaded(model)
    strange = sorted(set(given) - set(words))
    if strange:
        remedy = "Leave it out of the file."
        raise InputError.expected(
            f"only {', '.join(words)}", of="--facts", got=strange[0], remedy=remedy, among=words
        )
    report = model / "report.json"
    own = None if certificate is None else _certificate(certificate)
    text = model_card(clf, certificate=own, report=report if report.is_file() else None, **given)
    _written(text, out)


def _facts(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    from .._json import Document
    from .._reading import read_bytes

    remedy = "Write a JSON object: the name of each fact, and its value."
    raw = read_bytes(path, what="a file of facts", most=LARGEST, remedy=remedy)
    return dict(Document("--facts", remedy).node(raw).mapping())


def _written(text: str, out: Path | None) -> None:
    from .folders import write_file

    if out is None:
        typer.echo(text.encode(), nl=False)
        return
    write_file(out, text.encode())
    typer.echo(f"Written: {out}")


def _certificate(path: Path) -> Any:
    from .._reading import MIB, read_bytes
    from ..estimators import Certificate

    remedy = "Pass a certificate's file."
    raw = read_bytes(path, what="a certificate", most=64 * MIB, remedy=remedy)
    return Certificate.from_json(raw.decode("utf-8", "replace"))
