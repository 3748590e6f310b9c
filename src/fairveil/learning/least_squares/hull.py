"""The least value of a convex function of group losses, by linear oracle calls alone: cutting
planes, or Frank-Wolfe.

Let l(c) be the losses of coefficients c, convex in c, and h convex. Both methods hold a point of
the convex hull of the losses they have seen, with weights q, and a lower bound that is certain for
every c in reach of the oracle:

- **cutting planes** (Kelley's, on both sides): q makes max_s h(l_s) + w_s.(l - l_s) least over the
  hull, w_s a subgradient of h at l_s. With t the multipliers of the cuts and w = sum_s t_s w_s the
  oracle's answer gives the bound sum_s t_s (h(l_s) - w_s.l_s) + min_c w.l(c), for cuts are below h.
  Its answer is the next point, the mean's is the next cut. Where h is the largest of lines (means,
  largest losses, bounds on them) the multipliers of a few lines are all that is to be found: max_t
  min_c of the same sum is smooth, and solved first (`_dual`); its answer and its bound mostly close
  the gap.
- **Frank-Wolfe** (theory.md#objectives): l <- (1 - g) l + g l(argmin_c w.l(c)), w = grad h(l), g =
  2 / (t + 2). The bound is h(l) + min_c w.(l(c) - l).

Where h grows with every loss, the mean coefficients sum_j q_j c_j are at least as good as the
hull's point (Jensen, twice): the answer is one vector, not a mixture. Where it does not, the answer
is the best of all vectors seen, and the bound says how far from the best it may be. Every weight is
a function of released values: nothing here asks a curator.

Guarantees (tests/learning/test_learning_hull.py):
1. `lower` <= h(l(c)) for every c in the ball, and `value` = h(l(c)) of the answer.
2. For convex h that grows with every loss, value - lower is at most the tolerance asked for, unless
   the rounds end first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..._types import Floats
from ...errors import InputError
from ...fairness.functions import GroupFunction, Joint, Largest, LossFunction, Total, Worst
from ..descent import Progress
from ..group_objective.master import program
from .grams import GroupQuadratics

TOLERANCE = 1e-7
ROUNDS = 200
KEPT = 150  # cuts, and points of the hull: the latest
WORTH_A_DUAL = 40  # rounds: a step of the dual asks once or twice
ENOUGH = 1e-13  # of the dual's value
Lines = tuple[Floats, Floats]


class Ended(Enum):
    """Why a method stopped."""

    GAP = "no coefficients in reach are better by more than the tolerance"
    ROUNDS = "all rounds were done; coefficients in reach may be better by the gap"
    NOISE = (
        "the groups' losses are known through too much noise to be followed all the way: the "
        "coefficients lie between "
        "theirs and least squares of everybody"
    )
    NOTHING = (
        "the released number of rows cannot be told from none: the coefficients were left at zero"
    )
    SHORTENED = (
        "numbers are so large that rows, clipped, are hidden by the noise: the coefficients were "
        "left at zero; "
        "pass schema=, with bounds of the columns, or scale numbers to [-1, 1] by public constants"
    )


@dataclass(frozen=True, eq=False)
class Least:
    """The answer: coefficients, h of their losses, the bound below all, and how often the oracle
    was asked."""

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
            remedy = (
                "A function that is not convex is minimized over a list or a grid: "
                "method='exponential'."
            )
            expected = "a convex function of group losses"
            raise InputError.expected(expected, of="objective", got="another", remedy=remedy)
        if not h.monotone and math.isinf(quadratics.radius):
            remedy = (
                "Some weights may be negative: pass a radius, the largest norm of coefficients."
            )
            raise InputError.expected("a finite radius", of="radius", got=math.inf, remedy=remedy)
        # A first point: any will do, and least squares of everybody is mostly near.
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
        # h is convex, so its tangent at these losses lies below it everywhere.
        self.cuts.append((weights, value - float(weights @ losses)))
        return value

    def ask(self, weights: Floats, level: float) -> Floats:
        """The oracle's answer; `level` + w.l is below h everywhere."""
        new = self.quadratics.best(weights)
        # The oracle minimises level + w.l over all coefficients in reach, and that is below h: so
        # is its least value.
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
    if rounds >= WORTH_A_DUAL and (lines := _lines_of(h)) is not None:
        prices, level, calls = _dual(
            quadratics, *lines, h.penalty if isinstance(h, Joint) else 0.0, rounds // 4
        )
        seen.see(seen.ask(prices, level))
        if (found := seen.found(calls, tolerance)) is not None:
            return found
    for call in range(1, rounds + 1):
        slopes, levels = (np.array(part) for part in zip(*seen.cuts[-KEPT:], strict=True))
        shares, multipliers, _ = program(slopes, levels, np.array(seen.losses[-KEPT:]))
        weights, level = np.asarray(multipliers @ slopes), float(multipliers @ levels)
        # Losses are convex in the coefficients: the mean of points has at most the mean of their
        # losses.
        mean = np.asarray(shares @ np.array(seen.points[-KEPT:]))
        seen.see(seen.ask(weights, level))
        seen.see(mean)
        if progress is not None:
            progress(call, rounds)
        if (found := seen.found(call, tolerance)) is not None:
            return found
    return seen.ended(rounds)


