"""A price is never below the truth where that is hardest: hidden errors, vanishing losses, losses
beyond floats, tiny deltas.

The truths are closed forms, exact binomial sums and many digits of precision.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from fairveil.core import curves as profiles
from fairveil.core import inventory as leaves
from fairveil.core import renyi as renyi
from fairveil.core.cost import delta, epsilon, price, routes_of
from fairveil.core.events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NoOp,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    SamplerError,
    VisiblySampled,
)
from fairveil.core.filters import Filter
from fairveil.core.promise import Promise
from fairveil.errors import InputError
from fairveil.privacy.accounting.calibration import full_batch

REPLACE = "replace-one"

# Sampler errors
# --------------------------------------------------------------------------------------------------

HIDDEN: dict[str, Event] = {
    "visible": VisiblySampled(0.5, Composed((Laplace(1.0), SamplerError(1e-2)))),
    "selection": PrivateSelection(Composed((Laplace(1.0), SamplerError(1e-2))), 5, 1),
    "nothing else": VisiblySampled(0.5, SamplerError(1e-2)),
    "two deep": VisiblySampled(
        0.5, PrivateSelection(Composed((Pure(0.1), SamplerError(1e-2))), 2, 1)
    ),
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_t7_a_sampler_error_inside_is_not_free_on_any_route(kind: str) -> None:
    for at in (0.0, 1e-6):
        assert epsilon(HIDDEN[kind], at, REPLACE) == math.inf
    assert set(routes_of(HIDDEN[kind], 1e-6, REPLACE).values()) == {math.inf}
    assert delta(HIDDEN[kind], 1.0, REPLACE) >= 1e-2
    assert not Filter.create(Promise(50.0, 1e-6, neighbours=REPLACE), "pure").fits(HIDDEN[kind])


def test_t7_an_error_inside_costs_at_least_a_share_of_one_outside() -> None:
    found = epsilon(
        VisiblySampled(0.5, Composed((Laplace(2.0), SamplerError(1e-7)))), 1e-6, REPLACE
    )
    assert 0.4 < found <= 0.5
    runs = PrivateSelection(Composed((Pure(0.1), SamplerError(1e-8))), 5, 1)
    assert epsilon(runs, 1e-6) == pytest.approx(0.3, rel=1e-3)
    assert epsilon(runs, 5e-8) == math.inf


def test_t7_a_small_error_at_a_large_epsilon_is_charged_in_full() -> None:
    # e^710 x 1e-307 = 22.3: nothing is left of delta; e^700 x 1e-307 would be 1e-3 only.
    assert epsilon([Pure(710.0), SamplerError(1e-307)], 0.1) == math.inf
    assert epsilon([Pure(701.0), SamplerError(1e-307)], 0.1) == pytest.approx(701.0, rel=1e-3)


def test_delta_at_epsilon_inf_is_what_has_an_infinite_loss() -> None:
    assert delta(Approximate(1.0, 0.1), math.inf) == pytest.approx(0.1)
    assert delta([Approximate(1.0, 0.1), Gaussian(1.0)], math.inf) == pytest.approx(0.1)
    assert delta(VisiblySampled(0.5, Approximate(1.0, 0.1)), math.inf, REPLACE) == pytest.approx(
        0.05
    )
    assert delta([Gaussian(1.0), Laplace(1.0)], math.inf) == 0.0
    assert 1e-9 < delta([Pure(0.5), SamplerError(1e-9)], math.inf) < 3e-9


# Vanishing losses
# --------------------------------------------------------------------------------------------------


def _two_points(loss: mpmath.mpf, up: mpmath.mpf, down: mpmath.mpf, order: float) -> mpmath.mpf:
    step = mpmath.mpf(order) - 1
    return mpmath.log(loss * mpmath.exp(step * up) + (1 - loss) * mpmath.exp(step * down)) / step


@pytest.mark.parametrize("size", [1e-9, 1e-7, 1e-3, 0.5, 30.0])
def test_moments_are_never_below_many_digits_of_precision(size: float) -> None:
    mpmath.mp.dps = 60
    e = mpmath.mpf(size)
    one = 1 / (1 + mpmath.exp(-e))
    lattice = renyi.curve(DiscreteLaplace(1 / size, 1), "add-remove").values
    for index in range(0, len(renyi.ORDERS), 20):
        order = float(renyi.ORDERS[index])
        response = _two_points(one, e, -e, order)
        for found in (renyi.curve(Pure(size), "add-remove").values[index], lattice[index]):
            assert response * (1 - 1e-14) <= found <= response * (1 + 1e-6)
        a = mpmath.mpf(order)
        laplace = mpmath.log(
            a / (2 * a - 1) * mpmath.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mpmath.exp(-a * e)
        ) / (a - 1)
        assert (
            laplace * (1 - 1e-14)
            <= renyi.curve(Laplace(1 / size), "add-remove").values[index]
            <= laplace * (1 + 1e-5)
        )
        # Of the two-point pairs of range e, one near the worst at small sizes and orders; every one
        # is below.
        for t in (e / 4, e / 2, 3 * e / 4):
            pair = _two_points((1 - mpmath.exp(t - e)) / (1 - mpmath.exp(-e)), t, t - e, order)
            found = renyi.bounded_range(size)[index]
            assert pair * (1 - 1e-14) <= found
            assert t != e / 2 or size > 1e-3 or order > 10 or found <= pair * (1 + 1e-2)


@pytest.mark.parametrize(("q", "z"), [(1e-6, 5.0), (1e-5, 50.0), (1e-4, 1.0)])
def test_moments_of_a_batch_that_hardly_ever_holds_her(q: float, z: float) -> None:
    # E (1 - q + q g)^a = 1 + a (a-1)/2 q^2 E (g-1)^2 + O((a q)^3), and E (g-1)^2 = e^(1/z^2) - 1.
    whole = renyi.curve(PoissonSampled(q, Gaussian(z)), "add-remove").values
    for index in range(0, 200, 10):
        order = renyi.ORDERS[index]
        first = order * q * q * math.expm1(z**-2) / 2
        assert first * (1 - 20 * order * q) <= whole[index] <= first * (1.01 + 20 * order * q)


@pytest.mark.parametrize("count", [10**4, 10**6, 10**8])
def test_many_vanishing_choices_against_the_binomial(count: int) -> None:
    # One run for certain (mean 1) of randomised response; the Laplace's atom at loss 1 has
    # probability 1/2.
    size, middle = 1e-6, count // 2
    wins = np.arange(max(0, middle - 10**6), min(count, middle + 10**6) + 1)
    mass = binom.pmf(wins, count, 1 / (1 + math.exp(-size)))
    exact = 0.5 * float(mass @ np.maximum(0.0, -np.expm1(-(2 * wins - count) * size)))
    choices = Repeated(PrivateSelection(Pure(size), 1, 1), count)
    assert exact <= delta([choices, Laplace(1.0)], 1.0) <= 4 * exact


def test_many_visible_batches_that_hardly_ever_hold_her_against_the_normal() -> None:
    q, z, count = 1e-6, 5.0, 10**6
    events = Repeated(VisiblySampled(0.9, Repeated(PoissonSampled(q, Gaussian(z)), 2)), count)
    # Under replace-one both signs are mixed in: the losses' variance is q^2 E (g+ - g-)^2 = 4 q^2
    # sinh(1/z^2).
    mu = math.sqrt(0.9 * 2 * count * 4 * q * q * math.sinh(z**-2))
    normal = math.erf(mu / 2 / math.sqrt(2))
    assert normal * 0.99 <= delta(events, 0.0, REPLACE) <= 4 * normal
    assert normal / 2 * 0.99 <= delta([events, Laplace(1.0)], 1.0, REPLACE) <= 4 * normal


@pytest.mark.parametrize("size", [1e-6, 1e-7, 1e-12, 1e-80, 1e-200])
def test_what_hardly_costs_anything_has_a_price(size: float) -> None:
    event = VisiblySampled(0.5, Composed((Pure(size), Pure(2 * size))))
    # Half of the time two responses of 3 sizes in all: at least the deciding one's tanh(size)/4.
    assert math.tanh(size) / 4 <= delta(event, 0.0, REPLACE) <= 10 * size + 1e-20
    assert 0 <= epsilon(event, 1e-6, REPLACE) <= 1e-5


@pytest.mark.parametrize("mu", [1e-7, 1e-10, 1e-15, 1e-30, 1e-90])
def test_profiles_of_a_vanishing_gaussian(mu: float) -> None:
    mpmath.mp.dps = 250
    for e in (0.0, 0.1 * mu, 3 * mu, 20 * mu):
        x = mpmath.mpf(mu) / 2 - mpmath.mpf(e) / mpmath.mpf(mu)
        exact = mpmath.ncdf(x) - mpmath.exp(mpmath.mpf(e)) * mpmath.ncdf(x - mpmath.mpf(mu))
        for found in (
            profiles.gaussian_delta(e, mu),
            float(profiles.gaussian(mu).forward(np.array([e]))[0]),
        ):
            assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-6)


def _replaced(c: float, d: float, q: float, e: float) -> mpmath.mpf:
    """theory.md#t3's formula with its root by bisection."""
    one, two, rate, at = map(mpmath.mpf, (c, d, q, e))
    k, a = (1 - rate) / rate, mpmath.exp(at)

    def beyond(t: mpmath.mpf) -> bool:
        total = k * (a - 1) * mpmath.exp(one * t - one**2 / 2) + a * mpmath.exp(
            two * t - two**2 / 2
        )
        return bool(total > 1)

    high = two / 2 - at / two
    low = high - 1
    while beyond(low):
        low = high - 2 * (high - low)
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return rate * (
        mpmath.ncdf(low) - k * (a - 1) * mpmath.ncdf(low - one) - a * mpmath.ncdf(low - two)
    )


