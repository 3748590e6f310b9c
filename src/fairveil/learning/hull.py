"""The least value of a convex function of group losses, by linear oracle calls alone: cutting planes, or Frank-Wolfe.

Let l(c) be the losses of coefficients c, convex in c, and h convex. Both methods hold a point of the convex hull of the losses
they have seen, with weights q, and a lower bound that is certain for every c in reach of the oracle:

- **cutting planes** (Kelley's, on both sides): q makes max_s h(l_s) + w_s.(l - l_s) least over the hull, w_s a subgradient of h
  at l_s. With t the multipliers of the cuts and w = sum_s t_s w_s the oracle's answer gives the bound
  sum_s t_s (h(l_s) - w_s.l_s) + min_c w.l(c), for cuts are below h. Its answer is the next point, the mean's is the next cut.
- **Frank-Wolfe** (PRIVACY 3.5): l <- (1 - g) l + g l(argmin_c w.l(c)), w = grad h(l), g = 2 / (t + 2). The bound is
  h(l) + min_c w.(l(c) - l).

Where h grows with every loss, the mean coefficients sum_j q_j c_j are at least as good as the hull's point (Jensen, twice):
the answer is one vector, not a mixture. Where it does not, the answer is the best of all vectors seen, and the bound says how
far from the best it may be. Every weight is a function of released values: nothing here asks a curator.

Guarantees (tests/learning/test_learning_hull.py):
1. `lower` <= h(l(c)) for every c in the ball, and `value` = h(l(c)) of the answer.
2. For convex h that grows with every loss, value - lower is at most the tolerance asked for, unless the rounds end first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..errors import InputError, complaint
from ..fairness.group_function import LossFunction
from .descent import Floats, Progress
from .grams import GroupQuadratics
from .master import program

TOLERANCE = 1e-7
ROUNDS = 200
KEPT = 150  # cuts, and points of the hull: the latest


class Ended(Enum):
    """Why a method stopped."""

    GAP = "no coefficients in reach are better by more than the tolerance"
    ROUNDS = "all rounds were done; coefficients in reach may be better by the gap"
    NOTHING = "the released number of rows cannot be told from none: the coefficients were left at zero"
    SHORTENED = (
        "numbers are so large that rows, shortened to the clip, are hidden by the noise: the coefficients were left at zero; "
        "pass schema=, with bounds of the columns, or scale numbers to [-1, 1] by public constants"
    )


@dataclass(frozen=True, eq=False)
class Least:
    """The answer: coefficients, h of their losses, the bound below all, and how often the oracle was asked."""

    coefficients: Floats
    value: float
    lower: float
    calls: int
    reason: Ended

    @property
    def gap(self) -> float:
        """How much better any coefficients in reach can be."""
        return self.value - self.lower


class _Seen:
    """What was seen so far, and the best of it."""

    def __init__(self, quadratics: GroupQuadratics, h: LossFunction) -> None:
        self.quadratics, self.h = quadratics, h
        self.points: list[Floats] = []
        self.losses: list[Floats] = []
        self.cuts: list[tuple[Floats, float]] = []  # h(l) >= level + w.l
        self.value, self.lower = math.inf, -math.inf
        self.coefficients: Floats = np.zeros(0)
        if not h.convex:
            remedy = "A function that is not convex is minimised over a list or a grid: method='exponential'."
            expected = "a convex function of group losses"
            raise InputError(complaint(expected=expected, of="objective", got="another", remedy=remedy))
        if not h.monotone and math.isinf(quadratics.radius):
            remedy = "Some weights may be negative: pass a radius, the largest norm of coefficients."
            raise InputError(complaint(expected="a finite radius", of="radius", got=math.inf, remedy=remedy))
        weights = np.maximum(h.gradient(np.zeros(len(quadratics.forms))), 0.0)
        self.see(quadratics.best(np.where(weights.any(), weights, 1.0)))

    def see(self, c: Floats) -> Floats:
        """Take coefficients in, and the cut at their losses."""
        losses = self.quadratics.losses(c)
        value = self.cut(losses)
        self.points.append(c)
        self.losses.append(losses)
        if value < self.value:
            self.coefficients, self.value = c, value
        return losses

    def cut(self, losses: Floats) -> float:
        """A cut at these losses, and h there."""
        value, weights = float(self.h.value(losses)), self.h.gradient(losses)
        self.cuts.append((weights, value - float(weights @ losses)))
        return value

    def ask(self, weights: Floats, level: float) -> Floats:
        """The oracle's answer; `level` + w.l is below h everywhere."""
        new = self.quadratics.best(weights)
        self.lower = max(self.lower, level + float(weights @ self.quadratics.losses(new)))
        return new

    def found(self, calls: int, tolerance: float) -> Least | None:
        """The answer, once the gap is closed."""
        if self.value - self.lower > tolerance:
            return None
        return self.ended(calls, Ended.GAP)

    def ended(self, calls: int, reason: Ended = Ended.ROUNDS) -> Least:
        return Least(self.coefficients, self.value, min(self.lower, self.value), calls, reason)


def cutting_planes(
    quadratics: GroupQuadratics,
    h: LossFunction,
    *,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> Least:
    """Until the bound is `tolerance` below the best value, or the rounds end."""
    seen = _Seen(quadratics, h)
    for call in range(1, rounds + 1):
        slopes, levels = (np.array(part) for part in zip(*seen.cuts[-KEPT:], strict=True))
        shares, multipliers, _ = program(slopes, levels, np.array(seen.losses[-KEPT:]))
        weights, level = np.asarray(multipliers @ slopes), float(multipliers @ levels)
        mean = np.asarray(shares @ np.array(seen.points[-KEPT:]))
        seen.see(seen.ask(weights, level))
        seen.see(mean)
        if progress is not None:
            progress(call, rounds)
        if (found := seen.found(call, tolerance)) is not None:
            return found
    return seen.ended(rounds)


def frank_wolfe(
    quadratics: GroupQuadratics,
    h: LossFunction,
    *,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> Least:
    """The same from averaged losses, with steps 2 / (t + 2)."""
    seen = _Seen(quadratics, h)
    mean, losses = seen.points[0], seen.losses[0]
    for call in range(1, rounds + 1):
        weights = h.gradient(losses)
        new = seen.ask(weights, float(h.value(losses)) - float(weights @ losses))
        step = 2.0 / (call + 2.0)
        losses = (1.0 - step) * losses + step * seen.see(new)
        mean = (1.0 - step) * mean + step * new
        seen.see(mean)
        if progress is not None:
            progress(call, rounds)
        if (found := seen.found(call, tolerance)) is not None:
            return found
    return seen.ended(rounds)


METHODS: dict[str, Callable[..., Least]] = {"linear-oracle": cutting_planes, "frank-wolfe": frank_wolfe}
