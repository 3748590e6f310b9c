"""What is spent and what is left, from the last line and the sums of all."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from .entries import COMMITTED, REFUNDED, RESERVED
from .store import Store
from .terms import WHOLE, Terms


@dataclass(frozen=True)
class Under:
    """What releases under one promise's kind add up to: `under` names who is protected, between which neighbours."""

    under: str
    spends: int
    share: float


@dataclass(frozen=True)
class Balance:
    """Shares are of the filter's budget. `spent` and `left` are epsilons at the ledger's delta, as one release each: what is
    left is what one more release may cost, and neither is a difference of the other. `open`: spends that nobody settled yet
    (running, or dead); they are charged as reserved."""

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

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def balance_of(terms: Terms, store: Store) -> Balance:
    """One pass over kinds and charges; the sums are the last line's."""
    kinds: Counter[str] = Counter()
    spends: Counter[str] = Counter()
    units: Counter[str] = Counter()
    for kind, _, under, amount in store.charges(terms.dataset):
        kinds[kind] += 1
        spends[under] += (kind == RESERVED) - (kind == REFUNDED)
        units[under] += amount
    last = store.last(terms.dataset)
    return Balance(
        dataset=terms.dataset,
        epsilon=terms.promise.epsilon,
        delta=terms.promise.delta,
        entries=last.number + 1,
        spent_share=min(1.0, last.spent / WHOLE),
        left_share=max(0, WHOLE - last.spent) / WHOLE,
        leaked_share=min(1.0, last.leaked / WHOLE),
        spent=terms.as_release(last.spent),
        left=terms.as_release(max(0, WHOLE - last.spent)),
        open=kinds[RESERVED] - kinds[COMMITTED] - kinds[REFUNDED],
        committed=kinds[COMMITTED],
        refunded=kinds[REFUNDED],
        by_promise=tuple(Under(name, spends[name], min(1.0, units[name] / WHOLE)) for name in sorted(spends) if spends[name]),
        last=last.at,
    )
