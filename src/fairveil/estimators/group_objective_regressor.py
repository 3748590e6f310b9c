"""`GroupObjectiveRegressor`: least squares for an objective of the groups' losses (Alabi, sec.
1.3.1)."""

from __future__ import annotations

from dataclasses import KW_ONLY, field, replace
from typing import ClassVar

from .. import _checks
from .._types import ColumnsLike, TableLike
from ..core.promise import Promise
from ..data.reading import PathLike
from ..errors import InputError
from ..facts import Cells, RowSource
from ..fairness import BoundedGroupLoss
from ..fairness.objectives import Constraint, Objective, parse_constraint, parse_objective
from ..methods.least_squares import (
    CoefficientChoice,
    GroupRegression,
    RegressionOutcome,
    RegressionTask,
    checked,
    plan_choice,
    plan_regression,
)
from ..methods.quadratics import METHODS
from ..models import RegressionModel
from . import fitting
from .faces import CodedRegressor, in_coded_units
from .fitting import OpenedFit, journal_in, run, said, statement_of
from .reading import additive, inputs, units
from .reading.carried import groups_of
from .reading.cautions import Numbers
from .reading.coding import SchemaCoding
from .reading.elsewhere import refuse_functions
from .reading.targets import NumericTarget
from .reading.training import ReadOptions, Training
from .reading.unread import Read
from .reports import BaselineReport, ConstraintReport, of_regression, warn_if_worse, warn_of_missed
from .settings import CoefficientGrid, Moments, Setting, stated
from .words import described, worded

EXPONENTIAL = "exponential"
Planned = GroupRegression | CoefficientChoice


