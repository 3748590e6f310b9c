"""Rows and fits for the tests of group objectives. A name of its own: conftests are many."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import ways
from fairveil.core import cost as accounting
from fairveil.errors import ConstraintNotMet
from fairveil.fairness import objectives
from fairveil.statement.document import PrivacyStatement
from knobs import made

ROWS = 1500
ODDS = "equalized_odds:0.1"
GROUPS = {"protects": "sensitive_features"}
METHODS = ("linear-oracle", "frank-wolfe", "exponential")


def sample(
    classes: int = 2, groups: int = 2, columns: int = 1, seed: int = 0, rows: int = ROWS
) -> Any:
    """Features, labels that hang on them, and sensitive columns of which the first does, too."""
    rng = np.random.default_rng(seed)
    A = {f"a{j}": rng.integers(groups if j == 0 else 2, size=rows) for j in range(columns)}
    X = rng.normal(size=(rows, 3))
    X[:, 0] += 1.6 * (A["a0"] % 2)
    scores = X @ np.random.default_rng(5).normal(size=(3, classes)) * 1.5 + rng.gumbel(
        size=(rows, classes)
    )
    return X, scores.argmax(axis=1), A


X, Y, A = sample()
SEX = A["a0"]


def fair(
    objective: Any = "error",
    constraint: Any = ODDS,
    method: str = "linear-oracle",
    decisions: Any = None,
    **options: Any,
) -> ways.objective:
    """A seeded estimator of few rounds."""
    rounds = {} if method == "exponential" else {"rounds": 12}
    options = {
        "epsilon": 3.0,
        "random_state": 0,
        "unsafe_data_dependent_bounds": True,
        **rounds,
        **options,
    }
    return made(ways.objective, objective, constraint, method, decisions, **options)


def quietly(clf: Any, *given: Any, **named: Any) -> Any:
    """Fitted, whether or not a constraint could be met with so much noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        return clf.fit(*given, **named)


def candidates() -> list[Any]:
    """Classifiers that were made without the rows."""
    x, y, _ = sample(seed=9)
    return [LogisticRegression(C=c).fit(x, y) for c in (1e-4, 1.0)] + [
        LogisticRegression().fit(x * np.array([0.0, 1.0, 1.0]), y)
    ]


def largest(constant: float = 1.0, **options: Any) -> objectives.Custom:
    """A user's function: the largest of the groups' losses."""

    def value(v: Any) -> float:
        return float(v.max())

    def gradient(v: Any) -> Any:
        return np.eye(len(v))[v.argmax()]

    return objectives.Custom(value, gradient, constant, **options)


def verified(clf: ways.objective, epsilon: float = 3.0, delta: float = 1e-6) -> PrivacyStatement:
    """The statement, which agrees with itself, with the promise, and with the price of its
    events."""
    statement: PrivacyStatement = clf.privacy_
    assert statement.check() == []
    assert statement.promise.epsilon == epsilon
    assert statement.epsilon <= epsilon
    assert statement.epsilon == accounting.epsilon(statement.events, delta, statement.neighbours)
    assert PrivacyStatement.from_json(statement.to_json()) == statement
    return statement
