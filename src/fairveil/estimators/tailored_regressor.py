"""`TailoredRegressor`: least squares whose privacy budget is shared among groups (Alabi and
Wiggins)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, field, replace
from typing import Any, ClassVar

from .._types import ColumnsLike, TableLike
from ..core.promise import Promise
from ..data.reading import PathLike
from ..errors import ConstraintNotMet
from ..facts import Cells
from ..fairness.objectives import Constraint, Error, MeanGroupLoss
from ..methods.allocation import LEAST_NOISE
from ..methods.least_squares import RegressionOutcome, RegressionTask
from ..methods.tailoring import (
    TailoredDescent,
    TailoredRegression,
    plan_tailored_descent,
    plan_tailored_regression,
)
from ..models import RegressionModel
from . import fitting, tailored
from .faces import CodedRegressor
from .fitting import OpenedFit, journal_in, run, said, statement_of
from .group_objective_regressor import scales
from .reading import additive, inputs, units
from .reading.carried import groups_of
from .reading.targets import NumericTarget
from .reading.training import ReadOptions
from .reading.unread import Read
from .reports import BaselineReport, ConstraintReport, of_regression, warn_if_worse
from .settings import Descent, GroupDescent, GroupLimits, Moments, Setting
from .tailored import TailoringReport
from .words import described, worded

OF_MODULES = ("sampling_rate", "learning_rate", "device")
Planned = TailoredRegression | TailoredDescent


@described
class TailoredRegressor(CodedRegressor):
    """Linear regression in which groups share a privacy budget, and every group weighs the same.

    Minimizes the mean over groups of the group's mean squared error, subject to a bound on each if
    there is one; see docs/tailoring.md. A group with a larger share has less noise in its sums, and
    a weaker guarantee.

    Parameters
    ----------
    allocation : str or mapping of groups to float, default="least-noise"
        How the budget is shared. ``"least-noise"``: the least noise in the minimized function.
        ``"standard-error"``: by the squared standard errors of a private precursor, stage one, as
        in the paper. ``"equal"``. ``"size"``: by one over released sizes. A mapping has shares of
        any scale.
    group_loss_bound : float or mapping of groups to float, default=None
        Bound on every group's mean squared error, in squared units of y. None: no bound.
    unit : str, mapping of one name, or one value a row, default=None
        Protects persons, each with all of their rows (docs/persons.md). It is the name of the
        column of X that tells persons apart, which is then no feature, or one value a row. None:
        protects each row by itself. All rows of a person count in one group, where most of them
        are.
    solver : GroupDescent, Moments or Descent, default=None
        How coefficients are found. ``GroupDescent()``: rounds of gradients. ``Moments()``: Gram
        matrices, released once; it keeps bounds on losses as well as noise allows. None: moments
        for bounded losses, else descent, which has noise of residuals and not of rows.
    model : str or Additive, default=None
        None: a model that is linear in the columns. ``"additive"`` or an `Additive`: steps of each
        number beside the line (docs/additive_models.md).

    Attributes
    ----------
    model_ : RegressionModel
        The model that was found.
    coef_, intercept_, coef_names_, target_, tailoring_, constraint_report_, baselines_,
    outcome_, objective_, privacy_, groups_, n_features_in_, feature_names_in_, coding_, cells_,
    n_iter_

    See Also
    --------
    TailoredClassifier : Does the same for log losses.
    GroupObjectiveRegressor : Other functions of group losses, one budget for all.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_tailored_regressor.py):

    1. The fit depends on the rows through the curator's releases alone, except for what
       `privacy_.facts` and `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most (epsilon, delta). No group spends more
       than its own guarantee says.
    3. A fit that fails or is interrupted changes no attribute.

    References
    ----------
    .. [1] Alabi and Wiggins. "Privacy Budget Tailoring in Private Data Analysis." OpenReview
       SnPEhMyuYX. Corrected as docs/theory/papers.md tells.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = (rng.uniform(size=4000) < 0.1).astype(int)
    >>> X = rng.uniform(-1, 1, size=(4000, 1))
    >>> y = np.where(A == 0, 2 * X[:, 0], X[:, 0]) + 0.1 * rng.normal(size=4000)
    >>> reg = TailoredRegressor(epsilon=2.0, target_bounds=(-3, 3), random_state=0).fit(
    ...     X, y, sensitive_features=A
    ... )
    >>> reg.coef_.round(1), reg.privacy_.epsilon <= 2.0
    (array([1.5]), True)
    >>> large, small = reg.tailoring_.epsilons
    >>> large < small
    True
    """

    constraint_report_: ConstraintReport = field(init=False)
    baselines_: BaselineReport | None = field(init=False)
    outcome_: RegressionOutcome = field(init=False)
    tailoring_: TailoringReport = field(init=False)
    objective_: float = field(init=False)
    n_iter_: int = field(init=False)

    SETTINGS: ClassVar = {"solver": (GroupDescent, Moments), "limits": (GroupLimits,)}

    allocation: str | Mapping[Any, float] = LEAST_NOISE
    group_loss_bound: float | Mapping[Any, float] | None = None
    _: KW_ONLY
    stage_one_share: float = 0.2
    limits: GroupLimits | None = None
    target_bounds: tuple[float, float] | None = None
    solver: GroupDescent | Moments | Descent | None = None
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
    ) -> TailoredRegressor:
        """Fit to a table X and numbers y, matched by position.

        Warns
        -----
        ConstraintNotMet, WorseThanBaseline
        """
        journal = journal_in(self.checkpoint)
        opening, cells, planned = self._intend(
            lambda ways: inputs.read(X, y, sensitive_features, sample_weight, ways)
        )
        promise, training = opening.promise, opening.training
        (outcome, shares), curator = run(opening, planned.plan, "Fitting", planned.run, journal)
        statement = statement_of(
            curator, opening.training, groups=tailored.named_groups(self, cells, shares, promise)
        )
        assert training.target is not None
        c = outcome.coefficients
        self._set_model(
            RegressionModel(c[1:], c[0], layout=training.coding.layout),
            training.coding,
            training.target,
        )
        self._publish_columns(training, cells)
        self.privacy_ = statement
        limits, half = tailored.limits_of(self, cells), training.target.half
        told = replace(outcome, constant=None, free=None)  # they stand in baselines_
        self._set_outcome(told, TailoringReport.of(shares, cells, statement, limits, half))
        self.baselines_ = of_regression(outcome)
        warn_if_worse(self.baselines_, learnt=bool(outcome.coefficients.any()))
        if self.constraint_report_.missed_by_far:
            self._warn()
        return self

    def _intend(self, read: Read) -> tuple[OpenedFit, Cells | None, Planned]:
        """Check, read the rows and plan: all that comes before the first question."""
        whose, promise = fitting.asked(self)
        ledger = fitting.ledger_of(self, promise)
        tailored.check(self, self._solver)
        if isinstance(self._solver, GroupDescent):
            fitting.refuse_unused(self._solver, dict.fromkeys(OF_MODULES, "with a regression"))
        opening = OpenedFit.of(self, promise, ledger, read(self._ways(promise, whose)))
        opening = replace(opening, one_group=True)
        cells = groups_of(opening.training, self._limits.groups)
        return opening, cells, self._plan(opening, cells)

    def _search(self, read: Read) -> Planned:
        return self._intend(read)[2]

    def _kinds(self, slot: str) -> tuple[type[Setting], ...]:
        if slot != "solver":
            return super()._kinds(slot)
        moments = isinstance(self.solver, Moments) or (
            self.solver is None and self.group_loss_bound is not None
        )
        return (Moments, GroupDescent) if moments else (GroupDescent, Moments)

    @property
    def _solver(self) -> GroupDescent | Moments:
        if self._kinds("solver")[0] is Moments:
            return self._setting("solver", Moments)
        return self._setting("solver", GroupDescent)

    @property
    def _limits(self) -> GroupLimits:
        return self._setting("limits", GroupLimits)

    # -- fitting -----------------------------------------------------------------------------------

    def _ways(self, promise: Promise, whose: units.Whose | None) -> ReadOptions:
        unsafe, as_number = (
            bool(self.unsafe_data_dependent_bounds),
            isinstance(self._solver, Moments),
        )
        ways = fitting.own_ways(
            self, promise, whose, additive.of_rows(self.model), standardise=unsafe
        )
        target = NumericTarget.of(
            self.target_bounds,
            open_range=promise.features_are_public,
            unsafe=unsafe,
            as_number=as_number,
        )
        # how empty private rows are decides nothing: see `scales`
        return replace(ways, target=target, thin=False)

    def _plan(self, opening: OpenedFit, cells: Cells | None) -> Planned:
        promise, training = opening.promise, opening.training
        assert training.target is not None
        rows = training.rows
        allocation = tailored.allocation_of(self, cells, promise)
        task = RegressionTask(
            promise,
            replace(rows.layout, classes=None),
            cells,
            Error() if self._limits.objective == "people" or cells is None else MeanGroupLoss(),
            Constraint(tuple(tailored.bounds_of(self.group_loss_bound, cells))),
            unit=(2.0 * training.target.half) ** 2,
            public_rows=opening.public_rows,
            max_sample_weight=opening.max_sample_weight,
            penalty=self._solver.penalty,
        )
        solver = self._solver
        options: dict[str, Any] = {
            "stage_one": self.stage_one_share,
            "clip": solver.clip,
            "radius": solver.radius,
        }
        if solver.rounds is not None:
            options["rounds"] = solver.rounds
        if isinstance(solver, Moments):
            return plan_tailored_regression(
                task, allocation, scales=scales(training, promise), **options
            )
        walk = {
            "region": solver.region,
            "step_size": solver.step_size,
            "iterate": solver.iterate or "average",
        }
        return plan_tailored_descent(
            task, allocation, scales=scales(training, promise), **options, **walk
        )

    def _set_outcome(self, outcome: RegressionOutcome, report: TailoringReport) -> None:
        """Publish what was found: after a fit, and when read from disk."""
        self.outcome_, self.n_iter_, self.objective_, self.tailoring_ = (
            outcome,
            outcome.calls,
            outcome.value,
            report,
        )
        self.constraint_report_ = ConstraintReport.of_losses(outcome, required=said(self))

    def _warn(self) -> None:
        worst = self.constraint_report_.worst
        assert worst is not None
        warnings.warn(tailored.not_met(worst, "the coefficients"), ConstraintNotMet, stacklevel=3)
