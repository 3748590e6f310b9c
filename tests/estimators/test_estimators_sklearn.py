"""The scikit-learn face: pipelines, clones, searches, routing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
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


GAP = fv.fair_scorer(fv.demographic_parity_gap, greater_is_better=False, undefined="skip")
NAMED_GAP = fv.fair_scorer(
    fv.demographic_parity_gap, greater_is_better=False, sensitive_features="sex", undefined="skip"
)


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
    found = cross_validate(
        fair(), table[["a", "b"]], table["hired"], cv=3, scoring={"gap": GAP, "right": "accuracy"},
        params={"sensitive_features": table["sex"]},
    )  # fmt: skip
    assert (found["test_gap"] <= 0).all()
    assert (found["test_right"] > 0.5).all()
    weighted = cross_val_score(
        fair(max_sample_weight=2.0), table[["a", "b"]], table["hired"], cv=3, scoring=GAP,
        params={"sensitive_features": table["sex"], "sample_weight": np.linspace(1, 2, len(table))},
    )  # fmt: skip
    assert (weighted <= 0).all()


def test_without_routing_a_scorer_takes_columns_by_name(table: pd.DataFrame) -> None:
    clf = fair().fit(table[["a", "sex", "b"]], table["hired"], sensitive_features="sex")
    gap = fv.demographic_parity_gap(None, clf.predict(table[["a", "sex", "b"]]), table["sex"])
    assert NAMED_GAP(clf, table[["a", "sex", "b"]], table["hired"]) == pytest.approx(-gap)
    assert GAP(
        clf, table[["a", "b"]], table["hired"], sensitive_features=table["sex"]
    ) == pytest.approx(-gap)
    found = cross_val_score(
        fair(),
        table[["a", "sex", "b"]],
        table["hired"],
        cv=3,
        scoring=NAMED_GAP,
        params={"sensitive_features": "sex"},
    )
    assert (found <= 0).all()


@pytest.mark.parametrize("on", [False, True])
def test_a_grid_search_over_two_processes(table: pd.DataFrame, on: bool) -> None:
    with sklearn.config_context(enable_metadata_routing=on):
        search = GridSearchCV(fair(), {"epsilon": [0.5, 5.0]}, scoring=NAMED_GAP, cv=2, n_jobs=2)
        search.fit(table[["a", "sex", "b"]], table["hired"], sensitive_features="sex")
    assert search.best_estimator_.groups_ == ("f", "m")
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_scorer_without_groups_says_how_to_get_them(table: pd.DataFrame) -> None:
    clf = fair().fit(table[["a", "b"]], table["hired"], sensitive_features=table["sex"])
    with pytest.raises(fv.errors.InputError, match="enable_metadata_routing"):
        GAP(clf, table[["a", "b"]], table["hired"])
    with pytest.raises(fv.errors.InputError, match="data frame"):
        NAMED_GAP(clf, table[["a", "b"]], table["hired"])
    with pytest.raises(fv.errors.InputError, match="params="):
        fv.fair_scorer(fv.demographic_parity_gap, sensitive_features=table["sex"])
    with pytest.raises(fv.errors.InputError, match="response"):
        fv.fair_scorer(fv.demographic_parity_gap, response="transform")


def test_a_scorer_of_probabilities_knows_the_classes(table: pd.DataFrame) -> None:
    X = table[["a", "b"]]
    clf = fair().fit(X, table["hired"], sensitive_features=table["sex"])
    soft = fv.fair_scorer(fv.demographic_parity_gap, response="predict_proba")
    expected = fv.demographic_parity_gap(
        None, clf.predict_proba(X), table["sex"], classes=("no", "yes")
    )
    assert soft(clf, X, table["hired"], sensitive_features=table["sex"]) == pytest.approx(expected)
