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
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .. import _checks
from .._types import Floats
from ..errors import InputError, complaint
from .outer import Largest, Outer, SoftLargest

USER_MADE = "a user-made objective"


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


def checked(
    function: GroupFunction, *, points: int = 200, tolerance: float = 1e-6
) -> GroupFunction:
    """A user's function, if no sampled vector breaks what is stated of it; else an error that says
    what did.

    Sampling refutes, it proves nothing: `trusted` stays, and the statement says so. Vectors are in
    [0, 1], all 0 and all 1 among them, many sum to 1; pairs are far apart and close. Where the
    gradient has no Lipschitz constant it may be another than that of finite differences at less
    than half of the vectors.
    """
    outer, m = function.outer, function.lines.shape[0]
    rng = np.random.default_rng(0)
    v, w = rng.dirichlet(np.ones(m), points), rng.random((points, m))
    v[:2] = np.array([[0.0], [1.0]])
    near = np.clip(w + 1e-3 * rng.standard_normal(w.shape), 0.0, 1.0)
    starts, ends = np.concatenate([v, w, near]), np.concatenate([w, v, w])
    values, others, middle = (
        _finite(outer.value, place) for place in (starts, ends, (starts + ends) / 2.0)
    )
    slopes, at_ends = _finite(outer.gradient, starts), _finite(outer.gradient, ends)
    scale = 1.0 + float(np.abs(values).max())
    slack = tolerance * scale
    away = ends - starts
    apart = np.linalg.norm(away, axis=-1)
    if outer.convex and (middle > (values + others) / 2.0 + slack).any():
        _refuse(
            "a convex function",
            "one whose middle lies above",
            "State convex=False, and choose by method='exponential'.",
        )
    if outer.convex and (others < values + (slopes * away).sum(axis=-1) - slack).any():
        _refuse(
            "a subgradient of the function",
            "a line that is above it",
            "Check `gradient` by finite differences.",
        )
    steepest = max(
        float(np.linalg.norm(slopes, axis=-1).max()), float((np.abs(others - values) / apart).max())
    )
    if steepest > outer.steepness(m) * (1.0 + tolerance) + slack:
        _refuse(
            f"slopes of at most {outer.steepness(m):g}, as stated",
            f"one of {steepest:g}",
            "State a larger lipschitz.",
        )
    bend, turned = outer.bend(m), float((np.linalg.norm(at_ends - slopes, axis=-1) / apart).max())
    if turned > bend * (1.0 + tolerance) + slack:
        _refuse(
            f"gradients that turn by at most {bend:g}, as stated",
            f"{turned:g}",
            "State a larger smoothness, or inf.",
        )
    step = 1e-6
    allowed = 1e-3 * scale + (bend * step if math.isfinite(bend) else 0.0)
    for axis in range(m):
        shift = step * np.eye(m)[axis]
        low, high = np.maximum(starts[::3] - shift, 0.0), np.minimum(starts[::3] + shift, 1.0)
        rise = (_finite(outer.value, high) - _finite(outer.value, low)) / (high - low)[:, axis]
        off = np.abs(rise - slopes[::3, axis]) > allowed
        if off.mean() > (0.05 if math.isfinite(bend) else 0.5):
            _refuse(
                "the gradient of the function",
                f"another along rate {axis}",
                "Check `gradient` by finite differences.",
            )
    if outer.monotone and (slopes < -slack).any():
        _refuse("a non-decreasing function", "a negative slope", "State monotone=False.")
    return function


def _finite(function: Callable[[Floats], Floats], v: Floats) -> Floats:
    """At sampled vectors, which are public: what a user's function says of them may be shown."""
    remedy = (
        "Return a number, and a gradient with a number for each rate, at every vector of rates in "
        "[0, 1]."
    )
    try:
        found = function(v)
    except Exception as problem:
        got = f"{type(problem).__name__}: {problem}"
        raise InputError(
            complaint(expected="a number", of=USER_MADE, got=got, remedy=remedy)
        ) from problem
    if not np.isfinite(found).all():
        _refuse("finite values and gradients", "NaN or infinite ones", remedy)
    return found


def _refuse(expected: str, got: str, remedy: str) -> None:
    raise InputError(complaint(expected=expected, of=USER_MADE, got=got, remedy=remedy))


def stacked(lines: list[Floats], shape: tuple[int, ...]) -> Any:
    """Lines of M as a sparse array (m, size)."""
    return sparse.csr_array(
        np.array([np.asarray(line, np.float64).ravel() for line in lines]).reshape(
            -1, math.prod(shape)
        )
    )
