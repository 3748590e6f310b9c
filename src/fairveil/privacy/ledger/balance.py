"""What is spent and what is left, and how it came to that: spend by spend, by kind of promise, by
purpose, over time.

Guarantees (tests/privacy/ledger/test_ledger_balance.py):
1. Shares by kind of promise, and by purpose, are sums of whole units: with what is left they make
   up the whole budget.
2. A balance reads no line's content but the last one's; an account reads every line once and keeps
   no content.
3. Lines that contradict each other are summed up as they stand: what is wrong with them is
   `check`'s to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from ...show.parts import Fact, Facts, Part, Shown
from ..shown import promised
from .costs import WHOLE
from .stores.entries import COMMITTED, CREATED, REFUNDED, RESERVED, RESUMED, Entry
from .stores.store import Store
from .terms import Terms
from .terms_words import delta_words, left_epsilon, left_share, more_words, spent_share

MOST_STEPS = 200
MOST_WAITING = 100


@dataclass(frozen=True)
class Under:
    """What releases under one promise's kind add up to: `under` names who is protected, between
    which neighbours."""

    under: str
    spends: int
    share: float


@dataclass(frozen=True)
class Balance(Shown):
    """Shares are of the filter's budget. `spent` and `left` are epsilons at the ledger's delta, as
    one release each: what is left is what one more release may cost, and neither is a difference of
    the other. `open`: spends that nobody settled yet (running, or dead); they are charged as
    reserved. `waiting`: ids of these, the oldest first, at most 100 of them. `more`: how many
    releases like the newest one still fit; None where nothing is charged."""

    dataset: str
    epsilon: float
    delta: float
    entries: int
    spent_share: float
    left_share: float
    leaked_share: float
    spent: float
    left: float
    open: int
    committed: int
    refunded: int
    by_promise: tuple[Under, ...]
    last: str
    waiting: tuple[str, ...] = ()
    more: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def parts(self) -> Iterator[Part]:
        """The budget, what is spent of it and what is left."""
        whole = f"epsilon = {promised(self.epsilon)} at delta = {delta_words(self.delta)}"
        one = f"{left_share(self.left_share)} (as one release epsilon = {left_epsilon(self.left)})"
        more = "" if self.more is None else f": {more_words(self.more)}"
        releases = f"{self.committed + self.open:,}, of them not settled: {self.open:,}"
        facts = (
            Fact("budget", whole),
            Fact("spent", spent_share(self.spent_share)),
            Fact("left", one + more),
            Fact("releases", releases),
        )
        yield Facts(facts, self.dataset)

    def __str__(self) -> str:
        whole = f"epsilon = {promised(self.epsilon)} at delta = {delta_words(self.delta)}"
        left = (
            f"{left_share(self.left_share)} left (as one release epsilon = "
            f"{left_epsilon(self.left)})"
        )
        more = "" if self.more is None else f": {more_words(self.more)}"
        waiting = f"; not settled: {self.open:,}" if self.open else ""
        spent = spent_share(self.spent_share)
        return f"{self.dataset}: {spent} of {whole} spent, {left}{more}{waiting}"


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


def balance_of(terms: Terms, store: Store) -> Balance:
    """One pass over kinds and charges; the sums are the last line's."""
    kinds: Counter[str] = Counter()
    spends: Counter[str] = Counter()
    units: Counter[str] = Counter()
    waiting: dict[str, None] = {}
    newest: list[tuple[str, int]] = [("", 0)]  # this one, and what stands if it is refunded
    for kind, spend, under, amount in store.charges(terms.dataset):
        kinds[kind] += 1
        if kind == RESERVED:
            spends[under] += 1
            waiting[spend] = None
        elif kind == COMMITTED:
            waiting.pop(spend, None)
        elif kind == REFUNDED:
            spends[under] -= 1
            waiting.pop(spend, None)
        units[under] += amount
        if kind == RESERVED:
            newest = [*newest[-1:], (spend, amount)]
        elif spend == newest[-1][0]:
            newest[-1] = (spend, newest[-1][1] + amount)
            if newest[-1][1] <= 0:
                del newest[1:]
    last = store.last(terms.dataset)
    return Balance(
        dataset=terms.dataset,
        epsilon=terms.promise.epsilon,
        delta=terms.promise.delta,
        entries=last.number + 1,
        spent_share=share(last.spent),
        left_share=max(0, WHOLE - last.spent) / WHOLE,
        leaked_share=share(last.leaked),
        spent=terms.as_release(last.spent),
        left=terms.as_release(max(0, WHOLE - last.spent)),
        open=len(waiting),
        committed=kinds[COMMITTED],
        refunded=kinds[REFUNDED],
        by_promise=tuple(
            Under(str(name), spends[name], share(units[name]))
            for name in sorted(spends, key=str)
            if spends[name]
        ),
        last=last.at,
        waiting=tuple(islice(waiting, MOST_WAITING)),
        more=max(0, WHOLE - last.spent) // newest[-1][1] if newest[-1][1] > 0 else None,
    )


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


def share(units: int) -> float:
    """Of the whole budget; what the last bits of decimals went beyond it is not told."""
    return min(1.0, units / WHOLE)


def _days(begun: str, at: str) -> float:
    """0 where one of them is no date."""
    try:
        return (datetime.fromisoformat(at) - datetime.fromisoformat(begun)).total_seconds() / 86_400
    except (ValueError, TypeError):
        return 0.0
