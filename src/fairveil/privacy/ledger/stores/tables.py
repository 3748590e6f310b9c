"""A ledger's lines in the tables of `creating`: the questions that every database answers alike.

SQL is fixed text; values are parameters, marked ?. What is read is read strictly: a row that no
ledger wrote is an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

from .... import _checks
from ....errors import FairveilError, LedgerError
from .entries import Entry, malformed
from .store import exists, follows, missing
from .verifying import BEFORE_ALL, MOST_READ, Mark, damaged, read_on

# Runs one statement with its parameters and hands back all rows of the answer.
Measurement = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

NAMES = tuple(field.name for field in fields(Entry))
COLUMNS = ", ".join(NAMES)
LINES_AT_ONCE = 500
CHARGES_AT_ONCE = 20_000

# Names of the lines, each found from the one before: not by reading all lines.
_WITH_LINES = """WITH RECURSIVE named (dataset) AS (
  SELECT min(dataset) FROM fairveil_ledger_entries UNION ALL
  SELECT (SELECT min(e.dataset) FROM fairveil_ledger_entries e WHERE e.dataset > named.dataset)
  FROM named WHERE named.dataset IS NOT NULL)
SELECT dataset FROM named WHERE dataset IS NOT NULL"""


class Lines:
    """Reading: each question is one statement, long answers are read part by part."""

    def __init__(self, ask: Measurement, shown: str) -> None:
        self._ask = ask
        self._shown = shown

    def datasets(self) -> list[str]:
        """Names of what has a head or a line."""
        heads = self._ask("SELECT dataset FROM fairveil_ledger_heads", ())
        return sorted({str(name) for (name,) in (*heads, *self._ask(_WITH_LINES, ()))})

    def last(self, dataset: str) -> Entry:
        """The line with the largest number."""
        self.require_name(dataset)
        query = (
            f"SELECT {COLUMNS} FROM fairveil_ledger_entries WHERE dataset = ? ORDER BY number DESC "
            f"LIMIT 1"
        )
        for row in self._ask(query, (dataset,)):
            return entry_of(row)
        raise self._none(dataset, "no line")

    def kept_head(self, dataset: str) -> tuple[int, str]:
        """Number and hash as kept beside the lines."""
        self.require_name(dataset)
        for number, hashed in self._ask(
            "SELECT number, hash FROM fairveil_ledger_heads WHERE dataset = ?", (dataset,)
        ):
            return _number(number), str(hashed)
        raise self._none(dataset, "no head")

    def entries(self, dataset: str, first: int, limit: int | None) -> Iterator[Entry]:
        """Lines up to the last one of now."""
        query = f"SELECT {COLUMNS} FROM fairveil_ledger_entries WHERE dataset = ?"
        return map(entry_of, self._pages(query, dataset, first, limit, LINES_AT_ONCE))

    def of_spend(self, dataset: str, spend: str) -> list[Entry]:
        """The lines of one spend."""
        self.require_name(dataset)
        if not spend.isprintable():
            return []
        query = (
            f"SELECT {COLUMNS} FROM fairveil_ledger_entries WHERE dataset = ? AND spend = ? AND "
            f"number >= 0 ORDER BY number"
        )
        return [entry_of(row) for row in self._ask(query, (dataset, spend))]

    def charges(self, dataset: str) -> Iterator[tuple[str, str, str, int]]:
        """What a summary needs of every line."""
        query = (
            "SELECT number, kind, spend, under, units FROM fairveil_ledger_entries WHERE dataset = "
            "?"
        )
        rows = self._pages(query, dataset, 0, None, CHARGES_AT_ONCE)
        return ((kind, spend, under, _number(units)) for _, kind, spend, under, units in rows)

    def first_hash(self, dataset: str) -> str:
        """The hash that the first line has."""
        self.require_name(dataset)
        query = "SELECT hash FROM fairveil_ledger_entries WHERE dataset = ? AND number = 0"
        for (hashed,) in self._ask(query, (dataset,)):
            return str(hashed)
        raise self._none(dataset, "no first line")

    def fitting(self, dataset: str, mark: Mark | None) -> Mark | None:
        """The mark at the last line of now, after the newest lines were found to fit each other,
        and the mark."""
        self.require_name(dataset)
        query = f"SELECT {COLUMNS} FROM fairveil_ledger_entries WHERE dataset = ?"
        last = self._ask(
            "SELECT max(number) FROM fairveil_ledger_entries WHERE dataset = ?", (dataset,)
        )[0][0]
        if last is None:
            return mark
        last = _number(last)
        first = max(0, last + 1 - MOST_READ)
        there = (
            "SELECT 1 FROM fairveil_ledger_entries WHERE dataset = ? AND number = ? AND hash = ?"
        )
        if mark is not None and not self._ask(there, (dataset, mark.number, mark.hash)):
            mark = None  # somebody put an older copy in its place
        if mark is not None and mark.number >= first:
            first = mark.number + 1
        elif first == 0:
            mark = BEFORE_ALL
        else:
            mark = None
        rows = self._rows(
            f"{query} AND number BETWEEN ? AND ? ORDER BY number LIMIT {LINES_AT_ONCE}",
            dataset,
            first,
            last,
        )
        return read_on(mark, rows, f"{dataset} in {self._shown}")

    def require_name(self, dataset: str) -> None:
        """No data set has a name that could not be begun; a database might stumble over it."""
        if not dataset.isprintable():
            raise missing(dataset, self.datasets(), self._shown)

    def _pages(
        self, query: str, dataset: str, first: int, limit: int | None, size: int
    ) -> Iterator[tuple[Any, ...]]:
        self.require_name(dataset)
        last = self._ask(
            "SELECT max(number) FROM fairveil_ledger_entries WHERE dataset = ?", (dataset,)
        )[0][0]
        if last is None:
            raise self._none(dataset, "no line")
        last = _number(last) if limit is None else min(_number(last), first + limit - 1)
        return self._rows(
            f"{query} AND number BETWEEN ? AND ? ORDER BY number LIMIT {size}",
            dataset,
            first,
            last,
            size,
        )

    def _rows(
        self, query: str, dataset: str, first: int, last: int, size: int = LINES_AT_ONCE
    ) -> Iterator[tuple[Any, ...]]:
        while first <= last:
            rows = self._ask(query, (dataset, first, last))
            yield from rows
            if len(rows) < size:
                return
            first = _number(rows[-1][0]) + 1

    def _none(self, dataset: str, got: str) -> FairveilError:
        known = self.datasets()
        if dataset not in known:
            return missing(dataset, known, self._shown)
        remedy = "Somebody changed the tables: look at `fairveil ledger check`, and restore a copy."
        return LedgerError.expected(
            "lines and their head", of=f"{dataset} in {self._shown}", got=got, remedy=remedy
        )


class TableStore(ABC):
    """What stores in tables answer alike. Abstract: how a statement is run is each one's own."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shown!r})"

    @property
    @abstractmethod
    def shown(self) -> str:
        """The address, without its password."""

    @abstractmethod
    def _ask(self, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """A reading of its own."""

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self._ask, self.shown)

    @cached_property
    def _marks(self) -> dict[tuple[object, str], Mark]:
        """Up to where the lines of a data set, in one file, were found to fit."""
        return {}

    def datasets(self) -> list[str]:
        return self._lines.datasets()

    def last(self, dataset: str) -> Entry:
        return self._lines.last(dataset)

    def first_hash(self, dataset: str) -> str:
        return self._lines.first_hash(dataset)

    def kept_head(self, dataset: str) -> tuple[int, str]:
        return self._lines.kept_head(dataset)

    def entries(self, dataset: str, first: int = 0, limit: int | None = None) -> Iterator[Entry]:
        return self._lines.entries(dataset, first, limit)

    def of_spend(self, dataset: str, spend: str) -> list[Entry]:
        return self._lines.of_spend(dataset, spend)

    def charges(self, dataset: str) -> Iterator[tuple[str, str, str, int]]:
        return self._lines.charges(dataset)


