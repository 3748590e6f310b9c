"""Questions about neural networks: clipped gradient sums and histograms of predictions. See
`question` for how questions work.

User code was trusted: that each row's output depends on that row alone. What is checked is in
`models.torch_network`; what is enforced here is the norm of each row's contribution, on the grid on
which it is summed.

Guarantees (tests/curator/test_curator_networks.py):
1. No neighbour moves a total further than `scale` says, under every relation; totals are whole
   numbers of grid steps, added exactly, in any order, split or chunk. A row's own contribution is
   computed by torch in float32, and is a function of that row, the parameters and public constants
   (`torch_gradient`, guarantee 1), as far as trials on made-up rows can show. Each row whose bits
   hung on a neighbour all the same could move a sum by two clips: the statement says so.
2. Loss and costs are one number a row, and its whole gradient, over all trainable parameters, is
   clipped to `clip`.
3. A row whose output or gradient is not finite, or for which the user's code fails, contributes
   zero, and nobody is told before the run has ended.
4. A question without a clip is answered only where the answer is free.
5. Under a guarantee for persons the same holds of a person's sum of clipped gradients, in whatever
   chunks their rows lie (tests/curator/test_curator_person_networks.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ... import _checks
from ..._types import Floats
from ...core import bound as sensitivity
from ...core.bound import Bound
from ...core.sums import Facts, Sum, decisions
from ...errors import InputError, MissingBoundError
from ...facts import Cells, RowLayout
from ..question import Question, Scale, cell_count, need_classes, need_order_two
from ..quiet import Troubles
from .gradients import finite_costs, weights_of_models
from .histograms import DecisionHistogram

if TYPE_CHECKING:
    from ...models.torch_network import Skeleton

# a row's gradient is below 2^37 grid steps: finer than elsewhere, for products of two rounded
# numbers
ROW_BITS = 36
# the norm to which gradients are clipped where no privacy asks for a clip: they must stay on a
# grid
LARGEST = 2.0**20
LOSSES = ("log", "none")


@dataclass(frozen=True, eq=False)
class Network:
    """One network, as questions ask about it: its skeleton and a flat vector of its trainable
    parameters.

    `skeleton`: `fairveil.models.Skeleton.of(module, width, classes)`. `sharpness` multiplies logits
    before the soft decision. Two questions about the same `Network` object in one answer share one
    pass.
    """

    skeleton: Skeleton
    parameters: Any
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        _checks.normalise(self, parameters=self.skeleton.check_parameters(self.parameters))
        _checks.normalise(self, sharpness=_checks.positive(sharpness=self.sharpness))

    @property
    def form(self) -> tuple[Skeleton, float]:
        """What a question's price may depend on."""
        return self.skeleton, self.sharpness

    @property
    def many(self) -> bool:
        """Networks are asked about one by one."""
        return False

    @property
    def outputs(self) -> int:
        """1 for two classes, else the number of classes."""
        return self.skeleton.outputs

    def check(self, layout: RowLayout) -> None:
        """The network fits the rows."""
        classes = need_classes(layout, "a question about a network")
        for of, got, wanted in (
            ("width of the network", self.skeleton.width, layout.width),
            ("classes of the network", self.skeleton.classes, classes),
        ):
            if got != wanted:
                remedy = (
                    "Make the skeleton for these rows: Skeleton.of(module, layout.width, "
                    "len(layout.classes))."
                )
                raise InputError.expected(
                    f"{wanted}, as the rows have", of=of, got=got, remedy=remedy
                )


def _same_form(one: Network, other: Network) -> Network:
    if other.form != one.form:
        remedy = "Make a new question."
        raise InputError.expected(
            "parameters of the same network", of="model", got=str(other), remedy=remedy
        )
    return other


@dataclass(frozen=True, eq=False)
class NetworkHistogram(DecisionHistogram):
    """How a network's predictions fall in each cell (and label): see `DecisionHistogram`.

    Two classes have one output, the second's, whatever the width of the module's own.
    """

    name: ClassVar[str] = "prediction histogram of a network"
    model: Network = field()
    # the asking curator's own, kept until the run has ended
    _troubles: Troubles = field(default_factory=Troubles, repr=False)

    def at(self, model: Network) -> NetworkHistogram:
        """The same question about other parameters."""
        return self.again(model=_same_form(self.model, model))

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        # Bound and grid of decisions, whatever decides; `network_pass` totals them.
        none = np.zeros((self.model.outputs, 1 + facts.layout.width))
        how = (self.cells, self.by_label, self.decisions)
        return decisions(facts, none, *how, order=order)


