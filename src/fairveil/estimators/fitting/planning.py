"""The plan of a fit before there are rows: the face that all estimators share. Abstract.

Guarantees (tests/estimators/test_estimators_plan.py):
1. A plan reads no row: it is handed a schema and numbers, and has no way to any.
2. What is foretold is of the very search that a fit of as many rows plans: the same events, to the
   last bit.
3. Nothing is spent, and no attribute of the estimator changes.
"""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from ..._types import ColumnsLike
from ...errors import FairveilWarning
from ...facts import Schema
from ...learning.forecasting import forecast
from ...learning.forecasting.foretold import Forecast
from ...learning.forecasting.supposed import Supposed
from ...models.model import RandomState
from ..reading import units
from ..reading.unread import Read, Unread
from .plan import Plan
from .promises import promise_of


@dataclass(eq=False, repr=False, kw_only=True)
class Planning:
    """The mixin of all estimators that plan a fit by public facts, with the parameters that all of
    them have. Abstract."""

    epsilon: float = 1.0
    delta: float = 1e-6
    protects: str = "records"
    neighbours: str | None = None
    schema: Schema | None = None
    public_rows: int | None = None
    max_sample_weight: float = 1.0
    unsafe_data_dependent_bounds: bool = False
    random_state: RandomState = None
    ledger: Any = None
    unit: ColumnsLike = None
    max_rows_per_unit: int | None = None

    def plan(
        self,
        schema: object = None,
        *,
        rows: int | None = None,
        shares: Mapping[str, Mapping[Any, float]] | None = None,
        sensitive: Iterable[str] | None = None,
    ) -> Plan:
        """Plan a fit from public facts: its releases and their noise. It spends nothing.

        Parameters
        ----------
        schema : Schema, default=None
            Public facts of the table: its columns, target and groups. None: the estimator's own.
        rows : int, default=None
            About how many rows there will be. None: `public_rows`, else the schema's number.
        shares : mapping, default=None
            About how large groups and classes are, ``{"sex": {"f": 0.3, "m": 0.7}}``. None: the
            schema's (``Category(..., shares=...)``), else equal shares, and the plan says so.
        sensitive : list of str, default=None
            Columns that make the groups. None: the schema's.

        Returns
        -------
        Plan
            Print it, draw it (`figure()`) or take `to_dict()`.
        """
        unread = Unread.of(schema, self.schema, rows, sensitive, self.public_rows)
        whose = units.whose(self.unit, self.max_rows_per_unit, unread.schema, self.epsilon)
        promise = promise_of(self.epsilon, self.delta, self.protects, self.neighbours, whose)
        supposed = unread.supposed(shares)
        found = forecast_at(self, unread, supposed)
        return Plan(
            type(self).__name__, promise, found, supposed, partial(quietly, copy.copy(self), unread)
        )

    def _foretold(self, unread: Unread, epsilon: float | None, rows: int | None) -> Self:
        """This estimator, as it would be fitted to rows of that schema."""
        one = copy.copy(self)
        one.schema, one.ledger, one.random_state = unread.schema, None, None
        if rows is not None and one.public_rows is not None:
            one.public_rows = rows
        if epsilon is not None:
            one.epsilon = epsilon
        return one

    @abstractmethod
    def _search(self, read: Read) -> Any:
        """The search that a fit would run, planned and priced."""

    def _forecast(self, read: Read, supposed: Supposed) -> Forecast:
        return forecast.of(self._search(read), supposed)


def forecast_at(
    estimator: Planning, unread: Unread, supposed: Supposed, epsilon: float | None = None
) -> Forecast:
    """What is foretold of so many rows as are supposed, and at another epsilon."""
    rows = round(supposed.rows)
    unread = Unread(unread.schema, rows)
    return estimator._foretold(unread, epsilon, rows)._forecast(unread.read, supposed)


def quietly(
    estimator: Planning, unread: Unread, supposed: Supposed, epsilon: float | None = None
) -> Forecast:
    """The same, where its warnings were heard before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairveilWarning)
        return forecast_at(estimator, unread, supposed, epsilon)
