"""Pairs of neighbouring tables that a schema allows, made up: ordinary rows, and one person at a
corner of what it declares.

A corner has every number at one end of its bounds and every category at one end of its list. Under
each relation there are pairs for each corner, class and group:

| relation | here | there |
|---|---|---|
| add-remove | the ordinary rows | and the person |
| replace-one | and somebody of another group, of the three kinds below | and the person |
| sensitive features alone | the person in another group | and the person |

Where the schema says that persons are protected, a person has as many rows as may be read of one,
all alike: the worst that a person may have (theory.md#units). Everybody else has one row.

Most ordinary rows are in another class than the person, so that a model errs about the person in
every round. A person is replaced by somebody of

1. the same corner, in another class: gradients point apart where a model is unsure about both;
2. the opposite corner, in another class: numbers and their products lie apart;
3. the opposite corner, in the same class: a model errs about both, and their gradients point apart.

Where sensitive features alone are protected, ordinary rows are of both kinds: most in another class
than the person, and half of them in each. Constraints are then broken in other rounds.

Guarantees (tests/audit/test_audit_corners.py):
1. Both tables of a pair are of the schema, and are neighbours under its relation, and nothing else
   differs.
2. Everything is made of the schema and a seed: no row of anybody is read.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..facts import Schema
from ..facts.columns import Boolean, Category, Column, Ignored, Number

Table = dict[str, npt.NDArray[Any]]
Person = dict[str, Any]
OTHERS = 1_000
AGAINST = 0.9
"""Of ordinary rows, the share that gets another class than the person: a model then errs about the
person, whose gradients stay at the clip."""
MOST_PAIRS = 16
NOBODY = 0
"""Who is attacked, where persons have names: no ordinary row is theirs."""
ENDS = ("high", "low")
REPLACED = (
    ("the same corner", False, True),
    ("the opposite corner", True, True),
    ("the opposite corner in the same class", True, False),
)
"""By whom a person is replaced: in words, whether of the opposite corner, and of another class."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables. `common`: the rows that both hold; `name`: in words."""

    name: str
    here: Table
    there: Table
    common: Table


def pairs_of(
    schema: Schema, protects: str, neighbours: str, *, others: int = OTHERS, seed: int = 0
) -> tuple[Pair, ...]:
    """The pairs of one relation, at most `MOST_PAIRS`, evenly taken from all.

    >>> schema = Schema(
    ...     {"age": Number(0, 99), "sex": Category(("f", "m")), "hired": Boolean()},
    ...     "hired",
    ...     ("sex",),
    ... )
    >>> [pair.name for pair in pairs_of(schema, "records", "add-remove")][:2]
    ['numbers at their high ends, hired=False, sex=f', 'numbers at their high ends, hired=False, sex=m']
    """
    of_groups, target = protects == "sensitive_features", schema.target
    if of_groups and all(len(schema.listed(name)) < 2 for name in schema.sensitive):
        got, remedy = list(schema.sensitive), 'Declare it: Schema(..., sensitive=["sex"]).'
        raise InputError.expected(
            "a sensitive column of two groups", of="schema", got=got, remedy=remedy
        )
    everyone, people, found = ordinary(schema, others, seed), _people(schema), []
    times = 2 if of_groups else 1 if neighbours == "add-remove" else len(REPLACED)
    count = min(MOST_PAIRS // times, len(people))
    for at in np.unique(np.linspace(0, len(people) - 1, count).round().astype(int)):
        name, end, person = people[at]
        common = _against(schema, everyone, person, seed)
        regrouped = {one: _another(schema.columns[one], person[one]) for one in schema.sensitive}
        there = _and(schema, common, person)
        if of_groups:
            for words, rows in (("", common), (", among rows of all classes", everyone)):
                moved = _and(schema, rows, {**person, **regrouped})
                found.append(Pair(name + words, moved, _and(schema, rows, person), rows))
        elif neighbours == "add-remove":
            found.append(Pair(name, common, there, common))
        else:
            for words, is_opposite, is_reclassed in REPLACED:
                other = _corner(schema, ENDS[(ENDS.index(end) + is_opposite) % 2]) | regrouped
                if target is not None:
                    own = person[target]
                    other[target] = _another(schema.columns[target], own) if is_reclassed else own
                here = _and(schema, common, other)
                found.append(Pair(f"{name}, for {words}", here, there, common))
    return tuple(found)


def ordinary(schema: Schema, rows: int, seed: int) -> Table:
    """Rows whose values are drawn evenly from what the schema declares."""
    rng, table = np.random.default_rng(seed), Table()
    for name, column in _columns(schema).items():
        if isinstance(column, Number):
            table[name] = rng.uniform(column.low, column.high, rows)
        else:
            listed = _labels(column)
            table[name] = _array([listed[at] for at in rng.integers(len(listed), size=rows)])
    if schema.unit is not None:
        table[schema.unit] = np.arange(NOBODY + 1, NOBODY + 1 + rows)
    return table


def _against(schema: Schema, table: Table, person: Person, seed: int) -> Table:
    """The same rows, most of them in another class than the person; numbers as targets stay."""
    target = schema.target
    if target is None or isinstance(schema.columns[target], Number):
        return table
    coins = np.random.default_rng([seed, 1]).random(len(table[target])) < AGAINST
    other = _another(schema.columns[target], person[target])
    mixed = zip(coins, table[target], strict=True)
    return {**table, target: _array([other if coin else kept for coin, kept in mixed])}


def _columns(schema: Schema) -> dict[str, Column]:
    columns = schema.columns.items()
    return {name: column for name, column in columns if not isinstance(column, Ignored)}


def _corner(schema: Schema, end: str) -> Person:
    """Every column at one end; and whose the row is, where the schema says so."""
    at = -1 if end == "high" else 0
    person = {name: _labels(column)[at] for name, column in _columns(schema).items()}
    return person if schema.unit is None else {**person, schema.unit: NOBODY}


def _people(schema: Schema) -> list[tuple[str, str, Person]]:
    """(words, end, person) of every corner, class and group."""
    target, found = schema.target, []
    labels = [None] if target is None else _labels(schema.columns[target])
    groups = list(itertools.product(*(schema.listed(name) for name in schema.sensitive)))
    for end, label, group in itertools.product(ENDS, labels, groups):
        chosen: Person = {} if target is None else {target: label}
        chosen |= dict(zip(schema.sensitive, group, strict=True))
        said = [f"numbers at their {end} ends", *(f"{name}={one}" for name, one in chosen.items())]
        found.append((", ".join(said), end, _corner(schema, end) | chosen))
    return found


def _labels(column: Column) -> list[Any]:
    """Its values in order; of a number both ends."""
    if isinstance(column, Number):
        return [column.low, column.high]
    assert isinstance(column, Category | Boolean)
    return list(column.values)


def _another(column: Column, value: object) -> Any:
    """The next value of a list, the other end of bounds."""
    listed = _labels(column)
    at = next(i for i, one in enumerate(listed) if type(one) is type(value) and one == value)
    return listed[(at + 1) % len(listed)]


def _and(schema: Schema, table: Table, person: Person) -> Table:
    """The table, and all rows of a person."""
    many = schema.max_rows_per_unit or 1
    return {
        name: _array([*values.tolist(), *[person[name]] * many]) for name, values in table.items()
    }


def _array(values: list[Any]) -> npt.NDArray[Any]:
    if all(type(value) is float for value in values):
        return np.array(values, np.float64)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
