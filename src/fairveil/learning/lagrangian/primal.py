"""The primal player: Nesterov's momentum and the average of the late iterates. Pure functions of
released gradients.

Averaging is what makes many noisy rounds as good as few: for a fixed budget the noise of a round
grows as the square root of the number of rounds, and the average of the iterates loses it again.
Both are post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._types import Floats


@dataclass(frozen=True, eq=False, slots=True)
class PrimalState:
    """Where the walk is: weights, velocity, and the sum of the `counted` iterates that the average
    is made of.

    Arrays have the shape (models, outputs, 1 + width); no operation mixes models, so each walks as
    it would alone.
    """

    weights: Floats
    velocity: Floats
    total: Floats
    counted: int = 0

    @staticmethod
    def begin(shape: tuple[int, ...]) -> PrimalState:
        """At zero, at rest."""
        return PrimalState.at(np.zeros(shape))

    @staticmethod
    def at(weights: Floats) -> PrimalState:
        """At rest."""
        return PrimalState(weights, np.zeros_like(weights), np.zeros_like(weights))

    def step(
        self, gradient: Floats, rate: Floats | float, momentum: Floats | float, *, count: bool
    ) -> PrimalState:
        """v <- m v - rate g;  w <- w + m v - rate g  (Nesterov's step, written for the look-ahead
        point itself)."""
        # Nesterov's point is kept itself, so that the gradient is asked where the weights are.
        push = rate * gradient
        velocity = momentum * self.velocity - push
        weights = self.weights + momentum * velocity - push
        return PrimalState(
            weights, velocity, self.total + weights if count else self.total, self.counted + count
        )

    def along(
        self, answer: Floats, share: Floats, rate: Floats, momentum: float, *, count: bool
    ) -> PrimalState:
        """`step` along answer / share, compiled; `share` and `rate` (models,)."""
        from . import kernels

        now = (self.weights, self.velocity, self.total)
        moved = kernels.walked(*now, answer, share, rate, momentum, count)
        weights, velocity, total = moved
        return PrimalState(weights, velocity, total, self.counted + count)

    @property
    def average(self) -> Floats:
        """The mean of the counted iterates; the last one where none was counted."""
        return self.total / self.counted if self.counted else self.weights
