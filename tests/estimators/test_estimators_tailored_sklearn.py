"""Tailored estimators inside scikit-learn: its own checks, clones, pipelines, searches, routing of
groups."""

from __future__ import annotations

import pickle
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
from sklearn.utils.estimator_checks import parametrize_with_checks
from tailored_estimator_samples import INF, LABELS, SEX, X, Y, classifier, quietly, regressor

import fairveil as fv


# at its defaults it states no bounds of the target
@pytest.mark.filterwarnings("ignore::fairveil.errors.UnstatedBounds")
@parametrize_with_checks(
    [
        fv.TailoredRegressor(solver=fv.GroupDescent(rounds=5)),
        fv.TailoredRegressor(solver=fv.Moments(), epsilon=INF),
        fv.TailoredRegressor(
            protects="sensitive_features", max_sample_weight=10.0, solver=fv.GroupDescent(rounds=5)
        ),
        fv.TailoredClassifier(solver=fv.GroupDescent(rounds=5)),
    ]
)
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


FRAME = pd.DataFrame({"a": X[:, 0], "sex": SEX, "b": X[:, 1]})
FEATURES = FRAME[["a", "b"]]
BOTH = pytest.mark.parametrize(
    ("make", "target"), [(regressor, Y), (classifier, LABELS)], ids=["regressor", "classifier"]
)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@BOTH
def test_the_constructor_only_stores_and_fit_writes_only_names_with_an_underscore(
    make: Any, target: Any
) -> None:
    shares = {"f": 3.0, "m": 1.0}
    one = make(shares, max_epsilon={"f": 2.9}, min_epsilon=0.5)
    before = dict(vars(one))
    one.fit(X, target, sensitive_features=SEX)
    after = {name: value for name, value in vars(one).items() if not name.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    assert (pickle.loads(pickle.dumps(one)).predict(X) == one.predict(X)).all()
    copied = clone(one)
    assert copied.get_params() == one.get_params()
    assert not hasattr(copied, "tailoring_")
    with pytest.raises(ValueError, match="Invalid parameter"):
        copied.set_params(allocations="equal")


@BOTH
def test_a_second_fit_is_a_fit_of_its_own(make: Any, target: Any) -> None:
    one = make().fit(X, target, sensitive_features=SEX)
    one.set_params(allocation="equal").fit(X[:, :1], target)
    new = make("equal").fit(X[:, :1], target)
    assert (one.predict(X[:, :1]) == new.predict(X[:, :1])).all()
    assert one.tailoring_.table() == new.tailoring_.table()
    assert (one.groups_, one.privacy_.groups) == ((), ())


@BOTH
def test_in_a_pipeline_the_groups_go_to_the_last_step(make: Any, target: Any) -> None:
    pipeline = make_pipeline(StandardScaler(), make())
    pipeline.fit(FEATURES, target, **{f"{pipeline.steps[-1][0]}__sensitive_features": SEX})
    assert pipeline[-1].groups_ == ("f", "m")
    assert np.isfinite(pipeline.score(FEATURES, target))


@pytest.mark.usefixtures("routing")
@BOTH
def test_with_routing_nobody_calls_set_fit_request(make: Any, target: Any) -> None:
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), make())
    pipeline.fit(FEATURES, target, sensitive_features=SEX)
    assert pipeline[-1].groups_ == ("f", "m")
    found = cross_validate(
        make(), FEATURES, target, cv=2, params={"sensitive_features": SEX}, return_estimator=True
    )
    assert all(one.groups_ == ("f", "m") for one in found["estimator"])


@BOTH
def test_cross_validation_slices_columns_and_passes_names_on(make: Any, target: Any) -> None:
    by_column = cross_val_score(make(), FEATURES, target, cv=2, params={"sensitive_features": SEX})
    by_name = cross_val_score(make(), FRAME, target, cv=2, params={"sensitive_features": "sex"})
    assert by_column.tolist() == by_name.tolist()


@BOTH
def test_a_grid_search_over_rules(make: Any, target: Any) -> None:
    grid = {"allocation": ["least-noise", {"f": 2.0, "m": 1.0}], "group_loss_bound": [None, 100.0]}
    search = GridSearchCV(make(rounds=3), grid, cv=2)
    quietly(search, FRAME, target, sensitive_features="sex")
    assert search.best_estimator_.groups_ == ("f", "m")
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
