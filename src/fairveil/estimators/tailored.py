"""Fits whose privacy budget is shared among groups (Alabi and Wiggins): classifiers, linear or
networks, and least squares; and what they say of each group."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .. import _checks
from .._types import Floats, TableLike
from ..core.cost import gaussian_mu
from ..core.promise import Promise
from ..curator import Curator
from ..errors import ConstraintNotMet, InputError
from ..facts import Cells
from ..fairness import BoundedGroupLoss
from ..fairness.objectives import (
    Constraint,
    Error,
    GroupLoss,
    LargestGroupLoss,
    MeanGroupLoss,
    Objective,
    parse_constraint,
    parse_objective,
)
from ..methods import networks
from ..methods.allocation import STANDARD_ERROR, Allocation, Shares, checked_rule, each_column
from ..methods.least_squares import ROUNDS as CALLS
from ..methods.least_squares import RegressionOutcome, RegressionTask
from ..methods.tailoring import plan_tailored_descent, plan_tailored_regression
from ..models import LinearModel
from ..show.numbers import at_most
from ..show.parts import Column, Fact, Facts, Note, Part, Shown, Table
from ..statement.document import NamedGroups, PrivacyStatement
from ..tables import keys
from . import cautions, faces, fitting, reading, settings
from .cautions import Numbers
from .certifying.certified_fits import refuse_certify
from .coding import module_of, wanted
from .fitting import OpenedFit, statement_of
from .group_objective import publish_regression, scales
from .reading import NumericTarget, Read, groups_of
from .reports import (
    ConstraintLine,
    ConstraintReport,
    of_regression,
    of_tailored,
    warn_if_worse,
)
from .settings import Setting, Tailored
from .ways import PlannedFit, Way

OF_MODULES = ("sampling_rate", "learning_rate", "device")
DESCENT, MOMENTS = "descent", "moments"


class TailoredWay(Way):
    """What classifiers and regressors have in common. Abstract."""

    kind: ClassVar[type[Setting]] = settings.Tailored
    loss: ClassVar[str]

    def required(self) -> Constraint:
        """Bounds on losses of groups: a mapping bounds each group that it names."""
        given = self.of.constraints
        if isinstance(given, Mapping):
            return Constraint(tuple(GroupLoss(key).at_most(most) for key, most in given.items()))
        asked = parse_constraint(given)
        bounds = list(asked.bounds)
        for one in asked.notions:
            if not isinstance(one, BoundedGroupLoss):
                remedy = (
                    "Pass 'largest_group_loss:0.4', objectives.GroupLoss('f').at_most(0.4), or a "
                    "notion as certify=."
                )
                raise InputError.expected(
                    "bounds on losses of groups", of="constraints", got=one, remedy=remedy
                )
            most = one.max_loss
            bounds += [] if most is None else [LargestGroupLoss().at_most(most)]
        for bound in bounds:
            if not isinstance(bound.objective, LargestGroupLoss | GroupLoss):
                remedy = "Pass 'largest_group_loss:0.4', or solver=fv.GroupObjective()."
                raise InputError.expected(
                    "bounds on losses of groups", of="constraints", got=bound, remedy=remedy
                )
        return Constraint(tuple(bounds))

    def said(self, cells: Cells | None, classes: tuple[Any, ...]) -> tuple[str, ...]:
        return tuple(
            f"the {self.loss} of group {keys.shown(bound.objective.group)} is at most "
            f"{bound.bound:g}"
            if isinstance(bound.objective, GroupLoss)
            else f"the {self.loss} of each group is at most {bound.bound:g}"
            for bound in self.required().bounds
        )

    @property
    def by(self) -> str:
        """How the model is found."""
        return DESCENT

    def check(self) -> None:
        """Refuse settings that nothing reads."""
        solver = self.solver
        measured = isinstance(solver.allocation, str) and solver.allocation == STANDARD_ERROR
        idle = {
            "stage_one_share": None if measured else "without allocation='standard-error'",
            "penalty": "without constraints" if self.of.constraints is None else None,
        }
        if self.by == DESCENT:
            idle["region"] = "without a radius" if solver.radius is None else None
        fitting.refuse_unused(solver, idle)

    def task(self, opening: OpenedFit, cells: Cells | None, **of_target: Any) -> RegressionTask:
        """What is minimized, subject to what."""
        bounds = self.required().bounds
        if bounds and cells is None:
            remedy = "Pass fit(X, y, sensitive_features=...), or constraints=None."
            raise InputError.expected(
                "groups, whose losses it bounds", of="sensitive_features", got=None, remedy=remedy
            )
        layout = opening.training.rows.layout
        return RegressionTask(
            opening.promise,
            replace(layout, classes=None) if of_target else layout,
            cells,
            self._objective(cells),
            Constraint(bounds),
            public_rows=opening.public_rows,
            max_sample_weight=opening.max_sample_weight,
            penalty=self.solver.penalty,
            **of_target,
        )

    def _objective(self, cells: Cells | None) -> Objective:
        """The mean of the groups' losses, or of everybody's."""
        given = self.of.objective
        asked: Objective = MeanGroupLoss() if given is None else parse_objective(given)
        if not isinstance(asked, Error | MeanGroupLoss):
            remedy = "Pass objective='error', in which large groups weigh more, or leave it None."
            raise InputError.expected(
                "the mean of the groups' losses, or the error",
                of="objective",
                got=given,
                remedy=remedy,
            )
        return Error() if cells is None else asked

    def options(self) -> dict[str, Any]:
        """Settings of both searches."""
        solver = self.solver
        return {"stage_one": solver.stage_one_share, "clip": solver.clip, "radius": solver.radius}

    def publish(
        self, intent: PlannedFit, found: tuple[RegressionOutcome, Shares], curator: Curator
    ) -> None:
        of, training, cells = self.of, intent.training, intent.cells
        outcome, shares = found
        groups = named_groups(self.solver, cells, shares, intent.promise)
        statement = statement_of(curator, training, groups=groups)
        self.publish_model(intent, outcome)
        of.privacy_ = statement
        unit = 1.0 if training.target is None else training.target.half
        limits = limits_of(self.solver, cells)
        report = TailoringReport.of(shares, cells, statement, limits, unit)
        self.set_outcome(replace(outcome, constant=None, free=None), report)
        warn_if_worse(of.baselines_, learnt=bool(outcome.coefficients.any()))
        if of.constraint_report_.missed_by_far:
            worst = of.constraint_report_.worst
            assert worst is not None
            text = not_met(worst, "the model" if training.target is None else "the coefficients")
            warnings.warn(text, ConstraintNotMet, stacklevel=cautions.outside())

    @abstractmethod
    def publish_model(self, intent: PlannedFit, outcome: RegressionOutcome) -> None:
        """Write the model, and what stands beside it."""

    def set_outcome(self, outcome: RegressionOutcome, report: TailoringReport) -> None:
        """Publish what was found: after a fit, and when read from disk."""
        of = self.of
        of.outcome_, of.n_iter_, of.objective_ = outcome, outcome.calls, outcome.value
        of.tailoring_ = report
        of.constraint_report_ = self._report(outcome, fitting.said(of))

    @abstractmethod
    def _report(self, outcome: RegressionOutcome, required: tuple[str, ...]) -> ConstraintReport:
        """Of the losses."""


class TailoredClassifiedWay(TailoredWay):
    """Log losses, by descent."""

    loss: ClassVar[str] = "mean log loss"

    @property
    def module(self) -> Any:
        return module_of(self.of.model)

    def intend(self, read: Read, X: TableLike, shape: tuple[int, ...] | None) -> PlannedFit:
        of = self.of
        refuse_certify(of)
        whose, promise = fitting.asked(of)
        if whose is not None and self.module is not None:
            reading.refuse_persons(of, " with a module")
        ledger = fitting.ledger_of(of, promise)
        self.check()
        self._check_model(promise)
        ways = fitting.own_ways(of, promise, whose, wanted(of.model, epsilon=promise.epsilon))
        thin = ways.thin and self.module is None
        numbers: Numbers = "scaled" if self.module is None else "as given"
        opening = OpenedFit.of(of, promise, ledger, read(replace(ways, thin=thin)), numbers=numbers)
        opening = replace(opening, one_group=True)
        cells = groups_of(opening.training, self.solver.groups)
        return PlannedFit(opening, cells, self._plan(opening, cells, shape))

    def _check_model(self, promise: Promise) -> None:
        """Options of modules and of linear models, before rows are read."""
        solver = self.solver
        seen = (
            promise.protects == "sensitive_features"
            and promise.is_private
            and solver.sampling_rate != 1.0
        )
        linear = "without a module (model=None)" if self.module is None else None
        module = "with this module" if self.module is not None else None
        idle = {
            "by": "with a classifier, which descends",
            "device": linear,
            "sampling_rate": linear or (f"{module}, where features are public" if seen else None),
            "radius": module,
            "learning_rate": "with step_size='decaying'"
            if solver.step_size == "decaying"
            else None,
        }
        fitting.refuse_unused(self.of, {"constraints": module})
        fitting.refuse_unused(solver, idle)

    def _plan(self, opening: OpenedFit, cells: Cells | None, shape: tuple[int, ...] | None) -> Any:
        promise, training, solver = opening.promise, opening.training, self.solver
        skeleton = faces.skeleton_of(self.module, training, shape, solver.device)
        options = self.options() | {
            "learning_rate": solver.learning_rate,
            "region": solver.region,
            "step_size": solver.step_size,
            "iterate": solver.iterate or ("average" if skeleton is None else "last"),
            "scales": skeleton is None and fitting.numbers_are_scalable(training, promise),
        }
        if skeleton is not None:
            usual = networks.usual_settings(promise, opening.known_rows)
            rate = solver.sampling_rate
            options |= {"skeleton": skeleton, "rounds": usual.rounds}
            options["sampling_rate"] = usual.sampling_rate if rate is None else rate
            options["clip"] = usual.clip if solver.clip is None else solver.clip
        if solver.rounds is not None:
            options["rounds"] = solver.rounds
        allocation = allocation_of(solver, cells, promise)
        return plan_tailored_descent(self.task(opening, cells), allocation, loss="log", **options)

    def publish_model(self, intent: PlannedFit, outcome: RegressionOutcome) -> None:
        of, training, skeleton = self.of, intent.training, intent.search.skeleton
        weights = outcome.coefficients
        if skeleton is not None:
            of._set_model(faces.model_of(skeleton, weights, training), training.coding)
        else:
            layout = training.coding.layout
            lines = np.asarray(weights).reshape(-1, 1 + layout.width)
            model = LinearModel(lines[:, 1:], lines[:, 0], classes=training.classes, layout=layout)
            of._set_model(model, training.coding)
        of._publish_shape(training, intent.cells)
        of.baselines_ = of_tailored(outcome)

    def set_outcome(self, outcome: RegressionOutcome, report: TailoringReport) -> None:
        super().set_outcome(replace(outcome, coefficients=np.zeros(0)), report)

    def _report(self, outcome: RegressionOutcome, required: tuple[str, ...]) -> ConstraintReport:
        return ConstraintReport.of_losses(outcome, "losses", required)


class TailoredRegressedWay(TailoredWay):
    """Squared errors, by descent or from Gram matrices."""

    loss: ClassVar[str] = "mean squared error"

    @property
    def by(self) -> str:
        given = self.solver.by
        return given or (DESCENT if self.of.constraints is None else MOMENTS)

    def intend(self, read: Read, X: TableLike, shape: tuple[int, ...] | None) -> PlannedFit:
        of, moments = self.of, self.by == MOMENTS
        whose, promise = fitting.asked(of)
        ledger = fitting.ledger_of(of, promise)
        self.check()
        fitting.refuse_unused(self.solver, dict.fromkeys(OF_MODULES, "with a regression"))
        if moments:
            of_descent = ("region", "step_size", "iterate")
            fitting.refuse_unused(self.solver, dict.fromkeys(of_descent, "with by='moments'"))
        ways = fitting.own_ways(of, promise, whose, wanted(of.model, modules=False))
        target = NumericTarget.of(of._facts, promise, as_number=moments)
        # how empty private rows are decides nothing: see `scales`
        training = read(replace(ways, target=target, thin=False))
        opening = replace(OpenedFit.of(of, promise, ledger, training), one_group=True)
        cells = groups_of(training, self.solver.groups)
        return PlannedFit(opening, cells, self._plan(opening, cells))

    def _plan(self, opening: OpenedFit, cells: Cells | None) -> Any:
        promise, training, solver = opening.promise, opening.training, self.solver
        assert training.target is not None
        allocation = allocation_of(solver, cells, promise)
        task = self.task(opening, cells, unit=(2.0 * training.target.half) ** 2)
        options = self.options() | {"scales": scales(training, promise)}
        if self.by == MOMENTS:
            return plan_tailored_regression(
                task, allocation, **options, rounds=solver.rounds or CALLS
            )
        if solver.rounds is not None:
            options["rounds"] = solver.rounds
        walk = {
            "region": solver.region,
            "step_size": solver.step_size,
            "iterate": solver.iterate or "average",
        }
        return plan_tailored_descent(task, allocation, **options, **walk)

    def publish_model(self, intent: PlannedFit, outcome: RegressionOutcome) -> None:
        publish_regression(self.of, outcome, intent.training, intent.cells)
        self.of.baselines_ = of_regression(outcome)

    def _report(self, outcome: RegressionOutcome, required: tuple[str, ...]) -> ConstraintReport:
        return ConstraintReport.of_losses(outcome, required=required)


COLUMNS = ("shares", "errors", "counts", "epsilons")


@dataclass(frozen=True)
class TailoringReport(Shown):
    """What each group was given: released and public values only.

    `shares` of the last stage's budget, which add up to 1 in each sensitive column; `errors`:
    released standard errors, NaN where none were measured; `counts`: released sizes; `epsilons`:
    what a group's people spend over the whole fit, at the promise's delta: a larger number is a
    weaker guarantee; where `fixed` is False the smaller of an outcome's and the promise's own, each
    of which holds at delta, so that whoever goes by the smaller has it at twice that. `fixed`:
    shares were fixed before data were read; else a group's epsilon is an outcome's, of what was
    released (docs/tailoring.md).
    """

    groups: tuple[Hashable, ...]
    rule: str
    why: str
    shares: tuple[float, ...]
    errors: tuple[float, ...]
    counts: tuple[float, ...]
    epsilons: tuple[float, ...]
    fixed: bool

    @staticmethod
    def of(
        shares: Shares,
        cells: Cells | None,
        statement: PrivacyStatement,
        limits: Sequence[float] = (),
        unit: float = 1.0,
    ) -> TailoringReport:
        """Of what was shared and what the statement says of it; `limits`: the groups' max_epsilon;
        `unit`: of the target."""
        names = names_of(cells)
        nothing = np.full(len(names), math.nan)
        told = [one.epsilon for one in statement.groups] or [statement.epsilon] * len(names)
        told = [
            min(pair)
            for pair in zip(told, limits or told, [statement.epsilon] * len(names), strict=True)
        ]
        errors = nothing if shares.errors is None else shares.errors * unit
        columns = (shares.shares, errors, nothing if shares.counts is None else shares.counts)
        parts, spread, counts = (tuple(float(value) for value in column) for column in columns)
        return TailoringReport(
            tuple(names), shares.rule, shares.why, parts, spread, counts, tuple(told), shares.fixed
        )

    def table(self) -> list[dict[str, Any]]:
        """One mapping a group, of plain values; what was not measured is None."""
        columns = (self.shares, self.errors, self.counts, self.epsilons)
        names = ("group", "share", "standard_error", "count", "epsilon")
        return [
            dict(
                zip(
                    names,
                    (group, *(None if math.isnan(value) else value for value in line)),
                    strict=True,
                )
            )
            for group, *line in zip(group_names(self.groups), *columns, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an infinite epsilon is written "inf"."""
        groups = [
            line | {"epsilon": "inf"} if math.isinf(line["epsilon"]) else line
            for line in self.table()
        ]
        return {"rule": self.rule, "why": self.why, "fixed": self.fixed, "groups": groups}

    def parts(self) -> Iterator[Part]:
        """A line a group, and what the numbers mean."""
        yield Facts((Fact("shares of the budget", f"{self.rule} ({self.why})"),))
        table = self.table()
        units = {"group": "", "share": "percent", "epsilon": "", "standard_error": "plain"}
        shown = {
            name: tuple(line[name] if name != "epsilon" else at_most(line[name]) for line in table)
            for name in (*units, "count")
        }
        yield Table(
            tuple(Column(n, v, units.get(n, "count"), missing="-") for n, v in shown.items()),
            "What each group's people spend",
        )
        yield Note(
            "A larger epsilon is a weaker guarantee for that group. Each epsilon is at the delta of "
            "the whole fit, of people who are in that group in one of two neighboring tables."
        )
        if not self.fixed:
            yield Note(
                "Shares were made of released answers, so a group's own epsilon is that of this "
                "outcome. The table shows the smaller of it and the guarantee that was fixed in "
                "advance; the smaller one holds at twice delta."
            )


