"""What one release was reserved, and how it is settled."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ...core.events import Event, compose
from ...core.inventory import as_event
from ...errors import LedgerError
from .stores.entries import Entry

if TYPE_CHECKING:
    from ..statement.parts import Receipt
    from .spends import Spent


class Settling(Protocol):
    """The ledger of a spend, which writes how it ends."""

    dataset: str

    def standing(self, spend: str) -> Spent:
        """What is charged for a spend."""
        ...

    def _settle(self, spend: Spend, events: Event | None, complete: bool) -> None: ...

    def _refund(self, spend: Spend) -> None: ...


class Spend:
    """What one release was reserved. Settle it once: `commit` with what was admitted, or `refund`
    if nothing was."""

    def __init__(self, ledger: Settling, reserved: Entry, sitting: int = 0) -> None:
        self.ledger, self.id, self.entry, self.hash = (
            ledger,
            reserved.spend,
            reserved.number,
            reserved.hash,
        )
        self.sitting, self.was_settled = sitting, False

    @property
    def receipt(self) -> Receipt:
        """What a statement keeps of it: with this, a ledger that lost or changed the line is found
        out."""
        from ..statement.parts import Receipt

        return Receipt(self.ledger.dataset, self.id, self.entry, self.hash)

    @property
    def is_open(self) -> bool:
        """Whether it is still to be settled."""
        return self.ledger.standing(self.id).is_open

    def commit(
        self, events: Event | Iterable[Event] | None = None, *, complete: bool = True
    ) -> None:
        """Charge for good: what was admitted (never more than was reserved; None: all that was
        reserved).

        `complete=False`: the release broke off, and does not go on. Answers that failed after they
        began count as admitted.
        """
        self.ledger._settle(
            self, None if events is None else compose([as_event(events)]), bool(complete)
        )
        self.was_settled = True

    def refund(self) -> None:
        """Give it back: only if nothing was asked of the rows."""
        self.ledger._refund(self)
        self.was_settled = True

    def __enter__(self) -> Spend:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if kind is None:
            if self.is_open:
                self.commit()
            return
        # the block's own error is the one to see; unsettled, it stays charged
        with suppress(LedgerError, OSError):
            if self.is_open:
                self.commit(complete=False)

    def __repr__(self) -> str:
        return f"Spend({self.id!r} of {self.ledger!r})"
