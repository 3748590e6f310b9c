"""Objectives and constraints on the vector of group losses (Alabi): what is minimized, and what
must stay small.

Each is a public description; `at(frame)` makes the function, with the shares of cells and labels
that were released. The same objects serve as objective and, by `at_most(bound)`, as constraint.
Notions of fairness and their names are constraints, too.

>>> import numpy as np
>>> from fairveil.facts import Cells
>>> frame = Frame(Cells((("f", "m"),)), ("no", "yes"), np.full((2, 2), 0.25))
>>> everyone_yes = np.zeros(frame.shape)
>>> everyone_yes[:, :, 1] = 0.25
>>> [
...     round(float(objective.at(frame).value(everyone_yes)), 3)
...     for objective in (Error(), GMean(), Gap("equalized_odds"))
... ]
[0.5, 0.91, 0.0]
>>> print(parse_constraint(["gini:0.2", GMean().at_least(0.7)]))
gini <= 0.2, 1 - gmean <= 0.3
"""

from __future__ import annotations

import itertools
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sized
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _checks
from .._codec import Kind
from .._json import Document
from .._types import Floats
from ..core.errors import need
from ..errors import InputError
from ..facts import Cells
from ..tables import keys
from .functions import (
    SMOOTHING,
    BoltzmannOfGaps,
    GeometricShortfall,
    GroupFunction,
    HarmonicShortfall,
    Inequality,
    Largest,
    MeanOfRates,
    Outer,
    SoftLargest,
    Stated,
    Total,
    checked,
    gini,
    stacked,
)
from .notions import CODEC as NOTION_CODEC
from .notions import (
    NOTIONS,
    OF_TEXTS,
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRate,
    ErrorRateParity,
    Event,
    FalsePositiveRateParity,
    GapNotion,
    Notion,
    PredictionRate,
    Rate,
    RateConstraint,
    names_groups,
    parse,
    positive_class,
    rate_bound,
    rate_in_text,
    share,
    uses_groups,
    written,
)
from .systems import ConstraintSystem, resolve

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
        table = self.costs(costs) if self.classes else 1.0
        lines = []
        for c in range(self.cells.count):
            line = np.zeros(self.shape)
            line[c] = table / max(float(np.sum(self.shares[c])), self.least)
            lines.append(line)
        return lines

    def costs(self, given: Any) -> Floats:
        """A table (labels, classes) of what a decision costs; 1 for each error unless given."""
        k = len(self.classes)
        if given is None:
            return 1.0 - np.eye(k)
        if isinstance(given, Mapping):
            stated = np.zeros((k, k), object)
            fix = 'Write {("yes", "no"): 5.0}: the label, then the prediction.'
            expected = f"pairs (label, prediction) out of {list(self.classes)}"
            for pair, cost in given.items():
                fits = isinstance(pair, tuple) and len(pair) == 2 and set(pair) <= {*self.classes}
                need(fits, expected, of="costs", got=pair, fix=fix)
                stated[self.classes.index(pair[0]), self.classes.index(pair[1])] = cost
            given = stated
        try:
            table = np.asarray(given, np.float64)
        except (TypeError, ValueError):
            table = np.zeros(0)
        fits = table.shape == (k, k) and bool(np.isfinite(table).all())
        fix = "One line a label, one column a prediction."
        need(fits, f"finite numbers ({k}, {k})", of="costs", got=np.shape(given), fix=fix)
        return table

    def share(self, *place: Any) -> float:
        """Of all rows, those of a cell, of a label of all cells, or of both: what divides."""
        return max(float(np.sum(self.shares[place])), self.least)

    def function(
        self, lines: list[Floats], outer: Outer, names: Iterable[str], *, trusted: bool = False
    ) -> GroupFunction:
        """The function of these lines."""
        many = stacked(lines, self.shape)
        return GroupFunction(self.shape, many, outer, names=tuple(names), trusted=trusted)

    def named(self, words: str) -> list[str]:
        """A name for each group's line."""
        return [f"{words} of group {keys.shown(key)}" for key in self.cells.keys]


