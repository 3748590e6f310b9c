"""`FairPostProcessor` with offsets: its price and statement, what it does, what it refuses."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import fairveil as fv
import ways
from fairveil.errors import BudgetError, FairveilError, InputError, PrivacyError
from knobs import made

RNG = np.random.default_rng(0)
ROWS = 6000
A = RNG.choice(["f", "m", "x"], ROWS, p=[0.5, 0.4, 0.1])
X = (
    RNG.normal(size=(ROWS, 4))
    + (A == "m")[:, None] * [0.8, 0, 0, 0]
    + (A == "x")[:, None] * [0, 0.9, 0, 0]
)
Y = np.array(["low", "mid", "high"])[
    (X @ RNG.normal(size=(4, 3)) + RNG.gumbel(size=(ROWS, 3))).argmax(axis=1)
]
BASE = LogisticRegression(max_iter=300).fit(X[:2000], Y[:2000])
REST = slice(2000, None)


PARITY = "demographic_parity:0.05"


def fit(base: Any = BASE, constraints: Any = PARITY, **options: Any) -> fv.FairPostProcessor:
    given = {"random_state": 0, "public_base": True, "solver": fv.Offsets(), **options}
    clf = made(fv.FairPostProcessor, base, constraints, **given)
    return clf.fit(X[REST], sensitive_features=A[REST])


def gap_of(clf: fv.FairPostProcessor) -> float:
    law = clf.predict_proba(X[REST], sensitive_features=A[REST])
    return float(np.ptp([law[A[REST] == group].mean(axis=0) for group in "fmx"], axis=0).max())


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("randomised", [True, False])
def test_groups_get_every_class_at_nearly_equal_rates(epsilon: float, randomised: bool) -> None:
    before = BASE.predict(X[REST])
    gap = max(
        np.ptp([(before[A[REST] == group] == k).mean() for group in "fmx"]) for k in BASE.classes_
    )
    assert gap > 0.12
    clf = fit(epsilon=epsilon, randomised=randomised)
    assert gap_of(clf) < 0.05 + (0.03 if epsilon == 1.0 else 0.01) + (0.0 if randomised else 0.02)
    assert abs(clf.gap_ - gap_of(clf)) < (1e-4 if epsilon == math.inf else 0.06)
    right = (
        (clf.predict_proba(X[REST], sensitive_features=A[REST]) * (Y[REST, None] == clf.classes_))
        .sum(axis=1)
        .mean()
    )
    assert right > (before == Y[REST]).mean() - 0.05
    assert (clf.noise_ == 0.0) == (epsilon == math.inf)


def test_without_a_solver_the_classes_and_the_labels_choose_the_rule() -> None:
    options: dict[str, Any] = {"protects": "sensitive_features", "random_state": 0}
    two = LogisticRegression().fit(X[:2000], Y[:2000] == "low")
    groups = {"sensitive_features": A[REST]}

    def rule(base: Any, constraints: Any, y: Any, **more: Any) -> str:
        clf = fv.FairPostProcessor(base, constraints, **options, **more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(X[REST], y, **groups)
        assert (clf.rates_ is None) == (clf.guarantee_ is not None)
        return "offsets" if hasattr(clf, "offsets_") else "tables"

    assert rule(BASE, PARITY, Y[REST]) == rule(BASE, PARITY, None) == "offsets"
    assert rule(LogisticRegression(), PARITY, Y[REST]) == "offsets"
    assert rule(two, PARITY, Y[REST] == "low") == "tables"
    assert rule(two, PARITY, None) == "offsets"
    assert rule(BASE, "equalized_odds:0.9", Y[REST]) == "tables"
    assert rule(BASE, PARITY, Y[REST], solver=fv.Thresholds()) == "tables"
    assert rule(LinearSVC().fit(X[:200], Y[:200]), PARITY, Y[REST]) == "tables"
    charged = ways.game(PARITY, rounds=3, epsilon=0.1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rule(charged.fit(X, Y, sensitive_features=A), PARITY, Y[REST]) == "tables"
    for wrong in ("equalized_odds:0.1", None, [PARITY, "demographic_parity:0.1"]):
        with pytest.raises(InputError, match="parity alone"):
            fit(constraints=wrong)


def test_columns_of_the_table_may_be_named_and_several() -> None:
    table = pd.DataFrame(X, columns=list("abcd"))
    base = LogisticRegression().fit(table[:2000], Y[:2000])
    table = table.assign(sex=A, old=RNG.integers(2, size=ROWS))
    clf = fv.FairPostProcessor(base, PARITY, public_base=True, epsilon=5.0, random_state=0).fit(
        table[REST], sensitive_features=["sex", "old"]
    )
    assert clf.offsets_.shape == (6, 3)
    law = clf.predict_proba(table[:50], sensitive_features=["sex", "old"])
    assert np.allclose(law.sum(axis=1), 1.0)
    drawn = clf.predict(table[:50], sensitive_features=["sex", "old"], random_state=1)
    assert (
        drawn == clf.predict(table[:50], sensitive_features=["sex", "old"], random_state=1)
    ).all()
    assert set(drawn) <= set(clf.classes_)


# the noise is secure, so no two fits are alike
@pytest.mark.parametrize(("name", "value"), [("rounds", 1), ("temperature", 0.0)])
def test_numbers_that_offsets_cannot_have_are_refused_where_they_are_made(
    name: str, value: float
) -> None:
    with pytest.raises(InputError, match=name):
        fv.Offsets(**{name: value})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"constraints": fv.DemographicParity(None)}, InputError, "parity alone"),
        ({"constraints": "parity"}, FairveilError, "a name out of"),
        ({"delta": 0.0}, BudgetError, "delta"),
        ({"epsilon": -1.0}, FairveilError, "epsilon"),
    ],
)
def test_guarantee_3_what_cannot_be_is_refused_and_changes_nothing(
    options: Any, error: Any, message: str
) -> None:
    clf = fit()
    before = dict(vars(clf))
    clf.set_params(**options)
    with pytest.raises(error, match=message):
        clf.fit(X[REST], sensitive_features=A[REST])
    assert {name: value for name, value in vars(clf).items() if name.endswith("_")} == {
        name: value for name, value in before.items() if name.endswith("_")
    }


class Odd:
    """A classifier whose probabilities are none."""

    predict = None
    classes_ = np.array([0, 1])

    def __init__(self, law: Any) -> None:
        self.law = law

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Any:
        return np.broadcast_to(self.law, (len(X), len(self.law)))


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (None, "fitted base classifier"),
        (LogisticRegression, "a classifier"),
        (LogisticRegression(), "fitted base classifier"),
        (LinearSVC().fit(X[:200], Y[:200]), "predict_proba"),
        (Odd([0.5, 0.7]), "sum to one"),
        (Odd([1.5, -0.5]), "sum to one"),
        (Odd([math.nan, 1.0]), "NaN"),
        (Odd([0.2, 0.3, 0.5]), "2 classes"),
    ],
)
def test_a_base_without_probabilities_is_refused(base: Any, message: str) -> None:
    with pytest.raises((InputError, PrivacyError), match=message):
        fit(base)


def test_rows_without_groups_and_groups_of_other_rows_are_refused() -> None:
    clf = fv.FairPostProcessor(BASE, PARITY, public_base=True)
    with pytest.raises(InputError, match="sensitive_features"):
        clf.fit(X)
    with pytest.raises(InputError, match="4000"):
        clf.fit(X, sensitive_features=A[:4000])
    with pytest.raises(NotFittedError):
        clf.predict(X, sensitive_features=A)
    with pytest.raises(InputError, match="sensitive_features"):
        fit().predict(X)
    with pytest.raises(InputError):
        fit().predict(X[:1], sensitive_features=["unheard of"])


def test_groups_that_are_too_small_are_named() -> None:
    with pytest.warns(fv.errors.ConstraintNotMet, match="1 of the groups.*x"):
        clf = fit(epsilon=0.05)
    assert clf.moved_.tolist() == [True, True, False]
