"""Pages of every kind under axe-core in a real browser, light and dark, narrow and wide; what they look like in the dark and on
paper. Skipped, with the reason, where there is no Chromium or no axe-core.

axe-core is a file: the one that FAIRVEIL_AXE names, else the one that the package axe-playwright-python carries, which `make`
installs.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from test_report_browser import browser, run  # noqa: F401  # a fixture
from test_report_page import Page

from fairveil.figures import FrontierFigure, GapFigure
from fairveil.metrics import GroupTable
from fairveil.privacy import PrivacyStatement
from fairveil.report import GroupSection, LedgerSection, Report, certain, render
from fairveil.report.contents import Payments

AUDIT = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>not measured</title>
<script>
const measure = frame => {{
  const inside = frame.contentDocument, script = inside.createElement("script");
  script.textContent = {axe};
  inside.head.append(script);
  const painted = getComputedStyle(inside.body).backgroundColor;
  const circle = [...inside.querySelectorAll("svg circle")].find(one => one.getClientRects().length);
  const mark = circle ? getComputedStyle(circle).stroke : "";
  frame.contentWindow.axe.run(inside, {{resultTypes: ["violations"]}}).then(found => {{
    const where = one => one.nodes.slice(0, 3).map(node => node.html.slice(0, 90)).join(" | ");
    const told = found.violations.map(one => one.id + ": " + where(one));
    document.title = JSON.stringify({{wrong: told, rules: found.passes.length, painted: painted, mark: mark}});
  }});
}};
</script>
<iframe onload="measure(this)" title="page" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe></html>"""


def axe() -> Path | None:
    """The script."""
    if named := os.environ.get("FAIRVEIL_AXE"):
        return Path(named)
    spec = find_spec("axe_playwright_python")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return next((file for folder in folders if (file := Path(folder) / "axe.min.js").is_file()), None)


needs_axe = pytest.mark.skipif(
    browser() is None or axe() is None, reason="no Chromium, or no axe-core: pip install --no-deps axe-playwright-python"
)

Audit = Callable[..., dict[str, Any]]


@pytest.fixture
def audit(run: Callable[..., str], tmp_path: Path) -> Audit:  # noqa: F811
    """What axe-core says of a page in a window of some width."""

    def audit(page: str, width: int, *, dark: bool = False) -> dict[str, Any]:
        wrapper, script = tmp_path / "audit.html", axe()
        assert script is not None
        source = json.dumps(script.read_text("utf-8")).replace("</", "<\\/")
        wrapper.write_text(AUDIT.format(width=width, page=html.escape(page), axe=source), encoding="utf-8")
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        asked = ("--dump-dom", "--window-size=1600,1000", "--virtual-time-budget=20000", scheme, wrapper.as_uri())
        titles = (re.search(r"<title>(.*?)</title>", run(*asked), re.DOTALL) for _ in range(5))
        title = next((one for one in titles if one and one.group(1) != "not measured"), None)  # axe waits for timers of its own
        assert title, "the page was not measured in five runs of the browser"
        found: dict[str, Any] = json.loads(html.unescape(title.group(1)))
        return found

    return audit


def test_landmarks_have_names_of_their_own(full: Report, frontier: FrontierFigure, payments: Payments) -> None:
    """Without a browser: no two regions of a page are called the same, not even where two figures are."""
    twice = {"frontiers": (frontier, frontier), "gaps": (*full.gaps, *full.gaps), "tables": full.tables * 2}
    page = Page(render(Report("t", payments=payments, guarantee=guarantee(), ledger=full.ledger, **twice)))
    ids = {}
    for text, inside in page.texts:
        if "id" in inside[-1][1]:
            ids.setdefault(inside[-1][1]["id"], text)
    named = [
        ids[attributes["aria-labelledby"]] if "aria-labelledby" in attributes else attributes["aria-label"]
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
    assert "overflow" not in re.findall(r"\npre \{([^}]*)\}", html)[0].replace("overflow-wrap", ""), "commands are wrapped"


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
def test_axe_finds_nothing_wrong(audit: Audit, full: Report, payments: Payments, width: int, dark: bool) -> None:
    from dataclasses import replace

    every = replace(full, guarantee=guarantee(), payments=payments, method="a method", warnings=("WORSE THAN A CONSTANT.",))
    seen = audit(render(every), width, dark=dark)
    assert not seen["wrong"]
    assert seen["rules"] > 10
    assert seen["painted"] == ("rgb(21, 25, 31)" if dark else "rgb(255, 255, 255)")
    assert seen["mark"] == ("rgb(134, 185, 247)" if dark else "rgb(11, 74, 143)"), "figures follow the page"


@needs_axe
def test_axe_sees_what_is_wrong(audit: Audit) -> None:
    page = (
        "<!DOCTYPE html><html lang='en'><head><title>t</title></head><body><main><h1>t</h1>"
        "<section aria-label='a'>x</section><section aria-label='a'><p style='color:#ccc'>grey</p></section></main></body>"
    )
    wrong = {one.partition(":")[0] for one in audit(page, 600)["wrong"]}
    assert {"landmark-unique", "color-contrast"} <= wrong


@pytest.fixture
def pages(
    full: Report, table: GroupTable, statement: PrivacyStatement, budget: LedgerSection, frontier: FrontierFigure
) -> dict[str, Report]:
    gap = GapFigure("demographic parity", 0.05, 0.0471, 0.0493, 0.0391, 0.0597, training_noise=0.01)
    fit = Report("Model report: hired", statement=statement, gaps=(gap,), tables=(GroupSection(table),), method="descent")
    return {"fit": fit, "bare": Report("t", statement=statement, method="descent"), "ledger": Report("t", ledger=budget)}


@needs_axe
@pytest.mark.parametrize("kind", ["fit", "bare", "ledger"])
def test_axe_finds_nothing_wrong_with_shorter_pages(audit: Audit, pages: dict[str, Report], kind: str) -> None:
    assert not audit(render(pages[kind]), 400)["wrong"]


def test_paper_stays_white_and_tables_begin_a_page(pages: dict[str, Report]) -> None:
    """Every dark rule is one for screens; what is printed first are the first lines and the figures."""
    page = render(pages["fit"])
    dark = re.findall(r"@media ([^{]*)prefers-color-scheme: dark", page)
    assert dark == ["screen and ("] * 2
    assert ".tables { break-before: page;" in page.partition("@media print {")[2]
    assert page.rindex("</svg>") < page.index("<table"), "first figures, then tables"
    assert page.index('<section class="tables"') < page.index("Table 1.")
