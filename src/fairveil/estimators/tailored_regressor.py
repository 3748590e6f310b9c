"""`TailoredRegressor`: least squares whose privacy budget is shared among groups (Alabi and Wiggins)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from .. import _checks
from ..errors import ConstraintNotMet
from ..facts import Cells
from ..fairness.objectives import Constraint, Error, MeanGroupLoss
from ..learning.allocation import LEAST_NOISE
from ..learning.least_squares.task import RegressionOutcome, RegressionTask
from ..learning.tailoring.descent import TailoredDescent, plan_tailored_descent
from ..learning.tailoring.regression import TailoredRegression, plan_tailored_regression
from ..models import RegressionModel
from ..privacy.promise import Promise
from . import tailored
from .faces.coded_regressor import CodedRegressor
from .fitting import promises
from .fitting.openings import Opening
from .fitting.progress import progress
from .fitting.publish import statement_of
from .fitting.requirements import said
from .group_objective_regressor import scales
from .reading import additive, inputs, units
from .reading.carried import groups_of
from .reading.targets import NumericTarget
from .reading.unread import Read
from .reports.baselines import BaselineReport, of_regression, warn_if_worse
from .reports.constraint_report import ConstraintReport
from .tailored import TailoringReport

METHODS = ("moments", "descent")
Planned = TailoredRegression | TailoredDescent


class TailoredRegressor(CodedRegressor):
    """A linear regression in which groups share a privacy budget, and every group counts alike.

    min_c mean over groups of the group's mean squared error, where asked subject to a bound on each; see docs/tailoring.md. How
    much noise a group's sums get is how much privacy its people have: a larger share is less noise, and a weaker guarantee.

    Parameters
    ----------
    allocation : how the budget is shared: "least-noise" (what gives the least noise in what is minimised; for disjoint groups
        nobody's share is at another's cost), "standard-error" (by the squared standard errors of a private precursor, stage
        one; the paper's), "equal", "size" (by one over released sizes), or shares: {group: number}, of any scale.
    group_loss_bound : None, a bound on every group's mean squared error in squared units of y, or {group: bound}.
    objective : "groups" (the mean of the groups' errors) or "people" (the mean error: large groups count more).
    method : "descent" (rounds of gradients) or "moments" (Gram matrices, released once: bounds on losses are then kept as well
        as noise allows); None: moments where losses are bounded, else descent, whose noise is of residuals, not of rows.
    stage_one_share : of the squared budget: what the standard errors may cost.
    spend : "person": epsilon is what the worst off person pays; "total": the groups' shares of the last stage add up to what is
        left of it (as in the paper; what comes before, counts or a stage one, everybody pays).
    min_epsilon, max_epsilon : None, a number or {group: number}: limits of what a group's people pay over the whole fit, kept
        whatever the shares come to. Under add-remove.
    groups : "product" or "marginal", for several sensitive columns: then groups overlap, and a person pays in each column.
    epsilon, delta, protects, neighbours, schema, public_rows, max_sample_weight, unsafe_data_dependent_bounds, random_state,
    ledger, sensitive_as_feature : as in `RateConstrainedClassifier`. unit, max_rows_per_unit : refused here, as yet.
    model : None, linear in the columns; or "additive", or an `Additive`: steps of each number beside it, which
        docs/additive_models.md is about.
    target_bounds, clip, radius : as in `GroupObjectiveRegressor`; with "descent" `clip` is the longest gradient of a row, and
        coefficients are of codes in [-1, 1].
    region, step_size, iterate, rounds, penalty : of "descent": "ball" or "box" of that radius; "steady" or "decaying" (the
        paper's appendix E, which needs a radius); "average" (of the late ones) or "last"; how many; G of f + G max(0, g).

    Fitted: `model_`, `coef_`, `intercept_` (units of X and y), `coef_names_`, `target_`, `tailoring_` (shares, standard errors
    and each group's guarantee), `constraint_report_`, `baselines_`, `outcome_` (released values alone), `objective_`,
    `privacy_`, `groups_`, `n_features_in_`, `feature_names_in_`, `n_iter_`, `coding_`, `cells_`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = (rng.uniform(size=4000) < 0.1).astype(int)
    >>> X = rng.uniform(-1, 1, size=(4000, 1))
    >>> y = np.where(A == 0, 2 * X[:, 0], X[:, 0]) + 0.1 * rng.normal(size=4000)
    >>> reg = TailoredRegressor(epsilon=2.0, target_bounds=(-3, 3), random_state=0).fit(X, y, sensitive_features=A)
    >>> reg.coef_.round(1), reg.privacy_.epsilon <= 2.0
    (array([1.5]), True)
    >>> large, small = reg.tailoring_.epsilons
    >>> large < small
    True

    Guarantees (tests/estimators/test_estimators_tailored_regressor.py):
    1. What is fitted depends on the rows through the curator's answers alone, except for what `privacy_.facts` and
       `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most the promise; no group pays more than its own guarantee says.
    3. A fit that fails or is broken off changes no attribute.
    """

    constraint_report_: ConstraintReport
    baselines_: BaselineReport | None
    outcome_: RegressionOutcome
    tailoring_: TailoringReport
    objective_: float
    n_iter_: int

    def __init__(
        self,
        allocation: Any = LEAST_NOISE,
        group_loss_bound: Any = None,
        *,
        objective: str = "groups",
        method: str | None = None,
        stage_one_share: float = 0.2,
        spend: str = "person",
        min_epsilon: Any = None,
        max_epsilon: Any = None,
        groups: str = "product",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        protects: str = "records",
        neighbours: str | None = None,
        schema: Any = None,
        public_rows: int | None = None,
        max_sample_weight: float = 1.0,
        unsafe_data_dependent_bounds: bool = False,
        random_state: Any = None,
        ledger: Any = None,
        unit: Any = None,
        max_rows_per_unit: int | None = None,
        target_bounds: tuple[float, float] | None = None,
        clip: float | None = None,
        radius: float | None = None,
        region: str = "ball",
        step_size: str = "steady",
        iterate: str = "average",
        rounds: int | None = None,
        penalty: float | None = None,
        sensitive_as_feature: bool = False,
        model: Any = None,
    ) -> None:
        self.allocation = allocation
        self.group_loss_bound = group_loss_bound
        self.objective = objective
        self.method = method
        self.stage_one_share = stage_one_share
        self.spend = spend
        self.min_epsilon = min_epsilon
        self.max_epsilon = max_epsilon
        self.groups = groups
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
        self.clip = clip
        self.radius = radius
        self.region = region
        self.step_size = step_size
        self.iterate = iterate
        self.rounds = rounds
        self.penalty = penalty
        self.sensitive_as_feature = sensitive_as_feature
        self.model = model

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> TailoredRegressor:
        """Fit to a table X and numbers y, matched by position; see `RateConstrainedClassifier.fit` for what they may be."""
        opening, cells, planned = self._intend(lambda ways: inputs.read(X, y, sensitive_features, sample_weight, ways))
        promise, training = opening.promise, opening.training
        curator = opening.curator(planned.plan)
        with curator, progress("Fitting") as tick:
            outcome, shares = planned.run(curator, tick)
        statement = statement_of(curator, opening.training, groups=tailored.named_groups(self, cells, shares, promise))
        assert training.target is not None
        c = outcome.coefficients
        self._set_model(RegressionModel(c[1:], c[0], layout=training.coding.layout), training.coding, training.target)
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

    def _intend(self, read: Read) -> tuple[Opening, Cells | None, Planned]:
        """Check, read the rows and plan: all that comes before the first question."""
        units.refuse(self)
        promise = promises.promise_of(self.epsilon, self.delta, self.protects, self.neighbours)
        ledger = promises.ledger_of(self, promise)
        if self.method is not None:
            _checks.one_of(METHODS, method=self.method)
        tailored.check(self, descends=self._method == "descent")
        opening = Opening.of(self, promise, ledger, read(self._ways(promise)))
        cells = groups_of(opening.training, self.groups)
        return opening, cells, self._plan(opening, cells)

    def _search(self, read: Read) -> Planned:
        return self._intend(read)[2]

    @property
    def _method(self) -> str:
        return self.method or ("descent" if self.group_loss_bound is None else "moments")

    # -- fitting -----------------------------------------------------------------------------------------------------------

    def _ways(self, promise: Promise) -> inputs.Ways:
        unsafe, as_number = bool(self.unsafe_data_dependent_bounds), self._method == "moments"
        ways = promises.ways_of(
            self.schema,
            self.sensitive_as_feature,
            unsafe,
            self.max_sample_weight,
            promise,
            additive=additive.of_rows(self.model),
            public_rows=self.public_rows,
        )
        target = NumericTarget.of(
            self.target_bounds, open_range=promise.features_are_public, unsafe=unsafe, as_number=as_number
        )
        return replace(ways, target=target, thin=False)  # how empty private rows are decides nothing: see `scales`

    def _plan(self, opening: Opening, cells: Cells | None) -> Planned:
        promise, training = opening.promise, opening.training
        assert training.target is not None
        rows = training.rows
        allocation = tailored.allocation_of(self, cells, promise)
        task = RegressionTask(
            promise,
            replace(rows.layout, classes=None),
            cells,
            Error() if self.objective == "people" or cells is None else MeanGroupLoss(),
            Constraint(tuple(tailored.bounds_of(self.group_loss_bound, cells))),
            unit=(2.0 * training.target.half) ** 2,
            public_rows=opening.public_rows,
            max_sample_weight=opening.max_sample_weight,
            penalty=None if self.penalty is None else _checks.positive(penalty=self.penalty),
        )
        options: dict[str, Any] = {"stage_one": self.stage_one_share, "clip": self.clip, "radius": self.radius}
        if self.rounds is not None:
            options["rounds"] = _checks.whole(at_least=1, rounds=self.rounds)
        if self._method == "moments":
            return plan_tailored_regression(task, allocation, scales=scales(training, promise), **options)
        walk = {"region": self.region, "step_size": self.step_size, "iterate": self.iterate}
        return plan_tailored_descent(task, allocation, scales=scales(training, promise), **options, **walk)

    def _set_outcome(self, outcome: RegressionOutcome, report: TailoringReport) -> None:
        """Publish what was found: after a fit, and when read from disk."""
        self.outcome_, self.n_iter_, self.objective_, self.tailoring_ = outcome, outcome.calls, outcome.value, report
        self.constraint_report_ = ConstraintReport.of_losses(outcome, required=said(self))

    def _warn(self) -> None:
        worst = self.constraint_report_.worst
        assert worst is not None
        warnings.warn(tailored.not_met(worst, "the coefficients"), ConstraintNotMet, stacklevel=3)
