"""The life of a spend, as its lines tell it: reserved, perhaps resumed, then committed or refunded; nothing after that.

    reserved --> resumed* --> committed
        \\-------------------> refunded     (nothing was released)

A spend whose last line is not one of the last two stays charged as it was reserved: its process may have died.

Guarantees (tests/privacy/ledger/test_ledger_spends.py):
1. Whatever lines are asked for, in whatever order, what is charged is within the cap, and equals the sum over spends of what
   each was last charged.
2. A spend is settled once. Its charge never rises after it was reserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import LedgerError, complaint
from .entries import COMMITTED, REFUNDED, RESERVED, RESUMED, Entry, malformed


@dataclass(frozen=True)
class Spent:
    """Where a spend stands. `units`, `leak`: what it is charged now; `whole`: it was given all of an untouched ledger."""

    reserved: Entry
    units: int
    leak: int
    last: str
    sitting: int
    complete: bool

    @property
    def is_open(self) -> bool:
        """Whether it may still be settled."""
        return self.last not in (COMMITTED, REFUNDED)

    @property
    def whole(self) -> bool:
        """Whether it was given all of an untouched ledger."""
        return self.reserved.values["whole"] is True

    def require_open(self) -> None:
        """Refuse to settle it again."""
        if not self.is_open:
            remedy = "A spend is settled once; reserve another for another release."
            raise LedgerError(
                complaint(expected="one that is open", of="spend", got=f"one that was {self.last}", remedy=remedy)
            )


def standing(lines: Sequence[Entry]) -> Spent:
    """Where a spend stands after its lines; a `LedgerError` where no ledger could have written them."""
    if not lines or lines[0].kind != RESERVED:
        raise malformed("a spend that begins by being reserved", lines[0].kind if lines else "none")
    first = lines[0]
    now = Spent(first, first.units, first.leak, RESERVED, 0, False)
    if now.units < 0 or now.leak < 0:
        raise malformed("a charge of at least 0", first.units)
    for line in lines[1:]:
        now = after(now, line)
    return now


def after(now: Spent, line: Entry) -> Spent:
    """Where it stands one line later."""
    if line.kind not in (RESUMED, COMMITTED, REFUNDED) or not now.is_open:
        raise malformed(f"nothing after a spend was {now.last}, or a step of it", line.kind)
    units, leak = now.units + line.units, now.leak + line.leak
    if line.kind == RESUMED:
        sitting = line.values["sitting"]
        if type(sitting) is not int or sitting <= now.sitting or line.units or line.leak:
            raise malformed("a later sitting, for no more", sitting)
        return Spent(now.reserved, units, leak, RESUMED, sitting, False)
    if line.units > 0 or line.leak > 0 or units < 0 or leak < 0 or (line.kind == REFUNDED and (units or leak)):
        raise malformed("a settlement within what was reserved", line.units)
    complete = line.kind == COMMITTED and line.values["complete"] is True
    return Spent(now.reserved, units, leak, line.kind, now.sitting, complete)
