"""A schema to be filled in, as TOML with remarks: names and kinds, and a blank ("?") for each fact
that its holder knows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..facts.declared import BLANK
from ..facts.toml_text import value_text
from ..tables.raw import is_missing

MOST_LISTED = 50
READ = "read from the rows: public only if you know that it is"
REMARKS = {
    "kind": "number (add low and high), category (add values), boolean or ignored",
    "low": "smallest value that may occur, from public knowledge",
    "high": "largest value that may occur, from public knowledge",
    "values": 'every value that may occur, as in ["no", "yes"]',
}


@dataclass(frozen=True)
class Drafted:
    """One column: its options in order, the blank ones among them, and a remark on what was
    read."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    remark: str = ""


def blank(name: str, kind: str | None) -> Drafted:
    """A column of which the kind is known, or nothing."""
    if kind is None:
        return Drafted(name, {"kind": BLANK})
    more: tuple[str, ...] = {"number": ("low", "high"), "category": ("values",)}.get(kind, ())
    return Drafted(name, {"kind": kind, **dict.fromkeys(more, BLANK)})


def read(name: str, values: object) -> Drafted:
    """A column whose values are public: bounds and values as they stand there."""
    seen = np.asarray(values)
    if seen.dtype.kind == "b":
        return Drafted(name, {"kind": "boolean"}, READ)
    if seen.dtype.kind in "iuf":
        known = seen[np.isfinite(seen)] if seen.dtype.kind == "f" else seen
        low, high = (float(known.min()), float(known.max())) if len(known) else (math.nan, math.nan)
        if low < high:
            return Drafted(name, {"kind": "number", "low": low, "high": high}, READ)
        return Drafted(name, {"kind": BLANK}, "one value in all rows, or none")
    distinct = {value for value in seen.tolist() if not is_missing(value)}
    listed: Sequence[Any] = sorted(distinct, key=str)
    if 0 < len(listed) <= MOST_LISTED and all(
        isinstance(value, str | bool | int | float) for value in listed
    ):
        return Drafted(name, {"kind": "category", "values": list(listed)}, READ)
    return Drafted(
        name,
        {"kind": BLANK},
        f"{len(listed):,} distinct values: ignored, or a category of the frequent ones?",
    )


def blanks(columns: Sequence[Drafted], target: str | None, sensitive: Sequence[str]) -> int:
    """How many facts are to be filled in."""
    return (
        sum(list(one.options.values()).count(BLANK) for one in columns)
        + (target is None)
        + (not sensitive)
    )


def text(
    name: str,
    columns: Sequence[Drafted],
    target: str | None,
    sensitive: Sequence[str],
    rows: int | None,
    source: str,
) -> str:
    """The file."""
    return "\n".join(_lines(name, columns, target, sensitive, rows, source)) + "\n"


def _lines(
    name: str,
    columns: Sequence[Drafted],
    target: str | None,
    sensitive: Sequence[str],
    rows: int | None,
    source: str,
) -> Iterator[str]:
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)
    yield (
        f'# The public facts of {shown}. Fill in every "?" from public knowledge (a scale, a law, '
        f"a code book),"
    )
    yield "# never from the rows: privacy does not cover what is read from them."
    yield "fairveil_schema = 1"
    yield f"name = {value_text(name)}"
    yield f"source = {value_text(source)}" if source else '# source = "where these facts come from"'
    yield (
        f"rows = {rows}  # {READ}"
        if rows
        else "# rows = 10000  # about how many rows there are, if that is public"
    )
    yield f"target = {value_text(target or BLANK)}  # the column to predict"
    yield (
        f"sensitive = {value_text(list(sensitive) or [BLANK])}  # the columns that make the "
        f"groups; [] for none"
    )
    for one in columns:
        yield ""
        yield "[[columns]]" + (f"  # {one.remark}" if one.remark else "")
        yield f"name = {value_text(one.name)}"
        for option, value in one.options.items():
            yield f"{option} = {value_text(value)}" + (
                f"  # {REMARKS[option]}" if value == BLANK else ""
            )


def of_table(kinds: Mapping[str, str | None], values: Mapping[str, Any] | None) -> list[Drafted]:
    """A column each: by its kind, or by its values where those are public."""
    return [
        blank(name, kind) if values is None else read(name, values[name])
        for name, kind in kinds.items()
    ]