@described
class GroupObjectiveRegressor(CodedRegressor):
    """Linear regression that minimizes a convex function f of the groups' mean squared errors.

    It finds one coefficient vector that minimizes f of the groups' squared errors, subject to g of
    them being at most 0; see docs/group_objective.md. It works without groups and without a
    constraint, and is private least squares then.

    Parameters
    ----------
    objective : str or objective, default="error"
        The minimized function f: ``"error"`` (the mean squared error), ``"largest_group_loss"``, or
        an objective of `fairveil.fairness.objectives`, such as
        ``WeightedError(groups={"f": 2.0})``. A `Custom` one is a function of losses in squared
        ranges of y.
    constraint : notion, str, objective or list of these, default=None
        The constrained function g: ``BoundedGroupLoss(max_loss, loss="squared")``,
        ``"largest_group_loss:0.5"``, ``"gini:0.1"``, or a bound of an objective. Losses are in
        squared units of y. None: no constraint.
    method : {"linear-oracle", "frank-wolfe", "exponential"}, default="linear-oracle"
        ``"linear-oracle"``: cutting planes, exact for the released values. ``"frank-wolfe"``:
        Algorithm 4. ``"exponential"``: a private choice among `decisions`.
    decisions : array of shape (candidates, 1 + features), default=None
        Public coefficient vectors of ``"exponential"``, in the units of X and y: the intercept
        first, then one for each of `coef_names_`. None: a grid, for at most two features.
    solver : Moments or CoefficientGrid, default=None
        Settings of the search, such as ``Moments(clip=3.0)``, or ``CoefficientGrid(radius=2.0)``
        with ``method="exponential"``. None: the library's.
    model : str or Additive, default=None
        None: a model that is linear in the columns. ``"additive"`` or an `Additive`: steps of each
        number beside the line (docs/additive_models.md).

    Attributes
    ----------
    model_ : RegressionModel
        The model that was found.
    coef_, intercept_, coef_names_, target_, objective_, constraint_report_, baselines_,
    outcome_, privacy_, groups_, n_features_in_, feature_names_in_, coding_, cells_, n_iter_

    See Also
    --------
    GroupObjectiveClassifier : Does the same for classification errors.
    TailoredRegressor : Shares the privacy budget among groups.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_group_regressor.py):

    1. The fit depends on the rows through the curator's releases alone, except for what
       `privacy_.facts` and `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most (epsilon, delta).
    3. A fit that fails or is interrupted changes no attribute.

    References
    ----------
    .. [1] Alabi 2019. "The Cost of a Reductions Approach to Private Fair Optimization." Corrected
       as docs/theory/papers.md tells.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=4000)
    >>> X = rng.uniform(-1, 1, size=(4000, 1))
    >>> y = np.where(A == 0, 2 * X[:, 0], X[:, 0]) + 0.1 * rng.normal(size=4000)
    >>> reg = GroupObjectiveRegressor(
    ...     "largest_group_loss", epsilon=2.0, target_bounds=(-3, 3), random_state=0
    ... )
    >>> reg.fit(X, y, sensitive_features=A).coef_.round(1)
    array([1.5])
    >>> reg.privacy_.epsilon <= 2.0, reg.groups_
    (True, (0, 1))
    """

    constraint_report_: ConstraintReport = field(init=False)
    baselines_: BaselineReport | None = field(init=False)
    outcome_: RegressionOutcome = field(init=False)
    objective_: float = field(init=False)
    n_iter_: int = field(init=False)

    SETTINGS: ClassVar = {"solver": (Moments, CoefficientGrid)}
    DECIDED: ClassVar = {"solver": "method"}

    objective: object = "error"
    constraint: object = None
    method: str = "linear-oracle"
    decisions: object = None
    _: KW_ONLY
    target_bounds: tuple[float, float] | None = None
    solver: Moments | CoefficientGrid | None = None
    sensitive_as_feature: bool = False
    checkpoint: PathLike | None = None
    model: object = None

    @worded
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> GroupObjectiveRegressor:
        """Fit to a table X and numbers y, matched by position.

        Warns
        -----
        ConstraintNotMet, WorseThanBaseline
        """
        refuse_functions(X, self.method)
        journal = journal_in(self.checkpoint)
        opening, planned = self._intend(
            lambda ways: inputs.read(X, y, sensitive_features, sample_weight, ways), X
        )
        training, whole = opening.training, groups_of(opening.training, either=False)
        outcome, curator = run(opening, planned.plan, "Fitting", planned.run, journal)
        statement = statement_of(curator, training)
        assert training.target is not None
        c = outcome.coefficients
        self._set_model(
            RegressionModel(c[1:], c[0], layout=training.coding.layout),
            training.coding,
            training.target,
        )
        self._publish_columns(training, whole)
        self.privacy_ = statement
        self._set_outcome(replace(outcome, constant=None, free=None))  # they stand in baselines_
        self.baselines_ = of_regression(outcome)
        warn_if_worse(self.baselines_, learnt=bool(outcome.coefficients.any()))
        if self.constraint_report_.missed_by_far:
            self._warn()
        return self

    def _intend(self, read: Read, X: TableLike) -> tuple[OpenedFit, Planned]:
        """Check, read the rows and plan: all that comes before the first question. `X`: as given;
        None: there is none yet."""
        whose, promise = fitting.asked(self)
        ledger = fitting.ledger_of(self, promise)
        objective, constraint = parse_objective(self.objective), parse_constraint(self.constraint)
        fitting.refuse_confidence(constraint.notions, "constraint")
        _checks.one_of((*METHODS, EXPONENTIAL), method=self.method)
        if self.decisions is not None and self.method != EXPONENTIAL:
            remedy = (
                "A list is chosen from by method='exponential'; the other methods find "
                "coefficients themselves."
            )
            raise InputError.expected(
                f"None with method={self.method!r}", of="decisions", got="a list", remedy=remedy
            )
        chosen = self.method == EXPONENTIAL
        idle = {
            "radius": "with decisions" if self.decisions is not None else None,
            "penalty": "without a constraint" if self.constraint is None else None,
        }
        kind: type[Moments | CoefficientGrid] = CoefficientGrid if chosen else Moments
        fitting.refuse_others(self.solver, kind, f"with method={self.method!r}")
        fitting.refuse_unused(self._setting("solver", kind), idle)
        opening = OpenedFit.of(
            self, promise, ledger, read(self._ways(promise, X, whose)), numbers=self._numbers()
        )
        return opening, self._plan(
            opening, objective, constraint, _cells_of(objective, constraint, opening.training)
        )

    def _kinds(self, slot: str) -> tuple[type[Setting], ...]:
        if slot == "solver" and self.method == EXPONENTIAL:
            return (CoefficientGrid, Moments)
        return super()._kinds(slot)

    def _search(self, read: Read) -> Planned:
        return self._intend(read, None)[1]

    def _numbers(self) -> Numbers:
        """How the search takes numbers: a grid is of coefficients of numbers of a size about 1."""
        if self.decisions is not None:
            return "unread"
        return "as given" if self.method == EXPONENTIAL else "scaled"

    # -- fitting -----------------------------------------------------------------------------------

    def _ways(self, promise: Promise, X: TableLike, whose: units.Whose | None) -> ReadOptions:
        unsafe, open_range = bool(self.unsafe_data_dependent_bounds), promise.features_are_public
        as_number = self.method != EXPONENTIAL
        # a grid is of coefficients of numbers in public units
        plain = self.schema is None and not isinstance(X, RowSource)
        scaled = unsafe or (plain and not as_number and promise.protects == "sensitive_features")
        ways = fitting.own_ways(
            self, promise, whose, additive.of_rows(self.model), standardise=scaled
        )
        target = NumericTarget.of(
            self.target_bounds, open_range=open_range, unsafe=unsafe, as_number=as_number
        )
        # numbers are scaled inside: how empty private rows are decides nothing
        thin = ways.thin and not as_number
        return replace(ways, target=target, thin=thin)

    def _plan(
        self, opening: OpenedFit, objective: Objective, constraint: Constraint, cells: Cells | None
    ) -> Planned:
        promise, training = opening.promise, opening.training
        assert training.target is not None
        rows = training.rows
        task = RegressionTask(
            promise,
            replace(rows.layout, classes=None),
            cells,
            objective,
            constraint,
            unit=(2.0 * training.target.half) ** 2,
            public_rows=opening.public_rows,
            max_sample_weight=opening.max_sample_weight,
            penalty=stated(self, "penalty"),
        )
        if self.method == EXPONENTIAL:
            listed = (
                None
                if self.decisions is None
                else checked(self.decisions, training.coding.layout.width)
            )
            coded = (
                None if listed is None else in_coded_units(listed, training.coding, training.target)
            )
            return plan_choice(task, coded, radius=self._setting("solver", CoefficientGrid).radius)
        told = self._setting("solver", Moments)
        options = {
            "clip": told.clip,
            "radius": told.radius,
            "method": self.method,
            "rounds": told.rounds,
        }
        return plan_regression(task, scales=scales(training, promise), **options)

    def _set_outcome(self, outcome: RegressionOutcome) -> None:
        """Publish what was found: after a fit, and when read from disk."""
        self.outcome_, self.n_iter_, self.objective_ = outcome, outcome.calls, outcome.value
        self.constraint_report_ = ConstraintReport.of_losses(outcome, required=said(self))

    def _warn(self) -> None:
        report, reached = self.constraint_report_, "the coefficients reached"
        ask = (
            "Perhaps no coefficients in reach do: ask for a larger bound, penalty, radius or "
            "epsilon"
        )
        warn_of_missed(report, reached, ask, number=".4g", stacklevel=4)


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
