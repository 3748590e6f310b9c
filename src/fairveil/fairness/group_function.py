"""An objective at a frame: a function of the vector of group losses whose constants are known, and
f and g as one function.

`l` is a point per decision: the joint frequencies l[c, y, k] = (1/n) #{rows of cell c and label y
that are given class k}, or the shares l[c] = (1/n) sum of the losses of cell c. These are averages
over rows with a public n, so one person moves them by 1/n; a *rate* is no such average
(theory.md#losses), so rates are l divided by released shares, which the matrix of the function
carries.

**f subject to g <= 0** becomes h = f + G max(0, g) (Lemma 4.1). Corollary 4.2: with G = (alpha +
span f) / alpha a decision within alpha of the least h is within alpha of the least f among feasible
ones, and its g is at most alpha, where span f is any bound on f's range (the paper's is L_f
sqrt(K); `span` is L_f times the diameter of where l lies, if that is less).

Guarantees (tests/fairness/test_fairness_group_function.py):
1. `slopes` bound every partial derivative: by the mean value theorem, a row that comes or goes
   moves the value by no more.
2. Corollary 4.2's promise, on sampled functions and decisions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .. import _checks
from .._types import Floats
from .outer import Largest, Outer, SoftLargest


class LossFunction(ABC):
    """A function of group losses. Abstract."""

    shape: tuple[int, ...]

    @abstractmethod
    def value(self, losses: Floats) -> Floats:
        """(..., *shape) -> (...)."""

    @abstractmethod
    def gradient(self, losses: Floats) -> Floats:
        """A subgradient, (..., *shape) -> (..., *shape)."""

    @property
    @abstractmethod
    def slopes(self) -> tuple[Floats, Floats]:
        """The least and the largest that each partial derivative can be, each of that shape."""

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """L2."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """The Lipschitz constant of the gradient; infinite at a kink."""

    @property
    @abstractmethod
    def convex(self) -> bool:
        """Whether it is known to be."""

    @property
    def monotone(self) -> bool:
        """Whether it does not fall when a loss grows."""
        return float(self.slopes[0].min()) >= 0.0

    @property
    def trusted(self) -> bool:
        """Whether a user's word stands for the constants."""
        return False


@dataclass(frozen=True, eq=False)
class GroupFunction(LossFunction):
    """phi(M l - offsets) - bound. `lines`: M, sparse (m, size of l), of public or released numbers.
    `names`: of the m rates."""

    shape: tuple[int, ...]
    lines: Any
    outer: Outer
    bound: float = 0.0
    names: tuple[str, ...] = ()
    trusted: bool = False
    offsets: Floats | float = 0.0

    def rates(self, losses: Floats) -> Floats:
        """M l, (..., m)."""
        losses = np.asarray(losses, np.float64)
        lead = losses.shape[: losses.ndim - len(self.shape)]
        flat = np.ascontiguousarray(losses.reshape(math.prod(lead), math.prod(self.shape)).T)
        return np.asarray(np.asarray(self.lines @ flat).T.reshape(*lead, self.lines.shape[0]))

    def value(self, losses: Floats) -> Floats:
        return np.asarray(self.outer.value(self.rates(losses) - self.offsets) - self.bound)

    def gradient(self, losses: Floats) -> Floats:
        slopes = self.outer.gradient(self.rates(losses) - self.offsets)
        flat = np.asarray(
            self.lines.T @ np.ascontiguousarray(slopes.reshape(-1, slopes.shape[-1]).T)
        ).T
        return np.asarray(flat.reshape(*slopes.shape[:-1], *self.shape))

    @cached_property
    def slopes(self) -> tuple[Floats, Floats]:
        low, high = self.outer.slopes(self.lines)
        return low.reshape(self.shape), high.reshape(self.shape)

    @cached_property
    def lipschitz(self) -> float:
        return self.outer.lipschitz(self.lines)

    @cached_property
    def smoothness(self) -> float:
        return self.outer.smoothness(self.lines)

    @property
    def convex(self) -> bool:
        return bool(self.outer.convex)

    def less(self, bound: float) -> GroupFunction:
        """The same, less a number: a constraint."""
        return replace(self, bound=self.bound + bound)


@dataclass(frozen=True, eq=False)
class Worst(LossFunction):
    """The largest of several functions: at most 0 where all constraints hold."""

    functions: tuple[LossFunction, ...]
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        _checks.normalise(self, shape=self.functions[0].shape)

    def value(self, losses: Floats) -> Floats:
        return np.asarray(np.max([function.value(losses) for function in self.functions], axis=0))

    def gradient(self, losses: Floats) -> Floats:
        values = np.array([function.value(losses) for function in self.functions])
        gradients = np.array([function.gradient(losses) for function in self.functions])
        worst = values.argmax(axis=0).reshape(1, *values.shape[1:], *(1,) * len(self.shape))
        return np.asarray(np.take_along_axis(gradients, worst, axis=0)[0])

    @cached_property
    def slopes(self) -> tuple[Floats, Floats]:
        ends = [function.slopes for function in self.functions]
        return np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)

    @property
    def lipschitz(self) -> float:
        return max(function.lipschitz for function in self.functions)

    @property
    def smoothness(self) -> float:
        return self.functions[0].smoothness if len(self.functions) == 1 else math.inf

    @property
    def convex(self) -> bool:
        return all(function.convex for function in self.functions)

    @property
    def trusted(self) -> bool:
        return any(function.trusted for function in self.functions)


