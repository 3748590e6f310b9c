"""What a private search costs: the accountant's price, the distribution of the number of runs, and
the exact profile of a selection."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fairveil import Promise
from fairveil.core import mechanisms
from fairveil.core.cost import gaussian_mu
from fairveil.core.events import Approximate, Exponential, Gaussian, PrivateSelection, Repeated
from fairveil.core.mechanisms import inventory
from fairveil.errors import PrivacyError
from fairveil.privacy import NoiseSource, epsilon
from fairveil.study import search_price
from fairveil.study.search_price import ALL, SELECTION

PROMISE = Promise(1.0, 1e-6)


def gaussian_plans(count: int):
    """Every candidate spends all that it may, in one release or in many."""
    return lambda eps, delta: [Gaussian(1.0 / gaussian_mu(eps, delta))] * count


@pytest.mark.parametrize("way", [ALL, SELECTION])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_guarantee_1_the_price_is_at_most_the_total_and_uses_most_of_it(way, count) -> None:
    price = search_price.priced(PROMISE, gaussian_plans(count), count, way, max(count, 2.0))
    again = epsilon(price.events, PROMISE.delta, PROMISE.neighbours)
    assert 0.97 <= again <= 1.0
    assert price.total == again
    assert price.way == way


def test_auto_takes_the_way_whose_fits_may_spend_more() -> None:
    few, many = (
        search_price.priced(PROMISE, gaussian_plans(n), n, "auto", float(n)) for n in (2, 30)
    )
    assert (few.way, many.way) == (ALL, SELECTION)
    for price in (few, many):
        count = 2 if price is few else 30
        other = SELECTION if price.way == ALL else ALL
        assert (
            price.epsilon
            >= search_price.priced(
                PROMISE, gaussian_plans(count), count, other, float(count)
            ).epsilon
        )


@pytest.mark.parametrize("odd", [Exponential(0.3), Gaussian(3.0)])
def test_guarantee_2_one_run_covers_every_plan_and_the_score(odd) -> None:
    def plans(eps, delta):
        mild = Gaussian(2.0 / gaussian_mu(eps, delta))
        return [mild, Gaussian(1.0 / gaussian_mu(eps, delta))] + (
            [Exponential(eps)] if isinstance(odd, Exponential) else []
        )

    price = search_price.priced(PROMISE, plans, 3, SELECTION, 3.0)
    worst = mechanisms.moments(inventory(price.each, "add-remove"), "add-remove")
    score = Gaussian(price.noise_multiplier) if price.noise_multiplier else None
    for event in [*plans(price.epsilon, price.delta), *([score] if score else [])]:
        own = mechanisms.moments(inventory(event, "add-remove"), "add-remove")
        if worst.leak == 0:
            assert (own.values <= worst.values * (1 + 1e-9)).all()
        else:  # a point: epsilon and delta
            assert epsilon(event, price.delta) <= price.epsilon * (1 + 1e-9)


def test_guarantee_3_draws_follow_the_distribution() -> None:
    """2,000 geometric draws in six bins: chi-square above 25.7 has probability 1e-4."""
    drawn = np.array([search_price.runs(3.0, NoiseSource.seeded(seed)) for seed in range(2000)])
    assert drawn.min() == 1
    counts = np.bincount(np.minimum(drawn, 6))[1:]
    expected = [*stats.geom.pmf(np.arange(1, 6), 1 / 3), stats.geom.sf(5, 1 / 3)]
    assert ((counts - 2000 * np.array(expected)) ** 2 / (2000 * np.array(expected))).sum() < 25.7
    assert search_price.runs(1.0, NoiseSource.seeded(0)) == 1


def profile_of_best(mu: float, mean: float, eps: float) -> float:
    """delta(eps), exactly: the best of a geometric number of N(0, 1) against that of N(mu, 1), both
    ways."""
    at, stop = np.linspace(-9.0, 9.0 + mu, 6001), 1.0 / mean

    def density(shift: float) -> np.ndarray:
        # P(all runs <= x) = stop x / (1 - (1 - stop) x), and its slope
        below = stats.norm.cdf(at - shift)
        return np.asarray(stop / (1 - (1 - stop) * below) ** 2 * stats.norm.pdf(at - shift))

    p, q = density(0.0), density(mu)
    step = at[1] - at[0]
    return float(
        max(np.maximum(0, p - np.exp(eps) * q).sum(), np.maximum(0, q - np.exp(eps) * p).sum())
        * step
    )


def test_the_exact_profile_of_a_selection_keeps_its_price_and_breaks_that_of_one_run() -> None:
    """The best of about ten scores: (epsilon, delta) as priced holds; the price of one run alone
    does not."""
    mu, mean, delta = 1.0, 10.0, 1e-4
    stated = epsilon(PrivateSelection(Gaussian(1.0 / mu), mean, 1.0), delta, "add-remove")
    assert profile_of_best(mu, mean, stated) <= delta
    alone = epsilon(Gaussian(1.0 / mu), delta, "add-remove")
    assert profile_of_best(mu, mean, alone) > delta


@pytest.mark.parametrize("way", [ALL, SELECTION])
@pytest.mark.parametrize("odd", [True, False])
def test_guarantee_1_a_floor_and_a_last_fit_are_in_the_price(way, odd) -> None:
    """One run more, and the share that was kept, of Gaussian plans in squares, of others in
    epsilon."""

    def plans(eps, delta):
        return [Exponential(eps)] * 4 if odd else gaussian_plans(4)(eps, delta)

    own = search_price.priced(PROMISE, plans, 4, way, 4.0)
    price = search_price.priced(PROMISE, plans, 4, way, 4.0, 0.85, floor=True)
    assert price.floor
    assert 0.9 <= epsilon(price.events, PROMISE.delta, PROMISE.neighbours) == price.total <= 1.0
    assert price.events[0] == (Repeated(price.each, 5) if way == ALL else price.each)
    assert price.epsilon < own.epsilon
    mu = math.sqrt(0.85) * gaussian_mu(1.0, 1e-6)
    if odd:
        assert price.events[-1] == Approximate(0.85, price.delta)
    else:
        assert price.events[-1].noise_multiplier == pytest.approx(1 / mu, rel=1e-6)
    assert odd == (price.noise_multiplier is None)


def test_a_budget_that_holds_no_search_is_refused() -> None:
    many = 10**8
    with pytest.raises(PrivacyError, match="fewer candidates"):
        search_price.priced(PROMISE, gaussian_plans(1), many, ALL, 9.0)
    assert search_price.priced(PROMISE, gaussian_plans(1), many, "auto", 9.0).way == SELECTION