@pytest.mark.parametrize("c", [0.5, 1.0, 15.0])
@pytest.mark.parametrize("ratio", [1e-13, 1e-10, 1e-7, 1e-3])
def test_t3_two_rows_that_hardly_differ(c: float, ratio: float) -> None:
    mpmath.mp.dps = 50
    d = c * ratio
    for t in (-0.3, -2.0, -6.0):
        e = d * d / 2 - d * t
        for share in (0.5, 1.0, 2.0):
            k = share / (math.expm1(e) * math.exp(c * t - c * c / 2))
            q = 1 / (1 + k)
            found = float(profiles.poisson_replace_gaussian(c, d, q).forward(np.array([e]))[0])
            exact = _replaced(c, d, q, e)
            assert found >= exact * (1 - 1e-8) or exact < 1e-290


# Losses beyond floats, tiny deltas
# ------------------------------------------------------------------------------------

EXTREME: list[tuple[Event, float]] = [
    (Pure(1e300), 1e300),
    (Composed((Pure(1e300), Gaussian(1.0))), 1e300),
    (Composed((Laplace(1e-90), Gaussian(1.0))), 1e90),
    (DiscreteLaplace(1e-50, 3), 1e50),
    (PoissonSampled(0.01, Gaussian(1e90)), 1e-12),
    (Exponential(1e300), 1e300),
]


