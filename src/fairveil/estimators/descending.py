"""Fits by private descent: `PrimalDual` (RaCO-DP) keeps bounds on rates of decisions, and `Fermi`
(DP-FERMI) trades the loss against the dependence of prediction and group; linear models and torch
modules."""

from __future__ import annotations

import dataclasses
import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from .. import _checks
from .._types import ColumnsLike, Floats, TableLike
from ..core.promise import Promise
from ..curator import Curator
from ..errors import InputError, NoGroups, complaint
from ..facts import Cells
from ..fairness import Notion
from ..fairness.objectives import Constraint
from ..methods import (
    NetworkDescent,
    Outcome,
    PenaltySettings,
    PrimalDual,
    Settings,
    fermi,
    networks,
)
from ..methods.primal_dual import planned
from ..models import LinearModel, MixtureModel
from ..statement.document import PrivacyStatement
from . import cautions, faces, fitting, settings
from .certifying.certified_fits import refuse_certify
from .coding import directed, module_of, wanted
from .fitting import OpenedFit, said, statement_of
from .handed import handed
from .reading import Read, Training, groups_of
from .released import ReleasedFit, ReleasedGroups, fit_released, publish_columns
from .reports import (
    MIXTURE,
    MODEL,
    ConstraintReport,
    GapReport,
    warn_if_not_enforced,
    warn_if_worse,
    warn_of_missed,
)
from .settings import Setting
from .ways import PlannedFit, Way, notions_alone

KNOBS = ("rounds", "clip", "temperature", "sampling_rate", "learning_rate")


class DescentWay(Way):
    """What both have in common. Abstract."""

    @property
    def module(self) -> Any:
        return module_of(self.of.model)

    @property
    def covers(self) -> bool:
        return self.solver.sampling_rate is None and self.module is None

    @abstractmethod
    def notions(self) -> list[Notion]:
        """The notions whose groups are distinguished; checked."""

    @abstractmethod
    def usual(self, promise: Promise) -> Settings:
        """The settings of a linear model's run, before the knobs."""

    @abstractmethod
    def search(
        self,
        promise: Promise,
        training: Training,
        cells: Cells | None,
        notions: list[Notion],
        facts: dict[str, Any],
    ) -> PrimalDual | NetworkDescent:
        """The search. `facts`: keyword arguments of `primal_dual.planned`, settings and skeleton
        among them."""

    @abstractmethod
    def report(self, outcome: Outcome) -> None:
        """Publish what was measured of the model."""

    @property
    def randomised(self) -> bool | None:
        """Whether a mixture may be published; None: the model that was found, whatever it is."""
        return None

    def intend(self, read: Read, X: TableLike, shape: tuple[int, ...] | None) -> PlannedFit:
        of, solver = self.of, self.solver
        self.refuse_objective()
        refuse_certify(of)
        whose, promise = fitting.asked(of)
        ledger = fitting.ledger_of(of, promise)
        of_modules = "without a module (model=None)" if self.module is None else None
        fitting.refuse_unused(solver, {"learning_rate": of_modules, "device": of_modules})
        notions = self.notions()
        settings = self._with_knobs(self.usual(promise))
        steps = wanted(of.model, epsilon=promise.epsilon, directions=True)
        ways = fitting.own_ways(of, promise, whose, steps)
        training = read(ways if self.module is None else dataclasses.replace(ways, thin=False))
        opening = OpenedFit.of(
            of,
            promise,
            ledger,
            training,
            numbers="scaled" if self.module is None else "as given",
        )
        self.require_groups(notions, training)
        known = opening.known_rows
        skeleton = faces.skeleton_of(self.module, training, shape, solver.device)
        if skeleton is not None:
            settings = self._with_knobs(networks.usual_settings(promise, known))
        _refuse_empty_batches(settings, known)
        cells = cells_of(notions, training)
        kept = directed(steps, training.coding, len(training.classes)) if steps else None
        facts = {
            "settings": settings,
            "public_rows": opening.public_rows,
            "max_sample_weight": opening.max_sample_weight,
            "scalable": skeleton is None and fitting.numbers_are_scalable(training, promise),
            "skeleton": skeleton,
            "companion": True,
            "shape": kept,
        }
        return PlannedFit(opening, cells, self.search(promise, training, cells, notions, facts))

    def require_groups(self, notions: list[Notion], training: Training) -> None:
        """Of notions that compare groups."""
        fitting.require_groups(notions, training)

    def _with_knobs(self, settings: Settings) -> Settings:
        given = _checks.named(self.solver, KNOBS)
        return dataclasses.replace(
            settings, **{name: value for name, value in given.items() if value is not None}
        )

    def publish(self, intent: PlannedFit, found: Outcome, curator: Curator) -> None:
        self.conclude(intent, found, statement_of(curator, intent.training))
        of = self.of
        self.warn()
        warn_if_worse(of.baselines_, learnt=of.outcome_.learnt)

    def conclude(self, intent: PlannedFit, outcome: Outcome, statement: PrivacyStatement) -> None:
        """Publish what a search found."""
        of, training, plan = self.of, intent.training, intent.search.planned
        shape = (plan.outputs, 1 + training.rows.layout.width)
        found = handed(outcome, training.classes, randomised=self.randomised, shape=shape)
        models = [
            _linear(weights, training)
            if plan.skeleton is None or weights.ndim == 2
            else faces.model_of(plan.skeleton, weights, training)
            for weights in found.lines
        ]
        of._set_model(
            models[0] if len(models) == 1 else MixtureModel(models, np.array(found.shares)),
            training.coding,
        )
        of.baselines_ = found.report
        of._publish_shape(training, intent.cells)
        of.privacy_ = statement
        self.set_outcome(found.outcome)

    def set_outcome(self, outcome: Outcome) -> None:
        """Publish what was found: after a fit, and when read from disk."""
        self.of.outcome_, self.of.n_iter_ = outcome, outcome.rounds
        self.report(outcome)

    def warn(self) -> None:
        """Say what is to be said once the model is there."""


