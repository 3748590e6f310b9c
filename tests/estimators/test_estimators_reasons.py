"""Reason codes of linear and additive models, ours and others', and of models that have none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.data import Category, Number, Schema
from fairveil.errors import InputError

RNG = np.random.default_rng(0)
ROWS = 3000
PEOPLE = pd.DataFrame(
    {
        "age": RNG.uniform(18, 70, ROWS),
        "hours": RNG.uniform(0, 60, ROWS),
        "job": RNG.choice(["a", "b", "c"], ROWS),
    }
)
MERIT = PEOPLE["hours"] / 15 - ((PEOPLE["age"] - 44) / 15) ** 2 + (PEOPLE["job"] == "b")
HIRED = np.where(MERIT + RNG.normal(size=ROWS) > 1.5, "yes", "no")
SCHEMA = Schema(
    {
        "age": Number(18, 70),
        "hours": Number(0, 60),
        "job": Category(("a", "b", "c")),
        "hired": Category(("no", "yes")),
    },
    target="hired",
)
BEST = {"age": 44.0, "hours": 60.0, "job": "b"}


@pytest.mark.parametrize("shape", ["linear", "additive"])
def test_parts_add_up_to_the_score(shape: str) -> None:
    model = fv.FairClassifier(epsilon=8.0, schema=SCHEMA, model=shape, random_state=0)
    table = PEOPLE.assign(hired=HIRED)
    model.fit(table)
    rows = PEOPLE.iloc[:40]
    found = fv.reason_codes(model, rows, BEST, count=3)
    whole = model.decision_function(rows)
    reference = model.decision_function(pd.DataFrame([BEST]))[0]
    for codes, score in zip(found, whole, strict=True):
        parts = [part for _, part in codes]
        assert parts == sorted(parts)
        assert all(part < 0 for part in parts)
        assert sum(parts) <= score - reference + 1e-6  # what raised the score is left out
    young = pd.DataFrame({"age": [19.0], "hours": [59.0], "job": ["b"]})
    if shape == "additive":  # a line in age has no reason against the young and the old at once
        assert fv.reason_codes(model, young, BEST)[0][0][0] == "age"
    few = pd.DataFrame({"age": [44.0], "hours": [1.0], "job": ["b"]})
    assert fv.reason_codes(model, few, BEST)[0][0][0] == "hours"
    assert fv.reason_codes(model, dict(few), BEST) == fv.reason_codes(model, few, BEST)


def test_of_a_linear_model_parts_are_coefficients_times_differences() -> None:
    X = RNG.normal(size=(500, 3))
    model = LogisticRegression().fit(X, X @ [1.0, 2.0, -1.0] > 0)
    ((first, second),) = fv.reason_codes(model, [[-1.0, -1.0, -3.0]], [0.0, 0.0, 0.0])
    assert [first[0], second[0]] == [1, 0]
    assert first[1] == pytest.approx(-model.coef_[0][1])


def test_what_has_no_reasons_is_refused() -> None:
    X = RNG.normal(size=(500, 2))
    trees = HistGradientBoostingClassifier(max_iter=20).fit(X, X[:, 0] * X[:, 1] > 0)
    with pytest.raises(InputError, match="adds up over columns"):
        fv.reason_codes(trees, X[:20], [0.0, 0.0])
    with pytest.raises(InputError, match="value for each"):
        fv.reason_codes(trees, X[:20], [0.0])
    with pytest.raises(InputError, match="value for each"):
        fv.reason_codes(lambda rows: rows, X[:20], [0.0, 0.0])
