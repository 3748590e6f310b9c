"""Writes docs/api.md, the list of public names, from the code. Run `python docs/make_api.py` after changing one."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import re
from pathlib import Path
from types import ModuleType
from typing import Any

ROOMS = (
    "fairveil",
    "fairveil.estimators",
    "fairveil.privacy",
    "fairveil.privacy.events",
    "fairveil.privacy.ledger",
    "fairveil.privacy.importing",
    "fairveil.curator",
    "fairveil.fairness",
    "fairveil.metrics",
    "fairveil.fairness.objectives",
    "fairveil.models",
    "fairveil.figures",
    "fairveil.displays",
    "fairveil.facts",
    "fairveil.data",
    "fairveil.data.synthetic",
    "fairveil.audit",
    "fairveil.report",
    "fairveil.study",
    "fairveil.export",
    "fairveil.cards",
    "fairveil.compat.fairlearn",
    "fairveil.compat.aif360",
    "fairveil.compat.hugging_face",
    "fairveil.compat.skops_files",
    "fairveil.compat.mlflow_model",
    "fairveil.errors",
)
PAGE = Path(__file__).with_name("api.md")
WIDTH = 110
CITED = re.compile(r"(?<![(/])theory\.md#([\w-]+(?:, #[\w-]+)*)")
HEAD = """# Public names

What each room hands out: signatures, and the first paragraph of each docstring; `help(name)` shows the rest. Names that are not
here may change without notice. A room's ring says what it may import: see [architecture](architecture.md). Links to the
[theory](theory.md) lead to a row of its table of claims: a proof, a module and a test.

