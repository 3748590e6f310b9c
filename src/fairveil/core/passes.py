"""Exact totals of questions over blocks and threads, integers in grid units, and bounds that are
maxima over public rows. No noise here.

Where rows are public (sensitive features alone protected, theory.md#public, or no privacy at all)
the maxima run over the actual rows, for every row over all pairs of *listed* groups, and no clip is
needed: see `core.sums`, which finds them of a run of rows.

Guarantees (tests/curator/test_curator_totals.py, test_curator_sensitivity.py)
    1. The integers do not depend on the order of rows, on blocks, shards, threads, or on how many
       models share the pass.
    2. Each agrees with plain NumPy within the rounding of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from . import by_cell, sums
from .bound import Bound
from .errors import need
from .layout import Floats, Ints, RowLayout
from .persons import whole
from .questions import LABEL, NOBODY, PERSONS, Facts, Question, Scale
from .rows import Block, Rows
from .sums import Run
from .threads import Part, cut, in_line

Gridded = tuple[Question, Sequence[Scale]]  # one grid a model, or one for all
Sums = list[Ints | None]  # of one thread, a question each
Job = Callable[[Block, int, int, Part], None]


def totals(
    measurements: Sequence[Gridded],
    rows: Rows,
    blocks: Iterable[Block],
    threads: int | None = None,
) -> list[Ints]:
    """One integer array a measurement, of shape (models, *question.shape). Measurements that can
    share a pass do."""
    asked = [question for question, _ in measurements]
    return Passes(measurements, rows).run(asked, blocks, threads)


def is_network(question: Question) -> bool:
    """Whether it is about a network, or around a question that is."""
    return question.innermost.kind.is_network


def is_by_person(question: Question, rows: Rows) -> bool:
    """Whether a person's gradients are to be added before they are clipped (theory.md#units)."""
    inner = question.innermost
    return rows.adds_by_person and inner.kind.is_gradient and inner.clip is not None


def facts_of(rows: Rows, question: Question, order: int = 2) -> Facts:
    """What arithmetic depends on: persons whose gradients are added, the cap of weights, and in
    which norm a function of the caller's is clipped."""
    cap = rows.max_sample_weight if rows.weighted else None
    cap = None if cap is None or math.isinf(cap) else cap
    return _facts(rows.layout, is_by_person(question, rows), cap, order)


@lru_cache(maxsize=16)
def _facts(layout: RowLayout, persons: bool, cap: float | None, order: int) -> Facts:
    return Facts(layout, PERSONS if persons else NOBODY, cap, order, one_group=True)


