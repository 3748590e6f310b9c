"""What a post-processor is given: the rows to count, and what its base is shown of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..._types import ColumnsLike, TableLike
from ...core.promise import Promise
from ...errors import InputError, PrivacyError
from ...facts import Cells, RowSource
from ...learning.game import Equilibrium
from ...learning.least_squares import RegressionOutcome
from ...learning.objectives import Found
from ...learning.outcome import Outcome
from .. import fitting
from ..reading import cautions
from ..reading.fitted_parts import classes_of, names_of_features, parts_of
from ..reading.training import ReadOptions
from ..reading.units import Whose
from ..wrapped import base_columns, bases, decided, unlabelled
from ..wrapped.bases import Base, BaseOptions
from ..wrapped.decided import DecidedRows


def read(
    estimator: BaseEstimator,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    promise: Promise,
    *,
    labelled: bool = True,
    groups: Cells | None = None,
    whose: Whose | None = None,
) -> DecidedRows:
    """The rows of a fit, checked against the promise and the base of `estimator`, an unfitted
    post-processor. `labelled`: else nobody needs labels, and a base that is fitted says the
    classes. `groups`: where they are public. `whose`: each row is."""
    base = estimator.estimator
    ways: ReadOptions = fitting.ways_of(
        estimator.schema, False, False, estimator.max_sample_weight, promise, whose=whose
    )
    fitted = base is not None and bases.is_fitted(base)
    known = as_tuple(classes_of(base)) if fitted else ()
    if labelled:
        asked = decided.read_rows(X, y, sensitive_features, sample_weight, ways, known)
    else:
        asked = unlabelled.read_rows(X, sensitive_features, sample_weight, ways, known)
    if groups is not None:
        asked = unlabelled.with_groups(asked, groups)
    fitting.require_cap(asked.training, promise)
    rows = fitting.public_rows_of(estimator.public_rows, asked.training, promise)
    ours = base is None or bases.carries_a_promise(base)
    cautions.of_promise(
        promise, asked.training.rows.exact_count if promise.rows_are_public else rows
    )
    steps = cautions.of_pipeline(asked.training, promise)
    if steps:
        outside = (*asked.training.not_covered, *(step.sentence for step in steps))
        asked = replace(asked, training=replace(asked.training, not_covered=outside))
    if isinstance(X, RowSource) and not ours:
        remedy = "Pass arrays or a table, or a classifier of Fairveil, which takes coded rows."
        raise InputError.expected(
            "features for the base classifier", of="X", got=type(X).__name__, remedy=remedy
        )
    # Of ours that were fitted before, too: a column that was public to their guarantee may be
    # protected by this one.
    coding = parts_of(bases.thawed(base)).coding if ours and fitted else None
    read_ones = read_by(base) if coding is None else coding.columns_read
    names = set(read_ones) & set(asked.training.rows.layout.sensitive_names)
    if names and promise.is_private and promise.protects == "sensitive_features":
        raise PrivacyError.expected(
            "a base classifier that does not read what is protected",
            of="estimator",
            got=f"one fitted with {sorted(names)} among its features",
            remedy="Fit it without those columns.",
        )
    return asked


def known_rows(
    public_rows: object, asked: DecidedRows, promise: Promise, base: Base
) -> float | None:
    """The number of rows, where it is public or nothing is promised; else what the base released of
    it, which is charged."""
    if promise.rows_are_public or not promise.is_private:
        return float(asked.training.rows.exact_count)
    stated: float | None = fitting.public_rows_of(public_rows, asked.training, promise)
    if stated is None and base.is_ours and base.spent:
        found = parts_of(bases.thawed(base.estimator)).outcome
        stated = (
            found.rows
            if isinstance(found, Outcome | Equilibrium | Found | RegressionOutcome)
            else None
        )
    return None if stated is None else float(stated)


def base_of(
    estimator: object, asked: DecidedRows, wishes: BaseOptions, given: Sequence[Any], *, spare: bool
) -> Base:
    """The base; ours read the table as it came, and leave the groups out by themselves."""
    X, y, sensitive_features, sample_weight = given
    if estimator is not None and not bases.carries_a_promise(estimator):
        X, y, sensitive_features = asked.features, asked.labels, None
    with cautions.said_around():
        return bases.prepare(estimator, wishes, X, y, sensitive_features, sample_weight, spare)


def shown(asked: DecidedRows, base: Base, X: TableLike) -> Any:
    """What the base decides about in training."""
    names = asked.training.rows.layout.sensitive_names
    return X if set(read_by(base.estimator)) & set(names) else asked.features


def features_of(
    base: object, X: TableLike, schema: object, names: Sequence[str], sensitive: Sequence[str]
) -> Any:
    """X as the base takes it: without sensitive columns, and, for another's base under a schema,
    features alone (`names`)."""
    decided.refuse_unseen(X)
    read_ones = read_by(base)
    if schema is not None and not bases.carries_a_promise(base):
        return (
            base_columns.without(
                X, [name for name in base_columns.names_of(X) if name not in names]
            )
            if names
            else X
        )
    return base_columns.without(X, [name for name in sensitive if name not in read_ones])


def as_tuple(classes: object) -> tuple[Any, ...]:
    """Classes as plain Python values."""
    return tuple(np.asarray(classes).tolist())


def read_by(estimator: object) -> tuple[str, ...]:
    """Names of the columns that another's fitted base reads; ours leave sensitive columns out by
    themselves."""
    if estimator is None or bases.carries_a_promise(estimator):
        return ()
    return names_of_features(estimator)
