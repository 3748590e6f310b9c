"""Functions of a vector of rates that objectives are made of, with the constants that privacy and
convergence need.

An objective is phi(M l), l the vector of group losses, M a matrix of public or released numbers
(its *lines*), phi one of the functions here. Of each is known: whether it is convex, the ranges of
its partial derivatives, its Lipschitz constant (L2) and that of its gradient (infinite at a kink).
phi is taken at vectors that sums over rows can make; constants hold at all of them.

| function            | phi(v)                                   | convex | gradient                       |
| Total               | sum_i v_i                                | yes    | ones                           |
| Largest             | max_i v_i                                | yes    | 1 at the first largest         |
| SoftLargest(eta)    | (1/eta) ln sum_i e^(eta v_i)             | yes    | softmax p(eta v)               |
| Boltzmann(eta)      | sum_i p_i v_i, p = softmax(eta v)        | no     | p_i (1 + eta (v_i - phi))      |
| GeometricShortfall  | 1 + s - prod_i (v_i + s)^(1/m)           | yes    | -(1/m) prod^(1/m) / (v_i + s)  |
| HarmonicShortfall   | 1 + s - m / sum_i 1/(v_i + s)            | yes    | -m (share of 1/(v_i + s))^2    |
| Inequality(theta)   | (sum_{i<j} |v_i - v_j| - theta m sum v) / (m - 1) | yes | by ranks                 |
| Stated              | the user's                               | stated | the user's                     |

Proofs of the less obvious constants.
- SoftLargest: the Hessian is eta (diag p - p p'), so M' H M is at most eta times the largest
  squared length of a line.
- Boltzmann (the paper's smax, Definition 1.14): ln p_i = eta v_i - ln sum e^(eta v), so a partial
  derivative is p_i (1 + ln p_i + H(p)). They sum to 1. Of the k that are negative, with p's that
  sum to a, the sum is at least a - (1 - a) a ln(k/a) + a (1 - a) ln(1/(1 - a)): entropy is largest
  among equals, and the other p's have at least that of one. So the negative part is at most max
  over a of a ((1 - a) ln((m - 1)(1 - a)/a) - 1), and this much where one number is ahead of equal
  others. With a = (1 - t)/2 and t = tanh(x/2) the largest is (1 - t)/(2 t), at (ln(m - 1) + x) t =
  2: 0.1 for two numbers, 0.21 for four. `Differs:` the paper assumes it 1-Lipschitz and convex;
  already for two numbers it is neither.
- Geometric and harmonic: numbers above 1 count as 1 (shares that divide are noisy), which keeps
  convexity and all constants but that of the gradient, which holds where no number is above 1.
- Geometric: in x_i = ln(v_i + s) the log of a partial derivative's size, and of the gradient's
  length, is convex, so both are largest where each v_i is 0 or 1.
- Harmonic: with T = sum 1/u and shares t_i = 1/(u_i T): |gradient|^2 = m^2 sum t_i^4 <= m^2 max
  t^3, and no eigenvalue of the (negative definite) Hessian exceeds 2 m max t_i^2 / u_i in size.

Guarantees (tests/fairness/test_fairness_objectives.py):
1. Gradients are those of finite differences where there are any, and subgradients elsewhere.
2. No value, gradient or difference of gradients that sampling finds breaks a stated constant.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .. import _checks
from .._types import Floats


class Outer(ABC):
    """A function of m numbers, vectorised over leading axes. Abstract.

    `convex`; `monotone`: non-decreasing in every number; `keeps_lines`: it knows its lines by their
    places, so that one which takes no part is 0 and not left out.
    """

    convex: Any = True
    monotone: Any = False
    keeps_lines: ClassVar[bool] = False

    @abstractmethod
    def value(self, v: Floats) -> Floats:
        """(..., m) -> (...)."""

    @abstractmethod
    def gradient(self, v: Floats) -> Floats:
        """A subgradient, (..., m) -> (..., m)."""

    @abstractmethod
    def ranges(self, m: int) -> tuple[Floats, Floats]:
        """The least and the largest that each partial derivative can be, (m,) each."""

    @abstractmethod
    def steepness(self, m: int) -> float:
        """The largest length of a gradient."""

    @abstractmethod
    def bend(self, m: int) -> float:
        """The Lipschitz constant of the gradient; infinite where there is a kink."""

    def slopes(self, lines: sparse.csr_array) -> tuple[Floats, Floats]:
        """The same ranges for phi(M l), (K,) each, of M = `lines` (m, K), sparse: sums of each
        derivative's worst cases."""
        low, high = self.ranges(lines.shape[0])
        up, down = lines.maximum(0), -(-lines).maximum(0)
        return np.asarray(up.T @ low + down.T @ high), np.asarray(up.T @ high + down.T @ low)

    def lipschitz(self, lines: sparse.csr_array) -> float:
        """Of phi(M l)."""
        return self.steepness(lines.shape[0]) * spectral(lines)

    def smoothness(self, lines: sparse.csr_array) -> float:
        """Of phi(M l)'s gradient."""
        bend = self.bend(lines.shape[0])
        return bend * spectral(lines) ** 2 if bend > 0 else 0.0


