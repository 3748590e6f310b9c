"""The kinds of bounded questions: what one row contributes, how large at most, and which columns it
reads.

A question is a small frozen object that holds public or released values only. Its bound is made
here, from the same clip that the kernels apply, and rounded outwards: `Scale` says how far one row
moves the total *on the grid* on which it is summed. Answers have the shape (cells[, labels], ...),
with a leading model axis where the weights have one.

Guarantees (tests/curator/test_curator_sensitivity.py, enumerated and random neighbours, under every
relation):
1. No neighbour moves the total of one model further than `scale(...).bound.sensitivity(relation)`.
2. With sensitive features alone protected, the same holds for `public_scale.of(...)`, whose maxima
   run over the public rows and over every pair of the *listed* groups, observed or not.
3. A question that does not read a protected column is moved by no neighbour at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..core import bound as sensitivity
from ..core.bound import Bound
from ..core.errors import need
from ..core.promise import Promise
from ..core.sums import Facts, Sum
from ..errors import InputError
from ..facts import Cells, RowLayout

RECORDS = Promise(1.0, 0.5)  # whatever it costs: bounds are of records
GRID_BITS = 30  # a row's largest coordinate is below 2^30 grid units: see rows.MOST_ROWS


def _weights_array(weights: object) -> Floats:
    """(models, outputs, 1 + width), from (1 + width,), (outputs, 1 + width) or itself."""
    try:
        array = np.array(weights, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        array = np.empty((0,) * 4)
    array.setflags(write=False)
    shaped = array.ndim in (1, 2, 3) and array.size > 0
    need(
        shaped and np.isfinite(array).all(),
        "finite weights of shape (1 + width,), (classes, 1 + width) or (models, classes, 1 + width)",
        of="weights",
        got="NaN or infinite values" if shaped else array.shape,
        fix="The intercept comes first, then numbers, then the categories of each coded feature.",
    )
    return array.reshape((1,) * (3 - array.ndim) + array.shape)


@dataclass(frozen=True, eq=False)
class Linear:
    """One linear model, or several side by side, as questions ask about them.

    `weights`: (1 + width,) for two classes (the score of the second), (classes, 1 + width) for
    several, with a leading axis for many models. The intercept comes first. `sharpness` multiplies
    scores before the soft decision (1 over the temperature).
    """

    weights: Any
    sharpness: float = 1.0
    array: Floats = field(init=False, repr=False)
    many: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _checks.normalise(self, array=_weights_array(self.weights), many=np.ndim(self.weights) == 3)
        _checks.normalise(self, sharpness=_checks.positive(sharpness=self.sharpness))

    def at(self, weights: Floats) -> Linear:
        """The same model at other weights, of the same shape: a round of a run."""
        array = np.array(weights, np.float64, order="C")
        # whatever is wrong is said there
        if array.shape != np.shape(self.weights) or not np.vdot(array, array) < np.inf:
            return Linear(weights, self.sharpness)
        array.setflags(write=False)
        other = object.__new__(Linear)
        other.__dict__.update(self.__dict__, weights=array, array=array.reshape(self.array.shape))
        return other

    @property
    def models(self) -> int:
        """How many models."""
        return int(self.array.shape[0])

    @property
    def outputs(self) -> int:
        """1 for two classes, else the number of classes."""
        return int(self.array.shape[1])

    def check(self, layout: RowLayout, *, classification: bool = True) -> None:
        """The weights fit the rows."""
        classes = need_classes(layout, "a question about classes") if classification else 1
        outputs = 1 if classes <= 2 else classes
        if self.array.shape[1:] != (outputs, 1 + layout.width):
            raise InputError.expected(
                f"weights of shape ({outputs}, {1 + layout.width}) a model",
                of="weights",
                got=self.array.shape[1:],
                remedy=(
                    "One line of weights for two classes or a number, else one a class; the "
                    "intercept first."
                ),
            )


@dataclass(frozen=True, slots=True)
class Scale:
    """A bound on the grid, and the grid: totals are integers times 2^-exponent."""

    bound: Bound
    exponent: int
    slack: float = 0.0  # how much of a row's norm may be rounding to the grid, relative to the norm

    @property
    def unit(self) -> float:
        """One step of the grid."""
        return math.ldexp(1.0, -self.exponent)


def of_person(scale: Scale, rows: int) -> Scale:
    """The scale of a person with at most so many rows, of one of a row (theory.md#units)."""
    if rows == 1:
        return scale
    return replace(scale, bound=sensitivity.of_person(scale.bound, rows))


def gridded(bound: Bound, coordinates: int, bits: int = GRID_BITS) -> Scale:
    """The grid on which one row's norm is below 2^bits steps, and the bound enlarged by its
    rounding."""
    exponent = bits - math.frexp(max(bound.norm, math.ldexp(1.0, -900)))[1]
    rounded = sensitivity.on_grid(bound, math.ldexp(1.0, -exponent), coordinates)
    return Scale(rounded, exponent, (rounded.diameter - bound.diameter) / rounded.norm)


class Defaults:
    """What a question may have, and what stands there where it has none.

    A field of such a name that must be given is declared `= field()`, else a dataclass takes what
    stands here for its default.
    """

    model: Any = None
    cells: Cells | None = None
    group: int | None = None
    copies: int | None = None
    clip: float | None = None
    by_label: bool = False
    decisions: str = ""
    attached: Any = None


@dataclass(frozen=True, eq=False)
class Question(Defaults):
    """What is asked of every row. Abstract."""

    name: ClassVar[str] = ""
    columns: ClassVar[frozenset[str]] = frozenset({"features"})

    @property
    def reads(self) -> frozenset[str]:
        """Among "features", "label", "sensitive"."""
        return self.columns | ({"sensitive"} if self.cells is not None else set())

    @property
    def models(self) -> int:
        """How many models are asked about; each is a release of its own, with its own noise."""
        return 1

    @property
    def per_row(self) -> int:
        """How many cells one row is in."""
        return 1 if self.cells is None else self.cells.per_row

    @property
    def within(self) -> float:
        """How far one row moves the sum within its cell, in units of the norm (for noise that
        differs by cell)."""
        return 2.0

    @property
    def why(self) -> str:
        """Where the bound comes from, in words for the statement."""
        raise NotImplementedError

    @property
    def clipped_to(self) -> float | None:
        """The number of a caller's that bounds each row's contribution; None where the question
        alone does."""
        return self.clip

    @property
    def has_cells(self) -> bool:
        """Whether the first axis of the answer is disjoint cells, each of which only its own rows
        move."""
        return self.cells is not None and self.group is None and self.per_row == 1

    @cached_property
    def key(self) -> tuple[Hashable, ...]:
        """All that shape, price and bound depend on: every field, arrays by their shape alone."""
        return (
            type(self),
            *[_form(getattr(self, name)) for name in _public_fields(cast(Hashable, type(self)))],
        )

    def again(self, **values: object) -> Self:
        """The same question with other values for fields that its key does not depend on; the
        caller has checked that."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, key=self.key, **values)
        return other

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        """The shape of one model's answer."""
        raise NotImplementedError

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        """The trusted room's sum that it asks for, whose bound is in the norm of this order."""
        raise TypeError(f"the curator does not know how to total {type(self).__name__}")

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        """Bound and grid when records are private: from the question and public constants alone.

        `cap`: the largest sample weight, or None when every row counts once.
        """
        one = self.sum(Facts(layout, RECORDS, cap), order)
        return Scale(one.bound, one.exponent, one.slack)

    def scale_of_change(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        """The same when sensitive features alone may change, where that is a constant
        (`public_scale.needs_rows` is false)."""
        return self.scale(layout, cap, order)


@lru_cache(maxsize=64)
def _public_fields(kind: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cast(Any, kind)) if not field.name.startswith("_"))


def _form(value: object) -> Hashable:
    if type(value) is Linear:
        return value.array.shape, value.many, value.sharpness
    if isinstance(value, np.ndarray):
        return cast(Hashable, value.shape)
    if isinstance(value, Question):  # one inside another
        return value.key
    if hasattr(value, "form"):  # a network: all but its parameters
        return cast(Hashable, value.form)
    return value


@dataclass(frozen=True, eq=False)
class OwnJob(Question):
    """A question that totals its rows itself, outside the kernels: user code, and models made
    elsewhere. Abstract."""

    def job(
        self, scale: Scale, layout: RowLayout
    ) -> Callable[[Any, int, int], tuple[npt.NDArray[np.int64], ...]]:
        """A function of (block, a, b) that totals rows a to b, in grid units."""
        raise NotImplementedError


def need_order_two(order: int, name: str) -> None:
    if order != 2:
        raise InputError.expected(
            "Gaussian noise",
            of=name,
            got="Laplace noise, whose L1 bound this question does not have",
            remedy="Laplace noise suits counts; ask this question with Gaussian noise.",
        )


def need_classes(layout: RowLayout, name: str) -> int:
    """How many classes the labels have; an error when they are numbers, or none."""
    if layout.classes is None:
        raise InputError.expected(
            "rows with class labels",
            of=name,
            got="numeric targets or none",
            remedy="Give classes to the rows.",
        )
    return len(layout.classes)


def check_group(cells: Cells | None, group: object) -> int | None:
    """The number of one cell among cells that do not overlap; None stays None."""
    if group is None:
        return None
    if cells is None or cells.mode != "product":
        remedy = "Use product cells, or ask about all cells."
        raise InputError.expected("cells that do not overlap", of="group", got=cells, remedy=remedy)
    number = _checks.whole(at_least=0, group=group)
    if number >= cells.count:
        remedy = "Cells are numbered in the order of their keys."
        raise InputError.expected(
            f"a number below {cells.count}", of="group", got=number, remedy=remedy
        )
    return number


def comes_or_goes(scale: Scale) -> Scale:
    """Where a row's contribution is one that is fixed, or none: a change moves the total no further
    than one contribution."""
    bound = scale.bound
    return Scale(
        Bound(bound.norm, min(bound.diameter, bound.norm), bound.order), scale.exponent, scale.slack
    )


def cell_count(cells: Cells | None) -> int:
    """How many cells; one when the whole population is meant."""
    return 1 if cells is None else cells.count
