"""`fairveil fit`: a table in; a model, its privacy statement and a report out."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from ..models.folders import Staged
    from ..privacy.statement import PrivacyStatement
    from ..report import Certainty, Payments, Report
    from .deciding import Fitted
    from .methods import Asked, Method
    from .samples import Roles, Sample

MARK = "estimator.json"


def fit(
    table: options.TableArgument,
    out: options.Out,
    schema: options.SchemaFile = None,
    target: options.Target = None,
    sensitive: options.Sensitive = None,
    constraint: Annotated[
        list[str] | None, typer.Option("--constraint", help="Such as demographic_parity:0.05 or demographic_parity:5%; again for more.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="rate-constrained, post-processing (decides by group and by chance), game (decides by chance), "
            "group-objective (G-mean and the like; by chance), fermi (a penalty), or tailored (a budget shared among groups). "
            "All are linear: networks are fitted in Python, model=. See docs."
        ),
    ] = "rate-constrained",
    notion: Annotated[
        str | None,
        typer.Option(
            help="Of fermi: demographic_parity, equalized_odds or equal_opportunity.", show_default="demographic_parity"
        ),
    ] = None,
    strength: Annotated[
        float | None, typer.Option(help="Of fermi: what the penalty is multiplied by.", show_default="1")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="Of group-objective, what is made small: error, gmean, hmean, largest_group_loss, false_negative_rate, or a "
            "gap such as equalized_odds. All of them, and gini, may be bounded by --constraint gmean:0.3. Of tailored: groups "
            "(each counts as much) or people.",
            show_default="error; tailored: groups",
        ),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            help="Of group-objective: linear-oracle or frank-wolfe (mixtures), or exponential (one decision of a list).",
            show_default="linear-oracle",
        ),
    ] = None,
    decisions: Annotated[
        str | None,
        typer.Option(
            help="Of group-objective: thresholds, directions or labellings.",
            show_default="any linear rules; exponential: thresholds",
        ),
    ] = None,
    allocation: Annotated[
        list[str] | None,
        typer.Option(
            help="Of tailored, how the budget is shared: least-noise, standard-error, equal or size; or GROUP:SHARE, again for "
            "each group.",
            show_default="least-noise",
        ),
    ] = None,
    spend: Annotated[
        str | None,
        typer.Option(help="Of tailored, epsilon is what is paid by the worst off person, or in total.", show_default="person"),
    ] = None,
    group_loss_bound: Annotated[
        list[str] | None,
        typer.Option(help="Of tailored: a bound on every group's mean log loss; or GROUP:BOUND, again for more."),
    ] = None,
    min_epsilon: Annotated[
        list[str] | None, typer.Option(help="Of tailored: what a group's people may pay at least, a number or GROUP:NUMBER.")
    ] = None,
    max_epsilon: Annotated[
        list[str] | None, typer.Option(help="Of tailored: what a group's people pay at most, a number or GROUP:NUMBER.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(help="Of tailored, with several sensitive columns: product or marginal.", show_default="product"),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The promise; inf is not private.")] = 1.0,
    delta: options.Delta = 1e-6,
    protects: options.Protects = "records",
    neighbours: options.Neighbours = None,
    public_rows: options.PublicRows = None,
    query: options.Query = None,
    test: options.TestTable = None,
    test_query: options.TestQuery = None,
    holdout: options.HoldOut = 0.0,
    ignore: options.Ignore = None,
    tuning: Annotated[str | None, typer.Option(help="A sentence for the statement: what was tried before.")] = None,
    earlier_releases: Annotated[str | None, typer.Option(help="A sentence for the statement: what is already out.")] = None,
    seed: options.Seed = None,
    unsafe: options.Unsafe = False,
    ledger: options.LedgerUrl = None,
    dataset: options.LedgerDataset = None,
    purpose: options.Purpose = None,
    force: options.Force = False,
) -> None:
    """Fit a fair and private classifier; write the model, its statement and report.html to a folder, whole or not at all.

    With --ledger the fit is recorded, and refused where that budget has no room for it. Exit status: 0 written; 2 refused: then
    nothing was written, and nothing spent; 3 spent, but written to another folder, which is named on standard error.
    """
    from .. import _checks
    from ..estimators import save
    from ..report.words import verdict
    from .by_group import resolved
    from .folders import require_free, staged
    from .ledger_option import opened, tell
    from .methods import METHODS, Wishes
    from .rescue import paid_for
    from .samples import Roles

    chosen = METHODS[_checks.one_of(tuple(METHODS), method=method)]
    require_free(out, force=force, mark=MARK)
    options.require_words(tuning=tuning, earlier_releases=earlier_releases)
    shared = (allocation, spend, group_loss_bound, min_epsilon, max_epsilon, groups)
    asked = chosen.asked(Wishes(constraint, notion, strength, objective, search, decisions, *shared))
    place, other = options.place_of(table, query), options.test_place(table, test, test_query, holdout)
    book = opened(ledger, dataset, purpose)
    roles = Roles.of(options.schema_of(schema), target, sensitive, ignore)
    rows = public_rows if public_rows is not None else roles.public_rows
    sample = roles.read(place)
    held = None if other is None else roles.read(other, like=sample)
    if holdout:
        sample, held = sample.split(holdout, seed)
    if held is not None:
        sample.require_like(held, "--holdout" if holdout else "--test")
    clf = chosen.made(
        **asked.arguments | resolved(asked.by_group, asked.arguments.get("groups", "product"), sample),
        epsilon=epsilon,
        delta=delta,
        protects=options.protection(protects),
        neighbours=neighbours,
        # Coins take a known share of the rows off, so the rest is about as public as the whole.
        public_rows=None if rows is None else max(1, round(rows * (1 - holdout))),
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
    )

    def done() -> PrivacyStatement | None:
        return described(clf).privacy_ if hasattr(clf, "privacy_") and hasattr(clf, "model_") else None

    # The folder and its room are taken first: a budget that is spent is not given back for a full disk.
    with (
        staged(out, force=force, mark=MARK) as made,
        paid_for(out, done, lambda folder: save(described(clf), folder), book),
    ):
        with options.warnings_as_notes() as notes:
            clf.fit(X, y, sensitive_features=sensitive_features)
        report = report_of(described(clf), chosen, asked, roles, held, place.shown, notes)
        _write(clf, report, made)
    typer.echo(verdict(report))
    typer.echo(f"Written: {out} (model, statement.json, report.html). Check it: fairveil verify {out / 'statement.json'}")
    tell(book, clf.privacy_)


def report_of(
    clf: Fitted, method: Method, asked: Asked, roles: Roles, held: Sample | None, source: str, notes: list[str]
) -> Report:
    """The page of a fit: what was promised, asked for, seen in training and measured on rows that were not trained on."""
    from ..fairness.notions import GapNotion
    from ..report import GroupSection, Report
    from .deciding import Shown, by_chance
    from .measured import (
        gap_figure,
        losses_said,
        measure,
        objectives_said,
        table_of,
        training_value,
        training_verdict,
        words_of,
    )
    from .methods import remarks

    truth = None if held is None else held.truth()
    # The held-out rows bring their groups with them, as columns or codes: those are what a model of groups reads.
    prediction = None if held is None else Shown(clf, held.features, None).judged()
    classes: Any = clf.classes_.tolist()
    gaps, said = [], [*notes, *remarks(clf, measured=truth is not None)]
    for notion in asked.notions:
        found = None
        if not method.bounds and clf.cells_ is None:  # nothing was told apart; the notes say so
            continue
        if truth is not None:
            found = measure(notion, truth, prediction, groups=clf.cells_ or "product", classes=classes)
        if isinstance(notion, GapNotion):
            gaps += gap_figure(clf, notion, found, bounded=method.bounds)
            continue
        training, noise = training_value(clf, notion)
        parts = [f"required: {notion}"]
        told = training_verdict(clf, notion)
        parts += [] if training is None else [f"largest noisy training value {training:.4f} (deviation {noise:.4f}): {told}"]
        if found is not None:
            seen = f"{found.value:.4f} ({found.low:.4f} to {found.high:.4f})"
            parts.append(f"on held-out rows {'undefined' if math.isnan(found.value) else seen}")
        said.append(f"{words_of(notion)}: {'; '.join(parts)}.".capitalize())
    said += [*objectives_said(clf, asked, truth, prediction), *losses_said(clf, held)]
    tables = []
    if truth is not None:
        found_table = table_of(truth, prediction, groups=clf.cells_ or "product", classes=classes)
        tables.append(GroupSection(found_table, expected=by_chance(clf)))
    return Report(
        f"Model report: {_line(roles.target)}",
        subject=_line(method.subject.format(source=source)),
        method=method.name,
        statement=clf.privacy_,
        statement_file="statement.json",
        gaps=tuple(gaps),
        tables=tuple(tables),
        guarantee=_certain(clf),
        payments=_payments(clf),
        coefficients=_coefficients(clf),
        notes=tuple(said),
    )


def _described(
    clf: Fitted, *, holdout: float, measured: bool, tuning: str | None, earlier_releases: str | None, seeded: bool
) -> Fitted:
    """What only this command knows goes into the statement, once."""
    from dataclasses import replace

    from .coins import in_words

    what = "their exact errors, gaps and counts stand in report.html"
    outside: tuple[str, ...] = ()
    if holdout:
        private = clf.privacy_.promise.neighbours == "add-remove"
        outside = (f"rows held out: {in_words(holdout, seeded=seeded, presence_is_private=private)}; {what}",)
    elif measured:
        outside = (f"rows of a separate test table: {what}",)
    statement = clf.privacy_
    if outside and outside[0] in statement.not_covered:
        return clf
    clf.privacy_ = replace(
        statement,
        not_covered=(*statement.not_covered, *outside),
        tuning=tuning or statement.tuning,
        earlier_releases=earlier_releases or statement.earlier_releases,
    )
    return clf


def _certain(clf: Fitted) -> Certainty | None:
    from ..report import certain
    from .deciding import guarantee_of

    found = guarantee_of(clf)
    return None if found is None else certain(found)


def _payments(clf: Fitted) -> Payments | None:
    from ..estimators import TailoredClassifier
    from ..report import payments

    return payments(clf.tailoring_) if isinstance(clf, TailoredClassifier) else None


def _coefficients(clf: Fitted) -> tuple[Any, ...]:
    """Those of the second of two classes, in the units of the table; of a model that is one linear classifier."""
    from ..estimators import TailoredClassifier
    from ..estimators.descending import DescentClassifier
    from ..report import Coefficient

    if not isinstance(clf, DescentClassifier | TailoredClassifier) or len(clf.classes_) != 2:
        return ()
    weights = [("(intercept)", float(clf.intercept_[0])), *zip(clf.coef_names_, clf.coef_[0].tolist(), strict=True)]
    return tuple(Coefficient(_line(name), weight) for name, weight in weights)


def _write(clf: Fitted, report: Report, made: Staged) -> None:
    from ..estimators import save
    from ..report import write

    made.free()
    save(clf, made.folder)
    write(made.folder / "report.html", report)
    made.move()


def _line(text: str) -> str:
    """On one line that can be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in text).strip() or "?"