class Passes:
    """Which passes total a list of asks. What does not depend on weights and costs is worked out
    once, for many steps."""

    def __init__(self, measurements: Sequence[Gridded], rows: Rows) -> None:
        for question, _ in measurements:
            check_labels(question, rows)
        self._rows = rows
        asked = [question for question, _ in measurements]
        self.shapes = [(one.models, *one.shape(rows.layout)) for one in asked]
        self._scales = [scales for _, scales in measurements]
        self._units = [
            np.array([math.ldexp(1.0, one.exponent) for one in scales]) for scales in self._scales
        ]
        self._passes = _passes(asked)

    def check(self, questions: Sequence[Question]) -> None:
        """What is wrong with questions of these keys is an error now, not on the way."""
        for i, one in enumerate(questions):
            one.sum(self._facts(i, one))

    def _facts(self, i: int, question: Question) -> Facts:
        return facts_of(self._rows, question, self._scales[i][0].bound.order)

    def run(
        self,
        questions: Sequence[Question],
        blocks: Iterable[Block],
        threads: int | None = None,
    ) -> list[Ints]:
        """The totals of questions with the keys of those given before."""
        if self._rows.is_sharded:
            asked, away = list(zip(questions, self._scales, strict=True)), cast(Any, self._rows)
            found: list[Ints] = away.totals(asked, self.shapes, blocks)
            return found
        jobs = [self._job(at, [questions[i] for i in at]) for at in self._passes]
        # torch has threads of its own
        threads = 1 if any(map(is_network, questions)) else threads

        def begin() -> Sums:
            return [None] * len(questions)

        parts = _over(self._rows, blocks, jobs, begin, threads)
        out = [np.zeros(shape, np.int64) for shape in self.shapes]
        for part in parts:
            # Integers: the order in which blocks and threads come does not matter
            # (docs/theory/numbers.md).
            for total, own in zip(out, part, strict=True):
                if own is not None:
                    total += own
        return out

    def _job(self, at: tuple[int, ...], asked: list[Question]) -> Job[Sums]:
        """Adds rows a to b of a block: of one sum, or of several of the same models, in one pass
        where the fused loop takes them. A person whose gradients are added is not cut in two."""
        rows, units = self._rows, [self._units[i] for i in at]
        ones = [one.sum(self._facts(i, one)) for i, one in zip(at, asked, strict=True)]
        fused, own = all(one.fused is not None for one in ones), any(one.is_own for one in ones)
        at_once, offsets = max(sums.LEAST_RUN, sums.RUN // ones[0].models), rows.offsets
        persons = any(is_by_person(one, rows) for one in asked)

        def cut_at(block: Block, row: int) -> int:
            return whole(block.persons, row) if persons else row

        def add(block: Block, a: int, b: int, outs: Sums) -> None:
            a, b = cut_at(block, a), cut_at(block, b)
            while a < b:
                stop = b if fused or own else cut_at(block, min(b, a + at_once))
                found = sums.totals_of(ones, units, Run(block, offsets, a, stop))
                for i, part in zip(at, found, strict=True):
                    before, part = outs[i], part.reshape(self.shapes[i])
                    outs[i] = part if before is None else np.add(before, part, out=before)
                a = stop

        return add


def _over(
    rows: Rows,
    blocks: Iterable[Block],
    jobs: Sequence[Job[Part]],
    begin: Callable[[], Part],
    threads: int | None,
) -> list[Part]:
    """Each job on a run of rows after another, in threads: what each thread has found."""

    def pieces() -> Iterator[tuple[int, Callable[[Part], None]]]:
        left = rows.exact_count
        for block in blocks:
            for job in jobs:
                for a, b in cut(block.rows, left, threads):
                    yield block.rows if a == 0 else 0, partial(job, block, a, b)
            left -= block.rows

    return in_line(pieces(), begin, threads)


def check_labels(question: Question, rows: Rows) -> None:
    """The loops do not look: labels that are read must be there."""
    there, fix = rows.labelled or LABEL not in question.reads, "Give y to the rows."
    need(there, "rows with labels", of=question.name, got="rows without", fix=fix)
    if rows.is_sharded and (is_network(question) or question.of_layout(rows.layout).is_own):
        cast(Any, rows).refuse(
            f"a question that runs code of the caller beside rows ({question.name})"
        )


def _passes(asked: Sequence[Question]) -> list[tuple[int, ...]]:
    """Which asks share a pass: those about the same model, a gradient first."""
    out: list[list[int]] = []
    for i, one in enumerate(asked):
        for group in out:
            first = asked[group[0]]
            if one.model is not None and first.model is one.model:
                group.append(i)
                break
        else:
            out.append([i])
    return [tuple(sorted(group, key=lambda i: not asked[i].kind.is_gradient)) for group in out]


# -- where rows are public -------------------------------------------------------------------------


def needs_rows(question: Question, layout: RowLayout) -> bool:
    """Whether its bound with public rows is a maximum over them; the others' bounds are constants
    anyway."""
    return question.innermost.of_layout(layout).maxima is not None


def public_scales(
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
    if question.inner is not None:
        inner, cells, factors = question.inner, question.cells, question.values.get("factors")
        if factors is None:
            (scale,) = public_scales(inner, rows, order, exact=exact, threads=threads)
            return [by_cell.across(scale, cells, alone=True)]
        cap = by_cell.cap_of(factors, None)
        (scale,) = public_scales(inner, rows, order, exact=exact, threads=threads, factor=cap)
        one = inner.sum(facts_of(rows, inner))
        sizes = by_cell.sizes_of(one, factors, alone=True)
        return [by_cell.weighing(one, scale, sizes, alone=True)]
    one = question.sum(facts_of(rows, question, order))
    if rows.is_sharded and not (exact and one.longest is not None):
        norms, moves = cast(Any, rows).largest(question, order, exact)
    else:
        norms, moves = largest(question, rows, order, exact=exact, threads=threads)
    count = rows.exact_count
    grids = sums.public_scales(one, norms, moves, count, exact=exact, order=order, factor=factor)
    return [each.scale for each in grids]


def largest(
    question: Question, rows: Rows, order: int, *, exact: bool, threads: int | None
) -> tuple[Floats, Floats]:
    """For each model the largest contribution of one of these rows, and its largest move, before
    any clip."""
    one = question.sum(facts_of(rows, question, order))
    if exact and one.longest is not None:  # it follows from the longest row, which is found once
        with np.errstate(all="ignore"):
            norms = one.longest(longest_row(rows))
        return norms, 2.0 * norms
    maxima, step = one.maxima, max(sums.LEAST_RUN, sums.RUN // one.models)
    assert maxima is not None

    def look(block: Block, a: int, b: int, found: list[Any]) -> None:
        for low in range(a, b, step):
            here = maxima(Run(block, rows.offsets, low, min(b, low + step)))
            found[0] = np.maximum(found[0], here)

    parts = _over(rows, rows.blocks(), [look], lambda: [np.zeros((2, one.models))], threads)
    norms, moves = np.max([part[0] for part in parts], axis=0)
    return norms, moves


def shared(scales: list[Scale], question: Question, rows: Rows) -> Scale:
    """One grid and bound for all models, for scores that are compared."""
    one = question.sum(facts_of(rows, question))
    norm = max(scale.bound.norm for scale in scales)
    diameter = max(scale.bound.diameter for scale in scales)
    return sums.on_one_grid(one, Bound(norm, diameter, scales[0].bound.order))


def longest_row(rows: Rows) -> float:
    """The largest weight x |row|, found once."""
    if rows.largest_row is None:
        if rows.is_sharded:
            rows.largest_row = cast(Any, rows).longest
        else:
            every = (Run(block, rows.offsets, 0, block.rows) for block in rows.blocks())
            with np.errstate(all="ignore"):
                found = [sums.longest_row(run) for run in every]
            rows.largest_row = math.nan if np.isnan(found).any() else max(found, default=0.0)
    return float(rows.largest_row)
