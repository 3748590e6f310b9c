"""Commands that make and use models: `fit`, `plan`, `predict`, `frontier`, `demo`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import _checks
from .._waiting import waiting
from .files import (
    already_charged,
    named,
    note,
    on_one_line,
    opened,
    print_facts,
    print_json,
    print_table,
    require_files,
    require_folder,
    require_words,
    staged,
    warnings_as_notes,
    write_file,
    written,
)
from .frame import Ask, command, no, wrong

if TYPE_CHECKING:
    from ..facts import Schema
    from ..study import Frontier
    from .rows import Sample

MODEL, SWEEP = "estimator.json", "frontier.json"
ROWS_AT_ONCE = 1 << 16  # of the text that is written: no more of it is held


@command(
    "Models",
    """TABLE --out! --schema --target --sensitive --constraint --epsilon=1.0 --confidence --holdout=0.0
    | --method=primal-dual --model=linear --objective --set --certify --grid --scoring --delta=1e-6
    --protects=records --rows --unit --max-rows-per-unit --seed --test --test-query
    --ignore --query --scheduler --ledger --dataset --purpose --tuning --earlier-releases
    --force""",
    "fairveil fit t.csv --schema t.toml --constraint equalized_odds:5% --out m",
    "fairveil fit t.csv --schema t.toml --constraint demographic_parity:5% --confidence 0.95 --out m",
    "fairveil fit t.csv --schema t.toml --grid clip=0.5,1,2 --out m",
    "fairveil fit fit.toml --epsilon 2",
)
def fit(ask: Ask) -> None:
    """Fit a fair and private classifier; write the model, its statement and report.html to a folder.

    With --grid it searches parameters privately, within the same budget. Options may stand in a file,
    as epsilon = 1 and constraint = ["demographic_parity:5%"].

    Exit status: 0 written; 2 refused, nothing written or spent; 3 spent, but written to another
    folder, which is named on standard error.
    """
    from .asked import asked, roles_of

    require_folder(ask.out, MODEL, force=ask.force)
    require_words(tuning=ask.tuning, earlier_releases=ask.earlier_releases)
    _checks.fraction(holdout=ask.holdout, high_open=True)
    beside = ask.test or ask.test_query
    if ask.holdout and beside:
        remedy = "Measure on other rows, or on a part of these."
        raise wrong("holdout", "no --test beside it", ask.holdout, remedy)
    wishes = asked(ask)
    if wishes.grid and (ask.holdout or beside):
        remedy = "Leave it out: a search sets rows aside itself (--set holdout=0.3)."
        of = "holdout" if ask.holdout else "test"
        raise wrong(of, "nothing beside --grid", ask.holdout, remedy)
    book, roles = opened(ask), roles_of(ask)
    from .rows import facts_of, read
    from .tables import Place

    place = Place(ask.table, ask.query)
    with waiting("Reading the table"):
        sample, held = read(ask, roles, place, ask.holdout)
    stated = ask.rows
    if stated is None and roles.unit is None and roles.schema is not None:
        stated = roles.schema.rows
    # coins take a known share of the rows off, so the rest is about as public as the whole
    rows = None if stated is None else max(1, round(stated * (1 - ask.holdout)))
    own = {"schema": facts_of(roles, rows), **wishes.for_groups(sample)}
    if wishes.grid:
        clf: Any = wishes.built(**own)
        _search(ask, wishes, clf, sample, book)
        return
    clf = wishes.built(random_state=ask.seed, ledger=book, **own)
    rows_are = "argument" if ask.rows is not None else None if rows is None else "schema"
    described = partial(_described, ask, rows_are, measured=held is not None)
    _fitted(ask, clf, sample, held, book, described, wishes.notions, roles.target, place.shown)


def _fitted(
    ask: Ask,
    clf: Any,
    sample: Sample,
    held: Sample | None,
    book: Any,
    described: Callable[[Any], Any],
    notions: Any,
    target: str,
    source: str,
) -> None:
    """Fit, measure and write. The folder and its room are taken first: a budget that is spent is not
    given back for a full disk."""
    from ..estimators import save
    from .results import facts, report_of

    def done() -> Any:
        fitted = hasattr(clf, "privacy_") and hasattr(clf, "model_")
        return described(clf).privacy_ if fitted else None

    X, y, groups = sample.fit_arguments
    with (
        staged(ask.out, MODEL, force=ask.force) as made,
        already_charged(ask.out, done, lambda folder: save(described(clf), folder), book),
    ):
        with warnings_as_notes() as notes, waiting("Fitting"):
            clf.fit(X, y, sensitive_features=groups)
        with waiting("Measuring"):
            title, subject = f"Model report: {target}", f"{type(clf).__name__}, fitted to {source}."
            report = report_of(described(clf), title, subject, notions, held, notes)
        known = tuple(facts(report))
        made.free()
        save(clf, made.folder)
        report.write(made.folder / "report.html")
        made.move()
    print_facts(*known, *_certified(clf))
    print_facts(*written(ask.out, "model, statement.json, report.html", clf.privacy_, book))


def _certified(clf: Any) -> Iterator[tuple[str, str]]:
    """What a fit certified, if it did."""
    from ..estimators.reading.fitted_parts import parts_of

    found = parts_of(clf).certificate
    if found is not None:
        head = "certified" if found.certified else "not certified"
        words = "; ".join(found.sentences)
        sure = f"with {found.confidence:.6g} confidence from {found.people:,.0f} people set aside"
        yield "certificate", f"{head}, {sure}: {words}"


def _described(ask: Ask, rows_are: str | None, clf: Any, *, measured: bool) -> Any:
    """What only this command knows goes into the statement, once."""
    from .rows import coins_in_words, with_rows_from

    statement = clf.privacy_
    promise = statement.promise
    what = "their exact errors, gaps and counts stand in report.html"
    if promise.unit is not None:
        what = f"one row of each of these persons was measured, drawn by a coin; {what}"
    outside: tuple[str, ...] = ()
    if ask.holdout:
        words = coins_in_words(
            ask.holdout,
            seeded=ask.seed is not None,
            presence_is_private=promise.neighbours == "add-remove",
            by_person=promise.unit is not None,
        )
        outside = (f"rows held out: {words}; {what}",)
    elif measured:
        outside = (f"rows of a separate test table: {what}",)
    if outside and outside[0] in statement.not_covered:
        return clf
    clf.privacy_ = replace(
        statement,
        facts=with_rows_from(statement.facts, rows_are, ask.holdout),
        not_covered=(*statement.not_covered, *outside),
        tuning=ask.tuning or statement.tuning,
        earlier_releases=ask.earlier_releases or statement.earlier_releases,
    )
    return clf


def _search(ask: Ask, wishes: Any, clf: Any, sample: Sample, book: Any) -> None:
    """Choose parameters by a private search; write the best model and the statement of the search."""
    from ..estimators import save
    from ..estimators.settings import placed
    from ..study import PrivateSearchCV

    grid = {placed(clf, name): values for name, values in wishes.grid.items()}
    promise = named(ask, "epsilon delta protects")
    search = PrivateSearchCV(
        clf, grid, **promise, **wishes.search, random_state=ask.seed, ledger=book
    )

    def done() -> Any:
        return search.privacy_ if hasattr(search, "best_estimator_") else None

    X, y, groups = sample.fit_arguments
    with (
        staged(ask.out, MODEL, force=ask.force) as made,
        already_charged(ask.out, done, lambda folder: save(search.best_estimator_, folder), book),
    ):
        with warnings_as_notes():
            search.fit(X, y, sensitive_features=groups)
        made.free()
        save(search.best_estimator_, made.folder)
        made.move()
    print_facts(*_found(search))
    print_facts(*written(ask.out, "model, statement.json", search.privacy_, book))


def _found(search: Any) -> Iterator[tuple[str, str]]:
    from .files import price as price_of

    def shown(of: dict[str, Any]) -> str:
        listed = (f"{name.rpartition('__')[2]}={value}" for name, value in of.items())
        return ", ".join(listed) or "the defaults"

    price = search.price_
    yield "best", shown(search.best_params_)
    if price.way == "defaults":
        gain = price.least_gain
        hidden = "" if gain is None else f": noise would hide gains below {100 * gain:.1f} points"
        yield "way", f"one fit, no search{hidden}"
    else:
        results = search.cv_results_
        for score, tried in zip(results["mean_test_score"], results["params"], strict=True):
            yield "score", f"{score:.4f} with noise: {shown(tried)}"
        yield "way", f"{price.way}; epsilon {price.epsilon:.3g} for each fit"
    yield "privacy", f"{price_of(search.privacy_)}, whole search"


@command(
    "Models",
    """--schema! --constraint --epsilon=1.0 --rows --shares --json | --target --sensitive --ignore
    --method=primal-dual --model=linear --objective --set --delta=1e-6 --protects=records
    --out --force""",
    "fairveil plan --schema t.toml --constraint demographic_parity:0.05",
    "fairveil plan --schema t.toml --rows 5000 --shares sex=f:0.3,m:0.7",
    "fairveil plan --schema t.toml --constraint equalized_odds:0.1 --out plan.svg",
)
def plan(ask: Ask) -> None:
    """Plan a fit before its budget is spent: its releases, their noise, and the smallest gaps that it
    can enforce and verify.

    It reads a schema and no table, and takes the options of `fairveil fit`.

    Exit status: 0 every required bound can be enforced, or none is required; 1 noise would hide one; 2
    refused.
    """
    from .asked import asked, roles_of

    files = require_files(ask.out, force=ask.force, endings=(".svg", ".json", ".txt"))
    wishes, roles = asked(ask), roles_of(ask)
    assert roles.schema is not None
    if wishes.by_group:
        remedy = "Pass one number for all groups."
        of = next(iter(wishes.by_group))
        raise wrong(of, "a number", "one a group", remedy)
    shares = _shares(ask.shares or (), roles.schema)
    with warnings_as_notes():
        found = wishes.built(schema=roles.schema).plan(rows=ask.rows, shares=shares)
    for ending, path in files.items():
        made = {".svg": lambda: found.chart().to_svg(), ".json": found.to_json}.get(ending)
        write_file(path, made() if made is not None else f"{found}\n")
    if ask.json:
        print_json(found.to_dict())
    else:
        from ..show.parts import Table

        print_facts(*((label, words) for label, words in found.facts()))
        for part in found.parts():
            if isinstance(part, Table):
                click.echo(f"\n{part.title}")
                print_table([column.head for column in part.columns], part.lines())
    for path in files.values():
        click.echo(f"Written: {path}", err=ask.json)
    if found.can_be_enforced is False:
        no()


def _shares(given: Iterable[str], schema: Schema) -> dict[str, dict[Any, float]]:
    """`sex=f:0.3,m:0.7` as shares by column and value."""
    found: dict[str, dict[Any, float]] = {}
    for text in given:
        name, _, listed = text.partition("=")
        try:
            pairs = [part.rpartition(":") for part in listed.split(",")]
            values = {str(value): value for value in schema.listed(name)}
            found[name] = {values.get(value, value): float(part) for value, _, part in pairs}
        except (ValueError, LookupError):
            remedy = "Pass --shares sex=f:0.3,m:0.7: a column of the schema, and a share for each."
            raise wrong("shares", "COLUMN=VALUE:SHARE,...", text, remedy) from None
    return found


@command(
    "Models",
    "DIR TABLE --out --proba --keep | --seed --query --force",
    "fairveil predict model t.csv --out decisions.csv",
    "fairveil predict model t.csv --proba --keep id --out decisions.csv",
    "fairveil predict by-group t.csv --seed 7",
)
def predict(ask: Ask) -> None:
    """Predict the rows of a table, in its order: a CSV file with a column `prediction`.

    The target need not be there, nor the sensitive columns, unless the model is group-aware. A
    randomized classifier draws each decision anew; --seed repeats the draws, --proba shows the
    distribution.

    Exit status: 0 written, 2 refused.
    """
    require_files(ask.out, force=ask.force)
    if ask.seed is not None:
        _checks.whole(seed=ask.seed)
    from ..estimators import load
    from .models import by_chance, shown_to
    from .tables import Place, picked

    clf, place = load(ask.dir), Place(ask.table, ask.query)
    with waiting("Deciding"):
        kept = picked(place.columns(ask.keep), ask.keep, place.shown, "keep") if ask.keep else {}
        rows, chance = shown_to(clf, place), by_chance(clf)
        law = rows.law() if ask.proba or chance else None
        decided = rows.drawn(law, ask.seed) if chance else rows.decisions()
    added: dict[str, Any] = {"prediction": decided}
    if ask.proba and law is not None:
        names = [f"probability[{name}]" for name in clf.classes_.tolist()]
        added |= dict(zip(names, law.T, strict=True))
    if twice := sorted(set(added) & set(kept)):
        remedy = "Leave it out of --keep."
        raise wrong("keep", "another name", twice, remedy)
    content = _csv({**kept, **added})
    if ask.out is not None:
        write_file(ask.out, content)
    if chance:
        again = f"by --seed {ask.seed}" if ask.seed is not None else "anew at every call"
        note(
            f"note: this classifier is randomized: decisions were drawn from their distribution, {again}"
        )
    if ask.out is not None:
        click.echo(f"Written: {ask.out} ({len(decided):,} rows)")
        return
    for part in content:  # in UTF-8, as in a file, whatever a terminal's own letters are
        click.echo(part, nl=False)


def _csv(columns: dict[str, Any]) -> Iterator[bytes]:
    """The file: its header, then some rows at a time."""
    import csv
    import io

    def lines(rows: Iterable[Iterable[Any]]) -> bytes:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()

    yield lines([columns])
    for start in range(0, len(columns["prediction"]), ROWS_AT_ONCE):
        run = (column[start : start + ROWS_AT_ONCE].tolist() for column in columns.values())
        yield lines(zip(*run, strict=True))


@command(
    "Models",
    """TABLE --out! --schema --target --sensitive --constraint --gaps=0.2,0.15,0.1,0.05,0.02
    --epsilons=0.5,1,3 --keep | --holdout --test --test-query --delta=1e-6 --protects=records
    --rows --seeds --ignore --query --ledger --dataset --purpose --force""",
    "fairveil frontier t.csv --schema t.toml --out sweep",
    "fairveil frontier t.csv --schema t.toml --gaps 0.2,0.05 --epsilons 1,3 --keep models --out s",
    "fairveil frontier t.csv --schema t.toml --constraint equalized_odds --out s",
)
def frontier(ask: Ask) -> None:
    """Fit a model for every epsilon and gap; write numbers, plot and report to a folder.

    The statement prices looking at all models together; with --ledger they are recorded. With --keep
    the models are written, too.

    Exit status: 0 written; 2 refused, nothing written or spent; 3 spent, but written to another
    folder, which is named on standard error.
    """
    from ..fairness.notions import parse

    require_folder(ask.out, SWEEP, force=ask.force)
    if ask.keep is not None and ask.keep.exists():
        remedy = "Name another: a folder for each model is made in it."
        raise wrong("keep", "a folder that is not there yet", str(ask.keep), remedy)
    given = ask.constraint or ["demographic_parity"]
    swept: Any = [parse(one) if ":" in one else one.strip().replace("-", "_") for one in given]
    steps, budgets = _numbers("gaps", ask.gaps), _numbers("epsilons", ask.epsilons)
    beside = ask.test is not None or ask.test_query is not None
    share = _checks.fraction(holdout=ask.holdout or 0.0, high_open=True)
    share = share if ask.holdout is not None or beside else 0.25
    from .asked import roles_of

    book, roles = opened(ask), roles_of(ask)
    from ..estimators import FairClassifier
    from ..study import frontier as study
    from .rows import coins_in_words, facts_of, read, with_rows_from
    from .tables import Place

    place, ask.seed = Place(ask.table, ask.query), None if ask.seeds is None else 0
    stated = ask.rows or (None if roles.schema is None else roles.schema.rows)
    with waiting("Reading the table"):
        sample, held = read(ask, roles, place, share)
    assert held is not None
    template = FairClassifier(
        schema=facts_of(roles, None if stated is None else max(1, round(stated * (1 - share)))),
        ledger=book,
        **named(ask, "delta protects"),
    )
    done: list[Frontier] = []
    with (
        staged(ask.out, SWEEP, force=ask.force) as made,
        already_charged(
            ask.out,
            lambda: done[0].privacy if done else None,
            lambda folder: _save_sweep(done[0], folder, ask.keep and folder / "models"),
            book,
        ),
    ):
        with warnings_as_notes() as notes, waiting("Fitting the models"):
            found = study(
                *sample.fit_arguments,
                constraint=swept[0] if len(swept) == 1 else swept,
                gaps=steps,
                epsilons=budgets,
                seeds=ask.seeds,
                test=held.fit_arguments,
                estimator=template,
            )
            statement = found.privacy
            how = coins_in_words(
                share,
                seeded=ask.seeds is not None,
                presence_is_private=statement.promise.neighbours == "add-remove",
            )
            told = f"rows held out: {how}; their exact errors and gaps are shown beside the models"
            rows_are = None if stated is None else "argument" if ask.rows else "schema"
            statement = replace(
                statement,
                facts=with_rows_from(statement.facts, rows_are, share),
                not_covered=(*statement.not_covered, *([told] if not beside else [])),
            )
            done.append(replace(found, privacy=statement))
        files = _write_sweep(done[0], place.shown, notes, made, ask.keep)
    click.echo(done[0].summary)
    lines = done[0].table()
    names = ("epsilon", "target", "held_out_gap", "error")
    print_table(
        ("epsilon", "required", "held-out gap", "error"),
        [["-" if line[name] is None else f"{line[name]:.4g}" for name in names] for line in lines],
    )
    print_facts(*written(ask.out, files, done[0].privacy, book))


def _numbers(of: str, text: str) -> tuple[float, ...]:
    """Numbers between commas; gaps below 1, which may be in per cent.

    >>> _numbers("gaps", "0.1, 5%")
    (0.1, 0.05)
    """
    from ..fairness.notions import asked_back, share

    try:
        parts = [(part, share(part) if of == "gaps" else None) for part in text.split(",")]
        found = tuple(float(part) if known is None else known for part, known in parts)
    except ValueError:
        remedy = f"Pass --{of} 0.1,0.05, for example."
        raise wrong(of, "numbers between commas", text, remedy) from None
    wide = [number for number in found if of == "gaps" and number >= 1]
    if wide:
        remedy = asked_back("max_gap", wide[0], "--gaps {}")
        raise wrong(of, "bounds from 0 to below 1", text, remedy)
    return found


def _save_sweep(found: Frontier, folder: Path, models: Path | None = None) -> None:
    """What nobody can make again. A model that is kept says that others were released with it."""
    from ..estimators import save

    folder.mkdir()
    (folder / SWEEP).write_text(found.to_json(), encoding="utf-8")
    found.privacy.write(folder / "statement.json")
    if models is None:
        return
    models.mkdir(parents=True, exist_ok=True)
    said = f"one of {len(found.models)} models of a frontier, whose statement has the price of all"
    for (epsilon, gap, seed), clf in found.models.items():
        clf.privacy_ = replace(clf.privacy_, earlier_releases=said)
        of = "" if gap is None else f"-gap-{gap:g}"
        save(clf, models / f"epsilon-{epsilon:g}{of}{'' if seed is None else f'-seed-{seed}'}")


def _write_sweep(found: Frontier, source: str, notes: list[str], made: Any, keep: Any) -> str:
    from ..show.parts import listed
    from ..show.report import Report

    figure: list[Any] = []
    if any(line["held_out_gap"] is not None for line in found.table()):
        figure = list(found.shown(dataset=f"{found.held_out_rows:,} held-out rows"))
    else:
        notes.append("There is no plot: every gap is undefined on the held-out rows.")
        note(f"note: {notes[-1]}")
    title = "What fairness and privacy cost"
    report = Report(
        f"{title}: {found.measure}",
        subject=on_one_line(f"Models of {source}, one for every epsilon and bound."),
        statement=found.privacy,
        all_models=found.privacy,
        statement_file="statement.json",
        sections=((title, listed(*figure)),) if figure else (),
        notes=(found.summary, *notes),
    )
    made.free()
    _save_sweep(found, made.folder, keep)
    if figure:
        text = figure[0].to_svg()
        (made.folder / "frontier.svg").write_text(f"{text}\n", encoding="utf-8")
    report.write(made.folder / "report.html")
    made.move()
    more = "frontier.svg, " * bool(figure)
    models = "" if keep is None else f"; models in {keep}"
    return f"frontier.json, {more}report.html, statement.json of all models together{models}"


@command(
    "Models",
    "--out=demo --seed",
    "fairveil demo",
    "fairveil demo --out census --seed 0",
)
def demo(ask: Ask) -> None:
    """Fit a model of made-up people that is fair to groups and private to everybody, and certify it;
    below it a sweep with its own price.

    Exit status: 0 written, 2 refused.
    """
    from .demo import show

    show(ask)
