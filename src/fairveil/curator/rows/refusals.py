"""What rows are refused for: too many, blocks that differ, persons in many, a changed source."""

from __future__ import annotations

from typing import NoReturn

from ...errors import InputError, PrivacyError

MOST_ROWS = 1 << 33
# bytes of rows that are kept a second time, part by part: a knob of speed only


def require_few(rows: int) -> None:
    """Refuse more rows than exact sums can hold: told as soon as it is known."""
    if rows > MOST_ROWS:
        remedy = "Sums are exact up to there; split the table over several curators."
        raise InputError.expected(f"at most {MOST_ROWS} rows", of="rows", got="more", remedy=remedy)


def require_alike(**found: set[bool]) -> None:
    """All blocks have weights, and labels, or none has."""
    for name, seen in found.items():
        if len(seen) > 1:
            remedy = "Write ones where a row counts once; give every block its labels."
            raise InputError.expected(
                f"{name} in all blocks or in none", of="rows", got="some", remedy=remedy
            )


def refuse_scattered() -> NoReturn:
    """A person's rows may lie in any block of a stream."""
    remedy = (
        "A person's rows may lie in any block: write a coded store, data.encode(source, schema, "
        "out)."
    )
    got = "streamed rows, not grouped"
    raise InputError.expected(
        "rows in memory or in a coded store", of="unit", got=got, remedy=remedy
    )


def refuse_sparse() -> NoReturn:
    """A shift would fill sparse numbers in."""
    remedy = "A shift fills them in: hold dense numbers, or rows that need no rescaling."
    raise InputError.expected(
        "dense numbers", of="rows to rescale", got="sparse ones", remedy=remedy
    )


def refuse_change() -> NoReturn:
    """Releases may have begun: the error shows no value."""
    raise PrivacyError.expected(
        "the rows of the first pass",
        of="a streamed source",
        got="other rows",
        remedy="Keep the table as it is while a curator holds it, or hold it in memory.",
    ) from None
