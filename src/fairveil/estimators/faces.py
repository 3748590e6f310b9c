"""What finished estimators share: prediction, coefficients, curves, and mixtures with blind decisions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._types import ColumnsLike, Floats, TableLike
from ..errors import FairveilError, InputError, KindError, complaint
from ..facts import Cells, RowBlock, RowLayout, RowSource
from ..facts.rows import CodedSource
from ..methods import Outcome
from ..methods import comparison as program
from ..methods.comparison import Choice, Comparison
from ..models import GroupedLinearModel, LinearModel, MixtureModel, Model, RegressionModel
from ..models.model import RandomState, draw_codes, generator
from ..show.charts import Axis, Curve, Curves
from ..show.parts import Part, Shown
from ..statement.document import PrivacyStatement
from ..tables.columns import same_length
from ..tables.given import shape_of
from ..tables.grids import refuse_duplicates, refuse_one_column
from .fitting import Planning, Recorded
from .reading.additive import ANYWHERE, takes_steps
from .reading.coding import Coding, SchemaCoding, TableCoding
from .reading.columns import read_labels, read_targets
from .reading.fitted_parts import parts_of
from .reading.inputs import weights_of
from .reading.shapes import Side
from .reading.targets import TargetScale
from .reading.training import Training
from .reports import MIXTURE, BaselineReport, of_comparison
from .words import worded

if TYPE_CHECKING:
    from ..models import NetworkModel, Skeleton


# ------------------------------ blind
# A model some of whose decisions are made without looking at anybody: the mixture, and what is
# then said of it.
#
# Guarantees (tests/estimators/test_estimators_replaced.py):
# 1. Its distribution of decisions is (1 - share) x the model's + share x the blind one, of every row.
# 2. What is reported of it follows from what was released of the model, and from known numbers.

LINEAR = (LinearModel, GroupedLinearModel)


@dataclass(frozen=True)
class Blindly:
    """A `share` of decisions, the probability of each class in them (`by`), what that is in words,
    and the value of each constraint, by its name, of blind decisions alone."""

    share: float
    by: tuple[float, ...]
    words: str
    sums: Mapping[str, float]

    def mixed(self, names: Sequence[str], values: Floats) -> Floats:
        """Values of constraints; NaN where those of blind decisions are not known."""
        own = np.array([self.sums.get(name, np.nan) for name in names])
        return np.asarray((1.0 - self.share) * values + self.share * own)

    def law(self, table: Floats) -> Floats:
        """Probabilities of decisions, on the last axis."""
        return np.asarray((1.0 - self.share) * table + self.share * np.asarray(self.by))


def mixture_of(model: Model | None, blindly: Blindly) -> MixtureModel | None:
    """The mixture; None of networks and of classifiers made elsewhere, which have none that can be
    written to a file."""
    parts = model.models if isinstance(model, MixtureModel) else (model,)
    weights = model.weights if isinstance(model, MixtureModel) else np.ones(1)
    linear = [one for one in parts if isinstance(one, LINEAR)]
    if len(linear) != len(parts):
        return None
    kept = [
        (one, (1.0 - blindly.share) * float(w))
        for one, w in zip(linear, weights, strict=True)
        if blindly.share < 1.0
    ]
    kept += [(always(linear[0], k), blindly.share * p) for k, p in enumerate(blindly.by) if p > 0.0]
    return MixtureModel([one for one, _ in kept], [share for _, share in kept])


def always(like: LinearModel | GroupedLinearModel, k: int) -> LinearModel:
    """A linear model that decides for class k, whatever the row."""
    linear = like.linear if isinstance(like, GroupedLinearModel) else like
    intercept = np.zeros(len(linear.intercept))
    intercept[0 if len(intercept) == 1 else k] = -1.0 if len(intercept) == 1 and k == 0 else 1.0
    layout = RowLayout(linear.numbers, linear.code_sizes)
    return LinearModel(
        np.zeros_like(linear.weights), intercept, classes=linear.classes, layout=layout
    )


def outcome_of(outcome: Outcome, blindly: Blindly) -> Outcome:
    """What was released of the model, of the mixture."""
    found, left = outcome.comparison, 1.0 - blindly.share
    values, spread = blindly.mixed(outcome.names, outcome.values), left * outcome.spread
    sampling = None if outcome.sampling is None else left * outcome.sampling
    compared = None if found is None else comparison_of(found, blindly)
    return replace(
        outcome,
        values=values,
        spread=spread,
        sampling=sampling,
        comparison=compared,
        weight_noise=None,
    )


def comparison_of(found: Comparison, blindly: Blindly) -> Comparison:
    """The mixture beside the same baselines."""
    choice = Choice(1.0 - blindly.share, 0.0, blindly.share * np.asarray(blindly.by))
    return program.comparison_of(found, choice, None)[0]


def baselines_of(
    before: BaselineReport | None,
    compared: Comparison | None,
    classes: Sequence[Hashable],
    blindly: Blindly,
) -> BaselineReport | None:
    """The report of baselines, of the mixture."""
    if before is None or compared is None:
        return None
    named = f"{before.remark}; of these decisions " if before.remark else ""
    found = of_comparison(compared, classes, handed_out=MIXTURE, remark=f"{named}{blindly.words}")
    assert found is not None
    free = {line.name: line.remark for line in before.lines}
    return replace(
        found,
        lines=tuple(replace(line, remark=free.get(line.name, line.remark)) for line in found.lines),
    )


# ------------------------------ coded
# The face that estimators of coded rows share: how X is read at prediction. Abstract; `fit` is
# each one's own.


class CodedReader(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What reads X at prediction as the coding of the fit does."""

    coding_: Coding
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    def _blocks(self, X: TableLike) -> Iterator[RowBlock]:
        check_is_fitted(self, "model_")
        if isinstance(X, RowSource | RowBlock):
            return self.coding_.blocks(X)
        refuse_duplicates(X, "X")
        columns = (isinstance(X, Mapping) and not issparse(X)) or (
            isinstance(X, np.ndarray) and X.dtype.names is not None
        )
        with as_ours("X"):
            if axes_of(X) != 2 and not columns:
                refuse_one_column(X)
                check_array(X)  # says how to reshape it
            if not self._lacks_only_groups(X) and not columns:
                validate_data(self, X, reset=False, skip_check_array=True)
        return self.coding_.blocks(X)

    def _lacks_only_groups(self, X: object) -> bool:
        """Whether X has all features by name: what is not there was sensitive, or is not read at
        all by a schema."""
        shown = _column_names(X)
        # a schema, which finds its columns itself, or coded rows
        if not isinstance(self.coding_, TableCoding):
            return shown is not None
        columns = self.coding_.columns
        features = [feature.name for feature in self.coding_.features]
        if isinstance(X, Mapping) and hasattr(self, "feature_names_in_"):
            lacking = [name for name in features if name not in X]
            if lacking:
                remedy = "Pass the columns of the fit."
                raise InputError.expected(f"columns {lacking}", of="X", got=shown, remedy=remedy)
            return True
        if len(features) == len(columns):
            return False
        if shown is None:
            return (shape_of(X) or ())[1:] == (len(features),)
        return [name for name in shown if name in columns] == [
            name for name in columns if name in shown
        ] and set(features) <= set(shown) <= set(columns)


