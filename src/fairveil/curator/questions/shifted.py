"""Decisions of an attached model whose probabilities were moved by group: how many rows of each
group get each class.

Sensitivities: theory.md#moved-decisions.

Guarantees (tests/curator/test_curator_shifted.py):
1. No neighbour moves the histogram further than `scale` says, under every relation, whatever the
   offsets are. They are public or released.
2. With offsets of zero and hard decisions it is the histogram of the model itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ... import _checks
from ..._types import Ints
from ...core.rows import Block
from ...errors import InputError
from ...facts import RowLayout
from ...models.shifted import softened
from ..question import Scale
from .attached import AttachedHistogram, scattered


@dataclass(frozen=True, eq=False)
class ShiftedHistogram(AttachedHistogram):
    """How decisions by p(k | x) - offsets[cell, k] fall in each product cell: shape (cells,
    classes).

    `decisions="soft"`: a row adds the softmax of these differences over `temperature`, a point of
    the simplex. `"hard"`: one for the largest of them. So L1 and L2 are those of any histogram: 1
    and 1 (add-remove), 2 and sqrt 2.
    """

    name: ClassVar[str] = "histogram of shifted decisions"
    offsets: Any = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.positive(temperature=self.temperature)
        cells = self.cells
        if cells is None or cells.mode != "product" or self.group is not None or self.by_label:
            remedy = "Pass product cells, and neither by_label nor group."
            raise InputError.expected(
                "cells that do not overlap", of="cells", got=cells, remedy=remedy
            )
        table = np.array(self.offsets, np.float64)
        if table.shape != (cells.count, self.attached.classes) or not np.isfinite(table).all():
            remedy = "Pass one offset for each cell and class."
            expected = f"finite offsets of shape {(cells.count, self.attached.classes)}"
            raise InputError.expected(expected, of="offsets", got=table.shape, remedy=remedy)
        table.setflags(write=False)
        _checks.normalise(self, offsets=table)

    @property
    def why(self) -> str:
        return "a row's decision is a point of the simplex"

    def job(self, scale: Scale, layout: RowLayout) -> Callable[[Block, int, int], tuple[Ints, ...]]:
        """Scatter shifted decisions by cell."""
        hard = self.decisions == "hard"

        def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
            (line,) = block.cells(self.cells)[:, a:b]
            moved = self.attached.of(block, a, b) - self.offsets[line]
            values = moved if hard else softened(moved, self.temperature)
            return (
                scattered(
                    self.cells, block, a, b, np.ascontiguousarray(values), 1, scale, hard=hard
                ),
            )

        return job
