"""Cutting planes and Frank-Wolfe on exact group losses, against exact solvers and a certain
bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from regression_samples import cells_of, quadratics
from scipy.optimize import NonlinearConstraint, minimize

from fairveil.errors import InputError
from fairveil.fairness import objectives
from fairveil.fairness.functions import Joint, corollary_4_2
from fairveil.learning.least_squares.grams import GroupQuadratics
from fairveil.learning.least_squares.hull import METHODS, Ended, cutting_planes, frank_wolfe

GROUPS = (2, 3, 6)


def frame(q: Any) -> objectives.Frame:
    return objectives.Frame(cells_of(len(q.forms)), (), q.shares)


def ols(X: Any, y: Any, weights: Any = None) -> Any:
    w = np.sqrt(np.ones(len(y)) if weights is None else weights)
    return np.linalg.lstsq(np.column_stack([np.ones(len(y)), X]) * w[:, None], y * w, rcond=None)[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("groups", GROUPS)
def test_a_weighted_error_is_weighted_least_squares_after_one_call(
    method: str, groups: int
) -> None:
    q, (X, y, A) = quadratics(groups)
    weights = {k: 1.0 + k for k in range(groups)}
    h = objectives.WeightedError(groups=weights).at(frame(q))
    found = METHODS[method](q, h)
    assert found.calls == 1
    assert np.allclose(found.coefficients, ols(X, y, 1.0 + A))
    assert found.gap == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("seed", [0, 1])
def test_guarantee_2_the_largest_group_loss_is_that_of_an_exact_solver(
    groups: int, seed: int
) -> None:
    q, _ = quadratics(groups, seed=seed)
    h = objectives.LargestGroupLoss().at(frame(q))
    found = cutting_planes(q, h)
    size = q.forms.shape[-1] - 1
    start = q.best(np.ones(groups))
    exact = minimize(  # the epigraph: t least with every group's mean loss below it
        lambda v: v[-1],
        np.append(start, h.value(q.losses(start))),
        jac=lambda v: np.append(np.zeros(size), 1.0),
        constraints=NonlinearConstraint(
            lambda v: (v[-1] - h.rates(q.losses(v[:-1]))) * 100, 0.0, np.inf
        ),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.reason is Ended.GAP
    assert found.value == pytest.approx(float(h.value(q.losses(found.coefficients))))
    assert found.value <= exact.fun + 1e-6
    assert found.lower <= exact.fun + 1e-9


@pytest.mark.parametrize("groups", GROUPS)
def test_guarantee_2_the_error_under_bounded_group_losses_is_that_of_an_exact_solver(
    groups: int,
) -> None:
    q, _ = quadratics(groups)
    f, largest = objectives.Error().at(frame(q)), objectives.LargestGroupLoss().at(frame(q))
    plain = q.best(np.ones(groups))
    bound = (cutting_planes(q, largest).value + float(largest.value(q.losses(plain)))) / 2
    g = largest.less(bound)
    found = cutting_planes(q, Joint(f, g, corollary_4_2(f, 1e-4)))
    exact = minimize(
        lambda c: float(f.value(q.losses(c))) * 100,
        plain,
        constraints=NonlinearConstraint(
            lambda c: (bound - largest.rates(q.losses(c))) * 100, 0.0, np.inf
        ),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    losses = q.losses(found.coefficients)
    assert float(g.value(losses)) <= 1e-6
    assert float(f.value(losses)) == pytest.approx(exact.fun / 100, abs=2e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "objective",
    [objectives.LargestGroupLoss(), objectives.LargestGroupLoss(sharpness=200.0)],
    ids=["kinked", "smooth"],
)
def test_guarantee_1_no_coefficients_have_less_than_the_bound(method: str, objective: Any) -> None:
    q, _ = quadratics(3, radius=1.0)
    h = objective.at(frame(q))
    found = METHODS[method](q, h, rounds=30)
    rng = np.random.default_rng(0)
    near = found.coefficients + 0.05 * rng.normal(size=(5000, len(found.coefficients)))
    anywhere = rng.normal(size=(5000, len(found.coefficients)))
    for c in (near, anywhere):
        c = c / np.maximum(np.linalg.norm(c, axis=1, keepdims=True), 1.0)
        assert h.value(q.losses(c)).min() >= found.lower
    assert np.linalg.norm(found.coefficients) <= 1.0 + 1e-9


def test_frank_wolfe_comes_near_where_the_function_is_smooth() -> None:
    q, _ = quadratics(4)
    h = objectives.LargestGroupLoss(sharpness=300.0).at(frame(q))
    assert frank_wolfe(q, h).value == pytest.approx(cutting_planes(q, h).value, abs=1e-5)


def test_negative_weights_keep_to_a_ball_and_need_one() -> None:
    q, _ = quadratics(2)
    h = objectives.WeightedError(groups={0: 1.0, 1: -3.0}).at(frame(q))
    with pytest.raises(InputError, match="radius"):
        cutting_planes(q, h)
    found = cutting_planes(replace(q, radius=2.0), h)
    assert np.linalg.norm(found.coefficients) <= 2.0 + 1e-9
    c = np.random.default_rng(0).normal(size=(20_000, 4))
    c *= (
        2.0
        * np.random.default_rng(1).random((20_000, 1)) ** 0.25
        / np.linalg.norm(c, axis=1, keepdims=True)
    )
    assert h.value(q.losses(c)).min() >= found.value - 1e-9


def test_a_gini_constraint_is_kept_by_one_vector() -> None:
    q, _ = quadratics(3)
    at = frame(q)
    f, inequality = objectives.Error().at(at), objectives.Gini().at_most(0.1).at(at)
    assert float(inequality.value(q.losses(q.best(np.ones(3))))) > 1e-4
    found = cutting_planes(replace(q, radius=10.0), Joint(f, inequality, corollary_4_2(f, 1e-3)))
    assert float(inequality.value(q.losses(found.coefficients))) <= 1e-3
    assert found.lower <= found.value


def test_a_penalty_that_is_too_small_leaves_the_constraint_broken() -> None:
    q, _ = quadratics(2)
    f, largest = objectives.Error().at(frame(q)), objectives.LargestGroupLoss().at(frame(q))
    g = largest.less(cutting_planes(q, largest).value * 1.01)
    small = cutting_planes(q, Joint(f, g, 1e-3))
    large = cutting_planes(q, Joint(f, g, corollary_4_2(f, 1e-4)))
    assert (
        float(g.value(q.losses(small.coefficients)))
        > 1e-4
        > 1e-6
        > float(g.value(q.losses(large.coefficients)))
    )


def test_what_is_not_convex_is_refused() -> None:
    q, _ = quadratics(2)
    concave = objectives.Custom(
        lambda v: -float(v @ v), lambda v: -2 * v, lipschitz=4.0, convex=False
    ).at(frame(q))
    with pytest.raises(InputError, match="exponential"):
        cutting_planes(q, concave)


def test_an_empty_group_has_no_say() -> None:
    _, (X, y, _) = quadratics(2)
    whole = np.zeros((2, 5, 5))
    r = np.column_stack([np.ones(len(y)), X, y])
    whole[0] = r.T @ r
    empty = GroupQuadratics.of(whole, noise=0.0, cells=cells_of(2))
    found = cutting_planes(empty, objectives.LargestGroupLoss().at(frame(empty)))
    assert np.allclose(found.coefficients, ols(X, y))
    assert empty.losses(found.coefficients)[1] == 0.0
