"""`FairClassifier` and `FairRegressor`: one face of all fits. What is required are `constraints`; how
it is found is the `solver`, one of the papers'."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._types import ColumnsLike, Floats, TableLike
from ..data.reading import PathLike
from ..errors import InputError
from ..facts import Cells, RowBlock, RowSource
from ..facts.rows import CodedSource
from ..fairness.notions import NOTIONS
from ..fairness.objectives import NAMES, Bound, Constraint, Error
from ..models import DerandomisedModel, LinearModel, MixtureModel, Model, RegressionModel
from ..models.model import RandomState, draw_codes, generator
from ..tables.columns import same_length
from . import faces
from .certifying.certified_fits import certified, forget_certificate
from .coding import AUTO, Coding, parts_of
from .faces import (
    CodedEstimator,
    Term,
    as_array,
    expected_accuracy,
    terms_of,
)
from .reading import TargetScale, Training, names_in, read_targets, weights_of
from .released import ReleasedGroups
from .reports import BaselineReport, ConstraintReport
from .settings import (
    Fermi,
    GroupObjective,
    OracleGame,
    PrimalDual,
    SetAside,
    Setting,
    Tailored,
)
from .ways import Way
from .words import described, worded
from .wrapped import group_ids

if TYPE_CHECKING:
    from ..models import NetworkModel


def _primal_dual(of: Any) -> Way:
    from .descending import PrimalDualWay

    return PrimalDualWay(of)


def _fermi(of: Any) -> Way:
    from .descending import FermiWay

    return FermiWay(of)


def _oracle_game(of: Any) -> Way:
    from .oracle_game import OracleGameWay

    return OracleGameWay(of)


def _group_objective(of: Any) -> Way:
    from .group_objective import ClassifiedWay, RegressedWay

    return (RegressedWay if isinstance(of, FairRegressor) else ClassifiedWay)(of)


def _tailored(of: Any) -> Way:
    from .tailored import TailoredClassifiedWay, TailoredRegressedWay

    return (TailoredRegressedWay if isinstance(of, FairRegressor) else TailoredClassifiedWay)(of)


REGRESSED: dict[type[Setting], Callable[[Any], Way]] = {
    GroupObjective: _group_objective,
    Tailored: _tailored,
}
CLASSIFIED: dict[type[Setting], Callable[[Any], Way]] = {
    PrimalDual: _primal_dual,
    Fermi: _fermi,
    OracleGame: _oracle_game,
    **REGRESSED,
}
"""The `Way` of each solver, which is loaded where it is used."""
MIXTURES = (MixtureModel, DerandomisedModel)
COEFFICIENTS = ("coef_", "intercept_", "coef_names_")


def _bounds_an_objective(given: object) -> bool:
    """Whether a constraint is a bound of an objective, which is no notion."""
    if isinstance(given, str):
        name = given.partition(":")[0].strip().replace("-", "_")
        return name in NAMES and name not in NOTIONS
    return isinstance(given, Bound | Constraint)


def _has_scores(estimator: object) -> bool:
    """A mixture of models has distributions of decisions, and no scores."""
    held: Any = estimator
    if "model_" not in vars(held):
        return not held._is_randomized
    return held.model_ is not None and not isinstance(held.model_, MIXTURES)


@described
class FairClassifier(ClassifierMixin, CodedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Private classifier whose decisions keep constraints between groups.

    It works without groups and without a constraint, with any number of classes, groups and
    sensitive columns. Begin with this estimator: `solver` is chosen by what is asked, and each
    paper's system is one of its values.

    Parameters
    ----------
    constraints : notion, str, bound or list of these, default=None
        What decisions must keep: a notion such as ``DemographicParity(max_gap=0.05)``, or its name
        and bound, ``"demographic_parity:0.05"``; with `GroupObjective` also a bound of an
        objective, ``"gmean:0.3"`` or ``objectives.GMean().at_least(0.7)``. A list combines them.
        `Fermi` takes the name of a notion, and `Tailored` bounds on losses of groups,
        ``"largest_group_loss:0.4"`` or ``{"f": 0.4}``. Bounds are shares of 1, so 0.05 is 5
        percentage points. None: no constraint.
    objective : str or objective, default=None
        What is minimized, of `GroupObjective`: ``"error"``, ``"gmean"``, ``"hmean"``,
        ``"largest_group_loss"``, ``"false_negative_rate"``, a gap such as ``"equalized_odds"``, or
        one of `fairveil.fairness.objectives`, your own function among them. `Tailored` minimizes
        the mean of the groups' losses, or with ``"error"`` everybody's. None: the error.
    solver : PrimalDual, Fermi, OracleGame, GroupObjective or Tailored, default=None
        How the model is found, with its numbers: ``PrimalDual(rounds=50)``. None: `PrimalDual`, and
        `GroupObjective` where an objective or a bound of one is asked for.

    Attributes
    ----------
    model_, privacy_, report_, constraint_report_, baselines_
    outcome_ : Outcome
        Everything that the search released.
    gap_report_ : GapReport
        Of `Fermi`: released differences of rates among groups on the training rows.
    guarantee_ : Guarantee
        Of `OracleGame`: bounds on gaps and error of the mixture, on the training rows, with
        probability `confidence`.
    certain_ : Certain or None
        Of `GroupObjective`: bounds on f and g above the best in the list, with ``"exponential"``.
    candidates_, plays_, objective_, tailoring_, classes_, groups_, coef_, intercept_, coef_names_,
    n_features_in_, feature_names_in_, coding_, cells_, n_iter_, certificate_, certified_aim_

    See Also
    --------
    FairPostProcessor : Keeps a classifier as it is, and changes its decisions.
    FairRegressor : Does the same for numbers.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_privacy.py):

    1. The fit depends on the rows through the curator's releases alone, except for what
       `privacy_.facts` and `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most (epsilon, delta). With `Tailored`, no
       group spends more than its own guarantee says.
    3. With a schema, nothing is read from the data.
    4. A fit that fails or is interrupted changes no attribute.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 2)) + 0.5 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1).astype(int)
    >>> clf = FairClassifier("demographic_parity:0.1", epsilon=2.0, random_state=0)
    >>> clf.fit(X, y, sensitive_features=A).predict(X[:3]).shape
    (3,)
    >>> clf.privacy_.epsilon <= 2.0, clf.groups_
    (True, (0, 1))
    """

    __metadata_request__score: ClassVar = {"sample_weight": True, "sensitive_features": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True, "random_state": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}

    SETTINGS: ClassVar = {"solver": tuple(CLASSIFIED), "certify": (SetAside,)}
    WAYS: ClassVar = CLASSIFIED

    classes_: npt.NDArray[Any] = field(init=False)
    model_: Model | None = field(init=False)
    baselines_: BaselineReport | None = field(init=False)
    constraint_report_: ConstraintReport = field(init=False)
    outcome_: Any = field(init=False)
    candidates_: tuple[Any, ...] = field(init=False)
    n_iter_: int = field(init=False)
    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)
    coef_names_: tuple[str, ...] = field(init=False)

    constraints: object = None
    _: KW_ONLY
    objective: object = None
    solver: Setting | None = None
    model: object = AUTO
    certify: object = None
    checkpoint: PathLike | None = None

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

        X is an array, a sparse array, a table of pandas, polars or pyarrow, a mapping of columns,
        or a source of coded rows. A source has labels and groups of its own. A torch module also
        takes an array with more axes, such as images. Constraints with a `confidence`, and notions
        in `certify`, are certified on rows that are set aside: see `certificate_`.

        Parameters
        ----------
        sensitive_features : array, table, names of columns of X, or ReleasedGroups, default=None
            Groups: one column or several. None: the schema's, or no groups. Groups that
            `fairveil.release_groups` released: the fit costs nothing further, and `protects` must
            be "sensitive_features".

        Warns
        -----
        ConstraintNotMet, NotEnforced, WorseThanBaseline
        """
        solver = self._setting("solver", Setting)
        if isinstance(sensitive_features, ReleasedGroups) and isinstance(solver, PrimalDual):
            self._way.fit_released(X, y, sensitive_features, sample_weight)
            return self
        self._fitted(X, y, sensitive_features, sample_weight)
        if isinstance(solver, OracleGame):  # whose rules may read the group
            self.named_ = names_in(sensitive_features) is not None
        return self

    def _usual(self, slot: str) -> type[Setting]:
        """By what is asked: objectives, and bounds of them, are one solver's alone."""
        if slot != "solver":
            return super()._usual(slot)
        given: Any = self.constraints
        listed = given if isinstance(given, Iterable) and not isinstance(given, str) else [given]
        bounded = any(map(_bounds_an_objective, listed))
        by_error = self.objective in (None, "error") or isinstance(self.objective, Error)
        return PrimalDual if by_error and not bounded else GroupObjective

    # -- predictions -------------------------------------------------------------------------------

    @property
    def _is_randomized(self) -> bool:
        """Whether `predict` draws: a mixture, of rules or of candidates; before a fit, whether its
        solver finds such."""
        if "model_" not in vars(self):
            return bool(self._way.draws)
        return self.model_ is None or isinstance(self.model_, MixtureModel)

    def _blocks(self, X: TableLike) -> Iterator[RowBlock]:
        return super()._blocks(faces.as_rows(X, parts_of(self).model))

    def _rows(self, X: TableLike, groups: ColumnsLike) -> Iterable[RowBlock]:
        """Coded rows, with the group of each where the model reads it."""
        blocks = self._blocks(X)
        if self.model_ is None or not self.model_.reads_groups:
            return blocks
        assert self.cells_ is not None
        listed = list(blocks)
        rows = sum(block.rows for block in listed)
        ids = group_ids(groups, X, self.cells_, rows, self.named_)
        codes = np.stack(np.unravel_index(ids, self.cells_.sizes)).astype(np.uint16)
        parts = np.split(codes, np.cumsum([block.rows for block in listed])[:-1], axis=1)
        return [replace(block, sensitive=part) for block, part in zip(listed, parts, strict=True)]

    @available_if(_has_scores)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    @worded
    def decision_function(self, X: TableLike) -> Floats:
        """Scores of the rows.

        Returns
        -------
        ndarray
            With two classes of shape (n_rows,), above 0 for the second. Else (n_rows, n_classes),
            and the largest wins.
        """
        check_is_fitted(self, "model_")
        model = cast(Any, self.model_)
        scores = np.concatenate([model.decision_scores(block) for block in self._blocks(X)])
        return scores[:, 0] if len(self.classes_) == 2 else np.asarray(scores)

    @worded
    def predict_proba(self, X: TableLike, *, sensitive_features: ColumnsLike = None) -> Floats:
        """Probability that the model gives each class.

        Of a mixture it is the exact distribution of `predict`: the share of its models that decide
        for each class.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "outcome_")
        if self.model_ is None:
            from .mixing import distribution_of_candidates

            return distribution_of_candidates(self, X)
        model, mixed = self.model_, isinstance(self.model_, MIXTURES)
        ask = model.decision_proba if mixed else model.predict_proba
        return np.concatenate([ask(block) for block in self._rows(X, sensitive_features)])

    @worded
    def predict(
        self,
        X: TableLike,
        *,
        sensitive_features: ColumnsLike = None,
        random_state: RandomState = None,
    ) -> npt.NDArray[Any]:
        """Predict the class of each row.

        A mixture draws a model for every row; other models decide without chance.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, as the labels were written.
        """
        generator(random_state)  # a seed that is none is refused, whether it is needed or not
        codes = self._codes(X, sensitive_features, random_state)
        return np.asarray(self.classes_[codes])

    def _codes(
        self, X: TableLike, groups: ColumnsLike, random_state: RandomState = None
    ) -> npt.NDArray[Any]:
        check_is_fitted(self, "outcome_")
        if self.model_ is None or self._is_randomized:
            return draw_codes(self.predict_proba(X, sensitive_features=groups), random_state)
        return np.concatenate([self.model_.predict_codes(one) for one in self._rows(X, groups)])

    @worded
    def score(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
    ) -> float:
        """Share of rows, by weight, whose class is predicted right: the expected one of a mixture.

        Returns
        -------
        float
            Accuracy, between 0 and 1.
        """
        check_is_fitted(self, "outcome_")
        if self._is_randomized:
            law = self.predict_proba(X, sensitive_features=sensitive_features)
        else:
            law = np.eye(len(self.classes_))[self._codes(X, sensitive_features)]
        return expected_accuracy(law, self.classes_, X, y, sample_weight)

    def derandomise(self) -> FairClassifier:
        """Classifier that decides without chance: for the class that most models decide for.

        Returns
        -------
        FairClassifier
            A copy, where decisions are drawn. Its gap, losses and error are its own, and were not
            part of the plan: its report leaves them undefined, so measure them.
        """
        check_is_fitted(self, "outcome_")
        if self.model_ is None:
            remedy = "Take predict_proba(X).argmax(axis=1), or choose among linear rules."
            got = "candidates made elsewhere"
            raise InputError.expected(
                "a mixture of linear models", of="derandomise", got=got, remedy=remedy
            )
        if not isinstance(self.model_, MixtureModel):
            return self
        out = copy.copy(self)
        out.model_ = self.model_.derandomise()
        out._way.derandomised(out.model_)
        out.baselines_ = None
        forget_certificate(out)
        return out

    def terms(self) -> tuple[Term, ...]:
        """Part of the score that each number of an additive model of two classes has.

        Returns
        -------
        tuple of Term
            Draw one by ``clf.terms()[0].plot()``.
        """
        check_is_fitted(self, "model_")
        if not hasattr(self, "coef_") or len(self.coef_) != 1:
            remedy = (
                "Ask one of two classes, that is not a network or a mixture, which PrimalDual finds "
                "with randomised=True alone."
            )
            got = type(self.model_).__name__
            raise InputError.expected("one linear score", of="terms", got=got, remedy=remedy)
        noise = getattr(self.outcome_, "weight_noise", None)
        return terms_of(self.coding_, self.coef_[0], noise)

    if not TYPE_CHECKING:  # or any name would be one of its attributes

        def __getattr__(self, name: str) -> object:
            """What has no coefficients says why."""
            model = vars(self).get("model_") if name in COEFFICIENTS else None
            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            if isinstance(model, MIXTURES):
                what += (
                    ": the fit is a mixture of models, one of which is drawn for each row (see "
                    "model_.models, and baselines_). fv.PrimalDual() finds one model"
                )
            elif model is not None:
                what += ": the model is a network (see model_)"
            raise AttributeError(what, name=name, obj=self)

    def _publish_shape(self, training: Training, cells: Cells | None) -> None:
        """Write what is public of the columns, classes and groups of a fit."""
        self._publish_columns(training, cells)
        self.classes_ = as_array(training.classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _set_model(self, model: LinearModel | NetworkModel | MixtureModel, coding: Coding) -> None:
        """Publish a model, with its coefficients in the units of X where it is one linear model."""
        self.model_, self.coding_, self.classes_ = model, coding, as_array(model.classes)
        for name in COEFFICIENTS:
            self.__dict__.pop(name, None)
        if isinstance(model, LinearModel):
            self.coef_, self.intercept_ = coding.in_input_units(model.weights, model.intercept)
            self.coef_names_ = coding.feature_names


@described
class FairRegressor(RegressorMixin, CodedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Private linear regression for functions of the groups' squared errors.

    It works without groups and without a constraint, and is private least squares then.

    Parameters
    ----------
    constraints : notion, str, bound or list of these, default=None
        ``BoundedGroupLoss(max_loss, loss="squared")``, ``"largest_group_loss:0.5"``,
        ``"gini:0.1"``, or a bound of an objective; with `Tailored` also ``{"f": 0.5}``. Losses are
        in squared units of y. None: no constraint.
    objective : str or objective, default=None
        What is minimized: ``"error"`` (the mean squared error), ``"largest_group_loss"``, or an
        objective of `fairveil.fairness.objectives`, such as ``WeightedError(groups={"f": 2.0})``. A
        `Custom` one is a function of losses in squared ranges of y. `Tailored` minimizes the mean
        of the groups' errors, or with ``"error"`` everybody's. None: the error.
    unit : str, mapping of one name, or one value a row, default=None
        Protects persons, each with all of their rows (docs/persons.md). It is the name of the
        column of X that tells persons apart, which is then no feature, or one value a row. None:
        protects each row by itself. With `Tailored` all rows of a person count in one group, where
        most of them are.
    solver : GroupObjective or Tailored, default=None
        How coefficients are found, with its numbers: ``GroupObjective(clip=3.0)``. None:
        `GroupObjective`.
    model : str or Additive, default="auto"
        ``"auto"``, ``"linear"`` or None: a model that is linear in the columns. ``"additive"`` or
        an `Additive`: steps of each number beside the line (docs/additive_models.md).

    Attributes
    ----------
    model_ : RegressionModel
        The model that was found.
    coef_, intercept_, coef_names_, target_, tailoring_, constraint_report_, baselines_, outcome_,
    objective_, privacy_, groups_, n_features_in_, feature_names_in_, coding_, cells_, n_iter_

    See Also
    --------
    FairClassifier : Does the same for classes.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_group_regressor.py,
    tests/estimators/test_estimators_tailored_regressor.py):

    1. The fit depends on the rows through the curator's releases alone, except for what
       `privacy_.facts` and `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most (epsilon, delta). With `Tailored`, no
       group spends more than its own guarantee says.
    3. A fit that fails or is interrupted changes no attribute.

    Examples
    --------
    >>> import numpy as np
    >>> from fairveil.facts import Schema
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=4000)
    >>> X = rng.uniform(-1, 1, size=(4000, 1))
    >>> y = np.where(A == 0, 2 * X[:, 0], X[:, 0]) + 0.1 * rng.normal(size=4000)
    >>> reg = FairRegressor(
    ...     objective="largest_group_loss",
    ...     epsilon=2.0,
    ...     schema=Schema(target_bounds=(-3, 3)),
    ...     random_state=0,
    ... )
    >>> reg.fit(X, y, sensitive_features=A).coef_.round(1)
    array([1.5])
    >>> reg.privacy_.epsilon <= 2.0, reg.groups_
    (True, (0, 1))
    """

    SETTINGS: ClassVar = {"solver": tuple(REGRESSED)}
    WAYS: ClassVar = REGRESSED

    model_: RegressionModel = field(init=False)
    target_: TargetScale = field(init=False)
    coef_: Floats = field(init=False)
    intercept_: float = field(init=False)
    coef_names_: tuple[str, ...] = field(init=False)
    baselines_: BaselineReport | None = field(init=False)
    constraint_report_: ConstraintReport = field(init=False)
    outcome_: Any = field(init=False)
    n_iter_: int = field(init=False)

    constraints: object = None
    _: KW_ONLY
    objective: object = None
    solver: Setting | None = None
    model: object = AUTO
    checkpoint: PathLike | None = None

    @worded
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> Self:
        """Fit to a table X and numbers y, matched by position.

        Warns
        -----
        ConstraintNotMet, WorseThanBaseline
        """
        self._fitted(X, y, sensitive_features, sample_weight)
        return self

    @worded
    def predict(self, X: TableLike) -> Floats:
        """Predict a number for each row.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers, in the units of y.
        """
        codes = np.concatenate([self.model_.predict_numbers(block) for block in self._blocks(X)])
        return self.target_.undone(codes)

    @worded
    def score(
        self, X: TableLike, y: ColumnsLike = None, sample_weight: ColumnsLike = None
    ) -> float:
        """Coefficient of determination R^2, by weight.

        Returns
        -------
        float
            1 minus the squared error over that of the mean of y; at most 1.
        """
        predicted = self.predict(X)
        targets = self._targets_of(X) if y is None and isinstance(X, RowSource) else read_targets(y)
        same_length({"X": len(predicted), "y": len(targets)})
        return float(
            r2_score(targets, predicted, sample_weight=weights_of(sample_weight, len(targets)))
        )

    def _targets_of(self, source: RowSource) -> Floats:
        """Targets of coded rows, in their own units: a schema's are codes, others are as they
        came."""
        lines = [block.labels for block in source.blocks()]
        if any(line is None for line in lines) or source.layout.classes is not None:
            raise InputError.expected(
                "rows with targets", of="X", got="rows without", remedy="Pass y."
            )
        given = np.concatenate([np.asarray(line, np.float64) for line in lines])
        return self.target_.undone(given) if isinstance(source, CodedSource) else given

    def _set_model(self, model: RegressionModel, coding: Coding, target: TargetScale) -> None:
        weights, intercept = coding.in_input_units(
            model.weights[np.newaxis], np.array([model.intercept])
        )
        self.model_, self.coding_, self.target_ = model, coding, target
        coef, shift = target.in_input_units(weights[0], intercept[0])
        self.coef_, self.intercept_, self.coef_names_ = coef, float(shift), coding.feature_names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
