"""Pages of every kind under axe-core in a real browser, light and dark, narrow and wide; what they
look like in the dark and on paper. Skipped, with the reason, where there is no Chromium or no
axe-core.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from test_report_page import Page

from browsing import Audit, needs_axe
from fairveil.figures import FrontierFigure, GapFigure
from fairveil.metrics import GroupTable
from fairveil.privacy import PrivacyStatement
from fairveil.report import GroupSection, LedgerSection, Report, certain, render
from fairveil.report.contents import Payments


def test_landmarks_have_names_of_their_own(
    full: Report, frontier: FrontierFigure, payments: Payments
) -> None:
    """Without a browser: no two regions of a page are called the same, not even where two figures
    are."""
    twice = {
        "frontiers": (frontier, frontier),
        "gaps": (*full.gaps, *full.gaps),
        "tables": full.tables * 2,
    }
    page = Page(
        render(Report("t", payments=payments, guarantee=guarantee(), ledger=full.ledger, **twice))
    )
    ids = {}
    for text, inside in page.texts:
        if "id" in inside[-1][1]:
            ids.setdefault(inside[-1][1]["id"], text)
    named = [
        ids[attributes["aria-labelledby"]]
        if "aria-labelledby" in attributes
        else attributes["aria-label"]
        for tag, attributes in page.elements
        if tag == "section" or attributes.get("role") == "region"
    ]
    assert len(named) > 12
    assert not [name for name, times in Counter(named).items() if times > 1]


def test_what_scrolls_can_be_reached_by_keyboard(full: Report) -> None:
    html = render(full)
    regions = [one for _, one in Page(html).elements if "scroll" in one.get("class", "").split()]
    assert regions
    assert all(one.get("tabindex") == "0" and one.get("aria-label") for one in regions)
    assert "pre { " in html
    assert "overflow" not in re.findall(r"\npre \{([^}]*)\}", html)[0].replace(
        "overflow-wrap", ""
    ), "commands are wrapped"


@pytest.fixture
def payments() -> Payments:
    from fairveil.report import GroupPayment

    return Payments("equal", (GroupPayment("f", 0.5, 1.0), GroupPayment("m", 0.5, 1.0)))


def guarantee() -> Any:
    from test_report_certain import MIXING

    return certain(MIXING)


@needs_axe
@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_wrong(
    audit: Audit, full: Report, payments: Payments, width: int, dark: bool
) -> None:
    from dataclasses import replace

    every = replace(
        full,
        guarantee=guarantee(),
        payments=payments,
        method="a method",
        warnings=("WORSE THAN A CONSTANT.",),
    )
    seen = audit(render(every), width, dark=dark)
    assert not seen["wrong"]
    assert seen["rules"] > 10
    assert seen["painted"] == ("rgb(21, 25, 31)" if dark else "rgb(255, 255, 255)")
    assert seen["mark"] == ("rgb(134, 185, 247)" if dark else "rgb(11, 74, 143)"), (
        "figures follow the page"
    )


@needs_axe
def test_axe_sees_what_is_wrong(audit: Audit) -> None:
    page = (
        "<!DOCTYPE html><html lang='en'><head><title>t</title></head><body><main><h1>t</h1>"
        "<section aria-label='a'>x</section><section aria-label='a'><p "
        "style='color:#ccc'>grey</p></section></main></body>"
    )
    wrong = {one.partition(":")[0] for one in audit(page, 600)["wrong"]}
    assert {"landmark-unique", "color-contrast"} <= wrong


@pytest.fixture
def pages(
    full: Report,
    table: GroupTable,
    statement: PrivacyStatement,
    budget: LedgerSection,
    frontier: FrontierFigure,
) -> dict[str, Report]:
    gap = GapFigure("demographic parity", 0.05, 0.0471, 0.0493, 0.0391, 0.0597, training_noise=0.01)
    fit = Report(
        "Model report: hired",
        statement=statement,
        gaps=(gap,),
        tables=(GroupSection(table),),
        method="descent",
    )
    return {
        "fit": fit,
        "bare": Report("t", statement=statement, method="descent"),
        "ledger": Report("t", ledger=budget),
    }


@needs_axe
@pytest.mark.parametrize("kind", ["fit", "bare", "ledger"])
def test_axe_finds_nothing_wrong_with_shorter_pages(
    audit: Audit, pages: dict[str, Report], kind: str
) -> None:
    assert not audit(render(pages[kind]), 400)["wrong"]


def test_paper_stays_white_and_tables_begin_a_page(pages: dict[str, Report]) -> None:
    """Every dark rule is one for screens; what is printed first are the first lines and the
    figures."""
    page = render(pages["fit"])
    dark = re.findall(r"@media ([^{]*)prefers-color-scheme: dark", page)
    assert dark == ["screen and ("] * 2
    assert ".tables { break-before: page;" in page.partition("@media print {")[2]
    assert page.rindex("</svg>") < page.index("<table"), "first figures, then tables"
    assert page.index('<section class="tables"') < page.index("Table 1.")