class Beginning:
    """Where a data set gets its first lines, inside of a transaction that nobody else can enter."""

    def __init__(self, ask: Measurement, shown: str) -> None:
        self._ask, self._shown = ask, shown
        self.wrote: Entry | None = None

    def begin(self, dataset: str, first: Entry, rest: Iterable[Entry]) -> None:
        """All of these lines; an error where the data set has some."""
        if not dataset or not dataset.isprintable():
            remedy = "Name the data set by letters, digits and signs."
            raise LedgerError.expected("printable text", of="dataset", got=dataset, remedy=remedy)
        follows(None, _strictly(first))
        tables = ("fairveil_ledger_heads", "fairveil_ledger_entries")
        if any(
            self._ask(f"SELECT 1 FROM {table} WHERE dataset = ? LIMIT 1", (dataset,))
            for table in tables
        ):
            raise exists(dataset, self._shown)
        self._ask(
            "INSERT INTO fairveil_ledger_heads (dataset, number, hash) VALUES (?, ?, ?)",
            (dataset, 0, first.hash),
        )
        _insert(self._ask, dataset, first)
        page = TablePage(self._ask, dataset, self._shown)
        for entry in rest:
            page.append(entry)
        self.wrote = page.head()


class TablePage:
    """A `Page` inside a transaction that nobody else can enter. `mark`: up to where its lines were
    found to fit before."""

    def __init__(
        self, ask: Measurement, dataset: str, shown: str, mark: Mark | None = None
    ) -> None:
        self._ask = ask
        self._lines = Lines(ask, shown)
        self._dataset = dataset
        self._head = self._lines.last(dataset)
        self.wrote: Entry | None = None
        kept = self._lines.kept_head(dataset)
        if kept != (self._head.number, self._head.hash):
            raise LedgerError.expected(
                f"the line {kept[0]} that the head names as the last one",
                of=f"{dataset} in {shown}",
                got=f"line {self._head.number}",
                remedy=(
                    "Lines were taken away or added: look at `fairveil ledger check`, and "
                    "restore a copy."
                ),
            )
        # also where the mark is at this line: it may have been damaged since
        if self._head.hash != self._head.digest():
            raise damaged(
                f"{dataset} in {shown}",
                f"line {self._head.number}, which is not what its hash was made of",
            )
        if mark is None or mark.hash != self._head.hash:
            mark = self._lines.fitting(dataset, mark)
        if mark != Mark.of(self._head):
            raise damaged(
                f"{dataset} in {shown}",
                f"line {self._head.number}, which does not follow those before it",
            )

    @property
    def mark(self) -> Mark:
        """Up to where all fits, once what was appended is kept."""
        return Mark.of(self._head)

    def first_hash(self) -> str:
        return self._lines.first_hash(self._dataset)

    def head(self) -> Entry:
        return self._head

    def of_spend(self, spend: str) -> list[Entry]:
        return self._lines.of_spend(self._dataset, spend)

    def append(self, entry: Entry) -> None:
        follows(self._head, _strictly(entry))
        _insert(self._ask, self._dataset, entry)
        update = "UPDATE fairveil_ledger_heads SET number = ?, hash = ? WHERE dataset = ?"
        self._ask(update, (entry.number, entry.hash, self._dataset))
        self._head = self.wrote = entry


def entry_of(row: Sequence[object]) -> Entry:
    """A line as the tables have it."""
    return Entry.from_dict(dict(zip(NAMES, row, strict=True)))


def _strictly(entry: Entry) -> Entry:
    """What could not be read again is not written."""
    return Entry.from_dict(entry.to_dict())


def _number(value: object) -> int:
    """SQLite holds any type in any column."""
    if type(value) is not int:
        raise malformed("a whole number", repr(value))
    return value


def _insert(ask: Measurement, dataset: str, entry: Entry) -> None:
    marks = ", ".join("?" * (1 + len(NAMES)))
    values = (dataset, *_checks.named(entry, NAMES).values())
    ask(f"INSERT INTO fairveil_ledger_entries (dataset, {COLUMNS}) VALUES ({marks})", values)
