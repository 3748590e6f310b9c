"""A ledger's terms in words, and how it came to its balance: spend by spend, by purpose, over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ..core.promise import Promise
from ..show.numbers import delta_words, promised
from .balance import share
from .entries import COMMITTED, CREATED, REFUNDED, RESERVED, RESUMED, Entry
from .terms import Terms

MOST_STEPS = 200
GUARDED = {
    "records": "records: features, label and sensitive columns",
    "sensitive_features": "the sensitive columns only: all else, and the number of rows, is "
    "treated as public",
}
NEIGHBOURS = {
    "add-remove": "tables that differ by one row added or removed",
    "replace-one": "tables that differ in one row, which is replaced",
}
TAKES = {
    "renyi": "takes every event",
    "gaussian": "takes unsampled Gaussian releases and pure ones, no random batches",
    "zcdp": "takes what is zero-concentrated",
    "pure": "adds up epsilons",
}
STATES = {
    RESERVED: "not settled",
    RESUMED: "not settled, went on",
    COMMITTED: "committed",
    REFUNDED: "given back",
}
"""What happened to a spend last."""
APART = (
    "Spends under different relations are kept apart: each is charged what it costs between the "
    "ledger's own neighbours."
)
NO_SUM = "Epsilons are those of one release of such a share; shares add up, epsilons do not."


def items(terms: Terms, first: Entry) -> tuple[tuple[str, str], ...]:
    """(heading, words) of the terms, and of the line that began the ledger."""
    promise = terms.promise
    order = "" if terms.order is None else f" of order {terms.order:g}"
    leaks = (
        "" if terms.kind == "pure" else f"; {100 * terms.reserve:.3g}% of delta is kept for leaks"
    )
    strict = "yes: no seeded noise, and nothing that was read from the data without privacy"
    whole = f"epsilon = {promised(promise.epsilon)} at delta = {delta_words(promise.delta)}"
    return (
        ("Guarantee", f"{whole}, for all that is recorded here together"),
        (
            "Protected",
            GUARDED[promise.protects] + (f" ({', '.join(terms.columns)})" if terms.columns else ""),
        ),
        ("Neighbours", f"{_neighbours(promise)} ({promise.neighbours})"),
        ("Filter", f"{terms.kind}{order}, which {TAKES[terms.kind]}{leaks}"),
        (
            "Production",
            strict
            if terms.production
            else "no: seeded noise is taken, and facts that were read from the data",
        ),
        (
            "Schema",
            "any"
            if terms.fingerprint is None
            else f"only the one of fingerprint {terms.fingerprint}",
        ),
        ("Begun", f"{first.at} by {first.who} ({first.code})"),
    )


def _neighbours(promise: Promise) -> str:
    if promise.unit is None:
        return NEIGHBOURS[promise.neighbours]
    whole = NEIGHBOURS[promise.neighbours].replace("row", "person")
    return f"{whole}, with {promise.unit.extent}; persons are identified by {promise.unit.name!r}"


def unsettled(count: int) -> str:
    """What it means that so many spends are open."""
    if count == 1:
        return (
            "1 is not settled: it runs, or its process died; it stays charged as it was reserved."
        )
    return (
        f"{count:,} are not settled: they run, or their process died; they stay charged as they "
        f"were reserved."
    )


@dataclass(frozen=True)
class Told:
    """One spend: the line that reserved it, what happened to it last (`state`), what it is charged
    now and was at first."""

    spend: str
    entry: int
    at: str
    who: str
    purpose: str
    under: str
    state: str
    share: float
    reserved_share: float


@dataclass(frozen=True)
class Purpose:
    """What all spends of one purpose add up to."""

    purpose: str
    spends: int
    share: float


@dataclass(frozen=True)
class Step:
    """What was charged after line `entry`. `days`: since the ledger was begun, never fewer than the
    line before."""

    entry: int
    at: str
    days: float
    share: float


@dataclass(frozen=True)
class Account:
    """How a ledger came to its balance. `spends`: all of them, the newest last. `steps`: of so many
    lines the ones that a curve needs, see `thinned`."""

    spends: tuple[Told, ...]
    by_purpose: tuple[Purpose, ...]
    steps: tuple[Step, ...]


def account_of(lines: Iterable[Entry]) -> Account:
    """One pass over every line."""
    found: dict[str, tuple[Entry, str, int]] = {}
    steps: list[Step] = []
    begun, days = "", 0.0
    for line in lines:
        begun = begun or line.at
        days = max(days, _days(begun, line.at))  # a clock may have been set back
        steps.append(Step(line.number, line.at, days, share(line.spent)))
        if line.kind == RESERVED:
            found[line.spend] = (line, RESERVED, line.units)
        elif line.kind != CREATED and line.spend in found:
            first, _, units = found[line.spend]
            found[line.spend] = (first, line.kind, units + line.units)
    purposes: Counter[str] = Counter()
    units_of: Counter[str] = Counter()
    for first, state, units in found.values():
        purposes[first.purpose] += state != REFUNDED
        units_of[first.purpose] += units
    dearest = sorted(
        (name for name in purposes if purposes[name]), key=lambda name: (-units_of[name], name)
    )
    return Account(
        tuple(told(first, state, units) for first, state, units in found.values()),
        tuple(Purpose(name, purposes[name], share(units_of[name])) for name in dearest),
        thinned(steps),
    )


def told(first: Entry, state: str, units: int) -> Told:
    """A spend in plain numbers, from the line that reserved it."""
    about = (first.spend, first.number, first.at, first.who, first.purpose, first.under)
    return Told(*about, state, share(units), share(first.units))


def is_open(spend: Told) -> bool:
    """Whether it may still be settled."""
    return spend.state in (RESERVED, RESUMED)


def thinned(steps: list[Step], most: int = MOST_STEPS) -> tuple[Step, ...]:
    """At most so many: the first and the last, and of every stretch of time the highest and the
    last one."""
    if len(steps) <= most:
        return tuple(steps)
    stretches = most // 2 - 1
    low, high = steps[0].days, steps[-1].days
    width = (high - low) / stretches or 1.0
    kept: dict[int, tuple[Step, Step]] = {}
    for one in steps:
        at = min(int((one.days - low) / width), stretches - 1)
        highest = kept[at][0] if at in kept and kept[at][0].share >= one.share else one
        kept[at] = (highest, one)
    chosen = {
        one.entry: one
        for one in (steps[0], *(one for pair in kept.values() for one in pair), steps[-1])
    }
    return tuple(chosen[entry] for entry in sorted(chosen))


def _days(begun: str, at: str) -> float:
    """0 where one of them is no date."""
    try:
        return (datetime.fromisoformat(at) - datetime.fromisoformat(begun)).total_seconds() / 86_400
    except (ValueError, TypeError):
        return 0.0
