"""Figures of the gallery: drawings that a script writes as SVG beside itself; and what its scripts
are told."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

NEEDS = {
    "case_grants": "adult.data",
    "case_odds_by_thresholds": "adult.data",
    "case_imbalanced_classes": "law_school.csv",
}
ROWS = {
    "case_grants": 6_000,
    "case_odds_by_thresholds": 12_000,
    "case_imbalanced_classes": 6_000,
    "case_powerful_test": 20_000,
}


def left_out() -> str:
    """A pattern of the scripts whose data are not here: their pages show code alone."""
    folder = Path(os.environ.get("FAIRVEIL_DATA") or ".")
    missing = [
        script
        for script, file in NEEDS.items()
        if not any((folder / name).is_file() for name in (file, f"{file}.gz"))
    ]
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
