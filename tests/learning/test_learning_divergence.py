"""Oracles' guarantees as divergences: against closed forms, integrals, dp_accounting where it has
the event, and each other."""

from __future__ import annotations

import math
from typing import Any

import dp_accounting as dp
import game_samples as g
import numpy as np
import pytest
from dp_accounting import pld, rdp
from dp_accounting.dp_event import ZCDpEvent
from scipy import stats

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
    NoOp,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    SamplerError,
    VisiblySampled,
    ZeroConcentrated,
)
from fairveil.errors import InputError
from fairveil.fairness.objectives import Error, parse_constraint
from fairveil.learning.group_objective.plan import plan_loop
from fairveil.learning.group_objective.problem import Problem
from fairveil.learning.oracles.choosing import Choice
from fairveil.learning.oracles.classes import thresholds
from fairveil.learning.oracles.descent import Descent
from fairveil.learning.oracles.divergence import Divergence
from fairveil.learning.oracles.regression import Regression
from fairveil.privacy import price

ORDERS = [1.01, 1.5, 2.0, 3.7, 8.0, 32.0, 500.0, 1e6, 1e9]


def renyi_of(p: Any, q: Any, order: float) -> float:
    """Of two finite distributions, the larger way."""
    one, other = np.log(np.asarray(p, float)), np.log(np.asarray(q, float))
    ways = (
        np.logaddexp.reduce(order * a + (1 - order) * b) / (order - 1)
        for a, b in ((one, other), (other, one))
    )
    return float(max(ways))


@pytest.mark.parametrize("z", [0.3, 1.0, 20.0])
def test_a_gaussian_has_no_pure_epsilon_and_the_known_others(z: float) -> None:
    found = Divergence(Gaussian(z))
    assert math.isinf(found.pure)
    assert found.zero_concentrated == pytest.approx(1 / (2 * z**2), rel=1e-12)
    for order in ORDERS:
        assert found.renyi(order) == pytest.approx(order / (2 * z**2), rel=1e-12)
    assert math.isinf(found.renyi(math.inf))
    epsilon = found.approximate(1e-5)
    delta = stats.norm.cdf(1 / (2 * z) - epsilon * z) - math.exp(epsilon) * stats.norm.cdf(
        -1 / (2 * z) - epsilon * z
    )
    assert delta == pytest.approx(1e-5, rel=1e-6)
    assert found.leak == 0.0


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_an_exponential_mechanism_is_bounded_range(epsilon: float) -> None:
    """Pure epsilon, epsilon^2 / 8 zero-concentrated, order epsilon^2 / 8 or less; and above the
    worst pairs of that range."""
    found = Divergence(Exponential(epsilon))
    assert found.pure == epsilon
    assert found.zero_concentrated == pytest.approx(epsilon**2 / 8)
    assert found.approximate(1e-6) <= epsilon
    for order in ORDERS:
        assert found.renyi(order) <= min(epsilon, order * epsilon**2 / 8) * (1 + 1e-12)
        worst = 0.0
        for t in np.linspace(1e-3, 1 - 1e-3, 400) * epsilon:  # losses t and t - epsilon
            q = (1 - math.exp(-t)) / (math.exp(epsilon - t) - math.exp(-t))
            worst = max(
                worst,
                renyi_of(
                    [1 - q * math.exp(epsilon - t), q * math.exp(epsilon - t)], [1 - q, q], order
                ),
            )
        assert found.renyi(order) >= worst * (1 - 1e-9)
        if order <= 32:
            assert found.renyi(order) == pytest.approx(worst, rel=0.01)
    assert found.renyi(math.inf) == epsilon


def test_guarantee_1_by_an_exponential_mechanism_with_scores_of_its_own() -> None:
    """Distributions on neighbours, exactly: scores whose changes range over 1 at most."""
    rng, epsilon = np.random.default_rng(0), 0.9
    found, largest = Divergence(Exponential(epsilon)), 0.0
    for _ in range(200):
        scores = rng.integers(0, 6, 5)
        laws = [
            np.exp(-epsilon * s) / np.exp(-epsilon * s).sum()
            for s in (scores, scores + rng.integers(0, 2, 5))
        ]
        ratio = float(np.abs(np.log(laws[0] / laws[1])).max())
        largest = max(largest, ratio)
        assert ratio <= found.pure
        for order in (1.2, 2.0, 10.0, 300.0):
            assert renyi_of(*laws, order) <= found.renyi(order) + 1e-12
    assert largest > 0.8 * epsilon


