"""Figures: places, ticks, labels, text alternatives; distinguished without colour; bad input
refused."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fairveil.errors import InputError
from fairveil.figures import (
    Floor,
    FrontierFigure,
    GapFigure,
    Measure,
    Point,
    Rate,
    RatesFigure,
    Series,
    svg_frontier,
    svg_gaps,
    svg_rates,
)
from fairveil.figures.labels import Box, place
from fairveil.figures.panels import panels
from fairveil.figures.scales import AxisScale, number, round_ticks, tick_texts
from fairveil.figures.styles import AXIS, GRID, styles
from fairveil.figures.svg import BOLDER, shortened, text_width, wrapped

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert('1')</script>&\"<b>"


def curve(
    label: str, epsilon: float, *, published: bool = False, shift: float = 0.0, points: int = 4
) -> Series:
    """A falling curve; not private at infinity."""
    places = [(0.2 - 0.01 * k + shift, 0.02 + 0.04 * k) for k in range(points)]
    whole = tuple(
        Point(e, g, e - 0.002, e + 0.002, g - 0.004, g + 0.004, target=g, seeds=15)
        for e, g in places
    )
    protects: Any = (
        "nothing" if math.isinf(epsilon) else "sensitive_features" if published else "records"
    )
    return Series(
        label, epsilon, protects, whole, published=published, source="a paper" if published else ""
    )


def figure(**changes: Any) -> FrontierFigure:
    """Two own curves, a published one, a floor."""
    series = (
        curve("Ours", 1.0),
        curve("Ours", 0.1, shift=0.01),
        curve("Theirs (2020)", 1.0, published=True, shift=0.02),
    )
    floor = Floor(((0.16, 0.006), (0.24, 0.005)))
    values: dict[str, Any] = {"series": series, "floor": floor} | changes
    return FrontierFigure("demographic parity", "Adult", **values)


def many() -> FrontierFigure:
    """So many curves that they are split by epsilon."""
    own = [curve("Ours", epsilon, shift=0.01 / epsilon) for epsilon in (0.5, 1.0, 3.0)]
    theirs = [
        curve(f"Paper {k} (2020)", e, published=True, shift=0.01 * k)
        for k in (1, 2)
        for e in (0.5, 1.0, 3.0)
    ]
    return FrontierFigure("equalized odds", "Credit", (*own, *theirs, curve("Ours", math.inf)))


@pytest.mark.parametrize(
    "made", [figure(), many(), figure(layout="by-epsilon"), figure(floor=None)]
)
@pytest.mark.parametrize("width", [350, 720])
def test_the_drawing_is_well_formed_and_has_its_text_alternative(
    made: FrontierFigure, width: int
) -> None:
    root = ElementTree.fromstring(svg_frontier(made, width=width, name="one"))
    assert root.get("role") == "img"
    ids = root.get("aria-labelledby", "").split()
    named = {element.get("id"): element for element in root.iter() if element.get("id")}
    title, description = (named[one].text or "" for one in ids)
    assert made.notion in title
    assert made.dataset in title
    for series in made.series:
        assert series.label in description
    assert len(named) == len([element for element in root.iter() if element.get("id")]), (
        "ids repeat"
    )


def test_every_point_lies_where_its_numbers_say() -> None:
    made = figure(layout="together")
    (panel,) = panels(made, 720)
    root = ElementTree.fromstring(svg_frontier(made, width=720))
    circles = {
        (float(group.get("data-error", "")), float(group.get("data-gap", ""))): group.find(
            f"{SVG}circle"
        )
        for group in root.iter(f"{SVG}g")
        if group.get("data-error") and group.find(f"{SVG}circle") is not None
    }
    for point in made.series[0].points:
        mark = circles[point.error, point.gap]
        assert mark is not None
        x, y = panel.spot(point.error, point.gap)
        assert float(mark.get("cx", "")) == pytest.approx(x, abs=0.01)
        assert float(mark.get("cy", "")) == pytest.approx(y, abs=0.01)
    left, right = made.series[0].points[0], made.series[0].points[-1]
    assert panel.spot(left.error, left.gap)[0] < panel.spot(right.error, right.gap)[0]
    assert panel.spot(left.error, left.gap)[1] < panel.spot(right.error, right.gap)[1], (
        "larger errors stand higher"
    )


LONG = (
    "a"
    * 90
    + " and a group whose name goes on and on, as names of occupations and of districts sometimes "
    "do"
)


@pytest.mark.parametrize("width", [350, 640])
def test_long_names_stay_inside(width: int) -> None:
    made = figure(
        series=(curve(LONG, 1.0), curve("b", 2.0)), gap=Measure(LONG, "points"), error=Measure(LONG)
    )
    rates = RatesFigure(LONG, (Rate(LONG, 0.5, 0.4, 0.6, 9.0), Rate("m", None, None, None, 0.0)))
    for drawn in (
        svg_frontier(made, width=width),
        svg_rates(rates, width=width),
        svg_gaps(GapFigure(LONG, 0.1), width=width),
    ):
        for words, box in words_of(ElementTree.fromstring(drawn)):
            assert box.left >= -0.5, words
            assert box.right <= width + 0.5, words


def test_room_for_words_suffices_where_arial_is_not_installed() -> None:
    ft2font = pytest.importorskip("matplotlib.ft2font")
    folder = Path(pytest.importorskip("matplotlib").get_data_path()) / "fonts" / "ttf"
    regular, bold = (ft2font.FT2Font(folder / f"DejaVuSans{end}.ttf") for end in ("", "-Bold"))
    for font in (regular, bold):
        font.set_size(1000, 72)
    for letter in map(chr, range(32, 127)):
        advance = regular.load_char(ord(letter)).linearHoriAdvance / 65536
        assert text_width(letter, 1000) >= advance - 1, letter
    for words in ("7.0 (6.6–7.5)", "12.3 (11.7–12.9)", "Everyone"):
        advance = sum(bold.load_char(ord(letter)).linearHoriAdvance for letter in words) / 65536
        assert text_width(words, 1000) * BOLDER >= advance, words


def words_of(root: ElementTree.Element) -> list[tuple[str, Box]]:
    """Every text with the room that it takes."""
    found = []
    for text in root.iter(f"{SVG}text"):
        size, words = float(text.get("font-size", "")), text.text or ""
        wide, x, y = text_width(words, size), float(text.get("x", "")), float(text.get("y", ""))
        wide *= BOLDER if text.get("font-weight") == "bold" else 1.0
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[text.get("text-anchor", "start")]
        found.append((words, Box(left, y - 0.72 * size, left + wide, y)))
    return found


@pytest.mark.parametrize("made", [figure(), many()])
@pytest.mark.parametrize("width", [350, 640, 720])
def test_nothing_leaves_the_drawing_and_no_name_covers_another(
    made: FrontierFigure, width: int
) -> None:
    root = ElementTree.fromstring(svg_frontier(made, width=width))
    height = float(root.get("height", ""))
    boxes = words_of(root)
    for words, box in boxes:
        assert box.left >= -0.5, words
        assert box.right <= width + 0.5, words
        assert box.top >= 0, words
        assert box.bottom <= height, words
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        assert a.shared(b) < 0.1 * (a.right - a.left) * (a.bottom - a.top), (one, other)


@pytest.mark.parametrize("made", [figure(), many()])
def test_every_curve_is_named_in_the_drawing_and_its_protection_said(made: FrontierFigure) -> None:
    words = " ".join(ElementTree.fromstring(svg_frontier(made)).itertext())
    flat = re.sub(r"\s+", " ", words)
    for series in made.series:
        assert series.short in flat
    assert "record-level privacy" in flat
    assert "attribute-level privacy" in flat
    assert all(f"ε = {one.epsilon:g}" in flat for one in made.series if not math.isinf(one.epsilon))


def test_curves_differ_without_colour() -> None:
    series = [curve(f"own {k}", 1.0 + k) for k in range(24)] + [
        curve(f"their {k}", 1.0, published=True) for k in range(24)
    ]
    looks = styles(series, lambda one: one)
    grey = [(look.shape, look.filled, look.dash) for look in looks.values()]
    assert len(set(grey)) == len(series)
    first = [look.shape for look in list(looks.values())[:8]]
    assert len(set(first)) == 8, "the first eight differ by shape alone"


def test_colours_stand_out_from_white() -> None:
    looks = styles(
        [curve(f"{k}", 1.0 + k, published=bool(k % 2)) for k in range(12)], lambda one: one
    )
    for look in looks.values():
        red, green, blue = (int(look.colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
        ]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        assert 1.05 / (luminance + 0.05) >= 4.5, look


@pytest.mark.parametrize("width", [350, 720])
def test_hostile_words_stay_words(width: int) -> None:
    made = figure(series=(curve(HOSTILE, 1.0), curve("b", 2.0)), notes=(HOSTILE,))
    rates = RatesFigure(
        HOSTILE,
        (Rate(HOSTILE, 0.5, 0.4, 0.6, 9.0, small=True), Rate("none", None, None, None, 0.0)),
    )
    gaps = GapFigure(HOSTILE, 0.05, 0.04, 0.06, 0.05, 0.07)
    for drawn in (
        svg_frontier(made, width=width),
        svg_rates(rates, width=width),
        svg_gaps(gaps, width=width),
    ):
        root = ElementTree.fromstring(drawn)
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        known = {
            "svg",
            "g",
            "title",
            "desc",
            "text",
            "rect",
            "line",
            "circle",
            "polygon",
            "polyline",
            "path",
            "pattern",
        }
        assert tags <= known


@pytest.mark.parametrize("low", [-3.0, 0.0, 0.1464, 1e-9, 12345.0])
@pytest.mark.parametrize("width", [1e-6, 0.003, 0.2, 1.0, 7e5])
@pytest.mark.parametrize("most", [3, 6, 9])
def test_ticks_are_round_few_and_distinguished(low: float, width: float, most: int) -> None:
    ticks = round_ticks(low, low + width, most)
    assert 1 <= len(ticks) <= most
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in ticks)
    steps = [b - a for a, b in itertools.pairwise(ticks)]
    if steps:
        step = sum(steps) / len(steps)
        assert all(one == pytest.approx(step, rel=1e-3) for one in steps)
    texts = tick_texts(ticks, "plain")
    assert len(set(texts)) == len(ticks)


def test_axes_hold_all_values_and_gaps_begin_at_zero() -> None:
    scale = AxisScale.over([0.03, 0.21], 10, 110, zero=True)
    assert scale(0.0) == 10
    assert 10 < scale(0.03) < scale(0.21) < 110
    same = AxisScale.over([0.2, 0.2], 0, 100)
    assert same(0.2) == pytest.approx(50)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.16304, "percent", "16.3"),
        (-0.0001, "points", "0.0"),
        (-0.02, "points", "−2.0"),
        (1234.5, "plain", "1.23e+03"),
    ],
)
def test_numbers_are_rounded_for_the_eye(value: float, unit: Any, text: str) -> None:
    assert number(value, unit) == text


def test_a_name_is_put_where_it_covers_nothing() -> None:
    frame = Box(0, 0, 200, 100)
    free = place(40, 12, [(100, 50)], [], [], frame)
    assert free is not None
    again = place(40, 12, [(100, 50)], [], [free.box], frame)
    assert again is not None
    assert again.box.shared(free.box) == 0
    assert place(400, 12, [(100, 50)], [], [], frame) is None


def test_a_name_does_not_stand_nearer_to_a_strangers_mark() -> None:
    frame = Box(0, 0, 300, 300)
    alone = place(40, 12, [(100, 100)], [], [], frame)
    assert alone is not None
    stranger = (alone.box.right, alone.box.top)
    beside = place(40, 12, [(100, 100)], [stranger], [], frame)
    assert beside is not None
    assert beside.box.distance((100, 100)) <= beside.box.distance(stranger) + 2


def test_words_are_wrapped_and_cut_by_their_width() -> None:
    lines = wrapped("only the sensitive column is protected", 12, 90)
    assert len(lines) > 1
    assert all(text_width(line, 12) <= 90 for line in lines)
    assert " ".join(lines) == "only the sensitive column is protected"
    assert text_width(shortened("a very long name indeed", 12, 60), 12) <= 60
    assert shortened("short", 12, 60) == "short"


def test_three_numbers_stay_apart() -> None:
    made = GapFigure("demographic parity", 0.05, 0.047, 0.0493, 0.039, 0.0597)
    root = ElementTree.fromstring(svg_gaps(made))
    values = [
        float(group.get("data-value", ""))
        for group in root.iter(f"{SVG}g")
        if group.get("data-value")
    ]
    assert values == [0.05, 0.047, 0.0493]
    words = " ".join(root.itertext())
    assert (
        "Required: at most 5.0 points. Noisy value in training: 4.7 points. On held-out people: "
        "4.9 points" in words
    )
    assert "(95% interval 3.9 to 6.0 points), cannot be told." in words
    assert "Training, noisy" in words
    assert "4.7 (" not in words


def test_a_training_value_has_the_whiskers_of_its_noise() -> None:
    made = GapFigure("demographic parity", 0.05, 0.047, training_noise=0.001)
    words = " ".join(ElementTree.fromstring(svg_gaps(made)).itertext())
    assert "4.7 (4.5–4.9)" in words
    assert "(95% interval over the noise 4.5 to 4.9 points), met." in words
    assert (
        GapFigure("parity", 0.05, 0.047, training_noise=0.01).training_verdict == "cannot be told"
    )
    assert GapFigure("parity", 0.05, 0.002, training_noise=0.01).training_ends == (
        0.0,
        pytest.approx(0.0216, abs=1e-4),
    )
    missing = " ".join(
        ElementTree.fromstring(svg_gaps(GapFigure("parity", None, 0.047))).itertext()
    )
    assert "no target" in missing
    assert "not measured" in missing


def test_no_noise_carries_what_is_shown_above_all_there_can_be() -> None:
    made = GapFigure("demographic parity", 0.05, 1.248, training_noise=0.575)
    assert made.training_ends == (pytest.approx(0.121, abs=1e-3), 1.0)
    words = " ".join(ElementTree.fromstring(svg_gaps(made)).itertext())
    assert "100.0 (12.1–100.0)" in words
    assert "124.8" not in words


def test_an_undefined_rate_is_said_and_not_drawn() -> None:
    made = RatesFigure(
        "Selection rate",
        (Rate("f", 0.0, 0.0, 0.1, 30.0), Rate("m", None, None, None, 0.0, small=True)),
    )
    root = ElementTree.fromstring(svg_rates(made))
    assert [group.get("data-value") for group in root.iter(f"{SVG}g")] == ["0.0"]
    assert "m: undefined" in " ".join(root.itertext())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Point(math.nan, 0.1),
        lambda: Point(0.1, math.inf),
        lambda: Point("0.1", 0.1),  # type: ignore[arg-type]
        lambda: Point(0.1, 0.1, error_low=0.2, error_high=0.1),
        lambda: Point(0.1, 0.1, gap_low=0.05),
        lambda: Point(0.1, 0.1, seeds=0),
        lambda: Series("", 1.0, "records", (Point(0.1, 0.1),)),
        lambda: Series("a\nb", 1.0, "records", (Point(0.1, 0.1),)),
        lambda: Series("a", -1.0, "records", (Point(0.1, 0.1),)),
        lambda: Series("a", math.inf, "records", (Point(0.1, 0.1),)),
        lambda: Series("a", 1.0, "nothing", (Point(0.1, 0.1),)),
        lambda: Series("a", 1.0, "labels", (Point(0.1, 0.1),)),  # type: ignore[arg-type]
        lambda: Series("a", 1.0, "records", ()),
        lambda: Floor(((0.1, 0.1),)),
        lambda: Floor((0.1, 0.2)),  # type: ignore[arg-type]
        lambda: figure(series=()),
        lambda: figure(floor=((0.1, 0.1), (0.2, 0.1))),
        lambda: figure(notes="one sentence"),
        lambda: figure(layout="grid"),
        lambda: Measure("error", "metres"),  # type: ignore[arg-type]
        lambda: GapFigure("parity", None),
        lambda: GapFigure("parity", 0.05, held_out_low=0.1, held_out_high=0.2),
        lambda: svg_frontier(figure(), width=100),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert svg_frontier(many()) == svg_frontier(many())


def struck_through(root: ElementTree.Element, names: set[str]) -> list[str]:
    """Names in the drawing that a line, a bar or the leader of another name crosses."""
    lines = []
    for line in root.iter(f"{SVG}line"):
        if line.get("stroke") not in {GRID, AXIS} or line.get("stroke-width") == "0.8":
            (x1, y1), (x2, y2) = (
                (float(line.get(f"x{end}", "")), float(line.get(f"y{end}", ""))) for end in (1, 2)
            )
            lines.append(((x1, y1), (x2, y2)))
    for line in root.iter(f"{SVG}polyline"):
        spots = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
        lines += list(itertools.pairwise(spots))
    found = []
    for words, box in words_of(root):
        if words in names:
            inner = Box(box.left + 1, box.top + 1, box.right - 1, box.bottom - 1)
            for (x1, y1), (x2, y2) in lines:
                steps = [(x1 + k / 200 * (x2 - x1), y1 + k / 200 * (y2 - y1)) for k in range(201)]
                if any(inner.distance(step) == 0 for step in steps):
                    found.append(words)
    return found


@pytest.mark.parametrize("width", [350, 640])
@pytest.mark.parametrize("layout", ["together", "by-epsilon"])
def test_no_name_is_struck_through(width: int, layout: str) -> None:
    """By curves, their bars, the floor, or the line that leads another name to its mark."""
    for made in (
        figure(layout=layout),
        figure(series=(*many().series, curve("Paper 3", 1.0, published=True)), layout=layout),
    ):
        root = ElementTree.fromstring(svg_frontier(made, width=width))
        names = {one.short for one in made.series} | {
            f"{one.short}, not private" for one in made.series
        }
        names |= {f"ε = {one.epsilon:g}" for one in made.series} | {
            f"{one.short}, ε = {one.epsilon:g}" for one in made.series
        }
        shown = [words for words, _ in words_of(root) if words in names]
        assert shown
        assert not struck_through(root, names)


def test_what_strikes_a_name_through_is_seen() -> None:
    drawn = (
        '<svg xmlns="http://www.w3.org/2000/svg"><text x="10" y="20" font-size="12">a name</text>'
        '<line x1="0" y1="16" x2="60" y2="16" stroke="#123456"/></svg>'
    )
    assert struck_through(ElementTree.fromstring(drawn), {"a name"}) == ["a name"]


def test_ones_own_intervals_are_drawn_as_those_of_others() -> None:
    """A bar for each interval of the gap and of the error, whoever measured it; no shaded band."""
    made = figure(layout="together", floor=None)
    root = ElementTree.fromstring(svg_frontier(made))
    marks = [group for group in root.iter(f"{SVG}g") if group.get("data-error")]
    assert len(marks) == 12
    assert {len(group.findall(f"{SVG}line")) for group in marks} == {2}
    assert not [one for one in root.iter(f"{SVG}polygon") if one.get("fill-opacity")]


def test_no_interval_goes_below_zero() -> None:
    low = Series("Ours", 1.0, "records", (Point(0.001, 0.002, -0.01, 0.02, -0.03, 0.04),))
    made = figure(series=(low,))
    (point,) = made.series[0].points
    assert (point.error_low, point.error_high, point.gap_low, point.gap_high) == (
        0.0,
        0.02,
        0.0,
        0.04,
    )
    (panel,) = panels(made, 720)
    root = ElementTree.fromstring(svg_frontier(made))
    ends = [
        float(line.get("x1", ""))
        for group in root.iter(f"{SVG}g")
        for line in group.findall(f"{SVG}line")
    ]
    assert min(ends) >= panel.across(0.0) - 0.01
    kept = figure(series=(low,), error=Measure("log loss", "plain")).series[0].points[0]
    assert (kept.error_low, kept.gap_low) == (-0.01, 0.0), "what is no share may be negative"


def test_two_epsilons_have_a_panel_each() -> None:
    assert figure().is_split
    assert [panel.heading for panel in panels(figure(), 720)] == ["ε = 0.1", "ε = 1"]
    assert not figure(series=(curve("Ours", 1.0), curve("Theirs", 1.0, published=True))).is_split
    assert not figure(layout="together").is_split
