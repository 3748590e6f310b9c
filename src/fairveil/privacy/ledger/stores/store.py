"""Where a ledger's lines are kept: what every store must do, and the one in memory.

Guarantees (tests/privacy/ledger/test_ledger_stores.py, one suite for all stores):
1. While one writer is inside `writing`, nobody else is, in this process or another; what it read is
   still so when it appends.
2. What was appended inside `writing` is there for good once the block has ended, and not at all if
   it raised.
3. Lines are only ever added, numbered one after another; the head says the last one's number and
   hash.
4. No message and no `repr` of a store shows the password of its address.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from ....errors import DataNotFoundError, LedgerError
from .blocks import Block
from .entries import FIRST_PREVIOUS, Entry, malformed
from .refusals import one_inside_another


class Page(Protocol):
    """One data set's lines while nobody else may write."""

    def first_hash(self) -> str:
        """The first line's hash: whose lines these are."""

    def head(self) -> Entry:
        """The last line."""

    def of_spend(self, spend: str) -> list[Entry]:
        """The lines of one spend, in order."""

    def append(self, entry: Entry) -> None:
        """Add a line: the next number, chained to the head."""


class Store(Protocol):
    """Lines of named data sets."""

    @property
    def shown(self) -> str:
        """The address, without its password."""

    @property
    def address(self) -> str | None:
        """The address that opens it again, in another process too; None: it cannot be."""

    def datasets(self) -> list[str]:
        """The names, sorted."""

    def create(self, dataset: str, first: Entry, rest: Iterable[Entry] = ()) -> None:
        """Begin the lines of a data set, all of these or none; an error where it has some."""

    def writing(self, dataset: str) -> Block[Page]:
        """The only writer of this data set, for as long as the block lasts; an error where there is
        no such data set."""

    def last(self, dataset: str) -> Entry:
        """The last line."""

    def first_hash(self, dataset: str) -> str:
        """The first line's hash: whose lines these are."""

    def kept_head(self, dataset: str) -> tuple[int, str]:
        """Number and hash of the last line as they are kept beside the lines, for `check`."""

    def entries(self, dataset: str, first: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Lines from number `first` on."""

    def of_spend(self, dataset: str, spend: str) -> list[Entry]:
        """The lines of one spend, in order."""

    def charges(self, dataset: str) -> Iterator[tuple[str, str, str, int]]:
        """(kind, spend, under, units) of every line, in order: what a summary needs, without the
        contents."""

    def close(self) -> None:
        """Let go of connections; the next use opens them again."""


class MemoryStore:
    """Lines in this process, gone with it: for trying things."""

    shown, address = "memory", None

    def __init__(self) -> None:
        self._lines: dict[str, list[Entry]] = {}
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._writer = 0  # the thread that holds the lock inside of a block

    def datasets(self) -> list[str]:
        return sorted(self._lines)

    def create(self, dataset: str, first: Entry, rest: Iterable[Entry] = ()) -> None:
        with self._lock:
            if dataset in self._lines:
                raise exists(dataset, self.shown)
            follows(None, first)
            page = _MemoryPage([first])
            for entry in rest:
                page.append(entry)
            self._lines[dataset] = [first, *page.added]

    def writing(self, dataset: str) -> Block[Page]:
        return _MemoryBlock(self, dataset)

    def last(self, dataset: str) -> Entry:
        return self._of(dataset)[-1]

    def first_hash(self, dataset: str) -> str:
        return self._of(dataset)[0].hash

    def kept_head(self, dataset: str) -> tuple[int, str]:
        entry = self.last(dataset)
        return entry.number, entry.hash

    def entries(self, dataset: str, first: int = 0, limit: int | None = None) -> Iterator[Entry]:
        lines = self._of(dataset)[first:]
        return iter(lines if limit is None else lines[:limit])

    def of_spend(self, dataset: str, spend: str) -> list[Entry]:
        return [entry for entry in self._of(dataset) if entry.spend == spend]

    def charges(self, dataset: str) -> Iterator[tuple[str, str, str, int]]:
        return ((entry.kind, entry.spend, entry.under, entry.units) for entry in self._of(dataset))

    def close(self) -> None:
        pass

    def _of(self, dataset: str) -> list[Entry]:
        if dataset not in self._lines:
            raise missing(dataset, self.datasets(), self.shown)
        return self._lines[dataset]


class _MemoryBlock(Block[Page]):
    def __init__(self, store: MemoryStore, dataset: str) -> None:
        self._store, self._dataset = store, dataset
        self._taking = False
        self._page: _MemoryPage | None = None

    def _begin(self) -> Page:
        store = self._store
        if os.getpid() != store._process:
            remedy = (
                "Keep it in a file, Ledger.create('budget.db', ...), where other processes find it."
            )
            raise LedgerError.expected(
                "the process that began it", of="memory", got="a fork of it", remedy=remedy
            )
        if store._writer == threading.get_ident():
            raise one_inside_another(store.shown)
        self._taking = True
        store._lock.acquire()
        store._writer = threading.get_ident()
        self._page = _MemoryPage(store._of(self._dataset))
        return self._page

    def _keep(self) -> None:
        if self._page is not None:
            self._store._of(self._dataset).extend(self._page.added)  # one step: all of them or none

    def abandon(self) -> None:
        if self._taking:
            if self._store._writer == threading.get_ident():
                self._store._writer = 0
            # it was interrupted before it had the lock, or after it gave it back
            with suppress(RuntimeError):
                self._store._lock.release()
            self._taking = False


class _MemoryPage:
    def __init__(self, lines: list[Entry]) -> None:
        self._lines = lines
        self.added: list[Entry] = []

    def first_hash(self) -> str:
        return self._lines[0].hash

    def head(self) -> Entry:
        return self.added[-1] if self.added else self._lines[-1]

    def of_spend(self, spend: str) -> list[Entry]:
        return [entry for entry in (*self._lines, *self.added) if entry.spend == spend]

    def append(self, entry: Entry) -> None:
        # as strictly as where lines are read again
        follows(self.head(), Entry.from_dict(entry.to_dict()))
        self.added.append(entry)


def follows(head: Entry | None, entry: Entry) -> None:
    """What may stand after `head`: the next number, chained, sealed."""
    expected = (0, FIRST_PREVIOUS) if head is None else (head.number + 1, head.hash)
    if (entry.number, entry.previous) != expected or entry.hash != entry.digest():
        raise malformed(f"line {expected[0]}, chained and sealed", f"line {entry.number}")


def exists(dataset: str, shown: str) -> LedgerError:
    """A budget is begun once."""
    remedy = "Open it with Ledger.open, or give the new budget another name."
    return LedgerError.expected(
        f"a data set that {shown} has no ledger of", of="dataset", got=dataset, remedy=remedy
    )


def missing(dataset: str | None, known: list[str], shown: str) -> DataNotFoundError:
    """No such data set."""
    remedy = "Begin one with Ledger.create."
    expected = f"a ledger in {shown}, which has none"
    if known:
        remedy = "Name one of these, or begin one with Ledger.create."
        expected = f"one of {', '.join(map(repr, known))}, in {shown}"
    return DataNotFoundError.expected(expected, of="dataset", got=dataset, remedy=remedy)
