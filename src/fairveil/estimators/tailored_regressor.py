"""`TailoredRegressor`: least squares whose privacy budget is shared among groups (Alabi and
Wiggins)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from .._types import ColumnsLike, TableLike
from ..core.promise import Promise
from ..data.reading import PathLike
from ..errors import ConstraintNotMet
from ..facts import Cells, Schema
from ..fairness.objectives import Constraint, Error, MeanGroupLoss
from ..learning.allocation import LEAST_NOISE
from ..learning.least_squares.task import RegressionOutcome, RegressionTask
from ..learning.tailoring.descent import TailoredDescent, plan_tailored_descent
from ..learning.tailoring.regression import TailoredRegression, plan_tailored_regression
from ..models import RegressionModel
from ..models.model import RandomState
from . import tailored
from .faces.coded_regressor import CodedRegressor
from .fitting import promises, unused
from .fitting.opened_fit import OpenedFit
from .fitting.publish import statement_of
from .fitting.requirements import said
from .fitting.running import journal_in, run
from .group_objective_regressor import scales
from .reading import additive, inputs, units
from .reading.carried import groups_of
from .reading.targets import NumericTarget
from .reading.training import ReadOptions
from .reading.unread import Read
from .reports.baselines import BaselineReport, of_regression, warn_if_worse
from .reports.constraint_report import ConstraintReport
from .settings.descents import Descent
from .settings.grouped import GroupDescent, GroupLimits
from .settings.least_squares import Moments
from .settings.setting import Setting
from .tailored import TailoringReport

OF_MODULES = ("sampling_rate", "learning_rate", "device")
Planned = TailoredRegression | TailoredDescent


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
    stage_one_share : float, default=0.2
        Share of the squared budget that releases of standard errors may cost.
    limits : GroupLimits, default=None
        Which groups there are, how they weigh, and what their people may spend, such as
        ``GroupLimits(max_epsilon=2.0)``. None: every combination of values weighs the same, with no
        limits.
    epsilon : float, default=1.0
        Privacy budget of this fit. Smaller is more private. ``float('inf')`` adds no noise and
        gives no privacy; the statement is flagged ``not-private``. Choose it without looking at the
        data.
    delta : float, default=1e-6
        Slack that is added to the epsilon bound: one row changes the probability of any results by
        a factor of at most e^epsilon, plus delta. Choose it well below ``1 / n_rows``.
    protects : {"records", "sensitive_features"}, default="records"
        What is protected. ``"records"``: all of a row. ``"sensitive_features"``: the sensitive
        attributes alone; features and labels are then public.
    neighbours : {"add-remove", "replace-one"}, default=None
        Adjacency relation: one record is added or removed, or one is replaced. None:
        ``"add-remove"`` for records, ``"replace-one"`` for sensitive features.
    schema : Schema, default=None
        Public facts of the table (`fairveil.facts.Schema`). Columns, bounds, classes and groups are
        then its own, and none of them is read from the data. None: they are read, and the statement
        says so.
    public_rows : int, default=None
        About how many rows there are, where the exact number is private but a rough one is public.
        With a `unit`, about how many are read. None: the schema's number, else one noisy count that
        is part of the plan.
    max_sample_weight : float, default=1.0
        Largest sample weight. Larger weights are clipped to it, unless nothing is private. It
        multiplies every sensitivity, and so the noise.
    unsafe_data_dependent_bounds : bool, default=False
        Scale numbers by means and standard deviations of the training rows, which no guarantee
        covers. The statement is flagged ``data-dependent-bounds``. False: numbers are scaled by
        public bounds, or by noisy releases.
    random_state : int or Generator, default=None
        None draws secure noise. An integer, or a NumPy generator, repeats the fit and flags the
        statement INSECURE.
    ledger : Ledger, default=None
        Where the fit reserves its whole cost before rows are read, or is refused. None: the ledger
        of the ``with ledger.recording():`` block, if there is one. It is never saved with the
        estimator.
    unit : str, mapping of one name, or one value a row, default=None
        Protects persons, each with all of their rows (docs/persons.md). It is the name of the
        column of X that tells persons apart, which is then no feature, or one value a row. None:
        protects each row by itself. All rows of a person count in one group, where most of them
        are.
    max_rows_per_unit : int, default=None
        Most rows of one person that the fit reads, a public number; required beside `unit`. A
        person with more rows has so many of them drawn. Noise of counts grows with it, and a `clip`
        is then of the sum of a person's gradients.
    target_bounds : pair of float, default=None
        Public bounds ``(low, high)`` of y, in its own units; y is clipped to them. None: the
        schema's bounds, or the range of y where y is public. Otherwise (-1, 1), with a warning.
    solver : GroupDescent, Moments or Descent, default=None
        How coefficients are found. ``GroupDescent()``: rounds of gradients. ``Moments()``: Gram
        matrices, released once; it keeps bounds on losses as well as noise allows. None: moments
        for bounded losses, else descent, which has noise of residuals and not of rows.
    sensitive_as_feature : bool, default=False
        Whether columns of X that are named as sensitive are features too. For
        ``protects="records"`` alone.
    checkpoint : path, default=None
        Folder in which answers of an interrupted fit are kept. Fit again with the same arguments
        and rows, and it is resumed: answers are given again at no further price. None: nothing is
        kept.
    model : str or Additive, default=None
        None: a model that is linear in the columns. ``"additive"`` or an `Additive`: steps of each
        number beside the line (docs/additive_models.md).

    Attributes
    ----------
    model_ : RegressionModel
        The model that was found.
    coef_ : ndarray
        Coefficients, in the units of X; of linear models alone.
    intercept_ : ndarray or float
        Intercept; of linear models alone.
    coef_names_ : tuple of str
        Name of each coefficient; of linear models alone.
    target_ : TargetScale
        How y is clipped and scaled.
    tailoring_ : TailoringReport
        Shares, standard errors and guarantee of each group.
    constraint_report_ : ConstraintReport
        Released value, noise and bound of each constraint on the training rows.
    baselines_ : BaselineReport or None
        Released error of the result beside results that cost nothing further.
    outcome_ : RegressionOutcome
        Everything that the search released.
    objective_ : float
        Released value of the minimized objective.
    privacy_ : PrivacyStatement
        Statement of what the fit cost and of what it covers.
    groups_ : tuple
        Keys of the groups; empty for a fit without sensitive features.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the columns of X; there only if X had names.
    coding_ : TableCoding or SchemaCoding
        How tables are coded: which column is which number or category.
    cells_ : Cells or None
        Groups as cells of the sensitive columns; None for a fit without them.
    n_iter_ : int
        Number of rounds that ran.

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

    constraint_report_: ConstraintReport
    baselines_: BaselineReport | None
    outcome_: RegressionOutcome
    tailoring_: TailoringReport
    objective_: float
    n_iter_: int

    SETTINGS: ClassVar = {"solver": (GroupDescent, Moments), "limits": (GroupLimits,)}

    def __init__(
        self,
        allocation: str | Mapping[Any, float] = LEAST_NOISE,
        group_loss_bound: float | Mapping[Any, float] | None = None,
        *,
        stage_one_share: float = 0.2,
        limits: GroupLimits | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        protects: str = "records",
        neighbours: str | None = None,
        schema: Schema | None = None,
        public_rows: int | None = None,
        max_sample_weight: float = 1.0,
        unsafe_data_dependent_bounds: bool = False,
        random_state: RandomState = None,
        ledger: object = None,
        unit: ColumnsLike = None,
        max_rows_per_unit: int | None = None,
        target_bounds: tuple[float, float] | None = None,
        solver: GroupDescent | Moments | Descent | None = None,
        sensitive_as_feature: bool = False,
        checkpoint: PathLike | None = None,
        model: object = None,
    ) -> None:
        self.allocation = allocation
        self.group_loss_bound = group_loss_bound
        self.stage_one_share = stage_one_share
        self.limits = limits
        self.epsilon = epsilon
        self.delta = delta
        self.protects = protects
        self.neighbours = neighbours
        self.schema = schema
        self.public_rows = public_rows
        self.max_sample_weight = max_sample_weight
        self.unsafe_data_dependent_bounds = unsafe_data_dependent_bounds
        self.random_state = random_state
        self.ledger = ledger
        self.unit = unit
        self.max_rows_per_unit = max_rows_per_unit
        self.target_bounds = target_bounds
        self.solver = solver
        self.sensitive_as_feature = sensitive_as_feature
        self.checkpoint = checkpoint
        self.model = model

    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> TailoredRegressor:
        """Fit to a table X and numbers y, matched by position.

        Parameters
        ----------
        X : table or array
            Features: an array, a table or a source of coded rows; see docs/data.md.
        y : array, default=None
            Labels, or numbers for regression. None: the schema names the target among the columns
            of X.
        sensitive_features : array, table or names of columns of X, default=None
            Groups: one column or several. None: the schema's, or no groups.
        sample_weight : array, default=None
            Weight of each row, clipped to `max_sample_weight`. None: 1.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If an argument or the table cannot be used.
        Overspent
            If the ledger's budget does not suffice for the cost.

        Warns
        -----
        ConstraintNotMet
            If released values say that a constraint is missed by far.
        WorseThanBaseline
            If the result errs more than something that costs nothing further.
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
        whose, promise = promises.asked(self)
        ledger = promises.ledger_of(self, promise)
        tailored.check(self, self._solver)
        if isinstance(self._solver, GroupDescent):
            unused.refuse(self._solver, dict.fromkeys(OF_MODULES, "with a regression"))
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
        ways = promises.own_ways(
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
