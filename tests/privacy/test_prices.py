"""Prices: rules of every event, relation and route; against dp_accounting where that is right; and
never below the truth where that is hardest: hidden errors, vanishing losses, losses beyond floats,
tiny deltas. The truths are closed forms, exact sums and many digits of precision."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import dp_accounting as dp
import mpmath
import numpy as np
import pytest
from dp_accounting import pld, rdp
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, RepeatAndSelectDpEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from fairveil.core import compose, curves, events
from fairveil.core.cost import delta, epsilon, gaussian_epsilon, price, routes_of
from fairveil.core.events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
    from_json_dict,
    spelled_out,
    to_json_dict,
    with_noise,
)
from fairveil.core.mechanisms import mechanism
from fairveil.errors import InputError
from fairveil.privacy import Filter, Promise

DELTA = 1e-5
REPLACE = "replace-one"
BOTH = ("add-remove", REPLACE)
both = pytest.mark.parametrize("neighbours", BOTH)

KINDS: dict[str, Event] = {
    "gaussian": Gaussian(3.0),
    "laplace": Laplace(4.0),
    "discrete laplace": DiscreteLaplace(4.0, 2),
    "exponential": Exponential(0.3),
    "pure": Pure(0.2),
    "approximate": Approximate(0.2, 1e-8),
    "zero-concentrated": ZeroConcentrated(0.02),
    "per cell": PerCell(((3.0, 5.0), (4.0, 2.0)), (2.0, 1.0)),
    "batch": PoissonSampled(0.05, Gaussian(1.2)),
    "batch of histograms": PoissonSampled(0.05, Gaussian(1.2), (math.sqrt(2),)),
    "joint batch": PoissonSampled(0.05, Composed((Gaussian(1.5), Gaussian(2.0)))),
    "batch by cell": PoissonSampled(0.05, PerCell(((2.0, 3.0),), (1.0,))),
    "visible": VisiblySampled(0.05, Composed((Gaussian(3.0), Gaussian(2.0)))),
    "selection": PrivateSelection(Gaussian(8.0), 5.0, 1.0),
    "selection of batches": PrivateSelection(
        Repeated(PoissonSampled(0.05, Gaussian(2.0)), 10), 5.0, math.inf
    ),
    "parts": Composed(tuple(OnPart(Gaussian(3.0), part, 4) for part in range(4))),
}
SHOWN = ("visible", "parts")  # who is there is shown: priced under replace-one alone
CASES = [(kind, n) for kind in KINDS for n in BOTH if n == REPLACE or kind not in SHOWN]
every = pytest.mark.parametrize(("kind", "neighbours"), CASES)


# ---- rules


@every
def test_equal_trees_cost_the_same_by_every_route(kind: str, neighbours: str) -> None:
    one, other = KINDS[kind], Laplace(9.0)
    ways: list[Any] = [
        [Repeated(one, 4), other, NoOp()],
        [one, Repeated(one, 2), other, one],
        Composed((Repeated(Composed((one, one)), 2), Repeated(other, 1))),
        [Repeated(Repeated(one, 2), 2), other],
        from_json_dict(
            json.loads(json.dumps(to_json_dict(events.compose([Repeated(one, 4), other]))))
        ),
        list(spelled_out(events.compose([other, Repeated(one, 4)]))),
    ]
    first, *rest = (routes_of(way, DELTA, neighbours) for way in ways)
    assert all(found == first for found in rest)
    least = min(first.values())
    assert least <= price(ways[0], DELTA, neighbours).epsilon <= least * (1 + 1e-3)


@every
def test_more_of_it_costs_more_and_more_noise_less(kind: str, neighbours: str) -> None:
    one = KINDS[kind]
    costs = [epsilon(Repeated(one, n), DELTA, neighbours) for n in (1, 2, 8)]
    assert 0 < costs[0] < costs[1] < costs[2] < math.inf
    if kind != "approximate":
        louder = [epsilon(with_noise(one, z), DELTA, neighbours) for z in (0.5, 1.0, 2.0, 4.0)]
        assert louder == sorted(louder, reverse=True)
        assert len(set(louder)) == 4
    deltas = [delta(one, e, neighbours) for e in (0.0, 0.05, 0.5, math.inf)]
    assert deltas == sorted(deltas, reverse=True)
    assert delta(Repeated(one, 8), costs[2], neighbours) <= DELTA * (1 + 1e-3)
    assert epsilon(one, 1e-2, neighbours) <= epsilon(one, 1e-8, neighbours)


def test_the_relation_changes_sampled_and_per_cell_events_only() -> None:
    for kind, event in KINDS.items():
        if kind in SHOWN:
            with pytest.raises(InputError, match="where presence is protected"):
                epsilon(event, DELTA)
            continue
        one, two = (epsilon(event, DELTA, neighbours) for neighbours in BOTH)
        moved = "batch" in kind or "cell" in kind
        assert two > 1.05 * one if moved else one == two


def test_a_replaced_row_costs_what_its_spread_says() -> None:
    def batches(*spread: float, rate: float = 0.1) -> Event:
        return Repeated(PoissonSampled(rate, Gaussian(1.0), spread or None), 20)

    costs = [epsilon(batches(s), DELTA, REPLACE) for s in (0.0, 0.3, 1.0, 1.4, 2.0)]
    assert costs[0] == 0
    assert costs == sorted(set(costs))
    assert costs[-1] == epsilon(batches(), DELTA, REPLACE)
    full = epsilon(batches(1.4, rate=1.0), DELTA, REPLACE)
    assert full == pytest.approx(gaussian_epsilon(1.4 * math.sqrt(20), DELTA))


def test_pure_totals_and_delta_zero() -> None:
    pure = [Laplace(2.0), DiscreteLaplace(4.0, 1), Exponential(0.3), Pure(0.1)]
    assert epsilon(pure, 0.0) == pytest.approx(0.5 + 0.25 + 0.3 + 0.1)
    assert epsilon(PrivateSelection(Pure(0.5), 10.0, 1.0), 0.0) == pytest.approx(1.5)
    for kind in ("gaussian", "zero-concentrated", "batch", "approximate"):
        assert epsilon(KINDS[kind], 0.0) == math.inf
    assert epsilon(Repeated(Pure(0.1), 10), 0.0) == math.nextafter(1.0, 2.0)
    assert Fraction(epsilon(Laplace(3.0), 0.0)) >= Fraction(1, 3)


@given(st.lists(st.tuples(st.floats(1e-3, 5.0), st.integers(1, 400), st.booleans()), min_size=1))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_pure_epsilons_add_up_to_no_less_than_their_exact_sum(
    pieces: list[tuple[float, int, bool]],
) -> None:
    ways = [
        (DiscreteLaplace(x), 1 / Fraction(x)) if y else (Pure(x), Fraction(x)) for x, _, y in pieces
    ]
    counts = [count for _, count, _ in pieces]
    exact = sum(own * count for (_, own), count in zip(ways, counts, strict=True))
    found = epsilon([Repeated(e, n) for (e, _), n in zip(ways, counts, strict=True)], 0.0)
    assert exact <= Fraction(found) <= exact * Fraction(1 + 1e-14)


def test_nothing_and_everything() -> None:
    nothing: tuple[Event, ...] = (
        NoOp(),
        Repeated(NonPrivate(), 0),
        VisiblySampled(0.5, NoOp()),
        Composed(()),
    )
    for event in nothing:
        assert price(event, 0.0, REPLACE).route == "nothing read"
        assert epsilon(event, 0.0, REPLACE) == 0
    for event in (NonPrivate(), PrivateSelection(Composed((Gaussian(1.0), NonPrivate())), 2, 1)):
        found = price([Gaussian(5.0), event], 1e-3)
        assert (found.epsilon, found.route) == (math.inf, "none")
        assert delta(event, 3.0) == delta(event, math.inf) == 1
    assert delta(Gaussian(1.0), math.inf) == 0
    assert delta([Approximate(1.0, 0.1), Gaussian(1.0)], math.inf) == pytest.approx(0.1)
    assert math.isinf(epsilon([Approximate(0.5, 3e-6)] * 2, 5e-6))


@pytest.mark.parametrize("bad", [-0.1, 1.0, math.nan, "x", None, True])
def test_a_bad_delta_is_an_error_that_names_it(bad: Any) -> None:
    with pytest.raises(InputError, match=r"^delta: expected"):
        epsilon(Gaussian(1.0), bad)


def test_bad_events_and_relations_are_errors() -> None:
    for bad, words in (("gaussian", "^events: expected"), ([1.0], "^event: expected")):
        with pytest.raises(InputError, match=words):
            epsilon(bad, 1e-6)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="neighbours"):
        epsilon(Gaussian(1.0), 1e-6, "swap")
    with pytest.raises(InputError, match=r"1048576, got 1048577\. Round to coarser"):
        DiscreteLaplace(1.0, (1 << 20) + 1)
    inside = (Laplace(1.0), DiscreteLaplace(1.0), Exponential(1.0), OnPart(Gaussian(1.0), 0, 2))
    for event in inside:
        with pytest.raises(InputError, match="Gaussian noise"):
            PoissonSampled(0.1, event)
        with pytest.raises(InputError, match="Gaussian noise"):
            VisiblySampled(0.1, event)


# ---- fixed parts of the rows (theory.md#t8)


def epoch(event: Event, parts: int) -> Event:
    return Composed(tuple(OnPart(event, part, parts) for part in range(parts)))


NOISY = [KINDS["gaussian"], DiscreteLaplace(4.0, 2), KINDS["per cell"], Repeated(Gaussian(6.0), 3)]


@pytest.mark.parametrize("event", NOISY)
def test_an_epoch_over_all_parts_costs_one_release_on_all_rows(event: Event) -> None:
    whole = routes_of(Repeated(event, 5), DELTA, REPLACE)
    for parts in (1, 2, 7):
        assert routes_of(Repeated(epoch(event, parts), 5), DELTA, REPLACE) == whole
    again = [OnPart(event, 1, 4)] * 3
    assert epsilon([*again, OnPart(event, 0, 4)], DELTA, REPLACE) == epsilon(
        [event] * 3, DELTA, REPLACE
    )
    two = [OnPart(event, 0, 4), OnPart(event, 1, 4), OnPart(event, 0, 5)]  # she is in one of each
    assert epsilon(two, DELTA, REPLACE) == epsilon([event] * 2, DELTA, REPLACE)
    with pytest.raises(InputError, match="got 'OnPart'"):
        epsilon(PrivateSelection(OnPart(event, 0, 2), 2, 1), DELTA)
    assert epsilon(OnPart(event, 0, 1), DELTA) == epsilon(event, DELTA)


small = st.tuples(
    st.sampled_from([Gaussian(2.0), Laplace(3.0)]), st.integers(0, 2), st.integers(1, 3)
)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(small, max_size=5))
def test_a_price_is_never_below_that_of_what_any_one_person_was_in(
    chosen: list[tuple[Event, int, int]],
) -> None:
    """Enumerated: everybody's place in the partitions into 2 and into 3."""
    events = [OnPart(event, part % parts, parts) for event, part, parts in chosen]
    worst = 0.0
    for place in itertools.product(range(1), range(2), range(3)):
        hers = [event.event for event in events if event.part == place[event.parts - 1]]
        worst = max(worst, epsilon(hers, DELTA, REPLACE))
    assert epsilon(events, DELTA, REPLACE) >= worst * (1 - 1e-3)  # grids differ between lists


