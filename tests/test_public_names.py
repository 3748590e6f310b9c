"""The public names: every one exists, is listed once, and means the same to a type checker."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from fairveil import curator
from fairveil.errors import RenamedParameter

PACKAGES = (
    "fairveil",
    "fairveil.privacy",
    "fairveil.privacy.importing",
    "fairveil.cards",
    "fairveil.compat",
    "fairveil.curator",
    "fairveil.data",
    "fairveil.displays",
    "fairveil.audit",
    "fairveil.estimators",
    "fairveil.export",
    "fairveil.study",
)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_listed_name_exists(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize(("old", "new"), curator.OLD_NAMES.items())
def test_an_old_name_works_and_says_the_new_one(old: str, new: str) -> None:
    for _ in range(2):  # it is never kept as an ordinary attribute, which would be silent
        with pytest.warns(RenamedParameter, match=f"curator.{old} is now .*curator.{new}"):
            assert getattr(curator, old) is getattr(curator, new)
    assert old not in curator.__all__


@pytest.mark.parametrize("package", PACKAGES)
def test_the_three_lists_agree(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) == set(module.PLACES) == set(_typed(module))
    assert set(module.PLACES) <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_are_told_the_same_place(package: str) -> None:
    module = importlib.import_module(package)
    assert _typed(module) == module.PLACES


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


def _typed(module: object) -> dict[str, str]:
    """name -> place, from the block `if TYPE_CHECKING:`."""
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))  # type: ignore[attr-defined]
    places: dict[str, str] = {}
    for block in tree.body:
        if (
            isinstance(block, ast.If)
            and isinstance(block.test, ast.Name)
            and block.test.id == "TYPE_CHECKING"
        ):
            for line in block.body:
                assert isinstance(line, ast.ImportFrom)
                for alias in line.names:
                    assert alias.asname == alias.name, "re-exports are spelled `name as name`"
                    places[alias.name] = "." * line.level + (line.module or alias.name)
    return places
