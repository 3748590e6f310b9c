"""`fairveil fit`: a table in; a model, its privacy statement and a report out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from . import fit_options as asking
from . import options

if TYPE_CHECKING:
    from ..models.folders import Staged
    from ..show.parts import Shown
    from ..show.report import Report
    from ..statement.document import PrivacyStatement
    from .deciding import Fitted
    from .method_options import FitRequest
    from .methods import Method
    from .persons import PersonColumn, Values
    from .samples import Roles, Sample
    from .tables import Place

MARK = "estimator.json"


def fit(
    table: options.TableArgument,
    out: options.Out,
    schema: options.SchemaFile = None,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    constraint: asking.Constraint = None,
    method: asking.Method = "rate-constrained",
    model: asking.Model = "linear",
    interaction: asking.Interaction = None,
    notion: asking.Notion = None,
    strength: asking.Strength = None,
    objective: asking.Objective = None,
    search: asking.Search = None,
    decisions: asking.Decisions = None,
    allocation: asking.Allocation = None,
    spend: asking.Spend = None,
    group_loss_bound: asking.GroupLossBound = None,
    min_epsilon: asking.MinEpsilon = None,
    max_epsilon: asking.MaxEpsilon = None,
    groups: asking.Groups = None,
    randomised: asking.Randomised = None,
    predict_method: asking.PredictMethod = None,
    group_aware: asking.GroupAware = None,
    confidence: asking.Confidence = None,
    certify_share: asking.CertifyShare = None,
    if_refused: asking.IfRefused = None,
    certify: asking.Certify = None,
    epsilon: asking.Epsilon = 1.0,
    delta: options.Delta = 1e-6,
    protects: options.Protects = "records",
    neighbours: options.Neighbours = None,
    public_rows: options.PublicRows = None,
    unit: options.Unit = None,
    max_rows_per_unit: options.MaxRowsPerUnit = None,
    query: options.Query = None,
    scheduler: asking.Scheduler = None,
    test: options.TestTable = None,
    test_query: options.TestQuery = None,
    holdout: options.HoldOut = 0.0,
    ignore: options.Ignore = None,
    tuning: asking.Tuning = None,
    earlier_releases: asking.EarlierReleases = None,
    seed: options.Seed = None,
    unsafe: options.Unsafe = False,
    ledger: options.LedgerUrl = None,
    dataset: options.LedgerDataset = None,
    purpose: options.Purpose = None,
    verbose: options.Verbose = False,
    force: options.Force = False,
) -> None:
    """Fit a fair and private classifier; write the model, its statement and report.html to a
    folder, whole or not at all.

    It prints a line a fact: what is met, what privacy it cost, the error beside simpler models,
    gaps that were not required.

    Exit status: 0 written; 2 refused, nothing written or spent; 3 spent, but written to another
    folder, which is named on standard error.
    """
    from .. import _checks
    from .._waiting import waiting
    from ..estimators import save
    from . import persons
    from .by_group import resolved
    from .certify import certificate_facts
    from .folders import require_free, staged
    from .ledger_option import opened
    from .method_options import FitOptions
    from .methods import METHODS
    from .printing import print_facts
    from .rescue import already_charged
    from .samples import Roles
    from .summary import facts
    from .written import written

    chosen = METHODS[_checks.one_of(tuple(METHODS), method=method)]
    require_free(out, force=force, mark=MARK)
    options.require_words(tuning=tuning, earlier_releases=earlier_releases)
    shared = (
        allocation,
        spend,
        group_loss_bound,
        min_epsilon,
        max_epsilon,
        groups,
        randomised,
        predict_method,
        group_aware,
    )
    wishes = FitOptions(
        constraint,
        notion,
        strength,
        objective,
        search,
        decisions,
        *shared,
        confidence,
        certify_share,
        if_refused,
        certify,
    )
    asked = chosen.asked(wishes)
    asked = chosen.with_model(asked, model, interaction)
    place, other = (
        options.place_of(table, query),
        options.test_place(table, test, test_query, holdout),
    )
    book = opened(ledger, dataset, purpose)
    roles = Roles.of(options.schema_of(schema), target, sensitive, ignore)
    told = persons.PersonColumn.of(unit, max_rows_per_unit, roles.schema)
    if told is not None:
        roles = replace(roles, schema=told.of_schema(roles.schema))
    rows = public_rows if public_rows is not None or told is not None else roles.public_rows
    with waiting("Reading the table"):
        sample, people, held = _read(roles, told, place, other, scheduler, seed)
    if holdout:
        if people is None:
            sample, held = sample.split(holdout, seed)
        else:
            sample, held, people, apart = persons.split(sample, people, holdout, seed)
            held = persons.one_of_each(held, apart, seed)
    if held is not None:
        sample.require_like(held, "--holdout" if holdout else "--test")
    clf = chosen.built(
        **asked.arguments
        | resolved(asked.by_group, asked.arguments.get("groups", "product"), sample),
        epsilon=epsilon,
        delta=delta,
        protects=options.protection(protects),
        neighbours=neighbours,
        # Coins take a known share of the rows off, so the rest is about as public as the whole.
        public_rows=None if rows is None else max(1, round(rows * (1 - holdout))),
        **persons.arguments(told, people, sample),
        unsafe_data_dependent_bounds=unsafe,
        random_state=seed,
        ledger=book,
    )
    X, y, sensitive_features = sample.fit_arguments
    described = partial(
        _described,
        holdout=holdout,
        measured=held is not None,
        tuning=tuning,
        earlier_releases=earlier_releases,
        seeded=seed is not None,
        rows_are="argument" if public_rows is not None else None if rows is None else "schema",
    )

    def done() -> PrivacyStatement | None:
        return (
            described(clf).privacy_ if hasattr(clf, "privacy_") and hasattr(clf, "model_") else None
        )

    # The folder and its room are taken first: a budget that is spent is not given back for a full
    # disk.
    with (
        staged(out, force=force, mark=MARK) as made,
        already_charged(out, done, lambda folder: save(described(clf), folder), book),
    ):
        with options.warnings_as_notes() as notes, waiting("Fitting"):
            clf.fit(X, y, sensitive_features=sensitive_features)
        with waiting("Measuring"):
            report = report_of(described(clf), chosen, asked, roles, held, place.shown, notes)
        known = tuple(facts(report))
        _write(clf, report, made)
    if verbose:
        typer.echo(f"{clf.privacy_.summary()}\n")
    print_facts(
        (
            *known,
            *certificate_facts(clf),
            *written(out, "model, statement.json, report.html", clf.privacy_, book),
        )
    )


def _read(
    roles: Roles,
    told: PersonColumn | None,
    place: Place,
    other: Place | None,
    scheduler: str | None,
    seed: int | None,
) -> tuple[Sample, Values | None, Sample | None]:
    """The rows to fit, whose they are, and the rows of a test table."""
    from . import persons
    from .scheduled import ScheduledSample

    sample = (
        roles.read(place) if scheduler is None else ScheduledSample.read(roles, place, scheduler)
    )
    held = None if other is None else roles.read(other, like=sample)
    if told is None:
        return sample, None, held
    sample, people = told.read(place, sample)
    if held is not None and other is not None:
        held, others = told.read(other, held)
        persons.require_others(people, others, has_names=not sample.knows_persons)
        assert others is not None
        held = persons.one_of_each(held, others, seed)
    return sample, people, held


def report_of(
    clf: Fitted,
    method: Method,
    asked: FitRequest,
    roles: Roles,
    held: Sample | None,
    source: str,
    notes: list[str],
) -> Report:
    """The page of a fit: what was promised, asked for, seen in training and measured on rows that
    were not trained on."""
    from ..estimators.reading.fitted_parts import parts_of
    from ..show.report import People, Report
    from .deciding import Shown, by_chance, guarantee_of
    from .few_rows import warn_of_few
    from .measured import losses_said, objectives_said, table_of
    from .methods import remarks
    from .required import figures_of

    truth = None if held is None else held.truth()
    # The held-out rows bring their groups with them, as columns or codes: those are what a model of
    # groups reads.
    prediction = None if held is None else Shown(clf, held.features, None).judged()
    classes: Any = clf.classes_.tolist()
    said = [*notes, *remarks(clf, measured=truth is not None)]
    said += [*objectives_said(clf, asked, truth, prediction), *losses_said(clf, held)]
    tables, gaps = [], figures_of(clf, method, asked, truth, prediction, held)
    if truth is not None:
        found_table = table_of(truth, prediction, groups=clf.cells_ or "product", classes=classes)
        tables.append(People(found_table, expected=by_chance(clf)))
        with options.warnings_as_notes() as few:
            warn_of_few(gaps, found_table)
        said += few
    return Report(
        f"Model report: {_line(roles.target)}",
        subject=_line(method.subject.format(source=source)),
        method=method.name,
        statement=clf.privacy_,
        statement_file="statement.json",
        required=tuple(gaps),
        people=tuple(tables),
        baselines=parts_of(clf).baselines,
        certificate=parts_of(clf).certificate,
        sections=tuple(_sections(clf, guarantee_of(clf))),
        notes=tuple(said),
    )


def _described(
    clf: Fitted,
    *,
    holdout: float,
    measured: bool,
    tuning: str | None,
    earlier_releases: str | None,
    seeded: bool,
    rows_are: str | None,
) -> Fitted:
    """What only this command knows goes into the statement, once."""
    from dataclasses import replace

    from .coins import in_words
    from .samples import with_rows_from

    what = "their exact errors, gaps and counts stand in report.html"
    if clf.privacy_.promise.unit is not None:
        what = f"one row of each of these persons was measured, drawn by a coin; {what}"
    outside: tuple[str, ...] = ()
    if holdout:
        promise = clf.privacy_.promise
        private, by_person = promise.neighbours == "add-remove", promise.unit is not None
        words = in_words(holdout, seeded=seeded, presence_is_private=private, by_person=by_person)
        outside = (f"rows held out: {words}; {what}",)
    elif measured:
        outside = (f"rows of a separate test table: {what}",)
    statement = clf.privacy_
    if outside and outside[0] in statement.not_covered:
        return clf
    clf.privacy_ = replace(
        statement,
        facts=with_rows_from(statement.facts, rows_are, holdout),
        not_covered=(*statement.not_covered, *outside),
        tuning=tuning or statement.tuning,
        earlier_releases=earlier_releases or statement.earlier_releases,
    )
    return clf


def _sections(clf: Fitted, guarantee: Any) -> Iterator[tuple[str, Shown]]:
    """What else a fit says of itself: bounds that are certain, shares of groups, coefficients of a
    model that is one linear classifier of two classes, and the curves of an additive one."""
    from ..estimators import TailoredClassifier
    from ..estimators.descending import DescentClassifier
    from ..show.parts import Column, Table, listed

    if guarantee is not None:
        yield "What is certain", guarantee
    if isinstance(clf, TailoredClassifier):
        yield "What each group spends", clf.tailoring_
    linear = isinstance(clf, DescentClassifier | TailoredClassifier) and hasattr(clf, "coef_")
    if not linear or len(clf.coef_) != 1:
        return
    if clf.coding_.shapes is not None:
        yield "What each number adds", listed(*(term.chart() for term in clf.terms()))
    names = ("(intercept)", *map(_line, clf.coef_names_))
    weights = (float(clf.intercept_[0]), *clf.coef_[0].tolist())
    about = "A positive weight moves decisions towards the second class"
    table = Table((Column("feature", names), Column("weight", weights, "weight")), about)
    yield "Coefficients of the linear score", listed(table)


def _write(clf: Fitted, report: Report, made: Staged) -> None:
    from ..estimators import save

    made.free()
    save(clf, made.folder)
    report.write(made.folder / "report.html")
    made.move()


def _line(text: str) -> str:
    """On one line that can be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in text).strip() or "?"
