"""Notions of fairness, as linear constraints on rates. Each only chooses what is compared; the
general rate constraint does the rest. Holds no data: group keys, labels and numbers only.

A *rate* is P(outcome | event). An *event* is a set of (group, label) pairs; an *outcome* is "the
prediction is class k" or "the prediction is wrong". A constraint bounds a linear combination of
them,

    sum_t  c_t * P(outcome_t | event_t)  <=  bound,

the generalised rate constraints of RaCO-DP (its eq. 6). `Differs:` the paper's outcomes are classes
only; an error rate P(prediction != label | event) is not a fixed combination of those (the share of
each label would enter), so it is an outcome of its own.

A gap notion with bound `max_gap` says |rate given one group - rate given another| <= max_gap, as
two one-sided constraints. The bound has no default. None requires nothing, and is how that is said:
a bound of 1 or more is an error.
- `compare="pairs"`: every ordered pair of groups (of one sensitive column, when groups are
  marginal);
- `compare="rest"`: every group against its complement, all rows that are not in it, and the
  complement against it. With two groups that is the same as pairs. With more it is weaker: pairs
  within g imply rest within g, not the other way round.

`confidence`: estimators with `certify` set rows aside, aim inside the bound, and certify it
for the population with this confidence. Others refuse it.

With two classes a constraint on the second class's rate is also one on the first's (they sum to 1),
so only the second is written down; with more, every class.

A rate lies between 0 and 1, and two rates are never more than 1 apart. On a command line a bound
may be in per cent: "5%" is 0.05.
"""

from __future__ import annotations

import math
import numbers
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._codec import Codec, Kind, UnwrittenError
from .._json import Document
from ..errors import FairveilError, InputError
from ..facts import GROUP_MODES, Cells
from ..tables import keys

LARGEST = 1.0
UNITS = {"max_gap": "percentage points"}  # of all others: per cent
_PER_CENT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*%\s*")
_BARE_POINT = re.compile(r"[+-]?(?:\d+\.|\.\d+)(?:[eE][+-]?\d{1,3})?")


class _NotGiven:
    """The default of a bound that has none."""

    def __repr__(self) -> str:
        return "required"

    def __copy__(self) -> _NotGiven:
        return self

    def __deepcopy__(self, memo: object) -> _NotGiven:
        return self


NOT_GIVEN: Any = _NotGiven()


def of_rates(owner: str, *, below: float = LARGEST, **named: object) -> float | None:
    """A bound on rates or on gaps of rates: at least 0 and below `below`, or None, which requires
    nothing.

    >>> of_rates("DemographicParity", max_gap=0.05)
    0.05
    """
    ((name, value),) = named.items()
    if value is NOT_GIVEN:
        remedy = (
            f"Write {owner}({name}=0.05), for example, or {owner}({name}=None) to require nothing."
        )
        raise InputError.expected("a bound", of=name, got="none", remedy=remedy, quote=False)
    if value is None:
        return None
    way_out = f"{name}=None requires nothing."
    bound = _number(name, value, f"Pass {name}=0.05, for example; {way_out}")
    if bound >= below:
        back = (
            asked_back(name, bound, f"{name}={{}}")
            if below == LARGEST
            else "This loss has no largest value."
        )
        remedy = f"{back} {way_out}"
        raise InputError.expected(
            f"a number from 0 to below {below:g}", of=name, got=value, remedy=remedy
        )
    return bound


def asked_back(name: str, bound: float, *ways: str) -> str:
    """What so large a bound would mean, and which smaller one may have been meant; `ways` to write
    that, with {} for it.

    >>> asked_back("max_gap", 5.0, "max_gap={}")
    '5 means 500 percentage points: did you mean max_gap=0.05?'
    >>> asked_back("max_rate", 300.0, "max_rate={}")
    'No rate is above 1.'
    """
    unit = UNITS.get(name, "per cent")
    if bound >= 100:
        return "No two rates are more than 1 apart." if name == "max_gap" else "No rate is above 1."
    meant = " or ".join(way.format(f"{bound / 100:.6g}") for way in ways)
    return f"{bound:g} means {100 * bound:.6g} {unit}: did you mean {meant}?"


def share(text: str) -> float | None:
    """The number that a text in per cent stands for; None where it is not in per cent.

    >>> share("5%"), share("2.3 %"), share("0.05")
    (0.05, 0.023, None)
    """
    found = _PER_CENT.fullmatch(text) if len(text) < 64 else None
    return None if found is None else float(Decimal(found[1]) / 100)


