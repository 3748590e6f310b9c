"""A prediction is what its distribution says: draws, probabilities, scores and coefficients."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from configurations import ESTIMATORS, Configuration, Table, people
from observing import predicted
from scipy.stats import binom

import fairveil as fv

DRAWS, FALSE_ALARM = 100, 1e-9


def takes(method: Any, name: str) -> bool:
    return name in inspect.signature(method).parameters


def classifies(row: Configuration) -> bool:
    return row.target != "pay"


def test_draws_follow_the_distribution(
    estimator_row: Configuration, fitted: Any, table: Table
) -> None:
    """Of a randomized classifier every row's share of draws is its probability, within an exact
    binomial bound; of another one every draw is the same, and is the likeliest class."""
    clf, row = fitted(estimator_row), estimator_row
    if not classifies(row):
        return
    X, groups = row.features(table), row.groups(table)
    classes = np.asarray(clf.classes_).astype(str)
    seeds = range(DRAWS) if takes(clf.predict, "random_state") else range(1)
    draws = np.stack([predicted(clf, "predict", X, groups, seed).astype(str) for seed in seeds])
    chances = predicted(clf, "predict_proba", X, groups)
    assert np.allclose(chances.sum(axis=1), 1.0)
    assert chances.min() >= 0
    if (draws == draws[0]).all():
        best = classes[chances.argmax(axis=1)]
        sure = np.abs(np.sort(chances, axis=1)[:, -1] - np.sort(chances, axis=1)[:, -2]) > 1e-9
        assert (draws[0] == best)[sure].all()
        return
    level = FALSE_ALARM / chances.size
    for place, name in enumerate(classes):
        seen, p = (draws == name).sum(axis=0), np.clip(chances[:, place], 0, 1)
        assert (seen >= binom.ppf(level, DRAWS, p)).all(), name
        assert (seen <= binom.ppf(1 - level, DRAWS, p)).all(), name
        assert not seen[p == 0].any()


def test_the_score_is_the_expected_share_of_right_answers(
    estimator_row: Configuration, fitted: Any, table: Table
) -> None:
    clf, row = fitted(estimator_row), estimator_row
    X, y, groups = row.features(table), table[row.target], row.groups(table)
    options = {"sensitive_features": groups} if takes(clf.score, "sensitive_features") else {}
    score = clf.score(X, y, **options)
    if not classifies(row):
        found = predicted(clf, "predict", X, groups)
        assert score == pytest.approx(1 - ((y - found) ** 2).sum() / ((y - y.mean()) ** 2).sum())
        return
    chances = predicted(clf, "predict_proba", X, groups)
    if not takes(clf.predict, "random_state") or not is_drawn(clf, X, groups):
        chances = np.eye(len(clf.classes_))[chances.argmax(axis=1)]
    codes = np.searchsorted(np.sort(clf.classes_), y)
    codes = np.argsort(clf.classes_)[codes]
    assert score == pytest.approx(chances[np.arange(len(y)), codes].mean())


def is_drawn(clf: Any, X: Any, groups: Any) -> bool:
    draws = [predicted(clf, "predict", X, groups, seed).tolist() for seed in range(6)]
    return any(one != draws[0] for one in draws)


def test_coefficients_are_the_model_in_the_units_of_the_table(
    estimator_row: Configuration, fitted: Any, table: Table
) -> None:
    """Its own arithmetic: numbers times coefficients, and one coefficient a word."""
    clf, row = fitted(estimator_row), estimator_row
    if not hasattr(clf, "coef_") or "additive" in str(getattr(clf, "model", "")):
        return
    names = list(clf.coef_names_)
    design = np.column_stack([column_of(name, table) for name in names])
    coef = np.atleast_2d(clf.coef_)
    score = design @ coef.T + np.atleast_1d(clf.intercept_)
    X, groups = row.features(table), row.groups(table)
    if not classifies(row):
        found = predicted(clf, "predict", X, groups)
        assert np.allclose(np.clip(score[:, 0], found.min(), found.max()), found, atol=1e-6)
        return
    given = predicted(clf, "decision_function", X, groups)
    assert np.allclose(score if score.shape[1] > 1 else score[:, 0], given, atol=1e-6)
    codes = score.argmax(axis=1) if score.shape[1] > 1 else (score[:, 0] > 0).astype(int)
    assert (np.asarray(clf.classes_)[codes] == predicted(clf, "predict", X, groups)).all()


def column_of(name: str, table: Table) -> np.ndarray:
    column, _, word = name.partition("=")
    return (table[column] == word).astype(float) if word else table[column]


def test_a_group_that_was_not_there_is_named(fitted: Any, table: Table) -> None:
    for row in ESTIMATORS.values():
        clf = fitted(row)
        if not takes(clf.predict, "sensitive_features") or "aware" not in row.tags:
            continue
        groups = row.groups(table) | {"sex": np.full(len(table["sex"]), "martian")}
        with pytest.raises(fv.errors.InputError, match="martian"):
            predicted(clf, "predict", row.features(table), groups)
        with pytest.raises(fv.errors.InputError, match="sensitive_features"):
            clf.predict(row.features(table))


def test_only_group_aware_models_change_with_the_group(
    estimator_row: Configuration, fitted: Any, table: Table
) -> None:
    clf, row = fitted(estimator_row), estimator_row
    other = {name: np.roll(column, 1) for name, column in row.groups(table).items()}
    if not classifies(row) or not takes(clf.predict_proba, "sensitive_features"):
        return
    X = row.features(table)
    one, two = (clf.predict_proba(X, sensitive_features=g) for g in (row.groups(table), other))
    if "aware" not in row.tags:
        return
    same = np.all([row.groups(table)[name] == other[name] for name in other], axis=0)
    assert np.array_equal(one[same], two[same])


@pytest.mark.parametrize("change", ["missing", "unknown", "infinite"])
def test_cells_that_were_not_declared_are_refused_at_prediction(
    estimator_row: Configuration, fitted: Any, change: str
) -> None:
    if change == "infinite" and estimator_row.schema:
        return  # beyond its bounds, a number is clipped
    table = people(8, 2)
    age, job = table["age"].copy(), table["job"].astype(object)
    if change == "missing":
        age[3] = np.nan
    elif change == "infinite":
        age[3] = np.inf
    else:
        job[3] = "astronaut"
    X = estimator_row.features(table | {"age": age, "job": job})
    with pytest.raises(fv.errors.FairveilError) as told:
        predicted(fitted(estimator_row), "predict", X, estimator_row.groups(table))
    assert ("job" if change == "unknown" else "age") in str(told.value)


@pytest.mark.parametrize("name", ["descent", "descent-grades"])
def test_without_privacy_reports_are_exact(name: str, unprotected: Any, table: Table) -> None:
    """What a fit at epsilon infinity reports of its training rows is what a measure finds there."""
    row = ESTIMATORS[name]
    clf = unprotected(row)
    chances = predicted(clf, "predict_proba", row.features(table), row.groups(table))
    codes = (
        chances
        if is_drawn(clf, row.features(table), row.groups(table))
        else (np.eye(len(clf.classes_))[chances.argmax(axis=1)])
    )
    keys = [*zip(*(table[column] for column in row.sensitive), strict=True)]
    rates = {key: codes[[k == key for k in keys]].mean(axis=0) for key in set(keys)}
    gap = max(
        abs(a[place] - b[place])
        for a in rates.values()
        for b in rates.values()
        for place in range(codes.shape[1])
    )
    report = clf.constraint_report_
    assert max(line.value for line in report.lines if hasattr(line, "value")) == pytest.approx(
        gap, abs=1e-9
    )
