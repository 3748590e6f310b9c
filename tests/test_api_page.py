"""docs/api.md is what docs/make_api.py writes, in every run, and leaves no public name out."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"
TO_DO = "docs/api.md is not what the code says: run `python docs/make_api.py`"


@pytest.fixture(scope="module")
def maker() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "make_api.py"))


def test_the_page_is_what_the_code_says(maker: dict[str, Any]) -> None:
    assert (DOCS / "api.md").read_text("utf-8") == maker["page"](), TO_DO


def test_every_public_name_is_described_once_or_linked(maker: dict[str, Any]) -> None:
    sections = re.split(r"^## ", maker["page"](), flags=re.MULTILINE)[1:]
    found = {text.partition("\n")[0]: text for text in sections}
    assert list(found) == list(maker["ROOMS"])
    for room, text in found.items():
        for name in maker["names_of"](importlib.import_module(room)):
            described = text.count(f"\n### {room}.{name}\n")
            linked = len(re.findall(rf"^- \[?`{name}`", text, re.MULTILINE))
            assert described + linked == 1, f"{room}.{name}"


def test_every_public_class_and_function_says_what_it_is(maker: dict[str, Any]) -> None:
    silent = re.findall(r"^### (\S+)\n\n```text\n(?:class |\w+\()[^`]*```\n\n(?=#|- |\Z)", maker["page"](), re.MULTILINE)
    assert not silent


@pytest.mark.parametrize("seed", ["1"])  # beside the run's own
def test_the_page_does_not_depend_on_the_run(seed: str, maker: dict[str, Any]) -> None:
    code = "import runpy, sys; sys.stdout.buffer.write(runpy.run_path(sys.argv[1])['page']().encode())"
    done = subprocess.run(
        [sys.executable, "-c", code, str(DOCS / "make_api.py")],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    text = done.stdout.decode()
    assert text == maker["page"]()
    assert not re.search(r"0x[0-9a-f]{6}|<(function|class|object)", text)


def test_signatures_are_written_out(maker: dict[str, Any]) -> None:
    signature: Callable[..., str] = maker["signature"]

    def short(a: int, *, b: str = "x", _c: int = 0) -> bool:
        return bool(a and b and _c)

    assert signature("short", short) == "short(a: int, *, b: str = 'x') -> bool"
    assert signature("short", short, width=10) == "short(\n    a: int,\n    *,\n    b: str = 'x',\n) -> bool"

    def unordered(chosen: frozenset[str] = frozenset({"sensitive", "label", "features"})) -> None:
        del chosen

    assert "frozenset(['features', 'label', 'sensitive'])" in signature("unordered", unordered)
