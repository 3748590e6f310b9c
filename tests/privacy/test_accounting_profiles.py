"""Profiles against brute force: sums, one- and two-dimensional quadrature, direct maximisation."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from fairveil.core import curves as profiles
from fairveil.core import inventory as leaves
from fairveil.core import renyi as renyi
from fairveil.core.events import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PerCell,
    PoissonSampled,
)

EPSILONS = np.array([0.0, 0.05, 0.3, 1.0, 2.5])


def hockey(p: np.ndarray, q: np.ndarray, epsilons: np.ndarray, cell: float = 1.0) -> np.ndarray:
    """The definition, on a grid of outcomes."""
    return np.array([np.maximum(p - math.exp(e) * q, 0.0).sum() * cell for e in epsilons])


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.3, 1.0, 7.0, 60.0])
def test_gaussian_profile_agrees_with_many_digits_of_precision(mu: float) -> None:
    mpmath.mp.dps = 60
    for e in (0.0, 0.1 * mu, mu, mu * mu / 2 + 3 * mu, mu * mu / 2 + 20 * mu):
        x = mpmath.mpf(mu) / 2 - mpmath.mpf(e) / mu
        exact = mpmath.ncdf(x) - mpmath.exp(e) * mpmath.ncdf(x - mu)
        assert float(exact) == pytest.approx(
            profiles.gaussian_delta(e, mu), rel=1e-9 if mu >= 1e-3 else 1e-6
        )
        assert float(exact) == pytest.approx(
            float(profiles.gaussian(mu).forward(np.array([e]))[0]), rel=1e-6
        )


@pytest.mark.parametrize(
    ("s", "mu"), [(0.5, 0.7), (2.0, 0.3), (0.05, 1.5), (3.0, 2.0), (1.0, 0.01)]
)
def test_joint_laplace_and_gaussian_against_two_dimensional_quadrature(s: float, mu: float) -> None:
    # Laplace losses: an atom at each end and a density between, here by the midpoint rule.
    width = 2 * s / 20_000
    inside = -s + width * (np.arange(20_000) + 0.5)
    mass = np.concatenate((width * np.exp((inside - s) / 2) / 4, [0.5, 0.5 * math.exp(-s)]))
    loss = np.concatenate((inside, [s, -s]))
    base = norm.cdf
    for e in EPSILONS:
        x = mu / 2 - (e - loss) / mu
        direct = float(mass @ (base(x) - np.exp(e - loss) * base(x - mu)))
        assert profiles.joint(mu, s).forward(np.array([e]))[0] == pytest.approx(
            direct, rel=1e-4, abs=1e-12
        )


def test_joint_laplace_and_gaussian_on_the_plane_itself() -> None:
    s, mu, step = 0.8, 0.9, 0.02
    x, y = np.arange(-10, 11, step) + step / 2, np.arange(-6, 7, step) + step / 2
    p = np.multiply.outer(np.exp(-np.abs(x) * 1.0) / 2, norm.pdf(y))
    q = np.multiply.outer(np.exp(-np.abs(x - s)) / 2, norm.pdf(y - mu))
    assert profiles.joint(mu, s).forward(EPSILONS[:4]) == pytest.approx(
        hockey(p, q, EPSILONS[:4], step**2), rel=2e-3
    )


@pytest.mark.parametrize(("scale", "shift"), [(0.7, 1), (3.0, 2), (2.0, 9)])
def test_discrete_laplace_atoms_against_the_sum(scale: float, shift: int) -> None:
    x = np.arange(-200, 201)
    p, q = np.exp(-np.abs(x) / scale), np.exp(-np.abs(x - shift) / scale)
    p, q = p / p.sum(), q / q.sum()
    atoms = profiles.discrete_laplace_atoms(scale, shift)
    assert profiles.joint(0.0, 0.0, atoms).forward(EPSILONS) == pytest.approx(
        hockey(p, q, EPSILONS), abs=1e-12
    )


def test_many_atoms_are_thinned_upwards() -> None:
    scale, shift = 400.0, 900
    x = np.arange(-12000, 13000)
    p, q = np.exp(-np.abs(x) / scale), np.exp(-np.abs(x - shift) / scale)
    exact = hockey(p / p.sum(), q / q.sum(), EPSILONS[:4])
    atoms = profiles.discrete_laplace_atoms(scale, shift)
    assert len(atoms) <= profiles.MOST_ATOMS + 1
    found = profiles.joint(0.0, 0.0, atoms).forward(EPSILONS[:4])
    assert np.all(found >= exact - 1e-12)
    assert np.all(found <= exact + 0.01)


@pytest.mark.parametrize("scale", [0.6, 1.5, 4.0])
@pytest.mark.parametrize(("one", "two"), [(1, 1), (1, 2), (2, 3)])
def test_t5_an_integer_l1_budget_split_over_two_counts_costs_no_more_than_one_count(
    scale: float, one: int, two: int
) -> None:
    x = np.arange(-60, 65)

    def law(shift: int) -> np.ndarray:
        mass = np.exp(-np.abs(x - shift) / scale)
        return mass / mass.sum()

    split = hockey(
        np.multiply.outer(law(0), law(0)), np.multiply.outer(law(one), law(two)), EPSILONS
    )
    atoms = profiles.discrete_laplace_atoms(scale, one + two)
    assert np.all(split <= profiles.joint(0.0, 0.0, atoms).forward(EPSILONS) + 1e-6)
    fewer = profiles.joint(0.0, 0.0, profiles.discrete_laplace_atoms(scale, one)).forward(EPSILONS)
    assert np.all(fewer <= profiles.joint(0.0, 0.0, atoms).forward(EPSILONS) + 1e-12)


def test_t5_a_continuous_l1_budget_split_over_two_coordinates_costs_no_more() -> None:
    step = 0.03
    x = np.arange(-10, 11.5, step) + step / 2

    def law(shift: float) -> np.ndarray:
        return np.exp(-np.abs(x - shift)) / 2

    split = hockey(
        np.multiply.outer(law(0), law(0)),
        np.multiply.outer(law(0.6), law(0.9)),
        EPSILONS[:4],
        step**2,
    )
    assert np.all(split <= profiles.joint(0.0, 1.5).forward(EPSILONS[:4]) + 1e-4)


@pytest.mark.parametrize("q", [0.01, 0.3, 1.0])
@pytest.mark.parametrize(("s", "mu"), [(0.0, 0.8), (1.2, 0.0)])
def test_t2_add_remove_against_the_mixture(q: float, s: float, mu: float) -> None:
    step = 5e-4
    x = np.arange(-20, 22, step) + step / 2
    without, with_her = (
        (norm.pdf(x), norm.pdf(x - mu))
        if mu
        else (np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x - s)) / 2)
    )
    mixed = (1 - q) * without + q * with_her
    found = profiles.poisson_add_remove(profiles.joint(mu, s), q)
    assert found.forward(EPSILONS) == pytest.approx(
        hockey(mixed, without, EPSILONS, step), abs=2e-7
    )
    assert found.backward(EPSILONS) == pytest.approx(
        hockey(without, mixed, EPSILONS, step), abs=2e-7
    )


def _replaced(
    u: tuple[float, float], v: tuple[float, float], q: float, epsilons: np.ndarray
) -> np.ndarray:
    step = 0.03
    x = np.arange(-7, 7, step) + step / 2

    def bell(at: tuple[float, float]) -> np.ndarray:
        return np.multiply.outer(norm.pdf(x - at[0]), norm.pdf(x - at[1]))

    none = bell((0.0, 0.0))
    return hockey((1 - q) * none + q * bell(u), (1 - q) * none + q * bell(v), epsilons, step**2)


@pytest.mark.parametrize("q", [0.05, 0.5, 1.0])
def test_t3_replace_one_is_the_antipodal_pair_and_dominates_every_other(q: float) -> None:
    at = np.array([0.0, 0.1, 0.7])
    c = 0.9
    antipodal = profiles.poisson_replace_gaussian(c, 2 * c, q).forward(at)
    assert antipodal == pytest.approx(_replaced((c, 0.0), (-c, 0.0), q, at), abs=1e-4)
    for angle, other in ((0.4, c), (1.5, c), (2.6, 0.5), (0.0, 0.1)):
        u, v = (c, 0.0), (other * math.cos(angle), other * math.sin(angle))
        d = math.dist(u, v)
        bound = profiles.poisson_replace_gaussian(c, d, q).forward(at)
        assert np.all(_replaced(u, v, q, at) <= bound + 1e-4)
        assert np.all(bound <= antipodal + 1e-9)


def test_replace_one_generic_bound_is_above_the_exact_gaussian_one() -> None:
    one, two = profiles.gaussian(0.5), profiles.gaussian(1.0)
    at = np.linspace(0, 2, 20)
    exact, bound = (
        profiles.poisson_replace_gaussian(0.5, 1.0, 0.1).forward(at),
        profiles.poisson_replace_generic(one, two, 0.1),
    )
    assert np.all(bound.forward(at) >= exact * (1 - 1e-13))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_bounded_range_is_the_worst_two_point_pair_and_laplace_stands_in(epsilon: float) -> None:
    t = np.linspace(0, epsilon, 20001)[1:-1]
    up = -np.expm1(t - epsilon) / -math.expm1(-epsilon)
    for e in np.linspace(0, epsilon * 0.95, 7):
        pairs = up * np.maximum(0, -np.expm1(e - t)) + (1 - up) * np.maximum(
            0, -np.expm1(e - t + epsilon)
        )
        found = profiles.bounded_range(epsilon).forward(np.array([e]))[0]
        assert found == pytest.approx(float(pairs.max()), rel=1e-5, abs=1e-12)
        assert found <= profiles.joint(0.0, epsilon).forward(np.array([e]))[0] + 1e-15


def test_bounded_range_moments_are_the_worst_pairs_and_t6_holds() -> None:
    for epsilon in (0.05, 1.0, 8.0):
        t = np.linspace(0, epsilon, 4001)
        up = np.clip(np.expm1(t - epsilon) / math.expm1(-epsilon), 1e-300, 1 - 1e-16)
        for index in (0, 150, 200, 240):
            step = renyi.ORDERS[index] - 1
            worst = (
                float(
                    np.max(
                        np.logaddexp(np.log(up) + step * t, np.log1p(-up) + step * (t - epsilon))
                    )
                )
                / step
            )
            found = renyi.bounded_range(epsilon)[index]
            assert found >= worst - 1e-9
            assert found == pytest.approx(worst, rel=1e-3, abs=1e-9)
            assert found <= renyi.ORDERS[index] * epsilon**2 / 8 + 1e-15


def test_per_cell_price_is_the_worst_over_enumerated_people() -> None:
    event = PerCell(((2.0, 1.0, 4.0), (5.0, 3.0, 0.7)), (2.0, 1.0))
    cells = range(3)
    costs = [sum(part[k] ** -2 for part in event.multipliers) for k in cells]
    within = [
        sum((s / part[k]) ** 2 for part, s in zip(event.multipliers, event.spreads, strict=True))
        for k in cells
    ]
    moved = [costs[j] + costs[k] for j in cells for k in cells if j != k]
    assert leaves.gaussian_square(event, "add-remove") == pytest.approx(max(costs))
    assert leaves.gaussian_square(event, "replace-one") == pytest.approx(max(within + moved))
    alone = PerCell(((2.0,),), (0.0,))
    assert leaves.gaussian_square(alone, "replace-one") == 0.0


def test_one_batch_reads_c_and_d() -> None:
    event = PoissonSampled(0.1, PerCell(((2.0, 1.0),), (1.0,)))
    batch = leaves.one_batch(event, "replace-one")
    assert batch.replaced is not None
    assert (batch.alone.mu, batch.replaced.mu) == pytest.approx((1.0, math.sqrt(1.25)))
    both = leaves.one_batch(
        PoissonSampled(0.1, Composed((Gaussian(3.0), Laplace(2.0))), (math.sqrt(2), 1.0)),
        "replace-one",
    )
    assert both.replaced is not None
    assert (both.replaced.mu, both.replaced.s) == pytest.approx((math.sqrt(2) / 3, 0.5))
    counts = leaves.one_batch(PoissonSampled(0.1, DiscreteLaplace(2.0, 1)), "replace-one")
    assert counts.replaced is not None
    assert (counts.alone.pure, counts.replaced.pure) == pytest.approx((0.5, 1.0))


def test_chords_of_an_upper_bound_stay_above() -> None:
    points = np.concatenate(([0.0], np.geomspace(1e-3, 6, 40)))
    exact = profiles.gaussian(1.0).forward
    chords = profiles.interpolated(points, exact(points), 6.0)
    between = np.linspace(0, 8, 500)
    assert np.all(chords.forward(between) >= exact(between) - 1e-15)
    assert chords.forward(points[:-1]) == pytest.approx(exact(points[:-1]))
