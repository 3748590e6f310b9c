"""Ids of two tables that are joined: read alike, and each there once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import JoinError
from ..tables.raw import Listed, Raw, is_missing

SHOWN = 5


def ids_of(raw: Raw, of: str, column: str, first: int) -> list[str]:
    """Ids as texts: guarantee 2."""
    if isinstance(raw, Listed):
        texts = [_text(value) for value in raw.values]
        found = [texts[at] if at >= 0 else None for at in raw.at.tolist()]
    else:
        found = [_text(value) for value in raw.values.tolist()]
        if raw.null is not None:
            found = [
                None if null else one for one, null in zip(found, raw.null.tolist(), strict=True)
            ]
    if None in found:
        rows = [first + at + 1 for at, one in enumerate(found) if one is None][:SHOWN]
        remedy = "Give every row an id: a text, or a whole number."
        got = f"none in row {', '.join(map(str, rows))}"
        raise JoinError.expected(
            f"an id in column {column!r}", of=of, got=got, remedy=remedy, quote=False
        )
    return [one for one in found if one is not None]


def _text(value: object) -> str | None:
    """One id, or None for what is none."""
    if isinstance(value, str):
        return value.strip() or None
    if is_missing(value) or isinstance(value, bool | float):
        return None
    return str(value) if isinstance(value, int | np.integer) else None


def require_once(found: Sequence[str], seen: set[str], of: str, first: int) -> None:
    """An id that came before is refused, by the numbers of its rows alone."""
    twice = []
    for at, one in enumerate(found):
        if one in seen:
            twice.append(first + at + 1)
        seen.add(one)
    if twice:
        remedy = (
            "Keep one row a person in either table: a second one would move two rows by one entry."
        )
        got = f"one that came before in row {', '.join(map(str, twice[:SHOWN]))}"
        raise JoinError.expected("each id once", of=of, got=got, remedy=remedy, quote=False)
