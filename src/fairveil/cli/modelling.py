"""Commands that make and use models: `fit`, `plan`, `predict`, `frontier`, `demo`."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import _checks
from .._reading import write_files
from .._waiting import waiting
from .files import (
    deliver,
    note,
    on_one_line,
    opened,
    print_facts,
    print_lines,
    require_folder,
    spending,
    working,
    written,
)
from .files import price as price_of
from .frame import Ask, command, need, no, wrong

if TYPE_CHECKING:
    from ..facts import Schema
    from ..study import Frontier

MODEL, SWEEP = "estimator.json", "frontier.json"
ROWS_AT_ONCE = 1 << 16  # of the text that is written: no more of it is held


@command(
    "Models",
    """TABLE --out! --schema --target --sensitive --constraint --epsilon=1.0 --confidence --holdout=0.0
    | --method=primal-dual --model=auto --objective --set --certify --grid --scoring --delta=1e-6
    --protects=records --seed --query --ledger --dataset --purpose --tuning --earlier-releases
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
    from .asked import asked
    from .tables import Place, one_of_each, rows_of, split, with_roles

    require_folder(ask.out, MODEL, force=ask.force)
    _checks.fraction(holdout=ask.holdout, high_open=True)
    wishes = asked(ask)
    fix = "Leave it out: a search sets rows aside itself (--set holdout=0.3)."
    both = wishes.grid and ask.holdout
    need(not both, "holdout", "nothing beside --grid", ask.holdout, fix)
    schema, place, held = with_roles(ask), Place(ask.table, ask.query), None
    book = opened(ask)
    with waiting("Reading the table"):
        rows = rows_of(schema, place)
        if ask.holdout:
            rows, held = split(rows, ask.holdout, ask.seed)
            held = one_of_each(held, ask.seed)
    schema, public = _less(schema, ask.holdout), schema
    if wishes.grid:
        work = _search(ask, wishes, wishes.built(schema=schema), book)
    else:
        work = wishes.built(random_state=ask.seed, ledger=book, schema=schema)

    def model() -> Any:
        """What is written; what only this command knows goes into its statement, once."""
        return work.best_estimator_ if wishes.grid else _described(ask, work)

    def done() -> Any:
        fitted = hasattr(work, "best_estimator_" if wishes.grid else "model_")
        return (work if wishes.grid else model()).privacy_ if fitted else None

    from ..estimators import save

    with spending(ask, MODEL, done, lambda folder: save(model(), folder), book) as made:
        assert made is not None
        with working("Fitting") as notes:
            work.fit(rows)
        report, said = None, [*_found(work)] if wishes.grid else []
        if not wishes.grid:
            from . import judged

            title, told = f"Model report: {public.target}", f"{type(work).__name__}, fitted to"
            subject = f"{told} {place.shown}."
            with waiting("Measuring"):
                report = judged.report_of(model(), title, subject, held, notes)
            said = [*judged.facts(report)]
        made.free()
        save(model(), made.folder)
        if report is not None:
            report.write(made.folder / "report.html")
        made.move()
    files = "model, statement.json" + ", report.html" * (report is not None)
    print_facts(*said, *written(ask.out, files, work.privacy_, book))


def _less(schema: Schema, share: float) -> Schema:
    """The facts about what coins leave: a known share less, so about as public as the whole."""
    if schema.rows is None or schema.unit is not None:
        return replace(schema, rows=None)
    return replace(schema, rows=max(1, round(schema.rows * (1 - share))))


def _described(ask: Ask, clf: Any) -> Any:
    """The fitted model, whose statement says what was measured beside it, and what its caller says."""
    from .tables import held_out

    statement = clf.privacy_
    if (outside := statement.not_covered) and outside[-1].startswith("rows held out: "):
        return clf
    if ask.holdout:
        what = "their exact errors, gaps and counts stand in report.html"
        statement = held_out(statement, ask.holdout, seeded=ask.seed is not None, measured=what)
    clf.privacy_ = replace(
        statement,
        tuning=ask.tuning or statement.tuning,
        earlier_releases=ask.earlier_releases or statement.earlier_releases,
    )
    return clf


def _search(ask: Ask, wishes: Any, clf: Any, book: Any) -> Any:
    """A private search for parameters, in place of one fit."""
    from ..estimators.settings import placed
    from ..study import PrivateSearchCV

    grid = {placed(clf, name): values for name, values in wishes.grid.items()}
    promise = ask.named("epsilon delta protects")
    return PrivateSearchCV(
        clf, grid, **promise, **wishes.search, random_state=ask.seed, ledger=book
    )


