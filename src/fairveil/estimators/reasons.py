"""Reason codes: which columns lowered a person's score most, for models whose score adds up over
columns.

    part of column j  =  score(row) - score(row with column j as in the reference)

Guarantees (tests/estimators/test_estimators_reasons.py):
1. Parts add up to the score less the reference's, or it is refused: the model has interactions.
2. Nothing but the given rows and the model is read; codes of one row hang on that row alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _checks
from .._types import TableLike
from ..errors import InputError

ADDS_UP = 1e-6
"""By how much of the largest part the sum may miss the score: the rounding of float32 rows."""


def reason_codes(
    model: Any, X: TableLike, reference: Mapping[Any, object] | Sequence[object], *, count: int = 4
) -> list[tuple[tuple[Any, float], ...]]:
    """Name the columns that lowered the score of each row most, against a reference.

    Take as reference a row that the lender states, such as the mean of those who were approved. Of an
    adverse decision these are the principal reasons. The model must have a score of two classes that
    adds up over columns: a linear or an additive model, of this library or another.

    Parameters
    ----------
    model : fitted classifier
        It must have a `decision_function`, which is above 0 for the favourable class.
    X : table or array
        Rows, as the model takes them.
    reference : mapping of str, or sequence
        A value for each column, in the columns' order or by name.
    count : int, default=4
        Name so many columns at most.

    Returns
    -------
    list of tuples of (column, part)
        For each row, largest reduction first; fewer where fewer columns lowered the score.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = LogisticRegression().fit(X, X @ [1.0, 2.0, 0.0] > 0)
    >>> [column for column, _ in reason_codes(model, X[:1] * 0 - 1, [0.0, 0.0, 0.0])[0]][:2]
    [1, 0]
    """
    most = _checks.whole(at_least=1, count=count)
    table: Any = X if hasattr(X, "iloc") or isinstance(X, Mapping) else np.asarray(X)
    names = list(range(table.shape[1])) if isinstance(table, np.ndarray) else list(table)
    by_name = isinstance(reference, Mapping)
    given: Any = reference if by_name else dict(zip(names, reference, strict=False))
    if not hasattr(model, "decision_function") or set(given) != set(names):
        remedy = f"Pass a linear or additive model, and a value for each of {len(names)} columns."
        raise InputError.expected(
            "a score and its columns", of="reference", got=len(given), remedy=remedy
        )

    def scores(columns: Sequence[Any]) -> Any:
        """With these columns as in the reference."""
        if isinstance(table, np.ndarray):
            changed: Any = table.astype(np.float64, copy=True)
            for name in columns:
                changed[:, name] = given[name]
        else:
            changed = dict(table) if isinstance(table, Mapping) else table.copy()
            for name in columns:
                changed[name] = np.full(len(table[name]), given[name])
        return np.asarray(model.decision_function(changed), np.float64)

    score = scores(())
    parts = np.stack([score - scores([name]) for name in names], axis=-1)
    apart = score - scores(names)
    missed = np.abs(parts.sum(axis=-1) - apart) if score.ndim == 1 else np.array([np.inf])
    if (missed > ADDS_UP * (1.0 + np.abs(parts).sum(axis=-1))).any():
        remedy = "Pass a linear or additive model of two classes, without interactions."
        got = f"{type(model).__name__}, whose parts miss the score by {missed.max():.3g}"
        raise InputError.expected(
            "a score that adds up over columns", of="model", got=got, remedy=remedy
        )
    order = np.argsort(parts, axis=1, kind="stable")[:, :most]
    return [
        tuple((names[j], float(row[j])) for j in first if row[j] < 0.0)
        for row, first in zip(parts, order, strict=True)
    ]
