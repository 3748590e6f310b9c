"""`fairveil audit`: the group table of any predictions, counts beside rates; with `--epsilon` from
private counts."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._verdicts import MET, NOT_MET, UNCLEAR, Verdict, of_interval
from . import noisy, options
from .completing import MODES, NOTIONS, bounded, out_of
from .helping import DATA, FAIRNESS, OUTPUT

if TYPE_CHECKING:
    from ..fairness import Notion
    from ..metrics import GroupTable
    from .measured import Measured

EXACT = "exact counts of these rows: nothing in this table is private"
EXPECTED = (
    "rates are expected ones: this classifier is randomized, and one draw of all decisions varies "
    "around them"
)


def audit(
    table: options.TableArgument,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    prediction: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="audit the decisions in this column, whoever made them",
            rich_help_panel=DATA,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="audit the decisions of this model, as `fairveil fit` wrote it",
            rich_help_panel=DATA,
        ),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            "--constraint",
            metavar="NAME:BOUND",
            help="ask whether this bound holds, as in demographic_parity:5%; repeat for more",
            rich_help_panel=FAIRNESS,
            autocompletion=bounded(*NOTIONS),
        ),
    ] = None,
    groups: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="combine several sensitive columns (product) or take them one by one (marginal)",
            rich_help_panel=FAIRNESS,
            autocompletion=out_of(*MODES),
        ),
    ] = "product",
    query: options.Query = None,
    epsilon: noisy.Epsilon = None,
    delta: noisy.Delta = None,
    confidence: noisy.Confidence = None,
    intervals: noisy.Intervals = None,
    depth: noisy.Depth = None,
    protects: noisy.Protects = None,
    neighbours: noisy.Neighbours = None,
    seed: options.Seed = None,
    ledger: options.LedgerUrl = None,
    dataset: options.LedgerDataset = None,
    purpose: options.Purpose = None,
    out: noisy.Out = None,
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
        bool, typer.Option("--json", help="print JSON", rich_help_panel=OUTPUT)
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="replace files that are there", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Show error and rates of every group, with counts and intervals; small groups are flagged.
    Exact, hence not private. Of a randomized classifier the rates are expected ones, without any
    draw's luck.

    With --epsilon everything comes from one noisy count, and one draw of a randomized classifier.

    Exit status: 0, or 1 when a --constraint is not met on these rows, or undefined; 2 refused.
    """
    from .. import _checks
    from .._waiting import waiting
    from ..errors import InputError
    from ..estimators.fitting.promises import notions_of
    from .folders import require_page
    from .judged import decisions_of
    from .measured import measure, table_of
    from .private_table import private_table

    if (prediction is None) == (model is None):
        remedy = "Say whose decisions: --prediction COLUMN, or --model DIR."
        got = None if model is None else "both"
        raise InputError.expected(
            "one of --prediction and --model", of="audit", got=got, remedy=remedy
        )
    _checks.one_of(("product", "marginal"), groups=groups)
    if html is not None:
        require_page(html, force=force)
    asked_for = noisy.Noisy(
        epsilon,
        delta,
        confidence,
        intervals,
        depth,
        protects,
        neighbours,
        seed,
        out,
        ledger,
        dataset,
        purpose,
    )
    if epsilon is None:
        asked_for.refuse_without_epsilon()
    elif constraint:
        remedy = "fairveil certify says whether a bound holds, from private counts."
        raise InputError.expected(
            "no --epsilon beside it", of="--constraint", got=constraint, remedy=remedy
        )
    notions = notions_of(constraint)
    place = options.place_of(table, query)
    if epsilon is not None:
        asked_for = (
            dataclasses.replace(asked_for, depth=1)
            if groups == "marginal" and depth is None
            else asked_for
        )
        private_table(place, target, sensitive, prediction, model, asked_for, html, json, force)
        return
    with waiting("Measuring"):
        truth, decisions, classes, expected = decisions_of(
            place, target, sensitive, prediction, model
        )
        found = table_of(truth, decisions, groups=groups, classes=classes)
        read = {"groups": groups, "classes": classes}
        gaps = [
            (words, measure(notion, truth, decisions, **read)) for words, notion in _usual(groups)
        ]
        asked = [(notion, measure(notion, truth, decisions, **read)) for notion in notions]
    if html is not None:
        _write(html, place.shown, found, gaps, asked, expected)
    _print_json(found, gaps, asked, expected) if json else _print_words(
        found, gaps, asked, html, expected
    )
    if not all(_holds(notion, one) for notion, one in asked):
        raise typer.Exit(1)


