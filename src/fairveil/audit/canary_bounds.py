"""What one run with many canaries proves: the chance of so many right guesses under a claim.

Each of m canaries is in the table by a fair coin of its own. Whoever sees what was released guesses
r of the coins. Let p_i be the probability that i guesses are right. If the mechanism is (epsilon,
delta)-private for each of some points of its curve, then for each point and every set T of numbers
from 1 to r (docs/audit.md has the proof)

    sum over i in T of  i p_i - e^epsilon (r - i + 1) p_(i - 1)   <=   m delta.

`most_probable` is the largest probability of v right guesses or more under all of these: a linear
program. One point with delta 0 gives the binomial tail of Steinke, Nasr and Jagielski (2023); a
curve gives what Mahloujifar, Melis and Chaudhuri (2025) get from theirs. The returned number is the
value of a dual solution, so it holds however exact the solver was.

Guarantees (tests/audit/test_audit_canary_bounds.py):
1. The probability of so many right guesses is at most what `most_probable` says, whatever the
   mechanism is.
2. It is reached by randomized response, and by what tells everything with probability delta.
3. A claim is refuted with probability `risk` at most if it is true, at all points of its curve
   together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import optimize, sparse, special, stats

from .._types import Floats
from ..core import cost as accounting
from ..core.events import Gaussian
from .claims import Claim, EventsClaim, GaussianClaim, PointClaim

Points = Sequence[tuple[float, float]]

PLACES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Where the curve of a claim is read."""
MOST = 40.0
"""Epsilons above it are not distinguished."""
STEPS, NEAR = 30, 1e-4
"""Of a bisection: bounds are exact to such a part of themselves."""


def most_probable(canaries: int, guesses: int, right: int, points: Points) -> float:
    """The largest probability of so many right guesses, if the mechanism has these points (epsilon,
    delta).

    >>> round(most_probable(100, 20, 20, [(1.0, 0.0)]), 6)
    0.001901
    >>> most_probable(100, 20, 20, [(1.0, 1e-2)]) > 0.01
    True
    """
    if right <= 0:
        return 1.0
    plain = min(
        (
            float(stats.binom.sf(right - 1, guesses, special.expit(at)))
            for at, off in points
            if off == 0.0
        ),
        default=1.0,
    )
    given = [(at, off) for at, off in points if 0.0 < off < 1.0]
    if not given:
        return plain
    return min(plain, _Program(canaries, guesses, right, given).value)


class _Program:
    """max sum of p_i over i >= right, where for each point k and all i

    i p_i - e^epsilon_k (r - i + 1) p_(i - 1) <= s_(k, i),   s >= 0,   sum over i of s_(k, i) <= m
    delta_k.
    """

    def __init__(self, canaries: int, guesses: int, right: int, points: Points) -> None:
        self._wanted = (np.arange(guesses + 1) >= right).astype(np.float64)
        self._room = canaries * np.array([off for _, off in points])
        i, size = np.arange(1, guesses + 1), guesses + 1
        diags: Any = sparse.diags
        # Flipping one canary's coin takes a run with i right guesses to one with i - 1: each pair
        # of neighbours gives one inequality.
        right = diags([i * 1.0], [1], shape=(guesses, size))
        self._flips: list[Any] = [
            right - diags([math.exp(at) * (guesses - i + 1.0)], [0], shape=(guesses, size))
            for at, _ in points
        ]

    @property
    def value(self) -> float:
        """Of the dual: any weights y_k, and x_(k, i) from 0 to y_k, prove the bound

        sum of m delta_k y_k + max over j of (wanted_j - sum over k of (flips_k' x_k)_j).
        """
        count, guesses = len(self._flips), self._flips[0].shape[0]
        size = guesses + 1
        slack = sparse.identity(count * guesses)
        above = sparse.hstack([sparse.vstack(self._flips), -slack])
        summed = sparse.kron(sparse.identity(count), np.ones((1, guesses)))
        room = sparse.hstack([sparse.csr_matrix((count, size)), summed])
        nothing = np.zeros(count * guesses)
        problem: dict[str, Any] = {
            "A_ub": sparse.vstack([above, room]).tocsr(),
            "b_ub": np.concatenate([nothing, self._room]),
            "A_eq": sparse.csr_matrix(np.concatenate([np.ones(size), nothing])[None, :]),
            "b_eq": [1.0],
            "method": "highs",
        }
        found: Any = optimize.linprog(-np.concatenate([self._wanted, nothing]), **problem)
        # The solver may fail; then nothing is refuted.
        if found.status != 0:  # a bound that holds always
            return 1.0
        weights = np.maximum(-np.asarray(found.ineqlin.marginals, np.float64), 0.0)
        each = weights[count * guesses :]
        return self._proved(each, weights[: count * guesses].reshape(count, guesses))

    def _proved(self, each: Floats, flipped: Floats) -> float:
        # Any feasible weights of the dual prove a bound, so the solver's rounding cannot make one
        # that is wrong.
        within = np.minimum(flipped, each[:, None])
        left = self._wanted - sum(
            flips.T @ one for flips, one in zip(self._flips, within, strict=True)
        )
        found = float(self._room @ each) + float(np.max(left))
        return min(1.0, max(0.0, found * (1.0 + 1e-9)))


def refutes(claim: Claim, canaries: int, guesses: int, right: int, risk: float) -> bool:
    """Whether so many right guesses contradict the claim; of a true one with probability `risk` at
    most."""
    return most_probable(canaries, guesses, right, points_of(claim)) <= risk


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
    return _largest(lambda at: most_probable(canaries, guesses, right, [(at, delta)]) <= risk)


def mu_lower(canaries: int, guesses: int, right: int, risk: float) -> float:
    """A mechanism that is mu-GDP has at least this mu."""

    def refuted(mu: float) -> bool:
        points = [(place, delta_of(mu, place)) for place in PLACES]
        return most_probable(canaries, guesses, right, points) <= risk

    return _largest(refuted)


def delta_of(mu: float, epsilon: float) -> float:
    """Of Gaussian noise."""
    return accounting.delta([Gaussian(1.0 / mu)], epsilon) if mu > 0.0 else 0.0


def _largest(refuted: Callable[[float], bool]) -> float:
    """Where it begins to hold, from below: everything under a refuted value is refuted."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 0.25
    while high < MOST and refuted(high):
        low, high = high, 2.0 * high
    high = min(high, MOST)
    for _ in range(STEPS):
        if high - low <= NEAR * high:
            break
        middle = (low + high) / 2.0
        low, high = (middle, high) if refuted(middle) else (low, middle)
    # Cut, not rounded: a lower bound must not rise.
    return math.floor(low * 1e9) / 1e9
