"""Intervals of rates, and of what constraints make of them, for the population that rows were drawn
from.

A constraint is a difference d = p - q of rates of separate groups, or one rate. Wilson's interval
of each rate gives Newcombe's of the difference,

    d - sqrt((p - p_low)^2 + (q_high - q)^2)  to  d + sqrt((p_high - p)^2 + (q - q_low)^2),

and so for any sum of rates of separate groups. Of m constraints each is covered at level 1 - (1 -
confidence) / m (Bonferroni; one and its negative count once), so the largest lies between the
largest lower and the largest upper end.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .._types import Floats
from ..fairness.systems import ConstraintSystem
from .tables import wilson


def largest(
    system: ConstraintSystem,
    counts: npt.ArrayLike,
    histogram: npt.ArrayLike,
    confidence: float,
    *,
    chosen: npt.NDArray[np.bool_] | None = None,
) -> tuple[float, float, float]:
    """(value, low, high) of the largest of the constraints, or of the `chosen` ones; not below 0,
    NaN where one is undefined.

    `counts` (cells, labels) and `histogram` (cells, labels, decisions) are exact numbers of
    independent rows.
    """
    sizes = (system.members @ np.ravel(counts))[system.event_of]
    hits = system.numerators @ np.ravel(histogram)
    rates = np.where(sizes > 0, hits, np.nan) / np.where(sizes > 0, sizes, 1.0)
    rows = system.coefficients.toarray()
    rows = rows if chosen is None else rows[chosen]
    level = 1.0 - (1.0 - confidence) / max(1, _apart(rows))
    ends = np.array([wilson(rate, size, level) for rate, size in zip(rates, sizes, strict=True)])
    found = [_combined(row, rates, ends) for row in rows]
    if not found or any(math.isnan(value) for value, _, _ in found):
        return math.nan, math.nan, math.nan
    value, low, high = (float(max(max(one[at] for one in found), 0.0)) for at in range(3))
    return value, low, high


def _apart(rows: Floats) -> int:
    """How many constraints there are, where one and its negative are the same."""
    return len({max(row.tobytes(), (0.0 - row).tobytes()) for row in rows + 0.0})


def _combined(row: Floats, rates: Floats, ends: Floats) -> tuple[float, float, float]:
    """Value and interval of sum coefficient x rate: the squared distances to the ends that lie on
    the same side add up."""
    value = low = high = 0.0
    for at in np.flatnonzero(row):
        coefficient, rate, (below, above) = row[at], rates[at], ends[at]
        value += coefficient * rate
        down, up = coefficient * (rate - below), coefficient * (above - rate)
        low, high = (
            low + (down if coefficient > 0 else up) ** 2,
            high + (up if coefficient > 0 else down) ** 2,
        )
    return value, value - math.sqrt(low), value + math.sqrt(high)
