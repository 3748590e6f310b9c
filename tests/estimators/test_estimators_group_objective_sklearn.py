"""Group objectives inside scikit-learn: its own checks, clones, pipelines, searches, routing of
groups."""

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
from fairveil.fairness import objectives as ob
from knobs import made


@parametrize_with_checks(
    [
        fv.GroupObjectiveClassifier(solver=fv.LinearOracle(rounds=20)),
        fv.GroupObjectiveClassifier(
            epsilon=float("inf"), protects="sensitive_features", solver=fv.LinearOracle(rounds=20)
        ),
    ]
)
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "exponential"},
        {"objective": "gmean", "rounds": 5},
        {"method": "frank-wolfe", "rounds": 5},
        {"loss": "log", "rounds": 5},
    ],
    ids=str,
)
def test_scikit_learns_checks_of_fits_pass_with_every_method(options: Any) -> None:
    done = 0
    for estimator, check in estimator_checks_generator(
        made(fv.GroupObjectiveClassifier, **options)
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


def fair(**options: Any) -> fv.GroupObjectiveClassifier:
    options = {
        "epsilon": 5.0,
        "random_state": 0,
        "rounds": 10,
        "protects": "sensitive_features",
        **options,
    }
    return made(fv.GroupObjectiveClassifier, "gmean", "demographic_parity:0.3", **options)


GAP = fv.fair_scorer(fv.demographic_parity_gap, greater_is_better=False, undefined="skip")
NAMED_GAP = fv.fair_scorer(
    fv.demographic_parity_gap, greater_is_better=False, sensitive_features="sex", undefined="skip"
)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "exponential", "rounds": None},
        {"decisions": np.random.default_rng(0).normal(size=(6, 3))},
    ],
    ids=["", "exponential", "weights"],
)
def test_the_constructor_only_stores_and_fit_writes_only_names_with_an_underscore(
    options: Any, table: pd.DataFrame
) -> None:
    clf = fair(**options)
    before = dict(vars(clf))
    clf.fit(table[["a", "b"]], table["hired"], sensitive_features=table["sex"])
    after = {name: value for name, value in vars(clf).items() if not name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    again = pickle.loads(pickle.dumps(clf))
    assert (again.predict_proba(table[["a", "b"]]) == clf.predict_proba(table[["a", "b"]])).all()
    copied = clone(clf).get_params()
    assert copied.keys() == clf.get_params().keys()
    assert all(np.array_equal(copied[name], value) for name, value in clf.get_params().items())
    assert not hasattr(clone(clf), "outcome_")


def test_objects_are_parameters_too() -> None:
    """A clone has the same ones, and set_params takes them."""
    clf = fv.GroupObjectiveClassifier(
        ob.Gap("equalized_odds", 30.0), [ob.GMean().at_least(0.5), fv.DemographicParity(0.1)]
    )
    copied = clone(clf)
    assert str(copied.get_params()) == str(clf.get_params())
    copied.set_params(
        objective="error", constraint=None, method="exponential", decisions="directions"
    )
    assert (copied.objective, copied.constraint, copied.method, copied.decisions) == (
        "error",
        None,
        "exponential",
        "directions",
    )
    with pytest.raises(ValueError, match="Invalid parameter"):
        copied.set_params(objectives="error")


def test_in_a_pipeline_the_groups_go_to_the_last_step(table: pd.DataFrame) -> None:
    pipeline = make_pipeline(StandardScaler(), fair())
    groups = {"groupobjectiveclassifier__sensitive_features": table["sex"]}
    pipeline.fit(table[["a", "b"]], table["hired"], **groups)
    assert pipeline[-1].groups_ == ("f", "m")
    assert 0.5 < pipeline.score(table[["a", "b"]], table["hired"]) <= 1


@pytest.mark.usefixtures("routing")
def test_in_a_pipeline_with_routing_nobody_calls_set_fit_request(table: pd.DataFrame) -> None:
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), fair())
    pipeline.fit(table[["a", "b"]], table["hired"], sensitive_features=table["sex"])
    assert pipeline[-1].groups_ == ("f", "m")
    drawn = pipeline.predict(table[["a", "b"]], random_state=1)
    assert (
        drawn == pipeline[-1].predict(pipeline[:-1].transform(table[["a", "b"]]), random_state=1)
    ).all()


def test_cross_validation_slices_columns_and_passes_names_on(table: pd.DataFrame) -> None:
    features, y = table[["a", "b"]], table["hired"]
    by_column = cross_val_score(
        fair(), features, y, cv=3, params={"sensitive_features": table["sex"].to_numpy()}
    )
    by_name = cross_val_score(
        fair(), table[["a", "sex", "b"]], y, cv=3, params={"sensitive_features": "sex"}
    )
    assert by_column.tolist() == by_name.tolist()
    assert (by_column > 0.5).all()


@pytest.mark.usefixtures("routing")
def test_with_routing_estimator_and_scorer_are_handed_the_groups(table: pd.DataFrame) -> None:
    found = cross_validate(
        fair(),
        table[["a", "b"]],
        table["hired"],
        cv=3,
        scoring={"gap": GAP},
        params={"sensitive_features": table["sex"]},
    )
    assert (found["test_gap"] <= 0).all()


@pytest.mark.parametrize("on", [False, True])
def test_a_grid_search_over_methods_and_objectives(table: pd.DataFrame, on: bool) -> None:
    grid = {"method": ["linear-oracle", "exponential"], "objective": ["error", ob.HMean()]}
    with sklearn.config_context(enable_metadata_routing=on):
        search = GridSearchCV(fair(rounds=None), grid, scoring=NAMED_GAP, cv=2)
        search.fit(table[["a", "sex", "b"]], table["hired"], sensitive_features="sex")
    assert search.best_estimator_.groups_ == ("f", "m")
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
