"""Questions about neural networks: clipped gradient sums and histograms of predictions, and the
pass that totals them. See `core.questions` for how questions work.

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

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import checks
from ..bound import Bound, of_signed, on_grid
from ..by_cell import ByCell, Weighed
from ..errors import need
from ..kernels import Array
from ..layout import Cells, Floats, Ints, RowLayout
from ..questions import (
    SENSITIVE,
    Facts,
    Kind,
    Question,
    Scale,
    Sum,
    cell_count,
    classes_of,
    floats_of,
    no_clip,
)
from ..quiet import Troubles, quietly
from ..rows import Block, Drawn, Rows
from ..sums import SIMPLEX, added, decisions, reads_of_gradient, whole_steps

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

    skeleton: Any
    parameters: Any
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        checks.normalise(self, parameters=self.skeleton.check_parameters(self.parameters))
        checks.normalise(self, sharpness=checks.positive(sharpness=self.sharpness))

    @property
    def form(self) -> tuple[Any, float]:
        """What a question's price may depend on."""
        return self.skeleton, self.sharpness

    @property
    def outputs(self) -> int:
        """1 for two classes, else the number of classes."""
        return int(self.skeleton.outputs)

    def check(self, layout: RowLayout) -> int:
        """The network fits the rows: how many classes these have."""
        classes = classes_of(layout, "a question about a network")
        for of, got, wanted in (
            ("width of the network", self.skeleton.width, layout.width),
            ("classes of the network", self.skeleton.classes, classes),
        ):
            fix = "Make it for these rows: Skeleton.of(module, layout.width, len(layout.classes))."
            need(got == wanted, f"{wanted}, as the rows have", of=of, got=got, fix=fix)
        return classes


def network_decisions(
    facts: Facts,
    model: Network,
    cells: Cells | None = None,
    decisions: str = "hard",
    by_label: bool = False,
    _troubles: Troubles | None = None,
) -> Sum:
    """How a network's predictions fall in each cell (and label): see `core.sums.decisions`. Two
    classes have one output, the second's, whatever the width of the module's own."""
    model.check(facts.layout)
    # Bound and grid of decisions, whatever decides; `NetworkPass` totals them.
    none = np.zeros((model.outputs, 1 + facts.layout.width))
    one = _decisions(facts, none, cells, decisions, by_label)
    name = "prediction histogram of a network"
    return replace(one, name=name, fused=None, descends=False, maxima=None, total=_elsewhere)


_decisions = decisions


def _elsewhere(run: Any, units: Any) -> Array:
    raise NotImplementedError("a network's rows are totalled by `NetworkPass`")


def network_pass(scales: Sequence[Scale], rows: Rows) -> NetworkPass:
    """The pass that answers one or two questions about one network."""
    most = rows.max_sample_weight if rows.weighted else 1.0
    return NetworkPass(tuple(scales), len(rows.layout.classes or ()), most)


NetworkHistogram = Kind(
    "prediction histogram of a network", network_decisions, SIMPLEX, passes=network_pass
)


