"""Rounds that go on without constraints: the guarantees of `learning/oracles/going_on.py`, of games
and of loops.

Neighbours one by one, at few rows, where noise hides everything: test_learning_game.py and
test_learning_objective_loop.py (`begun`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest

from fairveil.core.promise import Promise
from fairveil.curator import Curator
from fairveil.errors import PrivacyError
from fairveil.fairness import EqualizedOdds
from fairveil.learning import game as games
from fairveil.learning.descent import Reason
from fairveil.learning.gaussian import averaged, joint_multiplier
from fairveil.learning.likely import LEAST, USUAL, drowned, unheard
from fairveil.learning.objective_loop import plan_loop
from fairveil.learning.oracles import Begun, GoingOn
from fairveil.privacy import epsilon as price

HIDDEN, HEARD = 0.5, 60.0
"""Budgets at which 400 rows are too few, and enough, for odds of four cells."""
ROUNDS = 12


def rows_of(seed: int = 1, n: int = 400) -> Any:
    return g.rows_from(*g.sample(seed, n))


def promise_of(epsilon: float, neighbours: str = "add-remove") -> Promise:
    return Promise(epsilon, 1e-5, neighbours=neighbours)  # type: ignore[arg-type]


def search_of(kind: str, rows: Any, promise: Promise, rounds: int = ROUNDS) -> Any:
    oracle = Begun(steps=2, scales=True)
    if kind == "game":
        return g.a_game(rows, promise, [EqualizedOdds(0.05)], oracle, rounds=rounds)
    problem = s.problem_of(rows, promise, "error", "equalized_odds:0.05")
    return plan_loop(problem, oracle, rounds=rounds)


def found_by(search: Any, curator: Any) -> Any:
    return search.run(curator)


def numbers(found: Any) -> Any:
    """All that is found, to compare to the bit."""
    arrays = (found.values, found.spread, found.counts)
    told = [np.nan_to_num(one, nan=-9.0).tolist() for one in arrays]
    return [rule.key for rule in found.rules], found.reason, told


class Teller(Curator):
    """Keeps what it answered."""

    def answer(self, *given: Any, **named: Any) -> Any:
        self.told = [*getattr(self, "told", []), super().answer(*given, **named)]
        return self.told[-1]


# ---- the price, in both branches


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["game", "loop"])
def test_guarantee_1_the_log_is_the_plan_whether_rounds_go_on_or_not(
    kind: str, neighbours: str
) -> None:
    rows = rows_of()
    for epsilon, reason in ((HIDDEN, Reason.HIDDEN), (HEARD, Reason.ROUNDS)):
        promise = promise_of(epsilon, neighbours)
        search = search_of(kind, rows, promise)
        curator = g.curator_for(search, rows)
        assert found_by(search, curator).reason is reason
        curator.log.reconcile([search.plan])
        spent = price(curator.log.events, 1e-5, promise.neighbours)
        assert 0.98 * epsilon <= spent <= epsilon * (1 + 1e-12)
        with pytest.raises(PrivacyError):
            curator.answer([(search.ground.counts, 50.0)])


@pytest.mark.parametrize("kind", ["game", "loop"])
@pytest.mark.parametrize("bug", ["sharper", "once more", "one less"])
def test_a_planted_round_that_costs_something_else_is_refused(
    kind: str, bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less noise than the plan has, one question more, one question less."""
    as_it_was = GoingOn._asked

    def planted(self: GoingOn, curator: Any, question: Any, purpose: str) -> Any:
        if bug == "sharper":
            oracle = replace(self.oracle, multiplier=self.oracle.multiplier / 1.01)
            return as_it_was(replace(self, oracle=oracle), curator, question, purpose)
        if bug == "one less":
            oracle = replace(self.oracle, steps=self.oracle.steps - 1)
            return as_it_was(replace(self, oracle=oracle), curator, question, purpose)
        curator.answer([(question, self.oracle.multiplier)])
        return as_it_was(self, curator, question, purpose)

    rows = rows_of()
    search = search_of(kind, rows, promise_of(HIDDEN))
    monkeypatch.setattr(GoingOn, "_asked", planted)
    with pytest.raises(PrivacyError):
        found_by(search, g.curator_for(search, rows))


# ---- what decides


