"""Names of fairlearn for estimators of this library, where signatures match, and group tables as
fairlearn's `MetricFrame`.

What fairlearn takes and this library has no place for is refused with its reason, never ignored.
Fits here spend a privacy budget: `epsilon`, `delta` and their like stand beside fairlearn's own
arguments.

Guarantees (tests/compat/test_fairlearn.py):
1. A constraint of these names is at least as strict as fairlearn's of the same bound. With the
   group's share p of the people,
   |P(h | a) - P(h)| = (1 - p) |P(h | a) - P(h | not a)|, and the right-hand gap is what is bounded here; the same within each
   event that a notion conditions on. (A rate of nobody is 0 to fairlearn, and undefined here.)
2. The measures are fairlearn's numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from sklearn.linear_model import LogisticRegression

from .. import _checks
from .. import fairness as notions
from .._types import ColumnsLike
from ..errors import InputError
from ..estimators import OddsPostProcessor, OracleGameClassifier
from ..facts import Schema
from ..metrics import demographic_parity_gap, equalized_odds_gap, group_table
from ..metrics.inputs import read_decisions
from ..models.model import RandomState
from .libraries import missing

BOUND = 0.01
"""fairlearn's own bound where nobody states one."""
BETWEEN = "between_groups"
THRESHOLDS: Mapping[str, type[Any]] = {
    "demographic_parity": notions.DemographicParity,
    "selection_rate_parity": notions.DemographicParity,
    "equalized_odds": notions.EqualizedOdds,
    "true_positive_rate_parity": notions.EqualOpportunity,
    "false_negative_rate_parity": notions.EqualOpportunity,
    "false_positive_rate_parity": notions.FalsePositiveRateParity,
    "true_negative_rate_parity": notions.FalsePositiveRateParity,
}
"""Of two classes a rate and one minus that rate have the same gaps."""


def DemographicParity(  # noqa: N802  # fairlearn's name
    *,
    difference_bound: float | None = None,
    ratio_bound: float | None = None,
    ratio_bound_slack: float = 0.0,
) -> notions.DemographicParity:
    """Each group's selection rate against everybody else's, at most `difference_bound` apart."""
    return notions.DemographicParity(
        _bound(difference_bound, ratio_bound, ratio_bound_slack), compare="rest"
    )


def EqualizedOdds(  # noqa: N802
    *,
    difference_bound: float | None = None,
    ratio_bound: float | None = None,
    ratio_bound_slack: float = 0.0,
) -> notions.EqualizedOdds:
    """The same given each label."""
    return notions.EqualizedOdds(
        _bound(difference_bound, ratio_bound, ratio_bound_slack), compare="rest"
    )


def TruePositiveRateParity(  # noqa: N802
    *,
    difference_bound: float | None = None,
    ratio_bound: float | None = None,
    ratio_bound_slack: float = 0.0,
) -> notions.EqualOpportunity:
    """The same given the second label."""
    return notions.EqualOpportunity(
        _bound(difference_bound, ratio_bound, ratio_bound_slack), compare="rest"
    )


def FalsePositiveRateParity(  # noqa: N802
    *,
    difference_bound: float | None = None,
    ratio_bound: float | None = None,
    ratio_bound_slack: float = 0.0,
) -> notions.FalsePositiveRateParity:
    """The same given the first label."""
    return notions.FalsePositiveRateParity(
        _bound(difference_bound, ratio_bound, ratio_bound_slack), compare="rest"
    )


def ErrorRateParity(  # noqa: N802
    *,
    difference_bound: float | None = None,
    ratio_bound: float | None = None,
    ratio_bound_slack: float = 0.0,
) -> notions.ErrorRateParity:
    """Errors in place of selections."""
    return notions.ErrorRateParity(
        _bound(difference_bound, ratio_bound, ratio_bound_slack), compare="rest"
    )


