"""The face that linear classifiers share: what a fitted one predicts, and in which units. Abstract;
`fit` is each one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..._types import ColumnsLike, Floats, TableLike
from ...errors import InputError
from ...facts import RowSource
from ...learning.outcome import Outcome
from ...models import LinearModel, MixtureModel
from ...models.model import RandomState, draw_codes, generator
from ...tables.columns import same_length
from ..reading.coding import Coding
from ..reading.columns import read_labels
from ..reading.fitted_parts import parts_of
from ..reading.inputs import weights_of
from ..words import worded
from .coded import CodedClassifier, as_array, labels_of, same
from .curves import Term, terms_of

if TYPE_CHECKING:
    from ...models import NetworkModel

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
        labels = (
            labels_of(X, self.classes_)
            if y is None and isinstance(X, RowSource)
            else read_labels(y)
        ).tolist()
        same_length({"X": len(shares), "y": len(labels)})
        weights = weights_of(sample_weight, len(labels))
        right = np.zeros(len(labels))
        for code, value in enumerate(self.classes_.tolist()):
            of = np.fromiter((same(value, label) for label in labels), bool, len(labels))
            right += shares[:, code] * of
        return float(np.average(right, weights=weights))

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
