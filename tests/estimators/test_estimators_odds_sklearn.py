"""The post-processor in scikit-learn: pipelines, clones, searches, routing with groups
at prediction."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairveil as fv
from knobs import made


def gap_in(clf: Any, X: Any, y: Any) -> float:
    """`sex` was named at the fit, so that predictions find it in X."""
    return -fv.equalized_odds_gap(y, clf.predict(X), X["sex"], undefined="skip")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = 900
    sex = np.array(["f", "m"])[rng.integers(2, size=rows)]
    a, b = rng.normal(size=(2, rows)) + 0.5 * (sex == "m")
    hired = np.where(a + b + rng.normal(size=rows) > 0.3, "yes", "no")
    return pd.DataFrame({"a": a, "sex": sex, "b": b, "hired": hired})


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def fair(base: Any = None, **options: Any) -> fv.FairPostProcessor:
    options = {"epsilon": 5.0, "random_state": 0, "protects": "sensitive_features", **options}
    return made(
        fv.FairPostProcessor, base or LogisticRegression(), fv.EqualizedOdds(0.05), **options
    )


def test_the_constructor_only_stores_and_the_base_given_stays_as_it_was(
    table: pd.DataFrame,
) -> None:
    clf = fair()
    before = dict(vars(clf))
    clf.fit(table[["a", "b"]], table["hired"], sensitive_features=table["sex"])
    assert {name: value for name, value in vars(clf).items() if not name.endswith("_")} == before
    assert not hasattr(clf.estimator, "coef_")
    assert hasattr(clf.estimator_, "coef_")
    assert not hasattr(clone(clf), "model_")
    again = pickle.loads(pickle.dumps(clf))
    law = clf.predict_proba(table[["a", "b"]], sensitive_features=table["sex"])
    assert (again.predict_proba(table[["a", "b"]], sensitive_features=table["sex"]) == law).all()


def test_a_fitted_base_is_used_as_it_is_and_frozen_ones_outlive_clone(table: pd.DataFrame) -> None:
    X, y, sex = table[["a", "b"]], table["hired"], table["sex"]
    base = LogisticRegression(C=0.01).fit(X[:300], y[:300])
    coef = base.coef_.copy()
    clf = fair(base).fit(X, y, sensitive_features=sex)
    assert clf.estimator_ is base
    assert (base.coef_ == coef).all()
    frozen = clone(fair(FrozenEstimator(base))).fit(X, y, sensitive_features=sex)
    assert (frozen.estimator_.coef_ == coef).all()


def test_in_a_pipeline_the_groups_go_to_the_last_step(table: pd.DataFrame) -> None:
    pipeline = make_pipeline(StandardScaler(), fair())
    X, y, sex = table[["a", "b"]], table["hired"], table["sex"]
    pipeline.fit(X, y, fairpostprocessor__sensitive_features=sex)
    assert set(pipeline.predict(X, sensitive_features=sex)) == {"no", "yes"}


@pytest.mark.usefixtures("routing")
def test_with_routing_a_pipeline_and_its_scorer_are_handed_the_groups(table: pd.DataFrame) -> None:
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), fair())
    found = cross_validate(
        pipeline, table[["a", "b"]], table["hired"], cv=3,
        params={"sensitive_features": table["sex"]},
    )  # fmt: skip
    assert (found["test_score"] > 0.6).all()
    pipeline.fit(table[["a", "b"]], table["hired"], sensitive_features=table["sex"])
    assert (
        0.6
        < pipeline.score(table[["a", "b"]], table["hired"], sensitive_features=table["sex"])
        <= 1
    )


def test_names_of_columns_serve_at_fit_prediction_and_score(table: pd.DataFrame) -> None:
    X, y = table[["a", "sex", "b"]], table["hired"]
    clf = fair().fit(X, y, sensitive_features="sex")
    assert clf.feature_names_in_.tolist() == ["a", "sex", "b"]
    assert clf.estimator_.feature_names_in_.tolist() == ["a", "b"]
    by_name = clf.predict_proba(X, sensitive_features="sex")
    assert (clf.predict_proba(X) == by_name).all()  # X has the columns that were named at fit
    assert (
        clf.predict_proba(X[["a", "b"]], sensitive_features=table["sex"].to_numpy()) == by_name
    ).all()
    scores = cross_val_score(fair(), X, y, cv=3, params={"sensitive_features": "sex"})
    assert (scores > 0.6).all()


@pytest.mark.parametrize("on", [False, True])
def test_a_grid_search_over_two_processes(table: pd.DataFrame, on: bool) -> None:
    with sklearn.config_context(enable_metadata_routing=on):
        search = GridSearchCV(
            fair(),
            {"epsilon": [0.5, 5.0], "estimator__C": [0.1, 1.0]},
            scoring=gap_in,
            cv=2,
            n_jobs=2,
        )
        search.fit(table[["a", "sex", "b"]], table["hired"], sensitive_features="sex")
    assert search.best_estimator_.groups_ == ("f", "m")
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
