"""The warning of constraints that steered a fit little or not at all: noise hides them, or what was
found gave way."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways
from fairveil.errors import ConstraintNotMet, NotEnforced
from fairveil.estimators.reports import ConstraintLine, ConstraintReport, warn_if_not_enforced


def report(*lines: tuple[float, float, float]) -> ConstraintReport:
    """Of (bound, value, noise)."""
    return ConstraintReport(
        tuple(ConstraintLine("a gap", *line, 0.0, len(lines)) for line in lines), 1, "rounds"
    )


def heard(told: ConstraintReport, kept: float = 1.0, vain: bool = False) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NotEnforced)
        warn_if_not_enforced(told, kept, vain=vain)
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
    (said,) = heard(report((0.05, 0.1, 0.1)), kept=0.0, vain=True)
    assert "model without constraints was kept" in said


@pytest.mark.parametrize("kind", [ways.classifier, ways.game, ways.objective])
def test_every_search_says_it(kind) -> None:
    rng = np.random.default_rng(0)
    n = 600
    a = rng.integers(0, 6, n)
    X = np.clip(rng.normal(scale=0.4, size=(n, 3)) + 0.1 * a[:, None], -1, 1)
    y = (X.sum(axis=1) + rng.normal(scale=0.3, size=n) > 0.6).astype(int)
    objective = ("error",) if kind is ways.objective else ()
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


def after_a_base(solver, epsilon, **given):
    base = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    given |= {"constraints": "demographic_parity:0.05", "solver": solver}
    return ways.post_processor(base, epsilon=epsilon, public_base=True, random_state=0, **given)


@pytest.mark.parametrize("solver", [fv.Thresholds(), fv.Offsets()])
def test_a_post_processor_says_before_it_spends_that_nothing_can_be_enforced(solver) -> None:
    """The rows are public, or stated; what would do is enough, and what is enough is silent."""
    rng = np.random.default_rng(0)
    X, y, a = rng.normal(size=(300, 1)), rng.integers(2, size=300), rng.integers(2, size=300)
    ledger = fv.Ledger.create(None, "few", 3.0, 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotEnforced)
        with pytest.raises(
            NotEnforced, match="before anything is spent: noise will hide"
        ) as raised:
            after_a_base(solver, 0.2, public_rows=300, ledger=ledger).fit(
                X, y, sensitive_features=a
            )
        said = str(raised.value)
        assert ledger.balance().spent == 0
        assert "if groups are equal in size" in said
        found = re.search(r"about ([\d,]+) rows or epsilon ([\d.]+) would do", said)
        assert found is not None, said
        rows, epsilon = int(found[1].replace(",", "")), float(found[2])
        assert rows > 300
        assert epsilon > 0.2
        many = np.arange(rows) % 300  # in the place of the stated number
        after_a_base(solver, 0.2, public_rows=rows).fit(
            X[many], y[many], sensitive_features=np.arange(rows) % 2
        )
        half = np.arange(300) % 2
        after_a_base(solver, epsilon, public_rows=300).fit(X, y, sensitive_features=half)


@pytest.mark.parametrize("solver", [fv.Thresholds(), fv.Offsets()])
def test_where_rows_are_private_a_post_processor_says_it_by_what_it_released(solver) -> None:
    rng = np.random.default_rng(0)
    X, y, a = rng.normal(size=(300, 1)), rng.integers(2, size=300), rng.integers(2, size=300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        after_a_base(solver, 0.2).fit(X, y, sensitive_features=a)
    said = [one for one in caught if issubclass(one.category, NotEnforced | ConstraintNotMet)]
    assert [one.filename for one in said] == [__file__]
    assert "before anything is spent" not in str(said[0].message)
