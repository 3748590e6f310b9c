"""From a fitted estimator to a `Program`: what `predict` and `predict_proba` compute, and nothing
else.

Guarantees (tests/export/):
1. A program's probabilities are those of `predict_proba`, and its class is that of `predict` given
   the same uniform number.
2. Rows for which `predict` raises an error are refused by the program.
3. What cannot be read so is refused with its reason: code of the user, models of other libraries,
   rows coded elsewhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..errors import InputError
from ..estimators.faces.coded import CodedEstimator
from ..estimators.faces.coded_regressor import CodedRegressor
from ..estimators.faces.linear import LinearClassifier
from ..estimators.group_objective import GroupObjectiveClassifier
from ..estimators.oracle_game import OracleGameClassifier
from ..estimators.post_processing.odds_post_processor import OddsPostProcessor
from ..estimators.post_processing.parity_post_processor import ParityPostProcessor
from ..estimators.post_processing.simplex import CLOSE
from ..estimators.reading.fitted_parts import parts_of
from ..estimators.released.classifier import ReleasedClassifier
from ..estimators.wrapped import answers as base_answers
from ..estimators.wrapped import bases
from ..models import (
    DerandomisedModel,
    GroupedLinearModel,
    LinearModel,
    MixtureModel,
    PostProcessedModel,
    RegressionModel,
    ShiftedModel,
)
from ..models.model import Model
from ..models.postprocessed import SURE
from .columns import inputs_of, require_names, with_groups, word_column
from .program import (
    BASE_DECISION,
    BASE_PROBABILITY,
    BASE_SCORE,
    Bins,
    ByGroup,
    Classified,
    GivenDecision,
    GivenLaw,
    GivenScore,
    Hard,
    Inputs,
    Law,
    Likeliest,
    Linear,
    Logit,
    Mixed,
    Moved,
    Program,
    Regressed,
    Scores,
    Softmax,
    Tabled,
)
from .refusing import refusal

CODE = (
    "Only plain numbers are exported. Export the module itself with its own library, or fit a "
    "linear or an additive model."
)


def read(estimator: object) -> Program:
    """The program of a fitted estimator of this library."""
    inside = bases.thawed(estimator)
    if not isinstance(
        inside, CodedEstimator | OddsPostProcessor | ParityPostProcessor | ReleasedClassifier
    ):
        remedy = "Pass a fitted estimator of Fairveil, or fairveil.load(folder)."
        raise InputError.expected(
            "an estimator of Fairveil", of="model", got=type(estimator).__name__, remedy=remedy
        )
    check_is_fitted(inside, "rules_" if isinstance(inside, ReleasedClassifier) else "model_")
    inputs, result = (
        _regressed(inside) if isinstance(inside, CodedRegressor) else _classified(inside)
    )
    program = Program(inputs, result, type(inside).__name__, inside.privacy_.to_json())
    require_names(inputs, program.others)
    return program


def _regressed(estimator: CodedRegressor) -> tuple[Inputs, Regressed]:
    model, target = estimator.model_, estimator.target_
    assert isinstance(model, RegressionModel)
    linear = Linear(model.weights[np.newaxis], np.array([model.intercept]))
    return _inputs(estimator), Regressed(linear, float(target.half), float(target.centre))


def _classified(estimator: BaseEstimator) -> tuple[Inputs, Classified]:
    if isinstance(estimator, OddsPostProcessor):
        return _post_processed(estimator)
    if isinstance(estimator, ParityPostProcessor):
        return _moved(estimator)
    inputs, probabilities, decision, drawn = _own(estimator)
    return inputs, Classified(probabilities, decision, _plain(estimator.classes_), drawn)


def _inputs(estimator: BaseEstimator) -> Inputs:
    return inputs_of(estimator.coding_, hasattr(estimator, "feature_names_in_"))


def _own(estimator: BaseEstimator) -> tuple[Inputs, Law, Law, bool]:
    """Inputs, `predict_proba`, the distribution of `predict`, and whether `predict` draws."""
    model = estimator.model_
    if model is None:
        raise refusal(
            "one of classifiers that were made elsewhere",
            "Export each of them with its own library.",
        )
    if model.kind == "network":
        raise refusal("a network, whose module is code of yours", CODE)
    inputs = _inputs(estimator)
    if model.reads_groups:
        assert estimator.cells_ is not None
        inputs = with_groups(inputs, estimator.cells_, estimator.cells_.names)
    decision = _law(model)
    drawn = isinstance(model, MixtureModel) and int(np.count_nonzero(model.weights)) > 1
    if isinstance(estimator, GroupObjectiveClassifier) and estimator.loss == "log":
        return inputs, _averaged(model), decision, drawn
    if isinstance(estimator, LinearClassifier) and isinstance(model, LinearModel):
        return inputs, Softmax(_linear(model)), decision, False
    assert isinstance(
        estimator,
        LinearClassifier | OracleGameClassifier | GroupObjectiveClassifier | ReleasedClassifier,
    )
    return inputs, decision, decision, drawn


def _linear(model: LinearModel) -> Linear:
    return Linear(model.weights, model.intercept)


def _law(model: object) -> Law:
    """The distribution of a model's decisions."""
    if isinstance(model, LinearModel):
        return Hard(_linear(model))
    if isinstance(model, GroupedLinearModel):
        return Hard(ByGroup(_linear(model.linear), model.offsets))
    if isinstance(model, DerandomisedModel):
        return Likeliest(_law(model.model), model.threshold)
    if isinstance(model, MixtureModel):
        kept = [
            (float(weight), one)
            for weight, one in zip(model.weights, model.models, strict=True)
            if weight
        ]
        return Mixed(tuple(weight for weight, _ in kept), tuple(_law(one) for _, one in kept))
    raise refusal(f"a {type(model).__name__}", CODE)


