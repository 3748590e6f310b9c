"""Parts: text, HTML and JSON hold the same cells; words are escaped; numbers that bound round up; charts
are SVG with a text alternative, readable on both pages."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html import unescape
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil.errors import InputError
from fairveil.show import Axis, Column, Curve, Curves, Fact, Facts, Note, Row, Rows, Rule, Table
from fairveil.show.charts import COLORS
from fairveil.show.numbers import bound, left, spent
from fairveil.show.parts import dict_of, html_of, listed, text_of

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")
from matplotlib import pyplot  # noqa: E402

HOSTILE = "<script>alert('x')</script> & \"<b>\""
CURVES = Curves(
    f"Error {HOSTILE}",
    Axis("gap", "points"),
    Axis("error", "percent"),
    (
        Curve(HOSTILE, ((0.1, 0.2), (0.05, 0.3)), (0.19, 0.28), (0.22, 0.32)),
        Curve("theirs", ((0.1, 0.25),), kind="published"),
    ),
    (Rule("required", 0.07, across=True),),
    ("A note.",),
)
ROWS = Rows(
    "Rates",
    Axis("rate", "percent"),
    (Row(HOSTILE, 0.3, 0.25, 0.36), Row("few", 0.5, hollow=True), Row("none", None)),
    Rule("at most 40%", 0.4),
    0.95,
)
TABLE = Table(
    (
        Column("group", ("f", HOSTILE, "none")),
        Column("rate", (0.1234, 0.5, math.nan), "percent", (0.1, 0.4, None), (0.15, 0.6, None)),
        Column("people", (1234, 5, 0), "count"),
    ),
    "Rates by group",
)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_text_html_and_json_hold_the_same_cells() -> None:
    assert TABLE.lines()[0] == ("f", "12.3% (10.0 to 15.0%)", "1,234")
    assert TABLE.lines()[2] == ("none", "undefined", "0")
    text, page = text_of([TABLE]), unescape(html_of(TABLE))
    for cell in (cell for line in TABLE.lines() for cell in line):
        assert cell in text
        assert cell in page
    assert TABLE.rows()[0] == {
        "group": "f",
        "rate": 0.1234,
        "rate_low": 0.1,
        "rate_high": 0.15,
        "people": 1234,
    }
    assert TABLE.rows()[2]["rate"] is None
    json.dumps(dict_of([TABLE, CURVES, ROWS]), allow_nan=False)


def test_long_tables_are_cut_but_in_json() -> None:
    long = Table((Column("n", tuple(range(50)), "count"),), "many", shown=3)
    assert "and 47 more" in text_of([long])
    assert html_of(long).count("<tr>") == 1 + 3
    assert len(dict_of([long])["many"]) == 50


def test_every_word_of_a_caller_is_escaped_and_nothing_is_loaded() -> None:
    parts = (Facts((Fact(HOSTILE, HOSTILE, "met"),)), Note(HOSTILE), TABLE, CURVES, ROWS)
    page = listed(*parts).to_html(HOSTILE)
    assert "<script" not in page
    assert "<b>" not in page
    assert not re.search(
        r"<(iframe|img|link|object|embed|form|base)\b|\son\w+=|@import|url\((?!#)", page
    )
    outside = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("chart", [CURVES, ROWS], ids=["curves", "rows"])
@pytest.mark.parametrize("standalone", [True, False])
def test_a_chart_is_svg_with_its_words_and_the_same_bytes(chart: Any, standalone: bool) -> None:
    drawn = chart.to_svg(400, standalone=standalone)
    assert drawn == chart.to_svg(400, standalone=standalone)
    root = ET.fromstring(drawn)
    name = "{http://www.w3.org/2000/svg}"
    title, words = (root.find(f"{name}{tag}") for tag in ("title", "desc"))
    assert title is not None
    assert words is not None
    assert (title.text, words.text) == (chart.title, chart.description)
    assert root.get("aria-labelledby") == f"{title.get('id')} {words.get('id')}"
    assert "#1a1a1a" not in drawn.replace("color:#1a1a1a", ""), "ink is that of the page"
    assert "prefers-color-scheme" in drawn or not standalone
    letters = [float(size) for size in re.findall(r"font:? ?-?s?i?z?e?:? ?(\d+\.?\d*)px", drawn)]
    assert letters
    assert min(letters) >= 10


def test_names_are_names_and_no_formulas() -> None:
    """matplotlib would read "$...$" as mathematics, refuse what is none, and leave out "_..."."""
    names = ("$50K$", "$\\frac{$", "_hidden", "a\x1b\nb")
    rows = Rows("$x$ $\\frac{", Axis("$y$ $\\oops"), tuple(Row(name, 0.5) for name in names))
    curves = Curves(
        "$\\frac{", Axis("$\\oops$"), Axis("y"), tuple(Curve(name, ((0.0, 1.0),)) for name in names)
    )
    for chart in (rows, curves):
        for drawn in (chart.to_svg(), chart.to_svg(standalone=False)):
            letters = ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")
            words = " ".join(str(one.text) for one in letters)
            assert all(name in words for name in names[:3]), words
        axes = listed(chart).plot(pyplot.subplots()[1])
        axes.figure.canvas.draw()
    used = set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', curves.to_svg()))
    assert used <= set(re.findall(r'id="([^"]+)"', curves.to_svg()))


def test_colors_are_readable_on_white_and_on_the_dark_page() -> None:
    """3:1 and more, as WCAG asks of graphics."""

    def light(color: str) -> float:
        shares = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for color in COLORS:
        for paper in ("#ffffff", "#15191f"):
            low, high = sorted((light(color), light(paper)))
            assert (high + 0.05) / (low + 0.05) >= 3, (color, paper)


def test_what_is_drawn_is_what_json_says() -> None:
    axes = listed(ROWS).plot()
    marks = [line.get_xdata()[0] for line in axes.lines]
    assert marks == [row["value"] for row in ROWS.to_dict()["rows"] if row["value"] is not None]
    assert [line.get_markerfacecolor() == "none" for line in axes.lines] == [False, True]
    assert "undefined" in [text.get_text() for text in axes.texts]
    axes.figure.canvas.draw()
    assert "40" in [label.get_text() for label in axes.get_xticklabels()], "percent, of a fraction"
    drawn = listed(CURVES).plot(pyplot.subplots()[1]).lines[0].get_xydata().tolist()
    assert drawn == [list(point) for point in CURVES.to_dict()["curves"][0]["points"]]
    with pytest.raises(InputError, match="one pair of axes"):
        listed(CURVES).plot(3)
    with pytest.raises(InputError, match="chart"):
        listed(TABLE).plot()


def test_what_bounds_rounds_up_and_what_is_left_rounds_down() -> None:
    rng = np.random.default_rng(0)
    for value in (10 ** rng.uniform(-6, 0, 2000)).tolist():
        assert float(bound(value)) >= value * (1 - 1e-9)
        assert float(bound(value, "points")) >= 100 * value - 1e-6
        assert float(spent(value)[:-1]) >= 100 * value - 1e-4
        assert float(left(value)[:-1]) <= 100 * value + 1e-4


@pytest.mark.parametrize(
    "make",
    [
        lambda: Curve("none", ()),
        lambda: Curve("nan", ((0.0, math.nan),)),
        lambda: Curve("ends", ((0.0, 1.0),), (2.0,), (1.0,)),
        lambda: Curves("t", Axis("x"), Axis("y"), ()),
        lambda: Curves("t", Axis("x", log=True), Axis("y"), (Curve("c", ((0.0, 1.0),)),)),
        lambda: Column("c", (1,), "furlongs"),
        lambda: fv.show.Series("s", 1.0, "nothing", (fv.show.Point(0.1, 0.1),)),
        lambda: fv.show.Point(0.1, 0.1, error_low=0.3, error_high=0.2),
        lambda: CURVES.to_svg(100),
    ],
)
def test_what_cannot_be_shown_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def results() -> dict[str, Any]:
    """One of each kind that prints, without a fit."""
    from fairveil.core.events import Gaussian
    from fairveil.estimators.reports import (
        BaselineReport,
        Compared,
        ConstraintLine,
        ConstraintReport,
        GapLine,
        GapReport,
    )
    from fairveil.estimators.tailored import TailoringReport
    from fairveil.methods.game_bounds import Guarantee
    from fairveil.methods.objectives import Certain
    from fairveil.methods.postprocess import MixingGuarantee

    nan, rng = math.nan, np.random.default_rng(0)
    y, decided, sex = rng.random(300) < 0.4, rng.random(300) < 0.5, rng.choice(["f", HOSTILE], 300)
    book = fv.Ledger.create(None, f"people {HOSTILE}", 1.0, 1e-6, who=HOSTILE)
    for purpose in ("counts", HOSTILE):
        book.reserve(Gaussian(12.0), purpose=purpose).commit()
    lines = (
        ConstraintLine("f - m <= 0.05", 0.05, 0.03, 0.002, 0.0, 3, 1, 0.004),
        ConstraintLine("m - f <= 0.05", 0.05, -0.03, 0.002, 0.0, 3, 1, 0.004),
        ConstraintLine(f"{HOSTILE} <= 0.1", 0.1, nan, 0.002, 0.0, 3, 1),
    )
    compared = (
        Compared("the best constant", HOSTILE, 0.25, -0.1, 0.01),
        Compared("no constraint", "the same budget's model", 0.1, 0.05, 0.01),
    )
    options = {"sensitive_features": sex, "epsilon": 1.0, "random_state": 0}
    return {
        "constraints": ConstraintReport(lines, 10, "done", required=(HOSTILE,)),
        "gaps": GapReport((GapLine(HOSTILE, 0.03, 0.01), GapLine("b", nan, 0.1)), 3, "done"),
        "no gaps": GapReport((GapLine("b", nan, 0.1),), 3, "done"),
        "endless": listed(Rows("r", Axis("x"), (Row("a", math.inf, 0.0, 1.0), Row("b", nan)))),
        "baselines": BaselineReport(0.15, 0.01, compared),
        "shares": TailoringReport(
            ("f", HOSTILE), "equal", "why", (0.5, 0.5), (nan, nan), (70.0, 30.0), (1.0, 2.0), False
        ),
        "table": fv.group_table(y, decided, sex),
        "private": fv.private_audit(decided, None, y, **options),
        "certificate": fv.certify(
            decided, None, y, constraints="demographic_parity:0.3", **options
        ),
        "statement": fv.PrivacyStatement.of(
            fv.Promise(1.0, 1e-6), [Gaussian(12.0)], plan=[Gaussian(12.0)]
        ),
        "ledger": book,
        "mixing": MixingGuarantee(
            0.95, (HOSTILE,), (0.05,), (0.05,), (0.01,), (0.07,), 0.2, 0.21, nan
        ),
        "game": Guarantee(0.95, 5.0, 0.1, 0.1, 0.2, math.inf, 0.0712, 0.08, (0.01,)),
        "choice": Certain(math.inf, 0.02, 0.9),
        "sizes": fv.study.plan_sample_size(0.1, groups=2, candidates=100),
    }


RESULTS = results()


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_every_result_is_text_html_json_and_a_page_with_the_same_numbers(name: str) -> None:
    result = RESULTS[name]
    text, notebook, page = str(result), result._repr_html_(), result.to_html()
    values = json.loads(result.to_json())
    assert values == json.loads(json.dumps(result.to_dict(), allow_nan=False))
    for shown in (notebook, page):
        assert "<script" not in shown
        assert "<b>" not in shown
    # Every number of the notebook stands in the text, and on the page.
    words = re.sub(r"<svg.*?</svg>|<[^>]*>", " ", notebook, flags=re.S)
    numbers = set(re.findall(r"\d+\.\d+", unescape(words)))
    assert not {one for one in numbers if one not in text}
    assert not {one for one in numbers if one not in page}


def test_a_verdict_is_marked_and_a_cost_is_no_verdict() -> None:
    baselines = str(RESULTS["baselines"])
    assert "cost of the constraint: +5.0 points" in baselines
    assert "worse" not in baselines
    constraints = RESULTS["constraints"]._repr_html_()
    assert 'class="badge inconclusive"' in constraints
    assert "certified" in str(RESULTS["certificate"])
    assert "not known: this oracle's own regret is not known" in str(RESULTS["game"])
    assert "7.2 points" in str(RESULTS["game"]), "a bound is rounded up"


def test_a_table_draws_any_of_its_rates() -> None:
    table = RESULTS["table"]
    axes = table.plot(rate="error")
    expected = [row.rates["error"].value for row in (*table.rows, table.overall)]
    assert [line.get_xdata()[0] for line in axes.lines] == expected
    with pytest.raises(InputError, match="Known: selection_rate"):
        table.plot(rate="precision")
    assert RESULTS["private"].plot().get_xlabel().endswith("(percent)")
