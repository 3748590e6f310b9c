"""Rounds in vain, of games and of loops: the model without constraints is kept where noise hides
what is constrained."""

from __future__ import annotations

from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest

from fairveil.core.promise import Promise
from fairveil.curator import Curator
from fairveil.errors import PrivacyError
from fairveil.fairness import EqualizedOdds
from fairveil.methods.descent import Reason
from fairveil.methods.gaussian import averaged, joint_multiplier
from fairveil.methods.likely import LEAST, USUAL, drowned, unheard
from fairveil.methods.objective_loop import plan_loop
from fairveil.methods.oracles import Begun
from fairveil.privacy import epsilon as price

HIDDEN, HEARD = 0.5, 60.0
"""Budgets at which 400 rows are too few, and enough, for odds of four cells."""
BOTH = pytest.mark.parametrize("kind", ["game", "loop"])


def rows_of(seed: int = 1, n: int = 400) -> Any:
    return g.rows_from(*g.sample(seed, n))


def search_of(kind: str, rows: Any, epsilon: float, rounds: int = 12, **promised: Any) -> Any:
    oracle, promise = Begun(steps=2, scales=True), Promise(epsilon, 1e-5, **promised)
    if kind == "game":
        return g.a_game(rows, promise, [EqualizedOdds(0.05)], oracle, rounds=rounds)
    problem = s.problem_of(rows, promise, "error", "equalized_odds:0.05")
    return plan_loop(problem, oracle, rounds=rounds)


def numbers(found: Any) -> Any:
    """All that is found, to compare to the bit."""
    arrays = (found.values, found.spread, found.counts)
    told = [np.nan_to_num(one, nan=-9.0).tolist() for one in arrays]
    return [rule.key for rule in found.rules], found.reason, told


@BOTH
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [HIDDEN, HEARD])
def test_the_log_is_the_plan_and_the_way_follows_from_answers_alone(
    kind: str, neighbours: str, epsilon: float
) -> None:
    """Answers of 400 rows are told again to a search whose curator holds 8 others, and to one with
    4,000: which of them noise hides, their own counts would say otherwise."""
    rows = rows_of()
    search = search_of(kind, rows, epsilon, neighbours=neighbours)
    curator = g.curator_for(search, rows, 3, g.Teller)
    first = search.run(curator)
    assert first.reason is (Reason.HIDDEN if epsilon == HIDDEN else Reason.ROUNDS)
    curator.log.reconcile([search.plan])
    spent = price(curator.log.events, 1e-5, search.ground.promise.neighbours)
    assert 0.98 * epsilon <= spent <= epsilon * (1 + 1e-12)
    with pytest.raises(PrivacyError):
        curator.answer([(search.ground.counts, 50.0)])
    for other in (rows_of(7, 8), rows_of(8, 4000)):
        again = search.run(g.curator_for(search, other, 4, g.again(curator.told)))
        assert numbers(again) == numbers(first)


@BOTH
def test_the_way_follows_the_released_counts(kind: str) -> None:
    """The same table, the same plan: counts that are told to be larger keep the mixture."""
    rows = rows_of()
    search = search_of(kind, rows, HIDDEN)

    class Louder(Curator):
        def answer(self, asks: Any, *given: Any, **named: Any) -> Any:
            out = super().answer(asks, *given, **named)
            return [500.0 * out[0], *out[1:]] if len(self.log) == 1 else out

    assert search.run(g.curator_for(search, rows, 2)).reason is Reason.HIDDEN
    assert search.run(g.curator_for(search, rows, 2, Louder)).reason is Reason.ROUNDS


def test_one_number_within_the_noise_is_enough() -> None:
    edge = USUAL * np.sqrt(1.0 / LEAST - 1.0)
    assert drowned(np.array([0.0, 1.001 * edge]))
    assert not drowned(np.array([0.0, 0.999 * edge]))
    assert not drowned(np.zeros(0))
    assert not unheard(np.array([0.0, 10.0 * edge]))


def test_a_mean_has_the_noise_of_one_answer_at_the_whole_price() -> None:
    multipliers = [3.0, 5.0, 5.0, 20.0]
    z = joint_multiplier(multipliers)
    assert 1 / z**2 == pytest.approx(sum(1 / one**2 for one in multipliers))
    weights = averaged(list(np.eye(4)), multipliers)  # a unit for each answer
    assert weights.sum() == pytest.approx(1.0)
    assert np.sqrt(((weights * multipliers) ** 2).sum()) == pytest.approx(z)


@BOTH
def test_values_of_the_final_model_are_those_of_its_rules(kind: str) -> None:
    """Stated values lie within five of their deviations of the rules' exact ones: false alarms
    1e-4."""
    rows = rows_of(3, 3000)
    search = search_of(kind, rows, 0.1, 20)
    found = search.run(g.curator_for(search, rows, 1))
    assert found.reason is Reason.HIDDEN
    tables = np.array([g.exact_table(rows, rule, rows.cells()) for rule in found.rules])
    shares = np.array(found.plays if kind == "game" else found.weights, float)
    _, gap = g.measured(tables, shares / shares.sum(), [EqualizedOdds(0.0)], rows.cells())
    assert abs(float(np.max(found.values)) - gap) <= 5 * float(np.max(found.spread)) + 1e-5
