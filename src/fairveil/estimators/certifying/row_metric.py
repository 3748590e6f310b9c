"""A bounded number for each row by a function of the user's, as a coin: its mean is then a rate,
with a rate's exact bounds.

A value v between `low` and `high` becomes one coin that falls on 1 with probability (v - low) /
(high - low), thrown with secure noise. P(coin = 1) is the mean of v in the unit of the coin,
whatever the distribution of v is, so its bound is a binomial one: no variance is estimated, nothing
is assumed. Coins belong to rows, not to positions: each is new, and known to nobody
(theory.md#metric-coins).

Guarantees (tests/estimators/test_estimators_private_audit.py):
1. A value outside of the bounds is moved to the next bound; one that is not finite, or that the
   function fails on, counts as `low`. An exception is not shown. A function that fails on every row
   is refused.
2. The mean of coins is the mean of values, whatever these are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from ... import _checks
from ..._types import TableLike
from ...curator.questions.row_function import RowFunction
from ...curator.quiet.calls import Troubles
from ...curator.rows.block import EMPTY_FLOAT, EMPTY_INT, Block
from ...errors import InputError, KindError
from ...facts import RowLayout
from ...privacy.noise.sources import NoiseSource

MOST = 4
"""Metrics of one table: each doubles the number of counts."""
TRUSTED = "metrics are functions of the caller's: each was taken to look at one row alone"


@dataclass(frozen=True)
class RowMetric:
    """Number between `low` and `high` for each row, whose mean a private table shows by group.

    Parameters
    ----------
    function : callable
        ``function(X, y, prediction)`` returns one number for each row. Each may depend on its own
        row alone.
    low : float, default=0.0
        Least number, known without the data. Smaller numbers are clipped to it.
    high : float, default=1.0
        Largest number, known without the data. Larger numbers are clipped to it.

    See Also
    --------
    private_audit : Takes it in `metrics`.

    Examples
    --------
    >>> RowMetric(lambda X, y, prediction: 5.0 * (y > prediction) + (y < prediction), high=5.0).high
    5.0
    """

    function: Callable[[Any, Any, Any], Any]
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        function: Any = self.function
        if not callable(function):
            remedy = "Pass a function of X, y and prediction that returns one number a row."
            raise InputError.expected("a function", of="metric", got=function, remedy=remedy)
        for name, value in _checks.named(self, ("low", "high")).items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                remedy = "Pass RowMetric(function, low=0.0, high=5.0), for example."
                raise KindError.expected("a number", of=f"metric, {name}", got=value, remedy=remedy)
            _checks.normalise(self, **{name: float(value)})
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            remedy = (
                "Pass RowMetric(function, low=0.0, high=5.0), for example: bounds that are known "
                "without the data."
            )
            raise InputError.expected(
                "low below high", of="metric", got=(self.low, self.high), remedy=remedy
            )

    def coins(
        self, X: TableLike, y: Any, prediction: Any, uniforms: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.bool_]:
        """One coin for each row, whose chance is the scaled metric.

        Parameters
        ----------
        X : table or array
            Features.
        y : array
            Outcomes.
        prediction : array
            Decisions.
        uniforms : ndarray
            Uniform numbers in [0, 1), one a row.

        Returns
        -------
        ndarray of bool
            The coins.
        """
        rows = len(prediction)

        def scaled(block: Block) -> npt.NDArray[np.float64]:
            at = block.numbers[0].astype(np.intp)
            found = self.function(
                None if X is None else _safe_indexing(X, at),
                None if y is None else y[at],
                prediction[at],
            )
            values = np.asarray(found, np.float64).reshape(len(at), -1)
            values = np.where(np.isfinite(values), values, self.low)
            return (np.clip(values, self.low, self.high) - self.low) / (self.high - self.low)

        layout = RowLayout(1, (), (0, 1), (), ())
        numbers = np.arange(rows, dtype=np.float64)[np.newaxis]
        codes, sensitive = np.empty((0, rows), np.uint8), np.empty((0, rows), np.uint16)
        block = Block(
            layout,
            rows,
            numbers,
            EMPTY_INT,
            EMPTY_INT,
            codes,
            np.zeros(rows, np.int32),
            sensitive,
            EMPTY_FLOAT,
        )
        troubles = Troubles()
        asked = RowFunction(
            scaled,
            1,
            1.0,
            columns_read=frozenset({"features"}),
            title="a metric",
            _troubles=troubles,
        )
        values = asked.bounded(block, 1)[:, 0]
        if troubles and not values.any():
            remedy = (
                "Return one number a row: function(X, y, prediction), each as long as the table."
            )
            got = "errors, or another shape, on every row"
            raise InputError.expected("a number for each row", of="metric", got=got, remedy=remedy)
        return np.asarray(uniforms < values)


def metrics_of(given: object) -> dict[str, RowMetric]:
    """By name; a plain function is a metric between 0 and 1."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(
        isinstance(name, str) and name and name.isprintable() for name in given
    ):
        remedy = 'Pass metrics={"cost": fv.RowMetric(cost, high=5.0)}.'
        got = type(given).__name__
        raise InputError.expected("metrics by name", of="metrics", got=got, remedy=remedy)
    if len(given) > MOST:
        remedy = "Make two tables, each with its own epsilon."
        raise InputError.expected(f"at most {MOST}", of="metrics", got=len(given), remedy=remedy)
    return {
        name: one if isinstance(one, RowMetric) else RowMetric(one) for name, one in given.items()
    }


def thrown(
    metrics: Mapping[str, RowMetric], X: TableLike, y: Any, prediction: Any, noise: NoiseSource
) -> list[npt.NDArray[np.bool_]]:
    """The coins of all metrics, row by row."""
    return [
        metric.coins(X, y, prediction, noise.stream("sampling", at).uniforms(len(prediction)))
        for at, metric in enumerate(metrics.values())
    ]
