"""Without privacy the unit of sample weights says nothing: weights of 1/n give the model of weights
of 1."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.errors import ConstraintNotMet
from knobs import made

RNG = np.random.default_rng(0)
A = RNG.integers(2, size=600)
X = RNG.normal(size=(600, 2)) + 0.5 * A[:, None]
Y = (X.sum(axis=1) + RNG.normal(size=600) > 0.5).astype(int)


@pytest.mark.parametrize("unit", [1 / 600, 1e3])
@pytest.mark.parametrize("cls", [fv.FairClassifier, ways.game])
def test_the_unit_of_weights_does_not_matter(cls: Any, unit: float) -> None:
    found = []
    for weight in (1.0, unit):
        clf = made(cls, "equalized_odds:0.05", epsilon=float("inf"), rounds=20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstraintNotMet)
            clf.fit(X, Y, sensitive_features=A, sample_weight=np.full(600, weight))
        found.append((clf.predict_proba(X), [line.value for line in clf.constraint_report_.lines]))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-6)
