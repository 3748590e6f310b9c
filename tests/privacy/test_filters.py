"""Filters: a cap that holds when each fit is chosen after seeing the last (theory.md#t10)."""

from __future__ import annotations

import math

import mpmath
import pytest

from fairveil.core import curves
from fairveil.core.cost import KINDS, Filter, delta, epsilon, gaussian_below
from fairveil.core.events import (
    Approximate,
    Composed,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    OnPart,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    ZeroConcentrated,
)
from fairveil.core.promise import Promise
from fairveil.errors import BudgetError, InputError
from fairveil.privacy.calibration import calibrate

PROMISE = Promise(1.0, 1e-5)
ROUNDS: dict[str, list[Event]] = {
    "gaussian": [
        Gaussian(20.0),
        Laplace(40.0),
        Gaussian(35.0),
        Exponential(0.03),
        Approximate(0.01, 1e-10),
    ],
    "renyi": [
        PoissonSampled(0.02, Gaussian(1.5)),
        Gaussian(30.0),
        Exponential(0.05),
        ZeroConcentrated(0.0005),
        PrivateSelection(Gaussian(60.0), 3.0, 1.0),
    ],
    "pure": [Laplace(20.0), Pure(0.02), Exponential(0.03), Approximate(0.01, 1e-7)],
}


def filled(cap: Filter, rounds: list[Event]) -> list[Event]:
    """Everything that the filter admits, in turn."""
    admitted: list[Event] = []
    while True:
        event = rounds[len(admitted) % len(rounds)]
        if not cap.fits(event):
            assert cap.admitted == len(admitted)
            return admitted
        cap = cap.add(event)
        admitted.append(event)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", KINDS)
def test_guarantee_1_what_is_admitted_is_within_the_promise(kind: str, neighbours: str) -> None:
    promise = Promise(1.0, 1e-5, neighbours=neighbours)
    admitted = filled(Filter.create(promise, kind), ROUNDS[kind])
    assert len(admitted) >= 3
    assert (0.5 if kind == "pure" else 0.6) < epsilon(admitted, 1e-5, neighbours) <= 1.0


def test_t10_a_tight_total_is_no_cap_and_the_filters_are() -> None:
    """Randomised response, then one of two mechanisms, each of which completes it to exactly (1,
    1e-5)."""
    response = 0.16
    wins = 1 / (1 + math.exp(-response))
    gaussian = calibrate(
        PROMISE, lambda z: Composed((Pure(response), Gaussian(z))), precision=1e-9
    ).events
    noise = gaussian.events[1]  # type: ignore[attr-defined]
    leak = Approximate(0.0, 1e-5)
    assert epsilon([Pure(response), noise], 1e-5) == pytest.approx(1.0, rel=1e-6)
    assert delta([Pure(response), leak], 1.0) == pytest.approx(1e-5, rel=1e-6)
    # After an answer that speaks for P the Gaussian is chosen, after the other the leak: beyond (1,
    # 1e-5) by half.
    adaptive = (
        wins * curves.gaussian_delta(1.0 - response, 1 / noise.noise_multiplier) + (1 - wins) * 1e-5
    )
    assert adaptive == pytest.approx(1.46e-5, abs=2e-8)
    for cap in (
        Filter.create(PROMISE, "renyi"),
        Filter.create(PROMISE, "pure"),
    ):
        after = cap.add(Pure(response))
        assert not (after.fits(noise) and after.fits(leak))
    strict = Filter.create(PROMISE, "renyi").add(Pure(response))
    assert not strict.fits(noise)
    assert not strict.fits(leak)


def test_the_order_is_fixed_and_the_typical_event_chooses_it() -> None:
    step = Repeated(PoissonSampled(0.01, Gaussian(1.2)), 100)
    plain, apt = Filter.create(PROMISE, "renyi"), Filter.create(PROMISE, "renyi", typical=step)
    assert plain.order != apt.order
    assert apt.add(step).order == apt.order
    assert len(filled(apt, [step])) > len(filled(plain, [step]))
    assert apt.order in curves.ORDERS
    assert Filter.create(PROMISE, "renyi", order=20.2).order == pytest.approx(20.2, rel=0.05)


