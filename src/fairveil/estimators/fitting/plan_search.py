"""What would be enough: the least epsilon, the fewest rows, the smallest group. Searches over
plans, each priced anew. And the warning, before a spend, of what will not be enough.

Guarantee (tests/estimators/test_estimators_not_enforced.py):
1. The warning depends on public facts alone: a number of rows that is public, stated shares, else
   equal ones.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...core.promise import Promise
from ...errors import NotEnforced
from ...facts import Cells
from ...facts.columns import Boolean, Category
from ...learning.forecasting.foretold import Forecast
from ...learning.forecasting.supposed import Supposed
from ..reading.cautions import outside
from ..reading.training import Training
from .plan_words import points, rows_up, up

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


def short(forecast: Forecast, what: str = "enforceable") -> float:
    """By what factor the worst constraint misses its bound."""
    bounded = [line for line in forecast.lines if line.bound is not None]
    return max(
        (getattr(line, what) / line.bound if line.bound else math.inf for line in bounded),
        default=0.0,
    )


def warn_if_hidden(
    training: Training,
    promise: Promise,
    rows: int | None,
    foretold: Callable[[Supposed, float], Forecast],
) -> bool:
    """Warn, before anything is spent, that noise will hide a constraint, with what would do; False
    where it will not, or where how many rows there are is private. `foretold`: of so many rows at
    an epsilon."""
    if rows is None or not promise.is_private:
        return False
    supposed, epsilon = _supposed(training, rows), promise.epsilon
    found = foretold(supposed, epsilon)
    bounded = [line for line in found.lines if line.bound is not None]
    hidden = [line for line in bounded if not line.can_be_enforced]
    if not hidden:
        return False
    worst = max(hidden, key=lambda line: line.enforceable - (line.bound or 0.0))
    equal = " if groups are equal in size" if supposed.guessed else ""
    # of the figures as they are shown, rounded up: finer bins of more rows may have more noise
    enough = least(
        lambda n: short(foretold(supposed.at(rows_up(math.ceil(n))), epsilon)), rows, 10.0, 1e10
    )
    larger = least(lambda at: short(foretold(supposed, float(up(at)))), epsilon, 1e-3, 1e3)
    ways = [f"about {rows_up(math.ceil(enough)):,} rows"] if enough is not None else []
    ways += [f"epsilon {up(larger)}"] if larger is not None else []
    do = f"{' or '.join(ways)} would do{equal}" if ways else "no number of rows would do"
    text = (
        f"before anything is spent: noise will hide {len(hidden)} of {len(bounded)} constraints. "
        f"With {rows:,} rows at epsilon {epsilon:.3g} the noise is ±{points(worst.noise)} points "
        f"(one standard deviation) for a bound of {points(worst.bound or 0.0)}{equal}; {do}. Or ask "
        "for a larger bound, or put small groups together."
    )
    warnings.warn(text, NotEnforced, stacklevel=outside())
    return True


def _supposed(training: Training, rows: int) -> Supposed:
    """Shares that a schema states, else equal ones."""
    schema, layout = training.schema, training.rows.layout
    columns = {} if schema is None else schema.columns
    stated = {
        name: column.shares
        for name, column in columns.items()
        if isinstance(column, Category | Boolean) and column.shares is not None
    }
    classes = None if schema is None else stated.get(schema.target or "")
    groups = {name: stated[name] for name in layout.sensitive_names if name in stated}
    return Supposed.of(layout, rows, groups, classes)


def _log(value: float) -> float:
    return math.log(value) if 0.0 < value < math.inf else math.copysign(math.inf, value - 1.0)
