"""One block of rows as the kernels take it, and the checks that let it in: nothing here leaves the
room."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._types import Floats, Ints
from ...core.layout import lines_of
from ...facts import Cells, RowBlock, RowLayout
from .one_hot import Repeats

EMPTY_INT = np.empty(0, np.int32)
EMPTY_FLOAT = np.empty(0, np.float64)
EMPTY_PERSONS = np.empty(0, np.int64)
# numbers of a block that are kept a second time, for networks: 1 GiB; a knob of speed only
MOST_ROW_MAJOR = 1 << 28


@dataclass(repr=False)  # a printed block would show rows
class Block:
    """One block as the kernels take it; `numbers` is (columns, rows), or (1, stored values) beside
    `indptr` and `indices`."""

    layout: RowLayout
    rows: int
    numbers: npt.NDArray[Any]
    indptr: npt.NDArray[np.integer]
    indices: npt.NDArray[np.integer]
    codes: npt.NDArray[np.integer]
    labels: npt.NDArray[Any]
    sensitive: npt.NDArray[np.uint16]
    weights: npt.NDArray[np.float64]
    number: int = 0  # which block of the source this is
    # its arrays lie on the disk, and no second copy of them may stay in memory
    is_mapped: bool = False
    chosen: npt.NDArray[np.integer] | None = None  # which of that block's rows these are; None: all
    _cells: dict[Cells | None, npt.NDArray[np.integer]] = field(default_factory=dict)
    # of these numbers: never copied along
    _row_major: list[npt.NDArray[np.float32]] = field(default_factory=list, init=False)
    # see `cell_order`: never copied along
    in_order: dict[Cells, Any] = field(default_factory=dict, init=False)
    # whose each row is; none: of rows
    # of these numbers: never copied along
    repeats: Repeats = field(default_factory=Repeats, init=False)
    persons: npt.NDArray[np.int64] = field(default_factory=lambda: EMPTY_PERSONS)
    # times a person's clip; none: 1
    reach: npt.NDArray[np.float64] = field(default_factory=lambda: EMPTY_FLOAT)

    @property
    def is_sparse(self) -> bool:
        """Whether the numbers are a CSR array."""
        return len(self.indptr) > 0

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        arrays = (
            self.numbers,
            self.indptr,
            self.indices,
            self.codes,
            self.labels,
            self.sensitive,
            self.weights,
        )
        return sum(array.nbytes for array in arrays)

    def arrays(self, offsets: npt.NDArray[np.int64]) -> tuple[npt.NDArray[Any], ...]:
        """What compiled loops read of the rows' features, in the order in which they take it."""
        return self.numbers, self.indptr, self.indices, self.codes, offsets

    def cells(self, cells: Cells | None) -> npt.NDArray[np.integer]:
        """Cell ids, (cells a row, rows); one cell for all when `cells` is None."""
        kept = self._cells.get(cells)
        if kept is None:
            # kept: a round that asks about everyone should not clear so much memory again
            if cells is None:
                self._cells[None] = np.zeros((1, self.rows), np.uint8)
                return self._cells[None]
            lines = lines_of(cells, self.layout)
            # One column's codes are its cells: no copy is made.
            if len(lines) == 1:
                self._cells[cells] = self.sensitive[lines[0] : lines[0] + 1]
            else:
                ids = cells.ids(self.sensitive[lines])
                # Two bytes a row where they suffice: every pass reads them.
                self._cells[cells] = ids.astype(np.uint16) if cells.count < 1 << 16 else ids
            kept = self._cells[cells]
        return kept

    def passed_again(self) -> None:
        """Another pass of descent over all rows is about to be made: see `one_hot`."""
        if not self.is_mapped and not len(self.codes):
            self.repeats.again(self.numbers, self.indptr, self.indices, self.layout.numbers)

    def features(self, offsets: Ints) -> tuple[tuple[Any, ...], Floats]:
        """What passes of descent over all rows read of features, and |row|^2 where it is known."""
        one_hot = self.repeats.coded
        if one_hot is None:
            return self.arrays(offsets), EMPTY_FLOAT
        fixed = (one_hot.numbers, EMPTY_INT, EMPTY_INT, one_hot.codes, one_hot.offsets)
        return fixed, one_hot.sizes

    def row_major(self, index: slice | Ints) -> npt.NDArray[np.float32]:
        """Rows as networks read them, (rows, width) float32: numbers, then one-hot codes. `index`:
        a slice, or positions.

        A whole copy is kept where it is small enough: batches are then gathered row by row. A
        number beyond float32 is infinite.
        """
        if not self._row_major and (
            self.is_mapped or self.rows * self.layout.width > MOST_ROW_MAJOR
        ):
            return row_major(self if isinstance(index, slice) else self.take(index), index)
        if not self._row_major:
            self._row_major.append(row_major(self, slice(0, self.rows)))
        rows: npt.NDArray[np.float32] = self._row_major[0][index]
        return rows

    def weighed(
        self, weights: npt.NDArray[np.float64], reach: npt.NDArray[np.float64] = EMPTY_FLOAT
    ) -> Block:
        """The same rows with other weights. `reach`: by how much these multiply what a person may
        add at most."""
        other = copy.copy(self)
        other.weights, other.reach, other.in_order = weights, reach, {}
        return other

    def take(self, index: npt.NDArray[np.integer]) -> Block:
        """The rows at `index`, as a block of their own."""
        indptr, indices, numbers = self.indptr, self.indices, self.numbers
        if self.is_sparse:
            import scipy.sparse

            # A gather keeps the order of stored values in a row, so that its sum has the same bits.
            csr = scipy.sparse.csr_array(
                (numbers[0], indices, indptr), shape=(self.rows, self.layout.numbers)
            )[index]
            numbers, indptr, indices = csr.data[np.newaxis, :], csr.indptr, csr.indices
        else:
            numbers = numbers.take(index, axis=1)
        return Block(
            self.layout,
            len(index),
            numbers,
            indptr,
            indices,
            self.codes.take(index, axis=1),
            self.labels.take(index) if len(self.labels) else self.labels,
            self.sensitive.take(index, axis=1),
            self.weights.take(index) if len(self.weights) else self.weights,
            self.number,
            False,
            index if self.chosen is None else self.chosen[index],
            {cells: ids.take(index, axis=1) for cells, ids in list(self._cells.items())},
            persons=self.persons.take(index) if len(self.persons) else self.persons,
        )


class Drawn:
    """Rows of a block that a batch drew: gathered as a block of their own only for passes that need
    that."""

    __slots__ = ("_gathered", "block", "index", "rows")

    def __init__(self, block: Block, index: npt.NDArray[np.integer]) -> None:
        self.block = block
        self.index = index
        self.rows = len(index)
        self._gathered: Block | None = None

    @property
    def gathered(self) -> Block:
        """The rows as a block."""
        if self._gathered is None:
            self._gathered = self.block.take(self.index)
        return self._gathered


def row_major(block: Block, index: object) -> npt.NDArray[np.float32]:
    """`Block.row_major` without a copy that is kept. Positions: of a block that holds just these
    rows."""
    from ...models import torch_network

    layout = block.layout
    numbers: Any = block.numbers
    if block.is_sparse:
        import scipy.sparse

        parts = (block.numbers[0], block.indices, block.indptr)
        numbers = scipy.sparse.csr_array(parts, shape=(block.rows, layout.numbers))
    rows = index if isinstance(index, slice) else slice(0, block.rows)
    return torch_network.row_major(RowBlock(numbers, block.codes), layout.code_sizes, rows)
