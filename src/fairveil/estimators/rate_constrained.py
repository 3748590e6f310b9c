"""`RateConstrainedClassifier`: a linear classifier or a network under fairness constraints, private
by descent (RaCO-DP)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

from .._types import ColumnsLike, TableLike
from ..core.promise import Promise
from ..data.reading import PathLike
from ..facts import Cells
from ..fairness import Notion
from ..methods import NetworkDescent, Outcome, PrimalDual, Settings
from ..methods.primal_dual import planned
from ..models import MixtureModel
from . import fitting
from .certifying.certified_fits import certified
from .descending import DescentClassifier
from .fitting import Descent as Planned
from .fitting import said
from .reading.training import Training
from .released import ReleasedGroups, fit_released, publish_columns
from .reports import (
    MIXTURE,
    MODEL,
    ConstraintReport,
    warn_if_not_enforced,
    warn_of_chance,
    warn_of_missed,
)
from .settings import Descent, SetAside
from .words import described, worded


@described
class RateConstrainedClassifier(DescentClassifier):
    """Private classifier, linear or a torch module, under constraints on rates of its decisions.

    Minimizes the mean loss subject to rate constraints of the model's *decisions*; see
    docs/rate_constrained.md. The loss is logistic for two classes, and softmax for more. It works
    without groups and without a constraint, with any number of classes, groups and sensitive
    columns. Begin with this estimator.

    Parameters
    ----------
    solver : Descent, default=None
        Settings of the descent, such as ``Descent(rounds=50)``. None: the library's, from public
        facts.
    randomised : bool, default=True
        Whether the fit may publish a mixture of models, which decides by drawing one of them
        for each row. It returns a mixture, a constant or a model without constraints where
        released numbers say that this keeps the constraints better or errs less. `baselines_` says
        which; it costs no further privacy.

    Attributes
    ----------
    model_, privacy_, constraint_report_, baselines_
    outcome_ : Outcome
        Everything that the search released.
    classes_, groups_, coef_, intercept_, coef_names_, n_features_in_, feature_names_in_,
    coding_, cells_, n_iter_, certificate_, certified_aim_

    See Also
    --------
    FermiClassifier : Trades the error against a penalty, where no bound is required.
    FairPostProcessor : Keeps a classifier as it is, and changes its decisions.
    OracleGameClassifier : Mixture of classifiers from a private game.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_privacy.py):

    1. The fit depends on the rows through the curator's releases alone, except for what
       `privacy_.facts` and `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most (epsilon, delta).
    3. With a schema, nothing is read from the data.
    4. A fit that fails or is interrupted changes no attribute.

    References
    ----------
    .. [1] Yaghini, Cebere, Menart, Bellet and Papernot 2025. "Private Rate-Constrained Optimization
       with Applications to Fair Learning." arXiv:2505.22703. Corrected as docs/theory/papers.md
       tells.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 2)) + 0.5 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1).astype(int)
    >>> clf = RateConstrainedClassifier("demographic_parity:0.1", epsilon=2.0, random_state=0)
    >>> clf.fit(X, y, sensitive_features=A).predict(X[:3]).shape
    (3,)
    >>> clf.privacy_.epsilon <= 2.0, clf.groups_
    (True, (0, 1))
    """

    SETTINGS: ClassVar = {
        "solver": (Descent,),
        "certify_share": (SetAside,),
    }

    constraints: object = None
    _: KW_ONLY
    solver: Descent | None = None
    sensitive_as_feature: bool = False
    model: object = None
    checkpoint: PathLike | None = None
    randomised: bool = True
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
    ) -> Self:
        """Fit to a table X and labels y, matched by position.

        Constraints with a `confidence` are certified on rows that are set aside: see
        `certificate_`.

        Parameters
        ----------
        sensitive_features : array, table, names of columns of X, or ReleasedGroups, default=None
            Groups: one column or several. None: the schema's, or no groups. Groups that
            `fairveil.release_groups` released: the fit costs nothing further, and `protects` must
            be "sensitive_features".

        Warns
        -----
        ConstraintNotMet, NotEnforced, WorseThanBaseline, RandomizedModel, DecisionsReplaced
        """
        if isinstance(sensitive_features, ReleasedGroups):
            return self._fit_released(X, y, sensitive_features, sample_weight)
        return super().fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)

    def _fit_released(
        self, X: TableLike, y: ColumnsLike, released: ReleasedGroups, sample_weight: ColumnsLike
    ) -> Self:
        """Of groups that were released once: no row's group is asked for, and nothing is spent."""
        found = fit_released(self, X, y, released, sample_weight)
        if len(found.rules) == 1:
            self._set_model(found.rules[0], released.coding)
        else:
            self._set_mixture(MixtureModel(found.rules, found.shares), released.coding)
        self.cells_, self.groups_, self.privacy_, self.baselines_ = (
            released.cells,
            released.groups,
            released.privacy,
            None,
        )
        publish_columns(self, X)
        self._set_outcome(found.outcome)
        if self._is_randomized:
            warn_of_chance("")
        self._after_fit()
        return self

    def _asked(self) -> list[Notion]:
        return fitting.notions_of(self.constraints)

    def _usual(self, promise: Promise) -> Settings:
        return Settings()

    def _plan(
        self,
        promise: Promise,
        training: Training,
        cells: Cells | None,
        notions: list[Notion],
        facts: dict[str, Any],
    ) -> Planned:
        kind = PrimalDual if facts["skeleton"] is None else NetworkDescent
        known = (promise, training.rows.layout, cells, notions)
        return kind(planned(*known, **facts, search=lambda plan: kind(plan).search()))

    def _report(self, outcome: Outcome) -> None:
        self.constraint_report_ = ConstraintReport.of(outcome, said(self))

    def _after_fit(self) -> None:
        if not self.constraint_report_.missed_by_far:
            report = self.baselines_
            kept = report is None or report.handed_out in (MODEL, MIXTURE)
            warn_if_not_enforced(self.constraint_report_, 1.0 if kept else 0.0, stacklevel=6)
            return
        reached = "the best that was reached on the training rows is"
        ask = (
            "Ask for a larger bound, a larger epsilon or more rounds, or drop a constraint that "
            "contradicts it"
        )
        warn_of_missed(self.constraint_report_, reached, ask, stacklevel=4)
