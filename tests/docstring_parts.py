"""Docstrings after numpydoc, taken apart: summary, sections, entries. It needs the standard library
alone."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ORDER = (
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
)
"""Sections in the order of numpydoc, of those that are used here."""

LISTS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
"""Sections of entries: a line of name and type, and below it an indented text."""


@dataclass(frozen=True)
class Entry:
    """One parameter or attribute: its name, its type without the default, the default as it is
    written, and the text."""

    name: str
    kind: str
    default: str | None
    text: str


@dataclass(frozen=True)
class Parts:
    """A docstring: first line, further text, and the sections as they follow each other."""

    first: str
    more: str
    sections: tuple[tuple[str, str], ...]

    def section(self, title: str) -> str:
        """The text of a section; empty where there is none."""
        return dict(self.sections).get(title, "")

    def entries(self, title: str) -> list[Entry]:
        """What a section lists."""
        return list(entries(self.section(title)))

    @property
    def prose(self) -> str:
        """Everything that is read as sentences: no types, no names of papers, no code."""
        listed = [entry.text for title in LISTS for entry in self.entries(title)]
        return "\n\n".join((self.first, self.more, *listed, self.section("Notes")))


def parts(doc: str) -> Parts:
    """A docstring, cleaned and taken apart."""
    text = inspect.cleandoc(doc)
    found = list(re.finditer(r"^(\S[^\n]*)\n(-{3,})\n", text, re.MULTILINE))
    head = text[: found[0].start()] if found else text
    ends = [*(match.start() for match in found), len(text)][1:]
    sections = tuple(
        (match[1], text[match.end() : end].strip("\n"))
        for match, end in zip(found, ends, strict=False)
    )
    first, _, more = head.partition("\n")
    return Parts(first.strip(), more.strip(), sections)


def entries(section: str) -> Iterator[Entry]:
    """The entries of a section; text that stands in none is an entry without a name."""
    for block in re.split(r"\n(?=\S)", section):
        if not block.strip():
            continue
        head, _, text = block.partition("\n")
        name, colon, kind = head.partition(" : ")
        kind, _, default = kind.partition(", default=") if colon else ("", "", "")
        yield Entry(name.strip(), kind.strip(), default.strip() or None, " ".join(text.split()))


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that this library writes for a class, inherited ones too: their
    names and functions."""
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        # of a property, a cached one, a static or class method, one that may lack
        inside = ("fget", "func", "__func__", "fn")
        function = next((getattr(member, part) for part in inside if hasattr(member, part)), member)
        function = inspect.unwrap(function) if callable(function) else function
        if (
            not name.startswith("_")
            and inspect.isfunction(function)
            and function.__module__.startswith("fairveil.")
        ):
            yield name, function


def is_property(kind: type, name: str) -> bool:
    """Whether a name of a class is read, not called."""
    return isinstance(inspect.getattr_static(kind, name), property | functools.cached_property)


def parameters(function: Any) -> list[inspect.Parameter]:
    """What a caller may pass."""
    given = inspect.signature(function).parameters.values()
    return [
        one for one in given if one.name not in ("self", "cls") and not one.name.startswith("_")
    ]


def starred(parameter: inspect.Parameter) -> str:
    """Its name as a docstring has it."""
    return {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(
        parameter.kind, ""
    ) + parameter.name
