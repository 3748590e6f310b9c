"""The face that linear regressors of coded rows share: what a fitted one predicts, and in which
units. Abstract."""

from __future__ import annotations

from abc import ABC
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from ..._types import ColumnsLike, Floats, TableLike
from ...errors import InputError
from ...facts import RowSource
from ...facts.rows import CodedSource
from ...models import RegressionModel
from ...tables.columns import same_length
from ..reading.coding import Coding
from ..reading.columns import read_targets
from ..reading.inputs import weights_of
from ..reading.targets import TargetScale
from ..words import worded
from .coded import CodedEstimator


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
