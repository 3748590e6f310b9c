"""Exact totals: which kernel adds what, over blocks and threads. Integers in grid units; no noise here.

Guarantees (tests/curator/test_curator_totals.py):
1. The integers do not depend on the order of rows, on blocks, shards, threads, or on how many models share the pass.
2. Each agrees with `reference.total` within the rounding of the grid.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, complaint
from ..facts import Cells
from .block import Block
from .model_questions import GradientSum, GroupLosses, PredictionHistogram
from .question import Linear, OwnJob, Question, Scale, cell_count
from .row_questions import CellCounts, FeatureSums, GramMatrices, RowCount
from .rows import Rows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Asked = tuple[Question, Sequence[Scale]]  # one grid a model, or one for all
Job = Callable[[Block, int, int], tuple[Ints, ...]]

CORES = os.cpu_count() or 1
WORTH_A_THREAD = 1 << 14  # rows: below, starting another thread costs more than it saves
PANEL_FROM = 3  # models: from here one pass with models side by side beats one pass a model
PANEL_MODELS = 64  # models side by side: more no longer fit the cache
LOSS_CODES = {"log": 0, "squared": 1, "zero-one": 2, "none": 3}
DECISION_CODES = {"soft": 0, "hard": 1}


def totals(asks: Sequence[Asked], rows: Rows, blocks: Iterable[Block], threads: int | None = None) -> list[Ints]:
    """One integer array an ask, of shape (models, *question.shape). Asks that can share a pass do."""
    for question, _ in asks:
        check_labels(question, rows)
    outs: list[Ints] = [np.zeros((q.models, *q.shape(rows.layout)), np.int64) for q, _ in asks]
    jobs = [(at, _job([asks[i] for i in at], rows)) for at in _passes(asks)]
    for block in blocks:
        for at, job in jobs:
            for parts in _run(job, block, threads):
                for i, part in zip(at, parts, strict=True):
                    outs[i] += part.reshape(outs[i].shape)
    return outs


def check_labels(question: Question, rows: Rows) -> None:
    """The kernels do not look: labels that are read must be there."""
    if "label" in question.reads and not rows.labelled:
        raise InputError(
            complaint(expected="rows with labels", of=question.name, got="rows without", remedy="Give y to the rows.")
        )


def units(scales: Sequence[Scale], models: int) -> Floats:
    """Grid steps to one, a number a model."""
    steps = [math.ldexp(1.0, scale.exponent) for scale in scales]
    return np.array(steps * models if len(steps) == 1 else steps)


def chunk(scales: Sequence[Scale]) -> int:
    """How many rows' integers add up exactly in float64, a power of two (see `kernels_panel`)."""
    bits = max(math.frexp(scale.bound.norm / scale.unit)[1] for scale in scales)
    return 1 << max(0, min(22, 52 - bits))


