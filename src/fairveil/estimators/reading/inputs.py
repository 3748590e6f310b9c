"""What `fit` was given, as the rows of a curator: by a schema, as coded rows, or as tables come.
Shared by all estimators.

Everything is matched by position, never by an index. Columns of X that are named as sensitive are
no features, unless asked. What is read from the data rather than stated is listed as a public fact
with that origin, for the privacy statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._types import ColumnsLike
from ...core.extra.sharded import ShardedRows
from ...core.pricing import require_features_apart
from ...curator import Rows
from ...data.elsewhere import Elsewhere
from ...errors import InputError
from ...facts import RowBlock, RowLayout, RowSource, Schema
from ...facts.rows import schema_of, traits_of
from ...statement.document import PublicFact
from ...statement.form import READ_FROM_DATA
from ...tables.columns import read_weights
from ...tables.grids import refuse_duplicates
from . import sharded
from . import units as units_of
from .blocks import Blocks
from .coding import Coding, SchemaCoding, TableCoding
from .copies import refuse_copies, refuse_weights
from .elsewhere import training_of
from .read_as import ReadTable, as_it_comes, by_schema, from_rows
from .standard import Standard
from .targets import beside
from .training import Coded, ReadOptions, Training, need_classes, with_steps

THIN = 0.25
"""Below this share of numbers that are not zero a dense matrix is kept sparse."""


def read(
    X: Any,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: ReadOptions,
) -> Training:
    """The rows of a fit, checked before any release."""
    if isinstance(X, Elsewhere):
        return training_of(X, y, sensitive_features, sample_weight, ways)
    schema = ways.schema
    coded_by = schema_of(X)
    units_of.require_heeded(schema if schema is not None else coded_by, ways.whose)
    for of, table in (("X", X), ("sensitive_features", sensitive_features)):
        refuse_duplicates(table, of)
    found = _found(X, y, sensitive_features, schema, ways)
    if ways.target is None:
        need_classes(found.layout)
    stated = ways.public_rows
    if stated is not None:
        found.facts[:] = [fact for fact in found.facts if fact.name != "number of rows"]
        found.facts.append(PublicFact("number of rows", str(stated), "schema"))
    elif isinstance(found.coding, SchemaCoding):
        stated = found.coding.encoding.schema.rows
    coding, layout, blocks = found.coding, found.layout, found.blocks
    shards = None
    if blocks.are_sharded:
        sharded.refuse_what_needs_rows(sample_weight, ways.whose, ways.standardise)
        shards = X.shards()
    if ways.additive is not None:
        exact = None
        if ways.rows_are_public:
            exact = sum(block.rows for block in blocks) if shards is None else sum(shards.counts)
        coding, layout = with_steps(
            ways, found.facts, coding, layout, stated if exact is None else exact, blocks
        )
        if coding.shapes is not None:
            blocks = blocks.then(coding.shapes.apply)
    not_covered: tuple[str, ...] = ()
    if ways.standardise:
        coding = replace(coding, standard=Standard.of(blocks, found.layout.numbers))  # type: ignore[type-var]
        assert coding.standard is not None
        blocks = blocks.then(coding.standard.apply)
        not_covered = _of_scale(found.facts, ways)
    not_covered += _of_target(found)
    if ways.thin and isinstance(coding, TableCoding) and coding.standard is None:
        blocks = blocks.then(_thinned)
    if sample_weight is not None:
        by_facts = not isinstance(found.coding, TableCoding)
        are_private = by_facts and not ways.features_are_public
        blocks = Blocks(_with_weights(blocks, sample_weight, are_private), blocks.source)
    if ways.target is not None and ways.target.as_number:
        layout, blocks = replace(layout, numbers=layout.numbers + 1), blocks.then(beside)
    rows = _rows_of(X, found, ways, layout, blocks, shards)
    if ways.features_are_public:
        _refuse_copies(rows, found)
        if rows.weighted:
            if sample_weight is not None:
                refuse_weights(blocks, layout)
            words = "public: must not depend on the sensitive columns"
            found.facts.append(PublicFact("sample weights", words, "argument"))
    by = schema_of(X) if schema is None else schema
    facts = tuple(found.facts)
    return Training(
        rows, coding, facts, not_covered, found.columns, found.n_features, stated, found.target, by
    )


def _found(
    X: object, y: ColumnsLike, sensitive: ColumnsLike, schema: Schema | None, ways: ReadOptions
) -> ReadTable:
    """The table as what it is: coded rows, by a schema, or as it comes."""
    if isinstance(X, RowSource):
        found = from_rows(X, y, sensitive, schema, ways.target)
        if ways.features_are_public:
            require_features_apart(found.layout, "sensitive_features")
        return found
    if schema is not None:
        return by_schema(X, y, sensitive, schema, ways.sensitive_as_feature, ways.target)
    unit = None if ways.whose is None else ways.whose.column
    return as_it_comes(X, y, sensitive, ways.sensitive_as_feature, ways.target, unit, ways.groups)


def _of_scale(facts: list[PublicFact], ways: ReadOptions) -> tuple[str, ...]:
    """What the statement says of numbers scaled by the rows: a public fact, or what it does not
    cover."""
    if ways.features_are_public:  # then their means and deviations are, too
        words = "means and standard deviations of the features"
        facts.append(PublicFact("scale of the numbers", words, "public features"))
        return ()
    return (
        "unsafe: numbers were scaled by the training rows' own means and standard deviations, as "
        "asked by unsafe_data_dependent_bounds=True",
    )


def _of_target(found: ReadTable) -> tuple[str, ...]:
    """The same of a numeric target's bounds."""
    if found.target is None:
        return ()
    found.facts.append(found.target.fact())
    if found.target.origin != READ_FROM_DATA:
        return ()
    return (
        "unsafe: the bounds of the target are its own range, as asked by "
        "unsafe_data_dependent_bounds=True",
    )


