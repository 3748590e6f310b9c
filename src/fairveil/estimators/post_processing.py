"""`FairPostProcessor`: decisions of a finished classifier changed by group, from released counts:
thresholds on its score, tables of chances over its decisions, or offsets of its probabilities.

Guarantees (tests/estimators/test_estimators_odds_privacy.py, test_estimators_parity.py):
1. The statement is the price of what is counted and of the base's making. What of the base is not
   charged is said. Beside a base that was there before, it holds however the counts were chosen by
   looking at that base.
2. A fit depends on protected data through the base and the released counts alone, but for what the
   statement lists as read from the data; no fitted attribute holds an exact statistic.
3. A fit that fails changes no attribute, and a fitted base stays as it was.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .. import _checks
from .._types import ColumnsLike, Floats, TableLike
from ..core.errors import need
from ..core.events import Event, compose
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..core.quiet import Troubles, quietly
from ..curator import Curator, Rows
from ..data.elsewhere import Elsewhere, curator_of
from ..errors import ConstraintNotMet, Overspent, PrivacyError
from ..facts import Cells, RowSource
from ..fairness import ConstraintSystem, DemographicParity, Notion, deviations, resolve
from ..methods import Outcome, forecast, parity, postprocess, score_bins
from ..methods.counts import CountPlan
from ..methods.counts import require_room as require_room_beside
from ..methods.forecast import Forecast, Supposed
from ..methods.game import Equilibrium
from ..methods.least_squares import RegressionOutcome
from ..methods.objectives import Found
from ..methods.parity import ParityPlan
from ..methods.postprocess import Mixed, MixingGuarantee, Released
from ..methods.systems import NO_GROUPS, heaviest
from ..models import Model, PostProcessedModel, RandomState, ShiftedModel
from ..models.model import draw_codes
from ..statement.document import PrivacyStatement, Receipt
from ..tables.columns import in_words, same_length
from . import cautions, fitting, reading, wrapped
from .cautions import outside
from .certifying.certified_fits import certified
from .coding import classes_of, names_of_features, parts_of, width_of
from .faces import as_array, expected_accuracy
from .fair import FairClassifier
from .fitting import Planning, Recorded, require_room, said, warn_if_hidden
from .pages import Paged
from .reading import Read, ReadOptions, Training, groups_of
from .reports import (
    BaselineReport,
    ConstraintLine,
    ConstraintReport,
    of_comparison,
    warn_if_not_enforced,
    warn_if_worse,
    warn_of_missed,
)
from .settings import ANSWERS, Offsets, SetAside, Setting, Thresholds
from .words import described, worded
from .wrapped import Answers, Base, BaseOptions, DecidedRows

# ------------------------------ rows
# What is read: the rows to count, and what the base is shown of them.


def read(
    estimator: FairPostProcessor,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    wishes: BaseOptions,
    *,
    labelled: bool = True,
) -> DecidedRows:
    """The rows of a fit, checked against the promise and the base. `labelled`: else nobody needs
    labels, and a base that is fitted says the classes."""
    base, promise, fitted = estimator.estimator, wishes.promise, is_ready(estimator.estimator)
    ours, known = base is None or wrapped.carries_a_promise(base), ()
    if fitted:
        known = tuple(np.asarray(classes_of(base)).tolist())
    ways: ReadOptions = fitting.ways_of(estimator.schema, promise, whose=wishes.whose)
    if labelled:
        asked = wrapped.labelled_rows(X, y, sensitive_features, sample_weight, ways, known)
    else:
        asked = wrapped.unlabelled_rows(X, sensitive_features, sample_weight, ways, known)
    training = asked.training
    rows = fitting.public_rows_of(training, promise)
    cautions.of_promise(promise, training.rows.exact_count if promise.rows_are_public else rows)
    if steps := cautions.of_pipeline(
        training.rows.layout.sensitive_names, training.columns, promise
    ):
        said_of = (*training.not_covered, *(step.sentence for step in steps))
        asked = replace(asked, training=replace(training, not_covered=said_of))
    fix = "Pass arrays or a table, or a classifier of Fairveil, which takes coded rows."
    expected, coded = "features for the base classifier", isinstance(X, RowSource)
    need(ours or not coded, expected, of="X", got=type(X).__name__, fix=fix)
    # Of ours that were fitted before, too: a column that was public to their guarantee may be
    # protected by this one.
    coding = parts_of(wrapped.thawed(base)).coding if ours and fitted else None
    columns = read_by(base) if coding is None else coding.columns_read
    names = set(columns) & set(training.rows.layout.sensitive_names)
    apart = not (promise.is_private and promise.protects == "sensitive_features")
    expected = "a base classifier that does not read what is protected"
    got, fix = (
        f"one fitted with {sorted(names)} among its features",
        "Fit it without those columns.",
    )
    need(apart or not names, expected, of="estimator", got=got, fix=fix, error=PrivacyError)
    return asked


def is_ready(base: object) -> bool:
    """Whether a base was given that is fitted."""
    return base is not None and wrapped.is_fitted(base)


def known_rows(asked: DecidedRows, promise: Promise, base: Base) -> float | None:
    """The number of rows, where it is public or nothing is promised; else what the base released of
    it, which is charged."""
    if promise.rows_are_public or not promise.is_private:
        return float(asked.training.rows.exact_count)
    stated: float | None = fitting.public_rows_of(asked.training, promise)
    if stated is None and base.is_ours and base.spent:
        found = parts_of(wrapped.thawed(base.estimator)).outcome
        kinds = Outcome | Equilibrium | Found | RegressionOutcome
        stated = found.rows if isinstance(found, kinds) else None
    return None if stated is None else float(stated)


def features_of(
    base: object, X: TableLike, schema: object, names: Sequence[str], sensitive: Sequence[str]
) -> Any:
    """X as the base takes it: without sensitive columns, and, for another's base under a schema,
    features alone (`names`)."""
    wrapped.refuse_unseen(X)
    if schema is not None and not wrapped.carries_a_promise(base):
        dropped = [name for name in wrapped.names_of(X) if name not in names]
        return wrapped.without(X, dropped) if names else X
    own = read_by(base)
    return wrapped.without(X, [name for name in sensitive if name not in own])


def read_by(estimator: object) -> tuple[str, ...]:
    """Names of the columns that another's fitted base reads; ours leave sensitive columns out by
    themselves."""
    if estimator is None or wrapped.carries_a_promise(estimator):
        return ()
    return names_of_features(estimator)


def system_of(
    notions: Sequence[Notion], training: Training
) -> tuple[Cells | None, ConstraintSystem | None]:
    """The constraints and the cells of the table; cells only where a constraint tells groups
    apart."""
    if not notions:
        return None, None
    cells = groups_of(training, either=False)
    system = resolve(notions, cells or NO_GROUPS, training.classes)
    got = f"groups {list((cells or NO_GROUPS).keys)}"
    fix = "Pass sensitive_features with several groups, or constraints=None."
    need(len(system), "at least two groups to compare", of="constraints", got=got, fix=fix)
    return (cells, system) if system.needs_groups else (None, system.without_groups())


# ------------------------------ rules
# The two rules that may stand after a base: how each is planned, counted, found and told.

SOLVED = "one linear program was solved to its optimum"
OF_SCORES = "; decisions are thresholds on the base classifier's score, or mixtures of some"
OF_DECISIONS = (
    "; it is about the base classifier's decisions: a score of two classes was not there, or not "
    "asked for"
)
CHOSEN = "the best table without chance was chosen"
SEARCHED = "offsets by group were found by noisy steps, and the last histogram measured them"
UNFITTED = (
    "Pass it unfitted: then both are one plan. Or pass public_base=True if it has not seen these "
    "rows, or solver=Thresholds()."
)
NOTHING_ASKED = "no constraint was required: decisions are the base classifier's"
CLOSE = 1e-6  # how far probabilities of a base may be from a sum of one


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit found: the `model` over the base, and what is published of it. `excess`: by how
    much constraints that contradict each other had to give."""

    model: PostProcessedModel | ShiftedModel
    method: str
    report: ConstraintReport
    baselines: BaselineReport | None = None
    guarantee: MixingGuarantee | None = None
    released: Released | None = None
    rates: Floats | None = None
    noise: float | None = None
    moved: npt.NDArray[np.bool_] | None = None
    excess: float = 0.0