def _found(search: Any) -> Iterator[tuple[str, str]]:
    """What a search came to, a line a fit."""

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
    """--schema! --constraint --epsilon=1.0 --rows --shares --json | --target --sensitive
    --method=primal-dual --model=auto --objective --set --delta=1e-6 --protects=records
    --out --force""",
    "fairveil plan --schema t.toml --constraint demographic_parity:0.05",
    "fairveil plan --schema t.toml --rows 5000 --shares sex=f:0.3,m:0.7",
    "fairveil plan --schema t.toml --constraint equalized_odds:0.1 --out plan.html",
)
def plan(ask: Ask) -> None:
    """Plan a fit before its budget is spent: its releases, their noise, and the smallest gaps that it
    can enforce and verify.

    It reads a schema and no table, and takes the options of `fairveil fit`.

    Exit status: 0 every required bound can be enforced, or none is required; 1 noise would hide one; 2
    refused.
    """
    from .asked import asked
    from .tables import with_roles

    wishes, schema = asked(ask), with_roles(ask)
    shares = _shares(ask.shares or (), schema)
    with working():
        found = wishes.built(schema=schema).plan(rows=ask.rows, shares=shares)
    deliver(ask, found)
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
    if ask.seed is not None:
        _checks.whole(seed=ask.seed)
    from ..estimators import load
    from ..estimators.pages import by_chance
    from .judged import shown_to
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
    twice = sorted(set(added) & set(kept))
    need(not twice, "keep", "another name", twice, "Leave it out of --keep.")
    content = _csv({**kept, **added})
    if ask.out is not None:
        write_files({ask.out: content})
        click.echo(f"Written: {ask.out} ({len(decided):,} rows)")
    if chance:
        again = f"by --seed {ask.seed}" if ask.seed is not None else "anew at every call"
        how = f"decisions were drawn from their distribution, {again}"
        note(f"note: this classifier is randomized: {how}")
    for part in content if ask.out is None else ():  # in UTF-8, as in a file
        click.echo(part, nl=False)


