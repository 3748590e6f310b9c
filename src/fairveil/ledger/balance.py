"""What is spent and what is left, as numbers and in words that never promise more.

Guarantees (tests/ledger/test_ledger_handle.py):
1. Shares by kind of promise are sums of whole units: with what is left they make up the budget.
2. A balance reads no line's content but the last one's. Lines that contradict each other are summed
   up as they stand: what is wrong with them is `check`'s to say.
3. Shares that are spent are rounded up, those that are left down.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..show.numbers import at_least, delta_words, promised
from ..show.parts import Facts, Part, Shown
from .entries import COMMITTED, REFUNDED, RESERVED, WHOLE, Entry
from .terms import Terms

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

    def _told(self) -> tuple[str, str, str]:
        """The budget, what is left as one release, and how many more."""
        whole = f"epsilon = {promised(self.epsilon)} at delta = {delta_words(self.delta)}"
        more = "" if self.more is None else f": {more_words(self.more)}"
        return whole, f"(as one release epsilon = {at_least(self.left)})", more

    def parts(self) -> Iterator[Part]:
        """The budget, what is spent of it and what is left."""
        (whole, release, more), left = self._told(), left_share(self.left_share)
        made = f"{self.committed + self.open:,}, of them not settled: {self.open:,}"
        facts = (("budget", whole), ("spent", spent_share(self.spent_share)))
        told = (("left", f"{left} {release}{more}"), ("releases", made))
        yield Facts.of((*facts, *told), self.dataset)

    def __str__(self) -> str:
        (whole, release, more), left = self._told(), left_share(self.left_share)
        waiting = f"; not settled: {self.open:,}" if self.open else ""
        spent = spent_share(self.spent_share)
        return f"{self.dataset}: {spent} of {whole} spent, {left} left {release}{more}{waiting}"


def balance_of(terms: Terms, last: Entry, charges: Iterable[tuple[str, str, str, int]]) -> Balance:
    """One pass over (kind, spend, under, units); the sums are the last line's."""
    kinds: Counter[str] = Counter()
    spends: Counter[str] = Counter()
    units: Counter[str] = Counter()
    now: dict[str, int] = {}
    waiting: dict[str, None] = {}
    for kind, spend, under, amount in charges:
        kinds[kind] += 1
        units[under] += amount
        now[spend] = now.get(spend, 0) + amount
        if kind == RESERVED:
            spends[under] += 1
            waiting[spend] = None
        elif kind in (COMMITTED, REFUNDED):
            waiting.pop(spend, None)
            spends[under] -= kind == REFUNDED
    newest = next((charged for charged in reversed(now.values()) if charged > 0), 0)
    left = max(0, WHOLE - last.spent)
    return Balance(
        dataset=terms.dataset,
        epsilon=terms.promise.epsilon,
        delta=terms.promise.delta,
        entries=last.number + 1,
        spent_share=share(last.spent),
        left_share=left / WHOLE,
        leaked_share=share(last.leaked),
        spent=terms.as_release(last.spent),
        left=terms.as_release(left),
        open=len(waiting),
        committed=kinds[COMMITTED],
        refunded=kinds[REFUNDED],
        by_promise=tuple(
            Under(str(name), spends[name], share(units[name]))
            for name in sorted(spends, key=str)
            if spends[name]
        ),
        last=last.at,
        waiting=tuple(waiting)[:MOST_WAITING],
        more=left // newest if newest else None,
    )


def share(units: int) -> float:
    """Of the whole budget; what the last bits of decimals went beyond it is not told."""
    return min(1.0, units / WHOLE)


def spent_share(share: float) -> str:
    """A share that is gone, rounded up.

    >>> spent_share(0.070001), spent_share(0.07), spent_share(0.0)
    ('7.01%', '7%', '0%')
    """
    return _percent(math.ceil(share * 10_000 - 1e-6))


def left_share(share: float) -> str:
    """A share that is left, rounded down.

    >>> left_share(0.92999), left_share(1.0)
    ('92.99%', '100%')
    """
    return _percent(math.floor(share * 10_000 + 1e-6))


def more_words(more: int) -> str:
    """What is left, in releases.

    >>> more_words(4)
    'about 4 more fits like this one'
    """
    return (
        f"about {more:,} more fit{'' if more == 1 else 's'} like this one"
        if more
        else ("no more fit like this one")
    )


def _percent(hundredths: int) -> str:
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + "%"
