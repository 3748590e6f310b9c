"""Codings as plain JSON values, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..._json import Node
from ...data import Encoding
from ...errors import InputError
from ...facts.columns import Category
from . import shapes_json
from .coding import Coding, Feature, RowsCoding, SchemaCoding, TableCoding
from .standard import Standard

MOST_CODES = 1 << 31
SHAPES = "shapes"  # of an additive model


def to_dict(coding: Coding) -> dict[str, Any]:
    """Plain JSON values."""
    standard = coding.standard
    out: dict[str, Any] = {
        "standard": None
        if standard is None
        else {"means": list(standard.means), "deviations": list(standard.deviations)}
    }
    if coding.shapes is not None:
        out[SHAPES] = shapes_json.to_dict(coding.shapes)
    if isinstance(coding, SchemaCoding):
        return {"kind": "schema", "encoding": coding.encoding.to_dict(), **out}
    if isinstance(coding, TableCoding):
        listed = [
            {"name": one.name, "values": None if one.values is None else list(one.values)}
            for one in coding.features
        ]
        return {"kind": "table", "features": listed, "columns": list(coding.columns), **out}
    assert isinstance(coding, RowsCoding)
    return {"kind": "rows", "numbers": coding.numbers, "code_sizes": list(coding.code_sizes), **out}


def from_dict(node: Node) -> Coding:
    """The inverse of `to_dict`."""
    kind = node["kind"].text()
    if kind == "schema":
        node.only(("kind", "encoding", "standard"), (SHAPES,))
        coding: Coding = SchemaCoding(
            Encoding.from_dict(node["encoding"].mapping()), _standard(node["standard"])
        )
    elif kind == "table":
        node.only(("kind", "features", "columns", "standard"), (SHAPES,))
        features = tuple(map(_feature, node["features"].list()))
        columns = node["columns"].texts()
        if not {feature.name for feature in features} <= set(columns):
            node["columns"].refuse("the names of all features", columns)
        coding = TableCoding(features, columns, _standard(node["standard"]))
    elif kind == "rows":
        node.only(("kind", "numbers", "code_sizes", "standard"), (SHAPES,))
        sizes = tuple(
            size.whole(at_least=1, at_most=MOST_CODES) for size in node["code_sizes"].list()
        )
        coding = RowsCoding(
            node["numbers"].whole(at_most=MOST_CODES), sizes, _standard(node["standard"])
        )
    else:
        remedy = "Read it with the version of Fairveil that wrote it."
        raise InputError.expected(
            "'schema', 'table' or 'rows'", of="coding", got=kind, remedy=remedy
        )
    if SHAPES in node.mapping():
        coding = replace(coding, shapes=shapes_json.from_dict(node[SHAPES], coding.own_layout))  # type: ignore[type-var]
    if coding.standard is not None and len(coding.standard.means) != coding.layout.numbers:
        node["standard"].refuse(
            f"means of {coding.layout.numbers} numbers", len(coding.standard.means)
        )
    return coding


def _standard(node: Node) -> Standard | None:
    if node.is_null:
        return None
    means = node.only(("means", "deviations"))["means"].numbers()
    deviations = node["deviations"].numbers(length=len(means))
    if min(deviations, default=1.0) <= 0:
        node["deviations"].refuse("deviations above 0", min(deviations))
    return Standard(means, deviations)


def _feature(node: Node) -> Feature:
    values = node.only(("name", "values"))["values"]
    listed = (
        None if values.is_null else Category(tuple(value.value for value in values.list())).values
    )
    return Feature(node["name"].text(), listed)
