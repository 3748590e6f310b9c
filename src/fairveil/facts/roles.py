"""Errors of a schema about its keys and roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import SchemaError, complaint
from .declared import BLANK

FIELDS = ("fairveil_schema", "name", "source", "rows", "target", "sensitive", "missing_values", "columns")


def of_keys(got: object) -> SchemaError:
    """The error for a file with keys that no schema has."""
    expected = f"a table with keys from {list(FIELDS)}"
    return SchemaError(complaint(expected=expected, of="schema", got=got, remedy="Check the spelling.", among=FIELDS))


def no_column(role: str, name: object, known: list[str]) -> SchemaError:
    """The error for a role that names no declared column."""
    if name == BLANK:
        remedy = "Fill it in." if role == "target" else "Fill them in, or write sensitive = [] for no groups."
        return SchemaError(
            complaint(expected=f"one of the columns {known}", of=role, got="a blank", remedy=remedy, quote=False)
        )
    remedy = "Declare that column, or name another."
    return SchemaError(complaint(expected=f"one of the columns {known}", of=role, got=name, remedy=remedy, among=known))


def unknown_roles(values: Mapping[str, Any]) -> list[SchemaError]:
    """Of a file whose columns are wrong: the roles whose names no column has."""
    rows = values.get("columns")
    known = (
        [row["name"] for row in rows if isinstance(row, Mapping) and isinstance(row.get("name"), str)]
        if isinstance(rows, list)
        else []
    )
    groups = values.get("sensitive", ())
    roles = [
        ("target", values.get("target")),
        *(("sensitive", name) for name in (groups if isinstance(groups, list) else [groups])),
    ]
    return (
        [no_column(role, name, known) for role, name in roles if isinstance(name, str) and name not in known] if known else []
    )