class Objective(ABC):
    """Something to be minimized. A public description, abstract. `decisions_only`: not for losses
    that are numbers."""

    kind: ClassVar[str] = ""
    words: ClassVar[str] = ""
    """What it is, in a sentence about its bound; empty: as it is printed."""
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
        rates = self.decisions_only
        return Bound(self, below_one(bound) if rates else _checks.non_negative(bound=bound))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, which `from_dict` reads. A user's functions are never written."""
        return written(CODEC, self)

    def need_classes(self, frame: Frame) -> None:
        """An error where losses are numbers."""
        fix = "Regressions and log losses know means by group: error, weighted error, largest and "
        fix += "mean group loss, Gini."
        expected = f"decisions among classes, for {self.kind}"
        need(frame.classes, expected, of="objective", got="losses that are numbers", fix=fix)

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, eq=False)
class Bound:
    """A constraint: an objective that is at most `bound`."""

    objective: Objective
    bound: float

    def __post_init__(self) -> None:
        _checks.normalise(self, bound=_checks.non_negative(bound=self.bound, allow_inf=True))

    def at(self, frame: Frame) -> GroupFunction:
        """g, which is at most 0 where it holds."""
        return self.objective.excess(frame, self.bound)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return written(CODEC, self)

    def __str__(self) -> str:
        return f"{self.objective} <= {self.bound:g}"


def below_one(bound: object, name: str = "bound") -> float:
    """A bound on an objective that is a rate, a gap of rates or a mean of them."""
    return rate_bound(name, bound, way_out="To require nothing, leave the bound out.")


def require_pairs(pairs: Sized, frame: Frame, of: str) -> None:
    """An error where there are no two groups to compare."""
    got, fix = f"groups {list(frame.cells.keys)}", "Pass sensitive_features with several groups."
    need(len(pairs), "at least two groups to compare", of=of, got=got, fix=fix)


@lru_cache(maxsize=64)
def resolved(
    notions: tuple[Notion, ...], cells: Cells, classes: tuple[Hashable, ...]
) -> ConstraintSystem:
    """`resolve`, kept."""
    return resolve(notions, cells, classes)


def of_system(
    system: ConstraintSystem, frame: Frame, function: Outer, *, bounded: bool = False
) -> GroupFunction:
    """Combinations of rates as lines over l; less their bounds, if they are `bounded`."""
    lines = sparse.csr_array(system.jacobian(frame.shares, frame.least))
    if bounded:
        offsets = system.bounds
        return GroupFunction(frame.shape, lines, function, names=system.names, offsets=offsets)
    names = tuple(name.rsplit(" <= ", 1)[0] for name in system.names)
    return GroupFunction(frame.shape, lines, function, names=names)


def largest(sharpness: float | None) -> Outer:
    """The largest of several numbers, or its smooth form."""
    return Largest() if sharpness is None else SoftLargest(sharpness)


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
    words: ClassVar[str] = "mean cost of a decision"
    costs: Any = None
    groups: Any = None

    @property
    def needs_groups(self) -> bool:
        return bool(self.groups)

    def at(self, frame: Frame) -> GroupFunction:
        weights, known = np.ones(frame.cells.count), frame.cells.keys
        expected = f"finite weights of groups out of {list(known)}"
        fix = "Write {'f': 2.0}, for example."
        for key, weight in dict(self.groups or {}).items():
            number = isinstance(weight, numbers.Real) and math.isfinite(weight)
            need(number and key in known, expected, of="groups", got={key: weight}, fix=fix)
            weights[known.index(key)] = weight
        line = np.zeros(frame.shape)
        line += frame.costs(self.costs) if frame.classes else 1.0
        line *= weights.reshape(-1, *(1,) * (line.ndim - 1)) / frame.cells.per_row
        return frame.function([line], Total(), ["mean cost"])


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
        return of_system(resolved(asked, frame.cells, frame.classes), frame, Total())

    def __str__(self) -> str:
        return str(self.rate)