def bare_point(text: str) -> float | None:
    """A number with no digit before its point, or none after it, which JSON does not take; None of
    any other text.

    >>> bare_point(".1"), bare_point("1."), bare_point("0.1")
    (0.1, 1.0, None)
    """
    return float(text) if len(text) < 64 and _BARE_POINT.fullmatch(text) else None


def below_one(bound: object, name: str) -> float:
    """A bound on an objective that is a rate, a gap of rates or a mean of them."""
    found = _number(name, bound, f"Pass {name}=0.05, for example.")
    if found >= LARGEST:
        remedy = (
            f"{asked_back(name, found, f'{name}={{}}')} To require nothing, leave the bound out."
        )
        raise InputError.expected("a number from 0 to below 1", of=name, got=bound, remedy=remedy)
    return found


def _number(name: str, value: object, remedy: str) -> float:
    """At least 0, perhaps infinite: whoever calls refuses that in words of its own."""
    if isinstance(value, float) and value == math.inf:
        return value
    return _checks.non_negative(remedy=remedy, **{name: value})  # type: ignore[arg-type]


def require_below_one(bound: float, text: str, name: str, limit: str) -> None:
    """An error where the bound in a text requires nothing. `name`: of what it bounds; `limit`:
    "max_gap", or of a rate."""
    if bound >= LARGEST:
        remedy = f"{asked_back(limit, bound, f'{name}:{{}}')[:-1]} or {name}:{bound:g}%?"
        remedy = (
            remedy
            if bound < 100
            else f"{asked_back(limit, bound)} Leave the option out to require nothing."
        )
        raise InputError.expected(
            "a bound from 0 to below 1", of="constraint", got=text, remedy=remedy
        )


def of_confidence(confidence: object) -> None:
    """The confidence with which a fit certifies a bound: None, or from 0.5 to below 1."""
    if confidence is None:
        return
    remedy = "Pass confidence=0.95, for example: no finite number of people makes anything certain."
    found = _checks.fraction(confidence=confidence, high_open=True, remedy=remedy)
    if found < 0.5:
        raise InputError.expected(
            "0.5 or more, and below 1", of="confidence", got=confidence, remedy=remedy
        )


@dataclass(frozen=True)
class Event:
    """Rows of these `groups` (None: of everyone) whose label is one of `labels` (None: whatever it
    is).

    `outside=True` takes the rows of all other groups instead: the complement, within the same
    sensitive column when groups are marginal. `also` adds the rows of further events, so any set of
    (group, label) pairs can be written.

    >>> print(Event(groups=("f",), labels=(1,)))
    group f, label 1
    >>> print(Event(groups=("f",), outside=True))
    outside group f
    >>> print(Event())
    everyone
    """

    groups: tuple[Hashable, ...] | None = None
    labels: tuple[Hashable, ...] | None = None
    outside: bool = False
    also: tuple[Event, ...] = ()

    def __post_init__(self) -> None:
        _checks.normalise(
            self,
            groups=_key_list("groups", self.groups),
            labels=_key_list("labels", self.labels),
        )
        _checks.normalise(self, also=tuple(self.also))
        if self.outside and self.groups is None:
            remedy = 'Pass Event(groups=("f",), outside=True), for example.'
            raise InputError.expected(
                "groups to be outside of", of="groups", got=None, remedy=remedy
            )

    def __str__(self) -> str:
        words = []
        if self.groups is not None:
            words.append(
                f"{'outside ' if self.outside else ''}group "
                f"{' or '.join(map(keys.shown, self.groups))}"
            )
        if self.labels is not None:
            words.append(f"label {' or '.join(map(keys.shown, self.labels))}")
        return "; or ".join([", ".join(words) or "everyone", *map(str, self.also)])


@dataclass(frozen=True)
class PredictionRate:
    """P(prediction = `prediction` | `event`)."""

    prediction: Hashable
    event: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        _checks.normalise(self, prediction=keys.plain(self.prediction, of="prediction"))

    def __str__(self) -> str:
        return f"P(prediction = {keys.shown(self.prediction)} | {self.event})"


@dataclass(frozen=True)
class ErrorRate:
    """P(prediction differs from the label | `event`)."""

    event: Event = field(default_factory=Event)

    def __str__(self) -> str:
        return f"P(prediction is wrong | {self.event})"


Rate = PredictionRate | ErrorRate


