"""What a descent of linear models holds between two rounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._types import Floats
from .primal import PrimalState


@dataclass(frozen=True, eq=False)
class LinearState:
    """Between two rounds. Released or public values only; a leading axis for the models."""

    walk: PrimalState
    play: Any  # the max player's own state; None without one
    counts: Floats  # rows by (model, cell, label), released
    rows: Floats  # what averages divide by, a number a model
    rate: Floats
    reach: Floats  # the largest step size that noise leaves room for, (models, 1, 1)
    clip: float  # of every round, at the released or public number of rows
    round: int = 0
    age: Floats | None = None  # where all is exact: rounds since each model's momentum began anew
    # where all is exact: the round after which each model moved no more; 0 while it does
    stopped: Floats | None = None
    probe: Floats | None = None  # power iteration: the direction, while it runs
    pull: Floats | None = None  # and the gradient at zero
    warming: bool = False
    # centre and scale of each number, while it is searched
    standard: tuple[Floats, Floats] | None = None
    # the models that the opening rounds found, which know no constraint
    opened: Floats | None = None
    # noise hides the constraints: rounds ask for the gradient of the loss, at their whole price
    loss_alone: bool = False

    def after(self, walk: PrimalState, play: object) -> LinearState:
        """The state after a noisy round; `dataclasses.replace` would cost a tenth of one."""
        other = object.__new__(LinearState)
        other.__dict__.update(self.__dict__, walk=walk, play=play, round=self.round + 1)
        return other


def restarted(walk: PrimalState, gradient: Floats, age: Floats) -> tuple[PrimalState, Floats]:
    """Without noise: forget the velocity where it points uphill (O'Donoghue and Candes 2015)."""
    uphill = (walk.velocity * gradient).sum(axis=(1, 2)) > 0
    if not uphill.any():
        return walk, age
    return replace(
        walk, velocity=np.where(uphill[:, np.newaxis, np.newaxis], 0.0, walk.velocity)
    ), np.where(uphill, 0.0, age)


def start_of(width: int, models: int) -> Floats:
    """A direction that no symmetry of the features is likely to be orthogonal to."""
    line = np.cos(np.arange(1.0, width + 1.0))
    return np.broadcast_to(line / np.sqrt((line * line).sum()), (models, 1, width)).copy()