# ---- another library


def theirs(event: Any, at: float, neighbours: str = "add-remove", grid: float = 1e-4) -> float:
    relation = dp.NeighboringRelation
    related = relation.REPLACE_ONE if neighbours == REPLACE else relation.ADD_OR_REMOVE_ONE
    accountant = pld.PLDAccountant(related, value_discretization_interval=grid)
    return float(accountant.compose(event).get_epsilon(at))


def their_moments(event: Any, at: float) -> float:
    return float(rdp.RdpAccountant().compose(event).get_epsilon(at))


def their_batches(q: float, z: float, count: int) -> Any:
    return dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(z)), count)


@both
@pytest.mark.parametrize(
    ("q", "z", "count"), [(0.02, 1.0, 1000), (0.001, 0.8, 10_000), (0.5, 5.0, 50), (0.05, 1.1, 1)]
)
def test_secret_batches(q: float, z: float, count: int, neighbours: str) -> None:
    events = Repeated(PoissonSampled(q, Gaussian(z)), count)
    ours = price(events, 1e-5, neighbours)
    assert ours.route == "privacy-loss distribution"
    reference = theirs(their_batches(q, z, count), 1e-5, neighbours)
    assert ours.epsilon == pytest.approx(reference, rel=5e-4)
    if neighbours == "add-remove" and z == 1.0:
        moments, known = (
            routes_of(events, 1e-5)["Renyi"],
            their_moments(their_batches(q, z, count), 1e-5),
        )
        assert known * 0.97 <= moments <= known * (1 + 2e-3)


