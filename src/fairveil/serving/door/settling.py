"""How a run's spend is settled in its ledger, without its curator: by what the records say that it
released."""

from __future__ import annotations

from ...core.events import compose
from ...ledger import Ledger, Spend
from ...ledger.entries import RESERVED
from .record_rows import RunRecord
from .records import Records

MARK = "ledger "


def spend_of(records: Records, run: str) -> str | None:
    """The spend that a run's journal says it is charged by."""
    marks = [mark for mark in records.notes(run, "mark") if mark.startswith(MARK)]
    return marks[0].rpartition(" ")[2] if marks else None


def settle(
    records: Records, record: RunRecord, ledger: Ledger, *, failed: bool, complete: bool
) -> None:
    """Charge what was released, and give the rest back; `failed`: charge all; `complete`: its plan
    was done. What was settled before stays."""
    spend = spend_of(records, record.id)
    if spend is None:
        orphans_of(record, ledger)
        return
    now = ledger.standing(spend)
    if not now.is_open:
        return
    handle = Spend(ledger, now.reserved, now.sitting)
    entries = records.entries(record.id)
    if failed:
        handle.commit(complete=False)
    elif entries:
        handle.commit(compose(entry.event for entry in entries), complete=complete)
    else:
        handle.refund()


def orphans_of(record: RunRecord, ledger: Ledger) -> int:
    """Give back what was reserved for a run that then died before it wrote down by which spend: it
    asked nothing by it. Reads all of the ledger, so only of runs that have written none."""
    count = 0
    for line in ledger.history():
        if line.kind == RESERVED and line.purpose.startswith(f"run {record.id}:"):
            now = ledger.standing(line.spend)
            if now.is_open:
                Spend(ledger, now.reserved, now.sitting).refund()
                count += 1
    return count
