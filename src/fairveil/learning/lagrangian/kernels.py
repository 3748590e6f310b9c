"""A round's post-processing for linear models, compiled: the walk, the duals, and the costs of
predictions. NumPy's calls would cost a small round ten times their arithmetic.

Guarantee (tests/learning/test_learning_kernels.py):
1. Terms are added in NumPy's own order: the bits are those of the formulas in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from ..._types import Floats

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
    squares: Floats,
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
    shape = excess.shape
    new_duals, new_integral, new_smooth = np.empty(shape), np.empty(shape), np.empty(shape)
    new_squares, broken = np.empty(len(squares)), np.empty(shape[1])
    for m in range(shape[0]):
        most = 0.0
        for j in range(shape[1]):
            e = excess[m, j]
            # An undefined excess presses nothing.
            e = 0.0 if np.isnan(e) else 1.0 if e == np.inf else -1.0 if e == -np.inf else e
            new_smooth[m, j] = e
            # Constraints that hold and are not pressed say nothing of how large a step should be.
            broken[j] = trust[m, j] * e * e if e > 0 or duals[m, j] > 0 else 0.0
            most = max(most, broken[j])
        new_squares[m] = squares[m] + (most if largest else total_of(broken))
        unit = (fading if new_squares[m] > 0 else 0.0) / max(
            np.sqrt(new_squares[m] / rounds), least
        )
        for j in range(shape[1]):
            e = trust[m, j] * new_smooth[m, j]
            new_integral[m, j] = min(max(integral[m, j] + pace * unit * e, 0.0), bound)
            new_smooth[m, j] = ema_nu * smooth[m, j] + (1.0 - ema_nu) * e
            new_duals[m, j] = min(
                max(new_integral[m, j] + kp * unit * new_smooth[m, j], 0.0), bound
            )
    return new_duals, new_integral, new_smooth, new_squares


@jit
def excesses(pull: Floats, histogram: Floats, bounds: Floats) -> Any:
    """What each constraint is above its bound: `pull` (models, constraints, places), `histogram`
    (models, places)."""
    out, terms = np.empty(bounds.shape), np.empty(histogram.shape[1])
    for m in range(bounds.shape[0]):
        for j in range(bounds.shape[1]):
            for x in range(terms.shape[0]):
                terms[x] = pull[m, j, x] * histogram[m, x]
            out[m, j] = total_of(terms) - bounds[m, j]
    return out


@jit
def costs_of(pull: Floats, duals: Floats, rows: Floats, ease: float) -> Any:
    """What a prediction costs one row, (models, places), and the weight of the row's loss."""
    models, constraints, places = pull.shape
    out, loss = np.empty((models, places)), np.empty(models)
    for m in range(models):
        loss[m] = 1.0 / (1.0 + ease * total_of(duals[m]))
        of_row = rows[m] * loss[m]
        for x in range(places):
            cost = pull[m, 0, x] * duals[m, 0]
            for j in range(1, constraints):
                cost = cost + pull[m, j, x] * duals[m, j]
            out[m, x] = cost * of_row
    return out, loss


@jit
def walked(
    weights: Floats,
    velocity: Floats,
    total: Floats,
    answer: Floats,
    share: Floats,
    rate: Floats,
    momentum: float,
    count: bool,
) -> Any:
    """`PrimalState.step` along answer / share: weights, velocity and total after it."""
    new_weights, new_velocity = np.empty(weights.shape), np.empty(weights.shape)
    new_total = np.empty(weights.shape)
    for m in range(weights.shape[0]):
        for k in range(weights.shape[1]):
            for i in range(weights.shape[2]):
                push = rate[m] * (answer[m, k, i] / share[m])
                v = momentum * velocity[m, k, i] - push
                w = weights[m, k, i] + momentum * v - push
                new_weights[m, k, i], new_velocity[m, k, i] = w, v
                new_total[m, k, i] = total[m, k, i] + w if count else total[m, k, i]
    return new_weights, new_velocity, new_total
