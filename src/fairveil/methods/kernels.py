"""A round's post-processing for linear models, compiled: the walk, the duals, and the costs of
predictions. NumPy's calls would cost a small round ten times their arithmetic.

Guarantee (tests/methods/test_methods_duals.py):
1. Terms are added in NumPy's own order: the bits are those of the formulas in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .._types import Floats

TOGETHER = 128  # terms that are added up in eight sums; more are halved first


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled, cached on disk, without fast-math."""
    compiled: Callable[..., Any] = njit(cache=True, error_model="numpy")(function)
    return compiled


@jit
def total_of(terms: Floats) -> Any:
    """The sum, to the bit as NumPy adds up an array that is contiguous."""
    n = terms.shape[0]
    if n < 8:
        total = 0.0
        for i in range(n):
            total = total + terms[i]
        return total
    if n > TOGETHER:
        # NumPy adds in pairs, eight partial sums at a time: the same order gives the same bits as
        # before it was compiled.
        half = n // 2 - n // 2 % 8
        return total_of(terms[:half]) + total_of(terms[half:])
    a, b, c, d = terms[0], terms[1], terms[2], terms[3]
    e, f, g, h = terms[4], terms[5], terms[6], terms[7]
    for i in range(8, n - n % 8, 8):
        a, b, c, d = a + terms[i], b + terms[i + 1], c + terms[i + 2], d + terms[i + 3]
        e, f, g, h = e + terms[i + 4], f + terms[i + 5], g + terms[i + 6], h + terms[i + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(n - n % 8, n):
        total = total + terms[i]
    return total


@jit
def pressed(
    excess: Floats,
    trust: Floats,
    duals: Floats,
    integral: Floats,
    smooth: Floats,
    squares: float,
    rounds: int,
    fading: float,
    pace: float,
    kp: float,
    ema_nu: float,
    bound: float,
    least: float,
    largest: bool,
) -> Any:
    """`ProjectedAscent.step`: duals, integral, smooth and squares after this round."""
    count = len(excess)
    new_duals, new_integral, new_smooth = np.empty(count), np.empty(count), np.empty(count)
    broken, most = np.empty(count), 0.0
    for j in range(count):
        e = excess[j]
        # An undefined excess presses nothing.
        e = 0.0 if np.isnan(e) else 1.0 if e == np.inf else -1.0 if e == -np.inf else e
        new_smooth[j] = e
        # Constraints that hold and are not pressed say nothing of how large a step should be.
        broken[j] = trust[j] * e * e if e > 0 or duals[j] > 0 else 0.0
        most = max(most, broken[j])
    new_squares = squares + (most if largest else total_of(broken))
    unit = (fading if new_squares > 0 else 0.0) / max(np.sqrt(new_squares / rounds), least)
    for j in range(count):
        e = trust[j] * new_smooth[j]
        new_integral[j] = min(max(integral[j] + pace * unit * e, 0.0), bound)
        new_smooth[j] = ema_nu * smooth[j] + (1.0 - ema_nu) * e
        new_duals[j] = min(max(new_integral[j] + kp * unit * new_smooth[j], 0.0), bound)
    return new_duals, new_integral, new_smooth, new_squares


@jit
def excesses(pull: Floats, histogram: Floats, bounds: Floats) -> Any:
    """What each constraint is above its bound: `pull` (constraints, places), `histogram`
    (places,)."""
    out, terms = np.empty(len(bounds)), np.empty(len(histogram))
    for j in range(len(bounds)):
        for x in range(len(terms)):
            terms[x] = pull[j, x] * histogram[x]
        out[j] = total_of(terms) - bounds[j]
    return out


@jit
def costs_of(pull: Floats, duals: Floats, rows: float, ease: float) -> Any:
    """What a prediction costs one row, (places,), and the weight of the row's loss."""
    constraints, places = pull.shape
    out, loss = np.empty(places), 1.0 / (1.0 + ease * total_of(duals))
    of_row = rows * loss
    for x in range(places):
        cost = pull[0, x] * duals[0]
        for j in range(1, constraints):
            cost = cost + pull[j, x] * duals[j]
        out[x] = cost * of_row
    return out, loss


@jit
def walked(
    weights: Floats,
    velocity: Floats,
    total: Floats,
    answer: Floats,
    share: float,
    rate: float,
    momentum: float,
    count: bool,
) -> Any:
    """`PrimalState.step` along answer / share: weights, velocity and total after it."""
    new_weights, new_velocity = np.empty(weights.shape), np.empty(weights.shape)
    new_total = np.empty(weights.shape)
    for k in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            push = rate * (answer[k, i] / share)
            v = momentum * velocity[k, i] - push
            w = weights[k, i] + momentum * v - push
            new_weights[k, i], new_velocity[k, i] = w, v
            new_total[k, i] = total[k, i] + w if count else total[k, i]
    return new_weights, new_velocity, new_total
