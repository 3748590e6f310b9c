"""Parity of many classes by offsets: the plan, the log, and the optimum of a linear program over
the same rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from fairveil import Promise
from fairveil.core import cost as accountant
from fairveil.core.events import compose, spelled_out
from fairveil.curator import Curator, Rows, Trace
from fairveil.methods import parity
from fairveil.models.postprocessed import softened
from fairveil.privacy import NoiseSource
from fairveil.statement.document import PrivacyStatement

EXACT = Promise(math.inf, 0.0)
PROMISES = [
    Promise(1.0, 1e-6),
    Promise(0.3, 1e-8, neighbours="replace-one"),
    Promise(1.0, 1e-6, "sensitive_features"),
]


def people(shares=(0.6, 0.4), classes=3, n=600, seed=0):
    """Groups and probabilities that go with them."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(len(shares), n, p=shares)
    leaning = 0.6 * np.random.default_rng(1).normal(size=(len(shares), classes))
    return groups, softened(rng.normal(size=(n, classes)) + leaning[groups], 0.7)


def run(groups, p, promise, max_gap=0.05, rounds=40, temperature=0.02, hard=False, seed=0):
    """The outcome, and the curator."""
    count = int(groups.max()) + 1
    plan = parity.plan(promise, rounds)
    rows = Rows.from_arrays(
        np.zeros((len(p), 1)),
        np.zeros(len(p), int),
        [groups],
        classes=range(p.shape[1]),
        groups=[tuple(range(count))],
    )
    event = plan.event if promise.is_private else None
    curator = Curator(rows, promise, plan=event, noise=NoiseSource.of(seed))
    attached = curator.attach(lambda block: p)
    with curator:
        asked = (plan, attached, curator.cells(), max_gap, temperature)
        found = parity.run(curator, *asked, hard=hard)
        curator.finish()
    return found, curator, plan


def best(groups, p, max_gap):
    """The most that decisions with this gap are right, if the probabilities are true: a linear
    program over all rows."""
    n, classes = p.shape
    count = int(groups.max()) + 1
    lines = []
    for k in range(classes):
        for one in range(count):
            for other in range(count):
                if one != other:
                    line = np.zeros((n, classes))
                    line[groups == one, k] = 1.0 / (groups == one).sum()
                    line[groups == other, k] = -1.0 / (groups == other).sum()
                    lines.append(line.ravel())
    each = np.kron(np.eye(n), np.ones(classes))
    found = linprog(
        -p.ravel() / n,
        A_ub=np.array(lines),
        b_ub=np.full(len(lines), max_gap),
        A_eq=each,
        b_eq=np.ones(n),
    )
    return -found.fun


def measured(groups, p, offsets, temperature):
    law = softened(p - offsets[groups], temperature)
    rates = np.array([law[groups == one].mean(axis=0) for one in range(len(offsets))])
    return float((law * p).sum(axis=1).mean()), float(np.ptp(rates, axis=0).max()), rates


@pytest.mark.parametrize("promise", PROMISES, ids=["add", "replace", "groups"])
@pytest.mark.parametrize("rounds", [2, 40])
def test_guarantee_1_the_plan_keeps_the_promise_and_the_log_is_the_plan(promise, rounds):
    groups, p = people(n=50)
    _, curator, plan = run(groups, p, promise, rounds=rounds)
    price = accountant.epsilon(plan.event, promise.delta, promise.neighbours)
    assert 0.99 * promise.epsilon <= price <= promise.epsilon
    assert list(spelled_out(compose(curator.log.events))) == list(spelled_out(plan.event))
    assert PrivacyStatement.of_run(curator).epsilon <= promise.epsilon


