"""Rows and fits for the tests of tailored estimators. A name of its own: conftests are many."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import fairveil as fv
import ways
from fairveil.core import cost as accounting
from fairveil.errors import ConstraintNotMet
from fairveil.statement.document import PrivacyStatement
from knobs import made

ROWS = 1200
INF = float("inf")
BOUNDS = (-10.0, 30.0)
RELATIONS: list[dict[str, Any]] = [
    {},
    {"neighbours": "replace-one"},
    {"protects": "sensitive_features"},
]


def sample(rows: int = ROWS, seed: int = 0) -> Any:
    """Numbers in [-1, 1], a target of about 10 +- 4, labels, and two columns of groups; the smaller
    group's line is another."""
    rng = np.random.default_rng(seed)
    sex = np.array(["f", "m"])[(rng.random(rows) < 0.8).astype(int)]
    age = np.array(["old", "young"])[rng.integers(2, size=rows)]
    X = rng.uniform(-1, 1, size=(rows, 2))
    y = (
        10
        + 3 * X[:, 0]
        + np.where(sex == "f", 4.0, 1.0) * X[:, 1]
        + np.where(sex == "f", 2.0, 0.7) * rng.normal(size=rows)
    )
    labels = np.where(y > 10 + rng.logistic(size=rows), "yes", "no")
    return X, y, labels, sex, age


X, Y, LABELS, SEX, AGE = sample()


def regressor(*given: Any, **options: Any) -> ways.tailored_regression:
    """A seeded one, of few rounds; `method`: "moments" or "descent"."""
    usual: dict[str, Any] = {"epsilon": 3.0, "random_state": 0, "target_bounds": BOUNDS}
    method = options.pop("method", None)
    if method is not None:
        usual["solver"] = fv.Tailored(by="moments") if method == "moments" else fv.Tailored()
    if method != "moments" and options.get("bound") is None and len(given) < 2:
        usual["rounds"] = 8
    return made(ways.tailored_regression, *given, **{**usual, **options})


def classifier(*given: Any, **options: Any) -> ways.tailored:
    """A seeded one, of few rounds."""
    return made(
        ways.tailored, *given, **{"epsilon": 3.0, "random_state": 0, "rounds": 8, **options}
    )


def quietly(estimator: Any, *given: Any, **named: Any) -> Any:
    """Fitted, whether or not a bound could be met with so much noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        return estimator.fit(*given, **named)


def verified(estimator: Any, epsilon: float = 3.0) -> PrivacyStatement:
    """The statement, which agrees with itself, with the promise, and with the price of its plan."""
    statement: PrivacyStatement = estimator.privacy_
    assert statement.check() == []
    assert statement.promise.epsilon == epsilon
    assert statement.plan is not None
    assert accounting.epsilon(statement.events, 1e-6, statement.neighbours) <= statement.epsilon * (
        1 + 1e-9
    )
    assert (
        statement.epsilon
        == accounting.epsilon(statement.plan, 1e-6, statement.neighbours)
        <= epsilon
    )
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    return statement