@dataclass(frozen=True)
class _OfPositive(Objective):
    """Abstract: one rate of all rows, given a positive class."""

    decisions_only: ClassVar[bool] = True
    positive: Hashable = None

    @property
    def needs_groups(self) -> bool:
        return False

    def at(self, frame: Frame) -> GroupFunction:
        self.need_classes(frame)
        return RateOf(self._rate(positive_class(self.positive, frame.classes), frame)).at(frame)

    @abstractmethod
    def _rate(self, positive: Hashable, frame: Frame) -> Rate:
        """The rate."""


@dataclass(frozen=True)
class FalseNegatives(_OfPositive):
    """P(prediction is not positive | label = positive): the misses. One less the power of a
    test."""

    kind: ClassVar[str] = "false_negative_rate"

    def _rate(self, positive: Hashable, frame: Frame) -> Rate:
        return ErrorRate(Event(labels=(positive,)))


@dataclass(frozen=True)
class FalsePositives(_OfPositive):
    """P(prediction = positive | label is not): the false alarms. The level of a test."""

    kind: ClassVar[str] = "false_positive_rate"

    def _rate(self, positive: Hashable, frame: Frame) -> Rate:
        others = tuple(y for y in frame.classes if y != positive)
        return PredictionRate(positive, Event(labels=others))


@dataclass(frozen=True)
class _MeanOfRecalls(Objective):
    """Abstract: 1 less a mean of the recalls P(prediction = y | label = y)."""

    decisions_only: ClassVar[bool] = True
    smoothing: float = SMOOTHING

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

    def _of(self, frame: Frame, function: Outer) -> GroupFunction:
        self.need_classes(frame)
        lines = []
        for y in range(len(frame.classes)):
            line = np.zeros(frame.shape)
            line[:, y, y] = 1.0 / frame.share(slice(None), y)
            lines.append(line)
        return frame.function(
            lines, function, [f"recall of {keys.shown(y)}" for y in frame.classes]
        )


@dataclass(frozen=True)
class GMean(_MeanOfRecalls):
    """1 less the geometric mean of recalls (Example 8.2), each raised by `smoothing`: it has no
    Lipschitz constant without."""

    kind: ClassVar[str] = "gmean"

    def at(self, frame: Frame) -> GroupFunction:
        return self._of(frame, GeometricShortfall(self.smoothing))


@dataclass(frozen=True)
class HMean(_MeanOfRecalls):
    """1 less the harmonic mean of recalls. `Differs:` Example 8.3 divides by columns, precisions,
    whose mean is not concave."""

    kind: ClassVar[str] = "hmean"

    def at(self, frame: Frame) -> GroupFunction:
        return self._of(frame, HarmonicShortfall(self.smoothing))


GAPS: Mapping[str, type[GapNotion]] = {
    cls.kind: cls
    for cls in (
        DemographicParity,
        EqualizedOdds,
        EqualOpportunity,
        FalsePositiveRateParity,
        ErrorRateParity,
    )
}


@dataclass(frozen=True)
class Gap(Objective):
    """The largest gap of a notion of fairness, between any two groups.

    `sharpness`: None for the largest itself; else its smooth form (1/eta) ln sum e^(eta gap), which
    is convex and no smaller. Definition 1.14's is `SmoothedOddsOfPairs`.
    """

    kind: ClassVar[str] = "gap"
    decisions_only: ClassVar[bool] = True
    notion: str = "equalized_odds"
    sharpness: float | None = None
    groups: str = "product"

    def __post_init__(self) -> None:
        _checks.one_of(GAPS, notion=self.notion)

    def at(self, frame: Frame) -> GroupFunction:
        self.need_classes(frame)
        system = resolved((GAPS[self.notion](0.0, groups=self.groups),), frame.cells, frame.classes)
        require_pairs(system, frame, str(self))
        return of_system(system, frame, largest(self.sharpness))

    def __str__(self) -> str:
        smooth = "" if self.sharpness is None else f" (smooth, sharpness {self.sharpness:g})"
        return f"{self.notion}{smooth}"


def _columns(cells: Cells) -> list[range]:
    """The cells that are compared with each other: all of them, or those of one sensitive
    column."""
    ends = [0, cells.count] if cells.mode == "product" else [0, *itertools.accumulate(cells.sizes)]
    return [range(first, last) for first, last in itertools.pairwise(ends)]


