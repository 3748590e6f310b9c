"""A ledger on a page: terms, shares, the course of time, releases and findings; and a fit's
receipt."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fairveil.core.events import Gaussian
from fairveil.errors import InputError
from fairveil.figures import BudgetFigure, BudgetPart, CourseFigure, Moment, svg_budget, svg_course
from fairveil.privacy import PrivacyStatement, Promise
from fairveil.privacy.ledger import Ledger
from fairveil.privacy.statement.checks import Finding
from fairveil.report import LedgerSection, Report, ledger, render, to_dict, write
from fairveil.report.ledger import (
    AGREES,
    CONTRADICTS,
    MOST_SPENDS,
    NOT_RECORDED,
    budget_figure,
    course_figure,
)

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def kept(tmp_path: Path) -> Ledger:
    """In a file: a spend that is settled, one that is not."""
    made = Ledger.create(tmp_path / "budget.db", "census", 2.0, 1e-6, production=True)
    made.reserve(Gaussian(20.0), purpose="counts by region").commit()
    made.reserve(Gaussian(30.0), purpose="a model")
    return made


def page_of(section: LedgerSection) -> str:
    return html.unescape(render(Report("A budget", ledger=section)))


def test_page_and_twin_hold_all_of_a_ledger(kept: Ledger, tmp_path: Path) -> None:
    written = write(tmp_path / "page.html", Report("A budget", ledger=ledger(kept)))
    twin = json.loads(written.twin.read_text("utf-8"))
    told, balance = twin["ledger"], kept.balance()
    assert told["balance"] == json.loads(json.dumps(balance.to_dict()))
    assert told["terms"] == kept.terms.to_dict()
    assert [one["purpose"] for one in told["spends"]] == ["a model", "counts by region"]
    assert [one["spend"] for one in told["open"]] == list(balance.waiting)
    assert [one["entry"] for one in told["steps"]] == [0, 1, 2, 3]
    page = html.unescape(written.page.read_text("utf-8"))
    for words in (
        "census, kept in budget.db",
        "counts by region",
        AGREES,
        NOT_RECORDED,
        "1 is not settled",
        "yes: no seeded noise",
    ):
        assert words in page
    assert f'<data value="{balance.spent_share!r}">' in page
    assert "fairveil ledger check budget.db --dataset census" in page
    assert str(tmp_path) not in page, "a page shows no folders"
    assert "no privacy statement" not in page
    assert twin["verdict"].startswith("Of the budget of census, epsilon = 2 at delta = 1e-6, ")
    assert [fact["name"] for fact in twin["key_facts"]] == [
        "Budget spent",
        "Budget left",
        "Releases",
        "Protected",
    ]


def test_a_ledger_that_contradicts_itself_is_flagged(kept: Ledger) -> None:
    found = [
        Finding(True, "line 5 is not what its hash was made of\x1b[2J"),
        Finding(False, "a note"),
    ]
    section = ledger(kept, found)
    twin, page = to_dict(Report("A budget", ledger=section)), page_of(section)
    assert twin["stamps"] == [CONTRADICTS]
    assert twin["verdict"].startswith(CONTRADICTS)
    assert AGREES not in twin["verdict"]
    assert f"<p>{AGREES}</p>" not in page
    assert "<strong>Contradiction:</strong> line 5 is not what its hash was made of�[2J" in page
    assert "Note: a note" in page


def test_an_untouched_ledger_has_no_course_and_no_releases() -> None:
    section = ledger(Ledger.create(None, "untouched", 1.0, 0.0))
    assert course_figure(section) is None
    assert to_dict(Report("t", ledger=section))["ledger"]["course"] is None
    assert "Nothing was released yet." in page_of(section)


def test_of_a_long_ledger_the_newest_are_shown_and_all_are_counted(kept: Ledger) -> None:
    section = ledger(kept)
    (spend, _) = section.account.spends
    many = tuple(replace(spend, entry=k, purpose=f"purpose {k}") for k in range(MOST_SPENDS + 50))
    told = to_dict(
        Report("t", ledger=replace(section, account=replace(section.account, spends=many)))
    )["ledger"]
    assert [one["entry"] for one in told["spends"]] == list(range(MOST_SPENDS + 49, 49, -1))
    assert (told["spends_shown"], told["spends_in_all"]) == (MOST_SPENDS, MOST_SPENDS + 50)


def test_the_budget_is_drawn_part_after_part() -> None:
    figure = BudgetFigure(
        "census",
        (BudgetPart("records, add-remove", 0.25), BudgetPart("sensitive features", 0.125)),
        0.625,
    )
    for width in (720, 330):
        drawing = ElementTree.fromstring(svg_budget(figure, width=width))
        groups = [one for one in drawing.iter(f"{SVG}g") if one.get("data-share")]
        assert [float(str(one.get("data-share"))) for one in groups] == [0.25, 0.125, 0.625]
        bars = [one.find(f"{SVG}rect") for one in groups]
        spans = [(float(bar.get("x")), float(bar.get("width"))) for bar in bars]  # type: ignore[arg-type,union-attr]
        for (x, wide), (following, _) in pairwise(spans):
            assert following == pytest.approx(x + wide, abs=0.02)
        whole = sum(wide for _, wide in spans)
        assert [wide / whole for _, wide in spans] == pytest.approx([0.25, 0.125, 0.625], abs=1e-3)
    assert (
        figure.description
        == "records, add-remove: 25.00%; sensitive features: 12.50%; left: 62.50%."
    )


def test_each_release_has_a_segment_and_what_was_given_back_has_none(kept: Ledger) -> None:
    back = kept.reserve(Gaussian(40.0), purpose="given back")
    back.refund()
    waiting = kept.reserve(Gaussian(40.0), purpose="still open")
    figure = budget_figure(ledger(kept))
    charged = [one for one in ledger(kept).account.spends if one.share > 0]
    assert len(figure.parts) == len(charged) >= 2
    assert figure.parts[-1].label == "still open (not settled)"
    assert "given back" not in [part.label for part in figure.parts]
    assert sum(part.share for part in figure.parts) + figure.left == pytest.approx(1.0)
    twin = to_dict(Report("t", ledger=ledger(kept)))
    assert "still open (not settled): " in twin["ledger"]["budget"]["description"]
    assert "one more release may cost at most epsilon = " in twin["verdict"]
    waiting.refund()


def test_of_many_releases_the_oldest_are_one_segment() -> None:
    parts = tuple(BudgetPart(f"release {k}", 1 / 512) for k in range(140))
    figure = BudgetFigure("census", parts, 1 - 140 / 512)
    assert [part.label for part in figure.segments[:2]] == ["40 older releases", "release 40"]
    assert len(figure.segments) == 101
    drawing = ElementTree.fromstring(svg_budget(figure, width=350))
    shares = [
        float(str(one.get("data-share")))
        for one in drawing.iter(f"{SVG}g")
        if one.get("data-share")
    ]
    assert sum(shares) == pytest.approx(1.0)
    listed = [
        text.text
        for text in drawing.iter(f"{SVG}text")
        if (text.text or "").startswith(("release", "40 older"))
    ]
    assert len(listed) == 12, "the largest have a line each"


@pytest.mark.parametrize(
    ("days", "texts"),
    [
        (3.5, ("2026-01-31", "2026-02-01", "2026-02-02")),
        (0.25, ("12:00", "15:00")),
        (900.0, ("2026-04-23", "2028-04-20")),
        (0.5 / 86_400, ("10:00:00", "10:00:00")),
    ],
)
def test_times_stand_at_round_places(days: float, texts: tuple[str, ...]) -> None:
    figure = CourseFigure("census", "2026-01-30T10:00:00Z", (Moment(0.0, 0.0), Moment(days, 0.5)))
    ticks = figure.ticks()
    assert 2 <= len(ticks) <= 7
    assert set(texts) <= {text for _, text in ticks}
    assert all(-1e-9 <= at <= days + 1e-9 for at, _ in ticks)
    drawing = ElementTree.fromstring(svg_course(figure))
    (line,) = drawing.iter(f"{SVG}polyline")
    points = [tuple(map(float, pair.split(","))) for pair in str(line.get("points")).split()]
    assert len(points) == 3, "a step: along, then up"
    assert points[0][1] == points[1][1]
    assert points[1][0] == points[2][0]
    title, words = drawing.find(f"{SVG}title"), drawing.find(f"{SVG}desc")
    assert title is not None
    assert words is not None
    assert words.text == figure.description
    assert "from 0.0% on 2026-01-30 to 50.0%" in figure.description


@pytest.mark.parametrize(
    "make",
    [
        lambda: ledger("budget.db"),  # type: ignore[arg-type]
        lambda: Report("t", ledger="budget.db"),  # type: ignore[arg-type]
        lambda: CourseFigure("c", "yesterday", (Moment(0.0, 0.0),)),
        lambda: CourseFigure("c", "2026-01-30T10:00:00Z", ()),
        lambda: CourseFigure("c", "2026-01-30T10:00:00Z", (Moment(1e9, 0.0),)),
        lambda: BudgetPart("", 0.5),
        lambda: BudgetPart("a", float("nan")),
    ],
)
def test_what_is_no_ledger_is_refused(make: Any) -> None:
    with pytest.raises(InputError):
        make()


def test_a_fits_page_says_where_it_is_recorded(kept: Ledger) -> None:
    spend = kept.reserve(Gaussian(20.0))
    bare = PrivacyStatement.of(Promise(1.0, 1e-6), [Gaussian(20.0)], plan=[Gaussian(20.0)])
    report = Report(
        "A model", statement=replace(bare, ledger=spend.receipt), statement_file="statement.json"
    )
    twin, page = to_dict(report), html.unescape(render(report))
    assert {"name": "Recorded", "value": "line 4", "remark": "of the ledger of census"} in twin[
        "key_facts"
    ]
    assert "fairveil ledger check LEDGER --statement statement.json" in page
    assert spend.receipt.hash in page
    without = to_dict(replace(report, statement=bare))
    assert not any(fact["name"] == "Recorded" for fact in without["key_facts"])
    assert not any("ledger" in (one["command"] or "") for one in without["verify"])
