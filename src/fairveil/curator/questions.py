"""The kinds of bounded questions: what one row contributes, how large at most, and which columns it reads.

A question is a small frozen object that holds public or released values only. Its bound is made here, from the same clip that
the kernels apply, and rounded outwards: `Scale` says how far one row moves the total *on the grid* on which it is summed.
Answers have the shape (cells[, labels], ...), with a leading model axis where the weights have one.

Guarantees (tests/curator/test_curator_sensitivity.py, enumerated and random neighbours, under every relation):
1. No neighbour moves the total of one model further than `scale(...).bound.sensitivity(relation)`.
2. With sensitive features alone protected, the same holds for `public_scale.of(...)`, whose maxima run over the public rows
   and over every pair of the *listed* groups, observed or not.
3. A question that does not read a protected column is moved by no neighbour at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..errors import InputError, MissingBoundError, complaint
from ..facts import Cells, RowLayout
from ..privacy import sensitivity
from ..privacy.sensitivity import Bound

GRID_BITS = 30  # a row's largest coordinate is below 2^30 grid units: see rows.MOST_ROWS
Floats = npt.NDArray[np.float64]
LOSSES = ("log", "squared", "zero-one")


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


def gridded(bound: Bound, coordinates: int, bits: int = GRID_BITS) -> Scale:
    """The grid on which one row's norm is below 2^bits steps, and the bound enlarged by its rounding."""
    exponent = bits - math.frexp(max(bound.norm, math.ldexp(1.0, -900)))[1]
    rounded = sensitivity.on_grid(bound, math.ldexp(1.0, -exponent), coordinates)
    return Scale(rounded, exponent, (rounded.spread - bound.spread) / rounded.norm)


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of every row. Abstract."""

    name: ClassVar[str] = ""
    columns: ClassVar[frozenset[str]] = frozenset({"features"})

    @property
    def reads(self) -> frozenset[str]:
        """Among "features", "label", "sensitive"."""
        cells = getattr(self, "cells", None)
        return self.columns | ({"sensitive"} if cells is not None else set())

    @property
    def models(self) -> int:
        """How many models are asked about; each is a release of its own, with its own noise."""
        return 1

    @property
    def per_row(self) -> int:
        """How many cells one row is in."""
        cells: Cells | None = getattr(self, "cells", None)
        return 1 if cells is None else cells.per_row

    @property
    def within(self) -> float:
        """How far one row moves the sum within its cell, in units of the norm (for noise that differs by cell)."""
        return 2.0

    @property
    def has_cells(self) -> bool:
        """Whether the first axis of the answer is disjoint cells, each of which only its own rows move."""
        return getattr(self, "cells", None) is not None and self.per_row == 1

    @property
    def key(self) -> tuple[Hashable, ...]:
        """All that shape, price and bound depend on: every field, arrays by their shape alone."""
        return (type(self), *(_form(getattr(self, field.name)) for field in fields(self)))

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        """The shape of one model's answer."""
        raise NotImplementedError

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        """Bound and grid when records are private: from the question and public constants alone.

        `cap`: the largest sample weight, or None when every row counts once.
        """
        raise NotImplementedError


def _form(value: Any) -> Hashable:
    if isinstance(value, Linear):
        return value.array.shape, value.many, value.sharpness
    if isinstance(value, np.ndarray):
        return tuple(value.shape)
    return None if isinstance(value, list) else cast(Hashable, value)


@dataclass(frozen=True, eq=False)
class OwnJob(Question):
    """A question that totals its rows itself, outside the kernels: user code, and models made elsewhere. Abstract."""

    def job(self, scale: Scale, layout: RowLayout) -> Callable[[Any, int, int], tuple[npt.NDArray[np.int64], ...]]:
        """A function of (block, a, b) that totals rows a to b, in grid units."""
        raise NotImplementedError


def _need_order_two(order: int, name: str) -> None:
    if order != 2:
        raise InputError(
            complaint(
                expected="Gaussian noise",
                of=name,
                got="Laplace noise, whose L1 bound this question does not have",
                remedy="Laplace noise suits counts; ask this question with Gaussian noise.",
            )
        )


def need_classes(layout: RowLayout, name: str) -> int:
    """How many classes the labels have; an error when they are numbers, or none."""
    if layout.classes is None:
        raise InputError(
            complaint(
                expected="rows with class labels", of=name, got="numeric targets or none", remedy="Give classes to the rows."
            )
        )
    return len(layout.classes)