@dataclass(frozen=True)
class _PublishedOdds(Objective):
    """Abstract: a smooth maximum of |FP_a - FP_b| and |TP_a - TP_b|, of two classes
    (`BoltzmannOfGaps`)."""

    decisions_only: ClassVar[bool] = True
    sharpness: float = 50.0

    def at(self, frame: Frame) -> GroupFunction:
        self.need_classes(frame)
        expected, k = "two classes, whose second is the positive one", len(frame.classes)
        need(k == 2, expected, of=self.kind, got=k, fix="Pass Gap('equalized_odds').")
        columns = _columns(frame.cells)
        pairs = [pair for column in columns for pair in itertools.combinations(column, 2)]
        require_pairs(pairs, frame, self.kind)
        lines, names = [], []
        for (a, b), (y, rate) in itertools.product(pairs, enumerate(("false", "true"))):
            line = np.zeros(frame.shape)
            for c, sign in ((a, 1.0), (b, -1.0)):
                line[c, y, 1] = sign / frame.share(c, y)
            lines.append(line)
            one, other = (keys.shown(frame.cells.keys[c]) for c in (a, b))
            names.append(f"{rate} positive rates of groups {one} and {other}")
        return frame.function(lines, self._outer(frame.cells), names)

    @abstractmethod
    def _outer(self, cells: Cells) -> Outer:
        """How the differences become one number."""

    def __str__(self) -> str:
        return f"{self.kind} (sharpness {self.sharpness:g})"


@dataclass(frozen=True)
class SmoothedOddsOfPairs(_PublishedOdds):
    """Definition 1.14 (8.8) to the letter: smax over a, a' in A of max(|FP_a - FP_a'|, |TP_a -
    TP_a'|), a = a' among them, smax(u) = sum_i u_i e^(eta u_i) / sum_i e^(eta u_i). Not convex: for
    the exponential method. It is below the largest gap by up to ln(groups^2) / sharpness."""

    kind: ClassVar[str] = "smoothed_odds_of_pairs"
    words: ClassVar[str] = (
        "smoothed largest gap of true and false positive rates over all pairs of groups"
    )

    def _outer(self, cells: Cells) -> Outer:
        return BoltzmannOfGaps(self.sharpness, lines=2, times=2, zeros=cells.count)


@dataclass(frozen=True)
class SmoothedOddsOfRates(_PublishedOdds):
    """Example 8.10's maximum: smax(|FP_a - FP_b|, |TP_a - TP_b|) of two groups, of more over all
    their pairs, each once. Not convex: for the exponential method."""

    kind: ClassVar[str] = "smoothed_odds_of_rates"
    words: ClassVar[str] = "smoothed largest difference of true or false positive rates"

    def _outer(self, cells: Cells) -> Outer:
        return BoltzmannOfGaps(self.sharpness)


@dataclass(frozen=True)
class SumOfErrorRates(Objective):
    """The sum over groups and labels of P(prediction is not y | group a, label = y): f of Example
    8.10, of two classes sum_a FP_a + FN_a. Between 0 and groups x labels. Every conditional rate
    counts alike, however few rows it is of."""

    kind: ClassVar[str] = "sum_of_error_rates"
    words: ClassVar[str] = "sum over groups and labels of the rates of wrong decisions"

    def at(self, frame: Frame) -> GroupFunction:
        self.need_classes(frame)
        lines, names, labels = [], [], range(len(frame.classes))
        for (c, key), y in itertools.product(enumerate(frame.cells.keys), labels):
            line = np.zeros(frame.shape)
            line[c, y, :] = (np.arange(len(labels)) != y) / frame.share(c, y)
            lines.append(line)
            label = keys.shown(frame.classes[y])
            names.append(f"errors of group {keys.shown(key)} with label {label}")
        return frame.function(lines, MeanOfRates(), names)


