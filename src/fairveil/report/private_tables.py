"""A private table as a section of a page: every main rate by group with its interval, and the
widest gaps in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..figures import Rate, RatesFigure
from ..tables.keys import shown
from .contents import PrivateTableSection
from .rates import printable, rate_words

if TYPE_CHECKING:
    from ..estimators import PrivateTable


def private_table(found: PrivateTable) -> PrivateTableSection:
    """The section of a private table."""
    rates = [
        RatesFigure(rate_words(name), tuple(_rates(found, name)), found.confidence)
        for name in found.layout.main
    ]
    gaps = []
    for level, several_gaps in found.gaps.items():
        of = " and ".join(printable(found.layout.cells.names[j]) for j in level)
        gaps += [
            f"Groups of {of}, widest difference: {printable(str(gap))}." for gap in several_gaps
        ]
    how = (
        f"{found.confidence:.6g} intervals, {found.held}: {found.ABOUT_PEOPLE}; {found.ABOUT_ROWS}."
    )
    return PrivateTableSection(how, tuple(gaps), tuple(rates), found.results)


def _rates(found: PrivateTable, name: str) -> list[Rate]:
    out = []
    for (_, key), one in found.lines.items():
        rate = one.rates[name]
        label = "Everyone" if key is None else printable(shown(key))
        out.append(Rate(label, rate.value, rate.low, rate.high, rate.people, one.small))
    return out