@pytest.mark.parametrize("neighbours", ["add-remove", REPLACE])
@pytest.mark.parametrize(("event", "most"), EXTREME)
def test_losses_beyond_floats_have_a_price_on_every_route(
    event: Event, most: float, neighbours: str
) -> None:
    found = routes_of(event, 1e-6, neighbours)
    assert price(event, 1e-6, neighbours).epsilon <= most * (1 + 1e-9)
    assert all(value >= 0.99 * most for value in found.values()) or most < 1
    assert 0 <= delta(event, 1.0, neighbours) <= 1


@pytest.mark.parametrize("at", [1e-12, 1e-16, 1e-20, 1e-30, 1e-100])
def test_a_bounded_loss_beside_others_at_tiny_deltas(at: float) -> None:
    bounded = [Laplace(1.5), PoissonSampled(0.1, Laplace(2.0)), DiscreteLaplace(2.0, 3)]
    pure = 1 / 1.5 + math.log1p(0.1 * math.expm1(0.5)) + 0.5
    alone = epsilon(Gaussian(2.0), at)
    assert (
        epsilon([Gaussian(2.0)], at) < epsilon([*bounded, Gaussian(2.0)], at) <= alone + pure + 1e-6
    )
    assert routes_of([*bounded, Gaussian(2.0)], at)["privacy-loss distribution"] < math.inf


