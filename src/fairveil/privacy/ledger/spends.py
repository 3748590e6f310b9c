"""The life of a spend, as its lines tell it: reserved, perhaps resumed, then committed or refunded;
nothing after that.

    reserved --> resumed* --> committed
        \\-------------------> refunded     (nothing was released)

A spend whose last line is not one of the last two stays charged as it was reserved: its process may
have died.

Guarantees (tests/privacy/ledger/test_ledger_spends.py):
1. Whatever lines are asked for, in whatever order, what is charged is within the cap, and equals
   the sum over spends of what each was last charged.
2. A spend is settled once. Its charge never rises after it was reserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import LedgerError
from .costs import WHOLE, Cost
from .stores.entries import COMMITTED, REFUNDED, RESERVED, RESUMED, Entry, malformed

LAST_BITS = 1 << 31
"""A log may cost this part more than its plan: the order of sums, which is no overspending."""


@dataclass(frozen=True)
class Spent:
    """Where a spend stands. `units`, `leak`: what it is charged now; `whole`: it was given all of
    an untouched ledger."""

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
        return self.reserved.values.get("whole") is True

    def charge(self, cost: Cost) -> tuple[int, int]:
        """What it is charged once events of this cost were admitted: that, and never more than was
        reserved.

        Units and leak go together: of two bounds on what was released one holds, and not the
        smaller half of each. Events that cost more than was reserved are an error, and leave it
        open, charged as reserved; the last bits of a sum are none.
        """
        # A spend that got the whole ledger was priced as one plan, which has no smaller part to
        # give back.
        if self.whole or (cost.units <= self.units and cost.leak <= self.leak):
            return (self.units, self.leak) if self.whole else (cost.units, cost.leak)
        for charged, least in ((self.units, cost.units), (self.leak, cost.leak)):
            # More than the last bits of a sum: the run released what was never reserved.
            if least > charged + charged // LAST_BITS + 1:
                remedy = (
                    "Reserve all that a release may cost, before it is asked. What was reserved "
                    "stays charged."
                )
                got = f"{least / WHOLE:.3%} of the budget"
                expected = f"a log that costs at most the {charged / WHOLE:.3%} reserved"
                raise LedgerError.expected(expected, of="spend", got=got, remedy=remedy)
        return self.units, self.leak

    def require_open(self) -> None:
        """Refuse to settle it again."""
        if not self.is_open:
            remedy = "A spend is settled once; reserve another for another release."
            raise LedgerError.expected(
                "one that is open", of="spend", got=f"one that was {self.last}", remedy=remedy
            )


def standing(lines: Sequence[Entry]) -> Spent:
    """Where a spend stands after its lines; a `LedgerError` where no ledger could have written
    them."""
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
        sitting = line.values.get("sitting")
        # Sittings rise: an old copy of a run cannot be resumed after a newer one
        # (docs/theory/composition.md, old copies).
        if type(sitting) is not int or sitting <= now.sitting or line.units or line.leak:
            raise malformed("a later sitting, for no more", sitting)
        return Spent(now.reserved, units, leak, RESUMED, sitting, False)
    if (
        line.units > 0
        or line.leak > 0
        or units < 0
        or leak < 0
        or (line.kind == REFUNDED and (units or leak))
    ):
        raise malformed("a settlement within what was reserved", line.units)
    complete = line.kind == COMMITTED and line.values.get("complete") is True
    return Spent(now.reserved, units, leak, line.kind, now.sitting, complete)
