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
from ..core.errors import need
from ..errors import FairveilError, InputError
from ..facts import GROUP_MODES, Cells
from ..tables import keys

LARGEST = 1.0
UNITS = {"max_gap": "percentage points"}  # of all others: per cent
_PER_CENT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*%\s*")
REQUIRED: Any = "required"
"""The default of a bound that has none."""


def rate_bound(name: str, value: object, *, below: float = LARGEST, way_out: str = "") -> float:
    """A bound on rates or on gaps of rates: at least 0 and below `below`.

    >>> rate_bound("max_gap", 0.05)
    0.05
    """
    remedy = f"Pass {name}=0.05, for example. {way_out}".rstrip()
    endless = isinstance(value, float) and value == math.inf
    given: Any = {name: value}
    bound = math.inf if endless else _checks.non_negative(remedy=remedy, **given)
    back = asked_back(name, bound, f"{name}={{}}") if below == LARGEST else "It has no end."
    expected, fix = f"a number from 0 to below {below:g}", f"{back} {way_out}".rstrip()
    need(bound < below, expected, of=name, got=value, fix=fix)
    return bound


def asked_back(name: str, bound: float, *ways: str) -> str:
    """What so large a bound would mean, and which smaller one may have been meant; `ways` to write
    that, with {} for it.

    >>> asked_back("max_gap", 5.0, "max_gap={}")
    '5 means 500 percentage points: did you mean max_gap=0.05?'
    >>> asked_back("max_rate", 300.0, "max_rate={}")
    'No rate is above 1.'
    """
    if bound >= 100:
        return "No two rates are more than 1 apart." if name == "max_gap" else "No rate is above 1."
    meant = " or ".join(way.format(f"{bound / 100:.6g}") for way in ways)
    unit = UNITS.get(name, "per cent")
    return f"{bound:g} means {100 * bound:.6g} {unit}: did you mean {meant}?"


def rate_in_text(bound: float, text: str, name: str, limit: str) -> float:
    """The bound that a text gives: an error in the text's words where it requires nothing. `name`:
    of what it bounds; `limit`: "max_gap", or of a rate."""
    fix = asked_back(limit, bound, f"{name}:{{}}")
    far = bound >= 100
    end = " Leave the option out to require nothing." if far else f" or {name}:{bound:g}%?"
    fix, expected = (fix if far else fix[:-1]) + end, "a bound from 0 to below 1"
    need(not bound >= LARGEST, expected, of="constraint", got=text, fix=fix)
    return bound


def share(text: str) -> float | None:
    """The number that a text in per cent stands for; None where it is not in per cent.

    >>> share("5%"), share("2.3 %"), share("0.05")
    (0.05, 0.023, None)
    """
    found = _PER_CENT.fullmatch(text) if len(text) < 64 else None
    return None if found is None else float(Decimal(found[1]) / 100)


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
        listed = {name: _key_list(name, getattr(self, name)) for name in ("groups", "labels")}
        _checks.normalise(self, also=tuple(self.also), **listed)
        fix = 'Pass Event(groups=("f",), outside=True), for example.'
        told = not self.outside or self.groups is not None
        need(told, "groups to be outside of", of="groups", got=None, fix=fix)

    def __str__(self) -> str:
        words = []
        for name, of in (("group", self.groups), ("label", self.labels)):
            if of is not None:
                far = "outside " if name == "group" and self.outside else ""
                words.append(f"{far}{name} {' or '.join(map(keys.shown, of))}")
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
        pairs = all(len(term) == 2 and isinstance(term[1], Rate) for term in terms)
        fix = "Pass ((1.0, PredictionRate(1, Event())),), for example."
        expected = "pairs (coefficient, rate)"
        need(terms and pairs, expected, of="terms", got=self.terms, fix=fix)
        _checks.normalise(self, terms=tuple((_finite("coefficient", c), rate) for c, rate in terms))
        _checks.normalise(self, bound=_finite("bound", self.bound))
        _checks.one_of(GROUP_MODES, groups=self.groups)

    def __str__(self) -> str:
        words = ""
        for c, rate in self.terms:
            sign = " - " if c < 0 else " + "
            words += sign if words else sign.strip(" +")
            words += f"{'' if abs(c) == 1 else f'{abs(c):g} '}{rate}"
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
        return (self,)

    constraints.__doc__ = Notion.constraints.__doc__


