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
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..errors import InputError, JoinError, SchemaError
from ..facts.columns import Boolean, Category, Ignored
from ..facts.schema import Schema
from ..statement.check import READ_FROM_DATA
from ..statement.document import PublicFact
from ..tables.raw import Listed, Plain, Raw, is_missing
from .coding import Place, category_codes
from .encoding import Encoding
from .reading import PathLike, chunks_of, kind_of
from .rows import Chunk, EncodedRows, coded
from .store import held, open_store

UNMATCHED = ("group", "drop")
ATTRIBUTE = "the attribute's table"
SHOWN = 5


@dataclass(frozen=True)
class Matched:
    """How a join went: exact, hence for the attribute's holder alone. `rows` of the table, how many
    of them have an entry, and how many entries belong to no row."""

    rows: int
    matched: int
    unused: int


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
    queries = {"query": query, "attribute_query": attribute_query}
    join = _Join.of(table, attribute, schema, id, unmatched, ids, **queries)
    if join.ids is not None:
        found = join.of_store()
    else:
        encoding = Encoding(schema, precision=precision)
        found = held(coded(join.chunks(), encoding), encoding)
    return replace(found, facts=facts_of(schema, unmatched))


def matched(
    table: PathLike,
    attribute: PathLike,
    schema: Schema,
    **options: Any,
) -> Matched:
    """How many rows would be matched: exact counts for the attribute's holder, who should not pass
    them on. For options see `load_joined`."""
    join = _Join.of(table, attribute, schema, **options)
    found = np.concatenate([np.empty(0, np.int64), *(at for at, _ in join.pairs())])
    used = int((found >= 0).sum())
    return Matched(len(found), used, len(join.places) - used)


def facts_of(schema: Schema, unmatched: str) -> tuple[PublicFact, ...]:
    """What the statement of whoever uses joined rows says of the join."""
    names = ", ".join(schema.sensitive)
    words = "by id, from another holder's table; each id once in either table"
    joined = PublicFact(f"joined {names}", words, "argument")
    if unmatched == "drop":
        words = "rows without an entry are left out, so who has an entry is not protected"
        return joined, PublicFact("unmatched ids", words, READ_FROM_DATA)
    counted = ", ".join(f"{name} {_missing(schema, name)!r}" for name in schema.sensitive)
    words = f"count as {counted}; who has an entry is protected, too"
    return joined, PublicFact("unmatched ids", words, "schema")


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
    lacking = [name for name in schema.sensitive if _missing(schema, name) is None]
    if lacking and unmatched != "drop":
        expected = f"a value for unmatched ids declared for {', '.join(lacking)}"
        remedy = (
            "Declare it: Category(values, missing='unknown'), with 'unknown' among the values. Or "
            "use unmatched='drop'."
        )
        raise SchemaError.expected(expected, of="schema", got=None, remedy=remedy)


def _missing(schema: Schema, name: str) -> object:
    return getattr(schema.columns[name], "missing", None)


