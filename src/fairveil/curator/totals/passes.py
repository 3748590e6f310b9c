"""Exact totals of the trusted room's sums, over blocks and threads. Integers in grid units; no
noise here.

Guarantees (tests/curator/test_curator_totals.py):
1. The integers do not depend on the order of rows, on blocks, shards, threads, or on how many
   models share the pass.
2. Each agrees with plain NumPy within the rounding of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..._types import Floats, Ints
from ...core import sums
from ...core.persons import whole
from ...core.promise import Promise, Unit
from ...core.rows import Block, Drawn, Mapping, Rows, Unmapped
from ...core.sums import Facts, Run, Sum
from ...core.threads import cut, in_line
from ...errors import InputError
from ...facts import RowLayout
from ..question import OwnJob, Question, Scale
from ..questions.by_cell import ByCell, Weighed, inner_of
from ..questions.gradients import GradientSum
from ..questions.histograms import PredictionHistogram
from ..questions.networks import NetworkGradient, NetworkHistogram
from ..sharded import ShardedRows, refuse
from . import person_pass
from .cell_order import by_cell, ordered
from .network_pass import NetworkPass

Gridded = tuple[Question, Sequence[Scale]]  # one grid a model, or one for all
Sums = list[Ints | None]  # of one thread, a question each
Job = Callable[[Any, int, int], tuple[Ints, ...]]
_NOBODY, _PERSONS = Promise(math.inf, 0.5), Promise(1.0, 0.5, unit=Unit("person", 2))


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


def facts_of(rows: Rows, question: Question) -> Facts:
    """What arithmetic depends on: persons whose gradients are added, and the cap of weights."""
    persons = person_pass.is_by_person(question, rows)
    cap = rows.max_sample_weight if rows.weighted else None
    return _facts(rows.layout, persons, None if cap is None or math.isinf(cap) else cap)


@lru_cache(maxsize=16)
def _facts(layout: RowLayout, persons: bool, cap: float | None) -> Facts:
    return Facts(layout, _PERSONS if persons else _NOBODY, cap)


def units_of(scales: Sequence[Scale]) -> Floats:
    """Grid steps to one, a number a model, or one for all."""
    return np.array([math.ldexp(1.0, scale.exponent) for scale in scales])


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
        self._networks: dict[tuple[int, ...], NetworkPass] = {}
        for at in self._passes:
            asked = [(inner_of(measurements[i][0]), measurements[i][1]) for i in at]
            if _is_network(asked[0][0]):
                self._networks[at] = NetworkPass.of(asked, rows)

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
        jobs = [(at, self._job(at, [questions[i] for i in at])) for at in self._passes]
        # torch has threads of its own
        threads = 1 if self._networks else threads

        def begin() -> Sums:
            return [None] * len(questions)

        found = in_line(self._pieces(jobs, questions, blocks, threads), begin, threads)
        return [_added([one[i] for one in found], shape) for i, shape in enumerate(self.shapes)]

    def _pieces(
        self,
        jobs: Sequence[tuple[tuple[int, ...], Job]],
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
        job: Job,
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

    def _job(self, at: tuple[int, ...], asked: list[Question]) -> Job:
        """What to do with rows a to b of what `_read` gives: of sums distinguished by cell, with
        runs of rows of one cell."""
        outer, rows = asked[0], self._rows
        if at in self._networks:
            return self._networks[at].job(asked, rows)
        inner: Any = inner_of(outer)
        if isinstance(inner, OwnJob):
            return inner.job(self._scales[at[0]][0], rows.layout)
        ones = [inner_of(one).sum(facts_of(rows, inner_of(one))) for one in asked]
        persons = person_pass.is_by_person(inner, rows)
        job = _rows_job(ones, [units_of(self._scales[i]) for i in at], rows, persons)
        shape = outer.shape(rows.layout)
        return by_cell(job, outer.cells, shape) if isinstance(outer, ByCell) else job

    def _read(
        self, block: Block | Drawn | Unmapped, question: Question, at: tuple[int, ...]
    ) -> Any:
        """The rows as the job takes them: where weights differ by cell, with these; distinguished
        by cell, in the cells' order."""
        network, inner = at in self._networks, inner_of(question)
        if isinstance(block, Unmapped):
            plain = isinstance(question, GradientSum | PredictionHistogram)
            if plain and not person_pass.is_by_person(question, self._rows):
                return block.begin()
            block = block.mapped
        if network:
            return block
        if isinstance(question, ByCell):
            return ordered(block, question.cells)
        taken = block.gathered if isinstance(block, Drawn) else block
        if isinstance(question, Weighed):
            persons = person_pass.is_by_person(inner, self._rows)
            reach = (question.row_factors(taken),) if persons else ()
            return taken.weighed(question.row_weights(taken), *reach)
        descends = block is taken and isinstance(question, GradientSum | PredictionHistogram)
        side = sums.panel_from(self._rows.layout, sparse=self._rows.sparse)
        if descends and question.models < side:
            taken.passed_again()
        return taken


def _rows_job(ones: Sequence[Sum], units: Sequence[Floats], rows: Rows, persons: bool) -> Job:
    """Totals of rows a to b of a block: of one sum, or of a gradient and a histogram of the same
    models, in one pass where the fused loop takes them. `persons`: none of these is cut in two."""
    at_once = max(sums.LEAST_RUN, sums.RUN // ones[0].models)
    pairs = sums.beside(ones)
    side = sums.panel_from(rows.layout, sparse=rows.sparse)
    is_panel = ones[0].models >= side
    descends = all(one.descends for one in ones)

    def cut_at(block: Block, row: int) -> int:
        return whole(block.persons, row) if persons else row

    def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
        a, b, offsets = cut_at(block, a), cut_at(block, b), rows.offsets
        out: list[Any] = [0] * len(ones)
        for i, j in pairs:
            run = Run(block, offsets, a, b)
            if not is_panel:
                run.features, run.sizes = block.features(offsets)
            one, g = (None, 1.0) if i is None else (ones[i], units[i])
            other, h = (None, 1.0) if j is None else (ones[j], units[j])
            for at, found in zip((i, j), sums.fused(one, other, run, g, h), strict=True):
                if at is not None:
                    out[at] = found
        while not pairs:
            stop = cut_at(block, min(b, a + at_once))
            run = Run(block, offsets, a, stop)
            if descends and not is_panel:
                run.features, run.sizes = block.features(offsets)
            for i, (one, unit) in enumerate(zip(ones, units, strict=True)):
                out[i] = out[i] + one.total(run, unit)
            a = stop
            if a >= b:
                break
        return tuple(out)

    return job


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


def _is_network(question: Question) -> bool:
    return isinstance(question, NetworkGradient | NetworkHistogram)
