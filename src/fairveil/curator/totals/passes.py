"""Exact totals: which kernel adds what, over blocks and threads. Integers in grid units; no noise
here.

Guarantees (tests/curator/test_curator_totals.py):
1. The integers do not depend on the order of rows, on blocks, shards, threads, or on how many
   models share the pass.
2. Each agrees with `reference.total` within the rounding of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._types import Ints
from ...core.rows import Block, Drawn, Mapping, Rows, Unmapped
from ...core.threads import cut, in_line
from ...errors import InputError
from ..question import OwnJob, Question, Scale
from ..questions.by_cell import ByCell, CellwiseQuestion, Weighed, inner_of
from ..questions.gradients import GradientSum
from ..questions.histograms import PredictionHistogram
from ..questions.networks import NetworkGradient, NetworkHistogram
from ..sharded import ShardedRows, refuse
from . import person_pass
from .cell_order import by_cell, ordered
from .descent_pass import Descent, DescentJob
from .network_pass import NetworkPass
from .person_pass import PersonPass
from .row_jobs import Job, job_of

Gridded = tuple[Question, Sequence[Scale]]  # one grid a model, or one for all
Sums = list[Ints | None]  # of one thread, a question each


def totals(
    measurements: Sequence[Gridded],
    rows: Rows,
    blocks: Iterable[Block | Drawn | Unmapped],
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
        blocks: Iterable[Block | Drawn | Unmapped],
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
                jobs.append((at, job_of(asked[0], self._scales[at[0]], self._rows)))
            # Two questions share scores only if they ask about one and the same model.
            elif len(at) == 1 or asked[0].model is asked[1].model:
                jobs.append((at, self._descents[at].job(asked, self._rows)))
            else:
                again = list(zip(questions, self._scales, strict=True))
                return Passes(again, self._rows).run(questions, blocks, threads)
        # torch has threads of its own
        alone = any(isinstance(one, NetworkPass) for one in self._descents.values())
        threads = 1 if alone else threads

        def begin() -> Sums:
            return [None] * len(questions)

        found = in_line(self._pieces(jobs, questions, blocks, threads), begin, threads)
        return [_added([one[i] for one in found], shape) for i, shape in enumerate(self.shapes)]

    def _pieces(
        self,
        jobs: Sequence[tuple[tuple[int, ...], Job | DescentJob]],
        questions: Sequence[Question],
        blocks: Iterable[Block | Drawn | Unmapped],
        threads: int | None,
    ) -> Iterator[tuple[int, Callable[[Sums], None]]]:
        """What is to be added up, a run of rows after another."""
        left = self._rows.exact_count
        for block in blocks:
            for at, job in jobs:
                read: Any = self._read(block, questions[at[0]], at)
                rows = block.rows
                for a, b in cut(rows, left, threads, small=isinstance(read, Mapping)):
                    yield rows if a == 0 else 0, partial(self._add, at, job, read, a, b)
            left -= block.rows

    def _add(
        self,
        at: tuple[int, ...],
        job: Job | DescentJob,
        read: Any,
        a: int,
        b: int,
        outs: Sums,
    ) -> None:
        """outs += rows a to b of a block."""
        block = read.read(a, b) if isinstance(read, Mapping) else read
        for i, part in zip(at, job(block, a, b), strict=True):
            whole, part = outs[i], part.reshape(self.shapes[i])
            if whole is None:
                outs[i] = part
            else:
                # Integers: the order in which blocks and threads come does not matter
                # (docs/theory/numbers.md).
                whole += part
        if isinstance(read, Mapping):
            read.done(b - a)

    def _around(self, at: tuple[int, ...], question: CellwiseQuestion) -> Job | DescentJob:
        """The inner question's job; for sums distinguished by cell, of runs of rows of one cell."""
        descent = self._descents.get(at)
        if isinstance(descent, NetworkPass):
            return descent.job([question], self._rows)
        inner = question.inner
        job = (
            job_of(inner, self._scales[at[0]], self._rows)
            if descent is None
            else descent.job([inner], self._rows)
        )
        shape = question.shape(self._rows.layout)
        return by_cell(job, question.cells, shape) if isinstance(question, ByCell) else job

    def _read(
        self, block: Block | Drawn | Unmapped, question: Question, at: tuple[int, ...]
    ) -> Any:
        """The rows as the job takes them: where weights differ by cell, with these; distinguished
        by cell, in the cells' order."""
        descent = self._descents.get(at)
        if isinstance(block, Unmapped):
            if isinstance(descent, Descent) and not isinstance(question, CellwiseQuestion):
                return block.begin()
            block = block.mapped
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


def _added(parts: Sequence[Ints | None], shape: Sequence[int]) -> Ints:
    """The sums of all threads."""
    own = [part for part in parts if part is not None]
    total = own[0] if own else np.zeros(shape, np.int64)
    for part in own[1:]:
        total += part
    return total


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
