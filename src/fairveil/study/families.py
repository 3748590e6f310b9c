"""A family of constraints: one for each bound of a sweep, and which of their values are the swept
gap.

    gap of a model = max over the constraints of swept notions of their value

For demographic parity and equalized odds, whose constraints are one-sided differences both ways,
that is the usual gap; for a false negative rate it is the largest such rate. Notions that do not
change with the bound are asked of every model alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._types import Floats
from ..errors import InputError
from ..facts import Cells
from ..fairness import ConstraintSystem, Notion, RateConstraint, resolve
from ..fairness.notions import parse
from ..fairness.systems import as_list
from ..methods.systems import NO_GROUPS

REMEDY = (
    "Pass the class DemographicParity, or lambda gap: EqualizedOdds(gap, compare='rest'), or a "
    "list of such."
)


@dataclass(frozen=True)
class Family:
    """`bounds`, and the `notions` that each stands for; `swept`: which places of those lists change
    with the bound."""

    bounds: tuple[float | None, ...]
    notions: tuple[tuple[Notion, ...], ...]
    swept: tuple[bool, ...]

    @staticmethod
    def of(constraint: object, bounds: Sequence[float | None]) -> Family:
        """From a notion's class or name, a function from a bound to a notion or several, or a list
        of these and of notions.

        >>> from ..fairness import DemographicParity
        >>> Family.of([DemographicParity, "false_negative_rate"], (0.1, 0.05)).name
        'demographic parity gap or false negative rate'
        """
        lists = [_notions(constraint, bound) for bound in bounds]
        kinds = {tuple((type(notion), moves) for notion, moves in found) for found in lists}
        if len(kinds) != 1:
            got = [[type(notion).__name__ for notion, _ in found] for found in lists]
            raise _wrong("the same notions at every bound", got)
        notions = tuple(tuple(notion for notion, _ in found) for found in lists)
        swept = tuple(moves for _, moves in lists[0])
        if len(set(bounds)) > 1:
            swept = tuple(
                len({_text(found[j]) for found in notions}) > 1 for j in range(len(swept))
            )
        if not any(swept):
            raise _wrong(
                "notions that change with the bound", [str(notion) for notion in notions[0]]
            )
        return Family(tuple(bounds), notions, swept)

    @property
    def name(self) -> str:
        """What the swept gap is, in words."""
        chosen = [
            notion for notion, moves in zip(self.notions[0], self.swept, strict=True) if moves
        ]
        return " or ".join(dict.fromkeys(_words(notion) for notion in chosen))

    def asked_of(self, bound: float | None) -> list[Notion]:
        """The constraints of an estimator."""
        return list(self.notions[self.bounds.index(bound)])

    def judge(self, bound: float | None, cells: Cells | None, classes: Sequence[Any]) -> Judge:
        """What measures models that were asked for this bound, on histograms by (cell, label,
        class)."""
        asked = self.asked_of(bound)
        return Judge(
            resolve(asked, cells or NO_GROUPS, classes),
            self.places(bound, cells, classes, vacuous=True),
        )

    def places(
        self, bound: float | None, cells: Cells | None, classes: Sequence[Any], *, vacuous: bool
    ) -> npt.NDArray[np.bool_]:
        """Which constraints of a resolved system are swept; without `vacuous` the system lacks
        notions that ask for nothing."""
        flags: list[bool] = []
        for notion, moves in zip(self.asked_of(bound), self.swept, strict=True):
            if vacuous or not notion.is_vacuous:
                flags += [moves] * len(notion.constraints(cells or NO_GROUPS, classes))
        return np.array(flags, bool)


@dataclass(frozen=True, eq=False)
class Judge:
    """The constraints of one bound, resolved, and which of them are swept."""

    system: ConstraintSystem
    swept: npt.NDArray[np.bool_]

    def gap(self, values: Floats) -> float:
        """The swept gap of constraint values; NaN where one of them is undefined."""
        return float(np.max(values[self.swept]))

    def excess(self, values: Floats) -> float:
        """By how much the worst of all constraints is above its bound; below 0 where all hold, NaN
        where one is undefined."""
        return float(np.max(values - self.system.bounds, initial=-math.inf))


def _notions(constraint: object, bound: float | None) -> list[tuple[Notion, bool]]:
    """Notions, and whether each was made from the bound."""
    if isinstance(constraint, Notion):
        return [(constraint, False)]
    if isinstance(constraint, str):
        name, comma, options = constraint.partition(",")
        notion: Any = parse(f"{name.strip()}:{0.0 if bound is None else bound!r}{comma}{options}")
        return [
            (notion if bound is not None else replace(notion, **{notion.limit: None}), True),
        ]
    if isinstance(constraint, (list, tuple)):
        return [found for one in constraint for found in _notions(one, bound)]
    if not callable(constraint):
        raise _wrong("a notion's class, or a function from a bound to a notion", constraint)
    return [(notion, True) for notion in as_list(constraint(bound))]


def _text(notion: Notion) -> str:
    return repr(notion.to_dict())


def _words(notion: Notion) -> str:
    if isinstance(notion, RateConstraint):
        return "constrained rate"
    kind = (notion.kind or type(notion).__name__).replace("_", " ")
    return f"{kind} gap" if hasattr(notion, "max_gap") else kind


def _wrong(expected: str, got: object) -> InputError:
    return InputError.expected(expected, of="constraint", got=got, remedy=REMEDY)