@pytest.mark.parametrize(
    ("event", "reference"),
    [
        (Repeated(Laplace(2.0), 5), dp.SelfComposedDpEvent(dp.LaplaceDpEvent(2.0), 5)),
        (
            Repeated(DiscreteLaplace(2.0, 3), 5),
            dp.SelfComposedDpEvent(DiscreteLaplaceDpEvent(1 / 6, 3), 5),
        ),
        (
            Composed((Laplace(1.0), Gaussian(3.0))),
            dp.ComposedDpEvent([dp.LaplaceDpEvent(1.0), dp.GaussianDpEvent(3.0)]),
        ),
    ],
)
def test_other_loss_distributions(event: Event, reference: Any) -> None:
    assert epsilon(event, 1e-5) == pytest.approx(theirs(reference, 1e-5), rel=2e-4)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, math.inf])
def test_private_selection(shape: float) -> None:
    reference = their_moments(RepeatAndSelectDpEvent(dp.GaussianDpEvent(5.0), 10.0, shape), 1e-6)
    ours = epsilon(PrivateSelection(Gaussian(5.0), 10.0, shape), 1e-6)
    assert reference * 0.98 <= ours <= reference * (1 + 1e-3)


def test_mixed_events_under_replace_one_where_their_multipliers_mean_other_things() -> None:
    """Unsampled ours is over the sensitivity, theirs over one row: they double it, and ours is not."""
    histogram, q, z = 4.0, 0.02, 1.0
    for neighbours in BOTH:
        assert epsilon(Gaussian(1.0), 1e-5, neighbours) == pytest.approx(
            theirs(dp.GaussianDpEvent(1.0), 1e-5), rel=1e-5
        )
    mixed = [Gaussian(histogram), Repeated(PoissonSampled(q, Gaussian(z)), 200)]
    doubled = dp.ComposedDpEvent([dp.GaussianDpEvent(2 * histogram), their_batches(q, z, 200)])
    ours = epsilon(mixed, 1e-5, REPLACE)
    assert ours == pytest.approx(theirs(doubled, 1e-5, REPLACE), rel=5e-4)


