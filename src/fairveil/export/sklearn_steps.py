"""A linear model of ours as a fitted estimator of scikit-learn, for tools that know those alone.

Words count by one-hot steps that leave out what is not listed: the weight of the code that unknown
words have is part of the intercept, and the other weights are what differs from it.

Guarantees (tests/export/test_to_sklearn.py):
1. Probabilities, and numbers of regressors, are those of the estimator to 1e-9; classes are the
   same.
2. What cannot be put so is refused with its reason. A row that the estimator refuses is an error
   there too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from .._types import Floats
from ..estimators.fair import FairClassifier, FairRegressor
from ..models import LinearModel
from .columns import Inputs, NumberColumn, WordColumn, inputs_of, opened, plain, refusal

REMEDY = "Fit with model='linear', or use fairveil.export.sql_query, or the estimator itself."


def to_sklearn(model: object) -> Any:
    """A fitted estimator of scikit-learn that decides as a linear model of this library does.

    Of an array of numbers it is a `LogisticRegression` or a `LinearRegression`; of a table a
    `Pipeline` that codes the columns first, which takes data frames. skl2onnx and other tools for
    models of scikit-learn take it from there.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library whose model is one linear model. Mixtures, additive
        models, networks and models that read the group are refused.

    Returns
    -------
    LogisticRegression, LinearRegression or Pipeline
        It is fitted, and has `predict` and, of classifiers, `predict_proba`.

    Raises
    ------
    InputError
        If the model is not linear, or a column is coded in a way that scikit-learn has not.

    See Also
    --------
    sql_query : Writes SQL, of all models but networks.

    Examples
    --------
    >>> import numpy as np
    >>> import fairveil as fv
    >>> X = np.linspace(-1, 1, 400).reshape(-1, 1)
    >>> clf = fv.FairClassifier(epsilon=5.0, random_state=0).fit(X, X[:, 0] > 0)
    >>> bool((fv.export.to_sklearn(clf).predict(X) == clf.predict(X)).all())
    True
    """
    estimator = opened(model)
    found = estimator.model_
    if isinstance(estimator, FairRegressor):
        classes, scale, shift = None, float(estimator.target_.half), float(estimator.target_.centre)
        weights, intercept = np.array(found.weights)[np.newaxis], np.array([found.intercept])
    elif isinstance(estimator, FairClassifier) and isinstance(found, LinearModel):
        classes, scale, shift = estimator.classes_, 1.0, 0.0
        weights, intercept = np.array(found.weights), np.array(found.intercept)
    else:
        raise refusal("one whose probabilities are not those of one linear model", REMEDY)
    inputs = inputs_of(estimator)
    if inputs.groups or inputs.shapes is not None:
        raise refusal("an additive model, or one that reads the group", REMEDY)
    if not inputs.matrix and not hasattr(model, "feature_names_in_"):
        raise refusal("one of columns without names, some of which are left out", REMEDY)
    weights, intercept = _folded(inputs, weights, intercept)
    last = _fitted(scale * weights, scale * intercept + shift, classes)
    if inputs.words or any(one.bounds for one in inputs.numbers):
        return Pipeline([("columns", _columns(inputs)), ("model", last)])
    if not inputs.matrix:
        last.feature_names_in_ = np.array([one.name for one in inputs.numbers], dtype=object)
    return last


def _folded(inputs: Inputs, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    """Weights and intercept for what the columns' steps hand on: numbers before they are
    standardised, and words less the unknown one."""
    if inputs.standard is not None:
        weights, intercept = inputs.standard.undone(weights, intercept)
    start = len(inputs.numbers)
    for word in inputs.words:
        run = slice(start, start + len(word.values))
        if word.unknown is not None:
            usual = weights[:, start + word.unknown].copy()
            weights[:, run] -= usual[:, np.newaxis]
            intercept += usual
        start = run.stop
    return weights, intercept


def _fitted(weights: Floats, intercept: Floats, classes: Any) -> Any:
    if classes is None:
        found: Any = LinearRegression()
        found.coef_, found.intercept_ = weights[0], float(intercept[0])
    else:
        found = LogisticRegression()
        found.coef_, found.intercept_ = weights, intercept
        found.classes_ = np.array(plain(classes))
        found.n_iter_ = np.zeros(1, np.int32)
    found.n_features_in_ = weights.shape[1]
    return found


def _columns(inputs: Inputs) -> ColumnTransformer:
    """The steps of each column, fitted to two rows that say its bounds and its values."""
    names = [*inputs.names]
    steps: list[tuple[str, Any, list[int]]] = []
    shown = np.empty((2, len(names)), dtype=object)
    for number in inputs.numbers:
        place = names.index(number.name)
        steps.append((number.name, _number(number), [place]))
        shown[:, place] = number.bounds or (-1.0, 1.0)
    for word in inputs.words:
        place = names.index(word.name)
        steps.append((word.name, _word(word), [place]))
        shown[:, place] = word.values[0]
    found = ColumnTransformer(steps, sparse_threshold=0.0).fit(shown)
    # so that columns are found by their names
    found.feature_names_in_ = np.array(names, dtype=object)
    for name, fitted, _ in found.transformers_:
        first = fitted[0] if isinstance(fitted, Pipeline) else fitted
        first.feature_names_in_ = np.array([name], dtype=object)
    return found


def _number(column: NumberColumn) -> Any:
    if column.bounds is None:
        return "passthrough"
    scaled: Any = MinMaxScaler((-1.0, 1.0), clip=True)
    if column.missing is None:
        return scaled
    stands_in = min(max((column.missing - column.center) / column.half, -1.0), 1.0)
    return Pipeline(
        [("scaled", scaled), ("missing", SimpleImputer(strategy="constant", fill_value=stands_in))]
    )


def _word(column: WordColumn) -> Any:
    if column.unknown is not None and column.missing is None:
        raise refusal(
            f"one whose column {column.name!r} takes unknown values and no missing ones", REMEDY
        )
    coded = OneHotEncoder(
        categories=[np.array(column.values, dtype=object if column.is_text else None)],
        handle_unknown="error" if column.unknown is None else "ignore",
        sparse_output=False,
    )
    if column.missing is None or column.missing == column.unknown:
        return coded
    markers = [one for one in column.markers if one not in column.values]
    filled = column.values[column.missing]
    return Pipeline(
        [
            *(
                (
                    f"missing {place}",
                    SimpleImputer(missing_values=one, strategy="constant", fill_value=filled),
                )
                for place, one in enumerate((np.nan, None, *markers))
            ),
            ("coded", coded),
        ]
    )
