"""Scores for a private choice, as exact integers, and how far one person moves them.

What the exponential mechanism needs is
the *range* R of a neighbour's changes, largest minus smallest over candidates: P(i) ~ exp(-epsilon
score_i / R) has epsilon-bounded range, hence is epsilon-DP (theory.md#t6). Differs: the paper's
exp(-epsilon score / (2 sensitivity)); R is never above twice the sensitivity. `ranges` derives R;
nothing that candidates share enters it.

**By losses** (here). A score is sum_k w_k S_k, S_k the sum of a candidate's losses in cell k, each
in [0, B]: R is B times max |w| (add-remove), 2 max |w| (replace-one), max w - min w (sensitive
features alone); with marginal groups of the sum of the weights of a row's cells.

**By decisions** (`decisions`). A score is sum_cyk C[c, y, k] H[c, y, k], H the candidate's counts
of decisions k in cell c with label y. Add-remove: R = max over (c, y) of range_k C[c, y, k], never
max |C|: a cost that is the same for every class moves all scores alike. Sensitive features alone:
max over y, k, k' of range_c (C[c, y, k] - C[c, y, k']).

**By a function** of either sums (`choice_by_function`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.bound import OUTWARDS
from ...core.noise import Stream
from ...core.promise import Promise
from ...errors import InputError
from ..question import Scale
from ..questions.of_models import GroupLosses
from ..rows.rows import Rows
from ..totals.passes import totals
from . import ranges

WEIGHT_BITS = 24
SCORE_BITS = 20


@dataclass(frozen=True, slots=True)
class ExponentialMechanism:
    """A choice to be made: exact scores, found when they are asked for; one person's range; more
    than any two's distance."""

    exact: Callable[[], npt.NDArray[Any]]
    reach: int
    largest: int
    stated: float | None = None  # the range in the units of costs, for the statement

    def best(self) -> int:
        """The first of the smallest scores."""
        return int(self.exact().argmin())

    def drawn(self, epsilon: float, stream: Stream) -> int:
        """The exponential mechanism."""
        values, steps = scores(self.exact(), self.reach, self.largest)
        return stream.choose(values, rate(epsilon, steps))


def by_losses(
    question: GroupLosses,
    cell_weights: Sequence[float] | None,
    scale: Scale,
    rows: Rows,
    promise: Promise,
    *,
    most_rows: int,
    threads: int | None,
) -> ExponentialMechanism:
    """A choice by sums of losses, all totalled on one grid."""
    weights = dyadic(cell_weights, question.shape(rows.layout)[0])

    def exact() -> npt.NDArray[Any]:
        (sums,) = totals([(question, [scale])], rows, rows.passed(), threads)
        return exact_scores(sums, weights)

    return ExponentialMechanism(
        exact,
        reach(weights, scale, question, promise),
        largest_total(weights, scale, question, most_rows),
    )


def dyadic(given: Sequence[float] | None, count: int) -> list[int]:
    """Weights (ones unless given) as whole multiples of 2^-24: a score is then an exact integer
    combination of exact sums."""
    try:
        weights = np.ones(count) if given is None else np.asarray(given, np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (count,) or not (np.abs(weights) <= 2.0**WEIGHT_BITS).all():
        raise InputError.expected(
            f"{count} finite numbers of size at most 2^24, one a cell",
            of="cell_weights",
            got=given,
            remedy="Take weights from released values only.",
        )
    return [round(w * 2**WEIGHT_BITS) for w in weights.tolist()]


def reach(weights: list[int], scale: Scale, question: GroupLosses, promise: Promise) -> int:
    """The range R of one neighbour's changes of the scores, in units of 2^-24 x grid unit, rounded
    outwards."""
    w = np.array(weights, np.int64)
    return largest_loss(scale, question) * int(ranges.of_losses(w, w, question.cells, promise))


def exact_scores(sums: npt.NDArray[np.int64], weights: list[int]) -> npt.NDArray[Any]:
    """sum_k w_k S_k for each candidate, in units of 2^-24 x grid unit: whole numbers of any
    size."""
    return np.array(
        [sum(w * int(s) for w, s in zip(weights, line, strict=True)) for line in sums], dtype=object
    )


def largest_total(weights: list[int], scale: Scale, question: GroupLosses, most_rows: int) -> int:
    """More than any score's distance from another, for any data of so many rows: public."""
    return (
        2
        * most_rows
        * question.per_row
        * largest_loss(scale, question)
        * max(1, *(abs(w) for w in weights))
    )


def scores(
    exact: npt.NDArray[Any], reach: int, largest: int
) -> tuple[npt.NDArray[np.int64], float]:
    """Scores in coarse steps, about 2^20 of them to the range (fewer where 64 bits demand it), and
    the range in steps.

    Rounding to a step moves each score by at most half a step on either side of the neighbourhood:
    two more steps of range.
    """
    # Coarser where a difference of two scores would not fit 64 bits. Both numbers are public, so
    # the grid shows nothing.
    shift = max(0, reach.bit_length() - SCORE_BITS, largest.bit_length() - 61)
    half = (1 << shift) >> 1
    coarse = (exact - exact.min() + half) >> shift
    return coarse.astype(np.int64), reach / 2**shift + 2.0


def rate(epsilon: float, steps: float) -> float:
    """epsilon over the range, rounded towards safety."""
    # Rounded down by more than these roundings: the range in steps is never larger than it was
    # taken to be.
    return epsilon / steps * (1.0 - 2.0**-40)


def largest_loss(scale: Scale, question: GroupLosses) -> int:
    """Of a row, its weight included, in grid steps; a loss is a whole number of them."""
    return math.floor(scale.bound.norm / math.sqrt(question.per_row) / scale.unit * OUTWARDS)
