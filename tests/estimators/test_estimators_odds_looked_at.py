"""A base that was there before its post-processor: everything after it may have been chosen by
looking at it: theory.md#t10."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.core import cost as accounting
from fairveil.core.events import DiscreteLaplace, Event, Gaussian
from fairveil.errors import BudgetError
from fairveil.estimators import wrapped
from fairveil.privacy import PrivacyStatement, price_after
from fairveil.statement.document import BASE_FACT
from knobs import made

RNG = np.random.default_rng(0)
ROWS = 400
A = RNG.integers(2, size=ROWS)
X = RNG.normal(size=(ROWS, 2))
Y = (X.sum(axis=1) + 0.3 * A > 0).astype(int)
SHORT: dict[str, Any] = {"epsilon": 0.5, "delta": 0.0, "public_rows": ROWS, "random_state": 0}
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3, "public_rows": ROWS, "random_state": 1}


def unfitted(**options: Any) -> ways.objective:
    return made(ways.objective, "error", method="exponential", **{**SHORT, **options})


@cache
def before() -> ways.objective:
    return unfitted().fit(X, Y)


def after(base: Any, weights: bool = False, **options: Any) -> fv.FairPostProcessor:
    clf = made(fv.FairPostProcessor, base, "equalized_odds:0.1", **{**PROMISE, **options})
    return clf.fit(X, Y, sensitive_features=A, sample_weight=np.ones(ROWS) if weights else None)


def said(clf: fv.FairPostProcessor, heading: str) -> str:
    return next(line for line in clf.privacy_.summary().splitlines() if line.startswith(heading))


@pytest.mark.parametrize("weights", [False, True])
def test_guarantee_1_counts_after_a_fitted_base_are_priced_as_chosen_by_looking_at_it(
    weights: bool,
) -> None:
    clf = after(before(), weights)
    statement = clf.privacy_
    *made, counts = statement.events
    assert tuple(made) == before().privacy_.events
    assert isinstance(counts, Gaussian if weights else DiscreteLaplace)
    assert (statement.plan, statement.epsilon, statement.check()) == (None, 1.0, [])
    assert 0.999 < price_after(made, counts, 1e-3).epsilon <= 1.0
    # as one plan there would be room for less noise
    assert accounting.epsilon(statement.events, 1e-3) < 0.99
    assert PrivacyStatement.from_json(statement.to_json()) == statement


def test_guarantee_1_the_words_say_what_was_fixed_before() -> None:
    clf = after(before())
    assert "the last was chosen afterwards" in said(clf, "Composition")
    assert "all of them were made" not in said(clf, "Composition")
    assert "the base classifier was fitted before (epsilon 0.5 at delta 0 by itself)" in said(
        clf, "Earlier releases"
    )
    assert "what else was released before adds to this cost" in said(clf, "Earlier releases")
    assert wrapped.FITTED_BEFORE in said(clf, "Taken as public")
    told = unfitted().fit(X, Y)
    told.privacy_ = dataclasses.replace(told.privacy_, earlier_releases="a census in 2020")
    assert "counted here; a census in 2020" in said(after(told), "Earlier releases")


def test_guarantee_1_a_base_that_is_fitted_here_keeps_the_tight_price_of_one_plan() -> None:
    clf = after(unfitted(), base_share=0.5)
    statement = clf.privacy_
    assert statement.plan == statement.events
    assert statement.epsilon == accounting.epsilon(statement.events, 1e-3) > 0.999
    assert statement.check() == []
    assert "all of them were made" in said(clf, "Composition")
    assert wrapped.FITTED_HERE in said(clf, "Taken as public")
    own = clf.estimator_.privacy_.events
    *_, counts = statement.events
    apart = after(fitted_at(own))
    assert clf.released_ is not None
    assert apart.released_ is not None
    assert apart.privacy_.events[:-1] == own  # the same base, but for when it was made
    assert apart.released_.noise.sd > clf.released_.noise.sd
    assert price_after(own, counts, 1e-3).epsilon > 1.0


def fitted_at(events: tuple[Event, ...]) -> ways.objective:
    """A fitted base of just this price."""
    base = unfitted(epsilon=0.5, delta=5e-4).fit(X, Y)
    assert base.privacy_.events == events
    return base


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_guarantee_1_a_base_without_a_plan_is_charged_what_its_filter_allows(delta: float) -> None:
    base = unfitted().fit(X, Y)
    base.privacy_ = PrivacyStatement.of(
        dataclasses.replace(base.privacy_.promise, delta=delta), [DiscreteLaplace(4.0)]
    )
    statement = after(base).privacy_
    assert statement.check() == []
    assert price_after(statement.events[:-1], statement.events[-1], 1e-3).epsilon == pytest.approx(
        1.0, rel=1e-3
    )
    # what the filter may lose is lost once
    assert statement.events[-1].noise_multiplier == pytest.approx(2.0, rel=5e-3)


def test_guarantee_1_where_nothing_is_asked_after_it_the_base_is_all_there_is() -> None:
    clf = made(fv.FairPostProcessor, before(), None, **PROMISE).fit(X, Y, sensitive_features=A)
    assert clf.privacy_.plan == before().privacy_.plan
    assert clf.privacy_.epsilon == accounting.epsilon(before().privacy_.events, 1e-3)
    assert BASE_FACT not in {fact.name for fact in clf.privacy_.facts}


def test_no_room_beside_a_fitted_base_is_said_with_the_epsilon_that_has_room() -> None:
    with pytest.raises(
        BudgetError, match=r"epsilon 0\.5 .*Pass epsilon above 0\.5, .*pass it unfitted"
    ):
        after(before(), epsilon=0.5, delta=0.0)
    assert after(before(), epsilon=0.51, delta=0.0).privacy_.check() == []


def test_a_ledger_holds_both_steps_and_its_receipt_fits() -> None:
    ledger = fv.Ledger.create(None, "people", 9.0, 1e-3)
    base = unfitted(ledger=ledger).fit(X, Y)
    clf = after(base, ledger=ledger)
    assert [line.kind for line in ledger.history()][1:] == ["reserved", "committed"] * 2
    assert not [finding for finding in ledger.check([clf.privacy_.ledger]) if finding.grave]


# -- other fits that are made of finished ones


def test_the_price_of_candidates_is_told_as_one_that_adds_to_this_fits_however_it_was_chosen() -> (
    None
):
    """Their own fits are no part of this statement's total: epsilons and deltas add, which is valid
    after looking at them."""
    game = made(
        ways.game,
        None,
        oracle="exponential",
        solver=fv.OracleGame(candidates=[before(), before()]),
        rounds=3,
        **PROMISE,
    )
    statement = game.fit(X, Y).privacy_
    assert statement.plan is not None
    (told,) = (
        sentence for sentence in statement.not_covered if "a candidate's own fit" in sentence
    )
    assert "at epsilon 0.5 and delta 0 for records: where it was made from these rows" in told
    assert told.endswith("its epsilon adds to this epsilon, and its delta to this delta")
    assert accounting.epsilon(statement.plan, 1e-3) == statement.epsilon