def test_a_sensitivity_beyond_what_is_priced_is_refused_kindly() -> None:
    assert 4.8 < epsilon([DiscreteLaplace(1.0, 1 << 20), Gaussian(1.0)], 1e-6) < 7
    with pytest.raises(
        InputError, match=r"sensitivity: expected .* 1048576, got 1048577\. Round to coarser"
    ):
        DiscreteLaplace(1.0, (1 << 20) + 1)


@pytest.mark.parametrize("share", [1e-6, 1e-8, 1e-9, 1e-12, 1e-14])
def test_full_batch_beside_what_leaves_hardly_any_room(share: float) -> None:
    promise = Promise(1.0, 1e-6)
    extra = Gaussian(full_batch(promise, 1) * (1 + share))
    z = full_batch(promise, 10, [extra])
    assert epsilon([extra, Repeated(Gaussian(z), 10)], 1e-6) <= 1.0
    # mu^2 (1 - (1 + share)^-2) is left for ten; below 1e-9 it is lost in the digits of epsilon.
    assert share < 1e-9 or z >= 0.9 * full_batch(promise, 1) * math.sqrt(10 / (2 * share))


# Visible batches
# --------------------------------------------------------------------------------------------------

SEEN: dict[str, Event] = {
    "alone": VisiblySampled(0.5, Gaussian(10.0)),
    "nothing asked": VisiblySampled(0.5, NoOp()),
    "in a list": Composed((Gaussian(1.0), Repeated(VisiblySampled(0.5, Gaussian(10.0)), 3))),
    "in a selection": PrivateSelection(VisiblySampled(0.5, Pure(0.1)), 2, 1),
    "in a batch of everyone": VisiblySampled(1.0, VisiblySampled(0.5, Pure(0.1))),
}


@pytest.mark.parametrize("kind", SEEN)
def test_t4_a_batch_that_can_be_seen_is_refused_where_presence_is_protected(kind: str) -> None:
    # A new member alone is seen with probability 1/2, whatever is asked: no epsilon has delta below
    # that.
    with pytest.raises(InputError, match=r"PoissonSampled.*replace-one"):
        price(SEEN[kind], 1e-6)
    with pytest.raises(InputError, match="PoissonSampled"):
        delta(SEEN[kind], 1.0)
    with pytest.raises(InputError, match="PoissonSampled"):
        Filter.create(Promise(1.0, 1e-6), "renyi").fits(SEEN[kind])
    assert 0 <= epsilon(SEEN[kind], 1e-6, REPLACE) < 10


def test_t4_a_visible_batch_of_everyone_shows_nothing() -> None:
    assert epsilon(VisiblySampled(1.0, Gaussian(10.0)), 1e-6) == epsilon(Gaussian(10.0), 1e-6)
    assert epsilon(Repeated(VisiblySampled(0.5, Gaussian(10.0)), 0), 1e-6) == 0
    assert not leaves.inventory(VisiblySampled(0.5, NoOp()), REPLACE).others  # type: ignore[arg-type]
