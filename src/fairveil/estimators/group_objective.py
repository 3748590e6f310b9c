"""Fits of functions of group losses by private linear oracles (Alabi): classifiers, and least squares
from Gram matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .. import _checks
from .._types import Array, Floats, TableLike
from ..core.promise import Promise
from ..curator import Curator
from ..errors import InputError
from ..facts import Cells, RowLayout
from ..fairness import BoundedGroupLoss
from ..fairness.objectives import Constraint, Error, Objective, parse_constraint, parse_objective
from ..methods.descent import Progress, Reason
from ..methods.least_squares import ROUNDS as CALLS
from ..methods.least_squares import RegressionOutcome, RegressionTask, plan_regression
from ..methods.objective_descent import LossDescent, plan_descent
from ..methods.objective_loop import ROUNDS, Loop, PublicSearch, plan_loop, plan_public
from ..methods.objectives import Certain, Found, Problem, Sampling, plan_sampling
from ..methods.oracles import (
    Choice,
    Class,
    Each,
    Labellings,
    LinearClass,
    Oracle,
    Regression,
    Responses,
    directions,
    thresholds,
)
from ..models import DerandomisedModel, LinearModel, Model, RegressionModel
from . import cautions, fitting, settings
from .cautions import Numbers
from .certifying.certified_fits import refuse_certify
from .coding import SchemaCoding, wanted
from .fitting import OpenedFit, said, statement_of
from .mixing import (
    candidates_of,
    decided_by,
    descent_of,
    mixture_of_rules,
    model_of,
    needs_scale,
    shares_of,
    told_of,
)
from .reading import NumericTarget, Read, Training, groups_of, refuse_functions
from .reports import (
    ConstraintReport,
    of_objective,
    of_regression,
    warn_if_not_enforced,
    warn_if_worse,
    warn_of_missed,
)
from .settings import Setting
from .ways import PlannedFit, Way

NAMED = ("thresholds", "directions", "labellings")
LINEAR, EXPONENTIAL, LOG = "linear-oracle", "exponential", "log"
OF_CLASSIFIERS = ("method", "decisions", "loss", "oracle", "alpha", "confidence")


class GroupObjectiveWay(Way):
    """What classifiers and regressors have in common. Abstract."""

    kind: ClassVar[type[Setting]] = settings.GroupObjective

    def required(self) -> Constraint:
        return parse_constraint(self.of.constraints)

    def asked(self) -> tuple[Objective, Constraint]:
        """The two functions."""
        of = self.of
        objective = parse_objective("error" if of.objective is None else of.objective)
        constraint = self.required()
        fitting.refuse_confidence(constraint.notions, "constraints")
        return objective, constraint

    def idle(self, unread: dict[str, tuple[str, ...]]) -> None:
        """Refuse settings that would be read by nothing. `unread`: by the words of where."""
        told = {"penalty": "without constraints"} if self.of.constraints is None else {}
        for where, names in unread.items():
            told |= dict.fromkeys(names, where)
        fitting.refuse_unused(self.solver, told)


class ClassifiedWay(GroupObjectiveWay):
    """A mixture of decisions, one decision of a list, or one linear model."""

    title: ClassVar[str] = "Choosing"

    @property
    def draws(self) -> bool:
        return bool(self.solver.loss != LOG)

    def said(self, cells: Cells | None, classes: tuple[Any, ...]) -> tuple[str, ...]:
        return super().said(cells, () if self.solver.loss == LOG else classes)

    def intend(self, read: Read, X: TableLike, shape: tuple[int, ...] | None) -> PlannedFit:
        of, solver = self.of, self.solver
        refuse_functions(X, solver.method)
        refuse_certify(of)
        whose, promise = fitting.asked(of)
        ledger = fitting.ledger_of(of, promise)
        objective, constraint = self.asked()
        if solver.loss != LOG:
            constraint = constraint.of_decisions()
        self._refuse_idle()
        scaled = self._needs_scale(promise, X)
        ways = fitting.own_ways(of, promise, whose, wanted(of.model, modules=False), scaled=scaled)
        training = read(ways)
        opening = OpenedFit.of(of, promise, ledger, training, numbers=self._numbers(promise))
        cells = _cells(objective, constraint, training)
        problem = Problem.of(
            promise,
            training.rows.layout,
            cells,
            objective,
            constraint,
            public_rows=opening.public_rows,
            max_sample_weight=opening.max_sample_weight,
            loss=solver.loss,
        )
        listed = self.listed()
        among = decided_by(of, listed, training, X) if listed else self._named(training)
        return PlannedFit(opening, cells, Choosing(self._planned(problem, among, training)))

    def publish(
        self, intent: PlannedFit, found: tuple[Found, Certain | None], curator: Curator
    ) -> None:
        of, training, listed = self.of, intent.training, self.listed()
        outcome, certain = found
        statement = statement_of(curator, training, told_of(listed))
        model: Model | None = None
        if not listed and self.solver.loss == LOG:
            model = model_of(outcome.rules[0], training)
        elif not listed:
            model = mixture_of_rules(outcome.rules, outcome.weights, training)
        of._publish_shape(training, intent.cells)
        if isinstance(model, LinearModel):
            of._set_model(model, training.coding)
        self.set_outcome(outcome, model, listed, certain)
        of.privacy_ = statement
        told = (outcome.objective, outcome.objective_noise, outcome.constant, outcome.free)
        is_error = isinstance(self.asked()[0], Error)
        of.baselines_ = of_objective(*told, training.classes, is_error=is_error)
        warn_if_worse(of.baselines_, learnt=outcome.learnt)
        if of.constraint_report_.missed_by_far:
            ask = "Ask for a larger bound, a larger epsilon or penalty"
            warn_of_missed(of.constraint_report_, "the decisions reached", ask)
            return
        hidden = outcome.reason is Reason.HIDDEN
        warn_if_not_enforced(of.constraint_report_, outcome.kept, vain=hidden)

    def set_outcome(
        self, outcome: Found, model: Model | None, listed: tuple[Any, ...], certain: Certain | None
    ) -> None:
        """Write what was found: after a fit, and when read from disk."""
        of = self.of
        of.model_, of.candidates_ = model, listed
        of.plays_ = shares_of(outcome.rules, outcome.weights.tolist(), len(listed))
        of.outcome_, of.certain_, of.objective_ = outcome, certain, outcome.objective
        of.n_iter_ = outcome.rounds
        of.constraint_report_ = ConstraintReport.of(outcome, said(of))

    def derandomised(self, model: DerandomisedModel) -> None:
        """Write decisions without chance, whose losses nobody released."""
        found = self.of.outcome_
        unknown = replace(
            found,
            values=np.full_like(found.values, np.nan),
            losses=np.full_like(found.losses, np.nan),
            objective=float("nan"),
            excess=None,
        )
        self.set_outcome(unknown, model, (), None)

    # What is looked for, and by which oracle, from parameters and public facts.

    def _refuse_idle(self) -> None:
        solver = self.solver
        self.idle({"with a classifier": ("radius",)})
        if solver.method == EXPONENTIAL:
            where = "with method='exponential'"
            self.idle({where: ("oracle", "rounds", "clip")})
            if solver.penalty is not None:
                self.idle({"with a penalty": ("alpha",)})
        else:
            self.idle({f"with method={solver.method!r}": ("alpha", "confidence")})
            if solver.oracle == "responses" and solver.method != LINEAR:
                self.idle({f"with method={solver.method!r}": ("oracle",)})
        if solver.loss == LOG:
            self.idle({f"with loss={LOG!r}": ("oracle",)})
        if solver.decisions is not None:
            self.idle({"with decisions": ("oracle", "clip")})

    def listed(self) -> tuple[Any, ...]:
        """The classifiers given as decisions; none for rules by name or by weights."""
        given = self.solver.decisions
        if given is None or isinstance(given, np.ndarray):
            return ()
        if isinstance(given, str):
            _checks.one_of(NAMED, decisions=given)
            return ()
        return candidates_of(
            given, of="decisions", words=(*map(repr, NAMED), "a NumPy array of weights")
        )

    def _needs_scale(self, promise: Promise, X: TableLike) -> bool:
        """Whether cuts and steps of fixed size meet public numbers in any units: these are then
        scaled by themselves."""
        given, method = self.solver.decisions, self.solver.method
        named = given in NAMED[:2] if isinstance(given, str) else given is None
        meets = named and (
            method == EXPONENTIAL or given is not None or not self._regresses(promise)
        )
        return meets and needs_scale(promise, self.of._facts, X)

    def _numbers(self, promise: Promise) -> Numbers:
        """How the search takes numbers; weights that were handed in are in the caller's units."""
        given = self.solver.decisions
        if given is not None and not (isinstance(given, str) and given != "labellings"):
            return "unread"
        cut = self.solver.method == EXPONENTIAL or given is not None
        return (
            "as given"
            if cut or self.solver.loss == LOG or not self._regresses(promise)
            else "scaled"
        )

    def _named(self, training: Training) -> Class | None:
        """The finite list of decisions that has a name, or weights, if there is one."""
        given = self.solver.decisions
        if isinstance(given, np.ndarray):
            return _weights_given(given, training)
        if given is None:
            return None
        named: dict[str, Callable[[RowLayout], Class]] = {
            "thresholds": thresholds,
            "directions": directions,
            "labellings": Labellings,
        }
        return named[given](training.rows.layout)

    def _planned(self, problem: Problem, of: Class | None, training: Training) -> Search:
        """The search, planned and priced."""
        solver = self.solver
        if solver.loss == LOG:
            self._require_descent()
            return plan_descent(
                problem, rounds=solver.rounds, penalty=solver.penalty, clip=solver.clip
            )
        if solver.method == EXPONENTIAL:
            options = {"penalty": solver.penalty, "alpha": solver.alpha}
            among = of or thresholds(problem.ground.layout)
            return plan_sampling(problem, among, **options, confidence=solver.confidence)
        problem.require_convex()
        how = "frank-wolfe" if solver.method == "frank-wolfe" else None
        oracle, rounds = self._oracle(of, problem, training), solver.rounds
        if isinstance(oracle, Each):
            rounds = oracle.of.size
        if isinstance(oracle, Responses):
            return plan_public(problem, oracle, rounds=rounds, penalty=solver.penalty)
        return plan_loop(problem, oracle, step_by=how, rounds=rounds, penalty=solver.penalty)

    def _require_descent(self) -> None:
        """Losses of probabilities are descended, and nothing else."""
        solver = self.solver
        if solver.method != LINEAR or solver.decisions is not None:
            remedy = "Leave decisions as they are, pass method='linear-oracle', or loss='zero_one'."
            listed = "" if solver.decisions is None else " and decisions"
            got = f"method={solver.method!r}{listed}"
            raise InputError.expected(
                "linear models by descent", of=f"loss={LOG!r}", got=got, remedy=remedy
            )

    def _oracle(self, of: Class | None, problem: Problem, training: Training) -> Oracle:
        """Among a list that is short enough, every decision is looked at, unless Frank-Wolfe was
        asked for."""
        solver, ground = self.solver, problem.ground
        if of is not None:
            short = solver.method == LINEAR and of.size <= (solver.rounds or ROUNDS)
            return Each(of) if short and not ground.is_exact else Choice(of)
        if self._responds(problem):
            return Responses(Regression(solver.clip))
        classes = 2 if isinstance(problem.objective, Error) else ground.classes
        if self._regresses(
            ground.promise, classes, cautions.are_few_and_unbounded(training.coding, training.rows)
        ):
            return Regression(solver.clip)
        return descent_of(ground.promise, training, solver.clip)

    def _responds(self, problem: Problem) -> bool:
        """Whether rules are searched on public rows. One sum of losses and nothing else is what one
        regression answers."""
        if self.solver.oracle is not None:
            return bool(self.solver.oracle == "responses")
        linear = self.solver.method == LINEAR
        return linear and problem.ground.sees_features and not problem.is_linear

    def _regresses(self, promise: Promise, classes: int = 2, unbounded: bool = False) -> bool:
        """Whether the oracle regresses costs.

        A private descent aims at the error first, which with many `classes` is far from
        other objectives; of rows that are longer than its clip it hears little but signs. The sums
        of the regression have the noise of the longest row, which grows with their width.
        """
        usual = promise.features_are_public or classes > 2 or unbounded
        return self.solver.oracle in ("regression", "responses") or (
            self.solver.oracle is None and usual
        )


