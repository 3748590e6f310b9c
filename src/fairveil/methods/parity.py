"""Demographic parity of many classes by offsets for each group, found on rows without labels (after
DP2DP, Say et al. 2025).

Decide for the class k of the largest p(k | x) - offset[group, k]. The offsets minimise the smoothed
dual

    sum_s share_s ( mean over group s of T log sum_k exp((p_k - offset_sk) / T)  +  max_gap / 2
    sum_k |offset_sk| ) such that sum_s share_s offset_sk = 0 for every class k,

whose slopes are the rates of soft decisions. Each round releases one histogram of these, with
noise, and takes one proximal step; the offsets are the mean of the second half of the rounds. One
more histogram at the end says what they do.

At the optimum rates of two groups differ by at most max_gap: |rate_sk - c_k| <= max_gap / 2, where
c_k is what makes a step keep the sum at zero. Sizes of groups are sums of the same histograms, so
they cost nothing more.

Guarantees (tests/methods/test_methods_parity.py):
1. The plan is made of the promise, the rounds and what was spent before alone. It costs at most the
   promise together with that, and the log is the plan, event for event.
2. Without noise the offsets reach the optimum of the linear program over the same rows, but for the
   smoothing.
3. The result depends on the rows through the released histograms alone.
4. The noise of a constraint's value is that of repeated draws, to first order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._types import Floats
from ..core.attached import ShiftedHistogram
from ..core.events import Composed, Event, Gaussian, NonPrivate, Repeated, compose
from ..core.promise import Promise
from ..curator import Attached, Curator, Measurement, Trace
from ..facts import Cells
from ..fairness import ConstraintSystem
from ..privacy.calibration import calibrate
from .counts import require_room
from .descent import AFTER, ROUND
from .postprocess import value_slopes

FIRST_STEP, LAST_STEP = 1.5, 0.1
"""Of an offset, for a rate that is off by one. It falls from the first to the last over the rounds
before offsets are averaged: large gaps need long steps, and long steps swing where the optimum is
near."""
AVERAGED = 0.5
LAST = 0.25
"""Of the squared budget (1 / z^2), for the histogram at the end."""
HALVINGS = 60
SMALLEST = 1.0
"""Rows that a group is taken to have at least."""
FEWEST = 1.0
"""Standard deviations of one round's noise: a group with fewer rows keeps the model's decisions, or
noise would move it."""


@dataclass(frozen=True)
class ParityPlan:
    """What is asked, and with how much noise. Multipliers of 0: exactly. `heaviest`: the largest
    weight of one who is protected: of a row, or of all that a person has."""

    promise: Promise
    rounds: int
    multiplier: float
    last_multiplier: float
    heaviest: float = 1.0

    @property
    def event(self) -> Event:
        """The releases of the whole run."""
        if not self.promise.is_private:
            return NonPrivate()
        return _events(self.rounds, self.multiplier, self.last_multiplier)

    @property
    def deviation(self) -> float:
        """Of the noise of each count at the end."""
        return self.last_multiplier * self.spread

    @property
    def spread(self) -> float:
        """How far one neighbour moves a histogram, by which multipliers are multiplied."""
        return self.heaviest * (1.0 if self.promise.neighbours == "add-remove" else math.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class ParityOutcome:
    """`offsets` (groups, classes), subtracted from probabilities; `counts`: soft or hard decisions,
    noisy, at the end; `moved`: the groups that are large enough for the noise. All others keep the
    model's decisions."""

    offsets: Floats
    counts: Floats
    rounds: int
    moved: npt.NDArray[np.bool_]

    @property
    def rates(self) -> Floats:
        """The share of each group that is decided for each class, by the noisy counts."""
        return rates_of(self.counts, np.maximum(self.counts.sum(axis=1), SMALLEST))

    @property
    def gap(self) -> float:
        """The largest difference of two groups' rates of one class, by the noisy counts."""
        return float(np.ptp(self.rates, axis=0).max())


def plan(
    promise: Promise, rounds: int, spent: Iterable[Event] = (), heaviest: float = 1.0
) -> ParityPlan:
    """The least noise that keeps the promise beside `spent`, which is of one plan with it: every
    round alike, and a quarter of the squared budget for the last release."""
    if not promise.is_private:
        return ParityPlan(promise, rounds, 0.0, 0.0, heaviest)
    before = compose(tuple(spent))
    require_room(promise, before, more=True)
    # Shares of 1 / z^2: the last release has `LAST` of it, the rounds split the rest.
    each, last = math.sqrt(rounds / (1.0 - LAST)), math.sqrt(1.0 / LAST)
    z = calibrate(
        promise, lambda z: compose((before, _events(rounds, z * each, z * last)))
    ).multiplier
    return ParityPlan(promise, rounds, z * each, z * last, heaviest)


