"""User code beside rows: a loss, a saddle function, a torch module. Its output is bounded here; the
code itself is trusted.

What is enforced: the output is checked to be finite, clipped to norm `clip`, and put on the grid.
What is trusted: that each row's output depends on that row alone and leaves no trace elsewhere. The
statement says that user code was trusted.

Guarantees (tests/curator/test_curator_row_function.py):
1. A row whose output is not finite contributes zero; other rows are not affected.
2. An exception does not end the fit and is not shown before it has ended: the rows are tried one by
   one, and those that fail contribute zero. `Curator.trouble()` then tells the data holder.
3. What it warns of, prints or logs is not heard before, either: see `quiet`.

What fails on every row is better known before anything is released: `rehearse` tries the code on
made-up rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ... import _checks
from ...core import bound as sensitivity
from ...core.rows import EMPTY_FLOAT, EMPTY_INT, Block, Rows
from ...errors import InputError
from ...facts import Cells, RowLayout
from ..question import OwnJob, Scale, gridded
from ..quiet.calls import Troubles, quietly

COLUMNS = frozenset({"features", "label", "sensitive"})


@dataclass(frozen=True, eq=False)
class RowFunction(OwnJob):
    """The sum of a user's function of each row, clipped to norm `clip`: shape `(width,)`.

    `function(block)` gets a `Block` (numbers, codes, labels, sensitive) and returns an array (rows,
    width). `columns_read` names what it reads, among "features", "label", "sensitive"; it is not
    given the rest.
    """

    name: ClassVar[str] = "row function"
    function: Callable[[Block], Any]
    width: int
    clip: float = field()
    columns_read: frozenset[str] = frozenset({"features", "label", "sensitive"})
    cells: Cells | None = None
    title: str = "user code"
    # the asking curator's own, kept until the run has ended
    _troubles: Troubles = field(default_factory=Troubles, repr=False)

    def __post_init__(self) -> None:
        _checks.whole(at_least=1, width=self.width)
        _checks.positive(clip=self.clip)
        if not set(self.columns_read) <= COLUMNS:
            raise InputError.expected(
                f"some of {sorted(COLUMNS)}",
                of="columns_read",
                got=sorted(self.columns_read),
                remedy="Say which columns the function reads; it is not given the rest.",
            )

    @property
    def why(self) -> str:
        return f"outputs are clipped to norm {self.clip:g}"

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(self.columns_read)

    @property
    def per_row(self) -> int:
        return 1

    @property
    def has_cells(self) -> bool:
        return False

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        return (self.width,)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        if order == 1:
            return gridded(
                sensitivity.Bound(self.clip * (cap or 1.0), 2 * self.clip * (cap or 1.0), 1),
                self.width,
            )
        rounding = 1.0 + (self.width + 32) * 2.0**-52
        return gridded(sensitivity.of_signed(self.clip * rounding, cap or 1.0), self.width)

    def job(
        self, scale: Scale, layout: RowLayout
    ) -> Callable[[Block, int, int], tuple[npt.NDArray[np.int64], ...]]:
        """Total rows a to b of a block."""

        def job(block: Block, a: int, b: int) -> tuple[npt.NDArray[np.int64], ...]:
            part = block if (a, b) == (0, block.rows) else block.take(np.arange(a, b))
            values = self.bounded(part, 1 if scale.bound.order == 1 else 2)
            if len(part.weights):
                values = values * part.weights[:, np.newaxis]
            integers = np.rint(values * math.ldexp(1.0, scale.exponent)).astype(np.int64)
            return (integers.sum(axis=0),)

        return job

    def bounded(self, block: Block, order: int) -> npt.NDArray[np.float64]:
        """The function's output, one row at a time where it fails, finite and clipped to
        `clip`."""
        values = quietly(self._troubles, self._called, block)
        finite = np.asarray(np.isfinite(values).all(axis=1))
        if not finite.all():
            self._troubles.append("some rows gave NaN or infinite values; they contributed zero")
            values = np.where(finite[:, np.newaxis], values, 0.0)
        largest = np.abs(values).max(axis=1, initial=0.0)[:, np.newaxis]
        largest = np.where(largest > 0, largest, 1.0)
        # scaled first: squares must not overflow
        sizes = np.linalg.norm(values / largest, ord=order, axis=1, keepdims=True)
        # In units of the largest coordinate, so that neither a square nor a quotient leaves the
        # range of floats.
        return np.asarray(
            (values / largest) * np.minimum(largest, self.clip / np.maximum(sizes, 1.0))
        )

    def rehearse(
        self, layout: RowLayout, rows: int | None = None, unlike: Collection[int] = ()
    ) -> None:
        """Try the function on made-up rows, all zeros, before any data are read: what is wrong
        then may be told at once.

        What it returns must be finite numbers of shape (rows, width). `rows`: None for a number
        unlike the width, the columns of the layout and every number in `unlike`, such as the length
        of another parameter: a result that is transposed, or that has one line a parameter, then
        has another shape.
        """
        taken = {self.width, layout.numbers, len(layout.code_sizes), len(layout.sensitive), *unlike}
        rows = (
            next(n for n in itertools.count(2) if n not in taken)
            if rows is None
            else _checks.whole(at_least=1, rows=rows)
        )
        labels = np.zeros(rows, np.float64 if layout.classes is None else np.int32)
        numbers, codes = (
            np.zeros((layout.numbers, rows)),
            np.zeros((len(layout.code_sizes), rows), np.uint8),
        )
        sensitive = np.zeros((len(layout.sensitive), rows), np.uint16)
        block = Block(
            layout, rows, numbers, EMPTY_INT, EMPTY_INT, codes, labels, sensitive, EMPTY_FLOAT
        )
        troubles = Troubles()
        values = replace(self, _troubles=troubles)._call(block)
        if values is not None and np.isfinite(values).all():
            return
        got = "NaN or infinite values" if values is not None else "; ".join(troubles)
        remedy = (
            f"These were {rows} rows of zeros: no data were read. Return one line a row, finite "
            f"for zeros too, and try "
            "the function on rows of your own making."
        )
        raise InputError.expected(
            f"finite numbers of shape (rows, {self.width})", of=self.title, got=got, remedy=remedy
        )

    def unclipped(self, rows: Rows) -> RowFunction:
        """The same question with a clip that no row reaches: without privacy nothing is clipped."""
        whole = replace(self, clip=1e150)
        sizes = [
            np.abs(whole.bounded(block, 2)).sum(axis=1).max(initial=0.0) for block in rows.blocks()
        ]
        return replace(self, clip=max(float(max(sizes, default=0.0)) * 2.0, 1e-150))

    def _shown(self, block: Block) -> Block:
        """The block, read-only, without the columns that the function is not said to read."""
        reads = self.columns_read
        no_cells = np.empty((0, block.rows), np.uint16)
        hidden = replace(block, weights=np.empty(0), chosen=None, _cells={})
        if "label" not in reads:
            hidden.labels = np.empty(0, np.int32)
        if "sensitive" not in reads:
            hidden.sensitive = no_cells
        if "features" not in reads:
            hidden.numbers = np.empty((0, block.rows))
            hidden.indptr = hidden.indices = np.empty(0, np.int32)
            hidden.codes = np.empty((0, block.rows), np.uint8)
        for name in ("numbers", "indptr", "indices", "codes", "labels", "sensitive"):
            view = getattr(hidden, name).view()
            view.setflags(write=False)
            setattr(hidden, name, view)
        return hidden

    def _called(self, block: Block) -> npt.NDArray[np.float64]:
        values = self._call(block)
        if values is None:
            rows = [self._call(block.take(np.array([i]))) for i in range(block.rows)]
            values = np.concatenate(
                [np.zeros((1, self.width)) if row is None else row for row in rows]
                or [np.zeros((0, 1))]
            )
        return values

    def _call(self, block: Block) -> npt.NDArray[np.float64] | None:
        try:
            values = np.asarray(self.function(self._shown(block)), np.float64)
            if values.shape != (block.rows, self.width):
                self._troubles.append(
                    f"expected shape ({block.rows}, {self.width}), got {values.shape}"
                )
                return None
            return values
        except Exception as error:  # masked on purpose: an error may depend on one private row
            self._troubles.append(f"{type(error).__name__}: {error}")
            return None
