"""Objectives that compare groups: the largest gap of a notion of fairness, smooth forms of it, and
those that papers print."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ... import _checks
from ...errors import InputError
from ...facts import Cells
from ...tables import keys
from .. import outer, outer_gaps
from ..group_function import GroupFunction, stacked
from ..notions import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    FalsePositiveRateParity,
    GapNotion,
)
from .objective import Frame, Objective
from .of_rates import largest, of_system, require_pairs, resolved

GAPS: Mapping[str, type[GapNotion]] = {
    cls.kind: cls
    for cls in (
        DemographicParity,
        EqualizedOdds,
        EqualOpportunity,
        FalsePositiveRateParity,
        ErrorRateParity,
    )
}


@dataclass(frozen=True)
class Gap(Objective):
    """The largest gap of a notion of fairness, between any two groups.

    `sharpness`: None for the largest itself; else its smooth form: `smooth="exponential"`, (1/eta)
    ln sum e^(eta gap), which is convex and no smaller, or "boltzmann", Definition 1.14's, which is
    not convex.
    """

    kind: ClassVar[str] = "gap"
    decisions_only: ClassVar[bool] = True
    notion: str = "equalized_odds"
    sharpness: float | None = None
    smooth: str = "exponential"
    groups: str = "product"

    def __post_init__(self) -> None:
        _checks.one_of(GAPS, notion=self.notion)
        _checks.one_of(("exponential", "boltzmann"), smooth=self.smooth)

    def at(self, frame: Frame) -> GroupFunction:
        self.need_classes(frame)
        system = resolved((GAPS[self.notion](0.0, groups=self.groups),), frame.cells, frame.classes)
        require_pairs(system, frame, str(self))
        return of_system(system, frame, largest(self.sharpness, self.smooth))

    def __str__(self) -> str:
        return (
            self.notion
            if self.sharpness is None
            else f"{self.notion} (smooth, sharpness {self.sharpness:g})"
        )


@dataclass(frozen=True)
class SmoothedOdds(Objective):
    """Smoothed equalized odds: `SmoothedOdds(50).at_most(0.05)`. The smooth maximum of all signed
    differences of rates; see `Gap`. `SmoothedOddsOfPairs` and `SmoothedOddsOfRates` take absolute
    ones, as Definition 1.14 and Example 8.10 do."""

    kind: ClassVar[str] = "smoothed_odds"
    decisions_only: ClassVar[bool] = True
    sharpness: float = 50.0
    smooth: str = "boltzmann"
    groups: str = "product"

    def at(self, frame: Frame) -> GroupFunction:
        return Gap("equalized_odds", self.sharpness, self.smooth, self.groups).at(frame)

    def __str__(self) -> str:
        return f"equalized_odds ({self.smooth} maximum, sharpness {self.sharpness:g})"


def _columns(cells: Cells) -> list[range]:
    """The cells that are compared with each other: all of them, or those of one sensitive
    column."""
    ends = [0, cells.count] if cells.mode == "product" else [0, *itertools.accumulate(cells.sizes)]
    return [range(first, last) for first, last in itertools.pairwise(ends)]


@dataclass(frozen=True)
class _PublishedOdds(Objective):
    """Abstract: a smooth maximum of |FP_a - FP_b| and |TP_a - TP_b|, of two classes
    (`outer_gaps.BoltzmannOfGaps`)."""

    decisions_only: ClassVar[bool] = True
    sharpness: float = 50.0

    def at(self, frame: Frame) -> GroupFunction:
        self.need_classes(frame)
        if len(frame.classes) != 2:
            expected, remedy = (
                "two classes, whose second is the positive one",
                "Pass SmoothedOdds() or Gap('equalized_odds').",
            )
            raise InputError.expected(expected, of=self.kind, got=len(frame.classes), remedy=remedy)
        pairs = [
            pair for column in _columns(frame.cells) for pair in itertools.combinations(column, 2)
        ]
        if not pairs:
            got, remedy = (
                f"groups {list(frame.cells.keys)}",
                "Pass sensitive_features with several groups.",
            )
            raise InputError.expected(
                "at least two groups to compare", of=self.kind, got=got, remedy=remedy
            )
        lines, names = [], []
        for (a, b), (y, rate) in itertools.product(pairs, enumerate(("false", "true"))):
            line = np.zeros(frame.shape)
            for c, sign in ((a, 1.0), (b, -1.0)):
                line[c, y, 1] = sign / max(float(frame.shares[c, y]), frame.least)
            lines.append(line)
            one, other = (keys.shown(frame.cells.keys[c]) for c in (a, b))
            names.append(f"{rate} positive rates of groups {one} and {other}")
        return GroupFunction(
            frame.shape, stacked(lines, frame.shape), self._outer(frame.cells), names=tuple(names)
        )

    @abstractmethod
    def _outer(self, cells: Cells) -> outer.Outer:
        """How the differences become one number."""

    def __str__(self) -> str:
        return f"{self.kind} (sharpness {self.sharpness:g})"


@dataclass(frozen=True)
class SmoothedOddsOfPairs(_PublishedOdds):
    """Definition 1.14 (8.8) to the letter: smax over a, a' in A of max(|FP_a - FP_a'|, |TP_a -
    TP_a'|), a = a' among them, smax(u) = sum_i u_i e^(eta u_i) / sum_i e^(eta u_i). Not convex: for
    the exponential method. It is below the largest gap by up to ln(groups^2) / sharpness."""

    kind: ClassVar[str] = "smoothed_odds_of_pairs"

    def _outer(self, cells: Cells) -> outer.Outer:
        return outer_gaps.BoltzmannOfGaps(self.sharpness, lines=2, times=2, zeros=cells.count)


@dataclass(frozen=True)
class SmoothedOddsOfRates(_PublishedOdds):
    """Example 8.10's maximum: smax(|FP_a - FP_b|, |TP_a - TP_b|) of two groups, of more over all
    their pairs, each once. Not convex: for the exponential method."""

    kind: ClassVar[str] = "smoothed_odds_of_rates"

    def _outer(self, cells: Cells) -> outer.Outer:
        return outer_gaps.BoltzmannOfGaps(self.sharpness)