def _csv(columns: dict[str, Any]) -> Iterator[bytes]:
    """The file: its header, then some rows at a time."""

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
    --epsilons=0.5,1,3 --keep | --holdout=0.25 --delta=1e-6 --protects=records
    --seeds --query --ledger --dataset --purpose --force""",
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
    from .tables import Place, held_out, one_of_each, rows_of, split, with_roles

    require_folder(ask.out, SWEEP, force=ask.force)
    fix, there = "Name another: a folder for each model is made in it.", ask.keep
    free = there is None or not there.exists()
    need(free, "keep", "a folder that is not there yet", str(there), fix)
    given = ask.constraint or ["demographic_parity"]
    swept: Any = [parse(one) if ":" in one else one.strip().replace("-", "_") for one in given]
    steps, budgets = _numbers("gaps", ask.gaps), _numbers("epsilons", ask.epsilons)
    _checks.fraction(holdout=ask.holdout, low_open=True, high_open=True)
    schema, book = with_roles(ask), opened(ask)
    from ..estimators import FairClassifier
    from ..show.parts import listed
    from ..show.report import Report
    from ..study import frontier as study

    place, seed = Place(ask.table, ask.query), None if ask.seeds is None else 0
    with waiting("Reading the table"):
        rows, held = split(rows_of(schema, place), ask.holdout, seed)
        held = one_of_each(held, seed)
    promise = ask.named("delta protects")
    own = FairClassifier(schema=_less(schema, ask.holdout), ledger=book, **promise)
    done, figure = list[Any](), list[Any]()

    def save(folder: Path) -> None:
        _save_sweep(done[0], folder, ask.keep and folder / "models")

    with spending(ask, SWEEP, lambda: done[0].privacy if done else None, save, book) as made:
        assert made is not None
        one, how = swept[0] if len(swept) == 1 else swept, {"seeds": ask.seeds, "estimator": own}
        with working("Fitting the models") as notes:
            found = study(rows, constraint=one, gaps=steps, epsilons=budgets, test=held, **how)
            what = "their exact errors and gaps are shown beside the models"
            told = held_out(found.privacy, ask.holdout, seeded=seed is not None, measured=what)
            done.append(found := replace(found, privacy=told))
        if found.series:
            figure = found.shown(dataset=f"{found.held_out_rows:,} held-out rows")
        else:
            notes.append("There is no plot: every gap is undefined on the held-out rows.")
            note(f"note: {notes[-1]}")
        title = "What fairness and privacy cost"
        report = Report(
            f"{title}: {found.measure}",
            subject=on_one_line(f"Models of {place.shown}, one for every epsilon and bound."),
            statement=told,
            statement_file="statement.json",
            sections=((title, listed(*figure)),) if figure else (),
            notes=(found.summary, *notes),
        )
        made.free()
        _save_sweep(found, made.folder, ask.keep)
        if figure:
            (made.folder / "frontier.svg").write_text(f"{figure[0].to_svg()}\n", encoding="utf-8")
        report.write(made.folder / "report.html")
        made.move()
    models = "" if ask.keep is None else f"; models in {ask.keep}"
    files = f"frontier.json, {'frontier.svg, ' * bool(figure)}report.html, statement.json"
    print_lines(str(found))
    files = f"{files} of all models together{models}"
    print_facts(*written(ask.out, files, told, book))


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
    for number in found:
        fix = asked_back("max_gap", number, "--gaps {}") if number >= 1 else ""
        need(of != "gaps" or not fix, of, "bounds from 0 to below 1", text, fix)
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


# the demo

GAPS, EPSILONS = (0.15, 0.1, 0.05, 0.02), (0.5, 1.0, 3.0)
CHOSEN = (1.0, 0.05)
"""The certified model, on top of the page: epsilon and gap fixed here, before any data are seen."""
CERTAIN, SHARE, DELTA, PEOPLE = 0.95, 0.25, 5e-10, 60_000
LAW: Any = {"informative": 4.0, "separation": 1.0}
"""A category tells much of the label and nothing of the group, numbers tell of both: fairness has a
price, and a fit can pay it."""


@command("Models", "--out=demo --seed", "fairveil demo", "fairveil demo --out census --seed 0")
def demo(ask: Ask) -> None:
    """Fit a model of made-up people that is fair to groups and private to everybody, and certify it;
    below it a sweep with its own price.

    Exit status: 0 written, 2 refused.
    """
    require_folder(ask.out, SWEEP, force=True)
    from .. import data
    from ..estimators import FairClassifier, save
    from ..fairness import DemographicParity
    from ..models.folders import Staged
    from ..study import frontier as study
    from .judged import facts
    from .tables import split

    started, people = time.monotonic(), data.synthetic.GroupedClasses(**LAW)
    train, held = split(data.encode(people.draw(PEOPLE, 0), people.schema()), SHARE, ask.seed)
    known: Any = {"delta": DELTA, "schema": people.schema(round(PEOPLE * (1 - SHARE)))}
    asked = DemographicParity(CHOSEN[1], confidence=CERTAIN)
    click.echo(f"Data: {PEOPLE:,} people who do not exist")
    click.echo(f"One model to be certified, then {len(EPSILONS) * len(GAPS)} private ones ...")
    sweep: Any = {"gaps": GAPS, "test": held, "estimator": FairClassifier(**known)}
    with working("Fitting the models") as notes:
        clf = FairClassifier(asked, epsilon=CHOSEN[0], random_state=ask.seed, **known)
        clf.fit(train)
        seeds = None if ask.seed is None else (ask.seed,)
        found = study(train, epsilons=EPSILONS, seeds=seeds, **sweep)
        free = study(train, epsilons=(math.inf,), seeds=(0,), **sweep)  # without noise: no seed
    report = _demo_report(found, free, clf, held, notes)
    said = tuple(facts(report))
    with Staged(ask.out, replaces=SWEEP) as made:
        save(clf, made.folder)
        (made.folder / SWEEP).write_text(found.to_json(), encoding="utf-8")
        found.privacy.write(made.folder / "all_models.json")
        report.write(made.folder / "report.html")
        made.move()
    files = "report.html, a model, its statement, all_models.json"
    print_facts(*said, ("the sweep", found.summary), *written(ask.out, files, clf.privacy_, None))
    seconds = time.monotonic() - started
    print_facts(("done", f"in {seconds:.0f} s: open {ask.out / 'report.html'}"))


def _demo_report(found: Any, free: Any, clf: Any, held: Any, notes: list[str]) -> Any:
    from ..show.parts import Note, listed
    from .judged import report_of

    title = "A fair and private model of made-up people"
    subject = "Steps of three numbers; a quarter of the people held out. Privacy is record-level."
    shown = replace(found, published=free.series).shown(dataset="Made-up people")
    price = Note(f"The price of this sweep, apart from the model above: {found.summary}")
    return replace(
        report_of(clf, title, subject, held, notes),
        method="RaCO-DP, an additive model, to be certified",
        sections=(("The sweep: what fairness and privacy cost", listed(price, *shown)),),
        not_covered=(
            f"The models of the sweep: {found.price} (all_models.json), which is beside the "
            f"statement of the model above.",
            "The curve that is fair, not private: fitted without noise, to compare with.",
        ),
        verify=("fairveil verify all_models.json",),
        notes=("Bound and budget on top were chosen before any data were seen.", *notes),
    )
