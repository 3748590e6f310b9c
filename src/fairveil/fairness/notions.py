"""Notions of fairness. Each only chooses what is compared; the general rate constraint does the
rest.

A gap notion with bound `max_gap` says |rate given one group - rate given another| <= max_gap, as
two one-sided constraints. The bound has no default. None requires nothing, and is how that is said:
a bound of 1 or more is an error.
- `compare="pairs"`: every ordered pair of groups (of one sensitive column, when groups are
  marginal);
- `compare="rest"`: every group against its complement, all rows that are not in it, and the
  complement against it. With two groups that is the same as pairs. With more it is weaker: pairs
  within g imply rest within g, not the other way round.

`confidence`: estimators with `certify_share` set rows aside, aim inside the bound, and certify it
for the population with this confidence. Others refuse it.

With two classes a constraint on the second class's rate is also one on the first's (they sum to 1),
so only the second is written down; with more, every class.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from .. import _checks
from .._json import Document
from ..errors import FairveilError, InputError
from ..facts import Cells
from ..tables import keys
from . import bounds
from .gap_notion import GapNotion, Outcome, check_shape, enough, positive_class, to_dict_of
from .grouping import Grouping
from .rates import ErrorRate, Event, Notion, PredictionRate, RateConstraint

LOSSES = ("zero_one", "log", "squared")


@dataclass(frozen=True)
class DemographicParity(GapNotion):
    """Equal rates of each prediction: groups differ by at most max_gap.

    For every class k and two groups a and b: |P(prediction = k | a) - P(prediction = k | b)| <=
    max_gap.

    Parameters
    ----------
    max_gap : float
        Largest difference of two groups' rates, a share of 1: 0.05 is 5 percentage points. None
        requires nothing.
    groups : {"product", "marginal"}, default="product"
        Groups of several sensitive columns: every combination of values, or every value of each
        column.
    compare : {"pairs", "rest"}, default="pairs"
        ``"pairs"``: every pair of groups. ``"rest"``: every group against all rows that are not in
        it, which is weaker for more than two groups.
    confidence : float, default=None
        Confidence with which a fit certifies the bound for the population, by rows that it sets
        aside. None: the bound is for the training rows alone.

    See Also
    --------
    demographic_parity_gap : Measures it exactly.
    """

    kind: ClassVar[str] = "demographic_parity"

    def outcomes(self, classes: Sequence[Hashable]) -> tuple[Outcome, ...]:
        """Compared outcomes: the rate of every class.

        Parameters
        ----------
        classes : sequence
            Classes of decisions and labels, in order.

        Returns
        -------
        tuple of Outcome
            What is compared across groups.
        """
        return tuple(Outcome(k) for k in enough(classes))


@dataclass(frozen=True)
class EqualizedOdds(GapNotion):
    """Equal rates of each prediction given the label: groups differ by at most max_gap.

    For every class k, label y and two groups a and b: |P(prediction = k | y, a) - P(prediction = k
    | y, b)| <= max_gap.

    Parameters
    ----------
    max_gap : float
        Largest difference of two groups' rates, a share of 1: 0.05 is 5 percentage points. None
        requires nothing.
    groups : {"product", "marginal"}, default="product"
        Groups of several sensitive columns: every combination of values, or every value of each
        column.
    compare : {"pairs", "rest"}, default="pairs"
        ``"pairs"``: every pair of groups. ``"rest"``: every group against all rows that are not in
        it, which is weaker for more than two groups.
    confidence : float, default=None
        Confidence with which a fit certifies the bound for the population, by rows that it sets
        aside. None: the bound is for the training rows alone.

    See Also
    --------
    equalized_odds_gap : Measures it exactly.

    References
    ----------
    .. [1] Hardt, Price and Srebro 2016. "Equality of Opportunity in Supervised Learning."
           arXiv:1610.02413.
    """

    kind: ClassVar[str] = "equalized_odds"

    def outcomes(self, classes: Sequence[Hashable]) -> tuple[Outcome, ...]:
        """Compared outcomes: the rate of every class given each label.

        Parameters
        ----------
        classes : sequence
            Classes of decisions and labels, in order.

        Returns
        -------
        tuple of Outcome
            What is compared across groups.
        """
        return tuple(Outcome(k, (y,)) for y in classes for k in enough(classes))


@dataclass(frozen=True)
class EqualOpportunity(GapNotion):
    """Equal true positive rates: groups differ by at most max_gap.

    The rate is P(prediction = positive | label = positive, group).

    Parameters
    ----------
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

    References
    ----------
    .. [1] Hardt, Price and Srebro 2016. "Equality of Opportunity in Supervised Learning."
           arXiv:1610.02413.
    """

    kind: ClassVar[str] = "equal_opportunity"
    positive: Hashable = None

    def outcomes(self, classes: Sequence[Hashable]) -> tuple[Outcome, ...]:
        """Compared outcomes: the positive class's rate given the positive label.

        Parameters
        ----------
        classes : sequence
            Classes of decisions and labels, in order.

        Returns
        -------
        tuple of Outcome
            What is compared across groups.
        """
        positive = positive_class(self.positive, classes)
        return (Outcome(positive, (positive,)),)


@dataclass(frozen=True)
class FalsePositiveRateParity(GapNotion):
    """Equal false positive rates: groups differ by at most max_gap.

    The rate is P(prediction = positive | label is not positive, group).

    Parameters
    ----------
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

    kind: ClassVar[str] = "false_positive_rate_parity"
    positive: Hashable = None

    def outcomes(self, classes: Sequence[Hashable]) -> tuple[Outcome, ...]:
        """Compared outcomes: the positive class's rate given any other label.

        Parameters
        ----------
        classes : sequence
            Classes of decisions and labels, in order.

        Returns
        -------
        tuple of Outcome
            What is compared across groups.
        """
        positive = positive_class(self.positive, classes)
        return (Outcome(positive, tuple(y for y in classes if y != positive)),)


