"""Questions about gradients of linear models: clipped row by row, with costs of predictions beside
the loss."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core import sums
from ...core.sums import Facts, Sum, parted
from ...errors import InputError
from ...facts import Cells, RowLayout
from ..question import Linear, Question, cell_count, need_classes, need_order_two
from . import cell_weights as by_cell
from .of_models import same_form

GRADIENT_LOSSES = ("log", "squared", "none")


def finite_costs(costs: object) -> Floats:
    """A copy of costs, which nobody can change, checked."""
    copied = np.array(costs, np.float64)
    copied.setflags(write=False)
    # One product finds nearly every table finite; only where it overflows each number is looked at.
    if not np.vdot(copied, copied) < np.inf and not np.isfinite(copied).all():
        remedy = "Floor the counts that divide them."
        raise InputError.expected("finite costs", of="cell_costs", got="NaN or inf", remedy=remedy)
    return copied


def weights_of_models(weights: object, models: int) -> Floats:
    """A copy of weights of the loss, one a model, which nobody can change, checked."""
    array = np.array(weights, np.float64)
    # The common case, without arrays of booleans: it is checked in every round.
    alone = models == 1 and array.shape == (1,) and 0.0 <= array[0] < np.inf
    if not alone and (
        array.shape != (models,) or not (array >= 0).all() or not (array < np.inf).all()
    ):
        remedy = "Give one weight of the loss for each model."
        raise InputError.expected(
            f"{models} numbers of at least 0", of="loss_weight", got=array.shape, remedy=remedy
        )
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class GradientSum(Question):
    """The sum over rows of gradients of loss and prediction costs, each clipped to norm `clip`.

    A row's objective is loss_weight x loss + sum_k cell_costs[cell, label, k] x softmax(sharpness x
    score)_k. `loss_weight`: a number, or an array (models,) of numbers, which like weights and
    costs may change from round to round. Shape (outputs, 1 + width). A linear model's gradient in
    one row is residual x row, so its norm is |residual| |row| and no gradient of a row is ever
    built. `loss`: "log" (the score's own log loss), "squared" (half the squared error, so that the
    residual is score - target: `GroupLosses` has the whole square) or "none". `cell_costs`: (cells,
    labels or 1, classes), with a leading model axis where the model has one; what a Lagrangian of
    prediction rates costs one row in that cell with that label. `cell_weights`: (cells,) or
    (models, cells), of any sign: a row's loss counts loss_weight x the sum of its cells' weights
    (see `cell_weights`). `clip` bounds the norm of one row's whole gradient, costs included. Where
    rows are public it may be None, and it clips the part that reads groups alone: the rest of
    the loss is exact there, and its rows' gradients are clipped to `loss_clip`, if at all.
    """

    name: ClassVar[str] = "gradient sum"
    columns: ClassVar[frozenset[str]] = frozenset({"features", "label"})
    model: Linear = field()
    clip: float | None = None
    cells: Cells | None = None
    cell_costs: Floats | None = None
    loss: str = "log"
    loss_weight: Any = 1.0
    cell_weights: Floats | None = None
    loss_clip: float | None = None
    # what `costs` made, to make it once
    _costs: list[Floats] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.loss not in GRADIENT_LOSSES:
            _checks.one_of(GRADIENT_LOSSES, loss=self.loss)
        if self.clip is not None:
            _checks.positive(clip=self.clip)
        if self.loss_clip is not None:
            _checks.positive(loss_clip=self.loss_clip)
        if isinstance(self.loss_weight, np.ndarray):
            _checks.normalise(self, loss_weight=weights_of_models(self.loss_weight, self.models))
        else:
            _checks.non_negative(loss_weight=self.loss_weight)
        if self.cell_costs is not None:
            _checks.normalise(self, cell_costs=finite_costs(self.cell_costs))
        if self.cell_weights is not None:
            if self.loss == "none":
                remedy = 'Leave cell_weights out, or ask for the loss: loss="log".'
                raise InputError.expected(
                    "a loss to weigh", of="cell_weights", got='loss="none"', remedy=remedy
                )
            _checks.normalise(
                self, cell_weights=by_cell.checked(self.cell_weights, self.models, self.cells)
            )

    def at(
        self,
        model: Linear,
        cell_costs: object = None,
        loss_weight: object = None,
        cell_weights: object = None,
    ) -> GradientSum:
        """The same question about other weights, costs and weights of the loss, of the same shapes:
        a round of a run."""
        costs = None if cell_costs is None else finite_costs(cell_costs)
        cell_weights = (
            None if cell_weights is None else by_cell.checked(cell_weights, self.models, self.cells)
        )
        for name, before, now in (
            ("cell_costs", self.cell_costs, costs),
            ("cell_weights", self.cell_weights, cell_weights),
        ):
            old, new = (None if array is None else array.shape for array in (before, now))
            if new != old:
                remedy = "Make a new GradientSum."
                raise InputError.expected(f"shape {old}", of=name, got=new, remedy=remedy)
        changed: dict[str, object] = {
            "model": same_form(self.model, model),
            "cell_costs": costs,
            "cell_weights": cell_weights,
            "_costs": [],
        }
        if loss_weight is None:
            return self.again(**changed)
        if not isinstance(self.loss_weight, np.ndarray):
            remedy = "Make the first GradientSum with an array."
            raise InputError.expected(
                "a number, as before", of="loss_weight", got="an array", remedy=remedy
            )
        return self.again(**changed, loss_weight=weights_of_models(loss_weight, self.models))

    def parted(self) -> tuple[GradientSum, GradientSum]:
        """Two questions whose answers add up to this one's: what no change of groups moves, and the
        rest."""
        # The clip of the whole would hang on the group: the part that reads none has one of its
        # own, or none.
        common = replace(self, cells=None, cell_costs=None, cell_weights=None, clip=self.loss_clip)
        if self.cell_weights is None:
            return common, replace(self, loss="none")
        shared, rest = parted(self.cell_weights, self.cells)
        return replace(common, cell_weights=shared), replace(self, cell_weights=rest)

    def of_everybody(self) -> GradientSum:
        """The part that no change of groups moves, where rows are public."""
        return replace(self, cells=None, cell_costs=None, clip=self.loss_clip)

    @property
    def loss_weights(self) -> Floats:
        """The weight of the loss, a number a model."""
        return (
            self.loss_weight
            if isinstance(self.loss_weight, np.ndarray)
            else np.full(self.models, float(self.loss_weight))
        )

    @property
    def why(self) -> str:
        return f"gradients are clipped to norm {self.clip:g}"

    @property
    def reads(self) -> frozenset[str]:
        groups = {"sensitive"} if self.reads_cells and self.cells is not None else set()
        label = {"label"} if self.loss != "none" or self.cost_labels > 1 else set()
        return frozenset({"features"} | groups | label)

    @property
    def reads_cells(self) -> bool:
        """Whether anything in it differs by cell."""
        return self.cell_costs is not None or self.cell_weights is not None

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
            raise InputError.expected(
                "log loss, or none, beside costs of predictions",
                of="GradientSum.loss",
                got="squared",
                remedy="A regression has no predicted classes to cost.",
            )
        if self.cell_costs is not None:
            self.costs(layout)
        return (self.model.outputs, 1 + layout.width)

    def costs(self, layout: RowLayout) -> Floats:
        """The costs as the kernels take them: (models, cells x labels, outputs), two classes as the
        difference."""
        if self._costs:
            return self._costs[0]
        given = self.cell_costs
        # the common case
        if (
            given is not None
            and self.model.array.shape[:2] == (1, 1)
            and layout.classes is not None
        ):
            count = cell_count(self.cells)
            if len(layout.classes) == 2 and given.shape in ((count, 1, 2), (count, 2, 2)):
                self._costs.append((given[..., 1] - given[..., 0]).reshape(1, -1, 1))
                return self._costs[0]
        classes = need_classes(layout, self.name)
        costs = (
            np.zeros((cell_count(self.cells), 1, classes))
            if self.cell_costs is None
            else self.cell_costs
        )
        if costs.ndim == 3:
            costs = np.broadcast_to(costs, (self.models, *costs.shape))
        wanted = (self.models, cell_count(self.cells))
        if (
            costs.ndim != 4
            or costs.shape[:2] != wanted
            or costs.shape[2] not in (1, classes)
            or costs.shape[3] != classes
        ):
            raise InputError.expected(
                (
                    f"shape ({wanted[1]}, {classes} or 1, {classes}), with {self.models} "
                    f"models in front if many"
                ),
                of="cell_costs",
                got=costs.shape,
                remedy="One cost for each cell, true label (or 1 for all) and predicted class.",
            )
        if self.model.outputs == 1:
            # With one score only the difference counts: p costs_1 + (1 - p) costs_0.
            costs = costs[..., 1:2] - costs[..., 0:1]
        self._costs.append(np.ascontiguousarray(costs.reshape(self.models, -1, costs.shape[-1])))
        return self._costs[0]

    @property
    def cost_labels(self) -> int:
        """How many labels the costs distinguish."""
        return 1 if self.cell_costs is None else int(self.cell_costs.shape[-2])

    def coordinates(self, layout: RowLayout) -> int:
        """How many coordinates of one row's gradient can be nonzero."""
        return self.model.outputs * (1 + layout.numbers + len(layout.code_sizes))

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        need_order_two(order, self.name)
        row = (self.clip, self.cells, self.cell_costs, self.loss, self.loss_weights)
        how = (self.model.sharpness, self.cell_weights)
        return sums.gradient(facts, self.model.array, *row, *how)
