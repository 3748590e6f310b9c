"""Public names that are loaded when they are first asked for (PEP 562), so that importing the
library costs nothing."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from importlib.abc import InspectLoader
from importlib.util import find_spec


def lazily(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose public names live elsewhere.

    The names are those that the package imports in its block `if TYPE_CHECKING:`, which nobody
    runs: it is read from the package's source, so that one list serves people, type checkers and
    the program. A name that was asked for once is an ordinary attribute from then on.

    >>> getattr_, dir_, all_ = lazily("fairveil.facts")
    >>> "Schema" in all_, getattr_("Schema").__name__
    (True, 'Schema')
    """
    places = _typed_imports(package)

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = places[name]
        if home.strip("."):
            module = importlib.import_module(home, package)
            value: object = getattr(module, name, None)
            if value is None:  # a module of that package
                value = importlib.import_module(f"{home}.{name}", package)
        else:
            value = importlib.import_module(f"{home}{name}", package)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(set(vars(sys.modules[package])) | set(places))

    return get, names, sorted(places)


def _typed_imports(package: str) -> dict[str, str]:
    """The module of each name, relative to the package; for a module itself, dots alone."""
    spec = find_spec(package)
    assert spec is not None
    assert isinstance(spec.loader, InspectLoader)
    source = spec.loader.get_source(package)
    assert source is not None, f"{package} is installed without its source"
    return {
        alias.name: "." * node.level + (node.module or "")
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
