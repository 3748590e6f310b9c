"""What is done with rows a to b of a block for questions that share no pass with another: sums in
grid units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..._types import Ints
from ...core.rows import Block, Rows
from ..question import OwnJob, Question, Scale, cell_count
from ..questions.histograms import ScoreHistogram
from ..questions.of_models import GroupLosses
from ..questions.of_rows import CellCounts, FeatureSums, GramMatrices, NumberMoments, RowCount
from .descent_pass import LOSS_CODES, PANEL_MODELS, chunk, units

Job = Callable[[Block, int, int], tuple[Ints, ...]]


def job_of(question: Question, scales: Sequence[Scale], rows: Rows) -> Job:
    """What to do with rows a to b of a block, for a measurement that shares no pass."""
    scale = scales[0]
    if isinstance(question, RowCount | CellCounts):
        return _count(question, scale, rows)
    if isinstance(question, FeatureSums | GramMatrices):
        return _moments(question, scale, rows)
    if isinstance(question, ScoreHistogram):
        return _score_bins(question, scales[0], rows)
    if isinstance(question, NumberMoments):
        return _number_moments(question, scales[0], rows)
    if isinstance(question, GroupLosses):
        return _losses(question, scales, rows)
    if isinstance(question, OwnJob):
        return question.job(scale, rows.layout)
    raise TypeError(f"the curator does not know how to total {type(question).__name__}")


def _count(question: RowCount | CellCounts, scale: Scale, rows: Rows) -> Job:
    from ..kernels import moments as kernels_moments

    cells = question.cells if isinstance(question, CellCounts) else None
    by_label = isinstance(question, CellCounts) and question.by_label
    labels = len(rows.layout.classes or ()) if by_label else 1
    unit = math.ldexp(1.0, scale.exponent)

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        out = np.zeros(cell_count(cells) * labels, np.int64)
        kernels_moments.count(
            block.labels, block.cells(cells), block.weights, a, b, labels, unit, out
        )
        out = of_group(out, question.group, labels)
        return (np.repeat(out[np.newaxis], question.models, axis=0),)

    return job


def of_group(out: Ints, group: int | None, labels: int) -> Ints:
    """Of a table of (cells x labels) lines those of one cell, or all."""
    return out if group is None else out[group * labels : (group + 1) * labels]


def _moments(question: FeatureSums | GramMatrices, scale: Scale, rows: Rows) -> Job:
    from ...core.kernels import grams
    from ..kernels import moments as kernels_moments

    layout = rows.layout
    longest = 1 + layout.numbers + len(layout.code_sizes)
    clip = math.inf if question.clip is None else question.clip
    unit = math.ldexp(1.0, scale.exponent)
    shape = question.shape(layout)

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        head = (
            *block.arrays(rows.offsets),
            block.labels,
            block.cells(question.cells),
            block.weights,
            a,
            b,
            longest,
        )
        if isinstance(question, GramMatrices):
            out = np.zeros(shape, np.int64)
            grams(*head, question.with_target, clip, unit, out)
            upper = np.triu(out, 1)
            return (out + upper.swapaxes(-1, -2),)
        labels = len(layout.classes or ()) if question.by_label else 1
        out = np.zeros((cell_count(question.cells) * labels, shape[-1]), np.int64)
        if question.basis is None:
            kernels_moments.feature_sums(*head, labels, clip, unit, out)
        else:
            kernels_moments.basis_sums(
                *head, labels, np.ascontiguousarray(question.basis.T), clip, unit, out
            )
        return (out,)

    return job


def _score_bins(question: ScoreHistogram, scale: Scale, rows: Rows) -> Job:
    from ..kernels import moments as kernels_moments

    labels = len(rows.layout.classes or ()) if question.by_label else 1
    edges, unit = np.array(question.edges), math.ldexp(1.0, scale.exponent)

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        head = (
            *block.arrays(rows.offsets),
            block.labels,
            block.cells(question.cells),
            block.weights,
        )
        out = np.zeros(
            (question.models, cell_count(question.cells) * labels, 1 + len(edges)), np.int64
        )
        for m in range(question.models):
            kernels_moments.score_bins(
                *head, question.model.array[m], a, b, edges, labels, unit, out[m]
            )
        return (out,)

    return job


def _number_moments(question: NumberMoments, scale: Scale, rows: Rows) -> Job:
    from ..kernels import moments as kernels_moments

    clip, unit = (
        math.inf if question.clip is None else question.clip,
        math.ldexp(1.0, scale.exponent),
    )

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        out = np.zeros((2, rows.layout.numbers), np.int64)
        head = (block.numbers, block.indptr, block.indices, block.weights)
        kernels_moments.number_moments(*head, a, b, clip, unit, out)
        return (out,)

    return job


def _losses(question: GroupLosses, scales: Sequence[Scale], rows: Rows) -> Job:
    from ..kernels import panel as kernels_panel
    from ..kernels.losses import class_losses

    model = question.model
    coef = np.ascontiguousarray(model.array[:, 0, :].T) if model.outputs == 1 else None
    limit = math.inf if question.clip is None and question.loss != "zero-one" else question.limit
    unit, rows_exact = units(scales, model.models), chunk(scales)
    code = LOSS_CODES[question.loss]
    count = cell_count(question.cells)

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        head = (
            *block.arrays(rows.offsets),
            block.labels,
            block.cells(question.cells),
            block.weights,
        )
        out = np.zeros((model.models, count), np.int64)
        if coef is not None:
            for lo in range(0, model.models, PANEL_MODELS):
                part = np.ascontiguousarray(coef[:, lo : lo + PANEL_MODELS])
                sums = np.zeros((count, part.shape[1]), np.int64)
                steps = unit[lo : lo + PANEL_MODELS]
                kernels_panel.losses_panel(*head, part, a, b, code, limit, steps, sums, rows_exact)
                out[lo : lo + PANEL_MODELS] = sums.T
        else:
            for m in range(model.models):
                class_losses(*head, model.array[m], a, b, code, limit, unit[m], out[m])
        return (out,)

    return job
