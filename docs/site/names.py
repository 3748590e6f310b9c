"""Public names, room by room: what the site has a page for. Needs no Sphinx."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

ROOMS = (
    "fairveil",
    "fairveil.estimators",
    "fairveil.privacy",
    "fairveil.core.events",
    "fairveil.ledger",
    "fairveil.statement.importing",
    "fairveil.curator",
    "fairveil.fairness",
    "fairveil.metrics",
    "fairveil.fairness.objectives",
    "fairveil.models",
    "fairveil.show",
    "fairveil.facts",
    "fairveil.data",
    "fairveil.data.synthetic",
    "fairveil.audit",
    "fairveil.study",
    "fairveil.export",
    "fairveil.export.skops_files",
    "fairveil.export.mlflow_model",
    "fairveil.errors",
)


CORE = Path(__file__).parents[2] / "src" / "fairveil" / "core"
"""What other rooms hand on is often defined there."""


def names_of(room: ModuleType) -> list[str]:
    """Its `__all__`; without one, the classes and functions that it defines, in their order."""
    listed: list[str] | None = getattr(room, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(room).items()
        if not name.startswith("_") and is_from(value, room)
    ]


def is_from(value: object, room: ModuleType) -> bool:
    """Whether a class or function is defined in this very module."""
    return (
        inspect.isclass(value) or inspect.isfunction(value)
    ) and value.__module__ == room.__name__


def home_of(value: object, room: ModuleType) -> str:
    """The most particular room that a class or function is defined in; what is defined in none of
    them, and other values, are at home where they are listed."""
    where = (
        value.__module__ if inspect.isclass(value) or inspect.isroutine(value) else room.__name__
    )
    inside = [one for one in ROOMS[1:] if where == one or where.startswith(f"{one}.")]
    if inside:
        return max(inside, key=len)
    return next((one for one in ROOMS[1:] if _lists(one, value)), room.__name__)


def _lists(room: str, value: object) -> bool:
    module = importlib.import_module(room)
    return any(getattr(module, name) is value for name in names_of(module))


def constant(room: ModuleType, name: str) -> list[str]:
    """A constant or an alias of a type, from the source: the assignment, and the text below it."""
    folder = Path(str(room.__file__)).parent
    for path in [*sorted(folder.rglob("*.py")), *sorted(CORE.rglob("*.py"))]:
        source = path.read_text("utf-8")
        body = ast.parse(source).body
        for here, below in zip(body, [*body[1:], None], strict=True):
            targets = (
                here.targets
                if isinstance(here, ast.Assign)
                else [here.target]
                if isinstance(here, ast.AnnAssign)
                else []
            )
            named = [one for target in targets for one in ast.walk(target)]
            if any(isinstance(one, ast.Name) and one.id == name for one in named):
                text = (
                    below.value.value
                    if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
                    else ""
                )
                return [
                    fenced(str(ast.get_source_segment(source, here))),
                    f"{paragraph(str(text))}\n".lstrip("\n"),
                ]
    raise LookupError(f"{room.__name__}.{name} is assigned in no module of {folder}")


def fenced(text: str) -> str:
    """A block that is shown and not run."""
    return f"```text\n{text}\n```\n"


def sentence_of(room: ModuleType) -> str:
    """What a package says of itself, in one line, without the place in the order of imports."""
    said = re.sub(r"^Ring \d: ", "", " ".join(paragraph(inspect.getdoc(room)).split()))
    return said[:1].upper() + said[1:]


def paragraph(doc: str | None) -> str:
    """The first paragraph, its line breaks as they are."""
    return (doc or "").strip().split("\n\n")[0]
