"""What a fit by descent is about to do: opened, its search planned and priced, nothing asked
yet."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.promise import Promise
from ...facts import Cells
from ...learning import LinearDescent, NetworkDescent
from ..reading.training import Training
from .opened_fit import OpenedFit

Descent = LinearDescent | NetworkDescent


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class PlannedFit:
    """A fit that has not begun."""

    opening: OpenedFit
    cells: Cells | None
    search: Descent

    @property
    def promise(self) -> Promise:
        """What it promises."""
        return self.opening.promise

    @property
    def training(self) -> Training:
        """Its rows, and how they were read."""
        return self.opening.training
