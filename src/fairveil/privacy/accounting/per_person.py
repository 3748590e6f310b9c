"""What releases with a noise of its own for each cell cost, person by person (theory.md#cells).

A person is in one cell of a column, the same one in every release, and a neighbour may put her into
one other cell. So several releases over the same cells are added up by person, and the worst person
is sought last: exact under adaptive composition of Gaussians whose multipliers are constants
(theory.md#t1), for each pair of neighbours is a pair of cells.

Shown by enumerated people in tests/privacy/test_privacy_by_group.py.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ...core.events import PerCell
from ...core.promise import Neighbours

Array = npt.NDArray[np.float64]
Counted = Iterable[tuple[PerCell, int]]
"""Releases over the cells of one column, with how often each was made."""


class People:
    """mu^2 of everybody who can be in these releases: by cell, and by pair of cells."""

    def __init__(self, releases: Counted) -> None:
        rows = [
            (part, spread, crossing, times)
            for event, times in sorted(releases, key=repr)
            for part, spread, crossing in zip(
                event.multipliers,
                event.spreads,
                event.crossings or (0,) * len(event.spreads),
                strict=True,
            )
        ]
        multipliers, spreads, crossings, times = zip(*rows, strict=True)
        # How far one row moves its cell, in units of the cell's noise.
        self._sizes: Array = 1 / np.array(multipliers, np.float64)
        self._squares = self._sizes**2
        self._crossings = np.array(crossings, np.float64)[:, np.newaxis]
        self._times = np.array(times, np.float64)
        self.alone: Array = self._times @ self._squares
        self.inside: Array = (self._times * np.array(spreads, np.float64) ** 2) @ self._squares

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.alone)

    def replaced(self, cell: int) -> Array:
        """Of a person in `cell`, against another person in each cell; in the same one at its own
        place."""
        size = self._sizes[:, cell : cell + 1]
        # From cell k to k': 1/m^2 + 1/m'^2 + 2x/(m m') with the crossing x in {-1, 0, 1}
        # (docs/theory/sensitivities.md, noise by cell).
        apart = self._times @ (
            (size + self._crossings * self._sizes) ** 2 + (1 - abs(self._crossings)) * self._squares
        )
        apart[cell] = self.inside[cell]
        return apart

    def of_cell(self, cell: int, neighbours: Neighbours) -> float:
        """The worst over pairs of neighbours of which one is a person in `cell`."""
        return float(self.alone[cell] if neighbours == "add-remove" else self.replaced(cell).max())

    def worst(self, neighbours: Neighbours) -> float:
        """The worst over all people."""
        if neighbours == "add-remove":
            return float(self.alone.max())
        if self._crossings.any():
            return max(float(self.replaced(cell).max()) for cell in range(self.cells))
        # Where cells have coordinates of their own, the worst pair is the two with least noise.
        two = np.sort(self.alone)[-2:]
        return float(max(self.inside.max(), two.sum() if self.cells > 1 else 0.0))
