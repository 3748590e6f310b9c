"""Models made elsewhere, scored inside the room: questions about what they would decide for the
rows.

Guarantees (tests/curator/test_curator_attached.py):
1. Predictions stay with the rows; an attached model is a handle without any.
2. A row's predictions are a point of the simplex (or its shrinking), so a histogram of them has the
   bound of any histogram.
3. No neighbour moves a histogram, of all groups or of one, of soft or of hard decisions, further
   than `scale` and `scale_of_change` say, under every relation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ... import _checks
from ..._types import Floats, Ints
from ...core import bound as sensitivity
from ...core.bound import Bound
from ...core.rows import Block, Rows
from ...facts import Cells, RowLayout
from ..question import OwnJob, Scale, cell_count, gridded, need_classes
from ..quiet.calls import Troubles
from .of_attached import OfAttached
from .row_function import RowFunction


class Attached:
    """A handle on a model whose predictions for the rows the curator keeps. `Curator.attach` makes
    it."""

    __slots__ = ("_predictions", "_rows", "classes", "columns_read", "title")

    def __init__(
        self,
        function: Callable[[Block], Any],
        rows: Rows,
        columns_read: frozenset[str],
        title: str,
        troubles: Troubles | None = None,
    ) -> None:
        self.classes = need_classes(rows.layout, "an attached model")
        self.title = title
        self.columns_read = columns_read
        self._rows = rows
        whole = self._as_rows(function)
        asked = RowFunction(
            whole, self.classes, 1.0, columns_read=columns_read, _troubles=troubles or Troubles()
        )
        self._predictions = rows.of_given(
            [_onto_simplex(asked.bounded(block, 1)) for block in rows.given.blocks()]
        )

    def _as_rows(self, function: Callable[[Block], Any]) -> Callable[[Block], Floats]:
        def rows(block: Block) -> Floats:
            out = np.asarray(function(block))
            out = out.astype(np.int64) if out.dtype == np.bool_ else out
            return np.asarray(np.eye(self.classes)[out] if out.ndim == 1 else out, np.float64)

        return rows

    def is_of(self, rows: Rows) -> bool:
        """Whether the predictions are of these rows."""
        return self._rows is rows

    def of(self, block: Block, a: int, b: int) -> Floats:
        """Predictions of rows a to b of a block, (rows, classes)."""
        whole = self._predictions[block.number]
        return whole[a:b] if block.chosen is None else whole[block.chosen[a:b]]


def _onto_simplex(predictions: Floats) -> Floats:
    """Nonnegative rows whose sum is at most 1."""
    p = np.maximum(predictions, 0.0)
    return np.asarray(p / np.maximum(1.0, p.sum(axis=1, keepdims=True)))


@dataclass(frozen=True, eq=False)
class AttachedHistogram(OfAttached):
    """How an attached model's predictions fall in each cell (and label): shape (cells[, labels],
    classes).

    `decisions="soft"`: a row adds its probabilities; `"hard"`: one for the class of the largest,
    the first of equal ones (even of zeros): whole counts, which may have discrete Laplace noise. L1
    and L2 as for any histogram: 1 and 1 (add-remove), 2 and sqrt 2. `group`: that one cell alone,
    of product cells, shape (1[, labels], classes). With sensitive features alone protected L1 and
    L2 are then 1, for a row keeps its place and only comes or goes (theory.md#post-processing), so
    long as her predictions do: the model does not read the sensitive columns, or all of them make
    the cells, and within the group they are fixed.
    """

    name: ClassVar[str] = "histogram of an attached model"
    attached: Attached = field()
    cells: Cells | None = None
    by_label: bool = False
    decisions: str = "soft"
    group: int | None = None

    def __post_init__(self) -> None:
        _checks.one_of(("soft", "hard"), decisions=self.decisions)
        super().__post_init__()

    @property
    def why(self) -> str:
        return "a row's prediction is a point of the simplex"

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        labels = (self.attached.classes,) if self.by_label else ()
        return (cell_count(self.cells) if self.group is None else 1, *labels, self.attached.classes)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        bound = sensitivity.of_histogram(cap or 1.0, self.per_row, order)
        if self.decisions == "hard":
            return Scale(bound, 0) if cap is None else gridded(bound, self.per_row)
        return gridded(bound, self.per_row * self.attached.classes)

    def job(self, scale: Scale, layout: RowLayout) -> Callable[[Block, int, int], tuple[Ints, ...]]:
        """Scatter predictions by cell."""
        labels = self.attached.classes if self.by_label else 1

        def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
            values = self.attached.of(block, a, b)
            out = scattered(
                self.cells, block, a, b, values, labels, scale, hard=self.decisions == "hard"
            )
            return (
                out if self.group is None else out[self.group * labels : (self.group + 1) * labels],
            )

        return job


@dataclass(frozen=True, eq=False)
class AttachedLosses(OwnJob):
    """The sum of an attached model's losses in each cell: shape (cells,). Zero-one: 1 - p(label);
    log: -log p(label), cut."""

    name: ClassVar[str] = "losses of an attached model"
    columns: ClassVar[frozenset[str]] = frozenset({"features", "label"})
    attached: Attached = field()
    cells: Cells | None = None
    loss: str = "zero-one"
    clip: float = 1.0

    def __post_init__(self) -> None:
        _checks.one_of(("zero-one", "log"), loss=self.loss)
        _checks.positive(clip=self.clip)

    @property
    def why(self) -> str:
        return f"losses are cut at {self.clip:g}"

    @property
    def reads(self) -> frozenset[str]:
        return super().reads | self.attached.columns_read

    @property
    def within(self) -> float:
        return 1.0

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        return (cell_count(self.cells),)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        bound = sensitivity.of_histogram((cap or 1.0) * self.clip, self.per_row, order)
        bound = Bound(bound.norm, bound.norm, order) if self.cells is None else bound
        return gridded(bound, self.per_row)

    def job(self, scale: Scale, layout: RowLayout) -> Callable[[Block, int, int], tuple[Ints, ...]]:
        """Scatter losses by cell."""

        def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
            p = self.attached.of(block, a, b)[np.arange(b - a), block.labels[a:b]]
            with np.errstate(divide="ignore"):
                values = 1.0 - p if self.loss == "zero-one" else -np.log(p)
            values = np.minimum(values, self.clip)[:, np.newaxis]
            return (scattered(self.cells, block, a, b, values, 1, scale)[:, 0],)

        return job


def scattered(
    cells: Cells | None,
    block: Block,
    a: int,
    b: int,
    values: Floats,
    labels: int,
    scale: Scale,
    *,
    hard: bool = False,
) -> Ints:
    """Sums of values (rows, k) by cell and label, in grid units."""
    from ..kernels import moments as kernels_moments

    out = np.zeros((cell_count(cells) * labels, values.shape[1]), np.int64)
    head = (values, block.labels, block.cells(cells), block.weights)
    kernels_moments.scatter(*head, a, b, labels, hard, math.ldexp(1.0, scale.exponent), out)
    return out
