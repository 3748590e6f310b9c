"""What notions of a gap share: outcomes, the pairs of groups that are compared, and how such
notions are checked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from .. import _checks
from ..errors import InputError
from ..facts import GROUP_MODES, Cells
from ..tables import keys
from . import bounds
from .grouping import COMPARISONS, Grouping
from .rates import ErrorRate, Event, Notion, PredictionRate, Rate, RateConstraint

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


@dataclass(frozen=True)
class GapNotion(Notion):
    """Abstract: some outcomes are about as frequent in every group."""

    max_gap: float | None = bounds.NOT_GIVEN
    groups: str = field(default="product", kw_only=True)
    compare: str = field(default="pairs", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _checks.normalise(self, max_gap=bounds.of_rates(type(self).__name__, max_gap=self.max_gap))
        check_shape(self)

    @abstractmethod
    def outcomes(self, classes: Sequence[Hashable]) -> tuple[Outcome, ...]:
        """What is compared."""

    @property
    def is_vacuous(self) -> bool:
        """Whether there is no bound."""
        return self.max_gap is None

    def constraints(self, cells: Cells, classes: Sequence[Hashable]) -> tuple[RateConstraint, ...]:
        """Two one-sided constraints for each comparison and outcome.

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
        out = []
        grouping, outcomes = Grouping.of(cells, self.groups), self.outcomes(classes)
        bound = bounds.LARGEST if self.max_gap is None else self.max_gap
        _refuse_too_many(grouping, len(outcomes), self.compare)
        for outcome in outcomes:
            for one, other in _compared(outcome, grouping, self.compare):
                out.append(RateConstraint(((1.0, one), (-1.0, other)), bound, groups=self.groups))
        return tuple(out)

    def to_dict(self) -> dict[str, Any]:
        """Describe the notion as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, with the kind of notion.
        """
        return to_dict_of(self)


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


def to_dict_of(notion: Notion) -> dict[str, Any]:
    named = _checks.fields_of(notion)
    if named.get("confidence") is None:  # of a notion that no fit certifies: files need not hold it
        named.pop("confidence", None)
    return {"notion": notion.kind} | {
        name: keys.to_json(value, of=name) for name, value in named.items()
    }


def check_shape(notion: Any) -> None:
    """Check the fields that most notions share."""
    _checks.one_of(GROUP_MODES, groups=notion.groups)
    bounds.of_confidence(notion.confidence)
    for f in fields(notion):
        if f.name == "compare":
            _checks.one_of(COMPARISONS, compare=notion.compare)
        if f.name == "positive":
            _checks.normalise(notion, positive=keys.plain(notion.positive, of="positive"))


def enough(classes: Sequence[Hashable]) -> Sequence[Hashable]:
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
