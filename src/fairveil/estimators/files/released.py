"""Classifiers of groups released once, as they are written and read back."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Any

import numpy as np

from ..._json import Node
from ...errors import InputError
from ...learning.released.rates import SoftValue
from ...models import LinearModel, MixtureModel, Model
from ..faces.coded import as_array
from ..reading import coding_json
from ..released.classifier import ReleasedClassifier
from ..saving import values as files_json
from .kind import broken, coding_of


def released_content(estimator: ReleasedClassifier) -> dict[str, Any]:
    if estimator.model_ is None:
        remedy = (
            "Save the release, and these rules with their own library; or fit with estimator=None."
        )
        got = f"rules of {type(estimator.estimator).__name__}"
        raise InputError.expected("linear rules", of="estimator", got=got, remedy=remedy)
    lines = [[line.name, *files_json.numbers(astuple(line)[1:])] for line in estimator.report_]
    return {
        "coding": coding_json.to_dict(estimator.coding_),
        "error": estimator.error_,
        "report": lines,
    }


def revive_released(
    estimator: ReleasedClassifier, content: Node, model: Model | None, base: object
) -> None:
    if not isinstance(model, MixtureModel) or not all(
        isinstance(one, LinearModel) for one in model.models
    ):
        raise broken("a mixture of linear models", type(model).__name__)
    linear: Any = model.models
    estimator.coding_, estimator.model_ = coding_of(content, linear), model
    estimator.rules_, estimator.shares_ = list(linear), np.array(model.weights, np.float64)
    estimator.classes_, estimator.error_ = as_array(tuple(model.classes)), content["error"].number()
    lines = [line.list(len(fields(SoftValue))) for line in content["report"].list()]
    estimator.report_ = tuple(
        SoftValue(name.text(), *(one.number(words=True) for one in numbers))
        for name, *numbers in lines
    )
