"""How a saved model decides the rows of a table: what it reads of them, and whether by chance.

A model that is randomized has a distribution for each row, exactly: `predict` draws from it and
says so, `audit` measures expected rates, which have no draw's luck in them. A model that reads
groups when it decides gets them from the table's columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._json import Document
from .._types import Floats
from ..errors import FairveilError, InputError
from ..estimators import (
    FermiClassifier,
    GroupObjectiveClassifier,
    OddsPostProcessor,
    OracleGameClassifier,
    ParityPostProcessor,
    RateConstrainedClassifier,
    TailoredClassifier,
    load,
)
from ..estimators.descending import DescentClassifier
from ..estimators.faces.coded import as_array
from ..estimators.reading.coding import Coding, SchemaCoding, TableCoding
from ..facts import Cells
from ..models import MixtureModel, PostProcessedModel
from ..models.folders import read_folder
from ..models.model import draw_codes
from .tables import Columns, Place, picked

if TYPE_CHECKING:
    from ..data import EncodedRows

Fitted = (
    RateConstrainedClassifier
    | FermiClassifier
    | OddsPostProcessor
    | OracleGameClassifier
    | ParityPostProcessor
    | GroupObjectiveClassifier
    | TailoredClassifier
)
MODULE = "a torch module"


def loaded(folder: Path) -> Fitted:
    """The estimator of a folder. Around classifiers that were made elsewhere, which are not
    written, no command can predict."""
    try:
        clf: Fitted = load(folder)
    except InputError:
        names = _made_elsewhere(folder)
        if not names:
            raise
        remedy = (
            "Decide in Python, where the model is loaded with what it needs, and audit the "
            "decisions: --prediction COLUMN."
        )
        expected = "a model that was saved with all it needs"
        got = f"one around {', '.join(names)}: made elsewhere and not written"
        raise InputError.expected(expected, of=str(folder), got=got, remedy=remedy) from None
    return clf


def _made_elsewhere(folder: Path) -> list[str]:
    """What a model needs and was not written: a base, candidates of a game, or the module of a
    network, its base's too."""
    head = {}
    for name in ("estimator.json", "base.estimator.json"):
        try:
            head[name] = Document(name, "").json(read_folder(folder, (name,))[name])
            if head[name]["parameters"].get("model") == "given":
                return [MODULE]
        except (FairveilError, LookupError, TypeError, AttributeError):
            continue
    try:
        content = head["estimator.json"]
        base, files = content.get("base"), content["sha256"]
        written = base is None or "base.estimator.json" in files
        return list(dict.fromkeys(map(str, content.get("candidates") or []))) + (
            [] if written else [str(base)]
        )
    except (LookupError, TypeError, AttributeError):
        return []  # something else is wrong, and has been said


def coding_of(clf: Fitted) -> Coding | None:
    """How the model's features are coded; None where they are another library's affair."""
    if isinstance(clf, OddsPostProcessor | ParityPostProcessor):
        inside = clf.estimator_
        ours = (
            DescentClassifier | OracleGameClassifier | GroupObjectiveClassifier | TailoredClassifier
        )
        return coding_of(inside) if isinstance(inside, ours) else None
    return clf.coding_


def groups_read(clf: Fitted) -> Cells | None:
    """The groups by which a model decides; None where it does not read them."""
    model = clf.model_
    if isinstance(model, PostProcessedModel):
        return model.cells
    return clf.cells_ if model is not None and model.reads_groups else None


def by_chance(clf: Fitted) -> bool:
    """Whether one row may be decided differently from one time to the next."""
    model: Any = clf.model_
    if isinstance(model, MixtureModel) and len(model.models) == 1:  # a single decision out of many
        model = model.models[0]
    return model is None or model.is_randomised  # no model: a mixture of candidates


def guarantee_of(clf: Fitted) -> object | None:
    """What is certain of a model, where theory says anything."""
    if isinstance(clf, GroupObjectiveClassifier):
        return clf.certain_
    return clf.guarantee_ if isinstance(clf, OddsPostProcessor | OracleGameClassifier) else None


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Shown:
    """Rows as a model takes them: `features`, and the groups where it reads them."""

    clf: Fitted
    features: Any
    groups: Columns | None

    def law(self) -> Floats:
        """The probability of each class, (rows, classes); of a model that is randomized the
        exact distribution of its decisions."""
        return np.asarray(self.clf.predict_proba(self.features, **self._groups()), np.float64)

    def drawn(self, law: Floats, seed: int | None) -> npt.NDArray[Any]:
        """One draw for each row, as the estimator's `predict(random_state=seed)` draws."""
        return np.asarray(self.clf.classes_[draw_codes(law, seed)])

    def decisions(self) -> npt.NDArray[Any]:
        """What a model without chance decides."""
        return np.asarray(self.clf.predict(self.features, **self._groups()))

    def judged(self) -> npt.NDArray[Any]:
        """What an audit takes: decisions, or the distribution of a model that is randomized."""
        return self.law() if by_chance(self.clf) else self.decisions()

    def _groups(self) -> dict[str, Any]:
        return {} if self.groups is None else {"sensitive_features": self.groups}