@dataclass(frozen=True, eq=False)
class LargestGroupLoss(Objective):
    """The largest of the groups' mean losses (costs of decisions as in `WeightedError`)."""

    kind: ClassVar[str] = "largest_group_loss"
    words: ClassVar[str] = "largest of the groups' mean losses"
    costs: Any = None
    sharpness: float | None = None

    def at(self, frame: Frame) -> GroupFunction:
        lines, names = frame.losses(self.costs), frame.named("mean loss")
        return frame.function(lines, largest(self.sharpness), names)


@dataclass(frozen=True)
class GroupLoss(Objective):
    """One group's mean loss: bounds that differ from group to group are one each."""

    kind: ClassVar[str] = "group_loss"
    group: Any

    def at(self, frame: Frame) -> GroupFunction:
        known, fix = frame.cells.keys, "Name a group as the estimator's `groups_` does."
        need(self.group in known, f"one of {list(known)}", of="group", got=self.group, fix=fix)
        line = frame.losses()[known.index(self.group)]
        return frame.function([line], Largest(), [f"mean loss of group {keys.shown(self.group)}"])


@dataclass(frozen=True)
class MeanGroupLoss(Objective):
    """The mean of the groups' mean losses (in classification their errors): every group counts as
    much, however few it has."""

    kind: ClassVar[str] = "mean_group_loss"
    words: ClassVar[str] = "mean of the groups' mean losses"

    def at(self, frame: Frame) -> GroupFunction:
        line = np.mean(frame.losses(), axis=0)
        return frame.function([line], MeanOfRates(), ["mean of the groups' losses"])


@dataclass(frozen=True, eq=False)
class Gini(Objective):
    """The Gini index of the groups' means of `payoff`, a table (labels, predictions) of at least 0:
    by default, of how often groups get the second class (for regression: of their mean losses). A
    constraint alone: it is quasi-convex, and index <= theta is convex (Definition 8.6)."""

    kind: ClassVar[str] = "gini"
    words: ClassVar[str] = "Gini index of the groups' means"
    payoff: Any = None

    def at(self, frame: Frame) -> GroupFunction:
        fix = "Bound it: Gini().at_most(0.1), and make something convex small, the error say."
        expected, got = "a convex objective", "the Gini index"
        raise InputError.expected(expected, of="objective", got=got, remedy=fix)

    def at_most(self, bound: float) -> Bound:
        return Bound(self, below_one(bound))

    def measured(self, frame: Frame, losses: Floats) -> float:
        return float(gini(np.maximum(self.level_set(frame, 0.0).rates(losses), 0.0)))

    def excess(self, frame: Frame, bound: float) -> GroupFunction:
        return self.level_set(frame, bound)

    def level_set(self, frame: Frame, theta: float) -> GroupFunction:
        """The convex function that is above 0 exactly where the index is above theta."""
        payoff, k = self.payoff, len(frame.classes)
        if payoff is None and k:
            payoff = np.tile(np.arange(k) == 1, (k, 1)).astype(np.float64)
        least, fix = frame.costs(payoff).min(initial=0.0), "Incomes and rates are; shift the table."
        need(
            not k or least >= 0, "numbers of at least 0", of="payoff", got="negative ones", fix=fix
        )
        return frame.function(frame.losses(payoff), Inequality(theta), frame.named("mean"))


@dataclass(frozen=True, eq=False)
class Custom(Objective):
    """A user's function of rates: `value(v)`, `gradient(v)` of a vector v, and its constants (L2),
    which are checked by sampling and otherwise trusted, as the statement says.

    `rates`: "losses", the mean loss of each group; "frequencies", l itself, one number a cell,
    label and prediction.
    """

    kind: ClassVar[str] = "custom"
    words: ClassVar[str] = "function that was handed in"
    value: Callable[[Floats], Any]
    gradient: Callable[[Floats], Any]
    lipschitz: float
    smoothness: float = math.inf
    convex: bool = True
    monotone: bool = False
    rates: str = "losses"

    def __post_init__(self) -> None:
        _checks.one_of(("losses", "frequencies"), rates=self.rates)
        _checks.normalise(self, lipschitz=_checks.positive(lipschitz=self.lipschitz))
        _checks.normalise(
            self, smoothness=_checks.non_negative(smoothness=self.smoothness, allow_inf=True)
        )
        for name, given in _checks.named(self, ("value", "gradient")).items():
            fix = "Pass a function of a vector of rates."
            need(callable(given), "a function", of=name, got=given, fix=fix)

    def at(self, frame: Frame) -> GroupFunction:
        size = math.prod(frame.shape)
        losses = self.rates == "losses"
        lines = stacked(frame.losses(), frame.shape) if losses else sparse.eye_array(size)
        constants = self.lipschitz, self.smoothness, self.convex, self.monotone
        stated = Stated(self.value, self.gradient, *constants)
        return checked(GroupFunction(frame.shape, sparse.csr_array(lines), stated, trusted=True))


