"""Theorem E.6 in the planner: it scales as the theorem says, its noise is that of the worst
neighbour, its excess is kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil.study import sample_bounds as bounds
from fairveil.study.sample_bounds import Convex, Setting


def setting(alpha: float = 0.1, **options: Any) -> Setting:
    values: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "failure": 0.1,
        "groups": 4,
        "rows_in": 4,
    }
    values |= {"neighbours": "replace-one", "lipschitz": (1.0, 1.0), "smoothness": (1.0, 1.0)}
    return Setting(alpha, **(values | options))


def slope(count: Any, name: str, low: float, high: float, **options: Any) -> float:
    """Of the log of a count in the log of what it depends on."""
    first, second = (count(setting(**({name: value} | options))) for value in (low, high))
    return math.log(second / first) / math.log(high / low)


def printed(one: Setting, sides: int = 5) -> float:
    return float(bounds.descent_rows(one, Convex(sides)))


def corrected(one: Setting, sides: int = 5) -> float:
    return float(bounds.corrected_descent_rows(one, Convex(sides))[0])


def test_as_printed_it_scales_as_the_theorem_says() -> None:
    """K P / alpha^4, up to squares of logarithms, where n > K P / rho; K counts as the paper does:
    every row in every group."""
    assert 4.0 < -slope(printed, "alpha", 0.01, 0.02) < 4.3
    assert 1.0 <= math.log10(printed(setting(), 500) / printed(setting(), 50)) < 1.2
    several = [printed(setting(groups=k, rows_in=k)) for k in (16, 64)]
    assert 0.9 < math.log(several[1] / several[0]) / math.log(4.0) < 1.25
    # privacy is free there
    assert printed(setting(epsilon=1e4)) == pytest.approx(printed(setting(epsilon=1.0)), rel=0.01)
    assert printed(setting(epsilon=1e-6)) > 2.0 * printed(setting(epsilon=1.0))


def test_as_printed_little_privacy_left_asks_for_no_more_than_the_theorems_other_term() -> None:
    """max(K P / alpha^4, K P / rho): with a constant and a squared logarithm that hold for all of
    these."""
    for alpha in (0.05, 0.5):
        for epsilon in (1e-4, 1e-2, 1.0):
            for k, sides in ((2, 3), (16, 40)):
                one = setting(alpha, epsilon=epsilon, groups=k, rows_in=k)
                rho, n = bounds._price(one), printed(one, sides)
                order = max(k * sides / alpha**4, k * sides / rho)
                assert n <= 30.0 * (2.0 + math.log(n)) ** 2 / one.failure**2 * order


def test_as_corrected_it_keeps_the_power_of_alpha_and_of_the_dimension() -> None:
    assert 3.7 < -slope(corrected, "alpha", 0.005, 0.01) < 4.2
    assert 0.95 < math.log10(corrected(setting(), 500) / corrected(setting(), 50)) < 1.1
    several = [corrected(setting(0.01, groups=k, rows_in=k)) for k in (16, 64)]
    assert 1.4 < math.log(several[1] / several[0]) / math.log(4.0) < 1.7  # K^(3/2)
    rho = [bounds._price(setting(epsilon=epsilon)) for epsilon in (0.01, 0.1)]
    few, many = (corrected(setting(epsilon=epsilon)) for epsilon in (0.1, 0.01))
    assert many / few == pytest.approx(math.sqrt(rho[1] / rho[0]), rel=0.02)
    assert corrected(setting(neighbours="add-remove")) < corrected(setting())


def test_the_plan_shows_both_where_the_decisions_are_convex() -> None:
    table = {
        line["theorem"]: line for line in fv.plan_sample_size(0.1, groups=4, dimension=5).table()
    }
    one, other = table["Theorem E.6"], table["Theorem E.6, corrected"]
    assert one["rows"] == one["calls"] == bounds.descent_rows(setting(rows_in=1), Convex(5))
    assert other["rows"] == bounds.corrected_descent_rows(setting(rows_in=1), Convex(5))[0]
    assert "not private" in one["about"]
    without = fv.plan_sample_size(0.1, groups=4, candidates=5).table()
    assert not any("E.6" in line["theorem"] for line in without)


def rounded(g: Any, width: float) -> tuple[Any, Any]:
    """max(0, g) with its kink rounded, and its slope."""
    value = np.where(g <= 0, 0.0, np.where(g < width, g * g / (2 * width), g - width / 2))
    return value, np.clip(g / width, 0.0, 1.0)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("penalty", [1.0, 20.0])
def test_no_neighbour_moves_a_gradient_further_than_its_noise_is_made_for(
    neighbours: str, penalty: float
) -> None:
    """Enumerated: every row of 8 is replaced by (or goes, and averages divide by 8) every other of
    30 extreme ones."""
    rng = np.random.default_rng(0)
    n, k, sides, width = 8, 3, 1, 0.6
    f = rng.random(k)
    f /= np.linalg.norm(f)  # f and g are linear and smooth: L_f = L_g = 1, b_f = b_g = 0
    g = np.eye(k)[0]
    beta = penalty / width
    moved = math.sqrt(2.0) if neighbours == "replace-one" else 1.0
    most = ((2.0 if neighbours == "replace-one" else 1.0) * (1.0 + penalty) + beta * moved) / n
    cells = rng.integers(k, size=30)
    slopes, levels = rng.standard_normal((30, sides)), rng.integers(2, size=30)
    # a row's losses: one group, a gradient of length 1
    slopes /= np.linalg.norm(slopes, axis=1, keepdims=True)

    def gradient(rows: Any, theta: float) -> Any:
        jacobian, losses = np.zeros((k, sides)), np.zeros(k)
        np.add.at(jacobian, cells[rows], slopes[rows] / n)
        np.add.at(losses, cells[rows], levels[rows] / n)
        return jacobian.T @ (f + penalty * rounded(losses @ g - theta, width)[1] * g)

    worst = 0.0
    for theta in (-0.2, 0.0):
        for _ in range(20):
            rows = rng.integers(30, size=n)
            here = gradient(rows, theta)
            for i in range(n):
                others = (
                    [np.delete(rows, i)]
                    if neighbours == "add-remove"
                    else [np.r_[np.delete(rows, i), j] for j in range(30)]
                )
                worst = max(
                    worst,
                    *(float(np.linalg.norm(gradient(other, theta) - here)) for other in others),
                )
    assert 0.4 * most < worst <= most
    # (b_f + G b_g) a / n: none, for linear f and g
    printed_noise = (0.0 + penalty * 0.0) * moved / n
    assert worst > printed_noise == 0.0


def test_the_corrected_descent_keeps_its_excess() -> None:
    """The mechanism itself in one dimension, 40 runs: l = |c - 0.3|, 0.2 c; f the first, g the
    second less 0.04."""
    one = setting(1.0, groups=2, rows_in=1, failure=0.5)
    n, rounds = bounds.corrected_descent_rows(one, Convex(1))
    width = 2.0 * one.alpha * 0.5 / one.penalty
    rho, steep = bounds._price(one), one.steepness
    beta = one.smoothness[0] + one.penalty * (one.smoothness[1] + 1.0 / width)
    s = (2.0 * steep + beta * one.moved) / n * math.sqrt(rounds / (2.0 * rho))
    rounds = min(rounds, 40_000)  # fewer: a harder test
    rng, c = np.random.default_rng(1), np.zeros(40)
    q = math.sqrt(steep**2 + s * s)
    for t in range(1, rounds):
        pressed = rounded(0.2 * c - 0.04, width)[1]
        step = np.sign(c - 0.3) + one.penalty * pressed * 0.2 + s * rng.standard_normal(40)
        c = np.clip(c - step / (q * math.sqrt(t)), 0.0, 1.0)
    h = np.abs(c - 0.3) + one.penalty * np.maximum(0.2 * c - 0.04, 0.0)
    grid = np.linspace(0, 1, 2001)
    best = float((np.abs(grid - 0.3) + one.penalty * np.maximum(0.2 * grid - 0.04, 0.0)).min())
    assert (h - best > one.alpha).mean() <= one.failure
    assert float((h - best).mean()) < one.failure * one.alpha
