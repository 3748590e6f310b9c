"""The loop of private searches, its two players, and the guarantees in `learning/descent.py`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil import DemographicParity, EqualizedOdds, Promise
from fairveil.curator import CellCounts, Curator, Rows
from fairveil.errors import PrivacyError
from fairveil.learning import (
    AscentState,
    LinearDescent,
    PrimalState,
    ProjectedAscent,
    Settings,
    descend,
)
from fairveil.learning.lagrangian import planning
from fairveil.privacy import NoiseSource

SHORT = Settings(rounds=6)


def make_rows(seed: int = 0, n: int = 400, classes: int = 2) -> Rows:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    X = np.clip(rng.normal(size=(n, 3)) + 0.5 * a[:, None], -3, 3)
    y = (X @ [1.0, -0.5, 0.3] + rng.normal(size=n) > 0.3).astype(int) + (
        rng.integers(0, classes - 1, n) if classes > 2 else 0
    )
    return Rows.from_arrays(
        X, np.minimum(y, classes - 1), [a], classes=range(classes), groups=[(0, 1)]
    )


PARITY = (DemographicParity(0.05),)


def search_for(
    rows: Rows, promise: Promise, notions=PARITY, settings: Settings = SHORT
) -> LinearDescent:
    public = rows.exact_count if promise.rows_are_public or not promise.is_private else None
    plan = planning.make(promise, rows.layout, rows.cells(), notions, settings, public_rows=public)
    bounds = np.zeros((1, 0)) if plan.system is None else plan.system.bounds[np.newaxis]
    return LinearDescent(plan, bounds)


def curator_for(rows: Rows, search: LinearDescent, seed: int = 0) -> Curator:
    promise = search.promise
    public = rows.exact_count if promise.rows_are_public or not promise.is_private else None
    return Curator(
        rows, promise, plan=search.plan, noise=NoiseSource.seeded(seed), public_rows=public
    )


PROMISES = [
    Promise(1.0, 1e-5),
    Promise(1.0, 1e-5, neighbours="replace-one"),
    Promise(1.0, 1e-5, "sensitive_features"),
]


@pytest.mark.parametrize("promise", PROMISES, ids=["add-remove", "replace-one", "sensitive"])
@pytest.mark.parametrize("rate", [None, 0.2])
@pytest.mark.parametrize(
    "notions",
    [(), (DemographicParity(0.05),), (EqualizedOdds(0.1), DemographicParity(0.3))],
    ids=len,
)
def test_guarantee_1_the_log_is_the_plan_and_the_plan_keeps_the_promise(
    promise, rate, notions
) -> None:
    rows = make_rows()
    search = search_for(rows, promise, notions, Settings(rounds=6, sampling_rate=rate))
    curator = curator_for(rows, search)
    descend(curator, search)
    statement = curator.statement()
    assert statement.check() == []
    assert statement.epsilon <= promise.epsilon * (1 + 1e-12)
    free = promise.protects == "sensitive_features" and not notions
    # counts; decisions, and those settled
    before, after = (1, 2) if notions else (0 if promise.rows_are_public else 1, 1)
    assert len(curator.log) == (0 if free else 6 + before + after)
    assert free or statement.epsilon >= 0.999 * promise.epsilon  # and wastes nothing


def test_guarantee_2_rows_that_answer_alike_give_the_same_model() -> None:
    rows = make_rows()
    search = search_for(rows, PROMISES[0])
    (found,) = descend(curator_for(rows, search), search)

    class Elsewhere(Curator):
        """Other rows, the same answers."""

        def answer(self, measurements, batch=search.batch, *, purpose=""):
            super().answer(measurements, batch, purpose=purpose)
            return replies.pop(0)

    replies: list = []
    heard = curator_for(rows, search)
    listened = heard.answer
    heard.answer = lambda *args, **kwargs: replies.append(listened(*args, **kwargs)) or replies[-1]  # type: ignore[method-assign]
    descend(heard, search)
    other = make_rows(seed=9)
    curator = Elsewhere(other, search.promise, plan=search.plan, noise=NoiseSource.seeded(5))
    (same,) = descend(curator, search)
    assert np.array_equal(found.weights, same.weights)
    assert np.array_equal(found.values, same.values)


def test_guarantee_3_a_run_that_is_interrupted_leaves_a_beginning_of_its_plan() -> None:
    rows = make_rows()
    search = search_for(rows, PROMISES[0])
    curator = curator_for(rows, search)

    def stop_early(done: int, rounds: int) -> None:
        assert rounds == 6
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        descend(curator, search, stop_early)
    assert len(curator.log) == 4  # the counts and three rounds
    assert curator.statement().check() == []
    with pytest.raises(PrivacyError):
        curator.answer([(CellCounts(rows.cells()), 10.0)])


def test_the_walk_is_nesterovs_and_averages_what_it_counts() -> None:
    walk, x, v = PrimalState.begin((1, 1, 2)), np.zeros(2), np.zeros(2)
    seen = []
    for t in range(5):
        g = np.array([1.0, -2.0]) * (t + 1)
        look = x + 0.9 * v
        assert np.allclose(walk.weights[0, 0], look)
        v = 0.9 * v - 0.1 * g
        x = x + v
        walk = walk.step(g.reshape(1, 1, 2), 0.1, 0.9, count=t >= 3)
        if t >= 3:
            seen.append(walk.weights[0, 0])
    assert np.allclose(walk.average[0, 0], np.mean(seen, axis=0))


def test_pressure_grows_while_a_constraint_is_broken_and_stays_in_its_bounds() -> None:
    ascent = ProjectedAscent(rounds=20, bound=1.5)
    state = AscentState.begin(1, 2)
    sizes = []
    for _ in range(60):
        state = ascent.step(state, np.array([[0.1, -0.1]]))
        sizes.append(state.duals[0, 0])
    assert np.all(np.diff(sizes) >= 0)
    assert sizes[-1] == 1.5
    assert state.duals[0, 1] == 0.0
    for _ in range(60):
        state = ascent.step(state, np.array([[-0.1, -0.1]]))
    assert np.all(state.duals == 0.0)


def test_pressure_does_not_depend_on_the_unit_of_the_excess() -> None:
    ascent = ProjectedAscent(rounds=20)
    small, large = AscentState.begin(1, 1), AscentState.begin(1, 1)
    for excess in (0.2, 0.1, -0.05, 0.02, -0.01):
        small = ascent.step(small, np.array([[excess / 64]]))
        large = ascent.step(large, np.array([[excess]]))
    assert np.allclose(small.duals, large.duals)


def test_pressure_ignores_what_is_undefined() -> None:
    ascent = ProjectedAscent(rounds=20)
    state = ascent.step(AscentState.begin(1, 2), np.array([[math.nan, 0.1]]))
    assert state.duals[0, 0] == 0.0
    assert state.duals[0, 1] > 0.0
