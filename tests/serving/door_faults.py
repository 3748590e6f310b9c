"""What must be so of a door's records and its ledger, whatever happened to either: used by tests
and by the benchmark."""

from __future__ import annotations

from doors import Place

from fairveil.core.events import compose, from_dict, spelled_out
from fairveil.ledger import Ledger
from fairveil.serving.door.record_rows import ENDED, OPEN
from fairveil.serving.door.records import Records
from fairveil.serving.door.settling import spend_of


def faults(place: Place, *, ledger: Ledger | None = None, ended: bool = True) -> list[str]:
    """Every way in which records and ledger contradict one another; `ended`: no run and no spend is
    open any more."""
    own = place.ledger() if ledger is None else ledger
    records = Records(place.folder / "door", serves=False)
    try:
        out = [str(finding) for finding in own.check() if finding.grave or ended]
        history = list(own.history())
        spends = {line.spend for line in history if line.kind == "reserved"}
        for run in records.runs(most=10**6):
            spend, name = spend_of(records, run.id), run.id[:8]
            out += [f"run {name} is {run.state}"] if ended and run.state != ENDED else []
            entries = records.entries(run.id)
            if spend is None:
                out += [f"run {name} released, and no spend pays for it"] if entries else []
                continue
            spends.discard(spend)
            now = own.standing(spend)
            out += [f"the spend of run {name} is open"] if ended and now.is_open else []
            out += (
                [f"run {name} is open, and its spend is not"]
                if run.state == OPEN and not now.is_open
                else []
            )
            planned = list(spelled_out(from_dict(now.reserved.values["plan"])))
            done = [event for entry in entries for event in spelled_out(entry.event)]
            out += (
                [f"run {name} released {done}, and planned {planned}"]
                if done != planned[: len(done)]
                else []
            )
            paid = next(
                (line for line in history if line.spend == spend and line.kind == "committed"), None
            )
            if paid is not None and paid.values["events"] is not None:
                told = list(spelled_out(from_dict(paid.values["events"])))
                out += (
                    [f"run {name} pays {told}, and released {done}"]
                    if told != list(spelled_out(compose(done)))
                    else []
                )
            out += (
                [f"run {name} was given back, and released"]
                if now.last == "refunded" and entries
                else []
            )
        out += [
            f"spend {spend[:8]} of no run is open"
            for spend in spends
            if ended and own.standing(spend).is_open
        ]
        return out
    finally:
        records.close()
