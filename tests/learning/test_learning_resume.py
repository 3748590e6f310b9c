"""Searches of linear models that are killed and go on: the price is the plan's, and without noise
nothing is lost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil import DemographicParity, EqualizedOdds, Promise
from fairveil.core.events import spelled_out
from fairveil.curator import Curator, Rows
from fairveil.learning import Checkpoint, LinearDescent, Settings, descend
from fairveil.learning.lagrangian import fermi, planning
from fairveil.privacy import NoiseSource


class Killed(BaseException):
    """What ends a run in the middle."""


def rows_of(seed: int = 0, n: int = 400) -> Rows:
    rng = np.random.default_rng(seed)
    A = rng.integers(2, size=n)
    X = np.clip(rng.normal(scale=0.4, size=(n, 3)) + 0.3 * A[:, None], -1, 1)
    y = (X.sum(axis=1) + rng.normal(scale=0.4, size=n) > 0.4).astype(int)
    return Rows.from_arrays(X, y, [A], classes=(0, 1), groups=[(0, 1)])


def search_of(kind: str, rows: Rows, promise: Promise) -> LinearDescent:
    public = rows.exact_count if promise.rows_are_public or not promise.is_private else 400
    settings = Settings(rounds=20, most_rounds=40)
    if kind == "constraints":
        plan = planning.make(
            promise,
            rows.layout,
            rows.cells(),
            [EqualizedOdds(0.05)],
            settings,
            public_rows=public,
            scalable=True,
        )
        assert plan.system is not None
        return LinearDescent(plan, plan.system.bounds[np.newaxis])
    notion = DemographicParity(0.0)
    found = fermi.make(
        promise,
        rows.layout,
        rows.cells(),
        notion,
        [2.0],
        settings,
        public_rows=public,
        scalable=True,
    )
    assert isinstance(found, LinearDescent)
    return found


def run(kind: str, promise: Promise, folder, kill_at: int | None = None):
    rows = rows_of()
    search, checkpoint = search_of(kind, rows, promise), Checkpoint(folder, 4)

    def progress(done: int, _: int) -> None:
        if done == kill_at:
            raise Killed

    public = None if promise.rows_are_public or not promise.is_private else 400
    curator = Curator(
        rows,
        promise,
        plan=search.plan,
        noise=NoiseSource.seeded(0),
        public_rows=public,
        earlier=checkpoint.journal,
    )
    (outcome,) = descend(curator, search, progress, checkpoint)
    return outcome, curator, search


PROMISES = [
    Promise(1.0, 1e-6),
    Promise(1.0, 1e-6, "records", "replace-one"),
    Promise(1.0, 1e-6, "sensitive_features"),
]


@pytest.mark.parametrize(
    "promise", PROMISES, ids=lambda promise: f"{promise.protects}-{promise.neighbours}"
)
@pytest.mark.parametrize("kind", ["constraints", "penalty"])
# with public features charged rounds begin after 73 free ones
@pytest.mark.parametrize("kill_at", [1, 10, 73, 75, 79, 86])
def test_lost_rounds_stay_charged_and_the_log_is_the_plan(tmp_path, kind, promise, kill_at) -> None:
    if promise.protects == "records" and kill_at > 20:
        kill_at -= 72
    with pytest.raises(Killed):
        run(kind, promise, tmp_path, kill_at)
    outcome, curator, search = run(kind, promise, tmp_path)
    assert search.plan is not None
    assert list(spelled_out(search.plan)) == [
        part for event in curator.log.events for part in spelled_out(event)
    ]
    assert outcome.rounds == 20
    assert np.isfinite(outcome.weights).all()
    assert curator.statement().epsilon <= promise.epsilon


@pytest.mark.parametrize("kind", ["constraints", "penalty"])
@pytest.mark.parametrize("kill_at", [9, 13, 17])
def test_without_noise_the_result_is_that_of_a_run_that_nobody_killed(
    tmp_path, kind, kill_at
) -> None:
    promise = Promise(math.inf, 0.0)
    whole, _, _ = run(kind, promise, tmp_path / "whole")
    with pytest.raises(Killed):
        run(kind, promise, tmp_path / "killed", kill_at)
    found, _, _ = run(kind, promise, tmp_path / "killed")
    for name in ("weights", "values", "duals"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name
    assert (found.reason, found.rounds) == (whole.reason, whole.rounds)
