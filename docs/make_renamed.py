"""Write the table of moved parameters in docs/renamed.md from the estimators: python
docs/make_renamed.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import fairveil as fv

PAGE = Path(__file__).with_name("renamed.md")
HEAD = "| estimator | old name | where it is now |\n|---|---|---|\n"


def table() -> str:
    """One line a name."""
    found: list[Any] = [
        getattr(fv, name) for name in fv.__all__ if getattr(getattr(fv, name), "RENAMED", None)
    ]
    lines = [
        f"| `{one.__name__}` | `{old}=` | `{place}` |\n"
        for one in found
        for old, place in one.RENAMED.items()
    ]
    return HEAD + "".join(lines)


def written(text: str) -> str:
    """The page with the present table."""
    return re.sub(
        r"(<!-- renamed: begin -->\n).*?(<!-- renamed: end -->)",
        rf"\1{table()}\2",
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
