"""Which rows a question is put to: all of them, a secret Poisson batch, or a fixed public part.

Guarantees (tests/curator/test_curator_parts.py):
1. Which rows are in a part depends on how many rows there are and on nothing else; the parts of a
   partition have no row in common, leave none out, and differ in size by one row at most.
2. Where one row is replaced, the parts that it is not in have the same total, to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ... import _checks
from ...errors import InputError


@dataclass(frozen=True)
class Full:
    """Every row. Needs no analysis of sampling, and as a rule gives the best accuracy at a given
    epsilon."""


@dataclass(frozen=True)
class Poisson:
    """Every row with probability `rate`, independently. Who was drawn, and how many, is never used
    and never released."""

    rate: float

    def __post_init__(self) -> None:
        rate = _checks.fraction(rate=self.rate, low_open=True, remedy="Use Full() to ask all rows.")
        _checks.normalise(self, rate=rate)


@dataclass(frozen=True)
class Part:
    """Part `number` (from 0) of `parts` into which all rows are cut, the same ones in every epoch
    (theory.md#t8).

    Who is where is public: a row's part is decided by its place in the table and the number of
    rows, in one pseudo-random order that never changes. So it is for promises under which that
    number is public: replace-one, sensitive features, none.
    """

    number: int
    parts: int

    def __post_init__(self) -> None:
        _checks.normalise(
            self,
            parts=_checks.whole(at_least=1, parts=self.parts),
            number=_checks.whole(number=self.number),
        )
        if self.number >= self.parts:
            remedy = "Parts are numbered from 0."
            raise InputError.expected(
                f"a number below {self.parts}", of="Part", got=self.number, remedy=remedy
            )


def public_order(rows: int) -> npt.NDArray[np.int64]:
    """The places 0 ... rows - 1 in the order of a hash of each: a bijection of 64-bit numbers, so
    no two are equal.

    The last mixing of SplitMix64 (Steele, Lea and Flood 2014). It needs no secret: privacy rests on
    who is where being public; the mixing only keeps tables that are sorted from giving one-sided
    parts.
    """
    x = np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.argsort(x ^ (x >> np.uint64(31)), kind="stable").astype(np.int64)


Batch = Full | Poisson | Part
FULL = Full()
"""All rows: what `answer` asks unless told otherwise."""
