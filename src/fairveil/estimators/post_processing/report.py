"""The constraints of a post-processor over the groups that it distinguishes, and its report of
them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import ConstraintNotMet, InputError
from ...facts import Cells
from ...fairness import ConstraintSystem, Notion, deviations, resolve
from ...learning import postprocess
from ...learning.postprocess import Mixed, MixingGuarantee, Released
from ...learning.systems import NO_GROUPS
from ..reading.carried import groups_of
from ..reports.baselines import BaselineReport, of_comparison
from ..reports.constraint_report import ConstraintLine, ConstraintReport
from ..wrapped.decided import DecidedRows

SOLVED = "one linear program was solved to its optimum"
OF_SCORES = "; decisions are thresholds on the base classifier's score, or mixtures of some"
OF_DECISIONS = (
    "; it is about the base classifier's decisions: a score of two classes was not there, or not "
    "asked for"
)
CHOSEN = "the best table without chance was chosen"
NOTHING_ASKED = "no constraint was required: decisions are the base classifier's"


@dataclass(frozen=True, eq=False)
class Found:
    """What a fit found: `cells` that the table distinguishes at prediction, and how the base was
    asked (`method`). `randomised`: whether chance was allowed."""

    cells: Cells | None
    system: ConstraintSystem
    released: Released
    solved: Mixed
    guarantee: MixingGuarantee
    method: str
    randomised: bool = True

    def reported(
        self, classes: Sequence[Hashable], heaviest: float | None
    ) -> tuple[ConstraintReport, BaselineReport | None]:
        """The constraints, and what costs nothing."""
        reason = (SOLVED if self.randomised else CHOSEN) + (
            OF_SCORES
            if self.released.edges is not None
            else OF_DECISIONS
            if len(classes) == 2
            else ""
        )
        report = report_of(
            self.guarantee, self.solved, reason, self.released, self.system, heaviest
        )
        compared = postprocess.compared(self.released, self.system, self.solved.table)
        return report, of_comparison(compared, classes, free="the base classifier")


def found_in(
    released: Released,
    system: ConstraintSystem,
    cells: Cells | None,
    *,
    shared: bool,
    confidence: float,
    with_slack: bool,
    by_chance: bool,
    method: str,
) -> Found:
    """The best rule by released counts; `shared`: one table for all groups."""
    solved = postprocess.best_table(
        released, system, confidence, shared=shared, with_slack=with_slack, by_chance=by_chance
    )
    certain = postprocess.guarantee(released, system, solved.table, confidence, shared=shared)
    told = None if shared else cells
    return Found(told, system, released, solved, certain, method, by_chance)


def warn_of_conflict(solved: Mixed, *, by_chance: bool) -> None:
    """Where no table keeps the constraints at the released counts."""
    if solved.excess <= postprocess.FEASIBLE:
        return
    what, instead = "the constraints contradict each other", "or"
    if not by_chance:
        what, instead = "no table without chance keeps the constraints", "leave randomised=True, or"
    text = (
        f"{what} at the released counts: every bound had to give {solved.excess:.4f}, the least "
        f"that all can. Ask for larger bounds, {instead} drop a constraint; see constraint_report_."
    )
    warnings.warn(text, ConstraintNotMet, stacklevel=3)


def system_of(
    notions: Sequence[Notion], asked: DecidedRows
) -> tuple[Cells | None, ConstraintSystem | None]:
    """The constraints and the cells of the table; cells only where a constraint tells groups
    apart."""
    cells = groups_of(asked.training, either=False)
    if not notions:
        return None, None
    system = resolve(notions, cells or NO_GROUPS, asked.training.classes)
    if not len(system):
        raise InputError.expected(
            "at least two groups to compare",
            of="constraints",
            got=f"groups {list((cells or NO_GROUPS).keys)}",
            remedy="Pass sensitive_features with several groups, or constraints=None.",
        )
    if system.needs_groups:
        return cells, system
    return None, system.without_groups()


def report_of(
    guarantee: MixingGuarantee,
    solved: Mixed,
    reason: str,
    released: Released,
    system: ConstraintSystem,
    heaviest: float | None,
) -> ConstraintReport:
    """What was required, and what is known of it from the released counts."""
    counts = postprocess.filled(released, system)
    # what the table decides, on average: one draw varies as much
    histogram = np.einsum("cyj,cjk->cyk", counts, solved.table)
    drawn = deviations(system, histogram, counts.sum(axis=2), heaviest=heaviest)
    lines = [
        ConstraintLine(
            name,
            bound,
            bound if abs(value - bound) < postprocess.FEASIBLE else value,
            noise,
            float(pressure),
            len(guarantee.names),
            sampling=float(one),
        )
        for name, bound, value, noise, pressure, one in zip(
            guarantee.names,
            guarantee.bounds,
            guarantee.values,
            guarantee.noise,
            solved.pressures,
            drawn,
            strict=True,
        )
    ]
    return ConstraintReport(tuple(lines), 0, reason)
