"""A block in which lines are written, which no interrupt leaves open.

Ctrl-C is raised between any two steps of Python: also after a transaction has begun and before its
block has, at the first step of `__exit__`, and inside of the clean-up itself. A context manager
alone cannot answer for all of these. So everything that a block took is given back by one method
that may be called as often as one likes, and `within` calls it at two levels: whatever interrupts
the inner one is followed by the outer one.

Guarantees (tests/privacy/ledger/test_ledger_interrupts.py):
1. After an exception at any step the block holds nothing: others may write, and the next block of
   this thread begins.
2. A block that was interrupted has written all of its lines or none. What it had granted is not
   written less.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

P = TypeVar("P")
Handed = TypeVar("Handed", covariant=True)
T = TypeVar("T")


class Block(ABC, Generic[Handed]):
    """`with block as page:` is kept at the end of the block, and undone if it raises. Used once."""

    def __enter__(self) -> Handed:
        try:
            return self._begin()
        except BaseException:
            self.abandon()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._keep()
        finally:
            self.abandon()

    @abstractmethod
    def _begin(self) -> Handed:
        """Take the turn. What was taken when this raises is given back by `abandon`."""

    @abstractmethod
    def _keep(self) -> None:
        """Write what the block did, for good."""

    @abstractmethod
    def abandon(self) -> None:
        """Undo what is not kept, and give the turn back. Nothing is left to do after the first
        time."""


def within(block: Block[P], work: Callable[[P], T]) -> T:
    """What `work` answers inside of the block."""
    try:
        with block as page:
            return work(page)
    finally:
        # Once more, from outside: an interrupt may have hit `__exit__` itself.
        block.abandon()
