"""The accountant against dp_accounting where that is right, against its traps, and against figures
of the theory."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting import pld, rdp
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, RepeatAndSelectDpEvent, ZCDpEvent

from fairveil.core import curves as profiles
from fairveil.core import renyi as renyi
from fairveil.core.cost import delta, epsilon, price, routes_of
from fairveil.core.events import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
)

RELATIONS = {
    "add-remove": dp.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": dp.NeighboringRelation.REPLACE_ONE,
}


def theirs(
    event: dp.DpEvent, at: float, neighbours: str = "add-remove", grid: float = 1e-4
) -> float:
    accountant = pld.PLDAccountant(RELATIONS[neighbours], value_discretization_interval=grid)
    accountant.compose(event)
    return float(accountant.get_epsilon(at))


def their_moments(event: dp.DpEvent, at: float, neighbours: str = "add-remove") -> float:
    accountant = rdp.RdpAccountant(neighboring_relation=RELATIONS[neighbours])
    accountant.compose(event)
    return float(accountant.get_epsilon(at))


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(
    ("q", "z", "count"), [(0.02, 1.0, 1000), (0.001, 0.8, 10_000), (0.5, 5.0, 50), (0.05, 1.1, 1)]
)
def test_poisson_gaussians(q: float, z: float, count: int, neighbours: str) -> None:
    ours = price(Repeated(PoissonSampled(q, Gaussian(z)), count), 1e-5, neighbours)
    reference = theirs(
        dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(z)), count),
        1e-5,
        neighbours,
    )
    assert ours.epsilon == pytest.approx(reference, rel=5e-4)
    assert ours.route == "privacy-loss distribution"


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
        (
            Repeated(PoissonSampled(0.1, Laplace(1.0)), 20),
            dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(1.0)), 20),
        ),
    ],
)
def test_other_loss_distributions(event: Event, reference: dp.DpEvent) -> None:
    assert epsilon(event, 1e-5) == pytest.approx(theirs(reference, 1e-5), rel=2e-4)


def test_moments_of_a_poisson_batch() -> None:
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.02, dp.GaussianDpEvent(1.0)), 500)
    ours = routes_of(Repeated(PoissonSampled(0.02, Gaussian(1.0)), 500), 1e-5)["Renyi"]
    assert their_moments(event, 1e-5) * 0.97 <= ours <= their_moments(event, 1e-5) * (1 + 2e-3)
    whole = renyi.curve(PoissonSampled(0.02, Gaussian(1.0)), "add-remove")
    width = 1e-3
    x = np.arange(-15, 25, width)
    none, ratio = np.exp(-x * x / 2) / math.sqrt(2 * math.pi), 0.98 + 0.02 * np.exp(x - 0.5)
    for near in (1.001, 1.5, 3, 8):
        index = int(np.argmin(np.abs(renyi.ORDERS - near)))
        order = renyi.ORDERS[index]
        exact = math.log(float(none @ ratio**order) * width) / (order - 1)
        assert exact * (1 - 1e-6) <= whole.values[index] <= exact * 1.01
    assert whole.leak < 1e-190


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, math.inf])
def test_private_selection(shape: float) -> None:
    reference = their_moments(RepeatAndSelectDpEvent(dp.GaussianDpEvent(5.0), 10.0, shape), 1e-6)
    ours = epsilon(PrivateSelection(Gaussian(5.0), 10.0, shape), 1e-6)
    assert ours == pytest.approx(reference, rel=0.02)
    assert ours <= reference * (1 + 1e-3)


def test_trap_1_the_multiplier_is_over_the_sensitivity_unsampled_and_over_one_row_sampled() -> None:
    assert epsilon(Gaussian(0.5), 1e-5) == pytest.approx(9.997, abs=1e-3)
    assert theirs(dp.GaussianDpEvent(1.0), 1e-5, "replace-one") == pytest.approx(
        epsilon(Gaussian(0.5), 1e-5), rel=1e-5
    )
    for neighbours in RELATIONS:
        assert epsilon(Gaussian(1.0), 1e-5, neighbours) == pytest.approx(
            theirs(dp.GaussianDpEvent(1.0), 1e-5), rel=1e-5
        )


def test_trap_1b_mixed_events_under_replace_one() -> None:
    histogram, q, z = 4.0, 0.02, 1.0
    ours = epsilon(
        [Gaussian(histogram), Repeated(PoissonSampled(q, Gaussian(z)), 200)], 1e-5, "replace-one"
    )
    steps = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(z)), 200)
    doubled = dp.ComposedDpEvent([dp.GaussianDpEvent(2 * histogram), steps])
    assert ours == pytest.approx(theirs(doubled, 1e-5, "replace-one"), rel=5e-4)


def test_trap_2_two_batches_understate_one() -> None:
    joint = Repeated(PoissonSampled(0.017, Composed((Gaussian(2.0), Laplace(2.0)))), 2000)
    apart = [
        Repeated(PoissonSampled(0.017, Gaussian(2.0)), 2000),
        Repeated(PoissonSampled(0.017, Laplace(2.0)), 2000),
    ]
    at = 9.3e-6
    assert epsilon(apart, at) == pytest.approx(2.21, abs=0.01)
    assert epsilon(joint, at) == pytest.approx(2.40, abs=0.01)
    demo = Composed((Gaussian(4.0), Laplace(2.0)))
    assert epsilon(Repeated(PoissonSampled(0.138, demo), 1000), 1e-4) == pytest.approx(
        11.21, abs=0.02
    )
    two = [Repeated(PoissonSampled(0.138, part), 1000) for part in demo.events]
    assert epsilon(two, 1e-4) == pytest.approx(10.83, abs=0.02)
    one_step = PoissonSampled(0.017, Composed((Gaussian(1.0), Laplace(1.0))))
    assert delta(one_step, 1.0) == pytest.approx(1.9e-6, rel=0.05)
    assert delta(
        [PoissonSampled(0.017, Gaussian(1.0)), PoissonSampled(0.017, Laplace(1.0))], 1.0
    ) == pytest.approx(5.9e-8, rel=0.05)


def test_trap_3_multipliers_of_any_number_type_are_merged() -> None:
    events = Repeated(PoissonSampled(0.1, Composed((Gaussian(10), Gaussian(np.float32(0.5))))), 100)
    found = routes_of(events, 1e-5)
    dropped, kept = 0.383, 37.11
    assert all(10 * dropped < value < kept for value in found.values())
    merged = dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent((0.01 + 4.0) ** -0.5))
    assert epsilon(events, 1e-5) == pytest.approx(
        theirs(dp.SelfComposedDpEvent(merged, 100), 1e-5, grid=1e-3), rel=1e-3
    )


def test_zero_concentrated_figures() -> None:
    assert epsilon(ZeroConcentrated(0.5), 1e-6) == pytest.approx(5.222, abs=2e-3)
    assert epsilon(Gaussian(1.0), 1e-6) == pytest.approx(4.887, abs=1e-3)
    assert epsilon(DiscreteGaussian(1.0), 1e-6) == epsilon(ZeroConcentrated(0.5), 1e-6)


def test_fifty_choices() -> None:
    found = routes_of(Repeated(Exponential(0.5), 50), 1e-6)
    assert found["privacy-loss distribution"] == pytest.approx(10.85, abs=0.01)
    assert routes_of(Repeated(ZeroConcentrated(0.5**2 / 8), 50), 1e-6)["Renyi"] == pytest.approx(
        10.09, abs=0.02
    )
    assert found["Renyi"] <= 10.09
    assert price(Repeated(Exponential(0.5), 50), 1e-6).route == "Renyi"
    assert theirs(dp.SelfComposedDpEvent(dp.LaplaceDpEvent(2.0), 50), 1e-6) > found["Renyi"]
    assert price(Repeated(Exponential(0.5), 5), 0.1).route == "privacy-loss distribution"
    gaussian = Composed((Repeated(Gaussian(10.0), 50), Repeated(ZeroConcentrated(0.5**2 / 8), 50)))
    reference = dp.ComposedDpEvent([dp.GaussianDpEvent(10.0), ZCDpEvent(0.5**2 / 8)])
    assert epsilon(gaussian, 1e-6) == pytest.approx(
        their_moments(dp.SelfComposedDpEvent(reference, 50), 1e-6), rel=5e-3
    )


def test_visible_batches_are_a_mixture_with_nothing() -> None:
    base = pld.privacy_loss_distribution.from_gaussian_mechanism(
        2.0, value_discretization_interval=1e-3
    )
    idle = pld.privacy_loss_distribution.identity(value_discretization_interval=1e-3)
    mixture = base.compute_mixture(idle, 0.05)
    assert epsilon(
        Repeated(VisiblySampled(0.05, Gaussian(2.0)), 100), 1e-6, "replace-one"
    ) == pytest.approx(mixture.self_compose(100).get_epsilon_for_delta(1e-6), rel=2e-3)


def test_deltas_against_composed_loss_distributions() -> None:
    ours = Composed((Laplace(1.5), Repeated(PoissonSampled(0.05, Gaussian(1.0)), 30)))
    parts = pld.privacy_loss_distribution
    sampled = parts.from_gaussian_mechanism(
        1.0, sampling_prob=0.05, value_discretization_interval=1e-4
    )
    whole = parts.from_laplace_mechanism(1.5, value_discretization_interval=1e-4).compose(
        sampled.self_compose(30)
    )
    for at in (0.2, 1.0, 2.0):
        assert delta(ours, at) == pytest.approx(whole.get_delta_for_epsilon(at), rel=2e-3)


def test_a_histogram_that_moves_sqrt_2_costs_less_than_doubling() -> None:
    z_gradient, z_histogram = 1.5, 2.0
    both = Composed((Gaussian(z_gradient), Gaussian(z_histogram)))
    tight = Repeated(PoissonSampled(0.02, both, (2.0, math.sqrt(2))), 500)
    doubled = Repeated(PoissonSampled(0.02, both), 500)
    assert epsilon(tight, 1e-5, "replace-one") < epsilon(doubled, 1e-5, "replace-one")
    merged = (z_gradient**-2 + z_histogram**-2) ** -0.5
    reference = dp.SelfComposedDpEvent(
        dp.PoissonSampledDpEvent(0.02, dp.GaussianDpEvent(merged)), 500
    )
    assert epsilon(doubled, 1e-5, "replace-one") == pytest.approx(
        theirs(reference, 1e-5, "replace-one"), rel=5e-4
    )


def test_tailored_cells_under_both_relations() -> None:
    event = Repeated(PerCell(((4.0, 8.0), (5.0, 5.0)), (2.0, 1.0)), 10)
    one, two = 4.0**-2 + 5.0**-2, 8.0**-2 + 5.0**-2
    assert epsilon(event, 1e-6) == pytest.approx(epsilon(Gaussian((10 * one) ** -0.5), 1e-6))
    worst = max(4 * 4.0**-2 + 5.0**-2, one + two)
    assert epsilon(event, 1e-6, "replace-one") == pytest.approx(
        epsilon(Gaussian((10 * worst) ** -0.5), 1e-6)
    )


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    path = Path(__file__).resolve().parents[2].parent / "shared" / "reference" / "plds.py"
    if not path.exists():
        pytest.skip("the independent reference distributions are not beside this clone")
    spec = importlib.util.spec_from_file_location("reference_plds", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_joint_add_remove(reference: ModuleType) -> None:
    theirs = reference.poisson_add_remove(
        reference.lap_gauss_profile(0.5, 0.5), 0.05, h=2e-4
    ).self_compose(100)
    ours = epsilon(
        Repeated(PoissonSampled(0.05, Composed((Gaussian(2.0), Laplace(2.0)))), 100), 1e-5
    )
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-5), rel=1e-3)


def test_reference_replace_one(reference: ModuleType) -> None:
    c, d = math.hypot(1 / 1.5, 1 / 2.0), math.hypot(2 / 1.5, math.sqrt(2) / 2.0)
    theirs = (
        reference.poisson_replace_gauss(0.05, c, d, h=2e-4)
        .self_compose(50)
        .get_epsilon_for_delta(1e-5)
    )
    events = Repeated(
        PoissonSampled(0.05, Composed((Gaussian(1.5), Gaussian(2.0))), (2.0, math.sqrt(2))), 50
    )
    assert epsilon(events, 1e-5, "replace-one") == pytest.approx(theirs, rel=1e-3)
    generic = reference.poisson_replace_generic(
        reference.lap_gauss_profile(0.5, 0.5), reference.lap_gauss_profile(1.0, 1.0), 0.05, h=2e-4
    )
    joint = Repeated(PoissonSampled(0.05, Composed((Gaussian(2.0), Laplace(2.0)))), 50)
    assert epsilon(joint, 1e-5, "replace-one") == pytest.approx(
        generic.self_compose(50).get_epsilon_for_delta(1e-5), rel=1e-3
    )


def test_reference_bounded_range(reference: ModuleType) -> None:
    at = np.linspace(0, 0.9, 10)
    assert profiles.bounded_range(1.0).forward(at) == pytest.approx(
        reference.bounded_range_profile(1.0)(at), rel=1e-3, abs=1e-9
    )


def test_the_generic_bound_is_above_the_gaussian_one_and_looser() -> None:
    at = np.linspace(0.0, 1.0, 11)
    exact = profiles.poisson_replace_gaussian(1.0, 2.0, 0.05).forward(at)
    generic = profiles.poisson_replace_generic(
        profiles.gaussian(1.0), profiles.gaussian(2.0), 0.05
    ).forward(at)
    assert np.all(generic >= exact * (1 - 1e-12))
    assert generic[5] > 1.01 * exact[5]
