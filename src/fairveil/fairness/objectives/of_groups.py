"""Objectives of the groups' own losses: the largest, one group's, their mean, their sum, how
unequal they are."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._types import Floats
from ...errors import InputError
from ...tables import keys
from .. import bounds as limits
from .. import outer, outer_welfare
from ..group_function import GroupFunction, stacked
from .objective import Bound, Frame, Objective
from .of_rates import largest


@dataclass(frozen=True)
class SumOfErrorRates(Objective):
    """The sum over groups and labels of P(prediction is not y | group a, label = y): f of Example
    8.10, of two classes sum_a FP_a + FN_a. Between 0 and groups x labels. Every conditional rate
    counts alike, however few rows it is of."""

    kind: ClassVar[str] = "sum_of_error_rates"

    def at(self, frame: Frame) -> GroupFunction:
        self.need_classes(frame)
        lines, names = [], []
        for (c, key), y in itertools.product(
            enumerate(frame.cells.keys), range(len(frame.classes))
        ):
            line = np.zeros(frame.shape)
            line[c, y, :] = (np.arange(len(frame.classes)) != y) / max(
                float(frame.shares[c, y]), frame.least
            )
            lines.append(line)
            names.append(
                f"errors of group {keys.shown(key)} with label {keys.shown(frame.classes[y])}"
            )
        return GroupFunction(
            frame.shape, stacked(lines, frame.shape), outer.MeanOfRates(), names=tuple(names)
        )


@dataclass(frozen=True, eq=False)
class LargestGroupLoss(Objective):
    """The largest of the groups' mean losses (costs of decisions as in `WeightedError`)."""

    kind: ClassVar[str] = "largest_group_loss"
    costs: Any = None
    sharpness: float | None = None

    def at(self, frame: Frame) -> GroupFunction:
        names = tuple(f"mean loss of group {keys.shown(key)}" for key in frame.cells.keys)
        lines = stacked(frame.losses(self.costs), frame.shape)
        return GroupFunction(
            frame.shape, lines, largest(self.sharpness, "exponential"), names=names
        )


@dataclass(frozen=True)
class GroupLoss(Objective):
    """One group's mean loss: bounds that differ from group to group are one each."""

    kind: ClassVar[str] = "group_loss"
    group: Any

    def at(self, frame: Frame) -> GroupFunction:
        if self.group not in frame.cells.keys:
            remedy = "Name a group as the estimator's `groups_` does."
            raise InputError.expected(
                f"one of {list(frame.cells.keys)}", of="group", got=self.group, remedy=remedy
            )
        line = frame.losses()[frame.cells.keys.index(self.group)]
        names = (f"mean loss of group {keys.shown(self.group)}",)
        return GroupFunction(
            frame.shape, stacked([line], frame.shape), outer.Largest(), names=names
        )


@dataclass(frozen=True)
class MeanGroupLoss(Objective):
    """The mean of the groups' mean losses (in classification their errors): every group counts as
    much, however few it has."""

    kind: ClassVar[str] = "mean_group_loss"

    def at(self, frame: Frame) -> GroupFunction:
        line = np.mean(frame.losses(), axis=0)
        return GroupFunction(
            frame.shape,
            stacked([line], frame.shape),
            outer.MeanOfRates(),
            names=("mean of the groups' losses",),
        )


@dataclass(frozen=True, eq=False)
class Gini(Objective):
    """The Gini index of the groups' means of `payoff`, a table (labels, predictions) of at least 0:
    by default, of how often groups get the second class (for regression: of their mean losses). A
    constraint alone: it is quasi-convex, and index <= theta is convex (Definition 8.6)."""

    kind: ClassVar[str] = "gini"
    payoff: Any = None

    def at(self, frame: Frame) -> GroupFunction:
        remedy = "Bound it: Gini().at_most(0.1), and make something convex small, the error say."
        raise InputError.expected(
            "a convex objective", of="objective", got="the Gini index", remedy=remedy
        )

    def at_most(self, bound: float) -> Bound:
        return Bound(self, limits.below_one(bound, "bound"))

    def measured(self, frame: Frame, losses: Floats) -> float:
        return float(outer_welfare.gini(np.maximum(self.level_set(frame, 0.0).rates(losses), 0.0)))

    def excess(self, frame: Frame, bound: float) -> GroupFunction:
        return self.level_set(frame, bound)

    def level_set(self, frame: Frame, theta: float) -> GroupFunction:
        """The convex function that is above 0 exactly where the index is above theta."""
        payoff: Any = self.payoff
        if payoff is None and frame.classes:
            payoff = np.tile(np.arange(len(frame.classes)) == 1, (len(frame.classes), 1)).astype(
                np.float64
            )
        if frame.classes and (frame.costs(payoff) < 0).any():
            remedy = "Incomes and rates are; shift the table."
            raise InputError.expected(
                "numbers of at least 0", of="payoff", got="negative ones", remedy=remedy
            )
        names = tuple(f"mean of group {keys.shown(key)}" for key in frame.cells.keys)
        lines = stacked(frame.losses(payoff), frame.shape)
        return GroupFunction(frame.shape, lines, outer_welfare.Inequality(theta), names=names)