def allocation_of(solver: Tailored, cells: Cells | None, promise: Promise) -> Allocation:
    """How the budget is to be shared among these groups."""
    names = names_of(cells)
    rule = checked_rule(solver.allocation, names)
    limits: list[Floats | None] = []
    for of, otherwise in (("min_epsilon", 0.0), ("max_epsilon", math.inf)):
        given = getattr(solver, of)
        if given is None:
            limits.append(None)
            continue
        if cells is None:
            remedy = "Pass sensitive_features; epsilon= is everybody's."
            raise InputError.expected("None without groups", of=of, got=given, remedy=remedy)
        if cells.per_row > 1:
            remedy = (
                "A person spends in each of her groups: pass groups='product', whose groups do not "
                "overlap."
            )
            expected = "None with groups that overlap"
            raise InputError.expected(expected, of=of, got=given, remedy=remedy)
        if not promise.is_private or promise.neighbours != "add-remove":
            remedy = (
                "A person who is replaced by one of another group costs what both spend: no "
                "group has a limit alone."
            )
            expected = "None unless protects='records', add-remove"
            raise InputError.expected(expected, of=of, got=given, remedy=remedy)
        stated = by_group(given, names)
        if unknown := [key for key in stated if key not in names]:
            expected, remedy = f"groups out of {list(names)}", "Name groups as `groups_` does."
            raise InputError.expected(expected, of=of, got=unknown, remedy=remedy)
        # squared distances that groups' epsilons allow
        paid = np.full(len(names), otherwise)
        for key, epsilon in stated.items():
            epsilon = _checks.positive(**{of: epsilon})
            paid[list(names).index(key)] = gaussian_mu(epsilon, promise.delta) ** 2
        limits.append(paid)
    return Allocation(rule, solver.spend, *limits)


