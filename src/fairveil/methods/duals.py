"""Players of a Lagrangian: how hard each constraint is pressed, and how a model walks. Everything
here is post-processing of noisy histograms and gradients.

The Lagrangian is linear in the duals, so ascent follows the *excess* e_j = value_j - bound_j: press
harder while a constraint is broken, let go while it holds. Averaging the late iterates makes many
noisy rounds as good as few: for a fixed budget a round's noise grows as the square root of their
number, and the average loses it again.

Guarantees (tests/methods/test_methods_duals.py):
1. A compiled step is the formula in NumPy to the bit: terms are added in NumPy's own order.
2. Duals stay within [0, bound], and an undefined excess presses nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import _verdicts as verdicts
from .._types import Floats
from ..fairness import ConstraintSystem
from ..fairness.systems import FixedCounts
from .systems import slopes_of_decisions

LEAST = 1e-9  # of a scale of excesses: below it all constraints hold exactly
AVERAGED = 20
"""Over how many rounds the ascent hears an excess, about: its noise is averaged over them."""
TELLABLE = 0.04
"""An excess of a constraint with that much noise is followed by half."""
ENDS = 0.002
"""How near to its aim a search ends, where the noise of what it sees there is not more."""
HEARD = 0.04
"""The share of an excess that is followed from which on hearing it is worth a part of each round's
price."""


# -- the walk --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class PrimalState:
    """Where a walk is: weights, velocity, and the sum of the `counted` iterates that the average is
    made of. Arrays of one shape."""

    weights: Floats
    velocity: Floats
    total: Floats
    counted: int = 0

    @staticmethod
    def at(weights: Floats) -> PrimalState:
        """At rest."""
        return PrimalState(weights, np.zeros_like(weights), np.zeros_like(weights))

    def step(
        self, gradient: Floats, rate: Floats | float, momentum: float, *, count: bool
    ) -> PrimalState:
        """v <- m v - rate g;  w <- w + m v - rate g  (Nesterov's step, written for the look-ahead
        point itself, so that the gradient is asked where the weights are)."""
        push = rate * gradient
        velocity = momentum * self.velocity - push
        weights = self.weights + momentum * velocity - push
        return PrimalState(
            weights, velocity, self.total + weights if count else self.total, self.counted + count
        )

    def along(
        self, answer: Floats, share: float, rate: float, momentum: float, *, count: bool
    ) -> PrimalState:
        """`step` along answer / share, compiled; arrays (outputs, 1 + width)."""
        from . import kernels  # compiled

        now = (self.weights, self.velocity, self.total)
        moved = kernels.walked(*now, answer, share, rate, momentum, count)
        weights, velocity, total = moved
        return PrimalState(weights, velocity, total, self.counted + count)

    @property
    def average(self) -> Floats:
        """The mean of the counted iterates; the last one where none was counted."""
        return self.total / self.counted if self.counted else self.weights


# -- duals of constraints --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class AscentState:
    """Duals (constraints,), their two parts, and the sum of squares that a step is scaled by."""

    duals: Floats
    integral: Floats
    smooth: Floats
    squares: float = 0.0
    rounds: int = 0

    @staticmethod
    def begin(constraints: int) -> AscentState:
        """No pressure."""
        zeros = np.zeros(constraints)
        return AscentState(zeros, zeros, zeros)


@dataclass(frozen=True, slots=True)
class ProjectedAscent:
    """Projected ascent with a proportional part, in units of the run's own excesses.

        r^2      <- mean over rounds of max_j p_j e_j^2, or sum_j p_j e_j^2, over constraints that are broken or pressed
        f        =  1 falling to `fade` over 0.9 of the rounds, and staying there
        integral <- project(integral + f * ki / rounds * p e / r)      on [0, bound]
        smooth   <- ema_nu * smooth + (1 - ema_nu) * p e
        duals    =  project(integral + f * kp * smooth / r)

    p_j is how far excess j is trusted (1 where nothing has noise). Where all are noise, r is about
    what can just be told, much more than p e: a search whose constraints cannot be heard is one
    without constraints.

    The integral alone is the projected gradient ascent of RaCO-DP (its eq. 11). `Differs:` its step
    is divided by the typical excess r, so that one default serves gaps of 0.2 and of 0.01, and a
    proportional part damps the swing that ascent and momentum start together (a
    proportional-integral controller). Its noise is averaged over about 1 / (1 - ema_nu) rounds.
    Both fade, so that what swings comes to rest while the late iterates are averaged.

    `unit`: r is the largest excess, or the length of all of them ("length"). With many groups
    several are broken at once, and all of their duals rise. In units of the largest their sum rises
    as many times faster, above what holds the bounds, and does not come down again in the rounds
    that are left; in units of the length it rises as with two groups.
    """

    rounds: int
    bound: float = 10.0
    ki: float = 3.0
    kp: float = 0.4
    ema_nu: float = 0.9
    fade: float = 0.2
    unit: str = "largest"

    def step(self, state: AscentState, excess: Floats, trust: Floats | float = 1.0) -> AscentState:
        """One round, given noisy excesses (constraints,); undefined ones count as zero."""
        from . import kernels  # compiled

        rounds = state.rounds + 1
        # Falls to `fade` before the late iterates are averaged, so that what swings has come to
        # rest there.
        fading = 1.0 - (1.0 - self.fade) * min(1.0, rounds / (0.9 * self.rounds))
        # Arrays alone: the compiled step is made for one kind of arguments.
        trusted = trust if isinstance(trust, np.ndarray) else np.full(excess.shape, float(trust))
        before = (state.duals, state.integral, state.smooth, state.squares, rounds)
        how = (fading, self.ki / self.rounds, self.kp, self.ema_nu, self.bound, LEAST)
        found = kernels.pressed(excess, trusted, *before, *how, self.unit == "largest")
        duals, integral, smooth, squares = found
        return AscentState(duals, integral, smooth, squares, rounds)


def weights_of(spread: Floats) -> Floats:
    """How far an excess with noise of these deviations is followed."""
    return np.asarray(TELLABLE**2 / (TELLABLE**2 + spread**2))


@dataclass(frozen=True, eq=False)
class Constraints:
    """RaCO-DP's max player: L = E[loss] + sum_j duals_j (value_j - bound_j), divided by 1 +
    loss_scale x the sum of the duals. Its state is that of the ascent.

    At released `counts` (cells, labels) that do not change, and the `rows` that averages divide by.
    The duals begin after `start` rounds. `blur`: the standard deviation of the noise of a number of
    a round's histogram. `Differs:` the ascent follows excesses by their precision (`weights_of`):
    noise of s in the mean of AVERAGED rounds leaves TELLABLE^2 / (TELLABLE^2 + s^2) of one, so that
    the noise of a cell of few rows does not drive the search, and what is known well is followed as
    before.
    """

    system: ConstraintSystem
    bounds: Floats
    ascent: ProjectedAscent
    counts: Floats
    rows: float
    floor: float
    start: float = 0.0
    loss_scale: float = 0.5
    blur: float = 0.0

    def begin(self) -> AscentState:
        """No pressure."""
        return AscentState.begin(len(self.bounds))

    @property
    def hears(self) -> bool:
        """Whether what rounds say reaches it through their noise: not where less than `HEARD` of
        an excess is followed, in the root mean square over constraints."""
        trust = np.broadcast_to(self._trust, self.bounds.shape)
        return bool(np.sqrt(np.square(trust).mean()) >= HEARD)

    def costs(self, state: AscentState) -> tuple[Floats, float]:
        """What a prediction costs one row, (cells, labels, classes), and the weight of its loss."""
        from . import kernels  # compiled

        pull = self._fixed.pull
        if pull is not None:
            costs, eased = kernels.costs_of(pull, state.duals, self.rows, self.loss_scale)
            return costs.reshape(self.system.shape), eased
        eased = 1.0 / (1.0 + self.loss_scale * float(np.add.reduce(state.duals)))
        return self._fixed.cell_costs(state.duals) * (self.rows * eased), eased

    def step(self, state: AscentState, histogram: Floats, round: int) -> AscentState:
        """Its state after a round, given the histogram (cells, labels, classes), of all rows."""
        if round < self.start:
            return state
        return self.ascent.step(state, self._excess(histogram), self._trust)

    def rests(
        self, before: AscentState, after: AscentState, histogram: Floats, round: int, most: float
    ) -> bool:
        """Without noise: whether its play is over if the model moves no more. Either no constraint
        presses, or the ascent has had its rounds."""
        settled = round > self.ascent.rounds or not after.duals.any()
        return settled and bool(np.nan_to_num(self._excess(histogram)).max() <= most)

    def duals(self, state: AscentState) -> Floats:
        """How hard each constraint is pressed."""
        return state.duals

    @cached_property
    def _fixed(self) -> FixedCounts:
        return self.system.at(self.counts, self.floor)

    @cached_property
    def _trust(self) -> Floats | float:
        """(constraints,), or 1 where nothing has noise."""
        if not self.blur:
            return 1.0
        outputs = 1 if self.system.shape[2] == 2 else self.system.shape[2]
        # Of each value in one number of the histogram: what noise of a count does to a rate.
        slopes = slopes_of_decisions(self.system, self.counts, self.floor, outputs)
        return weights_of(self.blur * slopes / math.sqrt(AVERAGED))

    def _excess(self, histogram: Floats) -> Floats:
        from . import kernels  # compiled

        pull = self._fixed.pull
        if pull is None:
            return np.asarray(self._fixed.values(histogram) - self.bounds)
        return np.asarray(
            kernels.excesses(pull, np.ascontiguousarray(histogram.ravel()), self.bounds)
        )


def aims(
    system: ConstraintSystem,
    bounds: Floats,
    histogram: Floats,
    counts: Floats,
    floor: float,
    errors: tuple[Floats, Floats, Floats],
    looks: int = 1,
) -> Floats:
    """Where a search aims: each bound, less the margin that its verdict needs
    (`_verdicts.margins`) at about these decisions (cells, labels, classes), whose values have these
    `errors`: noise, sampling, and how far from its aim a value ends as it is released.

    `looks`: of the verdict (`_verdicts`); 0 where something else gives it, and the search is to end
    within the bounds. The room below a bound ends where all cells decide alike; of a sum of rates,
    which compares nothing, where it is smallest.
    """
    over = 0 if system.needs_labels else (0, 1)
    pooled = histogram.sum(axis=over) / np.maximum(counts.sum(axis=over), 1e-300)[..., np.newaxis]
    alike = system.exact_values(counts[..., np.newaxis] * pooled, counts, floor)
    weights = system.coefficients
    parts = weights.maximum(0), weights.minimum(0)
    up, down = (np.asarray(part.sum(axis=1)).ravel() for part in parts)
    lowest = np.where((up > 0) & (down < 0), np.nan_to_num(alike), np.minimum(down, 0.0))
    known = np.isfinite(bounds)  # values that nobody can tell, NaN, have no margin
    lines = (
        (bounds - lowest)[known].tolist(),
        *(np.nan_to_num(e[known], nan=1.0).tolist() for e in errors),
    )
    out = bounds.copy()
    out[known] -= verdicts.margins(*lines, looks=looks)
    return out


def ends(noise: Floats) -> Floats:
    """How far from its aim a value is, as it is released: the search saw it through such noise, and
    the release has as much again."""
    return np.asarray(np.hypot(noise, np.maximum(noise, ENDS)))


# -- the auditor of games --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class ExponentiatedGradientState:
    """The state of the auditor: the sum of excesses so far, and the sum of their largest
    squares."""

    sums: Floats
    squares: float = 0.0


@dataclass(frozen=True, slots=True)
class ExponentiatedGradient:
    """The auditor: duals on a simplex of size `bound`, by exponentiated gradient (Jagielski et al.,
    Algorithm 3).

        duals_k = bound exp(rate sums_k) / (idle + sum_j exp(rate sums_j)),     sums = sum over rounds of excesses
        rate    = step_size sqrt(ln(idle + K) / sum over rounds of max_k excess_k^2)

    The corner of no pressure has the weight of `idle` constraints. `Differs:` in the paper idle is
    1, and the rate 1/2 sqrt(ln(1 + K) / T), which is right for excesses of size 1 without noise.
    Here the rate is of the excesses' own size, noise included (it serves any number of rounds), and
    the game begins near no pressure: duals that suffice are mostly far below the bound, and all
    rounds in which they are too large stay in the mixture. After T rounds the best fixed duals are
    ahead of those played by O(bound sqrt(ln(idle + K) sum of squares) / T) a round.
    """

    bound: float
    idle: float = 100.0
    step_size: float = 0.7

    def duals(self, state: ExponentiatedGradientState) -> Floats:
        """The auditor's play."""
        pace = math.log(self.idle + len(state.sums))
        theta = state.sums * (
            self.step_size * math.sqrt(pace / state.squares) if state.squares > 0 else 0.0
        )
        # Without the largest power no exponential overflows; `idle` is one of the powers, at theta
        # = 0.
        top = max(float(theta.max(initial=0.0)), 0.0)
        powers = np.exp(theta - top)
        return np.asarray(self.bound * powers / (self.idle * math.exp(-top) + powers.sum()))

    def step(self, state: ExponentiatedGradientState, excess: Floats) -> ExponentiatedGradientState:
        """One round, given noisy excesses; undefined ones count as zero."""
        # A rate of nobody is no number: it says nothing of its constraint, and moves no dual.
        e = np.nan_to_num(excess, nan=0.0, posinf=1.0, neginf=-1.0)
        return ExponentiatedGradientState(
            state.sums + e, state.squares + float(np.max(e * e, initial=0.0))
        )
