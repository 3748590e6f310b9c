"""Sums distinguished by cell, or weighed by cell after the clip: questions around a question, for
budgets that differ by group.

`ByCell(inner, cells)` answers with the inner total of each cell's rows. A person is in one cell,
and noise may differ by cell: she spends what her cell spends (theory.md#cells).
`Weighed(inner, cells, factors)` answers with one sum, in which a row's contribution counts
factors[cell] times *after* it was clipped: the noise is one, and a person of cell k spends in
proportion to factors[k]^2.

With c the largest norm of a row's contribution to the inner total, and w how far one row moves
that, in units of c (2 for signed vectors, sqrt 2 for Gram matrices: `within`), the totals move by
at most

                            ByCell                  Weighed, f = factors
    add-remove              c                       max f c
    replace-one             w c (across: sqrt 2 c)  w max f c (across: (f_k + f_l) c, Grams
    hypot(f_k, f_l) c) sensitive features only sqrt 2 c                (max f - min f) c, over the
    listed cells; free where all are equal

The grid rounds a contribution by up to half a step in each coordinate however small its factor is.
So `sizes`, the factors over the largest, count every positive one as larger by that; with sensitive
features alone protected each different one by as much again, that differences are counted, too.
Sizes are public constants, and both the noise and the event are made of them.

Guarantees (tests/curator/test_curator_tailored.py):
1. No neighbour moves a total further than its bound, under every relation: enumerated.
2. No pair of neighbours is further apart, in units of the noise, than the event says of their
   cells; the event of a `Weighed` question costs at its worst what its multiplier says, 1/z^2.
3. Totals are whole numbers of grid steps, exact in any order of rows; a cell's is the inner total
   of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import Floats, Ints
from ...core.bound import OUTWARDS, Bound
from ...core.events import LARGEST
from ...core.rows import Block
from ...errors import InputError
from ...facts import Cells, RowLayout
from ..question import GRID_BITS, Question, Scale
from .gradients import GradientSum
from .networks import ROW_BITS, NetworkGradient
from .of_rows import FeatureSums, GramMatrices

LEAST_NORM = math.ldexp(1.0, -900)  # what the grid takes a smaller norm for: see `question.gridded`


@dataclass(frozen=True, eq=False)
class CellwiseQuestion(Question):
    """A question around a bounded sum of one model that has no cells of its own. Abstract."""

    inner: Question
    cells: Cells = field()

    def __post_init__(self) -> None:
        _check_inner(self.inner)
        _check_cells(self.cells)

    @property
    def model(self) -> Any:  # never set
        """The inner question's, None where it has none."""
        return self.inner.model

    @property
    def why(self) -> str:
        return self.inner.why

    @property
    def clipped_to(self) -> float | None:
        return self.inner.clipped_to

    @property
    def within(self) -> float:
        return self.inner.within

    def free_scale(self, cap: float | None) -> Scale:
        """The grid of a network's gradients where nobody can move the answer."""
        assert isinstance(self.inner, NetworkGradient)
        return self.inner.free_scale(cap)


