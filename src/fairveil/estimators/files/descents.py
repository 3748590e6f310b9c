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
    parts = _parts_of(estimator.model_)
    linear = all(isinstance(one, LinearModel) for one in parts)
    outcome = files_json.outcome_to_dict(estimator.outcome_, weights=linear)
    return {"coding": coding_json.to_dict(estimator.coding_), "outcome": outcome}


def revive_descent(
    estimator: DescentClassifier, content: Node, model: Model | None, base: object
) -> None:
    parts = _parts_of(model)
    linear = [one for one in parts if isinstance(one, LinearModel)]
    networks: list[Any] = [one for one in parts if one.kind == "network"]
    if len(linear) + len(networks) < len(parts):
        raise broken("linear models and networks", type(model).__name__)
    coding = coding_of(content, linear)
    weights = networks[0].parameters if networks else None  # what was found comes first
    outcome = files_json.outcome_from_dict(content["outcome"], weights)
    if isinstance(model, MixtureModel):
        estimator._set_mixture(model, coding)
    elif linear:
        estimator._set_model(linear[0], coding)
    else:
        estimator._set_network(networks[0], coding)
    estimator._set_outcome(outcome)


def _parts_of(model: object) -> tuple[Any, ...]:
    return model.models if isinstance(model, MixtureModel) else (model,)
