"""Figures of the gallery: drawings that a script writes as SVG beside itself; and what its scripts
are told."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from fairveil.data import get
from fairveil.errors import DataNotFoundError

NEEDS = {
    "case_grants": "adult",
    "case_odds_by_thresholds": "adult",
    "case_imbalanced_classes": "law_school",
}
ROWS = {
    "case_grants": 6_000,
    "case_odds_by_thresholds": 12_000,
    "case_imbalanced_classes": 6_000,
    "case_powerful_test": 20_000,
}


def left_out() -> str:
    """A pattern of the scripts whose data are not here: their pages show code alone."""
    missing = []
    for script, name in NEEDS.items():
        try:
            get(name)
        except DataNotFoundError:
            missing.append(script)
    return "|".join((r"__init__\.py", *map(re.escape, missing)))


def few_rows(conf: Any, script_vars: dict[str, Any]) -> list[str]:
    """The script's arguments: enough rows for a picture."""
    rows = ROWS.get(Path(script_vars["src_file"]).stem)
    return [] if rows is None else ["--rows", str(rows)]


def drawn(block: Any, block_vars: dict[str, Any], conf: dict[str, Any]) -> str:
    """Every SVG that lies in the script's folder now, moved to the site's images."""
    from sphinx_gallery.scrapers import figure_rst

    found = []
    for path in sorted(Path.cwd().glob("*.svg")):
        place = Path(next(block_vars["image_path_iterator"])).with_suffix(".svg")
        shutil.move(path, place)
        found.append(str(place))
    return figure_rst(found, conf["src_dir"])
