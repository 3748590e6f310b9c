"""A table of features and labels, and an attribute that somebody else holds, joined by id where the
attribute lies.

    a[i] = the holder's entry for the id of row i; the value that the schema declares for missing
    ones where there is none

Each id occurs once in either table. So one person's entry, its value or that it is there at all,
moves the group of one row (docs/theory/attribute_holder.md). With `unmatched="drop"` rows without
an entry are left out: then who has one is visible.

Guarantees (tests/data/test_data_joined.py):
1. One entry added, removed or changed gives rows that differ in the group of one row at most;
   features, labels and the order of rows stay (`unmatched="group"`).
2. An id that occurs twice, in either table, or is missing, is refused. No error shows an id or a
   value of a row.
3. Which value counts for unmatched ids is declared by the schema: without it the join is refused
   before a row is read.
4. Rows are those that the same table with the attribute's column in it gives, to the bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..errors import InputError, JoinError, SchemaError
from ..facts.columns import Boolean, Category, Ignored
from ..facts.schema import Schema
from ..privacy.statement.parts import READ_FROM_DATA, PublicFact
from ..tables.raw import Listed, Plain, Raw
from . import csv_files, parquet_files, sql
from .coding import Place as Cell
from .coding import category_codes
from .encoded import BLOCK_ROWS, EncodedRows
from .encoding import Encoding
from .files import PathLike
from .joined_ids import ids_of, require_once
from .opening import delimiter_of, kind_of
from .store import open_store
from .streamed import Chunk, Reader, rows_of

UNMATCHED = ("group", "drop")
ATTRIBUTE = "the attribute's table"


@dataclass(frozen=True)
class Matched:
    """How a join went: exact, hence for the attribute's holder alone. `rows` of the table, how many
    of them have an entry, and how many entries belong to no row."""

    rows: int
    matched: int
    unused: int


@dataclass(frozen=True, eq=False, repr=False)  # it holds what is private
class Attribute:
    """Entries of the sensitive columns by id: `places` of the ids, `codes` (columns, entries)."""

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    places: Mapping[str, int]
    codes: npt.NDArray[np.int32]

    def at(self, ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """The place of each id's entry, -1 without one."""
        return np.fromiter((self.places.get(one, -1) for one in ids), np.int64, len(ids))

    def columns(self, at: npt.NDArray[np.int64]) -> dict[str, Raw]:
        """The sensitive columns of rows with these entries."""
        padded = np.concatenate([self.codes, np.full((len(self.codes), 1), -1, np.int32)], axis=1)
        return {
            name: Listed(line[at], values)
            for name, line, values in zip(self.names, padded, self.values, strict=True)
        }


def load_joined(
    table: PathLike,
    attribute: PathLike,
    schema: Schema,
    *,
    id: str,
    unmatched: str = "group",
    ids: PathLike | None = None,
    query: str | None = None,
    attribute_query: str | None = None,
    precision: str = "float64",
) -> EncodedRows:
    """Rows of a table with an attribute that is held elsewhere, joined by id.

    `table`: a CSV or Parquet file with features, target and the column `id`; a database with
    `query`; or a coded store without the sensitive columns, with `ids`, a file of the column `id`
    in the order of its rows. `attribute`: a file with the column `id` and the schema's sensitive
    columns (a database with `attribute_query`). `schema`: of the joined table.

    Ids are compared as they are written, without blanks around them; whole numbers by their digits.
    `unmatched="group"`: a row without an entry counts as the value that the schema declares for
    missing ones (`Category(values, missing=...)`), and whether it has one is protected with the
    attribute. `unmatched="drop"`: it is left out, and whether it has one is not protected. Rows
    that do not fit memory lie on the disk until they are used.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from fairveil.facts import Category, Number
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "company.csv").write_text("id,score,hired\\na7,1,no\\nb3,5,yes\\n")
    >>> _ = (folder / "register.csv").write_text("id,sex\\nb3,f\\nz9,m\\n")
    >>> columns = {
    ...     "score": Number(0, 10),
    ...     "sex": Category(("f", "m", "?"), missing="?"),
    ...     "hired": Category(("no", "yes")),
    ... }
    >>> schema = Schema(columns, target="hired", sensitive="sex")
    >>> rows = load_joined(folder / "company.csv", folder / "register.csv", schema, id="id")
    >>> next(rows.blocks()).sensitive.tolist()
    [[2, 0]]
    """
    joining = Joining.of(table, attribute, schema, id, unmatched, ids, query, attribute_query)
    encoding = Encoding(schema, precision=precision)
    found = (
        joining.of_store()
        if joining.reader is None
        else rows_of(joining, encoding, None, BLOCK_ROWS)
    )
    assert isinstance(found, EncodedRows)
    return replace(found, facts=facts_of(schema, unmatched))


