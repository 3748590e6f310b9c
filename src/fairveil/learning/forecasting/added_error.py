"""About how much error the noise of a descent adds to a linear model. An estimate, with the two
numbers that it supposes.

A descent with noise is, near its end, a linear filter. A weight of curvature k answers a constant
pull with the part phi of its way to where it is pulled, and noise of deviation s in the averaged
gradient with a deviation of s |h|: both follow from the steps, the momentum and the average alone
(`response`). Then a row has the score phi t + sigma e, where t is the score of the model without
noise, e is normal, and sigma = s |h| times the usual length of a row. It is decided wrongly more
often by

    E_t [ (2 sigmoid(|t|) - 1) Phi(-phi |t| / sigma) ],        t normal with deviation `SPREAD`

`Supposed here:` scores spread by `SPREAD` logits, the log loss is curved by `CURVATURE` along each
scaled number, and clipping takes nothing away. It stands beside fits in
benchmarks/results/planned_noise.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from ..primal_dual import LONG_ROW, Plan

SPREAD = 2.0
CURVATURE = 0.15
NODES = np.polynomial.hermite_e.hermegauss(64)


def added_error(plan: Plan, rows: float) -> float:
    """Of the plan of a linear model with noise, for so many rows."""
    s, layout = plan.settings, plan.layout
    rate = plan.rate_of(rows)
    if rate == 0.0:
        return _flipped(0.0, 1.0)
    rate = min(rate, 1.0 / CURVATURE)
    told, kicked = response(rate, s.momentum, s.rounds, s.averaged)
    unit = plan.unit_of(plan.clip_at(rows))
    noise = plan.gradient_multiplier * unit / (plan.sampling_rate * rows)
    length = min(LONG_ROW, math.sqrt(1.0 + layout.numbers + len(layout.code_sizes)))
    return _flipped(told, noise * kicked * length)


def response(rate: float, momentum: float, rounds: int, averaged: float) -> tuple[float, float]:
    """(phi, |h|) of Nesterov's descent on k/2 w^2, of the average of its late iterates
    (`duals.PrimalState`)."""
    late = (1.0 - averaged) * rounds
    weight, velocity, total, counted = 0.0, 0.0, 0.0, 0
    # what each round's noise came to: weight, velocity, and the sum that is averaged
    kicks = np.zeros((rounds, 3))
    for t in range(rounds):
        push = rate * (CURVATURE * weight - CURVATURE)  # pulled to 1
        velocity = momentum * velocity - push
        weight += momentum * velocity - push
        w, v = kicks[:t, 0], kicks[:t, 1]
        v[:] = momentum * v - rate * CURVATURE * w
        w[:] = w + momentum * v - rate * CURVATURE * w
        kicks[t, 0], kicks[t, 1] = -(1.0 + momentum) * rate, -rate
        if t >= late:
            total, counted = total + weight, counted + 1
            kicks[: t + 1, 2] += kicks[: t + 1, 0]
    many = max(1, counted)
    return total / many, float(np.linalg.norm(kicks[:, 2])) / many


def _flipped(told: float, noise: float) -> float:
    """The expectation above."""
    nodes, weights = NODES
    t = SPREAD * np.abs(nodes)
    wrong = ndtr(-told * t / noise) if noise > 0 else np.where(told * t > 0, 0.0, 0.5)
    return float(((weights / weights.sum()) * np.tanh(t / 2.0) * wrong).sum())
