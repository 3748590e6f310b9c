"""Dual players: how strongly each constraint is pressed, from released constraint values alone.

The Lagrangian is linear in the duals, so ascent follows the *excess* e_j = value_j - bound_j: press harder while a constraint
is broken, let go while it holds. Everything here is post-processing of noisy histograms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
LEAST = 1e-9  # of a scale of excesses: below it all constraints hold exactly


@dataclass(frozen=True, eq=False, slots=True)
class Pressure:
    """The state of the dual player: arrays (models, constraints), and per model what its step is scaled by."""

    duals: Floats
    integral: Floats
    smooth: Floats
    squares: Floats
    rounds: int = 0

    @staticmethod
    def begin(models: int, constraints: int) -> Pressure:
        """No pressure."""
        zeros = np.zeros((models, constraints))
        return Pressure(zeros, zeros, zeros, np.zeros(models))


@dataclass(frozen=True, slots=True)
class ProjectedAscent:
    """Projected ascent with a proportional part, in units of the run's own excesses.

        r^2      <- mean over rounds of max_j e_j^2, over constraints that are broken or pressed
        f        =  1 falling to `fade` over 0.9 of the rounds, and staying there
        integral <- project(integral + f * speed / rounds * e / r)      on [0, bound]
        smooth   <- memory * smooth + (1 - memory) * e
        duals    =  project(integral + f * grip * smooth / r)

    The integral alone is the projected gradient ascent of RaCO-DP (its eq. 11). `Differs:` its step is divided by the typical
    excess r, so that one default serves gaps of 0.2 and of 0.01, and a proportional part damps the swing that ascent and
    momentum start together (a proportional-integral controller). Its noise is averaged over the memory. Both fade, so that what
    swings comes to rest while the late iterates are averaged.
    """

    rounds: int
    bound: float = 10.0
    speed: float = 3.0
    grip: float = 0.4
    memory: float = 0.9
    fade: float = 0.2

    def step(self, state: Pressure, excess: Floats) -> Pressure:
        """One round, given noisy excesses (models, constraints); undefined ones count as zero."""
        e = excess if np.isfinite(excess).all() else np.nan_to_num(excess, nan=0.0, posinf=1.0, neginf=-1.0)
        pressing = (e > 0) | (state.duals > 0)
        squares = state.squares + np.maximum.reduce(e * e * pressing, axis=-1, initial=0.0)
        rounds = state.rounds + 1
        fading = 1.0 - (1.0 - self.fade) * min(1.0, rounds / (0.9 * self.rounds))
        unit = (fading * (squares > 0) / np.maximum(np.sqrt(squares / rounds), LEAST))[:, np.newaxis]
        integral = self._projected(state.integral + self.speed / self.rounds * unit * e)
        smooth = self.memory * state.smooth + (1.0 - self.memory) * e
        duals = self._projected(integral + self.grip * unit * smooth)
        return Pressure(duals, integral, smooth, squares, rounds)

    def _projected(self, duals: Floats) -> Floats:
        return np.asarray(np.minimum(np.maximum(duals, 0.0), self.bound))


@dataclass(frozen=True, slots=True)
class ExponentiatedGradient:
    """The auditor: duals on a simplex of size `bound`, moved by exponentiated gradient (Jagielski et al., Algorithm 3).

        duals_k = bound exp(theta_k) / (1 + sum_j exp(theta_j)),        theta <- theta + rate x excess

    One corner of the simplex is no pressure at all. Over T rounds of excesses within [-m, m], with rate m <= 1, the best fixed
    duals are ahead of those played by at most bound ln(1 + constraints) / (rate T) + rate bound m^2 a round.
    """

    bound: float
    rate: float

    def duals(self, theta: Floats) -> Floats:
        """The auditor's play."""
        top = max(float(theta.max(initial=0.0)), 0.0)
        powers = np.exp(theta - top)
        return np.asarray(self.bound * powers / (np.exp(-top) + powers.sum()))

    def step(self, theta: Floats, excess: Floats) -> Floats:
        """One round, given noisy excesses; undefined ones count as zero."""
        return np.asarray(theta + self.rate * np.nan_to_num(excess, nan=0.0, posinf=1.0, neginf=-1.0))
