"""What a release costs: events in, epsilon or delta out, by the least of the valid routes.

1. One-sided: a price is never below the true cost of the described events. Grids round up, tails
   count as infinite losses, roots come from above.
2. One batch is one event; two `PoissonSampled` are two batches (theory.md#one-batch).
3. The relation changes sampled and per-cell events only: elsewhere it is already in the multiplier
   (theory.md#multipliers).
4. For plans fixed in advance. To cap mechanisms that are chosen after seeing earlier answers use
   `fairveil.privacy.accounting.filters` (T10).

Routes: closed form (Gaussians: Balle and Wang 2018, Dong, Roth and Su 2022), privacy-loss
distributions (Sommer, Meiser and Mohammadi 2019; Koskela, Jalko and Honkela 2020), Renyi (Mironov
2017), addition of epsilons. `docs/accounting.md` has the theorem behind every event.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ... import _checks
from ...core.events import Event
from ...core.promise import Neighbours
from ...errors import InputError
from . import inventory as leaves
from . import routes
from .inventory import Inventory
from .routes import Route

Events = Event | Iterable[Event]


@dataclass(frozen=True)
class Price:
    """What events cost: (epsilon, delta) under a relation, and the route that showed it."""

    epsilon: float
    delta: float
    neighbours: Neighbours
    route: str


def epsilon(events: Events, delta: float, neighbours: str = "add-remove") -> float:
    """The epsilon of these events at this delta; inf when they are not private at it.

    >>> from fairveil.core.events import Gaussian, Repeated
    >>> round(epsilon(Repeated(Gaussian(10.0), 100), 1e-6), 4)
    4.8866
    """
    return price(events, delta, neighbours).epsilon


def price(events: Events, delta: float, neighbours: str = "add-remove") -> Price:
    """The least epsilon over all valid routes, and the route that gave it."""
    target = _checks.fraction(delta=delta, high_open=True, remedy="Pass delta=1e-6, for example.")
    return _price(leaves.as_event(events), target, leaves.checked_relation(neighbours))


def delta(events: Events, epsilon: float, neighbours: str = "add-remove") -> float:
    """The delta of these events at this epsilon, at most 1.

    >>> from fairveil.core.events import Laplace
    >>> delta(Laplace(1.0), 1.0)
    0.0
    """
    at = _checks.non_negative(epsilon=epsilon, allow_inf=True)
    return _delta(leaves.as_event(events), at, leaves.checked_relation(neighbours))


def curve(
    events: Events,
    neighbours: str = "add-remove",
    *,
    deltas: Sequence[float] | None = None,
    epsilons: Sequence[float] | None = None,
) -> tuple[tuple[float, float], ...]:
    """(epsilon, delta) pairs along the whole curve, by increasing epsilon: at the given deltas, or
    the given epsilons.

    Delta never rises with epsilon along it. Without either, deltas are 1e-1, 1e-2, ... 1e-12.
    """
    if deltas is not None and epsilons is not None:
        raise InputError.expected(
            "deltas or epsilons, not both",
            of="curve",
            got="both",
            remedy="Call it twice for two curves.",
        )
    event = leaves.as_event(events)
    if epsilons is not None:
        pairs = [(at, delta(event, at, neighbours)) for at in sorted(epsilons)]
        least = 1.0
        for index, (at, found) in enumerate(pairs):
            least = min(least, found)
            # Each value is an upper bound, perhaps by another route; the true delta never rises, so
            # a bound at a smaller epsilon holds here, too.
            pairs[index] = (at, least)
        return tuple(pairs)
    chosen = sorted(
        deltas if deltas is not None else [10.0**-k for k in range(1, 13)], reverse=True
    )
    pairs, most = [], 0.0
    for at in chosen:
        most = max(most, epsilon(event, at, neighbours))
        pairs.append((most, at))
    return tuple(pairs)


def routes_of(events: Events, delta: float, neighbours: str = "add-remove") -> dict[str, float]:
    """Every valid route by name, with the epsilon that it gives: each is an upper bound on the true
    one."""
    target = _checks.fraction(delta=delta, high_open=True)
    total = leaves.inventory(leaves.as_event(events), leaves.checked_relation(neighbours))
    relation = leaves.checked_relation(neighbours)
    found = routes.valid(total, relation)
    if total.private and not (found and found[0].name == routes.NOTHING):
        found = [*found, routes.moments(total, relation), routes.by_losses(total, relation)]
    return {route.name: _with_sampler_error(route, target) for route in found}


@lru_cache(maxsize=4096)
def _price(event: Event, target: float, neighbours: Neighbours) -> Price:
    total = leaves.inventory(event, neighbours)
    best = Price(math.inf, target, neighbours, routes.NO_ROUTE)
    for route in _worthwhile(total, neighbours, target):
        found = _with_sampler_error(route, target)
        if found < best.epsilon:
            best = Price(found, target, neighbours, route.name)
    if math.isinf(best.epsilon) and total.private and target > 0:
        # The grid has no room for losses as large, or deltas as small, as these: moments have no
        # grid.
        return Price(
            _with_sampler_error(routes.moments(total, neighbours), target),
            target,
            neighbours,
            routes.RENYI,
        )
    return best


def _worthwhile(total: Inventory, neighbours: Neighbours, target: float) -> Iterable[Route]:
    """The routes that can be the least: an exact one ends the search."""
    found = routes.valid(total, neighbours)
    yield from found
    if not total.private or not total.others or target == 0:
        return
    if routes.has_competition(total):
        yield routes.moments(total, neighbours)
    if not routes.only_moments(total):
        yield routes.by_losses(total, neighbours)


def _with_sampler_error(route: Route, target: float) -> float:
    """The least e with delta(e) + (1 + e^e) x total variation <= target (theory.md#t7), from above.

    Substituting again and again rises to the least solution; the last substitution, at a slightly
    larger e, certifies it.
    """
    error = route.total_variation
    if error == 0:
        return route.epsilon(target)
    guess = 0.0
    for _ in range(60):
        ahead = guess * (1 + 1e-7) + 1e-12
        room = target - routes.sampler_charge(ahead, error)
        if room <= 0:
            return math.inf
        found = route.epsilon(room)
        if found <= ahead:
            return ahead
        guess = found
    return math.inf


@lru_cache(maxsize=4096)
def _delta(event: Event, at: float, neighbours: Neighbours) -> float:
    total = leaves.inventory(event, neighbours)
    if math.isinf(at):
        if not total.private:
            return 1.0
        # A sampler's error leaves no bound at epsilon inf itself; delta never rises, so that of a
        # finite epsilon holds.
        return (
            _delta(event, 700.0, neighbours)
            if routes.whole_error(total, neighbours)
            else routes.certain_loss(total, neighbours)
        )
    best = 1.0
    for route in _worthwhile(total, neighbours, 1.0):
        best = min(best, _delta_with_sampler_error(route, at))
        if best == 0 and total.total_variation == 0:
            break
    return best


def _delta_with_sampler_error(route: Route, at: float) -> float:
    """delta(e) + (1 + e^e) x total variation, at the best e not above: it is convex in e^e."""
    error = route.total_variation

    def charged(e: float) -> float:
        return min(1.0, route.delta(e) + routes.sampler_charge(e, error))

    if error == 0:
        return route.delta(at)
    low, high = 0.0, at
    for _ in range(40):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if charged(one) <= charged(two) else (one, high)
    return min(charged(at), charged(low), charged(high))
