"""Whole games under attack: all answers of a run, against the strongest score there is.

False alarms: a test that a right claim stands fails for 5 % of fresh seeds at most (the bounds'
confidence); seeds are fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairveil import EqualizedOdds, Promise
from fairveil.audit import EventsClaim, Tape, Witness, audit_scores
from fairveil.core.cost import gaussian_mu
from fairveil.curator import Curator, Rows, pricing
from fairveil.learning.game.game import Game, play
from fairveil.learning.game.plan import plan
from fairveil.learning.oracles.ground import GameInstance
from fairveil.learning.oracles.regression import Regression
from fairveil.privacy import NoiseSource

MU = gaussian_mu(1.0, 1e-5)


def pair(relation: str) -> tuple[Rows, Rows]:
    """One person more, far out and at the clip; or the same person in another group."""
    rng = np.random.default_rng(5)
    X, y, A = rng.normal(size=(30, 2)), rng.integers(0, 2, 30), rng.integers(0, 2, 30)

    def rows(more: list[int]) -> Rows:
        table = np.vstack([X, np.array([[0.0, 1e4]] * len(more)).reshape(-1, 2)])
        return Rows.from_arrays(
            table,
            np.append(y, [1] * len(more)).astype(int),
            [np.append(A, more).astype(int)],
            classes=(0, 1),
            groups=[(0, 1)],
        )

    return (rows([]), rows([1])) if relation == "add-remove" else (rows([0]), rows([1]))


def game_of(rows: Rows, promise: Promise) -> Game:
    public = rows.exact_count if promise.rows_are_public else None
    ground = GameInstance.of(
        promise, rows.layout, rows.cells(), [EqualizedOdds(0.05)], public_rows=public
    )
    return plan(ground, Regression(), rounds=3)


def scores(
    rows: Rows, here: Rows, there: Rows, promise: Promise, game: Game, seeds: range
) -> np.ndarray:
    witness, out = Witness(here, there, promise), []
    for seed in seeds:
        tape = Tape()
        heard = tape.around(Curator.answer)

        class Heard(Curator):
            def answer(self, *given: Any, **named: Any) -> Any:
                return heard(self, *given, **named)  # noqa: B023  (each run has a tape of its own)

        play(Heard(rows, promise, plan=game.plan, noise=NoiseSource.seeded(seed)), game)
        out.append(witness.score(tape))
    return np.array(out)


def audited(promise: Promise, trials: int, confidence: float) -> Any:
    here, there = pair(promise.neighbours)
    game = game_of(here, promise)
    found = [
        scores(rows, here, there, promise, game, range(side * trials, (side + 1) * trials))
        for side, rows in enumerate((here, there))
    ]
    claim = EventsClaim(game.plan, promise.neighbours)
    return audit_scores(*found, delta=1e-5, confidence=confidence, threshold=0.0, claimed=claim)


def test_a_game_on_the_worst_pair_stays_under_its_claim_and_comes_near_half_of_it() -> None:
    found = audited(Promise(1.0, 1e-5), 600, 0.95)
    assert not found.contradicts()
    assert 0.45 * MU <= found.mu_lower <= MU


def test_a_change_of_group_stays_under_the_claim() -> None:
    found = audited(Promise(1.0, 1e-5, "sensitive_features"), 200, 0.95)
    assert not found.contradicts()
    assert 0 < found.mu_lower <= MU


def test_half_the_noise_in_a_game_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = pricing.noise_scale
    monkeypatch.setattr(pricing, "noise_scale", lambda *given: scale(*given) / 2)
    assert audited(Promise(1.0, 1e-5), 500, 0.99).contradicts()