@dataclass(frozen=True)
class Total(Outer):
    """The sum."""

    monotone = True

    def value(self, v: Floats) -> Floats:
        return np.asarray(v.sum(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        return np.ones_like(v)

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        return np.ones(m), np.ones(m)

    def steepness(self, m: int) -> float:
        return math.sqrt(m)

    def bend(self, m: int) -> float:
        return 0.0

    def lipschitz(self, lines: sparse.csr_array) -> float:
        return float(np.linalg.norm(np.asarray(lines.sum(axis=0))))


@dataclass(frozen=True)
class MeanOfRates(Total):
    """The sum of lines that are rates, or parts of them: what divides them is released too, and has
    noise."""


class _OneOf(Outer):
    """Gradients are convex combinations of unit vectors, or nearly: how much of one may be negative
    is `overshoot`."""

    def overshoot(self, m: int) -> float:
        return 0.0

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        more = self.overshoot(m)
        return np.full(m, -more), np.full(m, 1.0 + more)

    def slopes(self, lines: sparse.csr_array) -> tuple[Floats, Floats]:
        low, high = (
            np.asarray(end.todense(), np.float64).ravel()
            for end in (lines.min(axis=0), lines.max(axis=0))
        )
        more = self.overshoot(lines.shape[0]) * (high - low)
        return low - more, high + more

    def steepness(self, m: int) -> float:
        return 1.0 + 2.0 * self.overshoot(m)

    def lipschitz(self, lines: sparse.csr_array) -> float:
        return self.steepness(lines.shape[0]) * float(_lengths(lines).max(initial=0.0))


@dataclass(frozen=True)
class Largest(_OneOf):
    """The largest."""

    monotone = True

    def value(self, v: Floats) -> Floats:
        return np.asarray(v.max(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        return np.asarray(np.eye(v.shape[-1])[v.argmax(axis=-1)])

    def bend(self, m: int) -> float:
        return math.inf if m > 1 else 0.0


@dataclass(frozen=True)
class SoftLargest(_OneOf):
    """A convex, smooth bound from above on the largest: over it by at most ln(m) / sharpness."""

    sharpness: float
    monotone = True

    def __post_init__(self) -> None:
        _checks.normalise(self, sharpness=_checks.positive(sharpness=self.sharpness))

    def value(self, v: Floats) -> Floats:
        top = v.max(axis=-1, keepdims=True)
        return np.asarray(
            top[..., 0] + np.log(np.exp(self.sharpness * (v - top)).sum(axis=-1)) / self.sharpness
        )

    def gradient(self, v: Floats) -> Floats:
        return softmax(self.sharpness * v)

    def bend(self, m: int) -> float:
        return self.sharpness if m > 1 else 0.0

    def smoothness(self, lines: sparse.csr_array) -> float:
        return self.bend(lines.shape[0]) * float((_lengths(lines) ** 2).max(initial=0.0))


@dataclass(frozen=True)
class Boltzmann(_OneOf):
    """The smooth maximum of Definition 1.14: a mean of the numbers that leans to the largest. Not
    convex, not monotone."""

    sharpness: float
    convex = False

    def __post_init__(self) -> None:
        _checks.normalise(self, sharpness=_checks.positive(sharpness=self.sharpness))

    def value(self, v: Floats) -> Floats:
        return np.asarray((softmax(self.sharpness * v) * v).sum(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        return np.asarray(
            softmax(self.sharpness * v)
            * (1.0 + self.sharpness * (v - self.value(v)[..., np.newaxis]))
        )

    def overshoot(self, m: int) -> float:
        """(1 - t) / (2 t), t from below: the root of (ln(m - 1) + x) tanh(x / 2) = 2 lies in (0,
        3]."""
        if m < 2:
            return 0.0
        low, high = 0.0, 3.0
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (
                (middle, high)
                if (math.log(m - 1) + middle) * math.tanh(middle / 2.0) < 2.0
                else (low, middle)
            )
        t = math.tanh(low / 2.0)
        return (1.0 - t) / (2.0 * t) * (1.0 + 1e-12)

    def bend(self, m: int) -> float:
        """The Hessian is eta (diag(g + p) - g p' - p g'): at most eta (1 + o + 1 + 2 (1 + 2 o)), o
        the overshoot."""
        return self.sharpness * (4.0 + 5.0 * self.overshoot(m)) if m > 1 else 0.0


@dataclass(frozen=True, eq=False)
class Stated(Outer):
    """A user's function of rates in [0, 1], with the constants that the user states;
    `group_function.checked` looks for a vector that breaks them. Rates above 1, by noise in what
    divides them, count as 1."""

    function: Callable[[Floats], Any]
    derivative: Callable[[Floats], Any]
    steepest: float
    bending: float = math.inf
    convex: bool = True
    monotone: bool = False

    def value(self, v: Floats) -> Floats:
        flat = np.clip(v, 0.0, 1.0).reshape(-1, v.shape[-1])
        return np.array([float(self.function(line)) for line in flat], np.float64).reshape(
            v.shape[:-1]
        )

    def gradient(self, v: Floats) -> Floats:
        flat = np.clip(v, 0.0, 1.0).reshape(-1, v.shape[-1])
        return np.array(
            [np.asarray(self.derivative(line), np.float64) for line in flat], np.float64
        ).reshape(v.shape)

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        return np.full(m, 0.0 if self.monotone else -self.steepest), np.full(m, self.steepest)

    def steepness(self, m: int) -> float:
        return self.steepest

    def bend(self, m: int) -> float:
        return self.bending


def softmax(scores: Floats) -> Floats:
    """exp(scores), each line divided by its sum."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def spectral(lines: sparse.csr_array) -> float:
    """At least the largest singular value: sqrt(largest row sum x largest column sum) of sizes."""
    sizes = abs(lines)
    rows, columns = (np.asarray(sizes.sum(axis=axis)).max(initial=0.0) for axis in (1, 0))
    return math.sqrt(float(rows) * float(columns))


def _lengths(lines: sparse.csr_array) -> Floats:
    return np.sqrt(np.asarray(lines.power(2).sum(axis=1), np.float64).ravel())