This page is written by `python docs/make_api.py`; a test compares it with the code.
"""


def page() -> str:
    """The whole page. The same code gives the same text: no addresses, no order of sets."""
    rooms = [importlib.import_module(room) for room in ROOMS]
    contents = "\n".join(f"- [{room}](#{anchor(room)})" for room in ROOMS)
    text = "\n".join((HEAD, contents, *map(section, rooms)))
    text = CITED.sub(lambda found: ", ".join(f"[{name}](theory.md#{name})" for name in found[1].split(", #")), text)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def names_of(room: ModuleType) -> list[str]:
    """Its `__all__`; without one, the classes and functions that it defines, in their order."""
    listed: list[str] | None = getattr(room, "__all__", None)
    if listed is not None:
        return list(listed)
    return [name for name, value in vars(room).items() if not name.startswith("_") and is_from(value, room)]


def is_from(value: object, room: ModuleType) -> bool:
    """Whether a class or function is defined in this very module."""
    return (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__ == room.__name__


def section(room: ModuleType) -> str:
    """One room."""
    entries = (entry(room, name) for name in names_of(room))
    return "\n".join((f"\n## {room.__name__}\n", f"{paragraph(inspect.getdoc(room))}\n", *entries))


def entry(room: ModuleType, name: str) -> str:
    """One name: where it is defined in another room of this page, a link to it there."""
    value = getattr(room, name)
    if inspect.ismodule(value):
        here = value.__name__ in ROOMS
        shown = f"[`{name}`](#{anchor(value.__name__)})" if here else f"`{name}`"
        return f"- {shown} (module): {on_one_line(paragraph(inspect.getdoc(value)))}"
    home = home_of(value, room)
    if home != room.__name__:
        return f"- `{name}`: see [{home}.{name}](#{anchor(f'{home}.{name}')})"
    lines = [f"\n### {room.__name__}.{name}\n"]
    if inspect.isclass(value):
        lines += [fenced(class_signature(name, value)), paragraph(inspect.getdoc(value)), "", *members(value)]
    elif inspect.isroutine(value):
        lines += [fenced(signature(name, value)), paragraph(inspect.getdoc(value)), ""]
    else:
        lines += constant(room, name)
    return "\n".join(lines)


def home_of(value: object, room: ModuleType) -> str:
    """The most particular room that a class or function is defined in; other values are at home where they are listed."""
    where = value.__module__ if inspect.isclass(value) or inspect.isroutine(value) else room.__name__
    homes = [one for one in ROOMS if where == one or where.startswith(f"{one}.")]
    return max((one for one in homes if one != "fairveil" or room.__name__ == "fairveil"), key=len)


def members(kind: type) -> list[str]:
    """Public methods and properties that the class itself defines and describes, and those of a base that is only its own."""
    lines = []
    owned = [base for base in kind.__mro__[:0:-1] if f"Abstract: see `{kind.__name__}`" in (base.__doc__ or "")]
    for name, member in itertools.chain(*(vars(one).items() for one in (*owned, kind))):
        inside = ("fget", "func", "__func__")  # of a property, a cached one, a static or class method
        function = next((getattr(member, part) for part in inside if hasattr(member, part)), member)
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        called = f"{kind.__name__}.{name}" if isinstance(member, staticmethod | classmethod) else name
        shown = name if isinstance(member, property | functools.cached_property) else signature(called, function, width=None)
        lines.append(f"- `{shown}`: {on_one_line(paragraph(inspect.getdoc(function)))}")
    return [*lines, ""] if lines else []


def class_signature(name: str, kind: type) -> str:
    """How an instance is made; only the name where none can be, or where it is an error."""
    if inspect.isabstract(kind) or getattr(kind, "_is_protocol", False):
        return f"class {name}"
    if issubclass(kind, BaseException):
        return f"class {name}({', '.join(base.__name__ for base in kind.__bases__)})"
    return f"class {signature(name, kind)}"


def signature(name: str, function: Any, width: int | None = WIDTH) -> str:
    """The call as it is written; one parameter a line where it is longer than `width`."""
    found = inspect.signature(function)
    parts = parameters(function, list(found.parameters.values()))
    result = found.return_annotation
    arrow = "" if inspect.isclass(function) or result is inspect.Signature.empty else f" -> {written(result)}"
    line = f"{name}({', '.join(parts)}){arrow}"
    return (
        line
        if width is None or len(line) <= width
        else "\n    ".join((f"{name}(", *(f"{part}," for part in parts))) + f"\n){arrow}"
    )


def parameters(function: Any, given: list[inspect.Parameter]) -> list[str]:
    """Each parameter as it is written, with the marks `/` and `*`. Those that begin with an underscore are not for callers."""
    parts: list[str] = []
    starred = False
    for parameter in given:
        if parameter.name.startswith("_") or parameter.name in ("self", "cls"):
            continue
        options = typed_options(function, parameter)
        if (parameter.kind is parameter.KEYWORD_ONLY or options) and not starred:
            parts.append("*")
            starred = True
        if options:
            parts += options
            continue
        mark = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        starred = starred or mark == "*"
        note = "" if parameter.annotation is parameter.empty else f": {written(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {shown_default(parameter.default)}"
        parts.append(mark + parameter.name + note + default)
    return parts


def typed_options(function: Any, parameter: inspect.Parameter) -> list[str]:
    """The keywords that `**options: Unpack[SomeTypedDict]` stands for."""
    note = written(parameter.annotation)
    if not note.startswith("Unpack["):
        return []
    fields = function.__globals__[note.removeprefix("Unpack[").removesuffix("]")].__annotations__
    return [f"{name}: {getattr(kind, '__forward_arg__', kind)} = ..." for name, kind in fields.items()]


def written(annotation: Any) -> str:
    """A type as it stands in the source, where annotations are kept as text."""
    if isinstance(annotation, str):
        return annotation
    return getattr(annotation, "__name__", str(annotation))


def shown_default(value: object) -> str:
    """A default that prints the same in every run."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(value)!r})"
    text = repr(value)
    return "..." if text.startswith("<") else text


def constant(room: ModuleType, name: str) -> list[str]:
    """A constant or an alias of a type, from the source: the assignment, and the text below it."""
    folder = Path(str(room.__file__)).parent
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text("utf-8")
        body = ast.parse(source).body
        for here, below in zip(body, [*body[1:], None], strict=True):
            targets = here.targets if isinstance(here, ast.Assign) else [here.target] if isinstance(here, ast.AnnAssign) else []
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
                return [fenced(str(ast.get_source_segment(source, here))), f"{paragraph(str(text))}\n".lstrip("\n")]
    raise LookupError(f"{room.__name__}.{name} is assigned in no module of {folder}")


def fenced(text: str) -> str:
    """A block that is shown and not run."""
    return f"```text\n{text}\n```\n"


def paragraph(doc: str | None) -> str:
    """The first paragraph, its line breaks as they are."""
    return (doc or "").strip().split("\n\n")[0]


def on_one_line(text: str) -> str:
    """Without line breaks, for an item of a list."""
    return " ".join(text.split())


def anchor(heading: str) -> str:
    """What a heading is linked by."""
    return heading.lower().replace(".", "")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
