"""What one run with many canaries proves: how likely so many right guesses are, if the claim is
true.

Each of m canaries is in the table by a fair coin of its own. Whoever sees what was released guesses
r of the coins. Of an (epsilon, delta)-private mechanism, under add-remove, v right guesses or more
have at most the probability

    P(B >= v) + 2 m delta max_i P(v - i <= B < v) / i,     B binomial(r, e^epsilon / (1 +
    e^epsilon))

(Steinke, Nasr and Jagielski 2023, Theorem 5.2; docs/audit.md has the proof for delta = 0).

Guarantees (tests/audit/test_audit_canaries.py):
1. Of randomized response, which reaches it, a true claim is refuted as often as the risk says, and
   no more.
2. A curve of claims is tried at points that are fixed in advance, each with its part of the risk.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special, stats

from ..privacy.accounting import accountant as accounting
from ..privacy.events import Gaussian
from .claims import Claim, EventsClaim, GaussianClaim, PointClaim

PLACES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Where the curve of a claim is tried."""
MOST = 40.0
"""Epsilons above it are not distinguished."""


def p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """The most probable that so many right guesses are, of an (epsilon, delta)-private mechanism.

    >>> round(p_value(100, 20, 20, 1.0, 0.0), 6), p_value(100, 20, 20, 1.0, 1e-2) > 0.01
    (0.001901, True)
    """
    each = float(special.expit(epsilon))
    found = float(stats.binom.sf(right - 1, guesses, each))
    if delta > 0.0 and right > 0:
        below = np.cumsum(stats.binom.pmf(np.arange(right - 1, -1, -1), guesses, each))
        found += 2.0 * canaries * delta * float(np.max(below / np.arange(1, right + 1)))
    return min(1.0, found)


def refutes(claim: Claim, canaries: int, guesses: int, right: int, risk: float) -> bool:
    """Whether so many right guesses contradict the claim; of a true one with probability `risk` at
    most."""
    points = points_of(claim)
    return any(p_value(canaries, guesses, right, *point) <= risk / len(points) for point in points)


def points_of(claim: Claim) -> list[tuple[float, float]]:
    """(epsilon, delta) pairs that hold where the claim does."""
    if isinstance(claim, PointClaim):
        return [(claim.epsilon, claim.delta)]
    if isinstance(claim, GaussianClaim):
        return [(place, delta_of(claim.mu, place)) for place in PLACES]
    assert isinstance(claim, EventsClaim)
    return [(place, accounting.delta(claim.events, place, claim.neighbours)) for place in PLACES]


def epsilon_lower(canaries: int, guesses: int, right: int, delta: float, risk: float) -> float:
    """Any mechanism has at least this epsilon at `delta`."""
    return _largest(lambda at: p_value(canaries, guesses, right, at, delta) <= risk)


def mu_lower(canaries: int, guesses: int, right: int, risk: float) -> float:
    """A mechanism that is mu-GDP has at least this mu."""
    part = risk / len(PLACES)
    return _largest(
        lambda mu: any(
            p_value(canaries, guesses, right, at, delta_of(mu, at)) <= part for at in PLACES
        )
    )


def delta_of(mu: float, epsilon: float) -> float:
    """Of Gaussian noise."""
    return accounting.delta([Gaussian(1.0 / mu)], epsilon) if mu > 0.0 else 0.0


def _largest(refuted: Callable[[float], bool]) -> float:
    """Where it begins to hold, from below: everything under a refuted value is refuted."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, MOST
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return math.floor(low * 1e9) / 1e9