def test_one_batch_is_one_event_and_its_parts_are_merged_whatever_their_types() -> None:
    joint = Composed((Gaussian(10), Gaussian(np.float32(0.5))))  # type: ignore[arg-type]
    ours = epsilon(Repeated(PoissonSampled(0.1, joint), 100), 1e-5)
    merged = (0.01 + 4.0) ** -0.5
    assert ours == pytest.approx(theirs(their_batches(0.1, merged, 100), 1e-5, grid=1e-3), rel=1e-3)
    apart = [Repeated(PoissonSampled(0.1, part), 100) for part in (Gaussian(2.0), Gaussian(2.0))]
    together = Repeated(PoissonSampled(0.1, Composed((Gaussian(2.0), Gaussian(2.0)))), 100)
    assert epsilon(together, 1e-5) > 1.02 * epsilon(apart, 1e-5)
    tight = PoissonSampled(0.1, Composed((Gaussian(2.0), Gaussian(2.0))), (2.0, math.sqrt(2)))
    assert epsilon(Repeated(tight, 100), 1e-5, REPLACE) < epsilon(together, 1e-5, REPLACE)


def test_fifty_choices_compose_closer_by_moments_and_five_by_losses() -> None:
    found = routes_of(Repeated(Exponential(0.5), 50), 1e-6)
    assert found["privacy-loss distribution"] == pytest.approx(10.85, abs=0.01)
    assert found["Renyi"] <= 10.09  # what a epsilon^2 / 8 alone gives
    assert price(Repeated(Exponential(0.5), 50), 1e-6).route == "Renyi"
    assert price(Repeated(Exponential(0.5), 5), 0.1).route == "privacy-loss distribution"
    assert epsilon(ZeroConcentrated(0.5), 1e-6) == pytest.approx(5.222, abs=2e-3)


