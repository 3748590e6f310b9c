"""Two steps: the second chosen after looking at the first. What the best adaptive strategy reaches
is enumerated exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from fairveil.core import cost as accounting
from fairveil.core.events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    NoOp,
    PoissonSampled,
    Pure,
    Repeated,
    compose,
)
from fairveil.core.promise import Promise
from fairveil.errors import BudgetError, InputError
from fairveil.facts import Cells
from fairveil.methods import postprocess
from fairveil.privacy import price_after
from fairveil.privacy.calibration import TwoSteps, reference, share_of, within
from fairveil.statement.document import PrivacyStatement

Floats = npt.NDArray[np.float64]
Atoms = tuple[Floats, Floats, float]
"""Losses, their chances, and the chance of losing everything."""
TWO, THREE = (Cells((tuple(range(groups)),), names=("group",)) for groups in (2, 3))

# -- an enumeration of its own: losses of the first step as atoms, the second step as a delta at any
# epsilon


def gaussian_delta(mu: float, e: Floats) -> Floats:
    """Balle and Wang (2018), at any real epsilon."""
    return np.asarray(
        special.ndtr(mu / 2 - e / mu) - np.exp(e + special.log_ndtr(-mu / 2 - e / mu))
    )


def laplace_delta(multiplier: float, moved: int, e: Floats) -> Floats:
    """Counts with discrete Laplace noise, moved by so many steps: the sum over all outcomes."""
    r = math.exp(-1.0 / (multiplier * moved))
    reach = math.ceil(50 * multiplier * moved)
    k = np.arange(-reach, reach + moved + 1)
    here, there = ((1 - r) / (1 + r) * r ** np.abs(at) for at in (k, k - moved))
    return np.maximum(0.0, here - np.exp(e)[:, np.newaxis] * there).sum(axis=1)


def delta_of(event: Event, e: Floats) -> Floats:
    if isinstance(event, DiscreteLaplace):
        return laplace_delta(event.noise_multiplier, event.sensitivity, e)
    assert isinstance(event, Gaussian)
    return gaussian_delta(1.0 / event.noise_multiplier, e)


def choice_atoms(epsilon: float, at: float) -> Atoms:
    """The extreme pairs of bounded range: losses `at` and `at - epsilon`."""
    p = (1 - math.exp(at - epsilon)) / (1 - math.exp(-epsilon))
    return np.array([at, at - epsilon]), np.array([p, 1 - p]), 0.0


def pure_atoms(epsilon: float, lost: float = 0.0) -> Atoms:
    p = (1 - lost) / (1 + math.exp(-epsilon))
    return np.array([epsilon, -epsilon]), np.array([p, 1 - lost - p]), lost


def gaussian_atoms(mu: float, cells: int = 1000) -> Atoms:
    """Losses N(mu^2/2, mu^2), each cell at its lower end: what is reached is never counted too
    high."""
    ends = np.linspace(-8, 8, cells + 1)
    return mu * mu / 2 + mu * ends[:-1], np.diff(special.ndtr(ends)), 0.0


def adaptive_delta(atoms: Atoms, branches: Sequence[Event], epsilon: float) -> float:
    """What is reached by taking, at each outcome of the first step, the branch that tells most."""
    losses, chances, lost = atoms
    most = np.max([delta_of(branch, epsilon - losses) for branch in branches], axis=0)
    return lost + float(chances @ most)


def branches_of(promise: Promise, spent: Event) -> list[Event]:
    """What a post-processor may release after that: by weights, and by how many groups there are,
    another noise."""
    asked = [(TWO, False), (THREE, False), (TWO, True)]
    return [
        postprocess.plan(promise, cells, (spent,), weighted=weighted, looked_at=True).event
        for cells, weighted in asked
    ]


BASES: list[tuple[Event, list[Atoms]]] = [
    (Exponential(0.4), [choice_atoms(0.4, 0.4 * t) for t in (0.05, 0.25, 0.5, 0.75, 0.95)]),
    (Pure(0.3), [pure_atoms(0.3)]),
    (DiscreteLaplace(2.0), [pure_atoms(0.5)]),
    (Gaussian(20.0), [gaussian_atoms(1 / 20.0)]),
    (Gaussian(8.0), [gaussian_atoms(1 / 8.0)]),
    (Approximate(0.3, 4e-7), [pure_atoms(0.3, 4e-7)]),
]


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (1.0, 1e-6), (4.0, 1e-5)])
@pytest.mark.parametrize(("base", "pairs"), BASES, ids=[str(base) for base, _ in BASES])
def test_guarantee_1_no_choice_of_the_second_release_needs_more_delta(
    base: Event, pairs: list[Atoms], epsilon: float, delta: float
) -> None:
    branches = branches_of(Promise(epsilon, delta, "sensitive_features"), base)
    assert len(set(branches)) > 1
    reached = max(adaptive_delta(atoms, branches, epsilon) for atoms in pairs)
    assert reached <= delta * (1 + 1e-6)


def test_guarantee_1_the_attack_that_the_tight_price_of_a_plan_does_not_stop() -> None:
    """Base and counts as one plan: each branch keeps (0.5, 1e-3), choosing by the base's answer
    does not."""
    base, promise = Exponential(0.1), Promise(0.5, 1e-3)
    naive, mended = (
        [_least(promise, base, kind, looked) for kind in ("discrete-laplace", "gaussian")]
        for looked in (False, True)
    )
    pairs = [choice_atoms(0.1, 0.1 * t) for t in (0.1, 0.3, 0.5, 0.7, 0.9)]
    assert max(adaptive_delta(atoms, naive, 0.5) for atoms in pairs) > 1.3e-3
    assert 0.7e-3 < max(adaptive_delta(atoms, mended, 0.5) for atoms in pairs) <= 1e-3


def _least(promise: Promise, base: Event, kind: str, looked_at: bool) -> Event:
    """The least noise of this kind that is admitted."""
    from fairveil.privacy.calibration import calibrate

    def event(z: float) -> Event:
        return DiscreteLaplace(z) if kind == "discrete-laplace" else Gaussian(z)

    if not looked_at:
        return event(calibrate(promise, lambda z: compose((base, event(z)))).multiplier)
    target = within(promise, base)
    return event(
        calibrate(
            target, lambda z: compose((base, reference(event(z), promise.neighbours)))
        ).multiplier
    )


@pytest.mark.parametrize(
    "base", [Gaussian(8.0), Exponential(0.4), Repeated(PoissonSampled(0.1, Gaussian(3.0)), 20)]
)
@pytest.mark.parametrize(
    "after",
    [DiscreteLaplace(3.0), DiscreteLaplace(3.0, 2), Gaussian(9.0), Composed((Gaussian(9.0),) * 2)],
)
@pytest.mark.parametrize("delta", [1e-3, 1e-7])
def test_guarantee_2_two_steps_cost_no_less_than_one_plan(
    base: Event, after: Event, delta: float
) -> None:
    plan = accounting.epsilon([base, after], delta)
    steps = price_after(base, after, delta)
    assert (
        plan * (1 - 1e-6)
        <= steps.epsilon
        <= accounting.epsilon([base, Pure(1 / 3.0), after], delta / 2)
    )
    assert steps.delta == delta
    assert steps.route.endswith("in two steps")


def test_what_costs_nothing_makes_no_second_step() -> None:
    assert price_after([], Gaussian(5.0), 1e-6).epsilon == accounting.epsilon(Gaussian(5.0), 1e-6)
    assert price_after(Gaussian(5.0), NoOp(), 1e-6).epsilon == accounting.epsilon(
        Gaussian(5.0), 1e-6
    )


def test_without_delta_epsilons_add_up() -> None:
    assert price_after(Exponential(0.4), DiscreteLaplace(2.0, 2), 0.0).epsilon == pytest.approx(
        0.9, rel=1e-12
    )
    assert math.isinf(price_after(Gaussian(4.0), DiscreteLaplace(2.0), 0.0).epsilon)


def test_what_is_lost_for_certain_is_lost_once() -> None:
    """A base that used up delta leaves pure noise, as in one plan."""
    assert share_of(Approximate(0.5, 1e-6), 1e-6, "add-remove") == 1e-6
    assert share_of(Approximate(0.5, 4e-7), 1e-6, "add-remove") == pytest.approx(7e-7)
    twice = Composed((Approximate(0.2, 1e-7), Approximate(0.1, 3e-7)))
    assert share_of(twice, 1e-6, "add-remove") == pytest.approx(7e-7)
    assert share_of(Gaussian(3.0), 1e-6, "add-remove") == 5e-7
    assert price_after(Approximate(0.5, 1e-6), DiscreteLaplace(2.0), 1e-6).epsilon == pytest.approx(
        1.0
    )
    assert math.isinf(price_after(Approximate(0.5, 1.1e-6), DiscreteLaplace(2.0), 1e-6).epsilon)


def test_what_is_neither_pure_nor_gaussian_needs_a_filter() -> None:
    for after in (
        Composed((Gaussian(3.0), DiscreteLaplace(3.0))),
        PoissonSampled(0.1, Gaussian(3.0)),
        Approximate(0.1, 1e-9),
    ):
        with pytest.raises(InputError, match="Filter"):
            price_after(Gaussian(8.0), after, 1e-6)


@pytest.mark.parametrize("base", [Gaussian(4.6), Exponential(0.7), Approximate(0.5, 3e-7)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_epsilon_that_a_refusal_names_is_where_room_begins(base: Event, weighted: bool) -> None:
    least = accounting.epsilon(base, share_of(base, 1e-6, "add-remove"))
    for epsilon in (least, 0.9 * least):
        with pytest.raises(BudgetError, match=r"left of epsilon.*pass it unfitted") as refusal:
            postprocess.plan(
                Promise(epsilon, 1e-6), TWO, (base,), weighted=weighted, looked_at=True
            )
    named = float(str(refusal.value).split("Pass epsilon above ")[1].split(",")[0])
    assert least <= named <= least * (1 + 2e-5)
    plan = postprocess.plan(
        Promise(named * 1.001, 1e-6), TWO, (base,), weighted=weighted, looked_at=True
    )
    assert price_after(base, plan.event, 1e-6).epsilon <= named * 1.001


# -- a statement


def test_a_statement_of_two_steps_is_recomputed() -> None:
    promise = Promise(1.0, 1e-6)
    z = _least(promise, Gaussian(8.0), "gaussian", True)
    for events in (
        [Gaussian(8.0), z],
        [Repeated(Gaussian(8.0 * math.sqrt(3)), 3), z],
        [Gaussian(8.0), DiscreteLaplace(2.1)],
    ):
        statement = PrivacyStatement.of(promise, events, cap=TwoSteps(promise))
        assert (statement.plan, statement.epsilon, statement.route) == (None, 1.0, "two steps")
        assert statement.check() == []
        assert PrivacyStatement.from_json(statement.to_json()) == statement
        composition = next(
            line for line in statement.summary().splitlines() if line.startswith("Composition")
        )
        assert "the last was chosen afterwards" in composition
        assert "fixed in advance, and all" not in composition


def test_equal_noise_in_both_steps_stays_two_steps() -> None:
    promise = Promise(2.0, 1e-6)
    statement = PrivacyStatement.of(promise, [Gaussian(4.0), Gaussian(4.0)], cap=TwoSteps(promise))
    assert statement.events == (Repeated(Gaussian(4.0), 2),)
    assert statement.check() == []
    assert price_after(Gaussian(4.0), Gaussian(4.0), 1e-6).epsilon <= 2.0


def test_a_statement_of_two_steps_with_too_little_noise_is_found_out() -> None:
    promise = Promise(1.0, 1e-6)
    tight = _least(promise, Gaussian(8.0), "gaussian", False)
    with pytest.raises(BudgetError, match="price_after"):
        PrivacyStatement.of(promise, [Gaussian(8.0), tight], cap=TwoSteps(promise))
    honest = PrivacyStatement.of(promise, [Gaussian(8.0), Gaussian(9.0)], cap=TwoSteps(promise))
    forged = replace(honest, events=(Gaussian(8.0), tight))
    assert [finding.grave for finding in forged.check()] == [True]
