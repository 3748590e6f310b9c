"""Ratios of selection rates, such as the four-fifths rule of employment distribution, as linear
constraints on rates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .. import _checks
from ..errors import InputError
from ..facts import GROUP_MODES, Cells
from ..tables import keys
from .bounds import of_confidence
from .gap_notion import positive_class
from .grouping import Grouping
from .rates import Event, Notion, PredictionRate, RateConstraint


@dataclass(frozen=True)
class SelectionRateRatio(Notion):
    """Ratio of selection rates: each group's is at least min_ratio times every other group's.

    For all pairs of groups a and b: P(prediction = positive | a) >= min_ratio x P(prediction =
    positive | b). It is the linear constraint min_ratio x rate_b - rate_a <= 0, so every solver and
    certificate of rate constraints takes it.

    Parameters
    ----------
    min_ratio : float
        Least ratio of two groups' rates; 0.8 is the four-fifths rule.
    positive : label, default=None
        The positive class. None: the second of two.
    groups : {"product", "marginal"}, default="product"
        Groups of several sensitive columns: every combination of values, or every value of each
        column.
    confidence : float, default=None
        Confidence with which a fit certifies the bound for the population, by rows that it sets
        aside. None: the bound is for the training rows alone.

    Examples
    --------
    >>> cells = Cells((("f", "m"),))
    >>> print(SelectionRateRatio(0.8).constraints(cells, (0, 1))[0])
    0.8 P(prediction = 1 | group f) - P(prediction = 1 | group m) <= 0
    """

    kind: ClassVar[str] = "selection_rate_ratio"
    min_ratio: float
    positive: Hashable = None
    groups: str = field(default="product", kw_only=True)
    confidence: float | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        of_confidence(self.confidence)
        remedy = "Pass min_ratio=0.8, for example: the four-fifths rule."
        ratio = _checks.fraction(min_ratio=self.min_ratio, low_open=True, remedy=remedy)
        _checks.normalise(self, min_ratio=ratio, positive=keys.plain(self.positive, of="positive"))
        _checks.one_of(GROUP_MODES, groups=self.groups)

    @property
    def is_vacuous(self) -> bool:
        """Never: a group of which nobody is selected breaks it."""
        return False

    def constraints(self, cells: Cells, classes: Sequence[Hashable]) -> tuple[RateConstraint, ...]:
        """One constraint for each ordered pair of groups.

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
        grouping = Grouping.of(cells, self.groups)
        out = []
        for block in grouping.blocks():
            rates = [PredictionRate(positive, Event((grouping.keys[g],))) for g in block]
            pairs = [(one, other) for one in rates for other in rates if one is not other]
            out += [
                RateConstraint(((self.min_ratio, one), (-1.0, other)), 0.0, groups=self.groups)
                for one, other in pairs
            ]
        return tuple(out)

    def to_dict(self) -> dict[str, Any]:
        """Describe the notion as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, with the kind of notion.
        """
        out = {
            "notion": self.kind,
            "min_ratio": self.min_ratio,
            "positive": keys.to_json(self.positive, of="positive"),
            "groups": self.groups,
        }
        return out if self.confidence is None else out | {"confidence": self.confidence}

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
        if set(values) - {"confidence"} != {"notion", "min_ratio", "positive", "groups"}:
            expected = "'notion', 'min_ratio', 'positive' and 'groups'"
            raise InputError.expected(
                expected, of="notion", got=sorted(values), remedy="Write it with to_dict()."
            )
        confidence = values.get("confidence")
        return SelectionRateRatio(
            values["min_ratio"], values["positive"], groups=values["groups"], confidence=confidence
        )
