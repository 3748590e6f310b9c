"""The frontier: error against fairness gap, one curve an epsilon, published curves beside."""

from __future__ import annotations

from collections.abc import Hashable

from .. import _checks
from .contents import Floor, FrontierFigure, Point, Series
from .labels import Box, Spot, place, trail
from .legend import LegendEntry, draw_legend, legend_height
from .panels import Panel, panels
from .scales import axis_title, tick_texts
from .styles import AXIS, GRID, QUIET, Style, styles
from .svg import BOLDER, HALO, Drawing, shortened, text_width
from .words import frontier_description, frontier_title, legend_words, point_words, tag

SMALL, LABEL = 12.0, 12.5


def svg_frontier(figure: FrontierFigure, *, width: int = 720, name: str = "frontier") -> str:
    """The figure as an SVG element, `width` pixels wide, with a title, a description and a legend
    of its own.

    Curves differ in the shapes of their marks and in their dashes, so that a grey print tells them
    apart. `name` begins every id inside: two figures on one page need two names.
    """
    width = _checks.whole(at_least=320, width=width)
    looks = styles(figure.series, lambda one: _owner(figure, one))
    shown = panels(figure, width)
    entries = _entries(figure, looks)
    top, start, room = _legend_place(shown, entries, width)
    last = shown[-1].frame.bottom + 62
    drawing = Drawing(width, last if start else top + legend_height(entries, width), name)
    drawing.add("rect", width=width, height=drawing.height, fill="#fff")
    for number, panel in enumerate(shown):
        _axes(drawing, figure, panel)
        _floor(drawing, figure, panel, f"{name}-{number}")
        for one in sorted(panel.series, key=lambda one: not one.published):  # one's own on top
            _curve(drawing, figure, panel, one, looks[_owner(figure, one)])
        _tags(drawing, figure, panel)
    draw_legend(drawing, entries, top, start, room)
    return drawing.whole(frontier_title(figure), frontier_description(figure))


def _legend_place(
    shown: list[Panel], entries: list[LegendEntry], width: int
) -> tuple[float, float, float]:
    """(top, left, width) of the legend: beside the last panel where half a row is free and it fits
    there, else below."""
    frame, half = shown[-1].frame, width / 2
    beside = len(shown) > 1 and len(shown) % 2 == 1 and shown[0].frame.top == shown[1].frame.top
    if beside and legend_height(entries, half) <= frame.bottom - frame.top:
        return frame.top, half, half
    return frame.bottom + 62, 0.0, width


def _owner(figure: FrontierFigure, series: Series) -> Hashable:
    """What shares a look: one curve; where panels say the epsilon, all curves of one method."""
    if not figure.is_split:
        return series
    return series.label, series.published, series.protects


def _entries(figure: FrontierFigure, looks: dict[Hashable, Style]) -> list[LegendEntry]:
    entries: dict[Hashable, LegendEntry] = {}
    for one in figure.series:
        owner = _owner(figure, one)
        entries.setdefault(
            owner, LegendEntry(looks[owner], legend_words(one, split=figure.is_split))
        )
    if figure.floor is None:
        return list(entries.values())
    return [
        *entries.values(),
        LegendEntry(None, figure.floor.label[:1].upper() + figure.floor.label[1:]),
    ]


def _axes(drawing: Drawing, figure: FrontierFigure, panel: Panel) -> None:
    frame = panel.frame
    for value, text in zip(
        panel.up.ticks, tick_texts(panel.up.ticks, figure.error.unit), strict=True
    ):
        drawing.line(frame.left, panel.up(value), frame.right, panel.up(value), GRID)
        drawing.text(
            frame.left - 7, panel.up(value) + 4, text, SMALL, "end", fill=QUIET, data_tick=value
        )
    for value, text in zip(
        panel.across.ticks, tick_texts(panel.across.ticks, figure.gap.unit), strict=True
    ):
        drawing.line(panel.across(value), frame.bottom, panel.across(value), frame.bottom + 5, AXIS)
        drawing.text(
            panel.across(value),
            frame.bottom + 19,
            text,
            SMALL,
            "middle",
            fill=QUIET,
            data_tick=value,
        )
    drawing.line(frame.left, frame.bottom, frame.right, frame.bottom, AXIS, 1.2)
    over = frame.top - 14
    if panel.heading:
        drawing.text(frame.left - 38, over - 20, panel.heading, 15, font_weight="bold")
    room = frame.right - frame.left + 38
    drawing.text(frame.left - 38, over, shortened(axis_title(figure.error), SMALL, room), SMALL)
    drawing.text(
        frame.right, frame.bottom + 38, shortened(axis_title(figure.gap), SMALL, room), SMALL, "end"
    )


