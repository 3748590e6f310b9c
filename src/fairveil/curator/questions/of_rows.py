"""Questions that need no model: counts, sums and Gram matrices of rows, by cell. See `question` for
guarantees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ... import _checks
from ...core import sums
from ...core.sums import Facts, Sum
from ...errors import InputError
from ...facts import Cells, RowLayout
from ..question import (
    Question,
    Scale,
    cell_count,
    check_group,
    comes_or_goes,
    need_classes,
    need_order_two,
)


@dataclass(frozen=True, eq=False)
class RowCount(Question):
    """How many rows there are (the sum of weights). Reads nothing but membership, which replace-one
    does not change.

    `copies`: that many releases of the same count, each with noise of its own, for models that
    stand side by side.
    """

    name: ClassVar[str] = "row count"
    columns: ClassVar[frozenset[str]] = frozenset()
    copies: int | None = None

    @property
    def models(self) -> int:
        return self.copies or 1

    @property
    def why(self) -> str:
        return "a row counts once"

    @property
    def within(self) -> float:
        return 1.0

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        return (1,)

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        return sums.counts(facts, copies=self.models, order=order)


@dataclass(frozen=True, eq=False)
class CellCounts(Question):
    """How many rows each cell (and label) holds: shape (cells,) or (cells, labels).

    L2 sensitivity 1 (add-remove), sqrt 2 (replace-one and sensitive features alone):
    theory.md#counts. `copies`: that many releases of the same counts, each with noise of its own,
    for models that stand side by side; a leading axis in the answer. `group`: that one cell alone,
    of product cells, shape (1,) or (1, labels): sensitive features alone then move it by 1, for a
    row keeps its label and only comes or goes; without labels another record moves it by 1 too.
    """

    name: ClassVar[str] = "cell counts"
    cells: Cells | None = None
    by_label: bool = False
    copies: int | None = None
    group: int | None = None

    def __post_init__(self) -> None:
        _checks.normalise(self, group=check_group(self.cells, self.group))

    @property
    def models(self) -> int:
        return self.copies or 1

    @property
    def why(self) -> str:
        return "a row counts once in each of its cells"

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(
            (["sensitive"] if self.cells is not None else []) + (["label"] if self.by_label else [])
        )

    @property
    def within(self) -> float:
        return math.sqrt(2) if self.by_label else 1.0

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        return (cell_count(self.cells) if self.group is None else 1, *labels)

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        return sums.counts(facts, self.cells, self.by_label, self.group, self.models, order)

    def scale_of_change(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        scale = self.scale(layout, cap, order)
        return scale if self.group is None else comes_or_goes(scale)


@dataclass(frozen=True, eq=False)
class _Clipped(Question):
    """Questions about the row itself, clipped to norm `clip` (the intercept's 1 included)."""

    cells: Cells | None = None
    clip: float | None = None

    def coordinates(self, layout: RowLayout) -> int:
        """How many coordinates of one row's vector can be nonzero."""
        return 1 + layout.numbers + len(layout.code_sizes)


@dataclass(frozen=True, eq=False)
class FeatureSums(_Clipped):
    """The sum of clipped rows (1, features) in each cell (and label): shape (cells[, labels], 1 +
    width).

    Within a cell x -> -x moves a sum by 2 R, so replace-one costs 2 R, not sqrt(2) R
    (theory.md#feature-sums). `basis` (k, 1 + width), of public or released numbers: a row then adds
    basis @ (1, features), clipped to norm `clip`: shape (cells[, labels], k). Fewer coordinates
    get noise, and a row's size is measured along them: on whitened or rotated features, for
    example.
    """

    name: ClassVar[str] = "feature sums"
    by_label: bool = False
    basis: Any = None

    def __post_init__(self) -> None:
        if self.basis is None:
            return
        try:
            basis = np.array(self.basis, np.float64, order="C")
        except (TypeError, ValueError):
            basis = np.empty(0)
        if basis.ndim != 2 or not len(basis) or not np.isfinite(basis).all():
            remedy = (
                "One line a coordinate: the intercept's factor, the numbers', then the categories'."
            )
            got = basis.shape if basis.ndim != 2 or not len(basis) else "NaN or infinite values"
            raise InputError.expected(
                "finite numbers (k, 1 + width)", of="basis", got=got, remedy=remedy
            )
        basis.setflags(write=False)
        _checks.normalise(self, basis=basis)

    @property
    def why(self) -> str:
        return f"rows are clipped to norm {self.clip:g}"

    @property
    def reads(self) -> frozenset[str]:
        return (super().reads | {"label"}) if self.by_label else super().reads

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        if self.basis is None:
            return (cell_count(self.cells), *labels, 1 + layout.width)
        k, width = self.basis.shape
        if width != 1 + layout.width:
            remedy = (
                "The intercept comes first, then numbers, then the categories of each coded "
                "feature."
            )
            raise InputError.expected(
                f"{1 + layout.width} columns", of="basis", got=width, remedy=remedy
            )
        return (cell_count(self.cells), *labels, k)

    def coordinates(self, layout: RowLayout) -> int:
        return super().coordinates(layout) if self.basis is None else len(self.basis)

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        need_order_two(order, self.name)
        return sums.feature_sums(facts, self.clip, self.cells, self.by_label, self.basis)


@dataclass(frozen=True, eq=False)
class GramMatrices(_Clipped):
    """The sum of r r' in each cell, r = clipped (1, features[, target]): shape (cells, d, d),
    symmetric (theory.md#gram).

    Noise is symmetric too: variance s^2 on the diagonal and s^2/2 beside it, which is what the
    Frobenius norm asks for.
    """

    name: ClassVar[str] = "gram matrices"
    with_target: bool = False

    @property
    def why(self) -> str:
        return f"rows are clipped to norm {self.clip:g}"

    @property
    def reads(self) -> frozenset[str]:
        return (super().reads | {"label"}) if self.with_target else super().reads

    @property
    def within(self) -> float:
        return math.sqrt(2)

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        d = 1 + layout.width + self.with_target
        return (cell_count(self.cells), d, d)

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        need_order_two(order, self.name)
        return sums.gram_matrices(facts, self.clip, self.cells, self.with_target)


@dataclass(frozen=True, eq=False)
class NumberMoments(Question):
    """The sums over rows of each number and of its square: shape (2, numbers). For scaling numbers
    by what was released.

    A row contributes (x, x^2), clipped to norm `clip`: sqrt(2 numbers) clips nothing where
    numbers are within [-1, 1], as a schema's encoder makes them.
    """

    name: ClassVar[str] = "number moments"
    clip: float | None = None

    @property
    def why(self) -> str:
        return f"numbers and their squares are clipped to norm {self.clip:g}"

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        return (2, layout.numbers)

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        need_order_two(order, self.name)
        return sums.number_moments(facts, self.clip)