@pytest.mark.parametrize("kind", ["game", "loop"])
@pytest.mark.parametrize("epsilon", [HIDDEN, HEARD])
def test_guarantee_2_other_rows_with_the_same_answers_take_the_same_way_to_the_bit(
    kind: str, epsilon: float
) -> None:
    """Answers of 400 rows are told again to a search whose curator holds 8 others, and to one with
    4,000: which of them noise hides, their own counts would say otherwise."""
    rows = rows_of()
    search = search_of(kind, rows, promise_of(epsilon))
    curator = g.curator_for(search, rows, 3, Teller)
    first = found_by(search, curator)
    for other in (rows_of(7, 8), rows_of(8, 4000)):
        told = iter(curator.told)

        class Again(Curator):
            def answer(self, *given: Any, told: Any = told, **named: Any) -> Any:
                return next(told)

            def finish(self) -> Any:
                return None

        again = found_by(search, g.curator_for(search, other, 4, Again))
        assert next(told, None) is None
        assert numbers(again) == numbers(first)


@pytest.mark.parametrize("kind", ["game", "loop"])
def test_the_way_follows_the_released_counts(kind: str) -> None:
    """The same table, the same plan: counts that are told to be larger lead to the game, smaller
    ones to rounds that go on."""
    rows = rows_of()
    search = search_of(kind, rows, promise_of(HIDDEN))
    reasons = []
    for factor in (1.0, 500.0):

        class Louder(Curator):
            def answer(self, asks: Any, *given: Any, factor: float = factor, **named: Any) -> Any:
                out = super().answer(asks, *given, **named)
                return [factor * out[0], *out[1:]] if len(self.log) == 1 else out

        found = found_by(search, g.curator_for(search, rows, 2, Louder))
        reasons.append(found.reason)
    assert reasons == [Reason.HIDDEN, Reason.ROUNDS]


def test_one_number_within_the_noise_is_enough() -> None:
    edge = USUAL * np.sqrt(1.0 / LEAST - 1.0)
    assert drowned(np.array([0.0, 1.001 * edge]))
    assert not drowned(np.array([0.0, 0.999 * edge]))
    assert not drowned(np.zeros(0))
    assert not unheard(np.array([0.0, 10.0 * edge]))


# ---- what comes of it


def test_guarantee_3_a_mean_has_the_noise_of_one_answer_at_the_whole_price() -> None:
    multipliers = [3.0, 5.0, 5.0, 20.0]
    z = joint_multiplier(multipliers)
    assert 1 / z**2 == pytest.approx(sum(1 / one**2 for one in multipliers))
    units = np.eye(4)  # which answer each number comes from
    weights = averaged(list(units), multipliers)
    assert weights.sum() == pytest.approx(1.0)
    assert np.sqrt(((weights * multipliers) ** 2).sum()) == pytest.approx(z)


def test_the_rule_that_went_on_errs_less_than_where_it_began() -> None:
    """In the mean of eight draws of noise, by a tenth of the way to the best rule at least."""
    rows, promise = rows_of(2, 2000), promise_of(0.1)
    search = search_of("game", rows, promise, 30)
    X, y, _ = g.sample(2, 2000)
    errors = []
    for seed in range(8):
        curator = g.curator_for(search, rows, seed)
        is_game = isinstance(search, games.Game)
        state = games.Play.begin(search, curator) if is_game else search.init(curator)
        assert state.walk is not None
        begun = search.oracle.free_rule(state.prepared).published()
        while state.round < search.rounds:
            state = (state.step() or state) if is_game else search.step(curator, state)
        ended = search.going_on.rule(state.walk).published()
        curator.close()
        errors.append([_error(rule.weights, X, y) for rule in (begun, ended)])
    before, after = np.mean(errors, axis=0)
    assert after < before


def _error(weights: Any, X: Any, y: Any) -> float:
    return float((((weights[0, 0] + X @ weights[0, 1:]) > 0) != y).mean())


@pytest.mark.parametrize("kind", ["game", "loop"])
def test_values_of_the_final_model_are_those_of_its_rules(kind: str) -> None:
    """Stated values lie within five of their deviations of the rules' exact ones: false alarms
    1e-4."""
    rows = rows_of(3, 3000)
    search = search_of(kind, rows, promise_of(0.1), 20)
    found = found_by(search, g.curator_for(search, rows, 1))
    assert found.reason is Reason.HIDDEN
    cells = rows.cells()
    tables = np.array([g.exact_table(rows, rule, cells) for rule in found.rules])
    given = found.plays if kind == "game" else found.weights
    shares = np.array(given, float) / sum(given)
    table = np.tensordot(shares, tables, axes=1)
    system = search_of("game", rows, promise_of(0.1), 20).system
    exact = system.exact_values(table, table.sum(axis=-1))
    gap = exact.max()
    assert abs(float(np.max(found.values)) - gap) <= 5 * float(np.max(found.spread)) + 1e-5
