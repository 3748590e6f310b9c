"""Rows of a post-processor that needs no labels: groups, and what a fitted base is shown. Each
stands as the first class.

Guarantees (tests/estimators/test_estimators_parity_rows.py):
1. No label is read: rows with other labels, or none, are the same rows.
2. With a schema, or with declared groups, nothing but the number of rows depends on the data.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._types import ColumnsLike, TableLike
from ...curator import Rows
from ...curator.elsewhere import Elsewhere
from ...data import encode
from ...errors import InputError
from ...facts import Cells, RowBlock, RowLayout, RowSource, Schema
from ...metrics.inputs import read_groups
from ...models.model import known_classes
from ...statement.check import READ_FROM_DATA
from ...statement.document import Origin, PublicFact
from ...tables.columns import same_length
from ...tables.distinct import in_words
from ...tables.grids import refuse_duplicates
from ...tables.raw import Plain
from ..reading.coding import RowsCoding
from ..reading.columns import coded_groups, named_as_declared, names_in
from ..reading.copies import refuse_weights
from ..reading.inputs import weights_of
from ..reading.training import Coded, ReadOptions, Training
from . import base_columns, copied, decided
from .decided import DecidedRows

WITHOUT = "Pass sensitive_features=...: columns, or names of columns of X."


def read_rows(
    X: TableLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: ReadOptions,
    known: Sequence[Hashable],
) -> DecidedRows:
    """The rows of a fit. `known`: the classes of the base. Rows that were coded before have labels,
    which nobody counts."""
    if isinstance(X, RowSource | Elsewhere):
        return decided.read_rows(X, None, sensitive_features, sample_weight, ways, known)
    schema: Any = ways.schema
    if schema is not None and not isinstance(schema, Schema):
        remedy = "Read one with Schema.load(path)."
        raise InputError.expected(
            "a Schema or None", of="schema", got=type(schema).__name__, remedy=remedy
        )
    for of, table in (("X", X), ("sensitive_features", sensitive_features)):
        refuse_duplicates(table, of)
    decided.refuse_unseen(X)
    origin: Origin = READ_FROM_DATA if schema is None else "schema"
    if schema is None:
        columns, named = base_columns.columns_of(X, sensitive_features)
        require_groups(bool(columns))
        count = len(next(iter(columns.values())))
        groups, codes = coded_groups(
            {name: Plain(column) for name, column in columns.items()}, count
        )
        names = tuple(columns)
        features, shown = (
            base_columns.without(X, (*names, *(() if ways.whose is None else ways.whose.columns))),
            base_columns.names_of(X),
        )
    else:
        names, groups, codes, features, named, shown = _by_schema(X, sensitive_features, schema)
    count = codes.shape[1]
    same_length({"X": base_columns.length_of(X), "sensitive_features": count})
    classes = known_classes(known)
    layout = RowLayout(0, (), classes, groups, names)
    if ways.features_are_public:
        copied.refuse_copied(features, layout, codes)
    are_private = schema is not None and not ways.features_are_public
    weights = weights_of(sample_weight, count, are_private=are_private)
    block = RowBlock(
        np.empty((0, count)),
        np.empty((0, count), np.uint8),
        np.zeros(count, np.int32),
        codes,
        weights,
    )
    if ways.features_are_public:
        refuse_weights((block,), layout)
    units = decided.units_of(ways.whose, X, count, layout)
    held = Rows(Coded(layout, (block,)), max_sample_weight=ways.max_sample_weight, units=units)
    facts = [PublicFact("classes", in_words(classes), "argument")]
    facts += decided.facts_of(layout, origin, weights, ways)
    stated = None if schema is None else schema.rows
    wide = base_columns.width_of(X) if schema is None else len(shown)
    training = Training(held, RowsCoding(0), tuple(facts), (), shown, wide, stated, schema=schema)
    return DecidedRows(training, features, None, named)


def _by_schema(X: TableLike, sensitive: ColumnsLike, schema: Schema) -> tuple[Any, ...]:
    """The groups by the schema's columns, and X's features alone."""
    names = names_in(sensitive)
    if names is not None:
        unused = [name for name in schema.sensitive if name not in names]
        schema = schema.with_roles(sensitive=names).without(*unused)
    require_groups(bool(schema.sensitive))
    beside = (
        named_as_declared(sensitive, schema) if names is None and sensitive is not None else None
    )
    bare = schema if schema.target is None else schema.without(schema.target)
    rows = encode(X, bare, names=bare.features, sensitive=beside)
    codes = np.concatenate(
        [np.asarray(block.sensitive, np.uint16) for block in rows.blocks()], axis=1
    )
    there = base_columns.names_of(X)
    features = base_columns.without(X, [name for name in there if name not in bare.features])
    return (
        rows.layout.sensitive_names,
        rows.layout.sensitive,
        codes,
        features,
        beside is None,
        bare.features if there else (),
    )


def with_groups(asked: DecidedRows, cells: Cells) -> DecidedRows:
    """The same rows with groups that were declared, which need not all occur."""
    training = asked.training
    layout = training.rows.layout
    require_groups(bool(layout.sensitive))
    (block,) = training.rows.given.blocks()
    columns = {
        name: np.array(values, dtype=object)[np.asarray(block.sensitive)[at]]
        for at, (name, values) in enumerate(
            zip(layout.sensitive_names, layout.sensitive, strict=True)
        )
    }
    found, codes = read_groups(columns, block.rows, groups=cells)
    layout = replace(layout, sensitive=found.columns, sensitive_names=found.names)
    none = np.empty((0, block.rows))
    given = RowBlock(
        none,
        none.astype(np.uint8),
        block.labels,
        codes,
        block.weights if training.rows.weighted else None,
    )
    held = Rows(
        Coded(layout, (given,)),
        max_sample_weight=training.rows.max_sample_weight,
        units=training.rows.persons,
    )
    others = [fact for fact in training.facts if not fact.name.startswith("groups of ")]
    named = zip(found.names, found.columns, strict=True)
    facts = [
        PublicFact(f"groups of {in_words([name])}", in_words(values), "argument")
        for name, values in named
    ]
    return replace(asked, training=replace(training, rows=held, facts=(*others, *facts)))


def require_groups(there: bool) -> None:
    """An error for rows without groups."""
    if not there:
        raise InputError.expected(
            "the group of every row", of="sensitive_features", got=None, remedy=WITHOUT
        )
