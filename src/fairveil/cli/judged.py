"""Saved models and their decisions: what they read of a table, whose decisions a command looks at, how
they are measured, and the page of a fit with the few lines of it that are printed.

A randomized model has an exact distribution for each row: `predict` draws from it and says so, `audit`
measures expected rates, which have no draw's luck in them. A model that reads groups when it decides
gets them from the table's columns. What is printed of a fit are words of its page (`show.report`), so
that the page and the terminal never differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._waiting import waiting
from ..estimators import load
from ..estimators.coding import Coding, SchemaCoding, TableCoding
from ..estimators.pages import by_chance, page_of
from ..facts import Cells
from ..fairness import Notion
from ..fairness.systems import resolve
from ..metrics import GroupTable, group_table
from ..metrics.inputs import read_decisions
from ..metrics.measures import tally
from ..metrics.tables import largest
from ..models import PostProcessedModel
from ..models.model import draw_codes
from ..show.parts import told
from ..show.report import NOTHING_REQUIRED, SET_ASIDE, People, Report
from .files import on_one_line
from .frame import Ask, need, wrong
from .tables import Columns, Place, Truth, named_roles, picked, rows_of, schema_of, truth_of

if TYPE_CHECKING:
    from ..estimators.wrapped import Made

ELSEWHERE = "-"
"""In place of a folder of a model: decisions are a column."""
CONFIDENCE = 0.95
HELD_OUT = "--holdout 0.25 measures it on rows that the fit has not seen"
REQUIRE = "nothing was required; --constraint demographic_parity:5% requires something"


def coding_of(clf: Any) -> Coding | None:
    """How the model's features are coded; None where they are another library's affair."""
    inside = getattr(clf, "estimator_", None)
    return getattr(clf, "coding_", None) if inside is None else coding_of(inside)


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Shown:
    """Rows as a model takes them: `features`, and the groups where it reads them."""

    clf: Any
    features: Any
    groups: Columns | None = None

    def law(self) -> Any:
        """The probability of each class; of a randomized model the distribution of decisions."""
        return np.asarray(self.clf.predict_proba(self.features, **self._groups()), np.float64)

    def drawn(self, law: Any, seed: int | None) -> Any:
        """One draw for each row, as the estimator's `predict(random_state=seed)` draws."""
        return np.asarray(self.clf.classes_[draw_codes(law, seed)])

    def decisions(self) -> Any:
        """What a model without chance decides."""
        return np.asarray(self.clf.predict(self.features, **self._groups()))

    def judged(self) -> Any:
        """What an audit takes: decisions, or the distribution of a randomized model."""
        return self.law() if by_chance(self.clf) else self.decisions()

    def _groups(self) -> dict[str, Any]:
        return {} if self.groups is None else {"sensitive_features": self.groups}


def shown_to(clf: Any, place: Place) -> Shown:
    """The rows of a place, coded by the model's schema, else the columns that it was fitted to."""
    model, coding = clf.model_, coding_of(clf)
    cells = model.cells if isinstance(model, PostProcessedModel) else None
    if cells is None and model is not None and model.reads_groups:
        cells = clf.cells_
    names = () if cells is None else cells.names
    if isinstance(coding, SchemaCoding):
        how = coding.encoding
        schema = how.schema.without(*([how.schema.target] if how.schema.target else []))
        if not (how.sensitive_as_feature or names):
            schema = schema.without(*schema.sensitive)
        more = {"sensitive_as_feature": how.sensitive_as_feature, "precision": how.precision}
        rows: Any = place.coded(schema, **more)
        return Shown(clf, rows, truth_of(rows).groups if names else None)
    if not isinstance(coding, TableCoding):
        fix = "Predict in Python, from rows coded as those of the fit were."
        raise wrong("model", "a model of a table", "one of coded rows", fix)
    words = [feature.name for feature in coding.features if feature.values is not None]
    for name, values in zip(names, () if cells is None else cells.columns, strict=True):
        words += [name] if all(isinstance(value, str) for value in values) else []
    columns = place.columns(words)
    features = picked(columns, [one.name for one in coding.features], place.shown, "TABLE")
    return Shown(clf, features, picked(columns, names, place.shown, "TABLE") if names else None)


# whose decisions a command looks at


def decisions_of(ask: Ask, place: Place) -> tuple[Truth, Any, Any, bool]:
    """Labels, groups, decisions (or the distribution of those made by chance), the known classes, and
    whether it is a distribution: of a column, or of a saved model."""
    if ask.model in (None, ELSEWHERE):
        roles = named_roles(ask, schema_of(ask.schema))
        return (*_columns(place, roles, ask.prediction), None, False)
    clf = load(Path(ask.model))
    truth = _truth(clf, place, ask)
    return truth, shown_to(clf, place).judged(), clf.classes_.tolist(), by_chance(clf)


