"""Curves: one number against another, a few curves in one pair of axes, each axis straight or
logarithmic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .. import _checks
from ..errors import InputError
from .checked import finite, line, sentences, several
from .contents import Measure
from .legend import LegendEntry, draw_legend, legend_height
from .scales import AxisScale, axis_title, minus, number, tick_texts, with_unit
from .styles import AXIS, GRID, INK, OWN_COLOURS, OWN_DASHES, QUIET, SHAPES, Style
from .svg import Drawing, shortened, wrapped

SMALL, LEFT, RIGHT, OVER, BELOW, NOTE = 12.0, 52.0, 16.0, 34.0, 58.0, 16.0
FEW = 40  # points up to which each has a mark


@dataclass(frozen=True)
class Curve:
    """(across, up) pairs in any order. `low`, `high`: ends of intervals of `up`, one for each
    point, or none at all. `joined`: by a line."""

    label: str
    points: tuple[tuple[float, float], ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    joined: bool = True

    def __post_init__(self) -> None:
        line(label=self.label)
        remedy = (
            "Pass points=[(1000, 0.8), (10000, 0.9)], for example, and as many ends of intervals, "
            "low <= high, or none."
        )
        pairs: Any = self.points
        if not isinstance(pairs, (list, tuple)) or not pairs or not all(map(_is_pair, pairs)):
            raise InputError.expected(
                "(across, up) pairs", of="points", got=self.points, remedy=remedy
            )
        ends = [
            tuple(finite(name, value) for value in end)
            for name, end in (("low", self.low), ("high", self.high))
        ]
        if {len(end) for end in ends} not in ({0}, {len(pairs)}) or any(
            a > b for a, b in zip(*ends, strict=True)
        ):
            raise InputError.expected(
                "two ends in order for each point", of="low, high", got=ends, remedy=remedy
            )
        found = [(finite("points", x), finite("points", y)) for x, y in pairs]
        order = sorted(range(len(found)), key=lambda place: found[place])
        _checks.normalise(self, points=tuple(found[place] for place in order))
        for name, end in zip(("low", "high"), ends, strict=True):
            _checks.normalise(self, **{name: tuple(end[place] for place in order) if end else ()})


def _is_pair(given: object) -> bool:
    return isinstance(given, (list, tuple)) and len(given) == 2


@dataclass(frozen=True)
class Rule:
    """A straight dashed line through the whole picture, at a value of the axis `up`, or `across`;
    `label` stands at its end."""

    label: str
    at: float
    across: bool = False

    def __post_init__(self) -> None:
        line(label=self.label)
        _checks.normalise(self, at=finite("at", self.at))


@dataclass(frozen=True)
class CurvesFigure:
    """What is shown: `across` and `up` name the axes; `log_across`, `log_up`: whether they count
    powers of ten; `rules`: values that curves are to be compared with."""

    title: str
    across: Measure
    up: Measure
    curves: tuple[Curve, ...]
    log_across: bool = False
    log_up: bool = False
    notes: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        line(title=self.title)
        _checks.normalise(self, curves=several(Curve, "curves", self.curves))
        _checks.normalise(self, rules=several(Rule, "rules", self.rules) if self.rules else ())
        _checks.normalise(self, notes=sentences("notes", self.notes))
        for name, logarithmic, values in (
            ("across", self.log_across, self._across()),
            ("up", self.log_up, self._up()),
        ):
            if logarithmic and min(values) <= 0.0:
                remedy = f"Pass log_{name}=False, or leave out what is not above 0."
                raise InputError.expected(
                    "numbers above 0 on a logarithmic axis", of=name, got=min(values), remedy=remedy
                )

    def _across(self) -> list[float]:
        return [
            *(x for curve in self.curves for x, _ in curve.points),
            *(rule.at for rule in self.rules if rule.across),
        ]

    def _up(self) -> list[float]:
        ups = [
            y
            for curve in self.curves
            for y in (*(up for _, up in curve.points), *curve.low, *curve.high)
        ]
        return [*ups, *(rule.at for rule in self.rules if not rule.across)]


@dataclass(frozen=True)
class _Axis:
    """A scale of values or of their powers of ten, with its ticks and their texts."""

    scale: AxisScale
    logarithmic: bool
    measure: Measure

    @staticmethod
    def over(
        values: list[float], logarithmic: bool, measure: Measure, *, zero: bool = False
    ) -> _Axis:
        shown = [math.log10(value) for value in values] if logarithmic else values
        return _Axis(
            AxisScale.over(
                shown, 0, 1, zero=zero and not logarithmic and min(values) >= 0.0, most=7
            ),
            logarithmic,
            measure,
        )

    def moved(self, start: float, end: float) -> _Axis:
        return _Axis(self.scale.moved(start, end), self.logarithmic, self.measure)

    def __call__(self, value: float) -> float:
        return self.scale(math.log10(value) if self.logarithmic else value)

    def ticks(self) -> list[tuple[float, str]]:
        """(value, text): powers of ten where three or more are in sight, else some of their
        multiples, too."""
        if not self.logarithmic:
            return list(
                zip(self.scale.ticks, tick_texts(self.scale.ticks, self.measure.unit), strict=True)
            )
        powers = range(math.floor(self.scale.low), math.ceil(self.scale.high) + 1)
        for factors in ((1.0,), (1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 4.0, 5.0, 7.0)):
            values = [factor * 10.0**power for power in powers for factor in factors]
            seen = [
                value for value in values if self.scale.low <= math.log10(value) <= self.scale.high
            ]
            if len(seen) >= 3:
                break
        return [(value, _text(value, self.measure)) for value in seen]


def svg_curves(figure: CurvesFigure, *, width: int = 720, name: str = "curves") -> str:
    """The figure as an SVG element, `width` pixels wide, with a title, a description and a legend
    of its own.

    Curves differ in the shapes of their marks and in their dashes, so that a grey print tells them
    apart. `name` begins every id inside: two figures on one page need two names.
    """
    width = _checks.whole(at_least=320, width=width)
    looks = styles_of(figure)
    entries = [
        LegendEntry(look, curve.label) for look, curve in zip(looks, figure.curves, strict=True)
    ]
    notes = [text for note in figure.notes for text in wrapped(note, SMALL, width - 16)]
    plot = width - LEFT - RIGHT
    bottom = OVER + min(max(0.6 * plot, 200.0), 400.0)
    under = bottom + BELOW + legend_height(entries, width)
    across = _Axis.over(figure._across(), figure.log_across, figure.across).moved(LEFT, LEFT + plot)
    up = _Axis.over(figure._up(), figure.log_up, figure.up, zero=True).moved(bottom, OVER)
    drawing = Drawing(width, under + NOTE * len(notes) + 8, name)
    drawing.add("rect", width=width, height=drawing.height, fill="#fff")
    _axes(drawing, across, up)
    for curve, look in zip(figure.curves, looks, strict=True):
        _curve(drawing, figure, curve, look, across, up)
    for rule in figure.rules:
        _rule(drawing, figure, rule, across, up)
    draw_legend(drawing, entries, bottom + BELOW)
    for place, note in enumerate(notes):
        drawing.text(4, under + NOTE * (place + 0.8), note, SMALL, fill=QUIET)
    return drawing.whole(figure.title, curves_description(figure))


def styles_of(figure: CurvesFigure) -> list[Style]:
    """One look a curve, apart by shape, dash and colour."""
    return [
        Style(
            SHAPES[j % len(SHAPES)],
            True,
            OWN_DASHES[j % len(OWN_DASHES)],
            OWN_COLOURS[j % len(OWN_COLOURS)],
            2.0,
        )
        for j in range(len(figure.curves))
    ]


def _axes(drawing: Drawing, across: _Axis, up: _Axis) -> None:
    left, right, bottom, top = across.scale.start, across.scale.end, up.scale.start, up.scale.end
    for value, text in up.ticks():
        drawing.line(left, up(value), right, up(value), GRID)
        drawing.text(left - 7, up(value) + 4, text, SMALL, "end", fill=QUIET, data_tick=repr(value))
    for value, text in across.ticks():
        drawing.line(across(value), bottom, across(value), bottom + 5, AXIS)
        drawing.text(
            across(value), bottom + 19, text, SMALL, "middle", fill=QUIET, data_tick=repr(value)
        )
    drawing.line(left, bottom, right, bottom, AXIS, 1.2)
    drawing.text(4, top - 16, shortened(axis_title(up.measure), SMALL, right - 4), SMALL)
    drawing.text(
        right, bottom + 38, shortened(axis_title(across.measure), SMALL, right - left), SMALL, "end"
    )


def _rule(drawing: Drawing, figure: CurvesFigure, rule: Rule, across: _Axis, up: _Axis) -> None:
    """On top of the curves, its label on a white ground, at the end that is further from them."""
    left, right, bottom, top = across.scale.start, across.scale.end, up.scale.start, up.scale.end
    halo: dict[str, object] = {
        "stroke": "#fff",
        "stroke_width": 4,
        "stroke_linejoin": "round",
        "paint_order": "stroke",
    }
    if rule.across:
        x = across(rule.at)
        drawing.line(x, bottom, x, top, QUIET, 1.2, "2 3")
        last = x > (left + right) / 2
        drawing.text(
            x - 5 if last else x + 5,
            top + 10,
            rule.label,
            SMALL,
            "end" if last else "start",
            **halo,
        )
        return
    y = up(rule.at)
    drawing.line(left, y, right, y, INK, 1.4, "5 4")
    room = [min(abs(up(curve.points[end][1]) - y) for curve in figure.curves) for end in (0, -1)]
    first = room[0] > room[1]
    drawing.text(
        left + 4 if first else right, y - 5, rule.label, SMALL, "start" if first else "end", **halo
    )


def _curve(
    drawing: Drawing, figure: CurvesFigure, curve: Curve, look: Style, across: _Axis, up: _Axis
) -> None:
    spots = [(across(x), up(y)) for x, y in curve.points]
    if curve.low:
        ends = [
            [(across(x), up(y)) for (x, _), y in zip(curve.points, end, strict=True)]
            for end in (curve.low, curve.high)
        ]
        drawing.add(
            "polygon",
            points=_points([*ends[0], *ends[1][::-1]]),
            fill=look.colour,
            fill_opacity=0.13,
        )
    if curve.joined and len(spots) > 1:
        paint = {
            "stroke": look.colour,
            "stroke_width": look.width,
            "stroke_dasharray": look.dash or None,
        }
        drawing.add(
            "polyline", points=_points(spots), fill="none", stroke_linejoin="round", **paint
        )
    if len(spots) > FEW and curve.joined:
        return
    for (x, y), spot in zip(curve.points, spots, strict=True):
        place = (
            f"{figure.across.name} {_text(x, figure.across)}, {figure.up.name} "
            f"{with_unit(y, figure.up.unit)}"
        )
        drawing.open("g", f"{curve.label}: {place}", data_across=repr(x), data_up=repr(y))
        drawing.marker(*spot, look, 4.2)
        drawing.close("g")


def curves_description(figure: CurvesFigure) -> str:
    """The figure for those who do not see it: where each curve begins and ends, and its
    extremes."""
    parts = [f"{axis_title(figure.up)} against {figure.across.name}."]
    for curve in figure.curves:
        (x, y), (last_x, last_y) = curve.points[0], curve.points[-1]
        ups = [up for _, up in curve.points]
        from_to = (
            f"from {with_unit(y, figure.up.unit)} at {_text(x, figure.across)} to "
            f"{with_unit(last_y, figure.up.unit)}"
        )
        extremes = (
            f"least {with_unit(min(ups), figure.up.unit)}, largest "
            f"{with_unit(max(ups), figure.up.unit)}"
        )
        parts.append(f"{curve.label}: {from_to} at {_text(last_x, figure.across)}; {extremes}.")
    for rule in figure.rules:
        value = _text(rule.at, figure.across) if rule.across else with_unit(rule.at, figure.up.unit)
        parts.append(f"A dashed line at {value}: {rule.label}.")
    return " ".join((*parts, *figure.notes))


def _text(value: float, measure: Measure) -> str:
    """Large whole numbers with commas."""
    if measure.unit == "plain" and value == round(value) and abs(value) >= 1000:
        return minus(f"{value:,.0f}")
    return number(value, measure.unit)


def _points(spots: list[tuple[float, float]]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in spots)