@dataclass(frozen=True, eq=False)
class ByCell(CellwiseQuestion):
    """The inner total of each cell's rows: shape (cells, *shape of the inner answer).

    `inner`: a `GradientSum`, `NetworkGradient`, `FeatureSums` or `GramMatrices` of one model,
    without cells, costs or weights by cell. `cells`: disjoint ones; with several sensitive columns
    ask once a column (`rows.cells(names=[one])`), or about product cells. A `Measurement` may have
    one multiplier a cell: the noise in cell k is then m_k x the largest norm of one row's contribution.
    """

    name: ClassVar[str] = "sums told apart by cell"

    def at(self, inner: object) -> ByCell:
        """The same question about an inner question made by its `at`: a round of a run."""
        return self.again(inner=_same(self.inner, inner))

    @property
    def reads(self) -> frozenset[str]:
        return self.inner.reads | ({"sensitive"} if self.cells.count > 1 else frozenset())

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        return (self.cells.count, *self.inner.shape(layout))

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        return self.across(self.inner.scale(layout, cap, order), alone=False)

    def scale_of_change(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        if "sensitive" not in self.reads:
            return self.inner.scale_of_change(layout, cap, order)
        return self.across(self.inner.scale(layout, cap, order), alone=True)

    def across(self, scale: Scale, *, alone: bool) -> Scale:
        """The bound of sums distinguished, from the inner one: a row that changes cell moves two of
        them.

        `alone`: cells alone may change; the contribution is then the same in both.
        """
        bound = scale.bound
        moved = math.sqrt(2) * bound.norm * OUTWARDS if self.cells.count > 1 else 0.0
        diameter = moved if alone else max(bound.diameter, moved)
        return Scale(Bound(bound.norm, diameter, bound.order), scale.exponent, scale.slack)


@dataclass(frozen=True, eq=False)
class Weighed(CellwiseQuestion):
    """The sum over rows of factors[cell] x the inner question's clipped contribution: the shape of
    the inner answer.

    `inner` and `cells` as for `ByCell`. `factors`: (cells,) numbers of at least 0, not all 0,
    public or released. They multiply after the clip, as sample weights do;
    `GradientSum(cell_weights=)` weighs the loss before it. A `Measurement` has one multiplier, and
    its event says what the people of each cell spend. Cells with factor 0 spend nothing.
    """

    name: ClassVar[str] = "sums weighed by cell"
    factors: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.normalise(self, factors=_checked(self.factors, self.cells))

    def at(self, inner: object, factors: object = None) -> Weighed:
        """The same question about an inner question made by its `at`, and other factors: a round of
        a run.

        Bound, noise and event depend on factors, so where these change it is a question of another
        key: make a new `Measurement`.
        """
        inner = _same(self.inner, inner)
        given = self.factors if factors is None else _checked(factors, self.cells)
        if np.array_equal(given, self.factors):
            return self.again(inner=inner)
        return Weighed(inner, self.cells, given)

    @cached_property
    def key(self) -> tuple[Hashable, ...]:
        return (*self.form, tuple(self.factors.tolist()))

    @property
    def form(self) -> tuple[Hashable, ...]:
        """The key but for the factors: what is the same in all rounds of a run."""
        return (cast(Hashable, type(self)), self.inner.key, self.cells)

    @property
    def reads(self) -> frozenset[str]:
        return self.inner.reads | ({"sensitive"} if np.ptp(self.factors) > 0 else frozenset())

    @property
    def has_cells(self) -> bool:
        return False

    @property
    def largest(self) -> float:
        """The largest factor."""
        return float(self.factors.max())

    @property
    def crossing(self) -> int:
        """What happens to a person who becomes another in another cell: see `PerCell`. Grams are
        positive semi-definite."""
        return 0 if isinstance(self.inner, GramMatrices) else 1

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        return self.inner.shape(layout)

    def sizes(self, layout: RowLayout, *, alone: bool, by_person: bool = False) -> Floats:
        """Of each cell, the largest contribution over the largest of all cells, counted up for the
        grid.

        `alone`: cells alone may change, so that differences count. They are then from the smallest
        listed factor on. `by_person`: a person's gradients are added, and the sum is rounded again.
        """
        step = _rounding(self.inner, layout, by_person=by_person)
        if not alone:
            return np.asarray(self.factors / self.largest + step * (self.factors > 0))
        different, rank = np.unique(self.factors, return_inverse=True)
        return np.asarray((self.factors - different[0]) / self.largest + step * rank)

    def multipliers(
        self,
        layout: RowLayout,
        multiplier: float,
        *,
        alone: bool,
        hidden: bool,
        added: bool,
        by_person: bool = False,
    ) -> tuple[float, ...]:
        """The noise over the largest contribution of each cell, from the noise over the
        sensitivity.

        `hidden`: over the largest norm of one row, of a secret batch. `added`: under add-remove,
        where these are the same. `by_person`: as in `sizes`.
        """
        sizes = self.sizes(layout, alone=alone, by_person=by_person)
        moved = 1.0 if alone or hidden or added else self.within
        with np.errstate(divide="ignore", over="ignore"):
            found = np.minimum(multiplier * moved * (sizes.max() / sizes), LARGEST)
        return tuple(found.tolist())

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        return self.weighing(self.inner.scale(layout, self.cap(cap), order), layout, alone=False)

    def scale_of_change(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        if "sensitive" not in self.reads:
            return self.inner.scale_of_change(layout, self.cap(cap), order)
        return self.weighing(self.inner.scale(layout, self.cap(cap), order), layout, alone=True)

    def free_scale(self, cap: float | None) -> Scale:
        return super().free_scale(self.cap(cap))

    def cap(self, cap: float | None) -> float:
        """The largest weight of a row, its factor included."""
        return (cap or 1.0) * self.largest * OUTWARDS

    def weighing(
        self, scale: Scale, layout: RowLayout, *, alone: bool, by_person: bool = False
    ) -> Scale:
        """The bound, from that of a row in the cell whose factor is the largest."""
        sizes = self.sizes(layout, alone=alone, by_person=by_person)
        norm, largest = max(scale.bound.norm, LEAST_NORM), float(sizes.max())
        bound = (
            Bound(norm, norm * largest)
            if alone
            else Bound(norm * largest, self.within * norm * largest)
        )
        return Scale(bound, scale.exponent, scale.slack)

    def row_weights(self, block: Block, index: slice | Ints = slice(None)) -> Floats:
        """Of rows of a block: their factors times the weights that they have."""
        factors = self.row_factors(block, index)
        return np.asarray(factors * block.weights[index] if len(block.weights) else factors)

    def row_factors(
        self, block: Block, index: slice | npt.NDArray[np.integer] = slice(None)
    ) -> Floats:
        """Of rows of a block: their factors."""
        return np.asarray(self.factors.take(block.cells(self.cells)[0, index]))


def inner_of(question: Question) -> Question:
    """The question inside, or itself."""
    return question.inner if isinstance(question, CellwiseQuestion) else question


def whole_width(question: GradientSum, layout: RowLayout) -> int:
    """The coordinates in which a person's rows may differ from zero together: all."""
    return question.model.outputs * (1 + layout.width)


def _rounding(inner: Question, layout: RowLayout, *, by_person: bool) -> float:
    """More than what the grid adds to a difference of two contributions, relative to the largest
    norm of one."""
    if isinstance(inner, NetworkGradient):
        from ..kernels.torch_gradient import engine

        return engine(inner.model.skeleton).rounding * math.ldexp(1.01, 2 - ROW_BITS)
    assert isinstance(inner, GradientSum | FeatureSums | GramMatrices)
    coordinates = inner.coordinates(layout)
    if by_person and isinstance(inner, GradientSum):
        coordinates = whole_width(inner, layout)
    if isinstance(inner, GramMatrices):
        coordinates = (coordinates + inner.with_target) ** 2
    return math.sqrt(coordinates) * math.ldexp(1.01, 1 - GRID_BITS)


def _same(inner: Question, other: object) -> Question:
    if not isinstance(other, Question) or other.key != inner.key:
        remedy = "Make it by the inner question's own `at`, or make a new question."
        got = (other.name if isinstance(other, Question) else "") or type(other).__name__
        raise InputError.expected(
            f"a {inner.name} of the same form", of="inner", got=got, remedy=remedy
        )
    return other


def _check_inner(inner: object) -> None:
    """A bounded sum of one model that reads no groups."""
    good = (
        isinstance(inner, GradientSum | FeatureSums | GramMatrices | NetworkGradient)
        and inner.models == 1
    )
    if isinstance(inner, GradientSum):
        good = good and not inner.reads_cells
    elif isinstance(inner, NetworkGradient):
        good = inner.cell_costs is None
    elif isinstance(inner, FeatureSums | GramMatrices):
        good = inner.cells is None
    if not good:
        raise InputError.expected(
            (
                "a GradientSum, NetworkGradient, FeatureSums or GramMatrices of one "
                "model, without cells"
            ),
            of="inner",
            got=(inner.name if isinstance(inner, Question) else "") or type(inner).__name__,
            remedy=(
                "Leave out its cells, costs and weights by cell: the question around it has "
                "the cells."
            ),
        )


def _check_cells(cells: object) -> None:
    if not isinstance(cells, Cells) or cells.per_row != 1:
        raise InputError.expected(
            "cells that do not overlap",
            of="cells",
            got=cells,
            remedy=(
                "Ask once a sensitive column, with rows.cells(names=[column]), or use "
                "product cells."
            ),
        )


def _checked(given: object, cells: Cells) -> Floats:
    """A copy of factors, which nobody can change."""
    try:
        factors = np.array(given, np.float64)
    except (TypeError, ValueError):
        factors = np.empty((0, 0))
    fits = factors.shape == (cells.count,)
    if (
        not fits
        or not np.isfinite(factors).all()
        or not (factors >= 0).all()
        or not (factors > 0).any()
    ):
        raise InputError.expected(
            (f"{cells.count} finite numbers of at least 0, one a cell, not all of them 0"),
            of="factors",
            got="negative or infinite ones, or zeros" if fits else factors.shape,
            remedy="Factors are public or released numbers; a sum with signs is two questions.",
        )
    factors.setflags(write=False)
    return factors