class PrimalDualWay(DescentWay):
    """RaCO-DP: bounds on rates of decisions."""

    kind: ClassVar[type[Setting]] = settings.PrimalDual

    @property
    def randomised(self) -> bool | None:
        found: bool | None = self.solver.randomised
        return found

    def required(self) -> Constraint:
        return notions_alone(self.of)

    def notions(self) -> list[Notion]:
        return fitting.notions_of(self.of.constraints)

    def usual(self, promise: Promise) -> Settings:
        return Settings()

    def search(
        self,
        promise: Promise,
        training: Training,
        cells: Cells | None,
        notions: list[Notion],
        facts: dict[str, Any],
    ) -> PrimalDual | NetworkDescent:
        kind = PrimalDual if facts["skeleton"] is None else NetworkDescent
        known = (promise, training.rows.layout, cells, notions)
        plan = planned(*known, **facts, search=lambda plan: kind(plan).search())
        return kind(plan, judged="_certified" not in vars(self.of))

    def report(self, outcome: Outcome) -> None:
        self.of.constraint_report_ = ConstraintReport.of(outcome, said(self.of))

    def warn(self) -> None:
        report, baselines = self.of.constraint_report_, self.of.baselines_
        if not report.missed_by_far:
            kept = baselines is None or baselines.handed_out in (MODEL, MIXTURE)
            warn_if_not_enforced(report, 1.0 if kept else 0.0)
            return
        reached = "the best that was reached on the training rows is"
        ask = (
            "Ask for a larger bound, a larger epsilon or more rounds, or drop a constraint that "
            "contradicts it"
        )
        warn_of_missed(report, reached, ask)

    def fit_released(
        self, X: TableLike, y: ColumnsLike, released: ReleasedGroups, sample_weight: ColumnsLike
    ) -> None:
        """Of groups that were released once: no row's group is asked for, and nothing is spent."""
        found = fit_released(self.of, X, y, released, sample_weight)
        self.of._published(lambda: self._publish_released(X, released, found))

    def _publish_released(self, X: TableLike, released: ReleasedGroups, found: ReleasedFit) -> None:
        of, rules = self.of, found.rules
        of._set_model(
            rules[0] if len(rules) == 1 else MixtureModel(rules, np.array(found.shares)),
            released.coding,
        )
        of.cells_, of.groups_, of.privacy_ = released.cells, released.groups, released.privacy
        of.baselines_ = None
        publish_columns(of, X)
        self.set_outcome(found.outcome)
        self.warn()


