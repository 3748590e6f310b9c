"""Exact totals: which kernel adds what, over blocks and threads. Integers in grid units; no noise
here.

Guarantees (tests/curator/test_curator_totals.py):
1. The integers do not depend on the order of rows, on blocks, shards, threads, or on how many
   models share the pass.
2. Each agrees with `reference.total` within the rounding of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._types import Ints
from ...errors import InputError
from ..question import OwnJob, Question, Scale, cell_count
from ..questions.by_cell import ByCell, CellwiseQuestion, Weighed, inner_of
from ..questions.gradients import GradientSum
from ..questions.histograms import PredictionHistogram, ScoreHistogram
from ..questions.networks import NetworkGradient, NetworkHistogram
from ..questions.of_models import GroupLosses
from ..questions.of_rows import CellCounts, FeatureSums, GramMatrices, NumberMoments, RowCount
from ..rows.block import Block, Drawn
from ..rows.cell_order import by_cell, ordered
from ..rows.rows import Rows
from ..rows.sharded import ShardedRows, refuse
from ..rows.threads import WORTH_A_THREAD, in_pieces
from . import person_pass
from .descent_pass import LOSS_CODES, PANEL_MODELS, Descent, DescentJob, chunk, units
from .network_pass import NetworkPass
from .person_pass import PersonPass

Gridded = tuple[Question, Sequence[Scale]]  # one grid a model, or one for all
Job = Callable[[Block, int, int], tuple[Ints, ...]]


def totals(
    measurements: Sequence[Gridded],
    rows: Rows,
    blocks: Iterable[Block | Drawn],
    threads: int | None = None,
) -> list[Ints]:
    """One integer array a measurement, of shape (models, *question.shape). Measurements that can
    share a pass do."""
    return Passes(measurements, rows).run(
        [question for question, _ in measurements], blocks, threads
    )


class Passes:
    """Which passes total a list of asks. What does not depend on weights and costs is worked out
    once, for many steps."""

    def __init__(self, measurements: Sequence[Gridded], rows: Rows) -> None:
        for question, _ in measurements:
            check_labels(question, rows)
        self._rows = rows
        self.shapes = [
            (question.models, *question.shape(rows.layout)) for question, _ in measurements
        ]
        self._scales = [scales for _, scales in measurements]
        self._passes = _passes(measurements, apart=rows.adds_by_person)
        self._descents: dict[tuple[int, ...], Descent | NetworkPass | PersonPass] = {}
        for at in self._passes:
            asked = [(inner_of(measurements[i][0]), measurements[i][1]) for i in at]
            if _is_network(asked[0][0]):
                self._descents[at] = NetworkPass.of(asked, rows)
            elif person_pass.is_by_person(asked[0][0], rows):
                self._descents[at] = PersonPass(asked[0], rows)
            elif _descends(asked[0][0]):
                self._descents[at] = Descent.of(asked, rows)

    def run(
        self,
        questions: Sequence[Question],
        blocks: Iterable[Block | Drawn],
        threads: int | None = None,
    ) -> list[Ints]:
        """The totals of questions with the keys of those given before."""
        if isinstance(self._rows, ShardedRows):
            return self._rows.totals(
                list(zip(questions, self._scales, strict=True)), self.shapes, blocks
            )
        jobs: list[tuple[tuple[int, ...], Job | DescentJob]] = []
        for at in self._passes:
            asked = [questions[i] for i in at]
            if isinstance(asked[0], CellwiseQuestion):
                jobs.append((at, self._around(at, asked[0])))
            elif at not in self._descents:
                jobs.append((at, _job(asked[0], self._scales[at[0]], self._rows)))
            # Two questions share scores only if they ask about one and the same model.
            elif len(at) == 1 or asked[0].model is asked[1].model:
                jobs.append((at, self._descents[at].job(asked, self._rows)))
            else:
                again = list(zip(questions, self._scales, strict=True))
                return Passes(again, self._rows).run(questions, blocks, threads)
        outs: list[Ints | None] = [None] * len(questions)
        for block in blocks:
            for at, job in jobs:
                read: Any = self._read(block, questions[at[0]], at)
                alone = threads is None and block.rows < 2 * WORTH_A_THREAD
                # torch has threads of its own
                alone = alone or isinstance(self._descents.get(at), NetworkPass)
                for parts in (
                    [job(read, 0, block.rows)]
                    if alone
                    else in_pieces(partial(job, read), block.rows, threads)
                ):
                    for i, part in zip(at, parts, strict=True):
                        whole, part = outs[i], part.reshape(self.shapes[i])
                        if whole is None:
                            outs[i] = part
                        else:
                            # Integers: the order in which blocks and threads come does not matter
                            # (docs/theory/numbers.md).
                            whole += part
        return [
            np.zeros(shape, np.int64) if out is None else out
            for out, shape in zip(outs, self.shapes, strict=True)
        ]

    def _around(self, at: tuple[int, ...], question: CellwiseQuestion) -> Job | DescentJob:
        """The inner question's job; for sums distinguished by cell, of runs of rows of one cell."""
        descent = self._descents.get(at)
        if isinstance(descent, NetworkPass):
            return descent.job([question], self._rows)
        inner = question.inner
        job = (
            _job(inner, self._scales[at[0]], self._rows)
            if descent is None
            else descent.job([inner], self._rows)
        )
        shape = question.shape(self._rows.layout)
        return by_cell(job, question.cells, shape) if isinstance(question, ByCell) else job

    def _read(self, block: Block | Drawn, question: Question, at: tuple[int, ...]) -> Any:
        """The rows as the job takes them: where weights differ by cell, with these; distinguished
        by cell, in the cells' order."""
        descent = self._descents.get(at)
        if isinstance(descent, NetworkPass):
            return block
        if isinstance(question, ByCell):
            return ordered(block, question.cells)
        if isinstance(question, Weighed):
            rows = block.gathered if isinstance(block, Drawn) else block
            reach = (question.row_factors(rows),) if isinstance(descent, PersonPass) else ()
            return rows.weighed(question.row_weights(rows), *reach)
        if isinstance(block, Block) and isinstance(descent, Descent) and not descent.is_panel:
            block.passed_again()
        return block.gathered if isinstance(block, Drawn) and descent is None else block