def test_visible_batches_are_a_mixture_with_nothing() -> None:
    parts = pld.privacy_loss_distribution
    base = parts.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3)
    idle = parts.identity(value_discretization_interval=1e-3)
    mixed = base.compute_mixture(idle, 0.05).self_compose(100)
    found = epsilon(Repeated(VisiblySampled(0.05, Gaussian(2.0)), 100), 1e-6, REPLACE)
    assert found == pytest.approx(mixed.get_epsilon_for_delta(1e-6), rel=2e-3)
    assert epsilon(VisiblySampled(1.0, Gaussian(10.0)), 1e-6) == epsilon(Gaussian(10.0), 1e-6)


# ---- never below the truth


@pytest.mark.parametrize("mu", [1e-3, 0.05, 1.0, 6.0, 40.0])
@pytest.mark.parametrize("d", [1e-30, 1e-12, 1e-5, 0.1])
def test_a_gaussian_through_the_grid_is_the_closed_form_from_above(mu: float, d: float) -> None:
    exact = gaussian_epsilon(mu, d)
    found = routes_of(Gaussian(1 / mu), d)["privacy-loss distribution"]
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-3) + 1e-9


@pytest.mark.parametrize("count", [1, 3, 40])
def test_randomised_responses_are_a_binomial(count: int) -> None:
    e, wins = 0.3, np.arange(count + 1)
    mass = binom.pmf(wins, count, 1 / (1 + math.exp(-e)))
    for at in (0.0, 0.5, 2.0, 4.0):
        exact = float(mass @ np.maximum(0.0, -np.expm1(at - e * (2 * wins - count))))
        found = delta(Repeated(Pure(e), count), at)
        assert exact - 1e-15 <= found <= exact * 1.002 + 1e-13


