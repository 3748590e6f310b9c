"""One SVG, a panel a case: every system's error against its gap, those of this library filled lines of one look."""

from __future__ import annotations

import html
import math
import re

from fairveil.figures import Curve, CurvesFigure, Measure, svg_curves
from hard.cases import CASES
from hard.tables import WORDS

from .running import asked_of
from .systems import SYSTEMS
from .table import CONSTANT, Line

WIDE, COLUMNS, SPACE, HEADING = 460, 3, 24, 24
FONT = 'font-family="sans-serif" font-size="13" font-weight="bold"'
TITLE = "Error against gap of every system on every case, means over seeds with two standard errors"


def draw(lines: list[Line]) -> str:
    """Three panels abreast."""
    cases = list(dict.fromkeys(line.case for line in lines))
    drawn = [_panel(case, [line for line in lines if line.case == case], place) for place, case in enumerate(cases)]
    sizes = [float(re.search(r' height="([0-9.]+)"', one)[1]) for one in drawn]  # type: ignore[index]
    parts, top = [], 0.0
    for start in range(0, len(drawn), COLUMNS):
        for column, one in enumerate(drawn[start : start + COLUMNS]):
            left = column * (WIDE + SPACE)
            heading = html.escape(CASES[cases[start + column]].words, quote=False)
            parts.append(f'<text x="{left + 4}" y="{top + 17:g}" {FONT}>{heading}</text>')
            parts.append(one.replace("<svg ", f'<svg x="{left}" y="{top + HEADING:g}" ', 1))
        top += HEADING + max(sizes[start : start + COLUMNS]) + SPACE
    wide = min(COLUMNS, len(drawn)) * (WIDE + SPACE)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {top:g}" width="{wide}" height="{top:g}" role="img">'
    return (
        "\n".join((head, f"<title>{TITLE}</title>", f'<rect width="{wide}" height="{top:g}" fill="#fff"/>', *parts, "</svg>"))
        + "\n"
    )


def _panel(case: str, lines: list[Line], place: int) -> str:
    notion, bound = asked_of(CASES[case])
    curves = []
    for line in lines:
        if line.failed or line.system == CONSTANT:
            continue
        spread = 0.0 if math.isnan(line.error.error) else 2 * line.error.error
        curves.append(
            Curve(
                _label(line),
                ((100 * line.gap.mean, 100 * line.error.mean),),
                (100 * (line.error.mean - spread),),
                (100 * (line.error.mean + spread),),
            )
        )
    figure = CurvesFigure(
        f"{WORDS.get(notion, notion)}, {100 * bound:g} points required",
        Measure("held-out gap, points", "plain"),
        Measure("held-out error, per cent", "plain"),
        tuple(curves),
    )
    return svg_curves(figure, width=WIDE, name=f"field-{place}")


def _label(line: Line) -> str:
    system = SYSTEMS[line.system]
    if line.proved is None:
        return f"{line.system}, not private"
    return line.system + (", sensitive features" if system.protects == "sensitive_features" else "")