@dataclass(frozen=True, eq=False)
class Tables:
    """Thresholds on the base's score by group, or a table of chances over its decisions: one linear
    program over one histogram. Without constraints `system` is None."""

    solver: Thresholds
    cells: Cells | None
    system: ConstraintSystem | None
    randomised: bool
    judged: bool = True

    def plan(
        self, promise: Promise, spent: Sequence[Event], rows: Rows, *, looked_at: bool = False
    ) -> CountPlan:
        """The one release."""
        options: dict[str, Any] = {"weighted": rows.weighted, "looked_at": looked_at}
        return postprocess.plan(promise, self.cells, spent, **options)

    def forecast(
        self, plan: CountPlan, supposed: Supposed, releases: Any, edges: Floats | None
    ) -> Forecast:
        """What noise leaves of the constraints."""
        if self.system is None:
            why = "nothing is required, and decisions are the base classifier's"
            return Forecast(releases, (), None, why=why)
        found = forecast.of_counts(plan, self.system, supposed, releases, edges)
        return replace(found, aims=self.solver.slack == "none")

    def edges(self, plan: CountPlan, rows: float | None, *, decides: bool) -> Floats | None:
        """Edges of bins, before there are scores."""
        return None if decides else wrapped.edges_of(self.solver.bins, None, plan, rows)

    def answers(
        self, base: Base, shown: Any, training: Training, plan: Any, known: float | None, seed: Any
    ) -> Answers:
        """What the base answers about the training rows. `known`: their number, where it is public
        or was released."""
        classes, bins, of = training.classes, self.solver.bins, base.estimator
        method = wrapped.method_of(of, self.solver.predict_method, classes)
        decides = method == wrapped.DECIDED
        if isinstance(shown, Elsewhere):
            edges = None if decides else wrapped.edges_of(bins, None, plan, known)
            return Answers(method, wrapped.scores_rule(of, training, shown, edges), edges)
        rows = training.rows.exact_count
        if decides:
            return Answers(method, wrapped.decisions_of(of, shown, classes, rows, seed), None)
        scores = wrapped.scores_of(of, method, shown, classes, rows=rows)
        edges = wrapped.edges_of(bins, scores, plan, known)
        return Answers(method, score_bins.codes(scores, edges), edges)

    def run(
        self,
        curator: Curator,
        plan: CountPlan,
        answers: Answers,
        training: Training,
        inside: Model | None,
        heaviest: float | None,
    ) -> Fitted:
        """Release the counts, and solve."""
        assert self.system is not None
        rows, classes = training.rows, training.classes
        attached = answers.attached(curator, rows)
        cap = rows.max_sample_weight if rows.weighted else None
        released = postprocess.release(curator, attached, plan, cap, answers.edges)
        shared, sure = not self.solver.group_aware, self.solver.confidence
        solved = postprocess.best_table(
            released,
            self.system,
            sure,
            shared=shared,
            with_slack=self.solver.slack == "theorem",
            by_chance=self.randomised,
            judged=self.judged,
            heaviest=heaviest,
        )
        certain = postprocess.guarantee(released, self.system, solved.table, sure, shared=shared)
        cells = None if shared else self.cells
        reason = SOLVED if self.randomised else CHOSEN
        if released.edges is not None:
            reason += OF_SCORES
        elif len(classes) == 2:
            reason += OF_DECISIONS
        table = solved.table[: 1 if cells is None else cells.count]
        compared = postprocess.compared(released, self.system, solved.table)
        return Fitted(
            PostProcessedModel(table, classes, cells, inside, released.edges),
            answers.method,
            tables_report(certain, solved, reason, released, self.system, heaviest),
            of_comparison(compared, classes, free="the base classifier"),
            certain,
            released,
            excess=solved.excess,
        )


