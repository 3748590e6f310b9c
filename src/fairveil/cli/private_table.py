"""`fairveil audit --epsilon 1`: the group table with noise, from one private count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .. import _checks
from . import options

if TYPE_CHECKING:
    from ..estimators import PrivateTable
    from .noisy import Noisy
    from .tables import Place


def private_table(
    place: Place,
    target: str | None,
    sensitive: list[str] | None,
    prediction: str | None,
    model: Path | None,
    asked: Noisy,
    html: Path | None,
    json: bool,
    force: bool,
) -> None:
    """Count once, with noise, and show everything that follows."""
    from .._waiting import waiting
    from ..errors import InputError
    from ..estimators import private_audit
    from .folders import require_file
    from .judged import ELSEWHERE, drawn_decisions
    from .ledger_option import opened

    if asked.out is not None:
        require_file(asked.out, force=force)
        if html is not None and html.with_suffix(".json").absolute() == asked.out.absolute():
            remedy = "Name them differently: the page's numbers are written to its name with .json."
            raise InputError.expected(
                "a file of its own", of="--out", got=str(asked.out), remedy=remedy
            )
    given: dict[str, Any] = _checks.named(
        asked, ("confidence", "intervals", "depth", "delta", "neighbours")
    )
    given |= {"protects": None if asked.protects is None else options.protection(asked.protects)}
    book = opened(asked.ledger, asked.dataset, asked.purpose)
    with waiting("Reading the table"):
        truth, made = drawn_decisions(
            ELSEWHERE if model is None else str(model),
            place,
            target,
            sensitive,
            prediction,
            asked.seed,
        )
    with options.warnings_as_notes(), waiting("Counting, and finding every interval"):
        found = private_audit(
            made,
            None,
            truth.labels,
            sensitive_features=truth.groups or None,
            epsilon=asked.epsilon,
            random_state=asked.seed,
            ledger=book,
            **{name: value for name, value in given.items() if value is not None},
        )
        if asked.out is not None:
            found.write(asked.out)
        if html is not None:
            _page(found, html, place.shown)
        typer.echo(found.to_json(), nl=False) if json else _print(found, asked.out, html)


def _print(found: PrivateTable, out: Path | None, html: Path | None) -> None:
    from ..show.numbers import at_most
    from ..statement.check import READ_FROM_DATA

    typer.echo(str(found))
    typer.echo("")
    for level, gaps in found.gaps.items():
        names = " and ".join(found.layout.cells.names[j] for j in level)
        for gap in gaps:
            typer.echo(f"widest difference among groups of {names}, {str(gap).replace('_', ' ')}")
    statement = found.privacy_
    price = (
        f"epsilon {at_most(statement.epsilon, statement.promise.epsilon)}"
        if statement.is_private
        else "not private"
    )
    typer.echo(
        f"({price} at delta {statement.delta:g}, {statement.promise.neighbours}; "
        f"{found.ABOUT_ROWS}; {found.ABOUT_PEOPLE})"
    )
    read = [one.name for one in statement.facts if one.origin == READ_FROM_DATA]
    if read:
        typer.echo(
            f"NOT COVERED: {', '.join(read)}. They were read from these rows, so that a value that "
            f"one person alone has shows that person."
        )
    for path in (out, html):
        if path is not None:
            typer.echo(f"Written: {path}")


def _page(found: PrivateTable, html: Path, source: str) -> None:
    from ..show.report import Report

    subject = f"Decisions of {found.model}, counted once with noise: {source}."
    sections = (("Group by group, from private counts", found),)
    page = Report("Decisions, group by group", subject, statement=found.privacy_, sections=sections)
    page.write(html)