def ExponentiatedGradient(  # noqa: N802
    estimator: object = None,
    constraints: object = None,
    *,
    max_iter: int | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    protects: str = "records",
    schema: Schema | None = None,
    random_state: RandomState = None,
    ledger: object = None,
    **others: object,
) -> OracleGameClassifier:
    """A game between a learner and an auditor who plays exponentiated gradient: an
    `OracleGameClassifier`, a mixture too.

    Parameters
    ----------
    estimator : LogisticRegression or None, default=None
        The learner is this library's own linear one, which is private; a LogisticRegression with
        its default parameters stands for it. Any other estimator is refused: where the sensitive
        features alone are protected, see `fairveil.release_groups`.
    constraints : constraint, default=None
        One of these names, or a notion of `fairveil`.
    max_iter : int, default=None
        Rounds of the game; None: chosen from the guarantee.
    epsilon, delta, protects, schema, random_state, ledger
        As in `OracleGameClassifier`.
    """
    _refuse(others, "ExponentiatedGradient")
    if estimator is not None and not _is_default(estimator):
        remedy = (
            "Pass None. For other learners: fairveil.release_groups, and "
            "ReleasedClassifier(estimator=...)."
        )
        got = (
            repr(estimator)
            if isinstance(estimator, LogisticRegression)
            else type(estimator).__name__
        )
        expected = "None or a LogisticRegression with its default parameters"
        raise InputError.expected(expected, of="estimator", got=got, remedy=remedy, quote=False)
    return OracleGameClassifier(
        constraints,
        rounds=max_iter,
        epsilon=epsilon,
        delta=delta,
        protects=protects,
        schema=schema,
        random_state=random_state,
        ledger=ledger,
    )


def ThresholdOptimizer(  # noqa: N802
    *,
    estimator: object = None,
    constraints: str = "demographic_parity",
    predict_method: str = "auto",
    prefit: bool = False,
    tol: float | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    protects: str = "records",
    schema: Schema | None = None,
    random_state: RandomState = None,
    ledger: object = None,
    **others: object,
) -> OddsPostProcessor:
    """Thresholds for each group: an `OddsPostProcessor`, which minimizes the error.

    Parameters
    ----------
    estimator : classifier, default=None
        As in `OddsPostProcessor`.
    constraints : str, default="demographic_parity"
        A name of fairlearn's.
    predict_method : str, default="auto"
        How the classifier is asked.
    prefit : bool, default=False
        Whether it is fitted. Here a fitted classifier is never fitted again, and another one is
        cloned.
    tol : float, default=None
        The largest gap; None: 0.
    epsilon, delta, protects, schema, random_state, ledger
        As in `OddsPostProcessor`.
    """
    if others.get("objective") == "accuracy_score":
        others.pop("objective")
    if others.get("flip") is False:
        others.pop("flip")
    _refuse(others, "ThresholdOptimizer")
    _checks.one_of(THRESHOLDS, constraints=constraints)
    _require_state(estimator, _checks.truth(prefit=prefit))
    return OddsPostProcessor(
        estimator,
        THRESHOLDS[constraints](0.0 if tol is None else _checks.fraction(tol=tol)),
        predict_method=predict_method,
        epsilon=epsilon,
        delta=delta,
        protects=protects,
        schema=schema,
        random_state=random_state,
        ledger=ledger,
    )


def demographic_parity_difference(
    y_true: ColumnsLike,
    y_pred: ColumnsLike,
    *,
    sensitive_features: ColumnsLike,
    method: str = BETWEEN,
    sample_weight: ColumnsLike = None,
) -> float:
    """The largest difference of selection rates between two groups."""
    _checks.one_of((BETWEEN,), method=method)
    return demographic_parity_gap(y_true, y_pred, sensitive_features, sample_weight=sample_weight)


