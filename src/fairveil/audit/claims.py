"""What an audit is held against: each claim says how well any test may tell two neighbouring data
sets apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from scipy import special

from .. import _checks
from ..core import cost as accounting
from ..core.events import Composed, Event, compose
from ..core.inventory import inventory
from ..core.promise import NEIGHBOURS, Neighbours
from ..errors import InputError
from ..statement.document import PrivacyStatement


class Claim:
    """A claim about a mechanism. Abstract: see `PointClaim`, `GaussianClaim` and `EventsClaim`."""

    @property
    def words(self) -> str:
        """The claim in words."""
        raise NotImplementedError

    @property
    def total_variation(self) -> float:
        """The largest total variation distance, delta at epsilon 0, that the claim allows between
        neighbours' releases."""
        raise NotImplementedError

    @property
    def gaussian(self) -> float:
        """The largest squared distance of neighbours, in deviations of noise, that all Gaussian
        releases of all rows may have; infinite where the claim is not about noise."""
        return math.inf


@dataclass(frozen=True)
class PointClaim(Claim):
    """The mechanism is (epsilon, delta)-private. All that is said of its curve is this one
    point."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _checks.normalise(self, epsilon=_checks.non_negative(epsilon=self.epsilon, allow_inf=True))
        _checks.normalise(self, delta=_checks.fraction(delta=self.delta, high_open=True))

    @property
    def words(self) -> str:
        return f"epsilon at most {self.epsilon:g} at delta {self.delta:g}"

    @property
    def total_variation(self) -> float:
        """FPR + FNR >= 2 (1 - delta) / (1 + e^epsilon): add the two inequalities of the
        definition."""
        return 1.0 - 2.0 * (1.0 - self.delta) * float(special.expit(-self.epsilon))


@dataclass(frozen=True)
class GaussianClaim(Claim):
    """Neighbours' releases are no easier to distinguish than N(0, 1) and N(mu, 1): mu-GDP, a whole
    curve of points."""

    mu: float

    def __post_init__(self) -> None:
        _checks.normalise(self, mu=_checks.non_negative(mu=self.mu))

    @property
    def words(self) -> str:
        return f"no easier to tell apart than N(0, 1) and N({self.mu:g}, 1)"

    @property
    def total_variation(self) -> float:
        return float(2.0 * special.ndtr(self.mu / 2.0) - 1.0)


@dataclass(frozen=True)
class EventsClaim(Claim):
    """What was released was these events and nothing else: the accountant's whole curve of
    (epsilon, delta)."""

    events: Event | Iterable[Event]
    neighbours: str = "add-remove"
    _delta: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _checks.one_of(NEIGHBOURS, neighbours=self.neighbours)
        event = (
            self.events
            if isinstance(self.events, Event)
            else compose(Composed(tuple(self.events)).events)
        )
        _checks.normalise(self, events=event, _delta=accounting.delta(event, 0.0, self.neighbours))

    @property
    def words(self) -> str:
        return (
            f"the stated events, which let no test come nearer than total variation "
            f"{self.total_variation:.4g}"
        )

    @property
    def total_variation(self) -> float:
        return self._delta

    @property
    def gaussian(self) -> float:
        return inventory(
            compose([cast(Event, self.events)]), cast(Neighbours, self.neighbours)
        ).gaussian


def of_function(epsilon: float | None, delta: float | None) -> tuple[float, float]:
    """What is said to be claimed by a function, which says nothing itself."""
    if epsilon is None or delta is None:
        remedy = "Pass epsilon=1.0, delta=1e-5: what the function claims."
        raise InputError.expected(
            "a claim", of="epsilon" if epsilon is None else "delta", got=None, remedy=remedy
        )
    return epsilon, delta


def claim_of(given: object, delta: float) -> Claim:
    """A claim from itself, from a statement or its plan's events, or from an epsilon (at the
    audit's own delta)."""
    if isinstance(given, Claim):
        return given
    if isinstance(given, PrivacyStatement):
        # a filter's cap is one point, its log's curve no bound: theory.md#t10
        if given.plan is None or not given.is_private:
            return PointClaim(given.epsilon, given.delta)
        return EventsClaim(given.plan, given.neighbours)
    if isinstance(given, Event):
        raise InputError.expected(
            "a claim that says who is a neighbour",
            of="claim",
            got=type(given).__name__,
            remedy="Pass EventsClaim(events, neighbours='add-remove'), for example.",
        )
    remedy = "Pass an epsilon, a PrivacyStatement, or GaussianClaim(mu=0.27), for example."
    return PointClaim(_checks.non_negative(claim=given, allow_inf=True, remedy=remedy), delta)
