"""What would be enough: the least epsilon, the fewest rows, the smallest group. Searches over
plans, each priced anew."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...facts import Cells
from ...learning.forecasting.supposed import Supposed

STEPS = 40
NEAR = 0.005  # of the logarithm of the answer
SHARE = 1e-6


def least(short: Callable[[float], float], start: float, low: float, high: float) -> float | None:
    """About the least value from `low` to `high` at which `short`, which falls, is at most 1; None
    where there is none.

    Noise is nearly a power of epsilon and of the rows, so steps along the logarithms find it in a
    few plans; a bracket holds them. The answer is one at which it was looked: it is enough, and
    half a per cent less may not be.

    >>> 100.0 <= least(lambda x: 100.0 / x, 1.0, 1e-3, 1e3) < 101.0
    True
    """
    a, b = math.log(low), math.log(high)  # too little, and enough, as far as is known
    x = min(max(math.log(start), a), b)
    best: float | None = None
    slope = -1.0
    before: tuple[float, float] | None = None
    for _ in range(STEPS):
        y = _log(short(math.exp(x)))
        if before is not None and math.isfinite(y) and math.isfinite(before[1]) and x != before[0]:
            slope = min((y - before[1]) / (x - before[0]), -0.05)
        if y <= 0.0:
            best, b = math.exp(x), x
            if y >= 2.0 * NEAR * slope or x <= math.log(low):
                return best
        elif x >= math.log(high):
            return None
        else:
            a = x
        before = (x, y)
        aim = x - y / slope + NEAR if math.isfinite(y) else (a + b) / 2.0
        if aim >= b and best is None:
            aim = b
        x = aim if a < aim < b or (aim == b and best is None) else (a + b) / 2.0
        if b - a <= NEAR and best is not None:
            return best
    return best


def smallest_share(
    supposed: Supposed, cells: Cells, short: Callable[[Supposed], float]
) -> float | None:
    """Of the first sensitive column whose shares nobody stated: what its smallest value may have,
    the others alike."""
    name = next(name for name in cells.names if name in supposed.guessed)
    count = len(supposed.columns[name])
    if count < 2:
        return None

    def at(share: float) -> float:
        line = np.full(count, (1.0 - share) / (count - 1))
        line[0] = share
        return short(replace(supposed, columns={**supposed.columns, name: line}))

    equal = 1.0 / count
    if at(equal) > 1.0:
        return None
    return equal if count == 1 else least(at, equal, SHARE, equal)


def _log(value: float) -> float:
    return math.log(value) if 0.0 < value < math.inf else math.copysign(math.inf, value - 1.0)
