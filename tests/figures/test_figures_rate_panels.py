"""Several rates by group side by side: dots where the numbers are, gaps in words, all inside, two
by two when narrow."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from test_figures_drawing import HOSTILE, LONG, words_of

from fairveil.errors import InputError
from fairveil.figures import Rate, RatePanels, RatesFigure, svg_rate_panels

SVG = "{http://www.w3.org/2000/svg}"


def panels(names: tuple[str, ...] = ("f", "m", "Everyone"), count: int = 4) -> RatePanels:
    """Rates of 0.2, 0.5 and 0.4, a little more from panel to panel."""
    values = (0.2, 0.5, 0.4)
    figures = [
        RatesFigure(
            f"Rate {k}",
            tuple(
                Rate(n, v + k / 50, v + k / 50 - 0.05, v + k / 50 + 0.05, 80.0)
                for n, v in zip(names, values, strict=True)
            ),
        )
        for k in range(count)
    ]
    return RatePanels("Rates by group", tuple(figures))


def marks(root: ElementTree.Element) -> list[tuple[float, float, float]]:
    """(value, x, y) of each mark."""
    found = []
    for group in root.iter(f"{SVG}g"):
        circle = group.find(f"{SVG}circle")
        assert circle is not None
        found.append(
            (
                float(group.get("data-value", "")),
                float(circle.get("cx", "")),
                float(circle.get("cy", "")),
            )
        )
    return found


@pytest.mark.parametrize(("width", "rows"), [(720, 1), (350, 2)])
def test_each_rate_has_a_mark_with_its_interval(width: int, rows: int) -> None:
    root = ElementTree.fromstring(svg_rate_panels(panels(), width=width))
    found = marks(root)
    assert [value for value, _, _ in found] == [
        v + k / 50 for k in range(4) for v in (0.2, 0.5, 0.4)
    ]
    heights = sorted({y for _, _, y in found})
    assert len(heights) == 3 * rows, "a row a group"
    for k in range(4):
        (a, at_a, _), (b, at_b, _), (c, at_c, _) = found[3 * k : 3 * k + 3]
        assert (at_c - at_a) / (at_b - at_a) == pytest.approx((c - a) / (b - a), abs=1e-3)
    ticks = [
        float(text.get("data-tick", ""))
        for text in root.iter(f"{SVG}text")
        if text.get("data-tick")
    ]
    assert ticks.count(0.0) == 4, "every axis begins at zero"


@pytest.mark.parametrize("width", [320, 350, 640, 1000])
@pytest.mark.parametrize("names", [("f", "m", "Everyone"), (LONG, HOSTILE, "Everyone")])
def test_nothing_leaves_the_picture(width: int, names: tuple[str, ...]) -> None:
    root = ElementTree.fromstring(svg_rate_panels(panels(names), width=width))
    tall = float(root.get("height", ""))
    for words, box in words_of(root):
        assert box.left >= -0.5, words
        assert box.right <= width + 0.5, words
        assert 0 <= box.top <= box.bottom <= tall, words


def test_the_gap_is_that_of_groups_and_not_of_everyone() -> None:
    made = panels()
    assert made.gap(made.panels[0]) == pytest.approx(0.3)
    assert "gap 30.0 points" in " ".join(ElementTree.fromstring(svg_rate_panels(made)).itertext())
    alone = RatePanels(
        "Rates",
        (
            RatesFigure(
                "r", (Rate("f", 0.2, None, None, 9.0), Rate("Everyone", 0.2, None, None, 9.0))
            ),
        ),
    )
    assert alone.gap(alone.panels[0]) is None
    assert "no gap is defined" in svg_rate_panels(alone)


def test_small_groups_are_hollow_and_undefined_rates_are_said() -> None:
    rates = (
        Rate("f", 0.5, 0.1, 0.9, 5.0, small=True),
        Rate("m", None, None, None, 0.0),
        Rate("Everyone", 0.5, 0.1, 0.9, 5.0),
    )
    root = ElementTree.fromstring(svg_rate_panels(RatePanels("Rates", (RatesFigure("r", rates),))))
    fills = [circle.get("fill") for circle in root.iter(f"{SVG}circle")]
    assert fills[0] == "#fff"
    assert fills[1] != "#fff"
    assert "undefined" in [words for words, _ in words_of(root)]


def test_panels_of_other_groups_are_refused() -> None:
    one, other = panels(), panels(("f", "x", "Everyone"))
    with pytest.raises(InputError, match="the same groups"):
        RatePanels("Rates", (one.panels[0], other.panels[0]))
    with pytest.raises(InputError):
        RatePanels("Rates", ())
    with pytest.raises(InputError):
        svg_rate_panels(one, width=100)
