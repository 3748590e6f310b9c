"""What a descent of group losses holds between rounds: released values only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..._types import Floats
from ..lagrangian.duals import ExponentiatedGradientState
from ..lagrangian.primal import PrimalState
from .problem import ReleasedProblem


@dataclass(frozen=True, eq=False)
class Course:
    """A model, and the mean of `rounds` releases of its iterates' losses."""

    weights: Floats
    losses: Floats = field(default_factory=lambda: np.zeros(1))
    rounds: int = 0

    def heard(self, losses: Floats) -> Course:
        """One release more."""
        count = self.rounds + 1
        return replace(self, losses=self.losses + (losses - self.losses) / count, rounds=count)


@dataclass(frozen=True, eq=False)
class GroupDescentState:
    """Between rounds: released values only. `leaning`: the auditor's, by excesses so far; `duals`:
    the sum of its plays; `noise`: the deviation of each excess of one round; `late`: losses of the
    iterates that are averaged; `alike`: the model that weighs everybody alike, once it is found;
    `pushed`: the mean of f's weights since."""

    posed: ReleasedProblem
    walk: PrimalState
    weights: Floats
    leaning: ExponentiatedGradientState
    duals: Floats
    mean: Floats
    noise: Floats
    late: Course
    alike: Course | None = None
    pushed: Floats | None = None
    round: int = 0
