"""Parameters say what they take: a bare `Any` switches the type checker off. Frozen values are set
in one place alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from test_modules import modules

MOST_ANY = 0.01
"""Share of annotated parameters with a bare Any. Make it smaller when you replace some; never
larger."""
SETTERS = ("_checks", "privacy.noise.guarded")
"""`normalise` is for frozen values; a guarded generator refuses its own `__setattr__`."""


def test_few_parameters_are_any() -> None:
    found = [
        ast.unparse(one)
        for path in modules().values()
        for one in annotations(ast.parse(path.read_text("utf-8")))
    ]
    assert found.count("Any") / len(found) <= MOST_ANY, (
        "say what it takes; object, where anything is looked at"
    )


def test_frozen_values_are_set_in_one_place() -> None:
    found = [
        name for name, path in modules().items() if "object.__setattr__(" in path.read_text("utf-8")
    ]
    assert set(found) <= set(SETTERS), "call _checks.normalise in __post_init__"


def test_every_kind_of_parameter_is_counted() -> None:
    tree = ast.parse(
        "def f(a: Any, /, b: int, *c: Any, d: str, **e: Any) -> Any: ...\nasync def g(h: Any): ..."
    )
    assert [ast.unparse(one) for one in annotations(tree)] == [
        "Any",
        "int",
        "str",
        "Any",
        "Any",
        "Any",
    ]


def annotations(tree: ast.AST) -> Iterator[ast.expr]:
    """Those of all parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            yield from (
                one.annotation for one in every if one is not None and one.annotation is not None
            )