def test_what_a_window_cuts_off_and_a_transform_rounds_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a window that cuts off mass that matters, and roundings that do, prices only rise."""

    def found() -> float:
        return routes_of(Repeated(Laplace(3.0), 30), 1e-6)["privacy-loss distribution"]

    close = found()
    for name, value in (("TILTED_TAIL", 0.5), ("TILTED_TAIL", 3.0), ("ROUNDING", 1e-10)):
        with monkeypatch.context() as patch:
            patch.setattr(compose, name, value)
            assert found() > close * (1 + 1e-9), (name, value)
    whole = compose.Total._window

    def cut(self: compose.Total, tilt: float) -> tuple[int, int, float]:
        """It ends just above the answer; what is beyond comes round below it."""
        return whole(self, tilt)[0], int(close / self.step) + 5, tilt + 1 / self._scale

    with monkeypatch.context() as patch:
        patch.setattr(compose.Total, "_window", cut)
        assert found() >= close
    assert found() == close


@pytest.mark.parametrize("mean", [1.0, 5.0, 40.0])
def test_what_one_run_loses_a_selection_loses_as_often_as_it_runs(mean: float) -> None:
    """The best of a geometric number of runs: each gives itself away with probability `lost`, else
    answers by randomised response, and the truth is better than the lie."""
    e, lost = 0.3, 1e-3
    stop, wins = 1 / mean, 1 / (1 + math.exp(-e))

    def best(low: float, high: float) -> list[float]:
        """Chances of the best: of a geometric number of runs P(all <= x) = stop x/(1-(1-stop)x)."""
        sums = [stop * x / (1 - (1 - stop) * x) for x in (0.0, low, low + high, 1.0)]
        return [b - a for a, b in itertools.pairwise(sums)]  # the worse, the better, given away

    event = PrivateSelection(Approximate(e, lost), mean, 1.0)
    p, q = (
        best((1 - lost) * (1 - wins), (1 - lost) * wins),
        best((1 - lost) * wins, (1 - lost) * (1 - wins)),
    )
    for at in (0.0, 0.3, 0.9):
        # What is given away under one table cannot come under the other.
        both_ways = ((p, q), (q, p))
        true = max(
            x[2] + sum(max(0.0, a - math.exp(at) * b) for a, b in zip(x[:2], y[:2], strict=True))
            for x, y in both_ways
        )
        assert delta(event, at) >= true * (1 - 1e-9)
    assert epsilon(event, 0.99 * mean * lost * (1 - mean * lost)) == math.inf
    assert epsilon(event, 1.01 * mean * lost) <= 40 * e
    assert not Filter.create(Promise(50.0, mean * lost / 2), "renyi").fits(event)


def _pair(p: Any, up: Any, down: Any, order: float) -> Any:
    step = mpmath.mpf(order) - 1
    return mpmath.log(p * mpmath.exp(step * up) + (1 - p) * mpmath.exp(step * down)) / step


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.5, 30.0])
def test_moments_are_never_below_many_digits_of_precision(size: float) -> None:
    def moments(event: Event) -> Any:
        return mechanism(event, "add-remove").moments.values

    with mpmath.workdps(60):
        e = mpmath.mpf(size)
        one = 1 / (1 + mpmath.exp(-e))
        response, lattice = moments(Pure(size)), moments(DiscreteLaplace(1 / size, 1))
        laplace, chosen = moments(Laplace(1 / size)), moments(Exponential(size))
        for index in range(0, len(curves.ORDERS), 40):
            order = float(curves.ORDERS[index])
            exact, a = _pair(one, e, -e, order), mpmath.mpf(order)
            for found in (response[index], lattice[index]):
                assert exact * (1 - 1e-14) <= found <= exact * (1 + 1e-6)
            share = a / (2 * a - 1)
            exact = mpmath.log(share * mpmath.exp((a - 1) * e) + (1 - share) * mpmath.exp(-a * e))
            exact /= a - 1
            assert exact * (1 - 1e-14) <= laplace[index] <= exact * (1 + 1e-5)
            # Of the two-point pairs of range e every one is below, and one is near.
            shares = [e * k / 40 for k in range(1, 40)]
            pairs = [
                _pair((1 - mpmath.exp(t - e)) / (1 - mpmath.exp(-e)), t, t - e, order)
                for t in shares
            ]
            assert max(pairs) * (1 - 1e-14) <= chosen[index] <= size * size * order / 8
            assert chosen[index] <= max(pairs) * 1.05 or size > 1 or order > 10


@pytest.mark.parametrize(("q", "z"), [(1e-6, 5.0), (1e-5, 50.0), (1e-4, 1.0), (0.02, 1.0)])
def test_moments_of_a_batch_are_at_least_those_of_its_pair(q: float, z: float) -> None:
    whole = mechanism(PoissonSampled(q, Gaussian(z)), "add-remove").moments
    assert whole.leak < 1e-190
    if q < 1e-3:
        # E (1 - q + q g)^a = 1 + a (a-1)/2 q^2 E (g-1)^2 + O((a q)^3), E (g-1)^2 = e^(1/z^2) - 1.
        for index in range(0, 200, 20):
            order = curves.ORDERS[index]
            first, far = order * q * q * math.expm1(z**-2) / 2, 20 * order * q
            assert first * (1 - far) <= whole.values[index] <= first * (1.01 + far)
        return
    x = np.arange(-15, 25, 1e-3)
    none, ratio = norm.pdf(x), 1 - q + q * np.exp(x - 0.5)
    for near in (1.001, 1.5, 3, 8):
        index = int(np.argmin(np.abs(curves.ORDERS - near)))
        order = curves.ORDERS[index]
        exact = math.log(float(none @ ratio**order) * 1e-3) / (order - 1)
        assert exact * (1 - 1e-6) <= whole.values[index] <= exact * 1.01


@pytest.mark.parametrize("count", [10**4, 10**8])
def test_many_vanishing_choices_against_the_binomial(count: int) -> None:
    # One run for certain (mean 1) of randomised response; the Laplace's atom at loss 1 has
    # probability 1/2.
    size, middle = 1e-6, count // 2
    wins = np.arange(max(0, middle - 10**6), min(count, middle + 10**6) + 1)
    mass = binom.pmf(wins, count, 1 / (1 + math.exp(-size)))
    exact = 0.5 * float(mass @ np.maximum(0.0, -np.expm1(-(2 * wins - count) * size)))
    choices = Repeated(PrivateSelection(Pure(size), 1, 1), count)
    assert exact <= delta([choices, Laplace(1.0)], 1.0)
    assert exact <= delta([Repeated(Pure(size), count), Laplace(1.0)], 1.0) <= 20 * exact


@pytest.mark.parametrize("mu", [1e-90, 1e-15, 1e-7, 1e-6, 1e-3, 1.0, 60.0])
def test_profiles_of_a_gaussian_by_many_digits(mu: float) -> None:
    with mpmath.workdps(250):
        for e in (0.0, 0.1 * mu, 3 * mu, mu * mu / 2 + 20 * mu):
            x = mpmath.mpf(mu) / 2 - mpmath.mpf(e) / mpmath.mpf(mu)
            exact = mpmath.ncdf(x) - mpmath.exp(mpmath.mpf(e)) * mpmath.ncdf(x - mpmath.mpf(mu))
            array = float(curves.gaussian(mu).forward(np.array([e]))[0])
            for found in (curves.gaussian_delta(e, mu), array):
                assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-6)


def _replaced(c: float, d: float, q: float, e: float) -> Any:
    """theory.md#t3's formula with its root by bisection."""
    one, two, rate, at = map(mpmath.mpf, (c, d, q, e))
    k, a = (1 - rate) / rate, mpmath.exp(at)

    def total(t: Any) -> Any:
        first = k * (a - 1) * mpmath.exp(one * t - one**2 / 2)
        return first + a * mpmath.exp(two * t - two**2 / 2)

    high = two / 2 - at / two
    low = high - 1
    while total(low) > 1:
        low = high - 2 * (high - low)
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (low, middle) if total(middle) > 1 else (middle, high)
    rest = k * (a - 1) * mpmath.ncdf(low - one) + a * mpmath.ncdf(low - two)
    return rate * (mpmath.ncdf(low) - rest)


