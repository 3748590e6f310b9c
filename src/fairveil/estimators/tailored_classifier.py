"""`TailoredClassifier`: a classifier whose privacy budget is shared among groups (Alabi and
Wiggins, beyond regression)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, field, replace
from typing import Any, ClassVar

import numpy as np

from .._types import ColumnsLike, TableLike
from ..core.promise import Promise
from ..data.reading import PathLike
from ..errors import ConstraintNotMet
from ..facts import Cells
from ..fairness.objectives import Constraint, Error, MeanGroupLoss
from ..methods import networks
from ..methods.allocation import LEAST_NOISE
from ..methods.least_squares import RegressionOutcome, RegressionTask
from ..methods.tailoring import TailoredDescent, plan_tailored_descent
from ..models import LinearModel
from . import faces, fitting, tailored
from .certifying.certified_fits import certified, refuse_certify
from .faces import Blindly, LinearClassifier
from .fitting import OpenedFit, journal_in, run, said, statement_of
from .reading import additive, inputs, units
from .reading.carried import groups_of
from .reading.cautions import Numbers
from .reading.fitted_parts import parts_of
from .reading.training import Training
from .reading.unread import Read
from .reports import BaselineReport, ConstraintReport, of_tailored, warn_if_worse
from .settings import Descent, GroupDescent, GroupLimits, SetAside
from .tailored import TailoringReport
from .words import described, worded


@described
class TailoredClassifier(LinearClassifier):
    """Classifier, linear or a network, whose groups share a privacy budget and weigh the same.

    Minimizes the mean over groups of the group's mean log loss, subject to a bound on each if there
    is one; see docs/tailoring.md. A group with a larger share has less noise in its sums, and a
    weaker guarantee.

    Parameters
    ----------
    allocation : str or mapping of groups to float, default="least-noise"
        How the budget is shared. ``"least-noise"``: the least noise in the minimized function.
        ``"standard-error"``: by the groups' mean log losses under a private logistic precursor.
        ``"equal"``. ``"size"``: by one over released sizes. A mapping has shares of any scale.
    group_loss_bound : float or mapping of groups to float, default=None
        Bound on every group's mean log loss; not for modules. None: no bound.
    unit : str, mapping of one name, or one value a row, default=None
        Protects persons, each with all of their rows (docs/persons.md). It is the name of the
        column of X that tells persons apart, which is then no feature, or one value a row. None:
        protects each row by itself. All rows of a person count in one group, where most of them
        are.
    solver : GroupDescent or Descent, default=None
        Settings of the descent, such as ``GroupDescent(rounds=50)``. None: the library's, from
        public facts.

    Attributes
    ----------
    model_, privacy_, tailoring_, constraint_report_, baselines_, outcome_, objective_,
    classes_, groups_, coef_, intercept_, coef_names_, n_features_in_, feature_names_in_,
    coding_, cells_, n_iter_, certificate_

    See Also
    --------
    TailoredRegressor : Does the same for squared errors.
    GroupObjectiveClassifier : Other functions of group losses, one budget for all.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_tailored_classifier.py):

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
    >>> X = rng.uniform(-1, 1, size=(4000, 2))
    >>> y = (X[:, 0] + 0.5 * A * X[:, 1] + 0.3 * rng.normal(size=4000) > 0).astype(int)
    >>> clf = TailoredClassifier(epsilon=2.0, random_state=0).fit(X, y, sensitive_features=A)
    >>> clf.score(X, y) > 0.8, clf.privacy_.epsilon <= 2.0
    (True, True)
    >>> large, small = clf.tailoring_.epsilons
    >>> large < small
    True
    """

    constraint_report_: ConstraintReport = field(init=False)
    baselines_: BaselineReport | None = field(init=False)
    outcome_: RegressionOutcome = field(init=False)
    tailoring_: TailoringReport = field(init=False)
    objective_: float = field(init=False)
    n_iter_: int = field(init=False)

    SETTINGS: ClassVar = {
        "solver": (GroupDescent,),
        "limits": (GroupLimits,),
        "certify_share": (SetAside,),
    }

    allocation: str | Mapping[Any, float] = LEAST_NOISE
    group_loss_bound: float | Mapping[Any, float] | None = None
    model: object = None
    _: KW_ONLY
    stage_one_share: float = 0.2
    limits: GroupLimits | None = None
    solver: GroupDescent | Descent | None = None
    sensitive_as_feature: bool = False
    checkpoint: PathLike | None = None
    certify: object = None
    certify_share: object = None

    @certified
    @worded
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> TailoredClassifier:
        """Fit to a table X and labels y, matched by position.

        With `certify`, notions are certified on rows that are set aside: see `certificate_`.

        Warns
        -----
        ConstraintNotMet, WorseThanBaseline, DecisionsReplaced
        """
        X, shape = faces.flattened(X, self._module)
        journal = journal_in(self.checkpoint)
        opened, cells, search = self._intend(
            lambda ways: inputs.read(X, y, sensitive_features, sample_weight, ways), shape
        )
        promise, training = opened.promise, opened.training
        (outcome, shares), curator = run(opened, search.plan, "Fitting", search.run, journal)
        statement = statement_of(
            curator, opened.training, groups=tailored.named_groups(self, cells, shares, promise)
        )
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

    def _intend(
        self, read: Read, shape: tuple[int, ...] | None
    ) -> tuple[OpenedFit, Cells | None, TailoredDescent]:
        """Check, read the rows and plan: all that comes before the first question."""
        refuse_certify(self)
        whose, promise = fitting.asked(self)
        if whose is not None and self._module is not None:
            units.refuse(self, " with a module")
        ledger = fitting.ledger_of(self, promise)
        tailored.check(self, self._solver)
        self._check_model(promise)
        ways = fitting.own_ways(
            self,
            promise,
            whose,
            additive.wanted(self.model),
            standardise=self.unsafe_data_dependent_bounds,
        )
        thin = ways.thin and self._module is None
        numbers: Numbers = "scaled" if self._module is None else "as given"
        opened = OpenedFit.of(
            self, promise, ledger, read(replace(ways, thin=thin)), numbers=numbers
        )
        opened = replace(opened, one_group=True)
        cells = groups_of(opened.training, self._limits.groups)
        return opened, cells, self._plan(opened, cells, shape)

    @property
    def _module(self) -> Any:
        return additive.module_of(self.model)

    @property
    def _solver(self) -> GroupDescent:
        return self._setting("solver", GroupDescent)

    @property
    def _limits(self) -> GroupLimits:
        return self._setting("limits", GroupLimits)

    def _search(self, read: Read) -> TailoredDescent:
        return self._intend(read, None)[2]

    # -- fitting -----------------------------------------------------------------------------------

    def _check_model(self, promise: Promise) -> None:
        """Options of modules and of linear models, before rows are read."""
        seen = (
            promise.protects == "sensitive_features"
            and promise.is_private
            and self._solver.sampling_rate != 1.0
        )
        linear = "without a module (model=None)" if self._module is None else None
        module = "with this module" if self._module is not None else None
        idle = {
            "device": linear,
            "sampling_rate": linear or (f"{module}, where features are public" if seen else None),
            "radius": module,
            "learning_rate": "with step_size='decaying'"
            if self._solver.step_size == "decaying"
            else None,
        }
        fitting.refuse_unused(self, {"group_loss_bound": module})
        fitting.refuse_unused(self._solver, idle)

    def _plan(
        self, opened: OpenedFit, cells: Cells | None, shape: tuple[int, ...] | None
    ) -> TailoredDescent:
        promise, training = opened.promise, opened.training
        rows = training.rows
        skeleton = faces.skeleton_of(self._module, training, shape, self._solver.device)
        task = RegressionTask(
            promise,
            rows.layout,
            cells,
            Error() if self._limits.objective == "people" or cells is None else MeanGroupLoss(),
            Constraint(tuple(tailored.bounds_of(self.group_loss_bound, cells))),
            public_rows=opened.public_rows,
            max_sample_weight=opened.max_sample_weight,
            penalty=self._solver.penalty,
        )
        options: dict[str, Any] = {
            "stage_one": self.stage_one_share,
            "clip": self._solver.clip,
            "radius": self._solver.radius,
        }
        options |= {
            "learning_rate": self._solver.learning_rate,
            "region": self._solver.region,
            "step_size": self._solver.step_size,
        }
        options["iterate"] = self._solver.iterate or ("average" if skeleton is None else "last")
        options["scales"] = skeleton is None and fitting.numbers_are_scalable(training, promise)
        if skeleton is not None:
            usual = networks.usual_settings(promise, opened.known_rows)
            rate = (
                usual.sampling_rate
                if self._solver.sampling_rate is None
                else self._solver.sampling_rate
            )
            options |= {"skeleton": skeleton, "rounds": usual.rounds}
            options["sampling_rate"] = rate
            options["clip"] = usual.clip if self._solver.clip is None else self._solver.clip
        if self._solver.rounds is not None:
            options["rounds"] = self._solver.rounds
        return plan_tailored_descent(
            task, tailored.allocation_of(self, cells, promise), loss="log", **options
        )

    def _set_found(self, search: TailoredDescent, weights: Any, training: Training) -> None:
        if search.skeleton is not None:
            self._set_network(faces.model_of(search.skeleton, weights, training), training.coding)
            return
        lines = np.asarray(weights).reshape(-1, 1 + training.coding.layout.width)
        model = LinearModel(
            lines[:, 1:], lines[:, 0], classes=training.classes, layout=training.coding.layout
        )
        self._set_model(model, training.coding)

    def _set_outcome(self, outcome: RegressionOutcome, report: TailoringReport) -> None:
        """Publish what was found: after a fit, and when read from disk."""
        self.outcome_, self.n_iter_, self.objective_, self.tailoring_ = (
            outcome,
            outcome.calls,
            outcome.value,
            report,
        )
        self.constraint_report_ = ConstraintReport.of_losses(outcome, "losses", said(self))

    def _replace_decisions(self, blindly: Blindly) -> bool:
        """Publish a mixture with blind decisions, whose losses nobody released; False of a
        module."""
        model = faces.mixture_of(self.model_, blindly)
        if model is None:
            return False
        found = self.outcome_
        unknown = {
            name: np.full_like(getattr(found, name), np.nan) for name in ("values", "losses")
        }
        self._set_mixture(model, self.coding_)
        self._set_outcome(replace(found, **unknown, value=float("nan"), gap=None), self.tailoring_)
        self.baselines_ = None
        return True

    def _blocks(self, X: TableLike) -> Any:
        return super()._blocks(faces.as_rows(X, parts_of(self).model))

    def _warn(self) -> None:
        worst = self.constraint_report_.worst
        assert worst is not None
        warnings.warn(tailored.not_met(worst, "the model"), ConstraintNotMet, stacklevel=3)
