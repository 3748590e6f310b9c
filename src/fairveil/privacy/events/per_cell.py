"""One joint release whose noise differs by cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ... import _checks
from ...errors import InputError
from .event import Event, brief, checked_multiplier

# fields that files need not hold
LATER: Mapping[str, Mapping[str, object]] = {"per-cell": {"crossings": (), "column": 0}}


@dataclass(frozen=True)
class PerCell(Event):
    """One joint Gaussian release over disjoint cells with a noise multiplier for each cell
    (tailored budgets; theory.md#cells).

    `multipliers[j][k]` is the standard deviation of part j in cell k over the largest norm c_j of
    one row's contribution to that part (in that cell, where norms differ by cell); `spreads[j]` is
    how far one row can move part j *within* its cell, in units of c_j (2 for signed vectors, 1 for
    losses in [0, c]; 0 where a neighbour can only change cell, as when sensitive features alone are
    protected).
    `crossings[j]` says what happens when a person moves from one cell to another, whose multipliers
    are m and m': the squared move of part j is 1/m^2 + 1/m'^2 + 2 crossing/(m m'). 0: cells have
    coordinates of their own, or contributions that are positive semi-definite; 1: one sum for all
    cells, to which contributions may point in opposite directions; -1: one sum, and the same
    contribution at the other cell's size (sensitive features alone). () is 0 for all. `column`: the
    number of the partition that the cells make, such as the place of the sensitive column that they
    are of; the curator gives it. A person is in one cell of each. Under add-remove a person costs
    what her cell costs; under replace-one she may also move from one cell to another. The price is
    the worst over people: of several releases over the cells of one column it is one person's, who
    was in all of them.
    """

    kind: ClassVar[str] = "per-cell"
    multipliers: tuple[tuple[float, ...], ...]
    spreads: tuple[float, ...]
    crossings: tuple[int, ...] = ()
    column: int = 0

    def __post_init__(self) -> None:
        parts = tuple(tuple(checked_multiplier(m) for m in part) for part in self.multipliers)
        spreads = tuple(_checks.non_negative(spread=s) for s in self.spreads)
        if (
            not parts
            or not parts[0]
            or len({len(part) for part in parts}) != 1
            or len(spreads) != len(parts)
        ):
            raise InputError.expected(
                (
                    "one non-empty row of multipliers a part, all of one length, and one "
                    "spread a part"
                ),
                of="PerCell",
                got=(self.multipliers, self.spreads),
                remedy="PerCell(((2.0, 1.0),), (2.0,)) is one part over two cells.",
            )
        _checks.normalise(
            self,
            multipliers=parts,
            spreads=spreads,
            crossings=_crossings(self.crossings, len(parts)),
        )
        _checks.normalise(self, column=_checks.whole(column=self.column))

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.multipliers[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is as it is for most releases is left out."""
        out = super().to_dict()
        usual = LATER[self.kind]
        for name, value in _checks.named(self, usual).items():
            if value == usual[name]:
                del out[name]
        return out


def _crossings(given: object, parts: int) -> tuple[int, ...]:
    """One of -1, 0 and 1 a part; () when all are 0."""
    found = tuple(given) if isinstance(given, tuple | list) else (math.nan,)
    if (found and len(found) != parts) or any(
        type(one) is not int or one not in (-1, 0, 1) for one in found
    ):
        raise InputError.expected(
            f"{parts} of -1, 0 and 1, one a part, or () for 0",
            of="PerCell.crossings",
            got=brief(given),
            remedy=(
                "0 where cells have coordinates of their own; 1 where all cells are added "
                "to one vector."
            ),
        )
    return found if any(found) else ()
