"""Persons with several rows on the command line: whose each row is, and tables that hold whole
persons.

Where a table is split, each person has one coin for all of their rows. A person's rows in both
parts would be measured on by a model that has seen that person: the report would say less error
than others will find.

Guarantees (tests/cli/test_cli_persons.py):
1. No person has rows both among those to fit and among those to measure on: a split keeps persons
   whole, a test table with some of the same persons is refused, and the error names nobody.
2. What is measured on held-out persons is measured on one row of each, drawn by coins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.noise import NoiseSource
from ..curator.rows.persons import kept, persons_of
from ..errors import InputError
from ..facts import Schema
from .coins import set_aside
from .samples import ColumnSample, Sample
from .tables import Place, picked

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class PersonColumn:
    """The column that tells persons apart, and how many rows of each are read."""

    column: str
    most: int | None

    @staticmethod
    def of(unit: str | None, most: int | None, schema: Schema | None) -> PersonColumn | None:
        """The command line's words first, then the schema's."""
        stated = schema.unit if schema is not None else None
        column = unit if unit is not None else stated
        if column is None:
            if most is not None:
                remedy = "Name the column that tells persons apart: --unit patient."
                raise InputError.expected(
                    "none without --unit", of="max_rows_per_unit", got=most, remedy=remedy
                )
            return None
        if schema is not None:
            schema.with_unit(column)  # which refuses a column with another role
        limit = (
            most if most is not None else schema.max_rows_per_unit if schema is not None else None
        )
        return PersonColumn(column, limit)

    def of_schema(self, schema: Schema | None) -> Schema | None:
        """The schema, which says so too: coded rows then know whose they are."""
        return None if schema is None else schema.with_unit(self.column, self.most)

    def read(self, place: Place, sample: Sample) -> tuple[Sample, Values | None]:
        """The rows without that column, and whose each is, in words that tell persons apart; None
        of rows elsewhere."""
        if sample.knows_persons:
            return sample, sample.persons
        if isinstance(sample, ColumnSample):
            values = picked(sample.columns, (self.column,), place.shown, "--unit")[self.column]
            if self.column in (sample.target, *sample.sensitive):
                remedy = (
                    "Name another column: who somebody is is neither to be predicted nor a group."
                )
                raise InputError.expected(
                    "a column with no other role", of="unit", got=self.column, remedy=remedy
                )
            return sample.without(self.column), values
        remedy = "Name a column of the table; encode a store anew by a schema that names the unit."
        got = "a table without it"
        raise InputError.expected(
            f"a column {self.column!r}", of="--unit", got=got, remedy=remedy, quote=False
        )


def split(
    sample: Sample, people: Values, holdout: float, seed: int | None
) -> tuple[Sample, Sample, Values, Values]:
    """(rows to fit, rows held out, whose these are, whose those are): each person is held out by a
    coin of their own."""
    numbers = persons_of(people, sample.size)
    coins = set_aside(int(numbers.max(initial=-1)) + 1, holdout, seed)
    out = coins[numbers]
    if out.all() or not out.any():
        remedy = "Take another share, or other rows with --test."
        raise InputError.expected(
            "persons in both parts", of="--holdout", got=holdout, remedy=remedy
        )
    return sample.part(~out), sample.part(out), people[~out], people[out]


def one_of_each(held: Sample, people: Values, seed: int | None) -> Sample:
    """One row of each person, drawn by coins: intervals on held-out rows take these for independent
    draws."""
    numbers = persons_of(people, held.size)
    chosen = np.zeros(held.size, bool)
    chosen[kept(numbers, 1, NoiseSource.of(seed).stream("units", 1))] = True
    return held.part(chosen)


def require_others(people: Values | None, held: Values | None, *, has_names: bool) -> None:
    """Nobody is measured on who was fitted to. A coded store and a cluster know no names, so there
    this cannot be told."""
    if (
        people is None
        or held is None
        or (not has_names and np.dtype(np.int64) in (people.dtype, held.dtype))
    ):
        remedy = "Use --holdout, which keeps persons whole; or read the table itself."
        raise InputError.expected(
            "tables that name persons", of="--test", got="a store, which does not", remedy=remedy
        )
    if set(people.tolist()) & set(held.tolist()):
        remedy = (
            "Measure on other persons: leave these out of one table, or use --holdout, which keeps "
            "persons whole."
        )
        raise InputError.expected(
            "other persons than TABLE's", of="--test", got="some of the same", remedy=remedy
        )


def arguments(asked: PersonColumn | None, people: Values | None, sample: Sample) -> dict[str, Any]:
    """What an estimator is told."""
    if asked is None:
        return {}
    return {
        "unit": asked.column if sample.knows_persons else {asked.column: people},
        "max_rows_per_unit": asked.most,
    }
