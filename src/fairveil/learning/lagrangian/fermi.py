"""DP-FERMI, corrected (theory.md#fermi): loss plus `strength` times the mutual information of
prediction and group, min-max.

    min_w max_W  E[loss(w)] + strength x mean_i psi_i(w, W),        W in a Frobenius ball of radius
    R, one W a label that counts

It is the descent of `linear` (linear models) or `network` (torch modules) against the max player
`players.Penalty`: with records protected one row's gradient of loss *and* penalty is clipped as
one; with sensitive features alone the loss's is exact and the penalty's has noise of how far a
change of group can move it. W's gradient is made of the histogram of soft predictions by group,
whose noise is therefore multiplied by the strength as the gradient is (the paper forgets it: H2).
Groups' shares are released once, before the first round, and floored at a public constant (H4, H5).

What is measured at the end is the notion's own gap of *decisions*, with noise, as for constraints.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ... import _checks
from ...core.promise import Promise
from ...errors import InputError
from ...facts import Cells, RowLayout
from ...fairness import DemographicParity, EqualizedOdds, EqualOpportunity, Notion
from ...fairness.dependence import Dependence
from ...fairness.notions import positive_class
from . import planning
from .linear import LinearDescent
from .network import NetworkDescent
from .noise import usual_clip
from .plan import Plan
from .players import Penalty
from .settings import Settings

if TYPE_CHECKING:
    from ...models import Skeleton

NOTIONS = ("demographic_parity", "equalized_odds", "equal_opportunity")


@dataclass(frozen=True)
class PenaltySettings:
    """Public choices of the max player; the defaults are the library's, on every data set.

    `radius`: of W's ball; None: 2 sqrt(classes x columns), twice the norm of a W of no dependence.
    `least_share`: of rows, that a group is taken to have at least. `pace`, `loss_scale`: see
    `players.Penalty`.
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
    for name, given, usual in (
        ("max_gap", notion.max_gap, None),
        ("confidence", notion.confidence, None),
    ):
        if given is not usual:
            remedy = f"Nothing is bounded by a penalty: pass {name}=None, and see strength."
            raise InputError.expected(f"no {name}", of="notion", got=notion, remedy=remedy)
    if notion.compare != "pairs":
        remedy = "Leave compare out: a penalty looks at all groups together."
        raise InputError.expected("compare='pairs'", of="notion", got=notion, remedy=remedy)
    return replace(notion, max_gap=0.0)


def make(
    promise: Promise,
    layout: RowLayout,
    cells: Cells | None,
    notion: Notion,
    strengths: Sequence[float],
    settings: Settings | None = None,
    penalty: PenaltySettings | None = None,
    *,
    public_rows: int | None = None,
    max_sample_weight: float | None = None,
    scalable: bool = False,
    skeleton: Skeleton | None = None,
    companion: bool = False,
) -> LinearDescent | NetworkDescent:
    """The search for models of these strengths, side by side where there are several (linear models
    on the same rows).

    `notion`: from `notion_of`. Without cells, or at strength 0, there is no penalty and nothing is
    asked about groups.
    """
    listed = [_checks.non_negative(strength=strength) for strength in strengths]
    if skeleton is not None and len(listed) != 1:
        remedy = "Fit networks one after another."
        raise InputError.expected(
            "one strength for a network", of="strengths", got=listed, remedy=remedy
        )
    penalised = cells is not None and any(listed)
    plan = planning.make(
        promise,
        layout,
        cells,
        [notion] if penalised else [],
        # no bound, so no threshold to move
        replace(settings or usual_settings(promise), thresholds_share=0.0),
        public_rows=public_rows,
        max_sample_weight=max_sample_weight,
        scalable=scalable,
        decisions="soft",
        uses_totals=True,
        skeleton=skeleton,
        companion=companion,
    )
    player = penalty_of(plan, notion, listed, penalty or PenaltySettings()) if penalised else None
    bounds = np.full(
        (len(listed), 0 if plan.system is None else len(plan.system)), np.inf
    )  # gaps are measured, none is bounded
    if skeleton is not None:
        return NetworkDescent(plan, bounds, player)
    return LinearDescent(plan, bounds, len(listed) > 1, player)


def penalty_of(
    plan: Plan, notion: Notion, strengths: Sequence[float], settings: PenaltySettings
) -> Penalty:
    """The max player of a plan."""
    assert plan.cells is not None
    assert plan.system is not None
    classes = plan.system.shape[2]
    labels = (0,) if not plan.by_label else tuple(range(classes))
    if isinstance(notion, EqualOpportunity):
        labels = (_label_of(notion, plan.layout),)
    weighted = not isinstance(notion, EqualOpportunity)
    dependence = Dependence.of(
        plan.cells, labels, weighted=weighted, least_share=settings.least_share
    )
    # Where predictions do not depend on groups, |W*|^2 is the number of classes in each column's
    # block. Twice that length leaves room for dependence, and little for noise.
    radius = settings.radius or 2.0 * math.sqrt(classes * len(dependence.blocks))
    # Without noise the maximiser itself is taken.
    pace = 1.0 if plan.is_exact and plan.skeleton is None else settings.pace
    return Penalty(
        dependence, np.array(strengths), radius, plan.floor, classes, pace, settings.loss_scale
    )


def _label_of(notion: EqualOpportunity, layout: RowLayout) -> int:
    """The code of the class that opportunity is about: the second of two unless it is named."""
    classes = layout.classes or ()
    return classes.index(positive_class(notion.positive, classes))
