"""A certificate as a section of a page: what is certified, what is not, and every rate with its
interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _checks
from ..figures import Rate, RatesFigure
from ..figures.checked import finite, finite_if_given, line, sentences, several

if TYPE_CHECKING:
    from ..estimators import Certificate


@dataclass(frozen=True)
class CertificateLine:
    """One notion: what is asked, the bound that is certified (None: refused), and whether that is
    enough."""

    sentence: str
    limit: float
    at_most: float | None
    certified: bool
    people_needed: int | None = None

    def __post_init__(self) -> None:
        line(sentence=self.sentence)
        _checks.normalise(self, limit=finite("limit", self.limit))
        finite_if_given(self, "at_most")


@dataclass(frozen=True)
class CertificateSection:
    """What is certified about people who were not in the table. `report.certificate` makes it from
    a `Certificate`. `handed_out`: which decisions of the model were replaced, so that it is
    certified."""

    certified: bool
    confidence: float
    people: float
    lines: tuple[CertificateLine, ...]
    assumptions: tuple[str, ...]
    rates: RatesFigure | None = None
    handed_out: str = ""

    def __post_init__(self) -> None:
        _checks.normalise(self, lines=several(CertificateLine, "lines", self.lines))
        _checks.normalise(self, assumptions=sentences("assumptions", self.assumptions))
        if self.handed_out:
            line(handed_out=self.handed_out)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        rates = () if self.rates is None else self.rates.rates
        return {
            "certified": self.certified,
            "confidence": self.confidence,
            "people": self.people,
            "handed_out": self.handed_out,
            "lines": [vars(one) for one in self.lines],
            "assumptions": list(self.assumptions),
            "rates": [
                {
                    "label": one.label,
                    "value": one.value,
                    "low": one.low,
                    "high": one.high,
                    "size": one.size,
                }
                for one in rates
            ],
        }


def certificate(found: Certificate) -> CertificateSection:
    """The section of a certificate."""
    lines = tuple(
        CertificateLine(words, one.limit, one.at_most, one.certified, one.people_needed)
        for words, one in zip(found.sentences, found.bounds, strict=True)
    )
    rates = tuple(
        Rate(one.name, one.value, one.low, one.high, max(one.people, 0.0), one.fewest < 30)
        for one in found.rates
    )
    figure = RatesFigure("rate in the population", rates, found.confidence) if rates else None
    assumed = tuple(f"{one[:1].upper()}{one[1:]}." for one in found.assumptions)
    return CertificateSection(
        found.certified, found.confidence, found.people, lines, assumed, figure, found.handed_out
    )
