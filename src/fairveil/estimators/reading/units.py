"""Whose each row is, as a schema says: `unit` and `max_rows_per_unit`.

A fit that protects persons names the column of X that tells them apart; counts of finished models
may also have one value a row.
That column is no feature: a name says nothing that a model should learn, and no bound is known of
it. How many rows of a person are read is the caller's to say: it is a public number, and must not
follow from the rows.

Guarantees (tests/estimators/test_estimators_persons.py):
1. What is asked for is refused, before a row is read, where it names no one, has no number of rows,
   or is not the estimator's to give.
2. The column is no feature and no sensitive feature, and no error shows whose a row is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..._types import ColumnsLike, Ints, TableLike
from ...core.persons import persons_of
from ...core.promise import Unit
from ...errors import InputError, PrivacyError
from ...facts import RowSource, Schema
from ...facts.rows import PERSON_BY_PERSON, schema_of
from ...tables.columns import name_of
from ...tables.frames import table_of
from ...tables.grids import FeatureTable
from ...tables.raw import Listed, Raw

PERSON = "person"


@dataclass(frozen=True, eq=False, repr=False)  # it may hold whose each row is
class Whose:
    """What a promise says of persons, and where whose each row is comes from: `column`, a name in
    X, or `values`, one a row."""

    unit: Unit
    column: str | None = None
    values: Any = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of X that are no features."""
        return () if self.column is None else (self.column,)

    def of_table(self, X: TableLike, grid: FeatureTable | None, rows: int) -> Any:
        """One value a row, from X as it was given; what is missing or of another length is refused
        where rows are made."""
        if self.column is None:
            return self.values
        if isinstance(X, RowSource):
            return self._of_rows(X)
        if grid is not None and grid.named and self.column in grid.names:
            return _values(grid.column(self.column))
        if grid is None and (
            isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")
        ):
            table = table_of(X)
            if self.column in table.names:
                return _values(table.run(self.column, 0, rows))
        known = list(grid.names) if grid is not None and grid.named else "no such column"
        remedy = "Name a column of X, or pass one value a row: unit=ids."
        raise InputError.expected(
            "a column of X", of="unit", got=self.column, remedy=f"{remedy} X has {known}."
        )

    def _of_rows(self, X: RowSource) -> None:
        """Coded rows know whose they are, or do not: nothing is to be given beside them."""
        schema = schema_of(X)
        if schema is None or schema.unit != self.column:
            known = "no column" if schema is None or schema.unit is None else f"{schema.unit!r}"
            remedy = (
                f"Encode a table with it, by schema.with_unit({self.column!r}); or pass one value "
                f"a row: unit=ids."
            )
            got = f"rows that know {known}"
            raise InputError.expected(
                f"rows coded with {self.column!r}", of="unit", got=got, remedy=remedy, quote=False
            )


def asked(estimator: BaseEstimator) -> Whose | None:
    """What an estimator's schema says of persons, checked."""
    return whose(None, None, estimator._facts, estimator.epsilon)


def whose(
    unit: ColumnsLike, most: int | None, schema: object, epsilon: object = 1.0
) -> Whose | None:
    """The same of arguments."""
    known = schema if isinstance(schema, Schema) else Schema()
    given = known.unit if unit is None else unit
    most = known.max_rows_per_unit if most is None else most
    if given is None:
        if most is not None:
            remedy = "Name the column that tells persons apart: unit='patient'."
            raise InputError.expected(
                "None without a unit", of="max_rows_per_unit", got=most, remedy=remedy
            )
        return None
    if most is None and epsilon != float("inf"):
        remedy = (
            "Pass max_rows_per_unit=12, for example: a number that is public, never the largest "
            "among the rows."
        )
        raise InputError.expected(
            "the most rows of one person to read", of="max_rows_per_unit", got=None, remedy=remedy
        )
    if isinstance(given, str):
        _require_no_role(given, known)
        return Whose(Unit(given, most), column=given)
    if (
        isinstance(given, Mapping)
        and len(given) == 1
        and all(isinstance(name, str) for name in given)
    ):
        ((name, values),) = given.items()
        _require_no_role(name, known)
        return Whose(Unit(name, most), values=values)
    if hasattr(given, "to_numpy") and (name := name_of(given)):
        return Whose(Unit(name, most), values=given)
    if isinstance(given, bool | int | float) or not (
        hasattr(given, "__len__") or hasattr(given, "to_numpy")
    ):
        remedy = "Pass unit='patient', the name of a column of X, or one value a row."
        raise InputError.expected("a name, or one value a row", of="unit", got=given, remedy=remedy)
    return Whose(Unit(PERSON, most), values=given)


def numbers_of(told: Whose, X: TableLike, rows: int) -> Ints:
    """Whose each row of a table in memory is, as numbers from 0 by first appearance: for parts that
    are set aside by person."""
    values = told.of_table(X, None, rows)
    if isinstance(X, RowSource) and values is None:
        found = [block.persons for block in X.blocks()]
        if any(one is None or one.dtype == PERSON_BY_PERSON for one in found):
            remedy = "Pass a table in memory, in place of one that is coded person by person."
            raise InputError.expected(
                "rows whose persons can be set aside", of="X", got="a store", remedy=remedy
            )
        values = np.concatenate([one for one in found if one is not None])
    return persons_of(values, rows)


def refuse(estimator: BaseEstimator, got: str = "") -> None:
    """Of an estimator that protects rows alone, whose sums are not bounded by person."""
    told = estimator._facts.unit
    if told is None:
        return
    of = f"{type(estimator).__name__}{got}"
    remedy = (
        "Fit a linear or an additive model, which protects persons; or give each person one row."
    )
    raise PrivacyError.expected(
        "unit=None: it protects rows, not persons", of=of, got=told, remedy=remedy
    )


def require_heeded(schema: Schema | None, told: Whose | None) -> None:
    """A schema that says who is protected is not read by what protects rows alone."""
    if schema is None or schema.unit is None or told is not None:
        return
    remedy = (
        "What is asked for protects rows, not persons: pass schema.without_unit() to accept that."
    )
    got = f"unit={schema.unit!r}"
    raise PrivacyError.expected("a schema of rows", of="schema", got=got, remedy=remedy)


def require_apart(column: str | None, sensitive: tuple[str, ...]) -> None:
    """Nobody's name is a group."""
    if column is not None and column in sensitive:
        remedy = "Name another column of groups; the unit tells persons apart."
        raise InputError.expected(
            "a column that is no sensitive feature", of="unit", got=column, remedy=remedy
        )


def _require_no_role(name: str, schema: Schema) -> None:
    if name == schema.unit or name not in schema.columns:
        return
    schema.with_unit(name)  # which says what is wrong with its role


def _values(raw: Raw) -> Any:
    """A column's values, None where one is missing."""
    if isinstance(raw, Listed):
        names: list[Hashable] = [*raw.values, None]
        return np.array(names, object)[np.where(raw.at < 0, len(raw.values), raw.at)]
    if raw.null is None or not raw.null.any():
        return raw.values
    values = raw.values.astype(object)
    values[raw.null] = None
    return values
