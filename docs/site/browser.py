"""A sample of the built pages in a real browser: axe-core finds nothing wrong, and no page is wider
than its window.

Needs Chromium (`FAIRVEIL_BROWSER`, or one on the path) and axe-core (`FAIRVEIL_AXE`, or the package
axe-playwright-python).
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from chromium import axe, browser

QUIET = (
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PAGES = (
    "index.html",
    "search.html",
    "docs/first_model.html",
    "docs/commands.html",
    "docs/certificates.html",
    "docs/theory.html",
    "docs/theory/papers.html",
    "api/index.html",
    "api/fairveil.estimators.FairClassifier.html",
    "gallery/index.html",
    "gallery/plot_2_frontier.html",
)
"""One page of each kind; formulas, wide tables, long code and figures are among them."""
VIEWS = ((400, "light"), (1200, "dark"))
WRAPPER = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>not measured</title>
<script>
const measure = async frame => {{
  const inside = frame.contentDocument, root = inside.documentElement, script = inside.createElement("script");
  root.dataset.mode = root.dataset.theme = "{theme}";
  script.textContent = {axe};
  inside.head.append(script);
  const found = await frame.contentWindow.axe.run(inside, {{resultTypes: ["violations"]}});
  const where = one => one.nodes.slice(0, 3).map(node => node.html.slice(0, 120)).join(" | ");
  const wrong = found.violations.map(one => one.id + ": " + where(one));
  if (root.scrollWidth > root.clientWidth + 1) wrong.push("is " + root.scrollWidth + " px wide in " + root.clientWidth);
  document.title = JSON.stringify({{wrong: wrong, rules: found.passes.length}});
}};
</script>
<iframe onload="measure(this)" title="page" style="border:0;width:{width}px;height:900px" src="{page}"></iframe></html>"""


def problems(site: Path) -> list[str]:
    """What is wrong with the sample in each view."""
    program, script = browser(), axe()
    if program is None or script is None:
        print("no Chromium or no axe-core: pages were not looked at in a browser")
        return []
    source = json.dumps(script.read_text("utf-8")).replace("</", "<\\/")
    found = []
    for page in PAGES:
        for width, theme in VIEWS:
            place = f"{page} ({width} px, {theme})"
            wrapper = WRAPPER.format(
                axe=source, theme=theme, width=width, page=(site / page).resolve().as_uri()
            )
            found += [f"{place}: {wrong}" for wrong in measured(program, wrapper, place)]
    print(
        f"{len(PAGES)} pages looked at in a browser, each "
        f"{' and '.join(f'{width} px wide, {theme}' for width, theme in VIEWS)}"
    )
    return found


def measured(program: str, wrapper: str, place: str) -> list[str]:
    """What the wrapper wrote into its title."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "wrapper.html"
        file.write_text(wrapper, "utf-8")
        options = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            *QUIET,
            "--allow-file-access-from-files",
            "--dump-dom",
        )
        sizes = (
            "--window-size=1600,1000",
            "--virtual-time-budget=20000",
            f"--user-data-dir={folder}/profile",
        )
        for _ in range(5):  # axe waits for timers of its own, which virtual time may overtake
            done = subprocess.run(
                [program, *options, *sizes, file.as_uri()],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
            if title is not None and title[1] != "not measured":
                told = json.loads(html.unescape(title[1]))
                return list(told["wrong"]) + (
                    [] if told["rules"] > 10 else [f"only {told['rules']} rules were tried"]
                )
    return [f"{place} was not measured in five runs of the browser"]
