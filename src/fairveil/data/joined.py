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
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..core.errors import need
from ..errors import JoinError, SchemaError
from ..facts.columns import Boolean, Category, Ignored
from ..facts.schema import Schema
from ..statement.document import PublicFact
from ..statement.form import READ_FROM_DATA
from ..tables.columns import Listed, Plain, Raw, is_missing
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
    found = join.entries()
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
    _checks.instance(Schema, "schema", schema, "Read one with Schema.load(path).")
    fix = "Name the columns that the holder brings: Schema(..., sensitive=...)."
    expected, some = "a schema with sensitive columns", bool(schema.sensitive)
    need(some, expected, of="schema", got="none", fix=fix, error=SchemaError)
    apart = isinstance(schema.columns.get(id, Ignored()), Ignored)
    fix = "Name the column of pseudonymous ids; declare it ignored, or not at all."
    expected = "a column that is no feature and no role"
    need(apart, expected, of="id", got=id, fix=fix, error=SchemaError)
    lacking = [name for name in schema.sensitive if _missing(schema, name) is None]
    fix = "Declare it: Category(values, missing='unknown'); or use unmatched='drop'."
    expected = f"a value for unmatched ids declared for {', '.join(lacking)}"
    told = unmatched == "drop" or not lacking
    need(told, expected, of="schema", got=None, fix=fix, error=SchemaError)


def _missing(schema: Schema, name: str) -> object:
    return getattr(schema.columns[name], "missing", None)


@dataclass(frozen=True, eq=False, repr=False)  # it holds what is private
class _Join:
    """A table being joined. `rows`: runs of it, with the ids; `ids`: of a store's rows. Of the
    attribute the place of each id, and `codes` (columns, entries and none)."""

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
        expected = "a file of ids beside a coded store, None beside another table"
        fix = "Name a file with the column of ids, in the order of a store's rows."
        need(is_store == (ids is not None), expected, of="ids", got=ids, fix=fix)
        places: dict[str, int] = {}
        parts = [np.empty((len(schema.sensitive), 0), np.int32)]
        needed = (id, *schema.sensitive)
        for chunk in chunks_of(attribute, needed, schema=schema, query=attribute_query):
            first = len(places)
            found = _ids_of(chunk.columns[id], ATTRIBUTE, id, first, places.keys())
            places |= {one: first + at for at, one in enumerate(found)}
            parts.append(_codes(chunk.columns, schema, first))
        if ids is None:
            rows = chunks_of(table, (id, *Encoding(bare).needed()), schema=bare, query=query)
        else:
            rows = chunks_of(ids, (id,), schema=bare)
        parts.append(np.full((len(schema.sensitive), 1), -1, np.int32))
        codes, drops = np.concatenate(parts, axis=1), unmatched == "drop"
        return _Join(os.fspath(table), schema, id, drops, ids, rows, places, codes)

    def pairs(self) -> Iterator[tuple[npt.NDArray[np.int64], Chunk]]:
        """The entry of each row (-1 without one), run by run."""
        seen, first = set[str](), 0
        for chunk in self.rows:
            found = _ids_of(chunk.columns[self.id], "the table", self.id, first, seen)
            seen |= set(found)
            first += chunk.rows
            at = np.fromiter((self.places.get(one, -1) for one in found), np.int64, len(found))
            yield at, chunk

    def entries(self) -> npt.NDArray[np.int64]:
        """Of all rows together."""
        return np.concatenate([np.empty(0, np.int64), *(at for at, _ in self.pairs())])

    def chunks(self) -> Iterator[Chunk]:
        """All rows, with their attribute."""
        for at, chunk in self.pairs():
            chosen = at >= 0 if self.drops else np.ones(len(at), np.bool_)
            columns = {
                name: _of(raw, chosen) for name, raw in chunk.columns.items() if name != self.id
            }
            columns |= self.attribute(at[chosen])
            yield Chunk(columns, int(chosen.sum()))

    def attribute(self, at: npt.NDArray[np.int64]) -> dict[str, Raw]:
        """The sensitive columns of rows with these entries; of none the last code, none."""
        told = zip(self.schema.sensitive, self.codes, self.schema.groups, strict=True)
        return {name: Listed(line[at], values) for name, line, values in told}

    def of_store(self) -> EncodedRows:
        """The rows of a coded store, with their attribute."""
        store = open_store(self.place).by(self.schema.without(*self.schema.sensitive))
        at = self.entries()
        expected, fix = "an id for each row of the store", "Take the ids of its rows, in order."
        each = len(at) == sum(block.rows for block in store.blocks())
        need(each, expected, of="ids", got="another number", fix=fix, error=JoinError, quote=False)
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


def _codes(columns: Mapping[str, Raw], schema: Schema, first: int = 0) -> npt.NDArray[np.int32]:
    """Codes (columns, rows) of the sensitive columns, by their declarations."""
    lines = []
    for name in schema.sensitive:
        column = schema.columns[name]
        assert isinstance(column, Category | Boolean)
        place = Place(name, first, schema.missing_values, shows_values=False)
        lines.append(category_codes(columns[name], column, place))
    return np.stack(lines)


def _of(raw: Raw, chosen: npt.NDArray[np.bool_]) -> Raw:
    if isinstance(raw, Listed):
        return Listed(raw.at[chosen], raw.values)
    return Plain(raw.values[chosen], None if raw.null is None else raw.null[chosen])


def _ids_of(raw: Raw, of: str, column: str, first: int, before: Set[str]) -> list[str]:
    """Ids as texts, each of which comes once: guarantee 2. Rows are named by their numbers alone."""
    if isinstance(raw, Listed):
        texts = [*map(_text, raw.values), None]
        found = [texts[at] for at in raw.at.tolist()]  # -1, a missing one, is the last
    else:
        null = np.zeros(raw.rows, np.bool_) if raw.null is None else raw.null
        cells = zip(raw.values.tolist(), null.tolist(), strict=True)
        found = [None if is_null else _text(value) for value, is_null in cells]
    none = [str(first + at + 1) for at, one in enumerate(found) if one is None][:SHOWN]
    got, fix = f"none in row {', '.join(none)}", "Give every row an id: a text, or a whole number."
    need(
        not none,
        f"an id in column {column!r}",
        of=of,
        got=got,
        fix=fix,
        error=JoinError,
        quote=False,
    )
    ids = [one for one in found if one is not None]
    seen, twice = set[str](), []
    for at, one in enumerate(ids):
        if one in seen or one in before:
            twice.append(str(first + at + 1))
        seen.add(one)
    got = f"one that came before in row {', '.join(twice[:SHOWN])}"
    fix = "Keep one row a person in either table: a second one would move two rows by one entry."
    need(not twice, "each id once", of=of, got=got, fix=fix, error=JoinError, quote=False)
    return ids


def _text(value: object) -> str | None:
    """One id, or None for what is none."""
    if isinstance(value, str):
        return value.strip() or None
    if is_missing(value) or isinstance(value, bool | float):
        return None
    return str(value) if isinstance(value, int | np.integer) else None