def _averaged(model: object) -> Law:
    """The average of models' own probabilities, which a log loss looks at."""
    if isinstance(model, DerandomisedModel):
        return _averaged(model.model)
    assert isinstance(model, MixtureModel)
    linear = [one for one in model.models if isinstance(one, LinearModel)]
    if len(linear) < len(model.models):
        raise refusal("a mixture of other models than linear ones", CODE)
    return Mixed(tuple(map(float, model.weights)), tuple(Softmax(_linear(one)) for one in linear))


# Post-processing


def _post_processed(estimator: OddsPostProcessor) -> tuple[Inputs, Classified]:
    model, base = estimator.model_, bases.thawed(estimator.estimator_)
    classes = _plain(estimator.classes_)
    inputs, answer, drawn = _answer(estimator, base, classes)
    if model.cells is not None:
        inputs = with_groups(inputs, model.cells, model.cells.names)
    law = Tabled(answer, model.mixing)
    by_chance = bool(((model.mixing > 0) & (model.mixing < 1)).any())
    return inputs, Classified(law, law, classes, by_chance or drawn)


def _answer(
    estimator: OddsPostProcessor, base: object, classes: Sequence[Hashable]
) -> tuple[Inputs, Law, bool]:
    """What the table is applied to: bins of the base's score, or a distribution of its
    decisions."""
    edges = estimator.model_.edges
    if not isinstance(base, CodedEstimator):  # another library's: its answer is an input
        if edges is not None:
            return Inputs(), Bins(GivenScore(BASE_SCORE), edges), False
        return Inputs(), GivenDecision(word_column(BASE_DECISION, classes)), False
    inputs, probabilities, decision, drawn = _own_base(base, classes)
    if edges is None:
        return inputs, probabilities if bases.is_randomised(base) else decision, drawn
    scores: Scores = Logit(probabilities, SURE)
    if estimator.predict_method_ == base_answers.SCORES[0]:
        assert isinstance(base.model_, LinearModel)
        scores = _linear(base.model_)
    return inputs, Bins(scores, edges), False


def _own_base(base: CodedEstimator, classes: Sequence[Hashable]) -> tuple[Inputs, Law, Law, bool]:
    """The same as `_own`, of a base of this library."""
    if _plain(base.classes_) != tuple(classes):
        raise refusal(
            "one whose base has its classes in another order",
            "Fit the base to the same labels again.",
        )
    found = _own(base)
    if found[0].groups:
        raise refusal("one whose base reads the group, too", "Export the base alone.")
    return found


def _moved(estimator: ParityPostProcessor) -> tuple[Inputs, Classified]:
    """Probabilities less offsets by group: drawn by their softmax at a temperature, or the largest
    decides."""
    model, base, classes = (
        estimator.model_,
        bases.thawed(estimator.estimator_),
        _plain(estimator.classes_),
    )
    if isinstance(base, CodedEstimator):
        inputs, law, _, _ = _own_base(base, classes)
    else:  # another library's: its probabilities are inputs
        inputs, law = (
            Inputs(),
            GivenLaw(tuple(f"{BASE_PROBABILITY}[{value}]" for value in classes), CLOSE),
        )
    heat = model.temperature
    decision = (
        Hard(Moved(law, model.offsets))
        if heat is None
        else Softmax(Moved(law, model.offsets, heat))
    )
    return with_groups(inputs, model.cells, model.cells.names), Classified(
        decision, decision, classes, heat is not None
    )


def _plain(classes: object) -> tuple[Hashable, ...]:
    return tuple(np.asarray(classes).tolist())


def columns_of_groups(estimator: object) -> tuple[str, ...]:
    """The sensitive columns that a fitted estimator reads when it predicts."""
    inside = bases.thawed(estimator)
    model = parts_of(inside).model
    cells = (
        model.cells
        if isinstance(model, PostProcessedModel | ShiftedModel)
        else inside.cells_
        if isinstance(model, Model) and model.reads_groups
        else None
    )
    return () if cells is None else tuple(cells.names)


def unnamed(program: Program) -> Program:
    """The same with a column for each number of an array: x0, x1, ..."""
    return (
        program
        if program.inputs.matrix is None
        else replace(program, inputs=replace(program.inputs, matrix=None))
    )