def _usual(groups: str) -> list[tuple[str, Notion]]:
    from ..fairness import DemographicParity, EqualizedOdds

    return [
        ("demographic parity", DemographicParity(None, groups=groups)),
        ("equalized odds", EqualizedOdds(None, groups=groups)),
    ]


def _bound(notion: Notion) -> float:
    return float(next(value for name, value in vars(notion).items() if name.startswith("max_")))


def _holds(notion: Notion, measured: Measured) -> bool:
    return not math.isnan(measured.value) and measured.value <= _bound(notion) + 1e-9


def _print_words(
    found: GroupTable,
    gaps: list[tuple[str, Measured]],
    asked: list[tuple[Notion, Measured]],
    html: Path | None,
    expected: bool,
) -> None:
    from .measured import words_of

    typer.echo(str(found))
    typer.echo("")
    for words, one in gaps:
        typer.echo(f"{words} gap: {_points(one)}")
    for notion, one in asked:
        here = MET if _holds(notion, one) else NOT_MET
        verdict = (
            UNCLEAR
            if math.isnan(one.value)
            else f"{here} on these rows, {_verdict(notion, one)} for people like them"
        )
        typer.echo(f"{words_of(notion)} <= {_bound(notion):g}: {_points(one)}: {verdict}")
    typer.echo(f"({EXACT})")
    if expected:
        typer.echo(f"({EXPECTED})")
    if html is not None:
        typer.echo(f"Written: {html}")


def _verdict(notion: Notion, one: Measured) -> Verdict:
    """About the people that the rows were drawn from, by the interval."""
    return of_interval(one.low, one.high, _bound(notion))


def _points(one: Measured) -> str:
    if math.isnan(one.value):
        return "undefined: a group has no row of a kind that should be compared"
    return f"{one.value:.4f} (95% interval {one.low:.4f} to {one.high:.4f})"


def _print_json(
    found: GroupTable,
    gaps: list[tuple[str, Measured]],
    asked: list[tuple[Notion, Measured]],
    expected: bool,
) -> None:
    from .printing import print_json

    out: dict[str, Any] = {
        "table": found.to_dict(),
        "gaps": {words: _numbers(one) for words, one in gaps},
        "constraints": [
            {
                "notion": notion.to_dict(),
                "holds": None if math.isnan(one.value) else _holds(notion, one),
            }
            | {"verdict": _verdict(notion, one)}
            | _numbers(one)
            for notion, one in asked
        ],
        "expected": expected,
        "private": False,
    }
    print_json(out)


def _numbers(one: Measured) -> dict[str, float | None]:
    return {name: None if math.isnan(number) else number for name, number in vars(one).items()}


def _write(
    html: Path,
    source: str,
    found: GroupTable,
    gaps: list[tuple[str, Measured]],
    asked: list[tuple[Notion, Measured]],
    expected: bool,
) -> None:
    from ..fairness.notions import GapNotion
    from ..show.report import People, Report, Requirement
    from .measured import words_of

    targets = {
        words_of(notion): (notion.max_gap, one)
        for notion, one in asked
        if isinstance(notion, GapNotion)
    }
    lines = {words: (None, one) for words, one in gaps} | targets
    figures = [
        Requirement(words, bound, None, one.value, one.low, one.high)
        for words, (bound, one) in lines.items()
        if not math.isnan(one.value)
    ]
    notes = [
        f"The {words} gap is undefined on these rows."
        for words, (_, one) in lines.items()
        if math.isnan(one.value)
    ]
    if expected:
        notes.append(f"{EXPECTED[:1].upper()}{EXPECTED[1:]}.")
    page = Report(
        "Decisions, group by group",
        subject=f"Measured on {source}: {EXACT}.",
        required=tuple(figures),
        people=(People(found, "audited people", expected),),
        notes=tuple(notes),
    )
    page.write(html)
