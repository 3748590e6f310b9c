"""Whether a required bound is met, as far as a noisy number or an interval can tell: one of three
words.

    "met"             the value is below the bound, and noise does not explain that
    "not met"         the value is above the bound, and noise does not explain that
    "inconclusive"  everything between, and whatever is undefined

Guarantees (tests/test_verdicts.py), for values with Gaussian noise of known standard deviation s:
1. A constraint that is broken is called "met" with probability at most 1 - confidence: value + z s
   <= bound is needed, z the one-sided normal quantile. So are several constraints together, of
   which one is broken: all of them must be met, and the broken one rarely is (an intersection-union
   test), so no correction is needed.
2. Of `among` constraints that all hold, any is called "not met" with probability at most 1 -
   confidence (Bonferroni).
3. Where a model was picked out of `looks` by the very values that the verdict is about, 1 still
   holds: the luckiest of many looks better than it is, and "met" asks for the quantile of 1 - (1 -
   confidence) / looks (Bonferroni).
4. "met" is never said of a value above its bound, nor "not met" of one below.
5. Of the people that rows were drawn from (`of_sampled`) 1 to 3 hold where the sampling error is
   known, for a model that was fixed in advance (tests/fairness/test_fairness_sampling.py). How
   often they fail for models that were fitted to the same rows was measured:
   benchmarks/results/verdicts.md.

A search that ends at its bound is "inconclusive" however many rows there are. So searches aim
`margins` inside: as far as the verdict needs, about the people if that leaves room, else about the
rows, else not at all.

Exact values have no noise and are compared with their bounds directly, up to the rounding of
floating point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Literal

Verdict = Literal["met", "not met", "inconclusive"]
MET: Verdict = "met"
NOT_MET: Verdict = "not met"
UNCLEAR: Verdict = "inconclusive"
CONFIDENCE = 0.95
CHANCE, LEAST = 0.8, 0.2
"""The chance of "met" that a margin is for, and the least part of the room that it leaves."""
# of an exact value: what a linear program, or a quotient of counts, may miss its bound by
ROUNDING = 1e-9


def of_noisy(
    value: float,
    bound: float,
    noise: float,
    *,
    confidence: float = CONFIDENCE,
    among: int = 1,
    looks: int = 1,
) -> Verdict:
    """The verdict on a value that carries noise of that standard deviation, one of `among`
    constraints.

    `looks`: where the model was picked by this same noisy value, from how many it may have been.

    >>> of_noisy(0.04, 0.05, 0.005), of_noisy(0.049, 0.05, 0.005), of_noisy(0.07, 0.05, 0.005)
    ('met', 'inconclusive', 'not met')
    """
    if math.isnan(value) or math.isnan(noise):
        return UNCLEAR
    if noise == 0:
        return MET if value <= bound + ROUNDING * max(1.0, abs(bound)) else NOT_MET
    if value + reach(noise, confidence=confidence, looks=looks) <= bound:
        return MET
    return (
        NOT_MET if value - _reach((1.0 - confidence) / max(1, among)) * noise > bound else UNCLEAR
    )


def of_sampled(
    value: float,
    bound: float,
    noise: float,
    sampling: float,
    *,
    confidence: float = CONFIDENCE,
    among: int = 1,
    looks: int = 1,
) -> Verdict:
    """The verdict about the people that rows were drawn from, on a value of the rows that carries
    noise: both errors together.

    `looks`: as in `of_noisy`. Where noise is what picked the model and small beside the sampling
    error, the two are covered one by one, each with half of what is left to chance. For "met" half
    of that is kept back for what `sampling` leaves out: it is that of a model fixed in advance, and
    this one was fitted to the same rows.

    >>> of_sampled(0.04, 0.05, 0.001, 0.002), of_sampled(0.04, 0.05, 0.001, 0.02)
    ('met', 'inconclusive')
    """
    if math.isnan(value) or math.isnan(noise) or math.isnan(sampling):
        return UNCLEAR
    both = math.hypot(noise, sampling)
    if both == 0:
        return of_noisy(value, bound, 0.0)
    if value + reach(noise, sampling, confidence=confidence, looks=looks) <= bound:
        return MET
    away = _reach((1.0 - confidence) / max(1, among)) * both
    return NOT_MET if value - away > bound else UNCLEAR


def reach(
    noise: float, sampling: float | None = None, *, confidence: float = CONFIDENCE, looks: int = 1
) -> float:
    """How far below its bound a value has to be for "met"; `sampling`: None of the rows alone.

    >>> round(reach(0.01), 4), round(reach(0.01, 0.02), 4)
    (0.0164, 0.0438)
    """
    left = 1.0 - confidence
    if sampling is None:
        return _reach(left / max(1, looks)) * noise
    half = left / 2
    joint = _reach(half / max(1, looks)) * math.hypot(noise, sampling)
    if looks <= 1:
        return joint
    return min(joint, _reach(half / 2 / looks) * noise + _reach(half / 2) * sampling)


def inside(noise: float, sampling: float | None, doubt: float, *, looks: int = 1) -> float:
    """The margin of one bound, whatever its room: see `margins`."""
    return (reach(noise, sampling, looks=looks) if looks else 0.0) + deviations(CHANCE) * doubt


def margins(
    rooms: Sequence[float],
    noise: Sequence[float],
    sampling: Sequence[float],
    doubts: Sequence[float],
    *,
    looks: int = 1,
) -> list[float]:
    """How far inside its bounds a search aims: for a verdict "met" with a chance of about `CHANCE`,
    where released values end within a deviation of `doubts` of their aims.

    `rooms`: from each bound down to where groups are alike; at least `LEAST` of each is left. About
    the people where all bounds let that be, else about the rows, else 0: one value that cannot be
    told leaves all of them inconclusive, and what is given up for the others would buy nothing.
    `looks`: as above; 0: no verdict, the values are to end within their bounds.

    >>> [round(one, 4) for one in margins([0.05], [0.002], [0.004], [0.003])]
    [0.0113]
    >>> margins([0.05, 0.05], [0.002, 0.02], [0.004, 0.04], [0.003, 0.03])
    [0.0, 0.0]
    """
    for of in (sampling, [None] * len(noise)):
        away = [inside(*errors, looks=looks) for errors in zip(noise, of, doubts, strict=True)]
        if all(one <= (1.0 - LEAST) * room for one, room in zip(away, rooms, strict=True)):
            return away
    return [0.0] * len(noise)


def deviations(confidence: float) -> float:
    """The one-sided quantile of the normal distribution, in standard deviations.

    >>> round(deviations(0.95), 3)
    1.645
    """
    return NormalDist().inv_cdf(confidence)


def _reach(miss: float) -> float:
    """The same of what is left to chance: exact where 1 minus it would be rounded to 1."""
    return -NormalDist().inv_cdf(miss)


def of_interval(low: float | None, high: float | None, bound: float) -> Verdict:
    """The verdict on a value that lies between two ends with the confidence of the interval.

    >>> of_interval(0.01, 0.04, 0.05), of_interval(0.03, 0.06, 0.05), of_interval(0.06, 0.09, 0.05)
    ('met', 'inconclusive', 'not met')
    """
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return UNCLEAR
    return MET if high <= bound else NOT_MET if low > bound else UNCLEAR


def together(verdicts: Iterable[Verdict]) -> bool | None:
    """Of several constraints: True where all are met, False where one is not, None where that
    cannot be told.

    >>> together(["met", "inconclusive"]), together(["met", "not met"]), together([])
    (None, False, True)
    """
    found = set(verdicts)
    return False if NOT_MET in found else None if UNCLEAR in found else True
