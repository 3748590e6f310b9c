"""`fairveil card` and `fairveil statement`: what others ask to be told about a model, as a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .helping import DATA, OUTPUT

CARDS, GUIDES = ("hugging-face", "registry"), ("nist", "w3c")
LARGEST, MOST_STATED = 1 << 20, 1 << 28


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
    kind: Annotated[
        str,
        typer.Option(
            "--as", metavar="KIND", help="write hugging-face or registry", rich_help_panel=OUTPUT
        ),
    ] = "hugging-face",
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
    """Write a model card for Hugging Face, or an entry of the registry of differential privacy
    deployments.

    Numbers come from the statement, the report and the certificate. Facts of a card: name, license,
    dataset; of an entry: the fields of the registry's schema. Exit status: 0 written, 2 refused.
    """
    from .. import _checks
    from ..errors import InputError
    from .deciding import loaded
    from .folders import require_file

    _checks.one_of(CARDS, **{"as": kind})
    if certificate is not None and kind != CARDS[0]:
        remedy = "Leave it out: an entry has no place for it."
        raise InputError.expected(
            "--as hugging-face", of="--certificate", got=f"--as {kind}", remedy=remedy, quote=False
        )
    if out is not None:
        require_file(out, force=force)
    given = _facts(facts)
    clf = loaded(model)
    if kind == CARDS[0]:
        from ..cards import model_card
        from ..cards.hugging_face import WORDS

        strange = sorted(set(given) - set(WORDS))
        if strange:
            remedy = "Leave it out of the file."
            raise InputError.expected(
                f"only {', '.join(WORDS)}", of="--facts", got=strange[0], remedy=remedy, among=WORDS
            )
        report = model / "report.json"
        text = model_card(
            clf, certificate=certificate, report=report if report.is_file() else None, **given
        )
    else:
        from ..cards import registry_entry
        from ..cards.yaml_text import yaml_text

        text = yaml_text(registry_entry(clf.privacy_, given))
    _written(text, out)


def statement(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="a statement, or a folder that holds one",
            rich_help_panel=DATA,
            show_default=False,
        ),
    ],
    guide: Annotated[
        str,
        typer.Option(
            "--as", metavar="GUIDE", help="order it as nist or w3c", rich_help_panel=OUTPUT
        ),
    ] = "nist",
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
    """Show a privacy statement as a checklist, in the order of a published guide.

    What the statement does not say is listed as not said. Exit status: 0 written, 2 refused.
    """
    from .. import _checks
    from .._reading import read_bytes
    from ..cards import nist_checklist, w3c_checklist
    from ..privacy.statement.statement import PrivacyStatement
    from .folders import require_file

    _checks.one_of(GUIDES, **{"as": guide})
    if out is not None:
        require_file(out, force=force)
    remedy = "Name a statement.json, or the folder of a model."
    raw = read_bytes(
        file / "statement.json" if file.is_dir() else file,
        what="a statement",
        most=MOST_STATED,
        remedy=remedy,
    )
    found = PrivacyStatement.from_json(raw.decode("utf-8", "replace"))
    _written((nist_checklist if guide == GUIDES[0] else w3c_checklist)(found), out)


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