def cell_count(cells: Cells | None) -> int:
    """How many cells; one when the whole population is meant."""
    return 1 if cells is None else cells.count


@dataclass(frozen=True, eq=False)
class RowCount(Question):
    """How many rows there are (the sum of weights). Reads nothing but membership, which replace-one does not change."""

    name: ClassVar[str] = "row count"
    columns: ClassVar[frozenset[str]] = frozenset()

    @property
    def within(self) -> float:
        return 1.0

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        return (1,)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        if cap is None:
            return Scale(Bound(1.0, 0.0, order), 0)
        return gridded(Bound(cap, cap, order), 1)


@dataclass(frozen=True, eq=False)
class CellCounts(Question):
    """How many rows each cell (and label) holds: shape (cells,) or (cells, labels). PRIVACY 8.2: 1, sqrt 2, sqrt 2."""

    name: ClassVar[str] = "cell counts"
    cells: Cells | None = None
    by_label: bool = False

    @property
    def reads(self) -> frozenset[str]:
        return frozenset((["sensitive"] if self.cells is not None else []) + (["label"] if self.by_label else []))

    @property
    def within(self) -> float:
        return math.sqrt(2) if self.by_label else 1.0

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        return (cell_count(self.cells), *labels)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        bound = sensitivity.of_histogram(cap or 1.0, self.per_row, order)
        if self.cells is None and not self.by_label:
            return RowCount().scale(layout, cap, order)
        return Scale(bound, 0) if cap is None else gridded(bound, self.per_row)


def _weights_array(weights: Any) -> Floats:
    """(models, outputs, 1 + width), from (1 + width,), (outputs, 1 + width) or itself."""
    array = np.ascontiguousarray(weights, dtype=np.float64)
    if array.ndim not in (1, 2, 3) or not np.isfinite(array).all():
        raise InputError(
            complaint(
                expected="finite weights of shape (1 + width,), (classes, 1 + width) or (models, classes, 1 + width)",
                of="weights",
                got=f"shape {array.shape}" if array.ndim not in (1, 2, 3) else "NaN or infinite values",
                remedy="The intercept comes first, then numbers, then the categories of each coded feature.",
            )
        )
    return array.reshape((1,) * (3 - array.ndim) + array.shape)


@dataclass(frozen=True, eq=False)
class Linear:
    """One linear model, or several side by side, as questions ask about them.

    `weights`: (1 + width,) for two classes (the score of the second), (classes, 1 + width) for several, with a leading axis for
    many models. The intercept comes first. `sharpness` multiplies scores before the soft decision (1 over the temperature).
    """

    weights: Any
    sharpness: float = 1.0
    array: Floats = field(init=False, repr=False)
    many: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "array", _weights_array(self.weights))
        object.__setattr__(self, "many", np.ndim(self.weights) == 3)
        object.__setattr__(self, "sharpness", _checks.positive(sharpness=self.sharpness))

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
            raise InputError(
                complaint(
                    expected=f"weights of shape ({outputs}, {1 + layout.width}) a model",
                    of="weights",
                    got=self.array.shape[1:],
                    remedy="One line of weights for two classes or a number, else one a class; the intercept first.",
                )
            )


@dataclass(frozen=True, eq=False)
class PredictionHistogram(Question):
    """How a model's predictions fall in each cell (and label): shape (cells[, labels], outputs).

    `decisions="hard"`: one for the predicted class; `"soft"`: softmax(sharpness x score). Two classes have one output, the
    second's. PRIVACY 7: the row of one person has L2 norm at most 1; it moves by at most sqrt 2.
    """

    name: ClassVar[str] = "prediction histogram"
    model: Linear
    cells: Cells | None = None
    decisions: str = "hard"
    by_label: bool = False

    def __post_init__(self) -> None:
        _checks.one_of(("hard", "soft"), decisions=self.decisions)

    @property
    def reads(self) -> frozenset[str]:
        return (super().reads | {"label"}) if self.by_label else super().reads

    @property
    def models(self) -> int:
        return self.model.models

    @property
    def within(self) -> float:
        return math.sqrt(2) if self.by_label or self.model.outputs > 1 else 1.0

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        self.model.check(layout)
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        return (cell_count(self.cells), *labels, self.model.outputs)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        bound = sensitivity.of_histogram(cap or 1.0, self.per_row, order)
        if self.cells is None and not self.by_label and self.model.outputs == 1:
            bound = Bound(bound.norm, bound.norm, order)
        if self.decisions == "hard" and cap is None:
            return Scale(bound, 0)
        return gridded(bound, self.per_row * self.model.outputs)


