"""What classifiers that publish a mixture of rules share: probabilities of its decisions, and
rules that were given."""

from __future__ import annotations

import numpy as np

from ..._types import Array, Floats
from ...curator import Curator
from ...errors import InputError
from ...learning.descent import Progress
from ...learning.group_objective.descent import LossDescent
from ...learning.group_objective.exponential import Certain, Sampling
from ...learning.group_objective.found import Found
from ...learning.group_objective.loop import Loop
from ...learning.group_objective.public_features import PublicSearch
from ...learning.group_objective.running import run
from ...learning.oracles import LinearClass
from ...models import DerandomisedModel, MixtureModel, Model
from ..reading.training import Training

Search = Sampling | Loop | PublicSearch | LossDescent


def found_by(
    search: Search, curator: Curator, tick: Progress | None
) -> tuple[Found, Certain | None]:
    if isinstance(search, Sampling):
        return search.run(curator, tick)
    return (
        run(curator, search, tick) if isinstance(search, Loop) else search.run(curator, tick)
    ), None


def probabilities(model: Model | None, block: object) -> Floats:
    """Of the models themselves, where the distribution of their decisions is another."""
    if isinstance(model, DerandomisedModel):
        return probabilities(model.model, block)
    assert isinstance(model, MixtureModel)
    each = [
        weight * one.predict_proba(block)
        for weight, one in zip(model.weights, model.models, strict=True)
    ]
    return np.asarray(np.sum(each, axis=0))


def weights_given(given: Array, training: Training) -> LinearClass:
    """Linear rules from an array, checked."""
    layout, outputs = (
        training.rows.layout,
        1 if len(training.classes) == 2 else len(training.classes),
    )
    array = np.asarray(given, np.float64) if given.dtype.kind in "fiu" else np.empty(0)
    if array.ndim == 2 and outputs == 1:
        array = array[:, np.newaxis, :]
    if (
        array.ndim != 3
        or not len(array)
        or array.shape[1:] != (outputs, 1 + layout.width)
        or not np.isfinite(array).all()
    ):
        expected = (
            f"finite weights (m, {'' if outputs == 1 else f'{outputs}, '}{1 + layout.width}), the "
            f"intercept first"
        )
        remedy = "Numbers come after it, then the categories of each coded column, as in coef_."
        raise InputError.expected(expected, of="decisions", got=np.shape(given), remedy=remedy)
    return LinearClass(array)