def _lines_of(h: LossFunction) -> tuple[Lines, Lines] | None:
    """Of f and of g the lines (slopes, levels) whose largest they are; None where they are other
    functions."""
    if not isinstance(h, Joint) or h.width > 0.0:
        return None
    parts = [[h.f], [] if h.g is None else list(h.g.functions) if isinstance(h.g, Worst) else [h.g]]
    found: list[Lines] = []
    for functions in parts:
        slopes, levels = [np.zeros((0, len(h.f.slopes[0])))], [np.zeros(0)]
        for one in functions:
            if not isinstance(one, GroupFunction) or not isinstance(one.outer, Total | Largest):
                return None
            lines = np.asarray(one.lines.todense())
            offsets = np.broadcast_to(np.asarray(one.offsets, np.float64), len(lines))
            if isinstance(one.outer, Total):
                lines, offsets = lines.sum(axis=0, keepdims=True), np.array([offsets.sum()])
            slopes.append(lines)
            levels.append(-offsets - one.bound)
        found.append((np.concatenate(slopes), np.concatenate(levels)))
    return found[0], found[1]


def _dual(
    quadratics: GroupQuadratics, of_f: Lines, of_g: Lines, penalty: float, steps: int
) -> tuple[Floats, float, int]:
    """(w, level, oracle calls): multipliers of f's lines add up to 1, those of g's to the penalty
    at most, and the least value of level + w.l(c) over c is as large as they can make it: level +
    w.l is below h everywhere."""
    slopes, levels = (np.concatenate(pair) for pair in zip(of_f, of_g, strict=True))
    m, k = len(of_f[1]), len(of_g[1])
    calls = 0

    def falls(t: Floats) -> tuple[float, Floats]:
        nonlocal calls
        calls += 1
        slack = slopes @ quadratics.losses(quadratics.best(t @ slopes)) + levels
        return -float(t @ slack) / size, -slack / size

    start = np.concatenate([np.full(m, 1.0 / m), np.zeros(k)])
    size = max(
        abs(float(start @ (slopes @ quadratics.losses(quadratics.best(start @ slopes)) + levels))),
        1e-12,
    )
    if m + k == 1:
        return slopes[0], float(levels[0]), 1
    rules: list[Any] = []
    if m > 1:
        rules.append(
            {
                "type": "eq",
                "fun": lambda t: t[:m].sum() - 1.0,
                "jac": lambda t: np.arange(m + k) < m,
            }
        )
    if k:
        rules.append(
            {
                "type": "ineq",
                "fun": lambda t: penalty - t[m:].sum(),
                "jac": lambda t: -1.0 * (np.arange(m + k) >= m),
            }
        )
    ends: Any = [(1.0, 1.0) if m == 1 else (0.0, 1.0)] * m + [(0.0, penalty)] * k
    options: Any = {"maxiter": steps, "ftol": ENOUGH}
    with np.errstate(all="ignore"):
        found = minimize(
            falls, start, jac=True, bounds=ends, constraints=rules, method="SLSQP", options=options
        )
    t = np.maximum(np.nan_to_num(found.x), 0.0)
    t[:m] = t[:m] / t[:m].sum() if t[:m].sum() > 0.0 else 1.0 / m
    t[m:] *= min(1.0, penalty / max(float(t[m:].sum()), 1e-300)) if k else 1.0
    return np.asarray(t @ slopes), float(t @ levels), calls


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


METHODS: dict[str, Callable[..., Least]] = {
    "linear-oracle": cutting_planes,
    "frank-wolfe": frank_wolfe,
}
