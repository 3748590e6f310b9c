"""Descents against a player, as they are written and read back."""

from __future__ import annotations

from typing import Any

from ..._json import Node
from ...models import LinearModel, MixtureModel, Model
from ..descending import DescentClassifier
from ..reading import coding_json
from ..saving import values as files_json
from .kind import broken, coding_of


def descent_content(estimator: DescentClassifier) -> dict[str, Any]:
    linear = isinstance(estimator.model_, LinearModel | MixtureModel)
    outcome = files_json.outcome_to_dict(estimator.outcome_, weights=linear)
    return {"coding": coding_json.to_dict(estimator.coding_), "outcome": outcome}


def revive_descent(
    estimator: DescentClassifier, content: Node, model: Model | None, base: object
) -> None:
    if isinstance(model, MixtureModel) and all(
        isinstance(one, LinearModel) for one in model.models
    ):
        linear: Any = model.models
        estimator._set_mixture(model, coding_of(content, linear))
        estimator._set_outcome(files_json.outcome_from_dict(content["outcome"]))
        return
    if isinstance(model, LinearModel):
        estimator._set_model(model, coding_of(content, [model]))
        estimator._set_outcome(files_json.outcome_from_dict(content["outcome"]))
        return
    if model is None or model.kind != "network":
        raise broken("a linear model or a network", type(model).__name__)
    network: Any = model
    estimator._set_network(network, coding_json.from_dict(content["coding"]))
    estimator._set_outcome(files_json.outcome_from_dict(content["outcome"], network.parameters))
