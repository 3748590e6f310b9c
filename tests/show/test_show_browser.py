"""The page in Chromium and under axe-core: nothing is cut off at any width, letters stay readable,
charts follow a dark screen. Skipped, with the reason, where there is no browser."""

from __future__ import annotations

import re

import pytest
from test_show_parts import RESULTS
from test_show_report import FULL

from browsing import Audit, Look, needs_axe, needs_browser
from fairveil.show import Report

LEDGER = Report(
    "A budget", sections=(("The ledger", RESULTS["ledger"]), ("Counts", RESULTS["private"]))
)
PAGES = {"report": FULL.to_html(), "ledger": LEDGER.to_html()}


@needs_browser
@pytest.mark.parametrize(("kind", "width"), [("report", 1200), ("report", 320), ("ledger", 400)])
def test_nothing_is_cut_off_and_letters_stay_readable(look: Look, kind: str, width: int) -> None:
    seen = look(PAGES[kind], width)
    assert seen["scroll"] <= seen["client"] == width, "the page must not scroll sideways"
    assert not seen["beyond"]
    assert seen["figures"] == PAGES[kind].count("<figure"), "each chart is shown once"
    assert len(seen["letters"]) > 10
    assert not [one["words"] for one in seen["letters"] if one["out"]], "letters leave their chart"
    assert min(one["size"] for one in seen["letters"]) >= 9.5


@needs_axe
@pytest.mark.parametrize(
    ("kind", "width", "dark"),
    [
        ("report", 1200, False),
        ("report", 400, True),
        ("ledger", 400, False),
        ("ledger", 1200, True),
    ],
)
def test_axe_finds_nothing_wrong(audit: Audit, kind: str, width: int, dark: bool) -> None:
    seen = audit(PAGES[kind], width, dark=dark)
    assert not seen["wrong"]
    assert seen["rules"] > 10
    assert seen["painted"] == ("rgb(21, 25, 31)" if dark else "rgb(255, 255, 255)")
    assert seen["ink"] == ("rgb(241, 243, 245)" if dark else "rgb(26, 26, 26)"), (
        "charts take the ink of the page"
    )


def test_paper_stays_white_and_the_decision_in_one_piece() -> None:
    page = PAGES["report"]
    dark = re.findall(r"@media ([^{]*)prefers-color-scheme: dark", page)
    assert dark == ["screen and ("]
    printed = page.partition("@media print {")[2]
    assert ".decision { break-inside: avoid; }" in printed
