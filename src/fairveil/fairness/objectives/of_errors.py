"""Objectives that count errors of all rows, or means over labels: they tell no groups apart, but by
weights that are given."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ... import _checks
from ...errors import InputError
from ...tables import keys
from .. import outer, outer_welfare
from ..group_function import GroupFunction, stacked
from ..notions import names_groups, positive_class
from ..rates import ErrorRate, Event, PredictionRate, Rate, RateConstraint
from .objective import Bound, Frame, Objective
from .of_rates import of_system, resolved


@dataclass(frozen=True)
class Error(Objective):
    """The share of wrong decisions; in regression the mean loss."""

    kind: ClassVar[str] = "error"

    @property
    def needs_groups(self) -> bool:
        return False

    def at(self, frame: Frame) -> GroupFunction:
        return WeightedError().at(frame)


@dataclass(frozen=True, eq=False)
class WeightedError(Objective):
    """The mean cost of decisions. `costs`: a table (labels, predictions), or {(label, prediction):
    cost}, 1 for errors unless given; `groups`: {group: weight}, 1 unless given."""

    kind: ClassVar[str] = "weighted_error"
    costs: Any = None
    groups: Any = None

    @property
    def needs_groups(self) -> bool:
        return bool(self.groups)

    def at(self, frame: Frame) -> GroupFunction:
        weights = np.ones(frame.cells.count)
        for key, weight in dict(self.groups or {}).items():
            if (
                key not in frame.cells.keys
                or not isinstance(weight, numbers.Real)
                or not math.isfinite(weight)
            ):
                remedy = "Write {'f': 2.0}, for example."
                expected = f"finite weights of groups out of {list(frame.cells.keys)}"
                raise InputError.expected(expected, of="groups", got={key: weight}, remedy=remedy)
            weights[frame.cells.keys.index(key)] = weight
        line = np.zeros(frame.shape)
        line += frame.costs(self.costs) if frame.classes else 1.0
        line *= weights.reshape(-1, *(1,) * (line.ndim - 1)) / frame.cells.per_row
        return GroupFunction(
            frame.shape, stacked([line], frame.shape), outer.Total(), names=("mean cost",)
        )


@dataclass(frozen=True)
class RateOf(Objective):
    """One rate of decisions: `RateOf(PredictionRate("no", Event(labels=("yes",))))` is the rate of
    misses."""

    kind: ClassVar[str] = "rate"
    decisions_only: ClassVar[bool] = True
    rate: Rate

    @property
    def needs_groups(self) -> bool:
        return names_groups(self.rate.event)

    def at(self, frame: Frame) -> GroupFunction:
        self.need_classes(frame)
        asked = (RateConstraint(((1.0, self.rate),), 0.0),)
        return of_system(resolved(asked, frame.cells, frame.classes), frame, outer.Total())

    def __str__(self) -> str:
        return str(self.rate)


@dataclass(frozen=True)
class _OfPositive(Objective):
    """One rate of all rows, given a positive class."""

    decisions_only: ClassVar[bool] = True
    positive: Hashable = None

    @abstractmethod
    def _rate(self, positive: Hashable, others: tuple[Hashable, ...]) -> Rate:
        """The rate, of the positive class and the others."""

    @property
    def needs_groups(self) -> bool:
        return False

    def at(self, frame: Frame) -> GroupFunction:
        self.need_classes(frame)
        positive = positive_class(self.positive, frame.classes)
        others = tuple(y for y in frame.classes if y != positive)
        return RateOf(self._rate(positive, others)).at(frame)


@dataclass(frozen=True)
class FalseNegatives(_OfPositive):
    """P(prediction is not positive | label = positive): the misses. One less the power of a
    test."""

    kind: ClassVar[str] = "false_negative_rate"

    def _rate(self, positive: Hashable, others: tuple[Hashable, ...]) -> Rate:
        return ErrorRate(Event(labels=(positive,)))


@dataclass(frozen=True)
class FalsePositives(_OfPositive):
    """P(prediction = positive | label is not): the false alarms. The level of a test."""

    kind: ClassVar[str] = "false_positive_rate"

    def _rate(self, positive: Hashable, others: tuple[Hashable, ...]) -> Rate:
        return PredictionRate(positive, Event(labels=others))


@dataclass(frozen=True)
class _MeanOfRecalls(Objective):
    """Abstract: 1 less a mean of the recalls P(prediction = y | label = y)."""

    decisions_only: ClassVar[bool] = True
    smoothing: float = outer_welfare.SMOOTHING

    def __post_init__(self) -> None:
        _checks.normalise(self, smoothing=_checks.fraction(smoothing=self.smoothing, low_open=True))

    @property
    def needs_groups(self) -> bool:
        return False

    def at_least(self, mean: float) -> Bound:
        """The constraint that the mean is no smaller."""
        remedy = "Pass mean=0.7, for example; a mean is never below 0."
        return self.at_most(1.0 - _checks.fraction(mean=mean, low_open=True, remedy=remedy))

    def __str__(self) -> str:
        return f"1 - {self.kind}"

    def _of(self, frame: Frame, function: outer.Outer) -> GroupFunction:
        self.need_classes(frame)
        lines = []
        for y in range(len(frame.classes)):
            line = np.zeros(frame.shape)
            line[:, y, y] = 1.0 / max(float(frame.shares[:, y].sum()), frame.least)
            lines.append(line)
        names = tuple(f"recall of {keys.shown(y)}" for y in frame.classes)
        return GroupFunction(frame.shape, stacked(lines, frame.shape), function, names=names)


@dataclass(frozen=True)
class GMean(_MeanOfRecalls):
    """1 less the geometric mean of recalls (Example 8.2), each raised by `smoothing`: it has no
    Lipschitz constant without."""

    kind: ClassVar[str] = "gmean"

    def at(self, frame: Frame) -> GroupFunction:
        return self._of(frame, outer_welfare.GeometricShortfall(self.smoothing))


@dataclass(frozen=True)
class HMean(_MeanOfRecalls):
    """1 less the harmonic mean of recalls. `Differs:` Example 8.3 divides by columns, precisions,
    whose mean is not concave."""

    kind: ClassVar[str] = "hmean"

    def at(self, frame: Frame) -> GroupFunction:
        return self._of(frame, outer_welfare.HarmonicShortfall(self.smoothing))
