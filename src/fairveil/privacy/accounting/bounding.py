"""A plan may say the worst person's noise where the log says everybody's.

Shares of a budget by group may be made of answers that were released before. Then a plan cannot
name them; it says the bound that they keep, `Gaussian(z)`, and the log says what was done,
`PerCell(...)`. Whatever was seen before, such a release is at most 1/z-Gaussian private, and 1/z is
a constant: that is all that adaptive composition asks for (theory.md#t1, #t9).

Shown in tests/privacy/test_privacy_bounding.py.
"""

from __future__ import annotations

from functools import lru_cache

from ...core.events import (
    Composed,
    Event,
    Gaussian,
    OnPart,
    PerCell,
    PoissonSampled,
    Repeated,
    VisiblySampled,
)
from ...core.promise import Neighbours
from . import inventory as leaves

SLACK = 1e-12
"""What the square of a release may be above its bound: the last bits of a sum."""


@lru_cache(maxsize=4096)
def covers(planned: Event, done: Event, neighbours: Neighbours | None) -> bool:
    """Whether an answer that was planned is a bound on the one that was given: the same, or no less
    noise for anybody.

    Without a relation nothing is known of people, and only the same is.
    A planned `PerCell` bounds itself alone: a plan's are composed person by person, and what is
    worse for one and better for another would not be in its price. Of a secret batch the price is
    everybody's worst, so there it may stand for another.

    >>> covers(Gaussian(2.0), PerCell(((2.0, 3.0),), (2.0,)), "add-remove")
    True
    >>> covers(Gaussian(2.0), PerCell(((2.0, 1.0),), (2.0,)), "add-remove")
    False
    """
    if planned == done or neighbours is None:
        return planned == done
    if (
        isinstance(planned, PoissonSampled)
        and isinstance(done, PoissonSampled)
        and planned.rate == done.rate
    ):
        return _on_one_batch(planned, done, neighbours)
    if (
        isinstance(planned, VisiblySampled)
        and isinstance(done, VisiblySampled)
        and planned.rate == done.rate
    ):
        return _at_most(planned.event, done.event, neighbours)
    if isinstance(planned, OnPart) and isinstance(done, OnPart):
        same = (planned.part, planned.parts) == (done.part, done.parts)
        return same and _at_most(planned.event, done.event, neighbours)
    return (
        isinstance(planned, Gaussian)
        and isinstance(done, PerCell)
        and _at_most(planned, done, neighbours)
    )


def _at_most(planned: Event, done: Event, neighbours: Neighbours) -> bool:
    """Of what is made of unsampled Gaussians; those that are planned are the same for everybody."""
    if not _made_of((Gaussian,), planned) or not _made_of((Gaussian, PerCell), done):
        return False
    room = leaves.inventory(planned, neighbours).gaussian
    return leaves.inventory(done, neighbours).gaussian <= room * (1 + SLACK)


def _made_of(leaf: tuple[type[Event], ...], event: Event) -> bool:
    if isinstance(event, Composed):
        return all(_made_of(leaf, inner) for inner in event.events)
    return _made_of(leaf, event.event) if isinstance(event, Repeated) else isinstance(event, leaf)


def _on_one_batch(planned: PoissonSampled, done: PoissonSampled, neighbours: Neighbours) -> bool:
    """c and d of theory.md#t3, neither of them larger: both are all that the price depends on."""
    intended, given = leaves.one_batch(planned, neighbours), leaves.one_batch(done, neighbours)
    pairs = [(intended.alone, given.alone)]
    if intended.replaced is not None and given.replaced is not None:
        pairs.append((intended.replaced, given.replaced))
    return all(
        a.is_gaussian and b.is_gaussian and b.mu**2 <= a.mu**2 * (1 + SLACK) for a, b in pairs
    )
