"""The site's configuration and list of pages are whole. `make docs` builds it; that takes minutes,
and is not done here."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SITE = ROOT / "docs" / "site"


@pytest.fixture(scope="module")
def pages() -> Any:
    sys.path.insert(0, str(SITE))
    try:
        import pages

        yield pages
    finally:
        sys.path.remove(str(SITE))


def test_every_page_is_in_one_section_of_the_site(pages: Any) -> None:
    listed = [page for names in pages.sections().values() for page in names]
    assert len(listed) == len(set(listed))
    there = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert there == {page for page in listed if "/" not in page}
    assert list(pages.sections()) == list(pages.SECTIONS.values())


def test_the_site_has_a_page_of_every_command_and_option(pages: Any) -> None:
    page = pages.commands.page()
    assert page.count("\n## fairveil ") >= 18
    for option in ("--epsilon", "--schema", "--out"):
        assert f"`{option}" in page
    assert "docs/commands.md" in pages.INNER.values()


def test_every_public_class_and_function_has_a_page_of_its_own(pages: Any) -> None:
    found = pages.public()
    places = [pages.place(room, name).lower() for room, names in found.items() for name in names]
    # on file systems that know no capital letters, too
    assert len(places) == len(set(places)) > 250
    for name in ("FairClassifier", "Frontier", "Ledger"):
        assert sum(name in names for names in found.values()) == 1
    assert ".. autoclass:: Ledger\n   :members:" in pages.object_page("fairveil.ledger", "Ledger")
    assert ".. autofunction:: current" in pages.object_page("fairveil.ledger", "current")


def test_every_public_name_is_at_home_on_one_page_or_linked(pages: Any) -> None:
    for room, names in pages.public().items():
        module = importlib.import_module(room)
        text = pages.room_page(room, names)
        for name in pages.named.names_of(module):
            if inspect.ismodule(getattr(module, name)):
                continue
            listed = text.count(f"\n{name} <{pages.place(room, name)}>\n")
            linked = text.count(f"\n- `{name}`: see [")
            assert listed + linked + text.count(f"\n## {name}\n") == 1, f"{room}.{name}"


def test_every_public_class_and_function_says_what_it_is(pages: Any) -> None:
    found = {
        (room, name): getattr(importlib.import_module(room), name)
        for room, names in pages.public().items()
        for name in names
    }
    assert [
        place for place, value in found.items() if not value.__doc__ or not value.__doc__.strip()
    ] == []


def test_what_is_staged_has_a_tree_that_reaches_every_page(pages: Any, tmp_path: Path) -> None:
    pages.stage(tmp_path / "staged")
    staged = tmp_path / "staged"
    reached, waiting = set(), [staged / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for tree in re.findall(
            r"^```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            for line in (
                one.strip() for one in tree.splitlines() if one.strip() and not one.startswith(":")
            ):
                name = line.partition("<")[2].rstrip(">") or line
                found = [page.parent / f"{name}{ending}" for ending in (".md", ".rst")]
                (target,) = [one for one in found if one.exists()] or (
                    [None] if name == "gallery/index" else []
                )
                if target is not None and target not in reached and target.suffix == ".md":
                    waiting.append(target)
                elif target is not None:
                    reached.add(target)
    every = {*staged.glob("*.md"), *(staged / "docs").rglob("*.md"), *(staged / "api").iterdir()}
    left_out = {staged / "README.md", staged / "docs" / "index.md"}
    assert {path.resolve() for path in every - left_out} == {path.resolve() for path in reached}


def test_every_example_is_in_the_gallery_with_a_heading(pages: Any, tmp_path: Path) -> None:
    pages.stage_gallery(tmp_path / "scripts")
    scripts = sorted((tmp_path / "scripts").glob("*.py"))
    assert {f"case_{path.name}" for path in (ROOT / "examples").glob("*.py")} < {
        path.name for path in scripts
    }
    for path in scripts:
        said = ast.get_docstring(ast.parse(path.read_text("utf-8")))
        assert said is not None
        title, line, *_ = said.splitlines()
        assert line == "=" * len(title), path.name


def test_the_tools_of_the_site_are_an_extra_and_pinned() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]["docs"]
    pins = {
        line.partition("==")[0].lower()
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    }
    names = {re.split(r"[>=<]", one)[0] for one in extra}
    assert names == {
        "sphinx",
        "myst-parser",
        "pydata-sphinx-theme",
        "numpydoc",
        "sphinx-gallery",
        "latex2mathml",
    }
    assert names <= pins


def test_the_configuration_loads_nothing_from_elsewhere() -> None:
    text = (SITE / "conf.py").read_text("utf-8")
    assert not re.findall(r"https?://(?!docs\.python|numpy\.org|scikit-learn\.org)", text)
    assert "mathjax" not in text
    assert "FAIRVEIL_INTERSPHINX" in text
    build = (SITE / "build.py").read_text("utf-8")
    assert '"-W"' in build
    assert "MOST_BYTES = 20_000_000" in build
