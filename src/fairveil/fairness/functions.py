"""Functions of a vector of rates, and of the vector of group losses, that objectives are made of,
with the constants that privacy and convergence need.

An objective is phi(M l), l the vector of group losses, M a matrix of public or released numbers
(its *lines*), phi one of the functions here. Of each is known: whether it is convex, the ranges of
its partial derivatives, its Lipschitz constant (L2) and that of its gradient (infinite at a kink).
phi is taken at vectors that sums over rows can make; constants hold at all of them.

| function            | phi(v)                                   | convex | gradient                       |
| Total               | sum_i v_i                                | yes    | ones                           |
| Largest             | max_i v_i                                | yes    | 1 at the first largest         |
| SoftLargest(eta)    | (1/eta) ln sum_i e^(eta v_i)             | yes    | softmax p(eta v)               |
| GeometricShortfall  | 1 + s - prod_i (v_i + s)^(1/m)           | yes    | -(1/m) prod^(1/m) / (v_i + s)  |
| HarmonicShortfall   | 1 + s - m / sum_i 1/(v_i + s)            | yes    | -m (share of 1/(v_i + s))^2    |
| Inequality(theta)   | (sum_{i<j} |v_i - v_j| - theta m sum v) / (m - 1) | yes | by ranks                 |
| BoltzmannOfGaps     | sum_i p_i |v_i|, p = softmax(eta |v|)    | no     | p_i (1 + eta (|v_i| - phi)) sgn |
| Stated              | the user's                               | stated | the user's                     |

Proofs of the less obvious constants.
- SoftLargest: the Hessian is eta (diag p - p p'), so M' H M is at most eta times the largest
  squared length of a line.
- Boltzmann (the paper's smax, Definition 1.14, of numbers v): ln p_i = eta v_i - ln sum e^(eta v), so a partial
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

`l` is a point per decision: the joint frequencies l[c, y, k] = (1/n) #{rows of cell c and label y
that are given class k}, or the shares l[c] = (1/n) sum of the losses of cell c. These are averages
over rows with a public n, so one person moves them by 1/n; a *rate* is no such average
(theory.md#losses), so rates are l divided by released shares, which the matrix of the function
carries.

**f subject to g <= 0** becomes h = f + G max(0, g) (Lemma 4.1). Corollary 4.2: with G = (alpha +
span f) / alpha a decision within alpha of the least h is within alpha of the least f among feasible
ones, and its g is at most alpha, where span f is any bound on f's range (the paper's is L_f
sqrt(K); `span` is L_f times the diameter of where l lies, if that is less).

Guarantees (tests/fairness/test_fairness_objectives.py, test_fairness_group_function.py)
    1. Gradients are those of finite differences where there are any, and subgradients elsewhere.
    2. No value, gradient or difference of gradients that sampling finds breaks a stated constant.
    3. `slopes` bound every partial derivative: by the mean value theorem, a row that comes or goes
       moves the value by no more.
    4. Corollary 4.2's promise, on sampled functions and decisions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .. import _checks
from .._types import Floats
from ..core.errors import need
from ..errors import InputError


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

    def bend(self, m: int) -> float:
        """The Lipschitz constant of the gradient; infinite where there is a kink."""
        return math.inf if m > 1 else 0.0

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
    """Gradients are convex combinations of unit vectors."""

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        return np.zeros(m), np.ones(m)

    def slopes(self, lines: sparse.csr_array) -> tuple[Floats, Floats]:
        low, high = (
            np.asarray(end.todense(), np.float64).ravel()
            for end in (lines.min(axis=0), lines.max(axis=0))
        )
        return low, high

    def steepness(self, m: int) -> float:
        return 1.0

    def lipschitz(self, lines: sparse.csr_array) -> float:
        return float(_lengths(lines).max(initial=0.0))


@dataclass(frozen=True)
class Largest(_OneOf):
    """The largest."""

    monotone = True

    def value(self, v: Floats) -> Floats:
        return np.asarray(v.max(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        return np.asarray(np.eye(v.shape[-1])[v.argmax(axis=-1)])


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


@dataclass(frozen=True, eq=False)
class Stated(Outer):
    """A user's function of rates in [0, 1], with the constants that the user states;
    `checked` looks for a vector that breaks them. Rates above 1, by noise in what
    divides them, count as 1."""

    function: Callable[[Floats], Any]
    derivative: Callable[[Floats], Any]
    steepest: float
    bending: float = math.inf
    convex: bool = True
    monotone: bool = False

    def value(self, v: Floats) -> Floats:
        flat = np.clip(v, 0.0, 1.0).reshape(-1, v.shape[-1])
        found = [float(self.function(line)) for line in flat]
        return np.array(found, np.float64).reshape(v.shape[:-1])

    def gradient(self, v: Floats) -> Floats:
        flat = np.clip(v, 0.0, 1.0).reshape(-1, v.shape[-1])
        found = [np.asarray(self.derivative(line), np.float64) for line in flat]
        return np.array(found, np.float64).reshape(v.shape)

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


@dataclass(frozen=True)
class BoltzmannOfGaps(Outer):
    """The smooth maximum of absolute gaps, as Alabi's Definitions 1.14 and 8.8 and Example 8.10
    write it: of m numbers, of which `lines` that follow each other make one comparison. `times`:
    how often each comparison counts; `zeros`: how many of a group with itself count beside.

    phi(v) = sum_p u_p e^(eta u_p) / sum_p e^(eta u_p),        u_p = the largest of |v_j| over the lines j of comparison p

    Definition 1.14 takes a, a' from A x A: both orders of every pair of groups, and every group with
    itself, whose u is 0. Those zeros are part of its sums, and make phi smaller. Example 8.10 has two
    groups and takes each absolute difference once.

    Proofs. Let o be the `overshoot` of as many numbers as there are comparisons.
    The partial derivatives of phi in the u's have negative parts that sum to at most o and positive
    parts that sum to at most 1 + o. |.| and the largest of a comparison hand each of them, with either
    sign, to one line. So a derivative lies in [-1 - o, 1 + o], and their sizes sum to at most 1 + 2o,
    which bounds the L2 length too. There are kinks, at 0 and where two lines are the largest.
    """

    sharpness: float
    lines: int = 1
    times: int = 1
    zeros: int = 0
    convex = False
    keeps_lines: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checks.normalise(self, sharpness=_checks.positive(sharpness=self.sharpness))

    def value(self, v: Floats) -> Floats:
        sizes = self._sizes(v).max(axis=-1)
        return np.asarray((self._parts(sizes) * sizes).sum(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        each = self._sizes(v)
        sizes = each.max(axis=-1)
        parts = self._parts(sizes)
        of_sizes = parts * (
            1.0 + self.sharpness * (sizes - (parts * sizes).sum(axis=-1, keepdims=True))
        )
        largest = np.eye(self.lines)[each.argmax(axis=-1)] * of_sizes[..., np.newaxis]
        return np.asarray(largest.reshape(v.shape) * np.sign(v))

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        most = 1.0 + self._overshoot(m)
        return np.full(m, -most), np.full(m, most)

    def slopes(self, lines: sparse.csr_array) -> tuple[Floats, Floats]:
        """Signed weights whose sizes sum to at most `steepness` mix the lines."""
        most = np.asarray(abs(lines).max(axis=0).todense(), np.float64).ravel() * self.steepness(
            lines.shape[0]
        )
        return -most, most

    def steepness(self, m: int) -> float:
        return 1.0 + 2.0 * self._overshoot(m)

    def lipschitz(self, lines: sparse.csr_array) -> float:
        return self.steepness(lines.shape[0]) * float(_lengths(lines).max(initial=0.0))

    def bend(self, m: int) -> float:
        return math.inf

    def _overshoot(self, m: int) -> float:
        return overshoot(self.times * (m // self.lines) + self.zeros)

    def _sizes(self, v: Floats) -> Floats:
        """|v|, (..., comparisons, lines)."""
        return np.abs(v).reshape(*v.shape[:-1], -1, self.lines)

    def _parts(self, sizes: Floats) -> Floats:
        """What each comparison weighs, (..., comparisons); those of groups with themselves have the
        rest."""
        top = sizes.max(axis=-1, keepdims=True)
        powers = self.times * np.exp(self.sharpness * (sizes - top))
        return np.asarray(
            powers
            / (powers.sum(axis=-1, keepdims=True) + self.zeros * np.exp(-self.sharpness * top))
        )


def overshoot(m: int) -> float:
    """How far the negative part of the gradient of sum_i p_i v_i, p = softmax(eta v), may go:
    (1 - t) / (2 t), t from below: the root of (ln(m - 1) + x) tanh(x / 2) = 2 lies in (0, 3]."""
    if m < 2:
        return 0.0
    low, high = 0.0, 3.0
    for _ in range(60):
        x = (low + high) / 2.0
        below = (math.log(m - 1) + x) * math.tanh(x / 2.0) < 2.0
        low, high = (x, high) if below else (low, x)
    t = math.tanh(low / 2.0)
    return (1.0 - t) / (2.0 * t) * (1.0 + 1e-12)


SMOOTHING = 0.01


@dataclass(frozen=True)
class _Shortfall(Outer):
    """1 less a mean of numbers in [0, 1], each raised by `smoothing`. Abstract."""

    smoothing: float = SMOOTHING

    def __post_init__(self) -> None:
        _checks.normalise(self, smoothing=_checks.fraction(smoothing=self.smoothing, low_open=True))

    def value(self, v: Floats) -> Floats:
        return np.asarray(1.0 + self.smoothing - self._mean(self._raised(v)))

    def _raised(self, v: Floats) -> Floats:
        return np.asarray(np.clip(v, 0.0, 1.0) + self.smoothing)

    @abstractmethod
    def _mean(self, raised: Floats) -> Floats:
        """The mean of them."""


class GeometricShortfall(_Shortfall):
    """Of the geometric mean, which has no bounded slope at 0 without smoothing."""

    def _mean(self, raised: Floats) -> Floats:
        return np.asarray(np.exp(np.log(raised).mean(axis=-1)))

    def gradient(self, v: Floats) -> Floats:
        raised = self._raised(v)
        return np.asarray(-self._mean(raised)[..., np.newaxis] / v.shape[-1] / raised * (v <= 1.0))

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        s = self.smoothing
        return np.full(m, -(((1.0 + s) / s) ** ((m - 1) / m)) / m), np.zeros(m)

    def steepness(self, m: int) -> float:
        s, low = self.smoothing, np.arange(m + 1)
        means = np.exp((low * math.log(s) + (m - low) * math.log(1.0 + s)) / m)
        return float((means / m * np.sqrt(low / s**2 + (m - low) / (1.0 + s) ** 2)).max())

    def bend(self, m: int) -> float:
        s = self.smoothing
        return s ** (1.0 / m) * (1.0 + s) ** ((m - 1) / m) / s**2 / m if m > 1 else 0.0


class HarmonicShortfall(_Shortfall):
    """Of the harmonic mean."""

    def _mean(self, raised: Floats) -> Floats:
        return np.asarray(raised.shape[-1] / (1.0 / raised).sum(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        inverse = 1.0 / self._raised(v)
        shares = inverse / inverse.sum(axis=-1, keepdims=True)
        return np.asarray(-v.shape[-1] * shares**2 * (v <= 1.0))

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        return np.full(m, -m * self._share(m) ** 2), np.zeros(m)

    def steepness(self, m: int) -> float:
        return float(m * self._share(m) ** 1.5)

    def bend(self, m: int) -> float:
        return float(2.0 * m * self._share(m) ** 2 / self.smoothing) if m > 1 else 0.0

    def _share(self, m: int) -> float:
        """The largest share: one number 0, the others 1."""
        s = self.smoothing
        return (1.0 / s) / (1.0 / s + (m - 1) / (1.0 + s))


@dataclass(frozen=True)
class Inequality(Outer):
    """Above 0 exactly where the Gini index of non-negative numbers is above `theta` (Definition
    8.6's convex level set).

    (sum_{i<j} |v_i - v_j| - theta m sum_i v_i) / (m - 1): of two numbers the difference, less 4
    theta their mean. The index itself is quasi-convex only.
    """

    theta: float

    def __post_init__(self) -> None:
        _checks.normalise(self, theta=_checks.fraction(theta=self.theta))

    def value(self, v: Floats) -> Floats:
        ranks, pull = self._slopes(v.shape[-1])
        return np.asarray((np.sort(v, axis=-1) * ranks).sum(axis=-1) - pull * v.sum(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        m = v.shape[-1]
        above = (v[..., :, np.newaxis] > v[..., np.newaxis, :]).sum(axis=-1)
        below = (v[..., :, np.newaxis] < v[..., np.newaxis, :]).sum(axis=-1)
        return np.asarray((above - below) / max(1, m - 1) - self._slopes(m)[1])

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        ranks, pull = self._slopes(m)
        return np.full(m, ranks[0] - pull), np.full(m, ranks[-1] - pull)

    def steepness(self, m: int) -> float:
        ranks, pull = self._slopes(m)
        return math.sqrt(float((ranks**2).sum()) + m * pull**2)

    def _slopes(self, m: int) -> tuple[Floats, float]:
        """What each number counts by its rank, and what all count against."""
        unit = max(1, m - 1)
        return (2.0 * np.arange(m) - (m - 1)) / unit, self.theta * m / unit


def gini(v: Floats) -> Floats:
    """The Gini index of numbers that are not negative, (..., m) -> (...); NaN where all are 0."""
    m = v.shape[-1]
    ranks = 2.0 * np.arange(m) - (m - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((np.sort(v, axis=-1) * ranks).sum(axis=-1) / (m * v.sum(axis=-1)))


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
    def parts(self) -> tuple[LossFunction, ...]:
        """What it is made of."""
        return ()

    @property
    def convex(self) -> bool:
        """Whether it is known to be."""
        return all(part.convex for part in self.parts)

    @property
    def trusted(self) -> bool:
        """Whether a user's word stands for the constants."""
        return any(part.trusted for part in self.parts)

    @property
    def monotone(self) -> bool:
        """Whether it does not fall when a loss grows."""
        return float(self.slopes[0].min()) >= 0.0


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
    def parts(self) -> tuple[LossFunction, ...]:
        return self.functions


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
        excess, w = np.maximum(self.g.value(losses), 0.0), self.width
        if w > 0.0:
            excess = np.where(excess < w, excess**2 / (2.0 * w), excess - w / 2.0)
        return np.asarray(self.f.value(losses) + self.penalty * excess)

    def gradient(self, losses: Floats) -> Floats:
        if self.g is None:
            return self.f.gradient(losses)
        excess, w = self.g.value(losses), self.width
        share = np.clip(excess / w, 0.0, 1.0) if w > 0.0 else (excess >= 0.0).astype(np.float64)
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
        of_g = self.g.smoothness + self.g.lipschitz**2 / self.width
        return self.f.smoothness + self.penalty * of_g

    @property
    def parts(self) -> tuple[LossFunction, ...]:
        return (self.f,) if self.g is None else (self.f, self.g)


def smoothed(h: Joint, width: float) -> Joint:
    """h with kinks of that width: of max(0, .), and of largest ones, which `SoftLargest` is over by
    at most as much."""
    g = None if h.g is None else softened(h.g, width)
    return Joint(softened(h.f, width), g, h.penalty, width)


def smoothing_adds(h: Joint, width: float) -> float:
    """How far `smoothed` may be above h: a softened largest by that width, in g times the
    penalty."""
    in_g = 0.0 if h.g is None or _largest_of(h.g) is None else h.penalty
    return width * ((0.0 if _largest_of(h.f) is None else 1.0) + in_g)


def softened(function: LossFunction, width: float) -> LossFunction:
    """The largest of several numbers as `SoftLargest`, which is over it by at most `width`; else
    the function itself."""
    found = _largest_of(function)
    if found is None:
        return function
    return replace(found, outer=SoftLargest(math.log(found.lines.shape[0]) / width))


def _largest_of(function: LossFunction) -> GroupFunction | None:
    """The largest of several numbers that it is, if it is one."""
    one: Any = function
    if isinstance(function, Worst) and len(function.functions) == 1:
        one = function.functions[0]
    largest = isinstance(one, GroupFunction) and isinstance(one.outer, Largest)
    return one if largest and one.lines.shape[0] > 1 else None


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


USER_MADE = "a user-made objective"


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
    middles, away = (starts + ends) / 2.0, ends - starts
    values, others, middle = (_finite(outer.value, place) for place in (starts, ends, middles))
    slopes, at_ends = _finite(outer.gradient, starts), _finite(outer.gradient, ends)
    scale = 1.0 + float(np.abs(values).max())
    slack, bend, most = tolerance * scale, outer.bend(m), outer.steepness(m)
    apart = np.linalg.norm(away, axis=-1)
    lengths = np.linalg.norm(slopes, axis=-1).max(), (np.abs(others - values) / apart).max()
    steepest, turned = max(lengths), (np.linalg.norm(at_ends - slopes, axis=-1) / apart).max()
    # beside finite differences, of a third of the vectors
    smooth, at, step, off = math.isfinite(bend), starts[::3], 1e-6, 0.0
    for axis in range(m):
        shift = step * np.eye(m)[axis]
        low, high = np.maximum(at - shift, 0.0), np.minimum(at + shift, 1.0)
        rise = (_finite(outer.value, high) - _finite(outer.value, low)) / (high - low)[:, axis]
        allowed = 1e-3 * scale + (bend * step if smooth else 0.0)
        off = max(off, float((np.abs(rise - slopes[::3, axis]) > allowed).mean()))

    def refuse(broken: object, expected: str, got: str, fix: str) -> None:
        need(not broken, expected, of=USER_MADE, got=got, fix=fix)

    exponential = "State convex=False, and choose by method='exponential'."
    differences, lines = "Check `gradient` by finite differences.", (slopes * away).sum(axis=-1)
    above = outer.convex and (middle > (values + others) / 2.0 + slack).any()
    refuse(above, "a convex function", "one whose middle lies above", exponential)
    below = outer.convex and (others < values + lines - slack).any()
    refuse(below, "a subgradient of the function", "a line that is above it", differences)
    steep, expected = steepest > most * (1.0 + tolerance) + slack, f"slopes of at most {most:g}"
    refuse(steep, f"{expected}, as stated", f"one of {steepest:g}", "State a larger lipschitz.")
    turns, expected = turned > bend * (1.0 + tolerance) + slack, "gradients that turn by at most"
    smaller = "State a larger smoothness, or inf."
    refuse(turns, f"{expected} {bend:g}, as stated", f"{turned:g}", smaller)
    away_from = off > (0.05 if smooth else 0.5)
    refuse(away_from, "the gradient of the function", "another along a rate", differences)
    falls = outer.monotone and (slopes < -slack).any()
    refuse(falls, "a non-decreasing function", "a negative slope", "State monotone=False.")
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
        raise InputError.expected("a number", of=USER_MADE, got=got, remedy=remedy) from problem
    expected, got = "finite values and gradients", "NaN or infinite ones"
    need(np.isfinite(found).all(), expected, of=USER_MADE, got=got, fix=remedy)
    return found
