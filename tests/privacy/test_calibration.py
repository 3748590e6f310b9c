"""Calibration: within the promise for certain, and hardly more noise than that needs."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering import pairs
from fairveil.core.cost import epsilon
from fairveil.core.events import (
    Approximate,
    Composed,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
)
from fairveil.errors import BudgetError, InputError
from fairveil.privacy import Promise, calibrate, full_batch, scaled, split

PLANS: dict[str, Event] = {
    "full batch": Composed((Gaussian(3.0), Repeated(Gaussian(1.0), 100))),
    "poisson": Repeated(PoissonSampled(0.02, Gaussian(1.0)), 500),
    "choices": Composed((Repeated(Exponential(0.1), 20), Repeated(Gaussian(10.0), 20))),
    "visible": Repeated(VisiblySampled(0.1, Gaussian(1.0)), 30),
    "selection": PrivateSelection(PerCell(((4.0, 3.0),), (2.0,)), 5.0, 1.0),
    "moments": Composed((ZeroConcentrated(0.1), Pure(0.1))),
}
ONE = Promise(1.0, 1e-6)


@pytest.mark.parametrize(
    ("neighbours", "target", "name"),
    pairs(["add-remove", "replace-one"], [0.01, 1.0, 20.0], PLANS),
)
def test_the_least_noise_within_the_promise(name: str, target: float, neighbours: str) -> None:
    neighbours = "replace-one" if name == "visible" else neighbours
    promise, plan = Promise(target, 1e-6, neighbours=neighbours), scaled(PLANS[name])
    found = calibrate(promise, plan)
    assert found.events == plan(found.multiplier)
    assert found.epsilon == epsilon(found.events, 1e-6, neighbours)
    assert target * (1 - 1e-4) <= found.epsilon <= target
    assert epsilon(plan(found.multiplier * 0.99), 1e-6, neighbours) > target


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(1e-3, 1e3), st.sampled_from([1e-12, 1e-6, 1e-2]), st.integers(1, 10**6))
def test_full_batch_is_exact_and_one_sided(target: float, delta: float, rounds: int) -> None:
    z = full_batch(Promise(target, delta), rounds)
    assert target * (1 - 1e-8) <= epsilon(Repeated(Gaussian(z), rounds), delta) <= target


def test_full_batch_beside_other_releases() -> None:
    for beside, near in (([Gaussian(10.0)], 1e-8), ([Laplace(5.0), Exponential(0.1)], 1e-4)):
        z = full_batch(ONE, 50, beside)
        assert 1 - near <= epsilon([*beside, Repeated(Gaussian(z), 50)], 1e-6) <= 1
    for share in (1e-6, 1e-9, 1e-14):  # hardly any room is left
        extra = Gaussian(full_batch(ONE, 1) * (1 + share))
        z = full_batch(ONE, 10, [extra])
        assert epsilon([extra, Repeated(Gaussian(z), 10)], 1e-6) <= 1.0
        # mu^2 (1 - (1 + share)^-2) is left for ten; below 1e-9 it is lost in epsilon's digits.
        assert share < 1e-9 or z >= 0.9 * full_batch(ONE, 1) * math.sqrt(10 / (2 * share))


def test_no_privacy_needs_no_noise() -> None:
    promise = Promise(math.inf, 1e-6)
    found = calibrate(promise, Gaussian)
    assert (found.multiplier, found.events) == (0, NonPrivate())
    assert full_batch(promise, 10) == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: calibrate(Promise(1.0, 0.0), Gaussian), r"never private at delta=0.*Laplace"),
        (lambda: calibrate(ONE, lambda z: Composed((Gaussian(z), Pure(2.0)))), "already beyond"),
        (lambda: full_batch(Promise(1.0, 0.0), 3), "delta=0"),
        (lambda: full_batch(ONE, 50, [Gaussian(1.0)]), "already beyond the guarantee"),
    ],
)
def test_a_promise_that_cannot_be_met_says_why_and_the_way_out(make: Any, words: str) -> None:
    with pytest.raises(BudgetError, match=words):
        make()


def test_a_plan_gives_events_and_one_that_is_free_takes_the_least_scale() -> None:
    with pytest.raises(InputError, match=r"^plan: expected a function"):
        calibrate(ONE, lambda z: z)  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match="start"):
        calibrate(ONE, Gaussian, start=0)
    assert calibrate(ONE, lambda z: NoOp()).multiplier <= 1e-6
    assert calibrate(Promise(1.0, 0.0), Laplace).epsilon <= 1.0


@given(st.floats(1e-3, 1e3), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_the_split_costs_the_same_and_is_the_best(z: float, first: float, second: float) -> None:
    one, two = split(z, first, second)
    assert z**-2 * (1 - 1e-9) <= math.fsum((one**-2, two**-2)) <= z**-2
    best = first * one**2 + second * two**2
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        assert first * z**2 / share + second * z**2 / (1 - share) >= best * (1 - 1e-9)


def test_scaled_reaches_every_noise_and_keeps_what_has_none() -> None:
    fixed = Composed((Approximate(0.1, 1e-9), NoOp(), NonPrivate()))
    assert scaled(fixed)(3.0) == fixed
    assert scaled(PLANS["moments"])(2.0) == Composed((ZeroConcentrated(0.025), Pure(0.05)))
    doubled = PrivateSelection(PerCell(((8.0, 6.0),), (2.0,)), 5.0, 1.0)
    assert scaled(PLANS["selection"])(2.0) == doubled
