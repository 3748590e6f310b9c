"""The loop of private searches, its two players, and the guarantees in `methods/descent.py`."""

from __future__ import annotations

import numpy as np
import pytest

from covering import pairs
from fairveil import DemographicParity, EqualizedOdds, Promise
from fairveil.curator import FULL, CellCounts, Curator, Rows
from fairveil.errors import PrivacyError
from fairveil.methods import PrimalDual, Settings
from fairveil.methods.primal_dual import planned
from fairveil.privacy import NoiseSource
from fairveil.statement.document import PrivacyStatement

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
) -> PrimalDual:
    public = rows.exact_count if promise.rows_are_public or not promise.is_private else None
    known = (promise, rows.layout, rows.cells(), notions, settings)
    return PrimalDual(planned(*known, public_rows=public))


def curator_for(rows: Rows, search: PrimalDual, seed: int = 0) -> Curator:
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


@pytest.mark.parametrize(
    ("promise", "rate", "notions"),
    pairs(
        PROMISES,
        [None, 0.2],
        [(), (DemographicParity(0.05),), (EqualizedOdds(0.1), DemographicParity(0.3))],
    ),
)
def test_guarantee_1_the_log_is_the_plan_and_the_plan_keeps_the_promise(
    promise, rate, notions
) -> None:
    rows = make_rows()
    search = search_for(rows, promise, notions, Settings(rounds=6, sampling_rate=rate))
    curator = curator_for(rows, search)
    search.run(curator)
    statement = PrivacyStatement.of_run(curator)
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
    found = search.run(curator_for(rows, search))

    class Elsewhere(Curator):
        """Other rows, the same answers."""

        def answer(self, measurements, batch=FULL, *, purpose=""):
            super().answer(measurements, batch, purpose=purpose)
            return replies.pop(0)

    replies: list = []
    heard = curator_for(rows, search)
    listened = heard.answer
    heard.answer = lambda *args, **kwargs: replies.append(listened(*args, **kwargs)) or replies[-1]  # type: ignore[method-assign]
    search.run(heard)
    other = make_rows(seed=9)
    curator = Elsewhere(other, search.promise, plan=search.plan, noise=NoiseSource.seeded(5))
    same = search.run(curator)
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
        search.run(curator, stop_early)
    assert len(curator.log) == 4  # the counts and three rounds
    assert PrivacyStatement.of_run(curator).check() == []
    with pytest.raises(PrivacyError):
        curator.answer([(CellCounts(rows.cells()), 10.0)])
