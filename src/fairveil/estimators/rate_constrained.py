"""`RateConstrainedClassifier`: a linear classifier or a network under fairness constraints, private
by descent (RaCO-DP)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from .._types import ColumnsLike, Floats, TableLike
from ..core.promise import Promise
from ..data.reading import PathLike
from ..facts import Cells, Schema
from ..fairness import Notion
from ..learning import LinearDescent, NetworkDescent, Outcome, Settings
from ..learning.lagrangian import planning
from ..learning.lagrangian.players import constraints_of
from ..models import MixtureModel
from ..models.model import RandomState
from .certifying.certified_fits import certified
from .descending import DescentClassifier
from .fitting import promises
from .fitting.planned_fit import Descent as Planned
from .fitting.requirements import said
from .reading.training import Training
from .released.as_fit import fit_released
from .released.classifier import publish_columns
from .released.groups import ReleasedGroups
from .reports.baselines import MIXTURE, MODEL, warn_of_chance
from .reports.constraint_report import ConstraintReport, warn_if_not_enforced, warn_of_missed
from .settings.descents import Descent
from .settings.keeping import SetAside


class RateConstrainedClassifier(DescentClassifier):
    """Private classifier, linear or a torch module, under constraints on rates of its decisions.

    Minimizes the mean loss subject to rate constraints of the model's *decisions*; see
    docs/rate_constrained.md. The loss is logistic for two classes, and softmax for more. It works
    without groups and without a constraint, with any number of classes, groups and sensitive
    columns. Begin with this estimator.

    Parameters
    ----------
    constraints : notion, str or list of these, default=None
        Constraints on rates of decisions: a notion such as ``DemographicParity(max_gap=0.05)``, or
        its name and bound, ``"demographic_parity:0.05"``. A list combines them. Bounds are shares
        of 1, so 0.05 is 5 percentage points. None: no constraint.
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
        protects each row by itself.
    max_rows_per_unit : int, default=None
        Most rows of one person that the fit reads, a public number; required beside `unit`. A
        person with more rows has so many of them drawn. Noise of counts grows with it, and a `clip`
        is then of the sum of a person's gradients.
    solver : Descent, default=None
        Settings of the descent, such as ``Descent(rounds=50)``. None: the library's, from public
        facts.
    sensitive_as_feature : bool, default=False
        Whether columns of X that are named as sensitive are features too. For
        ``protects="records"`` alone.
    model : str, Additive or torch.nn.Module, default=None
        None: a linear model. ``"additive"`` or an `Additive`: steps of each number beside the line
        (docs/additive_models.md). A module is copied, and training starts from its weights
        (docs/networks.md).
    checkpoint : path, default=None
        Folder in which answers of an interrupted fit are kept. Fit again with the same arguments
        and rows, and it is resumed: answers are given again at no further price. None: nothing is
        kept.
    randomised : bool, default=True
        Whether the fit may publish a mixture of models, which decides by drawing one of them
        for each row. It returns a mixture, a constant or a model without constraints where
        released numbers say that this keeps the constraints better or errs less. `baselines_` says
        which; it costs no further privacy.
    certify_share : float or SetAside, default=None
        Share of the rows that is set aside to certify notions with a `confidence`, such as
        ``DemographicParity(0.05, confidence=0.95)``, for people whom the model has not seen. Each
        row is set aside by a coin of its own. A `SetAside` also says what becomes of a model that
        is refused. None: 0.3. The result is `certificate_` (docs/certificates.md).

    Attributes
    ----------
    model_ : LinearModel, MixtureModel or NetworkModel
        The model that was found.
    privacy_ : PrivacyStatement
        Statement of what the fit cost and of what it covers.
    constraint_report_ : ConstraintReport
        Released value, noise and bound of each constraint on the training rows.
    baselines_ : BaselineReport or None
        Released error of the result beside results that cost nothing further.
    outcome_ : Outcome
        Everything that the search released.
    classes_ : ndarray of shape (n_classes,)
        Classes, in the order of the columns of `predict_proba`.
    groups_ : tuple
        Keys of the groups; empty for a fit without sensitive features.
    coef_ : ndarray
        Coefficients, in the units of X; of linear models alone.
    intercept_ : ndarray or float
        Intercept; of linear models alone.
    coef_names_ : tuple of str
        Name of each coefficient; of linear models alone.
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
    certificate_ : Certificate
        Bounds for people whom the model has not seen; only where notions are certified.
    certified_aim_ : CertifiedAim
        Bounds that the fit aimed at, inside of those that it certifies; beside `certificate_`.

    See Also
    --------
    FermiClassifier : Trades the error against a penalty, where no bound is required.
    OddsPostProcessor : Keeps a classifier as it is, and changes its decisions.
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

    def __init__(
        self,
        constraints: object = None,
        *,
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
        solver: Descent | None = None,
        sensitive_as_feature: bool = False,
        model: object = None,
        checkpoint: PathLike | None = None,
        randomised: bool = True,
        certify_share: object = None,
    ) -> None:
        self.constraints = constraints
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
        self.solver = solver
        self.sensitive_as_feature = sensitive_as_feature
        self.model = model
        self.checkpoint = checkpoint
        self.randomised = randomised
        self.certify_share = certify_share

    @certified
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
        X : table or array
            Features: an array, a table or a source of coded rows; see docs/data.md.
        y : array, default=None
            Labels, or numbers for regression. None: the schema names the target among the columns
            of X.
        sensitive_features : array, table, names of columns of X, or ReleasedGroups, default=None
            Groups: one column or several. None: the schema's, or no groups. Groups that
            `fairveil.release_groups` released: the fit costs nothing further, and `protects` must
            be "sensitive_features".
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
        NotEnforced
            If noise hides a constraint, or what the search found gave way to what costs nothing.
        WorseThanBaseline
            If the result errs more than something that costs nothing further.
        RandomizedModel
            If the result is a mixture of models, which `randomised=False` forbids.
        DecisionsReplaced
            If the fit was not certified as found, and part of its decisions was replaced by blind
            ones.
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
        return promises.notions_of(self.constraints)

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
        plan = planning.make(promise, training.rows.layout, cells, notions, **facts)
        bounds: Floats = np.zeros((1, 0)) if plan.system is None else plan.system.bounds[np.newaxis]
        if plan.skeleton is None:
            return LinearDescent(plan, bounds)
        return NetworkDescent(
            plan, bounds, None if plan.system is None else constraints_of(plan, bounds)
        )

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
