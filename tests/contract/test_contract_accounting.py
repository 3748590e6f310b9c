"""Prices, against second ones: closed forms, sums over all outcomes, integrals on a grid, and another
library. A price is never below the truth, and close to it where it is said to be exact."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as losses
from scipy import optimize, stats

from fairveil.core.events import (
    Approximate,
    Composed,
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
    VisiblySampled,
    ZeroConcentrated,
    compose,
    spelled_out,
)
from fairveil.errors import FairveilError
from fairveil.privacy import (
    Filter,
    NamedGroups,
    PrivacyStatement,
    Promise,
    Unit,
    calibrate,
    delta,
    epsilon,
    full_batch,
    price,
    price_after,
    routes_of,
    split,
)

Array = Any
BOTH = ("add-remove", "replace-one")
AT = (0.0, 0.1, 0.5, 1.0, 2.0)
SLACK = 1e-7  # of the integrals below


def gaussian_delta(mu: float, e: float) -> float:
    """Of a Gaussian whose means are `mu` deviations apart (Balle and Wang 2018)."""
    low = e + stats.norm.logcdf(-mu / 2 - e / mu)
    return float(stats.norm.cdf(mu / 2 - e / mu) - math.exp(low))


def gaussian_epsilon(mu: float, d: float) -> float:
    return float(optimize.brentq(lambda e: gaussian_delta(mu, e) - d, 0.0, 300.0, xtol=1e-13))


def apart(p: Array, q: Array, e: float) -> float:
    """How much of one law is beyond e^e of the other, the worse way round."""
    return float(
        max(np.maximum(0, p - math.exp(e) * q).sum(), np.maximum(0, q - math.exp(e) * p).sum())
    )


# ---- laws on a grid

CELL = 0.002
LINE = np.arange(-12, 12, CELL)
PLANE = np.arange(-9, 9, 0.03)


def at(kind: Callable[..., Any], where: float = 0.0, scale: float = 1.0) -> Array:
    """Probabilities of the grid's cells."""
    law = kind(where, scale)
    return law.cdf(LINE + CELL / 2) - law.cdf(LINE - CELL / 2)


def normal(where: float, z: float) -> Array:
    return at(stats.norm, where, z)


def laplace(where: float, b: float) -> Array:
    return at(stats.laplace, where, b)


def mixed(q: float, one: Array, other: Array) -> Array:
    return (1 - q) * one + q * other


def plane(x: float, y: float, z: float) -> Array:
    one, two = stats.norm(x, z).pdf(PLANE), stats.norm(y, z).pdf(PLANE)
    return np.outer(one, two) * 0.03**2


def orthogonal(q: float, z: float) -> tuple[Array, Array]:
    """A row of norm 1 of a batch is replaced by one at a right angle."""
    none = plane(0, 0, z)
    return mixed(q, none, plane(1, 0, z)), mixed(q, none, plane(0, 1, z))


def joint(z: float, b: float) -> tuple[Array, Array]:
    """A Gaussian and a Laplace release side by side."""
    x, width = np.arange(-14, 14, 0.02), 0.02

    def of(where: float) -> Array:
        one = np.diff(stats.norm(where, z).cdf(np.append(x, x[-1] + width) - width / 2))
        two = np.diff(stats.laplace(where, b).cdf(np.append(x, x[-1] + width) - width / 2))
        return np.outer(one, two)

    return of(0.0), of(1.0)


def integers(law: Callable[[Array], Array], shift: int, most: int = 4000) -> tuple[Array, Array]:
    x = np.arange(-most, most + 1)
    p, q = law(x), law(x - shift)
    return p / p.sum(), q / p.sum()


