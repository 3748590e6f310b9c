"""`OddsPostProcessor`: any classifier, its decisions changed by group at random so that rate constraints hold (private)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .. import _checks
from ..curator import Curator
from ..errors import ConstraintNotMet, InputError, Overspent, PrivacyError, complaint
from ..facts import Cells, RowSource
from ..fairness import ConstraintSystem, Notion, resolve, sampling
from ..fairness.inputs import same_length
from ..learning import forecast, mixing, mixing_bounds, mixing_comparison, postprocess
from ..learning.forecast import Forecast
from ..learning.mixing import Mixed, Program
from ..learning.mixing_bounds import MixingGuarantee
from ..learning.postprocess import CountPlan, Released
from ..learning.supposed import Supposed
from ..learning.systems import NO_GROUPS
from ..models import Model, PostProcessedModel, RandomState
from ..models.model import draw_codes
from ..privacy.events import compose
from ..privacy.ledger import Ledger
from ..privacy.noise import NoiseSource
from ..privacy.promise import Promise
from ..privacy.statement import PrivacyStatement, Receipt
from . import base_spends, base_statement, bases, cautions, decided, origins, promises, unused
from .baselines import BaselineReport, of_comparison, warn_if_worse
from .bases import Base, Wishes
from .carried import groups_of
from .coded import Floats, as_array
from .columns import read_labels
from .constraint_report import ConstraintLine, ConstraintReport
from .decided import Asked
from .inputs import Training, Ways, weights_of
from .planning import Planning
from .recorded import Recorded, require_room
from .requirements import said
from .unread import Read

SLACKS = ("none", "theorem")
SOLVED = "one linear program was solved to its optimum"
CHOSEN = "the best table without chance was chosen"
NOTHING_ASKED = "no constraint was required: decisions are the base classifier's"


class OddsPostProcessor(ClassifierMixin, Planning, Recorded, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Any classifier that never saw the groups, and after it a table of chances by group, so that rate constraints hold.

    P(decision = k | group c, base decision j) solves a linear program over the numbers of training rows by group, label and
    base decision, which are released once, with noise: Jagielski et al. (2019), sec. 3, after Hardt, Price and Srebro (2016);
    see docs/post_processing.md. **It reads the group at prediction.** Any number of classes, groups and sensitive columns;
    without constraints it decides as the base does.

    Parameters
    ----------
    estimator : the base: a classifier of scikit-learn or of this library, fitted (then used as it is) or not (then cloned and
        fitted); None: a linear classifier without constraints. Which are accepted depends on what is protected: `bases`.
    constraints : None, a notion such as `EqualizedOdds(max_gap=0.05)`, its name and bound ("equalized_odds:0.05"), or a list.
    epsilon, delta, protects, neighbours, schema, public_rows, max_sample_weight, unsafe_data_dependent_bounds, random_state,
        ledger : as in `RateConstrainedClassifier`. The promise is about everything, the base's making included; the ledger
        holds a base that is fitted here as one spend, and the counts as another.
    confidence : of the bounds in `guarantee_`.
    slack : "none": constraints hold at the released counts. "theorem": bounds are loosened by what the noise can hide, so that
        the best table without noise stays feasible, as in Theorem 3.1 (the paper's way; `max_gap` is then exceeded).
    public_base : the fitted base was made without these rows; it is not charged, and the statement says so.
    base_share : of epsilon and delta, for a base that is fitted here and reads what is protected. The counts get what the
        accountant says is left.

    Fitted: `estimator_` (the base in use), `mixing_` (cells, base decisions, decisions), `guarantee_` (None without
    constraints), `constraint_report_`, `baselines_` (beside the base and what costs nothing), `privacy_`, `model_`, `released_`
    (the noisy counts), `classes_`, `groups_`, `cells_`, `n_features_in_`, `feature_names_in_`.

    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=4000)
    >>> X = rng.normal(size=(4000, 2)) + A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=4000) > 1).astype(int)
    >>> clf = OddsPostProcessor(LogisticRegression(), "equalized_odds:0.02", protects="sensitive_features", random_state=0)
    >>> clf.fit(X, y, sensitive_features=A).predict(X, sensitive_features=A, random_state=0).shape
    (4000,)
    >>> clf.privacy_.epsilon <= 1.0, clf.guarantee_.gap_bound < 0.1
    (True, True)

    Guarantees (tests/estimators/test_estimators_odds_privacy.py):
    1. `privacy_` is the price of the counts and of the base's making, at most the promise; what of the base is not charged,
       and why, is a sentence in `privacy_.not_covered`. Beside a base that was fitted before, it holds however everything but
       the promise was chosen after looking at that base.
    2. What is fitted depends on the groups (with records protected: on the rows) through the base and one noisy table of
       counts, except for what `privacy_.facts` lists as read from the data.
    3. No fitted attribute holds an exact statistic of what is protected.
    4. A fit that fails or is broken off changes no attribute.
    """

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True, "sample_weight": True}

    estimator_: Any
    model_: PostProcessedModel
    privacy_: PrivacyStatement
    guarantee_: MixingGuarantee | None
    constraint_report_: ConstraintReport
    baselines_: BaselineReport | None
    released_: Released | None
    sensitive_names_: tuple[str, ...]
    groups_named_: bool
    cells_: Cells | None
    classes_: npt.NDArray[Any]
    groups_: tuple[Any, ...]
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    def __init__(
        self,
        estimator: Any = None,
        constraints: Any = None,
        *,
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
        confidence: float = 0.95,
        slack: str = "none",
        public_base: bool = False,
        base_share: float = 0.8,
    ) -> None:
        self.estimator = estimator
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
        self.confidence = confidence
        self.slack = slack
        self.public_base = public_base
        self.base_share = base_share

    @property
    def mixing_(self) -> Floats:
        """P(decision = k | cell, base decision j), (cells, classes, classes)."""
        check_is_fitted(self, "model_")
        return self.model_.mixing

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> OddsPostProcessor:
        """Fit the base if it is not fitted, ask for the counts, and solve for the table.

        `X`: whatever the base takes; columns of X that are named as sensitive are not handed to it. `sensitive_features`: one
        column, several, or names of columns of X.
        """
        promise = promises.promise_of(self.epsilon, self.delta, self.protects, self.neighbours)
        ledger = promises.ledger_of(self, promise, base_spends.ledger_inside(self.estimator))
        notions = [notion for notion in promises.notions_of(self.constraints) if not notion.is_vacuous]
        _checks.fraction(confidence=self.confidence, low_open=True, high_open=True, remedy="Pass confidence=0.95, say.")
        _checks.one_of(SLACKS, slack=self.slack)
        ready = bool(self.public_base) or (self.estimator is not None and bases.is_fitted(self.estimator))
        idle = {
            "slack": "without constraints" if self.constraints is None else None,
            "base_share": "with a base that is public or fitted" if ready else None,
        }
        unused.refuse(self, idle)
        wishes = self._wishes(promise, ledger)
        bases.check(self.estimator, wishes)
        asked = self._read(X, y, sensitive_features, sample_weight, promise)
        promises.require_groups(notions, asked.training)
        cells, system = _system(notions, asked)
        if ledger is not None:
            ledger.require(promise, schema=asked.training.schema)
        if system is not None:
            self._require_room(asked, wishes, cells)
        base = self._base(asked, wishes, (X, y, sensitive_features, sample_weight), spare=system is not None)
        rows = asked.training.rows
        shown = self._shown(asked, base, X)
        codes = decided.decisions_of(
            base.estimator, shown, asked.training.classes, rows.exact_count, bases.derived_seed(wishes.seed, 3)
        )
        if system is None:
            postprocess.require_room(promise, compose(base.spent), more=False)
            with base_spends.recorded(base, wishes, self._purpose) as receipt:
                pass
            self._conclude(asked, base, promise, None, None, receipt)
            return self
        classes = len(asked.training.classes)
        plan = postprocess.plan(promise, cells, classes, base.spent, weighted=rows.weighted, looked_at=base.looked_at)
        noise = NoiseSource.of(bases.derived_seed(wishes.seed, 2))
        with self._curator(asked, base, wishes, plan, noise) as curator:
            attached = curator.attach(decided.in_blocks(codes, rows), title="base classifier")
            released = postprocess.release(curator, attached, plan, rows.max_sample_weight if rows.weighted else None)
            curator.finish()
        solved = mixing_bounds.mixed(released, system, self.confidence, with_slack=self.slack == "theorem")
        found = mixing_bounds.guarantee(released, system, solved.table, self.confidence)
        self._conclude(asked, base, promise, curator, (cells, system, released, solved, found), curator.statement().ledger)
        if solved.excess > mixing.FEASIBLE:
            self._warn(solved)
        warn_if_worse(self.baselines_)
        return self

    def predict(self, X: Any, *, sensitive_features: Any = None, random_state: RandomState = None) -> npt.NDArray[Any]:
        """A draw for each row. `random_state` (a seed or a NumPy generator): the same seed and rows give the same draws."""
        check_is_fitted(self, "model_")
        law = self.predict_proba(X, sensitive_features=sensitive_features)
        return np.asarray(self.classes_[draw_codes(law, random_state)])

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """The exact law of `predict`, (rows, classes)."""
        check_is_fitted(self, "model_")
        base, model = self.estimator_, self.model_
        features = self._features_of(X)
        if bases.is_randomised(base):
            law = decided.law_of(base, features, model.classes)
            return model.mixed(law, self._ids(X, sensitive_features, len(law)))
        codes = decided.codes_of(decided.asked_of_base(lambda: base.predict(features)), model.classes)
        return model.law(codes, self._ids(X, sensitive_features, len(codes)))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """The expected share (by weight) of rows that are decided right."""
        law = self.predict_proba(X, sensitive_features=sensitive_features)
        if y is None and isinstance(X, RowSource):
            codes: npt.NDArray[Any] = np.concatenate([np.asarray(block.labels) for block in X.blocks()])
            labels = self.classes_[codes]
        else:
            labels = read_labels(y)
        same_length({"X": len(law), "y": len(labels)})
        place = {value: code for code, value in enumerate(self.model_.classes)}
        at = np.array([place.get(value, -1) for value in labels.tolist()], np.intp)
        right = np.where(at >= 0, law[np.arange(len(law)), at], 0.0)
        return float(np.average(right, weights=weights_of(sample_weight, len(labels))))

    def derandomise(self) -> OddsPostProcessor:
        """A classifier that decides without chance: each group and base decision gets one class. The best one at the released
        counts (least excess over the bounds, then least error), with its own `constraint_report_` and `guarantee_`."""
        check_is_fitted(self, "model_")
        out = copy.copy(self)
        if self.released_ is None or self.guarantee_ is None:
            return out
        system = self._resolved()
        if system.names != self.guarantee_.names:
            remedy = "Fit again after a change of constraints."
            raise InputError(complaint(expected="the constraints of the fit", of="constraints", got="others", remedy=remedy))
        solved = mixing.deterministic(Program.of(self.released_, system))
        out.guarantee_ = mixing_bounds.guarantee(self.released_, system, solved.table, self.guarantee_.confidence)
        report = _report(out.guarantee_, solved, CHOSEN, self.released_, system, self.max_sample_weight)
        out.constraint_report_ = report.saying(self.constraint_report_.required)
        out.baselines_ = None
        model = self.model_
        out.model_ = PostProcessedModel(solved.table, model.classes, model.cells, model.base)
        return out

    # -- inside ------------------------------------------------------------------------------------------------------------

    def _search(self, read: Read) -> CountPlan:
        return self._planned(read)[0]

    def _forecast(self, read: Read, supposed: Supposed) -> Forecast:
        plan, system, training, before = self._planned(read)
        base = () if before is None else forecast.of(before, supposed).releases
        if system is None:
            return Forecast(base, (), None, why="nothing is required, and decisions are the base classifier's")
        return forecast.of_counts(plan, system, training.rows.layout, supposed, base)

    def _planned(self, read: Read) -> tuple[CountPlan, ConstraintSystem | None, Training, Any]:
        """The plan of the counts, and the search of a base that is fitted with them, before there are rows."""
        promise = promises.promise_of(self.epsilon, self.delta, self.protects, self.neighbours)
        notions = [notion for notion in promises.notions_of(self.constraints) if not notion.is_vacuous]
        wishes = self._wishes(promise, None)
        bases.check(self.estimator, wishes)
        training = read(promises.ways_of(self.schema, False, False, self.max_sample_weight, promise))
        promises.require_groups(notions, training)
        cells, system = _system(notions, Asked(training, None, None, False))
        known = promises.public_rows_of(self.public_rows, training, promise)
        cautions.of_promise(promise, training.exact_rows if promise.rows_are_public else known)
        with cautions.said_around():
            base, search = bases.planned(self.estimator, wishes, read, spare=system is not None)
        plan = postprocess.plan(promise, cells, len(training.classes), base.spent, looked_at=base.looked_at)
        return plan, system, training, search

    @property
    def _purpose(self) -> str:
        return f"{type(self).__name__}.fit"

    def _require_room(self, asked: Asked, wishes: Wishes, cells: Cells | None) -> None:
        """Base and counts are two spends of the ledger: see now whether there is room for both, before the first is paid."""
        spent = base_spends.about_to_spend(self.estimator, wishes)
        if wishes.ledger is None or not spent:
            return
        rows, classes = asked.training.rows, len(asked.training.classes)
        counts = postprocess.plan(wishes.promise, cells, classes, spent, weighted=rows.weighted)
        require_room(wishes.ledger, [*spent, counts.event], wishes.promise, self._purpose)

    def _curator(self, asked: Asked, base: Base, wishes: Wishes, plan: CountPlan, noise: NoiseSource) -> Curator:
        """The curator of the counts, with what the ledger does not yet hold of the base reserved beside it."""
        event = plan.event if wishes.promise.is_private else None
        options: dict[str, Any] = {"facts": asked.training.facts, "ledger": wishes.ledger, "purpose": self._purpose}
        try:
            with base_spends.recorded(base, wishes, self._purpose):
                return Curator(asked.training.rows, wishes.promise, plan=event, noise=noise, **options)
        except Overspent as error:
            fitted_here = self.estimator is None or not bases.is_fitted(self.estimator)
            raise (base_spends.also_spent(error) if fitted_here else error) from None

    def _wishes(self, promise: Promise, ledger: Ledger | None) -> Wishes:
        share = _checks.fraction(base_share=self.base_share, low_open=True, high_open=True, remedy="Pass base_share=0.8, say.")
        given = {
            "schema": self.schema,
            "public_rows": self.public_rows,
            "max_sample_weight": self.max_sample_weight,
            "unsafe_data_dependent_bounds": self.unsafe_data_dependent_bounds,
        }
        return Wishes(promise, share, bool(self.public_base), given, promises.seed_of(self.random_state), ledger)

    def _read(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, promise: Promise) -> Asked:
        ways: Ways = promises.ways_of(self.schema, False, False, self.max_sample_weight, promise)
        fitted = self.estimator is not None and bases.is_fitted(self.estimator)
        known = as_tuple(getattr(self.estimator, "classes_", ())) if fitted else ()
        asked = decided.read_rows(X, y, sensitive_features, sample_weight, ways, known)
        promises.require_cap(asked.training, promise)
        rows = promises.public_rows_of(self.public_rows, asked.training, promise)
        ours = self.estimator is None or bases.carries_a_promise(self.estimator)
        cautions.of_promise(promise, asked.training.rows.exact_count if promise.rows_are_public else rows)
        steps = cautions.of_pipeline(asked.training, promise)
        if steps:
            outside = (*asked.training.not_covered, *(step.sentence for step in steps))
            asked = replace(asked, training=replace(asked.training, not_covered=outside))
        if isinstance(X, RowSource) and not ours:
            remedy = "Pass arrays or a table, or a classifier of Fairveil, which takes coded rows."
            raise InputError(
                complaint(expected="features for the base classifier", of="X", got=type(X).__name__, remedy=remedy)
            )
        read = set(_read_by(self.estimator)) & set(asked.training.rows.layout.sensitive_names)
        if read and promise.is_private and promise.protects == "sensitive_features":
            raise PrivacyError(
                complaint(
                    expected="a base classifier that does not read what is protected",
                    of="estimator",
                    got=f"one fitted with {sorted(read)} among its features",
                    remedy="Fit it without those columns.",
                )
            )
        return asked

    def _base(self, asked: Asked, wishes: Wishes, given: Sequence[Any], *, spare: bool) -> Base:
        """The base; ours read the table as it came, and leave the groups out by themselves."""
        X, y, sensitive_features, sample_weight = given
        if self.estimator is not None and not bases.carries_a_promise(self.estimator):
            X, y, sensitive_features = asked.features, asked.labels, None
        with cautions.said_around():
            return bases.prepare(self.estimator, wishes, X, y, sensitive_features, sample_weight, spare)

    def _shown(self, asked: Asked, base: Base, X: Any) -> Any:
        names = asked.training.rows.layout.sensitive_names
        return X if set(_read_by(base.estimator)) & set(names) else asked.features

    def _features_of(self, X: Any) -> Any:
        """X as the base takes it: without sensitive columns, and, for another's base under a schema, features alone."""
        decided.refuse_unseen(X)
        read = _read_by(self.estimator_)
        if self.schema is not None and not bases.carries_a_promise(self.estimator_):
            keep = set(getattr(self, "feature_names_in_", ()))
            return decided.without(X, [name for name in decided.names_of(X) if name not in keep]) if keep else X
        return decided.without(X, [name for name in self.sensitive_names_ if name not in read])

    def _ids(self, X: Any, sensitive_features: Any, rows: int) -> npt.NDArray[np.intp] | None:
        cells = self.model_.cells
        return None if cells is None else decided.group_ids(sensitive_features, X, cells, rows, self.groups_named_)

    def _resolved(self) -> ConstraintSystem:
        """The constraints again, over the cells of the table."""
        notions = [notion for notion in promises.notions_of(self.constraints) if not notion.is_vacuous]
        cells = self.model_.cells
        if cells is None:
            system = resolve(notions, self.cells_ or NO_GROUPS, self.model_.classes)
            return system.without_groups()
        return resolve(notions, cells, self.model_.classes)

    def _conclude(
        self,
        asked: Asked,
        base: Base,
        promise: Promise,
        curator: Curator | None,
        found: tuple[Cells | None, ConstraintSystem, Released, Mixed, MixingGuarantee] | None,
        receipt: Receipt | None,
    ) -> None:
        """Publish. All that can fail comes before the first attribute."""
        training = asked.training
        classes = training.classes
        inside = getattr(bases.thawed(base.estimator), "model_", None) if base.is_ours else None
        inside = inside if isinstance(inside, Model) and inside.classes == classes else None
        cells, system, released, solved, guarantee = found or (None, None, None, None, None)
        table = np.eye(len(classes))[np.newaxis] if solved is None else solved.table
        model = PostProcessedModel(table, classes, cells, inside)
        report, baselines = ConstraintReport((), 0, NOTHING_ASKED), None
        if guarantee is not None and solved is not None and released is not None and system is not None:
            report = _report(guarantee, solved, SOLVED, released, system, self.max_sample_weight)
            compared = mixing_comparison.compared(released, system, solved.table)
            baselines = of_comparison(compared, classes, free="the base classifier")
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
        self._set_base(base.estimator, model)
        self.privacy_ = statement
        self.baselines_ = baselines
        self.cells_, self.groups_ = whole, () if whole is None else whole.keys
        self.guarantee_, self.constraint_report_, self.released_ = guarantee, report.saying(said(self)), released
        self.sensitive_names_ = training.rows.layout.sensitive_names
        self.groups_named_ = asked.named
        self.n_features_in_ = int(getattr(base.estimator, "n_features_in_", training.n_features))
        self._set_names(training.columns or tuple(getattr(base.estimator, "feature_names_in_", ())))

    def _set_base(self, estimator: Any, model: PostProcessedModel) -> None:
        self.estimator_, self.model_ = estimator, model
        self.classes_ = as_array(model.classes)

    def _set_names(self, columns: Sequence[str]) -> None:
        if columns:
            self.feature_names_in_ = np.array(columns, dtype=object)
            self.n_features_in_ = len(columns)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _warn(self, solved: Mixed) -> None:
        text = (
            f"the constraints contradict each other at the released counts: every bound had to give {solved.excess:.4f}, the "
            "least that all can. Ask for larger bounds, or drop a constraint; see constraint_report_."
        )
        warnings.warn(text, ConstraintNotMet, stacklevel=3)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def as_tuple(classes: Any) -> tuple[Any, ...]:
    """Classes as plain Python values."""
    return tuple(np.asarray(classes).tolist())


