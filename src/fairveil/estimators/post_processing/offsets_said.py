"""What is said of offsets that were found: each constraint at the last histogram, and warnings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...errors import ConstraintNotMet
from ...fairness import ConstraintSystem, deviations
from ...learning import parity
from ...learning.parity import ParityOutcome, ParityPlan
from ...tables.distinct import in_words
from ..reports.constraint_report import ConstraintLine, ConstraintReport, warn_of_missed

SEARCHED = "offsets by group were found by noisy steps, and the last histogram measured them"


def report_of(found: ParityOutcome, plan: ParityPlan, system: ConstraintSystem) -> ConstraintReport:
    """Each constraint at the last histogram."""
    counts = np.maximum(found.counts, 0.0)
    sizes = np.maximum(counts.sum(axis=1, keepdims=True), parity.SMALLEST)
    values = system.exact_values(counts[:, np.newaxis], sizes)
    noise = parity.noise_of_values(system, counts, plan.deviation)
    drawn = deviations(system, counts[:, np.newaxis], sizes, heaviest=plan.heaviest)
    columns = zip(
        system.names,
        system.bounds.tolist(),
        values.tolist(),
        noise.tolist(),
        drawn.tolist(),
        strict=True,
    )
    lines = [
        ConstraintLine(name, bound, value, spread, 0.0, len(system), sampling=luck)
        for name, bound, value, spread, luck in columns
    ]
    return ConstraintReport(tuple(lines), found.rounds, SEARCHED)


def warn_of_small(groups: list[Any]) -> None:
    text = (
        f"the noise of one round is too large for {len(groups)} of the groups, which keep the "
        f"model's decisions: "
        f"{in_words(groups)}. Join small groups, allow a larger epsilon, or use more rows."
    )
    warnings.warn(text, ConstraintNotMet, stacklevel=3)


def warn_of_gap(report: ConstraintReport) -> None:
    ask = "Ask for a larger max_gap, a larger epsilon or more rounds"
    warn_of_missed(report, "the last histogram says", ask, stacklevel=4)
