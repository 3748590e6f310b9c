"""The demo's page in a real browser: nothing is cut off at 100 % and at 200 %. Skipped where there
is none."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = os.environ.get("FAIRVEIL_BROWSER") or next(
    (found for name in NAMES if (found := shutil.which(name))), None
)
MEASURE = """<!DOCTYPE html><meta charset="utf-8"><title>not measured</title>
<script>
const measure = frame => {{
  const inside = frame.contentDocument, root = inside.documentElement;
  const shown = [...inside.querySelectorAll("svg")].filter(one => one.getClientRects().length);
  const letters = shown.flatMap(one => [...one.querySelectorAll("text")].map(text => {{
    const box = text.getBoundingClientRect(), edge = one.getBoundingClientRect();
    const beside = box.left < edge.left - 1 || box.right > edge.right + 1;
    return {{words: text.textContent, out: beside || box.top < edge.top - 1 || box.bottom > edge.bottom + 1}};
  }}));
  const titles = shown.map(one => (one.querySelector("title") || {{}}).textContent || "");
  document.title = JSON.stringify({{scroll: root.scrollWidth, client: root.clientWidth, titles: titles, letters: letters}});
}};
</script>
<iframe id="frame" onload="measure(this)" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>"""

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium on the path, and none named by FAIRVEIL_BROWSER"
)


def test_the_demos_page_can_be_read(fairveil: Command, tmp_path: Path) -> None:
    assert fairveil("demo", "--output", "out").code == 0
    page = (tmp_path / "out/report.html").read_text("utf-8")
    for width in (1280, 640):  # a window at 100 %, and the same at 200 %
        wrapper = tmp_path / "wrapper.html"
        wrapper.write_text(MEASURE.format(width=width, page=html.escape(page)), encoding="utf-8")
        command = [
            *(
                str(BROWSER),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
            ),
            *(
                "--disable-extensions",
                "--disable-dev-shm-usage",
                f"--user-data-dir={tmp_path / 'profile'}",
            ),
            *(
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--virtual-time-budget=4000",
                "--window-size=1600,1000",
            ),
            *("--dump-dom", wrapper.as_uri()),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
        assert title
        seen = json.loads(html.unescape(title.group(1)))
        assert seen["scroll"] <= seen["client"] == width
        assert sum("Error against" in title for title in seen["titles"]) == 1
        assert all(seen["titles"])
        assert not [letter["words"] for letter in seen["letters"] if letter["out"]]
        assert any("fair, not private" in letter["words"] for letter in seen["letters"])
