"""Counts of rows by parts, released once: how they are asked, at what price, and by which
distribution their noise is drawn.

Guarantees (tests/learning/test_learning_certificate_plan.py):
1. The plan is one event, made of the promise and the relation alone, and costs at most the promise.
2. One neighbour moves the counts by 1 in L1 and L2 (add-remove), or by 2 and sqrt 2 (a row
   replaced, or its group changed).
3. `noise` is the distribution that the curator draws from.
4. `together` costs at most the promise too: it is the release as many times as a person may be
   counted.
5. `beside` loses no more, at any epsilon, than the Gaussian releases of what was charged before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ...core.events import Composed, DiscreteLaplace, Event, Gaussian, NonPrivate, NoOp, Repeated
from ...core.promise import Promise
from ...curator import AttachedCodes, CodeHistogram, Curator, Measurement
from ...privacy.accounting.calibration import calibrate
from ..counts.noise import CountNoise

NONE = CountNoise("none", 0.0)
WIDEST = 1.25
"""How much more noise than the promise asks is worth a price of nothing."""


@dataclass(frozen=True)
class PartsPlan:
    """One histogram of parts. `multiplier` 0: exact, where nobody's privacy depends on it.
    `times`: in how many such histograms one who is protected may be counted."""

    promise: Promise
    kind: str
    multiplier: float
    times: int = 1

    @property
    def moved(self) -> int:
        """How many counts a neighbour may change by one."""
        return 1 if self.promise.neighbours == "add-remove" else 2

    @property
    def event(self) -> Event:
        """The release, as the curator will log it."""
        if not self.promise.is_private:
            return NonPrivate()
        return event_of(self.kind, self.multiplier, self.moved) if self.multiplier else NoOp()

    @property
    def together(self) -> Event:
        """All releases in which one who is protected may be counted."""
        return repeated(self.event, self.times)

    @property
    def noise(self) -> CountNoise:
        """The distribution of the noise of each count."""
        return noise_of(self.event, self.promise.neighbours)

    def release(
        self, curator: Curator, attached: AttachedCodes, purpose: str
    ) -> npt.NDArray[np.float64]:
        """The noisy counts (parts,)."""
        measurement = Measurement(
            CodeHistogram(attached), self.multiplier, self.kind if self.multiplier else "gaussian"
        )
        return np.asarray(curator.answer([measurement], purpose=purpose)[0], np.float64).ravel()


def plan(promise: Promise, *, reads_groups: bool, times: int = 1) -> PartsPlan:
    """The noise with the least variance that keeps the promise: discrete Laplace, or Gaussian where
    there is a delta.

    `reads_groups`: whether the parts depend on sensitive columns; where they alone are protected,
    other counts are free. `times`: `times` such releases together keep the promise
    (theory.md#monitor-persons).
    """
    if not promise.is_private or (promise.protects == "sensitive_features" and not reads_groups):
        return PartsPlan(promise, "none", 0.0, times)
    found = []
    for kind in ("discrete-laplace", "gaussian") if promise.delta > 0 else ("discrete-laplace",):
        shape = PartsPlan(promise, kind, 1.0, times)
        z = calibrate(promise, partial(_repeated, kind, shape.moved, times)).multiplier
        found.append(PartsPlan(promise, kind, z, times))
    return min(found, key=lambda one: one.noise.sd)


def beside(promise: Promise, before: Event) -> PartsPlan | None:
    """Counts of other people that cost nothing beside a release that is charged: the Gaussian part
    of what that may lose covers them, as a person is in one of both (theory.md#one-price). None: it
    has none, or too little for useful counts."""
    precision = _gaussian(before)
    if precision <= 0.0 or promise.delta <= 0.0:
        return None
    own = calibrate(promise, Gaussian).multiplier
    found = PartsPlan(promise, "gaussian", max(1.0 / math.sqrt(precision), own))
    return found if found.multiplier <= WIDEST * own else None


def _gaussian(event: Event) -> float:
    """The sum of 1 / multiplier^2 of all its Gaussian releases that every row is in."""
    match event:
        case Gaussian():
            return 1.0 / event.noise_multiplier**2
        case Repeated():
            return event.count * _gaussian(event.event)
        case Composed():
            return math.fsum(map(_gaussian, event.events))
    return 0.0


def repeated(event: Event, times: int) -> Event:
    """An event so many times; once is the event itself."""
    return event if times == 1 else Repeated(event, times)


def _repeated(kind: str, moved: int, times: int, z: float) -> Event:
    return repeated(event_of(kind, z, moved), times)


def event_of(kind: str, z: float, moved: int) -> Event:
    """The event of one histogram whose counts a neighbour moves by `moved` in all."""
    if kind == "discrete-laplace":
        return DiscreteLaplace(z, moved)
    return Gaussian(z)


def noise_of(event: Event, neighbours: str) -> CountNoise:
    """The distribution of each count's noise, from the event that was logged."""
    if isinstance(event, DiscreteLaplace):
        return CountNoise("discrete-laplace", event.noise_multiplier * event.sensitivity)
    if isinstance(event, Gaussian):
        return CountNoise(
            "gaussian",
            event.noise_multiplier * math.sqrt(1.0 if neighbours == "add-remove" else 2.0),
        )
    return NONE
