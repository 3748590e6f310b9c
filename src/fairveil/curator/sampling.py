"""Which rows a question is put to: all of them, or a secret Poisson batch."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _checks


@dataclass(frozen=True)
class Full:
    """Every row. Needs no analysis of sampling, and as a rule gives the best accuracy at a given epsilon."""


@dataclass(frozen=True)
class Poisson:
    """Every row with probability `rate`, independently. Who was drawn, and how many, is never used and never released."""

    rate: float

    def __post_init__(self) -> None:
        rate = _checks.fraction(rate=self.rate, low_open=True, remedy="Use Full() to ask all rows.")
        object.__setattr__(self, "rate", rate)


Batch = Full | Poisson
FULL = Full()
"""All rows: what `answer` asks unless told otherwise."""
