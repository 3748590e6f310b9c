"""A fit of linear rules to groups that were released once, told as fits on rows are told: a model,
an outcome, a statement.

Everything is post-processing of the release and of public rows, so it costs nothing further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from ..._types import ColumnsLike, Floats, TableLike
from ...errors import InputError
from ...fairness import deviations
from ...learning import Outcome
from ...learning.descent import Reason
from ...models import LinearModel
from .. import fitting
from ..settings import Descent, knobs
from .classifier import Searched, searched
from .groups import ReleasedGroups

CONFIDENCE, TWO_SIDED = 0.95, 1.959964
UNUSED = ("model", "checkpoint", "unit", "max_rows_per_unit")
"""The last two: who is protected was decided by the release."""


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedFit:
    """What was found: linear rules with their shares, and how it compares with what was
    required."""

    rules: tuple[LinearModel, ...]
    shares: tuple[float, ...]
    outcome: Outcome


def fit_released(
    estimator: BaseEstimator,
    X: TableLike,
    y: ColumnsLike,
    released: ReleasedGroups,
    sample_weight: ColumnsLike,
) -> ReleasedFit:
    """The best mixture of linear rules for the estimator's constraints; one rule where
    `randomised=False`."""
    _require_what_a_release_gives(estimator, sample_weight)
    found = searched(released, X, y, estimator.constraints, None, 1)
    bounds = found.soft.system.bounds
    choose = found.candidates.single if estimator.randomised is False else found.candidates.mixture
    shares, _ = choose(bounds)
    kept = np.flatnonzero(shares)
    law = np.clip(np.sum([shares[j] * found.laws[j] for j in kept], axis=0), 0.0, 1.0)
    rules = tuple(found.rules[j] for j in kept)
    return ReleasedFit(
        rules,
        tuple(shares[kept].tolist()),
        _outcome(found, law, rules, X, y, estimator.constraints),
    )


def _require_what_a_release_gives(estimator: BaseEstimator, sample_weight: ColumnsLike) -> None:
    if estimator.protects != "sensitive_features":
        remedy = (
            "Pass protects='sensitive_features', which is what a release of groups protects, or "
            "fit to the groups themselves."
        )
        expected, of = "'sensitive_features' with released groups", "protects"
        raise InputError.expected(expected, of=of, got=estimator.protects, remedy=remedy)
    if sample_weight is not None:
        remedy = "Leave sample_weight out, or weigh the rows of released.expanded(X, y)."
        raise InputError.expected(
            "no weights with released groups", of="sample_weight", got="some", remedy=remedy
        )
    fitting.refuse_unused(estimator, dict.fromkeys(UNUSED, "with released groups"))
    fitting.refuse_unused(estimator._solver, dict.fromkeys(knobs(Descent), "with released groups"))


def _outcome(
    found: Searched,
    law: Floats,
    rules: tuple[LinearModel, ...],
    X: TableLike,
    y: ColumnsLike,
    constraints: object,
) -> Outcome:
    """`spread`: half the 95 % interval over the noise as a deviation (it is for all rates together,
    so rather too wide), and the deviation by chance within clusters beside it."""
    soft, released = found.soft, found.released
    told = released.rates(X, y, law, constraints, confidence=CONFIDENCE) if len(soft.system) else ()
    histogram = soft.histogram(law)
    first = rules[0]
    return Outcome(
        weights=np.column_stack([first.intercept, first.weights]),
        reason=Reason.BEST,
        rounds=0,
        names=tuple(one.name for one in told),
        bounds=np.array([one.bound for one in told]),
        values=np.array([one.value for one in told]),
        spread=np.array(
            [math.hypot((one.high - one.low) / (2.0 * TWO_SIDED), one.within) for one in told]
        ),
        duals=np.zeros(len(told)),
        counts=histogram.sum(axis=2),
        rows=float(len(soft.rows.labels)),
        looks=len(found.rules),
        sampling=deviations(soft.system, histogram, histogram.sum(axis=2)),
    )
