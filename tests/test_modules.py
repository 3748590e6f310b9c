"""No module is long, the middle one is short, and no two import each other."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "src"
LONGEST, MIDDLE = 400, 145
MOST_LOOKUPS, MOST_OPTIONAL = 85, 40
"""Calls of getattr: all, and those of a fixed name with a default. Make them smaller, never
larger."""


def test_no_module_is_long() -> None:
    long = {name for name, text in texts().items() if size_of(text) > LONGEST}
    assert not long, "take it apart by what it says, not by its length"


def test_the_middle_module_is_short() -> None:
    assert statistics.median(map(size_of, texts().values())) <= MIDDLE


def test_no_modules_import_each_other() -> None:
    """Types and imports inside functions are counted."""
    assert not circles(imports()), (
        "the lower of them should not know the other: hand in what it needs, or move what both "
        "share"
    )


def test_few_attributes_are_looked_up() -> None:
    """An attribute that a class of ours may lack is declared with what stands there: a field, a
    class attribute, `facts.rows.Traits`, `FittedParts`, a parameter in `get_params`."""
    calls = [one for text in texts().values() for one in lookups(ast.parse(text))]
    optional = [
        one for one in calls if len(one.args) == 3 and isinstance(one.args[1], ast.Constant)
    ]
    assert len(calls) <= MOST_LOOKUPS, "name the attribute, or list the values"
    assert len(optional) <= MOST_OPTIONAL, "of objects of other libraries alone: declare a default"


@pytest.mark.parametrize(
    ("text", "size"),
    [("a = 1\n", 1), ('class A:\n    """B.\n\n    Parameters\n    ----------\n    """\n', 1)],
)
def test_pages_of_parameters_are_no_code(text: str, size: int) -> None:
    assert size_of(text) == size


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [("a", "b", "c")]


def test_a_lookup_is_found() -> None:
    tree = ast.parse('getattr(a, b)\na.getattr(b)\nf(getattr(a, "b", None))')
    assert [ast.unparse(one) for one in lookups(tree)] == [
        "getattr(a, b)",
        "getattr(a, 'b', None)",
    ]


def lookups(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            yield node


def size_of(text: str) -> int:
    """Lines, but for docstrings with numpydoc sections: they are pages of the reference, a line or
    more a parameter."""
    named = (ast.ClassDef, ast.FunctionDef)
    described = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, named) and ast.get_docstring(node)
    )
    docs = (node.body[0] for node in described if "\n-----" in (ast.get_docstring(node) or ""))
    return len(text.splitlines()) - sum((doc.end_lineno or 0) - doc.lineno + 1 for doc in docs)


def texts() -> dict[str, str]:
    return {name: path.read_text("utf-8") for name, path in modules().items()}


def modules() -> dict[str, Path]:
    """Every module by its name inside the library."""
    root = SOURCES / "fairveil"
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for path in sorted(root.rglob("*.py"))
    }


def imports() -> dict[str, set[str]]:
    """What each module imports; the doors of packages, which only hand names out, are left out."""
    found = modules()
    graph: dict[str, set[str]] = {name: set() for name in found if not name.endswith("__init__")}
    for name in graph:
        package = name.split(".")[:-1]
        for node in ast.walk(ast.parse(found[name].read_text("utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            start = [
                *package[: len(package) - node.level + 1],
                *(node.module.split(".") if node.module else []),
            ]
            targets = {".".join(start), *(".".join([*start, alias.name]) for alias in node.names)}
            graph[name] |= {target for target in targets if target in graph and target != name}
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """The sets of modules that reach each other."""
    reached = {name: _reached(graph, name) for name in graph}
    together = {
        name: tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
    }
    return sorted({circle for circle in together.values() if len(circle) > 1})


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [*graph[start]]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += graph[name]
    return seen
