"""Whether the parts of an estimator that was read agree: what does not is refused at once, not when
it predicts.

Each part was checked by itself when it was read. Here they are held against each other: columns and
coding, coding and model, classes, groups, what was found and what is said of it.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..._json import Node
from ...methods.least_squares import RegressionOutcome
from ...methods.outcome import Outcome
from ...models import (
    DerandomisedModel,
    GroupedLinearModel,
    LinearModel,
    MixtureModel,
    Model,
    PostProcessedModel,
    RegressionModel,
    ShiftedModel,
)
from .coding import RowsCoding, SchemaCoding, TableCoding
from .fitted_parts import names_of_features, parts_of

CODED = ("linear", "linear-regression", "network")  # kinds of models of coded numbers


def require(estimator: BaseEstimator, content: Node) -> None:
    """An error that names the part of the file that contradicts another."""
    names = names_of_features(estimator)
    if names and len(names) != estimator.n_features_in_:
        content["columns"].refuse(
            f"{estimator.n_features_in_} names, one for each of 'features'", len(names)
        )
    parts = parts_of(estimator)
    coding = parts.coding
    if coding is not None:
        _require_columns(coding, estimator, content)
    outcome = parts.outcome
    if outcome is not None:
        _require_outcome(outcome, estimator, content["outcome"])
    _require_groups(estimator.model_, estimator, content)
    if (
        isinstance(estimator.model_, Model)
        and list(estimator.model_.classes) != np.asarray(estimator.classes_).tolist()
    ):
        content.refuse("the classes of the model", np.asarray(estimator.classes_).tolist())


def _require_columns(coding: object, estimator: BaseEstimator, content: Node) -> None:
    """As many columns as the coding reads."""
    if isinstance(coding, TableCoding):
        expected = {len(coding.columns)}
    elif isinstance(coding, SchemaCoding):
        expected = {
            len(coding.encoding.features),
            len(coding.encoding.features) + len(coding.encoding.schema.sensitive),
        }
    else:
        assert isinstance(coding, RowsCoding)
        expected = {coding.numbers + len(coding.code_sizes)}
    if estimator.n_features_in_ not in expected:
        content["features"].refuse(
            f"{min(expected)}, as the coding has columns", estimator.n_features_in_
        )
    layout, model = coding.layout, estimator.model_
    if model is not None and model.kind in CODED:
        fits = (layout.numbers, tuple(layout.code_sizes)) == (
            model.numbers,
            tuple(model.code_sizes),
        )
        if not fits:
            content["coding"].refuse(
                f"a coding of {model.numbers} numbers, as the model has", layout.numbers
            )


def _require_outcome(outcome: object, estimator: BaseEstimator, told: Node) -> None:
    """Coefficients of the model's shape."""
    weights = outcome.weights if isinstance(outcome, Outcome) else None
    if isinstance(estimator.model_, LinearModel) and weights is not None:
        outputs, width = estimator.model_.weights.shape
        if np.shape(weights) != (outputs, 1 + width):
            told.refuse(
                f"weights of shape {[outputs, 1 + width]}, as the model has",
                list(np.shape(weights)),
            )
    coefficients = outcome.coefficients if isinstance(outcome, RegressionOutcome) else None
    if coefficients is not None and isinstance(estimator.model_, RegressionModel):
        expected = 1 + len(estimator.model_.weights)
        if len(coefficients) != expected:
            told["coefficients"].refuse(f"{expected} numbers, as the model has", len(coefficients))


def _require_groups(model: object, estimator: BaseEstimator, content: Node) -> None:
    """Rules that read the group read the groups of the estimator."""
    inner = model.model if isinstance(model, DerandomisedModel) else model
    for one in (inner, *(inner.models if isinstance(inner, MixtureModel) else ())):
        read = (
            one.cells
            if isinstance(one, GroupedLinearModel | PostProcessedModel | ShiftedModel)
            else None
        )
        if read is not None and read != estimator.cells_:
            content["cells"].refuse("the groups that the model reads", content["cells"].value)
