"""`TailoredClassifier`: a classifier whose privacy budget is shared among groups (Alabi and Wiggins, beyond regression)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _checks
from ..errors import ConstraintNotMet
from ..facts import Cells
from ..fairness.objectives import Constraint, Error, MeanGroupLoss
from ..learning.allocation import LEAST_NOISE
from ..learning.lagrangian import network as networks
from ..learning.least_squares.task import RegressionOutcome, RegressionTask
from ..learning.tailoring.descent import TailoredDescent, plan_tailored_descent
from ..models import LinearModel
from ..privacy.promise import Promise
from . import tailored
from .faces import modules
from .faces.linear import LinearClassifier
from .fitting import promises, unused
from .fitting.openings import Opening
from .fitting.progress import progress
from .fitting.publish import statement_of
from .fitting.requirements import said
from .reading import additive, inputs, units
from .reading.carried import groups_of
from .reading.cautions import Numbers
from .reading.inputs import Training
from .reading.unread import Read
from .reports.baselines import BaselineReport, of_tailored, warn_if_worse
from .reports.constraint_report import ConstraintReport
from .tailored import TailoringReport


class TailoredClassifier(LinearClassifier):
    """A linear classifier, or a torch module, in which groups share a privacy budget, and every group counts alike.

    min_v mean over groups of the group's mean log loss, where asked subject to a bound on each, by private descent; see
    docs/tailoring.md. How much noise a group's sums get is how much privacy its people have: a larger share is less noise, and
    a weaker guarantee.

    Parameters
    ----------
    allocation, objective, stage_one_share, spend, min_epsilon, max_epsilon, groups : as in `TailoredRegressor`;
        "standard-error" shares by the groups' mean log losses under a private logistic precursor.
    group_loss_bound : None, a bound on every group's mean log loss, or {group: bound}. Not for modules.
    model : None, a linear model; "additive", or an `Additive`: steps of each number beside it (docs/additive_models.md); or a
        `torch.nn.Module`, which is copied, and descended from where it stands: docs/networks.md.
    epsilon, delta, protects, neighbours, schema, public_rows, max_sample_weight, unsafe_data_dependent_bounds, random_state,
    ledger, sensitive_as_feature : as in `RateConstrainedClassifier`. unit, max_rows_per_unit : refused here, as yet.
    clip : the longest gradient of a row. rounds : how many. sampling_rate, device : of a module, which asks secret batches.
    learning_rate : None: of a module 0.1 over the largest weight of a row, of a linear model by its noise.
    radius, region, step_size, iterate, penalty : as in `TailoredRegressor`, of a linear model; `iterate` of both.

    Fitted: `model_`, `privacy_`, `tailoring_` (shares, standard errors and each group's guarantee), `constraint_report_`,
    `baselines_`, `outcome_` (released values alone: the groups' log losses, of a module their errors), `objective_`,
    `classes_`, `groups_`, `n_features_in_`, `feature_names_in_`, `n_iter_`, `coding_`, `cells_`; linear models also `coef_`,
    `intercept_` in the units of X and `coef_names_`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = (rng.uniform(size=4000) < 0.1).astype(int)
    >>> X = rng.uniform(-1, 1, size=(4000, 2))
    >>> y = (X[:, 0] + 0.5 * A * X[:, 1] + 0.3 * rng.normal(size=4000) > 0).astype(int)
    >>> clf = TailoredClassifier(epsilon=2.0, random_state=0).fit(X, y, sensitive_features=A)
    >>> clf.score(X, y) > 0.8, clf.privacy_.epsilon <= 2.0
    (True, True)
    >>> large, small = clf.tailoring_.epsilons
    >>> large < small
    True

    Guarantees (tests/estimators/test_estimators_tailored_classifier.py):
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
        model: Any = None,
        *,
        objective: str = "groups",
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
        clip: float | None = None,
        rounds: int | None = None,
        sampling_rate: float | None = None,
        learning_rate: float | None = None,
        device: str | None = None,
        radius: float | None = None,
        region: str = "ball",
        step_size: str = "steady",
        iterate: str | None = None,
        penalty: float | None = None,
        sensitive_as_feature: bool = False,
    ) -> None:
        self.allocation = allocation
        self.group_loss_bound = group_loss_bound
        self.model = model
        self.objective = objective
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
        self.clip = clip
        self.rounds = rounds
        self.sampling_rate = sampling_rate
        self.learning_rate = learning_rate
        self.device = device
        self.radius = radius
        self.region = region
        self.step_size = step_size
        self.iterate = iterate
        self.penalty = penalty
        self.sensitive_as_feature = sensitive_as_feature

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> TailoredClassifier:
        """Fit to a table X and labels y, matched by position; see `RateConstrainedClassifier.fit` for what they may be."""
        X, shape = modules.flattened(X, self._module)
        opening, cells, search = self._intend(lambda ways: inputs.read(X, y, sensitive_features, sample_weight, ways), shape)
        promise, training = opening.promise, opening.training
        curator = opening.curator(search.plan)
        with curator, progress("Fitting") as tick:
            outcome, shares = search.run(curator, tick)
        statement = statement_of(curator, opening.training, groups=tailored.named_groups(self, cells, shares, promise))
        self._set_found(search, outcome.coefficients, training)
        self._publish_shape(training, cells)
        self.privacy_ = statement
        self._set_outcome(
            replace(outcome, coefficients=np.zeros(0), constant=None),
            TailoringReport.of(shares, cells, statement, tailored.limits_of(self, cells)),
        )
        self.baselines_ = of_tailored(outcome)
        warn_if_worse(self.baselines_, learnt=bool(np.any(outcome.coefficients)))
        if self.constraint_report_.missed_by_far:
            self._warn()
        return self

    def _intend(self, read: Read, shape: tuple[int, ...] | None) -> tuple[Opening, Cells | None, TailoredDescent]:
        """Check, read the rows and plan: all that comes before the first question."""
        units.refuse(self)
        promise = promises.promise_of(self.epsilon, self.delta, self.protects, self.neighbours)
        ledger = promises.ledger_of(self, promise)
        tailored.check(self)
        self._check_model(promise)
        ways = promises.ways_of(
            self.schema,
            self.sensitive_as_feature,
            self.unsafe_data_dependent_bounds,
            self.max_sample_weight,
            promise,
            additive=additive.wanted(self.model),
            public_rows=self.public_rows,
        )
        thin = ways.thin and self._module is None
        numbers: Numbers = "scaled" if self._module is None else "as given"
        opening = Opening.of(self, promise, ledger, read(replace(ways, thin=thin)), numbers=numbers)
        cells = groups_of(opening.training, self.groups)
        return opening, cells, self._plan(opening, cells, shape)

    @property
    def _module(self) -> Any:
        return additive.module_of(self.model)

    def _search(self, read: Read) -> TailoredDescent:
        return self._intend(read, None)[2]

    # -- fitting -----------------------------------------------------------------------------------------------------------

    def _check_model(self, promise: Promise) -> None:
        """Options of modules and of linear models, before rows are read."""
        seen = promise.protects == "sensitive_features" and promise.is_private and self.sampling_rate != 1.0
        linear = "without a module (model=None)" if self._module is None else None
        module = "with this module" if self._module is not None else None
        idle = {
            "device": linear,
            "sampling_rate": linear or (f"{module}, where features are public" if seen else None),
            "group_loss_bound": module,
            "radius": module,
            "learning_rate": "with step_size='decaying'" if self.step_size == "decaying" else None,
        }
        unused.refuse(self, idle)

    def _plan(self, opening: Opening, cells: Cells | None, shape: tuple[int, ...] | None) -> TailoredDescent:
        promise, training = opening.promise, opening.training
        rows = training.rows
        skeleton = modules.skeleton_of(self._module, training, shape, self.device)
        task = RegressionTask(
            promise,
            rows.layout,
            cells,
            Error() if self.objective == "people" or cells is None else MeanGroupLoss(),
            Constraint(tuple(tailored.bounds_of(self.group_loss_bound, cells))),
            public_rows=opening.public_rows,
            max_sample_weight=opening.max_sample_weight,
            penalty=None if self.penalty is None else _checks.positive(penalty=self.penalty),
        )
        options: dict[str, Any] = {"stage_one": self.stage_one_share, "clip": self.clip, "radius": self.radius}
        options |= {"learning_rate": self.learning_rate, "region": self.region, "step_size": self.step_size}
        options["iterate"] = self.iterate or ("average" if skeleton is None else "last")
        options["scales"] = skeleton is None and promises.numbers_are_scalable(training, promise)
        if skeleton is not None:
            usual = networks.usual_settings(promise, opening.known_rows)
            rate = usual.sampling_rate if self.sampling_rate is None else self.sampling_rate
            options |= {"skeleton": skeleton, "rounds": usual.rounds}
            options["sampling_rate"] = _checks.fraction(sampling_rate=rate, low_open=True)
            options["clip"] = usual.clip if self.clip is None else self.clip
        if self.rounds is not None:
            options["rounds"] = _checks.whole(at_least=1, rounds=self.rounds)
        return plan_tailored_descent(task, tailored.allocation_of(self, cells, promise), loss="log", **options)

    def _set_found(self, search: TailoredDescent, weights: Any, training: Training) -> None:
        if search.skeleton is not None:
            self._set_network(modules.model_of(search.skeleton, weights, training), training.coding)
            return
        lines = np.asarray(weights).reshape(-1, 1 + training.coding.layout.width)
        model = LinearModel(lines[:, 1:], lines[:, 0], classes=training.classes, layout=training.coding.layout)
        self._set_model(model, training.coding)

    def _set_outcome(self, outcome: RegressionOutcome, report: TailoringReport) -> None:
        """Publish what was found: after a fit, and when read from disk."""
        self.outcome_, self.n_iter_, self.objective_, self.tailoring_ = outcome, outcome.calls, outcome.value, report
        self.constraint_report_ = ConstraintReport.of_losses(outcome, "losses", said(self))

    def _blocks(self, X: Any) -> Any:
        return super()._blocks(modules.as_rows(X, getattr(self, "model_", None)))

    def _warn(self) -> None:
        worst = self.constraint_report_.worst
        assert worst is not None
        warnings.warn(tailored.not_met(worst, "the model"), ConstraintNotMet, stacklevel=3)
