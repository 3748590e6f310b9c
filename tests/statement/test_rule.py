"""The rule of recomputation: the guarantees of statement/rule.py.

It is held against the accountant, which prices by other code, and against enumerated losses.
"""

from __future__ import annotations

import math
from collections import Counter

import pytest
from scipy import stats

from fairveil.core.cost import price
from fairveil.core.events import (
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    SamplerError,
    VisiblySampled,
    ZeroConcentrated,
)
from fairveil.statement import losses, rule
from fairveil.statement.check import event as plain
from fairveil.statement.counts import Unpriced

CASES: dict[str, list[Event]] = {
    "gaussians": [Gaussian(5.0)] * 10,
    "counts": [Repeated(Gaussian(20.0), 60), DiscreteLaplace(4.0), DiscreteLaplace(6.0, 2)],
    "pure": [DiscreteLaplace(4.0)] * 3,
    "batches": [Repeated(PoissonSampled(0.02, Gaussian(1.0)), 40)],
    "joint batches": [
        Repeated(PoissonSampled(0.05, Composed((Gaussian(4.0), DiscreteLaplace(3.0)))), 20),
        Gaussian(9.0),
    ],
    "choices": [Exponential(0.5), DiscreteLaplace(3.0), Repeated(Gaussian(30.0), 9)],
    "many choices": [Repeated(Exponential(0.1), 100)],
    "cells": [PerCell(((4.0, 8.0, 9.0),), (2.0,), (1,)), PerCell(((9.0, 8.0, 9.0),), (2.0,))],
    "moments": [DiscreteGaussian(3.0), Gaussian(5.0), ZeroConcentrated(0.01)],
    "selection": [PrivateSelection(Approximate(0.3, 1e-8), 5.0, 1.0), Gaussian(12.0)],
    "selection of Gaussians": [PrivateSelection(Gaussian(10.0), 5.0, math.inf)],
    "leaks": [Approximate(0.3, 1e-7), Gaussian(6.0), SamplerError(1e-12)],
    "Laplace": [Repeated(Laplace(20.0), 30)],
    "far integers": [DiscreteLaplace(30.0, 4000), Gaussian(5.0)],
}
REPLACED: dict[str, list[Event]] = {
    "visible": [Repeated(VisiblySampled(0.1, Gaussian(4.0)), 20)],
    "parts": [OnPart(Gaussian(3.0), part, 4) for part in range(4)],
}
GIVEN = [
    *(
        (name, one, neighbours)
        for name, one in CASES.items()
        for neighbours in ("add-remove", "replace-one")
    ),
    *((name, one, "replace-one") for name, one in REPLACED.items()),
]


@pytest.mark.parametrize(
    ("events", "neighbours"), [one[1:] for one in GIVEN], ids=[f"{a}, {c}" for a, _, c in GIVEN]
)
def test_guarantee_2_it_is_the_accountants_price(events: list[Event], neighbours: str) -> None:
    whole = Composed(tuple(events))
    found, on_a_grid = rule.price(plain(whole.to_dict()), 1e-6, neighbours)
    stated = price(events, 1e-6, neighbours).epsilon
    assert found == pytest.approx(stated, rel=1e-4 if on_a_grid else 1e-9)


def losses_of(events: list[Event]) -> Counter[float]:
    """The losses of discrete Laplace noise and of randomised responses, value by value."""
    total = Counter({0.0: 1.0})
    for event in events:
        one: Counter[float] = Counter()
        if isinstance(event, Pure):
            likely = 1 / (1 + math.exp(-event.epsilon))
            one[event.epsilon], one[-event.epsilon] = likely, 1 - likely
        else:
            assert isinstance(event, DiscreteLaplace)
            t, s = 1 / (event.noise_multiplier * event.sensitivity), event.sensitivity
            for x in range(-4000, 4000):
                one[(abs(x - s) - abs(x)) * t] += math.tanh(t / 2) * math.exp(-abs(x) * t)
        summed: Counter[float] = Counter()
        for a, p in total.items():
            for b, q in one.items():
                summed[round(a + b, 9)] += p * q
        total = summed
    return total


@pytest.mark.parametrize(
    "events",
    [
        [DiscreteLaplace(2.0), DiscreteLaplace(3.0, 2)],
        [Pure(0.3)] * 8,
        [Pure(0.5), DiscreteLaplace(4.0, 3), DiscreteLaplace(4.0, 3)],
    ],
)
@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_guarantee_1_it_is_not_below_the_enumerated_cost(events: list[Event], delta: float) -> None:
    found, _ = rule.price(plain(Composed(tuple(events)).to_dict()), delta, "add-remove")
    losses = losses_of(events)
    lost = sum(p * max(0.0, -math.expm1(found - loss)) for loss, p in losses.items())
    assert lost <= delta * (1 + 1e-6)
    almost = sum(p * max(0.0, -math.expm1(found * 0.99 - loss)) for loss, p in losses.items())
    assert almost > delta


def test_guarantee_1_a_batch_is_not_below_its_densities() -> None:
    """One batch against none, by numerical integration of both densities."""
    q, z = 0.1, 1.0
    found, _ = rule.price(plain(PoissonSampled(q, Gaussian(z)).to_dict()), 1e-4, "add-remove")
    grid = [k / 1000 for k in range(-12000, 13000)]
    base = stats.norm.pdf(grid)
    mixed = (1 - q) * base + q * stats.norm.pdf(grid, 1.0)
    for first, second in ((mixed, base), (base, mixed)):
        assert float((first - math.exp(found) * second).clip(0).sum()) / 1000 <= 1e-4 * (1 + 1e-6)
    assert float((mixed - math.exp(found * 0.99) * base).clip(0).sum()) / 1000 > 1e-4


def test_guarantee_3_what_is_too_large_ends() -> None:
    cells = PerCell((tuple(float(k + 1) for k in range(5000)),), (2.0,), (1,))
    with pytest.raises(Unpriced):
        rule.price(plain(cells.to_dict()), 1e-6, "replace-one")
    many = Composed(tuple(Pure(0.001 * (k + 1)) for k in range(1001)))
    with pytest.raises(Unpriced):
        rule.price(plain(many.to_dict()), 1e-6, "add-remove")
    often = Repeated(PoissonSampled(0.5, Gaussian(1.0)), 2**50)
    assert rule.price(plain(often.to_dict()), 1e-6, "add-remove")[0] > 1e6
    assert rule.price(plain(NonPrivate().to_dict()), 1e-6, "add-remove")[0] == math.inf


def test_the_transform_is_a_fourier_transform() -> None:
    values = [complex(k % 7, 0) for k in range(16)]
    there = losses.transform(values, -1)
    for at in (0, 3, 15):
        expected = sum(
            v * complex(math.cos(-2 * math.pi * k * at / 16), math.sin(-2 * math.pi * k * at / 16))
            for k, v in enumerate(values)
        )
        assert there[at] == pytest.approx(expected, abs=1e-12)
    back = losses.transform(there, 1)
    assert [v / 16 for v in back] == pytest.approx(values, abs=1e-12)
