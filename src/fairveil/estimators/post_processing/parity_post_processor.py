"""`ParityPostProcessor`: demographic parity of many classes after a classifier, on rows that need
no labels (private)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ... import _checks
from ..._types import ColumnsLike, Floats, TableLike
from ...core.events import Event
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator import Curator
from ...curator.elsewhere import Elsewhere
from ...curator.quiet import Troubles, quietly
from ...errors import InputError, PrivacyError
from ...facts import Cells, RowSource
from ...fairness import ConstraintSystem, DemographicParity
from ...learning import parity
from ...learning.descent import descend
from ...learning.forecasting import forecast
from ...learning.forecasting.foretold import Forecast
from ...learning.forecasting.supposed import Supposed
from ...learning.parity import ParityOutcome, ParityPlan
from ...models import Model, ShiftedModel
from ...statement.document import PrivacyStatement
from ...tables.columns import same_length
from .. import fitting
from ..fitting import Planning, Recorded, require_room, said, warn_if_hidden
from ..reading import cautions, origins
from ..reading.cautions import outside
from ..reading.fitted_parts import names_of_features, parts_of, width_of
from ..reading.training import Training
from ..reading.unread import Read
from ..reports.constraint_report import ConstraintReport, warn_if_not_enforced
from ..settings import Offsets
from ..words import described, worded
from ..wrapped import bases, decided, unlabelled
from ..wrapped import spends as base_spends
from ..wrapped import statement as base_statement
from ..wrapped.bases import Base, BaseOptions
from ..wrapped.decided import DecidedRows
from . import asking
from . import report as post_report
from . import rows as post_rows
from .after_a_base import AfterABase
from .offsets_said import report_of, warn_of_gap, warn_of_small
from .simplex import checked


@described
class ParityPostProcessor(AfterABase, ClassifierMixin, Planning, Recorded, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Post-processor of probabilities: offsets by group make rates of each class nearly equal.

    For any number of classes and groups. After a fitted classifier the rows need no labels, since
    only its decisions about each group are counted; see docs/post_processing.md. **It reads the
    group at prediction.**

    Parameters
    ----------
    estimator : classifier, default=None
        The base, with `predict_proba`: a classifier of scikit-learn or of this library. A fitted
        one is used as it is, and another is cloned and fitted, to labels. None: a linear classifier
        without constraints.
    max_gap : float, default=0.05
        Largest difference between two groups' rates of one class, a share of 1.
    groups : Cells, default=None
        The groups, where they are public and neither a schema nor coded rows say them. None: the
        schema's, else those that occur, which the statement lists as read from the data.
    solver : Offsets, default=None
        Settings of the steps, such as ``Offsets(rounds=20)``. None: the library's.
    randomised : bool, default=True
        Whether decisions are drawn. False: the largest probability decides at prediction, though
        offsets were found for soft decisions.

    Attributes
    ----------
    estimator_
    model_ : ShiftedModel
        The rule over the base's probabilities.
    offsets_ : ndarray of shape (n_groups, n_classes)
        Subtracted from the base's probabilities.
    rates_ : ndarray of shape (n_groups, n_classes)
        Rates of the decisions on these rows, by the last noisy histogram.
    gap_ : float
        Largest difference of two groups in `rates_`, noise included; a share of 1.
    noise_ : float
        Standard deviation of the noise of one count of that histogram, in rows.
    moved_ : ndarray of bool of shape (n_groups,)
        Groups with offsets. A group too small for the noise keeps the base's decisions, and a
        warning names it.
    sensitive_names_, groups_named_, constraint_report_, privacy_, classes_, groups_, cells_,
    n_features_in_, feature_names_in_

    See Also
    --------
    OddsPostProcessor : Keeps other constraints, on rows with labels.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_parity.py):

    1. `privacy_` is the price of the offsets, the rates and the base's making, at most (epsilon,
       delta). A sentence in `privacy_.not_covered` says what of the base is not charged, and why.
       The log of the releases is the plan.
    2. The fit depends on the protected data through the base and the released histograms alone. The
       exceptions are what `privacy_.facts` lists as read from the data.
    3. A fit that fails changes no attribute, and a fitted base stays as it was.

    References
    ----------
    .. [1] Say, Denis and Pinot 2025. "DP2DP." arXiv:2511.18876.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=6000)
    >>> X = rng.normal(size=(6000, 3)) + A[:, None]
    >>> y = (X @ rng.normal(size=(3, 4)) + rng.gumbel(size=(6000, 4))).argmax(axis=1)
    >>> model = LogisticRegression().fit(X[:3000], y[:3000])
    >>> fair = ParityPostProcessor(
    ...     model, max_gap=0.05, epsilon=1.0, public_base=True, random_state=0
    ... )
    >>> fair = fair.fit(X[3000:], sensitive_features=A[3000:])
    >>> fair.gap_ < 0.1
    True
    >>> fair.predict(X[:5], sensitive_features=A[:5], random_state=0).shape
    (5,)
    """

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True, "sample_weight": True}

    model_: ShiftedModel = field(init=False)
    rates_: Floats = field(init=False)
    noise_: float = field(init=False)
    moved_: npt.NDArray[np.bool_] = field(init=False)
    constraint_report_: ConstraintReport = field(init=False)
    privacy_: PrivacyStatement = field(init=False)
    groups_: tuple[Any, ...] = field(init=False)

    SETTINGS: ClassVar = {"solver": (Offsets,)}

    estimator: BaseEstimator = None
    max_gap: float = 0.05
    _: KW_ONLY
    public_base: bool = False
    groups: object = None
    solver: Offsets | None = None
    randomised: bool = True

    @property
    def constraints(self) -> list[DemographicParity]:
        """The constraint that `max_gap` stands for."""
        return [DemographicParity(self.max_gap)]

    @property
    def offsets_(self) -> Floats:
        """Subtracted from the base's probabilities."""
        check_is_fitted(self, "model_")
        return self.model_.offsets

    @property
    def gap_(self) -> float:
        """Largest difference of two groups in `rates_`, noise included; a share of 1."""
        check_is_fitted(self, "model_")
        return float(np.ptp(self.rates_, axis=0).max())

    @worded
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> ParityPostProcessor:
        """Fit the base if it is not fitted, and find the offsets.

        Parameters
        ----------
        X : table or array
            Features, as the base takes them.
        y : array, default=None
            Labels, for a base that is fitted here. After a fitted base they are ignored.

        Raises
        ------
        InputError, PrivacyError, Overspent

        Warns
        -----
        ConstraintNotMet
            If a group is too small for the noise, or released values say that a constraint is
            missed by far.
        NotEnforced
            If noise hides the constraint: before anything is spent, where public facts say so.
        """
        promise, wishes = self._told()
        ledger = fitting.ledger_of(self, promise, base_spends.ledger_inside(self.estimator))
        wishes = replace(wishes, ledger=ledger)
        asked = self._asked(X, y, sensitive_features, sample_weight, wishes)
        cells, system = self._compared(asked)
        training, rows = asked.training, asked.training.rows
        if ledger is not None:
            ledger.require(promise, schema=training.schema)
            spent = base_spends.about_to_spend(self.estimator, wishes)
            if spent:
                require_room(
                    ledger,
                    [*spent, self._plan_of(promise, spent, training).event],
                    promise,
                    self._purpose,
                )
        known = fitting.public_rows_of(self.public_rows, training, promise)
        hidden = warn_if_hidden(
            training, promise, known, partial(self._foretold_of, training, wishes, cells, system)
        )
        base = post_rows.base_of(
            self.estimator, asked, wishes, (X, y, sensitive_features, sample_weight), spare=True
        )
        _require_one_plan(base)
        plan = self._plan_of(promise, base.spent, training)
        shown = post_rows.shown(asked, base, X)
        law = self._law(base, shown, training)
        noise = NoiseSource.of(bases.derived_seed(wishes.seed, 2))
        fitted_here = self.estimator is None or not bases.is_fitted(self.estimator)
        with asking.curator_of_counts(
            asked, base, wishes, plan, noise, self._purpose, fitted_here
        ) as curator:
            blocks: Any = law if isinstance(shown, Elsewhere) else decided.in_blocks(law, rows)
            attached = curator.attach(blocks, title="probabilities of the base classifier")
            hard = not self.randomised
            search = parity.ParitySearch(
                plan, attached, cells, self.max_gap, float(self._solver.temperature), hard=hard
            )
            found = descend(curator, search)
        report = report_of(found, plan, system)
        self._conclude(asked, base, promise, curator, cells, plan, found, report)
        if not found.moved.all():
            warn_of_small(
                [
                    key
                    for key, moved in zip(cells.keys, found.moved.tolist(), strict=True)
                    if not moved
                ]
            )
        elif self.constraint_report_.missed_by_far:
            warn_of_gap(self.constraint_report_)
        elif not hidden:
            warn_if_not_enforced(self.constraint_report_, stacklevel=1 + outside())
        return self

    @worded
    def predict_proba(self, X: TableLike, *, sensitive_features: ColumnsLike = None) -> Floats:
        """Exact distribution of `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "model_")
        features = self._features_of(X)
        law = checked(decided.law_of(self.estimator_, features, self.model_.classes))
        ids = self._ids(X, sensitive_features, len(law))
        assert ids is not None
        return self.model_.law(law, ids)

    # -- inside ------------------------------------------------------------------------------------

    def _told(self) -> tuple[Promise, BaseOptions]:
        """What the arguments say, checked before any row is read."""
        whose, promise = fitting.asked(self)
        remedy = "Pass max_gap=0.05, for example."
        _checks.fraction(max_gap=self.max_gap, high_open=True, remedy=remedy)
        if self.groups is not None and (
            not isinstance(self.groups, Cells) or self.groups.mode != "product"
        ):
            remedy = "Pass groups=Cells([('f', 'm')], names=('sex',)), for example."
            raise InputError.expected("product cells", of="groups", got=self.groups, remedy=remedy)
        wishes = asking.base_options(self, promise, self._solver.base_share, whose=whose)
        bases.check(self.estimator, wishes)
        if self.estimator is not None and not hasattr(self.estimator, "predict_proba"):
            got = type(self.estimator).__name__
            remedy = "Pass one with probabilities, or OddsPostProcessor, which changes decisions."
            raise InputError.expected(
                "a classifier with predict_proba", of="estimator", got=got, remedy=remedy
            )
        return promise, wishes

    def _asked(
        self,
        X: TableLike,
        y: ColumnsLike,
        sensitive: ColumnsLike,
        weights: object,
        wishes: BaseOptions,
    ) -> DecidedRows:
        if self.groups is not None and (
            self.schema is not None or isinstance(X, RowSource | Elsewhere)
        ):
            remedy = "Leave groups=None: the schema, or the coded rows, say the groups."
            raise InputError.expected(
                "None beside a schema", of="groups", got=self.groups, remedy=remedy
            )
        fitted = self.estimator is not None and bases.is_fitted(self.estimator)
        told: dict[str, Any] = {
            "labelled": not fitted,
            "groups": self.groups,
            "whose": wishes.whose,
        }
        return post_rows.read(self, X, y, sensitive, weights, wishes.promise, **told)

    def _compared(self, asked: DecidedRows) -> tuple[Cells, ConstraintSystem]:
        """The groups, and the constraints on their rates."""
        unlabelled.require_groups(bool(asked.training.rows.layout.sensitive))
        cells, system = post_report.system_of(self.constraints, asked)
        assert cells is not None
        assert system is not None
        return cells, system.without_labels()

    def _foretold_of(
        self,
        training: Training,
        wishes: BaseOptions,
        cells: Cells,
        system: ConstraintSystem,
        supposed: Supposed,
        epsilon: float,
    ) -> Forecast:
        """Of the counts, at another epsilon, before the base is fitted."""
        at = replace(wishes, promise=replace(wishes.promise, epsilon=epsilon))
        spent = base_spends.about_to_spend(self.estimator, at)
        plan = self._plan_of(at.promise, spent, training)
        return forecast.of_parity(plan, system, cells, supposed)

    def _plan_of(self, promise: Promise, spent: Iterable[Event], training: Training) -> ParityPlan:
        rows = training.rows
        heaviest = rows.max_sample_weight if promise.is_private else rows.largest_weight
        of_one = promise.rows_per_unit * (heaviest if rows.weighted else 1.0)
        return parity.plan(promise, self._solver.rounds, spent, of_one)

    def _law(self, base: Base, shown: object, training: Training) -> Any:
        """The base's probabilities of the training rows; of rows elsewhere how their holder finds
        them. While rows are private, nobody hears what it says of them."""
        if isinstance(shown, Elsewhere):
            from ..wrapped.elsewhere import probabilities_rule

            return probabilities_rule(base.estimator, training, shown)
        if not training.rows.exact_count:  # see `decided.decisions_of`
            return np.empty((0, len(training.classes)))
        measurement = base.estimator.predict_proba
        found = decided.asked_of_base(lambda: quietly(Troubles(), measurement, shown))
        law = checked(decided.in_order(base.estimator, found, training.classes))
        same_length(
            {"X": training.rows.exact_count, "the base classifier's probabilities": len(law)}
        )
        return law

    @property
    def _solver(self) -> Offsets:
        return self._setting("solver", Offsets)

    def _search(self, read: Read) -> ParityPlan:
        return self._planned(read)[0]

    def _forecast(self, read: Read, supposed: Supposed) -> Forecast:
        plan, system, cells, before = self._planned(read)
        base = () if before is None else forecast.of(before, supposed).releases
        return forecast.of_parity(plan, system, cells, supposed, base)

    def _planned(self, read: Read) -> tuple[ParityPlan, ConstraintSystem, Cells, Any]:
        """The plan, the constraints and their groups, and the search of a base that is fitted here,
        before there are rows."""
        promise, wishes = self._told()
        training = read(
            fitting.ways_of(
                self.schema, False, False, self.max_sample_weight, promise, whose=wishes.whose
            )
        )
        cells, system = self._compared(DecidedRows(training, None, None, False))
        known = fitting.public_rows_of(self.public_rows, training, promise)
        cautions.of_promise(promise, training.exact_rows if promise.rows_are_public else known)
        with cautions.said_around():
            base, search = bases.planned(self.estimator, wishes, read, spare=True)
        _require_one_plan(base)
        plan = self._plan_of(promise, base.spent, training)
        return plan, system, cells, search

    @property
    def _purpose(self) -> str:
        return f"{type(self).__name__}.fit"

    def _conclude(
        self,
        asked: DecidedRows,
        base: Base,
        promise: Promise,
        curator: Curator,
        cells: Cells,
        plan: ParityPlan,
        found: ParityOutcome,
        report: ConstraintReport,
    ) -> None:
        """Publish. All that can fail comes before the first attribute."""
        training, made = asked.training, curator.statement()
        classes = training.classes
        inside = parts_of(bases.thawed(base.estimator)).model if base.is_ours else None
        inside = inside if isinstance(inside, Model) and inside.classes == classes else None
        model = ShiftedModel(
            found.offsets,
            classes,
            cells,
            float(self._solver.temperature) if self.randomised else None,
            inside,
        )
        origin = origins.of_argument(self, "estimator")
        statement = base_statement.of(
            training, base, promise, made, made.ledger, reads_groups=True, base_origin=origin
        )
        self._set_model(base.estimator, model)
        self.rates_, self.noise_, self.moved_ = found.rates, plan.deviation, found.moved
        self.privacy_, self.cells_, self.groups_ = statement, cells, cells.keys
        self.sensitive_names_, self.groups_named_ = (
            training.rows.layout.sensitive_names,
            asked.named,
        )
        self.constraint_report_ = report.saying(said(self))
        self.n_features_in_ = width_of(base.estimator, training.n_features)
        self._set_names(training.columns or tuple(names_of_features(base.estimator)))


def _require_one_plan(base: Base) -> None:
    """Rounds beside a base that was looked at have no price here: theory.md#t10 is of one
    release."""
    if base.spent and base.looked_at:
        raise PrivacyError.expected(
            "a base classifier that is fitted here, or was made without these rows",
            of="estimator",
            got=f"{type(bases.thawed(base.estimator)).__name__}, whose own fit is charged",
            remedy=(
                "Pass it unfitted: then both are one plan. Or pass public_base=True if it "
                "has not seen these rows."
            ),
        )
