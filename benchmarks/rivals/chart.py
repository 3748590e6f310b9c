"""One SVG, a panel a case: every system's error, less that of this library's unconstrained model,
against its gap."""

from __future__ import annotations

import html
import re

from fairveil.figures import Curve, CurvesFigure, Measure, svg_curves
from hard.cases import CASES
from hard.tables import WORDS

from .running import asked_of
from .systems import SYSTEMS
from .table import CONSTANT, Line

WIDE, COLUMNS, SPACE, HEADING = 460, 3, 24, 24
FONT = 'font-family="sans-serif" font-size="13" font-weight="bold"'
TITLE = "Error over that of an unconstrained model, against gap, of every system on every case"


def draw(lines: list[Line]) -> str:
    """Three panels abreast."""
    cases = list(dict.fromkeys(line.case for line in lines))
    drawn = [
        _panel(case, [line for line in lines if line.case == case], place)
        for place, case in enumerate(cases)
    ]
    sizes = [float(re.search(r' height="([0-9.]+)"', one)[1]) for one in drawn]  # type: ignore[index]
    parts, top = [], 0.0
    for start in range(0, len(drawn), COLUMNS):
        for column, one in enumerate(drawn[start : start + COLUMNS]):
            left = column * (WIDE + SPACE)
            heading = html.escape(_heading(cases[start + column]), quote=False)
            parts.append(f'<text x="{left + 4}" y="{top + 17:g}" {FONT}>{heading}</text>')
            parts.append(one.replace("<svg ", f'<svg x="{left}" y="{top + HEADING:g}" ', 1))
        top += HEADING + max(sizes[start : start + COLUMNS]) + SPACE
    wide = min(COLUMNS, len(drawn)) * (WIDE + SPACE)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {top:g}" width="{wide}" '
        f'height="{top:g}" role="img">'
    )
    return (
        "\n".join(
            (
                head,
                f"<title>{TITLE}</title>",
                f'<rect width="{wide}" height="{top:g}" fill="#fff"/>',
                *parts,
                "</svg>",
            )
        )
        + "\n"
    )


def _heading(case: str) -> str:
    notion, bound = asked_of(CASES[case])
    return f"{CASES[case].words}: {WORDS.get(notion, notion)}, {100 * bound:g} points"


def _panel(case: str, lines: list[Line], place: int) -> str:
    notion, bound = asked_of(CASES[case])
    free = next(
        (line.error.mean for line in lines if line.system == "unconstrained" and not line.failed),
        0.0,
    )
    families: dict[str, list[tuple[float, float]]] = {name: [] for name in FAMILIES}
    for line in lines:
        if not line.failed and line.system not in (CONSTANT, "unconstrained"):
            families[_family(line)].append((100 * line.gap.mean, 100 * (line.error.mean - free)))
    curves = tuple(
        Curve(name, tuple(some), joined=False) for name, some in families.items() if some
    )
    figure = CurvesFigure(
        f"{WORDS.get(notion, notion)}, {100 * bound:g} points required",
        Measure("held-out gap, points", "plain"),
        Measure("held-out error more than with nothing required, points", "plain"),
        curves,
    )
    return svg_curves(figure, width=WIDE, name=f"field-{place}")


OURS_BLIND, OURS_AWARE = "this library, does not read groups", "this library, reads groups"
OURS_GROUPS, FAIR = (
    "this library, sensitive features alone protected",
    "others' private models, made fair",
)
PLAIN, OPEN = "others' private models, nothing required", "no finite epsilon"
FAMILIES = (OURS_BLIND, OURS_AWARE, OURS_GROUPS, FAIR, PLAIN, OPEN)


def _family(line: Line) -> str:
    system = SYSTEMS[line.system]
    if line.proved is None:
        return OPEN
    if system.protects == "sensitive_features":
        return OURS_GROUPS
    if system.is_ours:
        return OURS_AWARE if system.reads_group else OURS_BLIND
    return FAIR if system.after or system.fit == "aim" else PLAIN
