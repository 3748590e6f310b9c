"""The legend under a figure: a sample of each line and mark, and whose it is."""

from __future__ import annotations

from dataclasses import dataclass

from .styles import QUIET, Style
from .svg import Drawing, wrapped

SIZE, LINE, GAP, SAMPLE, BESIDE = 12.5, 16.0, 6.0, 52.0, 20.0
TWO_COLUMNS = 560


@dataclass(frozen=True)
class LegendEntry:
    """One line of the legend; no style: the floor."""

    style: Style | None
    words: str


def legend_height(entries: list[LegendEntry], width: float) -> float:
    """How tall the legend will be."""
    return _rows(entries, width)[1] + 8


def draw_legend(
    drawing: Drawing,
    entries: list[LegendEntry],
    top: float,
    start: float = 0.0,
    width: float | None = None,
) -> None:
    """The legend, from `top` downwards, in one or two columns, from `start` on and not wider than
    `width`."""
    rows, _ = _rows(entries, drawing.width if width is None else width)
    for entry, lines, beside, y in rows:
        left, middle = start + beside, top + y + LINE / 2 - 3
        if entry.style is None:
            drawing.line(left, middle, left + SAMPLE - 10, middle, QUIET, 1.6, "1.5 3")
        else:
            style = entry.style
            drawing.line(
                left, middle, left + SAMPLE - 10, middle, style.colour, style.width, style.dash
            )
            drawing.marker(left + (SAMPLE - 10) / 2, middle, style, 4.6 if style.filled else 4.0)
        for number, line in enumerate(lines):
            drawing.text(left + SAMPLE, middle + 4.5 + number * LINE, line, SIZE)


def _rows(
    entries: list[LegendEntry], width: float
) -> tuple[list[tuple[LegendEntry, list[str], float, float]], float]:
    """(entry, lines, left, top) each, and the height of all. In two columns the first half stands
    on the left."""
    columns = 2 if width >= TWO_COLUMNS and len(entries) > 1 else 1
    room = (width - 8 - BESIDE * (columns - 1)) / columns
    many = -(-len(entries) // columns)
    placed, deepest = [], 0.0
    for column in range(columns):
        y = 0.0
        for entry in entries[column * many : (column + 1) * many]:
            lines = wrapped(entry.words, SIZE, room - SAMPLE)
            placed.append((entry, lines, 4 + column * (room + BESIDE), y))
            y += len(lines) * LINE + GAP
        deepest = max(deepest, y)
    return placed, deepest
