"""What a descent found for one model, and which constraints its noisy values certainly break."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from .descent import Floats, Reason

CHANCE = 0.00135
"""How likely noise alone may make a constraint that holds look certainly broken: that of three standard deviations."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search found for one model: released values only.

    `weights` (outputs, 1 + width), the intercept first. `values`: each constraint's value of this very model, noisy (exact
    without privacy), with the standard deviation of its noise in `spread`. `duals`: how hard each was pressed at the end.
    """

    weights: Floats
    reason: Reason
    rounds: int
    names: tuple[str, ...]
    bounds: Floats
    values: Floats
    spread: Floats
    duals: Floats
    counts: Floats
    rows: float

    @property
    def learnt(self) -> bool:
        """Whether there is anything in the model: a search that could not tell its rows from none leaves it at zero."""
        return bool(self.weights.any())

    @property
    def broken(self) -> tuple[int, ...]:
        """The constraints that are certainly not met."""
        return certainly_broken(self.values - self.bounds, self.spread)


def certainly_broken(excess: Floats, spread: Floats) -> tuple[int, ...]:
    """Which constraints are above their bound by 0.01, and by more than noise of these deviations explains."""
    deviations = float(ndtri(1.0 - CHANCE / max(1, len(excess))))  # any of them by chance: CHANCE at most
    return tuple(int(j) for j in np.flatnonzero(excess > np.maximum(0.01, deviations * spread)))
