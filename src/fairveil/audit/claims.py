"""What an audit is held against: each claim says how well any test may tell two neighbouring data
sets apart.

A mechanism that is (epsilon, delta(epsilon))-private at every epsilon lets no test stay below

    f(a) = max over epsilon of max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)),

a the false alarms, f the misses (Dong, Roth and Su 2022, Proposition 6).

Guarantees (tests/audit/test_audit_bounds.py): `curve` is at or below the trade-off curve of the
claim's own mechanism at every point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import special

from .. import _checks
from .._types import Floats
from ..core import cost as accounting
from ..core.events import Composed, Event, compose
from ..core.mechanisms import inventory
from ..core.promise import NEIGHBOURS, Neighbours
from ..errors import InputError, PrivacyError
from ..statement.document import PrivacyStatement


class Claim:
    """A claim about a mechanism. Abstract: see `PointClaim`, `GaussianClaim` and `EventsClaim`.

    `words`: the claim in words. `total_variation`: the largest total variation distance, delta at
    epsilon 0, that it allows between neighbours' releases. `gaussian`: the largest squared distance
    of neighbours, in deviations of noise, that all Gaussian releases of all rows may have; infinite
    where the claim is not about noise. `is_gaussian`: whether it is unsampled Gaussian noise and
    nothing else.
    """

    words: str
    total_variation: float
    gaussian: float = math.inf
    is_gaussian: bool = False

    def profile(self) -> list[tuple[float, float]]:
        """(epsilon, delta) pairs that the claim says hold."""
        raise NotImplementedError

    def curve(self, alarms: Floats) -> Floats:
        """The least misses at these false alarms."""
        lines = [np.zeros_like(alarms)]
        for epsilon, delta in self.profile():
            lines.append(1.0 - delta - math.exp(epsilon) * alarms)
            lines.append(math.exp(-epsilon) * (1.0 - delta - alarms))
        return np.asarray(np.max(lines, axis=0))


@dataclass(frozen=True)
class PointClaim(Claim):
    """The mechanism is (epsilon, delta)-private. All that is said of its curve is this one
    point."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _checks.normalise(self, epsilon=_checks.non_negative(epsilon=self.epsilon, allow_inf=True))
        _checks.normalise(self, delta=_checks.fraction(delta=self.delta, high_open=True))
        # FPR + FNR >= 2 (1 - delta) / (1 + e^epsilon): the definition's two inequalities, added
        distance = 1.0 - 2.0 * (1.0 - self.delta) * float(special.expit(-self.epsilon))
        words = f"epsilon at most {self.epsilon:g} at delta {self.delta:g}"
        _checks.normalise(self, words=words, total_variation=distance)

    def profile(self) -> list[tuple[float, float]]:
        return [(self.epsilon, self.delta), (0.0, self.total_variation)]


@dataclass(frozen=True)
class GaussianClaim(Claim):
    """Neighbours' releases are no easier to distinguish than N(0, 1) and N(mu, 1): mu-GDP, a whole
    curve of points."""

    mu: float
    is_gaussian = True

    def __post_init__(self) -> None:
        _checks.normalise(self, mu=_checks.non_negative(mu=self.mu))
        words = f"no easier to tell apart than N(0, 1) and N({self.mu:g}, 1)"
        distance = float(2.0 * special.ndtr(self.mu / 2.0) - 1.0)
        _checks.normalise(self, words=words, total_variation=distance)

    def curve(self, alarms: Floats) -> Floats:
        return np.asarray(special.ndtr(special.ndtri(1.0 - alarms) - self.mu))


@dataclass(frozen=True)
class EventsClaim(Claim):
    """What was released was these events and nothing else: the accountant's whole curve of
    (epsilon, delta)."""

    events: Event | Iterable[Event]
    neighbours: str = "add-remove"

    def __post_init__(self) -> None:
        _checks.one_of(NEIGHBOURS, neighbours=self.neighbours)
        given = self.events
        event = given if isinstance(given, Event) else compose(Composed(tuple(given)).events)
        distance = accounting.delta(event, 0.0, self.neighbours)
        words = "the stated events, which let no test come nearer than total variation"
        total = inventory(compose([event]), cast(Neighbours, self.neighbours))
        _checks.normalise(
            self,
            events=event,
            total_variation=distance,
            words=f"{words} {distance:.4g}",
            gaussian=total.gaussian,
            is_gaussian=not total.others and total.private,
        )

    def profile(self) -> list[tuple[float, float]]:
        event, found = cast(Event, self.events), list[tuple[float, float]]()
        for epsilon in (0.0, *np.geomspace(0.01, 20.0, 24).tolist()):
            try:
                found.append((epsilon, accounting.delta(event, epsilon, self.neighbours)))
            except PrivacyError:  # beyond what is followed
                break
            if found[-1][1] < 1e-9:
                break
        return found


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