@dataclass(frozen=True, eq=False)
class Constraint:
    """Several bounds and notions of fairness at once: g is the largest excess over any of them."""

    bounds: tuple[Bound, ...] = ()
    notions: tuple[Notion, ...] = ()

    @property
    def is_vacuous(self) -> bool:
        """Whether it asks for nothing."""
        return not self.bounds and not self._asked

    @property
    def _asked(self) -> list[Notion]:
        return [notion for notion in self.notions if not notion.is_vacuous]

    @property
    def needs_groups(self) -> bool:
        """Whether any of it tells groups apart."""
        of_bounds = any(bound.objective.needs_groups for bound in self.bounds)
        return of_bounds or any(map(uses_groups, self._asked))

    def of_decisions(self) -> Constraint:
        """Itself, where losses are errors of decisions: bounds of 1 or more on their rates are then
        an error."""
        for one in self.bounds:
            rates = isinstance(one.objective, Error | GroupLoss | MeanGroupLoss | LargestGroupLoss)
            if rates and one.objective.costs is None:
                below_one(one.bound, f"bound of {one.objective}")
        return self

    @property
    def titles(self) -> tuple[str, ...]:
        """What each of its functions is, in words."""
        return (*map(str, self.bounds), *(["notions of fairness"] if self._asked else []))

    def at(self, frame: Frame) -> list[GroupFunction]:
        """Its functions: each bound's, and each notion's largest excess; all at most 0 where it
        holds."""
        out = [bound.at(frame) for bound in self.bounds]
        numbers_alone = not frame.classes
        losses: list[Any] = [one for one in self._asked if isinstance(one, BoundedGroupLoss)]
        if losses and numbers_alone:
            least = min(notion.max_loss for notion in losses)
            out.append(LargestGroupLoss().at_most(least).at(frame))
        rest = [one for one in self._asked if not (numbers_alone and one in losses)]
        if rest:
            fix = "Regression knows BoundedGroupLoss(max_loss, loss='squared')."
            got = str(rest[0])
            need(frame.classes, "bounds on losses", of="constraint", got=got, fix=fix)
            system = resolved(tuple(rest), frame.cells, frame.classes)
            require_pairs(system, frame, ", ".join(map(_words, rest)))
            out.append(of_system(system, frame, Largest(), bounded=True))
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return written(CODEC, self)

    def __str__(self) -> str:
        return ", ".join([*map(str, self.bounds), *map(_words, self.notions)]) or "none"


def _words(notion: Notion) -> str:
    """As on a command line; a rate constraint says what it is."""
    bounds = [value for name, value in vars(notion).items() if name.startswith("max_")]
    return f"{notion.kind}:{bounds[0]:g}" if bounds else str(notion)


NAMES: Mapping[str, Callable[[], Objective]] = {
    "error": Error,
    "gmean": GMean,
    "hmean": HMean,
    "largest_group_loss": LargestGroupLoss,
    "mean_group_loss": MeanGroupLoss,
    "sum_of_error_rates": SumOfErrorRates,
    "false_negative_rate": FalseNegatives,
    "false_positive_rate": FalsePositives,
    "gini": Gini,
    **{name: (lambda name=name: Gap(name)) for name in GAPS},  # type: ignore[misc]
}