def network_gradient(
    facts: Facts,
    model: Network,
    clip: float | None = None,
    cells: Cells | None = None,
    cell_costs: Any = None,
    loss: str = "log",
    loss_weight: Any = 1.0,
    _troubles: Troubles | None = None,
) -> Sum:
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
    classes, count, name = model.check(facts.layout), cell_count(cells), "gradient sum of a network"
    facts.need_order_two(name)
    checks.one_of(LOSSES, loss=loss)
    if clip is not None:
        checks.positive(clip=clip)
    weight = floats_of(loss_weight)
    good = weight.shape in ((), (1,)) and bool((weight >= 0).all() and np.isfinite(weight).all())
    words, fix = "a number of at least 0", "Give one weight of the loss."
    need(good, words, of="loss_weight", got=loss_weight, fix=fix)
    costs, labels = None, 1
    if cell_costs is not None:
        costs = floats_of(cell_costs)
        good = costs.shape in ((count, 1, classes), (count, classes, classes))
        words = f"shape ({count}, {classes} or 1, {classes})"
        fix = "One cost for each cell, true label (or 1 for all) and predicted class."
        need(good, words, of="cell_costs", got=costs.shape, fix=fix)
        labels = int(costs.shape[1])
    grouped = costs is not None and cells is not None
    reads = {"features"} | ({SENSITIVE} if grouped else set())
    reads |= {"label"} if loss != "none" or labels > 1 else set()
    free = not facts.promise.is_private or (facts.alone and SENSITIVE not in reads)
    if clip is None and not free:
        raise no_clip(name)
    # A grid of 2^36 to 2^37 steps to the longest contribution; what rounding to it adds is in the
    # bound.
    limit = (LARGEST if clip is None else clip) * (facts.cap or 1.0)
    exponent, size = ROW_BITS - math.frexp(limit)[1], (model.skeleton.size,)
    rounding = math.sqrt(size[0]) / 2.0  # of each number, to a step
    slack = rounding * math.ldexp(1.0, -exponent)
    bound = of_signed(limit * (1.0 + 2.0**-28) + slack)
    within = 2.0 * slack / bound.norm
    if facts.promise.rows_per_unit > 1 and clip is not None and not facts.alone:
        # A person's summed gradient is clipped to the same norm as a row's would be, on the grid
        # of rows' whole numbers.
        bound = of_signed(limit * (1.0 + (size[0] + 64) * 2.0**-52))
        rounded = on_grid(bound, math.ldexp(1.0, -exponent), size[0])
        bound, within = rounded, (rounded.diameter - bound.diameter) / rounded.norm
    elif free:  # nobody can move the answer: rows need no rounding
        bound = Bound(bound.norm, 0.0)
    head = (name, size, frozenset(reads), bound, exponent, _elsewhere, 2.0, within)
    return Sum(*head, rounding=rounding * math.ldexp(1.01, 2 - ROW_BITS))


def _clipped(question: Question) -> str:
    if question.clip is None:
        return "gradients are public"
    return f"gradients are clipped to norm {question.clip:g}"


NetworkGradient = Kind(
    "gradient sum of a network",
    network_gradient,
    _clipped,
    reads=reads_of_gradient,
    apart=False,
    is_gradient=True,
    passes=network_pass,
)


# -- the pass --------------------------------------------------------------------------------------

Job = Callable[[Any, int, int], tuple[Ints, ...]]


@dataclass(frozen=True, slots=True)
class NetworkPass:
    """The pass of a network over rows: a clipped gradient sum, a histogram of predictions, or both
    of one network at once. All but the parameters and the costs, which come with the questions."""

    scales: tuple[Scale, ...]
    classes: int
    most: float

    def job(self, questions: Sequence[Question], *, persons: bool) -> Job:
        """What to do with rows a to b of a block, for questions with the keys of those that the
        scales are of, or one around the one. `persons`: whether a person's gradients are added
        before they are clipped."""
        outer = questions[0]
        if outer.kind is ByCell:
            return self._by_cell(outer, persons=persons)
        from .torch_gradient import engine

        asked = [question.innermost for question in questions]
        model: Network = asked[0].model
        troubles: Troubles = asked[0].values["_troubles"] or Troubles()
        ready = engine(model.skeleton)

        def job(block: Block | Drawn, a: int, b: int) -> tuple[Ints, ...]:
            whole, index = _taken(block, a, b)
            wanted = None
            for question, scale in zip(asked, self.scales, strict=True):
                if question.kind is NetworkGradient:
                    wanted = _wanted(question, scale, whole, index)
                    if persons:
                        most = wanted.clip * self.most
                        wanted = replace(wanted, persons=whole.persons[index], most=most)
                    if outer.kind is Weighed:
                        by = np.asarray(outer.factors).take(whole.cells(outer.cells)[0, index])
                        own = by * whole.weights[index] if len(whole.weights) else by
                        wanted = replace(wanted, weights=own)
            # tried on made-up rows first: what is heard of that is no row's
            found, _ = whole.row_major(index), ready.method
            logits, total = quietly(troubles, ready.run, model.parameters, found, wanted, troubles)
            out: list[Ints] = []
            for question, scale in zip(asked, self.scales, strict=True):
                if question.kind is NetworkHistogram:
                    out.append(_histogram(question, scale, logits, whole, index, self.classes))
                else:
                    assert total is not None
                    out.append(total)
            return tuple(out)

        return job

    def _by_cell(self, question: Question, *, persons: bool) -> Job:
        """Each row once, those of one cell together."""
        plain, cells = self.job([question.inner], persons=persons), question.cells

        def job(block: Block | Drawn, a: int, b: int) -> tuple[Ints, ...]:
            whole, index = _taken(block, a, b)
            index = np.arange(a, b) if isinstance(index, slice) else index
            line = whole.cells(cells)[0].take(index)
            order = index.take(np.argsort(line, kind="stable"))
            ends = np.cumsum(np.bincount(line, minlength=cells.count)).tolist()
            out = np.zeros((cells.count, question.inner.model.skeleton.size), np.int64)
            for cell, (first, last) in enumerate(itertools.pairwise((0, *ends))):
                if first < last:
                    (out[cell],) = plain(Drawn(whole, order[first:last]), 0, last - first)
            return (out,)

        return job