def _run(job: Job, block: Block, threads: int | None) -> Iterator[tuple[Ints, ...]]:
    wanted = CORES if threads is None else threads
    pieces = max(1, min(wanted, block.rows // WORTH_A_THREAD)) if threads is None else min(wanted, max(1, block.rows))
    if pieces == 1:
        yield job(block, 0, block.rows)
        return
    cuts = [block.rows * i // pieces for i in range(pieces + 1)]
    yield from _pool(os.getpid()).map(lambda a, b: job(block, a, b), cuts[:-1], cuts[1:])


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """One pool a process: a forked child makes its own."""
    return ThreadPoolExecutor(CORES, thread_name_prefix="fairveil-curator")


def _passes(asks: Sequence[Asked]) -> list[tuple[int, ...]]:
    """Which asks share a pass: a gradient and a histogram of the same model over the same cells."""
    free = list(range(len(asks)))
    out: list[tuple[int, ...]] = []
    while free:
        i = free.pop(0)
        partner = next((j for j in free if _fuses(asks[i][0], asks[j][0])), None)
        if partner is None:
            out.append((i,))
        else:
            free.remove(partner)
            out.append((i, partner) if isinstance(asks[i][0], GradientSum) else (partner, i))
    return out


def _fuses(a: Question, b: Question) -> bool:
    if isinstance(a, PredictionHistogram) and isinstance(b, GradientSum):
        a, b = b, a
    return (
        isinstance(a, GradientSum)
        and isinstance(b, PredictionHistogram)
        and a.model is b.model
        and (a.cell_costs is None or a.cells == b.cells)
    )


def _job(asks: Sequence[Asked], rows: Rows) -> Job:
    """What to do with rows a to b of a block, for asks that share a pass."""
    question, scales = asks[0]
    scale = scales[0]
    if isinstance(question, GradientSum | PredictionHistogram):
        return _descend(asks, rows)
    if isinstance(question, RowCount | CellCounts):
        return _count(question, scale, rows)
    if isinstance(question, FeatureSums | GramMatrices):
        return _moments(question, scale, rows)
    if isinstance(question, GroupLosses):
        return _losses(question, scales, rows)
    if isinstance(question, OwnJob):
        return question.job(scale, rows.layout)
    raise TypeError(f"the curator does not know how to total {type(question).__name__}")


def _descend(asks: Sequence[Asked], rows: Rows) -> Job:
    from . import kernels, kernels_panel

    gradient, g_scales = next(((q, s) for q, s in asks if isinstance(q, GradientSum)), (None, None))
    histogram, h_scales = next(((q, s) for q, s in asks if isinstance(q, PredictionHistogram)), (None, None))
    question = gradient or histogram
    assert question is not None
    model: Linear = question.model
    K, M = model.outputs, model.models
    cells: Cells | None = histogram.cells if histogram is not None else question.cells
    labels = len(rows.layout.classes or ())
    hist_labels = labels if histogram is not None and histogram.by_label else 1
    costs = gradient.costs(rows.layout) if gradient is not None and gradient.cell_costs is not None else None
    loss: tuple[Any, ...] = (
        LOSS_CODES[gradient.loss] if gradient is not None else 0,
        gradient.loss_weight if gradient is not None else 0.0,
        model.sharpness,
    )
    clip = math.inf if gradient is None or gradient.clip is None else gradient.clip
    g_unit = np.ones(M) if g_scales is None else units(g_scales, M)
    h_unit = np.ones(M) if h_scales is None else units(h_scales, M)
    rows_exact = min(chunk(s) for s in (g_scales, h_scales) if s is not None)
    kind = DECISION_CODES[histogram.decisions] if histogram is not None else 1
    cost_labels = 1 if gradient is None else gradient.cost_labels
    width = 1 + rows.layout.width if gradient is not None else 0
    buckets = cell_count(cells) * hist_labels if histogram is not None else 0
    coef = np.ascontiguousarray(model.array[:, 0, :].T) if K == 1 and M >= PANEL_FROM else None
    none = np.empty((0, 0))

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        fixed: tuple[Any, ...] = (block.numbers, block.indptr, block.indices, block.codes, rows.offsets, block.labels)
        fixed = (*fixed, block.cells(cells), block.weights)
        G: Ints = np.zeros((M, K, width), np.int64)
        H: Ints = np.zeros((M, buckets, K), np.int64)
        if coef is not None:
            for lo in range(0, M, PANEL_MODELS):
                hi = min(M, lo + PANEL_MODELS)
                g, h = np.zeros((width, hi - lo), np.int64), np.zeros((buckets, hi - lo), np.int64)
                c = none if costs is None else np.ascontiguousarray(costs[lo:hi, :, 0].T)
                part = np.ascontiguousarray(coef[:, lo:hi])
                end: tuple[Any, ...] = (c, cost_labels, clip, g_unit[lo:hi], g, kind, hist_labels, h_unit[lo:hi], h)
                kernels_panel.descend_panel(*fixed, part, a, b, *loss, *end, rows_exact)
                G[lo:hi, 0], H[lo:hi, :, 0] = g.T, h.T
        else:
            for m in range(M):
                c = none if costs is None else costs[m]
                end = (c, cost_labels, clip, g_unit[m], G[m], kind, hist_labels, h_unit[m], H[m])
                kernels.descend(*fixed, model.array[m], a, b, *loss, *end)
        return tuple(G if isinstance(q, GradientSum) else H for q, _ in asks)

    return job


def _count(question: RowCount | CellCounts, scale: Scale, rows: Rows) -> Job:
    from . import kernels_moments

    cells = question.cells if isinstance(question, CellCounts) else None
    by_label = isinstance(question, CellCounts) and question.by_label
    labels = len(rows.layout.classes or ()) if by_label else 1
    unit = math.ldexp(1.0, scale.exponent)

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        out = np.zeros(cell_count(cells) * labels, np.int64)
        kernels_moments.count(block.labels, block.cells(cells), block.weights, a, b, labels, unit, out)
        return (out,)

    return job


def _moments(question: FeatureSums | GramMatrices, scale: Scale, rows: Rows) -> Job:
    from . import kernels_moments

    layout = rows.layout
    longest = 1 + layout.numbers + len(layout.code_sizes)
    clip = math.inf if question.clip is None else question.clip
    unit = math.ldexp(1.0, scale.exponent)
    shape = question.shape(layout)

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        head: tuple[Any, ...] = (block.numbers, block.indptr, block.indices, block.codes, rows.offsets, block.labels)
        head = (*head, block.cells(question.cells), block.weights, a, b, longest)
        if isinstance(question, GramMatrices):
            out = np.zeros(shape, np.int64)
            kernels_moments.grams(*head, question.with_target, clip, unit, out)
            upper = np.triu(out, 1)
            return (out + upper.swapaxes(-1, -2),)
        labels = len(layout.classes or ()) if question.by_label else 1
        out = np.zeros((cell_count(question.cells) * labels, shape[-1]), np.int64)
        kernels_moments.feature_sums(*head, labels, clip, unit, out)
        return (out,)

    return job


def _losses(question: GroupLosses, scales: Sequence[Scale], rows: Rows) -> Job:
    from . import kernels_moments, kernels_panel

    model = question.model
    coef = np.ascontiguousarray(model.array[:, 0, :].T) if model.outputs == 1 else None
    limit = math.inf if question.clip is None and question.loss != "zero-one" else question.limit
    unit, rows_exact = units(scales, model.models), chunk(scales)
    code = LOSS_CODES[question.loss]
    count = cell_count(question.cells)

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        head: tuple[Any, ...] = (block.numbers, block.indptr, block.indices, block.codes, rows.offsets, block.labels)
        head = (*head, block.cells(question.cells), block.weights)
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
                kernels_moments.class_losses(*head, model.array[m], a, b, code, limit, unit[m], out[m])
        return (out,)

    return job