@pytest.mark.parametrize("c", [0.5, 15.0])
@pytest.mark.parametrize("ratio", [1e-13, 1e-7, 1e-3])
def test_t3_two_rows_that_hardly_differ(c: float, ratio: float) -> None:
    d = c * ratio
    with mpmath.workdps(50):
        for t, share in itertools.product((-0.3, -6.0), (0.5, 2.0)):
            e = d * d / 2 - d * t
            q = 1 / (1 + share / (math.expm1(e) * math.exp(c * t - c * c / 2)))
            found = float(curves.poisson_replace_one(c, d, q).forward(np.array([e]))[0])
            exact = _replaced(c, d, q, e)
            assert found >= exact * (1 - 1e-8) or exact < 1e-290


@pytest.mark.parametrize("q", [0.05, 0.5, 1.0])
def test_t3_the_antipodal_pair_is_reached_and_dominates_every_other(q: float) -> None:
    c, width, at = 0.9, 0.03, np.array([0.0, 0.1, 0.7])
    x = np.arange(-7, 7, width) + width / 2

    def apart(u: tuple[float, float], v: tuple[float, float]) -> Any:
        def batch(w: tuple[float, float]) -> Any:
            bell = np.multiply.outer(norm.pdf(x - w[0]), norm.pdf(x - w[1]))
            return (1 - q) * np.multiply.outer(norm.pdf(x), norm.pdf(x)) + q * bell

        p, r = batch(u), batch(v)
        return np.array([np.maximum(p - math.exp(e) * r, 0).sum() * width**2 for e in at])

    farthest = curves.poisson_replace_one(c, 2 * c, q).forward(at)
    assert farthest == pytest.approx(apart((c, 0.0), (-c, 0.0)), abs=1e-4)
    for angle, other in ((0.4, c), (1.5, c), (2.6, 0.5), (0.0, 0.1)):
        u, v = (c, 0.0), (other * math.cos(angle), other * math.sin(angle))
        bound = curves.poisson_replace_one(c, math.dist(u, v), q).forward(at)
        assert np.all(apart(u, v) <= bound + 1e-4)
        assert np.all(bound <= farthest + 1e-9)