def _key_list(name: str, value: object) -> tuple[Hashable, ...] | None:
    if value is None:
        return None
    given = value if isinstance(value, (list, tuple)) else ()
    listed = tuple(keys.plain(key, of=name) for key in given)
    distinct = listed and len(set(listed)) == len(listed)
    fix = f"Pass {name}=(key,) for one, or None for all."
    need(distinct, "a non-empty tuple of distinct keys", of=name, got=value, fix=fix)
    return listed


def _finite(name: str, value: Any) -> float:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    fix = f"Pass {name}=1.0, for example."
    need(number and math.isfinite(value), "a finite number", of=name, got=value, fix=fix)
    return float(value)


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
            fix = 'Count Cells(..., mode="product"), or ask for groups="marginal".'
            expected, fits = "product cells", cells.mode == "product" or single
            need(fits, expected, of="cells", got=cells.mode, fix=fix)
            return Grouping(cells.keys, (0,) * cells.count, np.eye(cells.count, dtype=bool))
        marginal = Cells(cells.columns, mode="marginal", names=cells.names)
        columns = tuple(j for j, size in enumerate(cells.sizes) for _ in range(size))
        if cells.mode == "marginal":
            return Grouping(marginal.keys, columns, np.eye(cells.count, dtype=bool))
        grid = np.indices(cells.sizes).reshape(len(cells.sizes), -1)
        members = [grid[j] == np.arange(size)[:, np.newaxis] for j, size in enumerate(cells.sizes)]
        return Grouping(marginal.keys, columns, np.concatenate(members))

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


PARAMETERS = """
max_gap : float
    Largest difference of two groups' rates, a share of 1: 0.05 is 5 percentage points. None
    requires nothing.
max_rate : float
    Largest rate, a share of 1. None requires nothing.
max_loss : float
    Largest mean loss: a share of 1 for ``"zero_one"``, nats for ``"log"``, squared units of y
    for ``"squared"``. None requires nothing.
min_ratio : float
    Least ratio of two groups' rates; 0.8 is the four-fifths rule.
loss : {"zero_one", "log", "squared"}, default="zero_one"
    ``"zero_one"``: the error rate. ``"log"``: minus the logarithm of the probability given to
    the label. ``"squared"``: the squared error of a number.
group : label, default=None
    None: the population. ``"each"``: every group. Otherwise the key of one group; for a key
    that is the text "each" write a `RateConstraint`.
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
"""What the fields of notions are: a docstring has those of its class in place of `{parameters}`."""
Class = TypeVar("Class", bound=type)
Bounded = list[tuple[tuple[tuple[float, Rate], ...], float]]
"""Terms, and the bound on their sum, of each constraint."""


def _documented(cls: Class) -> Class:
    """The class with the words of `PARAMETERS` in its docstring."""
    entries = re.findall(r"^\w.*(?:\n .*)*", PARAMETERS, re.MULTILINE)
    names: Any = [one.name for one in fields(cls)]
    told = [entry for entry in entries if entry.partition(" ")[0] in names]
    listed = "\n".join(["Parameters", "----------", *told]).replace("\n", "\n    ")
    cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", listed)
    return cls


class BoundNotion(Notion):
    """Abstract: a notion with one bound, whose fields are checked, and written as they are.
    `limit`: the field that holds the bound."""

    limit: ClassVar[str]

    def __post_init__(self) -> None:
        own, limit = dict(vars(self)), self.limit
        if own[limit] is REQUIRED:
            write = f"{type(self).__name__}({limit}"
            fix = f"Write {write}=0.05), for example, or {write}=None) to require nothing."
            raise InputError.expected("a bound", of=limit, got="none", remedy=fix, quote=False)
        if own[limit] is not None:
            _checks.normalise(self, **{limit: self._bound(own[limit])})
        _checks.one_of(GROUP_MODES, groups=self.groups)
        if self.confidence is not None:
            fix = "Pass confidence=0.95, for example: nothing is certain of people who were drawn."
            known = _checks.fraction(confidence=self.confidence, high_open=True, remedy=fix)
            expected = "0.5 or more, and below 1"
            need(known >= 0.5, expected, of="confidence", got=self.confidence, fix=fix)
        if "compare" in own:
            _checks.one_of(COMPARISONS, compare=own["compare"])
        for name in {"positive", "group"} & set(own):
            _checks.normalise(self, **{name: keys.plain(own[name], of=name)})

    def _bound(self, given: object) -> float:
        """The bound, checked."""
        return rate_bound(self.limit, given, way_out=f"{self.limit}=None requires nothing.")

    @property
    def is_vacuous(self) -> bool:
        """Whether there is no bound."""
        return getattr(self, self.limit) is None

    @property
    def _most(self) -> float:
        found: float | None = getattr(self, self.limit)
        return LARGEST if found is None else found

    def constraints(self, cells: Cells, classes: Sequence[Hashable]) -> tuple[RateConstraint, ...]:
        groups = self.groups or "product"
        bounded = self._bounded(cells, classes)
        return tuple(RateConstraint(terms, most, groups=groups) for terms, most in bounded)

    constraints.__doc__ = Notion.constraints.__doc__

    @abstractmethod
    def _bounded(self, cells: Cells, classes: Sequence[Hashable]) -> Bounded:
        """Terms, and the bound on their sum, of each constraint."""


@dataclass(frozen=True)
class GapNotion(BoundNotion):
    """Abstract: some outcomes are about as frequent in every group. `compared`: their rates, in the
    words of a sentence."""

    limit: ClassVar[str] = "max_gap"
    compared: ClassVar[str] = ""
    max_gap: float | None = REQUIRED
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
        sizes = [len(block) for block in grouping.blocks()]
        pairs = self.compare == "pairs"
        # pairs grow with the square of the groups
        asked = len(outcomes) * sum(size * (size - 1 if pairs else 2) for size in sizes)
        fix = "compare='rest' holds each group against all others. " if pairs else ""
        fix += "Or merge groups that are rare, or make ranges of a number."
        expected = f"at most {MOST_CONSTRAINTS:,} comparisons of groups"
        got, fits = f"{asked:,} of {sum(sizes):,} groups", asked <= MOST_CONSTRAINTS
        need(fits, expected, of="constraints", got=got, fix=fix, quote=False)
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

    {parameters}

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

    {parameters}

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

    {parameters}

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

    {parameters}
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

    {parameters}
    """

    kind: ClassVar[str] = "error_rate_parity"
    compared: ClassVar[str] = "error rates"

    def _outcomes(self, classes: Sequence[Hashable]) -> list[Outcome]:
        return [Outcome(wrong=True)]


