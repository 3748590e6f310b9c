"""`GroupObjectiveClassifier`: decisions that make a convex function of group losses small, subject
to another (Alabi)."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _checks
from .._types import ColumnsLike, Floats, TableLike
from ..data.reading import PathLike
from ..errors import InputError
from ..facts import Cells
from ..fairness.objectives import Constraint, Error, Objective, parse_constraint, parse_objective
from ..methods.descent import Reason
from ..methods.objective_descent import plan_descent
from ..methods.objective_loop import plan_loop, plan_public
from ..methods.objectives import Certain, Found, Problem, plan_sampling
from ..methods.oracles import Class, Each, Responses, thresholds
from ..models import DerandomisedModel, MixtureModel
from . import faces, fitting
from .certifying.certified_fits import certified, forget_certificate
from .choosing import GroupChoices, Search, found_by, probabilities
from .faces import Blindly
from .fitting import OpenedFit, journal_in, run, said, statement_of
from .mixing import (
    MixingClassifier,
    model_of,
    rule_of,
    shares_of,
    told_of,
)
from .reading import additive, inputs
from .reading.carried import groups_of
from .reading.elsewhere import refuse_functions
from .reading.training import Training
from .reading.unread import Read
from .reports import (
    BaselineReport,
    ConstraintReport,
    of_objective,
    warn_if_not_enforced,
    warn_if_worse,
    warn_of_missed,
)
from .settings import Exponential, LinearOracle, SetAside, Setting
from .words import described, worded

METHODS = ("linear-oracle", "exponential", "frank-wolfe")


LOSSES = ("zero_one", "log")


@described
class GroupObjectiveClassifier(MixingClassifier):
    """Classifier that minimizes a function f of group losses, subject to another, g, of at most 0.

    The result is a mixture of decisions, one decision of a list, or one linear model; see
    docs/group_objective.md.

    Parameters
    ----------
    objective : str or objective, default="error"
        The minimized function f: ``"error"``, ``"gmean"``, ``"hmean"``, ``"largest_group_loss"``,
        ``"false_negative_rate"``, a gap such as ``"equalized_odds"``, or one of
        `fairveil.fairness.objectives`, your own function among them.
    constraint : notion, str, objective or list of these, default=None
        The constrained function g: ``"equalized_odds:0.05"``, a notion such as
        ``EqualizedOdds(0.05)``, or a bound of an objective. ``"gmean:0.3"`` means that 1 less the
        G-mean is at most 0.3, like ``objectives.GMean().at_least(0.7)``. None: no constraint.
    method : {"linear-oracle", "frank-wolfe", "exponential"}, default="linear-oracle"
        ``"linear-oracle"`` and ``"frank-wolfe"`` (Algorithm 4) find a mixture by private linear
        oracles. ``"exponential"`` chooses one decision of a finite list; it works at ``delta=0``
        and for functions that are not convex.
    decisions : str, array or list of classifiers, default=None
        What is decided among. ``"thresholds"``: one column against one number. ``"directions"``:
        100 x 100 linear rules in a ball, of two classes, fixed without the data. ``"labellings"``:
        those that cuts of public scores induce, for two classes where sensitive features are
        protected. An array (m, 1 + width): weights of linear rules, the intercept first. A list:
        fitted classifiers, which are trusted to be made without these rows. None: linear rules, and
        thresholds for ``"exponential"``.
    solver : LinearOracle or Exponential, default=None
        Settings of the search, such as ``LinearOracle(rounds=50)``, or ``Exponential(alpha=0.1)``
        with ``method="exponential"``. None: the library's.
    loss : {"zero_one", "log"}, default="zero_one"
        ``"zero_one"``: errors of decisions. ``"log"``: the log loss of probabilities, for one
        linear model and objectives that grow with every group's loss. ``"error"`` is then the mean
        loss, and ``BoundedGroupLoss(0.4, loss="log")`` a constraint.
    model : str or Additive, default=None
        None: a model that is linear in the columns. ``"additive"`` or an `Additive`: steps of each
        number beside the line (docs/additive_models.md).

    Attributes
    ----------
    model_ : MixtureModel or None
        The mixture of rules; None for a mixture of given classifiers, `candidates_`.
    candidates_, plays_, objective_, constraint_report_, baselines_
    certain_ : Certain or None
        Bounds on f and g above the best in the list; of ``"exponential"`` alone.
    outcome_ : Found
        Everything that the search released.
    privacy_, classes_, groups_, n_features_in_, feature_names_in_, coding_, cells_, n_iter_,
    certificate_, certified_aim_

    See Also
    --------
    GroupObjectiveRegressor : Does the same for squared errors.
    RateConstrainedClassifier : One model under rate constraints.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_group_objective.py):

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
    >>> A = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 2)) + 0.5 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1).astype(int)
    >>> clf = GroupObjectiveClassifier(
    ...     "gmean",
    ...     "equalized_odds:0.1",
    ...     protects="sensitive_features",
    ...     random_state=0,
    ...     solver=LinearOracle(rounds=20),
    ... )
    >>> clf.fit(X, y, sensitive_features=A).predict(X[:3], random_state=0).shape
    (3,)
    >>> clf.privacy_.epsilon <= 1.0, clf.n_iter_
    (True, 20)
    """

    outcome_: Found = field(init=False)
    certain_: Certain | None = field(init=False)
    objective_: float = field(init=False)
    constraint_report_: ConstraintReport = field(init=False)
    baselines_: BaselineReport | None = field(init=False)

    SETTINGS: ClassVar = {"solver": (LinearOracle, Exponential), "certify_share": (SetAside,)}
    DECIDED: ClassVar = {"solver": "method"}

    objective: object = "error"
    constraint: object = None
    method: str = "linear-oracle"
    decisions: object = None
    _: KW_ONLY
    solver: LinearOracle | Exponential | None = None
    loss: str = "zero_one"
    sensitive_as_feature: bool = False
    checkpoint: PathLike | None = None
    model: object = None
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
    ) -> GroupObjectiveClassifier:
        """Fit to a table X and labels y, matched by position.

        Notions with a `confidence` are certified on rows that are set aside: see `certificate_`.

        Warns
        -----
        ConstraintNotMet, NotEnforced, WorseThanBaseline, DecisionsReplaced
        """
        refuse_functions(X, self.method)
        journal = journal_in(self.checkpoint)
        opening, cells, search = self._intend(
            lambda ways: inputs.read(X, y, sensitive_features, sample_weight, ways), X
        )
        training, listed = opening.training, self._chooses.listed()
        found, curator = run(
            opening,
            search.plan,
            "Choosing",
            lambda curator, tick: found_by(search, curator, tick),
            journal,
        )
        outcome, certain = found
        statement = statement_of(curator, training, told_of(listed))
        mixture = (
            None
            if listed
            else MixtureModel([model_of(rule, training) for rule in outcome.rules], outcome.weights)
        )
        self._publish_shape(training, cells)
        self._set_found(outcome, mixture, listed, certain)
        self.privacy_ = statement
        told = (outcome.objective, outcome.objective_noise, outcome.constant, outcome.free)
        is_error = isinstance(parse_objective(self.objective), Error)
        self.baselines_ = of_objective(*told, training.classes, is_error=is_error)
        warn_if_worse(self.baselines_, learnt=outcome.learnt)
        if self.constraint_report_.missed_by_far:
            self._warn()
        else:
            went_on = outcome.reason is Reason.HIDDEN
            warn_if_not_enforced(
                self.constraint_report_, outcome.kept, went_on=went_on, stacklevel=4
            )
        return self

    def _intend(self, read: Read, X: TableLike) -> tuple[OpenedFit, Cells | None, Search]:
        """Check, read the rows and plan: all that comes before the first question. `X`: as given;
        None: there is none yet."""
        whose, promise = fitting.asked(self)
        ledger = fitting.ledger_of(self, promise)
        objective, constraint = parse_objective(self.objective), parse_constraint(self.constraint)
        fitting.refuse_confidence(constraint.notions, "constraint")
        _checks.one_of(METHODS, method=self.method)
        if _checks.one_of(LOSSES, loss=self.loss) == LOSSES[0]:
            constraint = constraint.of_decisions()
        self._refuse_idle()
        scaled = bool(self.unsafe_data_dependent_bounds) or self._chooses.needs_scale(promise, X)
        ways = fitting.own_ways(
            self, promise, whose, additive.of_rows(self.model), standardise=scaled
        )
        training = read(ways)
        opening = OpenedFit.of(
            self, promise, ledger, training, numbers=self._chooses.numbers(promise)
        )
        rows = training.rows
        cells = _cells(objective, constraint, training)
        problem = Problem.of(
            promise,
            rows.layout,
            cells,
            objective,
            constraint,
            public_rows=opening.public_rows,
            max_sample_weight=opening.max_sample_weight,
            loss=self.loss,
        )
        return (
            opening,
            cells,
            self._planned(problem, self._class(training, X), training),
        )

    def _kinds(self, slot: str) -> tuple[type[Setting], ...]:
        if slot == "solver" and self.method == "exponential":
            return (Exponential, LinearOracle)
        return super()._kinds(slot)

    @property
    def _solver(self) -> LinearOracle:
        # The exponential mechanism has no oracle; notebooks look at every attribute all the same.
        none = self.method == "exponential"
        return LinearOracle() if none else self._setting("solver", LinearOracle)

    def _search(self, read: Read) -> Search:
        return self._intend(read, None)[2]

    @property
    def _is_randomized(self) -> bool:
        return self.loss == "zero_one"

    @worded
    def predict_proba(self, X: TableLike) -> Floats:
        """Probability of each class.

        With ``loss="zero_one"`` it is the exact distribution of `predict`: the share of the
        mixture's rules that decide for each class. With ``loss="log"`` it is the model's
        probability, and `predict` takes the likeliest class.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        if self._is_randomized:
            return self._law(X)
        check_is_fitted(self, "outcome_")
        return np.concatenate([probabilities(self.model_, block) for block in self._blocks(X)])

    def derandomise(self, threshold: float | None = None) -> GroupObjectiveClassifier:
        """Classifier that decides without chance.

        Parameters
        ----------
        threshold : float, default=None
            With two classes: the second is decided where more than this share of the rules does.
            None: the class that most rules decide for.

        Returns
        -------
        GroupObjectiveClassifier
            A copy. Its losses are its own, and were not part of the plan: its report leaves them
            undefined, so measure them.
        """
        model = self._derandomised(threshold)
        if model is None:
            return self
        out, found = copy.copy(self), self.outcome_
        unknown = replace(
            found,
            values=np.full_like(found.values, np.nan),
            losses=np.full_like(found.losses, np.nan),
            objective=float("nan"),
            excess=None,
        )
        out._set_found(unknown, model, (), None)
        out.baselines_ = None
        forget_certificate(out)
        return out

    # -- fitting -----------------------------------------------------------------------------------

    def _refuse_idle(self) -> None:
        """An argument that would be read by nothing would seem to matter."""
        idle = {"penalty": "without a constraint" if self.constraint is None else None}
        if self.method == "exponential":
            fitting.refuse_others(self.solver, Exponential, "with method='exponential'")
            chooses = self._setting("solver", Exponential)
            fitting.refuse_unused(
                chooses, idle | {"alpha": "with a penalty" if chooses.penalty is not None else None}
            )
            return
        fitting.refuse_others(self.solver, LinearOracle, f"with method={self.method!r}")
        listed = "with decisions" if self.decisions is not None else None
        searched = self._solver.oracle == "responses" and self.method != "linear-oracle"
        other_way = f"with method={self.method!r}" if searched else None
        of_loss = f"with loss={self.loss!r}" if self.loss != "zero_one" else other_way
        fitting.refuse_unused(self._solver, idle | {"oracle": listed or of_loss, "clip": listed})

    @property
    def _chooses(self) -> GroupChoices:
        return GroupChoices(self.method, self.loss, self.decisions, self.schema, self._solver)

    def _class(self, training: Training, X: TableLike) -> Class | None:
        """The finite list of decisions, if there is one."""
        listed = self._chooses.listed()
        return self._decided_by(listed, training, X) if listed else self._chooses.of(training)

    def _planned(self, problem: Problem, of: Class | None, training: Training) -> Search:
        """The search, planned and priced."""
        if self.loss != "zero_one":
            self._require_descent()
            solver = self._solver
            return plan_descent(
                problem, rounds=solver.rounds, penalty=solver.penalty, clip=solver.clip
            )
        if self.method == "exponential":
            among = of or thresholds(problem.ground.layout)
            chooses = self._setting("solver", Exponential)
            options: dict[str, Any] = {
                "penalty": chooses.penalty,
                "alpha": chooses.alpha,
                "confidence": chooses.confidence,
            }
            return plan_sampling(problem, among, **options)
        problem.require_convex()
        how = "frank-wolfe" if self.method == "frank-wolfe" else None
        oracle, rounds = self._chooses.oracle(of, problem, training), self._solver.rounds
        if isinstance(oracle, Each):
            rounds = oracle.of.size
        if isinstance(oracle, Responses):
            return plan_public(problem, oracle, rounds=rounds, penalty=self._solver.penalty)
        return plan_loop(problem, oracle, step_by=how, rounds=rounds, penalty=self._solver.penalty)

    def _require_descent(self) -> None:
        """Losses of probabilities are descended, and nothing else."""
        if self.method != "linear-oracle" or self.decisions is not None:
            remedy = "Leave decisions as they are, pass method='linear-oracle', or loss='zero_one'."
            got = f"method={self.method!r}" + ("" if self.decisions is None else " and decisions")
            raise InputError.expected(
                "linear models by descent", of=f"loss={self.loss!r}", got=got, remedy=remedy
            )

    def _set_found(
        self,
        outcome: Found,
        model: MixtureModel | DerandomisedModel | None,
        listed: tuple[Any, ...],
        certain: Certain | None,
    ) -> None:
        """Write what was found: after a fit, and when read from disk."""
        self.model_, self.candidates_ = model, listed
        self.plays_ = shares_of(outcome.rules, outcome.weights.tolist(), len(listed))
        self.outcome_, self.certain_, self.objective_ = outcome, certain, outcome.objective
        self.n_iter_ = outcome.rounds
        self.constraint_report_ = ConstraintReport.of(outcome, said(self))

    def _replace_decisions(self, blindly: Blindly) -> bool:
        """Publish a mixture with blind decisions, whose losses nobody released; False of
        candidates made elsewhere."""
        model = faces.mixture_of(
            self.model_ if isinstance(self.model_, MixtureModel) else None, blindly
        )
        if model is None:
            return False
        found = self.outcome_
        told = replace(
            found,
            rules=tuple(map(rule_of, model.models)),
            weights=np.asarray(model.weights),
            values=blindly.mixed(found.names, found.values),
            spread=(1.0 - blindly.share) * found.spread,
            sampling=None if found.sampling is None else (1.0 - blindly.share) * found.sampling,
            losses=np.full_like(found.losses, np.nan),
            objective=float("nan"),
            excess=None,
        )
        self._set_found(told, model, (), None)
        self.baselines_ = None
        return True

    def _warn(self) -> None:
        ask = "Ask for a larger bound, a larger epsilon or penalty"
        warn_of_missed(self.constraint_report_, "the decisions reached", ask, stacklevel=4)


def _cells(objective: Objective, constraint: Constraint, training: Training) -> Cells | None:
    """The groups: those of single columns where everything that names a kind of groups asks for
    these alone."""
    named = [objective.groups, *(one.groups for one in constraint.notions)]
    named += [bound.objective.groups for bound in constraint.bounds]
    modes = {mode for mode in named if isinstance(mode, str)}
    return groups_of(training, "marginal" if modes == {"marginal"} else "product")
