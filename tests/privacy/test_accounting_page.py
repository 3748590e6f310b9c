"""The theory page's code runs, and every event has its row."""

from __future__ import annotations

import re
from pathlib import Path

from fairveil.core.events import KINDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "accounting.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs_and_checks_itself() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) >= 5
    scope: dict[str, object] = {}
    for block in blocks:
        assert "assert" in block
        exec(compile(block, "docs/accounting.md", "exec"), scope)


def test_every_event_is_on_the_page() -> None:
    for event in KINDS.values():
        if event.__name__ not in ("Composed", "Repeated"):
            assert f"`{event.__name__}" in PAGE
