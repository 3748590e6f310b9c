"""`FermiClassifier`: loss plus the mutual information of prediction and group, by private
descent-ascent (DP-FERMI)."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, ClassVar, Self

import numpy as np

from .. import _checks
from .._types import ColumnsLike, TableLike
from ..core.promise import Promise
from ..data.reading import PathLike
from ..errors import InputError, NoGroups, complaint
from ..facts import Cells, Schema
from ..fairness import Notion
from ..learning import Outcome, PenaltySettings, Settings
from ..learning.lagrangian import fermi
from ..models.model import RandomState
from .certifying.certified_fits import certified, refuse_certify
from .descending import DescentClassifier
from .fitting import promises
from .fitting.planned_fit import Descent as Planned
from .reading.training import Training
from .reports.gap_report import GapReport
from .settings.descents import Descent, PenaltyDescent
from .settings.keeping import SetAside


class FermiClassifier(DescentClassifier):
    """Classifier whose predictions a penalty makes independent of groups, with privacy.

    Minimizes the mean loss plus `strength` times the exponential Rényi mutual information of
    prediction and group. The information is the maximum over a matrix W; see docs/fermi.md. It is
    for linear models and torch modules, with any number of classes, groups and sensitive columns.

    Parameters
    ----------
    notion : {"demographic_parity", "equalized_odds", "equal_opportunity"} or notion, default="demographic_parity"
        Predictions are to be independent of the group, of the group given the label, or of the
        group given the second label. With ``"equalized_odds"`` every label has a W of its own. A
        notion without a bound says which label and which groups: ``EqualOpportunity(None,
        positive="yes", groups="marginal")``.
    strength : float, default=1.0
        Weight of the penalty; 0 is no penalty. A gap falls about as 1 / strength once it is small.
    model : str, Additive or torch.nn.Module, default=None
        None: a linear model. ``"additive"`` or an `Additive`: steps of each number beside the line
        (docs/additive_models.md). A module is copied, and training starts from its weights
        (docs/networks.md).
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
    solver : Descent or PenaltyDescent, default=None
        Settings of the descent, such as ``PenaltyDescent(rounds=50, radius=10.0)``. None: the
        library's, from public facts.
    sensitive_as_feature : bool, default=False
        Whether columns of X that are named as sensitive are features too. For
        ``protects="records"`` alone.
    checkpoint : path, default=None
        Folder in which answers of an interrupted fit are kept. Fit again with the same arguments
        and rows, and it is resumed: answers are given again at no further price. None: nothing is
        kept.
    certify : notion, str or list of these, default=None
        Notions to certify after the fit, such as ``DemographicParity(0.1, confidence=0.95)`` or
        ``"demographic_parity:0.1"``. The fit does not aim at them. A notion without a `confidence`
        has that of the others, else 0.95. None: nothing.
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
    gap_report_ : GapReport
        Released differences of rates among groups on the training rows.
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

    See Also
    --------
    RateConstrainedClassifier : Keeps a bound on a gap.
    TailoredClassifier : Shares the privacy budget among groups.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_fermi.py):

    1. The fit depends on the rows through the curator's releases alone, except for what
       `privacy_.facts` and `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most (epsilon, delta).
    3. With a schema, nothing is read from the data.
    4. A fit that fails or is interrupted changes no attribute.

    References
    ----------
    .. [1] Lowy, Gupta and Razaviyayn 2023. "Stochastic Differentially Private and Fair Learning."
       arXiv:2210.08781. Corrected as docs/theory/papers.md tells.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 2)) + 0.5 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1).astype(int)
    >>> clf = FermiClassifier("demographic_parity", strength=5.0, epsilon=2.0, random_state=0)
    >>> clf.fit(X, y, sensitive_features=A).predict(X[:3]).shape
    (3,)
    >>> clf.privacy_.epsilon <= 2.0, clf.groups_
    (True, (0, 1))
    """

    SETTINGS: ClassVar = {
        "solver": (PenaltyDescent,),
        "certify_share": (SetAside,),
    }

    def __init__(
        self,
        notion: str | Notion = "demographic_parity",
        strength: float = 1.0,
        model: object = None,
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
        checkpoint: PathLike | None = None,
        certify: object = None,
        certify_share: object = None,
    ) -> None:
        self.notion = notion
        self.strength = strength
        self.model = model
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
        self.checkpoint = checkpoint
        self.certify = certify
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

        With `certify`, notions are certified on rows that are set aside: see `certificate_`.

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
        WorseThanBaseline
            If the result errs more than something that costs nothing further.
        DecisionsReplaced
            If the fit was not certified as found, and part of its decisions was replaced by blind
            ones.
        """
        return super().fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)

    @property
    def _solver(self) -> PenaltyDescent:
        return self._setting("solver", PenaltyDescent)

    def _asked(self) -> list[Notion]:
        _checks.non_negative(strength=self.strength)
        refuse_certify(self)
        if self._solver.iterate == "uniform" and self.checkpoint is not None:
            remedy = "Take the last one, or leave checkpoint=None: the draw is of one sitting."
            raise InputError.expected(
                "'last' or 'average'", of="iterate", got="uniform", remedy=remedy
            )
        self._penalty()
        return [self._notion()]

    def _notion(self) -> Notion:
        """What the penalty is about, with the bound 0 that is nobody's."""
        if isinstance(self.notion, str):
            return fermi.notion_of(self.notion)
        return fermi.unbounded(self.notion)

    def _penalty(self) -> PenaltySettings:
        return PenaltySettings(radius=self._solver.radius, least_share=self._solver.least_share)

    def _usual(self, promise: Promise) -> Settings:
        return fermi.usual_settings(promise)

    def _require_groups(self, notions: list[Notion], training: Training) -> None:
        """Without groups there is nothing to be independent of: no penalty, and that is said."""
        if not training.rows.layout.sensitive and self.strength > 0:
            text = complaint(
                expected="groups, for the penalty to be about",
                of="sensitive_features",
                got=None,
                remedy="No penalty applies: pass fit(X, y, sensitive_features=...), or strength=0.",
            )
            warnings.warn(text, NoGroups, stacklevel=4)

    def _plan(
        self,
        promise: Promise,
        training: Training,
        cells: Cells | None,
        notions: list[Notion],
        facts: dict[str, Any],
    ) -> Planned:
        settings: Settings = facts.pop("settings")
        if cells is not None and cells.count < 2 and self.strength > 0:
            got = f"groups {list(cells.keys)}"
            remedy = "Pass sensitive_features with several groups, or strength=0."
            raise InputError.expected(
                "at least two groups", of="sensitive_features", got=got, remedy=remedy
            )
        if self._solver.iterate is not None:
            settings = dataclasses.replace(settings, iterate=self._iterate(settings.rounds))
        layout = training.rows.layout
        return fermi.make(
            promise,
            layout,
            cells,
            notions[0],
            [float(self.strength)],
            settings,
            self._penalty(),
            **facts,
        )

    def _iterate(self, rounds: int) -> str | int:
        """Which one: a round is drawn for "uniform", whatever the rows are."""
        if self._solver.iterate != "uniform":
            return str(self._solver.iterate)
        return int(np.random.default_rng(promises.seed_of(self.random_state)).integers(rounds))

    def _report(self, outcome: Outcome) -> None:
        self.gap_report_ = GapReport.of(outcome)