LAWS: dict[str, tuple[Event, str, Callable[[], tuple[Array, Array]], float]] = {
    "gaussian": (Gaussian(1.3), "add-remove", lambda: (normal(0, 1.3), normal(1, 1.3)), 1.001),
    "laplace": (Laplace(0.8), "add-remove", lambda: (laplace(0, 0.8), laplace(1, 0.8)), 1.01),
    "laplace beside a gaussian": (
        compose([Gaussian(1.5), Laplace(1.2)]),
        "add-remove",
        lambda: joint(1.5, 1.2),
        1.02,
    ),
    "discrete laplace": (
        DiscreteLaplace(1.5, 2),
        "add-remove",
        lambda: integers(lambda x: np.exp(-np.abs(x) / 3.0), 2),
        1.001,
    ),
    "discrete laplace of a large total": (
        DiscreteLaplace(1.5, 777),
        "add-remove",
        lambda: integers(lambda x: np.exp(-np.abs(x) / (1.5 * 777.0)), 777, 60_000),
        1.01,
    ),
    "a batch": (
        PoissonSampled(0.3, Gaussian(0.9)),
        "add-remove",
        lambda: (normal(0, 0.9), mixed(0.3, normal(0, 0.9), normal(1, 0.9))),
        1.01,
    ),
    "a batch, replaced": (
        PoissonSampled(0.3, Gaussian(0.9)),
        "replace-one",
        lambda: (
            mixed(0.3, normal(0, 0.9), normal(1, 0.9)),
            mixed(0.3, normal(0, 0.9), normal(-1, 0.9)),
        ),
        1.05,
    ),
    "a batch of histograms, replaced": (
        PoissonSampled(0.4, Gaussian(0.9), (math.sqrt(2),)),
        "replace-one",
        lambda: orthogonal(0.4, 0.9),
        1.3,
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_delta_is_that_of_the_law(name: str) -> None:
    event, relation, made, wide = LAWS[name]
    p, q = made()
    for e in AT:
        true, found = apart(p, q, e), delta(event, e, relation)
        assert found >= true * (1 - 1e-4) - SLACK, e
        assert found <= true * wide + (1e-4 if wide < 1.1 else 1.0), e


def test_a_visible_batch_is_so_much_of_what_a_row_costs() -> None:
    for e in AT:
        found = delta(VisiblySampled(0.3, Gaussian(1.3)), e, "replace-one")
        assert found == pytest.approx(0.3 * gaussian_delta(1 / 1.3, e), rel=1e-6)
    with pytest.raises(FairveilError):
        epsilon(VisiblySampled(0.3, Gaussian(1.3)), 1e-6, "add-remove")
    two = Repeated(VisiblySampled(0.2, Gaussian(2.0)), 6)
    loss = losses.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3)
    assert epsilon(two, 1e-5, "replace-one") < loss.self_compose(6).get_epsilon_for_delta(1e-5)


def test_a_choice_costs_its_worst_candidate() -> None:
    """Of a bounded range two outcomes are the worst, wherever the losses lie in it."""
    e, t = 1.3, np.linspace(1e-6, 1.3 - 1e-6, 20_001)
    q = (1 - np.exp(t - e)) / (np.exp(t) - np.exp(t - e))
    p = np.exp(t) * q
    for at_e in (0.0, 0.2, 0.7, 1.2):
        true = float(np.maximum(0, p - math.exp(at_e) * q).max())
        assert true * (1 - 1e-6) <= delta(Exponential(e), at_e) <= true * 1.0001 + 1e-12


# ---- compositions


def elsewhere(*parts: Any) -> Any:
    return reduce(lambda one, other: one.compose(other), parts)


def by(kind: str, *given: float, **more: Any) -> Any:
    grid = {"value_discretization_interval": 2e-4}
    if kind == "pure":
        pair = losses.common.DifferentialPrivacyParameters(given[0], given[1] if given[1:] else 0.0)
        return losses.from_privacy_parameters(pair, **grid)
    make = {"gaussian": losses.from_gaussian_mechanism, "laplace": losses.from_laplace_mechanism}
    return make[kind](*given, **grid, **more)


COMPOSED: dict[str, tuple[Event, Callable[[], Any], float]] = {
    "pure beside gaussian": (
        compose([Pure(0.5), Gaussian(2.0)]),
        lambda: elsewhere(by("pure", 0.5), by("gaussian", 2.0)),
        1.01,
    ),
    "laplace beside gaussians": (
        compose([Repeated(Laplace(3.0), 3), Gaussian(2.0)]),
        lambda: elsewhere(by("laplace", 3.0).self_compose(3), by("gaussian", 2.0)),
        1.01,
    ),
    "pure ones": (Repeated(Pure(0.3), 12), lambda: by("pure", 0.3).self_compose(12), 1.05),
    "with a delta": (
        compose([Approximate(0.3, 1e-7), Gaussian(2.0), Repeated(Approximate(0.1, 1e-8), 5)]),
        lambda: elsewhere(
            by("pure", 0.3, 1e-7), by("gaussian", 2.0), by("pure", 0.1, 1e-8).self_compose(5)
        ),
        1.01,
    ),
    "batches": (
        Repeated(PoissonSampled(0.1, Gaussian(1.1)), 20),
        lambda: by("gaussian", 1.1, sampling_prob=0.1).self_compose(20),
        1.01,
    ),
    "batches in batches of rounds": (
        Repeated(compose([Repeated(PoissonSampled(0.1, Gaussian(1.5)), 4), Gaussian(9.0)]), 3),
        lambda: elsewhere(
            by("gaussian", 1.5, sampling_prob=0.1).self_compose(12), by("gaussian", 9 / 3**0.5)
        ),
        1.01,
    ),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_compositions_cost_what_another_library_says(name: str) -> None:
    event, second, wide = COMPOSED[name]
    loss = second()
    for d in (1e-3, 1e-5, 1e-6):
        true, found = loss.get_epsilon_for_delta(d), epsilon(event, d)
        assert 0.997 * true - 1e-3 <= found <= wide * true + 1e-3, d


@pytest.mark.parametrize("d", [1e-2, 1e-6, 1e-9, 1e-12, 1e-14])
@pytest.mark.parametrize("z", [0.7, 3.0, 40.0])
def test_every_route_is_above_the_closed_form(z: float, d: float) -> None:
    """Also where delta is as small as what a grid trims, rounds and cuts."""
    for times in (1, 30):
        mu = math.sqrt(times) / z
        true = gaussian_epsilon(mu, d) if gaussian_delta(mu, 0.0) > d else 0.0
        event = Repeated(Gaussian(z), times)
        assert epsilon(event, d) == pytest.approx(true, rel=1e-9, abs=1e-12)
        for route, found in routes_of(event, d).items():
            assert found >= true * (1 - 1e-9), route


def test_rounds_are_counted_wherever_they_stand() -> None:
    one = Gaussian(10.0)
    ways = [
        Repeated(one, 12),
        compose([one] * 12),
        Composed((one,) * 12),
        Repeated(Repeated(one, 3), 4),
        Repeated(compose([one, one]), 6),
        compose([Repeated(one, 5), one, Repeated(one, 6)]),
        compose(spelled_out(Repeated(one, 12))),
    ]
    for way in ways:
        assert epsilon(way, 1e-6) == pytest.approx(gaussian_epsilon(math.sqrt(12) / 10, 1e-6))
    assert len(list(spelled_out(Repeated(one, 12)))) == 12
    assert epsilon(Repeated(Pure(0.25), 4), 0.0) == pytest.approx(1.0)
    assert epsilon(Repeated(Laplace(8.0), 4), 0.0) == pytest.approx(0.5)


def test_what_is_lost_for_certain_is_lost() -> None:
    """No epsilon holds at a delta that is smaller."""
    assert math.isinf(epsilon(Repeated(Approximate(0.01, 1e-8), 200), 1.9e-6))
    assert all(
        math.isinf(e) for e in routes_of(Repeated(Approximate(0.01, 1e-8), 200), 1.9e-6).values()
    )
    assert epsilon(Approximate(0.3, 1e-7), 2e-7) == pytest.approx(0.3)
    assert math.isinf(epsilon([Gaussian(5.0), NonPrivate()], 1e-6))


def test_concentrated_releases_cost_at_least_the_gaussian_of_their_rho() -> None:
    for rho in (0.01, 0.1, 0.5):
        true = gaussian_epsilon(math.sqrt(2 * rho), 1e-6)
        assert true <= epsilon(ZeroConcentrated(rho), 1e-6) <= 1.2 * true
        many = epsilon(Repeated(ZeroConcentrated(rho / 20), 20), 1e-6)
        assert many == pytest.approx(epsilon(ZeroConcentrated(rho), 1e-6), rel=1e-6)


# ---- the best of a random number of runs


def best(p: Array, mean: float, shape: float) -> Array:
    """Of outcomes in rising order: the law of the best of a truncated negative binomial number."""
    gamma = float(optimize.brentq(lambda g: _mean(g, shape) - mean, 1e-9, 1 - 1e-9))

    def grown(x: Array) -> Array:
        if shape == 0:
            return np.log(1 - (1 - gamma) * x) / math.log(gamma)
        return ((1 - (1 - gamma) * x) ** -shape - 1) / (gamma**-shape - 1)

    return np.diff(np.concatenate([[0.0], grown(np.cumsum(p))]))


def _mean(gamma: float, shape: float) -> float:
    if shape == 0:
        return (1 / gamma - 1) / -math.log(gamma)
    return shape * (1 - gamma) / (gamma * (1 - gamma**shape))


@pytest.mark.parametrize("shape", [0.0, 1.0])
@pytest.mark.parametrize("mean", [2.0, 30.0])
def test_a_selection_costs_at_least_what_an_outcome_gives_away(shape: float, mean: float) -> None:
    """Three outcomes of one run, of which every ratio is within e^epsilon."""
    e, worst = 0.2, 0.0
    for high, middle in itertools.product((1e-4, 1e-2, 0.1, 0.3), repeat=2):
        one = np.array([1 - high - middle, middle, high])
        for signs in itertools.product((-1, 1), repeat=2):
            other = np.array([0, middle * math.exp(signs[0] * e), high * math.exp(signs[1] * e)])
            other[0] = 1 - other.sum()
            if abs(math.log(other[0] / one[0])) > e:
                continue
            ratio = np.log(best(one, mean, shape) / best(other, mean, shape))
            worst = max(worst, float(np.abs(ratio).max()))
    found = epsilon(PrivateSelection(Pure(e), mean, shape), 0.0)
    assert worst <= found <= (2 + shape) * e * 1.0001


@pytest.mark.parametrize("shape", [0.0, 1.0])
def test_a_selection_of_gaussian_runs_costs_its_renyi_bound(shape: float) -> None:
    """Papernot and Steinke (2022), theorem 2, at the best pair of orders; and more runs cost more."""
    mean, z, d = 8.0, 6.0, 1e-6
    gamma = float(optimize.brentq(lambda g: _mean(g, shape) - mean, 1e-9, 1 - 1e-9))
    rho, orders = 1 / (2 * z * z), np.geomspace(1.05, 400, 400)
    second = (1 + shape) * ((1 - 1 / orders) * rho * orders - math.log(gamma) / orders)
    bound = rho * orders + second.min() + math.log(mean) / (orders - 1)
    found = bound + np.log1p(-1 / orders) - (math.log(d) + np.log(orders)) / (orders - 1)
    least = float(found.min())
    event = PrivateSelection(Gaussian(z), mean, shape)
    assert 0.97 * least <= epsilon(event, d) <= 1.1 * least
    assert epsilon(PrivateSelection(Gaussian(z), 80.0, shape), d) > epsilon(event, d)
    leaky = PrivateSelection(Approximate(0.1, 1e-8), mean, shape)
    assert math.isinf(epsilon(leaky, 0.9 * mean * 1e-8))


# ---- people of cells


def squares(release: PerCell, person: int, other: int | None) -> float:
    """How far apart two tables are, squared, in deviations: one has this person, the other somebody
    in her cell (`other` is `person`), in another one, or nobody (None)."""
    total = 0.0
    crossings = release.crossings or (0,) * len(release.multipliers)
    for part, spread, crossing in zip(release.multipliers, release.spreads, crossings, strict=True):
        if other is None:
            total += part[person] ** -2
        elif other == person:
            total += (spread / part[person]) ** 2
        else:
            total += part[person] ** -2 + part[other] ** -2
            total += 2 * crossing / (part[person] * part[other])
    return total


CELLS: dict[str, list[tuple[PerCell, int]]] = {
    "one release": [(PerCell(((3.0, 9.0, 5.0),), (2.0,)), 1)],
    "within a cell is nearest": [(PerCell(((3.0, 90.0),), (2.0,)), 1)],
    "losses": [(PerCell(((3.0, 9.0, 5.0),), (0.5,)), 3)],
    "rounds": [(PerCell(((30.0, 9.0),), (1.0,)), 7), (PerCell(((9.0, 40.0),), (1.0,)), 2)],
    "two parts": [(PerCell(((8.0, 30.0), (20.0, 10.0)), (2.0, 1.0)), 2)],
    "one vector": [(PerCell(((3.0, 9.0, 5.0),), (0.0,), (1,)), 1)],
    "the same at another size": [(PerCell(((3.0, 9.0, 5.0),), (0.0,), (-1,)), 2)],
}


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("name", CELLS)
def test_noise_by_cell_is_priced_for_whoever_is_worst_off(name: str, relation: str) -> None:
    plan = [Repeated(release, times) for release, times in CELLS[name]]
    cells = range(CELLS[name][0][0].cells)
    pairs = (
        [(c, None) for c in cells]
        if relation == "add-remove"
        else [*itertools.product(cells, cells)]
    )
    worst = max(sum(t * squares(r, *pair) for r, t in CELLS[name]) for pair in pairs)
    found = epsilon(plan, 1e-6, relation)
    assert found == pytest.approx(gaussian_epsilon(math.sqrt(worst), 1e-6), rel=1e-6)
    beside = [*plan, PerCell(((4.0, 7.0),), (0.0,), column=1)]
    more = (
        [(0, None), (1, None)] if relation == "add-remove" else [*itertools.product((0, 1), (0, 1))]
    )
    worst += max(squares(beside[-1], *pair) for pair in more)
    found = epsilon(beside, 1e-6, relation)
    assert found == pytest.approx(gaussian_epsilon(math.sqrt(worst), 1e-6), rel=1e-6)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("fixed", [True, False])
def test_a_groups_epsilon_is_what_its_people_see(relation: str, fixed: bool) -> None:
    promise, shared = Promise(6.0, 1e-6, neighbours=relation), Gaussian(6.0)
    own = PerCell(((5.0, 12.0, 30.0),), (2.0,))
    names = NamedGroups(("a", "b", "c"), fixed=fixed)
    statement = PrivacyStatement.of(promise, [shared, own], plan=[shared, own], groups=[names])
    for cell in range(3):
        others = [None] if relation == "add-remove" else range(3)
        worst = max(squares(own, cell, other) for other in others)
        if fixed:
            told = gaussian_epsilon(math.sqrt(worst + 1 / 36), 1e-6)
        else:
            told = gaussian_epsilon(1 / 6, 5e-7) + gaussian_epsilon(math.sqrt(worst), 5e-7)
        told = min(told, statement.epsilon) if fixed else told
        found = statement.groups[cell].epsilon
        assert found == pytest.approx(told, rel=1e-5) or found == statement.epsilon <= told


# ---- parts, and what no relation has


def test_fixed_parts_are_priced_side_by_side_where_they_are_fixed() -> None:
    first, second = (OnPart(Gaussian(z), part, 2) for part, z in enumerate((5.0, 9.0)))
    for plan in ([first, second], [second, first], [first, first, second], [second, first, first]):
        true = gaussian_epsilon(math.sqrt(plan.count(first)) / 5, 1e-6)
        both = gaussian_epsilon(math.sqrt(plan.count(first) / 25 + 1 / 81), 1e-6)
        assert true * (1 - 1e-9) <= epsilon(plan, 1e-6, "replace-one") <= both * (1 + 1e-9)
        with pytest.raises(FairveilError):
            epsilon(plan, 1e-6, "add-remove")
    epoch = [OnPart(Gaussian(5.0), part, 4) for part in range(4)]
    assert epsilon(epoch, 1e-6, "replace-one") == pytest.approx(gaussian_epsilon(1 / 5, 1e-6))


def test_what_a_batch_may_hold_is_said() -> None:
    with pytest.raises(FairveilError):
        PoissonSampled(0.1, compose([Gaussian(2.0), Gaussian(3.0)]), (1.0,))
    with pytest.raises(FairveilError):
        PoissonSampled(0.1, Gaussian(2.0), (2.5,))
    with pytest.raises(FairveilError):
        PoissonSampled(0.1, Repeated(Gaussian(2.0), 10**6))


def test_what_a_promise_makes_public() -> None:
    persons = Unit("person", 3)
    for protects, relation, unit, public in [
        ("records", "add-remove", None, (False, False, False)),
        ("records", "replace-one", None, (True, True, False)),
        ("records", "replace-one", persons, (False, True, False)),
        ("records", "add-remove", persons, (False, False, False)),
        ("sensitive_features", "replace-one", None, (True, True, True)),
        ("sensitive_features", "replace-one", persons, (True, True, True)),
    ]:
        promise = Promise(1.0, 1e-6, protects, relation, unit)
        found = promise.rows_are_public, promise.units_are_public, promise.features_are_public
        assert found == public, (protects, relation, unit)
    with pytest.raises(FairveilError):
        Promise(1.0, 1e-6, "sensitive_features", "add-remove")


# ---- the least noise

PROMISE = Promise(1.0, 1e-6)


def test_the_least_noise_is_within_the_promise() -> None:
    for plan in (
        lambda z: Repeated(Gaussian(z), 30),
        lambda z: Repeated(PoissonSampled(0.2, Gaussian(z)), 10),
        lambda z: compose([Laplace(3 * z), Gaussian(z)]),
    ):
        found = calibrate(PROMISE, plan, precision=1e-4)
        assert 1.0 - 1.1e-4 <= found.epsilon <= 1.0
        assert epsilon(plan(found.multiplier), 1e-6) <= 1.0
    exact = calibrate(PROMISE, lambda z: Repeated(Gaussian(z), 30), precision=1e-9)
    assert gaussian_epsilon(math.sqrt(30) / exact.multiplier, 1e-6) == pytest.approx(1.0, rel=1e-6)


def test_full_batches_beside_others_fill_the_promise() -> None:
    for extra in ([], [Gaussian(9.0)]):
        z = full_batch(PROMISE, 10, extra)
        found = epsilon([Repeated(Gaussian(z), 10), *extra], 1e-6)
        assert 0.999 <= found <= 1.0


def test_a_noise_that_is_split_costs_the_same() -> None:
    for costs in ((1.0, 1.0), (1.0, 9.0)):
        first, second = split(3.0, *costs)
        assert first**-2 + second**-2 == pytest.approx(1 / 9)


# ---- caps on what is chosen as it goes


@pytest.mark.parametrize("kind", ["gaussian", "renyi"])
@pytest.mark.parametrize("reserve", [0.01, 0.5])
def test_a_filter_admits_no_more_than_its_promise(kind: str, reserve: float) -> None:
    """Of equal Gaussians, whose tight price is known; the reserved part of delta is not spent by
    them."""
    cap, made = Filter.create(PROMISE, kind, reserve=reserve), 0
    one = Gaussian(15.0)
    while cap.fits(one) and made < 2000:
        cap, made = cap.add(one), made + 1
    assert 3 < made < 2000
    with pytest.raises(FairveilError):
        cap.add(one)
    spent = math.sqrt(made) / 15.0
    # A Gaussian filter's budget is of all of delta but its reserve, or less.
    assert gaussian_delta(spent, 1.0) <= 1e-6 * (1 - reserve)
    assert cap.spent <= cap.budget
    if kind == "gaussian":
        assert gaussian_delta(math.sqrt(cap.budget), 1.0) == pytest.approx(1e-6 * (1 - reserve))


def test_a_filter_counts_each_kind_of_release() -> None:
    e = 1.0
    mu = -2 * stats.norm.ppf(1 / (1 + math.exp(e)))
    assert Filter.create(Promise(5.0, 1e-6)).cost(Pure(e))[0] == pytest.approx(mu**2, rel=1e-6)
    cap = Filter.create(Promise(5.0, 1e-6), "renyi", order=4.0)
    assert cap.order is not None
    assert cap.cost(Gaussian(2.0))[0] == pytest.approx(cap.order / 8)
    laplace = math.log(4 / 7 * math.exp(0.5 * 3) + 3 / 7 * math.exp(-0.5 * 4)) / 3
    assert cap.cost(Laplace(2.0))[0] == pytest.approx(laplace, rel=0.05)
    assert Filter.create(Promise(5.0, 0.0), "pure").cost(Repeated(Pure(0.5), 3))[0] == 1.5
    for kind in ("gaussian", "renyi"):
        cap = Filter.create(PROMISE, kind)
        assert cap.fits(Approximate(1e-4, 6e-9))
        assert not cap.fits(Approximate(1e-4, 1.1e-8))
        assert not cap.add(Approximate(1e-4, 6e-9)).fits(Approximate(1e-4, 6e-9))


def test_a_release_that_was_chosen_later_costs_more_than_one_of_a_plan() -> None:
    before, after = [Gaussian(8.0)], [Gaussian(5.0)]
    found = price_after(before, after, 1e-6).epsilon
    mu = math.sqrt(1 / 64 + 1 / 25)
    assert found == pytest.approx(gaussian_epsilon(mu, 5e-7), rel=1e-6)
    assert found > price([*before, *after], 1e-6).epsilon
