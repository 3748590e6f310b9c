"""How a frontier is laid out: one pair of axes, or one for each epsilon, all with the same
scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .contents import FrontierFigure, Series
from .labels import Box
from .scales import AxisScale
from .words import epsilon_words

TWO_COLUMNS = 560  # from this width on panels stand side by side
LEFT, RIGHT, BOTTOM = 42.0, 14.0, 52.0
OVER, HEADING = 30.0, 22.0


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its heading, its curves, its scales."""

    heading: str
    series: tuple[Series, ...]
    across: AxisScale
    up: AxisScale

    @property
    def frame(self) -> Box:
        """The area of the plot."""
        return Box(self.across.start, self.up.end, self.across.end, self.up.start)

    def spot(self, error: float, gap: float) -> tuple[float, float]:
        """Where a pair lies."""
        return self.across(gap), self.up(error)


def frontier_scales(figure: FrontierFigure) -> tuple[AxisScale, AxisScale]:
    """(of the gap, of the error), from 0 to 1: gaps begin at 0, errors near the least one."""
    points = [point for one in figure.series for point in one.points]
    gaps = [
        value
        for point in points
        for value in (point.gap, point.gap_low, point.gap_high)
        if value is not None
    ]
    errors = [
        value
        for point in points
        for value in (point.error, point.error_low, point.error_high)
        if value is not None
    ]
    if figure.floor is not None:
        gaps += [gap for _, gap in figure.floor.points]
    return AxisScale.over(gaps, 0, 1, zero=True), AxisScale.over(errors, 1, 0, most=7)


def panels(figure: FrontierFigure, width: int) -> list[Panel]:
    """The panels from left to right and top to bottom."""
    gap, error = frontier_scales(figure)
    parts = _parts(figure)
    columns = 2 if len(parts) > 1 and width >= TWO_COLUMNS else 1
    room = width / columns
    plot = room - LEFT - RIGHT
    tall = min(max((0.62 if plot > 500 else 0.9) * plot, 220.0), 400.0)
    over = OVER + (HEADING if figure.is_split else 0.0)
    found = []
    for number, (heading, series) in enumerate(parts):
        row, column = divmod(number, columns)
        left, top = column * room + LEFT, row * (over + tall + BOTTOM) + over
        found.append(
            Panel(heading, series, gap.moved(left, left + plot), error.moved(top + tall, top))
        )
    return found


def _parts(figure: FrontierFigure) -> list[tuple[str, tuple[Series, ...]]]:
    if not figure.is_split:
        return [("", figure.series)]
    epsilons = sorted({one.epsilon for one in figure.series if not math.isinf(one.epsilon)})
    return [
        (
            epsilon_words(epsilon),
            tuple(one for one in figure.series if one.epsilon in (epsilon, math.inf)),
        )
        for epsilon in epsilons
    ]