def check_labels(question: Question, rows: Rows) -> None:
    """The kernels do not look: labels that are read must be there."""
    if "label" in question.reads and not rows.labelled:
        raise InputError.expected(
            "rows with labels", of=question.name, got="rows without", remedy="Give y to the rows."
        )
    inner = inner_of(question)
    if isinstance(rows, ShardedRows) and (isinstance(inner, OwnJob) or _is_network(inner)):
        refuse(f"a question that runs code of the caller beside rows ({question.name})")


def _passes(measurements: Sequence[Gridded], *, apart: bool = False) -> list[tuple[int, ...]]:
    """Which asks share a pass: a gradient and a histogram of the same model over the same cells.
    `apart`: of networks alone."""
    free = list(range(len(measurements)))
    out: list[tuple[int, ...]] = []
    while free:
        i = free.pop(0)
        partner = next(
            (
                j
                for j in free
                if _fuses(measurements[i][0], measurements[j][0])
                and (not apart or _is_network(measurements[i][0]))
            ),
            None,
        )
        if partner is None:
            out.append((i,))
        else:
            free.remove(partner)
            out.append(
                (i, partner)
                if isinstance(measurements[i][0], GradientSum | NetworkGradient)
                else (partner, i)
            )
    return out


def _fuses(a: Question, b: Question) -> bool:
    if isinstance(a, PredictionHistogram | NetworkHistogram) and isinstance(
        b, GradientSum | NetworkGradient
    ):
        a, b = b, a
    if isinstance(a, NetworkGradient) and isinstance(b, NetworkHistogram):
        return a.model is b.model
    return (
        isinstance(a, GradientSum)
        and isinstance(b, PredictionHistogram)
        and a.model is b.model
        and (not a.reads_cells or a.cells == b.cells)
    )


def _descends(question: Question) -> bool:
    return isinstance(question, GradientSum | PredictionHistogram)


def _is_network(question: Question) -> bool:
    return isinstance(question, NetworkGradient | NetworkHistogram)


def _job(question: Question, scales: Sequence[Scale], rows: Rows) -> Job:
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
            kernels_moments.grams(*head, question.with_target, clip, unit, out)
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
