"""Where to write a curve's name so that it covers neither marks nor other names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Spot = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle: left, top, right, bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: Box) -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width * height if width > 0 and height > 0 else 0.0

    def distance(self, spot: Spot) -> float:
        """How far a spot lies outside."""
        x, y = spot
        return math.hypot(
            max(self.left - x, 0.0, x - self.right), max(self.top - y, 0.0, y - self.bottom)
        )

    def nearest(self, spot: Spot) -> Spot:
        """The place in it that is nearest to a spot."""
        x, y = spot
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)

    def inside(self, other: Box) -> bool:
        """Whether the other holds it."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


@dataclass(frozen=True)
class Placed:
    """A name's box, and the mark that it belongs to."""

    box: Box
    spot: Spot


# From the mark to the nearest edge of the name: (horizontal, vertical), -1 to the left or above, 0
# centred.
SIDES = ((1, -1), (1, 0), (1, 1), (0, -1), (0, 1), (-1, -1), (-1, 0), (-1, 1))
NEARER = 80.0  # what it costs to stand nearer to a stranger's mark
DISTANCES = (8.0, 15.0, 26.0, 40.0, 56.0, 75.0, 96.0)


def place(
    width: float,
    height: float,
    spots: Sequence[Spot],
    strangers: Sequence[Spot],
    taken: Sequence[Box],
    frame: Box,
    names: Sequence[Box] = (),
) -> Placed | None:
    """The best place for a name of that size beside one of the spots (first ones preferred) that
    touches nothing that is taken, and whose line to the spot crosses none of the other `names`;
    None when the frame has none.

    What counts most is whether a mark of a stranger lies nearer, then the distance from the mark,
    then the order of spots and sides.
    """
    best: tuple[float, Placed] | None = None
    for order, spot in enumerate(spots):
        for far, distance in enumerate(DISTANCES):
            for turn, (across, down) in enumerate(SIDES):
                box = _beside(spot, across, down, distance, width, height)
                cost = 6.0 * far + 3.0 * order + turn
                if not box.inside(frame) or (best is not None and cost >= best[0]):
                    continue
                if any(box.shared(other) > 0 for other in taken):
                    continue
                if any(
                    step.shared(other) > 0
                    for step in trail([spot, box.nearest(spot)], 1.0)
                    for other in names
                ):
                    continue
                near = box.distance(spot)
                cost += NEARER * any(box.distance(other) < near - 2 for other in strangers)
                if best is None or cost < best[0]:
                    best = cost, Placed(box, spot)
    return None if best is None else best[1]


def trail(spots: Sequence[Spot], half: float = 2.5, step: float = 6.0) -> list[Box]:
    """Small boxes that cover the line through the spots."""
    boxes = []
    for (x, y), (u, v) in pairwise(spots):
        pieces = max(1, int(max(abs(u - x), abs(v - y)) / step))
        for piece in range(pieces + 1):
            share = piece / pieces
            centre_x, centre_y = x + share * (u - x), y + share * (v - y)
            boxes.append(Box(centre_x - half, centre_y - half, centre_x + half, centre_y + half))
    return boxes


def _beside(
    spot: Spot, across: int, down: int, distance: float, width: float, height: float
) -> Box:
    x, y = spot
    reach = distance if 0 in (across, down) else 0.7 * distance
    left = x + reach if across > 0 else x - reach - width if across < 0 else x - width / 2
    top = y + reach if down > 0 else y - reach - height if down < 0 else y - height / 2
    return Box(left, top, left + width, top + height)