def drawn_decisions(ask: Ask, place: Place) -> tuple[Truth, Made]:
    """Labels, groups and decisions, before anything is counted; of a randomized model one draw a
    person."""
    from ..estimators.wrapped import GIVEN, Made

    with waiting("Reading the table"):
        if ask.model in (None, ELSEWHERE):
            truth, decisions, _, _ = decisions_of(ask, place)
            return truth, Made(decisions, GIVEN, ())
        clf = load(Path(ask.model))
        truth, shown = _truth(clf, place, ask), shown_to(clf, place)
        decided = shown.drawn(shown.law(), ask.seed) if by_chance(clf) else shown.decisions()
    known = clf.cells_ if clf.cells_ and set(clf.cells_.names) == set(truth.groups) else None
    return truth, Made(decided, type(clf).__name__, tuple(clf.classes_.tolist()), known)


def _truth(clf: Any, place: Place, ask: Ask) -> Truth:
    """Labels and groups: by the model's schema where it has one and names them, else as they come."""
    coding = coding_of(clf)
    schema = coding.encoding.schema if isinstance(coding, SchemaCoding) else None
    of_model = () if clf.cells_ is None else clf.cells_.names
    target = ask.target or (None if schema is None else schema.target)
    groups = tuple(ask.sensitive or (of_model if schema is None else schema.sensitive))
    label, _ = named_roles(Ask(target=target, sensitive=groups), None)
    if schema is not None and {*groups} <= {*schema.sensitive} and label == schema.target:
        _require_sensitive(groups)
        unused = [name for name in schema.sensitive if name not in groups]
        known = schema.with_roles(target=label, sensitive=groups).without(*unused)
        return truth_of(rows_of(known, place, persons=False))
    words = all(isinstance(one, str) for one in clf.classes_.tolist())
    return _columns(place, (label, groups), None, words)[0]


def _columns(
    place: Place, roles: tuple[str, tuple[str, ...]], prediction: str | None, words: bool = False
) -> tuple[Truth, Any]:
    """Labels and groups as they come, and a column of decisions."""
    target, sensitive = roles
    _require_sensitive(sensitive)
    more = [] if prediction is None else [prediction]
    columns = place.columns([target] if words else [], only={target, *more, *sensitive})
    labels = picked(columns, [target], place.shown, "target")[target]
    decided = picked(columns, more, place.shown, "prediction")
    groups = picked(columns, sensitive, place.shown, "sensitive")
    need(len(labels), place.shown, "some rows", "none", "Pass a table with rows.")
    return Truth(labels, groups), decided.get(prediction or "")


def _require_sensitive(groups: tuple[str, ...]) -> None:
    fix = "Name the column that makes groups: --sensitive sex, for example."
    need(groups, "sensitive", "a column", None, fix)


# what is measured of them


def measure(
    notion: Notion,
    truth: Truth,
    prediction: Any,
    *,
    groups: Cells | str = "product",
    classes: Sequence[Hashable] | None = None,
) -> tuple[float, float, float]:
    """The exact value of a notion on decisions (the largest of its constraints'; NaN where a rate is
    undefined), and an interval that holds the population's with confidence 95 % or more."""
    columns: Any = truth.groups or np.zeros(len(prediction))
    read = read_decisions(truth.labels, prediction, columns, groups=groups, classes=classes)
    system = resolve(notion, read.cells, read.classes)
    value, low, high = largest(system, *tally(read), CONFIDENCE)
    return value, low, high


def table_of(
    truth: Truth, prediction: Any, *, groups: Cells | str = "product", classes: Any = None
) -> GroupTable:
    """The group table; without groups everyone is in one."""
    everyone: Any = {"everyone": np.full(len(truth.labels), "everyone", dtype=object)}
    how, columns = groups if truth.groups else "product", truth.groups or everyone
    return group_table(truth.labels, prediction, columns, groups=how, classes=classes)


def report_of(clf: Any, title: str, subject: str, held: Any, notes: Sequence[str]) -> Report:
    """The page of a fit: what was promised, required, seen in training and measured on rows that
    were not trained on."""
    on_held, people = None, tuple[People, ...]()
    if held is not None:
        # the held-out rows bring their groups with them: those are what a group-aware model reads
        truth, prediction = truth_of(held), Shown(clf, held).judged()
        how: Any = {"groups": clf.cells_ or "product", "classes": clf.classes_.tolist()}
        people = (People(table_of(truth, prediction, **how), expected=by_chance(clf)),)

        def on_held(notion: Notion) -> tuple[float, float, float]:
            return measure(notion, truth, prediction, **how)

    page = page_of(clf, None, on_held)
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
        required = label == "fairness" and one.words.startswith(("Required: ", SET_ASIDE))
        if label == "warning" or required or (first and label in ("fairness", "privacy", "error")):
            yield label if label not in seen or label == "warning" else "", words
        elif label == "not assessed" and "held" in words:
            yield label, f"{words}; {HELD_OUT}"
        seen.add(label)
