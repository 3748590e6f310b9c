"""`fairveil verify`: does a statement, a certificate, a private table or a file of released groups
agree with itself?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..statement.check import Finding
    from .signed import Signed

LARGEST_FILE = 64 * 2**20
STATEMENT = "statement.json"
WHOLE_COUNTS = (
    "Consistent: the bounds follow from the counts and their noise. This does not prove who "
    "counted, nor whom."
)
WHOLE_RELEASE = (
    "Consistent: the release costs no more than the stated epsilon. This does not prove who "
    "counted, nor whom."
)
WHAT_THE_KEY_PROVES = (
    "It was signed with that key: its holder stands by it. This does not prove that the events "
    "happened."
)


def verify(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="a statement, a certificate, a private table, released groups, or a model's "
            "folder",
            show_default=False,
        ),
    ],
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="check the signature, too, with the signer's public key",
            show_default=False,
        ),
    ] = None,
    signature: Annotated[
        Path | None,
        typer.Option(
            "--signature",
            metavar="FILE",
            help="look for the signature here",
            show_default="statement.json.sig beside it",
        ),
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="print the whole statement in words, too")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
) -> None:
    """Recompute the epsilon of a privacy statement from its events, or a certificate from its
    counts; look for contradictions.

    Exit status: 0 consistent (and, with --key, signed by that key), 1 not, 2 unreadable. Without
    --key: proves consistency, not authorship.
    """
    from ..errors import InputError
    from ..statement import command
    from ..statement.document import examine
    from .signed import checked

    if signature is not None and key is None:
        remedy = "Pass --key holder.pub, the public key of whoever signed it."
        raise InputError.expected("--key", of="--signature", got="none", remedy=remedy, quote=False)
    text = text_of(file / STATEMENT if file.is_dir() else file)
    if _is_certificate(text):
        _certificate(text, json, checked(file, key, signature))
        return
    if _is_private_table(text):
        _private_table(text, json, checked(file, key, signature))
        return
    if _is_released(text):
        _released(text, json, file, key, signature)
        return
    statement, found = examine(text)
    signed = checked(file, key, signature)
    proves = WHAT_THE_KEY_PROVES if signed.is_valid else command.WHAT_IT_PROVES
    if json:
        typer.echo(command.as_json(statement.to_dict(), found, signed.plain, proves))
    else:
        if words:
            typer.echo(f"{statement.summary()}\n")
        told = command.lines(
            statement.to_dict(), found, signed.lines, proves, refused=signed.is_refused
        )
        typer.echo("\n".join(told))
    if any(finding.grave for finding in found) or signed.is_refused:
        raise typer.Exit(1)


def text_of(file: Path) -> str:
    """A statement's file, as text."""
    from .._reading import read_text
    from ..errors import StatementError

    remedy = "Pass a statement's JSON file: it holds events, not data, and is small."
    return read_text(
        file, what="a file that can be read", most=LARGEST_FILE, remedy=remedy, error=StatementError
    )


def _is_certificate(text: str) -> bool:
    """By its first words: the rest is looked at when it is one."""
    if '"fairveil certificate"' not in text[:200]:
        return False
    from ..estimators.certifying.certificate import is_certificate

    return is_certificate(text)


def _certificate(text: str, json: bool, signed: Signed) -> None:
    """A certificate: everything that follows from its counts, again."""
    from ..estimators.certifying.certificate import ON_TRUST, RECOMPUTED, examine

    certificate, found = examine(text)
    own = {"certified": certificate.recomputed.holds}
    _say_of_counts(str(certificate), own, found, RECOMPUTED, ON_TRUST, json, signed)


def _is_private_table(text: str) -> bool:
    """By its first words: the rest is looked at when it is one."""
    if '"fairveil private table"' not in text[:200]:
        return False
    from ..estimators.certifying.private_table import is_private_table

    return is_private_table(text)


def _private_table(text: str, json: bool, signed: Signed) -> None:
    """A private table: everything that follows from its counts, again."""
    from ..estimators.certifying.private_table import ON_TRUST, RECOMPUTED, examine

    table, found = examine(text)
    _say_of_counts(str(table), {}, found, RECOMPUTED, ON_TRUST, json, signed)


def _is_released(text: str) -> bool:
    """By its first words: the rest is looked at when it is one."""
    return '"fairveil released groups"' in text[:200]


def _released(text: str, json: bool, file: Path, key: Path | None, signature: Path | None) -> None:
    """Groups that an attribute's holder released in one file: price and noise again, and the
    signature inside."""
    from ..errors import InputError
    from ..estimators.released.saving import ON_TRUST, RECOMPUTED, examine
    from .signed import inside

    if signature is not None:
        remedy = "Leave --signature out."
        raise InputError.expected(
            "none: it is in the file", of="--signature", got=str(signature), remedy=remedy
        )
    released, found = examine(text)
    signed = inside(text, file, key)
    words = f"{released.privacy.summary()}\n\n{released!r}"
    _say_of_counts(words, {}, found, RECOMPUTED, ON_TRUST, json, signed, WHOLE_RELEASE)


def _say_of_counts(
    words: str,
    own: dict[str, bool],
    found: list[Finding],
    recomputed: tuple[str, ...],
    on_trust: tuple[str, ...],
    json: bool,
    signed: Signed,
    whole: str = WHOLE_COUNTS,
) -> None:
    """What was found of a document that follows from counts. `whole`: what is said where nothing is
    wrong."""
    from .printing import print_json

    grave = any(finding.grave for finding in found)
    if json:
        findings = [{"grave": finding.grave, "sentence": finding.sentence} for finding in found]
        out = {"consistent": not grave, **own, "findings": findings, "recomputed": list(recomputed)}
        print_json(out | {"taken_on_trust": list(on_trust), "signature": signed.plain})
    else:
        typer.echo(words)
        typer.echo("")
        for finding in found:
            typer.echo(f"{'CONTRADICTION' if finding.grave else 'note'}: {finding.sentence}")
        for line in signed.lines:
            typer.echo(line)
        typer.echo(f"Recomputed: {', '.join(recomputed)}; taken on trust: {', '.join(on_trust)}.")
        typer.echo(
            "Inconsistent."
            if grave
            else "Consistent, but the signature does not hold."
            if signed.is_refused
            else whole
        )
    if grave or signed.is_refused:
        raise typer.Exit(1)
