"""Codes of rows made elsewhere, such as the bins of a base classifier's score, kept with the rows:
how many of each there are.

Guarantees (tests/curator/test_curator_attached_codes.py):
1. Codes stay with the rows; attached codes are a handle without any.
2. Whatever the function returns, a row has one code between 0 and `count` - 1, which depends on
   that row's output alone.
3. No neighbour moves a histogram, of all groups or of one, further than `scale` and
   `scale_of_change` say, under every relation; it does not depend on how many codes there are.
4. Codes given as an array are taken only where features and labels are public, one whole number a
   row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import Ints
from ...core import bound as sensitivity
from ...core.promise import Promise
from ...core.rows import Block, Rows
from ...errors import InputError, PrivacyError
from ...facts import Cells, RowLayout
from ..question import Scale, cell_count, gridded, need_classes
from ..quiet.calls import Troubles
from .of_attached import OfAttached
from .row_function import RowFunction

MOST_CODES = 1 << 16


class AttachedCodes:
    """A handle on a code for each row, which the curator keeps. `Curator.attach_codes` makes it."""

    __slots__ = ("_codes", "_rows", "columns_read", "count", "title")

    def __init__(
        self,
        function: Callable[[Block], Any],
        rows: Rows,
        count: int,
        columns_read: frozenset[str],
        title: str,
        troubles: Troubles | None = None,
    ) -> None:
        self.count = _checks.whole(at_least=1, count=count)
        if self.count > MOST_CODES:
            remedy = "Take wider bins."
            raise InputError.expected(
                f"at most {MOST_CODES} codes", of="count", got=count, remedy=remedy
            )
        self.title = title
        self.columns_read = columns_read
        self._rows = rows

        def column(block: Block) -> npt.NDArray[np.float64]:
            return np.asarray(function(block), np.float64).reshape(block.rows, -1)

        asked = RowFunction(
            column,
            1,
            float(self.count),
            columns_read=columns_read,
            _troubles=troubles or Troubles(),
        )
        found = rows.of_given([asked.bounded(block, 1)[:, 0] for block in rows.given.blocks()])
        self._codes = [
            np.clip(np.rint(codes), 0, self.count - 1).astype(np.intp) for codes in found
        ]

    def is_of(self, rows: Rows) -> bool:
        """Whether the codes are of these rows."""
        return self._rows is rows

    def of(self, block: Block, a: int, b: int) -> npt.NDArray[np.intp]:
        """Codes of rows a to b of a block."""
        whole = self._codes[block.number]
        return np.asarray(whole[a:b] if block.chosen is None else whole[block.chosen[a:b]])


def given_codes(codes: object, rows: Rows, promise: Promise) -> Callable[[Block], Any]:
    """Codes of all rows that were made of public columns, block by block."""
    if not promise.features_are_public:
        remedy = "Pass a function of a block: it runs inside."
        raise PrivacyError.expected(
            "public features and labels", of="codes", got=promise.protects, remedy=remedy
        )
    array, rows = np.asarray(codes), rows.given
    if array.shape != (rows.exact_count,) or array.dtype.kind not in "iu":
        got = f"{array.dtype} of shape {array.shape}"
        remedy = "Pass one code a row, in the order of the rows."
        raise InputError.expected(
            f"{rows.exact_count} whole numbers", of="codes", got=got, remedy=remedy
        )
    ends = np.cumsum([block.rows for block in rows.blocks()])
    parts = np.split(array, ends[:-1])
    return lambda block: parts[block.number]


@dataclass(frozen=True, eq=False)
class CodeHistogram(OfAttached):
    """How many rows (their weights) of each cell (and label) have each code: shape (cells[,
    labels], codes).

    A row is in one cell (one of each column, of marginal groups), with one label and one code, so
    L1 and L2 are those of any histogram: 1 and 1 (add-remove), 2 and sqrt 2. Whole counts may have
    discrete Laplace noise. `group`: that one cell alone, of product cells, as in
    `AttachedHistogram`: with sensitive features alone protected L1 and L2 are then 1.
    """

    name: ClassVar[str] = "histogram of attached codes"
    columns: ClassVar[frozenset[str]] = frozenset()
    attached: AttachedCodes = field()
    cells: Cells | None = None
    by_label: bool = False
    group: int | None = None

    @property
    def why(self) -> str:
        return "a row has one code"

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        return (cell_count(self.cells) if self.group is None else 1, *labels, self.attached.count)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        bound = sensitivity.of_histogram(cap or 1.0, self.per_row, order)
        return Scale(bound, 0) if cap is None else gridded(bound, self.per_row)

    def job(self, scale: Scale, layout: RowLayout) -> Callable[[Block, int, int], tuple[Ints, ...]]:
        """Count codes by cell."""
        labels = need_classes(layout, self.name) if self.by_label else 1
        codes, lines = self.attached.count, cell_count(self.cells) * labels
        unit = math.ldexp(1.0, scale.exponent)

        def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
            found = self.attached.of(block, a, b)
            label = np.asarray(block.labels[a:b], np.intp) if self.by_label else 0
            out = np.zeros(lines * codes, np.int64)
            for line in block.cells(self.cells)[:, a:b]:
                places = (line.astype(np.intp) * labels + label) * codes + found
                if len(block.weights):
                    np.add.at(out, places, np.rint(block.weights[a:b] * unit).astype(np.int64))
                else:
                    out += np.bincount(places, minlength=lines * codes) * int(unit)
            table = out.reshape(lines, codes)
            return (
                table
                if self.group is None
                else table[self.group * labels : (self.group + 1) * labels],
            )

        return job
