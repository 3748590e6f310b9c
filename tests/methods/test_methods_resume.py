"""Searches that are killed and go on: what was released is told again, and the price is the
plan's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairveil import DemographicParity, EqualizedOdds, Promise
from fairveil.core.events import compose, spelled_out
from fairveil.curator import Curator, Journal, Rows
from fairveil.methods import PrimalDual, SaddleDescent, SaddleProblem, Settings, fermi
from fairveil.methods.primal_dual import planned
from fairveil.privacy import NoiseSource
from fairveil.statement.document import PrivacyStatement

PROMISES = [
    Promise(1.0, 1e-6),
    Promise(1.0, 1e-6, "records", "replace-one"),
    Promise(1.0, 1e-6, "sensitive_features"),
]
SETTINGS = Settings(rounds=20, free_rounds=6)


class Killed(BaseException):
    """What ends a run in the middle."""


def rows_of(seed: int = 0, n: int = 400) -> Rows:
    rng = np.random.default_rng(seed)
    A = rng.integers(2, size=n)
    X = np.clip(rng.normal(scale=0.4, size=(n, 3)) + 0.3 * A[:, None], -1, 1)
    y = (X.sum(axis=1) + rng.normal(scale=0.4, size=n) > 0.4).astype(int)
    return Rows.from_arrays(X, y, [A], classes=(0, 1), groups=[(0, 1)])


def search_of(kind: str, promise: Promise) -> Any:
    rows = rows_of()
    known: dict[str, Any] = {"public_rows": 400, "scalable": True}
    if kind == "constraints":
        notions = [EqualizedOdds(0.05)]
        asked = (promise, rows.layout, rows.cells(), notions, SETTINGS)
        return PrimalDual(planned(*asked, **known, companion=True))
    if kind == "penalty":
        asked = (promise, rows.layout, rows.cells(), DemographicParity(0.0), 2.0, SETTINGS)
        return fermi.search_for(*asked, **known)

    def descent(block: Any, theta: Any, w: Any) -> Any:
        return theta + w - np.asarray(block.numbers).T

    problem = SaddleProblem(descent, descent, np.zeros(3), np.zeros(3), 1.0, 1.0)
    steps = {"step_theta": 0.1, "step_w": 0.01}
    return SaddleDescent.of(promise, rows.layout, problem, rounds=20, public_rows=400, **steps)


def run(
    kind: str, promise: Promise, file: Path | None, kill_at: int | None = None, seed: int = 0
) -> tuple[Any, Curator]:
    """With another seed other noise would be drawn, and with other rows other answers."""
    search, rows = search_of(kind, promise), rows_of(seed if promise.protects == "records" else 0)
    curator = Curator(
        rows,
        promise,
        plan=search.plan,
        noise=NoiseSource.seeded(seed),
        public_rows=None if promise.rows_are_public else 400,
        earlier=None if file is None else Journal(file),
    )

    def progress(done: int, _: int) -> None:
        if len(curator.log) == kill_at:
            raise Killed

    return search.run(curator, progress), curator


def numbers(found: Any) -> list[Any]:
    names = ("theta", "w") if hasattr(found, "theta") else ("weights", "values", "duals")
    return [getattr(found, name).tolist() for name in names]


@pytest.mark.parametrize("promise", PROMISES, ids=["add-remove", "replace-one", "sensitive"])
@pytest.mark.parametrize("kind", ["constraints", "penalty", "saddle"])
def test_a_killed_search_goes_on_and_one_that_ended_is_told_all_again(
    tmp_path: Path, kind: str, promise: Promise
) -> None:
    whole, curator = run(kind, promise, None)
    plan = list(spelled_out(compose(curator.log.events)))
    file = tmp_path / "answers.jsonl"
    if plan:
        with pytest.raises(Killed):
            run(kind, promise, file, kill_at=7)
        told = Journal(file).entries
        found, curator = run(kind, promise, file, seed=1)
        assert list(spelled_out(compose(curator.log.events))) == plan
        assert curator.log.entries[: len(told)] == told
        assert PrivacyStatement.of_run(curator).check() == []
        assert numbers(found) != numbers(whole)  # the noise after the crash is other noise
    first, _ = run(kind, promise, tmp_path / "ended")
    assert numbers(first) == numbers(whole)
    assert numbers(run(kind, promise, tmp_path / "ended", seed=1)[0]) == numbers(whole)
