"""Rows with those of one cell beside each other: so that sums distinguished by cell cost one pass
of the plain sum.

The kernels total runs of rows a to b. In this order each cell is one run, so what they add is
theirs, exactly. A whole block is put in order once and kept where it is small enough; else, and for
batches, strips of it are for each pass. Private, all of it. Of persons, who are in one cell each,
all rows stay together: a strip holds whole persons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._types import Integers, Ints
from ...core.persons import whole
from ...core.rows import Block, Drawn
from ...facts import Cells

# bytes of a block that are kept a second time, for each list of cells; a knob of speed only
MOST_KEPT = 1 << 29
STRIP = 1 << 16  # rows put in order at a time where they are not kept
PlainJob = Callable[[Any, int, int], tuple[Ints, ...]]


@dataclass(repr=False)
class Ordered:
    """A block whose rows are in the order of their cells, which begin at `cuts`."""

    block: Block
    cuts: Ints

    @property
    def rows(self) -> int:
        """How many rows."""
        return self.block.rows

    @staticmethod
    def of(block: Block, cells: Cells, index: npt.NDArray[np.integer] | None = None) -> Ordered:
        """The rows of a block, or those at `index`."""
        order, cuts = places(block, cells, index)
        return Ordered(block.take(order), cuts)

    def runs(self, a: int, b: int) -> Iterator[tuple[int, int, int]]:
        """Cells that have rows among a to b, and from where to where."""
        for cell in range(len(self.cuts) - 1):
            low, high = max(a, int(self.cuts[cell])), min(b, int(self.cuts[cell + 1]))
            if low < high:
                yield cell, low, high


def places(
    block: Block, cells: Cells, index: Integers | None = None
) -> tuple[npt.NDArray[np.integer], Ints]:
    """Where the rows of each cell are, one cell after another, and where in this list each
    begins."""
    found = block.cells(cells)[0]
    found = found if index is None else found.take(index)
    # Stable, so that the rows of one person, who is in one cell, stay together.
    order = np.argsort(found, kind="stable")
    cuts = np.zeros(cells.count + 1, np.int64)
    np.cumsum(np.bincount(found, minlength=cells.count), out=cuts[1:])
    return (order if index is None else index.take(order)), cuts


def ordered(read: Block | Drawn, cells: Cells) -> Block | Ordered:
    """A block in order, kept with it; one that is too large to keep, or mapped, as it is, to be put
    in order strip by strip."""
    if isinstance(read, Drawn):
        return Ordered.of(read.block, cells, read.index)
    if read.is_mapped or read.size > MOST_KEPT:
        return read
    if cells not in read.in_order:
        read.in_order[cells] = Ordered.of(read, cells)
    kept: Ordered = read.in_order[cells]
    return kept


def by_cell(job: PlainJob, cells: Cells, shape: tuple[int, ...]) -> PlainJob:
    """A job that totals each cell's rows, of the given shape, from one that totals rows a to b of a
    block."""

    def apart(read: Block | Ordered, a: int, b: int) -> tuple[Ints, ...]:
        out = np.zeros(shape, np.int64)
        for strip, low, high in _strips(read, cells, a, b):
            for cell, first, last in strip.runs(low, high):
                (found,) = job(strip.block, first, last)
                out[cell] += found.reshape(shape[1:])
        return (out,)

    return apart


def _strips(
    read: Block | Ordered, cells: Cells, a: int, b: int
) -> Iterator[tuple[Ordered, int, int]]:
    if isinstance(read, Ordered):
        yield read, a, b
        return
    for low in range(a, b, STRIP):
        first, last = (
            whole(read.persons, at) if len(read.persons) else at
            for at in (low, min(b, low + STRIP))
        )
        if last > first:
            strip = Ordered.of(read, cells, np.arange(first, last))
            yield strip, 0, strip.rows
