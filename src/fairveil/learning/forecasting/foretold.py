"""What is foretold of a search: each constraint with the deviations about it, or why nothing is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ... import _verdicts as verdicts
from ...facts import Cells
from .releases import Release

DEVIATIONS = 2.0
"""How many deviations of its noise a gap has to be, to be told from none."""


@dataclass(frozen=True)
class Line:
    """One constraint: its name and `bound` (None: measured, not bounded), and the deviations above.
    `cells`: the groups that it is about, by number. `looks`, `among`: as in the report of a fit,
    see `_verdicts`."""

    name: str
    bound: float | None
    noise: float
    sampling: float | None
    cells: tuple[int, ...]
    among: int = 1
    looks: int = 1

    @property
    def enforceable(self) -> float:
        """The smallest bound that can be enforced: a gap above it by chance is not what noise alone
        often shows."""
        return DEVIATIONS * self.noise

    @property
    def verifiable(self) -> float:
        """The smallest bound that a model with a value of exactly 0 is said to have met in 19 fits
        of 20: value and verdict both take their share of the noise."""
        met = verdicts.deviations(1.0 - (1.0 - verdicts.CONFIDENCE) / self.looks)
        return (met + verdicts.deviations(verdicts.CONFIDENCE)) * self.noise

    @property
    def breach(self) -> float:
        """How far above its bound a value has to be, to be said "not met" in 19 fits of 20."""
        told = verdicts.deviations(1.0 - (1.0 - verdicts.CONFIDENCE) / self.among)
        return (told + verdicts.deviations(verdicts.CONFIDENCE)) * self.noise

    @property
    def can_be_enforced(self) -> bool:
        """Whether the required bound is one that can be."""
        return self.bound is None or self.noise == 0.0 or self.enforceable <= self.bound

    @property
    def can_be_verified(self) -> bool:
        """The same of a verdict "met"."""
        return self.bound is None or self.noise == 0.0 or self.verifiable <= self.bound


@dataclass(frozen=True)
class Forecast:
    """Public facts alone. `why`: why no noise is foretold, where none is. `rounds`: of the search.
    `cells`: the groups that `lines` distinguish. `added_error`: what noise adds to the error of a
    linear model, about; None where that is not known."""

    releases: tuple[Release, ...]
    lines: tuple[Line, ...]
    cells: Cells | None
    rounds: int | None = None
    added_error: float | None = None
    why: str = ""

    @property
    def noisiest(self) -> Line | None:
        """The constraint that is furthest from being enforced."""
        return max(
            self.lines, key=lambda line: line.enforceable - (line.bound or 0.0), default=None
        )

    def by_group(self) -> dict[int, float]:
        """Of each cell, the least noise that a comparison of few groups with it has: the noise that
        its own size brings. A rate of everybody's counts where nothing else is about the cell."""
        pairs: dict[tuple[int, ...], float] = {}
        for line in self.lines:
            pairs[line.cells] = max(pairs.get(line.cells, 0.0), line.noise)
        found: dict[int, tuple[int, float]] = {}
        for cells, noise in pairs.items():
            for cell in cells:
                found[cell] = min(found.get(cell, (len(cells), math.inf)), (len(cells), noise))
        return {cell: noise for cell, (_, noise) in sorted(found.items())}
