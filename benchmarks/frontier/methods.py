"""The methods that a figure can be drawn for: each fits coded rows, and gives every row's
probability of a decision.

A randomised classifier's numbers are expectations over its draws: `share` is exact, from
`predict_proba`. A rate-constrained classifier decides with certainty: its `predict_proba` is a
score, and `share` is 0 or 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil.errors import ConstraintNotMet

if TYPE_CHECKING:
    from .splits import Coded

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """One model. `share` of rows; `spent` epsilon; `reported`: the largest noisy training value
    that the fit released; `broken`: whether the report says "not met", not that it cannot tell."""

    share: Callable[[Coded], Floats]
    spent: float
    reported: float | None
    broken: bool


def dense(rows: Coded) -> Floats:
    """The one-hot matrix (rows, columns): numbers in [-1, 1], then a column a category."""
    block = rows.block
    flags = [
        np.eye(size)[codes] for codes, size in zip(block.codes, rows.layout.code_sizes, strict=True)
    ]
    return np.ascontiguousarray(np.hstack([block.numbers.T, *flags]), dtype=np.float64)


def _labels(rows: Coded) -> npt.NDArray[Any]:
    """The labels as they are written in the schema."""
    return np.asarray(rows.layout.classes)[rows.block.labels]


def _groups(rows: Coded) -> npt.NDArray[Any]:
    """The sensitive column as codes."""
    assert rows.block.sensitive is not None
    return np.asarray(rows.block.sensitive[0])


def _fit(model: Any, *rows: Any, **groups: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)  # it is counted
        return model.fit(*rows, **groups)


def _fitted(model: Any, share: Callable[[Coded], Floats]) -> Fitted:
    report = model.constraint_report_
    reported = max((line.value for line in report.lines), default=None)
    return Fitted(share, model.privacy_.epsilon, reported, report.met is False)


def rate_constrained(train: Coded, asked: dict[str, Any]) -> Fitted:
    """Private descent under rate constraints, blind to the group at prediction."""
    model = _fit(fv.RateConstrainedClassifier(**asked), train)
    second = model.classes_[1]
    return _fitted(model, lambda rows: (model.predict(rows) == second).astype(np.float64))


def game(train: Coded, asked: dict[str, Any]) -> Fitted:
    """The oracle game, blind to the group at prediction: a uniform mixture of linear thresholds."""
    model = _fit(fv.OracleGameClassifier(**asked), train)
    return _fitted(model, lambda rows: np.asarray(model.predict_proba(rows)[:, 1]))


def group_objective(train: Coded, asked: dict[str, Any], **how: Any) -> Fitted:
    """The private linear-oracle loop of group objectives, blind to the group at prediction: a
    mixture of linear thresholds."""
    shared = {name: value for name, value in asked.items() if name != "constraints"}
    model = _fit(fv.GroupObjectiveClassifier("error", asked["constraints"], **how, **shared), train)
    return _fitted(model, lambda rows: np.asarray(model.predict_proba(rows)[:, 1]))


@lru_cache(maxsize=1)
def _logistic(train: Coded) -> Any:
    """Logistic regression of the dense rows, scaled by their own means and deviations: what
    post-processing starts from."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)).fit(
        dense(train), _labels(train)
    )


def post_processing(train: Coded, asked: dict[str, Any]) -> Fitted:
    """Post-processing of logistic regression (as in the paper's experiments), which reads the group
    at prediction.

    Features and labels are public: the base sees the training rows as they are, once for all fits
    on them.
    """
    base = _logistic(train)
    if asked["constraints"] is None:  # what it starts from; nothing is asked about anybody's group
        second = base.classes_[1]
        return Fitted(
            lambda rows: (base.predict(dense(rows)) == second).astype(np.float64), 0.0, None, False
        )
    shared = {
        name: value
        for name, value in asked.items()
        if name not in ("constraints", "unsafe_data_dependent_bounds")
    }
    # the paper's derived predictor; by scores: benchmarks/post_processing_errors.py
    shared["predict_method"] = "predict"
    model = fv.OddsPostProcessor(base, asked["constraints"], **shared)
    _fit(model, dense(train), _labels(train), sensitive_features=_groups(train))
    return _fitted(
        model,
        lambda rows: np.asarray(
            model.predict_proba(dense(rows), sensitive_features=_groups(rows))[:, 1]
        ),
    )


def fermi(train: Coded, asked: dict[str, Any]) -> Fitted:
    """DP-FERMI: loss plus strength times the mutual information of prediction and group. Blind to
    the group at prediction."""
    model = fv.FermiClassifier(**asked).fit(train)
    second = model.classes_[1]
    return Fitted(
        lambda rows: (model.predict(rows) == second).astype(np.float64),
        model.privacy_.epsilon,
        None,
        False,
    )


METHODS: dict[str, Callable[[Coded, dict[str, Any]], Fitted]] = {
    "rate-constrained": rate_constrained,
    "post-processing": post_processing,
    "game": game,
    "fermi": fermi,
    "group-objective": group_objective,
    "group-objective-regression": partial(group_objective, oracle="regression"),
    "group-objective-descent": partial(group_objective, oracle="descent"),
    "group-objective-frank-wolfe": partial(group_objective, method="frank-wolfe"),
}
BY_STRENGTH = ("fermi",)
"""Methods that are asked for a strength of the penalty, not for a gap: the larger, the fairer."""
