"""Where a ledger's lines are kept: what every store must do, and the one in memory.

Guarantees (tests/privacy/ledger/test_ledger_stores.py, one suite for all stores):
1. While one writer is inside `writing`, nobody else is, in this process or another; what it read is still so when it appends.
2. What was appended inside `writing` is there for good once the block has ended, and not at all if it raised.
3. Lines are only ever added, numbered one after another; the head says the last one's number and hash.
4. No message and no `repr` of a store shows the password of its address.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from ...errors import DataNotFoundError, LedgerError, complaint
from .entries import FIRST_PREVIOUS, Entry, malformed
from .refusals import one_inside_another


class Page(Protocol):
    """One data set's lines while nobody else may write."""

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

    def writing(self, dataset: str) -> AbstractContextManager[Page]:
        """The only writer of this data set, for as long as the block lasts; an error where there is no such data set."""

    def last(self, dataset: str) -> Entry:
        """The last line."""

    def kept_head(self, dataset: str) -> tuple[int, str]:
        """Number and hash of the last line as they are kept beside the lines, for `check`."""

    def entries(self, dataset: str, first: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Lines from number `first` on."""

    def of_spend(self, dataset: str, spend: str) -> list[Entry]:
        """The lines of one spend, in order."""

    def charges(self, dataset: str) -> Iterator[tuple[str, str, str, int]]:
        """(kind, spend, under, units) of every line, in order: what a summary needs, without the contents."""

    def close(self) -> None:
        """Let go of connections; the next use opens them again."""


class MemoryStore:
    """Lines in this process, gone with it: for trying things."""

    shown, address = "memory", None

    def __init__(self) -> None:
        self._lines: dict[str, list[Entry]] = {}
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._inside = False  # of the thread that holds the lock

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

    @contextmanager
    def writing(self, dataset: str) -> Iterator[Page]:
        if os.getpid() != self._process:
            remedy = "Keep it in a file, Ledger.create('budget.db', ...), where other processes find it."
            raise LedgerError(complaint(expected="the process that began it", of="memory", got="a fork of it", remedy=remedy))
        with self._lock:
            if self._inside:
                raise one_inside_another(self.shown)
            page, self._inside = _MemoryPage(self._of(dataset)), True
            try:
                yield page
            finally:
                self._inside = False
            self._of(dataset).extend(page.added)

    def last(self, dataset: str) -> Entry:
        return self._of(dataset)[-1]

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


class _MemoryPage:
    def __init__(self, lines: list[Entry]) -> None:
        self._lines = lines
        self.added: list[Entry] = []

    def head(self) -> Entry:
        return self.added[-1] if self.added else self._lines[-1]

    def of_spend(self, spend: str) -> list[Entry]:
        return [entry for entry in (*self._lines, *self.added) if entry.spend == spend]

    def append(self, entry: Entry) -> None:
        follows(self.head(), Entry.from_dict(entry.to_dict()))  # as strictly as where lines are read again
        self.added.append(entry)


def follows(head: Entry | None, entry: Entry) -> None:
    """What may stand after `head`: the next number, chained, sealed."""
    expected = (0, FIRST_PREVIOUS) if head is None else (head.number + 1, head.hash)
    if (entry.number, entry.previous) != expected or entry.hash != entry.digest():
        raise malformed(f"line {expected[0]}, chained and sealed", f"line {entry.number}")


def exists(dataset: str, shown: str) -> LedgerError:
    """A budget is begun once."""
    remedy = "Open it with Ledger.open, or give the new budget another name."
    return LedgerError(
        complaint(expected=f"a data set that {shown} has no ledger of", of="dataset", got=dataset, remedy=remedy)
    )


def missing(dataset: str | None, known: list[str], shown: str) -> DataNotFoundError:
    """No such data set."""
    remedy = "Begin one with Ledger.create."
    expected = f"a ledger in {shown}, which has none"
    if known:
        remedy = "Name one of these, or begin one with Ledger.create."
        expected = f"one of {', '.join(map(repr, known))}, in {shown}"
    return DataNotFoundError(complaint(expected=expected, of="dataset", got=dataset, remedy=remedy))
