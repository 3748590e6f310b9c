"""What a curator takes as public, for its statement: each fact with where it came from."""

from __future__ import annotations

from collections.abc import Iterable

from ...statement.check import READ_FROM_DATA
from ...statement.document import Origin, PublicFact
from .rows import Rows


def public_facts(
    rows: Rows, public_rows: int | None, given: Iterable[PublicFact]
) -> tuple[PublicFact, ...]:
    """The caller's own facts, then the rows' classes, groups, weight cap and public number, unless
    the caller named them."""
    out = list(given)
    known = {fact.name for fact in out}

    def add(name: str, value: str, origin: Origin) -> None:
        if name not in known:
            out.append(PublicFact(name, value, origin))

    stated: Origin = "schema" if rows.has_schema else "argument"
    if rows.layout.classes is not None:
        add(
            "classes",
            _listed(rows.layout.classes),
            READ_FROM_DATA if "classes" in rows.read_from_data else stated,
        )
    for name, values in zip(rows.layout.sensitive_names, rows.layout.sensitive, strict=True):
        add(
            f"groups of {name}",
            _listed(values),
            READ_FROM_DATA if "groups" in rows.read_from_data else stated,
        )
    if public_rows is not None:
        add("number of rows", str(public_rows), "argument")
    if rows.weighted:
        add("largest sample weight", f"{rows.max_sample_weight:g}", "argument")
    return tuple(out)


def _listed(values: Iterable[object]) -> str:
    text = ", ".join("".join(c if c.isprintable() else "?" for c in str(value)) for value in values)
    return text.strip() or "one without a name"
