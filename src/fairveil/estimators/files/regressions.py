"""Regressions, and classifiers whose budget is shared among groups, as they are written and read
back."""

from __future__ import annotations

from typing import Any

from ..._json import Node
from ...models import LinearModel, MixtureModel, RegressionModel
from ..group_objective_regressor import GroupObjectiveRegressor
from ..reading import coding_json
from ..saving import regression as regression_json
from ..tailored import TailoringReport
from ..tailored_classifier import TailoredClassifier
from ..tailored_regressor import TailoredRegressor
from .kind import broken, coding_of


def regression_content(estimator: GroupObjectiveRegressor | TailoredRegressor) -> dict[str, Any]:
    return {
        "coding": coding_json.to_dict(estimator.coding_),
        "outcome": regression_json.outcome_to_dict(estimator.outcome_),
        "target": regression_json.target_to_dict(estimator.target_),
    }


def revive_regression(
    estimator: GroupObjectiveRegressor, content: Node, model: object, base: object
) -> None:
    _set_regression(estimator, content, model)
    estimator._set_outcome(regression_json.outcome_from_dict(content["outcome"]))


def _set_regression(
    estimator: GroupObjectiveRegressor | TailoredRegressor, content: Node, model: object
) -> None:
    if not isinstance(model, RegressionModel):
        raise broken("a linear regression", type(model).__name__)
    estimator._set_model(
        model, coding_of(content, [model]), regression_json.target_from_dict(content["target"])
    )


def tailored_regression_content(estimator: TailoredRegressor) -> dict[str, Any]:
    return regression_content(estimator) | {"tailoring": estimator.tailoring_.written()}


def revive_tailored_regression(
    estimator: TailoredRegressor, content: Node, model: object, base: object
) -> None:
    _set_regression(estimator, content, model)
    _revive_tailored(estimator, content)


def _revive_tailored(estimator: TailoredRegressor | TailoredClassifier, content: Node) -> None:
    groups = ("everyone",) if estimator.cells_ is None else estimator.cells_.keys
    report = TailoringReport._read(content["tailoring"], groups)
    estimator._set_outcome(regression_json.outcome_from_dict(content["outcome"]), report)


def tailored_content(estimator: TailoredClassifier) -> dict[str, Any]:
    return {
        "coding": coding_json.to_dict(estimator.coding_),
        "outcome": regression_json.outcome_to_dict(estimator.outcome_),
        "tailoring": estimator.tailoring_.written(),
    }


def revive_tailored_classifier(
    estimator: TailoredClassifier, content: Node, model: Any, base: object
) -> None:
    if isinstance(model, LinearModel):
        estimator._set_model(model, coding_of(content, [model]))
    elif isinstance(model, MixtureModel) and all(
        isinstance(one, LinearModel) for one in model.models
    ):
        linear: Any = model.models
        estimator._set_mixture(model, coding_of(content, linear))
    elif model is not None and model.kind == "network":
        estimator._set_network(model, coding_json.from_dict(content["coding"]))
    else:
        raise broken("a linear model or a network", type(model).__name__)
    _revive_tailored(estimator, content)