def _read_by(estimator: Any) -> tuple[str, ...]:
    """Names of the columns that another's fitted base reads; ours leave sensitive columns out by themselves."""
    if estimator is None or bases.carries_a_promise(estimator):
        return ()
    return as_tuple(getattr(estimator, "feature_names_in_", ()))


def _system(notions: Sequence[Notion], asked: Asked) -> tuple[Cells | None, ConstraintSystem | None]:
    """The constraints and the cells of the table; cells only where a constraint tells groups apart."""
    cells = groups_of(asked.training, either=False)
    if not notions:
        return None, None
    system = resolve(notions, cells or NO_GROUPS, asked.training.classes)
    if not len(system):
        raise InputError(
            complaint(
                expected="at least two groups to compare",
                of="constraints",
                got=f"groups {list((cells or NO_GROUPS).keys)}",
                remedy="Pass sensitive_features with several groups, or constraints=None.",
            )
        )
    if system.needs_groups:
        return cells, system
    return None, system.without_groups()


def _report(
    guarantee: MixingGuarantee, solved: Mixed, reason: str, released: Released, system: ConstraintSystem, heaviest: Any
) -> ConstraintReport:
    counts = mixing.filled(released)
    histogram = np.einsum("cyj,cjk->cyk", counts, solved.table)  # what the table decides, on average: one draw varies as much
    drawn = sampling.deviations(system, histogram, counts.sum(axis=2), heaviest=heaviest)
    lines = [
        ConstraintLine(
            name,
            bound,
            bound if abs(value - bound) < mixing.FEASIBLE else value,
            noise,
            float(pressure),
            len(guarantee.names),
            sampling=float(one),
        )
        for name, bound, value, noise, pressure, one in zip(
            guarantee.names, guarantee.bounds, guarantee.values, guarantee.noise, solved.pressures, drawn, strict=True
        )
    ]
    return ConstraintReport(tuple(lines), 0, reason)
