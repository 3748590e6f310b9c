"""Decisions of a finished classifier changed by group: thresholds, tables of chances, and offsets."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .. import _checks
from .._types import ColumnsLike, Floats, TableLike
from ..core.events import Event, compose
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..curator import Curator
from ..curator.elsewhere import Elsewhere, curator_of
from ..curator.quiet import Troubles, quietly
from ..errors import ConstraintNotMet, InputError, Overspent, PrivacyError
from ..facts import Cells, RowSource
from ..fairness import ConstraintSystem, DemographicParity, Notion, deviations, resolve
from ..ledger import Ledger
from ..methods import Outcome, forecast, parity, postprocess
from ..methods.counts import CountPlan
from ..methods.counts import require_room as require_room_beside
from ..methods.forecast import Forecast, Supposed
from ..methods.game import Equilibrium
from ..methods.least_squares import RegressionOutcome
from ..methods.objectives import Found
from ..methods.parity import ParityOutcome, ParityPlan
from ..methods.postprocess import Mixed, MixingGuarantee, Program, Released
from ..methods.systems import NO_GROUPS, heaviest
from ..models import Model, PostProcessedModel, RandomState, ShiftedModel
from ..models.model import draw_codes
from ..statement.document import PrivacyStatement, Receipt
from ..tables.columns import same_length
from ..tables.distinct import in_words
from . import faces, fitting, wrapped
from .certifying.certified_fits import certified, forget_certificate
from .faces import Blindly, as_array, expected_accuracy
from .fitting import Planning, Recorded, require_room, said, warn_if_hidden
from .rate_constrained import RateConstrainedClassifier
from .reading import cautions, origins
from .reading.carried import groups_of
from .reading.cautions import outside
from .reading.fitted_parts import classes_of, names_of_features, parts_of, width_of
from .reading.training import ReadOptions, Training
from .reading.units import Whose
from .reading.unread import Read
from .reports import (
    BaselineReport,
    ConstraintLine,
    ConstraintReport,
    of_comparison,
    warn_if_not_enforced,
    warn_if_worse,
    warn_of_missed,
)
from .settings import Offsets, SetAside, Thresholds
from .words import described, worded
from .wrapped import Answers, Base, BaseOptions, DecidedRows

# ------------------------------ rows
# What a post-processor is given: the rows to count, and what its base is shown of them.


def read(
    estimator: BaseEstimator,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    promise: Promise,
    *,
    labelled: bool = True,
    groups: Cells | None = None,
    whose: Whose | None = None,
) -> DecidedRows:
    """The rows of a fit, checked against the promise and the base of `estimator`, an unfitted
    post-processor. `labelled`: else nobody needs labels, and a base that is fitted says the
    classes. `groups`: where they are public. `whose`: each row is."""
    base = estimator.estimator
    ways: ReadOptions = fitting.ways_of(
        estimator.schema, False, False, estimator.max_sample_weight, promise, whose=whose
    )
    fitted = base is not None and wrapped.is_fitted(base)
    known = as_tuple(classes_of(base)) if fitted else ()
    if labelled:
        asked = wrapped.labelled_rows(X, y, sensitive_features, sample_weight, ways, known)
    else:
        asked = wrapped.unlabelled_rows(X, sensitive_features, sample_weight, ways, known)
    if groups is not None:
        asked = wrapped.with_groups(asked, groups)
    fitting.require_cap(asked.training, promise)
    rows = fitting.public_rows_of(estimator.public_rows, asked.training, promise)
    ours = base is None or wrapped.carries_a_promise(base)
    cautions.of_promise(
        promise, asked.training.rows.exact_count if promise.rows_are_public else rows
    )
    steps = cautions.of_pipeline(asked.training, promise)
    if steps:
        outside = (*asked.training.not_covered, *(step.sentence for step in steps))
        asked = replace(asked, training=replace(asked.training, not_covered=outside))
    if isinstance(X, RowSource) and not ours:
        remedy = "Pass arrays or a table, or a classifier of Fairveil, which takes coded rows."
        raise InputError.expected(
            "features for the base classifier", of="X", got=type(X).__name__, remedy=remedy
        )
    # Of ours that were fitted before, too: a column that was public to their guarantee may be
    # protected by this one.
    coding = parts_of(wrapped.thawed(base)).coding if ours and fitted else None
    read_ones = read_by(base) if coding is None else coding.columns_read
    names = set(read_ones) & set(asked.training.rows.layout.sensitive_names)
    if names and promise.is_private and promise.protects == "sensitive_features":
        raise PrivacyError.expected(
            "a base classifier that does not read what is protected",
            of="estimator",
            got=f"one fitted with {sorted(names)} among its features",
            remedy="Fit it without those columns.",
        )
    return asked


def known_rows(
    public_rows: object, asked: DecidedRows, promise: Promise, base: Base
) -> float | None:
    """The number of rows, where it is public or nothing is promised; else what the base released of
    it, which is charged."""
    if promise.rows_are_public or not promise.is_private:
        return float(asked.training.rows.exact_count)
    stated: float | None = fitting.public_rows_of(public_rows, asked.training, promise)
    if stated is None and base.is_ours and base.spent:
        found = parts_of(wrapped.thawed(base.estimator)).outcome
        stated = (
            found.rows
            if isinstance(found, Outcome | Equilibrium | Found | RegressionOutcome)
            else None
        )
    return None if stated is None else float(stated)


def base_of(
    estimator: object, asked: DecidedRows, wishes: BaseOptions, given: Sequence[Any], *, spare: bool
) -> Base:
    """The base; ours read the table as it came, and leave the groups out by themselves."""
    X, y, sensitive_features, sample_weight = given
    if estimator is not None and not wrapped.carries_a_promise(estimator):
        X, y, sensitive_features = asked.features, asked.labels, None
    with cautions.said_around():
        return wrapped.prepare(estimator, wishes, X, y, sensitive_features, sample_weight, spare)


def shown_to_base(asked: DecidedRows, base: Base, X: TableLike) -> Any:
    """What the base decides about in training."""
    names = asked.training.rows.layout.sensitive_names
    return X if set(read_by(base.estimator)) & set(names) else asked.features


def features_of(
    base: object, X: TableLike, schema: object, names: Sequence[str], sensitive: Sequence[str]
) -> Any:
    """X as the base takes it: without sensitive columns, and, for another's base under a schema,
    features alone (`names`)."""
    wrapped.refuse_unseen(X)
    read_ones = read_by(base)
    if schema is not None and not wrapped.carries_a_promise(base):
        return (
            wrapped.without(X, [name for name in wrapped.names_of(X) if name not in names])
            if names
            else X
        )
    return wrapped.without(X, [name for name in sensitive if name not in read_ones])


def as_tuple(classes: object) -> tuple[Any, ...]:
    """Classes as plain Python values."""
    return tuple(np.asarray(classes).tolist())


def read_by(estimator: object) -> tuple[str, ...]:
    """Names of the columns that another's fitted base reads; ours leave sensitive columns out by
    themselves."""
    if estimator is None or wrapped.carries_a_promise(estimator):
        return ()
    return names_of_features(estimator)


# ------------------------------ after_a_base
# What all post-processors share at prediction: what the base is shown, the groups, draws and the
# score. Abstract.


class AfterABase:
    """A fitted base classifier, and a rule that changes what it answers. Abstract."""

    estimator: Any
    schema: Any
    unit: Any
    estimator_: Any
    model_: Any
    sensitive_names_: tuple[str, ...]
    groups_named_: bool
    cells_: Cells | None
    classes_: npt.NDArray[Any]
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    @abstractmethod
    def predict_proba(self, X: TableLike, *, sensitive_features: ColumnsLike = None) -> Floats:
        """Exact distribution of `predict`."""

    @worded
    def predict(
        self,
        X: TableLike,
        *,
        sensitive_features: ColumnsLike = None,
        random_state: RandomState = None,
    ) -> npt.NDArray[Any]:
        """Predict the class of each row, drawn anew for every row where decisions are drawn.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, as the labels were written.
        """
        check_is_fitted(self, "model_")
        law = self.predict_proba(X, sensitive_features=sensitive_features)
        return np.asarray(self.classes_[draw_codes(law, random_state)])

    @worded
    def score(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
    ) -> float:
        """Expected share of rows, by weight, whose class is predicted right.

        Returns
        -------
        float
            Expected accuracy, between 0 and 1.
        """
        law = self.predict_proba(X, sensitive_features=sensitive_features)
        return expected_accuracy(law, self.classes_, X, y, sample_weight)

    # -- inside ------------------------------------------------------------------------------------

    def _features_of(self, X: TableLike) -> Any:
        names = names_of_features(self)
        no_features = (*self.sensitive_names_, *([self.unit] if isinstance(self.unit, str) else []))
        return features_of(self.estimator_, X, self.schema, names, no_features)

    def _ids(
        self, X: TableLike, sensitive_features: ColumnsLike, rows: int
    ) -> npt.NDArray[np.intp] | None:
        cells = self.model_.cells
        return (
            None
            if cells is None
            else wrapped.group_ids(sensitive_features, X, cells, rows, self.groups_named_)
        )

    def _set_model(self, estimator: object, model: PostProcessedModel | ShiftedModel) -> None:
        self.estimator_, self.model_ = estimator, model
        self.classes_ = as_array(model.classes)

    def _set_names(self, columns: Sequence[str]) -> None:
        if columns:
            self.feature_names_in_ = np.array(columns, dtype=object)
            self.n_features_in_ = len(columns)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]  # of BaseEstimator, which comes after
        tags.non_deterministic = True
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


# ------------------------------ asking
# What a post-processor asks of the rows: room for both of its spends first, then the curator of
# its counts.

GIVEN = ("schema", "public_rows", "max_sample_weight", "unsafe_data_dependent_bounds")


def base_options(
    estimator: BaseEstimator,
    promise: Promise,
    share: float,
    ledger: Ledger | None = None,
    whose: Whose | None = None,
) -> BaseOptions:
    """What a post-processor was told about its base."""
    return BaseOptions(
        promise,
        float(share),
        bool(estimator.public_base),
        _checks.named(estimator, GIVEN),
        fitting.seed_of(estimator.random_state),
        RateConstrainedClassifier,
        ledger,
        whose,
    )


def require_both(
    estimator: object, asked: DecidedRows, wishes: BaseOptions, cells: Cells | None, purpose: str
) -> None:
    """Base and counts are two spends of the ledger: see now whether there is room for both, before
    the first is charged."""
    spent = wrapped.about_to_spend(estimator, wishes)
    if wishes.ledger is None or not spent:
        return
    weighted = asked.training.rows.weighted
    counts = postprocess.plan(wishes.promise, cells, spent, weighted=weighted)
    require_room(wishes.ledger, [*spent, counts.event], wishes.promise, purpose)


def curator_of_counts(
    asked: DecidedRows,
    base: Base,
    wishes: BaseOptions,
    plan: CountPlan | ParityPlan,
    noise: NoiseSource,
    purpose: str,
    fitted_here: bool,
) -> Curator:
    """The curator of the counts, with what the ledger does not yet hold of the base reserved beside
    it."""
    event = plan.event if wishes.promise.is_private else None
    options: dict[str, Any] = {
        "facts": asked.training.facts,
        "ledger": wishes.ledger,
        "purpose": purpose,
    }
    try:
        with wrapped.recorded(base, wishes, purpose):
            return curator_of(
                asked.training.rows, wishes.promise, plan=event, noise=noise, **options
            )
    except Overspent as error:
        raise (wrapped.also_spent(error) if fitted_here else error) from None


# ------------------------------ report
# The constraints of a post-processor over the groups that it distinguishes, and its report of
# them.

SOLVED = "one linear program was solved to its optimum"
OF_SCORES = "; decisions are thresholds on the base classifier's score, or mixtures of some"
OF_DECISIONS = (
    "; it is about the base classifier's decisions: a score of two classes was not there, or not "
    "asked for"
)
CHOSEN = "the best table without chance was chosen"
NOTHING_ASKED = "no constraint was required: decisions are the base classifier's"


@dataclass(frozen=True, eq=False)
class FoundOdds:
    """What a fit found: `cells` that the table distinguishes at prediction, and how the base was
    asked (`method`). `randomised`: whether chance was allowed."""

    cells: Cells | None
    system: ConstraintSystem
    released: Released
    solved: Mixed
    guarantee: MixingGuarantee
    method: str
    randomised: bool = True

    def reported(
        self, classes: Sequence[Hashable], heaviest: float | None
    ) -> tuple[ConstraintReport, BaselineReport | None]:
        """The constraints, and what costs nothing."""
        reason = (SOLVED if self.randomised else CHOSEN) + (
            OF_SCORES
            if self.released.edges is not None
            else OF_DECISIONS
            if len(classes) == 2
            else ""
        )
        report = odds_report(
            self.guarantee, self.solved, reason, self.released, self.system, heaviest
        )
        compared = postprocess.compared(self.released, self.system, self.solved.table)
        return report, of_comparison(compared, classes, free="the base classifier")


def found_in(
    released: Released,
    system: ConstraintSystem,
    cells: Cells | None,
    *,
    shared: bool,
    confidence: float,
    with_slack: bool,
    by_chance: bool,
    method: str,
) -> FoundOdds:
    """The best rule by released counts; `shared`: one table for all groups."""
    solved = postprocess.best_table(
        released, system, confidence, shared=shared, with_slack=with_slack, by_chance=by_chance
    )
    certain = postprocess.guarantee(released, system, solved.table, confidence, shared=shared)
    told = None if shared else cells
    return FoundOdds(told, system, released, solved, certain, method, by_chance)


def warn_of_conflict(solved: Mixed, *, by_chance: bool) -> None:
    """Where no table keeps the constraints at the released counts."""
    if solved.excess <= postprocess.FEASIBLE:
        return
    what, instead = "the constraints contradict each other", "or"
    if not by_chance:
        what, instead = "no table without chance keeps the constraints", "leave randomised=True, or"
    text = (
        f"{what} at the released counts: every bound had to give {solved.excess:.4f}, the least "
        f"that all can. Ask for larger bounds, {instead} drop a constraint; see constraint_report_."
    )
    warnings.warn(text, ConstraintNotMet, stacklevel=3)


def system_of(
    notions: Sequence[Notion], asked: DecidedRows
) -> tuple[Cells | None, ConstraintSystem | None]:
    """The constraints and the cells of the table; cells only where a constraint tells groups
    apart."""
    cells = groups_of(asked.training, either=False)
    if not notions:
        return None, None
    system = resolve(notions, cells or NO_GROUPS, asked.training.classes)
    if not len(system):
        raise InputError.expected(
            "at least two groups to compare",
            of="constraints",
            got=f"groups {list((cells or NO_GROUPS).keys)}",
            remedy="Pass sensitive_features with several groups, or constraints=None.",
        )
    if system.needs_groups:
        return cells, system
    return None, system.without_groups()


def odds_report(
    guarantee: MixingGuarantee,
    solved: Mixed,
    reason: str,
    released: Released,
    system: ConstraintSystem,
    heaviest: float | None,
) -> ConstraintReport:
    """What was required, and what is known of it from the released counts."""
    counts = postprocess.filled(released, system)
    # what the table decides, on average: one draw varies as much
    histogram = np.einsum("cyj,cjk->cyk", counts, solved.table)
    drawn = deviations(system, histogram, counts.sum(axis=2), heaviest=heaviest)
    lines = [
        ConstraintLine(
            name,
            bound,
            bound if abs(value - bound) < postprocess.FEASIBLE else value,
            noise,
            float(pressure),
            len(guarantee.names),
            sampling=float(one),
        )
        for name, bound, value, noise, pressure, one in zip(
            guarantee.names,
            guarantee.bounds,
            guarantee.values,
            guarantee.noise,
            solved.pressures,
            drawn,
            strict=True,
        )
    ]
    return ConstraintReport(tuple(lines), 0, reason)


# ------------------------------ post_processed
# The face of a fitted post-processor: what it predicts, and what it would be without chance.
# Abstract.


class PostProcessed(AfterABase):
    """A base classifier, and thresholds or a table of chances after it. Abstract; `fit` is the
    estimator's own."""

    constraints: Any
    max_sample_weight: Any
    model_: PostProcessedModel
    predict_method_: str
    guarantee_: MixingGuarantee | None
    constraint_report_: ConstraintReport
    baselines_: BaselineReport | None
    released_: Released | None
    privacy_: PrivacyStatement

    @property
    def mixing_(self) -> Floats:
        """P(decision = k | cell, base decision or bin j), (cells, decisions or bins, classes)."""
        check_is_fitted(self, "model_")
        return self.model_.mixing

    @property
    def edges_(self) -> Floats | None:
        """Edges of the bins of the base's score; None where its decisions are changed instead."""
        check_is_fitted(self, "model_")
        return self.model_.edges

    @worded
    def predict_proba(self, X: TableLike, *, sensitive_features: ColumnsLike = None) -> Floats:
        """Exact distribution of `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "model_")
        base, model = self.estimator_, self.model_
        features = self._features_of(X)
        if model.edges is not None:
            scores = wrapped.scores_of(base, self.predict_method_, features, model.classes)
            return model.law(model.bins(scores), self._ids(X, sensitive_features, len(scores)))
        if wrapped.is_randomised(base):
            law = wrapped.law_of(base, features, model.classes)
            return model.mixed(law, self._ids(X, sensitive_features, len(law)))
        codes = wrapped.codes_of(
            wrapped.asked_of_base(lambda: base.predict(features)), model.classes
        )
        return model.law(codes, self._ids(X, sensitive_features, len(codes)))

    def derandomise(self) -> Self:
        """Classifier that decides without chance, with one threshold for each group.

        A base without scores gets one class for each of its decisions.

        Returns
        -------
        OddsPostProcessor
            A copy with the best such rule at the released counts: least excess over the bounds,
            then least error. It has its own `constraint_report_` and `guarantee_`.
        """
        check_is_fitted(self, "model_")
        out = copy.copy(self)
        forget_certificate(out)
        if self.released_ is None or self.guarantee_ is None:
            return out
        system = self._resolved()
        if system.names != self.guarantee_.names:
            remedy = "Fit again after a change of constraints."
            raise InputError.expected(
                "the constraints of the fit", of="constraints", got="others", remedy=remedy
            )
        model = self.model_
        shared = model.cells is None and len(self.released_.raw) > 1
        solved = postprocess.deterministic(Program.of(self.released_, system, shared=shared))
        confidence = self.guarantee_.confidence
        out.guarantee_ = postprocess.guarantee(
            self.released_, system, solved.table, confidence, shared=shared
        )
        report = odds_report(out.guarantee_, solved, CHOSEN, self.released_, system, self._heaviest)
        out.constraint_report_ = report.saying(self.constraint_report_.required)
        out.baselines_ = None
        table = solved.table[: len(model.mixing)]
        out.model_ = PostProcessedModel(table, model.classes, model.cells, model.base, model.edges)
        return out

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _heaviest(self) -> float | None:
        """How much one who is drawn may count."""
        return heaviest(self.privacy_.promise, self.max_sample_weight)

    def _resolved(self) -> ConstraintSystem:
        """The constraints again, over the cells of the counts."""
        notions = [
            notion for notion in fitting.notions_of(self.constraints) if not notion.is_vacuous
        ]
        system = resolve(notions, self.cells_ or NO_GROUPS, self.model_.classes)
        return system if system.needs_groups else system.without_groups()


# ------------------------------ odds_post_processor
# `OddsPostProcessor`: any classifier with thresholds or changed decisions by group, so that
# constraints hold (private).


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
        ledger = fitting.ledger_of(self, promise, wrapped.ledger_inside(self.estimator))
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
            self.estimator is not None and wrapped.is_fitted(self.estimator)
        )
        idle = {
            "slack": "without constraints" if self.constraints is None else None,
            "bins": "with predict_method='predict'"
            if self.predict_method == wrapped.DECIDED
            else None,
            "base_share": "with a base that is public or fitted" if ready else None,
        }
        fitting.refuse_unused(self._solver, idle)
        wishes = base_options(self, promise, self._solver.base_share, ledger, whose)
        wrapped.check_base(self.estimator, wishes)
        wrapped.check_answers(self.predict_method, self._solver.bins)
        asked = read(self, X, y, sensitive_features, sample_weight, promise, whose=whose)
        fitting.require_groups(notions, asked.training)
        cells, system = system_of(notions, asked)
        if ledger is not None:
            ledger.require(promise, schema=asked.training.schema)
        if system is not None:
            require_both(self.estimator, asked, wishes, cells, self._purpose)
        hidden = system is not None and self._warn_if_hidden(asked, wishes, cells, system)
        given = (X, y, sensitive_features, sample_weight)
        base = base_of(self.estimator, asked, wishes, given, spare=system is not None)
        if system is None:
            self._decide_as_the_base(asked, base, wishes, X)
            return self
        rows = asked.training.rows
        plan = postprocess.plan(
            promise, cells, base.spent, weighted=rows.weighted, looked_at=base.looked_at
        )
        answers = self._answers(asked, base, wishes, plan, X)
        noise = NoiseSource.of(wrapped.derived_seed(wishes.seed, 2))
        fitted_here = self.estimator is None or not wrapped.is_fitted(self.estimator)
        with curator_of_counts(
            asked, base, wishes, plan, noise, self._purpose, fitted_here
        ) as curator:
            attached = answers.attached(curator, rows)
            cap = rows.max_sample_weight if rows.weighted else None
            released = postprocess.release(curator, attached, plan, cap, answers.edges)
            curator.finish()
        found = found_in(
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
        warn_of_conflict(found.solved, by_chance=by_chance)
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
        decides = self.predict_method == wrapped.DECIDED or classes != 2

        def foretold(supposed: Supposed, epsilon: float) -> Forecast:
            at = replace(wishes, promise=replace(promise, epsilon=epsilon))
            spent = wrapped.about_to_spend(self.estimator, at)
            plan = postprocess.plan(at.promise, cells, spent)
            bins = self._solver.bins
            edges = None if decides else wrapped.edges_of(bins, None, plan, supposed.rows)
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
        wishes = base_options(self, promise, self._solver.base_share, whose=whose)
        wrapped.check_base(self.estimator, wishes)
        training = read(
            fitting.ways_of(self.schema, False, False, self.max_sample_weight, promise, whose=whose)
        )
        fitting.require_groups(notions, training)
        cells, system = system_of(notions, DecidedRows(training, None, None, False))
        known = fitting.public_rows_of(self.public_rows, training, promise)
        cautions.of_promise(promise, training.exact_rows if promise.rows_are_public else known)
        with cautions.said_around():
            base, search = wrapped.planned(self.estimator, wishes, read, spare=system is not None)
        plan = postprocess.plan(promise, cells, base.spent, looked_at=base.looked_at)
        wrapped.check_answers(self.predict_method, self._solver.bins)
        method = wrapped.method_of(base.estimator, self.predict_method, training.classes)
        public = promise.rows_are_public or not promise.is_private
        rows = (
            training.exact_rows
            if public
            else known or (supposed if base.is_ours and base.spent else None)
        )
        edges = (
            None
            if method == wrapped.DECIDED
            else wrapped.edges_of(self._solver.bins, None, plan, rows)
        )
        return plan, system, training, search, edges

    @property
    def _purpose(self) -> str:
        return f"{type(self).__name__}.fit"

    def _answers(
        self, asked: DecidedRows, base: Base, wishes: BaseOptions, plan: CountPlan, X: TableLike
    ) -> Answers:
        """What the base answers about the training rows."""
        known = known_rows(self.public_rows, asked, wishes.promise, base)
        features, seed = shown_to_base(asked, base, X), wrapped.derived_seed(wishes.seed, 3)
        return wrapped.answers_of(
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
        features, seed = shown_to_base(asked, base, X), wrapped.derived_seed(wishes.seed, 3)
        wrapped.decisions_of(
            base.estimator, features, asked.training.classes, asked.training.rows.exact_count, seed
        )
        require_room_beside(wishes.promise, compose(base.spent), more=False)
        with wrapped.recorded(base, wishes, self._purpose) as receipt:
            pass
        self._conclude(asked, base, wishes.promise, None, None, receipt)

    def _conclude(
        self,
        asked: DecidedRows,
        base: Base,
        promise: Promise,
        curator: Curator | None,
        found: FoundOdds | None,
        receipt: Receipt | None,
    ) -> None:
        """Publish. All that can fail comes before the first attribute."""
        training = asked.training
        classes = training.classes
        inside = parts_of(wrapped.thawed(base.estimator)).model if base.is_ours else None
        inside = inside if isinstance(inside, Model) and inside.classes == classes else None
        report, baselines = ConstraintReport((), 0, NOTHING_ASKED), None
        cells, released, guarantee = None, None, None
        model = PostProcessedModel(np.eye(len(classes))[np.newaxis], classes, None, inside)
        if found is not None:
            cells, released, guarantee = found.cells, found.released, found.guarantee
            table = found.solved.table[: 1 if cells is None else cells.count]
            model = PostProcessedModel(table, classes, cells, inside, released.edges)
            report, baselines = found.reported(classes, heaviest(promise, self.max_sample_weight))
        counts = None if curator is None else curator.statement()
        statement = wrapped.statement_of_both(
            training,
            base,
            promise,
            counts,
            receipt,
            reads_groups=cells is not None,
            base_origin=origins.of_argument(self, "estimator"),
        )
        whole = groups_of(training, either=False)
        self._set_base(base.estimator, model, wrapped.DECIDED if found is None else found.method)
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
        report = odds_report(
            self.guarantee_, solved, before.reason, released, system, self._heaviest
        )
        compared = postprocess.compared(released, system, whole)
        self.constraint_report_ = report.saying(before.required)
        self.baselines_ = faces.baselines_of(self.baselines_, compared, model.classes, blindly)
        self.model_ = PostProcessedModel(table, model.classes, model.cells, model.base, model.edges)
        return True


# ------------------------------ offsets_said
# What is said of offsets that were found: each constraint at the last histogram, and warnings.

SEARCHED = "offsets by group were found by noisy steps, and the last histogram measured them"


def offsets_report(
    found: ParityOutcome, plan: ParityPlan, system: ConstraintSystem
) -> ConstraintReport:
    """Each constraint at the last histogram."""
    counts = np.maximum(found.counts, 0.0)
    sizes = np.maximum(counts.sum(axis=1, keepdims=True), parity.SMALLEST)
    values = system.exact_values(counts[:, np.newaxis], sizes)
    noise = parity.noise_of_values(system, counts, plan.deviation)
    drawn = deviations(system, counts[:, np.newaxis], sizes, heaviest=plan.heaviest)
    columns = zip(
        system.names,
        system.bounds.tolist(),
        values.tolist(),
        noise.tolist(),
        drawn.tolist(),
        strict=True,
    )
    lines = [
        ConstraintLine(name, bound, value, spread, 0.0, len(system), sampling=luck)
        for name, bound, value, spread, luck in columns
    ]
    return ConstraintReport(tuple(lines), found.rounds, SEARCHED)


def warn_of_small(groups: list[Any]) -> None:
    text = (
        f"the noise of one round is too large for {len(groups)} of the groups, which keep the "
        f"model's decisions: "
        f"{in_words(groups)}. Join small groups, allow a larger epsilon, or use more rows."
    )
    warnings.warn(text, ConstraintNotMet, stacklevel=3)


def warn_of_gap(report: ConstraintReport) -> None:
    ask = "Ask for a larger max_gap, a larger epsilon or more rounds"
    warn_of_missed(report, "the last histogram says", ask, stacklevel=4)


# ------------------------------ simplex
# Probabilities that a base gives, checked to be points of the simplex without showing a row.

CLOSE = 1e-6


def checked(law: Floats) -> Floats:
    """Points of the simplex, or an error that shows no row."""
    if not np.isfinite(law).all():
        remedy = "Its predict_proba must give a share to each of classes_."
        raise InputError.expected(
            "probabilities", of="estimator", got="NaN or infinite values", remedy=remedy
        )
    if law.min(initial=0.0) < -CLOSE or np.abs(law.sum(axis=1) - 1.0).max(initial=0.0) > CLOSE:
        remedy = "Calibrate it, or divide by the sum."
        raise InputError.expected(
            "probabilities that sum to one", of="estimator", got="others", remedy=remedy
        )
    return law


# ------------------------------ parity_post_processor
# `ParityPostProcessor`: demographic parity of many classes after a classifier, on rows that need
# no labels (private).


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
        ledger = fitting.ledger_of(self, promise, wrapped.ledger_inside(self.estimator))
        wishes = replace(wishes, ledger=ledger)
        asked = self._asked(X, y, sensitive_features, sample_weight, wishes)
        cells, system = self._compared(asked)
        training, rows = asked.training, asked.training.rows
        if ledger is not None:
            ledger.require(promise, schema=training.schema)
            spent = wrapped.about_to_spend(self.estimator, wishes)
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
        base = base_of(
            self.estimator, asked, wishes, (X, y, sensitive_features, sample_weight), spare=True
        )
        _require_one_plan(base)
        plan = self._plan_of(promise, base.spent, training)
        shown = shown_to_base(asked, base, X)
        law = self._law(base, shown, training)
        noise = NoiseSource.of(wrapped.derived_seed(wishes.seed, 2))
        fitted_here = self.estimator is None or not wrapped.is_fitted(self.estimator)
        with curator_of_counts(
            asked, base, wishes, plan, noise, self._purpose, fitted_here
        ) as curator:
            blocks: Any = law if isinstance(shown, Elsewhere) else wrapped.in_blocks(law, rows)
            attached = curator.attach(blocks, title="probabilities of the base classifier")
            hard = not self.randomised
            steps = (plan, attached, cells, self.max_gap, float(self._solver.temperature))
            found = parity.run(curator, *steps, hard=hard)
            curator.finish()
        report = offsets_report(found, plan, system)
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
        law = checked(wrapped.law_of(self.estimator_, features, self.model_.classes))
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
        wishes = base_options(self, promise, self._solver.base_share, whose=whose)
        wrapped.check_base(self.estimator, wishes)
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
        fitted = self.estimator is not None and wrapped.is_fitted(self.estimator)
        told: dict[str, Any] = {
            "labelled": not fitted,
            "groups": self.groups,
            "whose": wishes.whose,
        }
        return read(self, X, y, sensitive, weights, wishes.promise, **told)

    def _compared(self, asked: DecidedRows) -> tuple[Cells, ConstraintSystem]:
        """The groups, and the constraints on their rates."""
        wrapped.require_groups(bool(asked.training.rows.layout.sensitive))
        cells, system = system_of(self.constraints, asked)
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
        spent = wrapped.about_to_spend(self.estimator, at)
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
            from .wrapped import probabilities_rule

            return probabilities_rule(base.estimator, training, shown)
        if not training.rows.exact_count:  # see `decided.decisions_of`
            return np.empty((0, len(training.classes)))
        measurement = base.estimator.predict_proba
        found = wrapped.asked_of_base(lambda: quietly(Troubles(), measurement, shown))
        law = checked(wrapped.in_order(base.estimator, found, training.classes))
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
            base, search = wrapped.planned(self.estimator, wishes, read, spare=True)
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
        inside = parts_of(wrapped.thawed(base.estimator)).model if base.is_ours else None
        inside = inside if isinstance(inside, Model) and inside.classes == classes else None
        model = ShiftedModel(
            found.offsets,
            classes,
            cells,
            float(self._solver.temperature) if self.randomised else None,
            inside,
        )
        origin = origins.of_argument(self, "estimator")
        statement = wrapped.statement_of_both(
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
            got=f"{type(wrapped.thawed(base.estimator)).__name__}, whose own fit is charged",
            remedy=(
                "Pass it unfitted: then both are one plan. Or pass public_base=True if it "
                "has not seen these rows."
            ),
        )