def equalized_odds_difference(
    y_true: ColumnsLike,
    y_pred: ColumnsLike,
    *,
    sensitive_features: ColumnsLike,
    method: str = BETWEEN,
    sample_weight: ColumnsLike = None,
    agg: str = "worst_case",
) -> float:
    """The largest difference of true-positive or false-positive rates between two groups."""
    _checks.one_of((BETWEEN,), method=method)
    _checks.one_of(("worst_case",), agg=agg)
    return equalized_odds_gap(y_true, y_pred, sensitive_features, sample_weight=sample_weight)


def metric_frame(
    y: ColumnsLike,
    prediction: ColumnsLike,
    sensitive_features: ColumnsLike,
    *,
    positive: object = None,
) -> Any:
    """The rates of `fairveil.group_table` as a `fairlearn.metrics.MetricFrame`, with its
    `by_group`, `difference()` and plots.

    Exact numbers of the rows given: publishing them is not private. There is no way back: a
    MetricFrame keeps neither rows nor counts.
    """
    try:
        from fairlearn import metrics
    except ImportError as error:
        raise missing(error, "fairlearn") from None
    import numpy as np
    import pandas as pd

    read = read_decisions(y, prediction, sensitive_features)
    table = group_table(y, prediction, sensitive_features, positive=positive)
    if read.labels is None or read.decisions is None or len(table.classes) != 2:
        remedy = "fairveil.group_table takes more classes, and probabilities."
        got = f"{len(table.classes)} classes" if read.decisions is not None else "probabilities"
        raise InputError.expected(
            "decisions of two classes", of="prediction", got=got, remedy=remedy, quote=False
        )
    code = table.classes.index(table.positive)
    truth, decided = (np.asarray(line == code, int) for line in (read.labels, read.decisions))
    keys = read.cells.columns
    codes = np.unravel_index(np.asarray(read.cell_ids[0]), read.cells.sizes)
    groups = {
        str(name): [values[at] for at in line]
        for name, values, line in zip(read.cells.names, keys, codes, strict=True)
    }
    chosen = {
        "selection_rate": metrics.selection_rate,
        "true_positive_rate": metrics.true_positive_rate,
        "false_positive_rate": metrics.false_positive_rate,
        "count": metrics.count,
    }
    return metrics.MetricFrame(
        metrics=chosen, y_true=truth, y_pred=decided, sensitive_features=pd.DataFrame(groups)
    )


def _bound(difference: float | None, ratio: float | None, slack: float) -> float:
    if ratio is not None or slack:
        remedy = "fairveil.SelectionRateRatio(min_ratio) bounds ratios of selection rates."
        got = f"ratio_bound={ratio}, ratio_bound_slack={slack}"
        raise InputError.expected(
            "a difference_bound", of="ratio_bound", got=got, remedy=remedy, quote=False
        )
    return BOUND if difference is None else _checks.fraction(difference_bound=difference)


def _is_default(estimator: object) -> bool:
    if not isinstance(estimator, LogisticRegression):
        return False
    usual = LogisticRegression().get_params()
    return all(_same(value, usual[name]) for name, value in estimator.get_params().items())


def _same(one: object, other: object) -> bool:
    both_nan = (
        isinstance(one, float)
        and isinstance(other, float)
        and math.isnan(one)
        and math.isnan(other)
    )
    return both_nan or one == other


def _refuse(others: Mapping[str, Any], of: str) -> None:
    if others:
        _no_place(of, next(iter(others)))


def _no_place(of: str, name: str) -> NoReturn:
    remedy = "Leave it out: the fit here has nothing that it would set."
    raise InputError.expected("arguments that have a place here", of=of, got=name, remedy=remedy)


def _require_state(estimator: object, prefit: bool) -> None:
    from ..estimators.wrapped import bases

    if estimator is not None and bases.is_fitted(estimator) != prefit:
        got = "one that is fitted" if not prefit else "one that is not"
        remedy = (
            "A fitted classifier is taken as it is here, and another one is fitted: say which it "
            "is by prefit=."
        )
        raise InputError.expected(
            f"a classifier as prefit={prefit} says", of="estimator", got=got, remedy=remedy
        )
