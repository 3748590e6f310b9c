"""The gradient oracle that begins at a model without constraints: the guarantees of
`learning/oracles/descent.py`.

Neighbours, logs and prices with a game and a loop around it: test_learning_game.py,
test_learning_group_loop.py.
"""

from __future__ import annotations

import math
from typing import Any

import game_samples as g
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairveil.core.promise import Promise
from fairveil.fairness import DemographicParity, EqualizedOdds
from fairveil.learning import game as game_plan
from fairveil.learning.oracles import FREE_ROUNDS, Begun, LinearRule
from fairveil.learning.units import in_coded_units, in_inner_units
from fairveil.privacy import epsilon as price

LARGE = Promise(200.0, 1e-5)


def prepared(
    rows: Any, promise: Promise, *, scales: bool, stated: int | None = None, seed: int = 0
) -> tuple[Any, Any, Any]:
    """An oracle that has prepared, its ground, and the log."""
    ground = g.ground_of(rows, promise, [EqualizedOdds(0.05)], public_rows=stated)
    game = game_plan.plan(ground, Begun(scales=scales), rounds=2)
    curator = g.curator_for(game, rows, seed)
    _, course = game.oracle.prepare(curator, ground, game.counts_multiplier)
    return game.oracle, course, curator


@pytest.mark.parametrize("scales", [False, True])
@pytest.mark.parametrize("promise", [g.RECORDS, g.REPLACE])
@pytest.mark.parametrize("stated", [None, 300])
def test_guarantee_1_the_log_of_a_preparation_is_what_was_foretold(
    promise: Promise, scales: bool, stated: int | None
) -> None:
    rows = g.rows_from(*g.sample(1))
    ground = g.ground_of(rows, promise, [EqualizedOdds(0.05)], public_rows=stated)
    game = game_plan.plan(ground, Begun(scales=scales), rounds=2)
    curator = g.curator_for(game, rows)
    game.oracle.prepare(curator, ground, game.counts_multiplier)
    once, _ = game.oracle.asked(ground, game.counts_multiplier)
    curator.log.reconcile([one.event for one in once])
    assert len(curator.log.entries) == len(once)
    asked = len(once) - 1
    counted = (stated is None and promise is g.RECORDS) or (scales and promise is g.RECORDS)
    assert asked == FREE_ROUNDS + (counted or scales)  # counts and moments are one joint release


@pytest.mark.parametrize("scales", [False, True])
def test_guarantee_2_with_little_noise_the_free_rule_decides_as_logistic_regression_does(
    scales: bool,
) -> None:
    X, y, A = g.sample(2, 4000)
    _, course, _ = prepared(g.rows_from(X, y, A), LARGE, scales=scales)
    rule = LinearRule(course.free, course.standard).published()
    judge = LogisticRegression(C=1e6).fit(X, y)
    own = (rule.weights[0, 0] + X @ rule.weights[0, 1:] > 0).astype(int)
    assert (own == judge.predict(X)).mean() > 0.98


def test_guarantee_3_rules_are_returned_in_the_units_of_coded_rows() -> None:
    rows = g.rows_from(*g.sample(3, 2000))
    oracle, course, _ = prepared(rows, LARGE, scales=True)
    assert course.standard is not None
    rule = oracle.free_rule(course)
    X = rows_of(rows)
    centre, scale = course.standard
    own = rule.weights[0, 0] + ((X - centre) / scale) @ rule.weights[0, 1:]
    told = rule.published().weights
    np.testing.assert_allclose(told[0, 0] + X @ told[0, 1:], own, atol=1e-9)
    np.testing.assert_allclose(in_inner_units(told, course.standard), rule.weights, atol=1e-12)
    np.testing.assert_array_equal(in_coded_units(rule.weights, None), rule.weights)


def rows_of(rows: Any) -> Any:
    return np.concatenate([np.asarray(block.numbers, np.float64).T for block in rows.blocks()])


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_without_constraints_the_whole_budget_is_the_free_rules(epsilon: float) -> None:
    rows, promise = g.rows_from(*g.sample(1, 500)), Promise(epsilon, 1e-5)
    game = g.a_game(rows, promise, [], Begun(scales=True))
    curator = g.curator_for(game, rows)
    outcome = game.run(curator)
    curator.log.reconcile([game.plan])
    assert outcome.rounds == 1
    assert len(outcome.rules) == 1
    assert (
        0.98 * epsilon
        <= price(curator.log.events, 1e-5, promise.neighbours)
        <= epsilon * (1 + 1e-12)
    )


def test_a_game_gives_way_to_what_costs_nothing() -> None:
    """A bound that everything keeps: the final model errs no more than the rule without
    constraints, beyond noise."""
    rows = g.rows_from(*g.sample(4, 3000))
    game = g.a_game(rows, Promise(4.0, 1e-5), [DemographicParity(0.9)], Begun(), rounds=3)
    outcome = g.played(rows, game)
    found = outcome.comparison
    assert found is not None
    assert found.free is not None
    of_free = found.free.table.total(found.table.errors) / found.rows
    assert found.error <= of_free + 3 * found.noise
    assert outcome.looks >= 2
    assert outcome.choice is not None


@pytest.mark.parametrize("seed", range(3))
def test_values_of_the_final_model_are_those_of_its_rules(seed: int) -> None:
    """Whatever the choice: the stated values lie within five of their deviations of the rules'
    exact ones, by `plays`."""
    rows = g.rows_from(*g.sample(seed, 3000))
    notions = [EqualizedOdds(0.03)]
    game = g.a_game(rows, Promise(2.0, 1e-5), notions, Begun(scales=True), rounds=20)
    outcome = g.played(rows, game, seed)
    cells = rows.cells()
    tables = np.array([g.exact_table(rows, rule, cells) for rule in outcome.rules])
    shares = np.array(outcome.plays, float) / sum(outcome.plays)
    table = np.tensordot(shares, tables, axes=1)
    exact = game.system.exact_values(table, table.sum(axis=-1))
    assert (np.abs(outcome.values - exact) <= 5 * outcome.spread + 1e-5).all()


def test_a_table_that_cannot_be_told_from_none_gives_a_rule_at_zero() -> None:
    rows = g.rows_from(*g.sample(5, 8))
    _, course, _ = prepared(rows, Promise(0.05, 1e-5), scales=True)
    assert course.rests
    assert not course.free.any()
    assert math.isfinite(float(course.weights.sum()))
