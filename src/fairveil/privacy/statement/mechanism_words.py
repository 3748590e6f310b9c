"""A statement's releases as a table of texts: mechanism, noise, sensitivity, rows, times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...show.parts import aligned
from ..shown import at_most
from .contents import StatementContents
from .releases import ALL_ROWS, MADE_BY, NORMS, Release

if TYPE_CHECKING:
    pass


MOST_RELEASES = 20
"""How many kinds of release the words list; the JSON lists all."""
HEADS = ("release", "noise multiplier", "sensitivity", "rows", "times")
"""Of the table of releases."""
NOTHING = "-"
MOST_CELLS = 8
"""Multipliers that a line of the table lists; the JSON lists all."""
PARAMETERS = {
    "exponential": ("epsilon",),
    "pure": ("epsilon",),
    "approximate": ("epsilon", "delta"),
    "zero-concentrated": ("rho",),
    "sampler error": ("total variation at most",),
}


def table(statement: StatementContents) -> tuple[tuple[str, ...], ...]:
    """A row of texts for each kind of release, under `HEADS`; none where nothing was read."""
    bounds = {(bound.question, bound.norm): bound.sensitivity for bound in statement.bounds}
    lines = [
        (_release(one), _numbers(one), _sensitivity(one, bounds), one.rows, f"{one.times:,}")
        for one in statement.told_releases
    ]
    return tuple(lines)


def table_lines(statement: StatementContents) -> Iterator[str]:
    """The table as lines of one width a column."""
    told = table(statement)
    yield from aligned([HEADS, *told[:MOST_RELEASES]])
    if len(told) > MOST_RELEASES:
        yield f"and {len(told) - MOST_RELEASES} more, listed in the JSON"


def mechanisms(statement: StatementContents) -> Iterator[str]:
    """The same in one sentence: for the twin of a page, and for a reader without columns."""
    told = table(statement)
    for release, numbers, sensitivity, rows, times in told[:MOST_RELEASES]:
        where = "" if rows == ALL_ROWS else f", on {rows}"
        size = "" if sensitivity == NOTHING else f", sensitivity {sensitivity}"
        value = (
            ""
            if numbers == NOTHING
            else f", {numbers}"
            if " " in numbers
            else f", noise multiplier {numbers}"
        )
        yield (
            f"{release}{value}{size}{where}, {times} times"
            if times != "1"
            else f"{release}{value}{size}{where}"
        )
    if len(told) > MOST_RELEASES:
        yield f"and {len(told) - MOST_RELEASES} more, listed in the JSON"
    if not told:
        yield "nothing that is protected was read"


def _release(one: Release) -> str:
    return f"{one.name} ({MADE_BY[one.mechanism]})" if one.name else MADE_BY[one.mechanism]


def _numbers(one: Release) -> str:
    """Noise multipliers as numbers; what another mechanism is known by in words."""
    if not one.numbers:
        return NOTHING
    if one.mechanism in PARAMETERS:
        return ", ".join(
            f"{name} {at_most(value)}"
            for name, value in zip(PARAMETERS[one.mechanism], one.numbers, strict=False)
        )
    shown = ", ".join(f"{number:.4g}" for number in one.numbers[:MOST_CELLS])
    return shown if len(one.numbers) <= MOST_CELLS else f"{shown}, ..."


def _sensitivity(one: Release, bounds: dict[tuple[str, str], float]) -> str:
    norm = NORMS.get(one.mechanism)
    if norm is None:
        return NOTHING
    known = bounds.get((one.name, norm))
    return norm if known is None else f"{norm} {known:g}"