class RegressedWay(GroupObjectiveWay):
    """Least squares for an objective of the groups' losses (sec. 1.3.1)."""

    def said(self, cells: Cells | None, classes: tuple[Any, ...]) -> tuple[str, ...]:
        return super().said(cells, ())

    def intend(self, read: Read, X: TableLike, shape: tuple[int, ...] | None) -> PlannedFit:
        of = self.of
        whose, promise = fitting.asked(of)
        ledger = fitting.ledger_of(of, promise)
        objective, constraint = self.asked()
        self.idle({"with a regression": OF_CLASSIFIERS})
        ways = fitting.own_ways(of, promise, whose, wanted(of.model, modules=False))
        target = NumericTarget.of(of._facts, promise, as_number=True)
        # numbers are scaled inside: how empty private rows are decides nothing
        training = read(replace(ways, target=target, thin=False))
        opening = OpenedFit.of(of, promise, ledger, training, numbers="scaled")
        cells = _cells_of(objective, constraint, training)
        planned = self._plan(opening, objective, constraint, cells)
        return PlannedFit(opening, groups_of(training, either=False), planned)

    def _plan(
        self, opening: OpenedFit, objective: Objective, constraint: Constraint, cells: Cells | None
    ) -> Any:
        promise, training, solver = opening.promise, opening.training, self.solver
        assert training.target is not None
        task = RegressionTask(
            promise,
            replace(training.rows.layout, classes=None),
            cells,
            objective,
            constraint,
            unit=(2.0 * training.target.half) ** 2,
            public_rows=opening.public_rows,
            max_sample_weight=opening.max_sample_weight,
            penalty=solver.penalty,
        )
        return plan_regression(
            task,
            scales=scales(training, promise),
            clip=solver.clip,
            radius=solver.radius,
            rounds=solver.rounds or CALLS,
        )

    def publish(self, intent: PlannedFit, found: RegressionOutcome, curator: Curator) -> None:
        of, training = self.of, intent.training
        statement = statement_of(curator, training)
        publish_regression(of, found, training, intent.cells)
        of.privacy_ = statement
        self.set_outcome(replace(found, constant=None, free=None))  # they stand in baselines_
        of.baselines_ = of_regression(found)
        warn_if_worse(of.baselines_, learnt=bool(found.coefficients.any()))
        if of.constraint_report_.missed_by_far:
            ask = (
                "Perhaps no coefficients in reach do: ask for a larger bound, penalty, radius or "
                "epsilon"
            )
            warn_of_missed(of.constraint_report_, "the coefficients reached", ask, number=".4g")

    def set_outcome(self, outcome: RegressionOutcome) -> None:
        """Publish what was found: after a fit, and when read from disk."""
        of = self.of
        of.outcome_, of.n_iter_, of.objective_ = outcome, outcome.calls, outcome.value
        of.constraint_report_ = ConstraintReport.of_losses(outcome, required=said(of))


