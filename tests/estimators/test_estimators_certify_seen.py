"""What a certificate refuses because it would say nothing: rows of the fit, one group, losses that
are no rates."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairveil as fv
import ways
from fairveil.errors import InputError
from fairveil.estimators.certifying import seen
from fairveil.fairness import objectives
from knobs import made

RNG = np.random.default_rng(0)
A = RNG.integers(2, size=900)
X = np.clip(RNG.normal(size=(900, 2)) + 0.3 * A[:, np.newaxis], -2, 2) / 2
Y = (X.sum(axis=1) > 0.2).astype(int)
ASKED: dict[str, Any] = {"constraints": "demographic_parity:0.5", "epsilon": 1.0, "random_state": 0}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _fitted(rows: Any, at: slice = slice(None), **more: Any) -> fv.FairClassifier:
    clf = made(fv.FairClassifier, solver=fv.PrimalDual(rounds=3), random_state=0, **more)
    return clf.fit(rows, Y[at], sensitive_features=A[at])


def test_the_table_of_the_fit_is_refused_and_rows_beside_it_are_not() -> None:
    """Guarantee 1: an array, a block of its rows, a table. A fit that set rows aside has read the
    rest of its table."""
    half, other = slice(0, 450), slice(450, 900)
    clf = _fitted(X[half], half)
    for at in (half, slice(100, 500), slice(0, 900)):
        with pytest.raises(InputError, match="has not seen"):
            fv.certify(clf, X[at], Y[at], sensitive_features=A[at], **ASKED)
    assert fv.certify(clf, X[other], Y[other], sensitive_features=A[other], **ASKED).bounds
    frame = pd.DataFrame(X, columns=["a", "b"])
    certified = _fitted(frame, constraints=fv.DemographicParity(0.5, confidence=0.9))
    with pytest.raises(InputError, match="has not seen"):
        fv.certify(certified, frame, Y, sensitive_features=A, **ASKED)
    # not recognized, as it says
    assert fv.certify(certified, frame.copy(), Y, sensitive_features=A, **ASKED).bounds
    again = certified.fit(X[half], Y[half], sensitive_features=A[half])
    assert fv.certify(again, frame, Y, sensitive_features=A, **ASKED).bounds


def test_what_cannot_be_remembered_is_let_through() -> None:
    rows = X.tolist()
    assert fv.certify(_fitted(rows), rows, Y, sensitive_features=A, **ASKED).bounds
    strided = X[::2]
    clf = _fitted(strided, slice(None, None, 2))
    with pytest.raises(InputError, match="has not seen"):
        fv.certify(clf, strided, Y[::2], sensitive_features=A[::2], **ASKED)
    assert fv.certify(clf, X[1::2], Y[1::2], sensitive_features=A[1::2], **ASKED).bounds


def test_neither_table_nor_estimator_is_kept() -> None:
    """Guarantee 2, of a block of an array and of a table."""
    for make in (lambda: X.copy()[100:200], lambda: pd.DataFrame(X)):
        rows: Any = make()
        clf = fv.FairClassifier()
        seen.remember(clf, rows)
        kept = seen._SEEN[clf].owner
        assert kept() is not None
        del rows
        gc.collect()
        assert kept() is None
        before = len(seen._SEEN)
        del clf
        gc.collect()
        assert len(seen._SEEN) == before - 1


@pytest.mark.parametrize(
    "asked", ["demographic_parity:0.1", "equalized_odds:0.1", "selection_rate_ratio:0.8"]
)
def test_one_group_is_compared_with_nothing(asked: str) -> None:
    one = A == 1
    with pytest.raises(InputError, match="at least two groups"):
        fv.certify(Y[one], None, Y[one], sensitive_features=A[one], constraints=asked, epsilon=1.0)
    with pytest.raises(InputError, match="at least two groups"):
        ways.fermi(certify=asked).fit(X[one], Y[one], sensitive_features=A[one])
    held = fv.certify(
        Y[one],
        None,
        Y[one],
        sensitive_features=A[one],
        constraints=fv.FalseNegativeRate(0.5, "each"),
        epsilon=1.0,
    )
    assert held.bounds[0].at_most is not None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (fv.BoundedGroupLoss(0.5, loss="log"), "a loss of decisions"),
        (objectives.GMean().at_least(0.7), "notions of fairness"),
        (7, "a notion of fairness"),
    ],
)
def test_what_is_no_rate_is_refused_with_a_way_out(asked: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        fv.certify(Y, None, Y, sensitive_features=A, constraints=asked, epsilon=1.0)