@pytest.mark.parametrize("multiplier", [0.4, 1.0, 5.0])
def test_laplace_noise(multiplier: float) -> None:
    """Against Mironov's closed form, and discrete noise against its own distribution."""
    s, found = 1 / multiplier, Divergence(Laplace(multiplier))
    assert found.pure == pytest.approx(s, rel=1e-12)
    assert found.zero_concentrated <= s**2 / 2 * (1 + 1e-12)
    for order in (1.5, 2.0, 8.0, 100.0):
        known = np.logaddexp(
            math.log(order / (2 * order - 1)) + (order - 1) * s,
            math.log((order - 1) / (2 * order - 1)) - order * s,
        ) / (order - 1)
        assert known <= found.renyi(order) * (1 + 1e-12)
        assert found.renyi(order) == pytest.approx(known, rel=2e-3)
    support = np.arange(-250, 251)
    law = np.exp(-np.abs(support) / multiplier)
    shifted = np.exp(-np.abs(support - 1) / multiplier)
    discrete = Divergence(DiscreteLaplace(multiplier))
    assert discrete.pure == pytest.approx(s, rel=1e-9)
    for order in (2.0, 8.0):
        assert renyi_of(law / law.sum(), shifted / shifted.sum(), order) <= discrete.renyi(
            order
        ) * (1 + 1e-9)


def test_against_dp_accounting_where_it_has_the_event() -> None:
    cases: list[tuple[Event, dp.DpEvent]] = [
        (Repeated(Gaussian(3.0), 7), dp.SelfComposedDpEvent(dp.GaussianDpEvent(3.0), 7)),
        (ZeroConcentrated(0.02), ZCDpEvent(0.02)),
        (
            Composed((Gaussian(2.0), ZeroConcentrated(0.1))),
            dp.ComposedDpEvent([dp.GaussianDpEvent(2.0), ZCDpEvent(0.1)]),
        ),
        (Laplace(2.0), dp.LaplaceDpEvent(2.0)),
        (
            PoissonSampled(0.1, Gaussian(1.5)),
            dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(1.5)),
        ),
    ]
    orders = [1.5, 2.0, 4.0, 16.0, 64.0]
    for ours, theirs in cases:
        accountant = rdp.RdpAccountant(orders=orders)
        accountant.compose(theirs)
        known = dict(zip(orders, np.asarray(accountant._rdp), strict=True))
        for order in orders:
            if isinstance(ours, PoissonSampled) and order != round(order):
                continue  # theirs is an approximation there
            # what is in the far tail is in `leak`, not in ours
            if isinstance(ours, PoissonSampled) and order > 16:
                assert 0.0 < Divergence(ours).leak < 1e-190
                assert Divergence(ours).renyi(order) <= known[order]
                continue
            assert Divergence(ours).renyi(order) == pytest.approx(known[order], rel=5e-3)
    for ours, theirs in cases[:1] + cases[3:]:
        losses = pld.PLDAccountant(value_discretization_interval=1e-4)
        losses.compose(theirs)
        assert Divergence(ours).approximate(1e-6) == pytest.approx(
            losses.get_epsilon(1e-6), rel=2e-3
        )


