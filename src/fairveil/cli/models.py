"""Saved models: what they read of a table, whether they decide by chance, and whose decisions a
command looks at.

A randomized model has an exact distribution for each row: `predict` draws from it and says so, `audit`
measures expected rates, which have no draw's luck in them. A model that reads groups when it decides
gets them from the table's columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..estimators import load
from ..estimators.coding import Coding, SchemaCoding, TableCoding
from ..estimators.pages import by_chance
from ..facts import Cells
from ..models import PostProcessedModel
from ..models.model import draw_codes
from .frame import Ask, wrong
from .tables import Columns, Place, Truth, named_roles, picked, rows_of, schema_of, truth_of

if TYPE_CHECKING:
    from ..estimators.wrapped import Made

ELSEWHERE = "-"
"""In place of a folder of a model: decisions are a column."""


def coding_of(clf: Any) -> Coding | None:
    """How the model's features are coded; None where they are another library's affair."""
    inside = getattr(clf, "estimator_", None)
    return getattr(clf, "coding_", None) if inside is None else coding_of(inside)


def groups_read(clf: Any) -> Cells | None:
    """The groups by which a model decides; None where it does not read them."""
    model = clf.model_
    if isinstance(model, PostProcessedModel):
        return model.cells
    return clf.cells_ if model is not None and model.reads_groups else None


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
    cells, coding = groups_read(clf), coding_of(clf)
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
        return (
            *_columns(place, named_roles(ask, schema_of(ask.schema)), ask.prediction),
            None,
            False,
        )
    clf = load(Path(ask.model))
    truth = _truth(clf, place, ask)
    return truth, shown_to(clf, place).judged(), clf.classes_.tolist(), by_chance(clf)


def drawn_decisions(ask: Ask, place: Place) -> tuple[Truth, Made]:
    """Labels, groups and decisions; of a randomized model one draw a person."""
    from ..estimators.wrapped import GIVEN, Made

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
    if not len(labels):
        raise wrong(place.shown, "some rows", "none", "Pass a table with rows.")
    return Truth(labels, groups), decided.get(prediction or "")


def _require_sensitive(groups: tuple[str, ...]) -> None:
    if not groups:
        fix = "Name the column that makes groups: --sensitive sex, for example."
        raise wrong("sensitive", "a column", None, fix)
