"""Dual players: how strongly each constraint is pressed, from released constraint values alone.

The Lagrangian is linear in the duals, so ascent follows the *excess* e_j = value_j - bound_j: press
harder while a constraint is broken, let go while it holds. Everything here is post-processing of
noisy histograms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._types import Floats

LEAST = 1e-9  # of a scale of excesses: below it all constraints hold exactly
AVERAGED = 20
"""Over how many rounds the ascent hears an excess, about: its noise is averaged over them."""
TELLABLE = 0.04
"""An excess of a constraint with that much noise is followed by half."""


@dataclass(frozen=True, eq=False, slots=True)
class AscentState:
    """The state of the dual player: arrays (models, constraints), and per model what its step is
    scaled by."""

    duals: Floats
    integral: Floats
    smooth: Floats
    squares: Floats
    rounds: int = 0

    @staticmethod
    def begin(models: int, constraints: int) -> AscentState:
        """No pressure."""
        zeros = np.zeros((models, constraints))
        return AscentState(zeros, zeros, zeros, np.zeros(models))


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
        """One round, given noisy excesses (models, constraints); undefined ones count as zero."""
        from . import kernels

        rounds = state.rounds + 1
        # Falls to `fade` before the late iterates are averaged, so that what swings has come to
        # rest there.
        fading = 1.0 - (1.0 - self.fade) * min(1.0, rounds / (0.9 * self.rounds))
        # Arrays alone: the compiled step is made for one kind of arguments.
        trusted = trust if isinstance(trust, np.ndarray) else np.full(excess.shape, float(trust))
        before = (state.duals, state.integral, state.smooth, state.squares, rounds)
        how = (fading, self.ki / self.rounds, self.kp, self.ema_nu, self.bound, LEAST)
        largest = self.unit == "largest"
        found = kernels.pressed(excess, trusted, *before, *how, largest)
        duals, integral, smooth, squares = found
        return AscentState(duals, integral, smooth, squares, rounds)


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


def weights_of(spread: Floats) -> Floats:
    """How far an excess with noise of these deviations is followed."""
    return np.asarray(TELLABLE**2 / (TELLABLE**2 + spread**2))
