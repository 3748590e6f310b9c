"""Rounds of a descent whose answers are exact: curvature, and steps that no constraint presses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._types import Floats
from .linear_state import LinearState, restarted
from .primal import PrimalState

CURVATURE_ROUNDS = 12
"""Passes of power iteration for the largest curvature, where features are public."""
WARM_ROUNDS = 60
"""Exact rounds without constraints before the first noisy one, where features and labels are
public: they are free."""


def accelerated(state: LinearState, gradient: Floats, *, count: bool) -> tuple[PrimalState, Floats]:
    """A step along an exact gradient: Nesterov's growing momentum, begun anew where it points
    uphill."""
    age = np.zeros(len(state.rows)) if state.age is None else state.age
    walk, age = restarted(state.walk, gradient, age)
    momentum = ((age + 1.0) / (age + 4.0))[:, np.newaxis, np.newaxis]
    return walk.step(
        gradient, state.rate[:, np.newaxis, np.newaxis], momentum, count=count
    ), age + 1.0


def warmed(state: LinearState, gradient: Floats) -> LinearState:
    """A round that presses no constraint."""
    walk, age = accelerated(state, gradient, count=False)
    if state.round + 1 < WARM_ROUNDS:
        return replace(state, walk=walk, age=age, round=state.round + 1)
    rested = replace(walk, velocity=np.zeros_like(walk.velocity))
    return replace(state, walk=rested, age=None, round=0, warming=False, opened=walk.weights)


def looked(state: LinearState, gradient: Floats, outputs: int) -> LinearState:
    """Power iteration for the largest eigenvalue of X'X / rows, from exact answers about public
    features.

    The gradient of the squared loss at v is X'(Xv - y); at zero it is -X'y. The log loss is at
    most a quarter as curved (half with several classes).
    """
    if state.pull is None:
        return replace(state, pull=gradient)
    assert state.probe is not None
    image = (gradient - state.pull) / state.rows[:, np.newaxis, np.newaxis]
    size = np.sqrt((image * image).sum(axis=(1, 2)))
    if state.round + 1 < CURVATURE_ROUNDS:
        probe = image / np.maximum(size, 1e-300)[:, np.newaxis, np.newaxis]
        return replace(state, probe=probe, round=state.round + 1)
    curvature = (0.25 if outputs == 1 else 0.5) * 1.1 * np.maximum(size, 1e-300)
    return replace(state, probe=None, pull=None, round=0, rate=1.0 / curvature)
