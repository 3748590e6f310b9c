"""What every store that lasts refuses, in the same words."""

from __future__ import annotations

from ....errors import LedgerError


def not_for_reading(verb: str) -> LedgerError:
    """A handle that only reads."""
    remedy = "Open the ledger without read_only=True."
    return LedgerError.expected(
        f"a handle that may {verb}", of="ledger", got="read_only=True", remedy=remedy
    )


def one_inside_another(shown: str) -> LedgerError:
    """A thread writes one block after another."""
    got, remedy = (
        "a block inside another of the same thread",
        "End the first block before the next.",
    )
    return LedgerError.expected("one block of writing at a time", of=shown, got=got, remedy=remedy)


def changed_by_a_child(shown: str) -> LedgerError:
    """A transaction is its process's."""
    remedy = "Start processes outside of the block: the parent ends it."
    return LedgerError.expected(
        "the process that began to write", of=shown, got="a child of it", remedy=remedy
    )


def half_failed(shown: str) -> LedgerError:
    """A block that went on after the database had refused something in it."""
    got, remedy = (
        "a line that was refused before the end",
        "Nothing was written. Let the error end the block.",
    )
    return LedgerError.expected(
        "a block that is written as a whole", of=shown, got=got, remedy=remedy
    )


def another_ledger(dataset: str, shown: str) -> LedgerError:
    """A handle has the terms of one ledger, and there is another one now."""
    got = "another one, which was put in its place"
    remedy = "Nothing was written. Open it again (Ledger.open): the terms of the new one hold."
    return LedgerError.expected(
        "the ledger that this handle was opened for",
        of=f"{dataset} in {shown}",
        got=got,
        remedy=remedy,
    )
