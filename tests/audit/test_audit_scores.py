"""Audits of mechanisms that are known exactly: they tell the truth, come near it, and find what is
wrong by 1.5."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil.audit import (
    EventsClaim,
    GaussianClaim,
    PointClaim,
    audit_fit,
    audit_scores,
)
from fairveil.core.events import Gaussian, Laplace
from fairveil.curator import Curator, Rows
from fairveil.errors import InputError, LedgerError, Overspent
from fairveil.ledger import Ledger
from fairveil.privacy import NoiseSource, PrivacyStatement, Promise, epsilon


def laplace_scores(eps, trials, seed):
    rng = np.random.default_rng(seed)
    return rng.laplace(0, 1 / eps, trials), rng.laplace(1, 1 / eps, trials)


def gaussian_scores(mu, trials, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, trials), rng.normal(mu, 1, trials)


def binary_scores(eps, trials, seed):
    rng = np.random.default_rng(seed)
    lie = 1 / (1 + math.exp(eps))
    return (rng.random(trials) < lie) * 1.0, (rng.random(trials) >= lie) * 1.0


@pytest.mark.parametrize("make", [laplace_scores, binary_scores])
def test_bounds_exceed_the_truth_no_more_often_than_they_say(make):
    """Guarantee 2 at confidence 0.9, epsilon 1. The chance that 600 audits show more than 60 + 4 x
    7.3 is below 1e-4."""
    wrong = [
        audit_scores(*make(1.0, 400, seed), delta=0.0, confidence=0.9).epsilon_lower > 1.0
        for seed in range(600)
    ]
    assert sum(wrong) <= 89
    # The mechanisms' total variation distances, where the bound has no slack to hide behind.
    distance = 1 - math.exp(-0.5) if make is laplace_scores else math.tanh(0.5)
    fixed = [
        audit_scores(*make(1.0, 400, seed), delta=0.0, confidence=0.9, threshold=0.5)
        for seed in range(600)
    ]
    assert 20 <= sum(found.total_variation_lower > distance for found in fixed) <= 89


@pytest.mark.parametrize("make", [laplace_scores, binary_scores])
def test_a_bound_comes_near_the_truth(make):
    found = audit_scores(*make(1.0, 100_000, 1), delta=0.0, claimed=1.0)
    assert 0.92 < found.epsilon_lower <= 1.0
    assert not found.contradicts()
    # Randomised response is further apart than Laplace noise of the same epsilon, and is not taken
    # for it.
    assert found.contradicts(EventsClaim(Laplace(1.0))) is (make is binary_scores)


def test_gaussian_noise_is_measured_by_its_curve():
    found = audit_scores(*gaussian_scores(0.5, 40_000, 2), delta=1e-5, threshold=0.25)
    assert 0.47 < found.mu_lower <= 0.5
    assert found.gaussian_epsilon_lower == pytest.approx(
        epsilon(Gaussian(1 / found.mu_lower), 1e-5)
    )
    assert found.epsilon_lower < found.gaussian_epsilon_lower <= epsilon(Gaussian(2.0), 1e-5)


@pytest.mark.parametrize("flip", [1.0, -1.0])
def test_noise_too_small_by_half_is_contradicted(flip):
    """1.5 times too little noise, in either orientation of the score; a right claim survives (risk
    1 %)."""
    here, there = (flip * scores for scores in gaussian_scores(0.6, 6_000, 3))
    found = audit_scores(here, there, delta=1e-5, confidence=0.99, claimed=GaussianClaim(0.4))
    assert found.contradicts()
    assert not found.contradicts(GaussianClaim(0.6))
    here, there = (flip * scores for scores in laplace_scores(1.5, 6_000, 3))
    found = audit_scores(here, there, delta=0.0, confidence=0.99, claimed=1.0)
    assert found.contradicts()
    assert not found.contradicts(1.5)
    assert found.contradicts(PointClaim(1.0, 1e-3))
    assert not found.contradicts(PointClaim(1.0, 0.5))


def test_runs_that_choose_are_not_counted():
    """Guarantee 1: choosing runs that are far apart move the threshold, and nothing else."""
    here, there = gaussian_scores(0.0, 4_000, 4)
    here[:1000], there[:1000] = -50.0, 50.0
    found = audit_scores(here, there, delta=0.0, claimed=0.0)
    assert found.chosen_from == 1000
    assert found.tail.trials == found.middle.trials == 3000
    assert found.epsilon_lower < 0.2
    assert found.total_variation_lower < 0.05
    fixed = audit_scores(here, there, delta=0.0, threshold=0.0)
    assert fixed.middle.trials == fixed.trials == 4000
    assert fixed.tail.trials == 3000


def test_every_run_has_a_seed_of_its_own():
    """Guarantee 3."""
    seeds: list[int] = []

    def fit(data: None, seed: int) -> float:
        seeds.append(seed)
        return float(np.random.default_rng(seed).normal())

    audit_fit(fit, None, None, trials=50, delta=0.0, seed=1000)
    assert sorted(seeds) == list(range(1000, 1100))


def test_released_vectors_are_projected_on_the_line_that_parts_them_best():
    """Only a difference of two noisy coordinates tells the two data sets apart: neither coordinate
    alone does."""

    def fit(shift: float, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        common = 30 * rng.normal()
        return np.array(
            [
                common + 0.7 * rng.normal(),
                common + shift + 0.7 * rng.normal(),
                3.0,
                5 * rng.normal(),
            ]
        )

    found = audit_fit(fit, 0.0, 1.0, trials=4_000, delta=1e-5)
    assert 0.85 < found.mu_lower < 1.0 / (0.7 * math.sqrt(2))
    nothing = audit_fit(fit, 1.0, 1.0, trials=4_000, delta=1e-5)
    assert nothing.mu_lower < 0.1


def test_infinite_scores_are_scores():
    found = audit_scores(
        [-math.inf] * 400, [math.inf] * 400, delta=1e-5, confidence=0.99, claimed=1.0
    )
    assert found.contradicts()
    assert found.epsilon_lower > 3.5


def test_words_say_what_was_found_and_what_it_does_not_prove():
    found = audit_scores(*laplace_scores(1.0, 2_000, 5), delta=1e-6, confidence=0.99, claimed=0.25)
    words = str(found)
    assert ": contradicted." in words
    assert f"{found.epsilon_lower:.3g}" in words
    assert "0.99" in words
    kept = audit_scores([0.0] * 9, [0.0] * 9, delta=0.0, claimed=1.0).summary()
    assert "not contradicted, which does not prove it" in kept


def test_a_statement_is_a_claim_of_its_plan_and_without_one_of_its_point():
    promise = Promise(1.0, 1e-5)
    statement = PrivacyStatement.of(promise, [Laplace(1.0)], plan=[Laplace(1.0)])
    found = audit_scores(*laplace_scores(1.0, 4_000, 7), delta=1e-5)
    assert not found.contradicts(statement)
    wrong = audit_scores(*laplace_scores(3.0, 4_000, 7), delta=1e-5)
    assert wrong.contradicts(statement)
    capped = PrivacyStatement.of(promise, [Laplace(2.0)])
    assert found.contradicts(capped) == found.contradicts(PointClaim(capped.epsilon, capped.delta))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"delta": -1}, "delta"),
        ({"confidence": 0.5}, "confidence"),
        ({"confidence": 1.0}, "confidence"),
        ({"choosing": 0.0}, "choosing"),
        ({"scores": [1.0] * 7}, "as many of each"),
        ({"scores": [math.nan] * 20}, "one number a run"),
        ({"scores": [[1.0]] * 20}, "one number a run"),
        ({"claimed": Gaussian(1.0)}, "neighbour"),
        ({"claimed": "private"}, "claim"),
    ],
)
def test_malformed_audits_are_refused(change, match):
    given = {"scores": [1.0] * 20, "neighbour_scores": [2.0] * 20, "delta": 0.0, **change}
    with pytest.raises(InputError, match=match):
        audit_scores(given.pop("scores"), given.pop("neighbour_scores"), **given)


def test_guarantee_4_with_a_ledger_every_run_on_either_side_is_recorded():
    def count(rows, seed):
        with Curator(rows, Promise(1.0, 1e-6), noise=NoiseSource.seeded(seed)) as curator:
            return float(curator.release_rows(30.0))

    book = Ledger.create(None, "people", 9.0, 1e-6)
    data, neighbour = (
        Rows.from_arrays(np.zeros((n, 1)), np.zeros(n, int), classes=(0, 1)) for n in (20, 21)
    )
    audit_fit(count, data, neighbour, trials=8, delta=1e-6, ledger=book)
    assert [line.kind for line in book.history()][1:] == ["reserved", "committed"] * 16
    *_, last = book.history()
    assert last.spent == 16 * book.terms.cost(Gaussian(30.0), Promise(1.0, 1e-6)).units
    small = Ledger.create(None, "few", 0.5, 1e-6)
    with pytest.raises(Overspent):
        audit_fit(count, data, neighbour, trials=200, delta=1e-6, ledger=small)
    audit_fit(count, data, neighbour, trials=8, delta=1e-6)  # after the block nothing is recorded
    assert len(list(book.history())) == 33
    for wrong in ("budget.db", False):
        with pytest.raises(LedgerError, match="a Ledger, or None"):
            audit_fit(lambda data, seed: 0.0, 0, 1, trials=10, delta=0.0, ledger=wrong)


def test_malformed_runs_are_refused():
    def told(here, there, **more):
        return audit_fit(lambda data, seed: data(seed), here, there, trials=10, delta=0.0, **more)

    one, two = (lambda seed: 0.0), (lambda seed: [0.0, 1.0])
    with pytest.raises(InputError, match="as many numbers"):
        told(lambda seed: [0.0] * (1 + seed % 3), one)
    with pytest.raises(InputError, match="releases of shape"):
        told(two, one)
    with pytest.raises(InputError, match="finite"):
        told(lambda seed: [0.0, math.inf], two)
    with pytest.raises(InputError, match="threshold"):
        told(two, two, threshold=0.0)
    with pytest.raises(InputError, match="claim"):
        told(one, one).contradicts()