@pytest.mark.parametrize("q", [0.01, 0.3, 1.0])
def test_t2_both_directions_are_those_of_the_mixture(q: float) -> None:
    mu, width, at = 0.8, 5e-4, np.array([0.0, 0.05, 0.3, 1.0])
    x = np.arange(-20, 22, width) + width / 2
    none = norm.pdf(x)
    mixed = (1 - q) * none + q * norm.pdf(x - mu)
    found = curves.poisson_add_remove(mu, q)
    for side, (one, other) in zip(found.sides, ((mixed, none), (none, mixed)), strict=True):
        exact = [np.maximum(one - math.exp(e) * other, 0.0).sum() * width for e in at]
        assert side(at) == pytest.approx(exact, abs=2e-7)


@pytest.mark.parametrize("scale", [0.6, 1.5, 4.0])
@pytest.mark.parametrize(("one", "two"), [(1, 0), (1, 1), (2, 3)])
def test_t5_an_l1_budget_split_over_two_counts_costs_no_more_than_one_count(
    scale: float, one: int, two: int
) -> None:
    """Integers, by enumeration; and Laplace noise on a grid."""

    def split(x: Any, b: float, width: float, e: float) -> float:
        def law(shift: float) -> Any:
            return np.exp(-np.abs(x - shift) / b)

        p, r = (np.multiply.outer(law(i), law(j)) for i, j in ((0, 0), (one * width, two * width)))
        return float(np.maximum(0, p - math.exp(e) * r).sum() / p.sum())

    whole = one + two
    for e in (0.0, 0.05, 0.3, 1.0, 2.5):
        exact, found = split(np.arange(-60, 66), scale, 1, e), DiscreteLaplace(scale / whole, whole)
        assert exact - 1e-6 <= delta(found, e) <= (exact + 1e-6 if two == 0 else 1.0)
    fine = np.arange(-10, 11.5, 0.03) + 0.015
    for e in (0.0, 0.3):
        assert split(fine, 1.0, 0.3, e) <= delta(Laplace(1 / (0.3 * whole)), e) + 1e-3


EXTREME: list[tuple[Event, float]] = [
    (Pure(1e300), 1e300),
    (Composed((Pure(1e300), Gaussian(1.0))), 1e300),
    (Composed((Laplace(1e-90), Gaussian(1.0))), 1e90),
    (DiscreteLaplace(1e-50, 3), 1e50),
    (PoissonSampled(0.01, Gaussian(1e90)), 1e-12),
    (Exponential(1e300), 1e300),
]


@both
@pytest.mark.parametrize(("event", "most"), EXTREME)
def test_losses_beyond_floats_have_a_price_on_every_route(
    event: Event, most: float, neighbours: str
) -> None:
    found = routes_of(event, 1e-6, neighbours)
    assert price(event, 1e-6, neighbours).epsilon <= most * (1 + 1e-9)
    assert all(value >= 0.99 * most for value in found.values()) or most < 1
    assert 0 <= delta(event, 1.0, neighbours) <= 1


@pytest.mark.parametrize("at", [1e-12, 1e-16, 1e-30, 1e-100])
def test_a_bounded_loss_beside_others_at_tiny_deltas(at: float) -> None:
    bounded = [Laplace(1.5), Exponential(0.1), DiscreteLaplace(2.0, 3)]
    pure, alone = 1 / 1.5 + 0.1 + 0.5, epsilon(Gaussian(2.0), at)
    found = routes_of([*bounded, Gaussian(2.0)], at)["privacy-loss distribution"]
    assert alone < found <= alone + pure + 1e-6
    large = epsilon([DiscreteLaplace(1.0, 1 << 20), Gaussian(1.0)], 1e-6)
    assert 4.8 < large < 7


def test_thinned_atoms_of_a_large_sensitivity_are_from_above() -> None:
    """Against Laplace noise, which integers of many steps come near, and the losses in full."""
    z, moved = 2.0, 2000
    t, x = 1 / (z * moved), np.arange(1, moved)
    losses = np.concatenate(([moved * t], (moved - 2.0 * x) * t))
    ends = 1 / (1 + math.exp(-t))
    masses = np.concatenate(([ends], math.tanh(t / 2) * np.exp(-x * t)))
    for e in (0.0, 0.1, 0.3, 0.45):
        exact = float(masses @ np.maximum(0.0, -np.expm1(e - losses)))
        assert exact <= delta(DiscreteLaplace(z, moved), e) <= exact * 1.02