class Notion(ABC):
    """What is asked of a model's decisions. Holds no data: the same object serves fit, audit and
    command line."""

    kind: ClassVar[str] = ""
    # what stands here for a notion without such a field
    groups: str | None = None
    confidence: float | None = None

    @property
    @abstractmethod
    def is_vacuous(self) -> bool:
        """True when no decision rule whatever could break it."""

    @abstractmethod
    def constraints(self, cells: Cells, classes: Sequence[Hashable]) -> tuple[RateConstraint, ...]:
        """The rate constraints it stands for, given the public lists of groups and classes."""

    def to_dict(self) -> dict[str, Any]:
        """Describe the notion as plain JSON values, which `fairness.notions.from_dict` reads.

        Returns
        -------
        dict
            Plain JSON values, with the class under "type".
        """
        return written(CODEC, self)


@dataclass(frozen=True)
class RateConstraint(Notion):
    """Linear constraint on rates: the sum of coefficient x rate is at most a bound.

    Parameters
    ----------
    terms : tuple of (float, Rate)
        Coefficients and rates: `PredictionRate` or `ErrorRate`, each given an event.
    bound : float
        Largest value of the sum, a share of 1.
    groups : {"product", "marginal"}, default="product"
        How keys of groups in its events are read: as combinations of values, or as values of one
        column.
    name : str, default=""
        A name for reports. Empty: the constraint itself in words.

    Examples
    --------
    >>> yes_f, yes_m = (PredictionRate("yes", Event(groups=(key,))) for key in "fm")
    >>> print(RateConstraint(((1.0, yes_f), (-0.8, yes_m)), bound=0.0))
    P(prediction = yes | group f) - 0.8 P(prediction = yes | group m) <= 0
    """

    kind: ClassVar[str] = "rate_constraint"
    terms: tuple[tuple[float, Rate], ...]
    bound: float
    groups: str = field(default="product", kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        terms = tuple(tuple(term) for term in self.terms)
        if not terms or any(
            len(term) != 2 or not isinstance(term[1], (PredictionRate, ErrorRate)) for term in terms
        ):
            remedy = "Pass ((1.0, PredictionRate(1, Event())),), for example."
            raise InputError.expected(
                "pairs (coefficient, rate)", of="terms", got=self.terms, remedy=remedy
            )
        _checks.normalise(self, terms=tuple((_finite("coefficient", c), rate) for c, rate in terms))
        _checks.normalise(self, bound=_finite("bound", self.bound))
        _checks.one_of(GROUP_MODES, groups=self.groups)

    def __str__(self) -> str:
        words = "".join(_signed(c, rate, first=t == 0) for t, (c, rate) in enumerate(self.terms))
        return self.name or f"{words} <= {self.bound:g}"

    @property
    def is_vacuous(self) -> bool:
        """The bound is at least the largest value that the combination could take.

        Given one event the rates of the classes sum to at most 1, so an event adds at most its
        largest positive coefficient.
        """
        merged: dict[Rate, float] = {}
        for coefficient, rate in self.terms:
            merged[rate] = merged.get(rate, 0.0) + coefficient
        largest: dict[tuple[type, Event], float] = {}
        for rate, coefficient in merged.items():
            place = (type(rate), rate.event)
            largest[place] = max(largest.get(place, 0.0), coefficient)
        return self.bound >= sum(largest.values())

    def constraints(self, cells: Cells, classes: Sequence[Hashable]) -> tuple[RateConstraint, ...]:
        """This constraint itself.

        Parameters
        ----------
        cells : Cells
            Groups of the data.
        classes : sequence
            Classes of decisions and labels, in order.

        Returns
        -------
        tuple of RateConstraint
            The constraints, each one-sided.
        """
        return (self,)


def _key_list(name: str, value: object) -> tuple[Hashable, ...] | None:
    if value is None:
        return None
    listed = (
        tuple(keys.plain(key, of=name) for key in value) if isinstance(value, (list, tuple)) else ()
    )
    if not listed or len(set(listed)) != len(listed):
        remedy = f"Pass {name}=(key,) for one, or None for all."
        raise InputError.expected(
            "a non-empty tuple of distinct keys", of=name, got=value, remedy=remedy
        )
    return listed


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise InputError.expected(
            "a finite number", of=name, got=value, remedy=f"Pass {name}=1.0, for example."
        )
    return float(value)


def _signed(coefficient: float, rate: Rate, *, first: bool) -> str:
    sign = "-" if coefficient < 0 else "+"
    size = "" if abs(coefficient) == 1 else f"{abs(coefficient):g} "
    lead = ("-" if coefficient < 0 else "") if first else f" {sign} "
    return f"{lead}{size}{rate}"


COMPARISONS = ("pairs", "rest")


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups as sets of cells: `members[g, c]` says whether cell c belongs to group g.

    `columns[g]` is the sensitive column that group g comes from (marginal groups), or 0 for all
    (product groups). Only groups of one column are compared: across columns they overlap, and
    "women against Black people" compares nothing.
    """

    keys: tuple[Hashable, ...]
    columns: tuple[int, ...]
    members: npt.NDArray[np.bool_]

    @staticmethod
    def of(cells: Cells, mode: str) -> Grouping:
        """The groups of `mode` built from `cells`. Marginal groups are unions of product cells,
        never the other way round."""
        single = len(cells.columns) == 1
        if mode == "product" or single:
            if cells.mode == "marginal" and not single:
                raise InputError.expected(
                    "product cells, to build product groups from",
                    of="cells",
                    got=cells.mode,
                    remedy='Count Cells(..., mode="product"), or ask for groups="marginal".',
                )
            return Grouping(cells.keys, (0,) * cells.count, np.eye(cells.count, dtype=bool))
        marginal = Cells(cells.columns, mode="marginal", names=cells.names)
        columns = tuple(j for j, size in enumerate(cells.sizes) for _ in range(size))
        if cells.mode == "marginal":
            return Grouping(marginal.keys, columns, np.eye(cells.count, dtype=bool))
        grid = np.indices(cells.sizes).reshape(len(cells.sizes), -1)
        members = np.concatenate(
            [grid[j] == np.arange(size)[:, np.newaxis] for j, size in enumerate(cells.sizes)]
        )
        return Grouping(marginal.keys, columns, members)

    def index(self, key: Hashable) -> int:
        """Where a group stands; an unknown one is an error that lists the known."""
        try:
            return self._places[key]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.keys[:20]))
            remedy = f"Known groups: {known}{', ...' if len(self.keys) > 20 else ''}."
            raise InputError.expected("a known group", of="group", got=key, remedy=remedy) from None

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        # the first of keys that are equal
        return {key: at for at, key in reversed(list(enumerate(self.keys)))}

    def blocks(self) -> list[list[int]]:
        """Groups that are compared with each other, one list a sensitive column."""
        return [
            [g for g, c in enumerate(self.columns) if c == column]
            for column in sorted(set(self.columns))
        ]

    def shown(self, group: int) -> str:
        """The group's key for a reader."""
        return keys.shown(self.keys[group])


LOSSES = ("zero_one", "log", "squared")
MOST_CONSTRAINTS = 100_000
"""One-sided constraints that a gap may come to."""


@dataclass(frozen=True)
class Outcome:
    """What is compared across groups: the rate of `prediction`, or of errors, given one of `labels`
    (None: any)."""

    prediction: Hashable = None
    labels: tuple[Hashable, ...] | None = None
    wrong: bool = False

    def rate(self, groups: tuple[Hashable, ...] | None, *, outside: bool = False) -> Rate:
        """Its rate in these groups, or outside of them."""
        event = Event(groups, self.labels, outside)
        return ErrorRate(event) if self.wrong else PredictionRate(self.prediction, event)


SHARED = """
max_gap : float
    Largest difference of two groups' rates, a share of 1: 0.05 is 5 percentage points. None
    requires nothing.
positive : label, default=None
    The positive class. None: the second of two.
groups : {"product", "marginal"}, default="product"
    Groups of several sensitive columns: every combination of values, or every value of each
    column.
compare : {"pairs", "rest"}, default="pairs"
    ``"pairs"``: every pair of groups. ``"rest"``: every group against all rows that are not in
    it, which is weaker for more than two groups.
confidence : float, default=None
    Confidence with which a fit certifies the bound for the population, by rows that it sets
    aside. None: the bound is for the training rows alone.
"""
"""What parameters of several notions are; a docstring has each as its name in braces."""
Class = TypeVar("Class", bound=type)
Bounded = list[tuple[tuple[tuple[float, Rate], ...], float]]
"""Terms, and the bound on their sum, of each constraint."""


def _documented(cls: Class) -> Class:
    """The class with the words of `SHARED` in its docstring."""
    entry: list[str] = []
    told = cls.__doc__ or ""
    for line in [*SHARED.strip().splitlines(), "end : "]:
        if not line.startswith(" ") and entry:
            name, text = entry[0].partition(" ")[0], "\n    ".join(entry)
            told, entry = told.replace(f"{{{name}}}", text), []
        entry.append(line)
    cls.__doc__ = told
    return cls


class _Written(Notion):
    """Abstract: a notion of ours, whose fields are checked, and written as they are."""

    limit: ClassVar[str]
    """The field that holds the bound."""

    def __post_init__(self) -> None:
        limit = of_rates(type(self).__name__, **{self.limit: getattr(self, self.limit)})
        _checks.normalise(self, **{self.limit: limit})
        self._check()

    def _check(self) -> None:
        """The fields that most notions share."""
        own: Any = self
        _checks.one_of(GROUP_MODES, groups=self.groups)
        of_confidence(self.confidence)
        if hasattr(own, "compare"):
            _checks.one_of(COMPARISONS, compare=own.compare)
        for name in {"positive", "group"} & set(_checks.fields_of(self)):
            _checks.normalise(self, **{name: keys.plain(getattr(own, name), of=name)})

    @property
    def is_vacuous(self) -> bool:
        """Whether there is no bound."""
        return getattr(self, self.limit) is None

    @property
    def _most(self) -> float:
        found: float | None = getattr(self, self.limit)
        return LARGEST if found is None else found

    def constraints(self, cells: Cells, classes: Sequence[Hashable]) -> tuple[RateConstraint, ...]:
        """The rate constraints that it stands for.

        Parameters
        ----------
        cells : Cells
            Groups of the data.
        classes : sequence
            Classes of decisions and labels, in order.

        Returns
        -------
        tuple of RateConstraint
            The constraints, each one-sided.
        """
        groups = self.groups or "product"
        bounded = self._bounded(cells, classes)
        return tuple(RateConstraint(terms, most, groups=groups) for terms, most in bounded)

    @abstractmethod
    def _bounded(self, cells: Cells, classes: Sequence[Hashable]) -> Bounded:
        """Terms, and the bound on their sum, of each constraint."""


@dataclass(frozen=True)
class GapNotion(_Written):
    """Abstract: some outcomes are about as frequent in every group."""

    limit: ClassVar[str] = "max_gap"
    compared: ClassVar[str] = ""
    """The rates, in the words of a sentence."""
    max_gap: float | None = NOT_GIVEN
    groups: str = field(default="product", kw_only=True)
    compare: str = field(default="pairs", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def outcomes(self, classes: Sequence[Hashable]) -> tuple[Outcome, ...]:
        """What is compared across groups.

        Parameters
        ----------
        classes : sequence
            Classes of decisions and labels, in order.

        Returns
        -------
        tuple of Outcome
            Outcomes, whose rates are to be about equal in all groups.
        """
        return tuple(self._outcomes(classes))

    @abstractmethod
    def _outcomes(self, classes: Sequence[Hashable]) -> list[Outcome]:
        """The same."""

    def _bounded(self, cells: Cells, classes: Sequence[Hashable]) -> Bounded:
        """Two one-sided constraints for each comparison and outcome."""
        grouping, outcomes = Grouping.of(cells, self.groups), self.outcomes(classes)
        _refuse_too_many(grouping, len(outcomes), self.compare)
        return [
            (((1.0, one), (-1.0, other)), self._most)
            for outcome in outcomes
            for one, other in _compared(outcome, grouping, self.compare)
        ]


@_documented
@dataclass(frozen=True)
class DemographicParity(GapNotion):
    """Equal rates of each prediction: groups differ by at most max_gap.

    For every class k and two groups a and b: |P(prediction = k | a) - P(prediction = k | b)| <=
    max_gap.

    Parameters
    ----------
    {max_gap}
    {groups}
    {compare}
    {confidence}

    See Also
    --------
    demographic_parity_gap : Measures it exactly.
    """

    kind: ClassVar[str] = "demographic_parity"
    compared: ClassVar[str] = "selection rates"

    def _outcomes(self, classes: Sequence[Hashable]) -> list[Outcome]:
        return [Outcome(k) for k in _enough(classes)]


@_documented
@dataclass(frozen=True)
class EqualizedOdds(GapNotion):
    """Equal rates of each prediction given the label: groups differ by at most max_gap.

    For every class k, label y and two groups a and b: |P(prediction = k | y, a) - P(prediction = k
    | y, b)| <= max_gap.

    Parameters
    ----------
    {max_gap}
    {groups}
    {compare}
    {confidence}

    See Also
    --------
    equalized_odds_gap : Measures it exactly.

    References
    ----------
    .. [1] Hardt, Price and Srebro 2016. "Equality of Opportunity in Supervised Learning."
           arXiv:1610.02413.
    """

    kind: ClassVar[str] = "equalized_odds"
    compared: ClassVar[str] = "true and false positive rates"

    def _outcomes(self, classes: Sequence[Hashable]) -> list[Outcome]:
        return [Outcome(k, (y,)) for y in classes for k in _enough(classes)]


@_documented
@dataclass(frozen=True)
class EqualOpportunity(GapNotion):
    """Equal true positive rates: groups differ by at most max_gap.

    The rate is P(prediction = positive | label = positive, group).

    Parameters
    ----------
    {max_gap}
    {positive}
    {groups}
    {compare}
    {confidence}

    References
    ----------
    .. [1] Hardt, Price and Srebro 2016. "Equality of Opportunity in Supervised Learning."
           arXiv:1610.02413.
    """

    kind: ClassVar[str] = "equal_opportunity"
    compared: ClassVar[str] = "true positive rates"
    positive: Hashable = None

    def _outcomes(self, classes: Sequence[Hashable]) -> list[Outcome]:
        positive = positive_class(self.positive, classes)
        return [Outcome(positive, (positive,))]


@_documented
@dataclass(frozen=True)
class FalsePositiveRateParity(GapNotion):
    """Equal false positive rates: groups differ by at most max_gap.

    The rate is P(prediction = positive | label is not positive, group).

    Parameters
    ----------
    {max_gap}
    {positive}
    {groups}
    {compare}
    {confidence}
    """

    kind: ClassVar[str] = "false_positive_rate_parity"
    compared: ClassVar[str] = "false positive rates"
    positive: Hashable = None

    def _outcomes(self, classes: Sequence[Hashable]) -> list[Outcome]:
        positive = positive_class(self.positive, classes)
        return [Outcome(positive, tuple(y for y in classes if y != positive))]


@_documented
@dataclass(frozen=True)
class ErrorRateParity(GapNotion):
    """Equal error rates: groups differ by at most max_gap.

    The rate is P(prediction differs from the label | group).

    Parameters
    ----------
    {max_gap}
    {groups}
    {compare}
    {confidence}
    """

    kind: ClassVar[str] = "error_rate_parity"
    compared: ClassVar[str] = "error rates"

    def _outcomes(self, classes: Sequence[Hashable]) -> list[Outcome]:
        return [Outcome(wrong=True)]


@_documented
@dataclass(frozen=True)
class FalseNegativeRate(_Written):
    """Bound on the false negative rate of the population, of each group, or of one group.

    P(prediction is not positive | label = positive) <= max_rate.

    Parameters
    ----------
    max_rate : float
        Largest rate, a share of 1. None requires nothing.
    group : label, default=None
        None: the population. ``"each"``: every group. Otherwise the key of one group; for a key
        that is the text "each" write a `RateConstraint`.
    {positive}
    {groups}
    {confidence}
    """

    kind: ClassVar[str] = "false_negative_rate"
    limit: ClassVar[str] = "max_rate"
    max_rate: float | None = NOT_GIVEN
    group: Hashable = None
    positive: Hashable = None
    groups: str = field(default="product", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def _bounded(self, cells: Cells, classes: Sequence[Hashable]) -> Bounded:
        """One for each bounded group."""
        positive = positive_class(self.positive, classes)
        asked = [None if self.group is None else (self.group,)]
        if self.group == "each":
            asked = [(key,) for key in Grouping.of(cells, self.groups).keys]
        others = [k for k in classes if k != positive]
        events = [Event(groups, (positive,)) for groups in asked]
        return [
            (tuple((1.0, PredictionRate(k, event)) for k in others), self._most) for event in events
        ]


@_documented
@dataclass(frozen=True)
class BoundedGroupLoss(_Written):
    """Bound on the mean loss of every group.

    The error rate is a rate constraint. The other losses are no functions of decisions: solvers of
    group losses take them.

    Parameters
    ----------
    max_loss : float
        Largest mean loss: a share of 1 for ``"zero_one"``, nats for ``"log"``, squared units of y
        for ``"squared"``. None requires nothing.
    loss : {"zero_one", "log", "squared"}, default="zero_one"
        ``"zero_one"``: the error rate. ``"log"``: minus the logarithm of the probability given to
        the label. ``"squared"``: the squared error of a number.
    {groups}
    {confidence}

    References
    ----------
    .. [1] Agarwal, Beygelzimer, Dudík, Langford and Wallach 2018. "A Reductions Approach to Fair
       Classification." arXiv:1803.02453.
    """

    kind: ClassVar[str] = "bounded_group_loss"
    limit: ClassVar[str] = "max_loss"
    max_loss: float | None = NOT_GIVEN
    loss: str = "zero_one"
    groups: str = field(default="product", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _checks.one_of(LOSSES, loss=self.loss)
        # the other losses have no largest value
        below = LARGEST if self.loss == "zero_one" else math.inf
        limit = of_rates(type(self).__name__, below=below, max_loss=self.max_loss)
        _checks.normalise(self, max_loss=limit)
        self._check()

    def _bounded(self, cells: Cells, classes: Sequence[Hashable]) -> Bounded:
        """One on the error rate of each group."""
        if self.loss != "zero_one":
            remedy = "Pass loss='zero_one'."
            raise InputError.expected(
                "a loss of decisions", of="loss", got=self.loss, remedy=remedy
            )
        keys_of = Grouping.of(cells, self.groups).keys
        return [(((1.0, ErrorRate(Event((key,)))),), self._most) for key in keys_of]


@_documented
@dataclass(frozen=True)
class SelectionRateRatio(_Written):
    """Ratio of selection rates: each group's is at least min_ratio times every other group's.

    For all pairs of groups a and b: P(prediction = positive | a) >= min_ratio x P(prediction =
    positive | b). It is the linear constraint min_ratio x rate_b - rate_a <= 0, so every solver and
    certificate of rate constraints takes it.

    Parameters
    ----------
    min_ratio : float
        Least ratio of two groups' rates; 0.8 is the four-fifths rule.
    {positive}
    {groups}
    {confidence}

    Examples
    --------
    >>> cells = Cells((("f", "m"),))
    >>> print(SelectionRateRatio(0.8).constraints(cells, (0, 1))[0])
    0.8 P(prediction = 1 | group f) - P(prediction = 1 | group m) <= 0
    """

    kind: ClassVar[str] = "selection_rate_ratio"
    limit: ClassVar[str] = "min_ratio"
    min_ratio: float
    positive: Hashable = None
    groups: str = field(default="product", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        remedy = "Pass min_ratio=0.8, for example: the four-fifths rule."
        ratio = _checks.fraction(min_ratio=self.min_ratio, low_open=True, remedy=remedy)
        _checks.normalise(self, min_ratio=ratio)
        self._check()

    def _bounded(self, cells: Cells, classes: Sequence[Hashable]) -> Bounded:
        """One for each ordered pair of groups; never vacuous: nobody may be selected of one."""
        outcome = Outcome(positive_class(self.positive, classes))
        pairs = _compared(outcome, Grouping.of(cells, self.groups), "pairs")
        return [(((self.min_ratio, one), (-1.0, other)), 0.0) for one, other in pairs]


def positive_class(positive: Hashable, classes: Sequence[Hashable]) -> Hashable:
    """The class meant by `positive`: itself, or the second of two when it is None."""
    if positive is not None and positive in classes and len(classes) > 1:
        return positive
    if positive is None and len(classes) == 2:
        return classes[1]
    expected = (
        "one of at least two classes"
        if positive is not None
        else "a class, as there are not exactly two"
    )
    remedy = f"Pass positive= one of {list(classes)}."
    raise InputError.expected(expected, of="positive", got=positive, remedy=remedy)


def _enough(classes: Sequence[Hashable]) -> Sequence[Hashable]:
    return classes[1:] if len(classes) == 2 else classes


def _refuse_too_many(grouping: Grouping, outcomes: int, compare: str) -> None:
    """Pairs grow with the square of the groups."""
    sizes = [len(block) for block in grouping.blocks()]
    asked = outcomes * sum(size * (size - 1) if compare == "pairs" else 2 * size for size in sizes)
    if asked > MOST_CONSTRAINTS:
        apart = "compare='rest' holds each group against all others. " if compare == "pairs" else ""
        raise InputError.expected(
            f"at most {MOST_CONSTRAINTS:,} comparisons of groups",
            of="constraints",
            got=f"{asked:,} of {sum(sizes):,} groups",
            remedy=f"{apart}Or merge groups that are rare, or make ranges of a number.",
            quote=False,
        )


def _compared(outcome: Outcome, grouping: Grouping, compare: str) -> list[tuple[Rate, Rate]]:
    """The ordered pairs of rates whose difference is bounded."""
    out: list[tuple[Rate, Rate]] = []
    for block in grouping.blocks():
        inside = [outcome.rate((grouping.keys[g],)) for g in block]
        if compare == "pairs":
            out += [(one, other) for one in inside for other in inside if one is not other]
            continue
        # Two groups are each other's complement: the second would repeat the first's two
        # constraints.
        for g, one in list(zip(block, inside, strict=True))[: 1 if len(block) == 2 else None]:
            if len(block) > 1:
                rest = outcome.rate((grouping.keys[g],), outside=True)
                out += [(one, rest), (rest, one)]
    return out


NOTIONS: Mapping[str, type[Notion]] = {
    cls.kind: cls
    for cls in (
        DemographicParity,
        EqualizedOdds,
        EqualOpportunity,
        FalsePositiveRateParity,
        ErrorRateParity,
        FalseNegativeRate,
        BoundedGroupLoss,
        RateConstraint,
    )
}


def names_groups(event: Event) -> bool:
    """Whether an event is about some groups, and not about everyone."""
    return event.groups is not None or any(map(names_groups, event.also))


def uses_groups(notion: Notion) -> bool:
    """Whether a notion can be asked for only where there are groups. Of a user's own notion it is
    taken to be so."""
    if isinstance(notion, RateConstraint):
        return any(names_groups(rate.event) for _, rate in notion.terms)
    return not isinstance(notion, FalseNegativeRate) or notion.group is not None


KINDS = tuple(
    Kind(cls) for cls in (Event, PredictionRate, ErrorRate, *NOTIONS.values(), SelectionRateRatio)
)
"""What files hold of notions: their fields."""
CODEC = Codec(*KINDS)


def written(codec: Codec, value: object) -> dict[str, Any]:
    """Plain JSON values of a notion or an objective."""
    try:
        found: dict[str, Any] = codec.write(value)
    except UnwrittenError as error:
        remedy = (
            "Use texts, numbers or booleans as groups and classes. Functions are never written."
        )
        raise InputError.expected(
            "values that JSON can hold", of=type(value).__name__, got=str(error), remedy=remedy
        ) from None
    return found


def from_dict(values: object) -> Notion:
    """The inverse of every notion's `to_dict`; refuses unknown notions and fields."""
    document = Document("notion", "Write notions with to_dict().")
    found: Notion = CODEC.read(document.of(values), Notion)
    return found


def parse(text: str) -> Notion:
    """A notion from the command line: its name, a colon and the bound, then options after commas.

    >>> parse("demographic_parity:0.05") == parse("demographic_parity:5%")
    True
    >>> parse("equal_opportunity:0.1,positive=yes,compare=rest")
    EqualOpportunity(max_gap=0.1, groups='product', compare='rest', positive='yes')
    """
    head, *options = str(text).split(",")
    name, _, bound = (part.strip() for part in head.partition(":"))
    name = name.replace("-", "_")
    known = [kind for kind in NOTIONS if kind != RateConstraint.kind]
    if name not in known:
        expected = f"a name out of {', '.join(known)}, then ':' and a bound"
        remedy = "Write demographic_parity:0.05, for example."
        raise InputError.expected(expected, of="constraint", got=text, remedy=remedy, among=known)
    given: dict[str, Any] = {}
    limit = bound_name(NOTIONS[name])
    if bound:
        given[limit] = _literal(bound, limit)
    for option in options:
        key, equals, value = (part.strip() for part in option.partition("="))
        if not equals or key in given:
            remedy = "Write demographic_parity:0.05,groups=marginal, for example."
            raise InputError.expected(
                "name=value, each once", of="constraint", got=option, remedy=remedy
            )
        given[key] = _literal(value, key)
    _require_bound(text, name, limit, given)
    return _make(NOTIONS[name], given)


def _require_bound(text: str, name: str, limit: str, given: Mapping[str, Any]) -> None:
    """A bound is there, and requires something: in the words of the command line."""
    found = given.get(limit)
    if found is None or isinstance(found, str):
        remedy = (
            f"Write {name}:0.05 or {name}:5%, for example: how much is allowed is yours to say."
        )
        raise InputError.expected(
            "a name, ':' and a bound", of="constraint", got=text, remedy=remedy
        )
    if given.get("loss", "zero_one") != "zero_one" and "%" in text:
        remedy = f"Write {name}:0.5,loss={given['loss']}, for example: this loss is no rate."
        raise InputError.expected("a number without %", of="constraint", got=text, remedy=remedy)
    if (
        given.get("loss", "zero_one") == "zero_one"
        and isinstance(found, int | float)
        and not isinstance(found, bool)
    ):
        require_below_one(found, text, name, limit)


def bound_name(cls: type[Notion]) -> str:
    """The field that holds its bound."""
    assert issubclass(cls, _Written)
    return cls.limit


def _literal(text: str, of: str) -> Any:
    """A JSON number, truth value or quoted text as such, a bound in per cent as the number, all
    else as the text it is."""
    if of.startswith("max_") and (number := share(text)) is not None:
        return number
    if (number := bare_point(text)) is not None:
        return number
    if of.startswith("max_") and text.lower() in ("inf", "infinity"):
        return math.inf
    try:
        value = Document("constraint", "", largest=4096, deepest=2).json(text)
    except FairveilError:
        return text
    return value if isinstance(value, (int, float, bool, str)) else text


def _make(cls: type[Notion], given: dict[str, Any]) -> Notion:
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    if bound_name(cls) not in given or not set(given) <= names:
        expected = f"a bound, and some of the fields {sorted(names)}"
        raise InputError.expected(
            expected, of=cls.kind, got=sorted(given), remedy="See docs/fairness.md."
        )
    return cls(**given)
