"""What events cost in a ledger: in whole units, rounded up, or why it cannot take them."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ...core import inventory as leaves
from ...core.events import Event
from ...core.filters import Filter
from ...core.promise import Neighbours, Promise
from ...errors import FairveilError, InputError, LedgerError
from ..statement.pricing import UNPRICED
from .costs import (
    Cost,
    no_promise,
    several_in_a_row,
    units_of,
)


@lru_cache(maxsize=256)
def filter_of(promise: Promise, kind: str, order: float | None, reserve: float) -> Filter:
    """The filter of these terms, with nothing in it."""
    return Filter.create(promise, kind, order=order, reserve=reserve)


@lru_cache(maxsize=4096)
def cost_of(
    promise: Promise,
    kind: str,
    order: float | None,
    reserve: float,
    dataset: str,
    event: Event,
    relation: Neighbours,
    times: int,
) -> Cost:
    """What an event costs in a ledger, if so many of its neighbours are one of the ledger's."""
    cap = filter_of(promise, kind, order, reserve)
    try:
        with np.errstate(all="ignore"):  # what is too large for a number is inf, and refused
            amount, leak = cap.cost(
                event if times == 1 else several_in_a_row(event, relation, times)
            )
    except InputError as error:
        if kind != "gaussian":
            raise
        remedy = (
            "Ask all rows (sampling_rate=None), or begin a ledger of kind 'renyi', which takes "
            "every event."
        )
        expected = f"events for a ledger of kind {kind!r}: {str(error).partition(', got')[0]}"
        raise LedgerError.expected(
            expected, of=f"ledger {dataset!r}", got="others", remedy=remedy
        ) from None
    except FairveilError:
        raise
    except UNPRICED as error:
        remedy = "Their numbers are too large, or too small, to work with."
        raise LedgerError.expected(
            "events that have a price", of="events", got=str(error), remedy=remedy
        ) from None
    if math.isinf(amount) and leaves.inventory(event, promise.neighbours).private:
        remedy = "Releases that need a delta need a ledger of kind 'renyi', with a delta above 0."
        raise LedgerError.expected(
            "pure releases", of=f"ledger {dataset!r}", got="others", remedy=remedy
        )
    if math.isinf(amount) or math.isnan(amount) or math.isnan(leak):
        raise no_promise("a release without noise")
    return Cost(units_of(amount, cap.budget), units_of(leak, cap.allowance))
