"""Coded rows, in memory or mapped from a file (`store`), and what is coded into them.

Guarantees (tests/data):
1. Every row is checked against the schema before rows are returned, hence before any release.
2. Errors of rows that do not lie in memory show no value: they name column and row.
3. Chosen rows are those, in their order, to the bit; of a file they are gathered at each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..core.errors import need
from ..errors import SchemaError
from ..facts.rows import RowBlock, RowLayout, Traits
from ..facts.schema import Schema
from ..statement.document import PublicFact
from ..tables.columns import Raw
from ..tables.frames import column_of, table_of
from .encoding import Encoding
from .persons import require_one_kind

BLOCK_ROWS = 65_536


@dataclass(frozen=True)
class Chunk:
    """A run of raw rows."""

    columns: Mapping[str, Raw]
    rows: int


@dataclass(frozen=True, repr=False)
class EncodedRows:
    """A `RowSource`: pass it in place of X. Nothing here prints rows, nor how many there are.

    `is_mapped`: blocks are views of a file, `path` where it has a name; `require_same`: an error
    where that has changed; `fingerprint`: of all that it holds. `facts`: what a statement about
    these rows says beside their schema.
    """

    encoding: Encoding
    _blocks: tuple[RowBlock, ...]
    is_mapped: bool = False
    require_same: Callable[[], None] | None = None
    facts: tuple[PublicFact, ...] = ()
    path: Path | None = None
    fingerprint: str | None = None

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        return self.encoding.layout

    @property
    def traits(self) -> Traits:
        """What a fit must know of these rows."""
        return Traits(self.is_mapped, require_same=self.require_same, fingerprint=self.fingerprint)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows; private where their number is."""
        return sum(map(size_of, self._blocks))

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, in the order of the table."""
        if self.require_same is not None:
            self.require_same()
        return iter(self._blocks)

    def chosen(self, at: npt.NDArray[np.intp]) -> EncodedRows | ChosenRows:
        """Some of the rows, by their places in ascending order: copied, or of a file gathered at
        each pass."""
        if self.is_mapped:
            wanted = np.zeros(sum(block.rows for block in self._blocks), np.bool_)
            wanted[at] = True
            return ChosenRows(self.encoding, self.blocks, np.packbits(wanted), self.facts)
        blocks, start = [], 0
        for block in self._blocks:
            blocks.append(block.at(at[(at >= start) & (at < start + block.rows)] - start))
            start += block.rows
        return EncodedRows(self.encoding, tuple(blocks), facts=self.facts)

    def by(self, schema: Schema, *, sensitive_as_feature: bool = False) -> EncodedRows:
        """The rows as this schema has them: of the same features, and perhaps without the target,
        a sensitive column or whose each row is."""
        own, encoding = (
            self.encoding.schema,
            Encoding(schema, sensitive_as_feature, self.encoding.precision),
        )
        needed = {name: schema.columns[name] for name in encoding.needed()}
        same = needed == {name: own.columns.get(name) for name in needed}
        same &= encoding.features == self.encoding.features
        same &= schema.target in (None, own.target) and set(schema.sensitive) <= set(own.sensitive)
        same &= schema.unit in (None, own.unit)
        fix = "Code the table again by the schema and the roles that are asked for now."
        expected, got = (
            f"features {', '.join(one.features)}, unit={one.schema.unit!r}"
            for one in (encoding, self.encoding)
        )
        got = f"{got}, or other roles"
        need(same, expected, of="the store", got=got, fix=fix, error=SchemaError, quote=False)
        at = [own.sensitive.index(name) for name in schema.sensitive]

        def of_roles(block: RowBlock) -> RowBlock:
            groups = block.sensitive
            if groups is not None and at != list(range(len(groups))):
                groups = np.ascontiguousarray(groups[at]) if at else None
            labels = None if schema.target is None else block.labels
            persons = None if schema.unit is None else block.persons
            return replace(block, labels=labels, sensitive=groups, persons=persons)

        return replace(self, encoding=encoding, _blocks=tuple(map(of_roles, self.blocks())))

    def delete(self) -> None:
        """Remove the file of these rows, which are then no longer readable through this."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def __repr__(self) -> str:
        return f"EncodedRows({self.encoding!r})"