@dataclass(frozen=True, eq=False)
class GradientSum(Question):
    """The sum of clipped gradients of loss_weight x loss + sum_k cell_costs[cell, label, k] x softmax(sharpness x score)_k.

    Shape (outputs, 1 + width). A linear model's gradient in one row is residual x row, so its norm is |residual| |row| and no
    gradient of a row is ever built (SPEED, point 1). `cell_costs`: (cells, labels or 1, classes), with a leading model axis
    where the model has one; what a Lagrangian of prediction rates costs one row in that cell with that label. `clip` bounds
    the norm of one row's whole gradient, costs included; with public rows it may be None.
    """

    name: ClassVar[str] = "gradient sum"
    columns: ClassVar[frozenset[str]] = frozenset({"features", "label"})
    model: Linear
    clip: float | None = None
    cells: Cells | None = None
    cell_costs: Floats | None = None
    loss: str = "log"
    loss_weight: float = 1.0
    _costs: list[Floats] = field(default_factory=list, init=False, repr=False)  # what `costs` made, to make it once

    def __post_init__(self) -> None:
        _checks.one_of(("log", "squared", "none"), loss=self.loss)
        if self.clip is not None:
            _checks.positive(clip=self.clip)
        _checks.non_negative(loss_weight=self.loss_weight)
        if self.cell_costs is not None:
            object.__setattr__(self, "cell_costs", np.asarray(self.cell_costs, np.float64))
        if self.cell_costs is not None and not np.isfinite(self.cell_costs).all():
            raise InputError(
                complaint(
                    expected="finite costs", of="cell_costs", got="NaN or inf", remedy="Floor the counts that divide them."
                )
            )

    @property
    def reads(self) -> frozenset[str]:
        costs = {"sensitive"} if self.cell_costs is not None and self.cells is not None else set()
        label = {"label"} if self.loss != "none" or self.cost_labels > 1 else set()
        return frozenset({"features"} | costs | label)

    @property
    def models(self) -> int:
        return self.model.models

    @property
    def per_row(self) -> int:
        return 1  # one vector a row, however many cells it reads its costs from

    @property
    def has_cells(self) -> bool:
        return False

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        self.model.check(layout, classification=self.loss != "squared")
        if self.cell_costs is not None and self.loss == "squared":
            raise InputError(
                complaint(
                    expected="log loss, or none, beside costs of predictions",
                    of="GradientSum.loss",
                    got="squared",
                    remedy="A regression has no predicted classes to cost.",
                )
            )
        if self.cell_costs is not None:
            self.costs(layout)
        return (self.model.outputs, 1 + layout.width)

    def costs(self, layout: RowLayout) -> Floats:
        """The costs as the kernels take them: (models, cells x labels, outputs), two classes as the difference."""
        if self._costs:
            return self._costs[0]
        classes = need_classes(layout, self.name)
        costs = np.zeros((cell_count(self.cells), 1, classes)) if self.cell_costs is None else self.cell_costs
        if costs.ndim == 3:
            costs = np.broadcast_to(costs, (self.models, *costs.shape))
        wanted = (self.models, cell_count(self.cells))
        if costs.ndim != 4 or costs.shape[:2] != wanted or costs.shape[2] not in (1, classes) or costs.shape[3] != classes:
            raise InputError(
                complaint(
                    expected=f"shape ({wanted[1]}, {classes} or 1, {classes}), with {self.models} models in front if many",
                    of="cell_costs",
                    got=costs.shape,
                    remedy="One cost for each cell, true label (or 1 for all) and predicted class.",
                )
            )
        if self.model.outputs == 1:
            costs = costs[..., 1:2] - costs[..., 0:1]
        self._costs.append(np.ascontiguousarray(costs.reshape(self.models, -1, costs.shape[-1])))
        return self._costs[0]

    @property
    def cost_labels(self) -> int:
        """How many labels the costs tell apart."""
        return 1 if self.cell_costs is None else int(self.cell_costs.shape[-2])

    def coordinates(self, layout: RowLayout) -> int:
        """How many coordinates of one row's gradient can be nonzero."""
        return self.model.outputs * (1 + layout.numbers + len(layout.code_sizes))

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        _need_order_two(order, self.name)
        if self.clip is None:
            raise MissingBoundError(
                complaint(
                    expected="a clip: the largest norm of one row's gradient",
                    of="GradientSum.clip",
                    got=None,
                    remedy="Pass clip=1.0, say; it is a public choice, never read from the rows.",
                )
            )
        rounding = 1.0 + (layout.width + 32) * 2.0**-52  # of |row| and of the products, far above
        return gridded(sensitivity.of_signed(self.clip * rounding, cap or 1.0), self.coordinates(layout))