def _taken(block: Block | Drawn, a: int, b: int) -> tuple[Block, Any]:
    """The block in which rows a to b lie, and where."""
    if isinstance(block, Drawn):
        return block.block, block.index[a:b]
    return block, slice(a, b)


def _wanted(question: Question, scale: Scale, block: Block, index: slice | Ints) -> Any:
    from .torch_gradient import Wanted

    labels = block.labels[index].astype(np.int64) if "label" in question.reads else None
    costs, model = None, question.model
    if question.cell_costs is not None:
        given = question.cell_costs
        # of two classes the second's beyond the first's
        table = given[..., 1:] - given[..., :1] if model.outputs == 1 else given
        table, told = np.ascontiguousarray(table.reshape(-1, model.outputs)), given.shape[1]
        by_label = labels if told > 1 and labels is not None else 0
        costs = np.zeros((1, 1))
        for line in block.cells(question.cells):  # the row's cells: one, or one a sensitive column
            costs = costs + table.take(line[index].astype(np.int64) * told + by_label, axis=0)
    return Wanted(
        LARGEST if question.clip is None else question.clip,
        scale.unit,
        scale.bound.diameter > 0.0,
        question.model.sharpness,
        float(np.asarray(question.loss_weight).item()),
        labels if question.loss == "log" else None,
        costs,
        block.weights[index] if len(block.weights) else None,
    )


def _histogram(
    question: Question,
    scale: Scale,
    logits: Floats,
    block: Block,
    index: slice | Ints,
    classes: int,
) -> Ints:
    """Rows whose logits are no numbers count nowhere."""
    values = decided(logits, question.decisions, question.model.sharpness)
    labels = classes if question.by_label else 1
    weights = block.weights[index] if len(block.weights) else 1.0
    lines = block.cells(question.cells)[:, index].astype(np.int64) * labels
    lines = lines + (block.labels[index] if question.by_label else 0)
    steps = whole_steps(values.T, weights, math.ldexp(1.0, scale.exponent))
    return added(lines, steps, cell_count(question.cells) * labels)


def decided(logits: Floats, kind: str, sharpness: float) -> Floats:
    """(rows, outputs): hard or soft decisions; of two classes the second's. Rows of NaN are
    zero."""
    good = np.isfinite(logits).all(axis=1, keepdims=True)
    z = np.where(good, logits, 0.0)
    if z.shape[1] == 1:
        with np.errstate(over="ignore"):
            values = (
                (z > 0).astype(np.float64)
                if kind == "hard"
                else 1.0 / (1.0 + np.exp(-sharpness * z))
            )
    elif kind == "hard":
        values = (z.argmax(axis=1)[:, np.newaxis] == np.arange(z.shape[1])).astype(np.float64)
    else:
        powers = np.exp(sharpness * (z - z.max(axis=1, keepdims=True)))
        values = powers / powers.sum(axis=1, keepdims=True)
    return np.where(good, values, 0.0)
