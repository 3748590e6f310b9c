"""Tables of a command: their schema with its roles; their rows, coded by it or as raw columns; and
coins that say which rows are set aside.

Where presence is private (add-remove), a row that is taken away must change no other row's lot. So
each row, or person, has an independent coin: no fixed number of rows, no shuffle, nothing that depends
on a place in the table. Then neighbouring tables give training parts that differ in the same one row
at most, and the promise of a fit to the one part is one about the whole table.

Guarantees (tests/cli/test_cli_rows.py):
1. Without a seed the coins are secret: ChaCha20 under a fresh key of the operating system, used for
   nothing else. Each row is set aside with probability exactly `share`, independently of the others,
   of what any row says and of how many there are. With a seed they depend on the seed and the place
   alone, and what is fitted then is flagged.
2. No person has rows both among those to fit and among those to measure on.
3. What is measured on held-out persons is measured on one row of each, drawn by coins.
4. `Place.kinds` reads no row: of a CSV file its first line, of Parquet its metadata, of a database
   the names of a query that yields no row, and what SQLite's catalogue says of kinds. A first line
   that may be a person's is not taken for a header, nor shown. No message holds a cell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._urls import without_password
from ..errors import DataNotFoundError, InputError, SchemaError, within
from .files import working
from .frame import Ask, need, wrong

if TYPE_CHECKING:
    from ..data import EncodedRows
    from ..facts import Schema
    from ..tables.columns import Raw

Columns = dict[str, npt.NDArray[Any]]
NOT_READ = np.empty(0, dtype=object)
KINDS = {"boolean": "bool", "category": "string|char|text|dictionary|enum|utf8"}
KINDS |= {"number": "int|float|double|decimal|numeric|real"}
RENAME = "Give every column a name of its own; with a schema only the declared ones are read."
HEADER = "Give the table a first line with a name of its own for every column."
COIN = (
    "by a secret coin of its own that reads no data and hangs on no other row",
    "by a coin that the seed and its place in the table decide, which reads no data; whoever knows "
    "the seed knows the coins",
)


# what is public: the schema and its roles


class SchemaFileError(InputError):
    """A schema file that is wrong, left blank, or not about this table. `edit`: what would do."""

    edit = ""


def schema_of(path: Path | None) -> Schema | None:
    """The schema of a file, if there is one; an error about all that is wrong with it."""
    from ..facts import Schema

    try:
        return None if path is None else Schema.load(path)
    except DataNotFoundError:
        raise
    except InputError as error:
        assert path is not None
        if not path.is_file() or path.suffix.lower() not in (".toml", ".json"):
            raise
        raise wrong_file(path, InputError(within(str(path), error))) from None


def facts_of(ask: Ask) -> Schema:
    """The schema of a command that needs one."""
    found = schema_of(ask.schema)
    if found is None:
        remedy = "Write one: fairveil schema init TABLE; with --public it is read from the rows."
        raise wrong("schema", "the table's public facts", None, remedy)
    return found


def wrong_file(path: Path, error: Exception) -> SchemaFileError:
    """The error of a schema's file, and how to go on."""
    found = SchemaFileError(*error.args)
    found.edit = f"edit {path}, then run: fairveil schema check {shlex.quote(str(path))}"
    return found


def named_roles(ask: Ask, schema: Schema | None) -> tuple[str, tuple[str, ...]]:
    """The target and the sensitive columns: the command line's words first, then the schema's."""
    target = ask.target or (None if schema is None else schema.target)
    fix = "Name the column to predict: --target hired, for example."
    if target is None:
        raise wrong("target", "a column", None, fix)
    groups = tuple(ask.sensitive or (() if schema is None else schema.sensitive))
    once = len({target, *groups}) == 1 + len(groups)
    need(once, "roles", "distinct columns", [target, *groups], "Name each column once.")
    return target, groups


def with_roles(ask: Ask) -> Schema:
    """The schema with the target and the groups that the command line names. Sensitive columns that
    were not named are neither groups nor features."""
    schema = facts_of(ask)
    target, groups = named_roles(ask, schema)
    unused = [name for name in schema.sensitive if name not in (*groups, target)]
    return schema.with_roles(target=target, sensitive=groups).without(*unused)


# where rows are


