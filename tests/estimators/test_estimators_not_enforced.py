"""The warning of constraints that steered a fit little or not at all: noise hides them, or what was
found gave way."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fairveil as fv
from fairveil.errors import NotEnforced
from fairveil.estimators.reports.constraint_report import (
    ConstraintLine,
    ConstraintReport,
    warn_if_not_enforced,
)


def report(*lines: tuple[float, float, float]) -> ConstraintReport:
    """Of (bound, value, noise)."""
    return ConstraintReport(
        tuple(ConstraintLine("a gap", *line, 0.0, len(lines)) for line in lines), 1, "rounds"
    )


def heard(told: ConstraintReport, kept: float = 1.0, went_on: bool = False) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NotEnforced)
        warn_if_not_enforced(told, kept, went_on=went_on)
    return [str(one.message) for one in caught]


def test_a_bound_is_hidden_where_even_a_value_of_zero_could_not_be_told_from_one_above_it() -> None:
    assert report((0.05, 0.06, 0.02)).hidden is None  # 0 would be told
    assert report((0.05, 0.30, 0.1)).hidden is None  # it is told that this is above
    assert report((0.05, 0.06, 0.0)).hidden is None
    hidden = report((0.05, 0.06, 0.04), (0.05, 0.1, 0.1)).hidden
    assert hidden is not None
    assert hidden.noise == 0.1
    (said,) = heard(report((0.05, 0.1, 0.1)))
    assert "noise of 0.1000" in said
    assert heard(report((0.05, 0.04, 0.001))) == []


def test_what_was_given_up_is_said_once() -> None:
    (said,) = heard(report((0.05, 0.04, 0.001)), kept=0.2)
    assert "20 % of what is handed out" in said
    assert len(heard(report((0.05, 0.1, 0.1)), kept=0.2)) == 1
    (said,) = heard(report((0.05, 0.1, 0.1)), kept=0.0, went_on=True)
    assert "the model without constraints" in said


@pytest.mark.parametrize(
    "kind", [fv.RateConstrainedClassifier, fv.OracleGameClassifier, fv.GroupObjectiveClassifier]
)
def test_every_search_says_it(kind) -> None:
    rng = np.random.default_rng(0)
    n = 600
    a = rng.integers(0, 6, n)
    X = np.clip(rng.normal(scale=0.4, size=(n, 3)) + 0.1 * a[:, None], -1, 1)
    y = (X.sum(axis=1) + rng.normal(scale=0.3, size=n) > 0.6).astype(int)
    objective = ("error",) if kind is fv.GroupObjectiveClassifier else ()
    model = kind(*objective, "demographic_parity:0.05", epsilon=0.5, public_rows=n, random_state=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NotEnforced)
        model.fit(X, y, sensitive_features=a)
    said = [str(one.message) for one in caught if one.category is NotEnforced]
    assert len(said) == 1
    assert "noise hides a constraint" in said[0]
    assert __file__ in {one.filename for one in caught if one.category is NotEnforced}
    large = kind(*objective, "demographic_parity:0.9", epsilon=float("inf"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        large.fit(X, y, sensitive_features=a)
    assert not [one for one in caught if one.category is NotEnforced]
