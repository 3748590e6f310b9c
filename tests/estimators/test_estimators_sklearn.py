"""The scikit-learn face: pipelines, clones, searches, routing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairveil as fv
from knobs import made


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = 600
    sex = np.array(["f", "m"])[rng.integers(2, size=rows)]
    a, b = rng.normal(size=(2, rows)) + 0.3 * (sex == "m")
    hired = np.where(a + b + rng.normal(size=rows) > 0.3, "yes", "no")
    return pd.DataFrame({"a": a, "sex": sex, "b": b, "hired": hired})


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def fair(**options: Any) -> fv.FairClassifier:
    return made(
        fv.FairClassifier,
        fv.DemographicParity(0.3),
        epsilon=5.0,
        random_state=0,
        solver=fv.PrimalDual(rounds=20),
        **options,
    )


def gap_in(clf: Any, X: Any, y: Any) -> float:
    return -fv.demographic_parity_gap(y, clf.predict(X), X["sex"], undefined="skip")


def test_in_a_pipeline_the_groups_go_to_the_last_step(table: pd.DataFrame) -> None:
    pipeline = make_pipeline(StandardScaler(), fair())
    groups = {"fairclassifier__sensitive_features": table["sex"]}
    pipeline.fit(table[["a", "b"]], table["hired"], **groups)
    assert pipeline[-1].groups_ == ("f", "m")
    assert 0.5 < pipeline.score(table[["a", "b"]], table["hired"]) <= 1


@pytest.mark.usefixtures("routing")
def test_in_a_pipeline_with_routing_nobody_calls_set_fit_request(table: pd.DataFrame) -> None:
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), fair())
    pipeline.fit(table[["a", "b"]], table["hired"], sensitive_features=table["sex"])
    assert pipeline[-1].groups_ == ("f", "m")


def test_cross_validation_slices_columns_and_passes_names_on(table: pd.DataFrame) -> None:
    X, y = table[["a", "b"]], table["hired"]
    by_column = cross_val_score(
        fair(), X, y, cv=3, params={"sensitive_features": table["sex"].to_numpy()}
    )
    by_name = cross_val_score(
        fair(), table[["a", "sex", "b"]], y, cv=3, params={"sensitive_features": "sex"}
    )
    assert by_column.tolist() == by_name.tolist()


@pytest.mark.usefixtures("routing")
def test_with_routing_estimator_and_scorer_are_handed_the_groups(table: pd.DataFrame) -> None:
    gap = make_scorer(fv.demographic_parity_gap, greater_is_better=False, undefined="skip")
    gap.set_score_request(sensitive_features=True, sample_weight=True)
    found = cross_validate(
        fair(), table[["a", "b"]], table["hired"], cv=3, scoring={"gap": gap, "right": "accuracy"},
        params={"sensitive_features": table["sex"]},
    )  # fmt: skip
    assert (found["test_gap"] <= 0).all()
    assert (found["test_right"] > 0.5).all()
    weighted = cross_val_score(
        fair(max_sample_weight=2.0), table[["a", "b"]], table["hired"], cv=3, scoring=gap,
        params={"sensitive_features": table["sex"], "sample_weight": np.linspace(1, 2, len(table))},
    )  # fmt: skip
    assert (weighted <= 0).all()


@pytest.mark.parametrize("on", [False, True])
def test_a_grid_search_over_two_processes(table: pd.DataFrame, on: bool) -> None:
    with sklearn.config_context(enable_metadata_routing=on):
        search = GridSearchCV(fair(), {"epsilon": [0.5, 5.0]}, scoring=gap_in, cv=2, n_jobs=2)
        search.fit(table[["a", "sex", "b"]], table["hired"], sensitive_features="sex")
    assert search.best_estimator_.groups_ == ("f", "m")
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
