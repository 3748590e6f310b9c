"""How a step is made of a noisy gradient of groups' losses, and where it may lead: public and
released values alone.

- *steady*: below one over the curvature of sum_k w_k l_k, and so slow that the noise of a round
  walks little of a score's unit.
- *decaying* (appendix E of the paper, after Shamir and Zhang): S / (Q sqrt t), S the diameter of a
  bounded region and Q a bound on the length of a noisy gradient; without momentum.
- of a *module*: a fixed rate over the largest weight of a row, which falls over the last rounds
  where the last iterate counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ..duals import PrimalState

LATE = 0.5  # of the rounds, at the end: their mean is the answer
MOMENTUM = 0.9
MODULE_RATE = 0.1
UNIT = {"log": 1.0, "squared": 0.25}  # of losses of codes, in squared ranges of the target
SLOPE = {"log": 1.0, "squared": 2.0}  # gradients of squared loss are asked for by the half
WALKED = {"log": 0.3, "squared": 0.03}  # units of the score, by the noise of one round
REGIONS, STEP_SIZES, ITERATES = ("ball", "box"), ("steady", "decaying"), ("average", "last")


@dataclass(frozen=True)
class Steps:
    """The public choices. `columns`: of a row, a coded feature counting once; `clip`: the longest
    gradient of a row."""

    loss: str
    columns: int
    clip: float
    rounds: int
    radius: float | None = None
    region: str = "ball"
    size: str = "steady"
    iterate: str = "average"
    rate: float | None = None
    of_module: bool = False

    def walked(
        self,
        walk: PrimalState,
        gradient: Floats,
        noise: float,
        heavy: float,
        loudest: float,
        t: int,
    ) -> PrimalState:
        """Round t's step, and back into the region. `noise`: its deviation; `heavy`: the curvature
        of what is minimised, over that of a mean of rows; `loudest`: the noise's weight, over that
        of a sum of all rows alike."""
        momentum = MOMENTUM
        if self.of_module:
            fading = (
                1.0
                if self.iterate == "average"
                else min(1.0, (self.rounds - t + 1) / max(1.0, LATE * self.rounds))
            )
            rate = fading * (MODULE_RATE / max(1.0, loudest) if self.rate is None else self.rate)
        elif self.size == "decaying":
            rate, momentum = self._decaying(gradient.size, noise, heavy) / math.sqrt(t), 0.0
        else:
            rate = self.pace(noise, heavy) if self.rate is None else self.rate
        moved = walk.step(gradient, rate, momentum, count=False)
        weights, late = self._projected(moved.weights), t > (1.0 - LATE) * self.rounds
        return PrimalState(
            weights,
            moved.velocity,
            walk.total + weights if late else walk.total,
            walk.counted + late,
        )

    def pace(self, noise: float, heavy: float = 1.0) -> float:
        """The steady rate."""
        square = 1.0 + self.columns
        usual = 1.0 if self.loss == "log" else 2.0 / (SLOPE[self.loss] * UNIT[self.loss] * square)
        usual /= max(1.0, heavy)
        return (
            usual
            if noise == 0.0
            else min(usual, WALKED[self.loss] * (1.0 - MOMENTUM) / (noise * math.sqrt(square)))
        )

    def _decaying(self, size: int, noise: float, heavy: float) -> float:
        assert self.radius is not None
        reach = 2.0 * self.radius * (math.sqrt(size) if self.region == "box" else 1.0)
        longest = self.clip * SLOPE[self.loss] * UNIT[self.loss] * max(1.0, heavy)
        return reach / math.hypot(longest, math.sqrt(size) * noise)

    def _projected(self, v: Floats) -> Floats:
        if self.radius is None:
            return v
        if self.region == "box":
            return np.clip(v, -self.radius, self.radius)
        return v * min(1.0, self.radius / max(float(np.linalg.norm(v)), 1e-300))