@dataclass(frozen=True, eq=False)
class Shifts:
    """Offsets by group of the base's probabilities, found by noisy steps: demographic parity of any
    number of classes, on rows that need no labels."""

    solver: Offsets
    cells: Cells
    system: ConstraintSystem
    max_gap: float
    randomised: bool

    def plan(
        self, promise: Promise, spent: Sequence[Event], rows: Rows, *, looked_at: bool = False
    ) -> ParityPlan:
        """Its rounds, and the last histogram. Rounds beside a base that was looked at have no price
        here: theory.md#t10 is of one release."""
        expected = "a base classifier that is fitted here, or was made without these rows"
        got, fix = "a fitted one, whose own fit is charged", UNFITTED
        need(
            not (spent and looked_at),
            expected,
            of="estimator",
            got=got,
            fix=fix,
            error=PrivacyError,
        )
        heaviest = rows.max_sample_weight if promise.is_private else rows.largest_weight
        of_one = promise.rows_per_unit * (heaviest if rows.weighted else 1.0)
        return parity.plan(promise, self.solver.rounds, spent, of_one)

    def forecast(
        self, plan: ParityPlan, supposed: Supposed, releases: Any, edges: Floats | None
    ) -> Forecast:
        """What noise leaves of the constraints."""
        return forecast.of_parity(plan, self.system, self.cells, supposed, releases)

    def edges(self, plan: object, rows: float | None, *, decides: bool) -> None:
        """There are no bins."""

    def answers(
        self, base: Base, shown: Any, training: Training, plan: Any, known: float | None, seed: Any
    ) -> Any:
        """The base's probabilities of the training rows; of rows elsewhere how their holder finds
        them. While rows are private, nobody hears what it says of them."""
        if isinstance(shown, Elsewhere):
            return wrapped.probabilities_rule(base.estimator, training, shown)
        if not training.rows.exact_count:  # see `wrapped.decisions_of`
            law = np.empty((0, len(training.classes)))
        else:
            ask = base.estimator.predict_proba
            found = wrapped.asked_of_base(lambda: quietly(Troubles(), ask, shown))
            law = checked(wrapped.in_order(base.estimator, found, training.classes))
            count = training.rows.exact_count
            same_length({"X": count, "the base classifier's probabilities": len(law)})
        return wrapped.in_blocks(law, training.rows)

    def run(
        self,
        curator: Curator,
        plan: ParityPlan,
        answers: Any,
        training: Training,
        inside: Model | None,
        heaviest: float | None,
    ) -> Fitted:
        """Take the steps."""
        attached = curator.attach(answers, title="probabilities of the base classifier")
        heat = float(self.solver.temperature)
        hard = not self.randomised
        found = parity.run(curator, plan, attached, self.cells, self.max_gap, heat, hard=hard)
        counts = np.maximum(found.counts, 0.0)
        sizes = np.maximum(counts.sum(axis=1, keepdims=True), parity.SMALLEST)
        whole, system = counts[:, np.newaxis], self.system
        columns = zip(
            system.names,
            system.bounds.tolist(),
            system.exact_values(whole, sizes).tolist(),
            parity.noise_of_values(system, counts, plan.deviation).tolist(),
            deviations(system, whole, sizes, heaviest=plan.heaviest).tolist(),
            strict=True,
        )
        lines = [
            ConstraintLine(name, bound, value, spread, 0.0, len(system), sampling=luck)
            for name, bound, value, spread, luck in columns
        ]
        cooled = heat if self.randomised else None
        return Fitted(
            ShiftedModel(found.offsets, training.classes, self.cells, cooled, inside),
            "predict_proba",
            ConstraintReport(tuple(lines), found.rounds, SEARCHED),
            rates=found.rates,
            noise=plan.deviation,
            moved=found.moved,
        )


