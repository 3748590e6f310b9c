"""How curves look: distinguished by shape, filling and dash first, so that a grey print loses
nothing; by colour besides."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from .contents import Series

INK = "#1a1a1a"
QUIET = "#595959"
GRID = "#e2e2e2"
AXIS = "#767676"

SHAPES = ("circle", "square", "triangle", "diamond", "down", "star", "cross", "plus")
OWN_DASHES = ("", "9 3", "2 3", "9 3 2 3", "5 2", "12 3 2 3 2 3", "4 4", "1 2")
THEIR_DASHES = ("6 4", "1.5 3", "8 3 1.5 3", "3 2", "10 5", "5 2 1 2 1 2", "2 5", "12 2")
# Dark enough on white for thin lines (3:1 and more), apart under all common kinds of colour
# blindness.
OWN_COLOURS = ("#0b4a8f", "#b3380f", "#00695c", "#6a2c91", "#7a5900", "#9c1f4f")
THEIR_COLOURS = ("#4d4d4d", "#8a5a00", "#5c6b7a", "#6b4a6b", "#3f6b4a", "#7a4a3a")


@dataclass(frozen=True)
class Style:
    """The look of one curve."""

    shape: str
    filled: bool
    dash: str
    colour: str
    width: float


def styles(series: Sequence[Series], key: Callable[[Series], Hashable]) -> dict[Hashable, Style]:
    """One style for each key, in order of appearance: one's own filled and broad, published ones
    hollow and thin.

    The first 24 of either kind differ in shape or dash."""
    found: dict[Hashable, Style] = {}
    counts = {True: 0, False: 0}
    for one in series:
        if key(one) in found:
            continue
        place = counts[one.published]
        counts[one.published] += 1
        shape = SHAPES[place % len(SHAPES)]
        dashes = THEIR_DASHES if one.published else OWN_DASHES
        # After one round through the shapes the dashes are shifted against them.
        dash = dashes[(place + place // len(SHAPES)) % len(dashes)]
        colours = THEIR_COLOURS if one.published else OWN_COLOURS
        colour = (
            INK if math.isinf(one.epsilon) and not one.published else colours[place % len(colours)]
        )
        found[key(one)] = Style(
            shape, not one.published, dash, colour, 1.4 if one.published else 2.2
        )
    return found
