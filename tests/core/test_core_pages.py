"""What the pages say of the trusted room: every condition has a line and a test that exist, every
file is in the order of reading."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import fairveil

ROOT = Path(__file__).parents[2]
ROOM = Path(fairveil.__file__).parent / "core"


def names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_every_condition_has_a_line_and_a_test() -> None:
    page = (ROOT / "docs/theory/conditions.md").read_text("utf-8")
    rows = re.findall(
        r"^\| .+ \| `(core/\w+\.py)` \| `(\w+)` \| `(\w+\.py)::(\w+)` \|$",
        page,
        re.MULTILINE,
    )
    assert len(rows) == page.count("\n| ") - 1 >= 15
    for file, where, test_file, test in rows:
        assert where in names(ROOM.parent / file), where
        (found,) = (ROOT / "tests").glob(f"c*/{test_file}")
        assert test in names(found), test


def test_every_file_is_in_the_order_of_reading_after_those_that_it_imports() -> None:
    page = (ROOT / "docs/review.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| .+ \| (.+) \|$", page, re.MULTILINE)
    order = [name for cells, _ in rows for name in re.findall(r"`(\w+)`", cells)]
    assert sorted(order) == sorted(path.stem for path in ROOM.glob("*.py") if path.stem[0] != "_")
    for place, name in enumerate(order):
        tree = ast.parse((ROOM / f"{name}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                used = [node.module] if node.module else [alias.name for alias in node.names]
                assert set(used) <= set(order[:place]), (name, used)
    for test in re.findall(r"`(tests/[\w/.]+\.py)`", page):
        assert (ROOT / test).exists(), test
