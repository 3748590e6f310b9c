"""Coded rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..errors import SchemaError
from ..facts.rows import RowBlock, RowLayout, Traits
from ..facts.schema import Schema
from ..privacy.statement.parts import PublicFact
from ..tables.frames import Arrays, Table, column_of, table_of
from .chosen_rows import ChosenRows, gathered
from .encoding import Encoding
from .person_names import require_one_kind

BLOCK_ROWS = 65_536


@dataclass(frozen=True, repr=False)
class EncodedRows:
    """A `RowSource` in memory. The blocks are rows of people: nothing here prints them, nor how
    many there are. `is_mapped`: blocks are views of a file; `require_same`: an error where that has
    changed. `facts`: what a statement about these rows says beside their schema."""

    encoding: Encoding
    _blocks: tuple[RowBlock, ...]
    is_mapped: bool = False
    require_same: Callable[[], None] | None = None
    facts: tuple[PublicFact, ...] = ()

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        return self.encoding.layout

    @property
    def traits(self) -> Traits:
        """What a fit must know of these rows."""
        return Traits(is_mapped=self.is_mapped, require_same=self.require_same)

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, in the order of the table."""
        return iter(self._blocks)

    def chosen(self, at: npt.NDArray[np.intp]) -> EncodedRows | ChosenRows:
        """Some of the rows, by their places in ascending order: copied, or of a file gathered at
        each pass."""
        if self.is_mapped:
            wanted = np.zeros(sum(block.rows for block in self._blocks), np.bool_)
            wanted[at] = True
            return ChosenRows(self.encoding, self._checked, np.packbits(wanted))
        blocks, start = [], 0
        for block in self._blocks:
            blocks.append(gathered(block, at[(at >= start) & (at < start + block.rows)] - start))
            start += block.rows
        return EncodedRows(self.encoding, tuple(blocks), facts=self.facts)

    def _checked(self) -> Iterator[RowBlock]:
        """All rows of a file that has not changed."""
        if self.require_same is not None:
            self.require_same()
        yield from self._blocks

    def __repr__(self) -> str:
        return f"EncodedRows({self.encoding!r})"


def encode_table(
    table: object,
    schema: Schema,
    *,
    names: Sequence[str] | None = None,
    target: object = None,
    sensitive: Mapping[str, object] | None = None,
    with_target: bool = True,
    with_sensitive: bool = True,
    sensitive_as_feature: bool = False,
    block_rows: int = BLOCK_ROWS,
    precision: str = "float64",
    shows_values: bool = True,
) -> EncodedRows:
    """A table in memory, coded: see `opening.encode`. `shows_values`: whether errors may show the
    values of a row."""
    block_rows = _checks.whole(block_rows=block_rows, at_least=1)
    schema = _checks.instance(Schema, "schema", schema, "Read one with Schema.load(path).")
    encoding = Encoding(schema, sensitive_as_feature, precision)
    needed = encoding.needed(target=with_target, sensitive=with_sensitive)
    beside = _beside(schema, target, sensitive)
    main = table_of(table, names)
    if with_target:
        needed = (*needed, *(name for name in encoding.wished if name in main.names))
    tables = {name: (Arrays({name: beside[name]}) if name in beside else main) for name in needed}
    require_columns([name for name in needed if name not in beside], main.names, "table")
    rows = _one_length(tables, main)
    blocks, kinds = [], set[int]()
    for start in range(0, rows, block_rows):
        stop = min(start + block_rows, rows)
        raw = {name: tables[name].run(name, start, stop) for name in needed}
        options = {"target": with_target, "sensitive": with_sensitive, "shows_values": shows_values}
        block = encoding.block(raw, rows=stop - start, first_row=start, **options)
        if block.persons is not None:
            kinds = require_one_kind(block.persons, str(schema.unit), kinds)
        blocks.append(block)
    return EncodedRows(encoding, tuple(blocks))


def _beside(
    schema: Schema, target: object, sensitive: Mapping[str, object] | None
) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if target is not None:
        if schema.target is None:
            raise SchemaError.expected(
                "a schema with a target",
                of="target",
                got=schema,
                remedy='Pass Schema(..., target="name").',
            )
        columns[schema.target] = column_of(target, schema.target)
    for name, values in (sensitive or {}).items():
        if name not in schema.sensitive:
            raise SchemaError.expected(
                f"one of {list(schema.sensitive)}",
                of="sensitive",
                got=name,
                remedy="Declare it sensitive.",
            )
        columns[name] = column_of(values, name)
    return columns


def require_columns(
    needed: Iterable[str], there: Sequence[str], of: str, got: object = None
) -> None:
    """An error that names the declared columns that a table lacks, and those that there are, or
    `got` in their place."""
    lacking = [name for name in needed if name not in set(there)]
    if lacking:
        raise SchemaError.expected(
            f"the declared columns, {lacking} among them",
            of=of,
            got=list(there) if got is None else got,
            remedy="Rename the table's columns, or declare only those that there are.",
        )


def _one_length(tables: Mapping[str, Table], main: Table) -> int:
    lengths = {name: table.rows for name, table in tables.items()}
    if len(set(lengths.values())) > 1:
        raise SchemaError.expected(
            "columns of one length",
            of="table",
            got=lengths,
            remedy="Align the columns by position.",
        )
    return next(iter(lengths.values()), main.rows)


def in_blocks_of(blocks: Iterable[RowBlock], block_rows: int) -> Iterator[RowBlock]:
    """The same rows in the same order, in blocks of exactly `block_rows` (the last may be
    shorter)."""
    waiting: list[RowBlock] = []
    count = 0
    for block in blocks:
        start = 0
        while start < block.rows:
            stop = min(block.rows, start + block_rows - count)
            waiting.append(_part(block, start, stop))
            count += stop - start
            start = stop
            if count == block_rows:
                yield _joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield _joined(waiting)


def _part(block: RowBlock, start: int, stop: int) -> RowBlock:
    if start == 0 and stop == block.rows:
        return block
    labels = None if block.labels is None else block.labels[start:stop]
    sensitive = None if block.sensitive is None else block.sensitive[:, start:stop]
    persons = None if block.persons is None else block.persons[start:stop]
    return RowBlock(
        block.numbers[:, start:stop], block.codes[:, start:stop], labels, sensitive, None, persons
    )


def _joined(parts: list[RowBlock]) -> RowBlock:
    if len(parts) == 1:
        only = parts[0]
        if only.numbers.flags.c_contiguous and only.codes.flags.c_contiguous:
            return only
    first = parts[0]
    return RowBlock(
        np.concatenate([part.numbers for part in parts], axis=1),
        np.concatenate([part.codes for part in parts], axis=1),
        None
        if first.labels is None
        else np.concatenate([part.labels for part in parts if part.labels is not None]),
        None
        if first.sensitive is None
        else np.concatenate(
            [part.sensitive for part in parts if part.sensitive is not None], axis=1
        ),
        None,
        None
        if first.persons is None
        else np.concatenate([part.persons for part in parts if part.persons is not None]),
    )
