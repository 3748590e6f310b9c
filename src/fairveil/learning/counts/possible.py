"""Possible counts near released ones: not negative, and of the totals that are public.
Post-processing of a release.

Guarantees (tests/learning/test_learning_possible.py):
1. What comes out is not negative, and has the known totals.
2. Of bins of a score every group and label keeps the number that its noisy bins add up to: turning
   negative bins into zeros would add rows to a small group, bin by bin.
"""

from __future__ import annotations

import numpy as np

from ..._types import Floats

TIMES = 30


def counts(raw: Floats, totals: Floats | None) -> Floats:
    """Counts (cells, labels, bins) near `raw` that keep each cell's and label's number. `totals`
    (labels, bins): over cells."""
    numbers = np.maximum(raw.sum(axis=2), 0.0)
    if totals is None:
        return _onto_numbers(raw, numbers)
    numbers = onto_totals(raw.sum(axis=2), totals.sum(axis=1))
    out = raw
    # in turn: the limit has both, and the last has the public totals to the bit
    for _ in range(TIMES):
        out = onto_totals(_onto_numbers(out, numbers), totals)
    return out


def _onto_numbers(raw: Floats, numbers: Floats) -> Floats:
    """The nearest point with x >= 0 and sum over bins = numbers, for each cell and label."""
    return np.moveaxis(onto_totals(np.moveaxis(raw, 2, 0), numbers), 0, 2)


def onto_totals(raw: Floats, totals: Floats) -> Floats:
    """The nearest point with x >= 0 and sum over cells = totals, for each label and decision: x =
    max(raw - t, 0).

    t is found from sorted values (Held, Wolfe and Crowder 1974). It is no further from the truth
    than `raw` is, and sum |x - truth| <= 2 sum |raw - truth| (docs/post_processing.md).
    """
    flat, wanted = raw.reshape(len(raw), -1), totals.ravel()
    ordered = -np.sort(-flat, axis=0)
    sizes = np.arange(1, len(raw) + 1)[:, np.newaxis]
    # The projection onto a simplex (Held, Wolfe and Crowder, 1974): the level at which what is left
    # above it has the wanted sum.
    levels = (np.cumsum(ordered, axis=0) - wanted) / sizes
    kept = np.maximum((ordered > levels).sum(axis=0) - 1, 0)
    t = levels[kept, np.arange(flat.shape[1])]
    out = np.where(wanted > 0, np.maximum(flat - t, 0.0), 0.0)
    return np.asarray(out.reshape(raw.shape))
