"""What must be so of a server's records and its ledger, whatever happened to either."""

from __future__ import annotations

from doors import Place

from fairveil.core.events import compose, from_dict, spelled_out
from fairveil.ledger import Ledger
from fairveil.serving.records import ENDED, OPEN, Records


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
            name, entries = run.id[:8], records.entries(run.id)
            out += [f"run {name} is {run.state}"] if ended and run.state != ENDED else []
            if run.spend is None:
                out += [f"run {name} released, and no spend pays for it"] if entries else []
                continue
            spends.discard(run.spend)
            now = own.standing(run.spend)
            out += [f"the spend of run {name} is open"] if ended and now.is_open else []
            if run.state == OPEN and not now.is_open:
                out.append(f"run {name} is open, and its spend is not")
            planned = list(spelled_out(from_dict(now.reserved.values["plan"])))
            done = [event for entry in entries for event in spelled_out(entry.event)]
            if done != planned[: len(done)]:
                out.append(f"run {name} released {done}, and planned {planned}")
            paid = [one for one in history if (one.spend, one.kind) == (run.spend, "committed")]
            if paid and paid[0].values["events"] is not None:
                told = list(spelled_out(from_dict(paid[0].values["events"])))
                if told != list(spelled_out(compose(done))):
                    out.append(f"run {name} pays {told}, and released {done}")
            if now.last == "refunded" and entries:
                out.append(f"run {name} was given back, and released")
        still = [spend for spend in spends if ended and own.standing(spend).is_open]
        return out + [f"spend {spend[:8]} of no run is open" for spend in still]
    finally:
        records.close()
