"""One SVG, a panel a case: how far each method's error lies below or above that of mixing, against
its gap."""

from __future__ import annotations

import html
import math
import re
from collections import defaultdict

from fairveil.figures import Curve, CurvesFigure, Measure, Rule, svg_curves

from .cases import CASES
from .summary import Line
from .tables import WORDS

WIDE, COLUMNS, SPACE, HEADING = 400, 3, 24, 24
FONT = 'font-family="sans-serif" font-size="13" font-weight="bold"'
Panel = tuple[str, str, str]


def draw(lines: list[Line]) -> str:
    """Three panels abreast."""
    panels: dict[Panel, list[Line]] = defaultdict(list)
    for line in lines:
        if line.protects != "nothing":
            panels[line.case, line.notion, line.protects].append(line)
    for (case, notion, _), some in panels.items():
        some += [
            line
            for line in lines
            if (line.case, line.notion, line.protects) == (case, notion, "nothing")
        ]
    drawn = [_panel(panel, some, place) for place, (panel, some) in enumerate(panels.items())]
    headings = [f"{CASES[case].words}; {WORDS.get(notion, notion)}" for case, notion, _ in panels]
    sizes = [_height(one) for one in drawn]
    parts, top = [], 0.0
    for start in range(0, len(drawn), COLUMNS):
        for column, one in enumerate(drawn[start : start + COLUMNS]):
            left = column * (WIDE + SPACE)
            heading = html.escape(headings[start + column], quote=False)
            parts.append(f'<text x="{left + 4}" y="{top + 17:g}" {FONT}>{heading}</text>')
            parts.append(one.replace("<svg ", f'<svg x="{left}" y="{top + HEADING:g}" ', 1))
        top += HEADING + max(sizes[start : start + COLUMNS]) + SPACE
    wide = min(COLUMNS, len(drawn)) * (WIDE + SPACE)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {top:g}" width="{wide}" '
        f'height="{top:g}" role="img">'
    )
    title = (
        "<title>Error of each method less that of mixing at the same gap, against the gap, in hard "
        "cases</title>"
    )
    return (
        "\n".join(
            (head, title, f'<rect width="{wide}" height="{top:g}" fill="#fff"/>', *parts, "</svg>")
        )
        + "\n"
    )


def _panel(panel: Panel, lines: list[Line], place: int) -> str:
    case, notion, protects = panel
    curves = defaultdict(list)
    for line in lines:
        if not math.isnan(line.over_mixing.value):
            curves[line.method, line.epsilon].append(line)
    shown = []
    for (method, epsilon), some in curves.items():
        points = tuple((line.gap.value, line.over_mixing.value) for line in some)
        spread = [
            0.0 if math.isnan(line.over_mixing.spread) else line.over_mixing.spread for line in some
        ]
        ends = [
            tuple(up + way * s for (_, up), s in zip(points, spread, strict=True))
            for way in (-2, 2)
        ]
        shown.append(
            Curve(
                method + (", not private" if math.isinf(epsilon) else f", epsilon {epsilon:g}"),
                points,
                *ends,
            )
        )
    words = {"records": "Records protected", "sensitive_features": "Sensitive features protected"}[
        protects
    ]
    seeds = max(line.seeds for line in lines)
    figure = CurvesFigure(
        f"{CASES[case].words}, {WORDS.get(notion, notion)}",
        Measure("gap" if notion != "false_negative_rate" else "false negative rate", "points"),
        Measure("error less that of mixing at the same gap", "points"),
        tuple(shown),
        notes=(f"{words}. Seeds: {seeds}. Bars: two standard errors.",),
        rules=(Rule("mixing", 0.0),),
    )
    return svg_curves(figure, width=WIDE, name=f"panel-{place}")


def _height(svg: str) -> float:
    found = re.search(r' height="([0-9.]+)"', svg)
    assert found is not None
    return float(found.group(1))
