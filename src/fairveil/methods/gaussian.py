"""What a promise leaves for Gaussian noise: mu, all of the squared budget of a run being mu^2
(theory.md#t1); and several answers to one question, which are worth one of less noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from .._types import Floats
from ..core.events import Event
from ..core.promise import Promise
from ..errors import InputError
from ..privacy import calibrate

Planned = TypeVar("Planned")
DELTA = "pass delta=1e-6, say"
OR_EXPONENTIAL = "pass delta=1e-6, or method='exponential'"


def budget_of(promise: Promise, way_out: str = DELTA) -> float:
    """mu; an error where delta is 0 and there is none."""
    from ..core.cost import gaussian_mu

    mu = gaussian_mu(promise.epsilon, promise.delta)
    if mu <= 0:
        remedy = f"Noise here is Gaussian, which is never private at delta=0: {way_out}."
        raise InputError.expected("a delta above 0", of="delta", got=promise.delta, remedy=remedy)
    return mu


def quietest(
    promise: Promise,
    at: Callable[[float], Planned],
    events: Callable[[Planned], Event],
    *,
    exact: bool,
    way_out: str = DELTA,
) -> Planned:
    """What is made `at` the least noise that keeps the promise, or at none where it is `exact`.
    `events`: what it will release."""
    if exact:
        return at(0.0)
    budget_of(promise, way_out)
    return at(calibrate(promise, lambda z: events(at(z)), start=10.0).multiplier)


def joint_multiplier(multipliers: Sequence[float]) -> float:
    """Of one answer that costs as much as answers at all of these: 1 / z^2 adds up."""
    return 1.0 / math.sqrt(sum(1.0 / z**2 for z in multipliers))


def averaged(answers: Sequence[Floats], multipliers: Sequence[float]) -> Floats:
    """The mean of answers to one question that has the least noise: weighed by 1 / z^2, it has
    that of one answer at `joint_multiplier`."""
    weights = np.array([1.0 / z**2 for z in multipliers])
    return np.tensordot(weights / weights.sum(), np.array(answers), axes=1)