OBJECTIVES: tuple[type[Objective], ...] = (
    Error,
    WeightedError,
    RateOf,
    FalseNegatives,
    FalsePositives,
    GMean,
    HMean,
    Gap,
    LargestGroupLoss,
    GroupLoss,
    MeanGroupLoss,
    SumOfErrorRates,
    SmoothedOddsOfPairs,
    SmoothedOddsOfRates,
    Gini,
)
"""Those that files hold: all but functions of a user's own."""
KINDS = tuple(Kind(cls) for cls in (*OBJECTIVES, Bound, Constraint))
CODEC = NOTION_CODEC.with_kinds(*KINDS)


def from_dict(values: object) -> Objective | Bound | Constraint:
    """The inverse of every `to_dict` here; refuses unknown objectives and fields."""
    document = Document("objective", "Write it with to_dict().")
    found: Any = CODEC.read(document.of(values))
    if not isinstance(found, Objective | Bound | Constraint):
        document.refuse("an objective, a bound or a constraint", values)
    return found


NOT_WRITTEN = (
    "It stands for a function of the user's, which is not written: set it anew with set_params "
    "before a fit."
)
"""What a loaded estimator has in its place is the word "given"."""


def parse_objective(given: object) -> Objective:
    """An objective, or its name."""
    if isinstance(given, Objective):
        return given
    name = given.replace("-", "_") if isinstance(given, str) else ""
    if name not in NAMES:
        # a Gini index is bounded, never minimized
        known = ", ".join(one for one in NAMES if one != Gini.kind)
        bound = isinstance(given, Bound | Constraint | Notion) or ":" in name
        fix = "Pass objective='error', for example."
        if bound:
            fix = "A bound is a constraint=; as an objective name what is to be small: "
            fix += "objective='equalized_odds', for example."
        expected, fix = f"an objective, or a name out of {known}", _given(given, fix)
        raise InputError.expected(expected, of="objective", got=given, remedy=fix)
    return NAMES[name]()


def _given(given: object, fix: str) -> str:
    return NOT_WRITTEN if isinstance(given, str) and given == "given" else fix


def parse_constraint(given: object) -> Constraint:
    """None, one or several: bounds, notions of fairness, or texts such as "equalized_odds:0.1" and
    "gmean:0.3"."""
    several = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    listed: Any = [] if given is None else given if several else [given]
    bounds: list[Bound] = []
    notions: list[Notion] = []
    for item in listed:
        one = _parsed(item) if isinstance(item, str) else item
        if isinstance(one, Bound):
            bounds.append(one)
        elif isinstance(one, Constraint):
            bounds, notions = [*bounds, *one.bounds], [*notions, *one.notions]
        else:
            fix = 'Pass "equalized_odds:0.1", EqualizedOdds(0.1) or '
            fix += "objectives.GMean().at_least(0.7), for example."
            expected = "a bound or a notion of fairness"
            need(isinstance(one, Notion), expected, of="constraint", got=item, fix=fix)
            notions.append(one)
    return Constraint(tuple(bounds), tuple(notions))


def _parsed(text: str) -> Bound | Notion:
    name, _, rest = (part.strip() for part in text.partition(":"))
    name = name.replace("-", "_")
    head = name.partition(",")[0].strip()
    known = dict.fromkeys([*NAMES, *(one.kind for one in OF_TEXTS)])
    expected = f"a name out of {', '.join(known)}, then ':' and a bound"
    fix = _given(text, "Pass demographic_parity:0.05, for example.")
    need(head in known, expected, of="constraint", got=text, fix=fix)
    if name not in NAMES or name in NOTIONS:
        return parse(text)
    try:
        bound = float(rest) if (part := share(rest)) is None else part
    except ValueError:
        fix = f"Write {name}:0.1 or {name}:10%, for example: how much is allowed is yours to say."
        expected = "a name, ':' and a bound"
        raise InputError.expected(expected, of="constraint", got=text, remedy=fix) from None
    asked = NAMES[name]()
    if asked.decisions_only or isinstance(asked, Gini):
        rate_in_text(bound, text, name, "max_rate")
    return asked.at_most(bound)
