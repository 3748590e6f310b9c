"""Linear models as fitted estimators of scikit-learn: the same probabilities, classes and numbers;
what cannot be put so is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from export_samples import ARRAYS, MAKERS, REGRESSIONS, frame, hard, people, sample, shown
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline

import fairveil as fv
from fairveil.errors import FairveilError, InputError

LINEAR = (
    "linear",
    "softmax",
    "log loss",
    "table",
    "array",
    "array standardised",
    "truths",
    *sorted(REGRESSIONS),
)
OTHERS = tuple(name for name in MAKERS if name not in LINEAR)


@pytest.mark.parametrize("name", LINEAR)
def test_guarantee_1_ordinary_rows_are_decided_alike(name: str) -> None:
    clf, found = sample(name), fv.export.to_sklearn(sample(name))
    X, _ = shown(name, people(200, 11))
    if name in REGRESSIONS:
        X = (
            np.column_stack([people(200, 11)[one] for one in ("age", "hours a week", "owns")])
            if "array" in name
            else X
        )
        assert np.allclose(found.predict(X), clf.predict(X), atol=1e-9)
        return
    assert np.allclose(found.predict_proba(X), clf.predict_proba(X), atol=1e-9)
    assert found.predict(X).tolist() == clf.predict(X).tolist()
    assert pickle.loads(pickle.dumps(found)).predict(X).tolist() == clf.predict(X).tolist()


def test_arrays_have_bare_models_and_tables_find_columns_by_name() -> None:
    assert type(fv.export.to_sklearn(sample("array"))) is LogisticRegression
    assert type(fv.export.to_sklearn(sample("regression of an array"))) is LinearRegression
    found = fv.export.to_sklearn(sample("linear"))
    assert type(found) is Pipeline
    X = frame(people(50, 2))
    turned = X[X.columns[::-1]].assign(further=1.0)
    assert np.array_equal(found.predict_proba(turned), found.predict_proba(X))


@pytest.mark.parametrize("name", ["linear", "softmax"])
def test_guarantee_2_hard_rows_are_decided_or_refused_alike(name: str) -> None:
    """But for infinite numbers, which scikit-learn always refuses."""
    clf, found, table = sample(name), fv.export.to_sklearn(sample(name)), frame(hard(60))
    for at in range(60):
        row = table.iloc[at : at + 1]
        endless = any(isinstance(one, float) and np.isinf(one) for one in row.iloc[0])
        try:
            expected: Any = clf.predict_proba(row)
        except FairveilError:
            expected = None
        if expected is None or endless:
            with pytest.raises(ValueError, match=r"NaN|unknown categories|infinity"):
                found.predict_proba(row)
        else:
            assert np.allclose(found.predict_proba(row), expected, atol=1e-9)


@pytest.mark.parametrize("name", OTHERS)
def test_guarantee_2_what_is_no_linear_model_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="sql_query"):
        fv.export.to_sklearn(sample(name))
    assert name not in ARRAYS
