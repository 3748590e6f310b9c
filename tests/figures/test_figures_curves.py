"""Curves: marks where the numbers are, both kinds of axis, all within the picture, checked
input."""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

import pytest

from fairveil.errors import InputError
from fairveil.figures import Curve, CurvesFigure, Measure, Rule, svg_curves

SVG = "{http://www.w3.org/2000/svg}"
ROWS, ERROR = Measure("rows", "plain"), Measure("excess", "plain")


def figure(**options: Any) -> CurvesFigure:
    curves = (
        Curve("theory <of others>", tuple((10.0**k, 10.0 ** (1 - k)) for k in range(2, 7))),
        Curve(
            "measured", ((100.0, 0.02), (10_000.0, 0.001)), low=(0.01, 0.0005), high=(0.03, 0.002)
        ),
    )
    return CurvesFigure(
        **(
            {"title": "Excess against rows", "across": ROWS, "up": ERROR, "curves": curves}
            | options
        )
    )


def marks(drawn: str) -> list[tuple[float, float, float, float]]:
    """(across, up, x, y) of each mark; circles and squares alone."""
    found = []
    for group in ElementTree.fromstring(drawn).iter(f"{SVG}g"):
        circle, square = group.find(f"{SVG}circle"), group.find(f"{SVG}polygon")
        if circle is not None:
            x, y = float(circle.get("cx", "")), float(circle.get("cy", ""))
        else:
            assert square is not None
            corners = [
                tuple(map(float, corner.split(","))) for corner in square.get("points", "").split()
            ]
            x, y = (sum(corner[j] for corner in corners) / len(corners) for j in range(2))
        found.append((float(group.get("data-across", "")), float(group.get("data-up", "")), x, y))
    return found


@pytest.mark.parametrize("logarithmic", [False, True])
def test_marks_lie_where_the_numbers_and_the_ticks_are(logarithmic: bool) -> None:
    drawn = svg_curves(figure(log_across=logarithmic, log_up=logarithmic))
    found = marks(drawn)
    assert len(found) == 7

    def place(value: float) -> float:
        return math.log10(value) if logarithmic else value

    ticks: dict[str, list[tuple[float, float]]] = {"x": [], "y": []}
    for text in ElementTree.fromstring(drawn).iter(f"{SVG}text"):
        if text.get("data-tick") is not None:
            side = "x" if text.get("text-anchor") == "middle" else "y"
            shift = 0.0 if side == "x" else 4.0
            ticks[side].append(
                (place(float(text.get("data-tick", ""))), float(text.get(side, "")) - shift)
            )
    for j, side in ((0, "x"), (1, "y")):
        (a, at_a), (b, at_b) = ticks[side][0], ticks[side][-1]
        assert len(ticks[side]) >= 3
        for mark in found:
            wanted = at_a + (place(mark[j]) - a) / (b - a) * (at_b - at_a)
            assert mark[2 + j] == pytest.approx(wanted, abs=0.05)


@pytest.mark.parametrize("width", [320, 720, 1200])
def test_everything_is_within_the_picture_and_has_a_text_alternative(width: int) -> None:
    drawn = svg_curves(
        figure(notes=("Theory is an upper bound. " * 12,), log_across=True), width=width, name="one"
    )
    root = ElementTree.fromstring(drawn)
    tall = float(root.get("height", ""))
    assert float(root.get("width", "")) == width
    for _, _, x, y in marks(drawn):
        assert 0 <= x <= width
        assert 0 <= y <= tall
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("y", "")) <= tall
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert "theory <of others>: from 0.1 at 100 to 0.00001" in (description.text or "").replace(
        "1e−05", "0.00001"
    )
    assert {each.get("id") for each in root.iter() if each.get("id")} == {
        "one-title",
        "one-description",
    }


def test_points_are_taken_in_order_with_their_intervals() -> None:
    curve = Curve("one", ((3, 1), (1, 2), (2, 5)), low=(0, 1, 4), high=(2, 3, 6))
    assert curve.points == ((1.0, 2.0), (2.0, 5.0), (3.0, 1.0))
    assert curve.low == (1.0, 4.0, 0.0)
    assert curve.high == (3.0, 6.0, 2.0)
    alone = svg_curves(figure(curves=(Curve("one", ((5, 5),), joined=False),)))
    assert "polyline" not in alone
    assert len(marks(alone)) == 1


def test_a_curve_of_many_points_is_a_line_without_marks() -> None:
    many = svg_curves(figure(curves=(Curve("many", tuple((k, k * k) for k in range(200))),)))
    assert not marks(many)
    assert many.count("<polyline") == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Curve("", ((1, 2),)),
        lambda: Curve("one", ()),
        lambda: Curve("one", "ab"),  # type: ignore[arg-type]
        lambda: Curve("one", ((1, 2, 3),)),  # type: ignore[arg-type]
        lambda: Curve("one", ((1, math.nan),)),
        lambda: Curve("one", ((1, 2),), low=(1.0,)),
        lambda: Curve("one", ((1, 2),), low=(1.0, 2.0), high=(2.0, 3.0)),
        lambda: Curve("one", ((1, 2),), low=(3.0,), high=(2.0,)),
        lambda: figure(curves=()),
        lambda: figure(title="two\nlines"),
        lambda: figure(curves=(Curve("one", ((0, 1), (1, 1))),), log_across=True),
        lambda: figure(curves=(Curve("one", ((1, 1),), low=(0.0,), high=(1.0,)),), log_up=True),
        lambda: svg_curves(figure(), width=100),
    ],
)
def test_bad_input_is_an_input_error(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_a_rule_is_a_dashed_line_where_its_value_is() -> None:
    """Both axes make room for rules, and the text alternative names them."""
    curve = Curve("noise", ((0.1, 0.5), (1.0, 0.05)))
    rules = (Rule("required: 1 point", 0.01), Rule("epsilon 10", 10.0, across=True))
    across, up = Measure("epsilon", "plain"), Measure("noise", "points")
    drawn = svg_curves(
        CurvesFigure("Noise", across, up, (curve,), log_across=True, log_up=True, rules=rules)
    )
    root = ElementTree.fromstring(drawn)
    ns = "{http://www.w3.org/2000/svg}"
    ticks = {
        text.get("data-tick"): text for text in root.iter(f"{ns}text") if text.get("data-tick")
    }
    dashed = [
        one
        for one in root.iter(f"{ns}line")
        if one.get("stroke-dasharray") and one.get("y1") == one.get("y2")
    ]
    at = [float(one.get("y1") or 0) for one in dashed if float(one.get("x2") or 0) > 600]
    assert at == pytest.approx([float(ticks["0.01"].get("y") or 0) - 4], abs=0.02)
    assert "A dashed line at 1.0 points: required: 1 point." in drawn
    assert "epsilon 10" in drawn
    with pytest.raises(InputError):
        CurvesFigure("Noise", across, up, (curve,), log_up=True, rules=(Rule("none", 0.0),))
