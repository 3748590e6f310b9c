"""Is what a grant relies on what a ledger wrote? Read and recomputed before a line is added,
at a bounded price.

A reservation relies on the terms (the first line), on the sums of the last line, and on nothing
having been left out before it. So before the first line that a store adds, the newest lines are
read: each must be what its hash was made of, follow the line before it, and add to its sums. From
then on only what was written since is read, which mostly is the last line.

Guarantees (tests/privacy/ledger/test_ledger_damage.py):
1. Before a line is added, each of the newest `MOST_READ` lines has its own hash, follows the line
   before it, and has its sums.
2. What it costs does not grow with the history beyond `MOST_READ` lines, and is charged once by
   each store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ....errors import LedgerError
from .entries import FIRST_PREVIOUS, Entry

MOST_READ = 10_000
"""Lines that are read before the first one is added: a tenth of a second. `check` reads all."""


@dataclass(frozen=True)
class Mark:
    """A line up to which all was found to fit: its number, its hash, and the sums after it."""

    number: int
    hash: str
    spent: int
    leaked: int

    @staticmethod
    def of(line: Entry) -> Mark:
        """At this line."""
        return Mark(line.number, line.hash, line.spent, line.leaked)


_NAMES = tuple(field.name for field in fields(Entry))
_PLACES = tuple(map(_NAMES.index, ("number", "units", "leak", "spent", "leaked", "previous")))
BEFORE_ALL = Mark(-1, FIRST_PREVIOUS, 0, 0)


def read_on(mark: Mark | None, rows: Iterable[Sequence[Any]], of: str) -> Mark | None:
    """The mark at the last of these rows (as `tables.COLUMNS` has them), which must follow each
    other, and the mark. Without one the first row is where it begins."""
    for row in rows:
        mark = _after(mark, row, of)
    return mark


def _after(mark: Mark | None, row: Sequence[Any], of: str) -> Mark:
    *hashed, found = row
    number, units, leak, spent, leaked, previous = (hashed[at] for at in _PLACES)
    if any(type(value) is not int for value in (number, units, leak, spent, leaked)) or not all(
        isinstance(value, int | str) for value in row
    ):
        raise damaged(
            of, f"line {str(number)[:40]}, which holds something else than text and whole numbers"
        )
    # The same bytes as `Entry.digest`, without making an entry of each row.
    text = json.dumps(hashed, separators=(",", ":"), ensure_ascii=True)
    if hashlib.sha256(text.encode()).hexdigest() != found:
        raise damaged(of, f"line {number}, which is not what its hash was made of")
    if mark is not None:
        if (number, previous) != (mark.number + 1, mark.hash):
            raise damaged(of, f"line {number} after line {mark.number}, which it does not follow")
        # The sums are what a grant is decided by, so they are added again, not only hashed.
        if (spent, leaked) != (mark.spent + units, mark.leaked + leak):
            raise damaged(of, f"line {number}, whose sums are not those of the lines before it")
    return Mark(number, found, spent, leaked)


def damaged(of: str, got: str) -> LedgerError:
    """Lines that no ledger wrote: nothing is granted on them."""
    remedy = (
        "Nothing was written. Look at `fairveil ledger check`, and restore an export or a copy."
    )
    return LedgerError.expected("lines that fit each other", of=of, got=got, remedy=remedy)
