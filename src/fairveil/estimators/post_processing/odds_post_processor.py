"""`OddsPostProcessor`: any classifier with thresholds or changed decisions by group, so that
constraints hold (private)."""

from __future__ import annotations

from dataclasses import KW_ONLY, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from ... import _checks
from ..._types import ColumnsLike, Floats, TableLike
from ...core.events import compose
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator import Curator
from ...facts import Cells
from ...fairness import ConstraintSystem
from ...learning import postprocess
from ...learning.counts import CountPlan, require_room
from ...learning.forecasting import forecast
from ...learning.forecasting.foretold import Forecast
from ...learning.forecasting.supposed import Supposed
from ...learning.postprocess import Mixed, MixingGuarantee, Released
from ...learning.systems import heaviest
from ...models import Model, PostProcessedModel
from ...statement.document import PrivacyStatement, Receipt
from .. import faces, fitting
from ..certifying.certified_fits import certified
from ..faces import Blindly
from ..fitting import Planning, Recorded, said, warn_if_hidden
from ..reading import cautions, origins
from ..reading.carried import groups_of
from ..reading.cautions import outside
from ..reading.fitted_parts import names_of_features, parts_of, width_of
from ..reading.training import Training
from ..reading.unread import Read
from ..reports.baselines import BaselineReport, warn_if_worse
from ..reports.constraint_report import ConstraintReport, warn_if_not_enforced
from ..settings import SetAside, Thresholds
from ..words import described, worded
from ..wrapped import answers as base_answers
from ..wrapped import bases, decided
from ..wrapped import spends as base_spends
from ..wrapped import statement as base_statement
from ..wrapped.answers import Answers
from ..wrapped.bases import Base, BaseOptions
from ..wrapped.decided import DecidedRows
from . import asking
from . import report as post_report
from . import rows as post_rows
from .post_processed import PostProcessed
from .report import Found