@dataclass(frozen=True, eq=False, repr=False)  # it holds what is private
class _Join:
    """A table being joined. `rows`: runs of it, with the ids; `ids`: of a store's rows. Of the
    attribute the place of each id, and `codes` (columns, entries)."""

    place: str
    schema: Schema
    id: str
    drops: bool
    ids: PathLike | None
    rows: Iterator[Chunk]
    places: Mapping[str, int]
    codes: npt.NDArray[np.int32]

    @staticmethod
    def of(
        table: PathLike,
        attribute: PathLike,
        schema: Schema,
        id: str,
        unmatched: str = "group",
        ids: PathLike | None = None,
        query: str | None = None,
        attribute_query: str | None = None,
    ) -> _Join:
        """Checked, with the attribute's table read."""
        require_rule(schema, id, unmatched)
        bare, is_store = schema.without(*schema.sensitive), kind_of(table, query) == "store"
        if is_store != (ids is not None):
            expected, remedy = "None: the ids are a column of the table", "Leave it out."
            if is_store:
                expected = "a file of ids beside a coded store"
                remedy = "Name a file with the column of ids, in the order of the store's rows."
            raise InputError.expected(expected, of="ids", got=ids, remedy=remedy)
        places: dict[str, int] = {}
        parts = [np.empty((len(schema.sensitive), 0), np.int32)]
        needed = (id, *schema.sensitive)
        for chunk in chunks_of(attribute, needed, schema=schema, query=attribute_query):
            first = len(places)
            found = _ids_of(chunk.columns[id], ATTRIBUTE, id, first)
            _require_once(found, places.keys(), ATTRIBUTE, first)
            places |= {one: first + at for at, one in enumerate(found)}
            parts.append(_codes(chunk.columns, schema, first, chunk.text))
        if ids is None:
            needed = (id, *Encoding(bare).needed())
            rows = chunks_of(table, needed, schema=bare, query=query)
        else:
            rows = chunks_of(ids, (id,), schema=bare)
        codes, drops = np.concatenate(parts, axis=1), unmatched == "drop"
        return _Join(os.fspath(table), schema, id, drops, ids, rows, places, codes)

    def pairs(self) -> Iterator[tuple[npt.NDArray[np.int64], Chunk]]:
        """The entry of each row (-1 without one), run by run."""
        seen, first = set[str](), 0
        for chunk in self.rows:
            found = _ids_of(chunk.columns[self.id], "the table", self.id, first)
            _require_once(found, seen, "the table", first)
            seen |= set(found)
            first += chunk.rows
            at = np.fromiter((self.places.get(one, -1) for one in found), np.int64, len(found))
            yield at, chunk

    def chunks(self) -> Iterator[Chunk]:
        """All rows, with their attribute."""
        for at, chunk in self.pairs():
            chosen = at >= 0 if self.drops else np.ones(len(at), np.bool_)
            columns = {
                name: _of(raw, chosen) for name, raw in chunk.columns.items() if name != self.id
            }
            columns |= self.attribute(at[chosen])
            yield Chunk(columns, int(chosen.sum()), text=chunk.text)

    def attribute(self, at: npt.NDArray[np.int64]) -> dict[str, Raw]:
        """The sensitive columns of rows with these entries."""
        padded = np.concatenate([self.codes, np.full((len(self.codes), 1), -1, np.int32)], axis=1)
        told = zip(self.schema.sensitive, padded, self.schema.groups, strict=True)
        return {name: Listed(line[at], values) for name, line, values in told}

    def of_store(self) -> EncodedRows:
        """The rows of a coded store, with their attribute."""
        store = open_store(self.place).by(self.schema.without(*self.schema.sensitive))
        at = np.concatenate([np.empty(0, np.int64), *(found for found, _ in self.pairs())])
        if len(at) != sum(block.rows for block in store.blocks()):
            remedy = "Take the ids of the rows that the store was written from, in their order."
            expected, got = "an id for each row of the store", "another number"
            raise JoinError.expected(expected, of="ids", got=got, remedy=remedy, quote=False)
        codes, blocks, start = _codes(self.attribute(at), self.schema), [], 0
        for block in store.blocks():
            groups = np.ascontiguousarray(codes[:, start : start + block.rows], np.uint16)
            blocks.append(replace(block, sensitive=groups))
            start += block.rows
        encoding = Encoding(self.schema, precision=store.encoding.precision)
        whole = EncodedRows(encoding, tuple(blocks), require_same=store.require_same)
        found = whole.chosen(np.flatnonzero(at >= 0)) if self.drops else whole
        assert isinstance(found, EncodedRows)
        return found


def _codes(
    columns: Mapping[str, Raw], schema: Schema, first: int = 0, text: bool = False
) -> npt.NDArray[np.int32]:
    """Codes (columns, rows) of the sensitive columns, by their declarations."""
    lines = []
    for name in schema.sensitive:
        column = schema.columns[name]
        assert isinstance(column, Category | Boolean)
        place = Place(name, first, text, schema.missing_values, shows_values=False)
        lines.append(category_codes(columns[name], column, place))
    return np.stack(lines)


def _of(raw: Raw, chosen: npt.NDArray[np.bool_]) -> Raw:
    if isinstance(raw, Listed):
        return Listed(raw.at[chosen], raw.values)
    return Plain(raw.values[chosen], None if raw.null is None else raw.null[chosen])


def _ids_of(raw: Raw, of: str, column: str, first: int) -> list[str]:
    """Ids as texts: guarantee 2."""
    if isinstance(raw, Listed):
        texts = [*map(_text, raw.values), None]
        found = [texts[at] for at in raw.at.tolist()]  # -1, a missing one, is the last
    else:
        null = np.zeros(raw.rows, np.bool_) if raw.null is None else raw.null
        cells = zip(raw.values.tolist(), null.tolist(), strict=True)
        found = [None if is_null else _text(value) for value, is_null in cells]
    rows = [first + at + 1 for at, one in enumerate(found) if one is None][:SHOWN]
    if rows:
        remedy = "Give every row an id: a text, or a whole number."
        expected, got = f"an id in column {column!r}", f"none in row {', '.join(map(str, rows))}"
        raise JoinError.expected(expected, of=of, got=got, remedy=remedy, quote=False)
    return [one for one in found if one is not None]


def _text(value: object) -> str | None:
    """One id, or None for what is none."""
    if isinstance(value, str):
        return value.strip() or None
    if is_missing(value) or isinstance(value, bool | float):
        return None
    return str(value) if isinstance(value, int | np.integer) else None


def _require_once(found: Sequence[str], before: Set[str], of: str, first: int) -> None:
    """An id that came before is refused, by the numbers of its rows alone."""
    if len(set(found)) == len(found) and before.isdisjoint(found):
        return
    seen, twice = set(before), []
    for at, one in enumerate(found):
        if one in seen:
            twice.append(str(first + at + 1))
        seen.add(one)
    remedy = "Keep one row a person in either table: a second one would move two rows by one entry."
    got = f"one that came before in row {', '.join(twice[:SHOWN])}"
    raise JoinError.expected("each id once", of=of, got=got, remedy=remedy, quote=False)