def test_guarantee_2_and_3_charged_whole_and_a_refusal_changes_nothing() -> None:
    cap = Filter.create(PROMISE)
    after = cap.add(Repeated(Gaussian(30.0), 3))
    assert cap.spent == 0
    assert after.spent == pytest.approx(3 / 900)
    assert after.spent >= 3 / 900
    with pytest.raises(
        BudgetError,
        match=r"spent 0.00333\d+ of .* got '.*leaking .* largest epsilon that fits is 0\.",
    ):
        after.add(Gaussian(1.0))
    assert after.room() == cap.budget - after.spent
    assert after.fits(Gaussian(after.room() ** -0.5 * (1 + 1e-9)))
    assert not after.fits(Gaussian(after.room() ** -0.5 * (1 - 1e-9)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_epsilon_that_fits(kind: str) -> None:
    cap = Filter.create(PROMISE, kind)
    whole = cap.as_release(cap.room())
    assert 0.7 < whole <= 1.0
    after = cap.add(ROUNDS[kind][0])
    assert 0 < after.as_release(after.room()) < whole


def test_incremental_equals_at_once() -> None:
    events: list[Event] = [
        Gaussian(40.0),
        Exponential(0.05),
        PoissonSampled(0.02, Gaussian(20.0)),
    ] * 3
    one = Filter.create(PROMISE, "renyi")
    for event in events:
        one = one.add(event)
    at_once = Filter.create(PROMISE, "renyi").add(events)
    assert at_once.spent <= one.spent <= at_once.spent * (1 + 1e-12)
    fixed = Promise(5.0, 1e-5, neighbours="replace-one")
    for kind in ("gaussian", "renyi"):
        one_by_one = cap = Filter.create(fixed, kind)
        parts = [OnPart(Gaussian(9.0), part, 3) for part in range(3)]
        for part in parts:
            one_by_one = one_by_one.add(part)
        assert cap.add(Gaussian(9.0)).spent == cap.add(parts).spent <= one_by_one.spent


def test_leaks_share_the_reserve() -> None:
    cap = Filter.create(PROMISE, "renyi", reserve=0.1)
    after = cap.add(Approximate(0.01, 6e-7))
    assert after.leaked == pytest.approx(6e-7)
    assert not after.fits(Approximate(0.01, 6e-7))
    assert after.fits(Approximate(0.01, 3e-7))
    assert not Filter.create(PROMISE, reserve=0.0).fits(Approximate(0.01, 1e-30))


@pytest.mark.parametrize("pure", [1e-4, 0.01, 0.3, 1.0, 4.0, 30.0])
def test_a_pure_release_is_no_easier_to_distinguish_than_the_gaussian_it_is_charged_as(
    pure: float,
) -> None:
    # Hockey-stick divergences at every epsilon, against the pure mechanism that is worst at all of
    # them.
    mu = gaussian_below(pure)
    at = [pure * i / 50 for i in range(51)]
    worst = [max(0.0, -math.expm1(one - pure)) / (1.0 + math.exp(-pure)) for one in at]
    assert all(
        w <= curves.gaussian_delta(one, mu) * (1 + 1e-9) for w, one in zip(worst, at, strict=True)
    )
    assert worst[0] > curves.gaussian_delta(0.0, mu / 1.01)  # and no smaller Gaussian would do


@pytest.mark.parametrize(
    "pure", [1e-300, 1e-17, 1e-12, 1e-6, 1e-3, 0.1, 0.999999, 1.0, 3.0, 40.0, 500.0]
)
def test_no_digit_of_that_gaussian_is_lost(pure: float) -> None:
    with mpmath.workdps(400):
        there = mpmath.sqrt(8) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(pure) / 2))
        assert there <= gaussian_below(pure) <= there * (1 + 1e-10)


@pytest.mark.parametrize("pure", [1e-150, 1e-17, 3e-16, 1e-14, 1e-8, 1e-5, 0.99e-3, 1.01e-3])
def test_many_small_pure_releases_are_charged_no_less_than_one_gaussian_of_them_all(
    pure: float,
) -> None:
    # Of two errors near one half floating point keeps no digits. There the curve is epsilon sqrt(pi
    # / 2), less epsilon^2 / 70.
    exact = pure * math.sqrt(math.pi / 2.0)
    assert exact * (1.0 - pure**2 / 50.0) <= gaussian_below(pure) <= exact * (1.0 + 1e-11)
    cost, leak = Filter.create(PROMISE).cost(Repeated(Repeated(Pure(1e-17), 1 << 57), 1 << 57))
    assert cost == pytest.approx((math.ldexp(1e-17, 57) ** 2) * math.pi / 2.0, rel=1e-9)
    assert leak == 0


def test_what_cannot_be_capped() -> None:
    with pytest.raises(InputError, match="finite epsilon"):
        Filter.create(Promise(math.inf, 1e-6))
    with pytest.raises(BudgetError, match="kind='pure'"):
        Filter.create(Promise(1.0, 0.0))
    with pytest.raises(InputError, match="kind: expected"):
        Filter.create(PROMISE, "moments")
    with pytest.raises(InputError, match="unsampled Gaussian releases, and pure ones"):
        Filter.create(PROMISE).fits(PoissonSampled(0.1, Gaussian(10.0)))
    assert Filter.create(Promise(1.0, 0.0), "pure").add(Pure(0.5)).room() == pytest.approx(0.5)
    for kind in KINDS:
        assert not Filter.create(PROMISE, kind).fits(NonPrivate())
    assert not Filter.create(PROMISE, "pure").fits(Gaussian(1e6))