def tables_report(
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
    inside = guarantee.bounds if solved.inside is None else solved.inside.tolist()
    columns = zip(
        guarantee.names,
        guarantee.bounds,
        inside,
        guarantee.values,
        guarantee.noise,
        solved.pressures.tolist(),
        deviations(system, histogram, counts.sum(axis=2), heaviest=heaviest).tolist(),
        strict=True,
    )
    lines = [
        ConstraintLine(
            name,
            bound,
            aim if abs(value - aim) < postprocess.FEASIBLE else value,
            noise,
            pressure,
            len(guarantee.names),
            sampling=luck,
            aim=aim if aim < bound else None,
        )
        for name, bound, aim, value, noise, pressure, luck in columns
    ]
    return ConstraintReport(tuple(lines), 0, reason)


def checked(law: Floats) -> Floats:
    """Points of the simplex, or an error that shows no row."""
    fix, finite = "Its predict_proba must give a share to each of classes_.", np.isfinite(law).all()
    need(finite, "probabilities", of="estimator", got="NaN or infinite values", fix=fix)
    off = np.abs(law.sum(axis=1) - 1.0).max(initial=0.0)
    expected, fix = "probabilities that sum to one", "Calibrate it, or divide by the sum."
    sound = law.min(initial=0.0) >= -CLOSE and off <= CLOSE
    need(sound, expected, of="estimator", got="others", fix=fix)
    return law


def warn_of(found: Fitted, report: ConstraintReport, hidden: bool) -> None:
    """Warn of constraints that are not kept, or that noise hides."""
    if found.moved is not None and not found.moved.all():
        assert found.model.cells is not None
        keys = zip(found.model.cells.keys, found.moved.tolist(), strict=True)
        small = [key for key, moved in keys if not moved]
        text = (
            f"the noise of one round is too large for {len(small)} of the groups, which keep the "
            f"model's decisions: {in_words(small)}. Join small groups, allow a larger epsilon, or "
            f"use more rows."
        )
        warnings.warn(text, ConstraintNotMet, stacklevel=outside())
        return
    if found.moved is not None and report.missed_by_far:
        ask = "Ask for a larger max_gap, a larger epsilon or more rounds"
        warn_of_missed(report, "the last histogram says", ask)
        return
    if found.excess > postprocess.FEASIBLE:
        what, instead = "the constraints contradict each other", "or"
        if CHOSEN in report.reason:
            what = "no table without chance keeps the constraints"
            instead = "leave randomised=True, or"
        text = (
            f"{what} at the released counts: every bound had to give {found.excess:.4f}, the least "
            f"that all can. Ask for larger bounds, {instead} drop a constraint; see "
            f"constraint_report_."
        )
        warnings.warn(text, ConstraintNotMet, stacklevel=outside())
    warn_if_worse(found.baselines)
    if not hidden and not report.missed_by_far:
        warn_if_not_enforced(report)


# ------------------------------ the estimator


@described
class FairPostProcessor(ClassifierMixin, Paged, Planning, Recorded, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Post-processor of any classifier: decisions changed by group keep rate constraints.

    A linear program over a private histogram finds the best mixture of thresholds for each group.
    The histogram counts the training rows by group, label and bin of the base's score, and is
    released once, with noise. Thresholds are mixed only where this gains more than 0.05 percentage
    points of error. Decisions of a base without scores, or with several classes, are changed at
    random instead, by a table over the same kind of counts.

    Demographic parity alone, of more than two classes or on rows without labels, is kept by offsets
    instead: they are subtracted from the base's probabilities by group, and found by noisy steps.
    `solver` may choose either rule; see docs/post_processing.md.

    **It reads the group at prediction**, unless ``solver=Thresholds(group_aware=False)``. Any
    number of groups and sensitive columns is allowed. Without constraints it decides as the base
    does.

    Parameters
    ----------
    estimator : classifier, default=None
        The base: a classifier of scikit-learn or of this library. A fitted one is used as it is,
        and another is cloned and fitted. None: a linear classifier without constraints.
    solver : Thresholds or Offsets, default=None
        The rule and its settings, such as ``Thresholds(bins=32)`` or ``Offsets(rounds=20)``. None:
        offsets for demographic parity alone, where there are more than two classes or no labels and
        the base gives probabilities and is not charged for an earlier fit; else thresholds.
    randomised : bool, default=True
        Whether decisions may be drawn at random. False: the best one threshold for each group, or
        one class for each decision of the base; of offsets the largest probability decides, though
        they were found for soft decisions.

    Attributes
    ----------
    estimator_
    model_ : PostProcessedModel or ShiftedModel
        The rule over the base's output.
    predict_method_ : str
        Output of the base that is changed.
    mixing_ : ndarray of shape (n_cells, n_bins, n_classes)
        Probability of each decision, by cell of groups and by bin, or by decision of the base; not
        of offsets.
    edges_ : ndarray or None
        Edges of the bins; None where decisions are changed.
    guarantee_ : MixingGuarantee or None
        Bounds on constraints and error, with the `confidence` of `Thresholds`; None without
        constraints, and of offsets.
    released_ : Released or None
        The noisy counts of thresholds and tables.
    offsets_ : ndarray of shape (n_groups, n_classes)
        Subtracted from the base's probabilities; of offsets alone.
    rates_ : ndarray of shape (n_groups, n_classes), or None
        Rates of the decisions on these rows, by the last noisy histogram of offsets.
    gap_ : float
        Largest value of a constraint, noise included; a share of 1. NaN without constraints.
    noise_ : float or None
        Standard deviation of the noise of one count of that histogram, in rows.
    moved_ : ndarray of bool of shape (n_groups,), or None
        Groups with offsets. A group too small for the noise keeps the base's decisions, and a
        warning names it.
    sensitive_names_, groups_named_, constraint_report_, baselines_, privacy_, classes_,
    groups_, cells_, n_features_in_, feature_names_in_, certificate_, certified_aim_

    See Also
    --------
    FairClassifier : Keeps constraints while it trains.
    release_groups : Releases the groups once, for many fits.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_odds_privacy.py, test_estimators_parity.py):

    1. `privacy_` is the price of the counts and of the base's making, at most (epsilon, delta). A
       sentence in `privacy_.not_covered` says what of the base is not charged, and why. For a base
       that was fitted before, this holds even if the choice of all else but the guarantee followed
       a look at that base.
    2. The fit depends on the protected data through the base and noisy counts. The exceptions are
       what `privacy_.facts` lists as read from the data.
    3. No fitted attribute holds an exact statistic of protected data.
    4. A fit that fails or is interrupted changes no attribute.

    References
    ----------
    .. [1] Jagielski, Kearns, Mao, Oprea, Roth, Sharifi-Malvajerdi and Ullman 2019. "Differentially
       Private Fair Learning." arXiv:1812.02696. Corrected as docs/theory/papers.md tells.
    .. [2] Hardt, Price and Srebro 2016. "Equality of Opportunity in Supervised Learning."
           arXiv:1610.02413.
    .. [3] Say, Denis and Pinot 2025. "DP2DP." arXiv:2511.18876.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=4000)
    >>> X = rng.normal(size=(4000, 2)) + A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=4000) > 1).astype(int)
    >>> clf = FairPostProcessor(
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
    model_: Any = field(init=False)
    privacy_: PrivacyStatement = field(init=False)
    guarantee_: MixingGuarantee | None = field(init=False)
    constraint_report_: ConstraintReport = field(init=False)
    baselines_: BaselineReport | None = field(init=False)
    released_: Released | None = field(init=False)
    predict_method_: str = field(init=False)
    rates_: Floats | None = field(init=False)
    noise_: float | None = field(init=False)
    moved_: npt.NDArray[np.bool_] | None = field(init=False)
    sensitive_names_: tuple[str, ...] = field(init=False)
    groups_named_: bool = field(init=False)
    cells_: Cells | None = field(init=False)
    classes_: npt.NDArray[Any] = field(init=False)
    groups_: tuple[Any, ...] = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: npt.NDArray[Any] = field(init=False)

    SETTINGS: ClassVar = {"solver": (Thresholds, Offsets), "certify": (SetAside,)}

    estimator: BaseEstimator = None
    constraints: object = None
    _: KW_ONLY
    solver: Thresholds | Offsets | None = None
    public_base: bool = False
    randomised: bool = True
    certify: object = None

    @property
    def mixing_(self) -> Floats:
        """P(decision = k | cell, base decision or bin j), (cells, decisions or bins, classes)."""
        check_is_fitted(self, "model_")
        found: Floats = self.model_.mixing
        return found

    @property
    def edges_(self) -> Floats | None:
        """Edges of the bins of the base's score; None where its decisions are changed instead."""
        check_is_fitted(self, "model_")
        return getattr(self.model_, "edges", None)

    @property
    def offsets_(self) -> Floats:
        """Subtracted from the base's probabilities."""
        check_is_fitted(self, "model_")
        found: Floats = self.model_.offsets
        return found

    @property
    def gap_(self) -> float:
        """Largest value of a constraint at the released counts, noise included; a share of 1."""
        check_is_fitted(self, "model_")
        if self.rates_ is not None:
            return float(np.ptp(self.rates_, axis=0).max())
        return math.nan if self.guarantee_ is None else self.guarantee_.gap

    @certified
    @worded
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> FairPostProcessor:
        """Fit the base if it is not fitted, release the counts, and find the rule.

        X is whatever the base takes. Columns of X that are named as sensitive are not handed to it.

        Parameters
        ----------
        y : array, default=None
            Labels. None: the schema names the target among the columns of X. Offsets after a fitted
            base need none, and ignore them.

        Raises
        ------
        InputError, PrivacyError, Overspent

        Warns
        -----
        ConstraintNotMet
            If constraints contradict each other, or a group is too small for the noise of offsets.
        NotEnforced
            If noise hides a constraint: before anything is spent, where public facts say so.
        WorseThanBaseline
        """
        wishes, notions = self._told()
        promise = wishes.promise
        ledger = fitting.ledger_of(self, promise, wrapped.ledger_inside(self.estimator))
        wishes = replace(wishes, ledger=ledger)
        asked, solver = self._asked(X, y, sensitive_features, sample_weight, wishes, notions)
        training = asked.training
        rule = self._rule(solver, notions, training)
        if ledger is not None:
            ledger.require(promise, schema=training.schema)
            spent = wrapped.about_to_spend(self.estimator, wishes)
            if spent and rule.system is not None:
                # Base and counts are two spends: room for both is seen before the first is charged.
                counts = rule.plan(promise, spent, training.rows).event
                require_room(ledger, [*spent, counts], promise, self._purpose)
        hidden = rule.system is not None and self._warn_if_hidden(rule, training, wishes)
        theirs = self.estimator is not None and not wrapped.carries_a_promise(self.estimator)
        # ours read the table as it came, and leave the groups out by themselves
        table: Any = (X, y, sensitive_features)
        table, labels, groups = (asked.features, asked.labels, None) if theirs else table
        with cautions.said_around():
            of_table = table, labels, groups, sample_weight, rule.system is not None
            base = wrapped.prepare(self.estimator, wishes, *of_table)
        own = set(read_by(base.estimator)) & set(training.rows.layout.sensitive_names)
        shown = X if own else asked.features
        seed = wrapped.derived_seed(wishes.seed, 3)
        if rule.system is None:
            classes, count = training.classes, training.rows.exact_count
            wrapped.decisions_of(base.estimator, shown, classes, count, seed)
            require_room_beside(promise, compose(base.spent), more=False)
            with wrapped.recorded(base, wishes, self._purpose) as receipt:
                pass
            self._conclude(asked, base, promise, None, None, receipt)
            return self
        plan: Any = rule.plan(promise, base.spent, training.rows, looked_at=base.looked_at)
        known = known_rows(asked, promise, base)
        answers = rule.answers(base, shown, training, plan, known, seed)
        inside, cap = self._inside(base, training), heaviest(promise, self._facts.max_sample_weight)
        with self._curator(asked, base, wishes, plan.event) as curator:
            found = rule.run(curator, plan, answers, training, inside, cap)
            curator.finish()
        receipt = PrivacyStatement.of_run(curator).ledger
        self._conclude(asked, base, promise, curator, found, receipt)
        warn_of(found, self.constraint_report_, hidden)
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
        base, model = self.estimator_, self.model_
        facts = self._facts
        no_features = (*self.sensitive_names_, *([] if facts.unit is None else [facts.unit]))
        features = features_of(base, X, facts.declared, names_of_features(self), no_features)

        def ids(rows: int) -> npt.NDArray[np.intp] | None:
            if model.cells is None:
                return None
            return wrapped.group_ids(sensitive_features, X, model.cells, rows, self.groups_named_)

        found: Floats
        if isinstance(model, ShiftedModel):
            law = checked(wrapped.law_of(base, features, model.classes))
            found = model.law(law, ids(len(law)))  # type: ignore[arg-type]
        elif model.edges is not None:
            scores = wrapped.scores_of(base, self.predict_method_, features, model.classes)
            found = model.law(model.bins(scores), ids(len(scores)))
        elif wrapped.is_randomised(base):
            law = wrapped.law_of(base, features, model.classes)
            found = model.mixed(law, ids(len(law)))
        else:
            decided = wrapped.asked_of_base(lambda: base.predict(features))
            codes = wrapped.codes_of(decided, model.classes)
            found = model.law(codes, ids(len(codes)))
        return found

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _purpose(self) -> str:
        return f"{type(self).__name__}.fit"

    @property
    def _solver(self) -> Thresholds | Offsets:
        """What was given, else the usual one."""
        given = self._setting("solver", Setting)
        return (
            given
            if isinstance(given, Thresholds | Offsets)
            else self._setting("solver", Thresholds)
        )

    def _told(self) -> tuple[BaseOptions, list[Notion]]:
        """What the arguments say, checked before any row is read."""
        whose, promise = fitting.asked(self)
        notions = [one for one in fitting.notions_of(self.constraints) if not one.is_vacuous]
        solver = self._solver
        ready = bool(self.public_base) or is_ready(self.estimator)
        idle: dict[str, str | None] = {
            "base_share": "with a base that is public or fitted" if ready else None
        }
        if isinstance(solver, Thresholds):
            decides = solver.predict_method == wrapped.DECIDED
            free = "without constraints" if self.constraints is None else None
            idle |= {"slack": free, "confidence": free}
            idle["bins"] = "with predict_method='predict'" if decides else None
            _checks.one_of(ANSWERS, predict_method=solver.predict_method)
            wrapped.edges_given(solver.bins)
        fitting.refuse_unused(solver, idle)
        wishes = BaseOptions(
            promise,
            float(solver.base_share),
            bool(self.public_base),
            self.schema,
            fitting.seed_of(self.random_state),
            FairClassifier,
            None,
            whose,
        )
        wrapped.check_base(self.estimator, wishes)
        if isinstance(solver, Offsets):
            _require_parity(self.estimator, notions)
        return wishes, notions

    def _asked(
        self,
        X: TableLike,
        y: ColumnsLike,
        sensitive: ColumnsLike,
        weights: ColumnsLike,
        wishes: BaseOptions,
        notions: Sequence[Notion],
    ) -> tuple[DecidedRows, Thresholds | Offsets]:
        """The rows, and the solver. After a fitted base offsets need no labels."""
        given = X, y, sensitive, weights, wishes
        if not is_ready(self.estimator):
            asked = read(self, *given)
            return asked, self._chosen(notions, len(asked.training.classes), wishes)
        labels = y is not None or isinstance(X, RowSource | Elsewhere)
        if (schema := self._facts.declared) is not None:
            labels = labels or schema.target in wrapped.names_of(X)
        classes = len(classes_of(self.estimator))
        solver = self._chosen(notions, classes, wishes, labels=labels)
        return read(self, *given, labelled=isinstance(solver, Thresholds)), solver

    def _chosen(
        self, notions: Sequence[Notion], classes: int, wishes: BaseOptions, *, labels: bool = True
    ) -> Thresholds | Offsets:
        """The solver, where none was given by the number of classes and whether there are labels."""
        given = self._solver
        if self.solver is not None or not (classes > 2 or not labels) or not _is_parity(notions):
            return given
        base = self.estimator
        charged = is_ready(base) and bool(wrapped.as_it_is(base, wishes).spent)
        has = base is None or hasattr(base, "predict_proba")
        return Offsets() if has and not charged else given

    def _rule(
        self, solver: Thresholds | Offsets, notions: Sequence[Notion], training: Training
    ) -> Tables | Shifts:
        fitting.require_groups(notions, training)
        cells, system = system_of(notions, training)
        randomised = bool(self.randomised)
        if isinstance(solver, Thresholds):
            return Tables(solver, cells, system, randomised, "_certified" not in vars(self))
        assert cells is not None
        assert system is not None
        notion: Any = notions[0]
        return Shifts(solver, cells, system.without_labels(), float(notion.max_gap), randomised)

    def _warn_if_hidden(
        self, rule: Tables | Shifts, training: Training, wishes: BaseOptions
    ) -> bool:
        """Before the base or the counts are paid for."""
        promise, solver = wishes.promise, rule.solver
        known = fitting.public_rows_of(training, promise)
        decides = getattr(solver, "predict_method", "") == wrapped.DECIDED
        decides = decides or len(training.classes) != 2

        def foretold(supposed: Supposed, epsilon: float) -> Forecast:
            at = replace(wishes, promise=replace(promise, epsilon=epsilon))
            spent = wrapped.about_to_spend(self.estimator, at)
            plan: Any = rule.plan(at.promise, spent, training.rows)
            edges = rule.edges(plan, supposed.rows, decides=decides)
            return rule.forecast(plan, supposed, (), edges)

        return warn_if_hidden(training, promise, known, foretold)

    def _curator(
        self, asked: DecidedRows, base: Base, wishes: BaseOptions, event: Event
    ) -> Curator:
        """That of the counts, with what the ledger does not yet hold of the base reserved beside
        it."""
        options: dict[str, Any] = {
            "plan": event if wishes.promise.is_private else None,
            "noise": NoiseSource.of(wrapped.derived_seed(wishes.seed, 2)),
            "facts": asked.training.facts,
            "ledger": wishes.ledger,
            "purpose": self._purpose,
        }
        try:
            with wrapped.recorded(base, wishes, self._purpose):
                return curator_of(asked.training.rows, wishes.promise, **options)
        except Overspent as error:
            raise (error if is_ready(self.estimator) else wrapped.also_spent(error)) from None

    def _search(self, read: Read) -> CountPlan | ParityPlan:
        found: CountPlan | ParityPlan = self._planned(read)[1]
        return found

    def _forecast(self, read: Read, supposed: Supposed) -> Forecast:
        rule, plan, before, edges = self._planned(read, supposed.rows)
        releases = () if before is None else forecast.of(before, supposed).releases
        return rule.forecast(plan, supposed, releases, edges)

    def _planned(
        self, read: Read, supposed: float | None = None
    ) -> tuple[Tables | Shifts, Any, Any, Floats | None]:
        """The rule, the plan of its counts, the search of a base that is fitted with them, and
        edges of bins, before there are rows."""
        wishes, notions = self._told()
        promise, whose = wishes.promise, wishes.whose
        training = read(fitting.ways_of(self.schema, promise, whose=whose))
        solver = self._chosen(notions, len(training.classes), wishes)
        rule = self._rule(solver, notions, training)
        known = fitting.public_rows_of(training, promise)
        cautions.of_promise(promise, training.exact_rows if promise.rows_are_public else known)
        spare = rule.system is not None
        with cautions.said_around():
            base, search = wrapped.planned(self.estimator, wishes, read, spare=spare)
        plan: Any = rule.plan(promise, base.spent, training.rows, looked_at=base.looked_at)
        if isinstance(rule, Shifts):
            return rule, plan, search, None
        method = wrapped.method_of(base.estimator, rule.solver.predict_method, training.classes)
        rows = known or (supposed if base.is_ours and base.spent else None)
        if promise.rows_are_public or not promise.is_private:
            rows = training.exact_rows
        return rule, plan, search, rule.edges(plan, rows, decides=method == wrapped.DECIDED)

    @staticmethod
    def _inside(base: Base, training: Training) -> Model | None:
        """The base's own model, where it can stand inside of ours."""
        inside = parts_of(wrapped.thawed(base.estimator)).model if base.is_ours else None
        return inside if isinstance(inside, Model) and inside.classes == training.classes else None

    def _conclude(
        self,
        asked: DecidedRows,
        base: Base,
        promise: Promise,
        curator: Curator | None,
        found: Fitted | None,
        receipt: Receipt | None,
    ) -> None:
        """Publish. All that can fail comes before the first attribute."""
        training = asked.training
        classes = training.classes
        if found is None:
            table = np.eye(len(classes))[np.newaxis]
            model = PostProcessedModel(table, classes, None, self._inside(base, training))
            found = Fitted(model, wrapped.DECIDED, ConstraintReport((), 0, NOTHING_ASKED))
        statement = wrapped.statement_of_both(
            training,
            base,
            promise,
            None if curator is None else PrivacyStatement.of_run(curator),
            receipt,
            reads_groups=found.model.cells is not None,
            base_origin=reading.of_argument(self, "estimator"),
        )
        whole = groups_of(training, either=False)
        self._set_model(base.estimator, found.model, found.method)
        self.privacy_, self.baselines_, self.released_ = statement, found.baselines, found.released
        self.guarantee_, self.rates_ = found.guarantee, found.rates
        self.noise_, self.moved_ = found.noise, found.moved
        self.cells_, self.groups_ = whole, () if whole is None else whole.keys
        self.constraint_report_ = found.report.saying(said(self))
        self.sensitive_names_ = training.rows.layout.sensitive_names
        self.groups_named_ = asked.named
        self.n_features_in_ = width_of(base.estimator, training.n_features)
        columns = training.columns or tuple(names_of_features(base.estimator))
        if columns:
            self.feature_names_in_ = np.array(columns, dtype=object)
            self.n_features_in_ = len(columns)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _set_model(
        self, estimator: object, model: PostProcessedModel | ShiftedModel, method: str
    ) -> None:
        self.estimator_, self.model_, self.predict_method_ = estimator, model, method
        self.classes_ = as_array(model.classes)


def _is_parity(notions: Sequence[Notion]) -> bool:
    """Whether demographic parity of every class is all that is required."""
    one: Any = notions[0] if len(notions) == 1 else None
    return type(one) is DemographicParity and replace(one, confidence=None) == DemographicParity(
        one.max_gap
    )


def _require_parity(base: object, notions: Sequence[Notion]) -> None:
    """What offsets need."""
    expected = "demographic parity alone, with a bound below 1, for offsets"
    fix = "Pass constraints=DemographicParity(0.05), or solver=Thresholds()."
    got: Any = list(notions) or None
    need(_is_parity(notions), expected, of="constraints", got=got, fix=fix)
    expected, got = "a classifier with predict_proba", type(base).__name__
    fix = "Pass one with probabilities, or solver=Thresholds(), which changes decisions."
    has = base is None or hasattr(base, "predict_proba")
    need(has, expected, of="estimator", got=got, fix=fix)
