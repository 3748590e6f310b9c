"""A private table as a section of a page: every main rate by group with its interval, and the widest gaps in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..figures import Rate, RatesFigure
from ..figures.checked import line, sentences, several
from ..tables.keys import shown

if TYPE_CHECKING:
    from ..estimators import PrivateTable


@dataclass(frozen=True)
class PrivateTableSection:
    """Rates by group with noise. `how`: what the intervals hold; `gaps`: a sentence each. `report.private_table` makes it."""

    how: str
    gaps: tuple[str, ...]
    rates: tuple[RatesFigure, ...]
    numbers: dict[str, Any]

    def __post_init__(self) -> None:
        line(how=self.how)
        object.__setattr__(self, "gaps", sentences("gaps", self.gaps))
        object.__setattr__(self, "rates", several(RatesFigure, "rates", self.rates))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"how": self.how, "gaps": list(self.gaps), "names": [one.name for one in self.rates], **self.numbers}


def private_table(found: PrivateTable) -> PrivateTableSection:
    """The section of a private table. Metrics that are no shares have no figure, and stand in the twin."""
    from .rates import printable, rate_words

    rates = [
        RatesFigure(rate_words(name), tuple(_rates(found, name)), found.confidence)
        for name in found.layout.main
        if (found.layout.shares[name].low, found.layout.shares[name].high) == (0.0, 1.0)
    ]
    gaps = []
    for level, several_gaps in found.gaps.items():
        of = " and ".join(printable(found.layout.cells.names[j]) for j in level)
        gaps += [f"Groups of {of}, widest difference: {printable(str(gap))}." for gap in several_gaps]
    how = f"{found.confidence:.6g} intervals, {found.held}: {found.ABOUT_PEOPLE}; {found.ABOUT_ROWS}."
    return PrivateTableSection(how, tuple(gaps), tuple(rates), found.results)


def _rates(found: PrivateTable, name: str) -> list[Rate]:
    from .rates import printable

    out = []
    for (_, key), one in found.lines.items():
        rate = one.rates[name]
        label = "Everyone" if key is None else printable(shown(key))
        out.append(Rate(label, rate.value, rate.low, rate.high, rate.people, one.small))
    return out
