"""Regression coefficients out of a public list, by the exponential mechanism: a function of clipped
losses is the score.

Three releases: the groups' counts, which losses are divided by; the choice; the losses of what was
chosen. With delta = 0 the counts get discrete Laplace noise, and the last is left out
(theory.md#objectives).

The list is a grid of the ball where none is given: exact, with no sampling error, but in few
dimensions only. Sampling from a convex set in more of them needs Markov chains, whose distance from
the right distribution enters delta (theory.md#t7) and has no bound that could be checked here: it
is refused.

Guarantees (tests/learning/test_learning_group_regression.py):
1. The log is the plan.
2. No neighbour changes the probability of a choice by more than its epsilon says.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core.events import Event, compose
from ...curator import (
    CellCounts,
    Curator,
    GroupLosses,
    Linear,
    Measurement,
    Score,
    describe,
    describe_choice,
    moved_by_one,
)
from ...errors import InputError
from ...privacy import calibrate
from ..descent import Progress
from ..oracles.ground import LEAST_ROWS
from ..systems import NO_GROUPS, onto_totals
from .grams import LEAST_SHARE
from .task import RegressionOutcome, RegressionTask

CLIP = 4.0  # of the squared error of codes: that of the range
GRID_RADIUS, GRID_POINTS, GRID_DIMENSIONS = 1.5, 21, 3
PENALTY = 5.0  # G: the choice's noise is in proportion to it
SHARES = (0.05, 0.9, 0.05)  # of the squared budget: counts, choice, losses
PURE_SHARES = (0.1, 0.9)  # of epsilon
CHOSEN = "drawn by the exponential mechanism from {0} candidates"


@dataclass(frozen=True, eq=False)
class CoefficientChoice:
    """A choice that is planned and priced: public values alone. Made by `plan_choice`.

    `candidates` (m, 1 + width), of coded rows, the intercept first. `scale`: z; more is more noise.
    """

    task: RegressionTask
    candidates: Floats
    scale: float = 0.0
    plan: Event | None = field(init=False)

    def __post_init__(self) -> None:
        _checks.normalise(self, plan=self.event() if self.task.promise.is_private else None)

    @property
    def is_pure(self) -> bool:
        """Without delta no noise may be Gaussian."""
        return not self.task.is_exact and self.task.promise.delta == 0.0

    def event(self) -> Event:
        """What the run costs."""
        task = self.task
        facts: dict[str, Any] = {"max_sample_weight": task.max_sample_weight}
        parts = [
            describe([measurement], task.layout, task.promise, **facts)
            for measurement in (self._counts, *self._measure(0))
        ]
        return compose(
            [parts[0], describe_choice(self._question, self._epsilon, task.promise), *parts[1:]]
        )

    def run(self, curator: Curator, _: Progress | None = None) -> RegressionOutcome:
        """Count, choose, measure; the curator is closed afterwards, in every case."""
        with curator:
            outcome = self._run(curator)
            curator.finish()
        return outcome

    def _run(self, curator: Curator) -> RegressionOutcome:
        task, cells = self.task, self.task.cells or NO_GROUPS
        (counts,) = curator.answer([self._counts], purpose="counts of the groups")
        count_noise = self._noise(self._counts)
        if task.sees_features and not task.is_exact:
            ((total,),) = curator.answer([(CellCounts(None), 0.0)])
            counts = onto_totals(counts, np.asarray(total), cells, axis=0)
        least = max(LEAST_ROWS, 2.0 * count_noise) if count_noise > 0 else LEAST_SHARE
        counts = np.maximum(counts, least)
        rows = float(task.stated_rows or max(counts.sum() / cells.per_row, LEAST_ROWS))
        shares = counts / rows
        f, bounds = task.functions(shares, least / rows)
        h, unit = task.joint(f, bounds), 1.0 / (4.0 * rows)
        low, high = h.slopes
        score = Score(lambda sums: h.value(sums * unit), low * unit, high * unit, trusted=h.trusted)
        at = curator.choose(self._question, self._epsilon, score=score, purpose="coefficients")
        losses, noise = np.full(cells.count, np.nan), math.nan
        for measurement in self._measure(at):
            (sums,) = curator.answer([measurement], purpose="losses of the coefficients")
            losses, noise = np.asarray(sums) * unit, self._noise(measurement) * unit
        return task.outcome(
            self.candidates[at],
            losses,
            shares,
            least=least / rows,
            noise=noise,
            count_noise=count_noise / rows,
            rows=rows,
            gap=None,
            calls=1,
            reason=CHOSEN.format(len(self.candidates)),
        )

    @property
    def _question(self) -> GroupLosses:
        return GroupLosses(
            Linear(self.candidates[:, np.newaxis]), self.task.cells, "squared", clip=CLIP
        )

    @property
    def _counts(self) -> Measurement:
        if self.is_pure:
            return Measurement(
                CellCounts(self.task.cells), self.scale / PURE_SHARES[0], "discrete-laplace"
            )
        return Measurement(CellCounts(self.task.cells), self._multiplier(SHARES[0]))

    @property
    def _epsilon(self) -> float:
        if self.task.is_exact:
            return math.inf
        return (
            PURE_SHARES[1] / self.scale if self.is_pure else 2.0 * math.sqrt(SHARES[1]) / self.scale
        )

    def _measure(self, at: int) -> list[Measurement]:
        """The losses of a candidate, unless there is no room for them."""
        question = GroupLosses(Linear(self.candidates[at]), self.task.cells, "squared", clip=CLIP)
        return [] if self.is_pure else [Measurement(question, self._multiplier(SHARES[2]))]

    def _multiplier(self, share: float) -> float:
        """Of a Gaussian: 1/z^2 times the share is its 1/multiplier^2, and a choice of epsilon e
        counts as e^2/4."""
        return 0.0 if self.task.is_exact else self.scale / math.sqrt(share)

    def _noise(self, measurement: Measurement) -> float:
        """A bound on the standard deviation of one number of an answer."""
        task = self.task
        if task.is_exact:
            return 0.0
        moved = moved_by_one(
            measurement.question,
            task.layout,
            task.promise,
            task.max_sample_weight,
            measurement.order,
        )
        return (
            float(measurement.multiplier)
            * moved
            * (math.sqrt(2.0) if measurement.order == 1 else 1.0)
        )


def plan_choice(
    task: RegressionTask, candidates: object = None, *, radius: float | None = None
) -> CoefficientChoice:
    """The choice whose noise is the least that keeps the promise. `candidates`: None: a grid of the
    ball of that radius."""
    task = replace(task, penalty=PENALTY) if task.penalty is None else task
    listed = (
        grid(1 + task.layout.width, radius)
        if candidates is None
        else checked(candidates, task.layout.width)
    )
    if task.is_exact:
        return CoefficientChoice(task, listed)

    def event(z: float) -> Event:
        return CoefficientChoice(task, listed, z).event()

    return CoefficientChoice(task, listed, calibrate(task.promise, event).multiplier)


def grid(dimensions: int, radius: float | None = None) -> Floats:
    """Evenly spaced points of the ball, (points, dimensions), in at most three dimensions.

    >>> len(grid(1, 1.0)), grid(2, 1.0).shape, float(np.linalg.norm(grid(3), axis=1).max()) <= 1.5
    (21, (317, 2), True)
    """
    if dimensions > GRID_DIMENSIONS:
        raise InputError.expected(
            (f"at most {GRID_DIMENSIONS} coefficients, the intercept's included, for a grid"),
            of="decisions",
            got=dimensions,
            remedy=(
                "Pass decisions=, a public list of coefficients, or method='linear-oracle'. "
                "A Markov chain is no way "
                "out: how far it is from the right one would enter delta, and nothing here could "
                "prove a bound of that."
            ),
        )
    reach = GRID_RADIUS if radius is None else _checks.positive(radius=radius)
    line = np.linspace(-reach, reach, GRID_POINTS)
    points = np.array(list(itertools.product(line, repeat=dimensions)))
    return np.asarray(points[np.linalg.norm(points, axis=1) <= reach * (1.0 + 1e-12)])


def checked(candidates: object, width: int) -> Floats:
    """A public list of coefficients as an array (m, 1 + width)."""
    try:
        listed = np.array(candidates, np.float64)
    except (TypeError, ValueError):
        listed = np.empty(0)
    if (
        listed.ndim != 2
        or not len(listed)
        or listed.shape[1] != 1 + width
        or not np.isfinite(listed).all()
    ):
        remedy = (
            "One line a candidate: the intercept, then one for each of coef_names_; public "
            "numbers, not fitted to rows."
        )
        expected = f"finite numbers (candidates, {1 + width})"
        raise InputError.expected(
            expected, of="decisions", got=f"shape {listed.shape}", remedy=remedy
        )
    return listed
