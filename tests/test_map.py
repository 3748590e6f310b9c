"""The drawn map of docs/architecture.md is what the imports say, and its walk goes by functions
that exist."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE: dict[str, Any] = runpy.run_path(str(DOCS / "make_map.py"))
AGAIN = "run: python docs/make_map.py"


@pytest.mark.parametrize("name", ["rooms", "walk"])
def test_the_drawing_is_what_the_sources_say(name: str) -> None:
    assert (DOCS / f"{name}.svg").read_text("utf-8") == MADE[name](), AGAIN


def test_the_table_of_sub_rooms_is_what_they_say() -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    assert page == MADE["page"](page), AGAIN


@pytest.mark.parametrize(("path", "called"), [(path, called) for path, called, _ in MADE["WALK"]])
def test_every_step_of_the_walk_exists(path: str, called: str | None) -> None:
    tree: Any = ast.parse((ROOT / "src" / "fairveil" / path).read_text("utf-8"))
    for name in () if called is None else called.split("."):
        (tree,) = (
            node
            for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name
        )


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_modules_that_a_page_names_exist(page: str) -> None:
    """Every `room/module.py` or `room/sub-room` in the text."""
    named = set(
        re.findall(r"`((?:[a-z_]+/)+[a-z_]+(?:\.py|\.md)?)`", (ROOT / page).read_text("utf-8"))
    )
    bases = (ROOT / "src" / "fairveil", ROOT / "src", ROOT)
    assert len(named) > 15
    assert not [
        name
        for name in named
        if not any((base / name).exists() or (base / f"{name}.py").exists() for base in bases)
    ]


def test_each_of_the_ten_tasks_names_rooms_files_and_a_test_that_exist() -> None:
    """Files of the middle column lie in the rooms beside them; tests in the last one."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = re.findall(r"^\| (?!task|--)([^|]+) \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    assert len(rows) == 10
    for task, where, test in rows:
        rooms = re.findall(r"`([\w/]+)`", where.replace("/`", "`"))
        files = re.findall(r"`(\w+\.py)`", where)
        homes = [ROOT / "src" / "fairveil" / room for room in rooms]
        assert rooms, task
        assert all(any((home / file).exists() for home in homes) for file in files), task
        known = [home for home in homes if home.is_dir()]
        assert len(known) == len(homes) or any(
            (home / room).is_dir() for home in known for room in rooms
        ), task
        assert all((ROOT / name).exists() for name in re.findall(r"`(tests/[\w/.]+)`", test)), task
