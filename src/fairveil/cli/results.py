"""What a fit came to: the page's parts (required, seen in training, measured on held-out rows), and the
few lines that are printed.

    fairness    met: Required: the selection rates of any two groups of sex differ by at most 5.0 points
    privacy     Epsilon = 1 of a budget of 1 was spent at delta = 1e-6; protected: records
    error       Of 2,014 held-out people, 14.9% are decided wrongly (95% interval ...)
    written     model (model, statement.json, report.html); check: fairveil verify ...

Words and numbers are those of the page (`show.report`), so that the page and the terminal never
differ.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._verdicts import MET, NOT_MET, UNCLEAR, together
from ..estimators.coding import parts_of
from ..facts import Cells
from ..fairness import Notion
from ..fairness.notions import (
    BoundedGroupLoss,
    FalseNegativeRate,
    GapNotion,
    RateConstraint,
    uses_groups,
)
from ..fairness.sentences import sentence
from ..fairness.systems import resolve
from ..methods.systems import NO_GROUPS
from ..metrics import GroupTable, group_table
from ..metrics.inputs import read_decisions
from ..metrics.measures import tally
from ..metrics.tables import largest
from ..models import MixtureModel
from ..show.charts import Axis
from ..show.parts import Column, Table, listed, told
from ..show.report import GAP, NOTHING_REQUIRED, People, Report, Requirement
from .files import on_one_line
from .models import Shown, by_chance
from .tables import Truth, truth_of

CONFIDENCE = 0.95
HELD_OUT = "--holdout 0.25 measures it on rows that the fit has not seen"
REQUIRE = "nothing was required; --constraint demographic_parity:5% requires something"
EXPECTED = (
    "The held-out value is the expected one: this classifier is randomized, and one draw varies "
    "around it."
)
UNDEFINED = "Undefined on the held-out rows: a group has no row of a kind that should be compared."


class Measured(NamedTuple):
    """The largest value of a notion's constraints, with an interval; NaN where a rate is
    undefined."""

    value: float
    low: float
    high: float


def measure(
    notion: Notion,
    truth: Truth,
    prediction: Any,
    *,
    groups: Cells | str = "product",
    classes: Sequence[Hashable] | None = None,
) -> Measured:
    """The exact value of a notion on decisions, and an interval that holds the population's with
    confidence 95 % or more."""
    columns: Any = truth.groups or np.zeros(len(prediction))
    read = read_decisions(truth.labels, prediction, columns, groups=groups, classes=classes)
    system = resolve(notion, read.cells, read.classes)
    return Measured(*largest(system, *tally(read), CONFIDENCE))


def table_of(
    truth: Truth, prediction: Any, *, groups: Cells | str = "product", classes: Any = None
) -> GroupTable:
    """The group table; without groups everyone is in one."""
    everyone: Any = {"everyone": np.full(len(truth.labels), "everyone", dtype=object)}
    how = groups if truth.groups else "product"
    columns = truth.groups or everyone
    return group_table(truth.labels, prediction, columns, groups=how, classes=classes)


def words_of(notion: Notion) -> str:
    """The notion's name in words."""
    return notion.kind.replace("_", " ")


def bound_of(notion: Notion) -> float | None:
    """What a notion requires; None where it requires nothing.

    >>> bound_of(FalseNegativeRate(0.2))
    0.2
    """
    bounds = [v for name, v in vars(notion).items() if name.startswith("max_") or name == "bound"]
    empty = not bounds or bounds[0] is None or notion.is_vacuous
    return None if empty else float(bounds[0])


def _named(notion: Notion) -> tuple[str, Axis]:
    """What a page calls the notion's value, and in which unit: name and measure make one phrase."""
    name = on_one_line(words_of(notion))
    match notion:
        case GapNotion():
            return name, GAP
        case FalseNegativeRate():
            return "false negative", Axis("rate", "percent")
        case BoundedGroupLoss(loss="zero_one"):
            return "largest group's", Axis("error", "percent")
        case RateConstraint():
            return name, Axis("value", "points")
    return name, Axis("value")


