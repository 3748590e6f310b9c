"""Cost against rows as a picture: measured, then dashed and hollow where it is extrapolated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

from fairveil.figures import with_dark
from fairveil.figures.scales import AxisScale
from fairveil.figures.styles import AXIS, GRID, OWN_COLOURS, QUIET, SHAPES, Style
from fairveil.figures.svg import Drawing

END = 1e9
NAMES = {
    "memory": "in memory",
    "store": "coded store",
    "opened": "Parquet, coded once",
    "parquet": "Parquet, each pass",
    "processes": "worker processes",
    "dask": "dask",
}
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 720, 58, 190, 40, 380
APART = 17  # pixels between labels
Points = Sequence[tuple[float, float]]


def drawn(found: dict[str, Points], place: Path) -> None:
    """`found`: (rows, processor seconds of a pass) by kind.

    Beyond the largest measured number of rows the cost of a row stays what it was there.
    """
    ends = {kind: (END, max(points)[1] * END / max(points)[0]) for kind, points in found.items()}
    every = [pair for kind, points in found.items() for pair in (*points, ends[kind])]
    across = AxisScale.over([math.log10(rows) for rows, _ in every], LEFT, WIDTH - RIGHT)
    up = AxisScale.over([math.log10(seconds) for _, seconds in every], BOTTOM, TOP)
    drawing = Drawing(WIDTH, BOTTOM + 84, "scale")
    drawing.add("rect", width=WIDTH, height=drawing.height, fill="#fff")
    _axes(drawing, across, up)
    labels = []
    for at, (kind, points) in enumerate(found.items()):
        looks = [Style(SHAPES[at], filled, "", OWN_COLOURS[at], 2.0) for filled in (True, False)]
        spots = [
            (across(math.log10(rows)), up(math.log10(seconds))) for rows, seconds in sorted(points)
        ]
        last = across(math.log10(ends[kind][0])), up(math.log10(ends[kind][1]))
        for (x1, y1), (x2, y2) in itertools.pairwise(spots):
            drawing.line(x1, y1, x2, y2, looks[0].colour, 2.0)
        if max(points)[0] < END:
            drawing.line(*spots[-1], *last, looks[0].colour, 1.6, "5 4")
            drawing.marker(*last, looks[1])
        for spot in spots:
            drawing.marker(*spot, looks[0])
        labels.append((last[1], f"{NAMES[kind]}: {_seconds(ends[kind][1])}", looks[0].colour))
    _labels(drawing, labels)
    drawing.line(LEFT, BOTTOM + 62, LEFT + 30, BOTTOM + 62, QUIET, 2.0)
    drawing.text(LEFT + 38, BOTTOM + 66, "measured", 12)
    drawing.line(LEFT + 130, BOTTOM + 62, LEFT + 160, BOTTOM + 62, QUIET, 1.6, "5 4")
    drawing.text(
        LEFT + 168, BOTTOM + 66, "extrapolated: the cost of a row at the largest measured table", 12
    )
    place.write_text(
        with_dark(drawing.whole("Processor seconds of a pass against rows", words(found))) + "\n",
        "utf-8",
    )


def words(found: dict[str, Points]) -> str:
    """The picture in words."""
    told = []
    for kind, points in found.items():
        rows, seconds = max(points)
        told.append(
            f"{NAMES[kind]}: {_seconds(seconds)} at {rows:.0e} rows, the largest measured; "
            f"{_seconds(seconds * END / rows)} at 1e9 rows, extrapolated."
        )
    return " ".join(told)


def _axes(drawing: Drawing, across: AxisScale, up: AxisScale) -> None:
    for power in range(math.ceil(up.low), math.floor(up.high) + 1):
        drawing.line(LEFT, up(power), WIDTH - RIGHT, up(power), GRID)
        drawing.text(
            LEFT - 7,
            up(power) + 4,
            f"{10.0**power:g}",
            12,
            "end",
            fill=QUIET,
            data_tick=repr(10.0**power),
        )
    for power in range(math.ceil(across.low), math.floor(across.high) + 1):
        drawing.line(across(power), BOTTOM, across(power), BOTTOM + 5, AXIS)
        drawing.text(
            across(power),
            BOTTOM + 19,
            f"1e{power}",
            12,
            "middle",
            fill=QUIET,
            data_tick=repr(10.0**power),
        )
    drawing.line(LEFT, BOTTOM, WIDTH - RIGHT, BOTTOM, AXIS, 1.2)
    drawing.text(4, TOP - 18, "Processor seconds of one pass", 12)
    drawing.text(WIDTH - RIGHT, BOTTOM + 38, "Rows", 12, "end")
    drawing.text(WIDTH - RIGHT + 12, TOP - 18, "At 1e9 rows, extrapolated", 12, fill=QUIET)


def _labels(drawing: Drawing, labels: list[tuple[float, str, str]]) -> None:
    """At the ends of their lines, moved down where they would touch; the highest first."""
    below = -math.inf
    for y, text, colour in sorted(labels):
        below = max(y + 4, below + APART)
        drawing.text(WIDTH - RIGHT + 12, below, text, 12, fill=colour)


def _seconds(value: float) -> str:
    return f"{value:.3g} s"
