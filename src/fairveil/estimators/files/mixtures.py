"""Mixtures of rules, of games and of group objectives, as they are written and read back."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from ..._json import Node
from ...learning.oracles import AttachedRule, Rule
from ...models import DerandomisedModel, GroupedLinearModel, LinearModel, MixtureModel, Model
from ...models.model import known_classes
from ...tables import keys
from ..faces.coded import as_array
from ..group_objective import GroupObjectiveClassifier
from ..mixing import rule_of
from ..oracle_game import OracleGameClassifier
from ..reading import coding_json
from ..saving import group_objective as group_objective_json
from ..saving import values as files_json
from .kind import broken, coding_of


def _mixture_content(estimator: OracleGameClassifier | GroupObjectiveClassifier) -> dict[str, Any]:
    listed = estimator.candidates_
    return {
        "coding": coding_json.to_dict(estimator.coding_),
        "classes": [keys.to_json(value, of="classes") for value in estimator.classes_.tolist()],
        "places": [
            rule.place for rule in estimator.outcome_.rules if isinstance(rule, AttachedRule)
        ],
        "candidates": [type(one).__name__ for one in listed] if listed else None,
    }


def game_content(estimator: OracleGameClassifier) -> dict[str, Any]:
    outcome = files_json.equilibrium_to_dict(estimator.outcome_)
    return _mixture_content(estimator) | {"outcome": outcome, "named": estimator.named_}


def revive_game(
    estimator: OracleGameClassifier, content: Node, model: Model | None, base: BaseEstimator
) -> None:
    coding, rules = _mixed(content, model)
    outcome = files_json.equilibrium_from_dict(content["outcome"], rules)
    if len(outcome.plays) != len(rules):
        content["outcome"]["plays"].refuse(f"{len(rules)} numbers of plays", len(outcome.plays))
    estimator._set_game(
        outcome,
        model if isinstance(model, MixtureModel | DerandomisedModel) else None,
        tuple(base or ()),
    )
    estimator.coding_, estimator.classes_, estimator.named_ = (
        coding,
        _classes_of(content, model),
        content["named"].truth(),
    )


def _mixed(content: Node, model: Model | None) -> tuple[Any, tuple[Rule, ...]]:
    """Coding and rules of a mixture: of linear models, or of candidates by their places."""
    mixed = model.model if isinstance(model, DerandomisedModel) else model
    models = mixed.models if isinstance(mixed, MixtureModel) else ()
    linear = [one.linear if isinstance(one, GroupedLinearModel) else one for one in models]
    if content["candidates"].is_null == (not models) or not all(
        isinstance(one, LinearModel) for one in linear
    ):
        raise broken("a mixture of linear models, or candidates", type(model).__name__)
    coding = coding_of(content, [one for one in linear if isinstance(one, LinearModel)])
    return coding, tuple(map(rule_of, models)) or tuple(
        AttachedRule(place.whole()) for place in content["places"].list()
    )


def _classes_of(content: Node, model: Model | None) -> Any:
    if model is not None:
        return as_array(tuple(model.classes))
    return as_array(
        known_classes(
            [keys.plain(value.value, of="classes") for value in content["classes"].list()]
        )
    )


def group_objective_content(estimator: GroupObjectiveClassifier) -> dict[str, Any]:
    return _mixture_content(estimator) | {
        "outcome": group_objective_json.found_to_dict(estimator.outcome_),
        "certain": group_objective_json.certain_to_dict(estimator.certain_),
    }


def revive_group_objective(
    estimator: GroupObjectiveClassifier, content: Node, model: Model | None, base: BaseEstimator
) -> None:
    coding, rules = _mixed(content, model)
    outcome = group_objective_json.found_from_dict(content["outcome"], rules)
    certain = group_objective_json.certain_from_dict(content["certain"])
    mixture = model if isinstance(model, MixtureModel | DerandomisedModel) else None
    estimator._set_found(outcome, mixture, tuple(base or ()), certain)
    estimator.coding_, estimator.classes_ = coding, _classes_of(content, model)