Search = Sampling | Loop | PublicSearch | LossDescent


class Choosing:
    """A search, whose answer may have bounds beside it."""

    def __init__(self, search: Search) -> None:
        self.inner, self.plan = search, search.plan

    def run(self, curator: Curator, tick: Progress | None) -> tuple[Found, Certain | None]:
        if isinstance(self.inner, Sampling):
            return self.inner.run(curator, tick)
        return self.inner.run(curator, tick), None


def publish_regression(
    of: Any, found: RegressionOutcome, training: Training, cells: Cells | None
) -> None:
    """Write coefficients that were found."""
    assert training.target is not None
    c = found.coefficients
    model = RegressionModel(c[1:], c[0], layout=training.coding.layout)
    of._set_model(model, training.coding, training.target)
    of._publish_columns(training, cells)


def _weights_given(given: Array, training: Training) -> LinearClass:
    """Linear rules from an array, checked."""
    layout, outputs = (
        training.rows.layout,
        1 if len(training.classes) == 2 else len(training.classes),
    )
    array: Floats = np.asarray(given, np.float64) if given.dtype.kind in "fiu" else np.empty(0)
    if array.ndim == 2 and outputs == 1:
        array = array[:, np.newaxis, :]
    if (
        array.ndim != 3
        or not len(array)
        or array.shape[1:] != (outputs, 1 + layout.width)
        or not np.isfinite(array).all()
    ):
        expected = (
            f"finite weights (m, {'' if outputs == 1 else f'{outputs}, '}{1 + layout.width}), the "
            f"intercept first"
        )
        remedy = "Numbers come after it, then the categories of each coded column, as in coef_."
        raise InputError.expected(expected, of="decisions", got=np.shape(given), remedy=remedy)
    return LinearClass(array)


