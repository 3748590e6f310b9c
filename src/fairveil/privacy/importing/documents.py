"""What another library spent, as a JSON document: written by `Imported.write`, or by a script where
Fairveil is not installed.

| field | holds |
|---|---|
| `format`, `version` | "fairveil-import", 1 |
| `neighbours`, `rows_per_person` | as the importers take them |
| one of `event`, `opacus`, `dp_accounting` | an event of Fairveil; or what that library spent |
| `library`, `notes`, `secure_noise` | optional: a name, sentences, true or false |

`opacus`: {"history": [[multiplier, rate, steps], ...], "sampling": "poisson"}, or "shuffled" with
"passes". `dp_accounting`: {"event": {"class_name": "GaussianDpEvent", ...}, "multipliers": "norm"}.

Guarantees (tests/privacy/importing/test_importing_rows.py):
1. What `Imported.write` wrote reads back as the same.
2. A document that is malformed is refused with a typed error, whatever is in it; fields that are
   not known are refused.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from ..._json import Document, Node
from ..._reading import read_text
from ...core.events import from_dict
from .dp_events import from_dp_event
from .imported import FORMAT, FORMAT_VERSION, Imported
from .opacus import from_opacus

MOST_BYTES = 1 << 26
KINDS = ("event", "opacus", "dp_accounting")
DOCUMENT = Document(
    "the import",
    "Write it with Imported.write, or see the page on other libraries.",
    largest=MOST_BYTES,
)


def read_import(path: str | os.PathLike[str]) -> Imported:
    """A document of what was spent elsewhere."""
    return parse_import(read_text(path, what="an import, as JSON", most=MOST_BYTES))


def parse_import(text: str) -> Imported:
    """The same, of the text."""
    node = DOCUMENT.node(text)
    node.only(
        ("format", "version", "neighbours", "rows_per_person"),
        (*KINDS, "library", "notes", "secure_noise"),
    )
    node["format"].one_of((FORMAT,))
    node["version"].whole(at_least=FORMAT_VERSION, at_most=FORMAT_VERSION)
    given = [kind for kind in KINDS if kind in node.mapping()]
    if len(given) != 1:
        DOCUMENT.refuse(f"one of {', '.join(KINDS)}", ", ".join(given) or "none")
    found = _spent(given[0], node)
    if "notes" in node.mapping():
        found = replace(found, notes=(*node["notes"].texts(), *found.notes))
    return found


def _spent(kind: str, node: Node) -> Imported:
    inner, known = node[kind], node.mapping()
    asked: dict[str, Any] = {
        "neighbours": node["neighbours"].text(),
        "rows_per_person": node["rows_per_person"].whole(at_least=1),
        "secure_noise": node["secure_noise"].truth() if "secure_noise" in known else False,
    }
    named = node["library"].text() if "library" in known else None
    if kind == "event":
        library = "another library" if named is None else named
        return Imported.of(from_dict(inner.value), library=library, **asked)
    read = {"opacus": _of_opacus, "dp_accounting": _of_dp_event}
    found = read[kind](inner, asked)
    if named is None:
        return found
    return Imported.of(
        found.events,
        found.neighbours,
        named,
        rows_per_person=1,
        notes=found.notes,
        secure_noise=found.secure_noise,
    )


def _of_opacus(inner: Node, asked: dict[str, Any]) -> Imported:
    inner.only(("history", "sampling"), ("passes",))
    passes = inner["passes"].whole() if "passes" in inner.mapping() else None
    history, sampling = (
        [one.numbers(length=3) for one in inner["history"].list()],
        inner["sampling"].text(),
    )
    steps = [
        (z, rate, one.list()[2].whole())
        for (z, rate, _), one in zip(history, inner["history"].list(), strict=True)
    ]
    return from_opacus(steps, sampling=sampling, passes=passes, **asked)


def _of_dp_event(inner: Node, asked: dict[str, Any]) -> Imported:
    inner.only(("event",), ("multipliers",))
    over = inner["multipliers"].text() if "multipliers" in inner.mapping() else "norm"
    return from_dp_event(inner["event"].mapping(), multipliers=over, **asked)