@dataclass(frozen=True, repr=False)
class ChosenRows:
    """Some of the rows of a file, gathered block by block at each pass: no copy of them is held.
    `_bits`: which ones, eight to a byte; `facts`: of all of them."""

    encoding: Encoding
    _blocks: Callable[[], Iterator[RowBlock]]
    _bits: npt.NDArray[np.uint8]
    facts: tuple[PublicFact, ...] = ()

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        return self.encoding.layout

    @property
    def traits(self) -> Traits:
        """What a fit must know of these rows."""
        return Traits(is_streamed=True)

    def blocks(self) -> Iterator[RowBlock]:
        """The chosen rows, in the order of the table."""
        start = 0
        for block in self._blocks():
            first, skipped = start // 8, start % 8
            bits = np.unpackbits(self._bits[first : -(-(start + block.rows) // 8)])
            start += block.rows
            chosen = block.at(np.flatnonzero(bits[skipped : skipped + block.rows]))
            if chosen.rows:
                yield chosen

    def chosen(self, at: npt.NDArray[np.intp]) -> ChosenRows:
        """Some of these."""
        wanted = np.zeros(8 * len(self._bits), np.bool_)
        wanted[np.flatnonzero(np.unpackbits(self._bits))[at]] = True
        return replace(self, _bits=np.packbits(wanted))

    def __repr__(self) -> str:
        return f"ChosenRows({self.encoding!r})"


def size_of(block: RowBlock) -> int:
    """Bytes of a block of dense rows."""
    arrays = (block.numbers, block.codes, block.labels, block.sensitive, block.persons)
    return sum(array.nbytes for array in arrays if array is not None)


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
    tables = {name: (table_of({name: beside[name]}) if name in beside else main) for name in needed}
    require_columns([name for name in needed if name not in beside], main.names, "table")
    lengths = {name: one.rows for name, one in tables.items()}
    one, fix = len(set(lengths.values())) <= 1, "Align the columns by position."
    need(one, "columns of one length", of="table", got=lengths, fix=fix, error=SchemaError)
    rows = next(iter(lengths.values()), main.rows)
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
        named, fix = schema.target is not None, 'Pass Schema(..., target="name").'
        need(named, "a schema with a target", of="target", got=schema, fix=fix, error=SchemaError)
        columns[str(schema.target)] = column_of(target, str(schema.target))
    for name, values in (sensitive or {}).items():
        known, fix = f"one of {list(schema.sensitive)}", "Declare it sensitive."
        there = name in schema.sensitive
        need(there, known, of="sensitive", got=name, fix=fix, error=SchemaError)
        columns[name] = column_of(values, name)
    return columns


def coded(chunks: Iterable[Chunk], encoding: Encoding) -> Iterator[RowBlock]:
    """Rows as they are read, coded: guarantee 2."""
    first_row, kinds = 0, set[int]()
    for chunk in chunks:
        block = encoding.block(
            chunk.columns, rows=chunk.rows, first_row=first_row, shows_values=False
        )
        if block.persons is not None:
            kinds = require_one_kind(block.persons, str(encoding.schema.unit), kinds)
        yield block
        first_row += chunk.rows


def require_columns(
    needed: Iterable[str], there: Sequence[str], of: str, got: object = None
) -> None:
    """An error that names the declared columns that a table lacks, and those that there are, or
    `got` in their place."""
    lacking = [name for name in needed if name not in set(there)]
    fix = "Rename the table's columns, or declare only those that there are."
    expected, got = (
        f"the declared columns, {lacking} among them",
        list(there) if got is None else got,
    )
    need(not lacking, expected, of=of, got=got, fix=fix, error=SchemaError)


def in_blocks_of(blocks: Iterable[RowBlock], block_rows: int) -> Iterator[RowBlock]:
    """The same rows in the same order, in blocks of exactly `block_rows` (the last may be
    shorter)."""
    waiting: list[RowBlock] = []
    count = 0
    for block in blocks:
        start = 0
        while start < block.rows:
            stop = min(block.rows, start + block_rows - count)
            waiting.append(block if stop - start == block.rows else block.at(slice(start, stop)))
            count += stop - start
            start = stop
            if count == block_rows:
                yield RowBlock.joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield RowBlock.joined(waiting)