def figures_of(
    clf: Any, notions: Sequence[Notion], truth: Truth | None, prediction: Any
) -> Iterator[Requirement]:
    """A figure for each notion (required, measured in training with noise, and on held-out rows),
    then for each other bound that was required. Where a gap is penalized, nothing was required."""
    report, said, classes = getattr(clf, "constraint_report_", None), set(), clf.classes_.tolist()
    for notion in notions:
        if clf.cells_ is None and (report is None or uses_groups(notion)):
            continue  # nothing was distinguished; the notes say so
        names = set(resolve(notion, clf.cells_ or NO_GROUPS, classes).names)
        own = [] if report is None else [one for one in report.lines if one.target in names]
        said |= {line.target for line in own}
        if report is None and clf.gap_report_.largest is not None:
            own = [clf.gap_report_.largest]
        held, notes = None, tuple[str, ...]()
        if truth is not None:
            groups = clf.cells_ or "product"
            held = measure(notion, truth, prediction, groups=groups, classes=classes)
            undefined = math.isnan(held.value)
            notes = (UNDEFINED,) if undefined else (EXPECTED,) * by_chance(clf)
            held = None if undefined else held
        target = None if report is None else bound_of(notion)
        known = [one for one in own if not math.isnan(one.value)]
        worst = max(known, key=lambda one: one.value, default=None)
        if target is None and worst is None and held is None:
            continue
        more: dict[str, Any] = {}
        if held is not None:
            more = {f"held_out{end}": v for end, v in zip(("", "_low", "_high"), held, strict=True)}
        if target is not None:
            more["sentence"] = on_one_line(sentence(notion, clf.cells_, classes))
        if target is not None and worst is not None:
            more["training_verdict"] = _together(one.verdict for one in own)
            more["population_verdict"] = _together(one.population_verdict for one in own)
        name, unit = _named(notion)
        yield Requirement(
            name,
            target,
            None if worst is None else max(worst.value, 0.0),
            confidence=CONFIDENCE,
            notes=notes,
            measure=unit,
            training_noise=None if worst is None else worst.noise,
            **more,
        )
    certified = parts_of(clf).certificate is not None  # whose lines are of the tighter aims
    for line in () if report is None or certified else report.lines:
        if line.target not in said and not math.isnan(line.bound):
            yield _other(line)


def _together(verdicts: Iterator[Any]) -> Any:
    found = list(verdicts)
    return {True: MET, False: NOT_MET, None: UNCLEAR}[together(found)] if found else None


def _other(line: Any) -> Requirement:
    """Of a bound on an objective, or on a group's loss: as it was released in training."""
    known = not math.isnan(line.value)
    return Requirement(
        on_one_line(line.target.partition(" <=")[0].replace("_", " ")),
        line.bound,
        line.value if known else None,
        measure=Axis("value"),
        training_noise=line.noise if known else None,
        training_verdict=line.verdict,
        sentence=on_one_line(line.target),
        population_verdict=line.population_verdict,
    )


def report_of(
    clf: Any, title: str, subject: str, notions: Sequence[Notion], held: Any, notes: Sequence[str]
) -> Report:
    """The page of a fit: what was promised, required, seen in training and measured on rows that
    were not trained on."""
    truth = prediction = None
    if held is not None:
        # the held-out rows bring their groups with them: those are what a group-aware model reads
        truth, prediction = truth_of(held), Shown(clf, held).judged()
    figures, tables = list(figures_of(clf, notions, truth, prediction)), []
    if truth is not None:
        classes: Any = clf.classes_.tolist()
        table = table_of(truth, prediction, groups=clf.cells_ or "product", classes=classes)
        tables.append(People(table, expected=by_chance(clf)))
    own = parts_of(clf)
    return Report(
        on_one_line(title),
        subject=on_one_line(subject),
        method=type(clf).__name__,
        statement=clf.privacy_,
        statement_file="statement.json",
        required=tuple(figures),
        people=tuple(tables),
        baselines=own.baselines,
        certificate=own.certificate,
        sections=tuple(_sections(clf)),
        notes=(*notes, *_remarks(clf, measured=truth is not None)),
    )


def _sections(clf: Any) -> Iterator[tuple[str, Any]]:
    """What else a fit says of itself: bounds that are certain, shares of groups, the coefficients of
    one linear score, and the curves of an additive one."""
    guarantee = getattr(clf, "guarantee_", None) or getattr(clf, "certain_", None)
    if guarantee is not None:
        yield "What is certain", guarantee
    if hasattr(clf, "tailoring_"):
        yield "What each group spends", clf.tailoring_
    if not hasattr(clf, "coef_") or clf.model_ is None or len(clf.coef_) != 1:
        return
    if clf.coding_.shapes is not None:
        yield "What each number adds", listed(*(term.chart() for term in clf.terms()))
    names = ("(intercept)", *map(on_one_line, clf.coef_names_))
    weights = (float(clf.intercept_[0]), *clf.coef_[0].tolist())
    about = "A positive weight moves decisions towards the second class"
    table = Table((Column("feature", names), Column("weight", weights, "weight")), about)
    yield "Coefficients of the linear score", listed(table)


def _remarks(clf: Any, *, measured: bool) -> Iterator[str]:
    """Sentences about a fitted model for the notes of its page."""
    if isinstance(clf.model_, MixtureModel) and by_chance(clf):
        yield f"The mixture has {len(clf.model_.models):,} rules; each decision is that of one of them."
    if by_chance(clf):
        rates, draws = "held-out rates are expected ones", "fairveil predict draws decisions"
        yield f"This is a randomized classifier: {rates if measured else draws}."


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """The decision statement of the page, in the order of weight, a line each: warnings, fairness,
    privacy, error."""
    label, seen = "", set[str]()
    for one in report.decision():
        first = bool(one.label)
        label = one.label.lower() or label
        words = REQUIRE if one.words == NOTHING_REQUIRED else told(one).removesuffix(".")
        required = label == "fairness" and one.words.startswith("Required: ")
        if label == "warning" or required or (first and label in ("fairness", "privacy", "error")):
            yield label if label not in seen or label == "warning" else "", words
        elif label == "not assessed" and "held" in words:
            yield label, f"{words}; {HELD_OUT}"
        seen.add(label)