EVENTS: list[Event] = [
    NoOp(),
    Gaussian(2.0),
    DiscreteGaussian(2.0),
    Laplace(3.0),
    Exponential(0.5),
    Pure(0.3),
    Approximate(0.5, 1e-7),
    ZeroConcentrated(0.05),
    SamplerError(1e-9),
    NonPrivate(),
    PoissonSampled(0.2, Gaussian(2.0)),
    PoissonSampled(0.2, Composed((Gaussian(2.0), Laplace(2.0)))),
    VisiblySampled(0.2, Gaussian(2.0)),
    VisiblySampled(0.2, Composed((Gaussian(2.0), SamplerError(1e-9)))),
    PrivateSelection(Exponential(0.2), 3.0, 1.0),
    Composed((Gaussian(3.0), Exponential(0.4), Repeated(DiscreteLaplace(4.0), 3))),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_guarantee_2_readings_agree_with_one_another(event: Event) -> None:
    """Renyi rises with the order up to pure, and stays below order x rho; what is pure is
    approximate; calls add up."""
    found = Divergence(event, "replace-one")
    values = np.array([value for _, value in found.curve(ORDERS)])
    assert (values[1:] >= values[:-1] * (1 - 1e-9)).all()
    assert found.renyi(math.inf) == found.pure
    assert (values <= found.pure).all()
    assert all(
        value <= order * found.zero_concentrated
        for order, value in zip(ORDERS, values, strict=True)
    )
    assert found.approximate(1e-5) <= found.pure
    assert price(found.event, 1e-5, "replace-one").epsilon == found.approximate(1e-5)
    three = found.times(3)
    if math.isfinite(found.zero_concentrated):
        assert three.zero_concentrated == pytest.approx(3 * found.zero_concentrated, rel=1e-9)
    assert three.renyi(2.0) == pytest.approx(3 * found.renyi(2.0), rel=1e-6)


def test_what_has_no_such_guarantee_says_infinite() -> None:
    for event in (NonPrivate(), SamplerError(1e-9), Approximate(0.5, 1e-7)):
        found = Divergence(event)
        assert math.isinf(found.pure)
        assert math.isinf(found.zero_concentrated)
    assert math.isinf(Divergence(Composed((Gaussian(1.0), SamplerError(1e-9)))).renyi(2.0))
    assert Divergence(SamplerError(1e-9)).approximate(1e-5) < 1e-3
    assert Divergence(Approximate(0.5, 1e-7)).leak == 1e-7
    assert Divergence(Approximate(0.5, 1e-7)).approximate(1e-7) == 0.5
    assert (
        Divergence(NoOp()).pure,
        Divergence(NoOp()).zero_concentrated,
        Divergence(NoOp()).renyi(3.0),
    ) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("order", [1.0, 0.5, math.nan, "two", -3.0])
def test_orders_are_above_1(order: Any) -> None:
    with pytest.raises(InputError, match="order"):
        Divergence(Gaussian(1.0)).renyi(order)


# ---- of oracles
# --------------------------------------------------------------------------------------------------


def ground_of(promise: Any) -> tuple[Any, Any]:
    rows = g.rows_from(*g.sample(0, 60))
    constraint = parse_constraint("equalized_odds:0.05")
    return rows, Problem.of(promise, rows.layout, rows.cells(), Error(), constraint, public_rows=60)


@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_each_oracle_states_what_a_call_guarantees(relation: str) -> None:
    rows, problem = ground_of(g.PROMISES[relation])
    ground = problem.ground
    choice = Choice(thresholds(rows.layout)).at(0.0, 4.0).guarantee(ground)
    assert choice.pure == choice.event.epsilon == 0.5
    # as a Gaussian's
    assert choice.zero_concentrated == pytest.approx(0.5**2 / 8) == pytest.approx(1 / (2 * 4.0**2))
    assert choice.renyi(5.0) <= 5.0 * 0.5**2 / 8
    descent = Descent(steps=3).at(0.0, 4.0).guarantee(ground)
    assert math.isinf(descent.pure)
    assert descent.zero_concentrated == pytest.approx(1 / (2 * 4.0**2))
    assert descent.neighbours == ground.promise.neighbours
    regression = Regression().at(4.0, 0.0)
    assert regression.guarantee(ground).pure == 0.0
    once = regression.first_guarantee(ground, 8.0)
    sums = 1 if relation == "groups" else 2  # Gram matrices and sums where records are protected
    assert once.zero_concentrated == pytest.approx((1 / 8.0**2 + sums / 4.0**2) / 2)
    assert Choice(thresholds(rows.layout)).first_guarantee(
        ground, 8.0
    ).zero_concentrated == pytest.approx(1 / (2 * 8.0**2))


def test_an_oracle_of_a_promise_of_nothing_guarantees_nothing() -> None:
    rows, problem = ground_of(g.EXACT)
    for oracle in (Choice(thresholds(rows.layout)), Descent(), Regression()):
        assert math.isinf(oracle.guarantee(problem.ground).pure)
        assert math.isinf(oracle.first_guarantee(problem.ground, 0.0).approximate(1e-5))


def test_a_plan_is_made_of_its_oracles_guarantees() -> None:
    """In any accountant: calls and releases compose to the plan's own price."""
    rows, problem = ground_of(g.RECORDS)
    for oracle in (Choice(thresholds(rows.layout)), Descent(steps=2), Regression()):
        loop = plan_loop(problem, oracle, rounds=5)
        calls = loop.oracle.guarantee(problem.ground).times(5)
        once = loop.oracle.first_guarantee(problem.ground, loop.counts_multiplier)
        audits = Repeated(Gaussian(loop.audit_multiplier), 5)
        whole = Divergence(Composed((once.event, calls.event, audits)))
        assert whole.approximate(1e-5) == pytest.approx(price(loop.plan, 1e-5).epsilon, rel=1e-6)
        assert whole.zero_concentrated == pytest.approx(
            once.zero_concentrated + calls.zero_concentrated + Divergence(audits).zero_concentrated
        )