def matched(table: PathLike, attribute: PathLike, schema: Schema, **options: Any) -> Matched:
    """How many rows would be matched: exact counts for the attribute's holder, who should not pass
    them on. For options see `load_joined`."""
    named = {
        "id": None,
        "unmatched": "group",
        "ids": None,
        "query": None,
        "attribute_query": None,
        **options,
    }
    joining = Joining.of(table, attribute, schema, *named.values())
    found = np.concatenate([np.empty(0, np.int64), *(at for at, _ in joining.pairs())])
    used = int((found >= 0).sum())
    return Matched(len(found), used, len(joining.attribute.places) - used)


def facts_of(schema: Schema, unmatched: str) -> tuple[PublicFact, ...]:
    """What the statement of whoever uses joined rows says of the join."""
    names = ", ".join(schema.sensitive)
    joined = PublicFact(
        f"joined {names}",
        "by id, from another holder's table; each id once in either table",
        "argument",
    )
    if unmatched == "drop":
        words = "rows without an entry are left out, so who has an entry is not protected"
        return joined, PublicFact("unmatched ids", words, READ_FROM_DATA)
    counted = ", ".join(f"{name} {schema.columns[name].missing!r}" for name in schema.sensitive)  # type: ignore[union-attr]
    return joined, PublicFact(
        "unmatched ids", f"count as {counted}; who has an entry is protected, too", "schema"
    )


@dataclass(frozen=True, eq=False, repr=False)
class Joining:
    """A reader of the joined table. `reader`: of the table, with the ids; None: it is a store,
    whose ids are elsewhere."""

    place: str
    schema: Schema
    id: str
    drops: bool
    attribute: Attribute
    reader: Reader | None
    ids: Reader | None

    @staticmethod
    def of(
        table: PathLike,
        attribute: PathLike,
        schema: Schema,
        id: str,
        unmatched: str,
        ids: PathLike | None,
        query: str | None,
        attribute_query: str | None,
    ) -> Joining:
        """Checked, with the attribute's table read."""
        require_rule(schema, id, unmatched)
        bare, place = schema.without(*schema.sensitive), os.fspath(table)
        is_store = kind_of(place, query) == "store"
        if is_store != (ids is not None):
            remedy = (
                "Name a file with the column of ids, in the order of the store's rows."
                if is_store
                else "Leave it out."
            )
            expected = (
                "a file of ids beside a coded store"
                if is_store
                else "None: the ids are a column of the table"
            )
            raise InputError.expected(expected, of="ids", got=ids, remedy=remedy)
        needed = (id, *schema.sensitive)
        held = _read(reader_of(attribute, attribute_query, schema, needed), schema, id)
        own = None if is_store else reader_of(table, query, bare, (id, *Encoding(bare).needed()))
        others = None if ids is None else reader_of(ids, None, bare, (id,))
        return Joining(place, schema, id, unmatched == "drop", held, own, others)

    def identity(self) -> object:
        """Of the table; the attribute is in memory."""
        assert self.reader is not None
        return self.reader.identity()

    def counted(self) -> None:
        """Rows without an entry may be dropped."""

    def chunks(self) -> Iterator[Chunk]:
        """All rows, with their attribute."""
        for at, chunk in self.pairs():
            assert chunk is not None
            columns, kept = (
                {name: raw for name, raw in chunk.columns.items() if name != self.id},
                at,
            )
            if self.drops and (at < 0).any():
                chosen = at >= 0
                columns, kept = (
                    {name: _of(raw, chosen) for name, raw in columns.items()},
                    at[chosen],
                )
            yield Chunk({**columns, **self.attribute.columns(kept)}, len(kept), text=chunk.text)

    def pairs(self) -> Iterator[tuple[npt.NDArray[np.int64], Chunk | None]]:
        """The entry of each row, run by run."""
        reader = self.reader or self.ids
        assert reader is not None
        seen: set[str] = set()
        first = 0
        for chunk in reader.chunks():
            found = ids_of(chunk.columns[self.id], "the table", self.id, first)
            require_once(found, seen, "the table", first)
            first += chunk.rows
            yield self.attribute.at(found), chunk

    def of_store(self) -> EncodedRows:
        """The rows of a coded store, with their attribute."""
        bare = self.schema.without(*self.schema.sensitive)
        store = open_store(self.place).rows(bare)
        encoding = Encoding(self.schema, precision=store.encoding.precision)
        at = np.concatenate([np.empty(0, np.int64), *(found for found, _ in self.pairs())])
        rows = sum(block.rows for block in store.blocks())
        if len(at) != rows:
            remedy = "Take the ids of the rows that the store was written from, in their order."
            expected, got = "an id for each row of the store", "another number"
            raise JoinError.expected(expected, of="ids", got=got, remedy=remedy, quote=False)
        codes = _codes(self.attribute.columns(at), self.schema)
        blocks, start = [], 0
        for block in store.blocks():
            groups = np.ascontiguousarray(codes[:, start : start + block.rows], np.uint16)
            blocks.append(replace(block, sensitive=groups))
            start += block.rows
        whole = EncodedRows(encoding, tuple(blocks), require_same=store.require_same)
        found = whole.chosen(np.flatnonzero(at >= 0)) if self.drops else whole
        assert isinstance(found, EncodedRows)
        return found