@_documented
@dataclass(frozen=True)
class FalseNegativeRate(BoundNotion):
    """Bound on the false negative rate of the population, of each group, or of one group.

    P(prediction is not positive | label = positive) <= max_rate.

    {parameters}
    """

    kind: ClassVar[str] = "false_negative_rate"
    limit: ClassVar[str] = "max_rate"
    max_rate: float | None = REQUIRED
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
class BoundedGroupLoss(BoundNotion):
    """Bound on the mean loss of every group.

    The error rate is a rate constraint. The other losses are no functions of decisions: solvers of
    group losses take them.

    {parameters}

    References
    ----------
    .. [1] Agarwal, Beygelzimer, Dudík, Langford and Wallach 2018. "A Reductions Approach to Fair
       Classification." arXiv:1803.02453.
    """

    kind: ClassVar[str] = "bounded_group_loss"
    limit: ClassVar[str] = "max_loss"
    max_loss: float | None = REQUIRED
    loss: str = "zero_one"
    groups: str = field(default="product", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def _bound(self, given: object) -> float:
        """The other losses have no largest value."""
        way_out = "max_loss=None requires nothing."
        below = LARGEST if _checks.one_of(LOSSES, loss=self.loss) == "zero_one" else math.inf
        return rate_bound("max_loss", given, below=below, way_out=way_out)

    def _bounded(self, cells: Cells, classes: Sequence[Hashable]) -> Bounded:
        """One on the error rate of each group."""
        fix = "Pass loss='zero_one'."
        need(self.loss == "zero_one", "a loss of decisions", of="loss", got=self.loss, fix=fix)
        keys_of = Grouping.of(cells, self.groups).keys
        return [(((1.0, ErrorRate(Event((key,)))),), self._most) for key in keys_of]


@_documented
@dataclass(frozen=True)
class SelectionRateRatio(BoundNotion):
    """Ratio of selection rates: each group's is at least min_ratio times every other group's.

    For all pairs of groups a and b: P(prediction = positive | a) >= min_ratio x P(prediction =
    positive | b). It is the linear constraint min_ratio x rate_b - rate_a <= 0, so every solver and
    certificate of rate constraints takes it.

    {parameters}

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

    def _bound(self, given: object) -> float:
        remedy = "Pass min_ratio=0.8, for example: the four-fifths rule."
        ratio: Any = given
        return _checks.fraction(min_ratio=ratio, low_open=True, remedy=remedy)

    def _bounded(self, cells: Cells, classes: Sequence[Hashable]) -> Bounded:
        """One for each ordered pair of groups; never vacuous: nobody may be selected of one."""
        outcome = Outcome(positive_class(self.positive, classes))
        pairs = _compared(outcome, Grouping.of(cells, self.groups), "pairs")
        return [(((self.min_ratio, one), (-1.0, other)), 0.0) for one, other in pairs]


def positive_class(positive: Hashable, classes: Sequence[Hashable]) -> Hashable:
    """The class meant by `positive`: itself, or the second of two when it is None."""
    if positive is None and len(classes) == 2:
        return classes[1]
    listed = positive is not None and positive in classes and len(classes) > 1
    stated = positive is not None
    expected = "one of at least two classes" if stated else "a class, as there are not just two"
    fix = f"Pass positive= one of {list(classes)}."
    need(listed, expected, of="positive", got=positive, fix=fix)
    return positive


def _enough(classes: Sequence[Hashable]) -> Sequence[Hashable]:
    return classes[1:] if len(classes) == 2 else classes


def _compared(outcome: Outcome, grouping: Grouping, compare: str) -> list[tuple[Rate, Rate]]:
    """The ordered pairs of rates whose difference is bounded."""
    out: list[tuple[Rate, Rate]] = []
    for block in grouping.blocks():
        inside = [outcome.rate((grouping.keys[g],)) for g in block]
        if compare == "pairs":
            out += [(one, other) for one in inside for other in inside if one is not other]
        elif len(block) > 1:
            # two groups are each other's complement: the second would repeat the first's two
            for g, one in list(zip(block, inside, strict=True))[: 1 if len(block) == 2 else None]:
                rest = outcome.rate((grouping.keys[g],), outside=True)
                out += [(one, rest), (rest, one)]
    return out


OF_TEXTS = (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FalsePositiveRateParity,
    ErrorRateParity,
    FalseNegativeRate,
    BoundedGroupLoss,
)
NOTIONS: Mapping[str, type[Notion]] = {cls.kind: cls for cls in (*OF_TEXTS, RateConstraint)}


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
        fix = "Use texts, numbers or booleans as groups and classes. Functions are never written."
        of, got = type(value).__name__, str(error)
        raise InputError.expected("values that JSON can hold", of=of, got=got, remedy=fix) from None
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
    known = {one.kind: one for one in OF_TEXTS}
    cls = known.get(name := name.replace("-", "_"))
    if cls is None:
        expected = f"a name out of {', '.join(known)}, then ':' and a bound"
        fix = "Write demographic_parity:0.05, for example."
        raise InputError.expected(expected, of="constraint", got=text, remedy=fix, among=known)
    given: dict[str, Any] = {cls.limit: _limit(bound)} if bound else {}
    allowed = {one.name for one in fields(cls)}
    for option in options:
        key, _, value = (part.strip() for part in option.partition("="))
        fits = value and key in allowed - set(given)
        expected = f"name=value, each once, of {sorted(allowed)}"
        fix = "Write demographic_parity:0.05,groups=marginal, for example."
        need(fits, expected, of="constraint", got=option, fix=fix)
        given[key] = _limit(value) if key == cls.limit else _literal(value)
    fix = f"Write {name}:0.05 or {name}:5%, for example: how much is allowed is yours to say."
    told = isinstance(given.get(cls.limit), float)
    need(told, "a name, ':' and a bound", of="constraint", got=text, fix=fix)
    no_rate = given.get("loss", "zero_one") != "zero_one" and "%" in text
    fix = f"Write {name}:0.5,loss={given.get('loss')}, for example: this loss is no rate."
    need(not no_rate, "a number without %", of="constraint", got=text, fix=fix)
    if given.get("loss", "zero_one") == "zero_one":
        rate_in_text(given[cls.limit], text, name, cls.limit)
    return cls(**given)


def _limit(text: str) -> float | None:
    """A bound, which may be in per cent; None where it is no number."""
    try:
        return float(text) if (part := share(text)) is None else part
    except ValueError:
        return None


def _literal(text: str) -> Any:
    """A JSON number, truth value or quoted text as such, all else as the text it is."""
    try:
        value = Document("constraint", "", largest=4096, deepest=2).json(text)
    except FairveilError:
        return text
    return value if isinstance(value, (int, float, bool, str)) else text