def _floor(drawing: Drawing, figure: FrontierFigure, panel: Panel, name: str) -> None:
    """A dotted line, hatched to its left: nothing there can be told from exact fairness."""
    if figure.floor is None:
        return
    spots = _floor_line(figure.floor, panel)
    drawing.open(
        "pattern",
        id=f"{name}-hatch",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    )
    drawing.line(0, 0, 0, 6, "#bdbdbd", 1.4)
    drawing.close("pattern")
    area = [*spots, (panel.frame.left, spots[-1][1]), (panel.frame.left, spots[0][1])]
    drawing.add("polygon", points=_points(area), fill=f"url(#{name}-hatch)", fill_opacity=0.7)
    drawing.add(
        "polyline",
        points=_points(spots),
        fill="none",
        stroke=QUIET,
        stroke_width=1.6,
        stroke_dasharray="1.5 3",
    )


def _floor_line(floor: Floor, panel: Panel) -> list[Spot]:
    spots = [panel.spot(error, gap) for error, gap in floor.points]
    return [(x, min(max(y, panel.frame.top), panel.frame.bottom)) for x, y in spots]


def _curve(
    drawing: Drawing, figure: FrontierFigure, panel: Panel, series: Series, style: Style
) -> None:
    ordered = sorted(series.points, key=lambda point: (point.gap, point.error))
    spots = [panel.spot(point.error, point.gap) for point in ordered]
    if len(spots) > 1:
        line = {
            "stroke": style.colour,
            "stroke_width": style.width,
            "stroke_dasharray": style.dash or None,
        }
        drawing.add("polyline", points=_points(spots), fill="none", stroke_linejoin="round", **line)
    for point, (x, y) in zip(ordered, spots, strict=True):
        drawing.open(
            "g",
            point_words(figure, series, point),
            data_error=repr(point.error),
            data_gap=repr(point.gap),
        )
        for one, other in _bars(panel, point):
            drawing.line(*one, *other, style.colour)
        drawing.marker(x, y, style, 4.6 if not series.published else 4.0)
        drawing.close("g")


def _bars(panel: Panel, point: Point) -> list[tuple[Spot, Spot]]:
    """The ends of a point's intervals: of the error upwards, of the gap across."""
    bars = []
    if point.error_low is not None and point.error_high is not None:
        bars.append(
            (panel.spot(point.error_low, point.gap), panel.spot(point.error_high, point.gap))
        )
    if point.gap_low is not None and point.gap_high is not None:
        bars.append(
            (panel.spot(point.error, point.gap_low), panel.spot(point.error, point.gap_high))
        )
    return bars


def _tags(drawing: Drawing, figure: FrontierFigure, panel: Panel) -> None:
    """A name beside each curve, where nothing strikes it through: no line, no bar, no mark, no
    other name. A name that has no such place is left to the legend."""
    taken: list[Box] = []
    names: list[Box] = []
    for one in panel.series:
        spots = [
            panel.spot(point.error, point.gap)
            for point in sorted(one.points, key=lambda point: point.gap)
        ]
        taken += [Box(x - 7, y - 7, x + 7, y + 7) for x, y in spots] + trail(spots)
        taken += [box for point in one.points for bar in _bars(panel, point) for box in trail(bar)]
    if figure.floor is not None:
        taken += trail(_floor_line(figure.floor, panel))
    frame = panel.frame
    room = Box(frame.left + 2, frame.top - 6, frame.right, frame.bottom - 3)
    for one in sorted(
        panel.series, key=lambda one: (one.published, min(point.error for point in one.points))
    ):
        alone = (
            len({other.label for other in panel.series if other.published == one.published}) == 1
        )
        text = tag(one, split=figure.is_split, alone=alone and not one.published)
        width, height = text_width(text, LABEL) * (1 if one.published else BOLDER) + 2, LABEL + 2
        spots = [
            panel.spot(point.error, point.gap)
            for point in sorted(one.points, key=lambda point: point.gap)
        ]
        strangers = [
            panel.spot(p.error, p.gap)
            for other in panel.series
            if other is not one
            for p in other.points
        ]
        found = place(width, height, spots[::-1], strangers, taken, room, names)
        if found is None:
            continue
        box, (x, y) = found.box, found.spot
        if box.distance(found.spot) > 14:
            drawing.line(x, y, *box.nearest((x, y)), AXIS, 0.8)
        weight = None if one.published else "bold"
        drawing.text(
            box.left + 1, box.bottom - 3.5, text, LABEL, "start", font_weight=weight, **HALO
        )
        taken.append(box)
        names.append(box)
        taken += trail([(x, y), box.nearest((x, y))], 1.0)


def _points(spots: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in spots)
