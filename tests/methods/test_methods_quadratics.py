"""Functions of groups' squared losses: the least in a ball, oracles against exact solvers, and how
far noisy losses are followed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from regression_samples import cells_of, quadratics
from scipy.optimize import NonlinearConstraint, minimize

from fairveil.errors import InputError
from fairveil.fairness import objectives
from fairveil.fairness.functions import Joint, corollary_4_2
from fairveil.methods.quadratics import (
    METHODS,
    Ended,
    GroupQuadratics,
    everybody,
    halves,
    least,
    least_in_ball,
    steadied,
)

GROUPS = (2, 6)


def problems(count: int, seed: int):
    """Definite, indefinite, singular and diagonal matrices, vectors of any size, some orthogonal to
    the lowest eigenvector."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        size = int(rng.integers(1, 6))
        A = rng.normal(size=(size, size))
        A = A + A.T
        kind = rng.integers(4)
        if kind in (0, 1):
            A = A @ A
            A -= kind * np.linalg.eigvalsh(A)[0] * np.eye(size)
        elif kind == 2:
            A = np.diag(rng.integers(-2, 3, size)).astype(float)
        b = rng.normal(size=size) * 10 ** rng.uniform(-3, 3)
        if rng.random() < 0.3:  # the hard case
            lowest = np.linalg.eigh(A)[1][:, 0]
            b -= lowest * (lowest @ b)
        yield A, b * (rng.random() > 0.05), 10 ** rng.uniform(-2, 2)


def test_guarantee_1_the_conditions_of_a_solution_hold() -> None:
    for A, b, radius in problems(1500, 0):
        c = least_in_ball(A, b, radius)
        length = float(np.linalg.norm(c))
        assert length <= radius * (1 + 1e-12)
        slope = A @ c - b
        m = -float(slope @ c) / max(float(c @ c), 1e-300)
        unit = float(np.abs(A).max() + np.abs(b).max() / radius) + 1e-300
        assert np.linalg.norm(slope + m * c) <= 1e-9 * unit * radius
        assert np.linalg.eigvalsh(A)[0] + m >= -1e-7 * unit
        assert m >= -1e-9 * unit
        assert m * (radius - length) <= 1e-7 * unit * radius
    hard = least_in_ball(np.diag([-1.0, 3.0]), np.array([0.0, 2.0]), 2.0)
    assert hard[1] == pytest.approx(0.5)
    assert math.hypot(*hard) == pytest.approx(2.0)


def test_without_a_radius_what_falls_for_ever_is_refused() -> None:
    assert least_in_ball(np.diag([2.0, 1.0]), np.array([1.0, 1.0])).tolist() == [0.5, 1.0]
    assert np.allclose(least_in_ball(np.diag([2.0, 0.0]), np.array([1.0, 0.0])), [0.5, 0.0])
    for matrix, vector in ((np.diag([1.0, -1.0]), [1.0, 0.0]), (np.diag([1.0, 0.0]), [1.0, 1.0])):
        with pytest.raises(InputError, match="radius"):
            least_in_ball(matrix, np.array(vector))


# -- functions of losses --------------------------------------------------------------------------


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
    h = objectives.WeightedError(groups={k: 1.0 + k for k in range(groups)}).at(frame(q))
    found = least(q, h, method)
    assert found.calls == 1
    assert np.allclose(found.coefficients, ols(X, y, 1.0 + A))
    assert found.gap == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("groups", GROUPS)
