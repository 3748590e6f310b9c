"""Reports for other libraries: each reproduction prints what its page shows, with the version that
the page names."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "upstream"
REPORTS = sorted(FOLDER.glob("*_*.md"))
BLOCK = re.compile(r"^```(?:python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VERSION = re.compile(
    r"^Versions?: .*?(dp-accounting|diffprivlib|fairlearn) ([\d.]+\d)", re.MULTILINE
)
SLOW = {"fairlearn_estimator_checks"}
PARTS = ("## Reproduction", "## Seen", "## Expected", "roposed mend")


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.stem)
def test_a_report_has_all_its_parts_and_stands_in_the_list(report: Path) -> None:
    text = report.read_text("utf-8")
    assert [part for part in PARTS if part not in text] == []
    assert VERSION.search(text)
    assert f"({report.name})" in (FOLDER / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "report", [one for one in REPORTS if one.stem not in SLOW], ids=lambda report: report.stem
)
def test_a_reproduction_prints_what_its_page_shows(report: Path) -> None:
    text = report.read_text("utf-8")
    named = VERSION.search(text)
    assert named
    code, shown = BLOCK.findall(text)[:2]
    if not code.startswith("# needs "):
        pytest.skip("it installs packages")
    try:
        importlib.import_module(named[1].replace("-", "_"))
    except ImportError:
        pytest.skip(f"{named[1]} does not import here")
    if importlib.metadata.version(named[1]) != named[2]:
        pytest.skip(f"{named[1]} is another version: run the reproduction, and mend the page")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == shown.strip()