@dataclass(frozen=True)
class Place:
    """A file, or a database and what is asked of it."""

    address: str
    query: str | None = None

    @property
    def shown(self) -> str:
        """Its name without a password."""
        return without_password(self.address)

    def kind(self) -> str:
        """ "csv", "parquet", "sql" or "store"; an error where it is none of these."""
        from ..data.reading import kind_of

        remedy = "Say which rows with --query: a table, or a SELECT."
        return kind_of(self.address, self.query, remedy)

    def coded(self, schema: Schema, **how: Any) -> EncodedRows:
        """Rows coded by a schema, in memory; of a coded store, or where they do not fit memory,
        mapped from the disk. `how`: of `data.open`."""
        from ..data import open as open_rows

        with working():  # that rows go to the disk is said before they do
            self.kind()
            return open_rows(self.address, schema, query=self.query, **how)

    def columns(self, words: Collection[str] = (), only: Collection[str] | None = None) -> Columns:
        """The columns as they come. In a CSV file a column whose cells are all numbers is numbers,
        unless it is among `words`; an empty cell is missing. `only`: those that are wanted, where
        they are all there; the others may be empty then."""
        from ..data.reading import chunks_of

        kind = self.kind()
        one = kind != "store" and (kind == "sql" or Path(self.address).is_file())
        got = "a coded store" if kind == "store" else "several files"
        fix = "Pass one table; a store, and several files, are read by a schema alone."
        need(one, self.shown, "a table", got, fix)
        names = list(self.kinds())
        there = only is None or set(only) <= set(names)
        read = [name for name in names if there and (only is None or name in only)]
        chunks = list(chunks_of(self.address, read, query=self.query, kind=kind)) if read else []
        found = {
            name: _joined([chunk.columns[name] for chunk in chunks], kind == "csv", name in words)
            for name in read
        }
        return {name: found.get(name, NOT_READ) for name in names}

    def kinds(self) -> dict[str, str | None]:
        """Each column's kind, by what the table says of itself; None where it says nothing."""
        from ..data import reading

        how, known = self.kind(), dict[str, str]()
        if how == "sql":
            database = reading.Database(self.address, str(self.query))
            known, names = database.sqlite_types(), [*database.names()]
        else:
            endings = (*reading.PARQUET, *reading.CSV)
            file = reading.files_of(self.address, "a CSV or Parquet file", endings)[0]
            if how == "parquet":
                schema = reading.parquet_schema(file)
                names, known = [*schema.names], {one.name: str(one.type) for one in schema}
            else:
                names = [*reading.header_of(file, reading.delimiter_of(self.address))[0]]
            _require_names(names, self.shown, header=how != "parquet")
        likely: dict[str, str | None] = dict.fromkeys(names)
        for kind, like in KINDS.items():
            for name in names:
                if likely[name] is None and re.search(like, known.get(name, ""), re.IGNORECASE):
                    likely[name] = kind
        return likely


def _joined(parts: Sequence[Raw], text: bool, words: bool) -> npt.NDArray[Any]:
    """A column; of texts whole numbers, numbers, or texts; None or NaN where a cell is empty."""
    from ..tables.columns import Listed
    from ..tables.frames import column_of

    cells: list[Any] = []
    for part in parts:
        if isinstance(part, Listed):
            known = (*part.values, None)  # -1 is missing
            cells += [known[at] for at in part.at.tolist()]
        else:
            null = [False] * part.rows if part.null is None else part.null.tolist()
            cells += [None if no else v for v, no in zip(part.values.tolist(), null, strict=True)]
    if not text:
        return column_of(cells, "")
    cells = [(cell or "").strip() or None for cell in cells]
    # Python would read 1_000 as a number
    if not words and any(cells) and not any(cell and "_" in cell for cell in cells):
        try:
            numbers = np.array([float(cell) if cell else np.nan for cell in cells])
        except ValueError:
            pass
        else:
            whole = np.isfinite(numbers).all() and (np.abs(numbers) < 2**53).all()
            whole = whole and (numbers == np.floor(numbers)).all()
            return numbers.astype(np.int64) if whole else numbers
    return np.fromiter(cells, dtype=object, count=len(cells))


def _require_names(names: list[str], shown: str, *, header: bool) -> None:
    """An error where names are not surely those of columns, by their places: without a header they
    are a row."""
    from ..data.reading import headed

    why = "" if names else "no columns"
    for at, name in enumerate(names, 1):
        said, first = f"the name of column {at}", names.index(name) + 1
        odd = not name.isprintable() or "\ufffd" in name
        why = why or f"column {at} has no name" * (header and not name)
        why = why or f"columns {first} and {at} have one name" * (first < at)
        why = why or f"{said} is a number" * (header and not isinstance(headed([name], ()), list))
        why = why or f"{said} has letters that cannot be printed" * (header and odd)
    if why:
        expected, got, fix = "columns with distinct names", why, RENAME
        if header:
            expected, got, fix = "a header", f"none that is surely one: {why}", HEADER
        raise SchemaError.expected(expected, of=shown, got=got, remedy=fix, quote=False)


def picked(columns: Mapping[str, Any], names: Collection[str], shown: str, of: str) -> Columns:
    """The named columns; an error that lists the ones that are there."""
    from ..data.reading import headed

    lacking = [name for name in names if name not in columns]
    if lacking:
        known = headed(list(columns), names)
        among = known if isinstance(known, list) else ()
        words = f"columns out of {known}" if among else f"columns of {shown}: it has {known}"
        raise wrong(of, words, lacking, f"Name columns of {shown}.", among)
    return {name: columns[name] for name in names}