def shown_to(clf: Fitted, place: Place, sensitive: Sequence[str] | None) -> Shown:
    """The rows of a place, coded by the model's schema, else the columns that it was fitted to.
    `sensitive`: the columns that hold its groups, where they have other names here."""
    cells = groups_read(clf)
    coding = coding_of(clf)
    names = _group_columns(cells, sensitive)
    if isinstance(coding, SchemaCoding):
        return _by_schema(clf, coding, place, names)
    if not isinstance(coding, TableCoding):
        remedy = "Predict in Python, from rows coded as those of the fit were."
        raise InputError.expected(
            "a model of a table", of="model", got="a model of coded rows", remedy=remedy
        )
    words = [feature.name for feature in coding.features if feature.values is not None]
    if cells is not None:
        pairs = zip(names.values(), cells.columns, strict=True)
        words += [name for name, values in pairs if all(isinstance(value, str) for value in values)]
    columns = place.columns(words)
    _require_groups(columns, names, place)
    features = picked(columns, [feature.name for feature in coding.features], place.shown, "TABLE")
    return Shown(
        clf,
        features,
        None if cells is None else {name: columns[here] for name, here in names.items()},
    )


def _group_columns(cells: Cells | None, sensitive: Sequence[str] | None) -> dict[str, str]:
    """The model's group columns by name, and what each is called in the table."""
    if cells is None:
        if sensitive:
            remedy = "Leave it out: this model does not read groups when it decides."
            raise InputError.expected(
                "nothing", of="--sensitive", got=list(sensitive), remedy=remedy
            )
        return {}
    here = (
        list(cells.names)
        if not sensitive or set(sensitive) == set(cells.names)
        else list(sensitive)
    )
    if len(here) != len(cells.names) or len(set(here)) != len(here):
        remedy = "Name one column for each, in this order."
        expected = f"{len(cells.names)} distinct columns, for {', '.join(cells.names)}"
        raise InputError.expected(expected, of="--sensitive", got=here, remedy=remedy)
    return dict(zip(cells.names, here, strict=True))


def _require_groups(columns: Columns, names: dict[str, str], place: Place) -> None:
    lacking = [here for here in names.values() if here not in columns]
    if lacking:
        remedy = "Add them to the table, or say with --sensitive which columns hold the groups."
        expected = f"columns {lacking}: this model is group-aware"
        raise InputError.expected(expected, of=place.shown, got=list(columns), remedy=remedy)


def _by_schema(clf: Fitted, coding: SchemaCoding, place: Place, names: dict[str, str]) -> Shown:
    encoding = coding.encoding
    schema = encoding.schema
    keep = encoding.sensitive_as_feature or bool(names)
    absent = [*([schema.target] if schema.target else []), *(() if keep else schema.sensitive)]
    schema = schema.without(*absent)
    renamed = {name: here for name, here in names.items() if name != here}
    if renamed:
        taken = [
            here for here in renamed.values() if here in schema.columns and here not in renamed
        ]
        if taken or encoding.sensitive_as_feature:
            remedy = "Give the table's columns the names of the fit."
            raise InputError.expected(
                "columns with other roles", of="--sensitive", got=taken, remedy=remedy
            )
        schema = replace(
            schema,
            columns={renamed.get(name, name): column for name, column in schema.columns.items()},
            sensitive=tuple(renamed.get(name, name) for name in schema.sensitive),
        )
    try:
        rows = place.coded(
            schema, sensitive_as_feature=encoding.sensitive_as_feature, precision=encoding.precision
        )
    except FairveilError:
        if names:  # a table without groups is the likeliest reason, and worth a sentence of its own
            _require_groups(place.columns(), names, place)
        raise
    groups = dict(_values_of(rows))
    return Shown(clf, rows, {name: groups[here] for name, here in names.items()} if names else None)


def _values_of(rows: EncodedRows) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """The sensitive columns of coded rows as values."""
    blocks = list(rows.blocks())
    for at, (name, values) in enumerate(
        zip(rows.layout.sensitive_names, rows.layout.sensitive, strict=True)
    ):
        codes = [np.asarray(block.sensitive)[at] for block in blocks]
        yield name, as_array(values)[np.concatenate(codes)]
