"""Whole rate-constrained fits under attack: the released answers of a run, and the coefficients of
the estimator.

False alarms: a test that a right claim stands fails for 5 % of fresh seeds at most (the bounds'
confidence); seeds are fixed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairveil import DemographicParity, EqualizedOdds, Promise, RateConstrainedClassifier
from fairveil.audit import (
    EventsClaim,
    GaussianClaim,
    PointClaim,
    Tape,
    Witness,
    audit_fit,
    audit_scores,
)
from fairveil.core.cost import gaussian_mu
from fairveil.curator import Curator, Rows, pricing
from fairveil.learning import LinearDescent, Settings, descend
from fairveil.learning.lagrangian import noise as planned_noise
from fairveil.learning.lagrangian import planning
from fairveil.privacy import NoiseSource, epsilon
from knobs import made

MANY = 100  # fits in one pass, each with noise of its own: the same as alone, to the bit
PROMISE = Promise(1.0, 1e-5)
# the model hardly moves: the far row stays wrong by a half, and at the clip
SLOW = Settings(rounds=8, rate_most=1e-6)
# many fits in one pass have one clip: their own where the number of rows is public
FIXED = replace(SLOW, clip=2.0)


@pytest.fixture(autouse=True)
def heard_at_any_noise(monkeypatch) -> None:
    """Rounds ask for the histogram, also of 61 rows: fits in one pass all ask the same. Those of the
    loss alone are enumerated in tests/learning/test_learning_loss_alone.py."""
    monkeypatch.setattr(planned_noise, "SURELY_HEARD", 0.0)


def pair(relation: str) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(5)
    X, y, A = rng.normal(size=(60, 3)), rng.integers(0, 2, 60), rng.integers(0, 2, 60)

    def rows(features: list[list[float]], labels: list[int], groups: list[int]) -> Rows:
        table = np.vstack([X, np.array(features).reshape(-1, 3)])
        return Rows.from_arrays(
            table, np.append(y, labels), [np.append(A, groups)], classes=(0, 1), groups=[(0, 1)]
        )

    far = [0.0, 0.0, 1e4]
    if relation == "add-remove":
        return rows([], [], []), rows([far], [1], [1])
    return rows([far], [1], [1]), rows([far], [0], [0])


def scores(rows: Rows, here: Rows, there: Rows, notion, promise: Promise, seed: int) -> np.ndarray:
    """MANY whole fits on `rows`; of each the log likelihood ratio of all that it released."""
    public = None if promise.neighbours == "add-remove" else 61
    plan = planning.make(
        promise,
        rows.layout,
        rows.cells(),
        [notion],
        FIXED if public is None else SLOW,
        public_rows=public,
    )
    search = LinearDescent(plan, np.tile(plan.system.bounds, (MANY, 1)), many=True)
    whole = Promise(
        epsilon(search.plan, promise.delta, promise.neighbours),
        promise.delta,
        neighbours=promise.neighbours,
    )
    tape = Tape()
    heard = tape.around(Curator.answer)

    class Heard(Curator):
        def answer(self, *given, **named):
            return heard(self, *given, **named)

    noise = [NoiseSource.seeded(seed * MANY + m) for m in range(MANY)]
    descend(Heard(rows, whole, plan=search.plan, noise=noise, public_rows=public), search)
    return np.asarray(Witness(here, there, promise).score(tape))


def audited(notion, relation: str, trials: int, confidence: float):
    promise = Promise(1.0, 1e-5, neighbours=relation)
    here, there = pair(relation)
    found = [
        np.concatenate(
            [
                scores(rows, here, there, notion, promise, 2 * i + side)
                for i in range(trials // MANY)
            ]
        )
        for side, rows in enumerate((here, there))
    ]
    public = None if relation == "add-remove" else 61
    settings = FIXED if public is None else SLOW
    events = planning.make(
        promise, here.layout, here.cells(), [notion], settings, public_rows=public
    ).events(None)
    return audit_scores(
        *found,
        delta=1e-5,
        confidence=confidence,
        threshold=0.0,
        claimed=EventsClaim(events, relation),
    )


def test_a_whole_fit_on_the_worst_pair_stays_under_its_claim_and_reaches_half_of_it() -> None:
    found = audited(DemographicParity(0.05), "add-remove", 2_000, 0.95)
    assert not found.contradicts()
    assert found.mu_lower <= gaussian_mu(1.0, 1e-5)
    assert 0.5 <= found.gaussian_epsilon_lower <= 1.0


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_equalized_odds_and_replacement_stay_under_their_claim(relation) -> None:
    found = audited(EqualizedOdds(0.05), relation, 1_000, 0.95)
    assert not found.contradicts()
    assert found.contradicts(GaussianClaim(0.2 * gaussian_mu(1.0, 1e-5)))


def test_half_the_noise_in_a_whole_fit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = pricing.noise_scale
    monkeypatch.setattr(pricing, "noise_scale", lambda *given: scale(*given) / 2)
    assert audited(DemographicParity(0.05), "add-remove", 1_000, 0.99).contradicts()


def coefficients(budget: float):
    def fit(rows, seed: int) -> np.ndarray:
        X, y, A = rows
        options = {
            "delta": 1e-5,
            "rounds": 5,
            "random_state": seed,
            "public_rows": 100,
            "randomised": None,
        }
        # the model that was found
        clf = made(RateConstrainedClassifier, DemographicParity(0.1), epsilon=budget, **options)
        return np.append(clf.fit(X, y, sensitive_features=A).coef_, clf.intercept_)

    return fit


# constraints on a hundred rows at epsilon 1 are not met, and small data warn of delta
@pytest.mark.filterwarnings("ignore")
def test_coefficients_of_the_estimator_do_not_tell_more_than_was_promised() -> None:
    """The attack sees the model alone. It has power: the same attack tells that epsilon 30 is not
    epsilon 1."""
    rng = np.random.default_rng(1)
    X, y, A = rng.normal(size=(60, 2)), rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    there = (np.vstack([X, [[0.0, 300.0]]]), np.append(y, 1), np.append(A, 1))
    claim = PointClaim(1.0, 1e-5)
    kept = audit_fit(coefficients(1.0), (X, y, A), there, trials=300, delta=1e-5, claimed=claim)
    assert not kept.contradicts()
    broken = audit_fit(coefficients(30.0), (X, y, A), there, trials=300, delta=1e-5, claimed=claim)
    assert broken.contradicts()