# rows that a schema coded


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Truth:
    """Labels and groups of rows, as they are written."""

    labels: npt.NDArray[Any]
    groups: Columns


def truth_of(rows: Any) -> Truth:
    """Labels and groups of coded rows, where they have any."""
    from ..estimators.faces import as_array

    layout, blocks = rows.layout, list(rows.blocks())
    codes = np.concatenate([np.asarray(block.sensitive) for block in blocks], axis=1)
    pairs = enumerate(zip(layout.sensitive_names, layout.sensitive, strict=True))
    groups = {name: as_array(values)[codes[at]] for at, (name, values) in pairs}
    if layout.classes is None:
        return Truth(np.empty(0), groups)
    labels = np.concatenate([np.asarray(block.labels) for block in blocks])
    return Truth(as_array(layout.classes)[labels], groups)


def size_of(rows: Any) -> int:
    """How many rows: private under add-remove."""
    return sum(block.rows for block in rows.blocks())


def persons_in(rows: Any) -> npt.NDArray[Any] | None:
    """Whose each row is, where that is known."""
    from ..facts.rows import PERSON_BY_PERSON

    found = [block.persons for block in rows.blocks() if block.persons is not None]
    whole = np.concatenate(found) if found else None
    if whole is None or whole.dtype != PERSON_BY_PERSON:
        return whole
    return np.cumsum(whole["begins"], dtype=np.int64)


def set_aside(rows: int, share: float, seed: int | None) -> npt.NDArray[np.bool_]:
    """Which of so many rows are set aside."""
    from ..core.noise import NoiseSource

    if seed is not None:
        return np.asarray(np.random.default_rng([seed, 0x5EED]).random(rows) < share)
    out = np.zeros(rows, dtype=bool)
    if share > 0.0:
        out[NoiseSource.secure().stream("sampling", 0).poisson_batch(rows, float(share))] = True
    return out


def held_out(statement: Any, share: float, *, seeded: bool, measured: str) -> Any:
    """The statement, which says how rows were set aside and what was `measured` of them; its number of
    rows is the schema's less these."""
    promise = statement.promise
    by_person = promise.unit is not None
    whose = "each person, with all of their rows," if by_person else "each row of the table"
    how = f"{whose} was set aside with probability {share:g} {COIN[seeded]}"
    if by_person:
        how = how.replace("no other row", "no other person")
        measured = f"one row of each of these persons was measured, drawn by a coin; {measured}"
    if seeded and promise.neighbours == "add-remove":
        one = "person" if by_person else "row"
        how += f", and a {one} more or less moves the coins of those after it"
    origin: Any = "schema x (1 - holdout)"
    facts = tuple(
        replace(one, origin=origin) if one.name == "number of rows" else one
        for one in statement.facts
    )
    outside = (*statement.not_covered, f"rows held out: {how}; {measured}")
    return replace(statement, facts=facts, not_covered=outside)


def split(rows: Any, share: float, seed: int | None) -> tuple[Any, Any]:
    """(rows to fit, rows held out): each row, or person, by an independent coin."""
    from ..core.persons import persons_of

    people, size = persons_in(rows), size_of(rows)
    if people is None:
        out = set_aside(size, share, seed)
    else:
        numbers = persons_of(people, size)
        out = set_aside(int(numbers.max(initial=-1)) + 1, share, seed)[numbers]
    what, both = "rows" if people is None else "persons", out.any() and not out.all()
    need(both, "holdout", f"{what} in both parts", share, "Take another share.")
    return rows.chosen(np.flatnonzero(~out)), rows.chosen(np.flatnonzero(out))


def one_of_each(rows: Any, seed: int | None) -> Any:
    """One row of each person, drawn by coins: intervals on held-out rows take these for independent
    draws. The same where no persons are known."""
    from ..core.noise import NoiseSource
    from ..core.persons import kept, persons_of

    people = persons_in(rows)
    if people is None:
        return rows
    stream = NoiseSource.of(seed).stream("units", 1)
    return rows.chosen(np.sort(kept(persons_of(people, size_of(rows)), 1, stream)))


def rows_of(schema: Schema, place: Place, *, persons: bool = True) -> Any:
    """The coded rows of a place; everything that does not fit is an error now, before any release.
    `persons`: whose each row is must be known, where the schema has a unit."""
    rows = place.coded(schema)
    need(size_of(rows), place.shown, "some rows", "none", "Pass a table with rows.")
    fix = "Name a column of the table; encode a store anew by a schema with the unit."
    wanted = persons and schema.unit is not None
    known = not wanted or any(block.persons is not None for block in rows.blocks())
    need(known, "unit", f"a column {schema.unit!r}", "a table without it", fix)
    return rows
