"""Rates of true groups from released counts of recorded ones, which were flipped with known rates.
Post-processing.

With u_b what a person recorded as b adds to the number of the true group (`Reports.undone`), and
for a supposed rate r

    x_i(r) = u_b (1 - r) if person i is a hit of the rate's event,  -u_b r if one of the rest,  0 if
    not of the event,

the mean of x_i(r) is zero where r is the rate of the true group in the population: over people, and
over flips. So r is left out where the released sum of x_i(r) is further from zero than noise,
sampling and flips together get: Bernstein's bound, with a variance that is itself bounded by the
released sum of x_i(r)^2 (theory.md#true-groups).

Guarantees (tests/learning/test_learning_true_groups.py):
1. An interval misses the population's rate of the true group with probability at most `miss`, over
   people, flips and noise.
2. Without flips the estimate is the released rate. Where nobody may be in the group, there is no
   value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import special

from ..._types import Floats
from ..counts.noise import GRID, CountNoise

CELLS, FINER = 64, 16
"""Of [0, 1], and of a cell at either end of what is left: in each, bounds hold for all rates of the
cell."""


@dataclass(frozen=True)
class TrueRate:
    """The rate of a true group: the estimate, None where there may be nobody, and between which
    ends the population's lies."""

    value: float | None
    low: float
    high: float


def true_rate(
    hits: Floats,
    rests: Floats,
    line: Floats,
    noise: CountNoise,
    noises: tuple[int, int],
    miss: float,
) -> TrueRate:
    """One rate. `hits`, `rests`: released sums by recorded group, each of so many counts
    (`noises`); `line`: what a person recorded in each group adds to the true one."""
    members, found = float(line @ (hits + rests)), float(line @ hits)
    value = min(max(found / members, 0.0), 1.0) if members > 0 else None

    def kept(start: float, end: float, cells: int) -> list[tuple[float, float]]:
        """The cells in which some rate may fit."""
        edges = np.linspace(start, end, cells + 1).tolist()
        return [
            pair
            for pair in pairwise(edges)
            if not _is_out(hits, rests, line, noise, noises, miss, *pair)
        ]

    coarse = kept(0.0, 1.0, CELLS)
    if not coarse:  # the assumptions do not fit these counts: nothing is claimed
        return TrueRate(value, 0.0, 1.0)
    low = next(iter(kept(*coarse[0], FINER)), coarse[0])[0]
    high = next(iter(reversed(kept(*coarse[-1], FINER))), coarse[-1])[1]
    return TrueRate(
        value,
        low if value is None else min(low, value),
        high if value is None else max(high, value),
    )


def sum_tail(noise: CountNoise, weights: Floats, probability: float) -> float:
    """A number that |sum of weights x independent noises| exceeds with at most this probability."""
    sizes = np.abs(weights[weights != 0.0])
    if noise.kind == "none" or not len(sizes):
        return 0.0
    each = float(sizes.sum()) * noise.tail(probability / len(sizes))
    if noise.kind == "gaussian":  # rounded to whole numbers
        found = (
            float(np.sqrt((sizes**2).sum()))
            * noise.scale
            * float(-special.ndtri(probability / 2.0))
        )
        return min(each, found + GRID * float(sizes.sum()))
    t = np.geomspace(1e-3, 0.99, 60) / (noise.scale * float(sizes.max()))
    s = np.outer(t, sizes)
    rest = -1.0 / noise.scale
    logs = (
        2.0 * math.log1p(-math.exp(rest))
        - np.log1p(-np.exp(s + rest))
        - np.log1p(-np.exp(-s + rest))
    )
    return min(each, float(((logs.sum(axis=1) + math.log(2.0 / probability)) / t).min()))


def _is_out(
    hits: Floats,
    rests: Floats,
    line: Floats,
    noise: CountNoise,
    noises: tuple[int, int],
    miss: float,
    a: float,
    b: float,
) -> bool:
    """Whether no rate between a and b fits: the sum is linear in the rate, and its tail is bounded
    for all of them at once."""
    sums = [float(line @ (hits * (1.0 - r) - rests * r)) for r in (a, b)]
    if sums[0] * sums[1] <= 0.0:
        return False
    of_hit, of_rest = 1.0 - a, b  # the largest of 1 - r and of r
    weights = np.concatenate(
        [np.repeat(line * of_hit, noises[0]), np.repeat(line * of_rest, noises[1])]
    )
    largest, quarter = float(np.abs(line).max()) * max(of_hit, of_rest), miss / 4.0
    squares = line**2 @ (np.maximum(hits, 0.0) * of_hit**2 + np.maximum(rests, 0.0) * of_rest**2)
    seen = float(squares) + sum_tail(noise, weights**2, quarter)
    root = largest * math.sqrt(2.0 * math.log(1.0 / quarter))
    variance = ((root + math.sqrt(root**2 + 4.0 * seen)) / 2.0) ** 2
    log = math.log(2.0 / quarter)
    tail = largest * log / 3.0 + math.sqrt((largest * log / 3.0) ** 2 + 2.0 * variance * log)
    return min(map(abs, sums)) > tail + sum_tail(noise, weights, quarter)