@described
class OddsPostProcessor(PostProcessed, ClassifierMixin, Planning, Recorded, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Post-processor of any classifier: thresholds by group that keep rate constraints.

    A linear program over a private histogram finds the best mixture of thresholds for each group.
    The histogram counts the training rows by group, label and bin of the base's score, and is
    released once, with noise. Thresholds are mixed only where this gains more than 0.05 percentage
    points of error. Decisions of a base without scores, or with several classes, are changed at
    random instead, by a table over the same kind of counts; see docs/post_processing.md.

    **It reads the group at prediction**, unless ``group_aware=False``. Any number of groups and
    sensitive columns is allowed. Without constraints it decides as the base does.

    Parameters
    ----------
    estimator : classifier, default=None
        The base: a classifier of scikit-learn or of this library. A fitted one is used as it is,
        and another is cloned and fitted. None: a linear classifier without constraints.
    confidence : float, default=0.95
        Probability, over the noise, with which the bounds in `guarantee_` hold.
    predict_method : {"auto", "decision_function", "predict_proba", "predict"}, default="auto"
        Output of the base that is changed. ``"auto"``: its score, if it has one and two classes.
        ``"predict_proba"`` is read as a logit, and ``"predict"`` gives decisions.
    solver : Thresholds, default=None
        Settings of bins, bounds and budget, such as ``Thresholds(bins=32)``. None: the library's.
    randomised : bool, default=True
        Whether decisions may be drawn at random. False: the best one threshold for each group, or
        one class for each decision of the base.

    Attributes
    ----------
    estimator_
    model_ : PostProcessedModel or DerandomisedModel
        The rule over the base's output.
    mixing_ : ndarray of shape (n_cells, n_bins, n_classes)
        Probability of each decision, by cell of groups and by bin, or by decision of the base.
    edges_ : ndarray or None
        Edges of the bins; None where decisions are changed.
    predict_method_ : str
        Output of the base that is changed.
    guarantee_ : MixingGuarantee or None
        Bounds on constraints and error, with probability `confidence`; None without constraints.
    released_ : Released
        The noisy counts.
    sensitive_names_, groups_named_, constraint_report_, baselines_, privacy_, classes_,
    groups_, cells_, n_features_in_, feature_names_in_, certificate_, certified_aim_

    See Also
    --------
    RateConstrainedClassifier : Keeps constraints while it trains.
    release_groups : Releases the groups once, for many fits.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_odds_privacy.py):

    1. `privacy_` is the price of the counts and of the base's making, at most (epsilon, delta). A
       sentence in `privacy_.not_covered` says what of the base is not charged, and why. For a base
       that was fitted before, this holds even if the choice of all else but the guarantee followed
       a look at that base.
    2. The fit depends on the protected data through the base and one noisy table of counts. The
       exceptions are what `privacy_.facts` lists as read from the data.
    3. No fitted attribute holds an exact statistic of protected data.
    4. A fit that fails or is interrupted changes no attribute.

    References
    ----------
    .. [1] Jagielski, Kearns, Mao, Oprea, Roth, Sharifi-Malvajerdi and Ullman 2019. "Differentially
       Private Fair Learning." arXiv:1812.02696. Corrected as docs/theory/papers.md tells.
    .. [2] Hardt, Price and Srebro 2016. "Equality of Opportunity in Supervised Learning."
           arXiv:1610.02413.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=4000)
    >>> X = rng.normal(size=(4000, 2)) + A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=4000) > 1).astype(int)
    >>> clf = OddsPostProcessor(
    ...     LogisticRegression(),
    ...     "equalized_odds:0.02",
    ...     protects="sensitive_features",
    ...     random_state=0,
    ... )
    >>> clf.fit(X, y, sensitive_features=A).predict(X, sensitive_features=A, random_state=0).shape
    (4000,)
    >>> clf.privacy_.epsilon <= 1.0, clf.guarantee_.gap_bound < 0.15
    (True, True)
    """

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True, "sample_weight": True}

    estimator_: Any = field(init=False)
    model_: PostProcessedModel = field(init=False)
    privacy_: PrivacyStatement = field(init=False)
    guarantee_: MixingGuarantee | None = field(init=False)
    constraint_report_: ConstraintReport = field(init=False)
    baselines_: BaselineReport | None = field(init=False)
    released_: Released | None = field(init=False)
    predict_method_: str = field(init=False)
    sensitive_names_: tuple[str, ...] = field(init=False)
    groups_named_: bool = field(init=False)
    cells_: Cells | None = field(init=False)
    classes_: npt.NDArray[Any] = field(init=False)
    groups_: tuple[Any, ...] = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: npt.NDArray[Any] = field(init=False)

    SETTINGS: ClassVar = {"solver": (Thresholds,), "certify_share": (SetAside,)}

    estimator: BaseEstimator = None
    constraints: object = None
    _: KW_ONLY
    confidence: float = 0.95
    public_base: bool = False
    predict_method: str = "auto"
    solver: Thresholds | None = None
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
    ) -> OddsPostProcessor:
        """Fit the base if it is not fitted, release the counts, and solve for the rule.

        X is whatever the base takes. Columns of X that are named as sensitive are not handed to it.

        Warns
        -----
        ConstraintNotMet
        NotEnforced
            If noise hides a constraint: before anything is spent, where public facts say so.
        WorseThanBaseline, DecisionsReplaced
        """
        whose, promise = fitting.asked(self)
        ledger = fitting.ledger_of(self, promise, base_spends.ledger_inside(self.estimator))
        notions = [
            notion for notion in fitting.notions_of(self.constraints) if not notion.is_vacuous
        ]
        _checks.fraction(
            confidence=self.confidence,
            low_open=True,
            high_open=True,
            remedy="Pass confidence=0.95, for example.",
        )
        by_chance = bool(self.randomised)
        ready = bool(self.public_base) or (
            self.estimator is not None and bases.is_fitted(self.estimator)
        )
        idle = {
            "slack": "without constraints" if self.constraints is None else None,
            "bins": "with predict_method='predict'"
            if self.predict_method == base_answers.DECIDED
            else None,
            "base_share": "with a base that is public or fitted" if ready else None,
        }
        fitting.refuse_unused(self._solver, idle)
        wishes = asking.base_options(self, promise, self._solver.base_share, ledger, whose)
        bases.check(self.estimator, wishes)
        base_answers.check(self.predict_method, self._solver.bins)
        asked = post_rows.read(self, X, y, sensitive_features, sample_weight, promise, whose=whose)
        fitting.require_groups(notions, asked.training)
        cells, system = post_report.system_of(notions, asked)
        if ledger is not None:
            ledger.require(promise, schema=asked.training.schema)
        if system is not None:
            asking.require_both(self.estimator, asked, wishes, cells, self._purpose)
        hidden = system is not None and self._warn_if_hidden(asked, wishes, cells, system)
        given = (X, y, sensitive_features, sample_weight)
        base = post_rows.base_of(self.estimator, asked, wishes, given, spare=system is not None)
        if system is None:
            self._decide_as_the_base(asked, base, wishes, X)
            return self
        rows = asked.training.rows
        plan = postprocess.plan(
            promise, cells, base.spent, weighted=rows.weighted, looked_at=base.looked_at
        )
        answers = self._answers(asked, base, wishes, plan, X)
        noise = NoiseSource.of(bases.derived_seed(wishes.seed, 2))
        fitted_here = self.estimator is None or not bases.is_fitted(self.estimator)
        with asking.curator_of_counts(
            asked, base, wishes, plan, noise, self._purpose, fitted_here
        ) as curator:
            attached = answers.attached(curator, rows)
            cap = rows.max_sample_weight if rows.weighted else None
            released = postprocess.release(curator, attached, plan, cap, answers.edges)
            curator.finish()
        found = post_report.found_in(
            released,
            system,
            cells,
            shared=not self._solver.group_aware,
            confidence=self.confidence,
            with_slack=self._solver.slack == "theorem",
            by_chance=by_chance,
            method=answers.method,
        )
        self._conclude(asked, base, promise, curator, found, curator.statement().ledger)
        post_report.warn_of_conflict(found.solved, by_chance=by_chance)
        warn_if_worse(self.baselines_)
        if not hidden and not self.constraint_report_.missed_by_far:
            warn_if_not_enforced(self.constraint_report_, stacklevel=1 + outside())
        return self

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _solver(self) -> Thresholds:
        return self._setting("solver", Thresholds)

    def _warn_if_hidden(
        self,
        asked: DecidedRows,
        wishes: BaseOptions,
        cells: Cells | None,
        system: ConstraintSystem,
    ) -> bool:
        """Before the base or the counts are paid for."""
        training, promise = asked.training, wishes.promise
        classes = len(training.classes)
        known = fitting.public_rows_of(self.public_rows, training, promise)
        decides = self.predict_method == base_answers.DECIDED or classes != 2

        def foretold(supposed: Supposed, epsilon: float) -> Forecast:
            at = replace(wishes, promise=replace(promise, epsilon=epsilon))
            spent = base_spends.about_to_spend(self.estimator, at)
            plan = postprocess.plan(at.promise, cells, spent)
            bins = self._solver.bins
            edges = None if decides else base_answers.edges_of(bins, None, plan, supposed.rows)
            return forecast.of_counts(plan, system, supposed, (), edges)

        return warn_if_hidden(training, promise, known, foretold)

    def _search(self, read: Read) -> CountPlan:
        return self._planned(read)[0]

    def _forecast(self, read: Read, supposed: Supposed) -> Forecast:
        plan, system, _, before, edges = self._planned(read, supposed.rows)
        base = () if before is None else forecast.of(before, supposed).releases
        if system is None:
            return Forecast(
                base, (), None, why="nothing is required, and decisions are the base classifier's"
            )
        return forecast.of_counts(plan, system, supposed, base, edges)

    def _planned(
        self, read: Read, supposed: float | None = None
    ) -> tuple[CountPlan, ConstraintSystem | None, Training, Any, Floats | None]:
        """The plan of the counts, the search of a base that is fitted with them, and edges of bins,
        before there are rows."""
        whose, promise = fitting.asked(self)
        notions = [
            notion for notion in fitting.notions_of(self.constraints) if not notion.is_vacuous
        ]
        wishes = asking.base_options(self, promise, self._solver.base_share, whose=whose)
        bases.check(self.estimator, wishes)
        training = read(
            fitting.ways_of(self.schema, False, False, self.max_sample_weight, promise, whose=whose)
        )
        fitting.require_groups(notions, training)
        cells, system = post_report.system_of(notions, DecidedRows(training, None, None, False))
        known = fitting.public_rows_of(self.public_rows, training, promise)
        cautions.of_promise(promise, training.exact_rows if promise.rows_are_public else known)
        with cautions.said_around():
            base, search = bases.planned(self.estimator, wishes, read, spare=system is not None)
        plan = postprocess.plan(promise, cells, base.spent, looked_at=base.looked_at)
        base_answers.check(self.predict_method, self._solver.bins)
        method = base_answers.method_of(base.estimator, self.predict_method, training.classes)
        public = promise.rows_are_public or not promise.is_private
        rows = (
            training.exact_rows
            if public
            else known or (supposed if base.is_ours and base.spent else None)
        )
        edges = (
            None
            if method == base_answers.DECIDED
            else base_answers.edges_of(self._solver.bins, None, plan, rows)
        )
        return plan, system, training, search, edges

    @property
    def _purpose(self) -> str:
        return f"{type(self).__name__}.fit"

    def _answers(
        self, asked: DecidedRows, base: Base, wishes: BaseOptions, plan: CountPlan, X: TableLike
    ) -> Answers:
        """What the base answers about the training rows."""
        known = post_rows.known_rows(self.public_rows, asked, wishes.promise, base)
        features, seed = post_rows.shown(asked, base, X), bases.derived_seed(wishes.seed, 3)
        return base_answers.of(
            base.estimator,
            self.predict_method,
            self._solver.bins,
            features,
            asked.training,
            plan,
            known,
            seed,
        )

    def _decide_as_the_base(
        self, asked: DecidedRows, base: Base, wishes: BaseOptions, X: TableLike
    ) -> None:
        """Nothing is required, and nothing is asked: publish the base."""
        features, seed = post_rows.shown(asked, base, X), bases.derived_seed(wishes.seed, 3)
        decided.decisions_of(
            base.estimator, features, asked.training.classes, asked.training.rows.exact_count, seed
        )
        require_room(wishes.promise, compose(base.spent), more=False)
        with base_spends.recorded(base, wishes, self._purpose) as receipt:
            pass
        self._conclude(asked, base, wishes.promise, None, None, receipt)

    def _conclude(
        self,
        asked: DecidedRows,
        base: Base,
        promise: Promise,
        curator: Curator | None,
        found: Found | None,
        receipt: Receipt | None,
    ) -> None:
        """Publish. All that can fail comes before the first attribute."""
        training = asked.training
        classes = training.classes
        inside = parts_of(bases.thawed(base.estimator)).model if base.is_ours else None
        inside = inside if isinstance(inside, Model) and inside.classes == classes else None
        report, baselines = ConstraintReport((), 0, post_report.NOTHING_ASKED), None
        cells, released, guarantee = None, None, None
        model = PostProcessedModel(np.eye(len(classes))[np.newaxis], classes, None, inside)
        if found is not None:
            cells, released, guarantee = found.cells, found.released, found.guarantee
            table = found.solved.table[: 1 if cells is None else cells.count]
            model = PostProcessedModel(table, classes, cells, inside, released.edges)
            report, baselines = found.reported(classes, heaviest(promise, self.max_sample_weight))
        counts = None if curator is None else curator.statement()
        statement = base_statement.of(
            training,
            base,
            promise,
            counts,
            receipt,
            reads_groups=cells is not None,
            base_origin=origins.of_argument(self, "estimator"),
        )
        whole = groups_of(training, either=False)
        self._set_base(
            base.estimator, model, base_answers.DECIDED if found is None else found.method
        )
        self.privacy_ = statement
        self.baselines_ = baselines
        self.cells_, self.groups_ = whole, () if whole is None else whole.keys
        self.guarantee_, self.constraint_report_, self.released_ = (
            guarantee,
            report.saying(said(self)),
            released,
        )
        self.sensitive_names_ = training.rows.layout.sensitive_names
        self.groups_named_ = asked.named
        self.n_features_in_ = width_of(base.estimator, training.n_features)
        self._set_names(training.columns or tuple(names_of_features(base.estimator)))

    def _set_base(self, estimator: object, model: PostProcessedModel, method: str) -> None:
        self._set_model(estimator, model)
        self.predict_method_ = method

    def _replace_decisions(self, blindly: Blindly) -> bool:
        """Change the table, so that a part of all decisions is blind."""
        if self.released_ is None or self.guarantee_ is None:
            return False
        model, released, system = self.model_, self.released_, self._resolved()
        shared = model.cells is None and len(released.raw) > 1
        table = blindly.law(model.mixing)
        whole = np.broadcast_to(table, (len(released.raw), *table.shape[1:]))
        confidence, before = self.guarantee_.confidence, self.constraint_report_
        self.guarantee_ = postprocess.guarantee(released, system, whole, confidence, shared=shared)
        solved = Mixed(whole, np.array([line.pressure for line in before.lines]), 0.0)
        report = post_report.report_of(
            self.guarantee_, solved, before.reason, released, system, self._heaviest
        )
        compared = postprocess.compared(released, system, whole)
        self.constraint_report_ = report.saying(before.required)
        self.baselines_ = faces.baselines_of(self.baselines_, compared, model.classes, blindly)
        self.model_ = PostProcessedModel(table, model.classes, model.cells, model.base, model.edges)
        return True
