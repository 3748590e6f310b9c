"""Bounds and notions of fairness at once, as functions of group losses that are at most 0 where
they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import InputError
from .. import bounds as limits
from .. import outer
from ..group_function import GroupFunction
from ..notions import BoundedGroupLoss, uses_groups
from ..rates import Notion
from .objective import Bound, Frame
from .of_errors import Error
from .of_groups import GroupLoss, LargestGroupLoss, MeanGroupLoss
from .of_rates import of_system, require_pairs, resolved


@dataclass(frozen=True, eq=False)
class Constraint:
    """Several bounds and notions of fairness at once: g is the largest excess over any of them."""

    bounds: tuple[Bound, ...] = ()
    notions: tuple[Notion, ...] = ()

    @property
    def is_vacuous(self) -> bool:
        """Whether it asks for nothing."""
        return not self.bounds and all(notion.is_vacuous for notion in self.notions)

    @property
    def needs_groups(self) -> bool:
        """Whether any of it tells groups apart."""
        asked = [notion for notion in self.notions if not notion.is_vacuous]
        return any(bound.objective.needs_groups for bound in self.bounds) or any(
            map(uses_groups, asked)
        )

    def of_decisions(self) -> Constraint:
        """Itself, where losses are errors of decisions: bounds of 1 or more on their rates are then
        an error."""
        for one in self.bounds:
            rates = isinstance(one.objective, Error | GroupLoss | MeanGroupLoss | LargestGroupLoss)
            if rates and one.objective.costs is None:
                limits.below_one(one.bound, f"bound of {one.objective}")
        return self

    @property
    def titles(self) -> tuple[str, ...]:
        """What each of its functions is, in words."""
        asked = [notion for notion in self.notions if not notion.is_vacuous]
        return (*map(str, self.bounds), *(["notions of fairness"] if asked else []))

    def at(self, frame: Frame) -> list[GroupFunction]:
        """Its functions: each bound's, and each notion's largest excess; all at most 0 where it
        holds."""
        out = [bound.at(frame) for bound in self.bounds]
        asked = [notion for notion in self.notions if not notion.is_vacuous]
        losses = [notion for notion in asked if _of_losses(notion, frame)]
        if losses:
            least = min(notion.max_loss for notion in losses)  # type: ignore[attr-defined]
            out.append(LargestGroupLoss().at_most(least).at(frame))
        rest = [notion for notion in asked if notion not in losses]
        if rest and not frame.classes:
            remedy = "Regression knows BoundedGroupLoss(max_loss, loss='squared')."
            raise InputError.expected(
                "bounds on losses", of="constraint", got=str(rest[0]), remedy=remedy
            )
        if rest:
            system = resolved(tuple(rest), frame.cells, frame.classes)
            require_pairs(system, frame, ", ".join(map(_words, rest)))
            out.append(of_system(system, frame, outer.Largest(), bounded=True))
        return out

    @property
    def is_written(self) -> bool:
        """Whether `to_dict` can write it."""
        return all(bound.is_written for bound in self.bounds)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "bounds": [bound.to_dict() for bound in self.bounds],
            "notions": [notion.to_dict() for notion in self.notions],
        }

    def __str__(self) -> str:
        return ", ".join([*map(str, self.bounds), *map(_words, self.notions)]) or "none"


def _words(notion: Notion) -> str:
    """As on a command line; a rate constraint says what it is."""
    bounds = [value for name, value in vars(notion).items() if name.startswith("max_")]
    return f"{notion.kind}:{bounds[0]:g}" if bounds else str(notion)


def _of_losses(notion: Notion, frame: Frame) -> bool:
    return isinstance(notion, BoundedGroupLoss) and not frame.classes