@dataclass(frozen=True, eq=False)
class _Clipped(Question):
    """Questions about the row itself, shortened to norm `clip` (the intercept's 1 included)."""

    cells: Cells | None = None
    clip: float | None = None

    def _radius(self, layout: RowLayout) -> float:
        if self.clip is None:
            raise MissingBoundError(
                complaint(
                    expected="a clip: the largest norm of one row, its 1 for the intercept included",
                    of=f"{type(self).__name__}.clip",
                    got=None,
                    remedy="Take it from the bounds that the schema declares, never from the rows.",
                )
            )
        return _checks.positive(clip=self.clip) * (1.0 + (layout.width + 32) * 2.0**-52)

    def _coordinates(self, layout: RowLayout) -> int:
        return 1 + layout.numbers + len(layout.code_sizes)


@dataclass(frozen=True, eq=False)
class FeatureSums(_Clipped):
    """The sum of clipped rows (1, features) in each cell (and label): shape (cells[, labels], 1 + width).

    Within a cell x -> -x moves a sum by 2 R, so replace-one costs 2 R, not sqrt(2) R (PRIVACY 6.2).
    """

    name: ClassVar[str] = "feature sums"
    by_label: bool = False

    @property
    def reads(self) -> frozenset[str]:
        return (super().reads | {"label"}) if self.by_label else super().reads

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        return (cell_count(self.cells), *labels, 1 + layout.width)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        _need_order_two(order, self.name)
        bound = sensitivity.of_signed(self._radius(layout), cap or 1.0, self.per_row)
        return gridded(bound, self.per_row * self._coordinates(layout))


@dataclass(frozen=True, eq=False)
class GramMatrices(_Clipped):
    """The sum of r r' in each cell, r = clipped (1, features[, target]): shape (cells, d, d), symmetric (PRIVACY 3.4).

    Noise is symmetric too: variance s^2 on the diagonal and s^2/2 beside it, which is what the Frobenius norm asks for.
    """

    name: ClassVar[str] = "gram matrices"
    with_target: bool = False

    @property
    def reads(self) -> frozenset[str]:
        return (super().reads | {"label"}) if self.with_target else super().reads

    @property
    def within(self) -> float:
        return math.sqrt(2)

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        d = 1 + layout.width + self.with_target
        return (cell_count(self.cells), d, d)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        _need_order_two(order, self.name)
        bound = sensitivity.of_gram(self._radius(layout), cap or 1.0, self.per_row)
        return gridded(bound, self.per_row * (self._coordinates(layout) + self.with_target) ** 2)


@dataclass(frozen=True, eq=False)
class GroupLosses(Question):
    """The sum of losses, each cut at `clip`, in each cell: shape (cells,). Many candidates at once: the model's leading axis.

    `loss`: "zero-one" (hard decision against label), "log" (the score's own log loss) or "squared". Losses are not negative.
    """

    name: ClassVar[str] = "group losses"
    columns: ClassVar[frozenset[str]] = frozenset({"features", "label"})
    model: Linear
    cells: Cells | None = None
    loss: str = "zero-one"
    clip: float | None = None

    def __post_init__(self) -> None:
        _checks.one_of(LOSSES, loss=self.loss)
        if self.clip is not None:
            _checks.positive(clip=self.clip)

    @property
    def models(self) -> int:
        return self.model.models

    @property
    def within(self) -> float:
        return 1.0

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        self.model.check(layout, classification=self.loss != "squared")
        return (cell_count(self.cells),)

    @property
    def limit(self) -> float:
        """Where losses are cut."""
        if self.loss == "zero-one":
            return 1.0 if self.clip is None else min(1.0, self.clip)
        if self.clip is None:
            raise MissingBoundError(
                complaint(
                    expected="a clip: the largest loss that counts",
                    of="GroupLosses.clip",
                    got=None,
                    remedy=f"Pass clip=5.0, say: {self.loss} losses have no bound of their own.",
                )
            )
        return self.clip

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        bound = sensitivity.of_histogram((cap or 1.0) * self.limit, self.per_row, order)
        if self.cells is None:
            bound = Bound(bound.norm, bound.norm, order)
        if self.loss == "zero-one" and self.limit == 1.0 and cap is None:
            return Scale(bound, 0)
        return gridded(bound, self.per_row)
