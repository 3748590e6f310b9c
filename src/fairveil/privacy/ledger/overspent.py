"""What is said where there is no room: spent, asked, left, and the largest epsilon that fits."""

from __future__ import annotations

from ...core.events import Event
from ...core.promise import Promise
from ...errors import Overspent, complaint
from ..shown import at_least, at_most, promised
from .costs import MOST, WHOLE, Cost, tight_epsilon
from .stores.entries import Entry
from .terms import Terms
from .terms_words import left_share, spent_share


def overspent(terms: Terms, event: Event, asked: Promise, cost: Cost, head: Entry) -> Overspent:
    """The error of a release that does not fit after `head`."""
    figures = {
        "spent": terms.as_release(head.spent),
        "asked": tight_epsilon(event, asked.delta, asked.neighbours),
        "left": terms.as_release(max(0, WHOLE - head.spent)),
        "largest_epsilon": terms.largest_epsilon(event, asked, head.spent, head.leaked),
    }
    of_delta = head.spent + cost.units <= MOST  # there is room for the rest of it
    taken, spent = (cost.leak, head.leaked) if of_delta else (cost.units, head.spent)
    part = "what delta may leak" if of_delta else "the budget"
    size = spent_share(taken / WHOLE) if taken < 2 * WHOLE else "more than 200%"
    room = left_share(max(0, WHOLE - spent) / WHOLE)
    least = f"epsilon={figures['largest_epsilon']:g} at delta={asked.delta:g}"
    remedy = (
        f"The largest epsilon that fits is {least}."
        if figures["largest_epsilon"]
        else "Nothing of this kind fits any more."
    )
    got = (
        f"{size} (epsilon={at_most(figures['asked'])}); spent {spent_share(spent / WHOLE)}, left "
        f"{room} (as one release "
        f"epsilon={at_least(figures['left'])} of {promised(terms.promise.epsilon)} at "
        f"delta={terms.promise.delta:g}; "
        f"epsilon={at_most(figures['spent'], terms.promise.epsilon)} is spent)"
    )
    expected = f"a release of at most {room} of {part}"
    text = complaint(
        expected=expected, of=f"ledger {terms.dataset!r}", got=got, remedy=remedy, quote=False
    )
    return Overspent(text, **figures)
