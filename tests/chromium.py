"""Where Chromium and axe-core are, for tests and for the site (`docs/site/browser.py`)."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def browser() -> str | None:
    """A Chromium: the one that FAIRVEIL_BROWSER names, else one on the path."""
    named = os.environ.get("FAIRVEIL_BROWSER")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


def axe() -> Path | None:
    """The script: the one that FAIRVEIL_AXE names, else the one that the package brings."""
    if named := os.environ.get("FAIRVEIL_AXE"):
        return Path(named)
    spec = find_spec("axe_playwright_python")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return next(
        (file for folder in folders if (file := Path(folder) / "axe.min.js").is_file()), None
    )