class CodedEstimator(Planning, Recorded, CodedReader, ABC):
    """An estimator of rows that a coding makes of X. Abstract."""

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__score: ClassVar = {"sample_weight": True}

    privacy_: PrivacyStatement
    cells_: Cells | None
    groups_: tuple[Any, ...]

    @abstractmethod
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> CodedEstimator:
        """Fit."""

    @property
    def _is_randomized(self) -> bool:
        """Whether `predict` may draw."""
        return True

    def _publish_columns(self, training: Training, cells: Cells | None) -> None:
        """Write what is public of the columns and groups of a fit."""
        self.coding_, self.cells_ = training.coding, cells
        self.groups_ = () if cells is None else cells.keys
        self.n_features_in_ = training.n_features
        if training.columns:
            self.feature_names_in_ = np.array(training.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = not takes_steps(self.get_params(deep=False).get("model"))
        return tags


class CodedClassifier(ClassifierMixin, CodedEstimator, ABC):  # type: ignore[misc]
    """A classifier of rows that a coding makes of X. Abstract."""

    classes_: npt.NDArray[Any]

    def _publish_shape(self, training: Training, cells: Cells | None) -> None:
        """Write what is public of the columns, classes and groups of a fit."""
        self._publish_columns(training, cells)
        self.classes_ = as_array(training.classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


@contextmanager
def as_ours(of: str) -> Iterator[None]:
    """What scikit-learn says of an argument, in our family and with its words."""
    try:
        yield
    except (FairveilError, NotFittedError):
        raise
    except Exception as error:
        family = KindError if isinstance(error, TypeError) else InputError
        expected, got = "a table like that of the fit", f"another ({type(error).__name__})"
        raise family(
            complaint(expected=expected, of=of, got=got, remedy=f"{error}", quote=False)
        ) from None


def axes_of(X: TableLike) -> int:
    """How many axes; 2 where that cannot be seen."""
    axes = getattr(X, "ndim", 2)
    return axes if isinstance(axes, int) else 2


def as_array(classes: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Classes as an array of their own kind; of objects where kinds are mixed."""
    if len({type(value) for value in classes}) == 1:
        return np.array(classes)
    out = np.empty(len(classes), dtype=object)
    out[:] = classes
    return out


def labels_of(source: RowSource, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    codes = [block.labels for block in source.blocks()]
    if any(part is None for part in codes):
        raise InputError.expected("rows with labels", of="X", got="rows without", remedy="Pass y.")
    return np.asarray(classes[np.concatenate([part for part in codes if part is not None])])


def labels_in(X: TableLike, y: ColumnsLike, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as given, or those of coded rows."""
    return labels_of(X, classes) if y is None and isinstance(X, RowSource) else read_labels(y)


def expected_accuracy(
    law: Floats,
    classes: npt.NDArray[Any],
    X: TableLike,
    y: ColumnsLike,
    sample_weight: ColumnsLike,
) -> float:
    """The share of rows, by weight, that decisions of probabilities `law` (rows, classes) get
    right."""
    labels = labels_in(X, y, classes).tolist()
    same_length({"X": len(law), "y": len(labels)})
    weights = weights_of(sample_weight, len(labels))
    right = np.zeros(len(labels))
    for code, value in enumerate(classes.tolist()):
        of = np.fromiter((bool(value == label) for label in labels), bool, len(labels))
        right += law[:, code] * of
    return float(np.average(right, weights=weights))


def _column_names(X: TableLike) -> list[str] | None:
    """Names of a table's columns; None for arrays."""
    if isinstance(X, Mapping):
        return list(map(str, X))
    import narwhals as nw

    wrapped = nw.from_native(X, pass_through=True, eager_only=True)
    return list(map(str, wrapped.columns)) if isinstance(wrapped, nw.DataFrame) else None


# ------------------------------ coded_regressor
# The face that linear regressors of coded rows share: what a fitted one predicts, and in which
# units. Abstract.


class CodedRegressor(RegressorMixin, CodedEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """A linear regressor of rows that a coding makes of X; it predicts in the units of the target.
    Abstract.

    Fitted: `model_`, of coded rows; `target_`, the scale of the target; `coef_` and `intercept_` in
    the units of X and y, with `coef_names_`.
    """

    model_: RegressionModel
    target_: TargetScale
    coef_: Floats
    intercept_: float
    coef_names_: tuple[str, ...]

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


def in_coded_units(coefficients: Floats, coding: Coding, target: TargetScale) -> Floats:
    """Coefficients (vectors, 1 + width) for X and y as they came, the intercept first, as
    coefficients of coded rows.

    A coding's way back is linear in weights and intercept: it is asked for the unit vectors, and
    undone.
    """
    width = coding.layout.width
    weights, intercepts = coding.in_input_units(
        np.vstack([np.zeros(width), np.eye(width)]), np.eye(1 + width)[0]
    )
    # line j: what the j-th coefficient of coded rows is
    back = np.column_stack([intercepts, weights])
    slopes, shifts = target.in_coded_units(coefficients[:, 1:], coefficients[:, 0])
    return np.asarray(np.linalg.solve(back.T, np.column_stack([shifts, slopes]).T).T)


# ------------------------------ curves
# What an additive model says of each number: its term of the score, as a curve with the noise of
# its steps.
#
#     term(x) = w x + f(x),    shifted so that its mean over the declared range (or between the outermost edges) is 0
#
# Where the bounds of a number are not known, x is where it lies along its edges.
#
# Guarantees (tests/estimators/test_curves.py):
# 1. Terms of all columns and one constant add up to the score.
# 2. Noise moves a step by no more than `noise` in standard deviation, to first order
#    (`methods.primal_dual.Plan.weight_noise`).

DEVIATIONS = 2.0


@dataclass(frozen=True, eq=False)
class Term(Shown):
    """One number's part of a linear score. `ends`: of the intervals, low to high; `left`, `right`:
    the term at both ends of each interval; `noise`: the standard deviation of a step, at most;
    None: not known."""

    name: str
    ends: Floats
    left: Floats
    right: Floats
    noise: float | None

    def parts(self) -> Iterator[Part]:
        """The picture."""
        yield self.chart()

    def chart(self) -> Curves:
        """The term against the number, and two deviations of the noise of its steps."""
        gap = 1e-9 * float(self.ends[-1] - self.ends[0])
        across = np.column_stack([self.ends[:-1] + gap, self.ends[1:] - gap]).ravel()
        up = np.column_stack([self.left, self.right]).ravel()
        band = DEVIATIONS * (self.noise or 0.0)
        points = tuple(zip(across.tolist(), up.tolist(), strict=True))
        low, high = (tuple((up + sign * band).tolist()) if band else () for sign in (-1.0, 1.0))
        notes: tuple[str, ...] = ("Above 0 it moves decisions towards the second class.",)
        if band:
            notes += (f"Noise of privacy moves a step by {band:.2g} or less, in 95 of 100 fits.",)
        elif self.noise is None:
            notes += ("How much of it is noise is not known.",)
        name = self.name if self.name.isprintable() else ascii(self.name)
        return Curves(
            title=f"Term of {name} in the score",
            across=Axis(name),
            up=Axis("added to the log-odds"),
            curves=(Curve(name, points, low, high),),
            notes=notes,
        )


def terms_of(coding: Coding, weights: Floats, noise: float | None) -> tuple[Term, ...]:
    """Of each number that has steps; `weights` of one score, in the units of the table, as `coef_`
    has them."""
    if coding.shapes is None:
        remedy = 'Fit with model="additive", and a table whose numbers get steps.'
        raise InputError.expected(
            "an additive model", of="terms", got="a linear one", remedy=remedy
        )
    at = coding.own_layout.width
    found = []
    for side in coding.shapes.steps:
        found.append(
            _term(coding, side, float(weights[side.place]), weights[at : at + side.size], noise)
        )
        at += side.size
    return tuple(found)


def _term(coding: Coding, side: Side, slope: float, steps: Floats, noise: float | None) -> Term:
    low, high = _range(coding, side)
    ends = np.array([low, *side.marks, high])
    line = slope * (side.placed(ends) if side.along else ends)
    left, right = line[:-1] + steps, line[1:] + steps
    widths = np.diff(ends)
    middle = float(((left + right) / 2.0 * widths).sum() / widths.sum())
    return Term(side.name, ends, left - middle, right - middle, noise)


def _range(coding: Coding, side: Side) -> tuple[float, float]:
    """The declared bounds; without a schema, a little more than the edges."""
    if isinstance(coding, SchemaCoding):
        scale = coding.encoding.numbers[side.place]
        return scale.center - scale.half, scale.center + scale.half
    return 2.0 * ANYWHERE[0], 2.0 * ANYWHERE[-1]


# ------------------------------ linear
# The face that linear classifiers share: what a fitted one predicts, and in which units. Abstract;
# `fit` is each one's own.

COEFFICIENTS = ("coef_", "intercept_", "coef_names_")


def _has_scores(estimator: object) -> bool:
    """A mixture of models has distributions of decisions, and no scores."""
    return not isinstance(parts_of(estimator).model, MixtureModel)


class LinearClassifier(CodedClassifier):
    """A classifier whose model is linear in coded rows, or a network on them. Abstract."""

    model_: LinearModel | NetworkModel | MixtureModel
    coef_: Floats
    intercept_: Floats
    coef_names_: tuple[str, ...]

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
        scores = np.concatenate(
            [cast(Any, self.model_).decision_scores(block) for block in self._blocks(X)]
        )
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @worded
    def predict_proba(self, X: TableLike) -> Floats:
        """Probability that the model gives each class.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return np.concatenate([self.model_.predict_proba(block) for block in self._blocks(X)])

    @worded
    def predict(self, X: TableLike, random_state: RandomState = None) -> npt.NDArray[Any]:
        """Predict the class of each row.

        A mixture draws a model for every row; other models decide without chance.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, as the labels were written.
        """
        generator(random_state)  # a seed that is none is refused, whether it is needed or not
        codes = self._codes(X, random_state)
        return np.asarray(self.classes_[codes])

    @property
    def _is_randomized(self) -> bool:
        return isinstance(parts_of(self).model, MixtureModel)

    def _codes(self, X: TableLike, random_state: RandomState = None) -> npt.NDArray[Any]:
        if isinstance(parts_of(self).model, MixtureModel):
            return draw_codes(self.predict_proba(X), random_state)
        return np.concatenate([self.model_.predict_codes(block) for block in self._blocks(X)])

    @worded
    def score(
        self, X: TableLike, y: ColumnsLike = None, sample_weight: ColumnsLike = None
    ) -> float:
        """Share of rows, by weight, whose class is predicted right: the expected one of a mixture.

        Returns
        -------
        float
            Accuracy, between 0 and 1.
        """
        found = self.predict_proba(X) if self._is_randomized else None
        shares = np.eye(len(self.classes_))[self._codes(X)] if found is None else found
        return expected_accuracy(shares, self.classes_, X, y, sample_weight)

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
                "Ask one of two classes, that is not a mixture or a network: randomised=False "
                "forbids mixtures."
            )
            got = type(self.model_).__name__
            raise InputError.expected("one linear score", of="terms", got=got, remedy=remedy)
        outcome = parts_of(self).outcome
        return terms_of(
            self.coding_,
            self.coef_[0],
            outcome.weight_noise if isinstance(outcome, Outcome) else None,
        )

    if not TYPE_CHECKING:  # or any name would be one of its attributes

        def __getattr__(self, name: str) -> object:
            """What has no coefficients says why."""
            model = vars(self).get("model_") if name in COEFFICIENTS else None
            what = f"{type(self).__name__!r} object has no attribute {name!r}"
            if isinstance(model, MixtureModel):
                what += (
                    ": the fit is a mixture of models, one of which is drawn for each row (see "
                    "model_.models, and baselines_). Pass randomised=False for one model"
                )
            elif model is not None:
                what += ": the model is a network (see model_)"
            raise AttributeError(what, name=name, obj=self)

    def _set_model(self, model: LinearModel, coding: Coding) -> None:
        coef, intercept = coding.in_input_units(model.weights, model.intercept)
        self.model_, self.coding_ = model, coding
        self.classes_ = as_array(model.classes)
        self.coef_, self.intercept_, self.coef_names_ = coef, intercept, coding.feature_names

    def _set_mixture(self, model: MixtureModel, coding: Coding) -> None:
        self.model_, self.coding_, self.classes_ = model, coding, as_array(model.classes)
        self._forget_coefficients()

    def _set_network(self, model: NetworkModel, coding: Coding) -> None:
        self.model_, self.coding_, self.classes_ = model, coding, as_array(model.classes)
        self._forget_coefficients()

    def _forget_coefficients(self) -> None:
        for name in COEFFICIENTS:  # of an earlier fit
            self.__dict__.pop(name, None)


# ------------------------------ modules
# Torch modules as models of estimators: what is handed in, and rows that come with more axes than
# two.


def flattened(X: TableLike, module: object) -> tuple[Any, tuple[int, ...] | None]:
    """For a module: X as (rows, numbers) and the shape of one row, where it has more axes than
    that; else X as it is."""
    axes = axes_of(X)
    if module is None or axes < 3 or isinstance(X, RowSource):
        return X, None
    array = np.asarray(X)
    return array.reshape(len(array), math.prod(array.shape[1:])), tuple(array.shape[1:])


def as_rows(X: TableLike, model: object) -> Any:
    """X as (rows, numbers) where the model is a network whose rows had a shape; anything else as it
    is."""
    axes = axes_of(X)
    if model is None or axes < 3 or isinstance(X, RowSource):
        return X
    parts: Any = model.models if isinstance(model, MixtureModel) else (model,)
    networks = (part for part in parts if part.kind == "network")
    shape = next((one.skeleton.input_shape for one in networks), None)
    array = np.asarray(X)
    if shape is None or array.shape[1:] != shape:
        remedy = "Pass rows of the shape of the fit, or (rows, numbers)."
        expected = "(rows, numbers)" if shape is None else f"rows of shape {shape}"
        raise InputError.expected(expected, of="X", got=f"shape {array.shape}", remedy=remedy)
    return array.reshape(len(array), math.prod(shape))


def skeleton_of(
    module: Any, training: Training, shape: tuple[int, ...] | None, device: object
) -> Skeleton | None:
    """The module, checked against the rows: a copy, so a fit changes nothing that it was given.
    None for a linear model."""
    if module is None:
        return None
    try:
        from ..models import Skeleton
    except ImportError as error:
        remedy = "pip install 'fairveil[torch]', or fit a linear model."
        raise InputError.expected(
            "torch, to use a module", of="model", got=str(error), remedy=remedy
        ) from error
    layout = training.rows.layout
    where = _default_device() if device is None else str(device)
    return Skeleton.of(module, layout.width, len(training.classes), input_shape=shape, device=where)


def model_of(skeleton: Skeleton, parameters: Floats, training: Training) -> NetworkModel:
    """The fitted network."""
    from ..models import NetworkModel

    return NetworkModel(
        skeleton.apart(parameters),
        parameters,
        classes=training.classes,
        layout=training.coding.layout,
    )


def _default_device() -> str:
    """A GPU where there is one."""
    from ..models.torch_network import default_device

    return default_device()