def test_guarantee_2_answers_are_those_of_exact_solvers(groups: int) -> None:
    """The largest group's loss by its epigraph; the error under a bound of all losses."""
    q, _ = quadratics(groups)
    h = objectives.LargestGroupLoss().at(frame(q))
    found, plain = least(q, h), q.best(np.ones(groups))
    exact = minimize(
        lambda v: v[-1],
        np.append(plain, h.value(q.losses(plain))),
        jac=lambda v: np.append(np.zeros(len(plain)), 1.0),
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
    f, bound = objectives.Error().at(frame(q)), (found.value + float(h.value(q.losses(plain)))) / 2
    g = h.less(bound)
    kept = least(q, Joint(f, g, corollary_4_2(f, 1e-4))).coefficients
    exact = minimize(
        lambda c: float(f.value(q.losses(c))) * 100,
        plain,
        constraints=NonlinearConstraint(
            lambda c: (bound - h.rates(q.losses(c))) * 100, 0.0, np.inf
        ),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert float(g.value(q.losses(kept))) <= 1e-6
    assert float(f.value(q.losses(kept))) == pytest.approx(exact.fun / 100, abs=2e-6)
    # a penalty that is too small leaves the bound broken
    small = least(q, Joint(f, g, 1e-3)).coefficients
    assert float(g.value(q.losses(small))) > 1e-6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sharpness", [None, 200.0], ids=["kinked", "smooth"])
def test_guarantee_2_no_coefficients_have_less_than_the_bound(
    method: str, sharpness: float | None
) -> None:
    q, _ = quadratics(3, radius=1.0)
    h = objectives.LargestGroupLoss(sharpness=sharpness).at(frame(q))
    found = least(q, h, method, rounds=30)
    rng = np.random.default_rng(0)
    near = found.coefficients + 0.05 * rng.normal(size=(5000, len(found.coefficients)))
    anywhere = rng.normal(size=(5000, len(found.coefficients)))
    for c in (near, anywhere):
        c = c / np.maximum(np.linalg.norm(c, axis=1, keepdims=True), 1.0)
        assert h.value(q.losses(c)).min() >= found.lower
    assert np.linalg.norm(found.coefficients) <= 1.0 + 1e-9
    if sharpness is not None:
        assert found.value == pytest.approx(least(q, h).value, abs=1e-4)


def test_negative_weights_keep_to_a_ball_and_need_one() -> None:
    q, _ = quadratics(2)
    h = objectives.WeightedError(groups={0: 1.0, 1: -3.0}).at(frame(q))
    with pytest.raises(InputError, match="radius"):
        least(q, h)
    found = least(replace(q, radius=2.0), h)
    assert np.linalg.norm(found.coefficients) <= 2.0 + 1e-9
    rng = np.random.default_rng(0)
    c = rng.normal(size=(20_000, 4))
    c *= 2.0 * rng.random((20_000, 1)) ** 0.25 / np.linalg.norm(c, axis=1, keepdims=True)
    assert h.value(q.losses(c)).min() >= found.value - 1e-9
    concave = objectives.Custom(
        lambda v: -float(v @ v), lambda v: -2 * v, lipschitz=4.0, convex=False
    ).at(frame(q))
    with pytest.raises(InputError, match="exponential"):
        least(q, concave)


def test_a_gini_constraint_is_kept_by_one_vector() -> None:
    q, _ = quadratics(3)
    f, inequality = objectives.Error().at(frame(q)), objectives.Gini().at_most(0.1).at(frame(q))
    assert float(inequality.value(q.losses(q.best(np.ones(3))))) > 1e-4
    found = least(replace(q, radius=10.0), Joint(f, inequality, corollary_4_2(f, 1e-3)))
    assert float(inequality.value(q.losses(found.coefficients))) <= 1e-3
    assert found.lower <= found.value


def test_an_empty_group_has_no_say_and_a_noisy_one_is_floored_and_raised() -> None:
    _, (X, y, _) = quadratics(2)
    whole = np.zeros((2, 5, 5))
    r = np.column_stack([np.ones(len(y)), X, y])
    whole[0] = r.T @ r
    empty = GroupQuadratics.of(whole, noise=0.0, cells=cells_of(2))
    found = least(empty, objectives.LargestGroupLoss().at(frame(empty)))
    assert np.allclose(found.coefficients, ols(X, y))
    assert empty.losses(found.coefficients)[1] == 0.0
    noisy = GroupQuadratics.of(whole, noise=20.0, cells=cells_of(2))
    assert noisy.shares[1] * noisy.rows == pytest.approx(40.0)
    # along each coordinate by 0.4 of the noise's spectral norm at least: coefficients stay near 0
    raised = np.linalg.eigvalsh(noisy.forms[1][:-1, :-1]) * noisy.rows / noisy.unit
    assert raised.min() >= 0.4 * 20.0 * math.sqrt(10.0) * (1 - 1e-9)


# -- noise ----------------------------------------------------------------------------------------


def symmetric(rng: np.random.Generator, count: int) -> Any:
    drawn = rng.standard_normal((count, 3, 3))
    return (drawn + np.swapaxes(drawn, -1, -2)) / 2.0


def test_guarantee_3_the_halves_have_independent_noise_of_the_variance_that_is_said() -> None:
    """4,000 draws: variances within 8 %, correlations within 0.08 (false alarms below 1e-4)."""
    rng = np.random.default_rng(1)
    true, s = np.diag([50.0, 20.0, 30.0]), 2.0
    seen: list[Any] = []
    for _ in range(4000):
        released = GroupQuadratics.of(true + s * symmetric(rng, 2), noise=s, cells=cells_of(2))
        pair = halves(released, rng, 0.5)
        seen.append([one.released * one.rows / one.unit - true for one in pair])
        assert [float(one.noise[0]) for one in pair] == pytest.approx(
            [s * math.sqrt(1.25), s * math.sqrt(5.0)]
        )
    first, second = np.moveaxis(np.array(seen), 1, 0)
    for i, j, share in ((0, 0, 1.0), (1, 1, 1.0), (0, 2, 0.5)):
        a, b = first[:, 0, i, j], second[:, 0, i, j]
        assert a.var() == pytest.approx(share * s**2 * 1.25, rel=0.08)
        assert b.var() == pytest.approx(share * s**2 * 5.0, rel=0.08)
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.08
    assert abs(np.corrcoef(first[:, 0, 0, 0], second[:, 1, 0, 0])[0, 1]) < 0.08


def test_a_difference_and_everybody_have_the_noise_that_is_said() -> None:
    """2,000 draws: deviations within 8 %, means within 5 errors (false alarms below 1e-5). A
    released total takes noise from the groups."""
    rng, true, s, w = np.random.default_rng(3), np.diag([90.0, 40.0, 60.0]), 3.0, 2.0
    c, other = np.array([0.5, -1.0]), np.array([1.0, 2.0])
    seen = []
    for _ in range(2000):
        *drawn, of_total = symmetric(rng, 3)
        pair, total = true + s * np.array(drawn), 2.0 * true + w * of_total
        alone = GroupQuadratics.of(pair, noise=s, cells=cells_of(2))
        found = GroupQuadratics.of(pair, noise=s, cells=cells_of(2), total=total, total_noise=w)
        whole = everybody(found)
        entries = [one.released[0, 2, 2] * one.rows / one.unit for one in (found, whole)]
        apart = float((alone.measured(c) - alone.measured(other))[0]) * alone.rows
        seen.append((*entries, apart))
    noise = float(found.noise[0]), float(whole.noise[0])
    assert noise[0] == pytest.approx(math.sqrt(s**2 - s**4 / (2 * s**2 + w**2)))
    assert noise[1] == pytest.approx((w**-2 + 0.5 * s**-2) ** -0.5)
    said = [*noise, float(alone.deviation(c, other)[0]) * alone.rows]
    assert np.std(seen, axis=0) == pytest.approx(said, rel=0.08)
    assert np.mean(seen, axis=0)[:2] == pytest.approx([60.0, 120.0], abs=0.35)


def test_guarantee_3_without_noise_or_with_one_group_losses_are_followed_all_the_way() -> None:
    def never(_: GroupQuadratics) -> Any:
        raise AssertionError("nothing is to be found out")

    q, _ = quadratics(3)
    h = objectives.LargestGroupLoss().at(frame(q))
    found = least(q, h)
    assert steadied(q, h, found, never) is found
    one = GroupQuadratics.of(100.0 * np.eye(3)[np.newaxis], noise=5.0, cells=None)
    assert steadied(one, h, found, never) is found
