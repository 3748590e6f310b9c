"""Scores for a private choice, as exact integers, and how far one person moves them.

A score is sum_k w_k S_k, S_k the sum of a candidate's losses in cell k, each in [0, B]. What the exponential mechanism needs is
the *range* R of a neighbour's changes, largest minus smallest over candidates: P(i) ~ exp(-epsilon score_i / R) has
epsilon-bounded range, hence is epsilon-DP (PRIVACY T6). Differs: the paper's exp(-epsilon score / (2 sensitivity)); R is never
above twice the sensitivity.

- add-remove: one row adds w loss_i >= 0 to every candidate, or <= 0 to every one: R = max |w| B;
- replace-one: two rows: R = 2 max |w| B;
- sensitive features alone: the row keeps its losses and changes its weight: R = (max w - min w) B.

With marginal groups w is the sum of the weights of a row's cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import InputError, complaint
from ..privacy.promise import Promise
from ..privacy.sensitivity import OUTWARDS
from .model_questions import GroupLosses
from .question import Scale

WEIGHT_BITS = 24
SCORE_BITS = 20


def dyadic(given: Sequence[float] | None, count: int) -> list[int]:
    """Weights (ones unless given) as whole multiples of 2^-24: a score is then an exact integer combination of exact sums."""
    try:
        weights = np.ones(count) if given is None else np.asarray(given, np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (count,) or not (np.abs(weights) <= 2.0**WEIGHT_BITS).all():
        raise InputError(
            complaint(
                expected=f"{count} finite numbers of size at most 2^24, one a cell",
                of="cell_weights",
                got=given,
                remedy="Take weights from released values only.",
            )
        )
    return [round(w * 2**WEIGHT_BITS) for w in weights.tolist()]


def reach(weights: list[int], scale: Scale, question: GroupLosses, promise: Promise) -> int:
    """The range R of one neighbour's changes of the scores, in units of 2^-24 x grid unit, rounded outwards."""
    loss = _largest_loss(scale, question)
    lines = _lines(question, weights)
    if promise.protects == "sensitive_features":
        return loss * sum(max(line) - min(line) for line in lines)
    largest = max(sum(max(line) for line in lines), -sum(min(line) for line in lines))
    return loss * largest * (1 if promise.neighbours == "add-remove" else 2)


def exact_scores(sums: npt.NDArray[np.int64], weights: list[int]) -> list[int]:
    """sum_k w_k S_k for each candidate, in units of 2^-24 x grid unit."""
    return [sum(w * int(s) for w, s in zip(weights, line, strict=True)) for line in sums]


def largest_total(weights: list[int], scale: Scale, question: GroupLosses, most_rows: int) -> int:
    """More than any score's distance from another, for any data of so many rows: public."""
    return 2 * most_rows * question.per_row * _largest_loss(scale, question) * max(1, *(abs(w) for w in weights))


def scores(exact: list[int], reach: int, largest: int) -> tuple[npt.NDArray[np.int64], float]:
    """Scores in coarse steps, about 2^20 of them to the range (fewer where 64 bits demand it), and the range in steps.

    Rounding to a step moves each score by at most half a step on either side of the neighbourhood: two more steps of range.
    """
    shift = max(0, reach.bit_length() - SCORE_BITS, largest.bit_length() - 61)
    least, half = min(exact), (1 << shift) >> 1
    coarse = [(value - least + half) >> shift for value in exact]
    return np.array(coarse, np.int64), reach / 2**shift + 2.0


def rate(epsilon: float, steps: float) -> float:
    """epsilon over the range, rounded towards safety."""
    return epsilon / steps * (1.0 - 2.0**-40)


def _largest_loss(scale: Scale, question: GroupLosses) -> int:
    """In grid steps; a loss is a whole number of them."""
    return math.floor(scale.bound.norm / math.sqrt(question.per_row) / scale.unit * OUTWARDS)


def _lines(question: GroupLosses, weights: list[int]) -> list[list[int]]:
    """The weights that a row can meet: one list for each of its cells."""
    cells = question.cells
    if cells is None or cells.mode == "product":
        return [weights]
    cuts = np.cumsum([0, *cells.sizes]).tolist()
    return [weights[a:b] for a, b in itertools.pairwise(cuts)]
