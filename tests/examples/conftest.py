"""Examples by name, run as a reader runs them, and where the benchmark files lie."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    named = os.environ.get("FAIRVEIL_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not (folder / "adult.data.gz").is_file():
        pytest.skip(f"no benchmark files in {folder}: set FAIRVEIL_DATA")
    return folder


@pytest.fixture(scope="session")
def example() -> Callable[[str], dict[str, Any]]:
    """An example's names."""
    return lambda name: runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


@pytest.fixture
def curves_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run an example's script, and give the words of its figure."""

    def run(name: str, *options: str) -> list[str]:
        script = ROOT / "examples" / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(script), *options, "--out", str(tmp_path)])
        runpy.run_path(str(script), run_name="__main__")
        (written,) = tmp_path.iterdir()
        assert written.name == f"{name}.svg"
        return [
            text
            for text in ElementTree.fromstring(written.read_text("utf-8")).itertext()
            if text.strip()
        ]

    return run
