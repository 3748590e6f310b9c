"""A user's saddle problem: gradients of one row, where they start, how large they may be. It holds
no data.

    min over theta  max over w of  F(theta, w) = mean over rows of f(theta, w; row)

For the theorem of `saddle` f is smooth, and strongly concave in w; in theta it need not be convex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...curator import Block, RowFunction
from ...curator.questions.attached import COLUMNS
from ...errors import InputError

RowGradients = Callable[[Block, Floats, Floats], Any]
"""From a block of rows, theta and w to one gradient a row: an array (rows, len(theta)) or (rows,
len(w))."""


@dataclass(frozen=True, eq=False)
class SaddleProblem:
    """f by its gradients. `descent(block, theta, w)`: in theta, (rows, len(theta)); `ascent`: in w,
    (rows, len(w)).

    `theta`, `w`: where they start. `clip_theta`, `clip_w`: norms to which each row's gradients are
    clipped. `radius_theta`, `radius_w`: of the balls around zero that they are kept in; None:
    everywhere. `columns_read`: what the gradients read, among "features", "label" and "sensitive";
    they are not given the rest. `ascent_reads`: the same of `ascent`, where it differs. What does
    not read what is protected is exact.

    The two functions are user code beside private rows: a row's gradient must depend on that row
    alone.
    """

    descent: RowGradients
    ascent: RowGradients
    theta: Floats
    w: Floats
    clip_theta: float
    clip_w: float
    radius_theta: float | None = None
    radius_w: float | None = None
    columns_read: Iterable[str] = COLUMNS
    ascent_reads: Iterable[str] | None = None

    def __post_init__(self) -> None:
        for name, function in _checks.named(self, ("descent", "ascent")).items():
            if not callable(function):
                remedy = "Pass a function of (block, theta, w) that returns one gradient a row."
                got = type(function).__name__
                raise InputError.expected("a function", of=name, got=got, remedy=remedy)
        for name, given, radius in (
            ("theta", self.theta, self.radius_theta),
            ("w", self.w, self.radius_w),
        ):
            start = _start(name, given)
            if radius is not None:
                remedy = "Leave it None where nothing is to be kept in a ball."
                named: dict[str, Any] = {f"radius_{name}": radius}
                radius = _checks.positive(remedy=remedy, **named)
                _checks.normalise(self, **{f"radius_{name}": radius})
                if float(np.linalg.norm(start)) > radius:
                    remedy = "Start inside the ball, or enlarge it."
                    got = f"norm {np.linalg.norm(start):.6g}"
                    raise InputError.expected(
                        f"a norm of at most {radius:g}", of=name, got=got, remedy=remedy
                    )
            _checks.normalise(self, **{name: start})
        _checks.normalise(self, clip_theta=_checks.positive(clip_theta=self.clip_theta))
        _checks.normalise(self, clip_w=_checks.positive(clip_w=self.clip_w))
        reads = frozenset(self.columns_read)
        _checks.normalise(self, columns_read=reads)
        _checks.normalise(
            self, ascent_reads=reads if self.ascent_reads is None else frozenset(self.ascent_reads)
        )
        self.questions()  # whose own checks are of what is left

    def questions(self) -> tuple[RowFunction, RowFunction]:
        """The two sums, at the start."""
        assert self.ascent_reads is not None
        theta, w = self.theta, self.w
        kinds = (
            (self.descent, theta, self.clip_theta, self.columns_read, "the gradients in theta"),
            (self.ascent, w, self.clip_w, self.ascent_reads, "the gradients in w"),
        )
        first, second = (
            RowFunction(
                bound_to(function, theta, w), len(start), clip, frozenset(reads), title=title
            )
            for function, start, clip, reads, title in kinds
        )
        return first, second

    def onto(self, theta: Floats, w: Floats) -> tuple[Floats, Floats]:
        """The nearest points of the balls."""
        return in_ball(theta, self.radius_theta), in_ball(w, self.radius_w)


@dataclass(frozen=True)
class Smoothness:
    """The constants of Theorem E.3: every f(., .; row) has gradients in theta that are Lipschitz in
    theta (`theta`, beta_theta) and in w (`cross`, beta_theta_w, and the other way round), gradients
    in w that are Lipschitz in w (`w`, beta_w), and is `concavity`-strongly concave in w (mu). They
    are taken on trust, and privacy does not depend on them.

    >>> Smoothness(theta=1.0, w=2.0, cross=1.0, concavity=2.0).step_theta
    0.041666666666666664
    """

    theta: float
    w: float
    cross: float
    concavity: float

    def __post_init__(self) -> None:
        _checks.normalise(
            self, theta=_checks.non_negative(theta=self.theta), w=_checks.positive(w=self.w)
        )
        _checks.normalise(self, cross=_checks.non_negative(cross=self.cross))
        _checks.normalise(self, concavity=_checks.positive(concavity=self.concavity))
        if self.concavity > self.w:
            remedy = "A function is never more concave than it is smooth."
            raise InputError.expected(
                f"at most w={self.w:g}", of="concavity", got=self.concavity, remedy=remedy
            )
        if self.theta + self.cross == 0:
            remedy = (
                "Then f does not bend along theta, and no step size follows from it: pass "
                "step_theta."
            )
            raise InputError.expected(
                "theta or cross above 0", of="smoothness", got=0, remedy=remedy
            )

    @property
    def condition(self) -> float:
        """kappa_w = beta_w / mu."""
        return self.w / self.concavity

    @property
    def step_theta(self) -> float:
        """eta_theta = 1 / (16 kappa_w (beta_theta + beta_theta_w kappa_theta_w)), with
        kappa_theta_w = beta_theta_w / mu."""
        return 1.0 / (16.0 * self.condition * (self.theta + self.cross**2 / self.concavity))

    @property
    def step_w(self) -> float:
        """eta_w = 1 / beta_w."""
        return 1.0 / self.w

    @property
    def weight_of_ascent(self) -> float:
        """kappa_w beta_theta_w^2 / beta_w^2: what the square of w's noise weighs in the theorem's
        bound, beside theta's."""
        return self.condition * (self.cross / self.w) ** 2


def bound_to(function: RowGradients, theta: Floats, w: Floats) -> Callable[[Block], Any]:
    """A row's gradients at one point."""
    return lambda block: function(block, theta, w)


def in_ball(x: Floats, radius: float | None) -> Floats:
    """The nearest point of the ball around zero."""
    size = float(np.linalg.norm(x))
    return x if radius is None or size <= radius else np.asarray(x * (radius / size))


def read_only(x: Floats) -> Floats:
    """The array, which user code then cannot change."""
    x.setflags(write=False)
    return x


def _start(name: str, value: object) -> Floats:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        remedy = f"Pass {name}=np.zeros(3), for example; flatten a matrix."
        got = (
            f"shape {array.shape}"
            if array.ndim != 1 or not array.size
            else "NaN or infinite values"
        )
        raise InputError.expected("a vector of finite numbers", of=name, got=got, remedy=remedy)
    return read_only(array)
