"""Evidence, period after period, that a constraint is broken: bets whose wealth may be looked at
whenever one likes.

Each period has a p-value of "all constraints hold in this period's population": L times the
smallest of L constraints, each by exact private bounds on a grid of levels. A calibrator turns it
into an e-value, whose mean is at most 1 if they hold:

    e(p) = (1 - p + p ln p) / (p (ln p)^2),     e(1) = 1/2.

A change may begin at any period s. The wealth bets 1 / (s (s + 1)) on each of them, and keeps the
rest in cash:

    R_t = e_t (R_(t-1) + 1 / (t (t + 1))),     M_t = R_t + 1 / (t + 1).

If the constraints hold in every period, M is a nonnegative supermartingale from 1, whatever the
periods have in common with what was decided after earlier ones. By Ville's inequality P(M_t >= 1 /
alpha for any t) <= alpha: an alarm at 1 / alpha is false with probability at most alpha over the
whole run (theory.md#monitor).

People who come back repeat the luck of earlier periods. Then e_t has mean 1 at most by itself, and
not given the past, so bets that are multiplied would be wrong. `Clearest` adds probabilities up in
place of multiplying bets (theory.md#monitor-persons).

Guarantees (tests/learning/test_learning_monitor_evidence.py):
1. The p-value is at most u with probability at most u where the constraints hold; the e-value's
   mean is then at most 1.
2. Over a whole run in which they hold, an alarm is raised with probability at most the permitted
   one.
3. `Clearest` keeps guarantee 2 whatever the p-values of different periods have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..counts.noise import CountNoise
from .certificate import Evidence
from .parts import Layout, Line

LEVELS = tuple(2.0**-k for k in (1, 3, 6, 9, 13, 18, 24, 30))
"""Levels at which a constraint may be refuted."""


@dataclass(frozen=True)
class Bet:
    """What stands after a period: what rides on changes that began, what is in cash, and all of it
    at its highest."""

    periods: int = 0
    riding: float = 0.0
    highest: float = 1.0

    @property
    def wealth(self) -> float:
        """All of it."""
        return self.riding + 1.0 / (self.periods + 1.0)

    def after(self, e: float) -> Bet:
        """After a period with this e-value."""
        t = self.periods + 1
        riding = min(e * (self.riding + 1.0 / (t * (t + 1.0))), 1e300)
        return Bet(t, riding, max(self.highest, riding + 1.0 / (t + 1.0)))


@dataclass(frozen=True)
class Clearest:
    """What stands after a period, where people may come back: the largest 1 / (t (t + 1) p_t) so
    far. P(it ever reaches 1 / alpha) <= sum of P(p_t <= alpha / (t (t + 1))) <= alpha.

    >>> Clearest().after(0.25).after(1.0).wealth
    2.0
    """

    periods: int = 0
    wealth: float = 0.0

    def after(self, p: float) -> Clearest:
        """After a period with this p-value."""
        t = self.periods + 1
        return Clearest(t, max(self.wealth, 1.0 / (t * (t + 1.0) * p)))


def p_value(layout: Layout, counts: npt.NDArray[np.float64], noise: CountNoise) -> float:
    """Of "every constraint holds": the smallest grid level at which, as at all larger ones, one is
    refuted, times how many."""
    found: dict[float, Evidence] = {}
    smallest = 1.0
    first = Evidence(layout.rates, counts, noise, 1.0 - LEVELS[0])
    found[LEVELS[0]] = first
    for line in layout.lines:
        if (
            any(not first.fewest[rate] for _, rate in line.terms)
            or _released(first, line) <= line.bound
        ):
            continue
        for level in LEVELS:
            if level not in found:
                found[level] = Evidence(layout.rates, counts, noise, 1.0 - level)
            turned = Line(line.name, line.notion, tuple((-c, rate) for c, rate in line.terms), 0.0)
            if -found[level].at_most(turned) <= line.bound:
                break
            smallest = min(smallest, level)
    return min(1.0, len(layout.lines) * smallest)


def e_value(p: float) -> float:
    """The calibrator: the mean of k p^(k - 1) over k from 0 to 1.

    >>> round(e_value(0.01), 3), e_value(1.0)
    (4.451, 0.5)
    """
    if p >= 1.0 - 1e-6:
        return 0.5
    log = math.log(p)
    return (1.0 - p + p * log) / (p * log * log)


def _released(found: Evidence, line: Line) -> float:
    return sum(c * (found.value(rate) or 0.0) for c, rate in line.terms)
