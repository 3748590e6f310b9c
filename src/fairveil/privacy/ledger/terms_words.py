"""What a ledger promises, in words: for a terminal and for a page."""

from __future__ import annotations

import math

from ...core.promise import Promise
from ..shown import at_least, at_most, promised
from .stores.entries import COMMITTED, REFUNDED, RESERVED, RESUMED, Entry
from .terms import Terms

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


def spent_share(share: float) -> str:
    """A share that is gone, rounded up: words must not promise more than the number does.

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


def spent_epsilon(epsilon: float, limit: float | None = None) -> str:
    """Three digits, rounded up, but no further than the budget that it is spent of.

    >>> spent_epsilon(0.051681), spent_epsilon(0.9999, 1.0)
    ('0.0517', '1')
    """
    return at_most(epsilon, limit)


def more_words(more: int) -> str:
    """What is left, in releases.

    >>> more_words(4)
    'about 4 more releases like the newest one fit'
    >>> more_words(0)
    'no more release like the newest one fits'
    """
    if more < 1:
        return "no more release like the newest one fits"
    return (
        "about 1 more release like the newest one fits"
        if more == 1
        else f"about {more:,} more releases like the newest one fit"
    )


def left_epsilon(epsilon: float) -> str:
    """Three digits, rounded down.

    >>> left_epsilon(0.92999)
    '0.929'
    """
    return at_least(epsilon)


def delta_words(delta: float) -> str:
    """
    >>> delta_words(1e-9)
    '1e-9'
    """
    return f"{delta:g}".replace("e-0", "e-")


def _percent(hundredths: int) -> str:
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + "%"