@dataclass(frozen=True, eq=False)
class Joint(LossFunction):
    """h = f + G max(0, g), or with `width` a smooth max: 0 below 0, x^2 / (2 width) up to width,
    then x - width / 2."""

    f: LossFunction
    g: LossFunction | None
    penalty: float
    width: float = 0.0
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        _checks.normalise(self, shape=self.f.shape)

    def value(self, losses: Floats) -> Floats:
        if self.g is None:
            return self.f.value(losses)
        excess = np.maximum(self.g.value(losses), 0.0)
        if self.width > 0.0:
            excess = np.where(
                excess < self.width, excess**2 / (2.0 * self.width), excess - self.width / 2.0
            )
        return np.asarray(self.f.value(losses) + self.penalty * excess)

    def gradient(self, losses: Floats) -> Floats:
        if self.g is None:
            return self.f.gradient(losses)
        excess = self.g.value(losses)
        share = (
            np.clip(excess / self.width, 0.0, 1.0)
            if self.width > 0.0
            else (excess >= 0.0).astype(np.float64)
        )
        share = share.reshape(*share.shape, *(1,) * len(self.shape))
        return np.asarray(self.f.gradient(losses) + self.penalty * share * self.g.gradient(losses))

    @cached_property
    def slopes(self) -> tuple[Floats, Floats]:
        low, high = self.f.slopes
        if self.g is None:
            return low, high
        down, up = self.g.slopes
        return low + self.penalty * np.minimum(down, 0.0), high + self.penalty * np.maximum(up, 0.0)

    @property
    def lipschitz(self) -> float:
        return self.f.lipschitz + (0.0 if self.g is None else self.penalty * self.g.lipschitz)

    @property
    def smoothness(self) -> float:
        """`Differs:` Lemma 5.1 leaves out the kink of max(0, g): without a width there is no such
        constant."""
        if self.g is None:
            return self.f.smoothness
        if self.width == 0.0:
            return math.inf
        return self.f.smoothness + self.penalty * (
            self.g.smoothness + self.g.lipschitz**2 / self.width
        )

    @property
    def convex(self) -> bool:
        return self.f.convex and (self.g is None or self.g.convex)

    @property
    def trusted(self) -> bool:
        return self.f.trusted or (self.g is not None and self.g.trusted)


def smoothed(h: Joint, width: float) -> Joint:
    """h with kinks of that width: of max(0, .), and of largest ones, which `SoftLargest` is over by
    at most as much."""
    return Joint(
        softened(h.f, width), None if h.g is None else softened(h.g, width), h.penalty, width
    )


def smoothing_adds(h: Joint, width: float) -> float:
    """How far `smoothed` may be above h: a softened largest by that width, in g times the
    penalty."""
    in_g = 0.0 if h.g is None or _largest_of(h.g) is None else h.penalty
    return width * ((0.0 if _largest_of(h.f) is None else 1.0) + in_g)


def softened(function: LossFunction, width: float) -> LossFunction:
    """The largest of several numbers as `SoftLargest`, which is over it by at most `width`; else
    the function itself."""
    found = _largest_of(function)
    return (
        function
        if found is None
        else replace(found, outer=SoftLargest(math.log(found.lines.shape[0]) / width))
    )


def _largest_of(function: LossFunction) -> GroupFunction | None:
    """The largest of several numbers that it is, if it is one."""
    one = (
        function.functions[0]
        if isinstance(function, Worst) and len(function.functions) == 1
        else function
    )
    if isinstance(one, GroupFunction) and isinstance(one.outer, Largest) and one.lines.shape[0] > 1:
        return one
    return None


def diameter(shape: tuple[int, ...], per_row: int = 1) -> float:
    """Of where l lies. Frequencies of decisions make a simplex, one a sensitive column; so do
    shares of losses in [0, 1] and what is missing to 1: `per_row` groups, each of one column, hold
    a row."""
    simplices = math.sqrt(2.0 * per_row)
    return simplices if len(shape) == 3 else min(simplices, math.sqrt(math.prod(shape)))


def span(f: LossFunction, per_row: int = 1) -> float:
    """A bound on f's range."""
    return f.lipschitz * diameter(f.shape, per_row)


def range_of(f: LossFunction, shares: Floats, per_row: int = 1) -> float:
    """A closer one where cells and labels have these shares, (cells, labels): what all of a share
    can change by deciding otherwise, added up."""
    low, high = f.slopes
    moved = (np.maximum(shares, 0.0) * (high.max(axis=-1) - low.min(axis=-1))).sum()
    return min(float(moved), span(f, per_row))


def corollary_4_2(
    f: LossFunction, alpha: float, per_row: int = 1, *, wide: float | None = None
) -> float:
    """The penalty G with which alpha for h is alpha for f and for g. `wide`: a closer bound on f's
    range than `span`."""
    alpha = _checks.positive(alpha=alpha)
    return (alpha + (span(f, per_row) if wide is None else wide)) / alpha


def stacked(lines: list[Floats], shape: tuple[int, ...]) -> Any:
    """Lines of M as a sparse array (m, size)."""
    return sparse.csr_array(
        np.array([np.asarray(line, np.float64).ravel() for line in lines]).reshape(
            -1, math.prod(shape)
        )
    )