def _rows_of(
    X: object,
    found: ReadTable,
    ways: ReadOptions,
    layout: RowLayout,
    blocks: Blocks,
    shards: Any,
) -> Rows:
    """The rows of a curator, with whose each row is."""
    units = None
    if ways.whose is not None:
        units_of.require_apart(ways.whose.column, layout.sensitive_names)
        units = ways.whose.of_table(X, found.grid, sum(block.rows for block in blocks))
    if shards is not None:
        return sharded.rows_of(shards, blocks, layout, ways.max_sample_weight)
    coded = Coded(layout, blocks, traits_of(blocks.source))
    cap, in_memory = ways.max_sample_weight, not blocks.are_streamed
    return Rows(coded, max_sample_weight=cap, units=units, in_memory=in_memory)


def _refuse_copies(rows: Rows, found: ReadTable) -> None:
    """Of public features that are a sensitive column over again."""
    names = _names_of_features(found.coding)
    if isinstance(rows, ShardedRows):
        sharded.refuse_copies(rows, found.layout, names)
    else:
        refuse_copies(found.blocks, found.layout, names)


def _names_of_features(coding: Coding) -> tuple[str, ...]:
    """The name of each feature, numbers before codes, as in blocks."""
    if isinstance(coding, SchemaCoding):
        encoding = coding.encoding
        return (*(scale.name for scale in encoding.numbers), *encoding.coded)
    if isinstance(coding, TableCoding):
        return tuple(
            feature.name
            for feature in sorted(coding.features, key=lambda feature: feature.values is not None)
        )
    layout = coding.layout
    return (
        *(f"x{j}" for j in range(layout.numbers)),
        *(f"code{j}" for j in range(len(layout.code_sizes))),
    )


def _thinned(block: RowBlock) -> RowBlock:
    """Numbers as a sparse array where fewer than a quarter are not zero: indicators that came as a
    dense matrix."""
    numbers = block.numbers
    if (
        sparse.issparse(numbers)
        or numbers.size == 0
        or np.count_nonzero(numbers) >= THIN * numbers.size
    ):
        return block
    return replace(block, numbers=sparse.csr_array(numbers.T))


def weights_of(
    sample_weight: ColumnsLike, rows: int, *, are_private: bool = False
) -> npt.NDArray[np.float64] | None:
    """The weights of a fit, checked; None where all rows count once. Private ones may all be zero,
    as a table may be empty: a refusal would tell of one row."""
    weights = read_weights(sample_weight, rows, of="X")
    if not are_private and weights is not None and len(weights) and not weights.any():
        remedy = "Sample weights must contain at least one number that is not zero."
        raise InputError.expected(
            "some weight", of="sample_weight", got="zeros alone", remedy=remedy
        )
    return weights


def _with_weights(
    blocks: Sequence[RowBlock], sample_weight: ColumnsLike, are_private: bool
) -> Iterator[RowBlock]:
    count, a = sum(block.rows for block in blocks), 0
    weights = weights_of(sample_weight, count, are_private=are_private)
    assert weights is not None
    for block in blocks:
        yield replace(block, weights=np.ascontiguousarray(weights[a : a + block.rows]))
        a += block.rows
