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

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..estimators.pages import by_chance, page_of
from ..facts import Cells
from ..fairness import Notion
from ..fairness.systems import resolve
from ..metrics import GroupTable, group_table
from ..metrics.inputs import read_decisions
from ..metrics.measures import tally
from ..metrics.tables import largest
from ..show.parts import told
from ..show.report import NOTHING_REQUIRED, People, Report
from .files import on_one_line
from .models import Shown
from .tables import Truth, truth_of

CONFIDENCE = 0.95
HELD_OUT = "--holdout 0.25 measures it on rows that the fit has not seen"
REQUIRE = "nothing was required; --constraint demographic_parity:5% requires something"


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


def report_of(
    clf: Any, title: str, subject: str, notions: Sequence[Notion], held: Any, notes: Sequence[str]
) -> Report:
    """The page of a fit: what was promised, required, seen in training and measured on rows that
    were not trained on."""
    on_held, people = None, tuple[People, ...]()
    if held is not None:
        # the held-out rows bring their groups with them: those are what a group-aware model reads
        truth, prediction = truth_of(held), Shown(clf, held).judged()
        how: Any = {"groups": clf.cells_ or "product", "classes": clf.classes_.tolist()}
        people = (People(table_of(truth, prediction, **how), expected=by_chance(clf)),)

        def on_held(notion: Notion) -> Measured:
            return measure(notion, truth, prediction, **how)

    page = page_of(clf, notions, on_held)
    return replace(
        page,
        title=on_one_line(title),
        subject=on_one_line(subject),
        method=type(clf).__name__,
        statement_file="statement.json",
        people=people,
        notes=(*notes, *page.notes),
    )


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
