"""Recorded groups that are not the true ones: flipped with known rates, which are public, or drawn
from distributions.

    rates[a, b] = P(recorded b | true a),   E[recorded] = rates^T true,   estimate of the true counts = (rates^T)^-1 recorded

A row adds to the estimate the line of its recorded group in `rates^-1`. These lines sum to 1, so
totals are kept (docs/theory/attribute_holder.md).

Guarantees (tests/methods/test_methods_reports.py):
1. Estimated counts are unbiased over the flips, for every true table; totals over groups are those
   that were recorded.
2. A report satisfies `epsilon` locally: no recorded value is more than exp(epsilon) times as likely
   for one true group as for another. `together(central)` bounds what a central release of reports,
   with pure epsilon `central`, tells of a true group.
3. Rates that one cannot undo, because one row would move an estimate by more than `MOST`, are
   refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import _checks
from .._types import Floats
from ..errors import InputError

MOST = 100.0
"""People by which one recorded group may move the estimate of a count: a coin with a bias of 1/2
percentage point."""
MOST_GROUPS = 12
ABOUT_ONE = 1e-9


@dataclass(frozen=True)
class Reports:
    """How recorded groups come from true ones, as public numbers.

    Pass it to `release_groups` beside the recorded groups. Counts of true groups are then estimated
    without bias, and error bars cover the flips.

    Parameters
    ----------
    groups : sequence
        The groups, in the order of the rates.
    rates : array of shape (n_groups, n_groups)
        Probability of each recorded group (column), given the true one (line). Lines sum to 1.
    drawn : bool, default=False
        Whether the recorded groups were drawn from distributions, so that chance is counted even
        where rates are exact.

    See Also
    --------
    release_groups : Takes it.
    SoftGroups : Distributions over groups, one a row.

    Examples
    --------
    >>> asked = Reports.randomized_response(("no", "yes"), epsilon=1.1)
    >>> round(asked.rates[0][0], 3), round(asked.epsilon, 3), round(asked.together(0.5), 3)
    (0.75, 1.1, 0.246)
    """

    groups: tuple[Hashable, ...]
    rates: tuple[tuple[float, ...], ...]
    drawn: bool = False

    def __post_init__(self) -> None:
        groups = tuple(self.groups)
        rates = np.array(self.rates, np.float64)
        count = len(groups)
        if count < 2 or count > MOST_GROUPS or len(set(groups)) != count:
            got = f"{count} groups"
            remedy = "Name each group once, two of them at least."
            raise InputError.expected(
                f"2 to {MOST_GROUPS} different groups", of="groups", got=got, remedy=remedy
            )
        right = (
            rates.shape == (count, count)
            and bool((rates >= 0).all())
            and bool(np.isfinite(rates).all())
        )
        if not right or np.abs(rates.sum(axis=1) - 1.0).max() > ABOUT_ONE:
            remedy = "Pass P(recorded | true), a line for each true group."
            expected = f"{count} lines of {count} probabilities that sum to 1"
            raise InputError.expected(expected, of="rates", got=rates.tolist(), remedy=remedy)
        _checks.normalise(self, groups=groups, rates=tuple(map(tuple, rates.tolist())))
        if not self.largest <= MOST:
            remedy = (
                "Ask with less randomness: such reports tell next to nothing of the true group."
            )
            got = (
                "rates that cannot be undone" if math.isinf(self.largest) else f"{self.largest:.3g}"
            )
            expected = f"rates where one report moves an estimate by at most {MOST:g} people"
            raise InputError.expected(expected, of="rates", got=got, remedy=remedy)

    @staticmethod
    def randomized_response(groups: Sequence[Hashable], epsilon: float) -> Reports:
        """Rates of randomized response: the truth is e^epsilon times as likely as any other group.

        Parameters
        ----------
        groups : sequence
            The groups.
        epsilon : float
            Local privacy of each report.

        Returns
        -------
        Reports
            The rates; every other group is as likely as the next.
        """
        value, count = _checks.positive(epsilon=epsilon), len(groups)
        other = 1.0 / (math.exp(min(value, 700.0)) + count - 1.0)
        rates = np.full((count, count), other)
        np.fill_diagonal(rates, 1.0 - (count - 1.0) * other)
        return Reports(tuple(groups), tuple(map(tuple, rates.tolist())))

    @cached_property
    def undone(self) -> Floats:
        """(true, recorded): what a recorded group adds to the estimated count of each true one."""
        rates = np.array(self.rates)
        singular = np.linalg.svd(rates, compute_uv=False)
        if singular[-1] <= singular[0] * len(rates) * np.finfo(np.float64).eps:
            return np.full(rates.shape, np.inf)
        return np.asarray(np.linalg.inv(rates).T)

    @property
    def largest(self) -> float:
        """By how much one report moves the estimate of a count at most."""
        spread = (
            self.undone.max(axis=1) - self.undone.min(axis=1)
            if np.isfinite(self.undone).all()
            else np.array([math.inf])
        )
        return float(spread.max())

    @property
    def epsilon(self) -> float:
        """Local privacy of a report: ln of the largest ratio of two rates of a recorded group."""
        if self.drawn:
            return math.inf
        ratios = [
            _ratio(high, low)
            for column in zip(*self.rates, strict=True)
            for high in column
            for low in column
        ]
        return max(map(math.log, ratios), default=0.0) if math.inf not in ratios else math.inf

    def together(self, central: float) -> float:
        """What a release of reports tells of a true group at most.

        Parameters
        ----------
        central : float
            Pure epsilon of the release, for a change of one report.

        Returns
        -------
        float
            Epsilon for a change of one true group: at most the smaller one of `central` and
            `epsilon`.
        """
        value = _checks.non_negative(central=central, allow_inf=True)
        if math.isinf(value):
            return self.epsilon
        more, rates, worst = math.expm1(value), np.array(self.rates), 1.0
        for size in range(1, len(rates)):
            for chosen in itertools.combinations(range(len(rates)), size):
                shares = 1.0 + more * rates[:, list(chosen)].sum(axis=1)
                worst = max(worst, float(shares.max() / shares.min()))
        return min(math.log(worst), value, self.epsilon)

    def in_order(self, groups: Sequence[Hashable]) -> Reports:
        """Put the groups into another order.

        Parameters
        ----------
        groups : sequence
            The same groups.

        Returns
        -------
        Reports
            The same rates. Other groups are an error.
        """
        if set(groups) != set(self.groups) or len(groups) != len(self.groups):
            remedy = (
                "Name the groups of the one sensitive column; a schema lists those that do not "
                "occur."
            )
            raise InputError.expected(
                f"the groups {list(groups)}", of="reports", got=list(self.groups), remedy=remedy
            )
        at = [self.groups.index(group) for group in groups]
        rates = np.array(self.rates)[np.ix_(at, at)]
        return Reports(tuple(groups), tuple(map(tuple, rates.tolist())), self.drawn)

    def to_dict(self) -> dict[str, Any]:
        """Describe the rates as plain values.

        Returns
        -------
        dict
            Rates and whether groups were drawn; the groups are named elsewhere.
        """
        return {"rates": [list(line) for line in self.rates], "drawn": self.drawn}


def _ratio(high: float, low: float) -> float:
    return 1.0 if high == low else math.inf if low == 0 else high / low
