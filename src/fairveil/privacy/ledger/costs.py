"""What events cost a ledger, in units of its budget, and what they cost where neighbours are
several rows apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core import cost as accounting
from ...core.events import (
    Composed,
    Event,
    OnPart,
    PoissonSampled,
    PrivateSelection,
    Repeated,
    VisiblySampled,
)
from ...core.promise import Neighbours
from ...errors import FairveilError, LedgerError
from ..accounting.in_a_row import in_a_row
from ..statement.pricing import UNPRICED

WHOLE = 1 << 60
"""All of the budget, in units."""


MOST = WHOLE + (1 << 20)
"""What may be charged: 1e-12 more, for decimals that binary numbers miss."""


DEEPEST = 50


@dataclass(frozen=True)
class Cost:
    """Units of the budget, and of what may leak."""

    units: int
    leak: int

    def within(self, spent: int, leaked: int) -> bool:
        """Whether there is room beside what is charged."""
        return spent + self.units <= MOST and leaked + self.leak <= MOST


def no_promise(got: str = "inf") -> LedgerError:
    """What is not private cannot be added up."""
    remedy = (
        "A spend without a finite epsilon has no limit: pass a finite epsilon, or keep it out of "
        "the ledger."
    )
    return LedgerError.expected("a finite epsilon", of="ledger", got=got, remedy=remedy)


def tight_epsilon(events: Event | Iterable[Event], delta: float, neighbours: str) -> float:
    """What a plan that was fixed in advance costs by itself; inf, too, where its numbers are too
    large to tell."""
    try:
        with np.errstate(all="ignore"):
            found = accounting.epsilon(events, delta, neighbours)
    except FairveilError:
        raise
    except UNPRICED:
        return math.inf
    return math.inf if math.isnan(found) else found


def several_in_a_row(event: Event, relation: Neighbours, times: int) -> Event:
    """What events cost between data sets several neighbours apart: a row replaced is one removed
    and one added; all rows of a person are as many neighbours.

    (G_mu after G_mu is G_2mu, and epsilon after epsilon is 2 epsilon: Dong, Roth and Su 2022,
    Theorem 2.14.)
    """
    bound = in_a_row(event, relation, times)
    if bound is not None:
        return bound
    if times > 2:
        remedy = "Let the release protect persons: pass its unit=..."
        expected = (
            f"Gaussian or pure releases, where a person's rows are charged as {times} neighbours"
        )
        raise LedgerError.expected(expected, of="events about rows", got="others", remedy=remedy)
    remedy = "Pass neighbours='replace-one' to what releases them."
    expected = (
        "Gaussian or pure releases, where a row replaced is charged as one removed and one added"
    )
    raise LedgerError.expected(expected, of="events under add-remove", got="others", remedy=remedy)


def require_shallow(event: Event) -> None:
    """What is nested too deeply could be written, and not read again."""
    level, depth = [event], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            remedy = "Put them beside each other: fairveil.privacy.events.compose."
            raise LedgerError.expected(
                f"at most {DEEPEST} levels", of="events", got="more", remedy=remedy
            )
        level = [inner for one in level for inner in _inside(one)]


def samples(event: Event) -> bool:
    return isinstance(event, PoissonSampled | VisiblySampled) or any(
        samples(inner) for inner in _inside(event)
    )


def _inside(event: Event) -> tuple[Event, ...]:
    match event:
        case Composed():
            return event.events
        case Repeated() | PoissonSampled() | VisiblySampled() | OnPart() | PrivateSelection():
            return (event.event,)
    return ()


def units_of(amount: float, budget: float) -> int:
    """Rounded up. What is beyond the whole is distinguished from it, and no more."""
    if amount <= 0:
        return 0
    if budget <= 0:
        return 2 * WHOLE
    return min(2 * WHOLE, math.ceil(Fraction(amount) * WHOLE / Fraction(budget)))


def rounded_down(value: float) -> float:
    """Six digits, rounded down: a number that is typed in again still fits."""
    if value <= 0:
        return 0.0
    place = 10.0 ** (5 - math.floor(math.log10(value)))
    return math.floor(value * place) / place
