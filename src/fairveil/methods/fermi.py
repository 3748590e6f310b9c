"""DP-FERMI, corrected (theory.md#fermi): loss plus `strength` times the mutual information of
prediction and group, min-max.

    min_w max_W  E[loss(w)] + strength x mean_i psi_i(w, W),        W in a Frobenius ball of radius
    R, one W a label that counts

It is the descent of `primal_dual` (linear models) or `networks` (torch modules) against the max
player `Penalty`: with records protected one row's gradient of loss *and* penalty is clipped as
one; with sensitive features alone the loss's is exact and the penalty's has noise of how far a
change of group can move it. Groups' shares are released once, before the first round, and floored
at a public constant (H4, H5). What is measured at the end is the notion's own gap of *decisions*,
with noise, as for constraints.

Guarantees (tests/methods/test_methods_fermi.py): those of `primal_dual`, and
1. Costs are the gradient of the penalty at W (Lemma D.1), and W stays in its ball.

`Differs:` from Algorithm 1:
- Its noise is added to W's gradient (H2: without the strength). Here W's gradient is made of the
  histogram of soft predictions by group, whose noise is multiplied by the strength as the gradient
  is.
- Gradients of whole rows are clipped, so no Lipschitz constant is taken on trust (H8, H9).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.promise import Promise
from ..errors import InputError
from ..facts import Cells, RowLayout
from ..fairness import DemographicParity, EqualizedOdds, EqualOpportunity, Notion
from ..fairness.dependence import Dependence, FixedShares, projected
from ..fairness.notions import positive_class
from .networks import NetworkDescent
from .primal_dual import Plan, Player, PrimalDual, Settings, Shape, planned, usual_clip

if TYPE_CHECKING:
    from ..models import Skeleton

NOTIONS = ("demographic_parity", "equalized_odds", "equal_opportunity")


@dataclass(frozen=True)
class PenaltySettings:
    """Public choices of the max player; the defaults are the library's, on every data set.

    `radius`: of W's ball; None: 2 sqrt(classes x columns), twice the norm of a W of no dependence.
    `least_share`: of rows, that a group is taken to have at least. `pace`, `loss_scale`: see
    `Penalty`.
    """

    radius: float | None = None
    least_share: float = 0.01
    pace: float = 0.5
    loss_scale: float = 0.35

    def __post_init__(self) -> None:
        if self.radius is not None:
            _checks.positive(radius=self.radius)
        share = _checks.fraction(least_share=self.least_share, low_open=True)
        if share > 0.5:
            remedy = "It is the share that a group of no rows is taken to have: 0.01, for example."
            raise InputError.expected("at most 0.5", of="least_share", got=share, remedy=remedy)
        _checks.positive(pace=self.pace)
        _checks.non_negative(loss_scale=self.loss_scale)


@dataclass(frozen=True, eq=False)
class Penalty:
    """DP-FERMI's max player: E[loss] + strength x mean psi(W), divided by 1 + loss_scale x
    strength. Its state is W (cells, labels, classes), at shares of groups that do not change.

        W <- project(W + pace (W*(H) - W)),     W*(H)[r, j] = H[r, j] / (sqrt(p[r]) H[j])

    which is ascent along the gradient of Lemma D.1 with steps of pace / (2 strength H[j] / rows):
    its exact curvature, so no step size is to be found for it, and one pace serves every strength.
    `radius`: of the ball of W, a Frobenius norm, label by label. `floor`: the least number of rows
    that a prediction is taken to have.
    """

    fixed: FixedShares
    shape: tuple[int, ...]
    strength: float
    radius: float
    floor: float
    pace: float = 0.5
    loss_scale: float = 0.35
    constraints: int = 0

    def begin(self) -> Floats:
        """No dependence is known yet."""
        return np.zeros(self.shape)

    def costs(self, w: Floats) -> tuple[Floats, float]:
        """What a prediction costs one row, and the weight of its loss."""
        ease = 1.0 / (1.0 + self.loss_scale * self.strength)
        return self.fixed.costs(w) * (self.strength * ease), ease

    def step(self, w: Floats, histogram: Floats, round: int) -> Floats:
        """W after a round, given the histogram of soft predictions."""
        best = self.fixed.best(histogram, self.floor)
        return projected(w + self.pace * (best - w), self.radius)

    def rests(
        self, before: Floats, after: Floats, histogram: Floats, round: int, most: float
    ) -> bool:
        """Whether it moves no more."""
        return bool(np.abs(after - before).max() <= most)

    def duals(self, w: Floats) -> Floats:
        """Nothing is bounded, and so nothing pressed."""
        return np.zeros(self.constraints)


def usual_settings(promise: Promise) -> Settings:
    """The settings of a linear model's run. W needs the histogram more than duals do, and shares
    given a label the counts."""
    clip = 0.6 if promise.protects == "sensitive_features" else usual_clip(promise)
    return Settings(
        rounds=120,
        averaged=0.35,
        clip=clip,
        thresholds_share=0.0,
        histogram_share=0.5,
        counts_share=0.1,
    )


def notion_of(name: str, positive: Hashable = None, groups: str = "product") -> Notion:
    """The notion of a name, whose gap is measured at the end. Its bound is 0, for nothing is
    bounded."""
    if _checks.one_of(NOTIONS, notion=name) == "equal_opportunity":
        return EqualOpportunity(max_gap=0.0, positive=positive, groups=groups)
    kind = DemographicParity if name == "demographic_parity" else EqualizedOdds
    return kind(max_gap=0.0, groups=groups)


def unbounded(notion: object) -> Notion:
    """The same of a notion that was given: one that a penalty can be about, without a bound."""
    if not isinstance(notion, DemographicParity | EqualizedOdds | EqualOpportunity):
        remedy = "Pass one of these names, or EqualOpportunity(None, positive=1), for example."
        got = type(notion).__name__
        raise InputError.expected(" or ".join(NOTIONS), of="notion", got=got, remedy=remedy)
    for name, given in (("max_gap", notion.max_gap), ("confidence", notion.confidence)):
        if given is not None:
            remedy = f"Nothing is bounded by a penalty: pass {name}=None, and see strength."
            raise InputError.expected(f"no {name}", of="notion", got=notion, remedy=remedy)
    if notion.compare != "pairs":
        remedy = "Leave compare out: a penalty looks at all groups together."
        raise InputError.expected("compare='pairs'", of="notion", got=notion, remedy=remedy)
    return replace(notion, max_gap=0.0)


def search_for(
    promise: Promise,
    layout: RowLayout,
    cells: Cells | None,
    notion: Notion,
    strength: float,
    settings: Settings | None = None,
    penalty: PenaltySettings | None = None,
    *,
    public_rows: int | None = None,
    max_sample_weight: float | None = None,
    scalable: bool = False,
    skeleton: Skeleton | None = None,
    companion: bool = False,
    shape: Shape | None = None,
) -> PrimalDual | NetworkDescent:
    """The search for the model of this strength. `notion`: from `notion_of`. Without cells, or at
    strength 0, there is no penalty and nothing is asked about groups."""
    strength = _checks.non_negative(strength=strength)
    asked = [notion] if cells is not None and strength else []
    kind = PrimalDual if skeleton is None else NetworkDescent

    def player(plan: Plan, counts: Floats, rows: float) -> Player | None:
        return _penalty(plan, notion, strength, penalty or PenaltySettings(), counts)

    def search(plan: Plan) -> PrimalDual | NetworkDescent:
        # gaps are measured, none is bounded
        bounds = np.full(0 if plan.system is None else len(plan.system), np.inf)
        return kind(plan, bounds, player)

    plan = planned(
        promise,
        layout,
        cells,
        asked,
        # no bound, so no threshold to move
        replace(settings or usual_settings(promise), thresholds_share=0.0),
        public_rows=public_rows,
        max_sample_weight=max_sample_weight,
        scalable=scalable,
        decisions="soft",
        uses_totals=True,
        skeleton=skeleton,
        companion=companion,
        shape=shape,
        search=lambda plan: search(plan).search(),
    )
    return search(plan)


def _penalty(
    plan: Plan, notion: Notion, strength: float, settings: PenaltySettings, counts: Floats
) -> Player | None:
    if plan.system is None or plan.cells is None:
        return None
    classes = plan.system.shape[2]
    labels = (0,) if not plan.by_label else tuple(range(classes))
    if isinstance(notion, EqualOpportunity):
        # the second of two unless it is named
        known = plan.layout.classes or ()
        labels = (known.index(positive_class(notion.positive, known)),)
    dependence = Dependence.of(
        plan.cells,
        labels,
        weighted=not isinstance(notion, EqualOpportunity),
        least_share=settings.least_share,
    )
    # Where predictions do not depend on groups, |W*|^2 is the number of classes in each column's
    # block. Twice that length leaves room for dependence, and little for noise.
    radius = settings.radius or 2.0 * math.sqrt(classes * len(dependence.blocks))
    # Without noise the maximiser itself is taken.
    pace = 1.0 if plan.is_exact and plan.skeleton is None else settings.pace
    shape = (*counts.shape, classes)
    how = (strength, radius, plan.floor, pace, settings.loss_scale, len(plan.system))
    return Penalty(dependence.at(counts), shape, *how)
