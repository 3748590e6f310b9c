"""The ledger of a block: whatever is fitted inside is recorded, unless it has a ledger of its own.

    with fairveil.ledger("budget.db", "census"):
        GridSearchCV(estimator, grid, n_jobs=2).fit(X, y)

The block is the whole process's, not one thread's: searches return their work from threads of
their own, and a fit that a thread-local block would miss is a spend that nobody recorded. Hence
blocks of two ledgers in two threads at once are refused.

Guarantees (tests/privacy/ledger/test_ledger_ambient.py):
1. Inside the block `current()` is its ledger in every thread; after it, what it was before, also
   when it raised.
2. Two threads never have blocks of different ledgers at the same time.
3. `already_charged` hides the block from its own context alone: no other thread's fit goes unrecorded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ...errors import InputError, LedgerError
from .handle import Ledger

_blocks: list[tuple[int, Ledger]] = []
_lock = threading.Lock()
_PAID_FOR: ContextVar[bool] = ContextVar("fairveil release reserved as a whole", default=False)


@contextmanager
def ledger(ledger: Ledger | str | os.PathLike[str], dataset: str | None = None) -> Iterator[Ledger]:
    """Record every fit of a block in a ledger.

    Parameters
    ----------
    ledger : Ledger, str or path
        A handle, or what `Ledger.open` takes.
    dataset : str, default=None
        Name of the data set in the store. None: the store's only one, or that of the handle.

    Yields
    ------
    Ledger
        The open ledger.

    See Also
    --------
    Ledger : A budget shared by many fits.
    """
    if isinstance(ledger, Ledger):
        if dataset is not None:
            remedy = "A handle knows its data set: leave dataset out."
            raise InputError.expected(
                "None beside a Ledger", of="dataset", got=dataset, remedy=remedy
            )
        handle = ledger
    else:
        handle = Ledger.open(ledger, dataset)
    block = (threading.get_ident(), handle)
    with _lock:
        if any(thread != block[0] and not is_same(other, handle) for thread, other in _blocks):
            remedy = (
                "A block is the whole process's: give estimators of several threads their own "
                "ledger= instead."
            )
            raise LedgerError.expected(
                "one ledger at a time", of="ledger block", got="another thread's", remedy=remedy
            )
        _blocks.append(block)
    try:
        yield handle
    finally:
        with _lock:
            at = next(i for i in reversed(range(len(_blocks))) if _blocks[i] is block)
            del _blocks[at]


@contextmanager
def already_charged() -> Iterator[None]:
    """Fits of the block, in this context alone, are part of a release that was reserved as a whole
    (a private search's), or are of rows that were made up (an audit's)."""
    token = _PAID_FOR.set(True)
    try:
        yield
    finally:
        _PAID_FOR.reset(token)


def current() -> Ledger | None:
    """The ledger of the innermost block, if there is one."""
    if _PAID_FOR.get():
        return None
    with _lock:
        return _blocks[-1][1] if _blocks else None


def checked(given: object) -> Ledger | None:
    """A handle, or None: an address is opened by the caller."""
    if given is not None and not isinstance(given, Ledger):
        remedy = (
            "Make one with Ledger.create, find one with Ledger.open; or put `with "
            "fairveil.ledger(url):` around."
        )
        raise LedgerError.expected(
            "a Ledger, or None", of="ledger", got=type(given).__name__, remedy=remedy
        )
    return given


def is_same(one: Ledger, other: Ledger) -> bool:
    """Whether two handles are of one budget; where two addresses name one store that is not
    seen."""
    return one is other or (
        one.dataset == other.dataset and one.address is not None and one.address == other.address
    )