@pytest.mark.parametrize(
    ("shares", "classes"), [((0.6, 0.4), 3), ((0.5, 0.3, 0.2), 4), ((0.5, 0.5), 2)]
)
@pytest.mark.parametrize("max_gap", [0.1, 0.02])
def test_guarantee_2_without_noise_it_is_the_optimum_of_the_linear_program(
    shares, classes, max_gap
):
    groups, p = people(shares, classes)
    # there is something to do
    assert measured(groups, p, np.zeros((len(shares), classes)), 1e-3)[1] > 0.12
    found, _, _ = run(groups, p, EXACT, max_gap, rounds=200, temperature=0.005)
    right, gap, rates = measured(groups, p, found.offsets, 0.005)
    assert gap <= max_gap + 0.005
    assert best(groups, p, max_gap) - 0.005 * math.log(classes) - 0.002 <= right
    assert np.allclose(found.rates, rates, atol=1e-6)
    assert found.gap == pytest.approx(gap, abs=1e-6)


def test_offsets_of_a_class_cancel_over_the_groups_and_a_wide_bound_needs_none():
    groups, p = people((0.5, 0.3, 0.2), 4)
    shares = np.bincount(groups) / len(groups)
    found, _, _ = run(groups, p, EXACT, 0.05)
    assert np.abs(shares @ found.offsets).max() < 1e-6
    assert np.abs(found.offsets).max() > 0.01
    idle, _, _ = run(groups, p, EXACT, 0.9)
    assert np.abs(idle.offsets).max() < 1e-9


def test_guarantee_3_the_result_is_a_function_of_the_released_histograms():
    """Of a curator without rows: the same answers for other rows give the same offsets to the bit,
    and other answers the same events, which are the plan."""
    groups, p = people()
    promise = Promise(1.0, 1e-6)
    plan = parity.plan(promise, 10)
    rows = Rows.from_arrays(
        np.zeros((len(p), 1)), np.zeros(len(p), int), [groups], classes=range(3), groups=[(0, 1)]
    )
    curator, ends = Curator(rows, EXACT), []
    for seed, law in ((0, p), (0, p[::-1]), (1, p)):
        told = np.random.default_rng(seed).normal(50, 20, size=(11, 2, 3))
        trace = Trace(rows.layout, promise, made_up=lambda shape, number, told=told: told[number])
        attached = curator.attach(lambda block, law=law: law)
        ends.append(parity.run(trace, plan, attached, curator.cells(), 0.05, 0.02, hard=False))
        assert list(spelled_out(trace.plan)) == list(spelled_out(plan.event))
    assert (ends[0].offsets == ends[1].offsets).all()
    assert (ends[0].rates == ends[1].rates).all()
    assert (ends[0].offsets != ends[2].offsets).any()


def test_noise_that_drowns_a_group_gives_finite_offsets_and_rates():
    groups, p = people((0.98, 0.02), n=100)
    found, _, _ = run(groups, p, Promise(0.01, 1e-9))
    assert np.isfinite(found.offsets).all()
    assert np.allclose(found.rates.sum(axis=1), 1.0)
    assert 0.0 <= found.gap <= 1.0


def test_a_step_is_the_nearest_point_of_the_penalised_plane():
    """Against a fine search over the plane, for one class and three groups."""
    rng = np.random.default_rng(2)
    shares = np.array([0.5, 0.3, 0.2])
    for _ in range(5):
        moved, threshold = rng.normal(size=(3, 1)) * 0.2, 0.05

        def value(at, moved=moved, threshold=threshold):
            return shares @ ((at - moved) ** 2 / 2 + threshold * np.abs(at))

        found = parity.stepped(moved, shares, threshold)
        assert abs((shares @ found).item()) < 1e-9
        for _ in range(200):
            away = rng.normal(size=(3, 1)) * 0.05
            away -= shares @ away
            assert value(found).item() <= value(found + away).item() + 1e-12


def test_a_group_that_noise_drowns_keeps_its_decisions_and_the_others_are_moved():
    """About 31 rows are one standard deviation at this epsilon: ten are too few, and their offsets
    are exactly zero."""
    groups, p = people((0.6, 0.399, 0.001), n=10_000)
    found, _, _ = run(groups, p, Promise(1.0, 1e-6))
    assert found.moved.tolist() == [True, True, False]
    assert (found.offsets[2] == 0.0).all()
    assert np.abs(found.offsets[:2]).max() > 0.01
    assert measured(groups[groups < 2], p[groups < 2], found.offsets[:2], 0.02)[1] < 0.08
    assert run(groups, p, EXACT)[0].moved.all()
