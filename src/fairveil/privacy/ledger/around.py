"""A spend around any code: charged before the code runs, settled after it, also by an error.

Guarantees (tests/privacy/ledger/test_ledger_around.py):
1. The whole spend is on the ledger before the block's first line. Without room for it the block
   does not run.
2. When the block ends, by an error too, the spend is committed as reserved, unless the block
   settled it itself. Where the process dies inside, it stays charged.
3. A spend takes an untouched ledger at its tight price only where the caller says that all was
   fixed in advance.
4. Nothing is written before the `with` statement begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ... import _checks
from ...core.events import Event
from ...core.promise import Promise
from ...errors import InputError
from .lines import checked_words
from .spending import Spend


@contextmanager
def around(
    reserve: Callable[..., Spend],
    events: Event | Iterable[Event],
    purpose: str,
    asked: Promise | None,
    secure: bool,
    fixed_in_advance: bool,
) -> Iterator[Spend]:
    """The block of `Ledger.spend`. `reserve`: the ledger's; `asked`: whose neighbours the events
    are priced for, or None."""
    if not checked_words("purpose", purpose).strip():
        remedy = "Say what the block releases: purpose='counts by region'."
        raise InputError.expected("words", of="purpose", got=purpose, remedy=remedy)
    secure, fixed = _checks.truth(secure=secure), _checks.truth(fixed_in_advance=fixed_in_advance)
    with reserve(events, asked, purpose=purpose, secure=secure, fixed=fixed) as spend:
        yield spend
