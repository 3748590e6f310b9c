"""`fairveil certify`: does a constraint hold for the next people? From private counts of people
whom the model has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .completing import NOTIONS, bounded
from .helping import DATA, FAIRNESS, OUTPUT, PRIVACY

if TYPE_CHECKING:
    from ..estimators import Certificate
    from .printing import Fact

RATIO = "selection_rate_ratio"


def certify(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="a model's folder, as `fairveil fit` wrote it, or - with --prediction",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ],
    table: options.TableArgument,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            "--constraint",
            metavar="NAME:BOUND",
            help="certify this bound, as in demographic_parity:5% or selection_rate_ratio:0.8; "
            "repeat for more",
            rich_help_panel=FAIRNESS,
            autocompletion=bounded(*NOTIONS, RATIO),
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="certify a broken bound with probability at most one minus this",
            rich_help_panel=FAIRNESS,
        ),
    ] = 0.95,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="set the privacy budget of the counts; inf counts people who are public or have "
            "consented",
            show_default=False,
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    delta: options.Delta = 0.0,
    protects: options.Protects = "records",
    neighbours: options.Neighbours = None,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    prediction: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="take the decisions in this column; MODEL is then -",
            rich_help_panel=DATA,
        ),
    ] = None,
    query: options.Query = None,
    seed: options.Seed = None,
    ledger: options.LedgerUrl = None,
    dataset: options.LedgerDataset = None,
    purpose: options.Purpose = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="write the certificate as JSON, for `fairveil verify`",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="write a page, and its JSON twin beside it",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="print the certificate as JSON", rich_help_panel=OUTPUT)
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="replace files that are there", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Certify that constraints hold for people like those of TABLE, whom the model has not seen,
    from one private count.

    Exit status: 0 certified; 1 not certified, which costs the same budget; 2 refused, nothing
    spent.
    """
    from .._waiting import waiting
    from ..errors import InputError
    from ..estimators import certify as certified
    from ..estimators.certifying.certifying import notions_of
    from .folders import require_file, require_page
    from .judged import ELSEWHERE, drawn_decisions
    from .ledger_option import opened

    if (prediction is None) == (model == ELSEWHERE):
        remedy = "Pass a model's folder, or - and --prediction COLUMN."
        raise InputError.expected(
            "one of both", of="MODEL and --prediction", got=model, remedy=remedy
        )
    if epsilon is None:
        remedy = (
            "Pass --epsilon 1, for example; --epsilon inf for people who are public or have "
            "consented."
        )
        raise InputError.expected("a privacy budget", of="--epsilon", got=None, remedy=remedy)
    if out is not None:
        require_file(out, force=force)
    if html is not None:
        require_page(html, force=force)
        if out is not None and html.with_suffix(".json").absolute() == out.absolute():
            remedy = "Name them differently: the page's numbers are written to its name with .json."
            raise InputError.expected("a file of its own", of="--out", got=str(out), remedy=remedy)
    notions = notions_of(constraint or ())
    book = opened(ledger, dataset, purpose)
    place = options.place_of(table, query)
    with waiting("Reading the table"):
        truth, made = drawn_decisions(model, place, target, sensitive, prediction, seed)
    with options.warnings_as_notes(), waiting("Certifying"):
        found = certified(
            made,
            None,
            truth.labels,
            sensitive_features=truth.groups or None,
            constraints=notions,
            confidence=confidence,
            epsilon=epsilon,
            delta=delta,
            protects=options.protection(protects),
            neighbours=neighbours,
            random_state=seed,
            ledger=book,
        )
    if out is not None:
        found.write(out)
    if html is not None:
        _page(found, html, place.shown)
    typer.echo(found.to_json(), nl=False) if json else _print(found, out, html)
    if not found.certified:
        raise typer.Exit(1)


def certificate_facts(clf: object) -> Iterator[Fact]:
    """What a fit certified, if it did: the verdict, and a line for each bound."""
    from ..estimators.certifying.certificate_contents import CERTIFIED, REFUSED
    from ..estimators.reading.fitted_parts import parts_of
    from .printing import Fact

    found = parts_of(clf).certificate
    if found is None:
        return
    yield Fact(
        "certificate",
        f"{CERTIFIED if found.certified else REFUSED}, with {found.confidence:.6g} confidence",
    )
    for words in found.sentences:
        yield Fact("", words)
    if found.handed_out:
        yield Fact("", f"of what is handed out: {found.handed_out}")
    yield Fact("", f"{found.people:,.0f} people set aside, as released; certificate.json")


def _print(found: Certificate, out: Path | None, html: Path | None) -> None:
    from ..estimators.certifying.certificate_contents import CERTIFIED, REFUSED
    from ..show.numbers import at_most
    from .printing import Fact, print_facts

    head = CERTIFIED if found.certified else REFUSED
    facts = [Fact("verdict", f"{head}, with {found.confidence:.6g} confidence")]
    for bound, words in zip(found.bounds, found.sentences, strict=True):
        facts.append(Fact("" if bound.certified else "failed", words))
    facts.append(Fact("people", f"{found.people:,.0f} set aside, as released"))
    statement = found.privacy_
    price = (
        f"epsilon {at_most(statement.epsilon, statement.promise.epsilon)}"
        if statement.is_private
        else "not private"
    )
    facts.append(
        Fact("privacy", f"{price} at delta {statement.delta:g}, {statement.promise.neighbours}")
    )
    facts += [
        Fact("assumed" if at == 0 else "", words) for at, words in enumerate(found.assumptions)
    ]
    facts += [Fact("written", str(path)) for path in (out, html) if path is not None]
    print_facts(facts)


def _page(found: Certificate, html: Path, source: str) -> None:
    from ..show.report import Report

    subject = f"Decisions of {found.model} about people set aside: {source}."
    page = Report("Certificate", subject, statement=found.privacy_, certificate=found)
    page.write(html)
