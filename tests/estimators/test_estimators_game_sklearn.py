"""The game inside scikit-learn: its own checks, clones, pipelines, searches, routing of groups."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import fairveil as fv
from fairveil.errors import ConstraintNotMet
from knobs import made


@parametrize_with_checks(
    [
        fv.OracleGameClassifier(),
        fv.OracleGameClassifier(epsilon=float("inf"), protects="sensitive_features", rounds=20),
    ]
)
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("oracle", ["exponential", "descent"])
def test_scikit_learns_checks_of_fits_pass_with_every_oracle(oracle: str) -> None:
    done = 0
    for estimator, check in estimator_checks_generator(
        fv.OracleGameClassifier(oracle=oracle, rounds=5)
    ):
        if any(
            part in check.func.__name__
            for part in ("classes", "one_sample", "dict_unchanged", "sample_weights", "dtypes")
        ):
            check(estimator)
            done += 1
    assert done >= 6


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = 600
    sex = np.array(["f", "m"])[rng.integers(2, size=rows)]
    a, b = rng.normal(size=(2, rows)) + 0.3 * (sex == "m")
    hired = np.where(a + b + rng.normal(size=rows) > 0.3, "yes", "no")
    return pd.DataFrame({"a": a, "sex": sex, "b": b, "hired": hired})


@pytest.fixture(autouse=True)
def calm() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        yield


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def fair(**options: Any) -> fv.OracleGameClassifier:
    options = {
        "epsilon": 5.0,
        "random_state": 0,
        "rounds": 10,
        "protects": "sensitive_features",
        **options,
    }
    return made(fv.OracleGameClassifier, fv.DemographicParity(0.3), **options)


GAP = fv.fair_scorer(fv.demographic_parity_gap, greater_is_better=False, undefined="skip")
NAMED_GAP = fv.fair_scorer(
    fv.demographic_parity_gap, greater_is_better=False, sensitive_features="sex", undefined="skip"
)
SOFT = fv.fair_scorer(fv.demographic_parity_gap, response="predict_proba")


@pytest.mark.parametrize("options", [{}, {"group_aware": True}, {"oracle": "exponential"}])
def test_the_constructor_only_stores_and_fit_writes_only_names_with_an_underscore(
    options: Any, table: pd.DataFrame
) -> None:
    clf = fair(**options)
    before = dict(vars(clf))
    clf.fit(table[["a", "b"]], table["hired"], sensitive_features=table["sex"])
    assert {name: value for name, value in vars(clf).items() if not name.endswith("_")} == before
    assert vars(clone(clf)) == before
    again = pickle.loads(pickle.dumps(clf))
    groups = table["sex"] if options.get("group_aware") else None
    given = (
        clf.predict_proba(table[["a", "b"]], sensitive_features=groups) for clf in (clf, again)
    )
    assert (next(given) == next(given)).all()


def test_in_a_pipeline_the_groups_go_to_the_last_step(table: pd.DataFrame) -> None:
    pipeline = make_pipeline(StandardScaler(), fair())
    groups = {"oraclegameclassifier__sensitive_features": table["sex"]}
    pipeline.fit(table[["a", "b"]], table["hired"], **groups)
    assert pipeline[-1].groups_ == ("f", "m")
    assert 0.5 < pipeline.score(table[["a", "b"]], table["hired"]) <= 1


@pytest.mark.usefixtures("routing")
def test_in_a_pipeline_with_routing_nobody_calls_set_fit_request(table: pd.DataFrame) -> None:
    pipeline = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False), fair(group_aware=True)
    )
    pipeline.fit(table[["a", "b"]], table["hired"], sensitive_features=table["sex"])
    assert pipeline[-1].groups_ == ("f", "m")
    assert pipeline.predict(table[["a", "b"]], sensitive_features=table["sex"]).shape == (600,)


def test_cross_validation_slices_columns_and_passes_names_on(table: pd.DataFrame) -> None:
    features, y = table[["a", "b"]], table["hired"]
    by_column = cross_val_score(
        fair(), features, y, cv=3, params={"sensitive_features": table["sex"].to_numpy()}
    )
    by_name = cross_val_score(
        fair(), table[["a", "sex", "b"]], y, cv=3, params={"sensitive_features": "sex"}
    )
    assert by_column.tolist() == by_name.tolist()
    aware = cross_val_score(
        fair(group_aware=True),
        table[["a", "sex", "b"]],
        y,
        cv=3,
        params={"sensitive_features": "sex"},
    )
    assert (aware > 0.5).all()


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("aware", [False, True])
def test_with_routing_estimator_and_scorer_are_handed_the_groups(
    table: pd.DataFrame, aware: bool
) -> None:
    found = cross_validate(
        fair(group_aware=aware), table[["a", "b"]], table["hired"], cv=3, scoring={"gap": GAP},
        params={"sensitive_features": table["sex"]},
    )  # fmt: skip
    assert (found["test_gap"] <= 0).all()
    scores = cross_val_score(
        fair(group_aware=aware),
        table[["a", "b"]],
        table["hired"],
        cv=3,
        params={"sensitive_features": table["sex"]},
    )
    assert (scores > 0.5).all()


@pytest.mark.parametrize("aware", [False, True])
def test_without_routing_a_scorer_takes_columns_by_name(table: pd.DataFrame, aware: bool) -> None:
    frame = table[["a", "sex", "b"]]
    clf = fair(group_aware=aware).fit(frame, table["hired"], sensitive_features="sex")
    assert NAMED_GAP(clf, frame, table["hired"]) <= 0
    soft = SOFT(clf, frame, table["hired"], sensitive_features=table["sex"])
    wanted = fv.demographic_parity_gap(
        None, clf.predict_proba(frame), table["sex"], classes=("no", "yes")
    )
    assert soft == pytest.approx(wanted)


@pytest.mark.parametrize("on", [False, True])
def test_a_grid_search_over_oracles(table: pd.DataFrame, on: bool) -> None:
    with sklearn.config_context(enable_metadata_routing=on):
        search = GridSearchCV(
            fair(), {"oracle": ["regression", "descent"]}, scoring=NAMED_GAP, cv=2
        )
        search.fit(table[["a", "sex", "b"]], table["hired"], sensitive_features="sex")
    assert search.best_estimator_.groups_ == ("f", "m")
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
