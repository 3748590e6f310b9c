"""Linear models with an intercept of its own for every group: how they decide. For classifiers that
may read the group."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ... import _checks
from ..._types import Ints
from ...core import bound as sensitivity
from ...core.rows import Block
from ...errors import InputError
from ...facts import Cells, RowLayout
from ..question import Linear, OwnJob, Scale, cell_count, gridded, need_classes


@dataclass(frozen=True, eq=False)
class GroupedHistogram(OwnJob):
    """How the decisions of score + offsets[group] fall in each cell (and label): shape (cells[,
    labels], outputs).

    `of`: the product cells that decide; `offsets` (groups, outputs). A row is in one cell with one
    decision, both of which may change with its sensitive features: the bound is that of any
    histogram, sqrt 2 (theory.md#counts).
    """

    name: ClassVar[str] = "histogram of decisions by group"
    model: Linear = field()
    offsets: Any
    of: Cells
    cells: Cells | None = None
    by_label: bool = False

    def __post_init__(self) -> None:
        offsets = np.array(self.offsets, np.float64)
        wanted = (self.of.count, self.model.outputs)
        if (
            self.of.mode != "product"
            or self.model.many
            or offsets.shape != wanted
            or not np.isfinite(offsets).all()
        ):
            remedy = "Give one line of offsets a group, and one model."
            raise InputError.expected(
                f"finite offsets of shape {wanted}, of product groups",
                of="offsets",
                got=offsets.shape,
                remedy=remedy,
            )
        offsets.setflags(write=False)
        _checks.normalise(self, offsets=offsets)

    @property
    def why(self) -> str:
        return "a row has one decision in one cell"

    @property
    def reads(self) -> frozenset[str]:
        return super().reads | {"sensitive"} | ({"label"} if self.by_label else set())

    @property
    def within(self) -> float:
        return math.sqrt(2)

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        self.model.check(layout)
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        return (cell_count(self.cells), *labels, self.model.outputs)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        bound = sensitivity.of_histogram(cap or 1.0, self.per_row, order)
        return Scale(bound, 0) if cap is None else gridded(bound, self.per_row)

    def job(self, scale: Scale, layout: RowLayout) -> Callable[[Block, int, int], tuple[Ints, ...]]:
        """Score, decide, count."""
        labels = need_classes(layout, self.name) if self.by_label else 1
        places = np.cumsum([1 + layout.numbers, *layout.code_sizes], dtype=np.int64)[:-1]

        def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
            decided = self._decided(block, a, b, places)
            weights = np.ones(b - a) if not len(block.weights) else block.weights[a:b]
            steps = np.rint(weights * math.ldexp(1.0, scale.exponent)).astype(np.int64)
            out = np.zeros((cell_count(self.cells) * labels, self.model.outputs), np.int64)
            for line in block.cells(self.cells):
                at = line[a:b].astype(np.int64) * labels + (block.labels[a:b] if labels > 1 else 0)
                for k in range(self.model.outputs):
                    np.add.at(
                        out[:, k], at, np.where(decided == k + (self.model.outputs == 1), steps, 0)
                    )
            return (out,)

        return job

    def _decided(self, block: Block, a: int, b: int, places: Ints) -> Ints:
        from ..kernels import linear as kernels

        coef = np.ascontiguousarray(self.model.array[0])
        z, p, s2 = np.empty((len(coef), b - a)), np.empty((len(coef), b - a)), np.empty(b - a)
        numbers = block.numbers if block.is_sparse else np.ascontiguousarray(block.numbers[:, a:b])
        indptr = block.indptr[a : b + 1] if block.is_sparse else block.indptr
        codes = np.ascontiguousarray(block.codes[:, a:b])
        kernels.predict(numbers, indptr, block.indices, codes, places, coef, 1.0, z, p, s2)
        z += self.offsets[block.cells(self.of)[0][a:b]].T
        return np.asarray((z[0] > 0) if len(z) == 1 else z.argmax(axis=0), np.int64)
