"""What an objective on the vector of group losses is, what the vector is of, and an objective with
a bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import Floats
from ...errors import InputError
from ...facts import Cells
from .. import bounds as limits
from .. import objectives_json
from ..group_function import GroupFunction

LEAST_SHARE = 1e-12


@dataclass(frozen=True, eq=False)
class Frame:
    """What a vector of losses is of: groups, classes (none: losses are numbers by group), released
    shares, and a floor.

    `shares`: of all rows, (cells, labels), or (cells,) without classes. `least`: the smallest share
    that divides.
    """

    cells: Cells
    classes: tuple[Hashable, ...]
    shares: Floats
    least: float = LEAST_SHARE

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the vector: (cells, labels, classes), or (cells,)."""
        k = len(self.classes)
        return (self.cells.count, k, k) if k else (self.cells.count,)

    def losses(
        self, costs: npt.ArrayLike | Mapping[tuple[Hashable, Hashable], float] | None = None
    ) -> list[Floats]:
        """The mean loss of each group as a line over l: `costs` (labels, classes), errors unless
        given."""
        lines = []
        for c in range(self.cells.count):
            line = np.zeros(self.shape)
            line[c] = (self.costs(costs) if self.classes else 1.0) / max(
                float(np.sum(self.shares[c])), self.least
            )
            lines.append(line)
        return lines

    def costs(self, given: Any) -> Floats:
        """A table (labels, classes) of what a decision costs; 1 for each error unless given."""
        k = len(self.classes)
        if given is None:
            return 1.0 - np.eye(k)
        if isinstance(given, Mapping):
            stated = np.zeros((k, k), object)
            for pair, cost in given.items():
                if (
                    not isinstance(pair, tuple)
                    or len(pair) != 2
                    or any(one not in self.classes for one in pair)
                ):
                    remedy = 'Write {("yes", "no"): 5.0}: the label, then the prediction.'
                    expected = f"pairs (label, prediction) out of {list(self.classes)}"
                    raise InputError.expected(expected, of="costs", got=pair, remedy=remedy)
                stated[self.classes.index(pair[0]), self.classes.index(pair[1])] = cost
            given = stated
        try:
            table = np.asarray(given, np.float64)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.shape != (k, k) or not np.isfinite(table).all():
            remedy = "One line a label, one column a prediction."
            raise InputError.expected(
                f"finite numbers ({k}, {k})", of="costs", got=np.shape(given), remedy=remedy
            )
        return table


class Objective(ABC):
    """Something to be minimized. A public description, abstract. `decisions_only`: not for losses
    that are numbers."""

    kind: ClassVar[str] = ""
    # what stands here for an objective without such a field
    groups: Any = None
    costs: Any = None
    decisions_only: ClassVar[bool] = False

    @property
    def needs_groups(self) -> bool:
        """Whether it tells groups apart."""
        return True

    @abstractmethod
    def at(self, frame: Frame) -> GroupFunction:
        """The function of group losses that it is, where cells have these shares."""

    def excess(self, frame: Frame, bound: float) -> GroupFunction:
        """A convex function that is above 0 exactly where it is above `bound`."""
        return self.at(frame).less(bound)

    def measured(self, frame: Frame, losses: Floats) -> float:
        """What it is of these losses."""
        return float(self.at(frame).value(losses))

    def at_most(self, bound: float) -> Bound:
        """The constraint that it is no larger than `bound`: below 1, where it is one of decisions'
        rates."""
        return Bound(
            self,
            limits.below_one(bound, "bound")
            if self.decisions_only
            else _checks.non_negative(bound=bound),
        )

    @property
    def is_written(self) -> bool:
        """Whether `to_dict` can write it: a user's functions are never written."""
        return KINDS.get(self.kind) is type(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, `objective` first; `from_dict` reads them."""
        if not self.is_written:
            remedy = "Keep it in Python: functions are never written."
            raise InputError.expected(
                f"one of {', '.join(KINDS)}", of="objective", got=self.kind, remedy=remedy
            )
        named = _checks.fields_of(self)
        told = {name: objectives_json.written(value, of=name) for name, value in named.items()}
        return {"objective": self.kind} | told

    def need_classes(self, frame: Frame) -> None:
        """An error where losses are numbers."""
        if not frame.classes:
            remedy = (
                "Regressions and log losses know means by group: error, weighted error, largest "
                "and mean group loss, Gini."
            )
            got = "losses that are numbers"
            raise InputError.expected(
                f"decisions among classes, for {self.kind}", of="objective", got=got, remedy=remedy
            )

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, eq=False)
class Bound:
    """A constraint: an objective that is at most `bound`."""

    objective: Objective
    bound: float

    def at(self, frame: Frame) -> GroupFunction:
        """g, which is at most 0 where it holds."""
        return self.objective.excess(frame, self.bound)

    @property
    def is_written(self) -> bool:
        """Whether `to_dict` can write it."""
        return self.objective.is_written

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"bound": self.bound, "of": self.objective.to_dict()}

    def __str__(self) -> str:
        return f"{self.objective} <= {self.bound:g}"


KINDS: dict[str, type[Objective]] = {}
"""The objectives that are written, by kind: `names` lists them, as it knows them all."""
