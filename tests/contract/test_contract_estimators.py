"""Estimators as scikit-learn knows them: parameters, clones, pickles, and its own checks."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from configurations import ESTIMATORS, Configuration, Table
from observing import METHODS, predicted, shown
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import fairveil as fv
import ways

CHECKED = [
    fv.FairClassifier(epsilon=float("inf")),
    ways.fermi(epsilon=float("inf")),
    ways.game(rounds=3, epsilon=100.0, random_state=0),
    ways.objective_regression(epsilon=float("inf")),
    ways.tailored(),
    fv.FairPostProcessor(epsilon=float("inf")),
]


@parametrize_with_checks(CHECKED)
def test_checks_of_sklearn(estimator: Any, check: Any) -> None:
    check(estimator)


def same(one: Any, other: Any, row: Configuration, table: Table) -> None:
    """Equal statements, and equal answers to the bit."""
    assert row.statement(one).to_json() == row.statement(other).to_json()
    X, groups = row.features(table), row.groups(table)
    for name in METHODS:
        if hasattr(one, name):
            left, right = (predicted(each, name, X, groups) for each in (one, other))
            assert left.tobytes() == right.tobytes(), name


def test_the_constructor_stores_and_does_nothing_else(estimator_row: Configuration) -> None:
    estimator = estimator_row.estimator()
    names = inspect.signature(type(estimator).__init__).parameters
    for name in names:
        if name not in {"self", "args", "kwargs"} and name in estimator.get_params(deep=False):
            odd = object()
            try:
                other = type(estimator)(**(estimator.get_params(deep=False) | {name: odd}))
            except TypeError as error:
                raise AssertionError(f"{name} is looked at before the fit") from error
            assert getattr(other, name) is odd
    assert not [name for name in vars(estimator) if name.endswith("_")]


def test_a_clone_of_a_fit_is_its_parameters_and_fits_the_same(
    estimator_row: Configuration, fitted: Any, table: Table
) -> None:
    """And a fit leaves its parameters alone."""
    first = fitted(estimator_row)
    again = clone(first)
    assert not [name for name in vars(again) if name.endswith("_") and not name.startswith("_")]
    before = dict(again.get_params(deep=False))
    args, kwargs = estimator_row.arguments(table)
    assert again.fit(*args, **kwargs) is again
    after = again.get_params(deep=False)
    assert all(after[name] is before[name] for name in before)
    same(first, again, estimator_row, table)


def test_a_pickle_is_the_fit(estimator_row: Configuration, fitted: Any, table: Table) -> None:
    first = fitted(estimator_row)
    same(first, pickle.loads(pickle.dumps(first)), estimator_row, table)


def test_parameters_that_are_set_count_as_given(estimator_row: Configuration, table: Table) -> None:
    changes = {"epsilon": 1.5, "random_state": 3}
    args, kwargs = estimator_row.arguments(table)
    late = estimator_row.estimator().set_params(**changes).fit(*args, **kwargs)
    same(estimator_row.run(table, **changes), late, estimator_row, table)
    assert 0 < estimator_row.statement(late).epsilon <= 1.5


def test_nothing_is_answered_before_a_fit(estimator_row: Configuration, table: Table) -> None:
    estimator = estimator_row.estimator()
    X, groups = estimator_row.features(table), estimator_row.groups(table)
    for name in METHODS:
        with pytest.raises((NotFittedError, AttributeError)):
            predicted(estimator, name, X, groups)
    with pytest.raises(NotFittedError):
        predicted(estimator, "predict", X, groups)


def test_a_seed_repeats_and_another_does_not(
    row: Configuration, fitted: Any, state: Any, table: Table
) -> None:
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    first, again = state(row), row.run(table)
    assert first == shown(again)
    assert before == np.random.get_state()[1].tobytes()  # noqa: NPY002
    # Noise of a few counts may be zeros twice: some seed differs.
    assert any(first != shown(row.run(table, random_state=seed)) for seed in range(1, 12))
    assert "seeded-noise" in row.statement(fitted(row)).stamps


def test_secure_noise_never_repeats(row: Configuration, table: Table) -> None:
    results = list[Any]()

    def differ() -> bool:
        return any(shown(results[0]) != shown(other) for other in results[1:])

    # Noise of a count is often zero: the likeliest counts come in a third of all runs.
    while len(results) < 2 or (not differ() and len(results) < 30):
        np.random.seed(5)  # noqa: NPY002
        results.append(row.run(table, random_state=None))
    assert differ()
    for result in results:
        statement = row.statement(result)
        assert "seeded-noise" not in statement.stamps
        assert statement.noise == "secure"


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_a_generator_repeats_and_goes_on(kind: Any, table: Table) -> None:
    row, generator = ESTIMATORS["descent"], kind(3)
    X = row.features(table)
    runs = [row.run(table, random_state=one) for one in (kind(3), generator, generator)]
    first, again, then = (run.predict_proba(X) for run in runs)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, then)


def test_a_fit_has_a_page_that_says_what_its_reports_say(
    estimator_row: Configuration, fitted: Any
) -> None:
    clf = fitted(estimator_row)
    if not hasattr(type(clf), "report_"):
        pytest.skip("a search, whose best estimator has a page")
    page, found = clf.report_, getattr(clf, "constraint_report_", None)
    assert page.statement is clf.privacy_
    assert type(clf).__name__ in page.method
    told = {fact.label: fact.words for fact in page.decision()}
    assert {"Fairness", "Privacy", "Error", "Not assessed"} <= set(told)
    required = [one for one in page.required if one.population_verdict is not None]
    if found is not None and required:
        values = {max(line.value, 0.0) for line in found.lines} | {one.value for one in found.lines}
        assert {one.training_noisy for one in required} <= values
        assert {one.population_verdict for one in required} <= {
            line.population_verdict for line in found.lines
        } | {found.verdict, "inconclusive", "not met"}
        if found.verdict == "met":
            assert {one.population_verdict for one in required} == {"met"}
    text = " ".join(str(page).split())
    assert all(one.sentence in text for one in required)
