"""Rules of every event, every relation and every route."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.core import cost as accounting
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
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    SamplerError,
    VisiblySampled,
    ZeroConcentrated,
)
from fairveil.core.promise import NEIGHBOURS
from fairveil.errors import InputError
from fairveil.privacy.accounting.calibration import scaled

KINDS: dict[str, Event] = {
    "gaussian": Gaussian(3.0),
    "discrete gaussian": DiscreteGaussian(3.0),
    "laplace": Laplace(4.0),
    "discrete laplace": DiscreteLaplace(4.0, 2),
    "exponential": Exponential(0.3),
    "pure": Pure(0.2),
    "approximate": Approximate(0.2, 1e-8),
    "zero-concentrated": ZeroConcentrated(0.02),
    "per cell": PerCell(((3.0, 5.0), (4.0, 2.0)), (2.0, 1.0)),
    "poisson gaussian": PoissonSampled(0.05, Gaussian(1.2)),
    "poisson histogram": PoissonSampled(0.05, Gaussian(1.2), (math.sqrt(2),)),
    "poisson joint": PoissonSampled(0.05, Composed((Gaussian(1.5), Laplace(2.0)))),
    "poisson counts": PoissonSampled(0.05, Composed((Gaussian(1.5), DiscreteLaplace(3.0, 1)))),
    "poisson discrete gaussian": PoissonSampled(0.05, DiscreteGaussian(2.0)),
    "poisson per cell": PoissonSampled(0.05, PerCell(((2.0, 3.0),), (1.0,))),
    "visible": VisiblySampled(0.05, Gaussian(2.0)),
    "visible list": VisiblySampled(0.05, Composed((Gaussian(3.0), Laplace(3.0)))),
    "selection": PrivateSelection(Gaussian(8.0), 5.0, 1.0),
    "selection of sampled": PrivateSelection(
        Repeated(PoissonSampled(0.05, Gaussian(2.0)), 10), 5.0, math.inf
    ),
}
DELTA = 1e-5
every_kind = pytest.mark.parametrize("kind", KINDS)
every_relation = pytest.mark.parametrize("neighbours", NEIGHBOURS)
# Visible batches are priced under replace-one only.
relations_of = {
    kind: NEIGHBOURS[1:] if kind.startswith("visible") else NEIGHBOURS for kind in KINDS
}
every_kind_and_relation = pytest.mark.parametrize(
    ("kind", "neighbours"),
    [(kind, neighbours) for kind in KINDS for neighbours in relations_of[kind]],
)


def same(first: float, second: float) -> bool:
    return first == pytest.approx(second, rel=1e-12)


@every_kind_and_relation
def test_n_fold_is_a_list_of_n_on_every_route(kind: str, neighbours: str) -> None:
    event = KINDS[kind]
    repeated, listed = Repeated(event, 4), [event, event, Repeated(event, 2)]
    nested = Composed((Composed((event,)), Repeated(Composed((event, NoOp())), 3)))
    routes = accounting.routes_of(repeated, DELTA, neighbours)
    assert (
        routes
        == accounting.routes_of(listed, DELTA, neighbours)
        == accounting.routes_of(nested, DELTA, neighbours)
    )
    assert len(routes) >= 2
    once = accounting.routes_of(event, DELTA, neighbours)
    assert all(routes[name] >= once[name] for name in routes)


@every_kind_and_relation
def test_every_route_is_above_the_price_and_the_price_is_named(kind: str, neighbours: str) -> None:
    events = Repeated(KINDS[kind], 6)
    price = accounting.price(events, DELTA, neighbours)
    routes = accounting.routes_of(events, DELTA, neighbours)
    assert price.route in routes
    assert same(price.epsilon, routes[price.route])
    assert price.epsilon <= min(routes.values()) * (1 + 1e-3)
    assert 0 < price.epsilon < math.inf


@every_kind_and_relation
def test_more_noise_never_costs_more(kind: str, neighbours: str) -> None:
    plan = scaled(Repeated(KINDS[kind], 3))
    costs = [accounting.epsilon(plan(z), DELTA, neighbours) for z in (0.5, 1.0, 1.5, 4.0)]
    if kind == "approximate":
        assert len(set(costs)) == 1
    else:
        assert all(more > less for more, less in itertools.pairwise(costs))


@every_kind_and_relation
def test_epsilon_and_delta_are_inverse_and_monotone(kind: str, neighbours: str) -> None:
    events = Repeated(KINDS[kind], 5)
    curve = accounting.curve(events, neighbours, deltas=[1e-3, 1e-4, 1e-6, 1e-7])
    epsilons = [at for at, _ in curve]
    assert epsilons == sorted(epsilons)
    for epsilon, delta in curve[:3]:
        assert accounting.delta(events, epsilon, neighbours) == pytest.approx(delta, rel=0.02)
    deltas = [
        delta
        for _, delta in accounting.curve(events, neighbours, epsilons=[0.0, 0.5, 1.0, 3.0, 50.0])
    ]
    assert deltas == sorted(deltas, reverse=True)
    assert all(0 <= delta <= 1 for delta in deltas)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=5),
    st.randoms(use_true_random=False),
    st.sampled_from(NEIGHBOURS),
)
def test_order_does_not_matter_a_no_op_is_free_and_more_costs_more(
    kinds: list[str], random: object, neighbours: str
) -> None:
    if any(neighbours not in relations_of[kind] for kind in kinds):
        neighbours = "replace-one"
    events = [KINDS[kind] for kind in kinds]
    shuffled = [*events, NoOp()]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    whole = accounting.epsilon(events, DELTA, neighbours)
    assert same(whole, accounting.epsilon(shuffled, DELTA, neighbours))
    # Grids differ between the two trees, which may move a price by their tolerance.
    assert accounting.epsilon(events[1:], DELTA, neighbours) <= whole * (1 + 1e-3)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.floats(1e-4, 1.0),
    st.floats(0.05, 300.0),
    st.integers(1, 20_000),
    st.sampled_from(NEIGHBOURS),
    st.sampled_from([1e-12, 1e-6, 1e-2]),
)
def test_a_poisson_plan_always_has_a_price(
    q: float, z: float, count: int, neighbours: str, delta: float
) -> None:
    price = accounting.price(Repeated(PoissonSampled(q, Gaussian(z)), count), delta, neighbours)
    spread = 1.0 if neighbours == "add-remove" else 2.0
    unsampled = accounting.epsilon(Repeated(Gaussian(z / spread), count), delta)
    assert 0 <= price.epsilon <= unsampled * (1 + 2e-3) + 1e-9


@pytest.mark.parametrize("epsilon", [1e-3, 1e-2, 1.0, 30.0, 1e3])
def test_no_exception_from_a_thousandth_to_a_thousand(epsilon: float) -> None:
    for kind in (
        "gaussian",
        "laplace",
        "exponential",
        "pure",
        "zero-concentrated",
        "poisson joint",
        "visible",
        "selection",
    ):
        plan, neighbours = scaled(KINDS[kind]), relations_of[kind][0]
        z = 1.0
        while accounting.epsilon(plan(z), DELTA, neighbours) > epsilon:
            z *= 2
        while accounting.epsilon(plan(z), DELTA, neighbours) <= epsilon and z > 1e-4:
            z /= 2
        found = accounting.epsilon(plan(z), DELTA, neighbours)
        assert epsilon < found < 60 * epsilon + 3
        assert 0 <= accounting.delta(plan(2 * z), epsilon, neighbours) <= 1


@every_relation
def test_guarantee_2_one_batch_costs_more_than_two_batches_of_each_part(neighbours: str) -> None:
    joint = Repeated(PoissonSampled(0.017, Composed((Gaussian(1.0), Laplace(1.0)))), 100)
    apart = [
        Repeated(PoissonSampled(0.017, Gaussian(1.0)), 100),
        Repeated(PoissonSampled(0.017, Laplace(1.0)), 100),
    ]
    assert accounting.epsilon(joint, DELTA, neighbours) > 1.1 * accounting.epsilon(
        apart, DELTA, neighbours
    )
    merged = PoissonSampled(0.1, Gaussian((10.0**-2 + 0.5**-2) ** -0.5))
    listed = PoissonSampled(0.1, Composed((Gaussian(10), Gaussian(0.5))))
    assert accounting.epsilon(Repeated(listed, 100), DELTA, neighbours) == pytest.approx(
        accounting.epsilon(Repeated(merged, 100), DELTA, neighbours), rel=1e-9
    )


def test_guarantee_3_the_relation_changes_sampled_and_per_cell_events_only() -> None:
    for kind, event in KINDS.items():
        if kind.startswith("visible"):
            continue
        one, two = (accounting.epsilon(event, DELTA, neighbours) for neighbours in NEIGHBOURS)
        if kind.startswith("poisson") or kind in ("per cell", "selection of sampled"):
            assert two > 1.05 * one
        else:
            assert one == two


def test_a_replaced_row_costs_what_its_spread_says() -> None:
    free = PoissonSampled(0.1, Gaussian(1.0), (0.0,))
    assert accounting.epsilon(free, DELTA, "replace-one") == 0
    batches = [PoissonSampled(0.1, Gaussian(1.0), (s,)) for s in (0.3, 1.0, 1.4, 2.0)]
    costs = [accounting.epsilon(Repeated(batch, 20), DELTA, "replace-one") for batch in batches]
    assert costs == sorted(costs)
    assert costs[-1] == accounting.epsilon(
        Repeated(PoissonSampled(0.1, Gaussian(1.0)), 20), DELTA, "replace-one"
    )
    full = PoissonSampled(1.0, Gaussian(1.0), (1.4,))
    assert accounting.epsilon(full, DELTA, "replace-one") == pytest.approx(
        accounting.epsilon(Gaussian(1 / 1.4), DELTA)
    )


def test_pure_totals_and_delta_zero() -> None:
    pure = [
        Laplace(2.0),
        DiscreteLaplace(4.0, 1),
        Exponential(0.3),
        Pure(0.1),
        VisiblySampled(0.5, Pure(0.2)),
    ]
    assert accounting.epsilon(pure, 0.0, "replace-one") == pytest.approx(
        0.5 + 0.25 + 0.3 + 0.1 + 0.2
    )
    assert accounting.epsilon(PoissonSampled(0.1, Laplace(1.0)), 0.0) == pytest.approx(
        math.log1p(0.1 * math.expm1(1.0))
    )
    assert accounting.epsilon(PrivateSelection(Pure(0.5), 10.0, 1.0), 0.0) == pytest.approx(1.5)
    for kind in (
        "gaussian",
        "zero-concentrated",
        "poisson gaussian",
        "approximate",
        "discrete gaussian",
    ):
        assert accounting.epsilon(KINDS[kind], 0.0) == math.inf


def test_nothing_and_everything() -> None:
    assert accounting.epsilon(NoOp(), 0.0) == 0
    assert accounting.epsilon([], 1e-6) == 0
    assert accounting.epsilon(Repeated(Gaussian(1.0), 0), 0.0) == 0
    assert accounting.epsilon(Repeated(NonPrivate(), 0), 0.0) == 0
    for event in (
        NonPrivate(),
        VisiblySampled(0.1, NonPrivate()),
        PrivateSelection(Composed((NonPrivate(),)), 2, 1),
    ):
        price = accounting.price([Gaussian(5.0), event], 1e-3, "replace-one")
        assert (price.epsilon, price.route) == (math.inf, "none")
        assert accounting.delta(event, 3.0, "replace-one") == 1
        assert accounting.delta(event, math.inf, "replace-one") == 1
    assert accounting.delta(Gaussian(1.0), math.inf) == 0


@pytest.mark.parametrize(
    "kind", ["gaussian", "per cell", "discrete laplace", "poisson counts", "visible", "selection"]
)
def test_t7_sampler_errors_are_charged_on_top(kind: str) -> None:
    event, error, neighbours = KINDS[kind], 1e-7, relations_of[kind][0]
    price = accounting.epsilon([event, SamplerError(error)], DELTA, neighbours)
    left = DELTA - (1 + math.exp(price)) * error
    assert accounting.epsilon(event, left, neighbours) == pytest.approx(price, rel=1e-4)
    assert (
        accounting.epsilon([event, SamplerError(4e-6), SamplerError(4e-6)], DELTA, neighbours)
        == math.inf
    )
    charged = accounting.delta([event, SamplerError(error)], price, neighbours)
    assert charged == pytest.approx(DELTA, rel=0.02)


def test_approximate_deltas_are_split_off() -> None:
    event = Composed((Approximate(0.5, 3e-6), Approximate(0.5, 3e-6), ZeroConcentrated(0.01)))
    assert accounting.epsilon(event, 5e-6) == math.inf
    assert accounting.epsilon(Approximate(0.5, 1e-6), 1e-6) == pytest.approx(0.5)
    assert accounting.delta(Approximate(0.5, 1e-6), 0.5) == pytest.approx(1e-6)
    assert accounting.epsilon(event, 1e-5) >= accounting.epsilon(event, 1e-4)


@pytest.mark.parametrize("bad", [-0.1, 1.0, math.nan, "x", None, True])
def test_a_bad_delta_is_an_error_that_names_it(bad: object) -> None:
    with pytest.raises(InputError, match=r"^delta: expected"):
        accounting.epsilon(Gaussian(1.0), bad)  # type: ignore[arg-type]


def test_bad_events_and_relations_are_errors() -> None:
    with pytest.raises(InputError, match=r"^events: expected"):
        accounting.epsilon("gaussian", 1e-6)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^event: expected"):
        accounting.epsilon([1.0], 1e-6)  # type: ignore[list-item]
    with pytest.raises(InputError, match="neighbours"):
        accounting.epsilon(Gaussian(1.0), 1e-6, "swap")
    with pytest.raises(InputError, match="mean"):
        accounting.epsilon(PrivateSelection(Gaussian(1.0), 0.5, 1.0), 1e-6)
    with pytest.raises(InputError, match=r"^curve"):
        accounting.curve(Gaussian(1.0), deltas=[0.1], epsilons=[1.0])


@given(
    st.lists(
        st.tuples(st.floats(1e-3, 5.0), st.integers(1, 400), st.booleans()), min_size=1, max_size=8
    )
)
def test_pure_epsilons_add_up_to_no_less_than_their_exact_sum(pieces):
    """In rational numbers, and to the next float."""
    events = [
        Repeated(DiscreteLaplace(number) if noisy else Pure(number), count)
        for number, count, noisy in pieces
    ]
    exact = sum(
        (1 / Fraction(number) if noisy else Fraction(number)) * count
        for number, count, noisy in pieces
    )
    found = accounting.epsilon(events, 0.0)
    assert Fraction(found) >= exact
    assert found <= float(exact) * (1 + 1e-14)


def test_ten_tenths_are_more_than_one():
    """0.1 is a float above a tenth, and three thirds of noise 3 are one."""
    assert accounting.epsilon([Repeated(Pure(0.1), 10)], 0.0) == math.nextafter(1.0, 2.0)
    assert accounting.epsilon([Repeated(Pure(0.5), 10)], 0.0) == 5.0
    assert Fraction(accounting.epsilon([Laplace(3.0)], 0.0)) >= Fraction(1, 3)
