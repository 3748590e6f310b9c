"""A constraint as a linear combination of prediction rates over events. Data-free: group keys,
labels and numbers only.

A *rate* is P(outcome | event). An *event* is a set of (group, label) pairs; an *outcome* is "the
prediction is class k" or "the prediction is wrong". A constraint bounds a linear combination of
them,

    sum_t  c_t * P(outcome_t | event_t)  <=  bound,

the generalised rate constraints of RaCO-DP (its eq. 6). `Differs:` the paper's outcomes are classes
only; an error rate P(prediction != label | event) is not a fixed combination of those (the share of
each label would enter), so it is an outcome of its own.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .. import _checks
from ..errors import InputError
from ..facts import GROUP_MODES, Cells
from ..tables import keys


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

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is left out is left out."""
        out: dict[str, Any] = {}
        for name, listed in (("groups", self.groups), ("labels", self.labels)):
            if listed is not None:
                out[name] = [keys.to_json(key, of=name) for key in listed]
        if self.outside:
            out["outside"] = True
        if self.also:
            out["also"] = [event.to_dict() for event in self.also]
        return out

    @staticmethod
    def from_dict(values: object) -> Event:
        """The inverse of `to_dict`."""
        if not isinstance(values, Mapping) or not set(values) <= {
            "groups",
            "labels",
            "outside",
            "also",
        }:
            raise _malformed(
                "an object with some of 'groups', 'labels', 'outside', 'also'", "event", values
            )
        also = values.get("also", [])
        if not isinstance(also, list):
            raise _malformed("a list of events", "also", also)
        outside = values.get("outside", False)
        if not isinstance(outside, bool):
            raise _malformed("true or false", "outside", outside)
        return Event(
            values.get("groups"),
            values.get("labels"),
            outside,
            tuple(Event.from_dict(item) for item in also),
        )


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

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, `notion` first; `notions.from_dict` reads them."""


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

    def to_dict(self) -> dict[str, Any]:
        """Describe the notion as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, with the kind of notion.
        """
        terms = []
        for coefficient, rate in self.terms:
            term: dict[str, Any] = {"coefficient": coefficient, "event": rate.event.to_dict()}
            if isinstance(rate, PredictionRate):
                term["prediction"] = keys.to_json(rate.prediction, of="prediction")
            terms.append(term)
        return {
            "notion": self.kind,
            "terms": terms,
            "bound": self.bound,
            "groups": self.groups,
            "name": self.name,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> RateConstraint:
        """Read what `to_dict` gives.

        Parameters
        ----------
        values : mapping
            Plain values; a term without a `prediction` is an error rate.

        Returns
        -------
        RateConstraint
            The constraint.
        """
        if set(values) != {"notion", "terms", "bound", "groups", "name"} or not isinstance(
            values["terms"], list
        ):
            raise _malformed(
                "'notion', 'terms' (a list), 'bound', 'groups' and 'name'",
                "rate constraint",
                values,
            )
        terms: list[tuple[float, Rate]] = []
        for term in values["terms"]:
            if not isinstance(term, Mapping) or set(term) | {"prediction"} != {
                "coefficient",
                "event",
                "prediction",
            }:
                raise _malformed("'coefficient', 'event' and perhaps 'prediction'", "term", term)
            event = Event.from_dict(term["event"])
            rate = (
                PredictionRate(term["prediction"], event)
                if "prediction" in term
                else ErrorRate(event)
            )
            terms.append((term["coefficient"], rate))
        if not isinstance(values["name"], str):
            raise _malformed("a text", "name", values["name"])
        return RateConstraint(
            tuple(terms), values["bound"], groups=values["groups"], name=values["name"]
        )


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


def _malformed(expected: str, of: str, got: object) -> InputError:
    return InputError.expected(expected, of=of, got=got, remedy="Write it with to_dict().")
