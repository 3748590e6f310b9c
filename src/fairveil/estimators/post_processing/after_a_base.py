"""What all post-processors share at prediction: what the base is shown, the groups, draws and the
score. Abstract."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ..._types import ColumnsLike, Floats, TableLike
from ...facts import Cells, RowSource
from ...models import PostProcessedModel, RandomState, ShiftedModel
from ...models.model import draw_codes
from ...tables.columns import same_length
from ..faces import as_array
from ..reading.columns import read_labels
from ..reading.fitted_parts import names_of_features
from ..reading.inputs import weights_of
from ..words import worded
from ..wrapped import grouping
from . import rows as post_rows


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
        if y is None and isinstance(X, RowSource):
            codes: npt.NDArray[Any] = np.concatenate(
                [np.asarray(block.labels) for block in X.blocks()]
            )
            labels = self.classes_[codes]
        else:
            labels = read_labels(y)
        same_length({"X": len(law), "y": len(labels)})
        place = {value: code for code, value in enumerate(self.model_.classes)}
        at = np.array([place.get(value, -1) for value in labels.tolist()], np.intp)
        right = np.where(at >= 0, law[np.arange(len(law)), at], 0.0)
        return float(np.average(right, weights=weights_of(sample_weight, len(labels))))

    # -- inside ------------------------------------------------------------------------------------

    def _features_of(self, X: TableLike) -> Any:
        names = names_of_features(self)
        no_features = (*self.sensitive_names_, *([self.unit] if isinstance(self.unit, str) else []))
        return post_rows.features_of(self.estimator_, X, self.schema, names, no_features)

    def _ids(
        self, X: TableLike, sensitive_features: ColumnsLike, rows: int
    ) -> npt.NDArray[np.intp] | None:
        cells = self.model_.cells
        return (
            None
            if cells is None
            else grouping.group_ids(sensitive_features, X, cells, rows, self.groups_named_)
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
