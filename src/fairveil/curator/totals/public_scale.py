"""Bounds when the rows are public: sensitive features alone protected (theory.md#public), or no
privacy at all.

Then the maxima run over the actual rows, for every row over all pairs of *listed* groups, and no
clip is needed: see `core.sums`, which finds them of a run of rows.
"""

from __future__ import annotations

import math

import numpy as np

from ..._types import Floats
from ...core import sums
from ...core.bound import Bound
from ...core.rows import Rows
from ...core.sums import Run
from ...core.threads import in_pieces
from ..question import GRID_BITS, Question, Scale, gridded
from ..questions.by_cell import ByCell, Weighed, inner_of
from ..questions.gradients import GradientSum
from ..questions.histograms import PredictionHistogram
from ..questions.of_models import GroupLosses
from ..questions.of_rows import FeatureSums, GramMatrices, NumberMoments
from ..sharded import ShardedRows
from .passes import facts_of

EXACT_BITS = sums.EXACT_BITS


def needs_rows(question: Question) -> bool:
    """Whether its bound with public rows is a maximum over them; the others' bounds are constants
    anyway."""
    question = inner_of(question)
    soft = isinstance(question, PredictionHistogram) and question.decisions == "soft"
    return soft or isinstance(
        question, GradientSum | FeatureSums | GramMatrices | NumberMoments | GroupLosses
    )


def of(
    question: Question,
    rows: Rows,
    order: int = 2,
    *,
    exact: bool = False,
    threads: int | None = None,
    factor: float = 1.0,
) -> list[Scale]:
    """For each model: its grid, the largest contribution of one row, and how far other sensitive
    values alone move the total.

    `exact`: no noise will be added, so the grid is as fine as the integers allow. `factor`: of every
    row's contribution.
    """
    if isinstance(question, ByCell):
        inner = of(question.inner, rows, order, exact=exact, threads=threads)
        return [question.across(scale, alone=True) for scale in inner]
    if isinstance(question, Weighed):
        cap = question.cap(None)
        inner = of(question.inner, rows, order, exact=exact, threads=threads, factor=cap)
        return [question.weighing(scale, rows.layout, alone=True) for scale in inner]
    if isinstance(rows, ShardedRows) and not _is_by_longest_row(question, exact):
        norms, moves = rows.largest(question, order, exact)
    else:
        norms, moves = found(question, rows, order, exact=exact, threads=threads)
    one = question.sum(facts_of(rows, question), order)
    count = rows.exact_count
    grids = sums.public_scales(one, norms, moves, count, exact=exact, order=order, factor=factor)
    return [Scale(each.bound, each.exponent, each.slack) for each in grids]


def found(
    question: Question, rows: Rows, order: int, *, exact: bool, threads: int | None
) -> tuple[Floats, Floats]:
    """For each model the largest contribution of one of these rows, and its largest move, before
    any clip."""
    one = question.sum(facts_of(rows, question), order)
    if _is_by_longest_row(question, exact):
        assert one.longest is not None
        with np.errstate(all="ignore"):
            norms = one.longest(longest_row(rows))
        return norms, 2.0 * norms
    norms, moves, at_once = np.zeros(one.models), np.zeros(one.models), sums.RUN // one.models
    largest = one.maxima
    assert largest is not None
    for block in rows.blocks():

        def job(a: int, b: int, block: object = block) -> list[tuple[Floats, Floats]]:
            step = max(sums.LEAST_RUN, at_once)
            with np.errstate(all="ignore"):
                return [
                    largest(Run(block, rows.offsets, low, min(b, low + step)))
                    for low in range(a, b, step)
                ]

        for part in in_pieces(job, block.rows, threads):
            for norm, move in part:
                norms, moves = np.maximum(norms, norm), np.maximum(moves, move)
    return norms, moves


def _is_by_longest_row(question: Question, exact: bool) -> bool:
    """Whether the bound follows from the longest row, which is found once."""
    return exact and isinstance(question, GradientSum) and question.loss != "squared"


def shared(scales: list[Scale], question: Question, rows: Rows) -> Scale:
    """One grid and bound for all models, for scores that are compared."""
    one = question.sum(facts_of(rows, question), scales[0].bound.order)
    norm = max(scale.bound.norm for scale in scales)
    diameter = max(scale.bound.diameter for scale in scales)
    bound = Bound(norm, diameter, scales[0].bound.order)
    return gridded(bound, one.coordinates, GRID_BITS)


def longest_row(rows: Rows) -> float:
    """The largest weight x |row|, found once."""
    if rows.largest_row is None:
        if isinstance(rows, ShardedRows):
            rows.largest_row = rows.longest
        else:
            every = (Run(block, rows.offsets, 0, block.rows) for block in rows.blocks())
            with np.errstate(all="ignore"):
                largest = [sums.longest_row(run) for run in every]
            rows.largest_row = math.nan if np.isnan(largest).any() else max(largest, default=0.0)
    return float(rows.largest_row)
