"""Sampling rates by group against weights by group at full batch: what a round costs
(docs/theory/later_papers.md, ASC)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from fairveil.core.cost import epsilon
from fairveil.core.events import Gaussian, PoissonSampled, Repeated


def moment(order: int, q: float, z: float, side: int) -> float:
    """The Renyi divergence of whole `order` between the two answers, by the plain integral. `side`
    1: the first has the row."""
    x = np.linspace(-60.0 * z, 80.0 * z + 2.0 * order, 100_001)
    without = norm.logpdf(x, scale=z)
    having = np.logaddexp(math.log1p(-q) + without, math.log(q) + norm.logpdf(x, loc=1.0, scale=z))
    one, other = (having, without) if side else (without, having)
    values = order * one + (1 - order) * other
    top = values.max()
    return float((top + math.log(np.trapezoid(np.exp(values - top), x))) / (order - 1))


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize(("q", "z"), [(0.01, 1.0), (0.1, 2.0), (0.5, 1.0), (0.9, 4.0)])
def test_a_sampled_round_costs_at_least_the_weighed_one_at_whole_orders(
    order: int, q: float, z: float
) -> None:
    weighed = order * (q / z) ** 2 / 2.0
    assert moment(order, q, z, 1) >= weighed * (1.0 - 1e-6)
    # so the worse side is the one of the proof
    assert moment(order, q, z, 1) >= moment(order, q, z, 0) * (1.0 - 1e-6)


def test_the_closed_form_of_the_proof_is_the_integral() -> None:
    for order, q, z in ((2, 0.1, 1.0), (5, 0.3, 2.0), (8, 0.9, 4.0)):
        k = np.arange(order + 1)
        mean = (binom.pmf(k, order, q) * np.exp(k * (k - 1) / (2 * z * z))).sum()
        assert math.log(mean) / (order - 1) == pytest.approx(moment(order, q, z, 1), rel=1e-6)
        assert (binom.pmf(k, order, q) * k * (k - 1)).sum() == pytest.approx(
            order * (order - 1) * q * q
        )


def test_one_round_alone_may_be_cheaper_when_it_is_sampled() -> None:
    """No order between the two is claimed at every delta: the total variation of one round is less
    than that of its weights."""
    q, z = 0.1, 0.5
    sampled = q * (2.0 * norm.cdf(0.5 / z) - 1.0)
    weighed = 2.0 * norm.cdf(0.5 * q / z) - 1.0
    assert sampled < weighed
    assert epsilon(PoissonSampled(q, Gaussian(z)), 0.07, "add-remove") < epsilon(
        Gaussian(z / q), 0.07, "add-remove"
    )


@pytest.mark.parametrize("rounds", [1, 10, 100, 1000])
@pytest.mark.parametrize(("q", "z"), [(0.05, 1.0), (0.05, 4.0), (0.2, 4.0)])
def test_fits_of_many_rounds_cost_less_with_weights(rounds: int, q: float, z: float) -> None:
    sampled = epsilon(Repeated(PoissonSampled(q, Gaussian(z)), rounds), 1e-6, "add-remove")
    weighed = epsilon(Repeated(Gaussian(z / q), rounds), 1e-6, "add-remove")
    assert weighed <= sampled * 1.0001
