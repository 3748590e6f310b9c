"""Scorers that hand the groups to a fairness measure, and to estimators that need them, with
metadata routing on or off."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from ... import _checks
from ..._types import ColumnsLike, TableLike
from ...errors import InputError
from ...tables.frames import table_of

RESPONSES = ("predict", "predict_proba")


@dataclass(frozen=True)
class FairScorer:
    """score = sign x metric(y, prediction, sensitive_features=groups, **options). Made by
    `fair_scorer`."""

    metric: Callable[..., float]
    greater_is_better: bool = True
    sensitive_features: tuple[str, ...] | None = None
    response: str = "predict"
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(
        self,
        estimator: object,
        X: TableLike,
        y: ColumnsLike,
        sample_weight: ColumnsLike = None,
        sensitive_features: ColumnsLike = None,
    ) -> float:
        """The score of a fitted estimator. The groups are those given, else the columns of X that
        were named."""
        given = sensitive_features if sensitive_features is not None else self.sensitive_features
        if given is None:
            raise InputError.expected(
                "groups",
                of="fair_scorer",
                got=None,
                remedy=(
                    "With sklearn.set_config(enable_metadata_routing=True) pass "
                    "params={'sensitive_features': ...}; "
                    "without it name columns of X: fair_scorer(metric, "
                    "sensitive_features='sex')."
                ),
            )
        options = dict(self.options)
        if sample_weight is not None:
            options["sample_weight"] = sample_weight
        if estimator_classes := self._classes(estimator):
            options.setdefault("classes", estimator_classes)
        groups = _columns(given, X)
        handed = {"sensitive_features": groups} if _takes_groups(estimator, self.response) else {}
        value = self.metric(
            y, getattr(estimator, self.response)(X, **handed), sensitive_features=groups, **options
        )
        return float(value) if self.greater_is_better else -float(value)

    def get_metadata_routing(self) -> MetadataRequest:
        """What the scorer wants to be handed: the groups always; weights where they are passed at
        all."""
        request = MetadataRequest(owner="FairScorer")
        request.score.add_request(param="sensitive_features", alias=True)
        request.score.add_request(param="sample_weight", alias=True)
        return request

    def _classes(self, estimator: BaseEstimator) -> tuple[Any, ...]:
        """Probabilities have a column a class, whichever of them occur in a fold."""
        return tuple(estimator.classes_.tolist()) if self.response == "predict_proba" else ()


def fair_scorer(
    metric: object,
    *,
    greater_is_better: bool = True,
    sensitive_features: str | list[str] | tuple[str, ...] | None = None,
    response: str = "predict",
    **options: object,
) -> FairScorer:
    """Scorer for `cross_val_score`, `GridSearchCV` and others from a metric that reads groups.

    Parameters
    ----------
    metric : callable
        ``metric(y, prediction, sensitive_features=groups)`` returns a number.
    greater_is_better : bool, default=True
        False for gaps: the score is then minus the metric.
    sensitive_features : str or list of str, default=None
        Names of columns of X, for use without metadata routing. None: groups are routed.
    response : {"predict", "predict_proba"}, default="predict"
        ``"predict_proba"``: expected rates of probabilities.
    **options
        Further arguments of the metric.

    Returns
    -------
    FairScorer
        A callable ``scorer(estimator, X, y)``.

    Examples
    --------
    >>> from fairveil.metrics import demographic_parity_gap
    >>> fair_scorer(
    ...     demographic_parity_gap, greater_is_better=False, sensitive_features="sex"
    ... ).sensitive_features
    ('sex',)
    """
    if not callable(metric):
        remedy = "Pass fairveil.demographic_parity_gap, for example."
        raise InputError.expected("a function", of="metric", got=metric, remedy=remedy)
    _checks.one_of(RESPONSES, response=response)
    names = (sensitive_features,) if isinstance(sensitive_features, str) else sensitive_features
    texts = (
        isinstance(names, (list, tuple))
        and len(names) > 0
        and all(isinstance(name, str) for name in names)
    )
    if names is not None and not texts:
        remedy = (
            "Pass names of columns of X; columns themselves go to the search, as "
            "params={'sensitive_features': ...}."
        )
        raise InputError.expected(
            "names", of="sensitive_features", got=type(names).__name__, remedy=remedy
        )
    return FairScorer(
        metric,
        bool(greater_is_better),
        None if names is None else tuple(names),
        response,
        tuple(sorted(options.items())),
    )


def _takes_groups(estimator: object, response: str) -> bool:
    """Whether its decisions need the groups: those of an `OddsPostProcessor`, or of a pipeline that
    ends in one, which hands them on."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    method = getattr(last, response, None)
    return method is not None and "sensitive_features" in inspect.signature(method).parameters


def _columns(given: object, X: TableLike) -> Any:
    """Columns of X where names were given; anything else as it is."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return given
    try:
        table = table_of(X)
    except InputError:
        table = None
    known = () if table is None else table.names
    if table is None or not set(names) <= set(known):
        if not isinstance(given, str) and len(names) == _length(X):
            return given  # a column of texts
        remedy = "Pass X as a data frame that has these columns."
        raise InputError.expected(
            f"columns of X {list(known)}", of="groups", got=list(names), remedy=remedy
        )
    from ...tables.frames import column_of

    columns = {name: column_of(_series(X, name), name) for name in names}
    return columns


def _series(X: Any, name: str) -> Any:
    return X[name]


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
