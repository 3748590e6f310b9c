"""Questions about neural networks: clipped gradient sums and histograms of predictions. See
`core.questions` for how questions work.

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
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..bound import Bound, of_signed, on_grid
from ..errors import need
from ..layout import Array, Cells, Floats, Ints, RowLayout, row_major
from ..questions import (
    FEATURES,
    SENSITIVE,
    Facts,
    Kind,
    Question,
    Sum,
    cell_count,
    classes_of,
    floats_of,
    no_clip,
)
from ..quiet import Troubles, quietly
from ..sums import DECISIONS, SIMPLEX, Run, histogram, reads_of_gradient

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
    pass forward.
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


def logits_of(run: Run, model: Network, wanted: Any, troubles: Troubles) -> tuple[Floats, Any]:
    """Logits of the rows of a run, NaN where user code failed, and their clipped gradients' total,
    where that is wanted. Of one network logits are found once for all sums."""
    key = ("network", id(model))
    if wanted is None and key in run.known:
        return run.known[key][0], None
    from .torch_gradient import engine

    ready = engine(model.skeleton)
    rows = row_major(run.block.raw, run.block.layout.code_sizes, slice(run.a, run.a + run.n))
    _ = ready.method  # tried on made-up rows first: what is heard of that is no row's
    logits, total = quietly(troubles, ready.run, model.parameters, rows, wanted, troubles)
    run.known[key] = logits, model  # kept, so that no other model lies there
    return logits, total


def network_decisions(
    facts: Facts,
    model: Network,
    cells: Cells | None = None,
    decisions: str = "hard",
    by_label: bool = False,
    _troubles: Troubles | None = None,
) -> Sum:
    """How a network's predictions fall in each cell (and label): see `core.sums.decisions`. Two
    classes have one output, the second's, whatever the width of the module's own. Rows whose logits
    are no numbers count nowhere."""
    model.check(facts.layout)
    hard = checks.one_of(DECISIONS, decisions=decisions) == "hard"
    outputs, troubles = model.outputs, _troubles or Troubles()

    def values(run: Run) -> Any:
        logits, _ = logits_of(run, model, None, troubles)
        return decided(logits, decisions, model.sharpness).T[np.newaxis]

    head = (facts, "prediction histogram of a network", cells, by_label, outputs, (FEATURES,))
    how: dict[str, Any] = {"whole": hard, "lone": outputs == 1, "coordinates": outputs}
    return histogram(*head, values=values, **how)


NetworkHistogram = Kind(
    "prediction histogram of a network", network_decisions, SIMPLEX, is_network=True
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
    from .torch_gradient import rounding_of

    classes, count, name = model.check(facts.layout), cell_count(cells), "gradient sum of a network"
    most, troubles = LARGEST if clip is None else clip, _troubles or Troubles()
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
    limit = most * (facts.cap or 1.0)
    exponent, size = ROW_BITS - math.frexp(limit)[1], (model.skeleton.size,)
    rounding = rounding_of(model.skeleton)
    slack = rounding * math.ldexp(1.0, -exponent)
    bound = of_signed(limit * (1.0 + 2.0**-28) + slack)
    within = 2.0 * slack / bound.norm
    by_person = facts.promise.rows_per_unit > 1 and clip is not None and not facts.alone
    if by_person:
        # A person's summed gradient is clipped to the same norm as a row's would be, on the grid
        # of rows' whole numbers.
        bound = of_signed(limit * (1.0 + (size[0] + 64) * 2.0**-52))
        rounded = on_grid(bound, math.ldexp(1.0, -exponent), size[0])
        bound, within = rounded, (rounded.diameter - bound.diameter) / rounded.norm
    elif free:  # nobody can move the answer
        bound = Bound(bound.norm, 0.0)
    pull = float(weight.item())

    def total(run: Run, units: Any) -> Array:
        from .torch_gradient import Wanted

        own = run.labels.astype(np.int64) if "label" in reads else None
        paid = None if costs is None else _paid(run, costs, cells, own, model.outputs)
        wanted = Wanted(
            most,
            1.0 / float(np.atleast_1d(units)[0]),
            clip is not None,
            model.sharpness,
            pull,
            own if loss == "log" else None,
            paid,
            run.weights if len(run.block.weights) else None,
            run.block.persons[run.a : run.a + run.n] if by_person else None,
            limit,
        )
        _, found = logits_of(run, model, wanted, troubles)
        return np.asarray(found[np.newaxis])

    head = (name, size, frozenset(reads), bound, exponent, total, 2.0, within)
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
    is_network=True,
)


def _paid(
    run: Run, costs: Floats, cells: Cells | None, labels: Ints | None, outputs: int
) -> Floats:
    """What each row's decisions cost, (rows, outputs): of two classes the second's beyond the
    first's."""
    told = costs.shape[1]
    table = costs[..., 1:] - costs[..., :1] if outputs == 1 else costs
    table = np.ascontiguousarray(table.reshape(-1, outputs))
    found: Floats = np.zeros((1, 1))
    for line in run.cells(cells):  # the row's cells: one, or one a sensitive column
        found = found + table.take(line * told + (labels if told > 1 else 0), axis=0)
    return found


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
