"""Figures on a dark page: every colour of every drawing has a second one, which can be read on dark
paper."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from fairveil.figures import (
    BudgetFigure,
    BudgetPart,
    CourseFigure,
    Curve,
    CurvesFigure,
    Floor,
    FrontierFigure,
    GapFigure,
    Measure,
    Moment,
    Point,
    Rate,
    RatePanels,
    RatesFigure,
    Series,
    svg_budget,
    svg_course,
    svg_curves,
    svg_frontier,
    svg_gaps,
    svg_rate_panels,
    svg_rates,
    with_dark,
)
from fairveil.figures.dark import DARK, PAPER, dark_rules
from fairveil.figures.styles import AXIS, GRID, INK, OWN_COLOURS, QUIET, THEIR_COLOURS

POINTS = (Point(0.2, 0.05, 0.19, 0.21, 0.04, 0.06), Point(0.18, 0.1))
RATES = RatesFigure(
    "Selection rate", (Rate("f", 0.5, 0.4, 0.6, 90.0), Rate("m", None, None, None, 0.0, small=True))
)


def drawings() -> list[str]:
    """One of each kind, with as many colours as there are."""
    own = [Series(f"own {k}", 1.0 + k, "records", POINTS) for k in range(6)]
    theirs = [Series(f"their {k}", 1.0, "records", POINTS, published=True) for k in range(6)]
    free = Series("free", float("inf"), "nothing", POINTS)
    frontier = FrontierFigure(
        "parity", "d", (*own, *theirs, free), Floor(((0.1, 0.01), (0.2, 0.01))), layout="together"
    )
    curves = CurvesFigure(
        "t",
        Measure("a", "plain"),
        Measure("b", "plain"),
        (Curve("c", ((1, 2), (2, 3))),),
        notes=("n",),
    )
    return [
        svg_frontier(frontier),
        svg_gaps(GapFigure("parity", 0.05, 0.04, 0.05, 0.04, 0.06, training_noise=0.01), width=330),
        svg_rates(RATES),
        svg_rate_panels(RatePanels("Rates", (RATES, RATES), last_is_everyone=False)),
        svg_budget(BudgetFigure("d", (BudgetPart("a", 0.2), BudgetPart("b", 0.1)), 0.7)),
        svg_course(CourseFigure("d", "2026-01-30T00:00:00Z", (Moment(0.0, 0.0), Moment(2.0, 0.5)))),
        svg_curves(curves),
    ]


def colours(drawn: str) -> set[str]:
    """Every colour that a drawing paints with."""
    found = {
        one.get(kind, "none")
        for one in ElementTree.fromstring(drawn).iter()
        for kind in ("fill", "stroke")
    }
    return {one for one in found if one != "none" and not one.startswith("url(")}


def contrast(one: str, other: str) -> float:
    """By WCAG 2.2."""

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_every_colour_has_a_dark_one() -> None:
    painted = set().union(*map(colours, drawings()))
    assert painted <= set(DARK)
    assert {INK, QUIET, GRID, AXIS, *OWN_COLOURS, *THEIR_COLOURS} <= painted


@pytest.mark.parametrize("light", [INK, QUIET, "#3a6ea5", *OWN_COLOURS, *THEIR_COLOURS])
def test_words_and_lines_can_be_read_on_either_paper(light: str) -> None:
    assert contrast(light, "#fff") >= 4.5
    assert contrast(DARK[light], PAPER) >= 4.5


def test_marks_of_axes_can_be_seen() -> None:
    assert contrast(AXIS, "#fff") >= 3
    assert contrast(DARK[AXIS], PAPER) >= 3


def test_dark_colours_differ_where_light_ones_do() -> None:
    for kind in (OWN_COLOURS, THEIR_COLOURS):
        assert all(DARK[one] != DARK[other] for one, other in combinations(kind, 2))


def test_a_drawing_for_a_file_carries_its_rules() -> None:
    drawn = with_dark(drawings()[0])
    root = ElementTree.fromstring(drawn)
    style = root[0]
    assert style.tag.endswith("style")
    rules = re.findall(r'\[(fill|stroke)="(#\w+)"\] \{ (fill|stroke): (#\w+); \}', style.text or "")
    assert {(light, dark) for _, light, _, dark in rules} == set(DARK.items())
    assert all(kind == painted for kind, _, painted, _ in rules)
    assert "prefers-color-scheme: dark" in (style.text or "")
    assert dark_rules("svg ").startswith('svg [fill="#fff"]')
