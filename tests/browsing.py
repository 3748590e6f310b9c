"""Pages in a real browser, Chromium without a head, and under axe-core: fixtures for whatever test
has a page.

A page runs no script of its own. What is measured is measured by a wrapper that shows the page in a
frame as wide as a reader's window, and writes what it finds into its own title. axe-core is a file:
the one that FAIRVEIL_AXE names, else the one that the package axe-playwright-python carries, which
`make` installs.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from chromium import axe, browser

MEASURE = """<!DOCTYPE html><meta charset="utf-8"><title>not measured</title>
<script>
const measure = frame => {{
  const inside = frame.contentDocument, root = inside.documentElement, wide = root.clientWidth;
  const shown = [...inside.querySelectorAll("svg")].filter(one => one.getClientRects().length);
  const scroller = one => one.closest(".scroll, pre") && one.tagName != "CAPTION";
  const beyond = [...inside.body.querySelectorAll("*")].filter(one => {{
    const box = one.getBoundingClientRect();
    return box.width && !scroller(one) && !one.closest(".skip") && (box.right > wide + 1 || box.left < -1);
  }});
  const letters = shown.flatMap(one => [...one.querySelectorAll("text")].map(text => {{
    const box = text.getBoundingClientRect(), frame = one.getBoundingClientRect();
    const scale = frame.width / one.viewBox.baseVal.width;
    return {{words: text.textContent, size: parseFloat(getComputedStyle(text).fontSize) * scale,
      out: box.left < frame.left - 1 || box.right > frame.right + 1 ||
        box.top < frame.top - 1 || box.bottom > frame.bottom + 1}};
  }}));
  document.title = JSON.stringify({{scroll: root.scrollWidth, client: wide, height: root.scrollHeight, figures: shown.length,
    beyond: beyond.map(one => one.tagName + "." + one.getAttribute("class")), letters: letters}});
}};
</script>
<iframe id="frame" onload="measure(this)" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>"""


AUDIT = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>not measured</title>
<script>
const measure = frame => {{
  const inside = frame.contentDocument, script = inside.createElement("script");
  script.textContent = {axe};
  inside.head.append(script);
  const painted = getComputedStyle(inside.body).backgroundColor;
  const letter = [...inside.querySelectorAll("svg text")].find(one => one.getClientRects().length);
  const ink = letter ? getComputedStyle(letter).fill : "";
  frame.contentWindow.axe.run(inside, {{resultTypes: ["violations"]}}).then(found => {{
    const where = one => one.nodes.slice(0, 3).map(node => node.html.slice(0, 90)).join(" | ");
    const told = found.violations.map(one => one.id + ": " + where(one));
    document.title = JSON.stringify({{wrong: told, rules: found.passes.length, painted: painted, ink: ink}});
  }});
}};
</script>
<iframe onload="measure(this)" title="page" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe></html>"""


Shoot = Callable[..., npt.NDArray[np.uint8]]
Look = Callable[[str, int], dict[str, Any]]
Audit = Callable[..., dict[str, Any]]


needs_browser = pytest.mark.skipif(
    browser() is None, reason="no Chromium on the path, and none named by FAIRVEIL_BROWSER"
)
needs_axe = pytest.mark.skipif(
    browser() is None or axe() is None,
    reason="no Chromium, or no axe-core: pip install --no-deps axe-playwright-python",
)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Chromium with a profile of its own, without network."""

    def run(*arguments: str) -> str:
        command = [
            *(
                str(browser()),
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
            *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=4000", *arguments),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return run


@pytest.fixture
def shoot(run: Callable[..., str], tmp_path: Path) -> Shoot:
    """A picture of a file: (rows, columns, 3)."""

    def shoot(file: Path, width: int, height: int, scale: float = 1.0) -> npt.NDArray[np.uint8]:
        picture = tmp_path / "picture.png"
        run(
            f"--screenshot={picture}",
            f"--window-size={width},{height}",
            f"--force-device-scale-factor={scale}",
            file.as_uri(),
        )
        image = pytest.importorskip(
            "PIL.Image", reason="Pillow, which matplotlib brings, reads the pictures"
        )
        with image.open(picture) as opened:
            return np.asarray(opened.convert("RGB"))

    return shoot


@pytest.fixture
def look(run: Callable[..., str], tmp_path: Path) -> Look:
    """What the page measures in a window of some width."""

    def look(page: str, width: int) -> dict[str, Any]:
        wrapper = tmp_path / "wrapper.html"
        wrapper.write_text(MEASURE.format(width=width, page=html.escape(page)), encoding="utf-8")
        dumped = run("--dump-dom", "--window-size=1600,1000", wrapper.as_uri())
        title = re.search(r"<title>(.*?)</title>", dumped, re.DOTALL)
        assert title, dumped[:500]
        measured: dict[str, Any] = json.loads(html.unescape(title.group(1)))
        return measured

    return look


@pytest.fixture
def audit(run: Callable[..., str], tmp_path: Path) -> Audit:
    """What axe-core says of a page in a window of some width."""

    def audit(page: str, width: int, *, dark: bool = False) -> dict[str, Any]:
        wrapper, script = tmp_path / "audit.html", axe()
        assert script is not None
        source = json.dumps(script.read_text("utf-8")).replace("</", "<\\/")
        wrapper.write_text(
            AUDIT.format(width=width, page=html.escape(page), axe=source), encoding="utf-8"
        )
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        asked = (
            "--dump-dom",
            "--window-size=1600,1000",
            "--virtual-time-budget=20000",
            scheme,
            wrapper.as_uri(),
        )
        titles = (re.search(r"<title>(.*?)</title>", run(*asked), re.DOTALL) for _ in range(5))
        # axe waits for timers of its own
        title = next((one for one in titles if one and one.group(1) != "not measured"), None)
        assert title, "the page was not measured in five runs of the browser"
        found: dict[str, Any] = json.loads(html.unescape(title.group(1)))
        return found

    return audit