def require_rule(schema: Schema, id: str, unmatched: str) -> None:
    """An error where the rule for unmatched ids is not declared, or roles are in the way: guarantee
    3."""
    _checks.one_of(UNMATCHED, unmatched=unmatched)
    given: object = schema
    given = _checks.instance(Schema, "schema", given, "Read one with Schema.load(path).")
    if not schema.sensitive:
        remedy = "Name the columns that the holder brings: Schema(..., sensitive=...)."
        raise SchemaError.expected(
            "a schema with sensitive columns", of="schema", got="none", remedy=remedy
        )
    if not isinstance(schema.columns.get(id, Ignored()), Ignored):
        remedy = "Name the column of pseudonymous ids; declare it ignored, or not at all."
        raise SchemaError.expected(
            "a column that is no feature and no role", of="id", got=id, remedy=remedy
        )
    if unmatched == "drop":
        return
    lacking = [name for name in schema.sensitive if schema.columns[name].missing is None]  # type: ignore[union-attr]
    if lacking:
        expected = f"a value for unmatched ids declared for {', '.join(lacking)}"
        remedy = (
            "Declare it: Category(values, missing='unknown'), with 'unknown' among the values. Or "
            "use unmatched='drop'."
        )
        raise SchemaError.expected(expected, of="schema", got=None, remedy=remedy)


def reader_of(place: PathLike, query: str | None, schema: Schema, needed: Sequence[str]) -> Reader:
    """Columns of a CSV or Parquet file, or of a database."""
    kind = kind_of(place, query)
    if kind == "sql":
        return sql.reader_of(place, str(query), needed)
    if kind == "store":
        remedy = "Name the table that it was made from: a store keeps no ids."
        raise InputError.expected(
            "a table", of=os.fspath(place), got="a coded store", remedy=remedy
        )
    if kind == "parquet":
        return parquet_files.reader_of(place, needed)
    return csv_files.reader_of(place, schema, needed, delimiter=delimiter_of(place))


def _read(reader: Reader, schema: Schema, id: str) -> Attribute:
    places: set[str] = set()
    ids: list[str] = []
    parts: list[npt.NDArray[np.int32]] = []
    for chunk in reader.chunks():
        found = ids_of(chunk.columns[id], ATTRIBUTE, id, len(ids))
        require_once(found, places, ATTRIBUTE, len(ids))
        parts.append(_codes(chunk.columns, schema, first=len(ids), text=chunk.text))
        ids += found
    codes = np.concatenate([np.empty((len(schema.sensitive), 0), np.int32), *parts], axis=1)
    return Attribute(
        schema.sensitive, schema.groups, {one: at for at, one in enumerate(ids)}, codes
    )


def _codes(
    columns: Mapping[str, Raw], schema: Schema, *, first: int = 0, text: bool = False
) -> npt.NDArray[np.int32]:
    """Codes (columns, rows) of the sensitive columns, by their declarations."""
    lines = []
    for name in schema.sensitive:
        column = schema.columns[name]
        assert isinstance(column, Category | Boolean)
        lines.append(
            category_codes(
                columns[name], column, Cell(name, first, text, schema.missing_values, False)
            )
        )
    return np.stack(lines)


def _of(raw: Raw, chosen: npt.NDArray[np.bool_]) -> Raw:
    if isinstance(raw, Listed):
        return Listed(raw.at[chosen], raw.values)
    return Plain(raw.values[chosen], None if raw.null is None else raw.null[chosen])