@dataclass(frozen=True)
class ErrorRateParity(GapNotion):
    """Equal error rates: groups differ by at most max_gap.

    The rate is P(prediction differs from the label | group).

    Parameters
    ----------
    max_gap : float
        Largest difference of two groups' rates, a share of 1: 0.05 is 5 percentage points. None
        requires nothing.
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

    kind: ClassVar[str] = "error_rate_parity"

    def outcomes(self, classes: Sequence[Hashable]) -> tuple[Outcome, ...]:
        """Compared outcomes: the error rate.

        Parameters
        ----------
        classes : sequence
            Classes of decisions and labels, in order.

        Returns
        -------
        tuple of Outcome
            What is compared across groups.
        """
        return (Outcome(wrong=True),)


@dataclass(frozen=True)
class FalseNegativeRate(Notion):
    """Bound on the false negative rate of the population, of each group, or of one group.

    P(prediction is not positive | label = positive) <= max_rate.

    Parameters
    ----------
    max_rate : float
        Largest rate, a share of 1. None requires nothing.
    group : label, default=None
        None: the population. ``"each"``: every group. Otherwise the key of one group; for a key
        that is the text "each" write a `RateConstraint`.
    positive : label, default=None
        The positive class. None: the second of two.
    groups : {"product", "marginal"}, default="product"
        Groups of several sensitive columns: every combination of values, or every value of each
        column.
    confidence : float, default=None
        Confidence with which a fit certifies the bound for the population, by rows that it sets
        aside. None: the bound is for the training rows alone.
    """

    kind: ClassVar[str] = "false_negative_rate"
    max_rate: float | None = bounds.NOT_GIVEN
    group: Hashable = None
    positive: Hashable = None
    groups: str = field(default="product", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _checks.normalise(
            self, max_rate=bounds.of_rates(type(self).__name__, max_rate=self.max_rate)
        )
        _checks.normalise(self, group=keys.plain(self.group, of="group"))
        check_shape(self)

    @property
    def is_vacuous(self) -> bool:
        """Whether there is no bound."""
        return self.max_rate is None

    def constraints(self, cells: Cells, classes: Sequence[Hashable]) -> tuple[RateConstraint, ...]:
        """One constraint for each bounded group.

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
        positive = positive_class(self.positive, classes)
        asked = Grouping.of(cells, self.groups).keys if self.group == "each" else (self.group,)
        events = [
            Event(None if key is None and self.group is None else (key,), (positive,))
            for key in asked
        ]
        others = [k for k in classes if k != positive]
        bound = bounds.LARGEST if self.max_rate is None else self.max_rate
        return tuple(
            RateConstraint(
                tuple((1.0, PredictionRate(k, event)) for k in others), bound, groups=self.groups
            )
            for event in events
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the notion as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, with the kind of notion.
        """
        return to_dict_of(self)


@dataclass(frozen=True)
class BoundedGroupLoss(Notion):
    """Bound on the mean loss of every group.

    The error rate is a rate constraint. The other losses are no functions of decisions:
    `losses.resolve_losses` gives a solver the bound on each group's mean loss.

    Parameters
    ----------
    max_loss : float
        Largest mean loss: a share of 1 for ``"zero_one"``, nats for ``"log"``, squared units of y
        for ``"squared"``. None requires nothing.
    loss : {"zero_one", "log", "squared"}, default="zero_one"
        ``"zero_one"``: the error rate. ``"log"``: minus the logarithm of the probability given to
        the label. ``"squared"``: the squared error of a number.
    groups : {"product", "marginal"}, default="product"
        Groups of several sensitive columns: every combination of values, or every value of each
        column.
    confidence : float, default=None
        Confidence with which a fit certifies the bound for the population, by rows that it sets
        aside. None: the bound is for the training rows alone.

    References
    ----------
    .. [1] Agarwal, Beygelzimer, Dudík, Langford and Wallach 2018. "A Reductions Approach to Fair
       Classification." arXiv:1803.02453.
    """

    kind: ClassVar[str] = "bounded_group_loss"
    max_loss: float | None = bounds.NOT_GIVEN
    loss: str = "zero_one"
    groups: str = field(default="product", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _checks.one_of(LOSSES, loss=self.loss)
        # the other losses have no largest value
        below = bounds.LARGEST if self.loss == "zero_one" else math.inf
        _checks.normalise(
            self, max_loss=bounds.of_rates(type(self).__name__, below=below, max_loss=self.max_loss)
        )
        check_shape(self)

    @property
    def is_vacuous(self) -> bool:
        """Whether there is no bound."""
        return self.max_loss is None

    def constraints(self, cells: Cells, classes: Sequence[Hashable]) -> tuple[RateConstraint, ...]:
        """One bound on the error rate of each group.

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
        if self.loss != "zero_one":
            remedy = "Resolve it with losses.resolve_losses, or pass loss='zero_one'."
            raise InputError.expected(
                "a loss of decisions", of="loss", got=self.loss, remedy=remedy
            )
        grouping = Grouping.of(cells, self.groups)
        rates = [ErrorRate(Event((key,))) for key in grouping.keys]
        bound = bounds.LARGEST if self.max_loss is None else self.max_loss
        return tuple(RateConstraint(((1.0, rate),), bound, groups=self.groups) for rate in rates)

    def to_dict(self) -> dict[str, Any]:
        """Describe the notion as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, with the kind of notion.
        """
        return to_dict_of(self)


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


def from_dict(values: object) -> Notion:
    """The inverse of every notion's `to_dict`; refuses unknown notions and fields."""
    if (
        not isinstance(values, Mapping)
        or not isinstance(values.get("notion"), str)
        or values["notion"] not in NOTIONS
    ):
        expected = f"an object whose 'notion' is one of {sorted(NOTIONS)}"
        raise InputError.expected(
            expected, of="notion", got=values, remedy="Write notions with to_dict()."
        )
    cls = NOTIONS[values["notion"]]
    if cls is RateConstraint:
        return RateConstraint.from_dict(values)
    given = {name: value for name, value in values.items() if name != "notion"}
    return _make(cls, given, complete=True)


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
    return _make(NOTIONS[name], given, complete=False)


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
        bounds.require_below_one(found, text, name, limit)


def bound_name(cls: type[Notion]) -> str:
    """The field that holds its bound."""
    return next(f.name for f in fields(cls) if f.name.startswith("max_"))  # type: ignore[arg-type]


def _literal(text: str, of: str) -> Any:
    """A JSON number, truth value or quoted text as such, a bound in per cent as the number, all
    else as the text it is."""
    if of.startswith("max_") and (number := bounds.share(text)) is not None:
        return number
    if (number := bounds.bare_point(text)) is not None:
        return number
    if of.startswith("max_") and text.lower() in ("inf", "infinity"):
        return math.inf
    try:
        value = Document("constraint", "", largest=4096, deepest=2).json(text)
    except FairveilError:
        return text
    return value if isinstance(value, (int, float, bool, str)) else text


def _make(cls: type[Notion], given: dict[str, Any], *, complete: bool) -> Notion:
    names = {f.name for f in fields(cls)}  # type: ignore[arg-type]
    missing = names - {"confidence"} - set(given) if complete else {bound_name(cls)} - set(given)
    if missing or not set(given) <= names:
        expected = f"{'the' if complete else 'a bound, and some of the'} fields {sorted(names)}"
        raise InputError.expected(
            expected, of=cls.kind, got=sorted(given), remedy="See docs/fairness.md."
        )
    return cls(**given)
