"""The trusted room stands alone: it imports nothing else of the library, little from outside, and
stays small enough to be read."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fairveil

ROOM = Path(fairveil.__file__).parent / "core"
MOST_LINES = 13_900
OUTSIDE = {"numpy", "scipy", "numba"}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = node.args[0]
            assert isinstance(named, ast.Constant), "a computed name"
            yield str(named.value)


def test_it_imports_nothing_else_of_the_library_and_little_from_outside() -> None:
    files = sorted(ROOM.rglob("*.py"))
    assert len(files) > 8
    for path in files:
        depth = len(path.relative_to(ROOM).parts)
        outside = OUTSIDE | ({"torch"} if path.match("extra/torch_*.py") else set())
        for name in imported(path):
            first, dots = name.split(".")[0], len(name) - len(name.lstrip("."))
            inside = 0 < dots <= depth
            assert inside or first in outside or first in sys.stdlib_module_names, (path, name)


def test_loading_all_of_it_loads_no_other_room() -> None:
    program = (
        "import importlib, pathlib, sys\n"
        "import fairveil.core as core\n"
        "for path in sorted(pathlib.Path(core.__path__[0]).glob('*.py')):\n"
        "    if path.stem != '__init__': importlib.import_module(f'fairveil.core.{path.stem}')\n"
        "print(*(name for name in sys.modules if name.startswith('fairveil.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    others = {name.split(".")[1] for name in done.stdout.split()} - {"core"}
    assert not {"statement", "ledger", "facts"} & others
    assert others <= {"_lazy"}  # of the package itself, which hands its names out


def test_it_can_be_read_in_two_days() -> None:
    assert sum(len(path.read_text("utf-8").splitlines()) for path in ROOM.rglob("*.py")) <= (
        MOST_LINES
    )
