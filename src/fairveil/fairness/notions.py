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
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from .. import _checks
from .._json import Document
from ..errors import FairveilError, InputError
from ..facts import GROUP_MODES, Cells
from ..tables import keys
from . import bounds
from .grouping import COMPARISONS, Grouping
from .rates import ErrorRate, Event, Notion, PredictionRate, Rate, RateConstraint

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
        limit = bounds.of_rates(type(self).__name__, **{self.limit: getattr(self, self.limit)})
        _checks.normalise(self, **{self.limit: limit})
        self._check()

    def _check(self) -> None:
        """The fields that most notions share."""
        own: Any = self
        _checks.one_of(GROUP_MODES, groups=self.groups)
        bounds.of_confidence(self.confidence)
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
        return bounds.LARGEST if found is None else found

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

    def to_dict(self) -> dict[str, Any]:
        """Describe the notion as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, with the kind of notion.
        """
        named = _checks.fields_of(self)
        if named.get("confidence") is None:  # where no fit certifies it: files need not hold it
            named.pop("confidence", None)
        plain = {name: keys.to_json(value, of=name) for name, value in named.items()}
        return {"notion": self.kind} | plain


@dataclass(frozen=True)
class GapNotion(_Written):
    """Abstract: some outcomes are about as frequent in every group."""

    limit: ClassVar[str] = "max_gap"
    max_gap: float | None = bounds.NOT_GIVEN
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
    max_rate: float | None = bounds.NOT_GIVEN
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
    {groups}
    {confidence}

    References
    ----------
    .. [1] Agarwal, Beygelzimer, Dudík, Langford and Wallach 2018. "A Reductions Approach to Fair
       Classification." arXiv:1803.02453.
    """

    kind: ClassVar[str] = "bounded_group_loss"
    limit: ClassVar[str] = "max_loss"
    max_loss: float | None = bounds.NOT_GIVEN
    loss: str = "zero_one"
    groups: str = field(default="product", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _checks.one_of(LOSSES, loss=self.loss)
        # the other losses have no largest value
        below = bounds.LARGEST if self.loss == "zero_one" else math.inf
        limit = bounds.of_rates(type(self).__name__, below=below, max_loss=self.max_loss)
        _checks.normalise(self, max_loss=limit)
        self._check()

    def _bounded(self, cells: Cells, classes: Sequence[Hashable]) -> Bounded:
        """One on the error rate of each group."""
        if self.loss != "zero_one":
            remedy = "Resolve it with losses.resolve_losses, or pass loss='zero_one'."
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

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> SelectionRateRatio:
        """Read what `to_dict` gives.

        Parameters
        ----------
        values : mapping
            Plain values.

        Returns
        -------
        SelectionRateRatio
            The notion.
        """
        given = {name: value for name, value in values.items() if name != "notion"}
        found = _make(SelectionRateRatio, given, complete=True)
        assert isinstance(found, SelectionRateRatio)
        return found


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
    assert issubclass(cls, _Written)
    return cls.limit


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
