"""`fairveil verify`: does a privacy statement agree with itself?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..privacy.statement import PrivacyStatement
    from ..privacy.statement_checks import Finding

LARGEST_FILE = 64 * 2**20
WHAT_IT_PROVES = "This proves that the statement is consistent, not who wrote it nor that the events happened."


def verify(
    file: Annotated[Path, typer.Argument(help="The statement, as written by PrivacyStatement.write().", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Recompute the epsilon of a privacy statement from its events, and look for contradictions.

    Exit status: 0 consistent, 1 inconsistent, 2 unreadable. Proves consistency, not authorship.
    """
    from ..privacy.statement_checks import examine

    statement, found = examine(text_of(file))
    (_print_json if json else _print_words)(statement, found)
    if any(finding.grave for finding in found):
        raise typer.Exit(1)


def text_of(file: Path) -> str:
    """A statement's file, as text."""
    from .._reading import read_text
    from ..errors import StatementError

    remedy = "Pass a statement's JSON file: it holds events, not data, and is small."
    return read_text(file, what="a file that can be read", most=LARGEST_FILE, remedy=remedy, error=StatementError)


def _print_words(statement: PrivacyStatement, found: list[Finding]) -> None:
    typer.echo(statement.summary())
    typer.echo("")
    for finding in found:
        typer.echo(f"{'CONTRADICTION' if finding.grave else 'note'}: {finding.sentence}")
    if any(finding.grave for finding in found):
        typer.echo("Inconsistent.")
    else:
        typer.echo(f"Consistent: the events cost no more than the stated epsilon. {WHAT_IT_PROVES}")


def _print_json(statement: PrivacyStatement, found: list[Finding]) -> None:
    import json
    from dataclasses import asdict

    out = {
        "consistent": not any(finding.grave for finding in found),
        "epsilon": statement.epsilon if statement.is_private else "inf",
        "delta": statement.delta,
        "ledger": None if statement.ledger is None else asdict(statement.ledger),
        "findings": [{"grave": finding.grave, "sentence": finding.sentence} for finding in found],
        "proves": WHAT_IT_PROVES,
    }
    typer.echo(json.dumps(out, indent=2, allow_nan=False))