@dataclass(frozen=True, eq=False)
class NetworkGradient(Question):
    """The sum over rows of gradients with respect to the flat parameters, each clipped to norm
    `clip` as a whole.

    A row's objective is one number: loss_weight x cross-entropy + sum_k cell_costs[cell, label, k]
    x softmax(sharpness x logits)_k, costs summed over the row's cells where groups are marginal.
    `cell_costs`: (cells, labels or 1, classes). `loss_weight`: a number, or an array (1,), which
    may change from round to round. Shape (parameters,).

    Signed vectors: norm clip, difference 2 clip (theory.md#signed), under sensitive features alone
    too, where the caller asks for the centred costs' part by itself (`loss="none"`), and for the
    loss's, which is free, in a question of its own. `clip=None` is for what is free; gradients
    longer than 2^20 are clipped to that even then, to stay on a grid.
    """

    name: ClassVar[str] = "gradient sum of a network"
    columns: ClassVar[frozenset[str]] = frozenset({"features", "label"})
    model: Network = field()
    clip: float | None = None
    cells: Cells | None = None
    cell_costs: Any = None
    loss: str = "log"
    loss_weight: Any = 1.0
    # the asking curator's own, kept until the run has ended
    _troubles: Troubles = field(default_factory=Troubles, repr=False)

    def __post_init__(self) -> None:
        _checks.one_of(LOSSES, loss=self.loss)
        if self.clip is not None:
            _checks.positive(clip=self.clip)
        if isinstance(self.loss_weight, np.ndarray):
            _checks.normalise(self, loss_weight=weights_of_models(self.loss_weight, 1))
        else:
            _checks.normalise(self, loss_weight=_checks.non_negative(loss_weight=self.loss_weight))
        if self.cell_costs is not None:
            _checks.normalise(self, cell_costs=finite_costs(self.cell_costs))

    def at(
        self, model: Network, cell_costs: object = None, loss_weight: object = None
    ) -> NetworkGradient:
        """The same question about other parameters, costs and weights of the loss, of the same
        shapes: a round of a run."""
        costs = None if cell_costs is None else finite_costs(cell_costs)
        old, new = (None if array is None else array.shape for array in (self.cell_costs, costs))
        if new != old:
            remedy = "Make a new NetworkGradient."
            raise InputError.expected(f"shape {old}", of="cell_costs", got=new, remedy=remedy)
        if loss_weight is None:
            return self.again(model=_same_form(self.model, model), cell_costs=costs)
        if not isinstance(self.loss_weight, np.ndarray):
            remedy = "Make the first NetworkGradient with an array."
            raise InputError.expected(
                "a number, as before", of="loss_weight", got="an array", remedy=remedy
            )
        weight = weights_of_models(loss_weight, 1)
        return self.again(model=_same_form(self.model, model), cell_costs=costs, loss_weight=weight)

    @property
    def why(self) -> str:
        return (
            "gradients are public"
            if self.clip is None
            else f"gradients are clipped to norm {self.clip:g}"
        )

    @property
    def reads(self) -> frozenset[str]:
        costs = {"sensitive"} if self.cell_costs is not None and self.cells is not None else set()
        label = {"label"} if self.loss != "none" or self.cost_labels > 1 else set()
        return frozenset({"features"} | costs | label)

    @property
    def per_row(self) -> int:
        return 1  # one vector a row, however many cells it reads its costs from

    @property
    def has_cells(self) -> bool:
        return False

    @property
    def cost_labels(self) -> int:
        """How many labels the costs distinguish."""
        return 1 if self.cell_costs is None else int(self.cell_costs.shape[-2])

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        self.model.check(layout)
        classes = need_classes(layout, self.name)
        costs, cells = self.cell_costs, cell_count(self.cells)
        if costs is not None and costs.shape not in (
            (cells, 1, classes),
            (cells, classes, classes),
        ):
            expected = f"shape ({cells}, {classes} or 1, {classes})"
            remedy = "One cost for each cell, true label (or 1 for all) and predicted class."
            raise InputError.expected(expected, of="cell_costs", got=costs.shape, remedy=remedy)
        return (self.model.skeleton.size,)

    @property
    def costs(self) -> Floats | None:
        """The costs by (cells x labels, outputs); of two classes the second's beyond the
        first's."""
        if self.cell_costs is None:
            return None
        table = (
            self.cell_costs[..., 1:] - self.cell_costs[..., :1]
            if self.model.outputs == 1
            else self.cell_costs
        )
        return np.ascontiguousarray(table.reshape(-1, self.model.outputs))

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        need_order_two(order, self.name)
        if self.clip is None:
            remedy = "Pass clip=1.0, for example; it is a public choice, never read from the rows."
            expected = "a clip: the largest norm of one row's gradient"
            raise MissingBoundError.expected(
                expected, of="NetworkGradient.clip", got=None, remedy=remedy
            )
        return self._scale(self.clip, cap)

    def scale_of_change(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        return self.scale(layout, cap, order) if "sensitive" in self.reads else self.free_scale(cap)

    def free_scale(self, cap: float | None) -> Scale:
        """The grid where nobody can move the answer, whose rows need no rounding then. Without a
        clip: see `LARGEST`."""
        scale = self._scale(LARGEST if self.clip is None else self.clip, cap)
        return Scale(Bound(scale.bound.norm, 0.0), scale.exponent, scale.slack)

    def _scale(self, clip: float, cap: float | None) -> Scale:
        """A grid of 2^36 to 2^37 steps to the longest contribution; what rounding to it adds is in
        the bound."""
        from ..kernels.torch_gradient import engine

        limit = clip * (cap or 1.0)
        exponent = ROW_BITS - math.frexp(limit)[1]
        slack = engine(self.model.skeleton).rounding * math.ldexp(1.0, -exponent)
        bound = sensitivity.of_signed(limit * (1.0 + 2.0**-28) + slack)
        return Scale(bound, exponent, 2.0 * slack / bound.norm)
