"""How the permitted miss of a bound on several rates is shared among them: in steps, where the
rates are independent.

A sum of two rates of separate groups is bounded by the largest value that it takes while neither
rate is refused. With p-values u and v of the two, which are independent, any set of pairs that is
closed downwards and has area alpha may be refused. Equal parts refuse where u or v is at most alpha
/ 2. Here the set is a staircase, whose corners lie on an arc of normal scores: pairs are kept where
for one of the corners both u > a_j and v > b_j, so

    sup of c p + d q  =  max over j of  c end_p(a_j) + d end_q(b_j),     alpha = 1 - sum_j (a_(j+1) - a_j) (1 - b_j).

For rates of equal precision the bound lies 1.30 times the normal one from what was released, and
1.69 times with equal parts.

Guarantees (tests/learning/test_learning_certificate_levels.py):
1. The area that is refused is at most alpha, and nothing of the data decides the steps.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy import optimize, special

ANGLES = (0.245, 0.616, math.pi / 2 - 0.616, math.pi / 2 - 0.245)
"""Where the corners lie on the arc: chosen so that precisions that differ up to five times cost
about the same."""


@cache
def corners(alpha: float) -> tuple[tuple[float, float], ...]:
    """Pairs (a, b) of levels for two independent rates, whose staircase has area `alpha`.

    >>> [(round(a, 4), round(b, 4)) for a, b in corners(0.05)]
    [(0.0174, 0.2988), (0.0379, 0.1043), (0.1043, 0.0379), (0.2988, 0.0174)]
    """
    found = optimize.brentq(lambda radius: area(_at(radius)) - alpha, 1e-6, 40.0, xtol=1e-12)
    steps = _at(float(found))
    while area(steps) > alpha:  # outwards, if the root was found from the wrong side
        found *= 1.0 + 1e-12
        steps = _at(float(found))
    return steps


def area(steps: tuple[tuple[float, float], ...]) -> float:
    """P(a pair of independent uniform p-values is refused)."""
    first = [a for a, _ in steps] + [1.0]
    return 1.0 - math.fsum((first[j + 1] - first[j]) * (1.0 - b) for j, (_, b) in enumerate(steps))


def shares(terms: int, independent: bool, alpha: float) -> tuple[tuple[float, ...], ...]:
    """The corners for a sum of this many rates: a level for each of them in each corner."""
    if terms == 1:
        return ((alpha,),)
    if terms == 2 and independent:
        return corners(alpha)
    return ((alpha / terms,) * terms,)


def _at(radius: float) -> tuple[tuple[float, float], ...]:
    scores = radius * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
    return tuple((float(a), float(b)) for a, b in special.ndtr(-scores))
