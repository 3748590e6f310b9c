"""One attack: the pilot bets nothing, seeds are never used twice, and wealth follows the claim."""

from __future__ import annotations

import numpy as np
import pytest

from fairveil.audit import GaussianClaim, PointClaim
from fairveil.audit.attack import Attack, Seeds
from fairveil.audit.planted import SAME_SEED
from fairveil.audit.targets import HERE, THERE, Bug, Target
from fairveil.errors import InputError
from fairveil.privacy import Promise


class Gaussian(Target):
    """N(0, 1) here, N(mu, 1) there; what was asked of it is kept."""

    bugs = ()

    def __init__(self, mu: float, claim) -> None:
        self.name, self.promise, self.claim, self.exact, self.distance = (
            "gaussian",
            Promise(1.0, 1e-5),
            claim,
            False,
            0.0,
        )
        self.mu, self.seeds = mu, []

    def run(self, side, seed, bug=None):
        self.seeds.append((side, seed))
        return np.array([np.random.default_rng(seed).normal() + self.mu * side])


def attack(target: Gaussian, seed: int = 0, bug: Bug | None = None) -> Attack:
    return Attack(target, Seeds(seed), target.claim, delta=1e-5, risk=0.05, planned=200, bug=bug)


def test_guarantee_1_the_pilot_fixes_the_tests_and_bets_nothing() -> None:
    found = attack(Gaussian(3.0, GaussianClaim(0.1))).fix(30)
    assert found.trials == 0
    assert not found.refuted
    assert found.total_variation_lower == found.epsilon_lower == 0.0
    fixed = found.tests
    found.go_on(200)
    assert found.refuted
    assert found.tests is fixed
    assert found.trials < 60


def test_guarantee_2_pairs_share_a_seed_that_no_other_pair_has() -> None:
    target = Gaussian(1.0, GaussianClaim(1.0))
    attack(target).fix(20).go_on(30)
    here, there = ([seed for side, seed in target.seeds if side == one] for one in (HERE, THERE))
    assert here == there
    assert len(set(here)) == 50
    assert all(0 <= seed < 1 << 32 for seed in here)
    again = Gaussian(1.0, GaussianClaim(1.0))
    attack(again).fix(20).go_on(30)
    assert again.seeds == target.seeds
    same = Gaussian(1.0, GaussianClaim(1.0))
    attack(same, bug=Bug(SAME_SEED)).fix(10).go_on(200)
    assert len({seed for _, seed in same.seeds}) == 1


@pytest.mark.parametrize("claim", [GaussianClaim(1.0), PointClaim(5.0, 1e-2)])
def test_a_true_claim_stands_and_bounds_are_below_the_truth(claim) -> None:
    found = attack(Gaussian(1.0, claim), 3).fix(40)
    found.go_on(300)
    assert not found.refuted
    assert 0.2 < found.total_variation_lower < 0.383
    assert found.power(300) < 0.2


def test_releases_of_changing_size_are_refused() -> None:
    target = Gaussian(1.0, GaussianClaim(1.0))
    target.run = lambda side, seed, bug=None: np.zeros(1 + seed % 2)
    with pytest.raises(InputError, match="as many numbers"):
        attack(target).fix(5)
