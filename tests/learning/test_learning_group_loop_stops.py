"""Without noise a loop stops once its oracle can name no other decision: bounds on means of recalls
ran to 500 programs."""

from __future__ import annotations

from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest
from scipy import optimize

from fairveil.curator import Rows
from fairveil.fairness.objectives import GMean, HMean
from fairveil.learning.descent import Reason
from fairveil.learning.group_objective import master
from fairveil.learning.group_objective.loop import Loop
from fairveil.learning.group_objective.master import NEAR
from fairveil.learning.group_objective.plan import plan_loop
from fairveil.learning.group_objective.played import PlayedState
from fairveil.learning.group_objective.running import run
from fairveil.learning.oracles import Choice, thresholds


def three_classes(n: int = 600) -> Rows:
    rng = np.random.default_rng(0)
    A = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3)) + (A == 1)[:, None] * [1.0, 0.0, 0.0]
    y = np.digitize(X.sum(axis=1) + rng.normal(size=n), [0.0, 2.0])
    return g.rows_from(X / 4.0, y, [A], classes=3)


def searched(constraint: Any, **options: Any) -> tuple[Loop, Any, list[PlayedState]]:
    rows = three_classes()
    problem = s.problem_of(rows, g.EXACT, "error", constraint)
    loop = plan_loop(problem, Choice(thresholds(rows.layout)), **options)
    states: list[PlayedState] = []
    return loop, run(s.curator_for(loop, rows), loop, watch=states.append), states


def least_error(constraint: Any, penalty: float) -> float:
    """By scipy, over mixtures of all thresholds: the least h, from the best of a few starts."""
    rows = three_classes()
    problem = s.problem_of(rows, g.EXACT, "error", constraint)
    tables = s.tables_of(rows, thresholds(rows.layout), problem)
    posed = s.posed_exactly(rows, problem, penalty)
    flat = np.unique(tables.reshape(len(tables), -1), axis=0)
    costs = np.array([float(posed.f.value(one.reshape(tables.shape[1:]))) for one in flat])
    kept = flat[np.argsort(costs)][:40]

    def value(q: Any) -> float:
        return float(
            posed.h.value(
                (np.maximum(q, 0.0) @ kept / np.maximum(q, 0.0).sum()).reshape(tables.shape[1:])
            )
        )

    found = [
        optimize.minimize(
            value, start, method="SLSQP", bounds=[(0, 1)] * len(kept), options={"maxiter": 200}
        ).fun
        for start in (np.ones(len(kept)) / len(kept), np.eye(len(kept))[0])
    ]
    return min(found)


@pytest.mark.parametrize("kind", [GMean(), HMean()], ids=["geometric", "harmonic"])
@pytest.mark.parametrize("bound", [0.4, 0.58])
def test_a_bound_on_a_mean_of_recalls_stops_once_the_oracle_repeats_itself(
    kind: Any, bound: float
) -> None:
    loop, found, states = searched(kind.at_most(bound))
    assert found.reason is Reason.BEST
    assert found.rounds <= 20 < loop.rounds
    h = states[-1].posed.h
    value = float(h.value(found.losses))
    assert found.excess <= NEAR * max(1.0, abs(value))
    assert value <= least_error(kind.at_most(bound), loop.penalty) + 1e-4


@pytest.mark.parametrize("kind", [GMean(), HMean()], ids=["geometric", "harmonic"])
def test_it_stops_where_programs_are_solved_no_better_than_solvers_do_by_themselves(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steep tangents leave 1e-5 of h between program and tangents, for ever: the repeated answer is
    the proof."""
    monkeypatch.setattr(
        master, "SOLVED", {"primal_feasibility_tolerance": 1e-6, "dual_feasibility_tolerance": 1e-6}
    )
    _, found, states = searched(kind.at_most(0.4), rounds=24)
    assert found.reason is Reason.BEST
    assert found.rounds <= 20
    assert states[-1].repeated
    assert len(states[-1].played) < found.rounds + 1


def test_a_decision_that_is_new_does_not_end_it_and_frank_wolfe_may_repeat_itself() -> None:
    loop, found, states = searched(GMean().at_most(0.58))
    assert not any(loop.stop(state) for state in states[:-1])
    assert [state.repeated for state in states[:2]] == [False, False]
    assert found.rounds == len(states)
    _, _, walked = searched(GMean().at_most(0.58), step_by="frank-wolfe", rounds=40)
    assert any(state.repeated for state in walked[:-1])