def _cells(objective: Objective, constraint: Constraint, training: Training) -> Cells | None:
    """The groups: those of single columns where everything that names a kind of groups asks for
    these alone."""
    named = [objective.groups, *(one.groups for one in constraint.notions)]
    named += [bound.objective.groups for bound in constraint.bounds]
    modes = {mode for mode in named if isinstance(mode, str)}
    return groups_of(training, "marginal" if modes == {"marginal"} else "product")


def _cells_of(objective: Objective, constraint: Constraint, training: Training) -> Cells | None:
    """The groups, where they are distinguished; marginal ones where every notion is content with
    them, and nothing else asks."""
    if not (objective.needs_groups or constraint.needs_groups):
        return None
    if not training.rows.layout.sensitive:
        remedy = (
            "Pass fit(X, y, sensitive_features=...): columns, or names of columns of X; or "
            "objective='error' alone."
        )
        expected = (
            f"groups, which {objective if objective.needs_groups else constraint} tells apart"
        )
        raise InputError.expected(expected, of="sensitive_features", got=None, remedy=remedy)
    losses = [
        one
        for one in constraint.notions
        if isinstance(one, BoundedGroupLoss) and not one.is_vacuous
    ]
    marginal = (
        not objective.needs_groups
        and not constraint.bounds
        and all(one.groups == "marginal" for one in losses)
    )
    return groups_of(training, "marginal" if marginal else "product")


def scales(training: Training, promise: Promise) -> bool:
    """Whether numbers are scaled by their moments: dense ones are. Those of a schema are held to
    its bounds; of others that are protected, rows far beyond [-1, 1] are clipped, and the scale
    is what it is: only how much noise there is hangs on it."""
    if isinstance(training.coding, SchemaCoding) and training.coding.standard is None:
        return fitting.numbers_are_scalable(training, promise)
    return not training.rows.sparse