def _events(rounds: int, z: float, last: float) -> Event:
    return Composed((Repeated(Gaussian(z), rounds), Gaussian(last)))


def run(
    curator: Curator | Trace,
    plan: ParityPlan,
    attached: Attached,
    cells: Cells,
    max_gap: float,
    temperature: float,
    *,
    hard: bool,
) -> ParityOutcome:
    """The descent, by a curator that was made for its plan. `hard`: whether the largest decides, so
    that the last histogram is of that."""

    def asked(decisions: str, multiplier: float, purpose: str) -> Floats:
        question = ShiftedHistogram(
            attached, cells, decisions=decisions, offsets=offsets, temperature=temperature
        )
        (counts,) = curator.answer([Measurement(question, multiplier)], purpose=purpose)
        return np.asarray(counts, np.float64)

    offsets = counted = added = np.zeros((cells.count, attached.count))
    averaged, moved, halfway = 0, np.zeros(cells.count, bool), AVERAGED * plan.rounds
    for done in range(1, plan.rounds + 1):
        counts = asked("soft", plan.multiplier, ROUND)
        # The mean size of all rounds, because offsets do not change sizes; and whether it is enough.
        counted = counted + counts
        sizes = counted.sum(axis=1) / done
        moved = sizes >= max(FEWEST * plan.multiplier * plan.spread, SMALLEST)
        sizes = np.maximum(sizes, SMALLEST)
        # Large steps while there is far to go; small ones before iterates are averaged.
        step = FIRST_STEP + (LAST_STEP - FIRST_STEP) * min(1.0, done / halfway)
        away = (offsets + step * (counts / sizes[:, np.newaxis]))[moved]
        # Small groups keep the model's decisions: their rates are noise.
        offsets = np.zeros_like(counts)
        if moved.any():
            shares = sizes[moved] / sizes[moved].sum()
            offsets[moved] = stepped(away, shares, step * max_gap / 2)
        if done > halfway:
            added, averaged = added + offsets, averaged + 1
    # By the sizes of all rounds: a group that some rounds took for small is left alone as a whole.
    offsets = np.where(moved[:, np.newaxis], added / max(averaged, 1), 0.0)
    counts = asked("hard" if hard else "soft", plan.last_multiplier, AFTER)
    return ParityOutcome(offsets, counts, plan.rounds, moved)


def stepped(moved: Floats, shares: Floats, threshold: float) -> Floats:
    """The nearest offsets to `moved` (groups, classes) under the penalty, with a weighed sum of
    zero for each class.

    In the metric that weighs a group by its share they are moved - c, clipped by `threshold`, for
    the c at which the sum is zero. It falls with c, so halving finds it.

    >>> stepped(np.array([[0.3, 0.0], [-0.1, 0.0]]), np.array([0.5, 0.5]), 0.05).round(3).tolist()
    [[0.15, 0.0], [-0.15, 0.0]]
    """
    low, high = moved.min(axis=0) - threshold, moved.max(axis=0) + threshold

    def soft(middle: Floats) -> Floats:
        away = moved - middle
        return np.asarray(np.sign(away) * np.maximum(np.abs(away) - threshold, 0.0))

    for _ in range(HALVINGS):
        middle = (low + high) / 2
        over = shares @ soft(middle) > 0
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return soft((low + high) / 2)


def rates_of(counts: Floats, sizes: Floats) -> Floats:
    """Shares of each group, nonnegative, which sum to one; of a group that noise drowns, all
    classes alike."""
    kept = np.maximum(counts / sizes[:, np.newaxis], 0.0)
    total = kept.sum(axis=1, keepdims=True)
    return np.asarray(
        np.where(total > 0, kept / np.where(total > 0, total, 1.0), 1.0 / counts.shape[1])
    )


def noise_of_values(system: ConstraintSystem, counts: Floats, noise: float) -> Floats:
    """The standard deviation of each constraint's value of rates of `counts` (cells, classes), each
    with noise of this one."""
    whole = counts[:, np.newaxis]
    sizes = whole.sum(axis=2)
    rates, events = system.rates(whole, sizes, SMALLEST), system.event_sizes(sizes, SMALLEST)
    moves = value_slopes(system, system.numerators, events[system.event_of], rates, system.shape[2])
    return np.asarray(noise * np.sqrt(np.asarray(moves.power(2).sum(axis=1)).ravel()))
