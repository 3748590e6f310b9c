"""`fairveil frontier`: what fairness and privacy cost on a table: a sweep, its plot, its
numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..show.parts import aligned
from . import options
from .completing import GAPS as GAP_NOTIONS
from .completing import out_of
from .helping import FAIRNESS, MEASURED, PRIVACY

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..models.folders import Staged
    from ..study import Frontier

MARK = "frontier.json"
SHARE = 0.25
NO_FIGURE = (
    "There is no plot: every gap is undefined on the held-out rows, where a group has no row that "
    "a rate is about. Hold out "
    "more rows, or rows of every group."
)


def frontier(
    table: options.TableArgument,
    out: options.Out,
    schema: options.SchemaFile = None,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(
            "--constraint",
            metavar="NAME",
            help="sweep this gap; repeat with a bound (NAME:BOUND) to require it of all models",
            rich_help_panel=FAIRNESS,
            autocompletion=out_of(*GAP_NOTIONS),
            show_default="demographic_parity",
        ),
    ] = None,
    gaps: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS",
            help="require these bounds, one a model: 0.2,0.1 or 20%,10%",
            rich_help_panel=FAIRNESS,
        ),
    ] = "0.2,0.15,0.1,0.05,0.02",
    epsilons: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS",
            help="set these privacy budgets, one a model; inf is not private",
            rich_help_panel=PRIVACY,
        ),
    ] = "0.5,1,3",
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="fit N models a point, with bands, flagged INSECURE",
            show_default="one, with secure noise",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    delta: options.Delta = 1e-6,
    protects: options.Protects = "records",
    neighbours: options.Neighbours = None,
    public_rows: options.PublicRows = None,
    query: options.Query = None,
    test: options.TestTable = None,
    test_query: options.TestQuery = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="set this part of TABLE aside and measure on it: not covered by privacy",
            rich_help_panel=MEASURED,
            show_default="0.25, or --test",
        ),
    ] = None,
    ignore: options.Ignore = None,
    unsafe: options.Unsafe = False,
    ledger: options.LedgerUrl = None,
    dataset: options.LedgerDataset = None,
    purpose: options.Purpose = None,
    force: options.Force = False,
) -> None:
    """Fit a model for every epsilon and gap; write numbers, plot and report to a folder, whole or
    not at all.

    The statement prices looking at all models together; with --ledger they are recorded.

    Exit status: 0 written; 2 refused: then nothing was written; 3 spent, but written to another
    folder, which is said.
    """
    from .._waiting import waiting
    from ..estimators import RateConstrainedClassifier
    from ..study import frontier as study
    from .folders import require_free, staged
    from .ledger_option import opened
    from .rescue import already_charged
    from .samples import Roles, with_rows_from

    require_free(out, force=force, mark=MARK)
    place, other = (
        options.place_of(table, query),
        options.test_place(table, test, test_query, holdout or 0.0),
    )
    share = holdout if holdout is not None else 0.0 if other is not None else SHARE
    swept, steps, promises = (
        _swept(constraint),
        numbers("--gaps", gaps),
        numbers("--epsilons", epsilons),
    )
    roles = Roles.of(options.schema_of(schema), target, sensitive, ignore)
    rows = public_rows if public_rows is not None else roles.public_rows
    book = opened(ledger, dataset, purpose)
    template = RateConstrainedClassifier(
        delta=delta,
        protects=options.protection(protects),
        neighbours=neighbours,
        public_rows=None if rows is None else max(1, round(rows * (1 - share))),
        unsafe_data_dependent_bounds=unsafe,
        ledger=book,
    )
    with waiting("Reading the table"):
        sample = roles.read(place)
    if other is not None:
        held = roles.read(other, like=sample)
    else:
        sample, held = sample.split(share, None if seeds is None else 0)
    done: list[Frontier] = []
    with (
        staged(out, force=force, mark=MARK) as made,
        already_charged(
            out,
            lambda: done[0].privacy if done else None,
            lambda folder: _numbers(done[0], folder),
            book,
        ),
    ):
        with options.warnings_as_notes() as notes, waiting("Fitting the models"):
            found = study(
                *sample.fit_arguments,
                constraint=swept,
                gaps=steps,
                epsilons=promises,
                seeds=seeds,
                test=held.fit_arguments,
                estimator=template,
            )
            said = (
                found if other is not None else _with_coins(found, share, seeded=seeds is not None)
            )
            rows_are = "argument" if public_rows is not None else None if rows is None else "schema"
            facts = with_rows_from(said.privacy.facts, rows_are, share)
            done.append(replace(said, privacy=replace(said.privacy, facts=facts)))
        figure = _write(done[0], place.shown, notes, made)
    _tell(done[0], figure, out, book)


def _with_coins(found: Frontier, share: float, *, seeded: bool) -> Frontier:
    """What only this command knows goes into the statement: how rows were set aside."""
    from .coins import in_words

    statement = found.privacy
    said = in_words(
        share, seeded=seeded, presence_is_private=statement.promise.neighbours == "add-remove"
    )
    told = (
        *statement.not_covered,
        f"rows held out: {said}; their exact errors and gaps are shown beside the models",
    )
    return replace(found, privacy=replace(statement, not_covered=told))


def numbers(of: str, text: str) -> tuple[float, ...]:
    """Numbers between commas; gaps below 1, which may be in per cent.

    >>> numbers("--gaps", "0.1, 5%")
    (0.1, 0.05)
    """
    from ..errors import InputError
    from ..fairness.bounds import asked_back, share

    try:
        parts = [(part, share(part) if of == "--gaps" else None) for part in text.split(",")]
        found = tuple(float(part) if known is None else known for part, known in parts)
    except ValueError:
        remedy = f"Write {of} 0.1,0.05, for example."
        raise InputError.expected(
            "numbers between commas", of=of, got=text, remedy=remedy
        ) from None
    wide = [number for number in found if of == "--gaps" and number >= 1]
    if wide:
        remedy = asked_back("max_gap", wide[0], f"{of} {{}}")
        raise InputError.expected("bounds from 0 to below 1", of=of, got=text, remedy=remedy)
    return found


def _swept(constraint: list[str] | None) -> Any:
    """One name to sweep, and notions with their bounds."""
    from ..fairness.notions import parse

    given = [
        text.strip().replace("-", "_") if ":" not in text else parse(text)
        for text in constraint or ["demographic_parity"]
    ]
    return given[0] if len(given) == 1 else given


def _numbers(found: Frontier, folder: Path) -> None:
    """What nobody can make again."""
    folder.mkdir()
    (folder / MARK).write_text(found.to_json(), encoding="utf-8")
    found.privacy.write(folder / "statement.json")


def _write(found: Frontier, source: str, notes: list[str], made: Staged) -> list[Any] | None:
    from ..show.parts import listed
    from ..show.report import Report

    figure = _figure(found)
    shown = [] if figure is None else [("What fairness and privacy cost", listed(*figure))]
    report = Report(
        f"What fairness and privacy cost: {found.measure}",
        subject="".join(
            letter if letter.isprintable() else "?"
            for letter in f"Models of {source}, one for every epsilon and bound."
        ),
        statement=found.privacy,
        all_models=found.privacy,
        statement_file="statement.json",
        sections=tuple(shown),
        notes=(found.summary, *(() if figure is not None else (NO_FIGURE,)), *notes),
    )
    made.free()
    _numbers(found, made.folder)
    if figure is not None:
        (made.folder / "frontier.svg").write_text(figure[0].to_svg() + "\n", encoding="utf-8")
    report.write(made.folder / "report.html")
    made.move()
    return figure


def _tell(found: Frontier, figure: list[Any] | None, out: Path, book: Ledger | None) -> None:
    from ..show.numbers import STAMP_WORDS
    from .printing import Fact, print_facts
    from .written import written

    print_facts(
        [Fact("warning", words) for words in (STAMP_WORDS[stamp] for stamp in found.privacy.stamps)]
    )
    typer.echo(found.summary)
    typer.echo(_table(found))
    if figure is None:
        typer.echo(f"fairveil: note: {NO_FIGURE}", err=True)
    files = (
        "frontier.json, report.html"
        if figure is None
        else "frontier.json, frontier.svg, report.html"
    )
    print_facts(
        written(out, f"{files}, statement.json of all models together", found.privacy, book)
    )


def _figure(found: Frontier) -> list[Any] | None:
    """The plot; None where no gap is defined on the held-out rows: the models are charged, so the
    rest is written."""
    if all(line["held_out_gap"] is None for line in found.table()):
        return None
    models = (
        "one model a point" if found.privacy.noise == "secure" else "mean over the seeds of a point"
    )
    return found.shown(
        dataset=f"{found.held_out_rows:,} held-out rows", notes=(f"Each point: {models}.",)
    )


def _table(found: Frontier) -> str:
    """One line a point, for the terminal; the file has every digit."""
    lines: list[tuple[str, ...]] = [("epsilon", "required", "held-out gap", "error")]
    for line in found.table():
        shown = [line[name] for name in ("target", "held_out_gap", "error")]
        lines.append(
            (f"{line['epsilon']:g}", *("-" if value is None else f"{value:.4f}" for value in shown))
        )
    return "\n".join(aligned(lines, right_from=0))
