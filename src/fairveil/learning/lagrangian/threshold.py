"""Where the threshold of a model that was found is best put, from what was released of its scores.
Post-processing.

A model with several thresholds is a line of models: from the histogram of its decisions and of its
scores (one joint release) follow every constraint's value, and the change of the error, at each of
them. Primal-dual search of a short run comes to rest near what was asked; a small step along this
line puts right what is left, and a large one finds the way out where every feature goes with the
group and no other direction has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._types import Floats

NEGLIGIBLE = 0.002
"""An excess below this is left alone."""
WORTH = 2.0
"""How many points of error a point of excess is worth."""


@dataclass(frozen=True, eq=False)
class Threshold:
    """The threshold, the constraints' values and the decisions there, and how many bins of scores
    lie between it and zero.

    `looks`: the values say which threshold is taken, and the luckiest of many looks better than it
    is. A verdict on them is right if zero may be wrong with half of what is left to chance, and all
    `edges - 1` others together with the other half.
    """

    at: float
    values: Floats
    decisions: Floats
    bins: int
    looks: int


def choose(
    edges: tuple[float, ...],
    decisions: Floats,
    scores: Floats,
    values_of: Callable[[Floats], Floats],
    bounds: Floats,
    spread: Callable[[int], Floats],
    bin_noise: float,
    rows: float,
) -> Threshold:
    """Zero where every constraint holds there; else the edge with the least error plus WORTH times
    the largest excess.

    `decisions` (cells, labels or 1): how many rows are decided for the second class at zero, which
    is one of the edges. `scores` (cells, 2 labels, bins), of `rows` rows. `values_of` maps
    decisions (thresholds, cells, labels or 1) to values. An estimate across many bins is noisy: of
    each, one standard deviation is added (`spread(bins)` of values, `bin_noise` of a bin), so that
    a far threshold is not taken for its luck.
    """
    zero = edges.index(0.0)
    bins = np.abs(np.arange(len(edges)) - zero)
    below = np.cumsum(scores, axis=-1)[..., :-1]  # at each edge, rows whose score is not above it
    # (edges, cells, 2 labels): no longer decided for
    moved = np.moveaxis(below - below[..., zero : zero + 1], -1, 0)
    at_edges = decisions - (moved if decisions.shape[1] == 2 else moved.sum(axis=2, keepdims=True))
    values = values_of(at_edges)
    excess = np.nan_to_num(values - bounds, nan=0.0)
    # Nothing to mend. Two looks all the same: these values decided that zero is kept.
    if (excess[zero] <= NEGLIGIBLE).all():
        return Threshold(0.0, values[zero], decisions, 0, 2)
    noise = np.stack([spread(n) for n in range(bins.max() + 1)])[bins]
    # Rows that are decided the other way: those of the second class are errors now, those of the
    # first no longer.
    errors = (
        moved[:, :, 1].sum(axis=1)
        - moved[:, :, 0].sum(axis=1)
        + bin_noise * np.sqrt(bins * moved[0].size)
    )
    best = int(
        np.argmin(errors / rows + WORTH * np.maximum(excess + noise - noise[zero], 0.0).max(axis=1))
    )
    looks = 2 if best == zero else 2 * (len(edges) - 1)
    return Threshold(edges[best], values[best], at_edges[best], int(bins[best]), looks)