def names_of(cells: Cells | None) -> Sequence[Hashable]:
    """The groups, or everyone."""
    return ("everyone",) if cells is None else cells.keys


def by_group(given: Any, names: Sequence[Hashable]) -> dict[Hashable, Any]:
    """A limit by group, or one for all, as a limit by group."""
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(names, given)


def limits_of(solver: Tailored, cells: Cells | None) -> list[float]:
    """max_epsilon by group; inf where there is none."""
    names = names_of(cells)
    stated = by_group(math.inf if solver.max_epsilon is None else solver.max_epsilon, names)
    return [float(stated.get(key, math.inf)) for key in names]


def named_groups(
    solver: Tailored, cells: Cells | None, shares: Shares, promise: Promise
) -> list[NamedGroups]:
    """Whom a statement tells the guarantee of, and what was promised to them in advance."""
    if cells is None or not promise.is_private:
        return []
    limits = [limit if math.isfinite(limit) else None for limit in limits_of(solver, cells)]
    told = iter(zip(group_names(cells.keys), limits, strict=True))
    out = []
    for column, one in enumerate(each_column(cells)):
        names, most = zip(*(next(told) for _ in range(one.count)), strict=True)
        out.append(NamedGroups(names, column, shares.fixed, most))
    return out


def group_names(groups: Sequence[Hashable]) -> list[str]:
    """Printable, and each another, whatever groups are called."""
    shown = [keys.shown(key) for key in groups]
    plain = [text if text.strip() and text.isprintable() else ascii(text) for text in shown]
    if len(set(plain)) == len(plain):
        return plain
    return [f"{number}: {text}" for number, text in enumerate(plain, 1)]


def not_met(worst: ConstraintLine, who: str) -> str:
    """A warning's words."""
    return (
        f"a bound on a group's loss is not met: {worst.target}; {who} reached {worst.value:.4g} "
        f"(noise "
        f"{worst.noise:.4g}). Perhaps nothing in reach does: ask for a larger bound, penalty, "
        f"radius or epsilon; see "
        "constraint_report_."
    )