class FermiWay(DescentWay):
    """DP-FERMI: the mean loss plus the information of prediction and group."""

    kind: ClassVar[type[Setting]] = settings.Fermi

    def required(self) -> Constraint:
        return Constraint()

    def reported(self) -> list[Notion]:
        return [self._notion()]

    def notions(self) -> list[Notion]:
        if self.solver.iterate == "uniform" and self.of.checkpoint is not None:
            remedy = "Take the last one, or leave checkpoint=None: the draw is of one sitting."
            raise InputError.expected(
                "'last' or 'average'", of="iterate", got="uniform", remedy=remedy
            )
        self._penalty()
        return [self._notion()]

    def _notion(self) -> Notion:
        """What the penalty is about, with the bound 0 that is nobody's."""
        asked = "demographic_parity" if self.of.constraints is None else self.of.constraints
        return fermi.notion_of(asked) if isinstance(asked, str) else fermi.unbounded(asked)

    def _penalty(self) -> PenaltySettings:
        return PenaltySettings(radius=self.solver.radius, least_share=self.solver.least_share)

    def usual(self, promise: Promise) -> Settings:
        return fermi.usual_settings(promise)

    def require_groups(self, notions: list[Notion], training: Training) -> None:
        """Without groups there is nothing to be independent of: no penalty, and that is said."""
        if not training.rows.layout.sensitive and self.solver.strength > 0:
            text = complaint(
                expected="groups, for the penalty to be about",
                of="sensitive_features",
                got=None,
                remedy="No penalty applies: pass fit(X, y, sensitive_features=...), or strength=0.",
            )
            warnings.warn(text, NoGroups, stacklevel=cautions.outside())

    def search(
        self,
        promise: Promise,
        training: Training,
        cells: Cells | None,
        notions: list[Notion],
        facts: dict[str, Any],
    ) -> PrimalDual | NetworkDescent:
        settings, solver = facts.pop("settings"), self.solver
        if cells is not None and cells.count < 2 and solver.strength > 0:
            got = f"groups {list(cells.keys)}"
            remedy = "Pass sensitive_features with several groups, or strength=0."
            raise InputError.expected(
                "at least two groups", of="sensitive_features", got=got, remedy=remedy
            )
        if solver.iterate is not None:
            settings = dataclasses.replace(settings, iterate=self._iterate(settings.rounds))
        return fermi.search_for(
            promise,
            training.rows.layout,
            cells,
            notions[0],
            float(solver.strength),
            settings,
            self._penalty(),
            **facts,
        )

    def _iterate(self, rounds: int) -> str | int:
        """Which one: a round is drawn for "uniform", whatever the rows are."""
        if self.solver.iterate != "uniform":
            return str(self.solver.iterate)
        return int(np.random.default_rng(fitting.seed_of(self.of.random_state)).integers(rounds))

    def report(self, outcome: Outcome) -> None:
        self.of.gap_report_ = GapReport.of(outcome)


def _linear(weights: Floats, training: Training) -> LinearModel:
    return LinearModel(
        weights[:, 1:], weights[:, 0], classes=training.classes, layout=training.coding.layout
    )


def cells_of(notions: list[Notion], training: Training) -> Cells | None:
    """Product groups, unless every notion is content with marginal ones, whose histograms are
    smaller."""
    asked = [notion for notion in notions if not notion.is_vacuous]
    marginal = bool(asked) and all(notion.groups == "marginal" for notion in asked)
    return groups_of(training, "marginal" if marginal else "product")


def _refuse_empty_batches(settings: Settings, rows: int | None) -> None:
    """Against a public number of rows only."""
    rate = settings.sampling_rate
    rows = None if rows is None else max(rows, 1)
    if rate is not None and rows is not None and rate * rows < 1.0:
        remedy = (
            f"Most batches would be empty, and teach nothing: pass "
            f"sampling_rate={min(1.0, 256.0 / rows):.2g}, for example."
        )
        expected = f"at least 1/{rows}, one row a batch on average"
        raise InputError.expected(expected, of="sampling_rate", got=rate, remedy=remedy)
