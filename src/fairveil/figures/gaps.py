"""Figures of a few numbers in rows: the gap required, seen and measured; one rate, group by
group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .. import _checks
from .contents import GapFigure, Measure, RatesFigure
from .scales import AxisScale, axis_title, number, tick_texts
from .styles import AXIS, GRID, INK, OWN_COLOURS, QUIET, Style
from .svg import BOLDER, Drawing, shortened, text_width
from .words import gap_description, gap_title, percent, rates_description

SIZE, SMALL, ROW = 13.0, 12.0, 30.0
BESIDE = 340  # up to this width the names stand over their rows


@dataclass(frozen=True)
class Row:
    """One number in a row: where it lies, its interval, what is written at its end."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    style: Style
    missing: str


def svg_gaps(figure: GapFigure, *, width: int = 720, name: str = "gaps") -> str:
    """The three numbers in three rows; a dashed line carries the target through all."""
    colour = OWN_COLOURS[0]
    low, high = figure.held_out_low, figure.held_out_high
    least, most = figure.training_ends or (None, None)
    rows = [
        Row(
            "Required, at most",
            figure.target,
            None,
            None,
            Style("plus", True, "", INK, 2),
            "no target",
        ),
        Row(
            "Training, noisy",
            figure.training_shown,
            least,
            most,
            Style("square", False, "", colour, 2),
            "not known",
        ),
        Row(
            f"Held-out people, {percent(figure.confidence)}",
            figure.held_out,
            low,
            high,
            Style("circle", True, "", colour, 2),
            "not measured",
        ),
    ]
    measure = Measure(figure.name, figure.measure.unit)
    drawing = _rows(rows, measure, width, name, figure.target)
    return drawing.whole(gap_title(figure), gap_description(figure))


def svg_rates(figure: RatesFigure, *, width: int = 720, name: str = "rates") -> str:
    """One row a group: the rate with its interval, hollow where the group is small."""
    rows = [
        Row(
            rate.label,
            rate.value,
            rate.low,
            rate.high,
            Style("circle", not rate.small, "", OWN_COLOURS[0], 2),
            "undefined",
        )
        for rate in figure.rates
    ]
    drawing = _rows(rows, Measure(figure.name, "percent"), width, name, None)
    return drawing.whole(f"{figure.name} by group", rates_description(figure))


def row_scale(values: Sequence[float | None]) -> AxisScale:
    """From 0 to 1 over what is there, from zero on."""
    there = [value for value in values if value is not None and not math.isnan(value)]
    return AxisScale.over([*there, 0.0, *([] if any(there) else [1.0])], 0, 1, zero=True)


def _rows(
    rows: list[Row], measure: Measure, width: int, name: str, target: float | None
) -> Drawing:
    width = _checks.whole(at_least=320, width=width)
    names = max(text_width(row.name, SIZE) for row in rows)
    over = names > 0.34 * width
    ends = max(text_width(_end(row, measure), SIZE) for row in rows) * BOLDER
    left = 12.0 if over else names + 22
    deep = ROW + (20 if over else 0)
    scale = row_scale([value for row in rows for value in (row.value, row.low, row.high)]).moved(
        left, width - ends - 20
    )
    bottom = 12 + deep * len(rows)
    drawing = Drawing(width, bottom + 48, name)
    drawing.add("rect", width=width, height=drawing.height, fill="#fff")
    for value, text in zip(scale.ticks, tick_texts(scale.ticks, measure.unit), strict=True):
        drawing.line(scale(value), 6, scale(value), bottom, GRID)
        drawing.text(scale(value), bottom + 17, text, SMALL, "middle", fill=QUIET, data_tick=value)
    drawing.line(left, bottom, scale.end, bottom, AXIS, 1.2)
    drawing.text(
        scale.end, bottom + 36, shortened(axis_title(measure), SMALL, scale.end - 4), SMALL, "end"
    )
    if target is not None and not over:
        drawing.line(scale(target), 6, scale(target), bottom, INK, 1.4, "5 4")
    for place, row in enumerate(rows):
        middle = 12 + deep * place + (26 if over else ROW / 2 - 2)
        if over:
            drawing.text(left, middle - 14, shortened(row.name, SIZE, width - 16), SIZE)
            if target is not None:  # not through the names
                drawing.line(
                    scale(target), middle - 11, scale(target), middle + 13, INK, 1.4, "5 4"
                )
        else:
            drawing.text(left - 14, middle + 4.5, row.name, SIZE, "end")
        _row(drawing, row, scale, middle)
        drawing.text(
            scale.end + 12,
            middle + 4.5,
            _end(row, measure),
            SIZE,
            font_weight=None if row.value is None else "bold",
        )
    return drawing


def _row(drawing: Drawing, row: Row, scale: AxisScale, middle: float) -> None:
    if row.value is None:
        return
    drawing.open("g", data_value=repr(row.value))
    if row.low is not None and row.high is not None:
        drawing.line(scale(row.low), middle, scale(row.high), middle, row.style.colour, 2)
        for end in (row.low, row.high):
            drawing.line(scale(end), middle - 5, scale(end), middle + 5, row.style.colour, 2)
    drawing.marker(scale(row.value), middle, row.style, 5.4)
    drawing.close("g")


def _end(row: Row, measure: Measure) -> str:
    if row.value is None:
        return row.missing
    ends = (
        ""
        if row.low is None or row.high is None
        else f" ({number(row.low, measure.unit)}–{number(row.high, measure.unit)})"
    )
    return number(row.value, measure.unit) + ends
