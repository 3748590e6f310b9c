"""Right guesses about canaries: bounds of mechanisms whose chances are computed; some reach them.

Nothing is drawn: the chance of a false alarm is computed for each mechanism, so no test here fails
by chance.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from fairveil.audit import GaussianClaim, PointClaim
from fairveil.audit.canary_bounds import (
    PLACES,
    _Program,
    delta_of,
    epsilon_lower,
    most_probable,
    mu_lower,
    points_of,
    refutes,
)
from fairveil.audit.claims import EventsClaim
from fairveil.core.events import Gaussian

ROUNDED = 1e-9


def curve(coins, chances):
    """(epsilon, delta) of a mechanism: chances[t] of its outputs, if coins fell as coins[t]
    says."""
    pairs = [
        (a, b)
        for a, b in itertools.permutations(range(len(coins)), 2)
        if sum(coins[a] != coins[b]) == 1
    ]
    return [
        (
            at,
            max(
                float(np.maximum(chances[a] - math.exp(at) * chances[b], 0.0).sum())
                for a, b in pairs
            ),
        )
        for at in PLACES
    ]


def tails(coins, chances, guess, guesses):
    """P(right guesses >= v) for v = 0, 1, ...: guess[output] maps canaries to coins."""
    law = np.zeros(guesses + 1)
    for at, output in itertools.product(range(len(coins)), range(chances.shape[1])):
        right = sum(coins[at][who] == said for who, said in guess[output].items())
        law[right] += chances[at, output] / len(coins)
    return law[::-1].cumsum()[::-1]


@pytest.mark.parametrize("canaries", [2, 3])
def test_guarantee_1_no_mechanism_that_is_enumerated_has_more_right_guesses(canaries) -> None:
    rng = np.random.default_rng(canaries)
    coins = np.array(list(itertools.product((0, 1), repeat=canaries)))
    nearest = 1.0
    for sharpness in (0.3, 1.0, 4.0, 20.0):
        for _ in range(3):
            logits = sharpness * rng.normal(size=(len(coins), 5))
            chances = special.softmax(logits, axis=1)
            points = curve(coins, chances)
            for guesses in range(1, canaries + 1):
                guess = []
                for output in range(5):
                    after = chances[:, output] / chances[:, output].sum()
                    heads = after @ coins
                    who = np.argsort(-np.abs(heads - 0.5))[:guesses]
                    guess.append({int(one): int(heads[one] > 0.5) for one in who})
                found = tails(coins, chances, guess, guesses)
                for right in range(1, guesses + 1):
                    bound = most_probable(canaries, guesses, right, points)
                    assert found[right] <= bound + ROUNDED
                    nearest = min(nearest, bound - found[right])
    assert nearest < 0.02  # near enough to fail if the bound were lower


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("guesses", [20, 60])
def test_guarantee_2_randomized_response_reaches_it(epsilon, guesses) -> None:
    right = np.arange(guesses + 1)
    chance = stats.binom.pmf(right, guesses, special.expit(epsilon))
    for risk in (0.05, 0.01):
        claim, smaller = PointClaim(epsilon, 0.0), PointClaim(epsilon / 3.0, 0.0)
        wrongly = sum(chance[v] for v in right if refutes(claim, 60, guesses, int(v), risk))
        assert wrongly <= risk
        assert (
            sum(chance[v] for v in right if refutes(smaller, 60, guesses, int(v), risk)) >= wrongly
        )
    for v in (guesses // 2, guesses):
        exact = float(stats.binom.sf(v - 1, guesses, special.expit(epsilon)))
        assert most_probable(60, guesses, v, [(epsilon, 0.0)]) == pytest.approx(exact, rel=1e-9)
        assert most_probable(60, guesses, v, [(epsilon, 1e-12)]) == pytest.approx(
            exact, rel=1e-3, abs=1e-7
        )


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.05])
def test_guarantee_2_what_tells_everything_with_probability_delta_reaches_it(delta) -> None:
    for guesses in (5, 20, 60):
        for right in range(1, guesses + 1, 3):
            likely = delta + (1.0 - delta) * float(stats.binom.sf(right - 1, guesses, 0.5))
            assert likely <= most_probable(60, guesses, right, [(0.0, delta)]) + ROUNDED
    assert most_probable(60, 60, 60, [(0.0, delta)]) == pytest.approx(delta, rel=1e-3, abs=1e-7)


def test_guarantee_3_gaussian_curves_are_refuted_within_their_risk() -> None:
    """Canaries apart, each coin seen through noise: binomial. A strength that all share is
    worse."""
    for canaries in (20, 80):
        for strengths, shares in (
            ((0.3,), (1.0,)),
            ((1.0,), (1.0,)),
            ((0.0, 1.0), (0.7, 0.3)),
            ((0.1, 3.0), (0.95, 0.05)),
        ):
            points = [
                (
                    at,
                    sum(
                        part * delta_of(mu, at) for mu, part in zip(strengths, shares, strict=True)
                    ),
                )
                for at in PLACES
            ]
            for right in range(canaries // 2, canaries, canaries // 5):
                exact = sum(
                    part * float(stats.binom.sf(right - 1, canaries, special.ndtr(mu / 2.0)))
                    for mu, part in zip(strengths, shares, strict=True)
                )
                assert exact <= most_probable(canaries, canaries, right, points) + ROUNDED
    least = next(v for v in range(50, 101) if refutes(GaussianClaim(0.3), 100, 100, v, 0.05))
    assert stats.binom.sf(least - 1, 100, special.ndtr(0.15)) <= 0.05
    assert (
        stats.binom.sf(least - 1, 100, special.ndtr(1.0)) > 0.95
    )  # and a mu of 2 is found nearly always


def test_any_weights_prove_a_bound_and_the_solver_finds_nearly_the_least() -> None:
    rng, points = np.random.default_rng(0), [(at, delta_of(0.5, at)) for at in PLACES[:4]]
    program = _Program(50, 20, 15, points)
    least = program.value
    for _ in range(50):
        each = rng.exponential(size=4)
        assert program._proved(each, rng.random((4, 20)) * each[:, None]) >= least - ROUNDED
    assert 0.0 < least < 1.0


def test_a_curve_shows_more_than_its_points_one_by_one() -> None:
    points = points_of(GaussianClaim(0.5))
    whole = most_probable(200, 200, 140, points)
    assert whole < 0.9 * min(most_probable(200, 200, 140, [one]) for one in points)
    assert np.allclose(points, points_of(EventsClaim([Gaussian(2.0)], "add-remove")))
    assert [at for at, _ in points] == list(PLACES)


def test_bounds_are_where_the_claim_begins_to_stand() -> None:
    for right in (0, 60, 80, 100):
        found = epsilon_lower(400, 100, right, 1e-6, 0.05)
        if found:
            assert most_probable(400, 100, right, [(found - 1e-3, 1e-6)]) <= 0.05
        assert most_probable(400, 100, right, [(found + 1e-3, 1e-6)]) > 0.05 or found == 0.0
    assert epsilon_lower(400, 100, 50, 1e-6, 0.05) == mu_lower(400, 100, 50, 0.05) == 0.0
    assert 0.0 < mu_lower(400, 100, 90, 0.05) < mu_lower(400, 100, 100, 0.05)
    assert delta_of(0.0, 1.0) == 0.0
