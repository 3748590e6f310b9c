"""Codings as plain JSON values, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..data import Encoding
from ..errors import InputError, complaint
from ..facts.columns import Category
from .coding import Coding, Feature, RowsCoding, SchemaCoding, TableCoding
from .standard import Standard


def to_dict(coding: Coding) -> dict[str, Any]:
    """Plain JSON values."""
    standard = coding.standard
    out: dict[str, Any] = {
        "standard": None if standard is None else {"means": list(standard.means), "deviations": list(standard.deviations)}
    }
    if isinstance(coding, SchemaCoding):
        return {"kind": "schema", "encoding": coding.encoding.to_dict(), **out}
    if isinstance(coding, TableCoding):
        listed = [{"name": one.name, "values": None if one.values is None else list(one.values)} for one in coding.features]
        return {"kind": "table", "features": listed, "columns": list(coding.columns), **out}
    assert isinstance(coding, RowsCoding)
    return {"kind": "rows", "numbers": coding.numbers, "code_sizes": list(coding.code_sizes), **out}


def from_dict(values: Mapping[str, Any]) -> Coding:
    """The inverse of `to_dict`. What does not fit raises KeyError, TypeError or an `InputError`."""
    raw = values["standard"]
    standard = None if raw is None else Standard(tuple(map(float, raw["means"])), tuple(map(float, raw["deviations"])))
    if values["kind"] == "schema":
        return SchemaCoding(Encoding.from_dict(values["encoding"]), standard)
    if values["kind"] == "table":
        features = tuple(
            Feature(one["name"], None if one["values"] is None else Category(tuple(one["values"])).values)
            for one in values["features"]
        )
        return TableCoding(features, tuple(map(str, values["columns"])), standard)
    if values["kind"] == "rows":
        return RowsCoding(int(values["numbers"]), tuple(map(int, values["code_sizes"])), standard)
    remedy = "Read it with the version of Fairveil that wrote it."
    raise InputError(complaint(expected="'schema', 'table' or 'rows'", of="coding", got=values["kind"], remedy=remedy))
