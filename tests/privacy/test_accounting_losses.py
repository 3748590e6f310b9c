"""Composition on a grid: always above the truth, by little; deep tails; large and small scales."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from fairveil.core import compose as losses
from fairveil.core import cost as routes
from fairveil.core import curves as profiles
from fairveil.core.events import Gaussian, Pure, Repeated
from fairveil.core.inventory import inventory


@pytest.mark.parametrize("mu", [1e-3, 0.05, 1.0, 6.0, 40.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-5, 0.1])
def test_a_gaussian_through_the_grid_is_the_closed_form_from_above(mu: float, delta: float) -> None:
    route = routes.by_losses(inventory(Gaussian(1 / mu), "add-remove"), "add-remove")
    exact = routes.gaussian_epsilon(mu, delta)
    assert exact * (1 - 1e-9) <= route.epsilon(delta) <= exact * (1 + 1e-3) + 1e-9
    assert profiles.gaussian_delta(exact, mu) * (1 - 1e-6) <= route.delta(exact)


@pytest.mark.parametrize(("mu", "count"), [(0.001, 10_000), (0.2, 100), (2.0, 7)])
def test_gaussians_composed_by_transform_are_one_gaussian(mu: float, count: int) -> None:
    profile = profiles.gaussian(mu)
    step = 0.02 * mu
    ahead, behind = losses.both_ways([(losses.on_grid(profile, step, 1e-18), count)], step)
    exact = routes.gaussian_epsilon(mu * math.sqrt(count), 1e-6)
    for parts in (ahead, behind):
        assert exact * (1 - 1e-9) <= losses.epsilon_of(parts, 1e-6) <= exact * (1 + 1e-3)


@pytest.mark.parametrize("count", [1, 3, 40])
def test_randomised_responses_are_a_binomial(count: int) -> None:
    epsilon = 0.3
    wins = np.arange(count + 1)
    loss = epsilon * (2 * wins - count)
    mass = binom.pmf(wins, count, 1 / (1 + math.exp(-epsilon)))
    route = routes.by_losses(inventory(Repeated(Pure(epsilon), count), "add-remove"), "add-remove")
    for at in (0.0, 0.5, 2.0, 4.0):
        exact = float(mass @ np.maximum(0.0, -np.expm1(at - loss)))
        assert exact - 1e-15 <= route.delta(at) <= exact * 1.002 + 1e-13


def test_connecting_the_dots_dominates_between_the_dots_and_is_a_distribution() -> None:
    profile = profiles.poisson_add_remove(profiles.joint(0.7, 1.1), 0.2)
    for pair, curve in zip(
        losses.on_grid(profile, 0.02, 1e-12), (profile.forward, profile.backward), strict=True
    ):
        assert pair.mass.sum() + pair.never == pytest.approx(1.0, abs=1e-12)
        for e in np.linspace(0.0, 1.2, 49):
            discrete = pair.never + float(pair.mass @ np.maximum(0.0, -np.expm1(e - pair.losses)))
            exact = float(curve(np.array([e]))[0])
            assert exact - 1e-15 <= discrete <= exact * 1.01 + 5e-4


def test_the_two_directions_of_an_asymmetric_pair_are_kept_apart() -> None:
    profile = profiles.poisson_add_remove(profiles.gaussian(3.0), 0.01)
    ahead, behind = losses.both_ways([(losses.on_grid(profile, 1e-3, 1e-15), 50)], 1e-3)
    assert losses.epsilon_of(ahead, 1e-6) > losses.epsilon_of(behind, 1e-6) > 0


def test_delta_below_what_is_lost_is_inf_and_delta_of_nothing_left_is_what_is_lost() -> None:
    lossy = profiles.pure(1.0, 1e-4)
    ahead, _ = losses.both_ways([(losses.on_grid(lossy, 0.01, 1e-12), 3)], 0.01)
    assert losses.epsilon_of(ahead, 2.9e-4) == math.inf
    assert losses.delta_of(ahead, 3.5) == pytest.approx(3e-4, rel=1e-3)
    assert losses.epsilon_of(ahead, 3.1e-4) <= 3.05


def test_relative_entropy_from_the_profile() -> None:
    assert losses.variance(profiles.gaussian(0.3), 1e-20) == pytest.approx(0.09, rel=0.02)
