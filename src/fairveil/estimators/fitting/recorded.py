"""An estimator whose fits a ledger records: not fitted yet, it takes the block's ledger along
wherever it is copied to.

A search clones its estimator and sends the clones to other processes, which have no block. So
inside a block, `with ledger.recording():`, a clone or a pickle of an estimator that has no ledger
of its own, and was not fitted, has the block's: what is fitted there is recorded, too. One that was
fitted keeps its parameters, and its pickle remembers the block's ledger beside them, for clones and
fits where it arrives.

Guarantees (tests/estimators/test_estimators_ledger.py):
1. Every fit of a search in a block is recorded once, in however many processes, and so is every fit
   with `ledger=`.
2. Outside of a block clones and pickles are scikit-learn's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from ...core.events import Event, compose
from ...core.promise import Promise
from ...errors import Overspent, complaint
from ...ledger import Ledger, current
from ...privacy import epsilon as price
from ..settings.setting import Settled

REMEMBERED = "_ledger_of_block"


class Recorded(Settled):
    """The mixin of all estimators, before `BaseEstimator`."""

    ledger: Any

    def __sklearn_clone__(self) -> Self:
        clone: Self = super().__sklearn_clone__()  # type: ignore[misc]
        if clone.ledger is None:
            clone.ledger = current() or remembered(self)
        return clone

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        block = current()
        if block is None or not isinstance(state, dict) or state.get("ledger") is not None:
            return state
        return {**state, REMEMBERED if hasattr(self, "privacy_") else "ledger": block}


def remembered(estimator: object) -> Ledger | None:
    """The ledger of the block in which a fitted estimator was pickled."""
    found: Ledger | None = vars(estimator).get(REMEMBERED)
    return found


def require_room(ledger: Ledger, events: Sequence[Event], promise: Promise, purpose: str) -> None:
    """Refuse now what would be refused half way: `events` are about to be reserved in several
    spends.

    One spend that comes first may have all of a ledger at its tight price. Several may not: they
    are added up by the filter.
    """
    whole = compose(events)
    if not ledger.is_untouched:
        if not ledger.fits(whole, promise):
            # an `Overspent`, unless room was made meanwhile
            ledger.reserve(whole, promise, purpose=purpose).refund()
        return
    terms = ledger.terms
    if terms.cost(whole, promise).within(0, 0):
        return
    asked, largest = (
        price(whole, promise.delta, promise.neighbours),
        terms.largest_epsilon(whole, promise, 1, 1),
    )
    text = complaint(
        expected=f"releases that the ledger's {terms.kind} filter adds up to no more than "
        f"epsilon={terms.promise.epsilon:g}",
        of=f"ledger {ledger.dataset!r}",
        got=f"several spends of {purpose}, of epsilon={asked:.6g} together",
        remedy=f"The largest epsilon that fits is epsilon={largest:g} at delta={promise.delta:g}.",
    )
    raise Overspent(
        text, spent=0.0, asked=asked, left=terms.promise.epsilon, largest_epsilon=largest
    )
