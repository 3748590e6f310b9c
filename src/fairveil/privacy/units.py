"""Who is protected where a person may have several rows: the unit of a promise.

A promise without a unit is about rows. With a unit it is about persons: a neighbouring table has
all rows of one person more, or fewer, or another person's in their place. A person may have any
number of rows: `max_rows` of them are kept, and the guarantee is for all of them, since the rest
are never read.

Guarantees (tests/curator/test_curator_persons.py):
1. Promises of different units are different promises: no filter, statement or ledger takes one for
   the other.
2. The document of a promise without a unit is what it was before there were units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _checks
from ..errors import InputError

MOST = 1 << 20
"""Rows of one person at most: sums over a person's rows stay exact in floats of 53 bits."""
LONGEST_NAME = 200


@dataclass(frozen=True)
class Unit:
    """One person, distinguished by `name`, with at most `max_rows` of their rows. None: a ledger's,
    which takes any number.

    >>> str(Unit("patient", 12))
    'one person, at most 12 of their rows'
    """

    name: str = "person"
    max_rows: int | None = None

    def __post_init__(self) -> None:
        given: object = self.name
        if (
            not isinstance(given, str)
            or not 0 < len(given) <= LONGEST_NAME
            or not given.isprintable()
            or given.isspace()
        ):
            remedy = "Name the column that tells persons apart: unit='patient'."
            raise InputError.expected("the name of a column", of="unit", got=given, remedy=remedy)
        if self.max_rows is not None:
            remedy = (
                "Pass max_rows_per_unit=12, for example: the most rows that one person adds to a "
                "sum."
            )
            most = _checks.whole(at_least=1, max_rows_per_unit=self.max_rows, remedy=remedy)
            if most > MOST:
                raise InputError.expected(
                    f"at most {MOST:,}", of="max_rows_per_unit", got=most, remedy=remedy
                )
            _checks.normalise(self, max_rows=most)

    def __str__(self) -> str:
        return f"one person, {self.extent}"

    @property
    def extent(self) -> str:
        """How many rows, in words."""
        if self.max_rows is None:
            return "all of their rows"
        return (
            "one of their rows" if self.max_rows == 1 else f"at most {self.max_rows} of their rows"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"name": self.name, "max_rows": self.max_rows}

    @staticmethod
    def from_dict(values: object) -> Unit:
        """The inverse of `to_dict`."""
        if not isinstance(values, dict) or set(values) != {"name", "max_rows"}:
            remedy = "Write promises with to_dict()."
            got = sorted(map(str, values)) if isinstance(values, dict) else values
            raise InputError.expected("name and max_rows", of="unit", got=got, remedy=remedy)
        return Unit(values["name"], values["max_rows"])
