"""Errors of a schema about its keys and roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import SchemaError
from .columns import Column, Ignored
from .declared import BLANK

FIELDS = (
    *(
        "fairveil_schema",
        "name",
        "source",
        "rows",
        "target",
        "sensitive",
        "missing_values",
        "columns",
    ),
    *("unit", "max_rows_per_unit", "max_sample_weight", "target_bounds"),
    *("sensitive_as_feature", "unsafe_data_dependent_bounds"),
)


def of_keys(got: object) -> SchemaError:
    """The error for a file with keys that no schema has."""
    expected = f"a table with keys from {list(FIELDS)}"
    return SchemaError.expected(
        expected, of="schema", got=got, remedy="Check the spelling.", among=FIELDS
    )


def no_column(role: str, name: object, known: list[str]) -> SchemaError:
    """The error for a role that names no declared column."""
    if name == BLANK:
        remedy = (
            "Fill it in."
            if role == "target"
            else "Fill them in, or write sensitive = [] for no groups."
        )
        return SchemaError.expected(
            f"one of the columns {known}", of=role, got="a blank", remedy=remedy, quote=False
        )
    remedy = "Declare that column, or name another."
    return SchemaError.expected(
        f"one of the columns {known}", of=role, got=name, remedy=remedy, among=known
    )


def wrong_unit(unit: object, most: object, columns: Mapping[str, Column]) -> Iterator[SchemaError]:
    """All that is wrong with the column that tells persons apart."""
    if unit is None:
        if most is not None:
            remedy = 'Name the column that tells persons apart: unit="patient".'
            yield SchemaError.expected(
                "none without a unit", of="max_rows_per_unit", got=most, remedy=remedy
            )
    elif not isinstance(unit, str) or not unit or not unit.isprintable():
        remedy = 'Pass unit="patient", the column that tells persons apart.'
        yield SchemaError.expected("the name of a column", of="unit", got=unit, remedy=remedy)
    elif unit in columns and not isinstance(columns[unit], Ignored):
        remedy = (
            "A name is no feature, label or group: declare the column Ignored(), or leave it out "
            "of the columns."
        )
        of = f"unit column {unit!r}"
        yield SchemaError.expected(
            "a column that is ignored", of=of, got=columns[unit].kind, remedy=remedy
        )


def unknown_roles(values: Mapping[str, Any]) -> list[SchemaError]:
    """Of a file whose columns are wrong: the roles whose names no column has."""
    rows = values.get("columns")
    known = (
        [
            row["name"]
            for row in rows
            if isinstance(row, Mapping) and isinstance(row.get("name"), str)
        ]
        if isinstance(rows, list)
        else []
    )
    groups = values.get("sensitive", ())
    roles = [
        ("target", values.get("target")),
        *(("sensitive", name) for name in (groups if isinstance(groups, list) else [groups])),
    ]
    return (
        [
            no_column(role, name, known)
            for role, name in roles
            if isinstance(name, str) and name not in known
        ]
        if known
        else []
    )
