"""The three ways that a table is read: as it comes, by a schema, or as rows that are coded
already."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._types import ColumnsLike, TableLike
from ...data import Encoding, encode
from ...data.rows import EncodedRows
from ...errors import InputError, OtherGroups, complaint
from ...facts import RowBlock, RowLayout, RowSource, Schema
from ...facts.columns import Boolean, Category
from ...facts.rows import CodedSource, schema_of, traits_of
from ...statement.document import Origin, PublicFact
from ...statement.form import READ_FROM_DATA
from ...tables.columns import read_columns, same_length
from ...tables.distinct import distinct, in_words
from ...tables.frames import table_of
from ...tables.grids import FeatureTable, grid_of, numbers_of
from ...tables.raw import Plain
from .blocks import Blocks
from .carried import require_few_classes
from .cautions import is_inside, outside
from .coding import BLOCK_ROWS, Coding, Feature, RowsCoding, SchemaCoding, TableCoding
from .columns import (
    coded_groups,
    given_columns,
    named_as_declared,
    names_in,
    names_of_columns,
    read_labels,
    read_targets,
)
from .targets import NumericTarget, TargetScale, need_number, scale_of, with_codes, within


@dataclass(frozen=True, eq=False, repr=False)
class ReadTable:
    """Blocks without weights, how features were coded, and what is public."""

    coding: Coding
    layout: RowLayout
    blocks: Blocks
    facts: list[PublicFact]
    columns: tuple[str, ...]
    n_features: int
    target: TargetScale | None = None
    grid: FeatureTable | None = None


def as_it_comes(
    X: TableLike,
    y: ColumnsLike,
    sensitive: ColumnsLike,
    sensitive_as_feature: bool,
    number: NumericTarget | None,
    unit: str | None = None,
    listed: tuple[Hashable, ...] | None = None,
) -> ReadTable:
    grid = grid_of(X)
    labels = read_labels(y) if number is None else read_targets(y)
    same_length({"X": grid.rows, "y": len(labels)})
    classes: tuple[Hashable, ...] | None = None
    scale = None if number is None else number.scale(labels)
    label_codes: npt.NDArray[Any]
    if scale is None:
        classes, label_codes = distinct(Plain(labels), "y")
        require_few_classes(classes, grid.rows)
    else:
        label_codes = scale.coded(labels)
    named = names_of_columns(sensitive, grid)
    columns = (
        {name: grid.column(name) for name in named}
        if named is not None
        else given_columns(sensitive, grid.rows)
    )
    groups, group_codes = coded_groups(columns, grid.rows, listed)
    # also where they were given as columns: by their names
    taken = columns if grid.named and not sensitive_as_feature else {}
    names = (name for name in grid.names if name not in taken and not (grid.named and name == unit))
    features = tuple(_feature(grid, name) for name in names)
    if not features:
        remedy = "Pass features beside the sensitive columns, or sensitive_as_feature=True."
        raise InputError.expected(
            "at least one feature", of="X", got="sensitive columns only", remedy=remedy
        )
    coding = TableCoding(features, grid.names)
    layout = replace(
        coding.layout,
        classes=classes,
        sensitive=groups,
        sensitive_names=tuple(columns),
        sensitive_as_features=tuple(one.name for one in features if one.name in columns),
    )
    facts = [
        PublicFact("number of features", str(len(features)), READ_FROM_DATA),
        *_roles(layout, READ_FROM_DATA, READ_FROM_DATA if listed is None else "argument"),
    ]
    facts += [
        PublicFact(f"categories of {in_words([one.name])}", in_words(one.values), READ_FROM_DATA)
        for one in features
        if one.values is not None
    ]
    return ReadTable(
        coding,
        layout,
        Blocks(_coded_blocks(coding, grid, label_codes, group_codes)),
        facts,
        grid.names if grid.named else (),
        len(grid.names),
        scale,
        grid,
    )


def _coded_blocks(
    coding: TableCoding, grid: FeatureTable, labels: npt.NDArray[Any], groups: npt.NDArray[Any]
) -> list[RowBlock]:
    """The blocks of a table, with their parts of the codes of labels and groups."""
    blocks, a = [], 0
    for block in coding.grid_blocks(grid):
        b = a + block.rows
        part = np.ascontiguousarray(groups[:, a:b])
        blocks.append(replace(block, labels=labels[a:b], sensitive=part))
        a = b
    return blocks


def by_schema(
    X: TableLike,
    y: ColumnsLike,
    sensitive: ColumnsLike,
    schema: Schema,
    sensitive_as_feature: bool,
    number: NumericTarget | None,
) -> ReadTable:
    names = names_in(sensitive)
    beside: Mapping[str, Any] | None = None
    if names is not None:
        declared = schema.sensitive
        unused = [name for name in declared if name not in names]
        schema = schema.with_roles(sensitive=names).without(*unused)
        if declared and not set(names) <= set(declared):
            left = f", and {in_words(unused)} is no feature either" if unused else ""
            _warn_of_others(names, declared, f"These make the groups now{left}.")
    elif sensitive is not None:
        beside = named_as_declared(sensitive, schema)
        given = [name for name in read_columns(sensitive) if name in schema.columns]
        if not set(given) <= set(schema.sensitive):
            taken = f"They were read as {in_words(schema.sensitive)}, in this order."
            _warn_of_others(given, schema.sensitive, taken)
    with_sensitive = bool(schema.sensitive) and (
        sensitive is not None or _has_columns(X, schema.sensitive)
    )
    if not with_sensitive and schema.sensitive:
        schema = schema.without(*schema.sensitive)
    labels = None if y is None else read_labels(y) if number is None else read_targets(y)
    if y is not None and schema.target is None:
        remedy = (
            'Say which column y is, and its classes: Schema(columns, target="hired"), for example.'
        )
        raise InputError.expected("a schema with a target", of="schema", got=schema, remedy=remedy)
    encoding = Encoding(schema, sensitive_as_feature)
    if number is not None:
        need_number(encoding.target is not None, "the schema's target")
    coded = encode(
        X,
        schema,
        names=encoding.features,
        target=labels,
        sensitive=beside,
        sensitive_as_feature=sensitive_as_feature,
        block_rows=BLOCK_ROWS,
    )
    facts, blocks = facts_of_schema(encoding), Blocks.of(coded)
    names = encoding.features if _has_columns(X, encoding.features) else ()
    scale = None if number is None else scale_of(encoding)
    return ReadTable(
        SchemaCoding(encoding), coded.layout, blocks, facts, names, len(encoding.features), scale
    )


def _warn_of_others(names: Sequence[str], declared: Sequence[str], done: str) -> None:
    if is_inside():  # of a post-processor, which has said it of the same rows
        return
    text = complaint(
        expected=f"columns among the schema's sensitive ones, {in_words(declared)}",
        of="sensitive_features",
        got=in_words(names),
        remedy=f"{done} Leave sensitive_features out, or declare the columns in the schema: "
        f"schema.with_roles(sensitive={list(names)}).",
        quote=False,
    )
    warnings.warn(text, OtherGroups, stacklevel=outside())


def from_rows(
    source: RowSource,
    y: ColumnsLike,
    sensitive: ColumnsLike,
    schema: Schema | None,
    number: NumericTarget | None,
) -> ReadTable:
    layout = source.layout
    names = names_in(sensitive)
    by = schema_of(source)
    other = schema is not None and by is not None and schema.fingerprint != by.fingerprint
    if y is not None or other or (sensitive is not None and names is None):
        remedy = (
            "Leave y, sensitive_features and schema out: pass only the names of sensitive columns "
            "among the source's."
        )
        raise InputError.expected(
            "labels and groups from the rows", of="X", got="others beside", remedy=remedy
        )
    blocks = Blocks.of(source)
    if names is not None:
        layout, at = _chosen_columns(layout, names)
        blocks = blocks.then(partial(_of_columns, at))
    if number is not None:
        need_number(
            layout.classes is None and all(block.labels is not None for block in blocks), "X"
        )
    encoding, scale = source.encoding if isinstance(source, CodedSource) else None, None
    if isinstance(encoding, Encoding):
        features = encoding.features
        if number is not None:
            number.refuse_both()
            need_number(encoding.target is not None, "the target of X")
            blocks, scale = blocks.then(within), scale_of(encoding)
        facts = [
            *facts_of_schema(encoding),
            *(source.facts if isinstance(source, EncodedRows) else ()),
        ]
        return ReadTable(
            SchemaCoding(encoding), layout, blocks, facts, features, len(features), scale
        )
    if number is not None:
        given, scale = with_codes(blocks, number)
        blocks = Blocks(given, source)
    read_from_data = traits_of(source).read_from_data
    of_classes: Origin = READ_FROM_DATA if "classes" in read_from_data else "argument"
    of_groups: Origin = READ_FROM_DATA if "groups" in read_from_data else "argument"
    facts = _roles(layout, of_classes, of_groups)
    return ReadTable(
        RowsCoding(layout.numbers, tuple(layout.code_sizes)),
        layout,
        blocks,
        facts,
        (),
        layout.width,
        scale,
    )


def _chosen_columns(layout: RowLayout, names: Sequence[str]) -> tuple[RowLayout, list[int]]:
    """The layout with the sensitive columns that were named, and their places."""
    known = list(layout.sensitive_names)
    strange = [name for name in names if name not in known]
    if strange:
        remedy = "Code the rows with these columns declared sensitive."
        raise InputError.expected(
            f"names among {known}", of="sensitive_features", got=strange, remedy=remedy
        )
    at = [known.index(name) for name in names]
    chosen = tuple(layout.sensitive[j] for j in at)
    return replace(layout, sensitive=chosen, sensitive_names=tuple(names)), at


def _has_columns(X: TableLike, names: Sequence[str]) -> bool:
    """Whether a table has all these columns; an array has features alone."""
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype.names is None):
        return False
    return set(names) <= set(table_of(X).names)


def _feature(grid: FeatureTable, name: str) -> Feature:
    if grid.matrix is not None:
        return Feature(name)
    raw = grid.column(name)
    of = f"column {name!r}"
    if numbers_of(raw, of) is not None:
        return Feature(name)
    return Feature(name, distinct(raw, of)[0])  # type: ignore[arg-type]  # Category checks the values


def _roles(
    layout: RowLayout, of_classes: Origin, of_groups: Origin | None = None
) -> list[PublicFact]:
    facts = [PublicFact("classes", in_words(layout.classes or ("a number",)), of_classes)]
    for name, values in zip(layout.sensitive_names, layout.sensitive, strict=True):
        facts.append(
            PublicFact(f"groups of {in_words([name])}", in_words(values), of_groups or of_classes)
        )
    return facts


def facts_of_schema(encoding: Encoding) -> list[PublicFact]:
    """What a schema says of the rows that it codes."""
    schema = encoding.schema
    facts = [
        PublicFact("features", in_words(encoding.features), "schema"),
        *_roles(encoding.layout, "schema"),
    ]
    if schema.rows is not None:
        facts.append(PublicFact("number of rows", str(schema.rows), "schema"))
    for name in (*schema.sensitive, *(() if schema.target is None else (schema.target,))):
        column = schema.columns[name]
        if isinstance(column, Category | Boolean) and column.shares is not None:
            told = [
                f"{value} {share:.3g}"
                for value, share in zip(column.values, column.shares, strict=True)
            ]
            facts.append(PublicFact(f"shares of {in_words([name])}", in_words(told), "schema"))
    return facts


def _of_columns(at: Sequence[int], block: RowBlock) -> RowBlock:
    """With some of the sensitive columns."""
    return (
        block
        if block.sensitive is None
        else replace(block, sensitive=np.ascontiguousarray(block.sensitive[at]))
    )
