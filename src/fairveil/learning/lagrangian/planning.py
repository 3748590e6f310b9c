"""How a descent is planned: multipliers whose noise is the least that keeps the promise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.events import Event, Gaussian
from ...core.promise import Promise
from ...facts import Cells, RowLayout
from ...fairness import Notion
from ...privacy import calibrate
from ...privacy.accounting.calibration import full_batch
from ..gaussian import budget_of
from ..systems import system_of
from .settings import Settings

if TYPE_CHECKING:
    from ...models import Skeleton
from .plan import Plan

FREE_REPORT = 0.3
"""Of a companion's price, for what it turns out to do."""


def make(
    promise: Promise,
    layout: RowLayout,
    cells: Cells | None,
    notions: Sequence[Notion],
    settings: Settings | None = None,
    *,
    public_rows: int | None = None,
    max_sample_weight: float | None = None,
    scalable: bool = False,
    decisions: str = "hard",
    uses_totals: bool = False,
    skeleton: Skeleton | None = None,
    companion: bool = False,
) -> Plan:
    """The plan of one model's run, its noise the least that keeps the promise.

    `cells`: the groups that `notions` are about, None where rows have no sensitive column.
    `public_rows`: the number of rows where it is public or was stated; None has it released.
    `max_sample_weight`: the cap, where rows have weights. `scalable`: numbers are dense, and known
    to lie in [-1, 1] where they are protected: then they are scaled by their released moments.
    `companion`: whether a model without constraints is wanted, to compare with: of one linear
    model, on all rows.
    """
    settings = settings or Settings()
    system = system_of(notions, cells, layout)
    by_label = system is not None and system.needs_labels
    kept = cells if system is not None and system.needs_groups else None
    if system is not None:
        system = system if by_label else system.without_labels()
        system = system if kept is not None else system.without_groups()
    plan = Plan(
        promise,
        layout,
        settings,
        system,
        kept,
        by_label,
        0.0,
        0.0,
        0.0,
        0.0,
        public_rows,
        max_sample_weight,
    )
    scales = scalable and layout.numbers > 0 and settings.moments_share > 0
    plan = replace(
        plan, scales=scales, decisions=decisions, uses_totals=uses_totals, skeleton=skeleton
    )
    wanted = (
        companion and system is not None and skeleton is None and settings.sampling_rate is None
    )
    plan = replace(
        plan, companion=wanted and settings.free_share > 0 and settings.compare_share > 0
    )
    return plan if plan.is_exact else _priced(plan)


def _priced(plan: Plan) -> Plan:
    """The multipliers: fixed shares for counts and report, the rest for the rounds."""
    s, promise = plan.settings, plan.promise
    constrained = plan.system is not None
    mu = budget_of(promise)
    plan = replace(plan, counts_multiplier=1.0 / (mu * math.sqrt(s.counts_share)))
    if plan.scales and not plan.sees_features:
        plan = replace(plan, moments_multiplier=1.0 / (mu * math.sqrt(s.moments_share)))
    share = s.histogram_share if constrained else 0.0
    if constrained:
        plan = replace(plan, report_multiplier=1.0 / (mu * math.sqrt(s.report_share)))
    if plan.has_thresholds:
        plan = replace(plan, thresholds_multiplier=1.0 / (mu * math.sqrt(s.thresholds_share)))
    compared = 0 if plan.sees_features else len(plan.compare_measurements(plan.start(), 0.0))
    if compared:
        plan = replace(
            plan, compare_multiplier=math.sqrt(compared) / (mu * math.sqrt(s.compare_share))
        )
    beside: list[Gaussian] = []
    if plan.companion:
        shown = 1 + compared  # tables of the companion, as expensive as a quarter of its rounds are
        rounds = plan.free_rounds
        of_rounds = (1.0 - FREE_REPORT) if rounds else 0.0
        report = math.sqrt(shown / (1.0 - of_rounds) / s.free_share) / mu
        gradient = math.sqrt(rounds / of_rounds / s.free_share) / mu if rounds else 0.0
        plan = replace(plan, free_multiplier=gradient, free_report_multiplier=report)
        beside = [Gaussian(report)] * shown + ([Gaussian(gradient)] * rounds if rounds else [])

    def at(z: float) -> Plan:
        gradient = z / math.sqrt(1.0 - share) * (1.0 + 1e-12)
        return replace(
            plan,
            gradient_multiplier=gradient,
            histogram_multiplier=z / math.sqrt(share) if constrained else 0.0,
        )

    def events(z: float) -> Event:
        found = at(z).events(None)
        assert found is not None
        return found

    if s.sampling_rate is not None and not (plan.parts and s.rounds % plan.parts == 0):
        return at(calibrate(promise, events).multiplier)
    once = [measurement.multiplier for measurement in plan.first(None)] + [
        plan.report_multiplier,
        plan.thresholds_multiplier,
    ]
    once += [plan.compare_multiplier] * compared + [plan.report_multiplier] * plan.settles
    # each part costs as often as its turn comes
    rounds = s.rounds // plan.parts if plan.parts else s.rounds
    return at(
        full_batch(
            promise, rounds, [*(Gaussian(multiplier) for multiplier in once if multiplier), *beside]
        )
    )
