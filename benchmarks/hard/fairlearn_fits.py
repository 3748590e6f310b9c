"""fairlearn's two methods, as distributions of decisions. Not private."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
NOTIONS = {
    "demographic_parity": ("DemographicParity", "demographic_parity"),
    "equalized_odds": ("EqualizedOdds", "equalized_odds"),
    "equal_opportunity": ("TruePositiveRateParity", "true_positive_rate_parity"),
    "false_positive_rate_parity": ("FalsePositiveRateParity", "false_positive_rate_parity"),
}
"""By ours: fairlearn's reduction, and its threshold optimiser's constraint."""


@dataclass(frozen=True, eq=False)
class Numeric:
    """Rows as fairlearn takes them."""

    X: Floats
    y: npt.NDArray[Any]
    groups: npt.NDArray[Any]


def _base() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver="newton-cholesky", C=10.0)


def reduction(
    train: Numeric, notion: str | None, bound: float | None, numeric: Callable[[Any], Numeric]
) -> Callable[[Any], Floats]:
    """ExponentiatedGradient over logistic regressions; the distribution is the mixture's own."""
    from fairlearn import reductions

    assert notion is not None
    asked = getattr(reductions, NOTIONS[notion][0])(difference_bound=bound)
    model = reductions.ExponentiatedGradient(_base(), asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train.X, train.y, sensitive_features=train.groups)
    return lambda rows: np.asarray(model._pmf_predict(numeric(rows).X))


def threshold(
    train: Numeric, notion: str | None, numeric: Callable[[Any], Numeric]
) -> Callable[[Any], Floats]:
    """ThresholdOptimizer after logistic regression; the distribution is that of its draws."""
    from fairlearn.postprocessing import ThresholdOptimizer

    assert notion is not None
    model = ThresholdOptimizer(
        estimator=_base(),
        constraints=NOTIONS[notion][1],
        objective="accuracy_score",
        predict_method="predict_proba",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train.X, train.y, sensitive_features=train.groups)

    def law(rows: Any) -> Floats:
        coded = numeric(rows)
        return np.asarray(model._pmf_predict(coded.X, sensitive_features=coded.groups))

    return law
