"""Theorem 3.1 for thresholds on a score: how far released histograms of scores may be off, for
every mixture of thresholds.

A mixture of thresholds adds up whole ends of a histogram, never single bins, so what counts is how
far the noise of such sums wanders: by Levy's inequality not much further than the noise of the
whole number, which grows with the root of the bins, where the sum of all |noise| grows with the
bins. docs/post_processing.md proves what is computed here.

Of the 1 - confidence, half is spent on every single walk (a cell and label: sums of its first or
its last bins), half on the sum of all walks. Where both hold, so does everything below, for every
table of thresholds at once.

Guarantees (tests/learning/test_learning_threshold_bounds.py, a simulation over seeds):
1. With probability at least `confidence` over the noise no value and no error of a table of
   thresholds is further from its exact value than `slacks` and `error_slack` say, for all tables
   together.
2. Nothing here reads an exact count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...fairness import ConstraintSystem
from . import mixing
from .counting import Released


@dataclass(frozen=True, eq=False)
class Walks:
    """How far the noise wanders: `each` cell and label's at most, and `whole`, all of them
    together."""

    each: float
    whole: float

    @staticmethod
    def of(released: Released, confidence: float) -> Walks:
        """At this confidence."""
        cells, labels, bins = released.raw.shape
        independent = labels if released.one_group else cells * labels
        half = (1.0 - confidence) / 2.0
        each = released.noise.walk_tail(bins, 1, half / independent)
        whole = released.noise.walk_tail(bins, independent, half) * (
            2.0 if released.one_group else 1.0
        )
        return Walks(each, whole)

    def together(self, cells_and_labels: Floats) -> Floats:
        """Of so many cells and labels."""
        return np.asarray(np.minimum(cells_and_labels * self.each, self.whole))


def slacks(released: Released, system: ConstraintSystem, confidence: float) -> Floats:
    """How far, for any table of thresholds, a constraint's value at the counts of the program is
    from its exact value: at most so. Where an event may have no row at all its rates may be
    undefined, and the slack gives the constraint up."""
    if not released.noise.sd:
        return np.zeros(len(system))
    walks = Walks.of(released, confidence)
    members = system.members
    wandered = walks.together(np.asarray(members.sum(axis=1)).ravel())
    counts = mixing.filled(released, system)
    moved = members @ _ends(counts - released.raw).ravel()
    off = np.minimum(1.0, (wandered + moved) / (members @ counts.sum(axis=2).ravel()))
    sized = np.asarray(abs(system.coefficients) @ off[system.event_of])
    empty = members @ released.raw.sum(axis=2).ravel() - wandered <= 0
    unsure = np.asarray((system.coefficients != 0) @ empty[system.event_of], bool)
    return np.where(
        unsure, np.maximum(sized, np.asarray(abs(system.coefficients).sum(axis=1)).ravel()), sized
    )


def error_slack(released: Released, confidence: float) -> float:
    """How far the error of any table of thresholds at the released counts is from its exact error,
    at most."""
    if not released.noise.sd:
        return 0.0
    whole = Walks.of(released, confidence).whole
    off = whole + float(_ends(released.counts - released.raw).sum())
    rows = released.rows if released.rows is not None else float(released.raw.sum()) - whole
    return min(1.0, off / rows) if rows > 0 else 1.0


def _ends(change: Floats) -> Floats:
    """The largest size that a sum of the first or of the last bins has, (cells, labels)."""
    first = np.cumsum(change, axis=2)
    last = first[:, :, -1:] - first
    return np.asarray(np.maximum(np.abs(first).max(axis=2), np.abs(last).max(axis=2)))
