"""The floor of a private search: when nothing is searched, and when a candidate takes the place of
the defaults."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import fairveil as fv
from fairveil.core.events import Gaussian, PrivateSelection, Repeated
from fairveil.facts import Schema
from fairveil.privacy import epsilon
from fairveil.study import search_price, search_scores
from fairveil.study.search_price import SearchPrice
from fairveil.study.search_scores import Counted, Scoring

ERROR = Scoring("error")


def curved(n=16_000, seed=0):
    """The first number tells by its size alone: additive models see it, linear ones cannot."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, (np.abs(X[:, 0]) + 0.1 * rng.normal(size=n) > 0.5).astype(int)


def search(rows, params, **more):
    base = fv.FairClassifier(schema=Schema(rows=rows), solver=fv.PrimalDual(rounds=40))
    return fv.PrivateSearchCV(base, params, **{"random_state": 0, **more})


def test_guarantee_1_a_search_that_noise_would_hide_is_not_made_and_costs_one_fit() -> None:
    """The same model to the bit, the same statement but for what it says of tuning, and one spend
    of the fit itself."""
    X, y = curved(800)
    ledger = fv.Ledger.create(None, "people", epsilon=1.0, delta=1e-6)
    found = search(800, {"solver__clip": [0.5, 2.0]}, ledger=ledger).fit(X, y)
    plain = fv.FairClassifier(
        schema=Schema(rows=800), solver=fv.PrimalDual(rounds=40), random_state=0
    ).fit(X, y)
    assert found.price_.way == "defaults"
    assert found.price_.least_gain > search_scores.WORTH
    assert np.array_equal(found.best_estimator_.coef_, plain.coef_)
    assert found.privacy_.events == plain.privacy_.events
    assert "not searched" in found.privacy_.summary()
    assert ledger.balance().committed == 1
    assert ledger.balance().spent == pytest.approx(epsilon(plain.privacy_.events, 1e-6), abs=1e-9)
    assert found.best_params_ == {}
    assert math.isnan(found.best_score_)


def test_guarantee_1_the_decision_reads_no_row() -> None:
    """Other labels, groups and numbers, and under add-remove another number of rows: the same way
    and the same price."""
    prices = []
    for n, seed in ((800, 0), (900, 1)):
        X, y = curved(n, seed)
        prices.append(
            search(800, {"solver__clip": [0.5, 2.0]})
            .fit(X * (1 + seed) / 2, 1 - y if seed else y)
            .price_
        )
    assert prices[0] == prices[1]
    X, y = curved(800)
    unknown = search(None, {"solver__clip": [0.5, 2.0]}).fit(X, y).price_
    public = (
        search(None, {"solver__clip": [0.5, 2.0]}, protects="records:replace-one").fit(X, y).price_
    )
    assert unknown.least_gain is None
    assert unknown.way == "all"
    assert public.way == "defaults"


@pytest.mark.parametrize("way", ["all", "selection"])
def test_a_candidate_that_is_clearly_better_takes_the_place_of_the_defaults(
    way, monkeypatch
) -> None:
    X, y = curved()
    if way == "selection":
        real = search_price._priced
        monkeypatch.setattr(
            search_price, "_priced", lambda *given: real(*given[:3], "selection", *given[4:])
        )
    found = search(16_000, {"model": ["auto", "additive"]}, epsilon=3.0).fit(X, y)
    stated, price = found.privacy_, found.price_
    assert price.floor
    assert price.way == way
    assert found.best_params_ == {"model": "additive"}
    assert found.best_estimator_.epsilon == price.refit_epsilon > 2.5
    assert found.score(X, y) > 0.8
    kinds = (Repeated, Gaussian) if way == "all" else (Gaussian, PrivateSelection)
    assert tuple(map(type, stated.events[:2])) == kinds
    assert stated.epsilon == epsilon(stated.events, stated.delta) <= 3.0
    assert not stated.check()
    assert len(found.cv_results_["params"]) == 2


def test_without_a_better_candidate_the_defaults_stay() -> None:
    X, _ = curved()
    y = (X.sum(axis=1) + 0.2 * np.random.default_rng(1).normal(size=len(X)) > 0).astype(int)
    found = search(16_000, {"solver__clip": [0.9, 1.1]}, epsilon=3.0).fit(X, y)
    assert found.price_.way == "all"
    assert found.best_params_ == {}
    assert found.best_index_ == 2
    assert found.best_estimator_.solver.clip is None


def test_a_grid_that_changes_nothing_is_one_fit() -> None:
    X, y = curved(400)
    found = search(400, {"solver__rounds": [40]}).fit(X, y)
    assert found.price_.way == "defaults"
    assert "no candidate differs" in found.privacy_.summary()


def test_guarantee_2_equal_candidates_take_the_place_as_seldom_as_is_said() -> None:
    """The best of 6 candidates that err as often as the defaults: at most 5 % of 400 searches,
    within three deviations. One that errs half as often is taken always."""
    rng = np.random.default_rng(1)
    taken = better = 0
    truth = np.array([[[0.5, 0.1], [0.1, 0.3]]])
    good = np.array([[[0.55, 0.05], [0.05, 0.35]]])

    def drawn(law, sigma=8.0):
        return Counted(
            rng.multinomial(2_000, law.ravel()).reshape(law.shape)
            + sigma * rng.normal(size=law.shape),
            None,
            None,
        )

    for _ in range(400):
        own, others = drawn(truth), [drawn(truth) for _ in range(6)]
        best = max(others, key=lambda one: ERROR.of(one.counts, None, None))
        taken += search_scores.is_clearly_better(best, own, ERROR, 8.0, 6)
    for _ in range(20):
        better += search_scores.is_clearly_better(drawn(good), drawn(truth), ERROR, 8.0, 6)
    assert taken <= 400 * search_scores.RISK + 3 * math.sqrt(400 * 0.05 * 0.95)
    assert better == 20


def test_the_least_gain_grows_with_noise_and_falls_with_rows() -> None:
    price = SearchPrice(
        "all", 0.2, 1e-7, Gaussian(10.0), 10.0, (Gaussian(10.0),), 1.0, 4.0, 1.0, floor=True
    )
    few, many = (
        search_scores.with_gain(price, (2, 2, 2), n, 0.25, 1.0).least_gain for n in (1_000, 2_000)
    )
    assert few == pytest.approx(2 * many)
    assert (
        search_scores.with_gain(
            replace(price, noise_multiplier=20.0), (2, 2, 2), 1_000, 0.25, 1.0
        ).least_gain
        == 2 * few
    )
    assert search_scores.noise_of(replace(price, noise_multiplier=None), 1.0) == pytest.approx(
        math.sqrt(2) / 0.2
    )
    assert search_scores.with_gain(price, (2, 2, 2), None, 0.25, 1.0).least_gain is None
    assert search_scores.spread_of(Counted(np.zeros((1, 2, 2)), None, None), ERROR, 1.0) == math.inf
